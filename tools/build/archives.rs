//! Links a release build with the archives of MLIR and LLVM instead of their shared libraries. Shared by the build scripts
//! of `ttc`, of `libttopt` and of the Python extension, which have to run where no LLVM is installed.

use std::error::Error;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Whether what is being built can and shall be linked with archives.
pub fn wanted() -> bool {
    println!("cargo:rerun-if-env-changed=TTOPT_LINK_SHARED");
    let variable = |name: &str| env::var(name).unwrap_or_default();
    // rustc links with lld there, which can put other files in the place of those named.
    let has_lld = variable("TARGET") == "x86_64-unknown-linux-gnu";
    variable("PROFILE") == "release" && has_lld && variable("TTOPT_LINK_SHARED") != "1"
}

/// Links a library that is built, with archives where that can be done.
#[allow(dead_code, reason = "not for the build script of ttc")]
pub fn link_library() -> Result<(), Box<dyn Error>> {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../tools/build");
    if wanted() { link("cdylib") } else { Ok(()) }
}

/// `kind` says what to link so, as in `cargo:rustc-link-arg-KIND`: `bin=ttc`, `cdylib`.
pub fn link(kind: &str) -> Result<(), Box<dyn Error>> {
    let libdir = output("llvm-config-22", "--libdir")?;
    let (mlir, llvm) = (archives(&libdir, "libMLIR")?, archives(&libdir, "libLLVM")?);
    if mlir.is_empty() || llvm.is_empty() {
        return Ok(());
    }
    let out = PathBuf::from(env::var("OUT_DIR")?);
    let substitute = |library: &str, file: &str| {
        // The linker reads `file` wherever it finds `library`.
        println!("cargo:rustc-link-arg-{kind}=-Wl,--remap-inputs=*/{library}={file}");
    };
    substitute("libMLIR.so", &script(&out, "mlir.ld", &mlir)?);
    substitute("libLLVM-22.so", &script(&out, "llvm.ld", &llvm)?);
    // What the archives need themselves.
    for library in ["stdc++", "ffi", "z", "zstd"] {
        let archive = output("c++", &format!("-print-file-name=lib{library}.a"))?;
        if Path::new(&archive).is_file() {
            substitute(&format!("lib{library}.so"), &archive);
        }
    }
    // `./dev layout` moves code, and has to find what refers to it.
    println!("cargo:rerun-if-env-changed=TTOPT_RELOCATIONS");
    if kind != "bin=ttsim" && env::var("TTOPT_RELOCATIONS").is_ok_and(|wanted| wanted == "1") {
        println!("cargo:rustc-link-arg-{kind}=-Wl,--emit-relocs");
    }
    // Debug information of the archives is of a kind that valgrind does not read.
    for argument in ["-lz", "-lzstd", "-Wl,--strip-debug", "-Wl,--build-id"] {
        println!("cargo:rustc-link-arg-{kind}={argument}");
    }
    Ok(())
}

/// What a program prints.
pub fn output(program: &str, argument: &str) -> Result<String, Box<dyn Error>> {
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
