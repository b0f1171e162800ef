//! How many registers the tensors of a function take at once.

use super::flow_graph::FlowGraph;
use crate::ir_util::{enclosing_function, in_block, is_dot, loops_around};
use crate::rules::{Rule, rule};
use linear_layout::Dim;
use linear_layout::target::{TargetDesc, Vendor};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::ConstantOp;
use smallvec::SmallVec;
use std::ops::Range;
use ttopt_dialect::tt::ops::{BroadcastOp, DotOp, ExpandDimsOp, LoadOp, ReduceOp, SplatOp, StoreOp};
use ttopt_dialect::tt::types::pointee;
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp};

/// Registers of a multiprocessor (CUDA programming guide, "Technical Specifications per Compute Capability").
pub(crate) const REGISTERS: u64 = 64 << 10;
/// Registers of a thread (the same table).
const OF_A_THREAD: u64 = 255;
/// What addresses, masks and loop counters take besides.
const OTHERS: u64 = 32;
/// The same of a loop around the one that runs, where threads read operands themselves: what it steps through, and what
/// is computed for its steps.
const OF_LOOP_AROUND: u64 = 24;
/// Bits of a row of an operand that one instruction multiplies (PTX ISA, "mma.sync").
const STEP_BITS: u64 = 256;
/// Bytes of shared memory that the system takes for each CTA (CUDA programming guide, "Shared Memory" of each
/// compute capability).
pub(crate) const RESERVED: u64 = 1 << 10;
/// So many times the registers of tensors are taken with addresses and masks, where it must be sure that they suffice.
pub(crate) const UNSEEN_REGISTERS: f64 = 1.5;
/// Warps of a multiprocessor that hide each other's latency; more gain little.
const ENOUGH_WARPS: u64 = 24;

/// How many CTAs of `function`, each of `warps` warps and `shared` bytes of shared memory, a multiprocessor should hold
/// at once; one where that need not limit the registers of a thread. One CTA alone has nothing to hide the latency of
/// its loads and barriers behind: where dots are computed, there should be enough warps, if the tensors leave registers
/// for it. ptxas does not keep registers free on its own once it is told of any number.
pub fn ctas_together(function: Op<'_>, warps: u64, shared: u64, target: &TargetDesc) -> u64 {
    ctas_with(1.0, function, warps, shared, target)
}

/// Whether it is known how many CTAs registers leave a multiprocessor: not of the vector registers that waves of AMD's GPUs share.
pub fn knows_ctas(target: &TargetDesc) -> bool {
    target.vendor == Vendor::Nvidia
}

/// The same where a thread needs `factor` times the registers that are known of.
pub fn ctas_with(factor: f64, function: Op<'_>, warps: u64, shared: u64, target: &TargetDesc) -> u64 {
    ctas_without(&|_| false, factor, function, warps, shared, target)
}

/// The same as [`ctas_together`]; where one CTA has so many warps that few of another's registers are free, what `around`, a loop of
/// `function`, loads for buffers alone counts none: it is copied past the registers.
pub fn ctas_with_copies<'c>(around: Op<'c>, function: Op<'c>, warps: u64, target: &TargetDesc) -> u64 {
    let is_copied = |value: Value<'c>| {
        let load = value.def_op().filter(|op| LoadOp::cast(*op).is_some() && op.parent() == Some(around));
        load.is_some() && value.uses().all(|(user, _)| LocalAllocOp::cast(user).is_some())
    };
    let many = 2 * warps > ENOUGH_WARPS;
    ctas_without(&|value| many && is_copied(value), 1.0, function, warps, 0, target)
}

