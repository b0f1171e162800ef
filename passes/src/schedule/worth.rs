//! Whether a pipeline is worth the shared memory that it takes.
//!
//! A pipeline hides the latency of loads behind earlier iterations of its own CTA. Other CTAs of the multiprocessor hide it
//! too, and everything else besides: barriers, dependent instructions, prologues and epilogues. Where rings take shared
//! memory that more CTAs would fit in, the two are weighed: an iteration takes what it computes and waits for, divided
//! by how many CTAs run beside each other.

use super::nest::{Nest, is_alone};
use super::one_loop::Pair;
use super::plan::{Budget, FEW_PROGRAMS, Kind, LoopSchedule};
use super::source::{Demand, Source};
use crate::analysis::balance::Balance;
use crate::analysis::registers::{
    RESERVED, UNSEEN_REGISTERS, ctas_with, knows_ctas, simds, spilled_registers, surely_fit,
};
use crate::choice::{Candidate, Choice, Unit};
use crate::ir_util::{enclosing_function, is_dot, trip_count};
use crate::machine::{Layouts, Machine};
use crate::objective::{ITERATIONS, Objective};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Op, Walk};
use std::fmt;

/// Cycles from a load of data that is not in the L1 to its use, while other CTAs load, too. Unmeasured.
const MEMORY_LATENCY: f64 = 1000.0;
/// Cycles for whose copies bytes have to be under way: on an H100, matmuls run as fast as they can from there on
/// (docs/schedules.md).
const ANSWER: f64 = 870.0;
/// Cycles of an iteration, as they are estimated for a CTA alone, up to which it waits for what the one before loaded: 0.89 to 2.8 of the
/// speed with loads seven iterations ahead, of longer ones 0.49 to 1.3 (H100, docs/schedules.md, "Registers of their own").
const SHORT_ITERATION: f64 = 1400.0;
/// The share of the L2 that copies under way may take. On an H100 matmuls lose by more: `moe_matmul` runs 1.25 times as fast, with
/// L2 hits of 49 % in place of 41 %, where 96 KiB are under way on a multiprocessor in place of 144 (docs/schedules.md).
const SHARE_OF_L2: f64 = 0.295;
/// Iterations from which on a loop is not mostly prologue and end.
const MANY_TRIPS: u64 = 8;
/// Iterations up to which a pipeline hides too little for what it takes of threads that spill: the three of 712 kernels with dots for which
/// that holds, with two and four of them, run 1.03 to 1.16 times as fast without (H200, docs/schedules.md, "Whether it pays").
const FEW_TRIPS: u64 = 4;
/// Times as long as without it a loop takes with a pipeline that is left out although nobody knows how long the loop is, since CTAs of few
/// warps do not fill a multiprocessor then (docs/schedules.md, "Whether it pays").
const IDLE_PARTS: f64 = 2.0;
/// A share of cycles that is clearly less. Unmeasured.
const CLEARLY: f64 = 0.95;
/// Parts of a multiprocessor, of which a warp uses one (CUDA programming guide, "Hardware Multithreading").
pub const PARTS: f64 = 4.0;

/// Cycles of `trips` iterations of `own` cycles each, of which loads run ahead by `stages` less one.
fn piped(trips: u64, own: f64, stages: u32) -> f64 {
    let trips = trips.max(1) as f64;
    let hidden = own * f64::from(stages - 1);
    MEMORY_LATENCY + trips * own + (trips - 1.0) * (MEMORY_LATENCY - hidden).max(0.0)
}

/// The same where each iteration waits for what it loads.
fn plain(trips: u64, own: f64) -> f64 {
    trips.max(1) as f64 * (own + MEMORY_LATENCY)
}

/// Bytes that dots read themselves: these are in shared memory in any case.
fn operand_bytes(source: &Source<'_>) -> u64 {
    let graph = &source.graph;
    let read_by_dots =
        |ring: &usize| graph.nodes.iter().any(|node| node.kind == Kind::Dot && node.reads.contains(ring));
    (0..graph.rings.len()).filter(read_by_dots).map(|ring| graph.rings[ring]).sum()
}

