//! Buffers in shared memory, and accesses to them.

use super::{LOCAL_LOAD, shared};
use crate::constraints::*;
use crate::tt::enums::RmwOp;
use crate::tt::ops::global;
use crate::tt::types::{bool_like, same};
use crate::ttg::types::{MEMDESC_TYPE, MemDescType, TOKEN_TYPE};
use crate::ttg::verify::ON_BUFFERS;
use crate::ttg::{canonicalize, fold, verify_ops};
use mlir_host::attrs::{I32Attr, UnitAttr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects, TypeRule};
use mlir_host::ir::Op;
use mlir_host::op;

/// A buffer that nobody writes after it was made is a value like any other:
/// making it can be repeated or left out.
fn alloc_effects(op: Op<'_>, push: &mut dyn FnMut(Effect)) {
    let alloc = LocalAllocOp::of(op);
    if MemDescType::cast(alloc.result().ty()).is_some_and(|ty| !ty.mutable()) {
        return;
    }
    push(shared(EffectKind::Allocate, EffectOn::Result("result")));
    if alloc.src().is_some() {
        push(shared(EffectKind::Write, EffectOn::Result("result")));
    }
}

op! {
    /// Allocates a buffer in shared memory, and fills it with a tensor if one is given.
    pub struct LocalAllocOp = "ttg.local_alloc" {
        operands: [src[opt]: TENSOR],
        results: [result: MEMDESC_TYPE],
        attrs: [alignment[opt]: I32Attr],
        traits: [ON_BUFFERS],
        format: "($src^)? attr-dict `:` functional-type(operands, results)",
        with: {
            verify: Some(verify_ops::local_alloc),
            fold: Some(fold::local_alloc),
            canonicalize: &canonicalize::LOCAL_ALLOC,
            effects: Effects::Dynamic(alloc_effects),
        },
    }
}

op! {
    /// Ends the life of a buffer.
    pub struct LocalDeallocOp = "ttg.local_dealloc" {
        operands: [src: MEMDESC_TYPE],
        traits: [ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src))",
        with: { effects: Effects::List(&[shared(EffectKind::Free, EffectOn::Operand("src"))]) },
    }
}

op! {
    /// Loads a buffer into a tensor.
    pub struct LocalLoadOp = "ttg.local_load" {
        operands: [src: MEMDESC_TYPE, token[opt]: TOKEN_TYPE],
        results: [result: TENSOR],
        traits: [LOCAL_LOAD, ON_BUFFERS],
        format: "$src (`token` $token^)? attr-dict `:` qualified(type($src)) `->` type($result)",
        with: {
            verify: Some(verify_ops::local_load),
            effects: Effects::List(&[shared(EffectKind::Read, EffectOn::Operand("src"))]),
        },
    }
}

op! {
    /// Stores a tensor to a buffer.
    pub struct LocalStoreOp = "ttg.local_store" {
        operands: [src: TENSOR, dst: MEMDESC_TYPE],
        traits: [ON_BUFFERS],
        format: "$src `,` $dst attr-dict `:` type($src) `->` qualified(type($dst))",
        with: {
            verify: Some(verify_ops::local_store),
            canonicalize: &canonicalize::LOCAL_STORE,
            effects: Effects::List(&[shared(EffectKind::Write, EffectOn::Operand("dst"))]),
        },
    }
}

op! {
    /// Loads the elements of a buffer that `indices` name along `axis`.
    pub struct LocalGatherOp = "ttg.local_gather" {
        operands: [src: MEMDESC_TYPE, indices: INT_TENSOR, token[opt]: TOKEN_TYPE],
        results: [result: TENSOR],
        attrs: [axis: I32Attr],
        traits: [LOCAL_LOAD, ON_BUFFERS],
        format: "$src `[` $indices `]` (`token` $token^)? attr-dict `:` qualified(type($src)) `,` type($indices) `->` type($result)",
        with: {
            verify: Some(verify_ops::local_gather),
            effects: Effects::List(&[shared(EffectKind::Read, EffectOn::Operand("src"))]),
        },
    }
}

op! {
    /// Stores to the elements of a buffer that `indices` name along `axis`.
    pub struct LocalScatterOp = "ttg.local_scatter" {
        operands: [dst: MEMDESC_TYPE, values: TENSOR, indices: INT_TENSOR, token[opt]: TOKEN_TYPE],
        attrs: [axis: I32Attr],
        traits: [ON_BUFFERS],
        format: "$dst `[` $indices `]` `,` $values (`token` $token^)? attr-dict `:` qualified(type($dst)) `,` type($indices) `,` type($values)",
        with: {
            verify: Some(verify_ops::local_scatter),
            effects: Effects::List(&[shared(EffectKind::Write, EffectOn::Operand("dst"))]),
        },
    }
}

op! {
    /// Atomically combines values with the elements of a buffer that `indices`
    /// name along `axis`; gives what was there before.
    pub struct LocalAtomicScatterRmwOp = "ttg.local_atomic_scatter_rmw" {
        operands: [dst: MEMDESC_TYPE, values: TENSOR, indices: INT_TENSOR, mask[opt]: BOOL_TENSOR],
        results: [result: TENSOR],
        attrs: [atomic_rmw_op: RmwOp, axis: I32Attr],
        traits: [ON_BUFFERS],
        types: [
            TypeRule::new("result type matches values type", "values", "result", same),
            TypeRule::new("mask type matches values type", "values", "mask", bool_like),
        ],
        format: "$atomic_rmw_op `,` $dst `[` $indices `]` `,` $values (`,` $mask^)? attr-dict `:` functional-type(operands, results)",
        with: {
            verify: Some(verify_ops::local_atomic_scatter_rmw),
            effects: Effects::List(&[
                shared(EffectKind::Read, EffectOn::Operand("dst")),
                shared(EffectKind::Write, EffectOn::Operand("dst")),
            ]),
        },
    }
}

op! {
    /// Allocates global memory that belongs to this program.
    pub struct GlobalScratchAllocOp = "ttg.global_scratch_alloc" {
        results: [result: PTR],
        attrs: [
            nbytes: I32Attr, alignment: I32Attr,
            third_party_allocation[opt]: UnitAttr, shared_cluster_state[opt]: UnitAttr,
        ],
        traits: [ON_BUFFERS],
        format: "attr-dict `:` qualified(type($result))",
        with: { effects: Effects::List(&[global(EffectKind::Allocate, EffectOn::Result("result"))]) },
    }
}
