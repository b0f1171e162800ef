//! Reductions along one dimension.
//!
//! Let `o` be the layout without the axis. Numbers of registers and threads with the same `o` hold elements
//! of one line, so what has to be combined are the cosets of the kernel of `o`: its part in the registers by
//! combining values of one thread, its part in registers and lanes by butterfly shuffles, the rest by
//! bringing partial results together through shared memory. Vectors of the kernel that do not lead further
//! along the axis lead to copies: these are never combined (which would count elements twice), nor stored
//! (paper, Section 5.1, "Broadcasting", and Table 3).

use std::fmt;

use crate::f2::{self, Echelon, Vectors, low_mask};
use crate::plan::convert::{ConversionPlan, Cost};
use crate::plan::display::{Count, write_cost};
use crate::plan::shuffle::ShuffleInstruction;
use crate::plan::space::Distributed;
use crate::plan::{PlanError, PlanResult, fewest};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// A butterfly: every lane `l` combines each of its values `v` with value `v ^ value` of lane `l ^ lane`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReduceShuffle {
    /// XORed with the lane number. One bit, unless the layout is swizzled or another distance is cheaper.
    pub lane: u64,
    /// XORed with the number of the value. Zero, unless registers and lanes move along another dimension
    /// together.
    pub value: u32,
    /// What does it.
    pub instruction: ShuffleInstruction,
}

/// A combination of integers of 32 bits that one instruction does for all lanes of a warp (PTX ISA, `redux.sync`), and of 64 bits two or
/// three.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum WarpCombine {
    Add,
    And,
    Or,
    Xor,
    SMin,
    SMax,
    UMin,
    UMax,
}

impl WarpCombine {
    /// Whether combining a value with itself changes nothing, so that copies do no harm.
    pub fn is_idempotent(self) -> bool {
        !matches!(self, WarpCombine::Add | WarpCombine::Xor)
    }

    /// How many instructions combine values of so many words of 32 bits. Halves of 64 bits are combined by themselves (a sum: parts
    /// of 27, 27 and 10 bits, of which 32 fit in a word), the lower half of a minimum or maximum among the lanes that have the upper one.
    pub fn instructions(self, words: u64) -> u64 {
        match (words, self) {
            (1, _) => 1,
            (_, WarpCombine::Add) => 3,
            _ => 2,
        }
    }

    /// How many of these wait for each other.
    fn in_turn(self, words: u64) -> u64 {
        let orders =
            matches!(self, WarpCombine::SMin | WarpCombine::SMax | WarpCombine::UMin | WarpCombine::UMax);
        if orders { words } else { 1 }
    }

    /// Instructions of one thread that take values of so many words apart and put the result together.
    fn arithmetic(self, words: u64) -> u64 {
        match (words, self) {
            (1, _) | (_, WarpCombine::And | WarpCombine::Or | WarpCombine::Xor) => 0,
            (_, WarpCombine::Add) => 10,
            _ => 2,
        }
    }

    /// The suffix of the instruction: `add`, `umin`, …
    pub fn name(self) -> &'static str {
        match self {
            WarpCombine::Add => "add",
            WarpCombine::And => "and",
            WarpCombine::Or => "or",
            WarpCombine::Xor => "xor",
            WarpCombine::SMin => "min",
            WarpCombine::SMax => "max",
            WarpCombine::UMin => "umin",
            WarpCombine::UMax => "umax",
        }
    }
}

/// Half of the values for each of two lanes: of `n` values of lane `l`, those in whose number the highest bit is bit `bit` of
/// `l` stay, are combined with what lane `l ^ lane` has of them, and are numbered without that bit; the others are sent there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReduceHalving {
    /// XORed with the lane number.
    pub lane: u64,
    /// The bit of the lane number that tells which half stays.
    pub bit: u32,
    /// What sends the other half.
    pub instruction: ShuffleInstruction,
}

/// How values of one thread and then of lanes are combined.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct LocalReduction {
    /// For each value, the registers it is combined from, in the order of their numbers.
    pub registers: Vec<Vec<u32>>,
    /// Then these exchanges, each of which leaves every lane half of the values it has.
    pub halvings: Vec<ReduceHalving>,
    /// Then these exchanges, each on all values that are left.
    pub shuffles: Vec<ReduceShuffle>,
    /// Instead of all the exchanges, one instruction for each value of 32 bits, which combines the values of all
    /// lanes, and for those of 64 [several](WarpCombine::instructions).
    pub whole_warp: Option<WarpCombine>,
}

