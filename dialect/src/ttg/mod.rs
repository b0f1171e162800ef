//! The `ttg` dialect: tensors with layouts, buffers in shared memory, warps.

pub mod attrs;
mod canonicalize;
pub mod enums;
mod fold;
pub mod infer;
pub mod infer_memdesc;
pub mod layout;
pub mod module_attrs;
pub mod ops;
mod reshape;
pub mod types;
pub mod verify;
mod verify_ops;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef {
    ops: ops::OPS,
    attrs: attrs::ATTRS,
    types: types::TYPES,
    dependencies: &["tt", "gpu"],
    attr_alias: Some(attrs::alias),
    verify_op_attr: Some(verify::op_attr),
    materialize_constant: Some(crate::tt::fold::materialize_constant),
    ..DialectDef::new("ttg")
};
