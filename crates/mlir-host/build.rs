//! Compiles the C++ shim against MLIR 22, and makes everything that depends on this crate link with it.
//!
//! MLIR is the one of `MLIR_SYS_220_PREFIX`, where mlir-sys looks for it, too, or else of `llvm-config-22` or `llvm-config` in
//! `PATH`.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

/// Prefix of an installation, as mlir-sys has it.
const PREFIX: &str = "MLIR_SYS_220_PREFIX";

/// What the first `llvm-config` of the right version is called.
fn llvm_config() -> PathBuf {
    println!("cargo::rerun-if-env-changed={PREFIX}");
    let named = env::var_os(PREFIX).map(|prefix| Path::new(&prefix).join("bin/llvm-config"));
    let tried = match named {
        Some(named) => vec![named],
        None => vec!["llvm-config-22".into(), "llvm-config".into()],
    };
    let is_22 = |program: &PathBuf| ask(program, "--version").is_ok_and(|version| version.starts_with("22."));
    tried.iter().find(|program| is_22(program)).cloned().unwrap_or_else(|| {
        let tried: Vec<_> = tried.iter().map(|program| ask(program, "--version").unwrap_or_else(|err| err)).collect();
        panic!(
            "mlir-host needs LLVM and MLIR 22 with their headers (Debian: llvm-22-dev, libmlir-22-dev, clang-22), and {PREFIX} \
             set to where they are (Debian: /usr/lib/llvm-22); found: {}",
            tried.join(", ")
        )
    })
}

/// What a program says.
fn ask(program: &Path, flag: &str) -> Result<String, String> {
    let name = program.display();
    match Command::new(program).arg(flag).output() {
        Ok(out) if out.status.success() => Ok(String::from_utf8_lossy(&out.stdout).trim().to_owned()),
        Ok(out) => Err(format!("{name} {flag} failed: {}", String::from_utf8_lossy(&out.stderr).trim())),
        Err(err) => Err(format!("no {name} ({err})")),
    }
}

fn compile_shim(bindir: &str, includedir: &str) {
    println!("cargo::rerun-if-changed=shim");
    // Clippy links nothing. What it compiles of a workspace, build scripts among it, serves nothing else.
    if cfg!(clippy) {
        return;
    }
    let mut build = cc::Build::new();
    // MLIR identifies traits by type names as the compiler spells them: the shim
    // must be compiled by the compiler that built MLIR, which is its own clang.
    build.compiler(format!("{bindir}/clang++"));
    build.cpp(true).file("shim/all.cpp").include(includedir);
    // MLIR is used without RTTI and exceptions, as MLIR's own libraries are.
    for flag in ["-std=c++17", "-fno-rtti", "-fno-exceptions", "-Wno-unused-parameter"] {
        build.flag(flag);
    }
    build.opt_level(2).debug(false).warnings(false).compile("mlir_host_shim");
}

/// One libMLIR and one libLLVM must serve every crate and the shim: two copies of LLVM in a process crash it. When mlir-sys
/// links shared libraries it asks for `-lMLIR-C`, which Debian does not build; the C API is there as archives of thin
/// wrappers, and a linker script makes them look like it.
fn make_c_api(libdir: &str) {
    if Path::new(libdir).join("libMLIR-C.so").exists() {
        return;
    }
    let names = fs::read_dir(libdir).into_iter().flatten().flatten().map(|entry| entry.path());
    let is_part = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name.starts_with("libMLIRCAPI") && name.ends_with(".a")
    };
    let mut archives: Vec<PathBuf> = names.filter(is_part).collect();
    assert!(!archives.is_empty(), "no C API of MLIR (libMLIR-C.so or libMLIRCAPI*.a) in {libdir}");
    archives.sort();
    let list: String = archives.iter().map(|archive| format!("  \"{}\"\n", archive.display())).collect();
    let out = env::var("OUT_DIR").expect("cargo says where");
    let script = Path::new(&out).join("libMLIR-C.so");
    fs::write(&script, format!("GROUP(\n{list}  AS_NEEDED( \"{libdir}/libMLIR.so\" )\n)\n"))
        .unwrap_or_else(|err| panic!("{}: {err}", script.display()));
    println!("cargo::rustc-link-search=native={out}");
}

fn main() {
    let config = llvm_config();
    let of = |flag: &str| ask(&config, flag).unwrap_or_else(|err| panic!("{err}"));
    let libdir = of("--libdir");
    compile_shim(&of("--bindir"), &of("--includedir"));
    make_c_api(&libdir);
    println!("cargo::rustc-link-search=native={libdir}");
    println!("cargo::rustc-link-lib=dylib=MLIR");
    println!("cargo::rustc-link-lib=dylib=LLVM-22");
    // No build script can add to the arguments by which its dependents are linked. They ask for this and do so themselves.
    println!("cargo::metadata=libdir={libdir}");
}
