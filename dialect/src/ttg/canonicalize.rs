//! Canonicalization patterns.

use super::attrs::{DOT_OPERAND, NVIDIA_MMA};
use super::layout::{reorders_in_place, to_linear_layout};
use super::ops::*;
use crate::tt::ops::{CatOp, GatherOp, HistogramOp, MakeRangeOp, ReshapeOp, SplatOp};
use linear_layout::{Dim, LinearLayout};
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::is_one_of;
use mlir_host::rewrite::{Pattern, Rewriter};
use std::sync::Arc;

/// Of `ttg.convert_layout`.
pub(super) static CONVERT_LAYOUT: [Pattern; 4] = [
    Pattern { name: "convert-of", root: "ttg.convert_layout", benefit: 1, apply: convert_of },
    Pattern { name: "histogram-of-convert", root: "tt.histogram", benefit: 1, apply: skip_conversion },
    Pattern { name: "gather-of-convert", root: "tt.gather", benefit: 1, apply: skip_conversion },
    Pattern { name: "reshape-of-convert", root: "tt.reshape", benefit: 1, apply: skip_conversion },
];

/// Of `ttg.local_alloc`.
pub(super) static LOCAL_ALLOC: [Pattern; 1] =
    [Pattern { name: "alloc-of-convert", root: "ttg.local_alloc", benefit: 1, apply: skip_conversion }];

/// Of `ttg.local_store`.
pub(super) static LOCAL_STORE: [Pattern; 1] =
    [Pattern { name: "store-of-convert", root: "ttg.local_store", benefit: 1, apply: skip_conversion }];

/// Of `ttg.warp_specialize`.
pub(super) static WARP_SPECIALIZE: [Pattern; 1] =
    [Pattern { name: "unused-results", root: "ttg.warp_specialize", benefit: 1, apply: drop_unused_results }];

/// Of `ttg.warp_specialize.partitions`.
pub(super) static WARP_SPECIALIZE_PARTITIONS: [Pattern; 1] = [Pattern {
    name: "unused-captures",
    root: "ttg.warp_specialize.partitions",
    benefit: 1,
    apply: drop_captures,
}];

fn encoding(ty: Type<'_>) -> Option<Attr<'_>> {
    ty.as_tensor()?.encoding()
}

/// A conversion of something that can be made in the wanted layout at once.
fn convert_of<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let convert = ConvertLayoutOp::of(op);
    let ty = convert.result().ty();
    let Some(source) = convert.src().def_op() else { return false };
    let (from, to) = (encoding(convert.src().ty()), encoding(ty));
    // An operand of one dot that is the result of another: passes
    // look for exactly this conversion.
    if from.is_some_and(|attr| attr.is(&NVIDIA_MMA)) && to.is_some_and(|attr| attr.is(&DOT_OPERAND)) {
        return false;
    }
    if let Some(inner) = ConvertLayoutOp::cast(source) {
        // What was to stay within warps might not do so from further back.
        if convert.force_warp_shuffle().is_some() {
            return false;
        }
        rewriter.modify(op, |op| op.set_operand(0, inner.src()));
        return true;
    }
    // A load stays where it is: the buffer may be written after it.
    let is_load = source.is(LocalLoadOp::DEF);
    let before = if is_load { source } else { op };
    // Blocks of a cluster read their own memory, where others may write before they wait for each other.
    let blocks = |ty| layout(ty).map(|layout| layout.columns_of(Dim::BLOCK).to_vec());
    let remade = is_load && blocks(convert.src().ty()) == blocks(ty)
        || source.is(SplatOp::DEF)
        || source.is(MakeRangeOp::DEF)
        || source.is(HistogramOp::DEF)
        || CatOp::cast(source).is_some_and(|cat| can_be_concatenated(cat, ty))
        || ReshapeOp::cast(source).is_some_and(|reshape| is_free_view(reshape, reshape.src().ty(), ty));
    if !remade {
        return false;
    }
    rewriter.set_before(before);
    let copy = rewriter.clone_op(source);
    copy.result(0).set_type(ty);
    rewriter.replace(op, &[copy.result(0)]);
    true
}

fn layout(ty: Type<'_>) -> Option<Arc<LinearLayout>> {
    let tensor = ty.as_tensor()?;
    to_linear_layout(tensor.encoding()?, &tensor.shape()).ok()
}

fn registers(ty: Type<'_>) -> Option<u64> {
    layout(ty)?.in_size(Dim::REGISTER)
}