/// What a tile takes with its prologue before its loop, and behind the loop of the tile before: cycles of a multiprocessor for
/// each CTA that it holds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PrologueAhead {
    behind: f64,
    before: f64,
    /// Whether CTAs share a multiprocessor: then they hide each other's latency, and registers are what there is too little of.
    shared: bool,
}

impl PrologueAhead {
    /// Whether tiles take less with their prologues ahead.
    pub fn pays(&self) -> bool {
        !self.shared && self.before < self.behind
    }
}

/// What an iteration of an outer loop takes: cycles of a CTA.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OneLoop {
    two: f64,
    one: f64,
}

impl OneLoop {
    /// Whether one loop takes less: clearly, since branches and what else iterations carry are not counted.
    pub fn pays(&self) -> bool {
        self.one < CLEARLY * self.two
    }
}

impl fmt::Display for OneLoop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "an iteration of the outer one takes {:.0} cycles as one loop, {:.0} as two",
            self.one, self.two
        )
    }
}

impl fmt::Display for PrologueAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a tile takes {:.0} cycles with that, {:.0} without", self.before, self.behind)?;
        if self.shared { write!(f, ", where other CTAs may hide latency") } else { Ok(()) }
    }
}

/// What the comparison needs to know.
pub struct Worth<'c, 't> {
    objective: Objective<'c>,
    layouts: Layouts<'c>,
    target: &'t TargetDesc,
}

impl<'c, 't> Worth<'c, 't> {
    /// For the loops of `module`.
    pub fn new(module: Op<'c>, machine: Machine, target: &'t TargetDesc) -> Self {
        Self { objective: Objective::new(module), layouts: Layouts::new(module.context(), machine), target }
    }

