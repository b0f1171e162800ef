//! The objective: what a function costs in the layouts that it has, in cycles of one CTA.
//!
//! [`Objective::cycles`] is what one operation takes once, by its plan wherever there is one: conversions, accesses to
//! global and to shared memory, reductions, scans and gathers, arithmetic for each element that a thread computes
//! (replication counts, copies in registers do not). [`Objective::of_function`] weighs that by how often each place
//! runs; [`spills`] is what registers beyond those of a thread cost besides. The layout engine chooses layouts by the former and
//! keeps a choice only where the latter falls. `docs/objective.md` has the terms and where their constants come from.

use crate::analysis::axis_info::{AxisInfo, AxisInfoAnalysis};
use crate::analysis::registers::{registers_of_warps, spilled_registers};
use crate::buffer_accesses::may_be_marked;
use crate::buffer_plans;
use crate::ir_util::{is_loop, layout_of, trip_count};
use crate::machine::{Layouts, Machine};
use crate::optimize_thread_locality::{is_added_up, times_added_up};
use crate::plans::{self, AccessFacts, Fused};
use crate::rules::{Rule, is_cheap, is_conversion, rule};
use linear_layout::plan::{AddressFacts, Conversion as Moves, ConversionPlan, VectorPlan};
use linear_layout::target::{Direction, HalfSums, TargetDesc};
use linear_layout::{Dim, LinearLayout};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Region, TensorType, Value, Walk};
use mlir_host::upstream::{Dialect, ForOp, IfOp};
use smallvec::SmallVec;
use std::cell::{OnceCell, RefCell};
use std::cmp::Ordering;
use ttopt_dialect::tt::ops::{LoadOp, SplatOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::layout::{equivalent, to_linear_layout};
use ttopt_dialect::ttg::ops::LocalLoadOp;
use ttopt_dialect::ttg::types::MemDescType;

pub(crate) mod arithmetic;
#[cfg(test)]
mod tests;

/// Conversions move data of every warp and synchronize: they weigh more than
/// the same cycles of arithmetic that other warps can fill.
pub const SYNCHRONIZATION: f64 = 8.0;

/// Cycles of any conversion where the module does not say what GPU it is for: more than what any other way to
/// get a value takes, so that the fewest conversions are left.
const UNKNOWN: Conversion = Conversion::Cycles { all: 1e6, waits: 0.0 };

/// Bits of a register.
const REGISTER_BITS: u32 = 32;
/// Operations on registers for each element that comes out of a pair of 4 bits.
const UNPACK: f64 = 4.0;

/// The layout, shape, and bits of an element of an access, whether it stores and whether it branches, how it adds floats of 16 bits,
/// and its addresses.
type Access<'c> = (Attr<'c>, SmallVec<[i64; 4]>, u32, [bool; 2], Option<HalfSums>, AddressFacts);

/// Cycles of converting a tensor of type `ty` to another layout; `None` where no plan does.
pub fn conversion<'c>(ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
    match known_conversion(ty, to, layouts) {
        Conversion::Same => Some(0.0),
        Conversion::Cycles { all, .. } => Some(all),
        Conversion::Impossible => None,
    }
}

/// Cycles that a conversion takes less where it waits together with another one.
pub fn waiting<'c>(ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> f64 {
    match known_conversion(ty, to, layouts) {
        Conversion::Cycles { waits, .. } if waits > 0.0 => waits + SYNCHRONIZATION,
        _ => 0.0,
    }
}

/// The cycles of a conversion with what waits for it, or nothing for a conversion that will not be done
/// (`Layouts::set_provisional`).
pub fn converting<'c>(ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
    if layouts.is_provisional(to) {
        return Some(0.0);
    }
    Some(conversion(ty, to, layouts)? + SYNCHRONIZATION)
}

/// What is known of the conversion of a type to a layout.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Conversion {
    /// The two layouts are equal.
    Same,
    /// It takes so many cycles, of which it spends some on latencies and barriers that another conversion can share.
    Cycles { all: f64, waits: f64 },
    /// There is no plan.
    Impossible,
}

