//! Tensors in registers: slices, concatenation, transposition.

use super::reads_shared;
use crate::amdg::{fold, verify};
use crate::constraints::*;
use crate::ttg::ops::LOCAL_LOAD;
use crate::ttg::types::{MEMDESC_TYPE, TOKEN_TYPE};
use mlir_host::attrs::DenseI64Array;
use mlir_host::def::{Effects, TypeConstraint};
use mlir_host::op;
use mlir_host::traits::Trait;

/// A tensor of anything.
static ANY_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of any type values", |ty| ty.as_tensor().is_some());

op! {
    /// A part of a tensor, held by the threads that held it before.
    pub struct ExtractSliceOp = "amdg.extract_slice" {
        operands: [source: ANY_TENSOR],
        results: [result: ANY_TENSOR],
        attrs: [static_offsets: DenseI64Array],
        traits: [Trait::Pure],
        format: "$source $static_offsets attr-dict `:` type($source) `to` type($result)",
        with: {
            verify: Some(verify::extract_slice),
            fold: Some(fold::extract_slice),
        },
    }
}

op! {
    /// Tensors side by side in row-major order, held by the threads that held them before.
    pub struct ConcatOp = "amdg.concat" {
        operands: [sources[var]: TENSOR],
        results: [result: ANY_TENSOR],
        traits: [Trait::Pure],
        format: "$sources attr-dict `:` type($sources) `->` type($result)",
        with: {
            verify: Some(verify::concat),
            fold: Some(fold::concat),
        },
    }
}

op! {
    /// Transposes what each thread holds.
    pub struct InThreadTransposeOp = "amdg.in_thread_transpose" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        traits: [Trait::Pure],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::in_thread_transpose),
        },
    }
}

op! {
    /// Loads pairs packed along M or N from shared memory as pairs packed along K.
    pub struct LocalLoadPackedTransposedOp = "amdg.local_load_packed_transposed" {
        operands: [src: MEMDESC_TYPE, token[opt]: TOKEN_TYPE],
        results: [result: TENSOR],
        traits: [LOCAL_LOAD],
        format: "$src (`token` $token^)? attr-dict `:` qualified(type($src)) `->` type($result)",
        with: {
            verify: Some(verify::local_load_packed_transposed),
            effects: Effects::List(&[reads_shared("src")]),
        },
    }
}
