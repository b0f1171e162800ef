//! How what waits in a ring as it lies in memory is turned on its way to another buffer.
//!
//! `wgmma` takes operands of 8 and 32 bits along K only. Others wait in a ring in the order of memory; threads read them from there and
//! write them along K. In the layout of a load, whose threads hold rows, each element is written by itself. Here threads
//! take blocks that are long enough in both directions, and the ring is swizzled so that its banks serve them at once: the pair of
//! layouts that moves them in the fewest cycles, by the plans of both accesses. A thread turns its block in registers.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::buffer_plans;
use crate::ir_util::with_layout;
use crate::machine::internal;
use crate::plans;
use linear_layout::Encoding;
use linear_layout::encoding::{Blocked, SwizzledShared};
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::ir::{Attr, Op, Type, Walk};
use mlir_host::pass::PassResult;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::ops::{
    AsyncCopyGlobalToLocalOp, LocalAllocOp, LocalDeallocOp, LocalLoadOp, LocalStoreOp, MemDescIndexOp,
};
use ttopt_dialect::ttg::types::MemDescType;

/// Bytes of a word of shared memory, and of its widest access (PTX ISA, "ld.shared").
const WIDTHS: [u64; 2] = [4, 16];
/// A pair of layouts must take no more than this share of the cycles that those that are there take.
const WORTHWHILE: f64 = 0.9;
/// Of so many layouts of threads with the cheapest stores, loads are planned.
const TRIED: usize = 6;

/// A value that is read from a ring, and written as it is.
struct Staged<'c> {
    ring: Op<'c>,
    views: Vec<Op<'c>>,
    copies: Vec<AsyncCopyGlobalToLocalOp<'c>>,
    load: Op<'c>,
    store: Op<'c>,
}

impl<'c> Staged<'c> {
    /// What `load` reads, if copies alone fill its ring, it alone reads it, and it is written elsewhere unchanged.
    fn of(load: LocalLoadOp<'c>) -> Option<Self> {
        let ring = load.src().def_op().and_then(MemDescIndexOp::cast)?.op().operand(0).def_op()?;
        LocalAllocOp::cast(ring).filter(|alloc| alloc.src().is_none())?;
        let mut uses = load.op().result(0).uses().map(|(user, _)| user);
        let (Some(store), None) = (uses.next(), uses.next()) else { return None };
        LocalStoreOp::cast(store)?;
        let mut found = Self { ring, views: Vec::new(), copies: Vec::new(), load: load.op(), store };
        for (view, _) in ring.result(0).uses() {
            if LocalDeallocOp::cast(view).is_some() {
                continue;
            }
            MemDescIndexOp::cast(view)?;
            found.views.push(view);
            for (user, _) in view.result(0).uses() {
                match AsyncCopyGlobalToLocalOp::cast(user) {
                    Some(copy) => found.copies.push(copy),
                    None if user == found.load => {}
                    None => return None,
                }
            }
        }
        Some(found)
    }

    /// Cycles of the read and the write where the value has type `tensor` and slots of the ring type `slot`.
    fn cycles(&self, tensor: Type<'c>, slot: MemDescType<'c>, target: &TargetDesc) -> Option<f64> {
        let read = buffer_plans::access(tensor, slot, Direction::Load, target).ok()?;
        Some(read.access.cycles(target) + self.store_cycles(tensor, target)?)
    }

    fn store_cycles(&self, tensor: Type<'c>, target: &TargetDesc) -> Option<f64> {
        let to = MemDescType::cast(self.store.operand(1).ty())?;
        Some(buffer_plans::access(tensor, to, Direction::Store, target).ok()?.access.cycles(target))
    }

