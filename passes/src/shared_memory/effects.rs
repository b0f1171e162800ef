//! What operations do to shared memory, and when it is done.

use super::buffers::Buffers;
use mlir_host::def::{EffectKind, EffectOn, Effects};
use mlir_host::ir::{Op, Value};
use smallvec::SmallVec;
use ttopt_dialect::amdg;
use ttopt_dialect::interfaces::{MBarrier, MmaV5};
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, AsyncWaitOp, SHARED_MEMORY};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{
    AsyncTmaCopyGlobalToLocalOp, AsyncTmaCopyLocalToGlobalOp, AsyncTmaGatherOp, AsyncTmaReduceOp,
    AsyncTmaScatterOp, ClcTryCancelOp, TmaStoreWaitOp, TmemCopyOp, WarpGroupDotOp, WarpGroupDotWaitOp,
};

/// How an operation touches a buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Reads it.
    Read,
    /// Writes it.
    Write,
    /// Begins to copy into it; done for the thread that issued the copy after [`Waits::Copies`].
    BeginCopy,
    /// Begins to read it; done after [`Waits::Dots`].
    BeginDot,
    /// Begins to read it; done for the thread that issued the copy after [`Waits::Stores`].
    BeginStore,
    /// Begins to fill it by a tensor operation; done for the warp that issued it after [`Waits::Tensors`].
    BeginTensorLoad,
    /// Begins to read it by a tensor operation; done for the warp that issued it after [`Waits::Tensors`].
    BeginTensorStore,
    /// Begins to read it; a barrier in memory tells all threads when that is done.
    HandOver,
    /// Begins to write it; a barrier in memory tells all threads when that is done.
    Fill,
    /// Uses it as a barrier, which orders its own uses.
    Synchronize,
}

impl Kind {
    /// Whether the threads must be done reading the bytes.
    pub fn needs_reads_done(self) -> bool {
        !matches!(
            self,
            Kind::Read | Kind::BeginDot | Kind::BeginStore | Kind::BeginTensorStore | Kind::HandOver
        )
    }
}

/// One place that an operation touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Its number in [`Buffers::places`].
    pub buffer: usize,
    /// How.
    pub kind: Kind,
}

/// What an operation waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// Copies to shared memory that this thread, or its warp, began (`cp.async`, loads to the LDS).
    Copies,
    /// Dots that this warp group began (`wgmma`).
    Dots,
    /// Copies from shared memory that this thread began (bulk copies).
    Stores,
    /// Tensor operations that this warp began, to shared memory and from there.
    Tensors,
}

/// What `op` waits for, and how many groups of that, or instructions, may still be under way afterwards.
pub fn waits(op: Op<'_>) -> Option<(Waits, i64)> {
    let copies = AsyncWaitOp::cast(op).map(|wait| (Waits::Copies, wait.num()));
    let counted = || amdg::ops::AsyncWaitOp::cast(op).map(|wait| (Waits::Copies, wait.num_inst()));
    let dots = || WarpGroupDotWaitOp::cast(op).map(|wait| (Waits::Dots, wait.pendings()));
    let stores = || TmaStoreWaitOp::cast(op).map(|wait| (Waits::Stores, wait.pendings()));
    let tensors = || {
        let copies = amdg::ops::AsyncTdmWaitOp::cast(op).map(|wait| wait.num());
        // A copy is one instruction of each warp.
        let counted = || amdg::ops::AsyncTdmIntrinsicWaitOp::cast(op).map(|wait| wait.count());
        copies.or_else(counted).map(|left| (Waits::Tensors, left))
    };
    copies.or_else(counted).or_else(dots).or_else(stores).or_else(tensors)
}

/// Whether no copy from shared memory is under way after `op`.
pub fn waits_for_all_stores(op: Op<'_>) -> bool {
    matches!(waits(op), Some((Waits::Stores | Waits::Tensors, 0)))
}

/// Whether `op` begins a tensor operation from shared memory.
pub fn is_tensor_store(op: Op<'_>) -> bool {
    amdg::ops::AsyncTdmCopyLocalToGlobalOp::cast(op).is_some()
}

