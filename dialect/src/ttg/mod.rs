//! The `ttg` dialect: tensors with layouts, buffers in shared memory, warps.

mod canonicalize;
pub mod enums;
mod fold;
pub mod infer_memdesc;
pub mod ops;
pub mod types;
pub mod verify;
mod verify_ops;

pub use verify_ops::is_cut_between_tiles;

pub use crate::encoding::{attrs, infer, layout, module_attrs};
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
