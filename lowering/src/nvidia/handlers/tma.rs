//! Copies through tensor descriptors, and descriptors made by the program.

use super::barriers::{barrier, copies, count, in_first_warp, issues};
use crate::buffers::Buffer;
use crate::emit::{Failure, ICmp, Lowered, address_space, internal, unsupported};
use crate::lower::{Handler, Lower};
use crate::nvidia::memory::L2Policy;
use crate::nvidia::tma::{TensorCopy, TensorCopyMode, TensorMap};
use crate::target::BarrierMemory;
use linear_layout::plan::{ThreadBases, TmaPlan};
use mlir_host::ir::{Op, Value};
use smallvec::SmallVec;
use ttopt_dialect::tt;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttng::attrs::CachePolicy;
use ttopt_dialect::ttng::ops::*;
use ttopt_dialect::ttng::types::TensorDescIm2ColType;
use ttopt_passes::buffer_plans;
use ttopt_passes::kernel_decisions::FIRST_WARP_ONLY;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("ttng.async_tma_copy_global_to_local", load),
    ("ttng.async_tma_copy_local_to_global", store),
    ("ttng.async_tma_reduce", store),
    ("ttng.async_tma_gather", gather),
    ("ttng.async_tma_scatter", scatter),
    ("ttng.async_tma_store_wait", store_wait),
    ("ttng.tensormap_create", create_map),
    ("ttng.tensormap_fenceproxy_acquire", acquire_map),
    ("ttng.reinterpret_tensor_descriptor", reinterpret),
];

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The blocks that a descriptor describes, tiled or im2col.
fn descriptor(desc: Value<'_>) -> Lowered<TensorDescType<'_>> {
    let tiled = || TensorDescIm2ColType::cast(desc.ty())?.tiled();
    match TensorDescType::cast(desc.ty()).or_else(tiled) {
        Some(desc) => Ok(desc),
        None => unsupported(format!("copies through {} are not supported", desc.ty())),
    }
}

/// Copies know no parts of buffers.
fn whole(buffer: &Buffer<'_>) -> Lowered<()> {
    match buffer.offset {
        None => Ok(()),
        Some(_) => {
            let ty = buffer.ty.ty();
            unsupported(format!("{ty} is a part of a buffer, whose bytes do not lie together"))
        }
    }
}

/// The plan of a copy between what `desc` describes and `buffer`.
fn plan<'c>(l: &Lower<'_, 'c>, desc: Value<'c>, buffer: &Buffer<'c>) -> Lowered<TmaPlan> {
    let desc = descriptor(desc)?;
    whole(buffer)?;
    if !buffer_plans::holds_block(desc, &buffer.ty.shape()) {
        let (block, shape) = (desc.shape(), buffer.ty.shape());
        return unsupported(format!("blocks of {block:?} in a buffer of {shape:?} are not supported yet"));
    }
    buffer_plans::tma(desc, buffer.ty.encoding(), l.target.desc()).map_err(Failure::Unsupported)
}

/// What all instructions of a copy share.
struct Shared<'c> {
    map: Value<'c>,
    policy: Option<Value<'c>>,
    blocks: Option<Value<'c>>,
    active: Value<'c>,
}

/// How long L2 keeps what `op` copies, where that is not as usual.
fn cache_policy<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<Option<Value<'c>>> {
    let Some(attr) = op.attr("cachePolicy") else { return Ok(None) };
    let policy = match (tt::attrs::CachePolicy::decode(attr), CachePolicy::decode(attr)) {
        (Some(policy), _) => L2Policy::of_all(policy.eviction),
        (None, Some(policy)) => {
            policy.l2.map(|(primary, secondary, fraction)| L2Policy { primary, secondary, fraction })
        }
        (None, None) => return unsupported(format!("knows no cache policy {attr}")),
    };
    policy.map(|policy| policy.operand(&mut l.emit)).transpose()
}

/// Byte `offset` of a buffer.
fn at_byte<'c>(l: &mut Lower<'_, 'c>, base: Value<'c>, offset: u64) -> Lowered<Value<'c>> {
    if offset == 0 {
        return Ok(base);
    }
    let (byte, offset) = (l.emit.int(8), l.emit.const_i32(offset as i64)?);
    l.emit.gep(base, offset, byte)
}

