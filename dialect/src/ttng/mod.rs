//! The `ttng` dialect: what only NVIDIA GPUs have.

pub mod attrs;
mod canonicalize;
pub mod enums;
pub mod ops;
mod syntax;
pub mod types;
pub mod verify;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef {
    ops: ops::OPS,
    attrs: attrs::ATTRS,
    types: &[&types::TENSOR_DESC_IM2COL],
    dependencies: &["tt", "ttg", "gpu"],
    attr_alias: Some(crate::encoding::tensor_memory::alias),
    ..DialectDef::new("ttng")
};