fn ctas_without<'c>(
    is_nowhere: &dyn Fn(Value<'c>) -> bool,
    factor: f64,
    function: Op<'c>,
    warps: u64,
    shared: u64,
    target: &TargetDesc,
) -> u64 {
    // Two of many warps, where registers suffice: while those of one are at a barrier or store their results, the others' dots run.
    let most = (ENOUGH_WARPS / warps.max(1)).max(2);
    if !knows_ctas(target) {
        return 1;
    }
    let graph = FlowGraph::new(function);
    if !graph.ops().iter().any(|op| is_dot(*op)) {
        return 1;
    }
    let needed = needed_registers_without(&graph, is_nowhere).into_iter().max().unwrap_or(0);
    let needed = ((needed as f64 * factor) as u64).min(OF_A_THREAD);
    let fits = |ctas: &u64| {
        let registers = REGISTERS / (ctas * warps * u64::from(target.lanes));
        ctas * (shared + RESERVED) <= target.shared_bytes + RESERVED && needed <= registers
    };
    (2..=most).rev().find(fits).unwrap_or(1)
}

/// Whether it is sure that the waves of `ctas` CTAs of `function` have registers beside each other, on a compute unit of CDNA.
pub fn surely_fit(function: Op<'_>, ctas: u64, warps: u64, target: &TargetDesc) -> bool {
    let needed = needed_registers(&FlowGraph::new(function)).into_iter().max().unwrap_or(0);
    let waves = (ctas * warps).div_ceil(simds(target));
    UNSEEN_REGISTERS * needed as f64 * waves as f64 <= f64::from(target.simd_registers)
}

/// Waves that a compute unit of AMD's has registers for, with the function around `op`; one where it is not known.
pub fn waves_together(op: Op<'_>, target: &TargetDesc) -> u64 {
    if knows_ctas(target) {
        return 1;
    }
    let function = enclosing_function(op).unwrap_or(op);
    let needed = needed_registers(&FlowGraph::new(function)).into_iter().max().unwrap_or(0);
    let of_simd = u64::from(target.simd_registers) / needed.max(1);
    of_simd.clamp(1, u64::from(target.simd_waves)) * simds(target)
}

/// The SIMDs of a multiprocessor (compute unit).
pub fn simds(target: &TargetDesc) -> u64 {
    u64::from(target.resident_threads / (target.lanes * target.simd_waves).max(1)).max(1)
}

/// Registers of a thread that the tensors of `function`, whose CTAs have `warps` warps, leave free wherever it is.
pub fn spare_registers(function: Op<'_>, warps: u64, target: &TargetDesc) -> u64 {
    let held = held_registers(&FlowGraph::new(function)).into_iter().max().unwrap_or(0);
    limit(warps, target).min(OF_A_THREAD).saturating_sub(held)
}

/// The same where `warps` warps share a multiprocessor, whatever else is said of how many do.
pub fn spare_registers_of(function: Op<'_>, warps: u64, target: &TargetDesc) -> u64 {
    let held = held_registers(&FlowGraph::new(function)).into_iter().max().unwrap_or(0);
    registers_of_warps(warps, target).saturating_sub(OTHERS + held)
}

/// Registers of 32 bits that `value` takes of a thread, if it is a tensor.
pub fn tensor_words(value: Value<'_>) -> u64 {
    let Some(ty) = value.ty().as_tensor() else { return 0 };
    let bits = if pointee(ty.element()).is_some() { 64 } else { ty.element().bits().unwrap_or(32) };
    distinct_elements(value).map_or(0, |elements| (u64::from(bits) * elements).div_ceil(32))
}

/// How many elements of the tensor `value` a thread holds, each of them counted once.
pub fn distinct_elements(value: Value<'_>) -> Option<u64> {
    let ty = value.ty().as_tensor()?;
    let layout = to_linear_layout(ty.encoding()?, &ty.shape()).ok()?;
    Some(1 << (layout.in_bits(Dim::REGISTER) - layout.free_variable_mask(Dim::REGISTER).count_ones()))
}

/// Whether the tensors of `function`, whose CTAs have `warps` warps, leave a thread too few registers for the rest of what it holds.
pub fn is_short_of_registers(function: Op<'_>, warps: u64, target: &TargetDesc) -> bool {
    !short_of_registers(function, warps, target).is_empty()
}