fn plus<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>, number: u64) -> Lowered<Value<'c>> {
    if number == 0 {
        return Ok(value);
    }
    let number = l.emit.const_i32(number as i64)?;
    l.emit.add(value, number)
}

/// Where the part of this CTA of the cluster begins: `coordinate` is that of the whole along `dim`.
fn in_part<'c>(
    l: &mut Lower<'_, 'c>,
    coordinate: Value<'c>,
    parts: &[SmallVec<[u64; 5]>],
    dim: usize,
) -> Lowered<Value<'c>> {
    let block: SmallVec<[u64; 6]> = parts.iter().map(|part| part.get(dim).copied().unwrap_or(0)).collect();
    if block.iter().all(|start| *start == 0) {
        return Ok(coordinate);
    }
    let start = l.thread_number(&ThreadBases { block, ..ThreadBases::default() }, 1)?;
    l.emit.add(coordinate, start)
}

/// Emits one instruction for each box.
fn each_box<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &TmaPlan,
    shared: &Shared<'c>,
    coordinates: &[Value<'c>],
    buffer: &Buffer<'c>,
    mode: TensorCopyMode<'_, 'c>,
    each: impl Fn(&mut Lower<'_, 'c>, &TensorCopy<'_, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    // The dimensions of a block are the last ones of the tensor: all of them, or its channels.
    let first = match mode {
        TensorCopyMode::Im2col(_) => {
            only_channels(plan)?;
            coordinates.len() - 1
        }
        _ => 0,
    };
    let dim_of_block = |dim: usize| if first == 0 { dim } else { 1 };
    let mut origin = coordinates.to_vec();
    for (dim, coordinate) in origin.iter_mut().enumerate().skip(first) {
        *coordinate = in_part(l, *coordinate, &plan.parts, dim_of_block(dim))?;
    }
    for part in &plan.boxes {
        let mut starts = origin.clone();
        for (dim, coordinate) in starts.iter_mut().enumerate().skip(first) {
            *coordinate = plus(l, *coordinate, part.start[dim_of_block(dim)])?;
        }
        starts.reverse();
        let to = at_byte(l, buffer.base, part.offset_bytes)?;
        each(l, &shared.copy(&starts, to, mode))?;
    }
    Ok(())
}

/// The pixels of a block follow each other through the bounding box in an order that the tensor map has: one
/// box must have them all.
fn only_channels(plan: &TmaPlan) -> Lowered<()> {
    let starts = plan.boxes.iter().map(|part| &part.start).chain(&plan.parts);
    if plan.map.box_shape.len() == 2 && starts.clone().all(|start| start[0] == 0) {
        return Ok(());
    }
    unsupported(format!("an im2col copy in several boxes of pixels: {plan}"))
}

impl<'c> Shared<'c> {
    fn copy<'a>(
        &self,
        coordinates: &'a [Value<'c>],
        shared: Value<'c>,
        mode: TensorCopyMode<'a, 'c>,
    ) -> TensorCopy<'a, 'c> {
        let Shared { map, policy, blocks, active } = *self;
        TensorCopy { map, coordinates, mode, policy, blocks, shared, active }
    }
}

fn scalars<'c>(l: &Lower<'_, 'c>, values: impl Iterator<Item = Value<'c>>) -> Lowered<Vec<Value<'c>>> {
    values.map(|value| l.scalar(value)).collect()
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let copy = AsyncTmaCopyGlobalToLocalOp::of(op);
    let buffer = l.buffer(copy.result())?;
    let plan = plan(l, copy.desc(), &buffer)?;
    l.remark(op, || plan.to_string());
    let (map, at) = (l.scalar(copy.desc())?, barrier(l, copy.barrier())?.at);
    let coordinates = scalars(l, copy.coord())?;
    let mut offsets = scalars(l, copy.offsets())?;
    offsets.reverse();
    let im2col = TensorDescIm2ColType::cast(copy.desc().ty()).is_some();
    let mode = if im2col { TensorCopyMode::Im2col(&offsets) } else { TensorCopyMode::Box };
    let policy = cache_policy(l, op)?;
    let condition = l.scalar(copy.pred())?;
    let mut active = issues(l, Some(condition))?;
    let blocks = receivers(l, copy.multicast().is_some(), &plan.parts, &mut active)?;
    let copies = copies(l)?;
    let shared = Shared { map, policy, blocks, active };
    each_box(l, &plan, &shared, &coordinates, &buffer, mode, |l, copy| copies.load(&mut l.emit, copy, at))
}

