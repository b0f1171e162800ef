//! How a ring in the order of memory is swizzled for threads that read it in another order.
//!
//! A load whose value threads use as they loaded it waits in a ring of rows (`source`). Its layout may hold a column of
//! several rows in the lanes of a warp, as operands of matrix instructions of 32-bit numbers do: all of them are in the same bank where rows are as long as
//! all banks together. A swizzle moves them apart, and leaves what a copy writes at once in one piece.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::buffer_plans;
use crate::plans;
use linear_layout::Encoding;
use linear_layout::encoding::SwizzledShared;
use linear_layout::plan::SharedAccessPlan;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::PassResult;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::ops::{
    AsyncCopyGlobalToLocalOp, LocalAllocOp, LocalDeallocOp, LocalLoadOp, is_memdesc_view,
};
use ttopt_dialect::ttg::types::MemDescType;

/// Bytes that stay in one piece, as many as the widest copy writes or more.
const PIECES: [u64; 3] = [16, 32, 64];
/// Rows in each of which pieces lie in the same order, and orders.
const PHASES: [u64; 4] = [1, 2, 4, 8];

/// A ring that copies fill, and from which threads read.
pub(super) struct Ring<'c> {
    alloc: Op<'c>,
    views: Vec<Op<'c>>,
    copies: Vec<Op<'c>>,
    loads: Vec<Op<'c>>,
}

impl<'c> Ring<'c> {
    /// The ring of `alloc`, if nothing else is done with it.
    pub(super) fn of(alloc: Op<'c>) -> Option<Self> {
        LocalAllocOp::cast(alloc).filter(|alloc| alloc.src().is_none())?;
        let Ok(Encoding::SwizzledShared(rows)) =
            encoding(MemDescType::cast(alloc.result(0).ty())?.encoding())
        else {
            return None;
        };
        let mut ring = Self { alloc, views: Vec::new(), copies: Vec::new(), loads: Vec::new() };
        let known = ring.follow(alloc.result(0));
        (rows.max_phase == 1 && rows.order.len() > 1 && known && !ring.copies.is_empty()).then_some(ring)
    }

    /// Whether all uses of `buffer` are views, copies to it and loads from it.
    fn follow(&mut self, buffer: Value<'c>) -> bool {
        buffer.uses().map(|(user, _)| user).all(|user| {
            if is_memdesc_view(user) {
                self.views.push(user);
                return self.follow(user.result(0));
            }
            if AsyncCopyGlobalToLocalOp::cast(user).is_some() {
                self.copies.push(user);
            } else if LocalLoadOp::cast(user).is_some() {
                self.loads.push(user);
            } else {
                return LocalDeallocOp::cast(user).is_some();
            }
            true
        })
    }

    /// How all is read, each load as what `types` says, where buffers have the layout `layout`, or their own.
    fn reads(
        &self,
        types: &dyn Fn(Op<'c>) -> Type<'c>,
        layout: Option<Attr<'c>>,
        target: &TargetDesc,
    ) -> Option<Vec<SharedAccessPlan>> {
        let read = |load: &Op<'c>| {
            let buffer = in_layout(load.operand(0), layout)?;
            buffer_plans::access(types(*load), buffer, Direction::Load, target).ok()
        };
        self.loads.iter().map(read).collect()
    }