/// The operations of `function` at which its tensors leave a thread too few registers for the rest of what it holds.
pub fn short_of_registers<'c>(function: Op<'c>, warps: u64, target: &TargetDesc) -> Vec<Op<'c>> {
    let limit = limit(warps, target);
    let graph = FlowGraph::new(function);
    let held = held_registers(&graph);
    graph.ops().iter().zip(held).filter(|(_, held)| *held > limit).map(|(op, _)| *op).collect()
}

/// Registers that tensors can take of those of a thread of `warps` warps.
fn limit(warps: u64, target: &TargetDesc) -> u64 {
    registers_of_warps(warps, target).saturating_sub(OTHERS)
}

/// Whether the tensors that a thread holds in `around`, a loop of the function of `graph`, leave it too few registers
/// for the rest.
pub(super) fn fills_registers<'c>(
    graph: &FlowGraph<'c>,
    around: Op<'c>,
    warps: u64,
    target: &TargetDesc,
) -> bool {
    let ops = graph.ops();
    let Some(first) = graph.number(around) else { return false };
    let behind = ops[first + 1..].iter().position(|op| op.ancestor(|op| op == around).is_none());
    let last = behind.map_or(ops.len(), |n| first + 1 + n);
    // LLVM, which allocates registers itself, computes again on its own where that saves some.
    target.vendor == Vendor::Nvidia
        && held_registers(graph)[first..last].iter().any(|held| *held > limit(warps, target))
}

/// Registers beyond those of a thread that begin to be needed at operations of `function`, whose CTAs have `warps` warps:
/// so many are spilled there.
pub fn spilled_registers<'c>(function: Op<'c>, warps: u64, target: &TargetDesc) -> Vec<(Op<'c>, u64)> {
    let limit = registers_of_warps(warps, target);
    let graph = FlowGraph::new(function);
    let mut before = 0;
    let mut spilled = Vec::new();
    for (op, needed) in graph.ops().iter().zip(needed_registers(&graph)) {
        let beyond = needed.saturating_sub(limit);
        if beyond > before {
            spilled.push((*op, beyond - before));
        }
        before = beyond;
    }
    spilled
}

/// What a function spills, and would spill if loads stood further down.
///
/// A load that moves down within a straight line, and whose operands take no registers, leaves its own registers free at
/// the operations that it passes, and changes nothing else: only these are looked at again. Other moves are counted anew.
pub struct Spills<'c> {
    count: Count<'c>,
    limit: u64,
    /// The operations in order, and of each its place.
    order: Vec<Op<'c>>,
    places: FastMap<Op<'c>, usize>,
    /// By place: the registers needed, and the straight line that it is in.
    needed: Vec<u64>,
    runs: Vec<u32>,
    /// Registers of the tensors that take any.
    weights: FastMap<Value<'c>, u64>,
    total: u64,
}

/// What is counted of a function.
#[derive(Clone, Copy)]
struct Count<'c> {
    factor: f64,
    function: Op<'c>,
    warps: u64,
    target: &'c TargetDesc,
}

impl<'c> Spills<'c> {
    /// Of `function`, as [`spilled_registers`] counts them, where a thread needs `factor` times the registers that are known
    /// of.
    pub fn new(factor: f64, function: Op<'c>, warps: u64, target: &'c TargetDesc) -> Self {
        Self::of(Count { factor, function, warps, target })
    }

    fn of(count: Count<'c>) -> Self {
        let graph = FlowGraph::new(count.function);
        let order = graph.ops().to_vec();
        let mut run_of = vec![0; order.len()];
        for (run, ops) in runs(&graph).into_iter().enumerate() {
            run_of[ops].fill(run as u32);
        }
        let mut made = Self {
            count,
            limit: registers_of_warps(count.warps, count.target),
            places: order.iter().enumerate().map(|(i, op)| (*op, i)).collect(),
            needed: needed_registers(&graph),
            weights: weights(&graph),
            runs: run_of,
            order,
            total: 0,
        };
        made.total = made.begun(0, made.needed.iter().copied());
        made
    }

