//! Accesses through tensor descriptors as copies by the tensor data mover of AMD's gfx1250, in two passes.
//!
//! `--tritonamdgpu-stage-tensors`, before the pipeline: what a descriptor loads goes to a buffer from which each use reads, in the layout that it
//! wants; what is stored is written to a buffer, moved from there, and waited for. Buffers have rows one after the other, with or without padding, whichever
//! is read, or written, in the fewest cycles.
//!
//! The pipeline makes rings of such buffers, and copies to them. `--tritonamdgpu-move-tensors`, behind it, does the same for loads that
//! are left, and waits for each.

use crate::buffer_plans;
use crate::ir_util::{emit, fills_constant_buffer};
use crate::machine::{self, error};
use crate::plans::word_bits;
use crate::rules::is_conversion;
use crate::schedule::past_registers::memory;
use linear_layout::Encoding;
use linear_layout::encoding::{PaddedShared, SwizzledShared};
use linear_layout::plan::TdmPlan;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::asm::Reported;
use mlir_host::ir::{Op, Type, Value, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::create;
use ttopt_dialect::amdg::ops::{
    AsyncTdmCopyGlobalToLocalOp, AsyncTdmCopyLocalToGlobalOp, AsyncTdmWaitOp, UpdateTensorDescriptorOp,
};
use ttopt_dialect::tt::ops::{DescriptorLoadOp, DescriptorStoreOp};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::attrs::{encoding_attr, shared_memory};
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp};
use ttopt_dialect::ttg::types::MemDescType;

/// The pass before the pipeline.
pub static STAGE_TENSORS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "amdg", "arith"],
    ..PassDef::new(
        "tritonamdgpu-stage-tensors",
        "Put what is accessed through tensor descriptors into shared memory",
        stage,
    )
};

/// The pass behind it.
pub static MOVE_TENSORS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "amdg", "arith"],
    ..PassDef::new(
        "tritonamdgpu-move-tensors",
        "Make tensor operations of loads through tensor descriptors",
        move_tensors,
    )
};

/// Bytes of padding.
const PADS: [u64; 4] = [16, 32, 64, 128];
/// The part of shared memory that a block may take: there are others, and rings of them.
const SHARE: u64 = 4;
/// Bytes after which padding may come at most, in loads.
const MOST_INTERVAL: u64 = 1024;

/// Why blocks of `desc` are not moved by tensor operations.
pub fn refusal(desc: TensorDescType<'_>, target: &TargetDesc) -> Option<String> {
    let bits = match desc.element().bits() {
        Some(bits @ (8 | 16 | 32 | 64)) => u64::from(bits),
        _ => return Some(format!("tensor operations move no elements of type {}", desc.element())),
    };
    let shape = desc.shape();
    if shape.iter().any(|size| *size < 1 || size.count_ones() != 1) {
        return Some(format!("{} describes blocks of no static shape", desc.ty()));
    }
    let shape: Vec<u64> = shape.iter().map(|size| size.unsigned_abs()).collect();
    let bytes = shape.iter().product::<u64>() * bits / 8;
    if bytes > target.shared_bytes / SHARE {
        return Some(format!("a block of {bytes} bytes takes more of shared memory than rings leave"));
    }
    let Some(layout) = rows_of(&shape) else { return Some("its blocks have no rows".to_owned()) };
    [Direction::Store, Direction::Load]
        .into_iter()
        .find_map(|direction| TdmPlan::new(&layout, &[], bits as u32, 1, direction, target).err())
        .map(|why| why.to_string())
}

/// Memory in which the elements of a block of `shape` lie in row-major order.
fn rows_of(shape: &[u64]) -> Option<linear_layout::LinearLayout> {
    let dims = (0..shape.len()).rev();
    memory(dims.flat_map(|dim| (0..shape[dim].ilog2()).map(move |bit| (dim, 1u64 << bit))), shape)
}

/// Buffers for a tensor of `shape` that tensor operations can fill, or with [`Direction::Load`] read: the smallest first.
fn buffers<'c>(
    op: Op<'c>,
    shape: &[i64],
    element: Type<'c>,
    direction: Direction,
) -> Option<Vec<MemDescType<'c>>> {
    let bits = u64::from(word_bits(element).ok()?);
    let sizes: Vec<u64> = shape.iter().map(|size| size.unsigned_abs()).collect();
    let plain = SwizzledShared {
        vec: 1,
        per_phase: 1,
        max_phase: 1,
        order: (0..shape.len()).rev().collect(),
        cga: Vec::new(),
    };
    let (row, total) = (*sizes.last()?, sizes.iter().product::<u64>());
    let most = MOST_INTERVAL * 8 / bits;
    let first = if direction == Direction::Store { row.min(most) } else { row };
    let intervals = std::iter::successors(Some(first), |interval| Some(2 * interval));
    let intervals = intervals
        .take_while(|interval| *interval < total && (*interval <= most || direction == Direction::Load))
        .take(if direction == Direction::Store { usize::MAX } else { 1 });
    let mut layouts = vec![Encoding::SwizzledShared(plain)];
    for interval in intervals {
        for pad in PADS {
            let layout = rows_of(&sizes)?;
            let intervals = vec![(interval, pad * 8 / bits)];
            layouts.push(Encoding::PaddedShared(PaddedShared { intervals, layout }));
        }
    }
    let space = shared_memory(op.context())?;
    let buffer = |layout: &Encoding| {
        MemDescType::new(shape, element, encoding_attr(op.context(), layout).ok()?, space, false)
    };
    Some(layouts.iter().filter_map(buffer).collect())
}