fn known_conversion<'c>(ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Conversion {
    *layouts.conversions.borrow_mut().entry((ty, to)).or_insert_with(|| {
        if ty.encoding().is_some_and(|from| equivalent(from, to, &ty.shape())) {
            return Conversion::Same;
        }
        let Some(target) = target(&layouts.machine) else { return UNKNOWN };
        match plans::conversion_to(ty, to, target) {
            Ok(plan) => {
                let all = plan.cost.cycles + packing(ty, to, &plan, target);
                Conversion::Cycles { all, waits: plan.waits(target) }
            }
            Err(_) => Conversion::Impossible,
        }
    })
}

/// Cycles of making what `plan` moves between threads from what they have, and what they want from that.
///
/// Booleans are in predicates, and bytes on the way: a select for each register that has one, and a comparison for each that gets one. Plans take
/// bytes from words; where a thread holds them one by one, four are put together by three instructions, and integers, which no cast takes in
/// pairs, are taken apart by as many.
fn packing<'c>(ty: TensorType<'c>, to: Attr<'c>, plan: &ConversionPlan, target: &TargetDesc) -> f64 {
    const OF_BYTES: f64 = 0.75;
    let is_moved = !matches!(plan.conversion, Moves::NoOp | Moves::RegisterPermute { .. });
    let Some(bits @ (1 | 8)) = ty.element().bits().filter(|_| is_moved) else { return 0.0 };
    let layout_of = |layout: Attr<'c>| to_linear_layout(layout, &ty.shape()).ok();
    let Some((from, to)) = ty.encoding().and_then(layout_of).zip(layout_of(to)) else { return 0.0 };
    let registers = |layout: &LinearLayout| f64::from(1u32 << layout.in_bits(Dim::REGISTER)) * warps(layout);
    let instructions = if bits == 1 {
        registers(&from) + registers(&to)
    } else if from.in_bits(Dim::REGISTER) == 0 || has_words_of_bytes(&from) {
        0.0
    } else {
        OF_BYTES * (registers(&from) + if ty.element().is_float() { 0.0 } else { registers(&to) })
    };
    instructions * target.cost.alu
}

/// Whether the first four registers of a thread hold neighbours along a dimension, as those do that are loaded at once.
fn has_words_of_bytes(layout: &LinearLayout) -> bool {
    let along = |bit: u32| {
        let coords = layout.basis_coords(Dim::REGISTER, bit)?;
        let mut nonzero = coords.iter().enumerate().filter(|(_, coord)| **coord != 0);
        let (dimension, step) = nonzero.next()?;
        (*step == 1 << bit && nonzero.next().is_none()).then_some(dimension)
    };
    along(0).is_some() && along(0) == along(1)
}

/// Assumed iterations of a loop that does not say how many it has.
pub(crate) const ITERATIONS: f64 = 16.0;

/// Iterations of `op`, if it is a loop: as many as its bounds say where they are constants.
fn iterations(op: Op<'_>) -> f64 {
    let known = ForOp::cast(op).and_then(|_| trip_count(op));
    known.map_or(ITERATIONS, |count| count.max(1) as f64)
}

/// How often a place within loops runs compared with one outside of them.
pub fn weight(op: Op<'_>) -> f64 {
    let around = std::iter::successors(op.parent(), |op| op.parent());
    around.filter(|op| is_loop(*op)).map(iterations).product()
}

/// How often the place where a value is defined runs.
pub fn weight_of(value: Value<'_>) -> f64 {
    match (value.def_op(), value.arg_block().and_then(Block::parent)) {
        (Some(op), _) => weight(op),
        (None, Some(op)) if is_loop(op) => weight(op) * iterations(op),
        (None, Some(op)) => weight(op),
        (None, None) => 1.0,
    }
}

/// How likely control is taken to reach `op` in the function: half for each branch.
fn chance(op: Op<'_>) -> f64 {
    let mut chance = 1.0;
    let mut at = Some(op);
    while let Some(op) = at {
        let entry = op.block().and_then(Block::parent_region).and_then(Region::first_block);
        let parent = op.parent();
        if op.block() != entry || parent.and_then(IfOp::cast).is_some() {
            chance /= 2.0;
        }
        at = parent;
    }
    chance
}

/// Whether the registers of the results are those of the operands, in another order or several times.
fn only_renames(op: Op<'_>) -> bool {
    let moves = matches!(
        rule(op),
        Some(
            Rule::Broadcast
                | Rule::ExpandDims(_)
                | Rule::Trans
                | Rule::Reshape
                | Rule::ReshapeAny
                | Rule::Join
        )
    );
    moves || SplatOp::cast(op).is_some()
}