    /// Accesses of all copies, where slots have type `slot`.
    fn accesses(
        &self,
        slot: MemDescType<'c>,
        axis: &AxisInfoAnalysis<'c>,
        target: &TargetDesc,
    ) -> Option<usize> {
        let count = |copy: &AsyncCopyGlobalToLocalOp<'c>| {
            Some(plans::async_copy_to(copy.op(), slot, axis, target).ok()?.access.accesses.len())
        };
        self.copies.iter().map(count).sum()
    }

    /// The type of the value and the layout of the ring that move it in the fewest cycles, if these are worth it.
    fn best(&self, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Option<(Type<'c>, Attr<'c>)> {
        let slot = MemDescType::cast(self.load.operand(0).ty())?;
        let own = self.cycles(self.load.result(0).ty(), slot, target)?;
        let copied = self.accesses(slot, axis, target)?;
        let mut stores: Vec<(f64, Type<'c>)> = self
            .blocks()?
            .into_iter()
            .filter_map(|tensor| Some((self.store_cycles(tensor, target)?, tensor)))
            .collect();
        stores.sort_by(|a, b| a.0.total_cmp(&b.0));
        let rings: Vec<MemDescType<'c>> = self.rings(slot)?;
        let pairs =
            stores.iter().take(TRIED).flat_map(|(_, tensor)| rings.iter().map(move |ring| (*tensor, *ring)));
        let costs =
            pairs.filter_map(|(tensor, ring)| Some((self.cycles(tensor, ring, target)?, tensor, ring)));
        let (cycles, tensor, ring) = costs.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let as_wide = self.accesses(ring, axis, target)? <= copied;
        (cycles <= own * WORTHWHILE && as_wide).then(|| (tensor, ring.encoding()))
    }

    /// Layouts in which a thread holds a block of words or of the widest accesses in each direction.
    fn blocks(&self) -> Option<Vec<Type<'c>>> {
        let tensor = self.load.result(0).ty().as_tensor()?;
        let Ok(Encoding::Blocked(own)) = encoding(tensor.encoding()?) else { return None };
        let bytes = u64::from(tensor.element().bits()?.div_ceil(8));
        let (lanes, warps) =
            (own.threads_per_warp.iter().product::<u64>(), own.warps_per_cta.iter().product::<u64>());
        let shape: Vec<u64> = tensor.shape().iter().map(|size| *size as u64).collect();
        let [rows, columns] = shape[..] else { return None };
        let powers = |of: u64| (0..=of.ilog2()).map(move |n| 1u64 << n);
        let mut all = Vec::new();
        for (a, b) in WIDTHS.iter().flat_map(|a| WIDTHS.map(|b| ((*a / bytes).max(1), (b / bytes).max(1)))) {
            for (lane, warp) in powers(lanes).flat_map(|lane| powers(warps).map(move |warp| (lane, warp))) {
                // Nothing is held twice.
                let fits = a * lane * warp <= rows && b * (lanes / lane) * (warps / warp) <= columns;
                for order in [[1, 0], [0, 1]].into_iter().filter(|_| fits) {
                    let layout = Blocked {
                        size_per_thread: vec![a, b],
                        threads_per_warp: vec![lane, lanes / lane],
                        warps_per_cta: vec![warp, warps / warp],
                        order: order.to_vec(),
                        cga: own.cga.clone(),
                    };
                    let layout = encoding_attr(self.load.context(), &Encoding::Blocked(layout)).ok()?;
                    all.extend(with_layout(tensor, layout));
                }
            }
        }
        Some(all)
    }

    /// Types of slots like `slot`, whose rows of the widest accesses are swizzled in several ways.
    fn rings(&self, slot: MemDescType<'c>) -> Option<Vec<MemDescType<'c>>> {
        let Ok(Encoding::SwizzledShared(own)) = encoding(slot.encoding()) else { return None };
        let bytes = u64::from(slot.element().bits()?.div_ceil(8));
        let ways = [1, 2, 4, 8, 16].into_iter().map(|per_phase| (WIDTHS[1] / bytes, per_phase, 8));
        let layout = |(vec, per_phase, max_phase): (u64, u64, u64)| {
            let layout = SwizzledShared { vec: vec.max(1), per_phase, max_phase, ..own.clone() };
            let layout = encoding_attr(self.ring.context(), &Encoding::SwizzledShared(layout)).ok()?;
            like(slot, layout)
        };
        Some(std::iter::once(slot).chain(ways.filter_map(layout)).collect())
    }

    fn apply(&self, tensor: Type<'c>, layout: Attr<'c>) -> PassResult {
        let buffers = self.views.iter().map(|view| view.result(0)).chain([self.ring.result(0)]);
        for buffer in buffers {
            let ty = MemDescType::cast(buffer.ty()).and_then(|ty| like(ty, layout));
            buffer.set_type(ty.ok_or_else(|| internal(self.ring, "a ring that is no buffer"))?.ty());
        }
        self.load.result(0).set_type(tensor);
        Ok(())
    }
}

/// The type of a buffer like `ty` with another layout.
fn like<'c>(ty: MemDescType<'c>, layout: Attr<'c>) -> Option<MemDescType<'c>> {
    MemDescType::view(&ty.shape(), ty.element(), layout, ty.space(), true, &ty.alloc_shape())
}

/// Gives values that are read from rings and written as they are the layouts that move them in the fewest cycles.
pub fn turn_in_registers(module: Op<'_>, target: &TargetDesc) -> PassResult {
    let mut staged = Vec::new();
    module.walk(&mut |op| {
        staged.extend(LocalLoadOp::cast(op).and_then(Staged::of));
        Walk::Advance
    });
    if staged.is_empty() {
        return Ok(());
    }
    let axis = AxisInfoAnalysis::new(module);
    for one in staged {
        if let Some((tensor, layout)) = one.best(&axis, target) {
            one.apply(tensor, layout)?;
        }
    }
    Ok(())
}
