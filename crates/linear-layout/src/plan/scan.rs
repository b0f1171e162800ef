//! Inclusive scans along one dimension.
//!
//! Sklansky's construction, one step per bit of the axis, lowest first: after the step of bit `i` every
//! element holds
//! the combination of its aligned block of `2^(i+1)` up to itself, because the upper half of the block has
//! been combined with the last element of the lower half. Whether that element is in the same thread or warp
//! is read off the columns of the axis bits up to `i`. A reversed scan mirrors this.
//!
//! Where the lowest bits are those of registers and then of lanes, as they are in blocked layouts, less is
//! combined: the registers one after the other, then the totals of the lanes, and at last every other
//! register with the total of the lane before.
//!
//! From the first bit of a warp on, the totals of blocks go through shared memory, those of several bits at
//! once ([`ScanExchange`]).
//!
//! Each axis bit must be one bit of a register, lane or warp number for that. Operands in other layouts,
//! swizzled or divided among blocks along the axis, take a [`Detour`]. So do operands that cost less that way: a
//! thread that holds a run of elements along the axis combines one after the other, where lanes beside each
//! other send every element through as many shuffles as there are bits. Candidates are two, each with as many of
//! the lowest bits of the axis in registers as there are bits of registers and the next ones in lanes: within
//! each warp, and with all bits of the axis in warps.

use std::fmt;

use crate::f2;
use crate::plan::convert::Cost;
use crate::plan::detour::{Detour, Slots};
use crate::plan::display::{Count, write_cost};
use crate::plan::scan_exchange::{ScanExchange, exchanges};
use crate::plan::shuffle::ShuffleInstruction;
use crate::plan::space::Distributed;
use crate::plan::{PlanError, PlanResult, Unsupported, fewest};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Which bits of a number are replaced: those of `clear` become those of `set`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replace {
    /// Bits that do not stay.
    pub clear: u64,
    /// What they become.
    pub set: u64,
}

impl Replace {
    /// The number with its bits replaced.
    pub fn apply(self, number: u64) -> u64 {
        number & !self.clear | self.set
    }
}

/// One step: destination registers become `combine(source, destination)`. The source is what comes before
/// in the direction of the scan: a reversed scan combines from the last element on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ScanStep {
    /// The axis bit.
    pub bit: u32,
    /// Whether the source is in another lane.
    pub shuffled: bool,
    /// `(destination, source)` registers.
    pub pairs: Vec<(u32, u32)>,
    /// The lane of the source.
    pub lane: Replace,
    /// The lanes whose registers change: those with these bits set (clear when reversed).
    pub condition: u64,
    /// Instead of `lane` and `condition`, where not zero: the source is the lane whose number in these bits
    /// is less by one (more when reversed), and the lanes that have one change.
    pub neighbour: u64,
}

impl ScanStep {
    /// The lane that holds the source for `lane`.
    pub fn source(&self, lane: u64, reverse: bool) -> u64 {
        if self.neighbour != 0 {
            let (mask, one) = (self.neighbour, self.neighbour & self.neighbour.wrapping_neg());
            // Bits between those of the mask hand carries on.
            let next =
                if reverse { (lane | !mask).wrapping_add(one) } else { (lane & mask).wrapping_sub(one) };
            return lane & !mask | next & mask;
        }
        self.lane.apply(lane)
    }

    /// The distinct source registers.
    pub fn sources(&self) -> Vec<u32> {
        let mut sources: Vec<u32> = self.pairs.iter().map(|p| p.1).collect();
        sources.sort_unstable();
        sources.dedup();
        sources
    }
}

/// How a tensor is scanned along one dimension.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ScanPlan {
    /// The dimension.
    pub axis: Dim,
    /// From the last element to the first.
    pub reverse: bool,
    /// Within each warp, in order.
    pub steps: Vec<ScanStep>,
    /// Between warps, in order.
    pub exchanges: Vec<ScanExchange>,
    /// Conversions before and after the steps, which then speak of the layout between. Back go the results of
    /// [`ScanPlan::wanted`] alone.
    pub detour: Option<Detour>,
    /// Numbers of the results that anybody uses, ascending.
    pub wanted: Vec<usize>,
    /// For each register, the register that holds the same element and takes part in the steps.
    pub copies: Vec<u32>,
    /// What moving data costs, all operands together.
    pub cost: Cost,
    /// Pairs that a thread combines.
    pub combinations: u64,
    /// Of those, pairs that are combined in some threads only: the others select what they had.
    pub selects: u64,
    /// Cycles of combinations and selects in all warps of a CTA.
    pub combining: f64,
    /// Name of the target.
    pub target: &'static str,
}

