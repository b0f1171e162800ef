//! Where control flow takes values, and where it goes.
//!
//! The answers come from MLIR's interfaces for regions, branches and loops, which `scf` and `cf` implement and hosted
//! operations get from their definitions ([`OpDef::successor_regions`](crate::def::OpDef), the trait `ReturnLike`).
//! So nobody who follows values asks for the names of operations.
//!
//! An *edge* leads from an operand of an operation to the value that it becomes: a block argument or a result. Edges
//! depend on the structure alone: a loop's initial value becomes its result also where the loop is known to run.

use crate::ffi;
use crate::ir::{Block, Op, Region, Value};
use mlir_sys::*;
use smallvec::SmallVec;
use std::ffi::{c_int, c_void};

/// Operands that become a value.
pub type Incoming<'c> = SmallVec<[(Op<'c>, usize); 2]>;

/// Where control can go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next<'c> {
    /// To the first block of a region.
    Region(Region<'c>),
    /// To a block.
    Block(Block<'c>),
    /// To what comes after an operation.
    After(Op<'c>),
}

type Edges<'c> = SmallVec<[(Op<'c>, usize, Value<'c>); 4]>;

extern "C" fn push_edge(out: *mut c_void, op: MlirOperation, operand: isize, target: MlirValue) {
    // SAFETY: `edges` and `incoming` pass such a list, the shim valid handles.
    unsafe {
        let out = &mut *out.cast::<Edges<'_>>();
        if let (Some(op), Some(target)) = (Op::from_raw(op), Value::from_raw(target)) {
            out.push((op, operand as usize, target));
        }
    }
}

/// Calls `visit` with the number of an operand of `op` and a value that it becomes, for all of them. What an operand
/// becomes several of is visited for each. The operation is one that verifies.
pub fn for_each_edge<'c>(op: Op<'c>, visit: &mut dyn FnMut(usize, Value<'c>)) {
    let mut edges: Edges<'c> = SmallVec::new();
    // SAFETY: the handle is valid; the list outlives the call.
    unsafe { ffi::mhEdges(op.raw(), push_edge, (&raw mut edges).cast()) }
    edges.into_iter().for_each(|(_, operand, target)| visit(operand, target));
}

/// The values that operand `operand` of `op` becomes; none where it only decides where control goes, or is no value of
/// control flow's.
pub fn becomes<'c>(op: Op<'c>, operand: usize) -> SmallVec<[Value<'c>; 2]> {
    let mut targets = SmallVec::new();
    for_each_edge(op, &mut |i, target| {
        if i == operand {
            targets.push(target);
        }
    });
    targets
}

/// The operands that become `value`, those of the operation around first, then in the order of regions. `None` where
/// control flow does not carry the value, or not all that becomes it is known: an induction variable, an argument
/// of a function.
pub fn incoming(value: Value<'_>) -> Option<Incoming<'_>> {
    let mut edges: Edges<'_> = SmallVec::new();
    // SAFETY: as above.
    let known = unsafe { ffi::mhIncoming(value.raw(), push_edge, (&raw mut edges).cast()) } != 0;
    known.then(|| edges.into_iter().map(|(op, operand, _)| (op, operand)).collect())
}

/// The values that become whatever `value` becomes, itself first: an argument of a loop's body and the loop's result.
pub fn twins(value: Value<'_>) -> SmallVec<[Value<'_>; 2]> {
    let mut twins = SmallVec::from_slice(&[value]);
    if let Some((op, operand)) = incoming(value).and_then(|from| from.first().copied()) {
        twins.extend(becomes(op, operand).into_iter().filter(|target| *target != value));
    }
    twins
}

extern "C" fn push_next(out: *mut c_void, kind: c_int, place: *mut c_void) {
    // SAFETY: `next` passes such a list, the shim valid handles of the kind.
    unsafe {
        let out = &mut *out.cast::<SmallVec<[Next<'_>; 2]>>();
        out.extend(match kind {
            0 => Region::from_raw(MlirRegion { ptr: place }).map(Next::Region),
            1 => Block::from_raw(MlirBlock { ptr: place }).map(Next::Block),
            _ => Op::from_raw(MlirOperation { ptr: place }).map(Next::After),
        });
    }
}

/// Where control can go right behind `op`. Behind an operation with regions that it controls, that is into them. `None`
/// where it is not known: behind operations with regions of other kinds, and what ends these, as returns do.
pub fn next(op: Op<'_>) -> Option<SmallVec<[Next<'_>; 2]>> {
    let mut out: SmallVec<[Next<'_>; 2]> = SmallVec::new();
    // SAFETY: as above.
    let known = unsafe { ffi::mhNext(op.raw(), push_next, (&raw mut out).cast()) } != 0;
    known.then_some(out)
}

/// Whether `op` is a loop (MLIR's `LoopLikeOpInterface`).
pub fn is_loop(op: Op<'_>) -> bool {
    // SAFETY: the handle is valid.
    unsafe { ffi::mhIsLoop(op.raw()) != 0 }
}

/// Whether control goes through the regions of `op`, and it is known how (MLIR's `RegionBranchOpInterface`).
pub fn is_region_branch(op: Op<'_>) -> bool {
    // SAFETY: the handle is valid.
    unsafe { ffi::mhIsRegionBranch(op.raw()) != 0 }
}