impl LocalReduction {
    /// Combinations of two values that a thread has of its own.
    pub fn own_combinations(&self) -> u64 {
        self.registers.iter().map(|r| r.len().saturating_sub(1) as u64).sum()
    }

    /// Combinations of two values in one thread.
    pub fn combinations(&self) -> u64 {
        let between = if self.whole_warp.is_some() { 0 } else { self.shuffles.len() as u64 };
        self.own_combinations() + self.halved() + self.values() * between
    }

    /// Values that are left to every lane.
    pub fn values(&self) -> u64 {
        self.registers.len() as u64 >> self.halvings.len()
    }

    /// Values that each lane sends in all halvings together.
    fn halved(&self) -> u64 {
        self.registers.len() as u64 - self.values()
    }

    /// Lets one instruction combine all lanes if it can and that is cheaper. `copies`: lanes between which
    /// nothing is exchanged hold the same.
    fn with_whole_warp(
        mut self,
        combine: Option<WarpCombine>,
        copies: bool,
        words: u64,
        target: &TargetDesc,
    ) -> Self {
        let all =
            self.shuffles.len() as u32 == target.lane_bits() && self.shuffles.iter().all(|s| s.value == 0);
        let right = |c: WarpCombine| all || (copies && c.is_idempotent());
        // Each as long as two shuffles: a single exchange is cheaper.
        let shuffles = self.shuffles.len() as u64 * words;
        let pays = |c: WarpCombine| 2 * c.instructions(words) <= shuffles;
        self.whole_warp = combine.filter(|&c| target.primitives.redux && right(c) && pays(c));
        self
    }
}

/// How partial results of different warps come together, or results that lanes have shared among them reach all that want them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReduceExchange {
    /// Who holds which partial result: `register` numbers the values of the first stage, and the axis has
    /// one place per warp and CTA that holds a part of it.
    pub partial: LinearLayout,
    /// Where they are brought.
    pub gathered: LinearLayout,
    /// How, one conversion for each operand.
    pub conversions: Vec<ConversionPlan>,
    /// How they are combined there.
    pub combine: LocalReduction,
}

/// How a tensor is reduced along one dimension.
///
/// ```
/// use linear_layout::{Dim, LinearLayout};
/// use linear_layout::plan::ReducePlan;
/// use linear_layout::target::TargetDesc;
/// // Rows of 128 elements, four in each of 32 lanes; four warps hold the same.
/// let layout = LinearLayout::from_bases(
///     &[
///         (Dim::REGISTER, vec![[1], [2]]),
///         (Dim::LANE, vec![[4], [8], [16], [32], [64]]),
///         (Dim::WARP, vec![[0], [0]]),
///     ],
///     &[Dim::out(0)],
/// )?;
/// let plan = ReducePlan::new(&layout, Dim::out(0), &[32], &TargetDesc::parse("cuda:90")?)?;
/// assert_eq!((plan.local.combinations(), plan.cost.shuffles), (3 + 5, 5));
/// assert!(plan.exchange.is_none(), "what the warps hold is the same");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReducePlan {
    /// The dimension that disappears.
    pub axis: Dim,
    /// Within each warp.
    pub local: LocalReduction,
    /// Between warps and CTAs, where the axis reaches across them, and after halvings between lanes.
    pub exchange: Option<ReduceExchange>,
    /// For each register of the result, the value that it is.
    pub targets: Vec<u32>,
    /// The layout of the result: the operand's without the axis, or what was asked for ([`ReducePlan::to_layout`]).
    pub result: LinearLayout,
    /// What it costs, all operands together; combinations not counted.
    pub cost: Cost,
    /// Name of the target.
    pub target: &'static str,
}

/// Values are shared among lanes where that takes less than this part of the cycles: what is selected and brought together
/// takes registers, too.
const WORTH_SHARING: f64 = 0.96;

