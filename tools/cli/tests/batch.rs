//! A cache that processes share, are killed in, and that rots.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const KERNEL: &str = "tt.func public @k(%p: !tt.ptr<i32>) {
  %c = arith.constant NUMBER : i32
  tt.store %p, %c : !tt.ptr<i32>
  tt.return
}";

/// A folder with a list of jobs, and a cache.
struct Batch {
    folder: tempfile::TempDir,
}

impl Batch {
    fn new(jobs: usize) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let mut list = String::new();
        for i in 0..jobs {
            let path = folder.path().join(format!("{i}.ttir"));
            std::fs::write(&path, KERNEL.replace("NUMBER", &i.to_string())).expect("written");
            list += &format!("{{\"input\": {path:?}}}\n");
        }
        std::fs::write(folder.path().join("list"), list).expect("written");
        Self { folder }
    }

    fn cache(&self) -> PathBuf {
        self.folder.path().join("cache")
    }

    fn command(&self, options: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_ttc"));
        command.arg("--batch").arg(self.folder.path().join("list")).args(["--jobs", "2"]).args(options);
        command
    }

    fn cached(&self, options: &[&str]) -> Command {
        let mut command = self.command(options);
        command.arg("--cache").arg(self.cache());
        command
    }

    /// The entries that are there.
    fn entries(&self) -> Vec<PathBuf> {
        let folders = std::fs::read_dir(self.cache()).expect("a cache").flatten();
        let folders = folders.map(|folder| folder.path()).filter(|path| !path.ends_with("fresh"));
        let files = |folder: PathBuf| std::fs::read_dir(folder).expect("a folder").flatten();
        folders.flat_map(files).map(|file| file.path()).collect()
    }
}

/// The answers, whether cached or not and but for the times that they took, and how many were cached.
fn answers(output: Output) -> (String, usize) {
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).expect("text");
    let mut cached = 0;
    let alike = |line: &str| {
        let mut answer: serde_json::Value = serde_json::from_str(line).expect("JSON");
        let was_there = answer["cached"] == true;
        cached += usize::from(was_there);
        assert_eq!(answer["times"].is_null(), was_there, "what is not compiled takes no time");
        answer["cached"] = false.into();
        answer["times"].take();
        format!("{answer}\n")
    };
    (text.lines().map(alike).collect(), cached)
}

fn size(path: &Path) -> u64 {
    // Another process may have removed it.
    path.metadata().map_or(0, |facts| facts.len())
}

/// Processes that are killed at any time, two at once on one folder, lose nothing that was there and leave nothing that is
/// taken for whole and is not.
#[test]
fn a_process_killed_while_it_writes_corrupts_nothing() {
    let batch = Batch::new(40);
    for round in 0..8u64 {
        let start = || batch.cached(&[]).stdout(Stdio::null()).spawn().expect("it starts");
        let mut both = [start(), start()];
        std::thread::sleep(Duration::from_millis(20 + 15 * round));
        for process in &mut both {
            process.kill().expect("killed, or ended");
            process.wait().expect("gone");
        }
    }
    let run = |mut command: Command| {
        let output = command.output().expect("it runs");
        assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
        answers(output)
    };
    let (alone, _) = run(batch.command(&[]));
    let (first, some) = run(batch.cached(&[]));
    let (second, all) = run(batch.cached(&[]));
    assert_eq!((&first, &second), (&alone, &alone));
    assert!(some > 0, "the killed processes left nothing: they were killed too early to test anything");
    assert_eq!(all, 40);
}

/// Processes that fill one folder at the same time, and remove each other's entries to stay within its bound, answer right.
#[test]
fn processes_that_remove_each_others_entries_answer_right() {
    let batch = Batch::new(60);
    let (alone, _) = answers(batch.command(&[]).output().expect("it runs"));
    let one = answers(batch.cached(&[]).output().expect("it runs"));
    assert_eq!(one, (alone.clone(), 0));
    let bytes = size(&batch.entries()[0]);
    // A third of what there is.
    let most = (20 * bytes).to_string();
    for _ in 0..3 {
        let bounded = || batch.cached(&["--cache-bytes", &most]);
        let running: Vec<_> =
            (0..3).map(|_| bounded().stdout(Stdio::piped()).spawn().expect("it starts")).collect();
        for process in running {
            let output = process.wait_with_output().expect("it ran");
            assert_eq!(answers(output).0, alone);
        }
    }
    // Of 60 more entries the 33rd is the last before which the folder is measured and made smaller.
    let output = batch.cached(&["--cache-bytes", &most, "--num-warps", "8"]).output().expect("it runs");
    assert_eq!(answers(output).1, 0);
    let left = batch.entries().len();
    assert!((20..=18 + 32).contains(&left), "{left}");
}

/// What a disk did to entries is found out and said, and they are made anew.
#[test]
fn entries_that_rot_are_made_anew() {
    let batch = Batch::new(6);
    let (alone, _) = answers(batch.cached(&[]).output().expect("it runs"));
    for (i, path) in batch.entries().iter().take(3).enumerate() {
        let mut bytes = std::fs::read(path).expect("there");
        match i {
            0 => bytes.truncate(bytes.len() / 2),
            1 => *bytes.last_mut().expect("some") ^= 1,
            _ => bytes.clear(),
        }
        std::fs::write(path, bytes).expect("written");
    }
    let output = batch.cached(&[]).output().expect("it runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("3 entries of the cache were not whole, and were made anew"), "{said}");
    assert_eq!(answers(output), (alone.clone(), 3));
    assert_eq!(answers(batch.cached(&[]).output().expect("it runs")), (alone, 6));
}
