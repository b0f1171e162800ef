//! The `tt` dialect.

pub mod types;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef { ..DialectDef::new("tt") };
