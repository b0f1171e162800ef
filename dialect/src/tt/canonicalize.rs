//! Canonicalization patterns.

use mlir_host::rewrite::Pattern;

/// .
pub static INT_TO_PTR: [Pattern; 0] = [];

/// .
pub static LOAD: [Pattern; 0] = [];

/// .
pub static STORE: [Pattern; 0] = [];

/// .
pub static ATOMIC_STORE: [Pattern; 0] = [];

/// .
pub static EXPAND_DIMS: [Pattern; 0] = [];

/// .
pub static RESHAPE: [Pattern; 0] = [];

/// .
pub static BROADCAST: [Pattern; 0] = [];
