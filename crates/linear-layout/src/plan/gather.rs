//! Gathers along one dimension and histograms: which element is needed is known at run time only.

use smallvec::SmallVec;
use std::fmt;

use crate::f2::{self, Echelon, Vectors};
use crate::plan::access::ThreadBases;
use crate::plan::convert::Cost;
use crate::plan::detour::{Detour, Slots};
use crate::plan::display::{Count, write_cost};
use crate::plan::scan::{axis_places, contained_outside, distinct_registers, equal_outside};
use crate::plan::shared::SharedAccessPlan;
use crate::plan::shuffle::ShuffleInstruction;
use crate::plan::space::Distributed;
use crate::plan::wavefront::Served;
use crate::plan::{PlanError, PlanResult, ThreadMasks, Unsupported, fewest};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// How many wavefronts a warp takes that reads words at random: the expected number of hits of the bank
/// that is hit most, 32 throws into 32 bins.
const RANDOM_CONFLICTS: f64 = 3.5;

/// Bits of what memory keeps together where it is swizzled, and how many of these a row has.
const UNIT_BITS: u32 = 128;
const ROW_UNITS: u32 = 8;

/// A gather within warps (paper, Section 5.5).
///
/// For each index, the lane to read is the reader's own with the bits `lane_bits` replaced by bits of the
/// index, and the register is one of as many candidates as registers hold different places along the axis:
/// one shuffle each, of which the one that the index names is kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatherShuffle {
    /// `(axis bit, lane bit)`: bits of the index that choose the lane.
    pub lane_bits: Vec<(u32, u32)>,
    /// Bits of the index that choose among the candidates, the first one the lowest bit of their number.
    pub register_bits: Vec<u32>,
    /// For each register of the result, its candidates: source registers.
    pub candidates: Vec<Vec<u32>>,
}

/// A gather through shared memory: store everything, look up each index.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatherShared {
    /// From `offset`, in elements, and `block` to the dimensions of the source. A block looks an element up
    /// in its own memory, at the offset where this layout has it there.
    pub memory: LinearLayout,
    /// How the source is stored.
    pub store: SharedAccessPlan,
    /// Lookups of one thread: the registers of the result that are not copies.
    pub lookups: Vec<u32>,
    /// Where the line of a thread's register 0 begins: its part of the offset, in elements.
    pub address: ThreadBases,
    /// XORed into it for each lookup.
    pub offsets: Vec<u64>,
    /// XORed into it for each bit of the index that is set.
    pub index: Vec<u64>,
    /// Bytes of shared memory of one block.
    pub shared_bytes: u64,
}

/// How a gather is done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Gather {
    /// By shuffles.
    Shuffle(GatherShuffle),
    /// Through shared memory.
    Shared(Box<GatherShared>),
}

/// How elements are gathered along one dimension.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GatherPlan {
    /// The dimension that the indices run along.
    pub axis: Dim,
    /// What is done.
    pub gather: Gather,
    /// A conversion of the source first, where a block lacks elements that its indices may name.
    pub detour: Option<Detour>,
    /// For each register of the result, the register that holds the same element and is looked up.
    pub copies: Vec<u32>,
    /// What it costs; wavefronts of lookups as expected of random indices.
    pub cost: Cost,
    /// Name of the target.
    pub target: &'static str,
}