    /// Accesses of all copies where buffers have the layout `layout`, or their own.
    fn accesses(
        &self,
        layout: Option<Attr<'c>>,
        axis: &AxisInfoAnalysis<'c>,
        target: &TargetDesc,
    ) -> Option<usize> {
        let count = |copy: &Op<'c>| {
            let buffer = in_layout(AsyncCopyGlobalToLocalOp::cast(*copy)?.result(), layout)?;
            Some(plans::async_copy_to(*copy, buffer, axis, target).ok()?.access.accesses.len())
        };
        self.copies.iter().map(count).sum()
    }

    /// The swizzle with which it is read in the fewest cycles, if there is one that is better than none, and copies are as wide.
    fn best(&self, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Option<Attr<'c>> {
        self.swizzled(&|load| load.result(0).ty(), axis, target)?.1
    }

    /// Cycles of a warp in which all is read then, each load as what `types` says.
    pub(super) fn least(
        &self,
        types: &dyn Fn(Op<'c>) -> Type<'c>,
        axis: &AxisInfoAnalysis<'c>,
        target: &TargetDesc,
    ) -> Option<f64> {
        Some(self.swizzled(types, axis, target)?.0)
    }

    /// The fewest cycles in which all is read, each load as what `types` says, and the swizzle for that; no swizzle where none is better.
    fn swizzled(
        &self,
        types: &dyn Fn(Op<'c>) -> Type<'c>,
        axis: &AxisInfoAnalysis<'c>,
        target: &TargetDesc,
    ) -> Option<(f64, Option<Attr<'c>>)> {
        let slot = MemDescType::cast(self.alloc.result(0).ty())?;
        let Ok(Encoding::SwizzledShared(rows)) = encoding(slot.encoding()) else { return None };
        let own = self.reads(types, None, target)?;
        let cycles =
            |plans: &[SharedAccessPlan]| plans.iter().map(|plan| plan.access.cycles(target)).sum::<f64>();
        let mut best = (cycles(&own), None);
        if own.iter().all(|plan| plan.access.wavefronts <= plan.access.minimum) {
            return Some(best);
        }
        let (copied, bytes) =
            (self.accesses(None, axis, target)?, u64::from(slot.element().bits()?.div_ceil(8)));
        for layout in others(&rows, 8 * bytes) {
            let layout = encoding_attr(self.alloc.context(), &Encoding::SwizzledShared(layout)).ok()?;
            let Some(plans) = self.reads(types, Some(layout), target) else { continue };
            let there = cycles(&plans);
            let is_as_wide =
                || self.accesses(Some(layout), axis, target).is_some_and(|count| count <= copied);
            if there < best.0 && is_as_wide() {
                best = (there, Some(layout));
            }
        }
        Some(best)
    }
}

/// Swizzles of `rows`, whose elements have `bits` bits, that leave what the widest copy writes in one piece.
pub(super) fn others(rows: &SwizzledShared, bits: u64) -> impl Iterator<Item = SwizzledShared> + '_ {
    let phases = || PHASES.iter().flat_map(|rows| PHASES.map(|orders| (*rows, orders)));
    PIECES.iter().flat_map(move |piece| {
        phases().map(move |(per_phase, max_phase)| SwizzledShared {
            vec: 8 * piece / bits,
            per_phase,
            max_phase,
            ..rows.clone()
        })
    })
}

/// The type of a buffer, with the layout `layout` where there is one.
fn in_layout<'c>(buffer: Value<'c>, layout: Option<Attr<'c>>) -> Option<MemDescType<'c>> {
    let ty = MemDescType::cast(buffer.ty())?;
    let Some(layout) = layout else { return Some(ty) };
    MemDescType::view(&ty.shape(), ty.element(), layout, ty.space(), true, &ty.alloc_shape())
}

/// Swizzles rings of rows so that banks serve at once what threads read at once.
pub fn swizzle_rings(module: Op<'_>, target: &TargetDesc) -> PassResult {
    let mut rings = Vec::new();
    module.walk(&mut |op| {
        rings.extend(Ring::of(op));
        Walk::Advance
    });
    if rings.is_empty() {
        return Ok(());
    }
    let axis = AxisInfoAnalysis::new(module);
    for ring in rings {
        let Some(layout) = ring.best(&axis, target) else { continue };
        for buffer in ring.views.iter().chain([&ring.alloc]).map(|op| op.result(0)) {
            if let Some(ty) = in_layout(buffer, Some(layout)) {
                buffer.set_type(ty.ty());
            }
        }
    }
    Ok(())
}
