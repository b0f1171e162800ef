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

/// How many wavefronts a warp takes that adds to bins at random: the expected number of hits of the bank
/// that is hit most, 32 throws into 32 bins.
const RANDOM_CONFLICTS: f64 = 3.5;

/// Bits of what memory keeps together where it is swizzled, and how many of these a row has.
const UNIT_BITS: u32 = 128;
const ROW_UNITS: u32 = 8;

/// What is known of the indices of a gather: by default nothing, so that each lane looks up an element of its line at random.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Indices {
    /// They follow from positions: lanes look up what lies as their own elements do, as where lines are shifted.
    pub in_place: bool,
    /// Dimensions, other than that of the gather, along which all are equal, as where whole rows are gathered.
    pub alike: SmallVec<[Dim; 4]>,
}

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
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct GatherShared {
    /// From `offset`, in elements, and `block` to the dimensions of the source. A block looks an element up
    /// in its own memory, at the offset where this layout has it there.
    pub memory: LinearLayout,
    /// How the source is stored.
    pub store: SharedAccessPlan,
    /// Lookups of one thread: the registers of the result that are not copies.
    pub lookups: Vec<u32>,
    /// So many of them, one after the other, are one load: they have one index, and lie side by side.
    pub vector: u32,
    /// Where the line of a thread's register 0 begins: its part of the offset, in elements.
    pub address: ThreadBases,
    /// XORed into it for each lookup.
    pub offsets: Vec<u64>,
    /// XORed into it for each bit of the index that is set.
    pub index: Vec<u64>,
    /// Wavefronts of one load of a warp, of one word of each element where these have several, as expected.
    pub wavefronts: f64,
    /// Bytes of shared memory of one block.
    pub shared_bytes: u64,
}