impl GatherPlan {
    /// The cheaper plan for a source in the layout `source` and indices, and a result, in the layout
    /// `indices`. The shapes may differ along the axis only.
    ///
    /// # Errors
    /// No such axis, shapes that differ elsewhere, layouts that are not surjective, more lanes than the
    /// target has, or more elements in a block than its shared memory holds where shuffles do not do.
    pub fn new(
        source: &LinearLayout,
        indices: &LinearLayout,
        axis: Dim,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<GatherPlan> {
        let shuffle = Self::by_shuffles(source, indices, axis, elem_bits, target)?;
        match (shuffle, Self::through_shared(source, indices, axis, elem_bits, target)) {
            (Some(shuffle), Ok(shared)) if shuffle.cost.cycles > shared.cost.cycles => Ok(shared),
            (Some(shuffle), _) => Ok(shuffle),
            (None, shared) => shared,
        }
    }

    /// The plan by shuffles; `None` when elements of one line lie in several warps, or lie differently
    /// within a warp than the indices do.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn by_shuffles(
        source: &LinearLayout,
        indices: &LinearLayout,
        axis: Dim,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<Option<GatherPlan>> {
        let (s, i, mask) = both(source, indices, axis, target)?;
        let stays = |c: &Vectors| c.iter().all(|c| c & mask == 0);
        let same = equal_outside(&s.lane, &i.lane, mask)
            && equal_outside(&s.warp, &i.warp, mask)
            && equal_outside(&s.block, &i.block, mask)
            && contained_outside(&i.reg, &s.reg, mask);
        let Ok(places) = axis_places(source, axis) else { return Ok(None) };
        if !(stays(&s.warp) && stays(&s.block) && same) {
            return Ok(None);
        }
        let place = |of: Dim| places.iter().zip(0u32..).filter(move |p| p.0.0 == of);
        let lane_bits: Vec<(u32, u32)> = place(Dim::LANE).map(|(p, bit)| (bit, p.1)).collect();
        let registers: Vec<(u32, u32)> = place(Dim::REGISTER).map(|(p, bit)| (bit, p.1)).collect();
        // Registers of the source by their place across the axis.
        let across: Vectors = s.reg.iter().map(|c| if c & mask == 0 { *c } else { 0 }).collect();
        let line = Echelon::of(&across);
        let candidates: Option<Vec<Vec<u32>>> = (0..1u64 << i.reg.len())
            .map(|r| {
                let base = line.express(f2::mul(&i.reg, r) & !mask)?;
                let along =
                    |x: u64| registers.iter().enumerate().fold(0, |a, (k, p)| a | (x >> k & 1) << p.1);
                Some((0..1u64 << registers.len()).map(|x| (base | along(x)) as u32).collect())
            })
            .collect();
        let Some(candidates) = candidates else { return Ok(None) };
        let results = distinct_registers(&i).len() as u64;
        let words = u64::from(elem_bits.div_ceil(32));
        let mut cost = Cost { shuffles: (results * words) << registers.len(), ..Cost::default() };
        cost.selects = results * words * ((1 << registers.len()) - 1);
        cost.address_ops = results * (lane_bits.len() as u64 + registers.len() as u64);
        let each = ShuffleInstruction::for_index(target).cycles(target);
        let warps = (1u64 << i.warp.len()) as f64;
        cost.cycles = target.cost.shuffle_latency
            + warps
                * (cost.shuffles as f64 * each + (cost.selects + cost.address_ops) as f64 * target.cost.alu);
        let register_bits = registers.iter().map(|p| p.0).collect();
        let gather = Gather::Shuffle(GatherShuffle { lane_bits, register_bits, candidates });
        let copies = i.representatives();
        Ok(Some(GatherPlan { axis, gather, detour: None, copies, cost, target: target.name }))
    }

    /// The plan through shared memory.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn through_shared(
        source: &LinearLayout,
        indices: &LinearLayout,
        axis: Dim,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<GatherPlan> {
        let (s, i, mask) = both(source, indices, axis, target)?;
        let rest: Vec<Dim> = source.out_dims().filter(|&d| d != axis).collect();
        let order: Vec<Dim> = rest.iter().copied().chain([axis]).collect();
        let outs: Vec<(Dim, u32)> = order.iter().map(|&d| (d, source.out_bits(d))).collect();
        let detour = match with_what_is_asked(&s, &i, mask) {
            Some(slots) => Some(Detour::new(source, slots.layout(&outs)?, &[elem_bits], &[], target)?),
            None => None,
        };
        let source = detour.as_ref().map_or(source, |d| &d.layout);
        let s = Distributed::new(source, &order, target)?;
        // Memory holds what one block holds; the order of dimensions that stores widest.
        let last_first: Vec<Dim> = std::iter::once(axis).chain(rest.iter().rev().copied()).collect();
        let axis_last: Vec<Dim> = rest.iter().rev().copied().chain([axis]).collect();
        let lookups = distinct_registers(&i);
        let words = u64::from(elem_bits.div_ceil(32));
        let reads = lookups.len() as u64 * words * Served::vector(4, Direction::Load, target).phases();
        let mut ways = Vec::with_capacity(4);
        for order in [last_first, axis_last] {
            for swizzled in [false, true] {
                let memory = plain_memory(&s, &outs, &order, swizzled.then_some(elem_bits.max(8)))?;
                let store =
                    SharedAccessPlan::new(source, &memory, elem_bits.max(8), Direction::Store, target)?;
                let line = Lines::new(&memory, axis, mask)?;
                let lane: SmallVec<[u64; 6]> = line.of(&i.lane)?;
                let each = lookup_wavefronts(&lane, store.access.storage_bits.max(8), target);
                let wavefronts = (lookups.len() as u64 * words) as f64 * each;
                ways.push((memory, store, line, lane, wavefronts));
            }
        }
        let cycles = |(_, store, _, _, wavefronts): &(_, SharedAccessPlan, _, _, f64)| {
            store.cycles(target) + wavefronts * target.cost.wavefront
        };
        let (memory, store, line, lane, _) =
            fewest(ways, cycles).ok_or(PlanError::Internal { what: "no order of memory" })?;
        let address = ThreadBases { lane, warp: line.of(&i.warp)?, block: line.of_blocks(&i.block)? };
        let registers: Vectors = line.of(&i.reg)?;
        let offsets = lookups.iter().map(|&r| f2::mul(&registers, r.into())).collect();
        let index = line.of_index()?;
        let bytes = u64::from(store.access.storage_bits.max(8) / 8);
        let shared_bytes = fitting(bytes.checked_shl(memory.in_bits(Dim::OFFSET)), target)?;
        let n = lookups.len() as u64;
        let cost = Cost {
            stores: store.access.count,
            loads: n,
            barriers: 1,
            permutes: store.access.packing_ops,
            address_ops: store.access.address_ops + n,
            wavefronts: store.access.wavefronts + (reads as f64 * RANDOM_CONFLICTS) as u64,
            minimum_wavefronts: store.access.minimum + reads,
            ..Cost::default()
        };
        let load = reads as f64 * RANDOM_CONFLICTS * target.cost.wavefront
            + n as f64 * (target.cost.issue + target.cost.alu);
        let warps = (1u64 << i.warp.len()) as f64;
        let fixed = 1.5 * target.cost.shared_latency + target.cost.block_barrier;
        let mut cost = Cost { cycles: fixed + warps * (store.cycles(target) + load), ..cost };
        if let Some(detour) = &detour {
            detour.add_to(&mut cost, target);
        }
        let shared = GatherShared { memory, store, lookups, address, offsets, index, shared_bytes };
        let gather = Gather::Shared(Box::new(shared));
        Ok(GatherPlan { axis, gather, detour, copies: i.representatives(), cost, target: target.name })
    }
}

/// Bytes that a block of the target can have: what is looked up at random lies there as a whole.
fn fitting(bytes: Option<u64>, target: &TargetDesc) -> PlanResult<u64> {
    let (needed, budget) = (bytes.unwrap_or(u64::MAX), target.shared_bytes);
    if needed > budget { Err(PlanError::SharedBudget { needed, budget }) } else { Ok(needed) }
}

impl GatherPlan {
    /// Shared memory needed in each block, in bytes.
    pub fn shared_bytes(&self) -> u64 {
        let own = match &self.gather {
            Gather::Shuffle(_) => 0,
            Gather::Shared(shared) => shared.shared_bytes,
        };
        self.detour.as_ref().map_or(0, Detour::shared_bytes).max(own)
    }
}

impl fmt::Display for GatherPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conversions = self.detour.iter().flat_map(|d| &d.before);
        conversions.into_iter().try_for_each(|c| write!(f, "convert the source first: {c}"))?;
        match &self.gather {
            Gather::Shuffle(g) => {
                let n = Count(1 << g.register_bits.len(), "shuffle");
                writeln!(f, "gather along {} within warps: {n} for each result", self.axis)?;
            }
            Gather::Shared(g) => {
                let (bytes, n) = (Count(g.shared_bytes, "byte"), Count(g.lookups.len() as u64, "lookup"));
                writeln!(f, "gather along {} through {bytes} of shared memory, {n}", self.axis)?;
                write!(f, "  store: {}", g.store)?;
            }
        }
        write_cost(f, &self.cost, self.target)
    }
}

