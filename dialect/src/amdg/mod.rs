//! The `amdg` dialect.

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef { ..DialectDef::new("amdg") };
