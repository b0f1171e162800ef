//! Inference of encodings through shape operations: the encoding under which
//! the operation moves no data. `Ok(None)` stands for "no encoding", which
//! tensors have before conversion to TritonGPU.

use mlir_host::ir::Attr;

/// An encoding, or none.
pub type Encoding<'c> = Option<Attr<'c>>;
/// `Err` holds the reason.
pub type Inferred<'c> = Result<Encoding<'c>, String>;

/// Of the result of reducing dimension `axis`.
pub fn reduce<'c>(_operand: Encoding<'c>, _axis: usize) -> Inferred<'c> {
    Ok(None)
}

/// Of the result of inserting a dimension of size one at `axis`.
pub fn expand_dims<'c>(_operand: Encoding<'c>, _axis: usize) -> Inferred<'c> {
    Ok(None)
}

/// Of the result of permuting dimensions: result dimension `i` is operand dimension `order[i]`.
pub fn trans<'c>(_operand: Encoding<'c>, _shape: &[i64], _order: &[i32]) -> Inferred<'c> {
    Ok(None)
}

/// Of the result of reshaping.
pub fn reshape<'c>(_operand: Encoding<'c>, _from: &[i64], _to: &[i64]) -> Inferred<'c> {
    Ok(None)
}

/// Of the result of joining two tensors of `shape` in a new last dimension.
pub fn join<'c>(_operand: Encoding<'c>, _shape: &[i64]) -> Inferred<'c> {
    Ok(None)
}

/// Of the results of splitting the last dimension of a tensor of `shape`.
pub fn split<'c>(_operand: Encoding<'c>, _shape: &[i64]) -> Inferred<'c> {
    Ok(None)
}
