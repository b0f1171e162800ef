//! Tensor memory: allocation, access and views.

use super::{TENSOR_MEMORY, reads_shared, reads_tensor_memory, writes_tensor_memory};
use crate::constraints::*;
use crate::interfaces::PREDICATED;
use crate::ttg::ops::MEMDESC_VIEW;
use crate::ttg::types::{MEMDESC_TYPE, MemDescType, TOKEN_TYPE};
use crate::ttg::verify::ON_BUFFERS;
use crate::ttng::attrs::LoadReductionAttr;
use crate::ttng::enums::TmemWaitKind;
use crate::ttng::{canonicalize, syntax, verify};
use mlir_host::attrs::{BoolAttr, I32Attr};
use mlir_host::def::{Effect, EffectKind, EffectOn, Effects};
use mlir_host::op;
use mlir_host::traits::Trait;

op! {
    /// Waits for the loads or stores of tensor memory that the thread issued.
    pub struct TmemWaitOp = "ttng.tmem_wait" {
        attrs: [kind: TmemWaitKind],
        traits: [ON_BUFFERS],
        format: "$kind attr-dict",
        with: { verify: Some(verify::tmem_wait) },
    }
}

op! {
    /// Loads from tensor memory; may also reduce each row.
    pub struct TmemLoadOp = "ttng.tmem_load" {
        operands: [src: MEMDESC_TYPE, dep[opt]: TOKEN_TYPE],
        results: [result: TENSOR, token[opt]: TOKEN_TYPE, red[opt]: TENSOR],
        attrs: [red_op("redOp")[opt]: LoadReductionAttr, abs[opt]: BoolAttr, nan("NaN")[opt]: BoolAttr],
        traits: [ON_BUFFERS],
        format: "$src `` custom<Token>($dep, type($token)) attr-dict `:` qualified(type($src)) `->` type($result) (`,` type($red)^)?",
        with: {
            custom: &[syntax::TOKEN],
            verify: Some(verify::tmem_load),
            effects: Effects::List(&[reads_tensor_memory("src")]),
        },
    }
}

op! {
    /// Stores to tensor memory.
    pub struct TmemStoreOp = "ttng.tmem_store" {
        operands: [dst: MEMDESC_TYPE, dep[opt]: TOKEN_TYPE, src: TENSOR, pred: I1],
        results: [token[opt]: TOKEN_TYPE],
        traits: [ON_BUFFERS],
        format: "$src `,` $dst `` custom<Token>($dep, type($token)) `,` $pred attr-dict `:` type($src) `->` qualified(type($dst))",
        with: {
            interfaces: &[PREDICATED],
            canonicalize: &canonicalize::TMEM_STORE,
            custom: &[syntax::TOKEN],
            verify: Some(verify::tmem_store),
            effects: Effects::List(&[writes_tensor_memory("dst")]),
        },
    }
}

op! {
    /// Allocates tensor memory.
    pub struct TmemAllocOp = "ttng.tmem_alloc" {
        operands: [src[opt]: TENSOR],
        results: [result: MEMDESC_TYPE, token[opt]: TOKEN_TYPE],
        traits: [ON_BUFFERS],
        format: "($src^)? attr-dict `:` functional-type(operands, results)",
        with: {
            verify: Some(verify::tmem_alloc),
            // What cannot change is a value: it may be merged and dropped until it has an address.
            effects: Effects::Dynamic(|op, effect| {
                let alloc = TmemAllocOp::of(op);
                let mutable = MemDescType::cast(alloc.result().ty()).is_some_and(MemDescType::mutable);
                if !mutable && op.discardable_attr("tensor_memory_col_offset").is_none() {
                    return;
                }
                let on_result =
                    |kind| Effect { kind, resource: TENSOR_MEMORY, on: EffectOn::Result("result") };
                effect(on_result(EffectKind::Allocate));
                if alloc.src().is_some() {
                    effect(on_result(EffectKind::Write));
                }
            }),
        },
    }
}

op! {
    /// A part of an allocation, by offset along one dimension.
    pub struct TmemSubSliceOp = "ttng.tmem_subslice" {
        operands: [src: MEMDESC_TYPE],
        results: [result: MEMDESC_TYPE],
        attrs: [offset: I32Attr, dim[default "1 : i32"]: I32Attr],
        traits: [Trait::Pure, MEMDESC_VIEW, ON_BUFFERS],
        format: "$src attr-dict `:` qualified(type($src)) `->` qualified(type($result))",
        with: {
            verify: Some(verify::tmem_subslice),
        },
    }
}

op! {
    /// Copies from shared to tensor memory, asynchronously.
    pub struct TmemCopyOp = "ttng.tmem_copy" {
        operands: [src: MEMDESC_TYPE, dst: MEMDESC_TYPE],
        traits: [ON_BUFFERS],
        format: "$src `,` $dst attr-dict `:` qualified(type(operands))",
        with: {
            verify: Some(verify::tmem_copy),
            effects: Effects::List(&[reads_shared("src"), writes_tensor_memory("dst")]),
        },
    }
}
