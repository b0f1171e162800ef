//! Compiles the C++ shim.

use std::error::Error;
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    // Clippy links nothing, and shares no build script with what does.
    if !cfg!(clippy) {
        compile_shim()?;
    }
    Ok(())
}

fn compile_shim() -> Result<(), Box<dyn Error>> {
    let clang = format!("{}/clang++", output("llvm-config-22", "--bindir")?);
    let mut build = cc::Build::new();
    build.compiler(clang).cpp(true).file("shim/all.cpp").include(output("llvm-config-22", "--includedir")?);
    // LLVM itself has neither RTTI nor exceptions.
    for flag in ["-std=c++17", "-fno-rtti", "-fno-exceptions", "-Wno-unused-parameter"] {
        build.flag(flag);
    }
    build.opt_level(2).debug(false).warnings(false).compile("ttopt_tools_shim");
    Ok(())
}

/// What a program prints.
fn output(program: &str, argument: &str) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).arg(argument).output();
    let output = output.map_err(|err| format!("{program}: {err}; run `./dev setup`"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}
