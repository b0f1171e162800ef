//! The `ttg` dialect.

pub mod infer;
pub mod verify;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef { ..DialectDef::new("ttg") };
