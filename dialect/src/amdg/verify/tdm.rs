//! Verifiers of copies through tensor descriptors.

use super::super::ops::*;
use crate::tt::types::TensorDescType;
use crate::ttg::attrs::{encoding, encoding_attr};
use crate::ttg::layout::to_linear_layout;
use crate::ttg::module_attrs;
use crate::ttg::types::MemDescType;
use crate::ttng::verify::{bits, memdesc, num_ctas, tensor};
use linear_layout::encoding::{Blocked, PaddedShared};
use linear_layout::{Dim, Encoding};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Op, TensorType, Type, Value};

/// Dimensions of a block have 16 bits.
const MAX_BLOCK_DIM: i64 = 65535;
/// What one prefetch instruction fetches.
const PREFETCH_BYTES: u64 = 256;

fn desc(value: Value<'_>) -> Result<TensorDescType<'_>, String> {
    TensorDescType::cast(value.ty())
        .ok_or_else(|| format!("expected a tensor descriptor, got '{}'", value.ty()))
}

/// Whether a buffer laid out as `memory` is what a descriptor for `theirs` writes, up to leading dimensions
/// of size one that the buffer does not have.
fn same_memory(theirs: &Encoding, memory: &Encoding) -> bool {
    match (theirs, memory) {
        (Encoding::PaddedShared(a), Encoding::PaddedShared(b)) => a.intervals == b.intervals,
        (Encoding::PartitionedShared(a), Encoding::PartitionedShared(b)) => {
            a.num_partitions == b.num_partitions
                && a.num_groups == b.num_groups
                && a.partition_dim.checked_sub(b.partition_dim)
                    == a.partition_layout.rank().checked_sub(b.partition_layout.rank())
                && same_memory(&a.partition_layout, &b.partition_layout)
        }
        (Encoding::SwizzledShared(a), Encoding::SwizzledShared(b)) => {
            let Some(dropped) = a.order.len().checked_sub(b.order.len()) else { return false };
            let order: Vec<usize> = a.order.iter().filter_map(|dim| dim.checked_sub(dropped)).collect();
            (a.vec, a.per_phase, a.max_phase) == (b.vec, b.per_phase, b.max_phase) && order == b.order
        }
        _ => theirs == memory,
    }
}

/// What all copies need.
fn common(desc: TensorDescType<'_>, buffer: MemDescType<'_>) -> Result<Encoding, String> {
    let block = desc.shape();
    if let Some((dim, size)) = block.iter().enumerate().find(|(_, size)| **size > MAX_BLOCK_DIM) {
        return Err(format!("dimension {dim} of the block has {size} elements, more than {MAX_BLOCK_DIM}"));
    }
    let memory = encoding(buffer.encoding())?;
    if let Encoding::SwizzledShared(e) = &memory
        && e.max_phase != 1
    {
        return Err(format!("copies cannot swizzle, but the buffer does: {}", buffer.encoding()));
    }
    if let Some(layout) = desc.layout()
        && !same_memory(&encoding(layout)?, &memory)
    {
        return Err(format!(
            "copies go by the layout of the descriptor, {layout}, which does not describe the buffer, {}",
            buffer.encoding()
        ));
    }
    match memory {
        Encoding::PaddedShared(_) | Encoding::SwizzledShared(_) | Encoding::PartitionedShared(_) => {}
        _ => {
            return Err(format!(
                "the buffer must be padded, swizzled or partitioned, got {}",
                buffer.encoding()
            ));
        }
    }
    Ok(memory)
}

/// As [`common`], of what cannot be partitioned.
fn whole(desc: TensorDescType<'_>, buffer: MemDescType<'_>) -> Result<Option<PaddedShared>, String> {
    match common(desc, buffer)? {
        Encoding::PaddedShared(e) => Ok(Some(e)),
        Encoding::SwizzledShared(_) => Ok(None),
        _ => Err(format!("the buffer must be padded or swizzled, got {}", buffer.encoding())),
    }
}

/// Padding counts dwords: at least two between, at least one of it.
fn dwords(padded: &PaddedShared, buffer: MemDescType<'_>) -> VerifyResult {
    let width = u64::from(bits(buffer.element()));
    for (interval, padding) in &padded.intervals {
        if interval.saturating_mul(width) < 64 {
            return Err(format!(
                "padding must be at least 2 dwords apart, but comes every {interval} elements of {width} bits"
            ));
        }
        if padding.saturating_mul(width) < 32 {
            return Err(format!(
                "padding must be at least 1 dword, but is {padding} elements of {width} bits"
            ));
        }
    }
    Ok(())
}

fn load(desc: TensorDescType<'_>, buffer: MemDescType<'_>) -> Result<Encoding, String> {
    let memory = common(desc, buffer)?;
    match &memory {
        Encoding::PaddedShared(padded) => dwords(padded, buffer)?,
        Encoding::PartitionedShared(e) => match &*e.partition_layout {
            Encoding::PaddedShared(padded) => dwords(padded, buffer)?,
            Encoding::SwizzledShared(e) if e.max_phase == 1 => {}
            _ => {
                return Err(format!(
                    "partitions must be padded, or swizzled with one phase, got {}",
                    buffer.encoding()
                ));
            }
        },
        _ => {}
    }
    Ok(memory)
}

/// Which warps issue a copy for all.
fn hint(op: Op<'_>, hint: i64, memory: &Encoding) -> VerifyResult {
    let warps = module_attrs::num_warps(op).unwrap_or(4);
    let hint = hint as u32;
    if hint == 0 {
        return Err("a hint must name a warp".into());
    }
    if warps.count_ones() != 1 || warps >= 32 {
        return Err(format!("hints are for a power of two of warps, less than 32, got {warps}"));
    }
    if hint >> warps != 0 {
        return Err(format!("hint {hint:#x} names warps beyond the {warps} that there are"));
    }
    let n = hint.count_ones();
    if n.count_ones() != 1 {
        return Err(format!("hint {hint:#x} names {n} warps, which is no power of two"));
    }
    let first = hint.trailing_zeros();
    let moved = (0..32).filter(|warp| hint >> warp & 1 != 0).fold(0, |moved, warp| moved | (warp ^ first));
    if moved.count_ones() != n.ilog2() {
        return Err(format!(
            "hint {hint:#x} names {n} warps whose numbers differ in {} bits instead of {}",
            moved.count_ones(),
            n.ilog2()
        ));
    }
    if let Encoding::PartitionedShared(e) = memory {
        let pieces = e.num_partitions.saturating_mul(e.num_groups).max(1);
        if u64::from(n) % pieces != 0 {
            return Err(format!("hint {hint:#x} names {n} warps for a buffer of {pieces} pieces"));
        }
    }
    Ok(())
}

/// A block from global to shared memory.
pub fn tdm_load(op: Op<'_>) -> VerifyResult {
    let copy = AsyncTdmCopyGlobalToLocalOp::of(op);
    let memory = load(desc(copy.desc())?, memdesc(copy.result())?)?;
    copy.warp_used_hint().map_or(Ok(()), |warps| hint(op, warps, &memory))
}

/// Several blocks from global to shared memory.
pub fn tdm_fused_load(op: Op<'_>) -> VerifyResult {
    let copy = AsyncTdmFusedCopyGlobalToLocalOp::of(op);
    let (members, dests) = (copy.descs().count(), copy.dests().count());
    if !(2..=4).contains(&members) {
        return Err(format!("2 to 4 copies can be fused, got {members}"));
    }
    let hints = copy.warp_used_hints();
    if members != dests || members != hints.len() {
        return Err(format!(
            "each copy needs a descriptor, a buffer and a hint, got {members}, {dests} and {}",
            hints.len()
        ));
    }
    let mut rank = None;
    let mut used = 0;
    for ((from, to), warps) in copy.descs().zip(copy.dests()).zip(hints) {
        let desc = desc(from)?;
        let mine = desc.shape().len();
        if *rank.get_or_insert(mine) != mine {
            return Err("all descriptors must have as many dimensions".into());
        }
        let memory = load(desc, memdesc(to)?)?;
        hint(op, warps.into(), &memory)?;
        if used & warps != 0 {
            return Err(format!("hint {warps:#x} names warps that another copy uses ({used:#x})"));
        }
        used |= warps;
    }
    Ok(())
}

/// Stores skip padding at the end of each row only.
fn row_padding(desc: TensorDescType<'_>, buffer: MemDescType<'_>) -> VerifyResult {
    let Some(padded) = whole(desc, buffer)? else { return Ok(()) };
    let [(interval, _)] = padded.intervals[..] else {
        return Err(format!("stores can skip padding of one kind, got {}", buffer.encoding()));
    };
    let innermost = innermost(desc, &Encoding::PaddedShared(padded));
    if i64::try_from(interval) != Ok(innermost) {
        return Err(format!(
            "stores can skip padding after rows, of {innermost} elements, but it comes every {interval}"
        ));
    }
    Ok(())
}

/// Elements of a row of the block that one CTA has.
fn innermost(desc: TensorDescType<'_>, memory: &Encoding) -> i64 {
    let size = desc.shape().last().copied().unwrap_or(0);
    let divided =
        memory.cga_layout().iter().filter(|basis| basis.last().is_some_and(|last| *last != 0)).count();
    size >> divided.min(62)
}

/// A block from shared to global memory.
pub fn tdm_store(op: Op<'_>) -> VerifyResult {
    let copy = AsyncTdmCopyLocalToGlobalOp::of(op);
    row_padding(desc(copy.desc())?, memdesc(copy.src())?)
}

fn rows(desc: TensorDescType<'_>, indices: Value<'_>) -> VerifyResult {
    if desc.shape().len() != 2 {
        return Err(format!(
            "rows are those of a matrix, but the block has {} dimensions",
            desc.shape().len()
        ));
    }
    let indices = tensor(indices)?;
    match indices.shape()[..] {
        [n] if n > 0 && n.count_ones() == 1 => Ok(()),
        [n] => Err(format!("there must be a power of two of indices, got {n}")),
        _ => Err(format!("indices must be a vector, got '{}'", indices.ty())),
    }
}

/// Rows from global to shared memory.
pub fn tdm_gather(op: Op<'_>) -> VerifyResult {
    let gather = AsyncTdmGatherOp::of(op);
    let (desc, buffer) = (desc(gather.desc())?, memdesc(gather.dst())?);
    rows(desc, gather.src_row_indices())?;
    let padded = whole(desc, buffer)?;
    // Leading dimensions count whole buffers.
    let shape = buffer.shape();
    let laid_out = encoding(buffer.encoding())?.rank().min(shape.len());
    let memory = to_linear_layout(buffer.encoding(), &shape[shape.len() - laid_out..])?;
    let first = memory.columns_of(Dim::OFFSET).first().map(|column| memory.coords(*column));
    if shape.len() == 2 && shape[1] > 1 && first.is_some_and(|at| at[..] != [0, 1]) {
        return Err(format!("rows must be contiguous, got {}", buffer.encoding()));
    }
    if let Some(padded) = padded {
        let [(interval, _)] = padded.intervals[..] else {
            return Err(format!("rows can have padding of one kind, got {}", buffer.encoding()));
        };
        let innermost = innermost(desc, &Encoding::PaddedShared(padded));
        if !i64::try_from(interval).is_ok_and(|interval| interval > 0 && innermost % interval == 0) {
            return Err(format!(
                "padding must come after a divisor of {innermost} elements, those of a row, but comes every \
                 {interval}"
            ));
        }
    }
    let indices = tensor(gather.src_row_indices())?;
    let Some(attr) = indices.encoding() else { return Ok(()) };
    let layout = to_linear_layout(attr, &indices.shape())?;
    if layout.columns_of(Dim::LANE).iter().any(|column| *column != 0) {
        return Err("all lanes of a warp must hold the same indices: a warp gathers as one".into());
    }
    let blocks = |columns: Vec<u64>| columns.into_iter().collect::<Vec<u64>>();
    let of_indices = blocks(layout.columns_of(Dim::BLOCK).to_vec());
    let of_rows = blocks(
        (0..memory.in_bits(Dim::BLOCK))
            .map(|bit| memory.basis_along(Dim::BLOCK, bit, Dim::out(0)).unwrap_or(0))
            .collect(),
    );
    if of_indices != of_rows {
        return Err(format!(
            "indices must be divided among CTAs as the rows, {of_rows:?}, got {of_indices:?}"
        ));
    }
    Ok(())
}

/// Rows from shared to global memory.
pub fn tdm_scatter(op: Op<'_>) -> VerifyResult {
    let scatter = AsyncTdmScatterOp::of(op);
    let desc = desc(scatter.desc())?;
    rows(desc, scatter.dst_row_indices())?;
    row_padding(desc, memdesc(scatter.src())?)
}

/// The type of the offsets that a prefetch of a block returns: one for each instruction.
fn offsets_of<'c>(op: Op<'c>, desc: TensorDescType<'c>) -> Result<Type<'c>, String> {
    let (Some(warps), Some(lanes)) = (module_attrs::num_warps(op), module_attrs::threads_per_warp(op)) else {
        return Err("the module must say how many warps and threads there are".into());
    };
    let width = u64::from(bits(desc.element())).max(1);
    let mut shape = desc.shape();
    let Some(last) = shape.last_mut() else { return Err("the block has no dimensions".into()) };
    let per_instruction = (PREFETCH_BYTES * 8 / width).max(1);
    *last = i64::try_from(last.unsigned_abs().div_ceil(per_instruction)).unwrap_or(i64::MAX);
    let rank = shape.len();
    let order: Vec<usize> = (0..rank).rev().collect();
    let spread = |count: u32, left: &mut [u64]| -> Vec<u64> {
        let mut rest = u64::from(count);
        let mut along = vec![1; rank];
        for (i, dim) in order.iter().enumerate() {
            let mine = if i + 1 == rank { rest } else { rest.min(left[*dim].max(1)) };
            along[*dim] = mine;
            rest /= mine.max(1);
            left[*dim] = left[*dim].div_ceil(mine.max(1));
        }
        along
    };
    let mut left: Vec<u64> = shape.iter().map(|size| size.unsigned_abs()).collect();
    let threads_per_warp = spread(lanes, &mut left);
    let warps_per_cta = spread(warps, &mut left);
    let divided = spread(num_ctas(op), &mut left);
    let mut cga = Vec::new();
    for dim in &order {
        for bit in 0..divided[*dim].max(1).ilog2() {
            cga.push((0..rank).map(|at| if at == *dim { 1 << bit } else { 0 }).collect());
        }
    }
    let layout = Blocked {
        size_per_thread: vec![1; rank],
        threads_per_warp,
        warps_per_cta,
        order: order.clone(),
        cga,
    };
    let attr = encoding_attr(op.context(), &Encoding::Blocked(layout))?;
    TensorType::new(&shape, Type::int(op.context(), 64), Some(attr))
        .map(TensorType::ty)
        .ok_or_else(|| format!("there are no tensors of {shape:?}"))
}

/// A prefetch returns offsets when it is asked to, one for each instruction.
pub fn tdm_prefetch(op: Op<'_>) -> VerifyResult {
    let prefetch = TdmPrefetchOp::of(op);
    match (prefetch.return_offsets().is_some(), prefetch.maybe_offsets()) {
        (false, None) => Ok(()),
        (false, Some(result)) => {
            Err(format!("there is no result without `returnOffsets`, got '{}'", result.ty()))
        }
        (true, given) => {
            let wanted = offsets_of(op, desc(prefetch.desc())?)?;
            match given {
                Some(given) if given.ty() == wanted => Ok(()),
                Some(given) => Err(format!("the result must be a '{wanted}', got '{}'", given.ty())),
                None => Err(format!("`returnOffsets` needs a result of '{wanted}'")),
            }
        }
    }
}

/// At least one field changes, and those that have one value for each dimension have them.
pub fn update_tensor_descriptor(op: Op<'_>) -> VerifyResult {
    let update = UpdateTensorDescriptorOp::of(op);
    let rank = desc(update.desc())?.shape().len();
    let (offsets, bounds) = (update.add_offsets().count(), update.set_bounds().count());
    for (what, n) in [("offsets", offsets), ("bounds", bounds)] {
        if n != 0 && n != rank {
            return Err(format!("a descriptor of {rank} dimensions has as many {what}, got {n}"));
        }
    }
    if offsets == 0 && bounds == 0 && update.pred().is_none() {
        return Err("nothing is updated: there are no offsets, no bounds and no predicate".into());
    }
    if update.clamp_bounds().is_some() {
        if offsets == 0 {
            return Err(
                "`clamp_bounds` shrinks bounds by the offsets that are added, but there are none".into()
            );
        }
        if bounds != 0 {
            return Err("bounds can be clamped or set, not both".into());
        }
    }
    Ok(())
}