/// Whether each thread can hold its parts of both operands one after the other.
fn can_be_concatenated(cat: CatOp<'_>, ty: Type<'_>) -> bool {
    match (registers(cat.lhs().ty()), registers(cat.rhs().ty()), registers(ty)) {
        (Some(lhs), Some(rhs), Some(result)) => lhs + rhs == result,
        _ => false,
    }
}

/// Whether a reshape that may reorder elements can give the type `to` to what
/// has the type `from` without moving anything.
fn is_free_view(reshape: ReshapeOp<'_>, from: Type<'_>, to: Type<'_>) -> bool {
    if reshape.allow_reorder().is_none() || reshape.efficient_layout().is_some() {
        return false;
    }
    matches!((layout(from), layout(to)), (Some(from), Some(to)) if reorders_in_place(&from, &to))
}

/// Some operations take their first operand in any layout: the conversion
/// before them is of no use.
fn skip_conversion<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let src = if let Some(alloc) = LocalAllocOp::cast(op) { alloc.src() } else { op.operands().next() };
    let Some(convert) = src.and_then(ConvertLayoutOp::defining) else { return false };
    let any_layout = if let Some(gather) = GatherOp::cast(op) {
        gather.efficient_layout().is_none()
    } else if let Some(reshape) = ReshapeOp::cast(op) {
        is_free_view(reshape, convert.src().ty(), reshape.result().ty())
    } else if let Some(histogram) = HistogramOp::cast(op) {
        // The mask has the layout of the source.
        histogram.mask().is_none()
    } else if is_one_of!(op, LocalAllocOp | LocalStoreOp) {
        // Blocks of a cluster store to their own memory.
        let blocks = |ty| layout(ty).map(|layout| layout.columns_of(Dim::BLOCK).to_vec());
        blocks(convert.src().ty()) == blocks(convert.result().ty())
    } else {
        true
    };
    if any_layout {
        rewriter.modify(op, |op| op.set_operand(0, convert.src()));
    }
    any_layout
}

fn drop_unused_results<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let ws = WarpSpecializeOp::of(op);
    let kept: Vec<usize> = (0..op.num_results()).filter(|i| !op.result(*i).is_unused()).collect();
    if kept.len() == op.num_results() {
        return false;
    }
    let mut yields = Vec::new();
    for block in ws.default_region().blocks() {
        if let Some(last) = block.terminator().and_then(WarpYieldOp::cast) {
            yields.push(last.op());
        }
    }
    for last in yields {
        let values: Vec<Value<'c>> = kept.iter().map(|i| last.operand(*i)).collect();
        rewriter.modify(last, |last| last.set_operands(&values));
    }
    let types: Vec<Type<'c>> = kept.iter().map(|i| op.result(*i).ty()).collect();
    rewriter.set_before(op);
    let built = WarpSpecializeOp::build(op.loc(), ws.partition_num_warps())
        .warp_group_start_ids(ws.warp_group_start_ids())
        .requested_registers(ws.requested_registers())
        .actual_registers(ws.actual_registers())
        .discardable_of(op)
        .results(&types);
    let Ok(made) = built.insert(rewriter) else { return false };
    let made = made.op();
    for i in 0..op.num_regions() {
        made.region(i).take_body(op.region(i));
    }
    for (new, old) in kept.iter().enumerate() {
        op.result(*old).replace_all_uses_with(made.result(new));
    }
    rewriter.erase(op);
    true
}

/// Captures that no partition uses, and those that are captured twice.
fn drop_captures<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> bool {
    let partitions = WarpSpecializePartitionsOp::of(op);
    let captures: Vec<Value<'c>> = partitions.explicit_captures().collect();
    let blocks: Vec<_> = partitions.partition_regions().filter_map(|region| region.first_block()).collect();
    let mut kept: Vec<usize> = Vec::new();
    let mut changed = false;
    for (i, capture) in captures.iter().enumerate() {
        if let Some(first) = kept.iter().copied().find(|first| captures[*first] == *capture) {
            for block in &blocks {
                block.arg(i).replace_all_uses_with(block.arg(first));
            }
            changed = true;
        } else if blocks.iter().all(|block| block.arg(i).is_unused()) {
            changed = true;
        } else {
            kept.push(i);
        }
    }
    if !changed {
        return false;
    }
    rewriter.modify(op, |op| {
        for block in &blocks {
            (0..captures.len()).rev().filter(|i| !kept.contains(i)).for_each(|i| block.erase_arg(i));
        }
        let values: Vec<Value<'c>> = kept.iter().map(|i| captures[*i]).collect();
        op.set_operands(&values);
    });
    true
}
