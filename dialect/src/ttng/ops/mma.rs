//! Dots of whole warp groups and of the fifth-generation tensor core.

use super::{TENSOR_OR_MEMDESC, reads_shared, reads_tensor_memory, writes_shared, writes_tensor_memory};
use crate::constraints::*;
use crate::interfaces::{DOT, DOT_IN_PLACE, MBARRIER, MBARRIERS, MMA_V5, PREDICATED};
use crate::tt::enums::{InputPrecision, ScaleDotElemType};
use crate::tt::types::same;
use crate::ttg::types::{MEMDESC, MEMDESC_TYPE, MemDescType, TOKEN_TYPE};
use crate::ttg::verify::ON_BUFFERS;
use crate::ttng::verify::{self, BARRIER};
use crate::ttng::{canonicalize, syntax};
use mlir_host::attrs::{BoolAttr, I32Attr, UnitAttr};
use mlir_host::def::{Effect, Effects, TypeRule};
use mlir_host::ir::{Op, Value};
use mlir_host::op;

op! {
    /// Dot of warp groups: the right operand, and maybe the left one, in shared memory.
    pub struct WarpGroupDotOp = "ttng.warp_group_dot" {
        operands: [a: TENSOR_OR_MEMDESC, b: MEMDESC_TYPE, c: NUMBER_TENSOR, use_c("useC")[opt]: I1],
        results: [d: NUMBER_TENSOR],
        attrs: [
            input_precision("inputPrecision")[default "2 : i32"]: InputPrecision,
            max_num_imprecise_acc("maxNumImpreciseAcc")[default "0 : i32"]: I32Attr,
            is_async("isAsync")[default "false"]: BoolAttr,
        ],
        traits: [verify::DOT_SHAPES, ON_BUFFERS],
        types: [TypeRule::new("result's type matches accumulator's type", "d", "c", same)],
        format: "$a `,` $b `,` $c (`,` $useC^)? attr-dict `:` type($a) `*` qualified(type($b)) `->` type($d)",
        with: {
            interfaces: &[DOT],
            verify: Some(verify::warp_group_dot),
            effects: Effects::Dynamic(|op, effect| {
                for name in ["a", "b"] {
                    let dot = WarpGroupDotOp::of(op);
                    let value = if name == "a" { dot.a() } else { dot.b() };
                    if value.ty().is(&MEMDESC) {
                        effect(reads_shared(name));
                    }
                }
            }),
        },
    }
}

op! {
    /// Waits until at most so many dots are pending.
    pub struct WarpGroupDotWaitOp = "ttng.warp_group_dot_wait" {
        operands: [inputs[var]: TENSOR_OR_MEMDESC],
        results: [outputs[var]: TENSOR_OR_MEMDESC],
        attrs: [pendings: I32Attr, warp_group_local("warpGroupLocal")[opt]: UnitAttr],
        traits: [ON_BUFFERS],
        format: "$inputs attr-dict `:` type($inputs)",
        with: {
            verify: Some(verify::warp_group_dot_wait),
            infer: Some(|inputs| Ok(inputs.operands.iter().map(|value| value.ty()).collect())),
        },
    }
}

/// Effects of a dot in tensor memory; it does not read an accumulator that is known to be unused.
fn mma_effects(op: Op<'_>, a: Value<'_>, use_d: Value<'_>, effect: &mut dyn FnMut(Effect)) {
    if !canonicalize::is_false(use_d) {
        effect(reads_tensor_memory("d"));
    }
    effect(writes_tensor_memory("d"));
    let shared = MemDescType::cast(a.ty()).is_some_and(MemDescType::is_in_shared_memory);
    effect(if shared { reads_shared("a") } else { reads_tensor_memory("a") });
    effect(reads_shared("b"));
    if op.is(TcGen5MmaScaledOp::DEF) {
        effect(reads_tensor_memory("a_scale"));
        effect(reads_tensor_memory("b_scale"));
    }
    effect(writes_shared("barriers"));
}

