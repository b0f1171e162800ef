//! `--tritongpu-insert-barriers`: barriers where an access to shared memory
//! could meet another of a different thread.
//!
//! A forward dataflow problem: which buffers may have been read, and which
//! written, since all threads last waited for each other. Two accesses to
//! overlapping bytes, one of them a write, need a barrier between them. It is
//! put before the later one, which leaves nothing pending on that way.
//!
//! What runs beside the program, async copies and `wgmma`, is pending
//! from the operation that waits for it: a barrier before the wait orders
//! nothing. mbarriers order what they announce by
//! themselves.
//!
//! Accesses to global memory that other threads may have stored, or are still to load ([`readback`](super::readback)), are
//! ordered by the same barriers where the target's order all memory, else by ones that do.
//!
//! In functions with `amdg.cond_barrier` one half of the warps runs a barrier behind the other: what one half announces
//! before a barrier the other relies on behind the next one but one. Whoever wrote the function counted its barriers, and
//! counted one right behind each wait for copies, which is put there.

use super::buffers::{Buffer, Buffers, Needs};
use super::calls::Callees;
use super::effects::{Access, Kind, Waits, accesses, waits, waits_for_all_stores};
use super::one_thread;
use super::readback::{Divergence, GlobalAccess, Proxies, allow_divergence, decided_by_warp};
use super::together::{self, Sharing};
use super::{OFFSET, callees_first};
use crate::analysis::flow_graph::FlowGraph;
use crate::analysis::pointer_roots::PointerRoots;
use crate::fence_insertion;
use crate::ir_util::is_loop;
use crate::machine;
use crate::plans;
use crate::rules::is_conversion;
use linear_layout::plan::{Conversion, Scope};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Severity, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use ttopt_dialect::amdg::ops::CondBarrierOp;
use ttopt_dialect::tt::ops::CallOp;
use ttopt_dialect::ttg::enums::AddrSpace;
use ttopt_dialect::ttg::ops::{BarrierOp, WarpIdOp, WarpSpecializeOp};
use ttopt_dialect::ttng::ops::{ArriveBarrierOp, ClusterBarrierOp, TensormapCreateOp, TmaStoreWaitOp};

/// The pass.
pub static INSERT_BARRIERS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    options: &[PassOption {
        name: "report",
        description: "Say as remarks why barriers were put",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-insert-barriers",
        "Put barriers between accesses to shared memory that must not meet",
        run,
    )
};

/// On proxy fences that are for all memory, not for shared memory.
pub const ALL_MEMORY: &str = "ttg.all_memory";

/// On loops of which one half of the warps runs one barrier behind the other.
pub const HALVES: &str = "ttg.halves";

/// The buffers with accesses that other threads have not waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    /// Uses as barriers.
    barriers: BTreeSet<usize>,
    /// Under way beside the program: copies, dots, stores, tensor operations to shared memory and, last, from there.
    under_way: [BTreeSet<usize>; 5],
    /// Kinds of accesses that stored to global memory, each with an operation that did.
    stored: BTreeMap<usize, usize>,
    /// And of those that loaded.
    loaded: BTreeMap<usize, usize>,
    /// Stores in bulk that nobody has waited for.
    storing: BTreeMap<usize, usize>,
    /// What threads stored without a fence behind it for what is loaded in bulk.
    unfenced: BTreeMap<usize, usize>,
    /// Cycles by which warps may have come apart, up to [`APART`](together::APART).
    apart: u32,
}

/// Tensor operations from shared memory among what is under way: the wait is the same as for those to it.
const TENSOR_STORES: usize = 1 + Waits::Tensors as usize;

