//! Compiles the C++ shim, and links the release build of `ttc` with the archives of MLIR and LLVM instead of their
//! shared libraries, whose hundreds of thousands of relocations take longer than it takes to compile a small kernel.
//! All other binaries, and all debug builds, use the shared libraries: they load plugins, or are linked often.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=shim");
    println!("cargo:rerun-if-env-changed=TTOPT_LINK_SHARED");
    let clang = format!("{}/clang++", output("llvm-config-22", "--bindir")?);
    let mut build = cc::Build::new();
    build
        .compiler(clang)
        .cpp(true)
        .file("shim/codegen.cpp")
        .include(output("llvm-config-22", "--includedir")?);
    // LLVM itself has neither RTTI nor exceptions.
    for flag in ["-std=c++17", "-fno-rtti", "-fno-exceptions", "-Wno-unused-parameter"] {
        build.flag(flag);
    }
    build.opt_level(2).debug(false).warnings(false).compile("ttopt_tools_shim");

    let variable = |name: &str| env::var(name).unwrap_or_default();
    // rustc links with lld there, which can put other files in the place of those named.
    let has_lld = variable("TARGET") == "x86_64-unknown-linux-gnu";
    if variable("PROFILE") == "release" && has_lld && variable("TTOPT_LINK_SHARED") != "1" {
        link_archives()?;
    }
    Ok(())
}

fn link_archives() -> Result<(), Box<dyn Error>> {
    let libdir = output("llvm-config-22", "--libdir")?;
    let (mlir, llvm) = (archives(&libdir, "libMLIR")?, archives(&libdir, "libLLVM")?);
    if mlir.is_empty() || llvm.is_empty() {
        return Ok(());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    substitute("libMLIR.so", &script(&out, "mlir.ld", &mlir)?);
    substitute("libLLVM-22.so", &script(&out, "llvm.ld", &llvm)?);
    let libstdcxx = output("c++", "-print-file-name=libstdc++.a")?;
    if Path::new(&libstdcxx).is_file() {
        substitute("libstdc++.so", &libstdcxx);
    }
    // What the archives need themselves. Their debug information is of a kind that valgrind does not read.
    for argument in ["-lz", "-lzstd", "-Wl,--strip-debug"] {
        println!("cargo:rustc-link-arg-bin=ttc={argument}");
    }
    Ok(())
}

fn output(program: &str, argument: &str) -> Result<String, Box<dyn Error>> {
    let output = Command::new(program).arg(argument).output();
    let output = output.map_err(|err| format!("{program}: {err}; run `./dev setup`"))?;
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// The archives whose names begin so.
fn archives(libdir: &str, prefix: &str) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(libdir)? {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with(prefix) && name.ends_with(".a") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Writes a linker script that stands for `archives`.
fn script(out: &Path, name: &str, archives: &[PathBuf]) -> Result<String, Box<dyn Error>> {
    let path = out.join(name);
    let names: String = archives.iter().map(|archive| format!("  \"{}\"\n", archive.display())).collect();
    fs::write(&path, format!("GROUP(\n{names})\n"))?;
    Ok(path.display().to_string())
}

/// Has the linker read `file` wherever it finds `library`.
fn substitute(library: &str, file: &str) {
    println!("cargo:rustc-link-arg-bin=ttc=-Wl,--remap-inputs=*/{library}={file}");
}