impl ReducePlan {
    /// The plan for operands of these widths that are all in `layout`.
    ///
    /// # Errors
    /// No such axis, a layout that is not surjective, or more lanes than the target has.
    pub fn new(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        Self::with_combine(layout, axis, elem_bits, None, target)
    }

    /// As [`new`](Self::new), for a combination that hardware may know.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_combine(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        combine: Option<WarpCombine>,
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        Self::plan(layout, axis, elem_bits, combine, (true, None), target)
    }

    /// As [`with_combine`](Self::with_combine), with the result in the layout `result`, whose output dimensions are those of
    /// `layout` without the axis, in their order, whatever they are called. What brings partial results of several warps, or those that
    /// lanes have shared among them, together brings them there, so that nothing is left to convert.
    ///
    /// # Errors
    /// As [`new`](Self::new), or a `result` that is no layout of the reduced tensor.
    pub fn to_layout(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        combine: Option<WarpCombine>,
        result: &LinearLayout,
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        Self::plan(layout, axis, elem_bits, combine, (true, Some(result)), target)
    }

    /// The layout in which lanes have results when they share the values among them as far as they can, each with its part of them,
    /// so that nothing has to be brought together; its output dimensions are those of the reduced tensor, 0 and up. `None` where lanes
    /// have nothing to share, or several warps have a part of a line.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn shared_among_lanes(
        layout: &LinearLayout,
        axis: Dim,
        target: &TargetDesc,
    ) -> PlanResult<Option<LinearLayout>> {
        let split = Split::new(layout, axis, target)?;
        if split.across > 0 {
            return Ok(None);
        }
        let Some((_, partial)) = split.halved(&split.local(), target) else { return Ok(None) };
        let outs: Vec<(Dim, u32)> = (0..).map(Dim::out).zip(split.outs.iter().map(|out| out.1)).collect();
        let parts = [
            (Dim::REGISTER, &partial.reg),
            (Dim::LANE, &partial.lane),
            (Dim::WARP, &partial.warp),
            (Dim::BLOCK, &partial.block),
        ];
        let ins: Vec<(Dim, u32)> = parts.iter().map(|(dim, part)| (*dim, part.len() as u32)).collect();
        let columns = parts.iter().flat_map(|(_, part)| part.iter().copied());
        Ok(Some(LinearLayout::from_columns(&ins, &outs, columns.collect::<Vec<_>>())?))
    }

    /// As [`with_combine`](Self::with_combine), with no lane that combines values of several lines for others: each line
    /// can be finished before the next one's elements are there, so that not all of them take registers.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn line_by_line(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        combine: Option<WarpCombine>,
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        Self::plan(layout, axis, elem_bits, combine, (false, None), target)
    }

    fn plan(
        layout: &LinearLayout,
        axis: Dim,
        elem_bits: &[u32],
        combine: Option<WarpCombine>,
        (shares, to): (bool, Option<&LinearLayout>),
        target: &TargetDesc,
    ) -> PlanResult<ReducePlan> {
        let combine = combine.filter(|_| matches!(elem_bits, [..=32 | 64]));
        let split = Split::new(layout, axis, target)?;
        let ins: Vec<Dim> = layout.in_dims().collect();
        let rest: Vec<Dim> = layout.out_dims().filter(|&d| d != axis).collect();
        let result = match to {
            None => layout.sublayout(&ins, &rest)?,
            Some(to) => split.named(to)?,
        };
        let place = match to {
            None => split.place(),
            Some(_) => Place::of(&result, target)?,
        };
        let local =
            split.local().with_whole_warp(combine, split.lanes_are_copies(), words_of(elem_bits), target);
        let targets = place.values_of(result.columns_of(Dim::REGISTER));
        let mut plan = ReducePlan {
            axis,
            local,
            exchange: None,
            targets,
            result,
            cost: Cost::default(),
            target: target.name,
        };
        let warps = 1u64 << layout.in_bits(Dim::WARP);
        let cost = |local: &LocalReduction, exchange: Option<&ReduceExchange>| {
            cost_of(local, exchange, elem_bits, warps, target)
        };
        let exchange = |local: &LocalReduction, partial: &Distributed| {
            let to =
                |lanes: bool| split.exchange(partial, &place, layout, (elem_bits, combine), target, lanes);
            let in_registers = to(false)?;
            if split.across == 0 {
                return Ok::<_, PlanError>(in_registers);
            }
            let in_lanes = to(true)?;
            fewest([in_registers, in_lanes], |x| cost(local, Some(x)).cycles)
                .ok_or(PlanError::Internal { what: "no exchange" })
        };
        if split.across > 0 || to.is_some() {
            plan.exchange = Some(exchange(&plan.local, &split.partial)?);
        }
        plan.cost = cost(&plan.local, plan.exchange.as_ref());
        if let Some((local, partial)) = split.halved(&plan.local, target).filter(|_| shares) {
            // That every lane reads what the others have takes an exchange of each value at least.
            let is_gathered = split.across == 0 && to.is_none();
            let gathers =
                if is_gathered { target.cost.shuffle * plan.local.registers.len() as f64 } else { 0.0 };
            let least = cost(&local, None).cycles + warps as f64 * gathers;
            let wanted = plan.cost.cycles * WORTH_SHARING;
            if least < wanted {
                let exchange = exchange(&local, &partial)?;
                let cost = cost(&local, Some(&exchange));
                if cost.cycles < wanted {
                    (plan.local, plan.exchange, plan.cost) = (local, Some(exchange), cost);
                }
            }
        }
        Ok(plan)
    }

    /// Shared-memory instructions in the code of one thread, which is what Table 3 of the paper counts.
    pub fn shared_instructions(&self) -> u64 {
        self.cost.stores + self.cost.loads
    }

    /// Shared memory needed in each CTA, in bytes.
    pub fn shared_bytes(&self) -> u64 {
        self.exchange.as_ref().map_or(0, |x| ConversionPlan::scratch_bytes(&x.conversions))
    }
}