impl Pending {
    fn unite(&mut self, other: &Pending) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
        self.barriers.extend(&other.barriers);
        let first = |mine: &mut BTreeMap<usize, usize>, other: &BTreeMap<usize, usize>| {
            other.iter().for_each(|(kind, op)| access(mine, *kind, *op));
        };
        first(&mut self.stored, &other.stored);
        first(&mut self.loaded, &other.loaded);
        first(&mut self.storing, &other.storing);
        first(&mut self.unfenced, &other.unfenced);
        for (mine, other) in self.under_way.iter_mut().zip(&other.under_way) {
            mine.extend(other);
        }
        self.apart = self.apart.max(other.apart);
    }
    /// The same accesses, to other places.
    fn map(&self, to: impl Fn(usize) -> usize) -> Pending {
        let all = |places: &BTreeSet<usize>| places.iter().map(|place| to(*place)).collect();
        Pending {
            reads: all(&self.reads),
            writes: all(&self.writes),
            barriers: all(&self.barriers),
            under_way: [0, 1, 2, 3, 4].map(|i| all(&self.under_way[i])),
            stored: self.stored.clone(),
            loaded: self.loaded.clone(),
            storing: self.storing.clone(),
            unfenced: self.unfenced.clone(),
            apart: self.apart,
        }
    }
    /// All threads wait for each other: for what they did to this memory.
    fn synchronize(&mut self, memory: Ordered) {
        if memory.shared {
            self.reads.clear();
            self.writes.clear();
            self.barriers.clear();
            self.apart = 0;
        }
        if memory.global {
            self.stored.clear();
            self.loaded.clear();
        }
    }
    fn add(&mut self, access: Access) {
        match access.kind {
            Kind::Read => _ = self.reads.insert(access.buffer),
            Kind::Write => _ = self.writes.insert(access.buffer),
            Kind::Synchronize => _ = self.barriers.insert(access.buffer),
            Kind::BeginCopy => _ = self.under_way[Waits::Copies as usize].insert(access.buffer),
            Kind::BeginDot => _ = self.under_way[Waits::Dots as usize].insert(access.buffer),
            Kind::BeginStore => _ = self.under_way[Waits::Stores as usize].insert(access.buffer),
            Kind::BeginTensorLoad => _ = self.under_way[Waits::Tensors as usize].insert(access.buffer),
            Kind::BeginTensorStore => _ = self.under_way[TENSOR_STORES].insert(access.buffer),
            Kind::HandOver | Kind::Fill => {}
        }
    }
    /// No store in bulk is under way any more.
    fn finish_stores(&mut self) {
        for (kind, op) in std::mem::take(&mut self.storing) {
            access(&mut self.stored, kind, op);
        }
    }
    fn wait(&mut self, (what, left): (Waits, i64)) {
        match what {
            Waits::Copies | Waits::Tensors => self.writes.extend(&self.under_way[what as usize]),
            Waits::Dots | Waits::Stores => self.reads.extend(&self.under_way[what as usize]),
        }
        if what == Waits::Copies {
            // Groups of copies may have tensor operations.
            self.writes.extend(&self.under_way[Waits::Tensors as usize]);
        }
        if what == Waits::Tensors {
            self.reads.extend(&self.under_way[TENSOR_STORES]);
        }
        if left == 0 {
            self.under_way[what as usize].clear();
            if what == Waits::Tensors {
                self.under_way[TENSOR_STORES].clear();
            }
        }
    }
}

/// Notes that operation `op` made an access of `kind`; of several operations the first is kept.
fn access(made: &mut BTreeMap<usize, usize>, kind: usize, op: usize) {
    made.entry(kind).and_modify(|first| *first = op.min(*first)).or_insert(op);
}

/// The memory that a barrier orders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Ordered {
    shared: bool,
    global: bool,
}

impl Ordered {
    const ALL: Self = Self { shared: true, global: true };
    /// By barriers of shared memory.
    fn by_shared(target: &TargetDesc) -> Self {
        Self { shared: true, global: target.primitives.barriers_order_all }
    }
}

/// A barrier before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Put {
    /// Whether it is one for all memory, not for shared memory.
    global: bool,
    /// What there is to be before the barrier.
    first: First,
    why: Hazard,
}

/// What comes before a barrier where memory is accessed in bulk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct First {
    /// A wait for stores in bulk.
    finish: bool,
    /// A fence between what threads accessed and bulk copies access.
    fence: bool,
}

/// Why there must be a barrier before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hazard {
    /// It meets another access of shared memory.
    Shared(Meeting),
    /// It accesses global memory where the operation of this number may have stored, or loaded.
    Global(usize, Before),
    /// It stores parts of sectors of which other warps store the rest.
    Together,
}

/// What was done to global memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    Stored,
    Loaded,
}

/// Two accesses of shared memory that must not meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meeting {
    /// What the operation does.
    access: Access,
    /// The buffer that was accessed before.
    before: usize,
    /// Whether it was written, not only read.
    written: bool,
}

