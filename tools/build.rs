//! Compiles the C++ shim, and links the release builds of `ttc` and `ttsim` with the archives of MLIR and LLVM instead of
//! their shared libraries, whose hundreds of thousands of relocations take longer than it takes to compile a small kernel.
//! All other binaries, and all debug builds, use the shared libraries: they load plugins, or are linked often.

#[path = "build/archives.rs"]
mod archives;

use archives::output;
use std::error::Error;

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build");
    println!("cargo:rerun-if-changed=shim");
    // Clippy links nothing, and shares no build script with what does.
    if !cfg!(clippy) {
        compile_shim()?;
    }
    if archives::wanted() {
        archives::link("bin=ttc")?;
        archives::link("bin=ttsim")?;
    }
    Ok(())
}

fn compile_shim() -> Result<(), Box<dyn Error>> {
    let clang = format!("{}/clang++", output("llvm-config-22", "--bindir")?);
    let mut build = cc::Build::new();
    build
        .compiler(clang)
        .cpp(true)
        .file("shim/assemble.cpp")
        .file("shim/codegen.cpp")
        .file("shim/masks.cpp")
        .file("shim/random.cpp")
        .file("shim/sinking.cpp")
        .include(output("llvm-config-22", "--includedir")?);
    // LLVM itself has neither RTTI nor exceptions.
    for flag in ["-std=c++17", "-fno-rtti", "-fno-exceptions", "-Wno-unused-parameter"] {
        build.flag(flag);
    }
    build.opt_level(2).debug(false).warnings(false).compile("ttopt_tools_shim");
    Ok(())
}