/// Where elements lie in the memory of the block that holds them, packed with the axis last.
struct Lines {
    own: Echelon,
    /// The first element of each block.
    blocks: Vectors,
    /// The bits of the axis, and all above.
    mask: u64,
    bits: u32,
}

impl Lines {
    fn new(memory: &LinearLayout, axis: Dim, mask: u64) -> PlanResult<Lines> {
        let order: Vec<Dim> = memory.out_dims().filter(|&d| d != axis).chain([axis]).collect();
        let memory = memory.transpose_outs(&order)?;
        let own = Echelon::of(memory.columns_of(Dim::OFFSET));
        let blocks = Vectors::from_slice(memory.columns_of(Dim::BLOCK));
        Ok(Lines { own, blocks, mask, bits: memory.total_out_bits() })
    }

    fn offset(&self, element: u64) -> PlanResult<u64> {
        let missing = || PlanError::Internal { what: "lines of the source lie in other blocks" };
        self.own.express(element).ok_or_else(missing)
    }

    /// The offset of the first element of the line that each column leads to.
    fn of<C: FromIterator<u64>>(&self, columns: &[u64]) -> PlanResult<C> {
        columns.iter().map(|c| self.offset(c & !self.mask)).collect()
    }

    /// As [`of`](Self::of), for the bits of a block's number, which lead to another memory.
    fn of_blocks<C: FromIterator<u64>>(&self, columns: &[u64]) -> PlanResult<C> {
        let start = |bit: usize| self.blocks.get(bit).copied().unwrap_or(0);
        columns.iter().enumerate().map(|(bit, c)| self.offset(c & !self.mask ^ start(bit))).collect()
    }

