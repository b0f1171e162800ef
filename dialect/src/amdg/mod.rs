//! The `amdg` dialect: what only AMD GPUs have.

pub mod attrs;
mod fold;
pub mod ops;
pub mod verify;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef {
    ops: ops::OPS,
    attrs: attrs::ATTRS,
    dependencies: &["tt", "ttg", "llvm"],
    ..DialectDef::new("amdg")
};