/// Bits of the number of a block in its cluster that make no difference to its part.
fn copies_of(parts: &[SmallVec<[u64; 5]>]) -> u64 {
    let same = parts.iter().enumerate().filter(|(_, part)| part.iter().all(|start| *start == 0));
    same.map(|(bit, _)| 1 << bit).sum()
}

/// The blocks that get what is loaded, where one loads for all that have the same part: then others are not
/// active.
fn receivers<'c>(
    l: &mut Lower<'_, 'c>,
    multicast: bool,
    parts: &[SmallVec<[u64; 5]>],
    active: &mut Value<'c>,
) -> Lowered<Option<Value<'c>>> {
    let same = copies_of(parts);
    let Some(leads) = l.is_representative(0, 0, same)?.filter(|_| multicast) else { return Ok(None) };
    *active = l.emit.and(*active, leads)?;
    // The first has zeros where the others differ from it.
    let all = (0..1u64 << parts.len()).filter(|block| block & !same == 0).map(|block| 1i64 << block).sum();
    let ((_, _, block), mask, i16t) = (l.thread()?, l.emit.const_i32(all)?, l.emit.i16());
    let mask = l.emit.same("llvm.shl", &[mask, block])?;
    l.emit.value("llvm.trunc", &[mask], i16t, &[]).map(Some)
}

/// Copies from shared memory, reductions among them.
fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (desc, src) = (op.operand(0), op.operand(op.num_operands() - 1));
    let kind = AsyncTmaReduceOp::cast(op).map(|reduce| reduce.kind());
    let buffer = l.buffer(src)?;
    let plan = plan(l, desc, &buffer)?;
    l.remark(op, || plan.to_string());
    let map = l.scalar(desc)?;
    let coordinates = scalars(l, op.operand_range(1, op.num_operands() - 2))?;
    let policy = cache_policy(l, op)?;
    // Of blocks with the same elements one stores them.
    let leads = l.is_representative(0, 0, copies_of(&plan.parts))?;
    let active = issues(l, leads)?;
    let copies = copies(l)?;
    let shared = Shared { map, policy, blocks: None, active };
    each_box(l, &plan, &shared, &coordinates, &buffer, TensorCopyMode::Box, |l, copy| {
        copies.store(&mut l.emit, copy, kind)
    })?;
    copies.commit_stores(&mut l.emit)
}

/// Emits the copies of the rows of `buffer`; one lane of each warp issues those of the warp.
fn each_row<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    buffer: &Buffer<'c>,
    condition: Option<Value<'c>>,
    each: impl Fn(&mut Lower<'_, 'c>, &TensorCopy<'_, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    let (desc, numbers, column) = (op.operand(0), op.operand(1), op.operand(2));
    let writes = AsyncTmaScatterOp::cast(op).is_some();
    let multicast = AsyncTmaGatherOp::cast(op).is_some_and(|gather| gather.multicast().is_some());
    let ty = descriptor(desc)?;
    whole(buffer)?;
    let plan = buffer_plans::tma_rows(ty, buffer.ty, numbers.ty(), l.target.desc());
    let plan = plan.map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let (map, numbers, column) = (l.scalar(desc)?, l.get(numbers)?, l.scalar(column)?);
    let policy = cache_policy(l, op)?;
    let mut active = copies(l)?.elect(&mut l.emit)?;
    let idle_blocks = if writes { copies_of(&plan.parts) } else { 0 };
    let acts = l.is_representative(0, plan.idle_warps, idle_blocks)?;
    for more in [acts, condition].into_iter().flatten() {
        active = l.emit.and(active, more)?;
    }
    let bases = ThreadBases { warp: plan.warp_bytes.iter().copied().collect(), ..ThreadBases::default() };
    let (moved, byte) = (l.thread_number(&bases, 1)?, l.emit.int(8));
    let base = l.emit.gep(buffer.base, moved, byte)?;
    let column = in_part(l, column, &plan.parts, 1)?;
    let blocks = receivers(l, multicast, &plan.parts, &mut active)?;
    let zero = l.emit.const_i32(0)?;
    for copy in &plan.copies {
        let rows = numbers.get(copy.register..copy.register + plan.rows as usize);
        let Some(rows) = rows else { return internal("threads hold too few row numbers") };
        let mut coordinates = vec![plus(l, column, copy.column)?];
        coordinates.extend(rows);
        let mut active = active;
        // There is nothing to write before the tensor, and copies that begin there trap: one row is left out, and
        // one of four becomes a row behind the tensor.
        match (writes, rows) {
            (true, [row]) => {
                let inside = l.emit.icmp(ICmp::Sge, *row, zero)?;
                active = l.emit.and(active, inside)?;
            }
            (true, several) => {
                let behind = l.emit.const_i32(i32::MAX.into())?;
                for (coordinate, row) in coordinates.iter_mut().skip(1).zip(several) {
                    let inside = l.emit.icmp(ICmp::Sge, *row, zero)?;
                    *coordinate = l.emit.select(inside, *row, behind)?;
                }
            }
            _ => {}
        }
        let mode = if plan.rows == 1 { TensorCopyMode::Box } else { TensorCopyMode::Rows };
        let shared = Shared { map, policy, blocks, active };
        let at = at_byte(l, base, copy.offset_bytes)?;
        each(l, &shared.copy(&coordinates, at, mode))?;
    }
    Ok(())
}