/// The buffer of those for `ty` that is accessed as `tensors` in the fewest cycles: read, where tensor operations fill it, else written.
fn best<'c>(
    op: Op<'c>,
    desc: TensorDescType<'c>,
    ty: Type<'c>,
    tensors: &[Type<'c>],
    filled: bool,
    target: &TargetDesc,
) -> Result<MemDescType<'c>, Reported> {
    let (moves, accesses) =
        if filled { (Direction::Store, Direction::Load) } else { (Direction::Load, Direction::Store) };
    let tensor = ty.as_tensor().ok_or_else(|| error(op, "moves no tensor"))?;
    let warps = machine::Machine::of(op.ancestor(|op| op.parent().is_none()).unwrap_or(op))?.num_warps as u32;
    let cycles = |buffer: MemDescType<'c>| {
        buffer_plans::tdm(desc, buffer, warps, moves, target).ok()?;
        let access = |ty: &Type<'c>| buffer_plans::access(*ty, buffer, accesses, target).ok();
        tensors.iter().map(|ty| Some(access(ty)?.access.cycles(target))).sum::<Option<f64>>()
    };
    let all = buffers(op, &tensor.shape(), tensor.element(), moves).unwrap_or_default();
    let costs = all.into_iter().filter_map(|buffer| Some((cycles(buffer)?, buffer)));
    let found = costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, buffer)| buffer);
    found.ok_or_else(|| error(op, "has no buffer that tensor operations move"))
}

fn accesses(module: Op<'_>) -> Vec<Op<'_>> {
    let mut found = Vec::new();
    module.walk(&mut |op| {
        if DescriptorLoadOp::cast(op).is_some() || DescriptorStoreOp::cast(op).is_some() {
            found.push(op);
        }
        Walk::Advance
    });
    found
}

fn stage(module: Op<'_>, _: &Options) -> PassResult {
    let accesses = accesses(module);
    if accesses.is_empty() {
        return Ok(());
    }
    let target = machine::target(module)?;
    for op in accesses {
        match DescriptorStoreOp::cast(op) {
            Some(store) => stage_store(store, &target)?,
            None => stage_load(DescriptorLoadOp::of(op), &target)?,
        }
    }
    Ok(())
}

fn descriptor<'c>(op: Op<'c>) -> Result<TensorDescType<'c>, Reported> {
    TensorDescType::cast(op.operand(0).ty()).ok_or_else(|| error(op, "accesses nothing through a descriptor"))
}

/// All reads of a buffer that `user` fills with a tensor, if there is nothing else.
fn reads<'c>(user: Op<'c>) -> Option<Vec<Op<'c>>> {
    if !fills_constant_buffer(user) {
        return None;
    }
    let users = user.result(0).uses().map(|(user, _)| user);
    users.map(|user| LocalLoadOp::cast(user).map(|load| load.op())).collect()
}

