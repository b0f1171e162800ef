//! Dots.

use crate::constraints::*;
use crate::interfaces::DOT;
use crate::tt::enums::{InputPrecision, ScaleDotElemType};
use crate::tt::traits::ON_TENSORS;
use crate::tt::types::same;
use crate::tt::{canonicalize, infer, verify};
use mlir_host::attrs::{BoolAttr, I32Attr};
use mlir_host::def::TypeRule;
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// `a * b + c`, for each matrix of a batch.
    pub struct DotOp = "tt.dot" {
        operands: [a: NUMBER_TENSOR, b: NUMBER_TENSOR, c: NUMBER_TENSOR],
        results: [d: NUMBER_TENSOR],
        attrs: [
            input_precision("inputPrecision")[default "2 : i32"]: InputPrecision,
            max_num_imprecise_acc("maxNumImpreciseAcc")[default "0 : i32"]: I32Attr,
        ],
        traits: [Trait::Pure, ON_TENSORS],
        types: [TypeRule::new("result's type matches accumulator's type", "d", "c", same)],
        format: "$a `,` $b `,` $c (`,` `inputPrecision` `=` $inputPrecision^)? attr-dict `:` type($a) `*` type($b) `->` type($d)",
        with: {
            interfaces: &[DOT],
            verify: Some(verify::dot),
            infer: Some(infer::dot),
            canonicalize: &canonicalize::DOT,
        },
    }
}

op! {
    /// `(a * a_scale) * (b * b_scale) + c`, with a scale for each block along the inner dimension.
    pub struct DotScaledOp = "tt.dot_scaled" {
        operands: [
            a: FLOAT_OR_I8_TENSOR, b: FLOAT_OR_I8_TENSOR, c: FLOAT_TENSOR,
            a_scale[opt]: FLOAT_OR_I8_TENSOR, b_scale[opt]: FLOAT_OR_I8_TENSOR,
        ],
        results: [d: FLOAT_TENSOR],
        attrs: [
            a_elem_type: ScaleDotElemType,
            b_elem_type: ScaleDotElemType,
            fast_math("fastMath"): BoolAttr,
            lhs_k_pack[default "true"]: BoolAttr,
            rhs_k_pack[default "true"]: BoolAttr,
        ],
        traits: [Trait::Pure, ON_TENSORS],
        types: [TypeRule::new("result's type matches accumulator's type", "d", "c", same)],
        format: "$a (`scale` $a_scale^)? `,` $b (`scale` $b_scale^)? `,` $c `lhs` `=` $a_elem_type `rhs` `=` $b_elem_type attr-dict `:` type($a) (`,` type($a_scale)^)? `*` type($b) (`,` type($b_scale)^)? `->` type($d)",
        with: {
            interfaces: &[DOT],
            verify: Some(verify::dot_scaled),
        },
    }
}