impl fmt::Display for ReducePlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stage = |f: &mut fmt::Formatter<'_>, r: &LocalReduction| {
            let width = r.registers.first().map_or(1, Vec::len);
            let (width, values) = (Count(width as u64, "register"), Count(r.registers.len() as u64, "value"));
            writeln!(f, "  combine {width} into each of {values}")?;
            if let Some(combine) = r.whole_warp {
                return writeln!(f, "  combine all lanes by redux.sync.{}", combine.name());
            }
            r.halvings.iter().try_for_each(|s| {
                writeln!(f, "  share values with lane ^ {} by {}", s.lane, s.instruction.name())
            })?;
            r.shuffles.iter().try_for_each(|s| {
                let name = s.instruction.name();
                match s.value {
                    0 => writeln!(f, "  combine with lane ^ {} by {name}", s.lane),
                    value => writeln!(f, "  combine with value ^ {value} of lane ^ {} by {name}", s.lane),
                }
            })
        };
        writeln!(f, "reduce along {}:", self.axis)?;
        stage(f, &self.local)?;
        if let Some(exchange) = &self.exchange {
            for conversion in &exchange.conversions {
                write!(f, "  bring partial results together {conversion}")?;
            }
            stage(f, &exchange.combine)?;
        }
        write_cost(f, &self.cost, self.target)
    }
}

/// Shuffle instructions for a value of this width.
fn words(elem_bits: u32) -> u64 {
    elem_bits.div_ceil(32).into()
}

/// Words of 32 bits of a value of each operand, together.
fn words_of(elem_bits: &[u32]) -> u64 {
    elem_bits.iter().map(|&b| words(b)).sum()
}