    /// Registers that are spilled.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The registers of which operations begin to need too many, if they need as many as `needed` says and the one
    /// before them `before`.
    fn begun(&self, before: u64, needed: impl Iterator<Item = u64>) -> u64 {
        let beyond = |needed: u64| ((needed as f64 * self.count.factor) as u64).saturating_sub(self.limit);
        let begun = needed.map(beyond).scan(beyond(before), |before, beyond| {
            Some(beyond.saturating_sub(std::mem::replace(before, beyond)))
        });
        begun.sum()
    }

    /// The places from `load`'s to that of `place`, if the move there is one within a straight line by which only the
    /// registers of the load itself change.
    fn window(&self, load: Op<'c>, place: Op<'c>) -> Option<Range<usize>> {
        let (from, to) = (*self.places.get(&load)?, *self.places.get(&place)?);
        let straight = from < to && self.runs[from] == self.runs[to] && load.block() == place.block();
        let light = load.operands().all(|value| !self.weights.contains_key(&source(value)));
        (straight && light).then_some(from..to)
    }

    /// What the operations of `window` need once the first of them, a load, is the last.
    fn after(&self, window: Range<usize>, load: Op<'c>) -> impl Iterator<Item = u64> {
        let words = self.weights.get(&load.result(0)).copied().unwrap_or(0);
        self.needed[window.start + 1..=window.end].iter().map(move |needed| needed.saturating_sub(words))
    }

    /// Registers that would be spilled if `load` stood before `place`, further down.
    pub fn with(&self, load: Op<'c>, place: Op<'c>) -> u64 {
        let Some(window) = self.window(load, place) else { return self.counted_with(load, place) };
        let before = window.start.checked_sub(1).map_or(0, |i| self.needed[i]);
        let last = self.needed[window.end];
        let now = self.begun(before, self.needed[window.clone()].iter().copied().chain([last]));
        let then = self.begun(before, self.after(window, load).chain([last]));
        let total = self.total + then - now;
        debug_assert_eq!(total, self.counted_with(load, place));
        total
    }

    fn counted_with(&self, load: Op<'c>, place: Op<'c>) -> u64 {
        let next = load.next();
        load.move_before(place);
        let total = Self::of(self.count).total;
        if let Some(next) = next {
            load.move_before(next);
        }
        total
    }

    /// Moves `load` before `place`, further down.
    pub fn move_down(&mut self, load: Op<'c>, place: Op<'c>) {
        let total = self.with(load, place);
        let window = self.window(load, place);
        load.move_before(place);
        let Some(window) = window else {
            *self = Self::of(self.count);
            return;
        };
        let needed: Vec<u64> = self.after(window.clone(), load).collect();
        self.needed[window.clone()].copy_from_slice(&needed);
        self.order[window.clone()].rotate_left(1);
        for i in window {
            self.places.insert(self.order[i], i);
        }
        self.total = total;
    }
}

/// The registers that each thread of `warps` warps can have.
pub fn registers_of_warps(warps: u64, target: &TargetDesc) -> u64 {
    let all = simds(target) * u64::from(target.simd_registers);
    u64::from(target.thread_registers).min(all / warps.max(1))
}

/// Registers that a thread has left where `warps` warps share a multiprocessor: from `last` to the end of an iteration of the loop
/// around it, and from its beginning to `first`.
pub fn free_registers(first: Op<'_>, last: Op<'_>, warps: u64, target: &TargetDesc) -> u64 {
    let function = enclosing_function(first).unwrap_or(first);
    let graph = FlowGraph::new(function);
    let block = first.block();
    // What `first` computes is held behind it.
    let counts = |op: Op<'_>| {
        let Some(op) = block.and_then(|block| in_block(op, block)) else { return false };
        let behind_first = first.is_before_in_block(op) && first.next() != Some(op);
        !behind_first || op == last || last.is_before_in_block(op)
    };
    let needed = graph.ops().iter().zip(needed_registers(&graph));
    let most = needed.filter(|(op, _)| counts(**op)).map(|(_, needed)| needed).max().unwrap_or(0);
    registers_of_warps(warps, target).saturating_sub(most)
}

