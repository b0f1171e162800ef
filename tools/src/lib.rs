//! What the tools share.

use mlir_host::pass::PassDef;

/// All passes, of every crate.
pub fn passes() -> Vec<&'static PassDef> {
    ttopt_passes::PASSES.to_vec()
}