op! {
    /// Dot with the accumulator in tensor memory.
    pub struct TcGen5MmaOp = "ttng.tc_gen5_mma" {
        operands: [
            a: MEMDESC_TYPE, b: MEMDESC_TYPE, d: MEMDESC_TYPE, acc_dep[opt]: TOKEN_TYPE, use_d("useD"): I1, pred: I1,
            barriers[var]: MEMDESC_TYPE, barrier_preds[var]: I1,
        ],
        results: [token[opt]: TOKEN_TYPE],
        attrs: [
            is_async[opt]: UnitAttr, two_ctas[opt]: UnitAttr, multicast[opt]: UnitAttr, is_unsigned[opt]: UnitAttr,
        ],
        traits: [BARRIER, verify::MMA, verify::DOT_SHAPES, ON_BUFFERS],
        format: "$a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $useD `,` $pred `` custom<BarriersAndPreds>($barriers, $barrier_preds) attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($d)) (`,` qualified(type($barriers))^)?",
        with: {
            interfaces: &[DOT_IN_PLACE, MMA_V5, PREDICATED, MBARRIERS],
            custom: &[syntax::TOKEN, syntax::BARRIERS_AND_PREDS],
            verify: Some(verify::tc_gen5_mma),
            effects: Effects::Dynamic(|op, effect| {
                let mma = TcGen5MmaOp::of(op);
                mma_effects(op, mma.a(), mma.use_d(), effect);
            }),
        },
    }
}

op! {
    /// Dot of block-scaled operands with the accumulator in tensor memory.
    pub struct TcGen5MmaScaledOp = "ttng.tc_gen5_mma_scaled" {
        operands: [
            a: MEMDESC_TYPE, b: MEMDESC_TYPE, d: MEMDESC_TYPE, acc_dep[opt]: TOKEN_TYPE, a_scale: MEMDESC_TYPE,
            b_scale: MEMDESC_TYPE, use_d("useD"): I1, pred: I1, barriers[var]: MEMDESC_TYPE, barrier_preds[var]: I1,
        ],
        results: [token[opt]: TOKEN_TYPE],
        attrs: [
            a_type: ScaleDotElemType, b_type: ScaleDotElemType, two_ctas[opt]: UnitAttr, multicast[opt]: UnitAttr,
            is_async[opt]: UnitAttr,
        ],
        traits: [BARRIER, verify::MMA, verify::DOT_SHAPES, ON_BUFFERS],
        format: "$a `,` $b `,` $d `` custom<Token>($acc_dep, type($token)) `,` $a_scale `,` $b_scale `,` $useD `,` $pred `lhs` `=` $a_type `rhs` `=` $b_type `` custom<BarriersAndPreds>($barriers, $barrier_preds) attr-dict `:` qualified(type($a)) `,` qualified(type($b)) `,` qualified(type($d)) `,` qualified(type($a_scale)) `,` qualified(type($b_scale)) (`,` qualified(type($barriers))^)?",
        with: {
            interfaces: &[DOT_IN_PLACE, MMA_V5, PREDICATED, MBARRIERS],
            custom: &[syntax::TOKEN, syntax::BARRIERS_AND_PREDS],
            verify: Some(verify::tc_gen5_mma_scaled),
            effects: Effects::Dynamic(|op, effect| {
                let mma = TcGen5MmaScaledOp::of(op);
                mma_effects(op, mma.a(), mma.use_d(), effect);
            }),
        },
    }
}

op! {
    /// Lets a barrier track the completion of all earlier asynchronous dots and copies.
    pub struct TcGen5CommitOp = "ttng.tc_gen5_commit" {
        operands: [barrier: MEMDESC_TYPE, pred[opt]: I1, descs[var]: MEMDESC_TYPE],
        traits: [BARRIER, ON_BUFFERS],
        format: "$barrier (`,` $pred^)? (`descs` $descs^)? attr-dict `:` qualified(type($barrier)) (`,` qualified(type($descs))^)?",
        with: {
            interfaces: &[PREDICATED, MBARRIER],
            canonicalize: &canonicalize::COMMIT,
            verify: Some(verify::tc_gen5_commit),
            effects: Effects::List(&[writes_shared("barrier")]),
        },
    }
}