    /// What each bit of an index contributes to the offset.
    fn of_index(&self) -> PlanResult<Vec<u64>> {
        (0..self.bits).map(|b| 1u64 << b).filter(|b| self.mask & b != 0).map(|bit| self.offset(bit)).collect()
    }
}

/// Both layouts over the packing of the source, and the bits of the axis.
fn both(
    source: &LinearLayout,
    indices: &LinearLayout,
    axis: Dim,
    target: &TargetDesc,
) -> PlanResult<(Distributed, Distributed, u64)> {
    if !source.has_out_dim(axis) {
        let have = source.out_dims().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
        return Err(crate::Error::UnknownDim { side: "output", dim: axis, have }.into());
    }
    let fits = |d: Dim| d == axis || source.out_size(d) == indices.out_size(d);
    if indices.num_out_dims() != source.num_out_dims() || !source.out_dims().all(fits) {
        let shape = |l: &LinearLayout| {
            l.out_dims()
                .map(|d| format!("{d}: {}", l.out_size(d).unwrap_or(1)))
                .collect::<Vec<_>>()
                .join(", ")
        };
        let (expected, got) = (shape(source), shape(indices));
        return Err(crate::Error::DimMismatch { what: "gather", expected, got }.into());
    }
    // The axis goes last, so that its length does not move the other dimensions.
    let order: Vec<Dim> = source.out_dims().filter(|&d| d != axis).chain([axis]).collect();
    let below: u32 = order.iter().filter(|&&d| d != axis).map(|&d| source.out_bits(d)).sum();
    let mask = !f2::low_mask(below);
    Ok((Distributed::new(source, &order, target)?, Distributed::new(indices, &order, target)?, mask))
}