/// What cycles are for.
pub(crate) const TERMS: [&str; 8] = [
    "loads",
    "stores",
    "atomics",
    "shared memory",
    "conversions",
    "reductions, scans, gathers",
    "arithmetic",
    "special functions",
];

/// What the cycles of `op` are for, if it takes any.
pub(crate) fn term(op: Op<'_>) -> Option<&'static str> {
    Some(match rule(op)? {
        Rule::Memory if LoadOp::cast(op).is_some() => "loads",
        Rule::Memory if op.num_results() == 0 => "stores",
        Rule::Memory => "atomics",
        Rule::Any => "shared memory",
        Rule::Convert => "conversions",
        Rule::Reduce(_) | Rule::Scan | Rule::Gather => "reductions, scans, gathers",
        Rule::Same | Rule::Unpack(_) if Dialect::of(op) == Some(Dialect::Math) => "special functions",
        Rule::Same | Rule::Unpack(_) => "arithmetic",
        _ => return None,
    })
}

/// The warps that hold a tensor in `layout`: those of its thread group, which need not be all of the module's.
fn warps(layout: &LinearLayout) -> f64 {
    layout.in_size(Dim::WARP).unwrap_or(1) as f64
}

/// Whether a value takes more than half of the registers of a thread in `layout`, and fewer as it is: operands of dots without matrix
/// instructions, of which each thread has whole rows. A conversion in front of the dot is read in steps, but what is carried is held.
pub(crate) fn fills_registers<'c>(value: Value<'c>, layout: Attr<'c>, layouts: &Layouts<'c>) -> bool {
    let machine = &layouts.machine;
    let (Some(ty), Some(target)) = (value.ty().as_tensor(), target(machine)) else { return false };
    let words = |layout: Attr<'c>| {
        let linear = to_linear_layout(layout, &ty.shape()).ok()?;
        let distinct = linear.in_bits(Dim::REGISTER) - linear.free_variable_mask(Dim::REGISTER).count_ones();
        Some((u64::from(ty.element().bits()?) << distinct).div_ceil(u64::from(REGISTER_BITS)))
    };
    let (Some(now), Some(then)) = (ty.encoding().and_then(words), words(layout)) else { return false };
    then > now && 2 * then > registers_of_warps(machine.num_warps, target)
}

/// The part of a thread's registers in which what a load gives finds room: the rest is for what lives across it, and what uses it.
/// Measured (docs/objective.md).
const ROOM_OF_LOADS: f64 = 1.0 / 8.0;

/// Loads of a plan for whose results a thread has no room. Layouts whose threads hold the same elements, such as those of operands of
/// dots without matrix instructions, have many.
fn late_loads(plan: &VectorPlan, warps: f64, machine: &TargetDesc) -> f64 {
    let each = f64::from(plan.vec_elems * plan.elem_bits) / f64::from(REGISTER_BITS);
    let room = (registers_of_warps(warps as u64, machine) as f64 * ROOM_OF_LOADS).ceil();
    (plan.accesses.len() as f64 - room / each).max(0.0)
}

/// Bits of the lanes of a warp that load the same in a load that is replicated.
const REPLICATED_LANES: u32 = 2;
/// Accesses of a thread in such a load.
const REPLICATED_ACCESSES: usize = 8;

/// Whether a load is replicated: at least four lanes load the same, and a thread accesses memory at least eight times for it.
fn is_replicated(layout: &LinearLayout, plan: &VectorPlan) -> bool {
    plan.accesses.len() >= REPLICATED_ACCESSES && may_be_replicated(layout)
}

/// The same where it is not known how many registers an access fills.
fn may_be_replicated(layout: &LinearLayout) -> bool {
    1 << layout.in_bits(Dim::REGISTER) >= REPLICATED_ACCESSES
        && layout.free_variable_mask(Dim::LANE).count_ones() >= REPLICATED_LANES
}

/// What a whole function costs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Total {
    /// Operations that no plan does.
    pub unplanned: usize,
    /// Cycles of all others; those of [`spills`] come besides.
    pub cycles: f64,
}