fn stage_load<'c>(load: DescriptorLoadOp<'c>, target: &TargetDesc) -> PassResult {
    let op = load.op();
    let result = load.result();
    if result.is_unused() {
        op.erase();
        return Ok(());
    }
    // What reads it, each as another tensor: conversions, buffers from which threads read, and all others.
    let (mut tensors, mut conversions, mut others, mut copies) = (Vec::new(), Vec::new(), false, Vec::new());
    for (user, _) in result.uses() {
        if is_conversion(user) {
            tensors.push(user.result(0).ty());
            conversions.push(user);
        } else if let Some(reads) = reads(user) {
            tensors.extend(reads.iter().map(|read| read.result(0).ty()));
            copies.push((user, reads));
        } else {
            others = true;
        }
    }
    if others {
        tensors.push(result.ty());
    }
    let buffer = best(op, descriptor(op)?, result.ty(), &tensors, true, target)?;
    let alloc = LocalAllocOp::build(op.loc()).src(result).results(&[buffer.ty()]).detached()?;
    let made = alloc.op();
    made.move_after(op);
    let filled = made.result(0);
    if others {
        let read = LocalLoadOp::build(op.loc(), filled).results(&[result.ty()]).detached()?.op();
        read.move_after(made);
        let uses: Vec<(Op<'c>, usize)> = result.uses().collect();
        for (user, operand) in uses {
            let staged =
                user == made || conversions.contains(&user) || copies.iter().any(|(copy, _)| *copy == user);
            if !staged {
                user.set_operand(operand, read.result(0));
            }
        }
    }
    for conversion in conversions {
        let ty = conversion.result(0).ty();
        let read = emit(conversion, "ttg.local_load", &[filled], ty)?;
        conversion.result(0).replace_all_uses_with(read);
        conversion.erase();
    }
    for (copy, reads) in copies {
        reads.into_iter().for_each(|read| read.set_operand(0, filled));
        copy.erase();
    }
    Ok(())
}

/// A descriptor of the block at `indices`; it moves nothing where `exists` is false. Put before `at`.
///
/// # Errors
/// When an operation cannot be made.
pub fn block_at<'c>(
    at: Op<'c>,
    desc: Value<'c>,
    indices: &[Value<'c>],
    exists: Option<Value<'c>>,
) -> Result<Value<'c>, Reported> {
    let i32t = Type::int(at.context(), 32);
    let active = exists.map(|exists| emit(at, "arith.extui", &[exists], i32t)).transpose()?;
    let update = UpdateTensorDescriptorOp::build(at.loc(), desc, indices, &[])
        .pred(active)
        .clamp_bounds(true)
        .results(&[desc.ty()])
        .detached()?;
    update.op().move_before(at);
    Ok(update.op().result(0))
}

fn wait_before(at: Op<'_>, token: Value<'_>) -> PassResult {
    AsyncTdmWaitOp::build(at.loc(), &[token], 0).detached()?.op().move_before(at);
    Ok(())
}

fn stage_store<'c>(store: DescriptorStoreOp<'c>, target: &TargetDesc) -> PassResult {
    let (op, src) = (store.op(), store.src());
    let buffer = best(op, descriptor(op)?, src.ty(), &[src.ty()], false, target)?;
    let filled = emit(op, "ttg.local_alloc", &[src], buffer.ty())?;
    let indices: Vec<Value<'c>> = store.indices().collect();
    let desc = block_at(op, store.desc(), &indices, None)?;
    let copy = AsyncTdmCopyLocalToGlobalOp::build(op.loc(), desc, filled).detached()?.op();
    copy.move_before(op);
    wait_before(op, copy.result(0))?;
    op.erase();
    Ok(())
}

fn move_tensors(module: Op<'_>, _: &Options) -> PassResult {
    accesses(module).into_iter().filter_map(DescriptorLoadOp::cast).try_for_each(move_load)
}

/// A load, and the buffer that is filled with what it gives.
fn move_load(load: DescriptorLoadOp<'_>) -> PassResult {
    let op = load.op();
    let mut users = load.result().uses().map(|(user, _)| user);
    let (Some(alloc), None) = (users.next().and_then(LocalAllocOp::cast), users.next()) else {
        return Err(error(op, "fills no buffer: run --tritonamdgpu-stage-tensors first"));
    };
    let alloc = alloc.op();
    let Some(ty) = MemDescType::cast(alloc.result(0).ty())
        .and_then(|ty| MemDescType::new(&ty.shape(), ty.element(), ty.encoding(), ty.space(), true))
    else {
        return Err(error(op, "fills no buffer"));
    };
    let made = create("ttg.local_alloc", alloc.loc(), &[], &[ty.ty()], &[], &[])?;
    made.move_before(alloc);
    let buffer = made.result(0);
    let indices: Vec<Value<'_>> = load.indices().collect();
    let desc = block_at(alloc, load.desc(), &indices, None)?;
    let copy = AsyncTdmCopyGlobalToLocalOp::build(op.loc(), desc, buffer).detached()?.op();
    copy.move_before(alloc);
    wait_before(alloc, copy.result(0))?;
    alloc.result(0).replace_all_uses_with(buffer);
    alloc.erase();
    op.erase();
    Ok(())
}

/// A buffer that threads read, in the place of `alloc` with what `load` gives: a slot of a ring.
pub fn slot<'c>(load: Op<'c>) -> Option<(Op<'c>, MemDescType<'c>)> {
    let result = DescriptorLoadOp::cast(load)?.result();
    let mut users = result.uses().map(|(user, _)| user);
    let (Some(user), None) = (users.next(), users.next()) else { return None };
    let alloc = LocalAllocOp::cast(user).filter(|_| user.block() == load.block())?;
    let ty = MemDescType::cast(alloc.result().ty())?;
    let slot = MemDescType::new(&ty.shape(), ty.element(), ty.encoding(), ty.space(), true)?;
    Some((user, slot))
}