/// `None` when every block has all lines that its indices run along, and whole. Otherwise a layout of the
/// source in which it has.
fn with_what_is_asked(s: &Distributed, i: &Distributed, mask: u64) -> Option<Slots> {
    let axis = (0..s.out_bits).map(|b| 1u64 << b).filter(|u| u & mask != 0);
    let asked: Vectors = i.reg.iter().chain(&i.lane).chain(&i.warp).map(|c| c & !mask).chain(axis).collect();
    let own = Echelon::of(&own_columns(s));
    let blocks = s.block.len().max(i.block.len());
    let column = |block: &Vectors, bit: usize| block.get(bit).copied().unwrap_or(0);
    let same = (0..blocks).all(|b| own.contains(column(&s.block, b) ^ column(&i.block, b) & !mask));
    if same && asked.iter().all(|&c| own.contains(c)) {
        return None;
    }
    let span = Echelon::of(&asked);
    let block = (0..blocks).map(|b| column(&i.block, b) & !mask).collect();
    let mut slots = Slots::new(s, block, |c| span.contains(c));
    let units: Vectors = (0..s.out_bits).map(|b| 1 << b).filter(|&u| span.contains(u)).collect();
    slots.fill(&units, false);
    slots.fill(&asked, false);
    Some(slots)
}

/// What the threads of one block move by.
fn own_columns(d: &Distributed) -> Vectors {
    d.reg.iter().chain(&d.lane).chain(&d.warp).copied().collect()
}

/// Wavefronts of a lookup of a word by lanes whose lines begin at these offsets of elements of `bits` bits, by which memory is chosen: as
/// many as expected of random indices, or as there are where all lanes look up the same index, as along rows that are permuted alike.
fn lookup_wavefronts(lane: &[u64], bits: u32, target: &TargetDesc) -> f64 {
    let served = Served::vector(4, Direction::Load, target);
    let alike = served.wavefronts(|at| Some(f2::mul(lane, at) * u64::from(bits) / 8));
    (alike as f64).max(served.phases() as f64 * RANDOM_CONFLICTS)
}

/// The elements that the threads of one block hold, in the order of `order`, fastest first; `outs` are the
/// dimensions as `s` has them packed. With `swizzled`, the bits of an element, units of 16 bytes in rows of 128 bytes are
/// exchanged by the number of the row, so that elements below each other lie in different banks.
fn plain_memory(
    s: &Distributed,
    outs: &[(Dim, u32)],
    order: &[Dim],
    swizzled: Option<u32>,
) -> PlanResult<LinearLayout> {
    let own = own_columns(s);
    let reached = Echelon::of(&own);
    let mut span = Echelon::new();
    let mut offsets = Vectors::new();
    for &dim in order {
        let shift: u32 = outs.iter().take_while(|d| d.0 != dim).map(|d| d.1).sum();
        let bits = outs.iter().find(|d| d.0 == dim).map_or(0, |d| d.1);
        let units = (0..bits).map(|b| 1u64 << (shift + b)).filter(|&u| reached.contains(u));
        offsets.extend(units.filter(|&u| span.insert(u)));
    }
    // Directions across several dimensions at once.
    offsets.extend(own.iter().copied().filter(|&c| span.insert(c)));
    if let Some(bits) = swizzled {
        let unit = (UNIT_BITS / bits).max(1).ilog2() as usize;
        for bit in unit..unit + ROW_UNITS.ilog2() as usize {
            if let Some(&column) = offsets.get(bit)
                && let Some(row) = offsets.get_mut(bit + ROW_UNITS.ilog2() as usize)
            {
                *row ^= column;
            }
        }
    }
    let ins = [(Dim::OFFSET, offsets.len() as u32), (Dim::BLOCK, s.block.len() as u32)];
    Ok(LinearLayout::from_columns(&ins, outs, offsets.iter().chain(&s.block).copied())?)
}

/// How the elements of a tensor are counted: the bins lie in shared memory, every distinct element is an
/// atomic addition there, and the bins are then loaded.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct HistogramPlan {
    /// Number of bins.
    pub bins: u64,
    /// A conversion of the elements first, where they are divided among blocks: each block then counts all.
    pub detour: Option<Detour>,
    /// The registers of each thread that are counted: no copies.
    pub registers: Vec<u32>,
    /// Threads with one of these bits set hold replicas, and do not count. No blocks: each has bins of its
    /// own.
    pub duplicates: ThreadMasks,
    /// How the bins are set to zero: every bin by one thread.
    pub clear: SharedAccessPlan,
    /// How the counts are read.
    pub load: SharedAccessPlan,
    /// Bytes of shared memory of one block: 32 bits a bin.
    pub shared_bytes: u64,
    /// What it costs, with random bins.
    pub cost: Cost,
}

