//! The `tt` dialect: what Triton's front end emits.

pub mod attrs;
pub mod canonicalize;
pub mod enums;
mod float;
pub mod fold;
pub mod infer;
mod legacy;
pub mod ops;
pub mod traits;
pub mod types;
pub mod verify;

use mlir_host::DialectDef;

/// The dialect.
pub static DIALECT: DialectDef = DialectDef {
    ops: ops::OPS,
    attrs: &[&attrs::CACHE_POLICY],
    types: &[&types::POINTER, &types::TENSOR_DESC],
    dependencies: &["arith", "math", "scf", "cf", "ub"],
    verify_op_attr: Some(verify::op_attr),
    verify_arg_attr: Some(verify::arg_attr),
    materialize_constant: Some(fold::materialize_constant),
    inline_call: Some(|_call, callee| callee.attr("noinline").and_then(|attr| attr.as_bool()) != Some(true)),
    ..DialectDef::new("tt")
};
