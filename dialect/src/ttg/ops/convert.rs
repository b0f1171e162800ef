//! Operations on tensors: layout conversion, unpacking, inline assembly.

use crate::constraints::*;
use crate::ttg::types::MEMDESC;
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::{canonicalize, fold, verify_ops};
use mlir_host::attrs::{BoolAttr, I32Attr, StrAttr, UnitAttr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects, Speculation, TypeConstraint};
use mlir_host::ir::Op;
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// Moves the elements of a tensor to where another layout has them.
    pub struct ConvertLayoutOp = "ttg.convert_layout" {
        operands: [src: TENSOR],
        results: [result: TENSOR],
        attrs: [force_warp_shuffle[opt]: UnitAttr],
        traits: [Trait::Pure, Trait::SAME_SHAPE, Trait::SAME_ELEMENT, ON_BUFFERS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify_ops::convert_layout),
            fold: Some(fold::convert_layout),
            canonicalize: &canonicalize::CONVERT_LAYOUT,
        },
    }
}

/// Bytes that each hold two fp4 numbers.
static I8_TENSOR: TypeConstraint =
    TypeConstraint::new("ranked tensor of 8-bit signless integer values", |ty| {
        ty.as_tensor().is_some_and(|tensor| tensor.element().is_int(8))
    });

op! {
    /// Unpacks pairs of fp4 (e2m1) numbers, low half first, along `axis`.
    pub struct Fp4ToFpOp = "ttg.fp4_to_fp" {
        operands: [src: I8_TENSOR],
        results: [result: FLOAT_TENSOR],
        attrs: [axis: I32Attr],
        traits: [Trait::Pure, ON_BUFFERS],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: { verify: Some(verify_ops::fp4_to_fp) },
    }
}

/// What assembly can be given.
static ASM_OPERAND: TypeConstraint = TypeConstraint::new(
    "floating-point, integer, ptr or a ranked tensor of them, or memory descriptor",
    |ty| (ANY.matches)(ty) || ty.is(&MEMDESC),
);

fn asm_effects(op: Op<'_>, push: &mut dyn FnMut(Effect)) {
    if !InlineAsmOp::of(op).pure() {
        for kind in [EffectKind::Write, EffectKind::Read] {
            push(Effect { kind, resource: "", on: EffectOn::Nothing });
        }
    }
}

op! {
    /// Runs inline assembly once in each thread, on all registers of its operands.
    pub struct InlineAsmOp = "ttg.inline_asm" {
        operands: [args[var]: ASM_OPERAND],
        results: [result[var]: ANY],
        attrs: [asm_string: StrAttr, constraints: StrAttr, pure: BoolAttr],
        traits: [ON_BUFFERS],
        format: "$asm_string attr-dict ($args^)? `:` functional-type($args, $result)",
        with: {
            verify: Some(verify_ops::inline_asm),
            effects: Effects::Dynamic(asm_effects),
            speculation: Speculation::Dynamic(|op| InlineAsmOp::of(op).pure()),
        },
    }
}