/// Cycles of the registers that `function` needs beyond those of a thread: each is written to the stack of each thread
/// where it begins not to fit, and read again, a line of each warp both times.
pub fn spills<'c>(function: Op<'c>, layouts: &Layouts<'c>) -> f64 {
    let Some(target) = target(&layouts.machine) else { return 0.0 };
    let warps = layouts.machine.num_warps;
    let each = 2.0 * warps as f64 * (target.cost.request + 1.0);
    let spilled = spilled_registers(function, warps, target);
    spilled.iter().map(|(op, count)| *count as f64 * each * weight(*op)).sum()
}

impl Total {
    /// How the two compare: what no plan does is worse than any number of cycles.
    pub fn compare(&self, other: &Total) -> Ordering {
        // Below this the difference is an error of rounding.
        const LEAST: f64 = 1.0 + 1e-9;
        let cycles = if other.cycles > self.cycles * LEAST {
            Ordering::Less
        } else if self.cycles > other.cycles * LEAST {
            Ordering::Greater
        } else {
            Ordering::Equal
        };
        self.unplanned.cmp(&other.unplanned).then(cycles)
    }
}

/// Costs of the operations of a module.
pub struct Objective<'c> {
    module: Op<'c>,
    /// Whether reductions give their results in the layouts that these are converted to, where that costs less.
    fuses: bool,
    /// Whether sums over loops are still to be kept in threads.
    keeps_sums: bool,
    /// How many times loads cost that are replicated ([`has_replicas`](Objective::has_replicas)).
    times_replicated: f64,
    /// Made when the first access to memory is to be moved.
    analysis: OnceCell<AxisInfoAnalysis<'c>>,
    /// Cycles of accesses to memory.
    accesses: RefCell<FastMap<Access<'c>, Option<f64>>>,
    /// Registers of a type in a layout that hold no copies.
    registers: RefCell<FastMap<(TensorType<'c>, Attr<'c>), f64>>,
}

fn target(machine: &Machine) -> Option<&TargetDesc> {
    machine.target.as_ref()
}

impl<'c> Objective<'c> {
    /// Costs of the operations of a module.
    pub fn new(module: Op<'c>) -> Self {
        Self {
            module,
            fuses: true,
            keeps_sums: false,
            times_replicated: 1.0,
            analysis: OnceCell::new(),
            accesses: RefCell::default(),
            registers: RefCell::default(),
        }
    }

    /// The same before `tritongpu-optimize-thread-locality` ran: of what a loop adds up, threads exchange data once after it.
    pub fn before_sums(module: Op<'c>) -> Self {
        Self { keeps_sums: true, ..Self::new(module) }
    }

    /// The same where loads that are replicated ([`has_replicas`](Objective::has_replicas)) cost twice: they take registers, predicates and
    /// latency that are not counted.
    pub fn with_few_replicas(self) -> Self {
        Self { times_replicated: 2.0, ..self }
    }

    /// The same with each conversion counted by itself, so that what operations cost does not depend on what is done with their
    /// results.
    pub fn one_by_one(module: Op<'c>) -> Self {
        Self { fuses: false, ..Self::new(module) }
    }

