//! The `ttg` dialect.

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef { ..DialectDef::new("ttg") };
