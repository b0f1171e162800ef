//! Stores to sectors that two warps write parts of.
//!
//! The L2 keeps sectors of 32 bytes. Where a row begins anywhere, as rows of an odd number of elements do, what one warp stores ends
//! within a sector that another warp stores the rest of. Parts that come soon one after the other are put together there; else each is
//! written by itself (docs/shared-memory.md has timings). So warps that have done something that takes time since they last waited for
//! each other wait once more before they store.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::ir_util::is_loop;
use crate::objective::arithmetic;
use crate::plans::{self, AccessFacts};
use linear_layout::Dim;
use linear_layout::target::TargetDesc;
use mlir_host::ir::Op;
use mlir_host::is_one_of;
use smallvec::SmallVec;
use std::cell::OnceCell;
use ttopt_dialect::tt::ops::{LoadOp, StoreOp};
use ttopt_dialect::ttg::ops::AsyncWaitOp;

/// Cycles of a warp after which it is as far from others as it may be.
pub(super) const APART: u32 = 64;
/// Bytes that the L2 writes together.
const SECTOR: u64 = 32;
/// Bytes of which an array's address is a multiple where it is one of all that launchers tell; such begin with a sector.
const KNOWN: u64 = 16;

/// Most warps of a CTA that wait for each other for this: more of them wait longer for the last one, and few such CTAs run beside each other.
const MOST_WARPS: u32 = 8;

/// Finds stores to sectors that other warps of a CTA store parts of, too.
pub(super) struct Sharing<'c, 't> {
    module: Op<'c>,
    target: &'t TargetDesc,
    analysis: OnceCell<AxisInfoAnalysis<'c>>,
}

impl<'c, 't> Sharing<'c, 't> {
    pub(super) fn new(module: Op<'c>, target: &'t TargetDesc) -> Self {
        Self { module, target, analysis: OnceCell::new() }
    }

    /// Whether `op` is such a store, in no loop: there a barrier would keep iterations apart, and the assembler from writing them out.
    pub(super) fn is_shared(&self, op: Op<'c>) -> bool {
        let shared = || {
            let store = StoreOp::cast(op).filter(|_| op.ancestor(is_loop).is_none())?;
            let layout = plans::layout(store.ptr().ty()).ok()?;
            let warps = 1..=MOST_WARPS.ilog2();
            let steps = (0..layout.in_bits(Dim::WARP)).filter_map(|bit| layout.basis_coords(Dim::WARP, bit));
            let steps: SmallVec<[_; 4]> =
                Some(steps).filter(|_| warps.contains(&layout.in_bits(Dim::WARP)))?.collect();
            // The only dimension along which each step goes.
            let single = |step: &SmallVec<[u64; 4]>| {
                let mut moves = (0..step.len()).filter(|d| step[*d] != 0);
                moves.next().filter(|_| moves.next().is_none())
            };
            if steps.iter().all(|step| single(step).is_none()) {
                return None;
            }
            let analysis = self.analysis.get_or_init(|| AxisInfoAnalysis::new(self.module));
            let facts = AccessFacts::of(op, analysis)?;
            let fast = *facts.order.first()?;
            // The nearest place along the row that another warp has.
            let next = steps.iter().filter(|step| single(step) == Some(fast)).map(|step| step[fast]).min()?;
            let within = facts.aligned % KNOWN != 0 || next * facts.bytes % SECTOR != 0;
            (within && facts.usual > next).then_some(())
        };
        self.target.cost.stored_part > self.target.cost.stored_sector && shared().is_some()
    }
}

/// Cycles by which warps come apart at `op`, up to [`APART`]: of loads nobody knows how many, and other operations take what they take.
pub(super) fn apart(op: Op<'_>, target: &TargetDesc) -> u32 {
    if is_one_of!(op, LoadOp | AsyncWaitOp) {
        return APART;
    }
    let layout = op.results().next().and_then(|result| plans::layout(result.ty()).ok());
    let cycles = layout.map_or(0.0, |layout| arithmetic::cycles_in(op, &layout, &target.cost));
    cycles.min(APART.into()) as u32
}