    /// The reduction `op` with the conversions of its results, where both are one. (What is added up over a loop costs nothing in it, as
    /// long as nothing is converted between.)
    fn fused(&self, op: Op<'c>, target: &TargetDesc) -> Option<Fused<'c>> {
        plans::fused(op, target).filter(|_| self.fuses && !is_added_up(op))
    }

    /// Nothing that is known, and costs alike, of the operations of `module`.
    pub fn anew(&self, module: Op<'c>) -> Self {
        let Self { keeps_sums, times_replicated, .. } = *self;
        Self { keeps_sums, times_replicated, ..Self::new(module) }
    }

    /// Costs of the operations of `copy`, a copy of the module as it was before it changed: `originals` has the value that
    /// each value of the copy is a copy of. What is known of the one's numbers is known of the other's.
    pub fn of_copy(&self, copy: Op<'c>, originals: FastMap<Value<'c>, Value<'c>>) -> Self {
        let objective = self.anew(copy);
        if let Some(analysis) = self.analysis.get() {
            _ = objective.analysis.set(analysis.of_copy(originals));
        }
        objective
    }

    /// Of `function` in the layouts that it has.
    pub fn of_function(&self, function: Op<'c>, layouts: &Layouts<'c>) -> Total {
        self.of_function_until(function, layouts, f64::INFINITY)
    }

    /// The same, but no more is added up than it takes to exceed `enough` cycles: conversions first.
    pub fn of_function_until(&self, function: Op<'c>, layouts: &Layouts<'c>, enough: f64) -> Total {
        let mut total = Total::default();
        for conversions in [true, false] {
            let walked = function.walk(&mut |op| {
                if is_conversion(op) == conversions {
                    match self.cycles(op, layouts) {
                        Some(0.0) => {}
                        Some(cycles) => total.cycles += cycles * weight(op) * chance(op),
                        None => total.unplanned += 1,
                    }
                }
                if total.cycles > enough { Walk::Stop } else { Walk::Advance }
            });
            if walked == Walk::Stop {
                break;
            }
        }
        total
    }

    /// Of `function`, by what it is for; registers beyond those of a thread count, too. What no plan does is left out.
    pub fn terms(&self, function: Op<'c>, layouts: &Layouts<'c>) -> Vec<(&'static str, f64)> {
        let mut terms = TERMS.map(|name| (name, 0.0));
        function.walk(&mut |op| {
            if let (Some(cycles), Some(term)) = (self.cycles(op, layouts), term(op)) {
                let at = TERMS.iter().position(|name| *name == term).unwrap_or(0);
                terms[at].1 += cycles * weight(op) * chance(op);
            }
            Walk::Advance
        });
        terms.into_iter().chain([("spilled registers", spills(function, layouts))]).collect()
    }

    /// Of `op`, once, in the layouts that its operands and results have: zero for what moves and computes nothing;
    /// `None` where it is to be done as no plan does.
    pub fn cycles(&self, op: Op<'c>, layouts: &Layouts<'c>) -> Option<f64> {
        let tensor = |value: Value<'c>| value.ty().as_tensor().and_then(|ty| Some((ty, ty.encoding()?)));
        let rule = rule(op);
        if rule == Some(Rule::Convert) {
            let reduce = op.operand(0).def_op().zip(target(&layouts.machine));
            if reduce.is_some_and(|(reduce, target)| self.fused(reduce, target).is_some()) {
                return Some(0.0);
            }
            return match (op.operand(0).ty().as_tensor(), layout_of(op.result(0))) {
                (Some(ty), Some(to)) => converting(ty, to, layouts),
                _ => Some(0.0),
            };
        }
        let Some(target) = target(&layouts.machine) else { return Some(0.0) };
        match rule {
            Some(Rule::Any) => {
                let plan = if let Some((value, buffer)) = buffer_plans::stored(op) {
                    buffer_plans::access(value.ty(), buffer, Direction::Store, target)
                } else {
                    let load = LocalLoadOp::cast(op);
                    let buffer = load.and_then(|load| MemDescType::cast(load.src().ty()));
                    let Some(buffer) = buffer else { return Some(0.0) };
                    buffer_plans::access(op.result(0).ty(), buffer, Direction::Load, target)
                };
                Some(plan.ok()?.access.cycles(target))
            }
            // The source need not have the layout of the indices.
            Some(Rule::Gather) if tensor(op.operand(0)).is_some() => {
                Some(plans::gather(op, target).ok()?.cost.cycles)
            }
            Some(Rule::Reduce(_) | Rule::Scan | Rule::Gather) => {
                let Some((_, layout)) = tensor(op.operand(0)) else { return Some(0.0) };
                if let Some(fused) = self.fused(op, target) {
                    return Some(fused.plan.cost.cycles);
                }
                self.cycles_in(op, layout, layouts)
            }
            Some(Rule::Memory) => {
                // What is accessed: the result, or what is stored.
                let value = op.results().next().or_else(|| op.operands().nth(1));
                let Some((_, layout)) = value.and_then(tensor) else { return Some(0.0) };
                self.cycles_in(op, layout, layouts)
            }
            Some(Rule::Same | Rule::Unpack(_)) => {
                let Some((_, layout)) = op.results().next().and_then(tensor) else { return Some(0.0) };
                self.cycles_in(op, layout, layouts)
            }
            _ => Some(0.0),
        }
    }

    /// Of `op`, once, as if the tensor that its cost follows from were in `layout`: what reductions, scans and gathers
    /// take, what is loaded or stored, and the result of arithmetic.
    pub fn cycles_in(&self, op: Op<'c>, layout: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
        let Some(target) = target(&layouts.machine) else { return Some(0.0) };
        match rule(op) {
            Some(Rule::Reduce(_) | Rule::Scan | Rule::Gather) => {
                let ty = op.operand(0).ty().as_tensor()?;
                let layout = to_linear_layout(layout, &ty.shape()).ok()?;
                match self.keeps_sums.then(|| times_added_up(op, &layout)).flatten() {
                    Some(times) => plans::cost_of_sum(op, &layout, times, target).ok(),
                    None => plans::cost_along(op, &layout, target).ok(),
                }
            }
            Some(Rule::Memory) => {
                let value = op.results().next().or_else(|| op.operands().nth(1))?;
                self.access(op, value.ty().as_tensor()?, layout, layouts)
            }
            Some(Rule::Same | Rule::Unpack(_)) => {
                let ty = op.results().next()?.ty().as_tensor()?;
                let linear = to_linear_layout(layout, &ty.shape()).ok()?;
                let each = Self::element(op, target);
                Some(self.computed(op, ty, layout, &linear) * warps(&linear) * each)
            }
            _ => Some(0.0),
        }
    }

    /// Cycles of a warp for each element that `op` computes of its operands.
    fn element(op: Op<'c>, target: &TargetDesc) -> f64 {
        match rule(op) {
            Some(Rule::Unpack(_)) => UNPACK * target.cost.alu,
            _ => arithmetic::cycles(op, &target.cost),
        }
    }

    /// Of computing `op` once more with results of type `ty` in layout `to`;
    /// `None` where it must not be copied.
    pub fn copy(&self, op: Op<'c>, ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
        let same = || known_conversion(ty, to, layouts) == Conversion::Same;
        // The same computation on the same registers: one of the two goes.
        if (is_cheap(op) || matches!(rule(op), Some(Rule::Unpack(_)))) && same() {
            return Some(0.0);
        }
        self.computing(op, ty, to, layouts)
    }

    /// Of computing `op` with results of type `ty` in layout `to`; `None` where
    /// it must not be copied.
    pub fn computing(
        &self,
        op: Op<'c>,
        ty: TensorType<'c>,
        to: Attr<'c>,
        layouts: &Layouts<'c>,
    ) -> Option<f64> {
        let layout = to_linear_layout(to, &ty.shape()).ok()?;
        let load = LoadOp::cast(op);
        let warps = warps(&layout);
        if op.num_operands() == 0 || only_renames(op) {
            return Some(0.0);
        }
        if is_cheap(op) || matches!(rule(op), Some(Rule::Unpack(_))) {
            let each = target(&layouts.machine).map_or(0.5, |target| Self::element(op, target));
            return Some(self.computed(op, ty, to, &layout) * warps * each);
        }
        load.filter(|load| !load.is_volatile())?;
        self.access(op, ty, to, layouts)
    }

    /// Of reading or writing a tensor of type `ty` in layout `to` by `op`, through a tensor of pointers.
    pub fn access(&self, op: Op<'c>, ty: TensorType<'c>, to: Attr<'c>, layouts: &Layouts<'c>) -> Option<f64> {
        let layout = to_linear_layout(to, &ty.shape()).ok()?;
        let facts = AccessFacts::of(op, self.analysis())?;
        let machine = target(&layouts.machine)?;
        let bits = 8 * facts.bytes as u32;
        let addresses = facts.addresses(plans::most_elems(op, machine));
        let stores = plans::writes(op);
        // A buffer instruction is masked by its offset.
        let branches = facts.mask != u64::MAX && machine.cost.mask > 0.0 && !may_be_marked(op, machine);
        let sums = plans::half_sums(op, machine);
        let key = (to, SmallVec::from_slice(ty.sizes()), bits, [stores, branches], sums, addresses);
        if let Some(cycles) = self.accesses.borrow().get(&key) {
            return *cycles;
        }
        let plan = plans::access_in(op, &layout, &facts, machine).ok();
        let mask = if branches { machine.cost.mask } else { 0.0 };
        let cycles = plan.map(|plan| {
            let fills = plan.vec_elems * plan.elem_bits >= REGISTER_BITS;
            let packing = if stores || fills { 0.0 } else { machine.cost.packing };
            let more = sums.map_or(0.0, |sums| sums.instructions(plan.vec_elems == 1) - 1.0);
            let times = if !stores && is_replicated(&layout, &plan) { self.times_replicated } else { 1.0 };
            times * Self::accesses(&layout, &plan, stores, mask + packing + more * machine.cost.alu, machine)
        });
        self.accesses.borrow_mut().insert(key, cycles);
        cycles
    }

    /// Of the accesses of a plan by all warps, with each of which goes what costs `beside`.
    fn accesses(
        layout: &LinearLayout,
        plan: &VectorPlan,
        stores: bool,
        beside: f64,
        machine: &TargetDesc,
    ) -> f64 {
        let cost = &machine.cost;
        let copies = |dim| layout.free_variable_mask(dim).count_ones();
        // Only one of the warps that hold replicas writes.
        let idle = if stores { copies(Dim::WARP) } else { 0 };
        let warps = warps(layout) / f64::from(1u32 << idle);
        let lanes = 1u64 << (layout.in_bits(Dim::LANE) - copies(Dim::LANE));
        let touched = plan.touched(lanes, warps);
        let served = cost.loaded(touched);
        // What is loaded stays in the L1, what is stored goes on.
        let moved = if stores { served.max(cost.stored(touched)) } else { served };
        let count = plan.accesses.len() as f64;
        let late = if stores { 0.0 } else { late_loads(plan, warps, machine) };
        warps * (count * (cost.request + beside + moved) + late * cost.late)
    }

    /// Whether a load of `module` is replicated: at least four lanes load the same, and a thread accesses memory at least eight times for
    /// it. Such a load costs least in issue slots, but takes registers and predicates, and more of memory's latency, than a conversion.
    pub fn has_replicas(&self, module: Op<'c>, layouts: &Layouts<'c>) -> bool {
        let Some(target) = target(&layouts.machine) else { return false };
        let is_one = |op: Op<'c>| {
            let ty = LoadOp::cast(op)?.result().ty().as_tensor()?;
            let layout = to_linear_layout(ty.encoding()?, &ty.shape()).ok()?;
            // The analysis behind a plan is made for loads that need it only.
            let plan = || plans::access(op, self.analysis(), target).ok();
            Some(may_be_replicated(&layout) && is_replicated(&layout, &plan()?))
        };
        module.walk(&mut |op| if is_one(op) == Some(true) { Walk::Stop } else { Walk::Advance }) == Walk::Stop
    }

