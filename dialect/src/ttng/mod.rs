//! The `ttng` dialect: what only NVIDIA GPUs have.

pub mod attrs;
pub mod enums;
pub mod types;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef {
    attrs: attrs::ATTRS,
    types: &[&types::TENSOR_DESC_IM2COL],
    dependencies: &["tt", "ttg", "gpu"],
    attr_alias: Some(attrs::alias),
    ..DialectDef::new("ttng")
};