/// What happens to shared memory at an operation.
#[derive(Default)]
struct Step {
    accesses: SmallVec<[Access; 4]>,
    waits: Option<(Waits, i64)>,
    /// Stores in bulk are in global memory afterwards.
    finishes_stores: bool,
    /// One thread tells others, by an mbarrier, what all threads of its group did before: they must have done it.
    releases: bool,
    /// Cycles by which warps come apart there, and whether they had better not be where it begins.
    apart: u32,
    together: bool,
    /// Waits for all threads, after `accesses`; what it does afterwards is `then`.
    synchronizes: Ordered,
    then: Option<Access>,
}

struct Analysis<'a, 'c> {
    graph: &'a FlowGraph<'c>,
    steps: Vec<Step>,
    /// For each place, those whose bytes it may share, itself included.
    overlaps: Vec<Vec<usize>>,
    /// For each place, what it was as seen from the next iteration of a loop.
    lasting: Vec<usize>,
    predecessors: Vec<SmallVec<[u32; 2]>>,
    /// What each operation does to global memory, as a number of `kinds`.
    global: Vec<Option<usize>>,
    kinds: Vec<GlobalAccess<'c>>,
    /// What barriers of shared memory order.
    by_shared: Ordered,
    /// Whether anything is copied in bulk.
    in_bulk: bool,
    /// The barriers before operations.
    barriers: Vec<Option<Put>>,
    after: Vec<Pending>,
}

