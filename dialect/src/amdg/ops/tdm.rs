//! Copies through tensor descriptors by the tensor data mover of gfx1250.

use super::{L2_CACHE, reads_shared, writes_shared};
use crate::amdg::verify::{self, BARRIER};
use crate::constraints::*;
use crate::interfaces::MBARRIER;
use crate::tt::enums::CacheModifier;
use crate::tt::ops::global;
use crate::tt::types::same;
use crate::ttg::ops::{GLOBAL_TO_LOCAL_COPY, MEM_WAIT};
use crate::ttg::types::{MEMDESC_TYPE, TOKEN_TYPE};
use mlir_host::attrs::{BoolAttr, DenseI32Array, I32Attr, UnitAttr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects, TypeRule};
use mlir_host::op;
use mlir_host::traits::Trait;

const READS_DESC: Effect = global(EffectKind::Read, EffectOn::Operand("desc"));
const WRITES_DESC: Effect = global(EffectKind::Write, EffectOn::Operand("desc"));

op! {
    /// Copies a block from global to shared memory; some warps may do it for all.
    pub struct AsyncTdmCopyGlobalToLocalOp = "amdg.async_tdm_copy_global_to_local" {
        operands: [desc: TENSOR_DESC, result: MEMDESC_TYPE, barrier[opt]: MEMDESC_TYPE],
        results: [token: TOKEN_TYPE],
        attrs: [cache[default "1 : i32"]: CacheModifier, warp_used_hint[opt]: I32Attr],
        traits: [BARRIER, GLOBAL_TO_LOCAL_COPY],
        format: "$desc `into` $result (`,` `barrier` `=` $barrier^)? attr-dict `:` qualified(type($desc)) (`,` qualified(type($barrier))^)? `->` qualified(type($result))",
        with: {
            interfaces: &[MBARRIER],
            verify: Some(verify::tdm_load),
            effects: Effects::List(&[READS_DESC, writes_shared("result"), writes_shared("barrier")]),
        },
    }
}

op! {
    /// Copies a block from shared to global memory.
    pub struct AsyncTdmCopyLocalToGlobalOp = "amdg.async_tdm_copy_local_to_global" {
        operands: [desc: TENSOR_DESC, src: MEMDESC_TYPE, barrier[opt]: MEMDESC_TYPE],
        results: [token: TOKEN_TYPE],
        attrs: [cache[default "1 : i32"]: CacheModifier],
        traits: [BARRIER],
        format: "$desc `from` $src (`,` `barrier` `=` $barrier^)? attr-dict `:` qualified(type($src)) (`,` qualified(type($barrier))^)? `->` qualified(type($desc))",
        with: {
            interfaces: &[MBARRIER],
            verify: Some(verify::tdm_store),
            effects: Effects::List(&[WRITES_DESC, reads_shared("src"), writes_shared("barrier")]),
        },
    }
}

op! {
    /// Several copies from global to shared memory as one, each by its own warps.
    pub struct AsyncTdmFusedCopyGlobalToLocalOp = "amdg.async_tdm_fused_copy_global_to_local" {
        operands: [descs[var]: TENSOR_DESC, dests[var]: MEMDESC_TYPE],
        results: [token: TOKEN_TYPE],
        attrs: [warp_used_hints: DenseI32Array, cache[default "1 : i32"]: CacheModifier],
        traits: [Trait::SameVariadicOperandSize, GLOBAL_TO_LOCAL_COPY],
        format: "$descs `into` $dests attr-dict `:` qualified(type($descs)) `->` qualified(type($dests))",
        with: {
            verify: Some(verify::tdm_fused_load),
            effects: Effects::List(&[
                global(EffectKind::Read, EffectOn::Operand("descs")),
                writes_shared("dests"),
            ]),
        },
    }
}

