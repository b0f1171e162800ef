//! Loads of a loop as copies that write shared memory past the registers.
//!
//! Where each lane writes at an address of its own, the copy fills the buffer that the load's result fills, if it takes no more
//! instructions than the load and the stores that it replaces, or one of swizzled rows where that costs less: the other is for what threads
//! load, and need not have in one piece what the widest copy writes. Elsewhere the lanes of a warp write one after the other.
//!
//! There, which thread copies what follows from the buffer: pointers get the layout in which each lane points to what belongs
//! where it writes. That takes no registers for data and no stores to shared memory. Memory cannot be swizzled, since what one copy
//! writes lies as its lanes do: rows that are read at once are kept apart by which rows a copy writes, and by padding between
//! copies. The buffer is the one of a few such that is read in the fewest cycles; it is chosen where it takes no more
//! instructions than the load and the stores that it replaces, no more cycles of shared memory, and where every warp issues
//! the copies, so that waits can count them.

use super::swizzled;
use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::buffer_plans::{self, BufferLayout};
use crate::ir_util::with_layout;
use crate::plans::{self, AccessFacts, word_bits};
use linear_layout::encoding::{Linear, PaddedShared, SwizzledShared};
use linear_layout::plan::LdsLoadPlan;
use linear_layout::target::{Direction, TargetDesc};
use linear_layout::{Dim, Encoding, LinearLayout};
use mlir_host::ir::{Attr, Op, Type};
use mlir_host::match_op;
use ttopt_dialect::tt::ops::LoadOp;
use ttopt_dialect::ttg::attrs::{encoding, encoding_attr};
use ttopt_dialect::ttg::is_cut_between_tiles;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, LocalAllocOp, LocalLoadOp, MemDescSubsliceOp};
use ttopt_dialect::ttg::types::MemDescType;

/// Bits of a lane in a copy: the widest first.
const WIDTHS: [u32; 2] = [128, 32];
/// Bytes of padding after what a warp's copy writes.
const PADS: [u64; 4] = [16, 32, 64, 128];

/// Where loads are to be copied.
pub struct Copies<'a, 'c> {
    /// What is known of addresses.
    pub axis: &'a AxisInfoAnalysis<'c>,
    /// Warps of the program.
    pub warps: u64,
    /// The GPU.
    pub target: &'a TargetDesc,
}