/// Where the bits of an axis lie: per bit, the resource and the bit of its number.
pub(super) struct Places {
    pub of_bit: Vec<(Dim, u32)>,
    /// Where the axis begins among the bits of an element.
    pub shift: u32,
}

impl Places {
    fn new(layout: &LinearLayout, axis: Dim) -> PlanResult<Places> {
        let (mask, shift) = (layout.out_mask(axis), layout.out_shift(axis).unwrap_or(0));
        let mut of_bit = vec![None; layout.out_bits(axis) as usize];
        for dim in layout.in_dims() {
            for (bit, &c) in layout.columns_of(dim).iter().enumerate().filter(|(_, c)| **c & mask != 0) {
                let place = c.checked_shr(shift).unwrap_or(0).trailing_zeros() as usize;
                if !c.is_power_of_two() || of_bit[place].is_some() {
                    let reason = format!("bit {bit} of `{dim}` is not the only one of its bit of `{axis}`");
                    return Err(PlanError::unsupported(Unsupported::Distribution, reason));
                }
                of_bit[place] = Some((dim, bit as u32));
            }
        }
        let missing = || crate::Error::NotSurjective { rank: layout.rank(), bits: layout.total_out_bits() };
        let of_bit: Option<Vec<_>> = of_bit.into_iter().collect();
        Ok(Places { of_bit: of_bit.ok_or_else(missing)?, shift })
    }

    /// The bits of `dim` that are the axis bits below `upto`.
    pub fn mask(&self, dim: Dim, upto: usize) -> u64 {
        self.of_bit[..upto].iter().filter(|p| p.0 == dim).fold(0, |m, p| m | 1 << p.1)
    }
}

/// What is scanned, and on what.
struct Scan<'a> {
    axis: Dim,
    elem_bits: &'a [u32],
    wanted: Vec<usize>,
    reverse: bool,
    /// Cycles of a warp for a pair.
    combine: f64,
    target: &'a TargetDesc,
}

