//! Analyses and passes from TTIR to TTGIR.

use mlir_host::pass::PassDef;

/// All passes of this crate.
pub static PASSES: [&PassDef; 0] = [];