impl<'c> Copies<'_, 'c> {
    /// The layout of pointers in which `op`, a load or such a copy, is copied to `buffer`; `None` where it cannot be.
    pub fn pointers(&self, op: Op<'c>, buffer: MemDescType<'c>) -> Option<Attr<'c>> {
        let addresses = AccessFacts::of(op, self.axis)?.addresses(u64::MAX);
        self.widths(op).find_map(|width| {
            let (layout, pointers) = self.layout(op, buffer, width)?;
            let plan = buffer_plans::lds_load(pointers, buffer, &addresses, self.target).ok()?;
            (plan.sources.is_none() && plan.access.inactive.is_empty()).then_some(layout)
        })
    }

    /// The buffer to which `load` is copied in place of `alloc`, which is filled with what it gives; `None` where a load to
    /// registers costs less, or nothing else is possible.
    pub fn buffer(&self, load: LoadOp<'c>, alloc: LocalAllocOp<'c>) -> Option<MemDescType<'c>> {
        let own = MemDescType::cast(alloc.result().ty())?;
        if self.target.primitives.async_to_lds {
            return self.own_buffer(load, alloc, own);
        }
        let readers = readers(alloc)?;
        let reads = |buffer: MemDescType<'c>| self.read_cycles(&readers, buffer);
        let loads = plans::access(load.op(), self.axis, self.target).ok()?.accesses.len();
        let stores = buffer_plans::access(load.result().ty(), own, Direction::Store, self.target).ok()?;
        let (instructions, most) =
            (loads + stores.access.accesses.len(), reads(own)? + stores.access.cycles(self.target));
        let widths = self.widths(load.op());
        widths.filter(|width| self.count(load, own, *width) <= instructions as u64).find_map(|width| {
            let all = self
                .buffers(load, own, width)
                .into_iter()
                .filter_map(|buffer| Some((reads(buffer)?, buffer)));
            let (cycles, best) = all.min_by(|a, b| a.0.total_cmp(&b.0))?;
            (cycles <= most && self.pointers(load.op(), best).is_some()).then_some(best)
        })
    }

    /// The buffer that is copied to where lanes write where they say: `own`, or one of swizzled rows.
    fn own_buffer(
        &self,
        load: LoadOp<'c>,
        alloc: LocalAllocOp<'c>,
        own: MemDescType<'c>,
    ) -> Option<MemDescType<'c>> {
        let loads = plans::access(load.op(), self.axis, self.target).ok()?;
        let stores = buffer_plans::access(load.result().ty(), own, Direction::Store, self.target).ok()?;
        let most = loads.accesses.len() + stores.access.accesses.len();
        let readers = readers(alloc);
        let cycles = |buffer: MemDescType<'c>| {
            let copies = plans::async_copy_to(load.op(), buffer, self.axis, self.target).ok()?;
            let count = copies.access.accesses.len();
            let reads = readers.as_ref().map_or(Some(0.0), |readers| self.read_cycles(readers, buffer))?;
            let all = reads + copies.access.cycles(self.target) + count as f64 * self.target.cost.request;
            (count <= most).then_some(all)
        };
        let like = |layout| MemDescType::new(&own.shape(), own.element(), layout, own.space(), true);
        let mut buffers: Vec<MemDescType<'c>> = like(own.encoding()).into_iter().collect();
        if readers.is_some() {
            let tensor = load.result().ty().as_tensor()?;
            let rows = SwizzledShared {
                vec: 1,
                per_phase: 1,
                max_phase: 1,
                order: AccessFacts::of(load.op(), self.axis)?.order.to_vec(),
                cga: encoding(tensor.encoding()?).ok()?.cga_layout(),
            };
            let others = swizzled::others(&rows, u64::from(word_bits(own.element()).ok()?));
            let attr = |layout| encoding_attr(load.op().context(), &Encoding::SwizzledShared(layout)).ok();
            buffers.extend(others.filter_map(attr).filter_map(like));
        }
        let costs = buffers.into_iter().filter_map(|buffer| Some((cycles(buffer)?, buffer)));
        let best = costs.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, buffer)| buffer);
        best.filter(|_| gives_zero_where_masked(load.op()))
    }

    /// Cycles in which all of `readers` are read from `buffer`.
    fn read_cycles(&self, readers: &[Reader<'c>], buffer: MemDescType<'c>) -> Option<f64> {
        let cycles = |(ty, part): &Reader<'c>| {
            let buffer = part.map_or(Some(buffer), |part| part_of(buffer, &part.shape()))?;
            let plan = buffer_plans::access(*ty, buffer, Direction::Load, self.target).ok()?;
            Some(plan.access.cycles(self.target))
        };
        readers.iter().map(cycles).sum()
    }

    /// Bits of a lane in copies of the target.
    fn widths(&self, op: Op<'c>) -> impl Iterator<Item = u32> + use<'c> {
        let has = self.target.primitives;
        let possible = has.lds_loads && gives_zero_where_masked(op);
        WIDTHS.into_iter().filter(move |width| possible && (*width == 32 || has.lds_loads_b128))
    }

    /// Instructions of a thread that copy a buffer like `buffer`.
    fn count(&self, load: LoadOp<'c>, buffer: MemDescType<'c>, width: u32) -> u64 {
        let elements: i64 = buffer.shape().iter().product();
        let bits = word_bits(load.result().ty()).map_or(u64::MAX, u64::from);
        let threads = self.warps * self.target.lanes as u64;
        (elements as u64).saturating_mul(bits) / (u64::from(width) * threads)
    }

    /// The layout of pointers that are copied to `buffer`, and their type.
    fn layout(&self, op: Op<'c>, buffer: MemDescType<'c>, width: u32) -> Option<(Attr<'c>, Type<'c>)> {
        let memory = BufferLayout::of(buffer).ok()?;
        let bits = word_bits(buffer.element()).ok()?;
        let layout = LdsLoadPlan::pointers(&memory.layout, bits, width, self.warps, self.target)?;
        let layout = encoding_attr(op.context(), &Encoding::Linear(Linear { layout })).ok()?;
        Some((layout, with_layout(op.operand(0).ty().as_tensor()?, layout)?))
    }

    /// Buffers like `own` that copies of `width` bits a lane can fill: rows of memory as long as a copy, then some of the rows, in
    /// several ways.
    fn buffers(&self, load: LoadOp<'c>, own: MemDescType<'c>, width: u32) -> Vec<MemDescType<'c>> {
        let made = || {
            let (facts, bits) = (AccessFacts::of(load.op(), self.axis)?, word_bits(own.element()).ok()?);
            let shape: Vec<u64> = own.shape().iter().map(|size| *size as u64).collect();
            let steps = |dim: &usize| {
                let dim = *dim;
                (0..shape[dim].ilog2()).map(move |bit| (dim, 1u64 << bit))
            };
            let (first, others) = facts.order.split_first()?;
            let mut row: Vec<(usize, u64)> = steps(first).collect();
            let rows: Vec<(usize, u64)> = others.iter().flat_map(steps).collect();
            let unit = width.checked_div(bits)?.checked_ilog2()?;
            let reach = (unit + self.target.lanes.ilog2()) as usize;
            let beyond = row.split_off(row.len().min(reach));
            let wanted = reach.checked_sub(row.len()).filter(|wanted| *wanted <= rows.len())?;
            let mut all = Vec::new();
            for start in 0..=rows.len() - wanted {
                // What one copy has of rows, and the rest: in order, or from there on.
                let chosen = rows[start..start + wanted].iter();
                let (after, before) = (&rows[start + wanted..], &rows[..start]);
                for rest in [[before, after], [after, before]] {
                    let order =
                        row.iter().chain(chosen.clone()).chain(rest.into_iter().flatten()).chain(&beyond);
                    let layout = memory(order.copied(), &shape)?;
                    for pad in PADS.map(|bytes| bytes * 8 / u64::from(bits)) {
                        let intervals = vec![(1u64 << reach, pad)];
                        let layout = PaddedShared { intervals, layout: layout.clone() };
                        let attr = encoding_attr(load.op().context(), &Encoding::PaddedShared(layout)).ok();
                        all.extend(attr.and_then(|attr| {
                            MemDescType::new(&own.shape(), own.element(), attr, own.space(), true)
                        }));
                    }
                }
            }
            Some(all)
        };
        made().unwrap_or_default()
    }
}