impl<'c> Analysis<'_, 'c> {
    fn hazard(&self, access: Access, pending: &Pending) -> Option<Meeting> {
        let found = |buffers: &BTreeSet<usize>| {
            self.overlaps[access.buffer].iter().copied().find(|other| buffers.contains(other))
        };
        if let Some(before) = found(&pending.writes) {
            return Some(Meeting { access, before, written: true });
        }
        let is_barrier = access.kind == Kind::Synchronize;
        let read = if access.kind.needs_reads_done() { found(&pending.reads) } else { None };
        let used = if is_barrier { None } else { found(&pending.barriers) };
        read.or(used).map(|before| Meeting { access, before, written: false })
    }

    /// Why operation `i` needs a barrier before it, other than the one that is there.
    fn owed(&self, i: usize, pending: &Pending) -> Option<Put> {
        let step = &self.steps[i];
        let mut shared = step.accesses.iter().find_map(|access| self.hazard(*access, pending));
        if step.releases && shared.is_none() {
            shared = released(step.accesses.first(), pending);
        }
        let global = self.meets_global(i, pending);
        let first = global.map_or_else(First::default, |(_, first)| first);
        match (shared, global) {
            (None, None) => {
                let asks = step.together && self.global_access(i).is_some_and(|access| access.asks);
                let late = asks && pending.apart >= together::APART;
                late.then(|| Put { global: false, first: First::default(), why: Hazard::Together })
            }
            (None, Some((why, _))) => Some(Put { global: true, first, why }),
            (Some(why), global) => Some(Put { global: global.is_some(), first, why: Hazard::Shared(why) }),
        }
    }

    /// The access to global memory that operation `i` may meet, and what must come before a barrier for it.
    fn meets_global(&self, i: usize, pending: &Pending) -> Option<(Hazard, First)> {
        let access = self.global_access(i).filter(|access| access.asks && !access.waits_before)?;
        let find = |made: &BTreeMap<usize, usize>, meets: &dyn Fn(&GlobalAccess<'c>) -> bool| {
            made.iter().filter(|(kind, _)| meets(&self.kinds[**kind])).map(|(_, op)| *op).min()
        };
        let meets_stored = |before: &GlobalAccess<'c>| {
            access.reads && before.may_be_read_by(access) || access.writes && before.may_be_stored_by(access)
        };
        let meets_loaded = |before: &GlobalAccess<'c>| access.writes && before.may_be_overwritten_by(access);
        let storing = find(&pending.storing, &|before| before.may_be_under_way_at(access));
        let bulk = access.proxies().bulk;
        let unfenced = if bulk { find(&pending.unfenced, &meets_stored) } else { None };
        let stored = storing.or(unfenced).or_else(|| find(&pending.stored, &meets_stored));
        let loaded = || find(&pending.loaded, &meets_loaded).map(|op| Hazard::Global(op, Before::Loaded));
        let why = stored.map(|op| Hazard::Global(op, Before::Stored)).or_else(loaded)?;
        Some((why, First { finish: storing.is_some(), fence: unfenced.is_some() }))
    }

    fn global_access(&self, i: usize) -> Option<&GlobalAccess<'c>> {
        self.global[i].map(|kind| &self.kinds[kind])
    }

    /// The pending accesses after operation `i`, and the barrier that must be before it.
    fn step(&self, i: usize, mut pending: Pending) -> (Pending, Option<Put>) {
        let step = &self.steps[i];
        if let Some(put) = self.barriers[i] {
            if put.first.finish {
                pending.finish_stores();
            }
            if put.first.fence {
                pending.unfenced.clear();
            }
            pending.synchronize(if put.global { Ordered::ALL } else { self.by_shared });
        }
        // A barrier is there for all of shared memory; it may have to order global memory, too.
        let owed = self.owed(i, &pending).filter(|put| put.global || self.barriers[i].is_none());
        step.accesses.iter().for_each(|access| pending.add(*access));
        let waits = |waits: bool| if waits { Ordered::ALL } else { Ordered::default() };
        if let Some(kind) = self.global[i] {
            let done = &self.kinds[kind];
            pending.synchronize(Ordered { shared: false, ..waits(done.waits_before) });
            let Proxies { threads, bulk } = done.proxies();
            if done.writes && threads {
                access(&mut pending.stored, kind, i);
                if self.in_bulk {
                    access(&mut pending.unfenced, kind, i);
                }
            }
            if done.writes && bulk {
                access(&mut pending.storing, kind, i);
            }
            if done.reads && threads {
                access(&mut pending.loaded, kind, i);
            }
            pending.synchronize(Ordered { shared: false, ..waits(done.waits_after) });
        }
        pending.apart = (pending.apart + step.apart).min(together::APART);
        if let Some(waits) = step.waits {
            pending.wait(waits);
        }
        if step.finishes_stores {
            pending.finish_stores();
        }
        pending.synchronize(step.synchronizes);
        if let Some(then) = step.then {
            pending.add(then);
        }
        (pending, owed)
    }

    fn before(&self, i: usize) -> Pending {
        let mut pending = Pending::default();
        for previous in &self.predecessors[i] {
            let previous = *previous as usize;
            if previous >= i {
                // In the next iteration numbers of buffers are others.
                pending.unite(&self.after[previous].map(|place| self.lasting[place]));
            } else {
                pending.unite(&self.after[previous]);
            }
        }
        pending
    }

    /// One pass over the operations; whether anything changed. With `insert`,
    /// barriers are put where they are needed.
    fn sweep(&mut self, insert: bool) -> bool {
        let mut changed = false;
        for i in 0..self.steps.len() {
            let (mut pending, owed) = self.step(i, self.before(i));
            if let Some(put) = owed.filter(|_| insert) {
                let before = self.barriers[i].map_or_else(First::default, |there| there.first);
                let first = First {
                    finish: put.first.finish || before.finish,
                    fence: put.first.fence || before.fence,
                };
                self.barriers[i] = Some(Put { first, ..put });
                pending = self.step(i, self.before(i)).0;
                changed = true;
            }
            if self.after[i] != pending {
                self.after[i] = pending;
                changed |= !insert;
            }
        }
        changed
    }

    /// Puts barriers until none is needed. States are computed anew after some
    /// were put, so that no barrier is owed to what another one ended.
    fn solve(&mut self) {
        loop {
            let inserted = self.sweep(true);
            self.after.fill(Pending::default());
            while self.sweep(false) {}
            if !inserted && !self.needs_more() {
                return;
            }
        }
    }

    fn needs_more(&self) -> bool {
        (0..self.steps.len()).any(|i| self.step(i, self.before(i)).1.is_some())
    }
}