/// The registers of 32 bits that a thread needs before each operation of `function`.
pub fn needed_at(function: Op<'_>) -> FastMap<Op<'_>, u64> {
    let graph = FlowGraph::new(function);
    let needed = needed_registers(&graph);
    graph.ops().iter().copied().zip(needed).collect()
}

/// The registers of 32 bits that a thread needs before each operation. Tensors' pointers and indices are computed
/// where they are needed, operands that lie in shared memory read as they are multiplied.
fn needed_registers(graph: &FlowGraph<'_>) -> Vec<u64> {
    needed_registers_without(graph, &|_| false)
}

/// The same where some tensors take none.
fn needed_registers_without<'c>(graph: &FlowGraph<'c>, is_nowhere: &dyn Fn(Value<'c>) -> bool) -> Vec<u64> {
    let mut weights = weights(graph);
    weights.retain(|value, _| !is_nowhere(*value));
    let whole = Whole::of(graph);
    for (value, words) in &mut weights {
        *words = if whole.passes(*value) { 0 } else { words.div_ceil(steps(*value)) };
    }
    let reads = graph.ops().iter().any(|op| DotOp::cast(*op).is_some());
    let around = |op: Op<'_>| if reads { (loops_around(op).count() as u64).saturating_sub(1) } else { 0 };
    let others = |op: Op<'_>| OTHERS + OF_LOOP_AROUND * around(op);
    graph.ops().iter().zip(live_registers(graph, &weights)).map(|(op, words)| words + others(*op)).collect()
}

/// Where a function needs all elements of tensors at once.
struct Whole<'g, 'c> {
    graph: &'g FlowGraph<'c>,
    /// Operations before each one that take or give whole tensors: reductions, dots, conversions, loops.
    before: Vec<usize>,
}

impl<'g, 'c> Whole<'g, 'c> {
    fn of(graph: &'g FlowGraph<'c>) -> Self {
        let is_tensor = |value: Value<'c>| value.ty().as_tensor().is_some();
        let gathers = |op: Op<'c>| {
            !is_element_by_element(op)
                && (op.num_regions() > 0 || op.operands().chain(op.results()).any(is_tensor))
        };
        let counted = graph.ops().iter().scan(0, |count, op| {
            let before = *count;
            *count += usize::from(gathers(*op));
            Some(before)
        });
        Self { graph, before: counted.collect() }
    }

    /// Whether elements of `value` are used as they are computed, one after the other, so that not all of them are held at
    /// once: it is computed and used element by element, or reduced, with nothing between that wants whole tensors.
    fn passes(&self, value: Value<'c>) -> bool {
        let Some(op) = value.def_op().filter(|op| LoadOp::cast(*op).is_none() && is_element_by_element(*op))
        else {
            return false;
        };
        let Some(made) = self.graph.number(op) else { return false };
        let (mut open, mut any) = (vec![value], false);
        while let Some(value) = open.pop() {
            for (user, _) in value.uses() {
                let takes_one_by_one = is_element_by_element(user) || ReduceOp::cast(user).is_some();
                let same = user.block() == op.block() && takes_one_by_one;
                let Some(used) = self.graph.number(user).filter(|_| same) else { return false };
                if self.before[used] != self.before[made] {
                    return false;
                }
                if is_one_of!(user, BroadcastOp | ExpandDimsOp) {
                    open.extend(user.results());
                }
                any = true;
            }
        }
        any
    }
}

/// Whether `op` computes each element of its results from the same elements of its operands.
pub fn is_element_by_element(op: Op<'_>) -> bool {
    matches!(rule(op), Some(Rule::Same | Rule::Source | Rule::Broadcast | Rule::ExpandDims(_)))
        || is_one_of!(op, LoadOp | StoreOp)
}

/// The steps in which dots read `value` from shared memory.
fn steps(value: Value<'_>) -> u64 {
    let is_operand = |(user, i): (Op<'_>, usize)| {
        DotOp::cast(user).is_some() && i < 2 && user.block() == value.def_op().and_then(|op| op.block())
    };
    let read = LocalLoadOp::defining(value).is_some() && value.uses().all(is_operand);
    let (Some(ty), Some((_, operand))) = (value.ty().as_tensor().filter(|_| read), value.uses().next())
    else {
        return 1;
    };
    let (shape, bits) = (ty.shape(), ty.element().bits().unwrap_or(1));
    // The left operand's rows run along its last dimension, the right one's columns along the last but one.
    let length = shape.iter().nth_back(operand).map_or(1, |size| size.unsigned_abs());
    (length * u64::from(bits) / STEP_BITS).max(1)
}

