//! Copies through tensor descriptors, barriers in shared memory, and descriptors made by the program.

use crate::buffers::Buffer;
use crate::emit::{Failure, ICmp, Lowered, address_space, unsupported};
use crate::lower::{Handler, Lower};
use crate::target::{TensorCopies, TensorCopy, TensorMap};
use linear_layout::plan::TmaPlan;
use mlir_host::ir::{Attr, Op, Value};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttng::ops::*;
use ttopt_passes::buffer_plans;
use ttopt_passes::global_scratch;

pub(super) const HANDLERS: &[(&str, Handler)] = &[
    ("ttng.init_barrier", init_barrier),
    ("ttng.inval_barrier", inval_barrier),
    ("ttng.barrier_expect", expect),
    ("ttng.arrive_barrier", arrive),
    ("ttng.wait_barrier", wait),
    ("ttng.async_tma_copy_global_to_local", load),
    ("ttng.async_tma_copy_local_to_global", store),
    ("ttng.async_tma_reduce", store),
    ("ttng.async_tma_gather", rows),
    ("ttng.async_tma_scatter", rows),
    ("ttng.async_tma_store_wait", store_wait),
    ("ttng.tensormap_create", create_map),
    ("ttng.tensormap_fenceproxy_acquire", acquire_map),
    ("ttng.reinterpret_tensor_descriptor", reinterpret),
    ("ttg.global_scratch_alloc", global_scratch),
];

fn copies<'a>(l: &Lower<'a, '_>) -> Lowered<&'a dyn TensorCopies> {
    let Some(copies) = l.target.tensor_copies() else {
        return unsupported(format!("the target {} has no bulk tensor copies", l.target.desc().name));
    };
    if l.num_blocks() > 1 {
        return unsupported("bulk tensor copies in clusters of several blocks are not supported yet");
    }
    Ok(copies)
}

/// Whether this is the one thread of the block that issues copies, further restricted to `condition`.
fn issues<'c>(l: &mut Lower<'_, 'c>, condition: Option<Value<'c>>) -> Lowered<Value<'c>> {
    let mut elected = copies(l)?.elect(&mut l.emit)?;
    if let Some(first) = first_warp(l)? {
        elected = l.emit.and(first, elected)?;
    }
    match condition {
        Some(condition) => l.emit.and(elected, condition),
        None => Ok(elected),
    }
}

/// Whether this is the first warp; `None` where there is only one.
fn first_warp<'c>(l: &mut Lower<'_, 'c>) -> Lowered<Option<Value<'c>>> {
    if l.num_threads() <= l.target.desc().lanes {
        return Ok(None);
    }
    let (_, warp, _) = l.thread()?;
    let zero = l.emit.const_i32(0)?;
    l.emit.icmp(ICmp::Eq, warp, zero).map(Some)
}

/// Emits `body` for the first warp only.
fn in_first_warp<'c>(
    l: &mut Lower<'_, 'c>,
    body: impl FnOnce(&mut Lower<'_, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    let Some(first) = first_warp(l)? else { return body(l) };
    let (inside, after) = (l.new_block(&[])?, l.new_block(&[])?);
    l.emit.cond_br(first, (inside, &[]), (after, &[]))?;
    l.emit.set_block(inside);
    body(l)?;
    l.emit.br(after, &[], None)?;
    l.emit.set_block(after);
    Ok(())
}

//===----------------------------------------------------------------------===//
// Barriers
//===----------------------------------------------------------------------===//

fn barrier<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let buffer = l.buffer(value)?;
    l.buffer_start(&buffer)
}

fn count(op: Op<'_>, name: &str) -> Lowered<u32> {
    match op.attr(name).and_then(Attr::as_int).and_then(|n| u32::try_from(n).ok()) {
        Some(count) => Ok(count),
        None => unsupported(format!("needs '{name}', a number of 32 bits without sign")),
    }
}

fn init_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (at, count) = (barrier(l, op.operand(0))?, count(op, "count")?);
    let active = issues(l, None)?;
    copies(l)?.init_barrier(&mut l.emit, at, count, active)
}

fn inval_barrier<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let at = barrier(l, op.operand(0))?;
    let active = issues(l, None)?;
    copies(l)?.inval_barrier(&mut l.emit, at, active)
}

fn expect<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (at, bytes) = (barrier(l, op.operand(0))?, count(op, "size")?);
    let condition = l.scalar(BarrierExpectOp(op).pred())?;
    let active = issues(l, Some(condition))?;
    copies(l)?.expect(&mut l.emit, at, bytes.into(), active)
}

fn arrive<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (at, count) = (barrier(l, op.operand(0))?, count(op, "count")?);
    let condition = ArriveBarrierOp(op).pred().map(|pred| l.scalar(pred)).transpose()?;
    let active = issues(l, condition)?;
    copies(l)?.arrive(&mut l.emit, at, count, active)
}

fn wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let wait = WaitBarrierOp(op);
    let (at, phase) = (barrier(l, op.operand(0))?, l.scalar(wait.phase())?);
    let active = wait.pred().map(|pred| l.scalar(pred)).transpose()?;
    copies(l)?.wait(&mut l.emit, at, phase, active)
}

//===----------------------------------------------------------------------===//
// Copies
//===----------------------------------------------------------------------===//