impl HistogramPlan {
    /// The plan for elements of `elem_bits` in the layout `source` and counts in the layout `result`, which
    /// has one dimension, the bins.
    ///
    /// # Errors
    /// A result of more than one dimension, layouts that are not surjective, more lanes than the target has, or
    /// more bins than its shared memory holds.
    pub fn new(
        source: &LinearLayout,
        result: &LinearLayout,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<HistogramPlan> {
        let order: Vec<Dim> = source.out_dims().collect();
        let s = Distributed::new(source, &order, target)?;
        let (s, detour) = if f2::rank(&own_columns(&s)) == s.out_bits {
            (s, None)
        } else {
            let mut slots = Slots::new(&s, s.block.iter().map(|_| 0).collect(), |_| true);
            slots.fill(&(0..s.out_bits).map(|b| 1 << b).collect::<Vectors>(), false);
            let all = slots.layout(&source.out_dim_bits().collect::<Vec<_>>())?;
            let s = Distributed::new(&all, &order, target)?;
            (s, Some(Detour::new(source, all, &[elem_bits], &[], target)?))
        };
        let mut dims = result.out_dims();
        let (Some(dim), None) = (dims.next(), dims.next()) else {
            let got = result.num_out_dims();
            return Err(PlanError::unsupported(Unsupported::Shape, format!("counts of {got} dimensions")));
        };
        let bins = result.out_size(dim).unwrap_or(1);
        let memory = LinearLayout::identity_1d(bins, Dim::OFFSET, dim)?;
        let clear = SharedAccessPlan::new(result, &memory, 32, Direction::Store, target)?;
        let load = SharedAccessPlan::new(result, &memory, 32, Direction::Load, target)?;
        let registers = distinct_registers(&s);
        let duplicates = ThreadMasks { block: 0, ..s.duplicates() };
        let n = registers.len() as u64;
        let warps = (1u64 << s.warp.len()) as f64;
        let atomics = n as f64 * (RANDOM_CONFLICTS * target.cost.wavefront + target.cost.issue);
        let mut cost = Cost {
            cycles: 2.5 * target.cost.shared_latency
                + 2.0 * target.cost.block_barrier
                + warps * (clear.cycles(target) + atomics + load.cycles(target)),
            permutes: clear.access.packing_ops + load.access.packing_ops,
            address_ops: clear.access.address_ops + load.access.address_ops,
            stores: clear.access.count + n,
            loads: load.access.count,
            barriers: 2,
            wavefronts: clear.access.wavefronts
                + load.access.wavefronts
                + (n as f64 * RANDOM_CONFLICTS) as u64,
            minimum_wavefronts: clear.access.minimum + load.access.minimum + n,
            ..Cost::default()
        };
        if let Some(detour) = &detour {
            detour.add_to(&mut cost, target);
        }
        let shared_bytes = fitting(bins.checked_mul(4), target)?;
        Ok(HistogramPlan { bins, detour, registers, duplicates, clear, load, shared_bytes, cost })
    }
}

impl HistogramPlan {
    /// Shared memory needed in each block, in bytes, with what converting the elements needs.
    pub fn total_shared_bytes(&self) -> u64 {
        self.detour.as_ref().map_or(0, Detour::shared_bytes).max(self.shared_bytes)
    }
}

impl fmt::Display for HistogramPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let conversions = self.detour.iter().flat_map(|d| &d.before);
        conversions.into_iter().try_for_each(|c| write!(f, "convert the elements first: {c}"))?;
        let n = Count(self.registers.len() as u64, "atomic addition");
        let (bins, bytes) = (Count(self.bins, "bin"), Count(self.shared_bytes, "byte"));
        writeln!(f, "{bins} in {bytes} of shared memory")?;
        writeln!(f, "  {n} per thread, where {}", self.duplicates)?;
        write!(f, "  clear: {}  load: {}", self.clear, self.load)
    }
}