/// What an arrival at an mbarrier may give away too early: other threads of the group may still read or write it.
/// Where `arrival` goes is not known of a barrier that the caller passes.
fn released(arrival: Option<&Access>, pending: &Pending) -> Option<Meeting> {
    let written = pending.writes.iter().map(|before| (*before, true));
    let mut all = written.chain(pending.reads.iter().map(|before| (*before, false)));
    all.next().map(|(before, written)| {
        let access = arrival.copied().unwrap_or(Access { buffer: before, kind: Kind::Synchronize });
        Meeting { access, before, written }
    })
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let target = machine::target(module)?;
    let called = Callees::of(module, &target)?;
    let functions =
        callees_first(module).map_err(|call| call.error("calls a function that is being called"))?;
    let mut divergence = [Divergence::default(), Divergence::default()];
    let sharing = Sharing::new(module, &target);
    // Callers first: they say how threads come to what they call.
    for function in functions.into_iter().rev() {
        insert_barriers(function, &called, &mut divergence, &target, &sharing, options.bool("report"))?;
    }
    Ok(())
}

/// Refuses barriers to which only some of the warps come: those that a program chooses by their numbers.
fn check_warps<'c>(
    function: Op<'c>,
    analysis: &Analysis<'_, 'c>,
    buffers: &Buffers<'c>,
    by_warp: &mut Divergence<'c>,
) -> PassResult {
    let ops = analysis.graph.ops();
    let decided = decided_by_warp(function, ops, by_warp);
    if decided.is_nowhere() {
        return Ok(());
    }
    let waits = |i: usize, op: Op<'c>| {
        // A conversion says itself whether warps wait in it; what is called is asked when it is its turn.
        let asks_others = is_conversion(op) || is_one_of!(op, CallOp | TensormapCreateOp);
        let scratch = || buffers.of_op(op).is_some_and(|buffer| buffers.all[buffer].is_scratch);
        analysis.barriers[i].is_some() || analysis.steps[i].synchronizes.shared || !asks_others && scratch()
    };
    let mut waiting = ops.iter().enumerate().filter(|(i, op)| waits(*i, **op) && decided.includes(**op));
    waiting.next().map_or(Ok(()), |(_, op)| {
        Err(op.error("all warps must wait for each other here, and the number of a warp decides which of them come here"))
    })
}

fn insert_barriers<'c>(
    function: Op<'c>,
    called: &Callees,
    divergence: &mut [Divergence<'c>; 2],
    target: &TargetDesc,
    sharing: &Sharing<'c, '_>,
    report: bool,
) -> PassResult {
    let fail = |(op, message): (Op<'_>, String)| op.error(message);
    let apart = barriers_behind_waits(function)?;
    let graph = FlowGraph::new(function);
    let buffers = Buffers::new(&graph, &callees(function), target).map_err(fail)?;
    // Whoever counted the barriers of loops in which halves run apart put those for global memory, too.
    let mut roots = PointerRoots::default();
    one_thread::mark(graph.ops(), &mut roots);
    let in_loop = |op: Op<'c>| op.ancestor(is_loop).is_some();
    let mut access = |op: Op<'c>| GlobalAccess::of(op, &mut roots).or_else(|| called.global_access(op));
    let access = |op: &Op<'c>| if apart && in_loop(*op) { None } else { access(*op) };
    let mut global: Vec<Option<GlobalAccess<'_>>> = graph.ops().iter().map(access).collect();
    let [by_value, by_warp] = &mut *divergence;
    allow_divergence(function, graph.ops(), &mut global, by_value);
    let (mut numbers, mut kinds) = (FastMap::default(), Vec::new());
    let mut number = |access: GlobalAccess<'c>| {
        *numbers.entry(access).or_insert_with_key(|access: &GlobalAccess<'c>| {
            kinds.push(access.clone());
            kinds.len() - 1
        })
    };
    let global: Vec<Option<usize>> = global.into_iter().map(|access| access.map(&mut number)).collect();
    let by_number = by_warp.concerns(function) || graph.ops().iter().any(|op| WarpIdOp::cast(*op).is_some());
    if buffers.all.is_empty() && !kinds.iter().any(|access| access.writes) && !by_number {
        return Ok(());
    }
    let places = places(&buffers).map_err(fail)?;
    let mut overlaps = overlaps(&places);
    for (i, others) in overlaps.iter_mut().enumerate() {
        others.retain(|other| !buffers.are_apart(i, *other));
    }
    let lasting = (0..places.len()).map(|place| buffers.lasting(place)).collect();
    let steps = graph.ops().iter().map(|op| step_of(*op, &buffers, target)).collect::<Result<_, _>>();
    let mut steps: Vec<Step> = steps.map_err(fail)?;
    for (op, step) in graph.ops().iter().zip(&mut steps).filter(|_| !apart) {
        step.together = sharing.is_shared(*op);
    }
    if steps.iter().any(|step| step.together) {
        for (op, step) in graph.ops().iter().zip(&mut steps) {
            step.apart = together::apart(*op, target);
        }
    }
    let mut analysis = Analysis {
        graph: &graph,
        overlaps,
        lasting,
        in_bulk: kinds.iter().any(|access| access.proxies().bulk),
        predecessors: graph.predecessors(),
        global,
        kinds,
        by_shared: Ordered::by_shared(target),
        barriers: vec![None; steps.len()],
        after: vec![Pending::default(); steps.len()],
        steps,
    };
    analysis.solve();
    check_warps(function, &analysis, &buffers, by_warp)?;
    let ops = analysis.graph.ops();
    // Nobody has counted more barriers than there are: the halves of such loops run together.
    let needing = ops.iter().zip(&analysis.barriers).filter(|(_, put)| put.is_some());
    let together: Vec<Op<'c>> =
        needing.filter_map(|(op, _)| op.ancestor(|outer| outer.attr(HALVES).is_some())).collect();
    if !together.is_empty() {
        together.into_iter().for_each(run_together);
        return insert_barriers(function, called, divergence, target, sharing, report);
    }
    for (op, put) in ops.iter().zip(&analysis.barriers) {
        let Some(put) = put else { continue };
        if put.first.finish {
            TmaStoreWaitOp::build(op.loc(), 0).detached()?.op().move_before(*op);
        }
        if put.first.fence {
            let fence = fence_insertion::fence(*op)?;
            fence.set_attr(ALL_MEMORY, Attr::unit(op.context()));
            fence.move_before(*op);
        }
        let spaces = if put.global { AddrSpace::ALL } else { AddrSpace::LOCAL };
        let made = BarrierOp::build(op.loc(), spaces).detached()?.op();
        made.move_before(*op);
        if report {
            put.why.report(made, *op, ops, &buffers, &places);
        }
    }
    Ok(())
}