/// The plan of a copy between what `desc` describes and `buffer`.
fn plan<'c>(l: &Lower<'_, 'c>, desc: Value<'c>, buffer: &Buffer<'c>) -> Lowered<TmaPlan> {
    let Some(desc) = TensorDescType::cast(desc.ty()) else {
        return unsupported(format!("copies through {} are not supported yet", desc.ty()));
    };
    if buffer.offset.is_some() {
        let ty = buffer.ty.ty();
        return unsupported(format!("{ty} is a part of a buffer, whose bytes do not lie together"));
    }
    if desc.shape() != buffer.ty.shape() {
        let (block, shape) = (desc.shape(), buffer.ty.shape());
        return unsupported(format!("blocks of {block:?} in a buffer of {shape:?} are not supported yet"));
    }
    buffer_plans::tma(desc, buffer.ty.encoding(), l.target.desc()).map_err(Failure::Unsupported)
}

/// Emits one instruction for each box.
fn each_box<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &TmaPlan,
    map: Value<'c>,
    coordinates: &[Value<'c>],
    buffer: &Buffer<'c>,
    active: Value<'c>,
    each: impl Fn(&mut Lower<'_, 'c>, &TensorCopy<'_, 'c>) -> Lowered<()>,
) -> Lowered<()> {
    let byte = l.emit.int(8);
    for part in &plan.boxes {
        let mut starts = Vec::with_capacity(coordinates.len());
        for (coordinate, start) in coordinates.iter().zip(&part.start) {
            starts.push(match *start {
                0 => *coordinate,
                start => {
                    let start = l.emit.const_i32(start as i64)?;
                    l.emit.add(*coordinate, start)?
                }
            });
        }
        starts.reverse();
        let shared = match part.offset_bytes {
            0 => buffer.base,
            offset => {
                let offset = l.emit.const_i32(offset as i64)?;
                l.emit.gep(buffer.base, offset, byte)?
            }
        };
        each(l, &TensorCopy { map, coordinates: &starts, shared, active })?;
    }
    Ok(())
}

fn scalars<'c>(l: &Lower<'_, 'c>, values: impl Iterator<Item = Value<'c>>) -> Lowered<Vec<Value<'c>>> {
    values.map(|value| l.scalar(value)).collect()
}

fn load<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let copy = AsyncTmaCopyGlobalToLocalOp(op);
    if copy.multicast().is_some() {
        return unsupported("copies to several blocks are not supported yet");
    }
    let buffer = l.buffer(copy.result())?;
    let plan = plan(l, copy.desc(), &buffer)?;
    l.remark(op, || plan.to_string());
    let (map, at) = (l.scalar(copy.desc())?, barrier(l, copy.barrier())?);
    let coordinates = scalars(l, copy.coord())?;
    let condition = l.scalar(copy.pred())?;
    let active = issues(l, Some(condition))?;
    let copies = copies(l)?;
    each_box(l, &plan, map, &coordinates, &buffer, active, |l, copy| copies.load(&mut l.emit, copy, at))
}

/// Copies from shared memory, reductions among them.
fn store<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (desc, src) = (op.operand(0), op.operand(op.num_operands() - 1));
    let kind = AsyncTmaReduceOp::cast(op).and_then(|reduce| reduce.kind());
    let buffer = l.buffer(src)?;
    let plan = plan(l, desc, &buffer)?;
    l.remark(op, || plan.to_string());
    let map = l.scalar(desc)?;
    let coordinates = scalars(l, op.operand_range(1, op.num_operands() - 2))?;
    let active = issues(l, None)?;
    let copies = copies(l)?;
    each_box(l, &plan, map, &coordinates, &buffer, active, |l, copy| copies.store(&mut l.emit, copy, kind))?;
    copies.commit_stores(&mut l.emit)
}

fn rows<'c>(l: &mut Lower<'_, 'c>, _: Op<'c>) -> Lowered<()> {
    let name = l.target.desc().name;
    // PTX ISA, "cp.async.bulk.tensor": `.tile::gather4` and `.tile::scatter4` need sm_100.
    unsupported(format!("copies of rows need sm_100 and are not supported yet for {name}"))
}

fn store_wait<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let left = count(op, "pendings")?;
    let read_only = TmaStoreWaitOp(op).read_only().is_some();
    copies(l)?.wait_for_stores(&mut l.emit, left, read_only)
}

//===----------------------------------------------------------------------===//
// Descriptors
//===----------------------------------------------------------------------===//

fn create_map<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let create = TensormapCreateOp(op);
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
        l.target.warp_barrier(&mut l.emit)?;
        let (inside, after) = (l.new_block(&[])?, l.new_block(&[])?);
        let first = l.emit.icmp(ICmp::Eq, lane, zero)?;
        l.emit.cond_br(first, (inside, &[]), (after, &[]))?;
        l.emit.set_block(inside);
        copies.fill_map(&mut l.emit, staging, &map)?;
        l.emit.br(after, &[], None)?;
        l.emit.set_block(after);
        l.target.warp_barrier(&mut l.emit)?;
        copies.publish_map(&mut l.emit, to, staging)
    })
}

fn acquire_map<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (copies, map) = (copies(l)?, l.scalar(op.operand(0))?);
    // The warp that issues copies.
    in_first_warp(l, |l| copies.acquire_map(&mut l.emit, map))
}

fn reinterpret<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (pointer, generic) = (l.scalar(op.operand(0))?, l.emit.ptr(address_space::GENERIC)?);
    let generic = l.emit.value("llvm.addrspacecast", &[pointer], generic, &[])?;
    l.set(op.result(0), vec![generic]);
    Ok(())
}

fn global_scratch<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(offset) = op.attr(global_scratch::OFFSET).and_then(Attr::as_int) else {
        return unsupported(
            "has no global scratch memory: run --tritongpu-global-scratch-memory-allocation first",
        );
    };
    let pointer = l.global_scratch_at(offset)?;
    l.set(op.result(0), vec![pointer]);
    Ok(())
}
