//! Runs a GPU kernel in LLVM IR on the CPU.

fn main() -> std::process::ExitCode {
    simt::cli::main(std::env::args_os(), None)
}