impl<'a> Scan<'a> {
    /// All results are wanted, and one instruction combines each.
    fn plain(axis: Dim, elem_bits: &'a [u32], reverse: bool, target: &'a TargetDesc) -> Scan<'a> {
        let combine = target.cost.alu * elem_bits.len() as f64;
        Scan { axis, elem_bits, wanted: (0..elem_bits.len()).collect(), reverse, combine, target }
    }

    /// The plan for operands that stay in `layout`, but where that cannot be scanned.
    fn in_place(&self, layout: &LinearLayout) -> PlanResult<ScanPlan> {
        let axis = self.axis;
        if !layout.has_out_dim(axis) {
            let have = layout.out_dims().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
            return Err(crate::Error::UnknownDim { side: "output", dim: axis, have }.into());
        }
        let (rank, bits) = (layout.rank(), layout.total_out_bits());
        if rank != bits {
            return Err(crate::Error::NotSurjective { rank, bits }.into());
        }
        let order: Vec<Dim> = layout.out_dims().collect();
        let d = Distributed::new(layout, &order, self.target)?;
        match Places::new(layout, axis) {
            Ok(places) if places.of_bit.iter().all(|p| p.0 != Dim::BLOCK) => Ok(self.plan(&d, &places, None)),
            _ => self.through(layout, scannable(layout, axis, &d)?),
        }
    }

    /// The plan for operands that are converted from `layout` to `other`.
    fn through(&self, layout: &LinearLayout, other: LinearLayout) -> PlanResult<ScanPlan> {
        let order: Vec<Dim> = layout.out_dims().collect();
        let d = Distributed::new(&other, &order, self.target)?;
        let places = Places::new(&other, self.axis)?;
        let back: Vec<u32> = self.wanted.iter().map(|&result| self.elem_bits[result]).collect();
        let detour = Detour::new(layout, other, self.elem_bits, &back, self.target)?;
        Ok(self.plan(&d, &places, Some(detour)))
    }

    /// The plan for the layout that was taken apart, in which a detour, if any, ends.
    fn plan(&self, d: &Distributed, places: &Places, detour: Option<Detour>) -> ScanPlan {
        let Scan { axis, elem_bits, reverse, combine, target, .. } = *self;
        let mut plan = ScanPlan {
            axis,
            reverse,
            steps: Vec::new(),
            exchanges: Vec::new(),
            detour,
            wanted: self.wanted.clone(),
            copies: d.representatives(),
            cost: Cost::default(),
            combinations: 0,
            selects: 0,
            combining: 0.0,
            target: target.name,
        };
        let in_warps = places.of_bit.iter().take_while(|p| p.0 != Dim::WARP).count();
        let short = plan.short_prefix(d, places);
        for bit in short..in_warps {
            let step = plan.step(d, places, bit);
            plan.steps.push(step);
        }
        plan.exchanges = exchanges(d, places, in_warps, reverse, elem_bits, target);
        let warps = 1 << d.warp.len();
        plan.cost = plan.count(elem_bits, warps, target);
        if let Some(detour) = &plan.detour {
            detour.add_to(&mut plan.cost, target);
        }
        let pairs = |steps: &mut dyn Iterator<Item = &ScanStep>| {
            steps.map(|step| step.pairs.len() as u64).sum::<u64>()
        };
        let some = |step: &&ScanStep| step.condition != 0 || step.neighbour != 0;
        // Totals of blocks one after the other, and every register with what comes before it.
        let totals = |x: &ScanExchange| x.lines.len() as u64 * (x.offsets.len() as u64 - 1);
        let changed = |x: &ScanExchange| x.lines.iter().map(|line| line.registers.len() as u64).sum::<u64>();
        let exchanged: u64 = plan.exchanges.iter().map(changed).sum();
        plan.combinations =
            pairs(&mut plan.steps.iter()) + exchanged + plan.exchanges.iter().map(totals).sum::<u64>();
        plan.selects = pairs(&mut plan.steps.iter().filter(some)) + exchanged;
        let words: u64 = elem_bits.iter().map(|bits| u64::from(bits.div_ceil(32))).sum();
        let select = target.cost.alu * words as f64;
        plan.combining = warps as f64 * (plan.combinations as f64 * combine + plan.selects as f64 * select);
        plan
    }
}

impl ScanPlan {
    /// The plan for operands of these widths that are all in `layout`, where one instruction combines each and all
    /// results are wanted.
    ///
    /// # Errors
    /// See [`ScanPlan::with_combine`].
    pub fn new(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        reverse: bool,
        target: &TargetDesc,
    ) -> PlanResult<ScanPlan> {
        let Scan { wanted, combine, .. } = Scan::plain(axis, elem_bits, reverse, target);
        Self::with_combine(layout, axis, elem_bits, wanted, reverse, combine, target)
    }

    /// The cheapest plan for operands of these widths that are all in `layout`, of whose results those with the numbers
    /// `wanted` are used, where a warp takes `combine` cycles to combine two elements.
    ///
    /// # Errors
    /// No such axis, a layout that is not surjective, or more lanes than the target has.
    ///
    /// # Panics
    /// Where there are not as many operands as `wanted` names.
    pub fn with_combine(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        wanted: Vec<usize>,
        reverse: bool,
        combine: f64,
        target: &TargetDesc,
    ) -> PlanResult<ScanPlan> {
        // The layout is chosen as if all results were wanted: that one of them loses its last use must not take a plan
        // to another layout, and to shared memory that was not given to it.
        let scan = Scan { combine, ..Scan::plain(axis, elem_bits, reverse, target) };
        let own = scan.in_place(layout)?;
        let order: Vec<Dim> = layout.out_dims().collect();
        let outs: Vec<(Dim, u32)> = layout.out_dim_bits().collect();
        let d = Distributed::new(layout, &order, target)?;
        let elsewhere = own.cost.cycles > 0.0 && own.detour.is_none();
        let mut ways = vec![own];
        for warps in [false, true].into_iter().filter(|_| elsewhere) {
            let Some(other) = along_registers(&d, layout.out_mask(axis), warps, &outs)? else { continue };
            // What no plan converts is scanned where it is.
            ways.extend(scan.through(layout, other));
        }
        let best = fewest(ways, ScanPlan::cycles).ok_or(PlanError::Internal { what: "no scan" })?;
        match &best.detour {
            Some(detour) if wanted.len() < elem_bits.len() => {
                Scan { wanted, ..scan }.through(layout, detour.layout.clone())
            }
            _ => Ok(ScanPlan { wanted, ..best }),
        }
    }

