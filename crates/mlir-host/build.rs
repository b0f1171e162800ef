//! Compiles the C++ shim against the MLIR that `llvm-config-22` describes.

use std::process::Command;

fn llvm_config(flag: &str) -> String {
    let output = Command::new("llvm-config-22").arg(flag).output();
    match output {
        Ok(out) if out.status.success() => String::from_utf8_lossy(&out.stdout).trim().to_owned(),
        Ok(out) => panic!("llvm-config-22 {flag} failed: {}", String::from_utf8_lossy(&out.stderr)),
        Err(err) => panic!("llvm-config-22 not found ({err}); run `./dev setup`"),
    }
}

fn main() {
    let sources =
        ["dialect", "op", "bytecode", "flow", "asm", "driver"].map(|name| format!("shim/{name}.cpp"));
    println!("cargo:rerun-if-changed=shim");
    let mut build = cc::Build::new();
    // MLIR identifies traits by type names as the compiler spells them: the shim
    // must be compiled by the compiler that built MLIR, which is its own clang.
    build.compiler(format!("{}/clang++", llvm_config("--bindir")));
    build.cpp(true).files(&sources).include(llvm_config("--includedir"));
    // MLIR is used without RTTI and exceptions, as MLIR's own libraries are.
    for flag in ["-std=c++17", "-fno-rtti", "-fno-exceptions", "-Wno-unused-parameter"] {
        build.flag(flag);
    }
    build.opt_level(2).debug(false).warnings(false).compile("mlir_host_shim");
    println!("cargo:rustc-link-search=native={}", llvm_config("--libdir"));
    println!("cargo:rustc-link-lib=dylib=MLIR");
    println!("cargo:rustc-link-lib=dylib=LLVM-22");
}