    /// Why the loop is faster without `schedule`, which nobody asked for if it is `raised`; `None` if it is not.
    pub fn loses(
        &self,
        source: &Source<'c>,
        schedule: &LoopSchedule,
        budget: &Budget,
        raised: bool,
    ) -> Option<&'static str> {
        // A loop that goes on for long may be one of few programs, which have their multiprocessors to themselves; so have
        // recurrences that multiply.
        if budget.few_programs {
            return None;
        }
        let fit = self.fit(source, budget);
        let (with, without) = (fit(schedule.shared_bytes(&source.graph)), fit(operand_bytes(source)));
        let idle = ((with * source.warps) as f64) < PARTS && budget.wanted < FEW_PROGRAMS;
        let known = trip_count(source.op);
        let (trips, clearly) = match known {
            Some(trips) => (trips, 1.0),
            None if raised => (ITERATIONS as u64, 1.0),
            None if idle => (ITERATIONS as u64, IDLE_PARTS),
            None => return None,
        };
        let own = self.cycles_alone(source.op);
        let pays = with >= without
            || piped(trips, own, schedule.stages) / with as f64
                <= clearly * plain(trips, own) / without as f64;
        if !pays {
            return Some("without it more CTAs fit in shared memory");
        }
        let trips = known?;
        let function = enclosing_function(source.op).unwrap_or(source.op);
        let spills = || !spilled_registers(function, source.warps, self.target).is_empty();
        (self.target.primitives.cp_async && trips <= FEW_TRIPS && spills())
            .then_some("of its few iterations one waits, and what threads spill needs the L1 that rings take")
    }

    /// What tiles take where `schedules` are those with the prologue before the loop and behind the loop of the tile before.
    ///
    /// What comes behind the loop then hides the latency of the first loads, in which all that it could do besides is wait. In
    /// turn shared memory for both must be there, and what the prologue needs of the loop around is computed twice.
    pub fn of_prologue_ahead(
        &self,
        source: &Source<'c>,
        nest: &Nest<'c>,
        schedules: (&LoopSchedule, &LoopSchedule),
        budgets: (&Budget, &Budget),
    ) -> PrologueAhead {
        let trips = trip_count(source.op).unwrap_or(ITERATIONS as u64);
        let own = self.cycles_alone(source.op);
        let tail: f64 = nest.behind(source.op).map(|op| self.cycles_with_nested(op)).sum();
        let again: f64 = nest.again().map(|op| self.cycles_with_nested(op)).sum();
        let ctas = |schedule: &LoopSchedule, budget: &Budget| {
            budget.ctas_with(schedule.shared_bytes(&source.graph)).max(1) as f64
        };
        let tile = |schedule: &LoopSchedule| piped(trips, own, schedule.stages) + tail;
        let hidden = MEMORY_LATENCY.min(tail);
        let warps = self.layouts.machine.num_warps;
        let known = knows_ctas(self.target) || is_alone(source.op, warps, self.target);
        PrologueAhead {
            // Where little is known of registers, shared memory does not tell.
            shared: ctas(schedules.0, budgets.0) > 1.0 || !known,
            behind: tile(schedules.0) / ctas(schedules.0, budgets.0),
            before: (tile(schedules.1) + again - hidden) / ctas(schedules.1, budgets.1),
        }
    }

    /// What an iteration of the outer loop of `pair` takes with a loop of its own in it, and as a part of one loop.
    pub fn of_one_loop(&self, pair: &Pair<'c>, stages: u32) -> OneLoop {
        let trips = trip_count(pair.inner).unwrap_or(ITERATIONS as u64);
        let own = self.cycles_alone(pair.inner);
        let two = piped(trips, own, stages.max(2));
        let again: f64 = pair.again().map(|op| self.cycles_with_nested(op)).sum();
        let hidden = own * f64::from(stages.max(2) - 1);
        OneLoop { two: two + again, one: two + again - MEMORY_LATENCY.min(hidden) }
    }

    /// Cycles of `op` and what is in it in a CTA that has a multiprocessor to itself. What has no plan counts nothing, here and
    /// below: whatever is decided, it ends in an error when it is lowered.
    fn cycles_with_nested(&self, op: Op<'c>) -> f64 {
        let mut cycles = 0.0;
        op.walk(&mut |inner| {
            cycles += self.objective.cycles(inner, &self.layouts).unwrap_or(0.0);
            Walk::Advance
        });
        cycles * (PARTS / self.layouts.machine.num_warps as f64).max(1.0)
    }

    /// Whether an iteration of `source` takes less than memory takes to answer: then loads that run one iteration ahead are waited for.
    pub fn is_short(&self, source: &Source<'c>) -> bool {
        self.cycles_alone(source.op) <= SHORT_ITERATION
    }

    /// How many CTAs fit in shared memory and registers when each takes so many bytes besides what else it takes.
    fn fit(&self, source: &Source<'c>, budget: &Budget) -> impl Fn(u64) -> u64 + use<> {
        let ctas = ctas_with(
            UNSEEN_REGISTERS,
            enclosing_function(source.op).unwrap_or(source.op),
            self.layouts.machine.num_warps,
            0,
            self.target,
        );
        let budget = Budget { ctas, ..*budget };
        move |bytes: u64| budget.ctas_with(bytes).max(1)
    }

    /// What the loop of `source` would take with other schedules than `schedule`, or without any where that is none: cycles
    /// of a multiprocessor for the loop of each CTA that it holds.
    pub fn choice(
        &self,
        source: &Source<'c>,
        schedule: Option<&LoopSchedule>,
        budget: &Budget,
    ) -> Option<Choice> {
        let (known, graph) = (trip_count(source.op), &source.graph);
        let (trips, own) = (known.unwrap_or(ITERATIONS as u64), self.cycles_alone(source.op));
        let fit = self.fit(source, budget);
        let ctas = |count: u64| if count == 1 { "1 CTA".to_owned() } else { format!("{count} CTAs") };
        let without = fit(operand_bytes(source));
        let cycles = plain(trips, own) / without as f64;
        let mut all = vec![Candidate::new(format!("no pipeline, {}", ctas(without)), Some(cycles))];
        let mut chosen = schedule.is_none().then_some(0);
        let mut seen = Vec::new();
        for (for_ctas, other) in LoopSchedule::candidates(graph, budget) {
            let is_chosen = schedule == Some(&other) && chosen.is_none();
            // Of those that differ only in the place where what runs ahead is issued, the first one besides the chosen.
            if is_chosen {
                chosen = Some(all.len());
            } else if seen.contains(&(other.stages, for_ctas)) {
                continue;
            } else {
                seen.push((other.stages, for_ctas));
            }
            let bytes = other.shared_bytes(graph);
            let cycles = piped(trips, own, other.stages) / for_ctas as f64;
            let under_way = other.bytes_under_way(graph, for_ctas);
            let name = format!(
                "{} stages, {} with {bytes} bytes of rings each, {under_way} bytes under way",
                other.stages,
                ctas(for_ctas)
            );
            all.push(Candidate::new(name, Some(cycles)));
        }
        let assumed = if known.is_some() { "" } else { ", as its bounds are unknown" };
        let busy = if budget.busy_alone { ", whose dots keep the matrix units busy in one CTA" } else { "" };
        let subject =
            format!("the schedule of this loop of {trips} iterations{assumed}, {own:.0} cycles each{busy}");
        Choice::among(subject, Unit::Cycles, all, chosen?)
    }

    /// What the loop of `source` asks of a multiprocessor.
    ///
    /// A CTA that has a multiprocessor to itself keeps its matrix units busy if all dots run beside the program, nothing of an
    /// iteration waits for them, and they take as long as everything else. Bytes that have to be under way are those that are
    /// copied in the time that memory takes to answer (Little's law).
    pub fn demand(&self, source: &Source<'c>) -> Demand {
        let graph = &source.graph;
        let is_dot_node = |n: usize| graph.nodes[n].kind == Kind::Dot;
        let all_beside = graph.nodes.iter().all(|node| node.kind == Kind::Dot || !node.heavy);
        let waits = graph.edges.iter().any(|edge| is_dot_node(edge.from) && !edge.accumulates);
        let (dots, others) = (Balance::of_dots(source.op, self.target), self.other_cycles(source.op));
        let needed = graph.copied_bytes() as f64 * ANSWER / dots.max(others).max(1.0);
        let streams = all_beside && !waits && dots > 0.0;
        // Loops that wait for their own dots ask less of the L2, and may be those of few programs, as recurrences are; so may
        // dots of few rows, which threads do themselves. Short loops have all that they load under way at once.
        let lasts = trip_count(source.op).is_none_or(|trips| trips >= MANY_TRIPS);
        let bounded = streams && lasts;
        let most = if bounded { (self.target.cost.l2_bytes * SHARE_OF_L2) as u64 } else { u64::MAX };
        // Two warps on each SIMD, which multiply at least as long as they do anything else.
        let lead = dots > 0.0 && dots >= others;
        let halves = self.target.primitives.lds_loads
            && source.warps == 2 * simds(self.target)
            && lead
            && source.is_plain(false, self.target);
        Demand {
            busy_alone: streams && dots >= others,
            needed_ahead: needed as u64,
            most_ahead: most,
            starts_late: bounded && source.loads_addresses(),
            halves,
            spread: self.target.primitives.buffers && lead && source.is_plain(true, self.target),
        }
    }

    /// Whether `schedule` is known to leave a compute unit of AMD's room for two CTAs.
    pub fn leaves_room(&self, source: &Source<'c>, schedule: &LoopSchedule, budget: &Budget) -> bool {
        let shared = budget.taken.saturating_sub(RESERVED) + schedule.shared_bytes(&source.graph);
        !is_alone(source.op, source.warps, self.target)
            && 2 * shared <= self.target.shared_bytes
            && surely_fit(enclosing_function(source.op).unwrap_or(source.op), 2, source.warps, self.target)
    }

    /// Cycles of a multiprocessor for an iteration of `around`, but for dots.
    fn other_cycles(&self, around: Op<'c>) -> f64 {
        let mut cycles = 0.0;
        around.walk(&mut |op| {
            if op != around && !is_dot(op) {
                cycles += self.objective.cycles(op, &self.layouts).unwrap_or(0.0);
            }
            Walk::Advance
        });
        cycles
    }

    /// Cycles of an iteration of `around` in a CTA that has a multiprocessor to itself, but for the latency of loads.
    fn cycles_alone(&self, around: Op<'c>) -> f64 {
        let warps = self.layouts.machine.num_warps;
        let cycles = Balance::of_dots(around, self.target) + self.other_cycles(around);
        cycles * (PARTS / warps as f64).max(1.0)
    }
}
