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
fn ptxas() -> Option<PathBuf> {
    find("TTOPT_PTXAS", "bin/ptxas", Some("ptxas"))
}

/// The `nvdisasm` to use: `TTOPT_NVDISASM`, a CUDA toolkit's, or the one in `PATH`.
fn nvdisasm() -> Option<PathBuf> {
    find("TTOPT_NVDISASM", "bin/nvdisasm", Some("nvdisasm"))
}

/// libdevice: `TTOPT_LIBDEVICE` or a CUDA toolkit's.
fn libdevice() -> Option<PathBuf> {
    find("TTOPT_LIBDEVICE", "nvvm/libdevice/libdevice.10.bc", None)
}

/// LLVM's linker, which makes code objects for AMD GPUs: `TTOPT_LLD`, Debian's, or the one in `PATH`.
fn lld() -> Option<PathBuf> {
    let given = find("TTOPT_LLD", "llvm/bin/ld.lld", Some("ld.lld-22"));
    let of_llvm = || Some(PathBuf::from("/usr/lib/llvm-22/bin/ld.lld")).filter(|path| path.is_file());
    given.or_else(of_llvm).or_else(|| find("TTOPT_LLD", "llvm/bin/ld.lld", Some("ld.lld")))
}

/// The folder of AMD's device libraries, `ocml` and `ockl`: `TTOPT_DEVICE_LIBS`, ROCm's, or Debian's.
fn device_libraries() -> Option<PathBuf> {
    let given = std::env::var_os("TTOPT_DEVICE_LIBS").map(PathBuf::from);
    let places =
        ["/opt/rocm/amdgcn/bitcode", "/usr/lib/x86_64-linux-gnu/amdgcn/bitcode", "/usr/lib/amdgcn/bitcode"];
    given.or_else(|| places.into_iter().map(PathBuf::from).find(|place| place.join("ocml.bc").is_file()))
}

/// Where the companions are. The default knows none, and then what needs one is an error that says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Companions {
    /// NVIDIA's assembler.
    pub ptxas: Option<PathBuf>,
    /// NVIDIA's disassembler.
    pub nvdisasm: Option<PathBuf>,
    /// NVIDIA's device functions, a bitcode file.
    pub libdevice: Option<PathBuf>,
    /// LLVM's linker.
    pub lld: Option<PathBuf>,
    /// The folder of AMD's device functions.
    pub device_libraries: Option<PathBuf>,
    /// Bitcode files of the caller's, which calls of unknown functions are looked up in, in this order.
    pub more_libraries: Vec<PathBuf>,
}

impl Companions {
    /// Those that variables of the environment name, or that are where they are commonly installed.
    pub fn find() -> Self {
        Self {
            ptxas: ptxas(),
            nvdisasm: nvdisasm(),
            libdevice: libdevice(),
            lld: lld(),
            device_libraries: device_libraries(),
            more_libraries: Vec::new(),
        }
    }

    /// A bitcode file of AMD's device libraries, `ocml` or `ockl`.
    pub fn device_library(&self, name: &str) -> Option<PathBuf> {
        let folder = self.device_libraries.as_ref()?;
        Some(folder.join(format!("{name}.bc"))).filter(|path| path.is_file())
    }
}
