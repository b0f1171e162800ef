//! `mlir-opt` with Triton's dialects and ttopt's passes.

use std::ffi::OsString;
use std::path::Path;

fn main() {
    if let Some(file) = empty_input(std::env::args_os().skip(1)) {
        eprintln!("ttopt: error: {file}: the file is empty");
        std::process::exit(1);
    }
    std::process::exit(mlir_host::driver::opt_main(
        "ttopt: MLIR optimizer driver with Triton's dialects\n",
        &ttopt_dialect::DIALECTS,
        &ttopt_tools::passes(),
    ));
}

/// Longer files are not read just to see whether they are blank, in bytes.
const LONGEST_BLANK: u64 = 4096;

fn is_blank(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= LONGEST_BLANK)
        && std::fs::read(path).is_ok_and(|bytes| bytes.iter().all(u8::is_ascii_whitespace))
}

/// The input, if nothing is in it: MLIR would take it for a module of nothing,
/// where a build that wrote nothing is far more likely.
fn empty_input(args: impl Iterator<Item = OsString>) -> Option<String> {
    let mut before = OsString::new();
    for arg in args {
        let is_output = before == "-o" || before == "--o";
        if !arg.as_encoded_bytes().starts_with(b"-") && !is_output && is_blank(Path::new(&arg)) {
            return Some(arg.display().to_string());
        }
        before = arg;
    }
    None
}