    /// The plan for operands that are all in `layout` and stay in it, but where that cannot be scanned; one instruction
    /// combines each, and all results are wanted.
    ///
    /// # Errors
    /// See [`ScanPlan::with_combine`].
    pub fn in_place(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        reverse: bool,
        target: &TargetDesc,
    ) -> PlanResult<ScanPlan> {
        Scan::plain(axis, elem_bits, reverse, target).in_place(layout)
    }

    /// Cycles of a CTA, combinations included.
    pub fn cycles(&self) -> f64 {
        self.cost.cycles + self.combining
    }

    /// Steps for the lowest axis bits, as many as are returned, where they are of registers and then of
    /// lanes in ascending order, and that combines less than a step per bit.
    fn short_prefix(&mut self, d: &Distributed, places: &Places) -> usize {
        let run = |from: usize, dim: Dim| places.of_bit[from..].iter().take_while(|p| p.0 == dim).count();
        let in_registers = run(0, Dim::REGISTER);
        let lanes = &places.of_bit[in_registers..];
        let ascending = lanes.windows(2).take_while(|w| w[0].1 < w[1].1).count() + 1;
        let in_lanes = run(in_registers, Dim::LANE).min(ascending);
        let (n, steps) = (1usize << in_registers, in_registers + in_lanes);
        let one_by_one = if in_lanes > 0 { 2 * (n - 1) + in_lanes + 1 } else { n - 1 };
        if one_by_one >= in_registers * n / 2 + in_lanes * n {
            return 0;
        }
        // Registers of one run, in the direction of the scan.
        let place = |i: usize| {
            let i = if self.reverse { n - 1 - i } else { i };
            (0..in_registers).fold(0, |r, bit| r | (i >> bit & 1) << places.of_bit[bit].1) as u32
        };
        let all = places.mask(Dim::REGISTER, in_registers) as u32;
        let first = |r: &u32| r & all == 0 && self.copies[*r as usize] == *r;
        let runs: Vec<u32> = (0..1u32 << d.reg.len()).filter(first).collect();
        let pairs = |to: usize, from: usize| runs.iter().map(|r| (r | place(to), r | place(from))).collect();
        let none = ScanStep::default();
        let mut made: Vec<ScanStep> =
            (1..n).map(|i| ScanStep { pairs: pairs(i, i - 1), ..none.clone() }).collect();
        for bit in in_registers..steps {
            let own = 1u64 << places.of_bit[bit].1;
            let lower = places.mask(Dim::LANE, bit);
            let lane = Replace { clear: lower | own, set: if self.reverse { own } else { lower } };
            let (bit, pairs) = (bit as u32, pairs(n - 1, n - 1));
            made.push(ScanStep { bit, shuffled: true, pairs, lane, condition: own, neighbour: 0 });
        }
        if in_lanes > 0 {
            let bit = steps as u32 - 1;
            let pairs = (0..n - 1).flat_map(|i| pairs(i, n - 1)).collect();
            let neighbour = places.mask(Dim::LANE, steps);
            made.push(ScanStep { bit, shuffled: true, pairs, neighbour, ..none });
        }
        self.steps = made;
        steps
    }

