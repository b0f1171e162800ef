//! Whether a pipeline is worth the shared memory that it takes.
//!
//! A pipeline hides the latency of loads behind earlier iterations of its own CTA. Other CTAs of the multiprocessor hide it
//! too, and everything else besides: barriers, dependent instructions, prologues and epilogues. Where rings take shared
//! memory that more CTAs would fit in, the two are weighed: an iteration takes what it computes and waits for, divided
//! by how many CTAs run beside each other.

use super::plan::{Budget, Kind, LoopSchedule};
use super::source::Source;
use crate::analysis::balance::Balance;
use crate::analysis::registers::ctas_with;
use crate::choice::{Candidate, Choice, Unit};
use crate::ir_util::{is_dot, trip_count};
use crate::machine::{Layouts, Machine};
use crate::objective::{ITERATIONS, Objective};
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Op, Walk};
use ttopt_dialect::tt::ops::FuncOp;

/// Cycles from a load of data that is not in the L1 to its use, while other CTAs load, too. Unmeasured.
const MEMORY_LATENCY: f64 = 1000.0;
/// So many times the registers of tensors are taken, with addresses and masks: that more CTAs fit must be sure.
const UNSEEN_REGISTERS: f64 = 1.5;
/// Parts of a multiprocessor, of which a warp uses one (CUDA programming guide, "Hardware Multithreading").
const PARTS: f64 = 4.0;

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

    /// Whether `schedule` makes the loop faster than more CTAs would without it.
    pub fn pays(&self, source: &Source<'c>, schedule: &LoopSchedule, budget: &Budget) -> bool {
        // A loop that goes on for long may be one of few programs, which have their multiprocessors to themselves.
        let Some(trips) = trip_count(source.op) else { return true };
        let fit = self.fit(source, budget);
        let (with, without) = (fit(schedule.shared_bytes(&source.graph)), fit(operand_bytes(source)));
        if with >= without {
            return true;
        }
        let own = self.cycles_alone(source.op);
        piped(trips, own, schedule.stages) / with as f64 <= plain(trips, own) / without as f64
    }

    /// How many CTAs fit in shared memory and registers when each takes so many bytes besides what else it takes.
    fn fit(&self, source: &Source<'c>, budget: &Budget) -> impl Fn(u64) -> u64 + use<> {
        let function = source.op.ancestor(|op| FuncOp::cast(op).is_some()).unwrap_or(source.op);
        let ctas = ctas_with(UNSEEN_REGISTERS, function, self.layouts.machine.num_warps, 0, self.target);
        let Budget { shared, taken, .. } = *budget;
        move |bytes: u64| (shared / (taken + bytes).max(1)).clamp(1, ctas.max(1))
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
        for (for_ctas, other) in LoopSchedule::candidates(graph, budget) {
            if schedule == Some(&other) && chosen.is_none() {
                chosen = Some(all.len());
            }
            let bytes = other.shared_bytes(graph);
            let cycles = piped(trips, own, other.stages) / for_ctas as f64;
            let ahead = u64::from(other.stages - 1) * if budget.busy_alone { 1 } else { for_ctas };
            let iterations = if ahead == 1 { "iteration" } else { "iterations" };
            let name = format!(
                "{} stages, {} with {bytes} bytes of rings each, {ahead} {iterations} ahead",
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

    /// Whether a CTA that has a multiprocessor to itself keeps its matrix units busy with the loop of `source`: all dots run
    /// beside the program, nothing of an iteration waits for them, and they take as long as everything else.
    pub fn keeps_busy(&self, source: &Source<'c>) -> bool {
        let graph = &source.graph;
        let is_dot_node = |n: usize| graph.nodes[n].kind == Kind::Dot;
        let all_beside = graph.nodes.iter().all(|node| node.kind == Kind::Dot || !node.heavy);
        let waits = graph.edges.iter().any(|edge| is_dot_node(edge.from) && !edge.accumulates);
        let dots = Balance::of_dots(source.op, self.target);
        all_beside && !waits && dots > 0.0 && dots >= self.other_cycles(source.op)
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