/// The type that a buffer is read as, with the part of it that is read, where that is not all of it.
type Reader<'c> = (Type<'c>, Option<MemDescType<'c>>);

/// All that read `alloc`; `None` where anything else uses it.
fn readers<'c>(alloc: LocalAllocOp<'c>) -> Option<Vec<Reader<'c>>> {
    let mut found = Vec::new();
    for (user, _) in alloc.result().uses() {
        let part = MemDescSubsliceOp::cast(user);
        let seen = part.map_or(alloc.result(), |part| part.result());
        let loads: Vec<Op<'c>> =
            if part.is_some() { seen.uses().map(|(user, _)| user).collect() } else { vec![user] };
        for load in loads {
            let part = part.and_then(|_| MemDescType::cast(seen.ty()));
            found.push((LocalLoadOp::cast(load)?.op().result(0).ty(), part));
        }
    }
    Some(found)
}

/// The type of a part of `buffer`, where it can be cut off.
pub fn part_of<'c>(buffer: MemDescType<'c>, shape: &[i64]) -> Option<MemDescType<'c>> {
    let fits = shape.len() == buffer.rank() && is_cut_between_tiles(buffer, shape);
    let (layout, alloc) = (buffer.encoding(), buffer.alloc_shape());
    let part = MemDescType::view(shape, buffer.element(), layout, buffer.space(), buffer.mutable(), &alloc);
    part.filter(|_| fits)
}

/// The layout of memory in which offsets are steps along dimensions in this order.
pub fn memory(order: impl Iterator<Item = (usize, u64)>, shape: &[u64]) -> Option<LinearLayout> {
    let basis = |(dim, step): (usize, u64)| {
        let mut basis = vec![0; shape.len()];
        basis[dim] = step;
        basis
    };
    let outs: Vec<(Dim, u64)> = shape.iter().enumerate().map(|(dim, size)| (Dim::out(dim), *size)).collect();
    let bases = [(Dim::OFFSET, order.map(basis).collect()), (Dim::BLOCK, Vec::<Vec<u64>>::new())];
    LinearLayout::from_bases_sized(&bases, &outs, true).ok()
}

/// Whether what `op` reads where it is masked off is zero.
fn gives_zero_where_masked(op: Op<'_>) -> bool {
    match_op!(op, {
        LoadOp(load) => load.other().is_none_or(plans::is_zero),
        AsyncCopyGlobalToLocalOp(copy) => plans::masks_by_zeros(copy),
        _ => false,
    })
}
