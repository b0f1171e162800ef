//! What the tools share: the one-shot compiler behind `ttc`, and the lists of
//! dialects and passes that every tool registers.

// Whoever finds what cannot be says so by an error with a place (CONTRIBUTING): nothing here ends a compilation by a panic.
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::unreachable,
        clippy::todo,
        clippy::unimplemented
    )
)]

pub use mlir_host::diagnostics;

pub mod batch;
pub mod binary;
mod bit_loads;
mod codegen;
pub mod companions;
pub mod compile;
mod contexts;
mod device_library;
pub mod explain;
mod llvm_errors;
mod loop_sums;
pub mod machine_code;
pub mod memory;
pub mod occupancy;
mod opaque_numbers;
pub mod overrides;
mod pointer_steps;
mod refusal;
mod resources;
mod rounded_pairs;
mod row_products;
pub mod session;
pub mod store;

use mlir_host::pass::PassDef;

/// All passes, of every crate.
pub fn passes() -> Vec<&'static PassDef> {
    ttopt_lowering::all_passes().collect()
}