op! {
    /// Copies rows from global to shared memory.
    pub struct AsyncTdmGatherOp = "amdg.async_tdm_gather" {
        operands: [desc: TENSOR_DESC, src_row_indices: ROW_OFFSETS, dst: MEMDESC_TYPE, barrier[opt]: MEMDESC_TYPE],
        results: [token: TOKEN_TYPE],
        traits: [BARRIER, GLOBAL_TO_LOCAL_COPY],
        format: "$desc `[` $src_row_indices `]` `to` $dst (`,` `barrier` `=` $barrier^)? attr-dict `:` qualified(type($src_row_indices)) `,` qualified(type($dst)) (`,` qualified(type($barrier))^)? `->` qualified(type($desc))",
        with: {
            interfaces: &[MBARRIER],
            verify: Some(verify::tdm_gather),
            effects: Effects::List(&[READS_DESC, writes_shared("dst"), writes_shared("barrier")]),
        },
    }
}

op! {
    /// Copies rows from shared to global memory.
    pub struct AsyncTdmScatterOp = "amdg.async_tdm_scatter" {
        operands: [desc: TENSOR_DESC, dst_row_indices: ROW_OFFSETS, src: MEMDESC_TYPE, barrier[opt]: MEMDESC_TYPE],
        results: [ret_token("retToken"): TOKEN_TYPE],
        traits: [BARRIER],
        format: "$desc `[` $dst_row_indices `]` `from` $src (`,` `barrier` `=` $barrier^)? attr-dict `:` qualified(type($dst_row_indices)) `,` qualified(type($src)) (`,` qualified(type($barrier))^)? `->` qualified(type($desc))",
        with: {
            interfaces: &[MBARRIER],
            verify: Some(verify::tdm_scatter),
            effects: Effects::List(&[WRITES_DESC, reads_shared("src"), writes_shared("barrier")]),
        },
    }
}

op! {
    /// Waits until at most so many copies are pending.
    pub struct AsyncTdmWaitOp = "amdg.async_tdm_wait" {
        operands: [async_token("asyncToken")[var]: TOKEN_TYPE],
        results: [ret_token("retToken"): TOKEN_TYPE],
        attrs: [num: I32Attr],
        traits: [MEM_WAIT],
        format: "$asyncToken attr-dict",
    }
}

op! {
    /// Waits until at most so many copy instructions are pending.
    pub struct AsyncTdmIntrinsicWaitOp = "amdg.async_tdm_intrinsic_wait" {
        operands: [async_token("asyncToken")[var]: TOKEN_TYPE],
        results: [ret_token("retToken"): TOKEN_TYPE],
        attrs: [count: I32Attr],
        traits: [MEM_WAIT],
        format: "($asyncToken^)? attr-dict",
    }
}

op! {
    /// Fetches a block of global memory into the L2 cache.
    pub struct TdmPrefetchOp = "amdg.tdm_prefetch" {
        operands: [desc: TENSOR_DESC, indices[var]: I32, pred: I1],
        results: [maybe_offsets("maybeOffsets")[opt]: TENSOR],
        attrs: [speculative: BoolAttr, return_offsets("returnOffsets")[opt]: UnitAttr],
        format: "$desc `[` $indices `]` `,` $pred `,` `speculative` `=` $speculative (`returnOffsets` $returnOffsets^)? attr-dict `:` qualified(type($desc)) (`->` type($maybeOffsets)^)?",
        with: {
            verify: Some(verify::tdm_prefetch),
            effects: Effects::List(&[
                Effect { kind: EffectKind::Write, resource: L2_CACHE, on: EffectOn::Nothing },
                READS_DESC,
            ]),
        },
    }
}

op! {
    /// A descriptor with some fields changed: moved by offsets, bounded, predicated.
    pub struct UpdateTensorDescriptorOp = "amdg.update_tensor_descriptor" {
        operands: [desc: TENSOR_DESC, add_offsets[var]: I32, set_bounds[var]: I32, pred[opt]: I32],
        results: [result: TENSOR_DESC],
        attrs: [clamp_bounds[opt]: UnitAttr],
        traits: [Trait::Pure],
        types: [TypeRule::new("result type matches desc type", "desc", "result", same)],
        format: "$desc oilist(`add_offsets` `=` `[` $add_offsets `]` | `set_bounds` `=` `[` $set_bounds `]` | `pred` `=` $pred) attr-dict `:` qualified(type($desc))",
        with: {
            verify: Some(verify::update_tensor_descriptor),
        },
    }
}