    fn step(&self, d: &Distributed, places: &Places, bit: usize) -> ScanStep {
        let (dim, at) = places.of_bit[bit];
        let own = |of: Dim| if dim == of { 1u64 << at } else { 0 };
        // The source: this bit clear and all lower ones set, or the reverse.
        let replace = |of: Dim| {
            let lower = places.mask(of, bit);
            let set = if self.reverse { own(of) } else { lower };
            Replace { clear: lower | own(of), set }
        };
        let registers = replace(Dim::REGISTER);
        let changes = |r: u64| match own(Dim::REGISTER) {
            0 => true,
            mask => (r & mask != 0) != self.reverse,
        };
        let pairs: Vec<(u32, u32)> = (0..1u64 << d.reg.len())
            .filter(|&r| self.copies[r as usize] == r as u32 && changes(r))
            .map(|r| (r as u32, registers.apply(r) as u32))
            .collect();
        let lane = replace(Dim::LANE);
        let (shuffled, condition) = (lane.clear != 0, own(Dim::LANE));
        ScanStep { bit: bit as u32, shuffled, pairs, lane, condition, neighbour: 0 }
    }

    fn count(&self, elem_bits: &[u32], warps: u64, target: &TargetDesc) -> Cost {
        let mut total = Cost::default();
        for step in self.steps.iter().filter(|step| step.shuffled) {
            let words: u64 = elem_bits.iter().map(|b| u64::from(b.div_ceil(32))).sum();
            let sent = step.sources().len() as u64 * words;
            total.shuffles += sent;
            let each = ShuffleInstruction::for_index(target).cycles(target);
            total.cycles += target.cost.shuffle_latency + (warps * sent) as f64 * each;
        }
        for (i, exchange) in self.exchanges.iter().enumerate() {
            total.add(&exchange.cost(elem_bits, warps, i > 0, target));
        }
        total
    }

    /// Elements of shared memory for each operand.
    fn exchanged_elems(&self) -> u64 {
        self.exchanges.iter().map(|x| x.elems).max().unwrap_or(0)
    }

    /// Shared memory needed in each block for operands of these widths, in bytes.
    pub fn shared_bytes(&self, elem_bits: &[u32]) -> u64 {
        let elems = self.exchanged_elems();
        let steps = elem_bits.iter().map(|&bits| totals_bytes(elems, bits)).sum();
        self.detour.as_ref().map_or(0, Detour::shared_bytes).max(steps)
    }

    /// Where in that memory the totals of each operand lie.
    pub fn scratch_offsets(&self, elem_bits: &[u32]) -> Vec<u64> {
        let elems = self.exchanged_elems();
        let upto = |n: usize| elem_bits[..n].iter().map(|&bits| totals_bytes(elems, bits)).sum();
        (0..elem_bits.len()).map(upto).collect()
    }
}

/// Bytes of the totals of one operand, rounded to what the widest access is aligned to.
fn totals_bytes(elems: u64, bits: u32) -> u64 {
    (elems * u64::from(bits.next_power_of_two().max(8) / 8)).next_multiple_of(16)
}

impl fmt::Display for ScanPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "scan along {}{}:", self.axis, if self.reverse { ", reversed" } else { "" })?;
        let conversions = self.detour.iter().flat_map(|d| &d.before);
        conversions.into_iter().try_for_each(|c| write!(f, "  convert first: {c}"))?;
        for step in &self.steps {
            let n = Count(step.pairs.len() as u64, "value");
            let sources = Count(step.sources().len() as u64, "total");
            let how = if step.shuffled { "another lane by shuffles" } else { "registers of the same thread" };
            writeln!(f, "  bit {}: {n} combined with {sources} from {how}", step.bit)?;
        }
        for exchange in &self.exchanges {
            writeln!(f, "  {exchange}")?;
        }
        let conversions = self.detour.iter().flat_map(|d| &d.after);
        conversions.into_iter().try_for_each(|c| write!(f, "  convert back: {c}"))?;
        write_cost(f, &self.cost, self.target)
    }
}