fn cost_of(
    local: &LocalReduction,
    exchange: Option<&ReduceExchange>,
    elem_bits: &[u32],
    warps: u64,
    target: &TargetDesc,
) -> Cost {
    let mut cost = Cost::default();
    let words = words_of(elem_bits);
    let warps = warps as f64;
    let mut stage = |r: &LocalReduction| {
        let values = r.values() * words;
        let sent = (0u64..)
            .zip(&r.halvings)
            .map(|(i, s)| ((r.registers.len() as u64 * words) >> (i + 1), s.instruction));
        for (sent, instruction) in sent {
            cost.shuffles += sent;
            // What stays and what is sent are selected.
            let each = instruction.cycles(target) + 2.0 * target.cost.alu;
            cost.cycles += instruction.latency(target) + warps * sent as f64 * each;
        }
        let sum = |of: fn(ShuffleInstruction, &TargetDesc) -> f64| {
            r.shuffles.iter().map(|s| of(s.instruction, target)).sum::<f64>()
        };
        let combined = (r.combinations() * words) as f64 * target.cost.alu;
        if let Some(combine) = r.whole_warp {
            let instructions = r.values() * combine.instructions(words);
            cost.shuffles += instructions;
            let arithmetic = (r.values() * combine.arithmetic(words)) as f64 * target.cost.alu;
            let each = 2.0 * target.cost.shuffle;
            cost.cycles += combine.in_turn(words) as f64 * target.cost.shuffle_latency
                + warps * (instructions as f64 * each + arithmetic + combined);
            return;
        }
        cost.shuffles += values * r.shuffles.len() as u64;
        cost.cycles += sum(ShuffleInstruction::latency)
            + warps * (values as f64 * sum(ShuffleInstruction::cycles) + combined);
    };
    stage(local);
    if let Some(exchange) = exchange {
        stage(&exchange.combine);
        cost.add(&ConversionPlan::cost_together(&exchange.conversions, target));
    }
    cost
}

/// A layout taken apart for a reduction.
struct Split {
    axis: Dim,
    /// The dimensions that stay.
    outs: Vec<(Dim, u32)>,
    /// Register numbers that lead along the axis only, a basis.
    along: Vectors,
    /// Register bits that lead to different lines.
    beside: Vec<u32>,
    shuffles: Vec<ReduceShuffle>,
    /// Columns over the dimensions that stay, and above them the part of the axis that registers and lanes
    /// do not combine.
    partial: Distributed,
    /// Bits of the dimensions that stay.
    others: u32,
    /// log2 of the partial results per element of the result.
    across: u32,
}

/// The cheapest exchanges that combine the same lanes: each lane that is reached by some of them is also reached by
/// others of the same span, and some distances have cheaper instructions (DPP on AMD GPUs: 1, 2, 7 and 8 in place of 1,
/// 2, 4 and 8). A basis of least cost is found greedily, since bases form a matroid.
fn cheapest(shuffles: Vec<ReduceShuffle>, target: &TargetDesc) -> Vec<ReduceShuffle> {
    // Lanes have at most six bits.
    let sums = 1u64 << shuffles.len().min(6);
    let chosen =
        |sum: u64| shuffles.iter().enumerate().filter(move |(i, _)| sum >> i & 1 == 1).map(|(_, s)| s);
    let combined = |sum: u64| {
        let (lane, value) = chosen(sum).fold((0, 0), |(lane, value), s| (lane ^ s.lane, value ^ s.value));
        (lane != 0).then(|| ReduceShuffle {
            lane,
            value,
            instruction: ShuffleInstruction::for_xor(lane, target),
        })
    };
    let mut all: Vec<(u64, ReduceShuffle)> =
        (1..sums).filter_map(|sum| Some((sum, combined(sum)?))).collect();
    all.sort_by(|(a, x), (b, y)| {
        let (x, y) = (x.instruction.cycles(target), y.instruction.cycles(target));
        x.total_cmp(&y).then(a.count_ones().cmp(&b.count_ones())).then(a.cmp(b))
    });
    let mut span = Echelon::new();
    let mut basis: Vec<ReduceShuffle> =
        all.into_iter().filter(|(sum, _)| span.insert(*sum)).map(|(_, shuffle)| shuffle).collect();
    basis.sort_by_key(|shuffle| shuffle.lane);
    if basis.len() < shuffles.len() {
        return shuffles;
    }
    let cycles = |of: &Vec<ReduceShuffle>| of.iter().map(|s| s.instruction.cycles(target)).sum::<f64>();
    fewest([shuffles, basis], cycles).unwrap_or_default()
}