/// The registers of tensors during each operation: dots that start from constants have their operands and results
/// at once.
fn held_registers(graph: &FlowGraph<'_>) -> Vec<u64> {
    let weights = weights(graph);
    let made = |op: Op<'_>| {
        let adds = op.operands().nth(2).is_some_and(|sum| weights.contains_key(&source(sum)));
        let results = op.results().filter(|_| is_dot(op) && !adds);
        results.filter_map(|result| weights.get(&result)).sum::<u64>()
    };
    graph.ops().iter().zip(live_registers(graph, &weights)).map(|(op, words)| words + made(*op)).collect()
}

/// The registers of each tensor that an operation of the graph uses.
fn weights<'c>(graph: &FlowGraph<'c>) -> FastMap<Value<'c>, u64> {
    let dots: FastSet<Attr<'_>> = graph
        .ops()
        .iter()
        .filter(|op| is_dot(**op))
        .filter_map(|op| op.result(0).ty().as_tensor()?.encoding())
        .collect();
    let sources = graph.ops().iter().flat_map(|op| op.operands().map(source));
    sources.filter_map(|value| Some((value, registers(value, &dots).filter(|words| *words > 0)?))).collect()
}

/// The registers of the tensors that each operation, or one after it, needs.
///
/// Liveness, backwards: sets of tensors are kept where straight-line runs of operations begin only, as bits; within a
/// run the sum is carried along.
fn live_registers<'c>(graph: &FlowGraph<'c>, weights: &FastMap<Value<'c>, u64>) -> Vec<u64> {
    let numbers: FastMap<Value<'c>, usize> =
        weights.keys().enumerate().map(|(i, value)| (*value, i)).collect();
    let words: Vec<u64> = weights.values().copied().collect();
    let number = |value: Value<'c>| numbers.get(&value).copied();
    let steps: Vec<Step> = (0..graph.ops().len())
        .map(|i| Step {
            made: made(graph, i).filter_map(number).collect(),
            used: graph.ops()[i].operands().map(source).filter_map(number).collect(),
        })
        .collect();
    let runs = runs(graph);
    let run_of: FastMap<usize, usize> = runs.iter().enumerate().map(|(run, ops)| (ops.start, run)).collect();
    let mut entry: Vec<Bits> = vec![Bits::new(words.len()); runs.len()];
    let leaves = |run: usize, entry: &[Bits]| {
        let mut live = Bits::new(words.len());
        let next = graph.successors(runs[run].end - 1).filter_map(|next| run_of.get(&next));
        next.for_each(|next| _ = live.add(&entry[*next]));
        live
    };
    let predecessors = graph.predecessors();
    let last_of: FastMap<usize, usize> =
        runs.iter().enumerate().map(|(run, ops)| (ops.end - 1, run)).collect();
    let mut open: Vec<usize> = (0..runs.len()).collect();
    while let Some(run) = open.pop() {
        let mut live = leaves(run, &entry);
        for step in steps[runs[run].clone()].iter().rev() {
            step.made.iter().for_each(|value| _ = live.remove(*value));
            step.used.iter().for_each(|value| _ = live.insert(*value));
        }
        if entry[run].add(&live) {
            let before = predecessors[runs[run].start].iter();
            open.extend(before.filter_map(|before| last_of.get(&(*before as usize))));
        }
    }
    let mut sums = vec![0; graph.ops().len()];
    for (run, ops) in runs.iter().enumerate() {
        let mut live = leaves(run, &entry);
        let mut sum: u64 = live.ones().map(|value| words[value]).sum();
        for i in ops.clone().rev() {
            let gone = steps[i].made.iter().filter(|value| live.remove(**value));
            sum -= gone.map(|value| words[*value]).sum::<u64>();
            let more = steps[i].used.iter().filter(|value| live.insert(**value));
            sum += more.map(|value| words[*value]).sum::<u64>();
            sums[i] = sum;
        }
    }
    sums
}

