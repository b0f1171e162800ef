//! What the tools share: the one-shot compiler behind `ttc`, and the lists of
//! dialects and passes that every tool registers.

pub mod batch;
pub mod binary;
mod bit_loads;
mod codegen;
pub mod companions;
pub mod compile;
mod device_library;
pub mod diagnostics;
pub mod explain;
mod llvm_errors;
pub mod occupancy;
pub mod session;
pub mod store;

use mlir_host::pass::PassDef;

/// All passes, of every crate.
pub fn passes() -> Vec<&'static PassDef> {
    ttopt_lowering::all_passes().collect()
}