/// How a gather is done.
#[derive(Clone, Debug, PartialEq)]
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
    /// [`of`](Self::of) for indices at random.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn new(
        source: &LinearLayout,
        indices: &LinearLayout,
        axis: Dim,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<GatherPlan> {
        Self::of(source, (indices, &Indices::default()), axis, elem_bits, target)
    }

    /// The cheaper plan for a source in the layout `source` and indices, and a result, in the layout
    /// `indices`. The shapes may differ along the axis only.
    ///
    /// # Errors
    /// No such axis, shapes that differ elsewhere, layouts that are not surjective, more lanes than the
    /// target has, or more elements in a block than its shared memory holds where shuffles do not do.
    pub fn of(
        source: &LinearLayout,
        (indices, known): (&LinearLayout, &Indices),
        axis: Dim,
        elem_bits: u32,
        target: &TargetDesc,
    ) -> PlanResult<GatherPlan> {
        let shuffle = Self::by_shuffles(source, indices, axis, elem_bits, target)?;
        match (shuffle, Self::through_shared(source, (indices, known), axis, elem_bits, target)) {
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
        let moved = moving(lane_bits.iter().map(|(bit, lane)| (*bit, 1 << lane)));
        cost.address_ops = results * (moved + registers.len() as u64);
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
        (indices, known): (&LinearLayout, &Indices),
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
        let registers = distinct_registers(&i);
        let words = u64::from(elem_bits.div_ceil(32));
        let n = registers.len() as u64;
        let alike = order.iter().fold((0, 0), |(bits, below), dim| {
            let own =
                if known.alike.contains(dim) { f2::low_mask(source.out_bits(*dim)) << below } else { 0 };
            (bits | own, below + source.out_bits(*dim))
        });
        let alike = alike.0 & !mask;
        let mut ways = Vec::with_capacity(4);
        for order in [last_first, axis_last] {
            for swizzled in [false, true] {
                let memory = plain_memory(&s, &outs, &order, swizzled.then_some(elem_bits.max(8)))?;
                let store =
                    SharedAccessPlan::new(source, &memory, elem_bits.max(8), Direction::Store, target)?;
                let line = Lines::new(&memory, axis, mask)?;
                let index = line.of_index()?;
                let starts = ThreadBases {
                    lane: line.of(&i.lane)?,
                    warp: line.of(&i.warp)?,
                    block: line.of_blocks(&i.block)?,
                };
                let bits = store.access.storage_bits.max(8);
                let together = together(&i, &line, (&starts, &index), alike, &registers, bits)?;
                let loads = n >> together.len();
                // Words of one load.
                let (bytes, words) =
                    if together.is_empty() { (4, words) } else { (bits << together.len() >> 3, 1) };
                let served = Served::vector(bytes.max(4), Direction::Load, target);
                let bits = u64::from(bits);
                let expected = if known.in_place {
                    // Indices may be more than the elements of a line.
                    let inside = f2::low_mask(s.out_bits);
                    let own: PlanResult<SmallVec<[u64; 6]>> =
                        i.lane.iter().map(|c| line.offset(c & inside)).collect();
                    let own = own?;
                    served.wavefronts(|at| Some(f2::mul(&own, at) * bits / 8)) as f64
                } else {
                    expected_wavefronts(&served, &i.lane, &starts.lane, &index, bits)
                };
                let scaled = index.iter().map(|to| to * (bits / 8));
                // Shifts, what takes a mask and XORs, and what adds the offset.
                let moved = loads * (2 * moving((0..).zip(scaled)) + 1);
                let read = (loads * words) as f64 * target.cost.wavefront;
                // Rows that are permuted alike have the same index in all lanes.
                let same = served.wavefronts(|at| Some(f2::mul(&starts.lane, at) * bits / 8)) as f64;
                let takes = |wavefronts: f64| {
                    store.cycles(target)
                        + wavefronts * read
                        + loads as f64 * target.cost.issue
                        + moved as f64 * target.cost.alu
                };
                let cost = Cost {
                    stores: store.access.count,
                    loads,
                    barriers: 1,
                    permutes: store.access.packing_ops,
                    address_ops: store.access.address_ops + moved,
                    wavefronts: store.access.wavefronts + ((loads * words) as f64 * expected) as u64,
                    minimum_wavefronts: store.access.minimum + loads * words * served.phases(),
                    cycles: takes(expected),
                    ..Cost::default()
                };
                let by = takes(expected.max(same));
                ways.push(((memory, store, line), (starts, index, together), (expected, cost), by));
            }
        }
        let ((memory, store, line), (address, index, together), (wavefronts, mut cost), _) =
            fewest(ways, |way| way.3).ok_or(PlanError::Internal { what: "no order of memory" })?;
        let first = registers.iter().filter(|&&r| together.iter().all(|bit| r >> bit & 1 == 0));
        let beside = |x: u32| together.iter().enumerate().fold(0, |r, (k, bit)| r | (x >> k & 1) << bit);
        let vector = 1u32 << together.len();
        let lookups: Vec<u32> = first.flat_map(|r| (0..vector).map(move |x| r | beside(x))).collect();
        let columns: Vectors = line.of(&i.reg)?;
        let offsets = lookups.iter().map(|&r| f2::mul(&columns, r.into())).collect();
        let bytes = u64::from(store.access.storage_bits.max(8) / 8);
        let shared_bytes = fitting(bytes.checked_shl(memory.in_bits(Dim::OFFSET)), target)?;
        let warps = (1u64 << i.warp.len()) as f64;
        cost.cycles = 1.5 * target.cost.shared_latency + target.cost.block_barrier + warps * cost.cycles;
        if let Some(detour) = &detour {
            detour.add_to(&mut cost, target);
        }
        let shared = GatherShared {
            memory,
            store,
            lookups,
            vector,
            address,
            offsets,
            index,
            wavefronts,
            shared_bytes,
        };
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
                let n = g.lookups.len() as u64 / u64::from(g.vector.max(1));
                let (bytes, n) = (Count(g.shared_bytes, "byte"), Count(n, "lookup"));
                write!(f, "gather along {} through {bytes} of shared memory, {n}", self.axis)?;
                let of = if g.vector > 1 { format!(" of {} elements", g.vector) } else { String::new() };
                writeln!(f, "{of}")?;
                write!(f, "  store: {}", g.store)?;
            }
        }
        write_cost(f, &self.cost, self.target)
    }
}

