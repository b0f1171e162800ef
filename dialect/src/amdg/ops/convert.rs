//! Conversions between block-scaled and plain floats.

use crate::amdg::verify;
use crate::tt::verify::SAME_ENCODING;
use mlir_host::attrs::I32Attr;
use mlir_host::def::TypeConstraint;
use mlir_host::ir::{FloatKind, Type};
use mlir_host::op;
use mlir_host::traits::{Trait, Upstream};

fn tensor_of(ty: Type<'_>, kinds: &[FloatKind], i8: bool) -> bool {
    ty.as_tensor().is_some_and(|tensor| {
        let element = tensor.element();
        (i8 && element.is_int(8)) || element.float_kind().is_some_and(|kind| kinds.contains(&kind))
    })
}

static I8_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of 8-bit signless integer values", |ty| tensor_of(ty, &[], true));
static FP8_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of f8E4M3FN type or f8E5M2 type values", |ty| {
        tensor_of(ty, &[FloatKind::F8E4M3FN, FloatKind::F8E5M2], false)
    });
static SCALE_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of bfloat16 type or 8-bit signless integer values", |ty| {
        tensor_of(ty, &[FloatKind::BF16], true)
    });
static PLAIN_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of 16-bit float or bfloat16 type or 32-bit float values", |ty| {
        tensor_of(ty, &[FloatKind::F16, FloatKind::BF16, FloatKind::F32], false)
    });
static HALF_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of 16-bit float or bfloat16 type values", |ty| {
        tensor_of(ty, &[FloatKind::F16, FloatKind::BF16], false)
    });

op! {
    /// Unpacks pairs of fp4 and multiplies with scales.
    pub struct ScaledUpcastFp4Op = "amdg.scaled_upcast_fp4" {
        operands: [input: I8_TENSOR, scale: SCALE_TENSOR],
        results: [output: HALF_TENSOR],
        attrs: [axis: I32Attr],
        traits: [Trait::Pure],
        format: "$input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->` type($output)",
        with: {
            verify: Some(verify::scaled_upcast_fp4),
        },
    }
}

op! {
    /// Widens fp8 and multiplies with scales.
    pub struct ScaledUpcastFp8Op = "amdg.scaled_upcast_fp8" {
        operands: [input: FP8_TENSOR, scale: SCALE_TENSOR],
        results: [output: HALF_TENSOR],
        traits: [Trait::Pure, Trait::Upstream(Upstream::Elementwise), Trait::SAME_SHAPE, SAME_ENCODING],
        format: "$input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->` type($output)",
        with: {
            verify: Some(verify::scaled_upcast_fp8),
        },
    }
}

op! {
    /// Divides by scales and packs pairs of fp4.
    pub struct ScaledDowncastFp4Op = "amdg.scaled_downcast_fp4" {
        operands: [input: PLAIN_TENSOR, scale: I8_TENSOR],
        results: [output: I8_TENSOR],
        attrs: [axis: I32Attr],
        traits: [Trait::Pure],
        format: "$input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->` type($output)",
        with: {
            verify: Some(verify::scaled_downcast_fp4),
        },
    }
}

op! {
    /// Divides by scales and narrows to fp8.
    pub struct ScaledDowncastFp8Op = "amdg.scaled_downcast_fp8" {
        operands: [input: PLAIN_TENSOR, scale: I8_TENSOR],
        results: [output: FP8_TENSOR],
        attrs: [axis: I32Attr],
        traits: [Trait::Pure],
        format: "$input `scale` $scale attr-dict `:` type($input) `,` type($scale) `->` type($output)",
        with: {
            verify: Some(verify::scaled_downcast_fp8),
        },
    }
}
