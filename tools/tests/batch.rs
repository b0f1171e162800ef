//! A cache that processes share and are killed in.

use std::process::{Command, Stdio};
use std::time::Duration;

const KERNEL: &str = "tt.func public @k(%p: !tt.ptr<i32>) {
  %c = arith.constant NUMBER : i32
  tt.store %p, %c : !tt.ptr<i32>
  tt.return
}";

/// Processes that are killed at any time, two at once on one folder, lose nothing that was there and leave nothing that is
/// taken for whole and is not.
#[test]
fn a_process_killed_while_it_writes_corrupts_nothing() {
    let dir = tempfile::tempdir().expect("a folder");
    let mut list = String::new();
    for i in 0..40 {
        let path = dir.path().join(format!("{i}.ttir"));
        std::fs::write(&path, KERNEL.replace("NUMBER", &i.to_string())).expect("written");
        list += &format!("{{\"input\": {path:?}}}\n");
    }
    let (file, cache) = (dir.path().join("list"), dir.path().join("cache"));
    std::fs::write(&file, list).expect("written");
    let command = |cache: Option<&std::path::Path>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ttc"));
        command.arg("--batch").arg(&file).args(["--jobs", "2"]);
        if let Some(cache) = cache {
            command.arg("--cache").arg(cache);
        }
        command
    };
    for round in 0..8u64 {
        let start = || command(Some(&cache)).stdout(Stdio::null()).spawn().expect("it starts");
        let mut both = [start(), start()];
        std::thread::sleep(Duration::from_millis(20 + 15 * round));
        for process in &mut both {
            process.kill().expect("killed, or ended");
            process.wait().expect("gone");
        }
    }
    let answers = |cache| {
        let output = command(cache).output().expect("it runs");
        assert!(output.status.success());
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        let text = String::from_utf8(output.stdout).expect("text");
        let cached = text.matches("\"cached\":true").count();
        (text.replace("\"cached\":true", "\"cached\":false"), cached)
    };
    let (alone, _) = answers(None);
    let (first, some) = answers(Some(&cache));
    let (second, all) = answers(Some(&cache));
    assert_eq!((&first, &second), (&alone, &alone));
    assert!(some > 0, "the killed processes left nothing: they were killed too early to test anything");
    assert_eq!(all, 40);
}