impl Split {
    fn new(layout: &LinearLayout, axis: Dim, target: &TargetDesc) -> PlanResult<Split> {
        if !layout.has_out_dim(axis) {
            let have = layout.out_dims().map(|d| d.to_string()).collect::<Vec<_>>().join(", ");
            return Err(crate::Error::UnknownDim { side: "output", dim: axis, have }.into());
        }
        let (rank, bits) = (layout.rank(), layout.total_out_bits());
        if rank != bits {
            return Err(crate::Error::NotSurjective { rank, bits }.into());
        }
        let outs: Vec<(Dim, u32)> = layout.out_dim_bits().filter(|d| d.0 != axis).collect();
        let order: Vec<Dim> = outs.iter().map(|d| d.0).chain([axis]).collect();
        let mut d = Distributed::new(layout, &order, target)?;
        d.lane.truncate(layout.in_bits(Dim::LANE) as usize);
        let others: u32 = outs.iter().map(|d| d.1).sum();
        let line = |c: &u64| c & low_mask(others);
        let within: Vectors = d.reg.iter().chain(&d.lane).copied().collect();
        let lines: Vectors = within.iter().map(line).collect();
        let registers = d.reg.len() as u32;
        let beside_bits = f2::independent_columns(&lines[..registers as usize]);
        let beside: Vec<u32> = (0..registers).filter(|i| beside_bits >> i & 1 == 1).collect();
        let columns: Vectors = beside.iter().map(|&b| lines[b as usize]).collect();
        let values = Echelon::of(&columns);
        // The kernel over registers, then over registers and lanes, as far as it leads along the axis.
        let mut reached = Echelon::new();
        let (mut along, mut shuffles) = (Vectors::new(), Vec::new());
        let mut kernel = f2::kernel(&lines);
        kernel.sort_by_key(|x| x.checked_shr(registers).unwrap_or(0));
        for x in kernel.into_iter().filter(|&x| reached.insert(f2::mul(&within, x))) {
            let lane = x.checked_shr(registers).unwrap_or(0);
            if lane == 0 {
                along.push(x);
            } else {
                let value = values.express(f2::mul(&lines, x & low_mask(registers))).unwrap_or(0) as u32;
                let instruction = ShuffleInstruction::for_xor(lane, target);
                shuffles.push(ReduceShuffle { lane, value, instruction });
            }
        }
        let shuffles = cheapest(shuffles, target);
        // The axis modulo what is combined: the coordinates that no leading bit of it takes.
        let left: Vec<u32> = (others..bits).filter(|b| reached.pivots() >> b & 1 == 0).collect();
        let part = |c: &u64| {
            let rest = reached.reduce(*c).0;
            let parts = left.iter().enumerate().fold(0, |p, (i, b)| p | (rest >> b & 1) << i);
            line(c) | u64::checked_shl(parts, others).unwrap_or(0)
        };
        let all = |columns: &Vectors| columns.iter().map(part).collect::<Vectors>();
        let partial = Distributed {
            reg: beside.iter().map(|&b| part(&d.reg[b as usize])).collect(),
            lane: all(&d.lane),
            warp: all(&d.warp),
            block: all(&d.block),
            out_bits: others + left.len() as u32,
        };
        Ok(Split { axis, outs, along, beside, shuffles, partial, others, across: left.len() as u32 })
    }

    /// The columns without the axis.
    fn lines(&self, columns: &[u64]) -> Vectors {
        columns.iter().map(|c| c & low_mask(self.others)).collect()
    }

    fn groups(&self) -> Vec<Vec<u32>> {
        let units: Vectors = self.beside.iter().map(|&b| 1 << b).collect();
        let group = |v: u64| {
            let first = f2::mul(&units, v);
            let mut group: Vec<u32> =
                (0..1u64 << self.along.len()).map(|x| (first ^ f2::mul(&self.along, x)) as u32).collect();
            group.sort_unstable();
            group
        };
        (0..1u64 << self.beside.len()).map(group).collect()
    }

    /// How each warp combines what it has, each exchange on all values.
    fn local(&self) -> LocalReduction {
        let (registers, shuffles) = (self.groups(), self.shuffles.clone());
        LocalReduction { registers, shuffles, ..LocalReduction::default() }
    }