/// The tensors, by number, that an operation gives a new content and that it uses.
struct Step {
    made: SmallVec<[usize; 2]>,
    used: SmallVec<[usize; 4]>,
}

/// Operations that follow one another, with no other way in or out between them.
fn runs(graph: &FlowGraph<'_>) -> Vec<Range<usize>> {
    let predecessors = graph.predecessors();
    let goes_on = |i: usize| {
        let mut next = graph.successors(i - 1);
        predecessors[i].as_slice() == [(i - 1) as u32] && next.next() == Some(i) && next.next().is_none()
    };
    let mut runs: Vec<Range<usize>> = Vec::new();
    for i in 0..graph.ops().len() {
        match runs.last_mut() {
            Some(run) if goes_on(i) => run.end = i + 1,
            _ => runs.push(i..i + 1),
        }
    }
    runs
}

/// A set of small numbers.
#[derive(Clone)]
struct Bits(Vec<u64>);

impl Bits {
    fn new(most: usize) -> Self {
        Bits(vec![0; most.div_ceil(64)])
    }
    /// Whether it is new.
    fn insert(&mut self, i: usize) -> bool {
        let (word, bit) = (&mut self.0[i / 64], 1 << (i % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
    /// Whether it was there.
    fn remove(&mut self, i: usize) -> bool {
        let (word, bit) = (&mut self.0[i / 64], 1 << (i % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }
    /// Adds all of `other`; whether that changes anything.
    fn add(&mut self, other: &Bits) -> bool {
        let mut changed = false;
        for (word, more) in self.0.iter_mut().zip(&other.0) {
            changed |= more & !*word != 0;
            *word |= more;
        }
        changed
    }
    fn ones(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.0.len() * 64).filter(|i| self.0[i / 64] >> (i % 64) & 1 != 0)
    }
}

/// The values that operation `i` gives a new content: its results, and what it passes on to blocks and
/// to the operation around it.
fn made<'c>(graph: &FlowGraph<'c>, i: usize) -> impl Iterator<Item = Value<'c>> {
    let op = graph.ops()[i];
    let entered = graph.successors(i).filter_map(|next| {
        let next = graph.ops()[next];
        next.block().filter(|block| block.first() == Some(next))
    });
    let arguments: Vec<Value<'c>> = entered.flat_map(Block::args).collect();
    let last = op.block().and_then(Block::last) == Some(op);
    let around = op.parent().filter(|parent| last && graph.number(*parent).is_some());
    op.results().chain(arguments).chain(around.into_iter().flat_map(|parent| parent.results()))
}

/// The tensor of whose registers `value` is made.
fn source(value: Value<'_>) -> Value<'_> {
    let mut value = value;
    while let Some(op) = value.def_op().filter(|op| is_one_of!(op, BroadcastOp | ExpandDimsOp)) {
        value = op.operand(0);
    }
    value
}

/// Registers of 32 bits that hold `value`.
fn registers(value: Value<'_>, dots: &FastSet<Attr<'_>>) -> Option<u64> {
    let ty = value.ty().as_tensor()?;
    let (element, layout) = (ty.element(), ty.encoding()?);
    let is_constant = value.def_op().is_some_and(|op| is_one_of!(op, ConstantOp | SplatOp));
    let bits = element.bits()?;
    let is_index = element.int_bits().is_some_and(|bits| bits >= 32) && !dots.contains(&layout);
    if pointee(element).is_some() || bits == 1 || is_index || is_constant {
        return Some(0);
    }
    let layout = to_linear_layout(layout, &ty.shape()).ok()?;
    let distinct = layout.in_bits(Dim::REGISTER) - layout.free_variable_mask(Dim::REGISTER).count_ones();
    Some((u64::from(bits) << distinct).div_ceil(32))
}