/// Bits of a register's number that one load looks up together, the one that lies next first: indices are equal along the dimensions
/// of `alike`, and elements side by side in memory, at an aligned offset. `registers` are those that hold no copies.
fn together(
    i: &Distributed,
    line: &Lines,
    (starts, index): (&ThreadBases, &[u64]),
    alike: u64,
    registers: &[u32],
    bits: u32,
) -> PlanResult<SmallVec<[u32; 4]>> {
    let mut found: SmallVec<[u32; 4]> = SmallVec::new();
    let columns: Vectors = line.of(&i.reg)?;
    let others = starts.lane.iter().chain(&starts.warp).chain(&starts.block).chain(index);
    let all = others.fold(0, |all, offset| all | offset);
    while bits << (found.len() + 1) <= UNIT_BITS {
        let next = 1u64 << found.len();
        let is_next = |bit: &u32| {
            let (column, to) = (i.reg[*bit as usize], columns[*bit as usize]);
            column & !alike == 0 && to == next && registers.contains(&(1 << bit))
        };
        let Some(bit) = (0..i.reg.len() as u32).find(is_next) else { break };
        let apart = columns.iter().enumerate().all(|(other, to)| other as u32 == bit || to & next == 0);
        if all & next != 0 || !apart {
            break;
        }
        found.push(bit);
    }
    Ok(found)
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

/// How many different distances bits of a number are moved by, `(bit, to)`: those that move by the same distance move together.
fn moving(pairs: impl IntoIterator<Item = (u32, u64)>) -> u64 {
    let mut distances: SmallVec<[i64; 8]> = SmallVec::new();
    for (bit, mut to) in pairs {
        while to != 0 {
            let distance = i64::from(to.trailing_zeros()) - i64::from(bit);
            if !distances.contains(&distance) {
                distances.push(distance);
            }
            to &= to - 1;
        }
    }
    distances.len() as u64
}

/// Wavefronts that a lookup by a warp is expected to take, of a word or of several side by side. Lanes hold indices in the layout of
/// the columns `lanes`; their lines begin at the offsets `starts`, and an index adds any combination of `index`, in elements of `bits`
/// bits.
///
/// What indices add reaches some words of a line, in some of the banks. Lines that the banks tell apart never meet; those of one
/// group of banks do, and so do lanes of one line unless they look up one word.
fn expected_wavefronts(served: &Served, lanes: &[u64], starts: &[u64], index: &[u64], bits: u64) -> f64 {
    // Several words lie in aligned groups of banks.
    let width = served.bytes.max(served.bank_width);
    let word = |offset: u64| offset * bits / u64::from(8 * width);
    let groups_of_banks = u64::from(served.line_bytes() / width);
    let bank =
        |words: &Vectors| -> Vectors { words.iter().map(|word| word & (groups_of_banks - 1)).collect() };
    let together = &served.service.lanes;
    let lookups = f2::rank(&together.iter().map(|lane| f2::mul(lanes, *lane)).collect::<Vectors>());
    let drawn: Vectors = index.iter().map(|to| word(*to)).collect();
    let begun = together.iter().map(|lane| word(f2::mul(starts, *lane)));
    let all: Vectors = begun.chain(drawn.iter().copied()).collect();
    let (words, banks) = (f2::rank(&drawn), f2::rank(&bank(&drawn)));
    let (lines, groups) = (f2::rank(&all) - words, f2::rank(&bank(&all)) - banks);
    let (words, each) = (f64::from(1u32 << words), f64::from(1u32 << (lookups - lines)));
    // Different words of a line that its lanes look up.
    let different = words * (1.0 - (1.0 - 1.0 / words).powf(each));
    let of_group = f64::from(1u32 << (lines - groups));
    let most = of_group * words / f64::from(1u32 << banks);
    served.phases() as f64 * fullest(of_group * different, 1 << banks, 1 << groups).min(most)
}

/// How often the bin is hit that is hit most, as expected, when each of `groups` groups of `bins` bins is thrown at `throws` times.
/// Bins are taken to be hit independently, which is near what they are.
fn fullest(throws: f64, bins: u32, groups: u32) -> f64 {
    let of = |throws: u32| -> f64 {
        if bins == 1 {
            return throws.into();
        }
        // The chance of just so many hits of one bin, and of so many at least.
        let odds = 1.0 / (f64::from(bins) - 1.0);
        let mut hit = (1.0 - 1.0 / f64::from(bins)).powf(throws.into());
        let (mut at_least, mut most) = (1.0, 0.0);
        for hits in 1..=throws {
            at_least = f64::max(at_least - hit, 0.0);
            hit *= odds * f64::from(throws - hits + 1) / f64::from(hits);
            let certain = hits <= throws.div_ceil(bins);
            most += if certain { 1.0 } else { 1.0 - (1.0 - at_least).powf((bins * groups).into()) };
        }
        most
    };
    let (less, part) = (throws as u32, throws.fract());
    of(less) * (1.0 - part) + if part > 0.0 { of(less + 1) * part } else { 0.0 }
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
