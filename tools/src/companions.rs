//! Optional companions: `ptxas` and libdevice, LLVM's linker and AMD's device libraries, looked for where they are
//! commonly installed.

use std::path::PathBuf;

/// Directories that may hold a CUDA toolkit or the wheel with its compiler.
fn roots() -> Vec<PathBuf> {
    let mut roots = Vec::new();
    for variable in ["CUDA_HOME", "CUDA_PATH"] {
        roots.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    // Beside the binary: `target/<profile>/ttc` and `target/companions`.
    if let Ok(exe) = std::env::current_exe() {
        for dir in exe.ancestors().skip(1).take(3) {
            roots.push(dir.join("companions/cuda/nvidia/cu13"));
        }
    }
    roots.push(PathBuf::from("/usr/local/cuda"));
    roots
}

fn find(variable: &str, below: &str, program: Option<&str>) -> Option<PathBuf> {
    if let Some(given) = std::env::var_os(variable) {
        return Some(PathBuf::from(given));
    }
    let in_roots = roots().into_iter().map(|root| root.join(below)).find(|path| path.is_file());
    in_roots.or_else(|| {
        let (paths, program) = (std::env::var_os("PATH")?, program?);
        std::env::split_paths(&paths).map(|dir| dir.join(program)).find(|path| path.is_file())
    })
}

/// The `ptxas` to use: `TTOPT_PTXAS`, a CUDA toolkit's, or the one in `PATH`.
pub fn ptxas() -> Option<PathBuf> {
    find("TTOPT_PTXAS", "bin/ptxas", Some("ptxas"))
}

/// libdevice: `TTOPT_LIBDEVICE` or a CUDA toolkit's.
pub fn libdevice() -> Option<PathBuf> {
    find("TTOPT_LIBDEVICE", "nvvm/libdevice/libdevice.10.bc", None)
}

/// LLVM's linker, which makes code objects for AMD GPUs: `TTOPT_LLD`, Debian's, or the one in `PATH`.
pub fn lld() -> Option<PathBuf> {
    let given = find("TTOPT_LLD", "llvm/bin/ld.lld", Some("ld.lld-22"));
    let of_llvm = || Some(PathBuf::from("/usr/lib/llvm-22/bin/ld.lld")).filter(|path| path.is_file());
    given.or_else(of_llvm).or_else(|| find("TTOPT_LLD", "llvm/bin/ld.lld", Some("ld.lld")))
}

/// A bitcode file of AMD's device libraries, `ocml` or `ockl`: in `TTOPT_DEVICE_LIBS`, in ROCm, or Debian's.
pub fn device_library(name: &str) -> Option<PathBuf> {
    let given = std::env::var_os("TTOPT_DEVICE_LIBS").map(PathBuf::from);
    let places =
        ["/opt/rocm/amdgcn/bitcode", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode"];
    let places = match given {
        Some(given) => vec![given],
        None => places.into_iter().map(PathBuf::from).collect(),
    };
    places.into_iter().map(|place| place.join(format!("{name}.bc"))).find(|path| path.is_file())
}
