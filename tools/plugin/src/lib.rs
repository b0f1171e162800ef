//! Triton's dialects and ttopt's passes as a shared library.
//!
//! The stock `mlir-opt` loads it with `--load-dialect-plugin` and
//! `--load-pass-plugin`, through the entry points that
//! `mlir/Tools/Plugins/DialectPlugin.h` and `PassPlugin.h` describe. Passes have
//! flags there behind `--load-pass-plugin`. Programs in C and C++ link it and include `ttopt_mlir.h`, in the folder `include` beside
//! this package's sources.
//!
//! The library that loads it must use the same `libMLIR.so`: a second copy of
//! MLIR in a process has type identifiers of its own. For that reason nothing
//! here depends on crates that bring LLVM along for other purposes.

use mlir_sys::MlirDialectRegistry;
use std::ffi::{CStr, c_char, c_void};

/// `MLIR_PLUGIN_API_VERSION` of MLIR 22.
const API_VERSION: u32 = 1;
const NAME: &CStr = c"ttopt";
const VERSION: &CStr = match CStr::from_bytes_with_nul(concat!(env!("CARGO_PKG_VERSION"), "\0").as_bytes()) {
    Ok(version) => version,
    Err(_) => panic!("the version is a C string"),
};

/// `mlir::DialectPluginLibraryInfo`.
#[repr(C)]
pub struct DialectPluginLibraryInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: unsafe extern "C" fn(*mut c_void),
}

/// `mlir::PassPluginLibraryInfo`.
#[repr(C)]
pub struct PassPluginLibraryInfo {
    api_version: u32,
    name: *const c_char,
    version: *const c_char,
    register: extern "C" fn(),
}

/// What `mlir-opt` asks for with `--load-dialect-plugin`.
// SAFETY: the name is the one MLIR looks up; nothing else defines it.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetDialectPluginInfo() -> DialectPluginLibraryInfo {
    DialectPluginLibraryInfo {
        api_version: API_VERSION,
        name: NAME.as_ptr(),
        version: VERSION.as_ptr(),
        register: register_dialects,
    }
}

/// What `mlir-opt` asks for with `--load-pass-plugin`.
// SAFETY: the name is the one MLIR looks up; nothing else defines it.
#[unsafe(no_mangle)]
pub extern "C" fn mlirGetPassPluginInfo() -> PassPluginLibraryInfo {
    PassPluginLibraryInfo {
        api_version: API_VERSION,
        name: NAME.as_ptr(),
        version: VERSION.as_ptr(),
        register: register_plugin_passes,
    }
}

extern "C" fn register_plugin_passes() {
    mlir_host::driver::register_plugin_passes(&ttopt_lowering::all_passes().collect::<Vec<_>>());
}

/// # Safety
/// `registry` is a `mlir::DialectRegistry *`, which is what the C API wraps.
unsafe extern "C" fn register_dialects(registry: *mut c_void) {
    // MLIR's own dialects are mlir-opt's already.
    for dialect in ttopt_dialect::DIALECTS {
        // SAFETY: by the caller.
        unsafe { dialect.register(MlirDialectRegistry { ptr: registry }) }
    }
}

/// Adds the dialects, and those of MLIR that kernels use, to a registry.
/// Declared in `ttopt_mlir.h`.
///
/// # Safety
/// The registry is valid.
// SAFETY: the name is prefixed and nothing else defines it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ttoptRegisterDialects(registry: MlirDialectRegistry) {
    // SAFETY: by the caller; the C API wraps pointers to MLIR's registries.
    unsafe {
        mlir_host::driver::register_codegen(registry);
        register_dialects(registry.ptr);
    }
}

/// Registers the passes with MLIR, once. Declared in `ttopt_mlir.h`.
// SAFETY: the name is prefixed and nothing else defines it.
#[unsafe(no_mangle)]
pub extern "C" fn ttoptRegisterPasses() {
    for pass in ttopt_lowering::all_passes() {
        pass.register();
    }
}