    /// What is known of integers and pointers, found out where it was not. Whoever asks for costs while operations are
    /// being moved asks for this before, for then control flow cannot be followed.
    pub fn analysis(&self) -> &AxisInfoAnalysis<'c> {
        self.analysis.get_or_init(|| AxisInfoAnalysis::new(self.module))
    }

    /// Notes that `made`, a new value, has the numbers of `value`.
    pub fn note(&self, made: Value<'c>, value: Value<'c>) {
        // An analysis that is made later sees both.
        if let Some(analysis) = self.analysis.get() {
            analysis.note(made, value);
        }
    }

    /// Registers of `layout`, which is `to`, for whose values `op` computes something. Those that hold replicas are
    /// computed once; integers and pointers that are constants apart become offsets in instructions.
    fn computed(&self, op: Op<'c>, ty: TensorType<'c>, to: Attr<'c>, layout: &LinearLayout) -> f64 {
        let numbers = pointee(ty.element()).is_some() || ty.element().int_bits().is_some();
        let info = numbers.then(|| self.analysis().get(op.result(0))).flatten();
        let count = |info: Option<&AxisInfo>| {
            let own = |bit: &u32| {
                let Some(step) = layout.basis_coords(Dim::REGISTER, *bit) else { return false };
                let mut moved = step.iter().enumerate().filter(|(_, step)| **step != 0);
                match (moved.next(), moved.next(), info) {
                    (None, ..) => false,
                    (Some((d, step)), None, Some(info)) => 2 * step > info.runs[d].len,
                    _ => true,
                }
            };
            (1u64 << (0..layout.in_bits(Dim::REGISTER)).filter(own).count()) as f64
        };
        match info.filter(|info| info.rank() == ty.rank()) {
            None => *self.registers.borrow_mut().entry((ty, to)).or_insert_with(|| count(None)),
            info => count(info),
        }
    }
}
