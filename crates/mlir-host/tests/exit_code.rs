//! The exit code of a driver in which a callback panicked. Not a usual test: it runs itself as that driver.

use mlir_host::def::*;
use mlir_host::driver::opt_main;
use mlir_host::{DialectDef, op};
use std::io::Write as _;
use std::process::{Command, Stdio, exit};

op! {
    /// Cannot be printed.
    pub struct Print = "bad.print" {
        with: { format: Format::Custom { parse: |_| Ok(()), print: |_, _| panic!("boom") } },
    }
}

op! {
    /// Can.
    pub struct Good = "bad.good" { format: "attr-dict", }
}

static BAD: DialectDef = DialectDef { ops: &[Print::DEF, Good::DEF], ..DialectDef::new("bad") };

fn run(input: &str) -> (Option<i32>, String) {
    let this = std::env::current_exe().expect("this program");
    let mut child = Command::new(this)
        .env("AS_DRIVER", "1")
        .arg("-")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("runs");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("is read");
    let output = child.wait_with_output().expect("ends");
    (output.status.code(), String::from_utf8_lossy(&output.stdout).into_owned())
}

fn main() {
    if std::env::var_os("AS_DRIVER").is_some() {
        exit(opt_main("test", &[&BAD], &[]));
    }
    let (code, text) = run("bad.good");
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = run("bad.print");
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("\"bad.print\"()"), "{text}");
}