    /// `local` with as many exchanges as can be halvings, and the layout of the values that they leave; `None` where there
    /// is one value or no exchange, or where registers and lanes move together.
    fn halved(&self, local: &LocalReduction, target: &TargetDesc) -> Option<(LocalReduction, Distributed)> {
        let moves = local.whole_warp.is_some() || local.shuffles.iter().any(|shuffle| shuffle.value != 0);
        if moves || self.beside.is_empty() || local.shuffles.is_empty() {
            return None;
        }
        // Most values are sent first, so the cheapest exchange comes first. Lanes that exchange something afterwards must
        // have the same values: the bit that tells the halves apart is in none of the later distances.
        let mut order = local.shuffles.clone();
        order.sort_by(|a, b| {
            let cycles = |s: &ReduceShuffle| s.instruction.cycles(target);
            cycles(a).total_cmp(&cycles(b)).then(b.lane.cmp(&a.lane))
        });
        let (mut partial, mut halvings) = (self.partial.clone(), Vec::new());
        for (i, shuffle) in order.iter().enumerate().take(self.beside.len()) {
            let later = order[i + 1..].iter().fold(0, |all, other| all | other.lane);
            let bit = (0..u64::BITS).find(|bit| (shuffle.lane & !later) >> bit & 1 == 1)?;
            *partial.lane.get_mut(bit as usize)? ^= partial.reg.pop()?;
            halvings.push(ReduceHalving { lane: shuffle.lane, bit, instruction: shuffle.instruction });
        }
        let shuffles = order.split_off(halvings.len());
        let registers = local.registers.clone();
        Some((LocalReduction { registers, halvings, shuffles, whole_warp: None }, partial))
    }

    /// Whether lanes between which nothing is exchanged hold the same elements.
    fn lanes_are_copies(&self) -> bool {
        self.lines(&self.partial.lane).iter().all(|&c| c == 0)
    }

    /// Where the operand's layout without the axis has the results.
    fn place(&self) -> Place {
        let p = &self.partial;
        let lines = |columns: &Vectors| self.lines(columns);
        Place { values: lines(&p.reg), lane: lines(&p.lane), warp: lines(&p.warp), block: lines(&p.block) }
    }

    /// `result` with the names that its dimensions have in the operand's layout.
    fn named(&self, result: &LinearLayout) -> PlanResult<LinearLayout> {
        let (wanted, have): (Vec<u32>, Vec<u32>) =
            (self.outs.iter().map(|out| out.1).collect(), result.out_dim_bits().map(|out| out.1).collect());
        if wanted != have {
            return Err(PlanError::Internal { what: "the result of a reduction has another shape" });
        }
        let (rank, bits) = (result.rank(), result.total_out_bits());
        if rank != bits {
            return Err(crate::Error::NotSurjective { rank, bits }.into());
        }
        let ins: Vec<(Dim, u32)> = result.in_dim_bits().collect();
        Ok(LinearLayout::from_columns(&ins, &self.outs, result.columns().to_vec())?)
    }