/// A layout like `layout`, whose columns are `d`, in which each axis bit is one bit of a register, lane or
/// warp number.
fn scannable(layout: &LinearLayout, axis: Dim, d: &Distributed) -> PlanResult<LinearLayout> {
    let mask = layout.out_mask(axis);
    let mut used = 0;
    let keep = |c: u64| {
        let unit = c & !mask == 0 && c.is_power_of_two() && c & used == 0;
        used |= if unit { c } else { 0 };
        unit || c & mask == 0
    };
    let mut slots = Slots::new(d, d.block.iter().map(|c| c & !mask).collect(), keep);
    slots.share(d, |c| c & mask == 0);
    let units = (0..d.out_bits).map(|b| 1u64 << b);
    let (along, across): (f2::Vectors, f2::Vectors) = units.partition(|u| u & mask != 0);
    slots.fill(&along, true);
    slots.fill(&across, true);
    slots.layout(&layout.out_dim_bits().collect::<Vec<_>>())
}

/// A layout like the one taken apart as `d`, with as many of the lowest bits of the axis, whose columns are in `mask`, in
/// registers as there are bits of registers, the next ones in lanes, and none in warps if `warps` take part; warps stay as
/// they are otherwise. `None` where it is the same, or where registers and lanes are too few.
fn along_registers(
    d: &Distributed,
    mask: u64,
    warps: bool,
    outs: &[(Dim, u32)],
) -> PlanResult<Option<LinearLayout>> {
    let own = [&d.reg, &d.lane, &d.warp];
    let taking_part = if warps { 3 } else { 2 };
    let columns = || own[..taking_part].iter().flat_map(|columns| columns.iter().copied());
    let mut along: f2::Vectors = columns().filter(|c| c & mask != 0).collect();
    along.sort_unstable();
    let in_registers = along.len().min(d.reg.len());
    if along.len() - in_registers > d.lane.len() {
        return Ok(None);
    }
    let (registers, lanes) = along.split_at(in_registers);
    // Bits of other dimensions stay where they are as far as there is place, those of copies come last.
    let mut across: Vec<u64> = columns().filter(|c| c & mask == 0 && *c != 0).collect();
    let mut made = own.map(|columns| columns.iter().map(|&column| Some(column)).collect::<Vec<_>>());
    for ((slots, columns), along) in made.iter_mut().zip(own).zip([registers, lanes, &[]]).take(taking_part) {
        let mut places = columns.len() - along.len();
        for (slot, &column) in slots.iter_mut().zip(columns.iter()) {
            *slot = None;
            if places > 0
                && let Some(at) = across.iter().position(|c| *c == column)
            {
                *slot = Some(across.remove(at));
                places -= 1;
            }
        }
        let free = slots.iter_mut().filter(|slot| slot.is_none());
        free.zip(along).for_each(|(slot, &column)| *slot = Some(column));
    }
    // What found no place takes those that are free.
    let free = made.iter_mut().flatten().filter(|slot| slot.is_none());
    free.zip(across).for_each(|(slot, column)| *slot = Some(column));
    let same = |(made, own): (&Vec<Option<u64>>, &f2::Vectors)| {
        made.iter().map(|slot| slot.unwrap_or(0)).eq(own.iter().copied())
    };
    if made.iter().zip(own).all(same) {
        return Ok(None);
    }
    Slots::of(made, d.block.clone()).layout(outs).map(Some)
}

/// The place of every bit of `axis`, for plans that look elements up by their coordinate.
pub(crate) fn axis_places(layout: &LinearLayout, axis: Dim) -> PlanResult<Vec<(Dim, u32)>> {
    Ok(Places::new(layout, axis)?.of_bit)
}

/// Registers that hold different elements.
pub(crate) fn distinct_registers(d: &Distributed) -> Vec<u32> {
    let free = d.free_registers();
    (0..1u64 << d.reg.len()).filter(|r| r & free == 0).map(|r| r as u32).collect()
}

/// Whether two lists of columns are the same outside the bits of `mask`.
pub(crate) fn equal_outside(a: &[u64], b: &[u64], mask: u64) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| (x ^ y) & !mask == 0)
}

/// The span of columns outside the bits of `mask` contains another.
pub(crate) fn contained_outside(inner: &[u64], outer: &[u64], mask: u64) -> bool {
    let outer: f2::Vectors = outer.iter().map(|c| c & !mask).collect();
    let span = f2::Echelon::of(&outer);
    inner.iter().all(|c| span.contains(c & !mask))
}