fn gather<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let gather = AsyncTmaGatherOp::of(op);
    let (buffer, at) = (l.buffer(gather.result())?, barrier(l, gather.barrier())?.at);
    let condition = l.scalar(gather.pred())?;
    let copies = copies(l)?;
    each_row(l, op, &buffer, Some(condition), |l, copy| copies.load(&mut l.emit, copy, at))
}

fn scatter<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (buffer, copies) = (l.buffer(AsyncTmaScatterOp::of(op).src())?, copies(l)?);
    each_row(l, op, &buffer, None, |l, copy| copies.store(&mut l.emit, copy, None))?;
    copies.commit_stores(&mut l.emit)
}

fn store_wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let left = count(op, "pendings")?;
    let read_only = TmaStoreWaitOp::of(op).read_only().is_some();
    copies(l)?.wait_for_stores(&mut l.emit, left, read_only)
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

fn create_map<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let create = TensormapCreateOp::of(op);
    let map = TensorMap {
        base: l.scalar(create.global_address())?,
        box_dims: scalars(l, create.box_dim())?,
        dims: scalars(l, create.global_dim())?,
        strides: scalars(l, create.global_stride())?,
        element_strides: scalars(l, create.element_stride())?,
        element: count(op, "elem_type")?,
        interleave: count(op, "interleave_layout")?,
        swizzle: count(op, "swizzle_mode")?,
        fill: count(op, "fill_mode")?,
    };
    let (to, staging) = (l.scalar(create.desc_ptr())?, l.scratch(op)?);
    let copies = copies(l)?;
    let (lane, _, _) = l.thread()?;
    in_first_warp(l, |l| {
        // Each lane clears 4 of 128 bytes.
        let (zero, i32t) = (l.emit.const_i32(0)?, l.emit.i32());
        let place = l.emit.gep(staging, lane, i32t)?;
        l.target.store_shared(&mut l.emit, place, &[zero], None)?;
        l.target.warp_barrier(&mut l.emit, BarrierMemory::All)?;
        let (inside, after) = (l.new_block(&[])?, l.new_block(&[])?);
        let first = l.emit.icmp(ICmp::Eq, lane, zero)?;
        l.emit.cond_br(first, (inside, &[]), (after, &[]))?;
        l.emit.set_block(inside);
        copies.fill_map(&mut l.emit, staging, &map)?;
        l.emit.br(after, &[], None)?;
        l.emit.set_block(after);
        l.target.warp_barrier(&mut l.emit, BarrierMemory::All)?;
        copies.publish_map(&mut l.emit, to, staging)
    })
}

fn acquire_map<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (copies, map) = (copies(l)?, l.scalar(op.operand(0))?);
    // The warp that issues copies of blocks; the others, which issue those of rows, wait for it.
    in_first_warp(l, |l| copies.acquire_map(&mut l.emit, map))?;
    if op.attr(FIRST_WARP_ONLY).is_some() { Ok(()) } else { l.barrier(BarrierMemory::All) }
}

fn reinterpret<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (pointer, generic) = (l.scalar(op.operand(0))?, l.emit.ptr(address_space::GENERIC)?);
    let generic = l.emit.value("llvm.addrspacecast", &[pointer], generic, &[])?;
    l.set(op.result(0), vec![generic]);
    Ok(())
}