/// Whether `op` begins a tensor operation to shared memory.
pub fn is_tensor_load(op: Op<'_>) -> bool {
    amdg::ops::AsyncTdmCopyGlobalToLocalOp::cast(op).is_some()
}

/// Whether `op` begins a bulk copy from shared memory.
pub fn is_store_by_tma(op: Op<'_>) -> bool {
    AsyncTmaCopyLocalToGlobalOp::cast(op).is_some()
        || AsyncTmaReduceOp::cast(op).is_some()
        || AsyncTmaScatterOp::cast(op).is_some()
}

/// Whether `op` begins a bulk copy to shared memory.
pub fn fills_by_tma(op: Op<'_>) -> bool {
    AsyncTmaCopyGlobalToLocalOp::cast(op).is_some() || AsyncTmaGatherOp::cast(op).is_some()
}

/// The kind of an effect of `op` on the operands of a group, where it is more
/// than the reading or writing that the definition says.
fn special(op: Op<'_>, group: &str, write: bool) -> Kind {
    if let Some(barrier) = MBarrier::of(op, group) {
        return if barrier.is_life { Kind::Write } else { Kind::Synchronize };
    }
    let fills = || fills_by_tma(op) || ClcTryCancelOp::cast(op).is_some();
    let is_async_dot = || WarpGroupDotOp::cast(op).is_some_and(|dot| dot.is_async());
    if AsyncCopyGlobalToLocalOp::cast(op).is_some() {
        Kind::BeginCopy
    } else if fills() {
        Kind::Fill
    } else if is_async_dot() {
        Kind::BeginDot
    } else if op.interface::<MmaV5>().is_some() || TmemCopyOp::cast(op).is_some() {
        Kind::HandOver
    } else if is_store_by_tma(op) {
        Kind::BeginStore
    } else if is_tensor_load(op) {
        Kind::BeginTensorLoad
    } else if is_tensor_store(op) {
        Kind::BeginTensorStore
    } else if write {
        Kind::Write
    } else {
        Kind::Read
    }
}

/// What `op` does to shared memory, its own scratch memory included.
pub fn accesses<'c>(op: Op<'c>, buffers: &Buffers<'c>) -> SmallVec<[Access; 4]> {
    let mut found = SmallVec::new();
    let mut touch = |value: Value<'c>, kind: Kind| {
        let touched = buffers.places_of(value).iter().map(|buffer| Access { buffer: *buffer, kind });
        found.extend(touched);
    };
    let is_buffer = |value: &Value<'c>| MemDescType::cast(value.ty()).is_some();
    let mut by_effect = |kind: EffectKind, resource: &str, on: EffectOn| {
        if resource != SHARED_MEMORY || !matches!(kind, EffectKind::Read | EffectKind::Write) {
            return;
        }
        let (EffectOn::Operand(name), Some(def)) = (on, op.def()) else { return };
        let Some(group) = def.operand_index(name) else { return };
        let (start, len) = def.operand_group(op, group);
        for value in op.operand_range(start, len) {
            touch(value, special(op, name, kind == EffectKind::Write));
        }
    };
    match op.def().map(|def| &def.effects) {
        Some(Effects::None) => {}
        Some(Effects::List(list)) => {
            list.iter().for_each(|effect| by_effect(effect.kind, effect.resource, effect.on));
        }
        Some(Effects::Dynamic(each)) => {
            each(op, &mut |effect| by_effect(effect.kind, effect.resource, effect.on));
        }
        // Waits only pass buffers on.
        Some(Effects::Unknown) if waits(op).is_none() && op.num_regions() == 0 => {
            op.operands().filter(is_buffer).for_each(|value| touch(value, Kind::Write));
        }
        // Other dialects know no buffers: their operations pass them on.
        Some(Effects::Unknown) | None => {}
    }
    if let Some(buffer) = buffers.of_op(op)
        && (buffers.all[buffer].is_scratch || op.num_operands() > 0)
    {
        // A buffer is filled when it is made; scratch memory is written, then read.
        found.push(Access { buffer, kind: Kind::Write });
    }
    found
}