impl Hazard {
    /// Says as a remark why the barrier `made` is before `op`.
    fn report(self, made: Op<'_>, op: Op<'_>, ops: &[Op<'_>], buffers: &Buffers<'_>, places: &[(u64, u64)]) {
        let (text, at, note) = match self {
            Hazard::Together => {
                let text = "barrier: warps store parts of the same sectors, which are written once where they do so together";
                made.emit(Severity::Remark, false, text, &[]);
                return;
            }
            Hazard::Shared(Meeting { access, before, written }) => {
                let (start, end) = places[access.buffer];
                let does = if access.kind.needs_reads_done() { "writes" } else { "reads" };
                let did = if written { "written" } else { "read" };
                let text = format!("barrier: {} {does} bytes {start} to {end}", op.name());
                let (start, end) = places[before];
                let note =
                    format!("of which other threads may not have {did} all of {start} to {end}, this memory");
                (text, buffers.all[buffers.places[before].buffer].op, note)
            }
            Hazard::Global(earlier, before) => {
                let (does, did) = match before {
                    Before::Stored => ("accesses", "that other threads may have written here"),
                    Before::Loaded => ("writes", "that other threads may not have read yet here"),
                };
                (format!("barrier: {} {does} global memory", op.name()), ops[earlier], did.to_owned())
            }
        };
        made.emit(Severity::Remark, false, &text, &[(at.loc(), note)]);
    }
}

/// Has the halves of the warps run a loop together: without the barriers of one half around it.
fn run_together(around: Op<'_>) {
    around.remove_attr(HALVES);
    let is_of_half = |op: &Op<'_>| CondBarrierOp::cast(*op).is_some();
    let siblings = || around.block().into_iter().flat_map(|block| block.ops());
    let before = siblings().take_while(|op| *op != around).filter(is_of_half).last();
    let behind = siblings().skip_while(|op| *op != around).find(is_of_half);
    before.into_iter().chain(behind).for_each(Op::erase);
}

/// Puts a barrier right behind each wait for copies where warps run a barrier apart; says whether they do.
fn barriers_behind_waits(function: Op<'_>) -> Result<bool, Reported> {
    let (mut apart, mut found) = (false, Vec::new());
    function.walk(&mut |op| {
        apart |= CondBarrierOp::cast(op).is_some();
        if matches!(waits(op), Some((Waits::Copies | Waits::Tensors, _))) {
            found.push(op);
        }
        Walk::Advance
    });
    found.retain(|wait| {
        let next = wait.next().and_then(BarrierOp::cast);
        apart && next.is_none_or(|barrier| !barrier.addr_space().contains(AddrSpace::LOCAL))
    });
    for wait in found {
        BarrierOp::build(wait.loc(), AddrSpace::LOCAL).detached()?.op().move_after(wait);
    }
    Ok(apart)
}

/// The first byte of each place's buffer, and the one after its last.
///
/// # Errors
/// A buffer without memory.
pub(crate) fn places<'c>(buffers: &Buffers<'c>) -> Result<Vec<(u64, u64)>, (Op<'c>, String)> {
    let place = |buffer: &Buffer<'c>| {
        let offset = buffer.op.attr(OFFSET).and_then(Attr::as_int).and_then(|n| u64::try_from(n).ok());
        let missing =
            || (buffer.op, "has no shared memory: run --allocate-shared-memory-nv first".to_owned());
        offset.map(|offset| (offset, offset + buffer.needs.bytes)).ok_or_else(missing)
    };
    buffers.places.iter().map(|at| place(&buffers.all[at.buffer])).collect()
}

