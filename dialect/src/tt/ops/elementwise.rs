//! Casts, arithmetic, and calls of outside code for each element.

use crate::constraints::*;
use crate::tt::enums::{PropagateNan, RoundingMode};
use crate::tt::traits::ON_TENSORS;
use crate::tt::traits::{ELEMENTWISE_CAST, ELEMENTWISE_ON_ONE_TYPE};
use crate::tt::types::same;
use crate::tt::verify::SAME_ENCODING;
use crate::tt::{canonicalize, fold, ops::global, verify};
use mlir_host::attrs::{BoolAttr, I32Attr, StrAttr};
use mlir_host::def::{ANY_TYPE, Effect, EffectKind, EffectOn, Effects, Speculation, TypeRule};
use mlir_host::ir::Op;
use mlir_host::op;
use mlir_host::traits::{Trait, Upstream};

const ELEMENTWISE: Trait = Trait::Upstream(Upstream::Elementwise);

op! {
    /// Casts 64-bit integers to pointers.
    pub struct IntToPtrOp = "tt.int_to_ptr" {
        operands: [src: I64_LIKE],
        results: [result: PTR_LIKE],
        traits: [ELEMENTWISE_CAST],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            fold: Some(fold::int_to_ptr),
            canonicalize: &canonicalize::INT_TO_PTR,
        },
    }
}

op! {
    /// Casts pointers to 64-bit integers.
    pub struct PtrToIntOp = "tt.ptr_to_int" {
        operands: [src: PTR_LIKE],
        results: [result: I64_LIKE],
        traits: [ELEMENTWISE_CAST],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: { fold: Some(fold::ptr_to_int) },
    }
}

op! {
    /// Reads the bits of a value as another type of the same width.
    pub struct BitcastOp = "tt.bitcast" {
        operands: [src: ANY],
        results: [result: ANY],
        traits: [ELEMENTWISE_CAST],
        format: "$src attr-dict `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::bitcast),
            fold: Some(fold::bitcast),
        },
    }
}

op! {
    /// Casts between float formats of which one has 8 bits, or with a given rounding.
    pub struct FpToFpOp = "tt.fp_to_fp" {
        operands: [src: FLOAT_LIKE],
        results: [result: FLOAT_LIKE],
        attrs: [rounding[opt]: RoundingMode],
        traits: [ELEMENTWISE_CAST],
        format: "$src attr-dict (`,` `rounding` `=` $rounding^)? `:` type($src) `->` type($result)",
        with: {
            verify: Some(verify::fp_to_fp),
            fold: Some(fold::fp_to_fp),
        },
    }
}

op! {
    /// Limits a value to a range.
    pub struct ClampFOp = "tt.clampf" {
        operands: [x: FLOAT_LIKE, min: FLOAT_LIKE, max: FLOAT_LIKE],
        results: [result: FLOAT_LIKE],
        attrs: [propagate_nan("propagateNan"): PropagateNan],
        traits: [ELEMENTWISE_ON_ONE_TYPE],
        types: [TypeRule::new("result type matches operand type", "x", "result", same)],
        format: "$x `,` $min `,` $max `,` `propagateNan` `=` $propagateNan attr-dict `:` type($result)",
    }
}

op! {
    /// The correctly rounded square root.
    pub struct PreciseSqrtOp = "tt.precise_sqrt" {
        operands: [x: FLOAT_LIKE],
        results: [result: FLOAT_LIKE],
        traits: [ELEMENTWISE_ON_ONE_TYPE],
        types: [TypeRule::new("result type matches operand type", "x", "result", same)],
        format: "$x attr-dict `:` type($x)",
    }
}

op! {
    /// The correctly rounded quotient.
    pub struct PreciseDivFOp = "tt.precise_divf" {
        operands: [x: FLOAT_LIKE, y: FLOAT_LIKE],
        results: [result: FLOAT_LIKE],
        traits: [ELEMENTWISE_ON_ONE_TYPE],
        types: [TypeRule::new("result type matches operand type", "x", "result", same)],
        format: "$x `,` $y attr-dict `:` type($x)",
    }
}

op! {
    /// An approximate quotient.
    pub struct ApproxDivFOp = "tt.approx_divf" {
        operands: [x: F32_LIKE, y: F32_LIKE],
        results: [result: F32_LIKE],
        traits: [ELEMENTWISE_ON_ONE_TYPE],
        types: [TypeRule::new("result type matches operand type", "x", "result", same)],
        format: "$x `,` $y attr-dict `:` type($x)",
    }
}

op! {
    /// The upper half of an unsigned product.
    pub struct MulhiUIOp = "tt.mulhiui" {
        operands: [x: INT_LIKE, y: INT_LIKE],
        results: [result: INT_LIKE],
        traits: [ELEMENTWISE_ON_ONE_TYPE],
        types: [TypeRule::new("result type matches operand type", "x", "result", same)],
        format: "$x `,` $y attr-dict `:` type($x)",
        with: { fold: Some(fold::mulhiui) },
    }
}

op! {
    /// Adds an offset, in elements, to a pointer.
    pub struct AddPtrOp = "tt.addptr" {
        operands: [ptr: PTR_LIKE, offset: INT_LIKE],
        results: [result: PTR_LIKE],
        traits: [ELEMENTWISE_CAST],
        types: [TypeRule::new("result type matches ptr type", "result", "ptr", same)],
        format: "$ptr `,` $offset attr-dict `:` type($result) `,` type($offset)",
        with: { fold: Some(fold::addptr) },
    }
}

/// What code that is not declared pure may do.
fn unless_pure(pure: bool, push: &mut dyn FnMut(Effect)) {
    if !pure {
        push(global(EffectKind::Write, EffectOn::Nothing));
        push(global(EffectKind::Read, EffectOn::Nothing));
    }
}

fn extern_is_pure(op: Op<'_>) -> bool {
    ExternElementwiseOp::of(op).pure()
}

op! {
    /// Calls a function of a device library for each element.
    pub struct ExternElementwiseOp = "tt.extern_elementwise" {
        operands: [srcs[var]: ANY],
        results: [result: ANY],
        attrs: [libname: StrAttr, libpath: StrAttr, symbol: StrAttr, pure: BoolAttr],
        traits: [ELEMENTWISE, SAME_ENCODING, Trait::SameVariadicOperandSize, ON_TENSORS],
        format: "operands attr-dict `:` functional-type(operands, $result)",
        with: {
            effects: Effects::Dynamic(|op, push| unless_pure(extern_is_pure(op), push)),
            speculation: Speculation::Dynamic(extern_is_pure),
        },
    }
}

fn asm_is_pure(op: Op<'_>) -> bool {
    ElementwiseInlineAsmOp::of(op).pure()
}

op! {
    /// Runs a piece of assembly for each group of `packed_element` elements.
    pub struct ElementwiseInlineAsmOp = "tt.elementwise_inline_asm" {
        operands: [args[var]: ANY_TYPE],
        results: [result[var]: ANY],
        attrs: [asm_string: StrAttr, constraints: StrAttr, pure: BoolAttr, packed_element: I32Attr],
        traits: [ELEMENTWISE, SAME_ENCODING, ON_TENSORS],
        format: "$asm_string attr-dict ($args^ `:` type($args))? `->` type($result)",
        with: {
            verify: Some(verify::elementwise_inline_asm),
            effects: Effects::Dynamic(|op, push| unless_pure(asm_is_pure(op), push)),
            speculation: Speculation::Dynamic(asm_is_pure),
        },
    }
}