    /// Results that are where `partial` says brought to where they are combined: the axis in registers, or as far as there
    /// are lanes that hold replicas of the result, in those.
    fn exchange(
        &self,
        partial: &Distributed,
        place: &Place,
        layout: &LinearLayout,
        (elem_bits, combine): (&[u32], Option<WarpCombine>),
        target: &TargetDesc,
        to_lanes: bool,
    ) -> PlanResult<ReduceExchange> {
        let mut from = partial.clone();
        let Place { values, mut lane, mut warp, mut block } = place.clone();
        let copies = lane.iter().all(|&c| c == 0);
        let mut places = self.across;
        let within = Echelon::of(&from.reg.iter().chain(&from.lane).copied().collect::<Vectors>());
        let stays = from.warp == warp
            && from.block == block
            && values.iter().chain(&lane).all(|&column| within.contains(column));
        if places == 0 && stays {
            // Each warp has all that it wants: where several have the same, a place of the axis keeps them apart.
            let mut span = Echelon::of(&values.iter().chain(&lane).copied().collect::<Vectors>());
            let both = warp.iter_mut().zip(&mut from.warp).chain(block.iter_mut().zip(&mut from.block));
            for (to, from) in both.filter(|(to, _)| !span.insert(**to)) {
                *to |= 1 << (self.others + places);
                *from |= 1 << (self.others + places);
                places += 1;
            }
        }
        let mut outs = self.outs.clone();
        outs.push((self.axis, places));
        let (warp_bits, block_bits) = (layout.in_bits(Dim::WARP), layout.in_bits(Dim::BLOCK));
        let lane_bits = layout.in_bits(Dim::LANE);
        let build = |reg: &Vectors, lane: &Vectors, warp: &Vectors, block: &Vectors| {
            let ins = [
                (Dim::REGISTER, reg.len() as u32),
                (Dim::LANE, lane_bits),
                (Dim::WARP, warp_bits),
                (Dim::BLOCK, block_bits),
            ];
            let columns = reg.iter().chain(lane).chain(warp).chain(block).copied();
            LinearLayout::from_columns(&ins, &outs, columns.collect::<Vec<_>>())
        };
        let partial = build(&from.reg, &from.lane, &from.warp, &from.block)?;
        let mut shuffles = Vec::new();
        let mut parts: Vectors = (0..self.across).map(|i| 1u64 << (self.others + i)).collect();
        if to_lanes {
            for (bit, column) in lane.iter_mut().enumerate().filter(|(_, c)| **c == 0) {
                if parts.is_empty() {
                    break;
                }
                *column = parts.remove(0);
                let instruction = ShuffleInstruction::for_xor(1 << bit, target);
                shuffles.push(ReduceShuffle { lane: 1 << bit, value: 0, instruction });
            }
        }
        let in_registers = parts.len();
        let reg: Vectors = parts.iter().chain(&values).copied().collect();
        let gathered = build(&reg, &lane, &warp, &block)?;
        let group = |v: u32| (0..1u32 << in_registers).map(|x| v << in_registers | x).collect();
        let registers = (0..1u32 << values.len()).map(group).collect();
        let conversion = |&bits: &u32| ConversionPlan::new(&partial, &gathered, bits, target);
        let conversions = elem_bits.iter().map(conversion).collect::<PlanResult<Vec<_>>>()?;
        let local = LocalReduction { registers, shuffles, ..LocalReduction::default() };
        let combine = local.with_whole_warp(combine, copies, words_of(elem_bits), target);
        Ok(ReduceExchange { partial, gathered, conversions, combine })
    }
}

/// Where results are wanted: columns over the dimensions that stay.
#[derive(Clone)]
struct Place {
    /// Of registers, without those that hold copies.
    values: Vectors,
    lane: Vectors,
    warp: Vectors,
    block: Vectors,
}

impl Place {
    /// Where `result` has them.
    fn of(result: &LinearLayout, target: &TargetDesc) -> PlanResult<Place> {
        let order: Vec<Dim> = result.out_dims().collect();
        let Distributed { reg, mut lane, warp, block, .. } = Distributed::new(result, &order, target)?;
        lane.truncate(result.in_bits(Dim::LANE) as usize);
        let independent = f2::independent_columns(&reg);
        let values =
            reg.iter().enumerate().filter(|(i, _)| independent >> i & 1 == 1).map(|(_, c)| *c).collect();
        Ok(Place { values, lane, warp, block })
    }

    /// The value of each register of a result in whose layout registers have these columns.
    fn values_of(&self, registers: &[u64]) -> Vec<u32> {
        let values = Echelon::of(&self.values);
        (0..1u64 << registers.len())
            .map(|r| values.express(f2::mul(registers, r)).unwrap_or(0) as u32)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lanes at these distances, exchanged as `cheapest` has it.
    fn distances(lanes: &[u64], target: &str) -> Vec<u64> {
        let target = TargetDesc::parse(target).unwrap();
        let shuffle = |&lane: &u64| ReduceShuffle {
            lane,
            value: 0,
            instruction: ShuffleInstruction::for_xor(lane, &target),
        };
        cheapest(lanes.iter().map(shuffle).collect(), &target).iter().map(|s| s.lane).collect()
    }

    #[test]
    fn distances_are_changed_where_that_is_cheaper_only() {
        // All cost the same.
        assert_eq!(distances(&[3, 1], "cuda:80"), [3, 1]);
        assert_eq!(distances(&[16, 8, 4, 2, 1], "cuda:80"), [16, 8, 4, 2, 1]);
        // Neighbours have an instruction of their own, and they differ by both of these.
        assert_eq!(distances(&[17, 16], "hip:gfx942"), [1, 17]);
        assert_eq!(distances(&[1, 2, 4, 8], "hip:gfx942"), [1, 2, 7, 8]);
    }
}