/// For each place those that share bytes with it, itself included.
pub(crate) fn overlaps(places: &[(u64, u64)]) -> Vec<Vec<usize>> {
    let meet = |a: (u64, u64), b: (u64, u64)| a.0 < b.1 && b.0 < a.1;
    places
        .iter()
        .map(|mine| (0..places.len()).filter(|other| meet(*mine, places[*other])).collect())
        .collect()
}

/// What the functions that `function` calls need, as allocation has noted.
pub(crate) fn callees(function: Op<'_>) -> FastMap<String, Needs> {
    let mut needs = FastMap::default();
    function.walk(&mut |op| {
        let bytes = op.attr(super::SIZE).and_then(Attr::as_int).and_then(|n| u64::try_from(n).ok());
        if let (Some(symbol), Some(bytes)) = (super::callee(op), bytes) {
            needs.insert(symbol.to_owned(), Needs { bytes, alignment: 1 });
        }
        Walk::Advance
    });
    needs
}

fn step_of<'c>(op: Op<'c>, buffers: &Buffers<'c>, target: &TargetDesc) -> Result<Step, (Op<'c>, String)> {
    let mut step = Step { accesses: accesses(op, buffers), waits: waits(op), ..Step::default() };
    step.finishes_stores =
        TmaStoreWaitOp::cast(op).is_some_and(|wait| waits_for_all_stores(op) && wait.read_only().is_none());
    if let Some(barrier) = BarrierOp::cast(op) {
        let (spaces, by_shared) = (barrier.addr_space(), Ordered::by_shared(target));
        // Its lowering orders all memory where it is to order more than shared memory.
        let global = by_shared.global || spaces != AddrSpace::LOCAL && spaces != AddrSpace::NONE;
        step.synchronizes = Ordered { shared: spaces.contains(AddrSpace::LOCAL), global };
    } else if ArriveBarrierOp::cast(op).is_some() {
        step.releases = true;
    } else if WarpSpecializeOp::cast(op).is_some() || ClusterBarrierOp::cast(op).is_some() {
        // Regions begin and end for all threads together.
        step.synchronizes = Ordered::ALL;
    } else if is_conversion(op) && !step.accesses.is_empty() {
        let (from, to) = (op.operand(0).ty(), op.result(0).ty());
        let plan = plans::conversion(from, to, target).map_err(|err| (op, err))?;
        if let Conversion::SharedMemory(shared) | Conversion::Cluster(shared) = &plan.conversion
            && shared.scope != Scope::Warp
        {
            step.synchronizes = Ordered::by_shared(target);
            // After the last barrier of the conversion its memory is read.
            if shared.scope == Scope::Block {
                step.then = step.accesses.first().map(|access| Access { kind: Kind::Read, ..*access });
            }
        }
    }
    Ok(step)
}
