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
//! In functions with `amdg.cond_barrier` one half of the warps runs a barrier behind the other: what one half announces
//! before a barrier the other relies on behind the next one but one. Whoever wrote the function counted its barriers, and
//! counted one right behind each wait for copies, which is put there.

use super::buffers::{Buffer, Buffers, Needs};
use super::effects::{Access, Kind, Waits, accesses, waits};
use super::{OFFSET, callees_first};
use crate::analysis::flow_graph::FlowGraph;
use crate::machine;
use crate::plans;
use crate::rules::is_conversion;
use linear_layout::plan::{Conversion, Scope};
use linear_layout::target::TargetDesc;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Severity, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use ttopt_dialect::amdg::ops::CondBarrierOp;
use ttopt_dialect::ttg::enums::AddrSpace;
use ttopt_dialect::ttg::ops::{BarrierOp, WarpSpecializeOp};
use ttopt_dialect::ttng::ops::{ArriveBarrierOp, ClusterBarrierOp};

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

/// The buffers with accesses that other threads have not waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Pending {
    reads: BTreeSet<usize>,
    writes: BTreeSet<usize>,
    /// Uses as barriers.
    barriers: BTreeSet<usize>,
    /// Under way beside the program: copies, dots, stores.
    under_way: [BTreeSet<usize>; 3],
}

impl Pending {
    fn unite(&mut self, other: &Pending) {
        self.reads.extend(&other.reads);
        self.writes.extend(&other.writes);
        self.barriers.extend(&other.barriers);
        for (mine, other) in self.under_way.iter_mut().zip(&other.under_way) {
            mine.extend(other);
        }
    }
    /// The same accesses, to other places.
    fn map(&self, to: impl Fn(usize) -> usize) -> Pending {
        let all = |places: &BTreeSet<usize>| places.iter().map(|place| to(*place)).collect();
        Pending {
            reads: all(&self.reads),
            writes: all(&self.writes),
            barriers: all(&self.barriers),
            under_way: [0, 1, 2].map(|i| all(&self.under_way[i])),
        }
    }
    /// All threads wait for each other.
    fn synchronize(&mut self) {
        self.reads.clear();
        self.writes.clear();
        self.barriers.clear();
    }
    fn add(&mut self, access: Access) {
        match access.kind {
            Kind::Read => _ = self.reads.insert(access.buffer),
            Kind::Write => _ = self.writes.insert(access.buffer),
            Kind::Synchronize => _ = self.barriers.insert(access.buffer),
            Kind::BeginCopy => _ = self.under_way[Waits::Copies as usize].insert(access.buffer),
            Kind::BeginDot => _ = self.under_way[Waits::Dots as usize].insert(access.buffer),
            Kind::BeginStore => _ = self.under_way[Waits::Stores as usize].insert(access.buffer),
            Kind::HandOver | Kind::Fill => {}
        }
    }
    fn wait(&mut self, (what, left): (Waits, i64)) {
        let done = &mut self.under_way[what as usize];
        match what {
            Waits::Copies => self.writes.extend(done.iter()),
            Waits::Dots | Waits::Stores => self.reads.extend(done.iter()),
        }
        if left == 0 {
            done.clear();
        }
    }
}

/// Why there must be a barrier before an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hazard {
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
    /// One thread tells others, by an mbarrier, what all threads of its group did before: they must have done it.
    releases: bool,
    /// Waits for all threads, after `accesses`; what it does afterwards is `then`.
    synchronizes: bool,
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
    /// Why there is a barrier before an operation.
    barriers: Vec<Option<Hazard>>,
    after: Vec<Pending>,
}

impl Analysis<'_, '_> {
    fn hazard(&self, access: Access, pending: &Pending) -> Option<Hazard> {
        let found = |buffers: &BTreeSet<usize>| {
            self.overlaps[access.buffer].iter().copied().find(|other| buffers.contains(other))
        };
        if let Some(before) = found(&pending.writes) {
            return Some(Hazard { access, before, written: true });
        }
        let is_barrier = access.kind == Kind::Synchronize;
        let read = if access.kind.needs_reads_done() { found(&pending.reads) } else { None };
        let used = if is_barrier { None } else { found(&pending.barriers) };
        read.or(used).map(|before| Hazard { access, before, written: false })
    }

    /// The pending accesses after operation `i`, and why it needs a barrier before it.
    fn step(&self, i: usize, mut pending: Pending) -> (Pending, Option<Hazard>) {
        let step = &self.steps[i];
        let mut hazard = None;
        if self.barriers[i].is_some() {
            pending.synchronize();
        } else {
            hazard = step.accesses.iter().find_map(|access| self.hazard(*access, &pending));
            if step.releases && hazard.is_none() {
                hazard = released(step.accesses.first(), &pending);
            }
        }
        step.accesses.iter().for_each(|access| pending.add(*access));
        if let Some(waits) = step.waits {
            pending.wait(waits);
        }
        if step.synchronizes {
            pending.synchronize();
        }
        if let Some(then) = step.then {
            pending.add(then);
        }
        (pending, hazard)
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
            let (mut pending, hazard) = self.step(i, self.before(i));
            if insert && hazard.is_some() {
                self.barriers[i] = hazard;
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
fn released(arrival: Option<&Access>, pending: &Pending) -> Option<Hazard> {
    let written = pending.writes.iter().map(|before| (*before, true));
    let mut all = written.chain(pending.reads.iter().map(|before| (*before, false)));
    all.next().map(|(before, written)| {
        let access = arrival.copied().unwrap_or(Access { buffer: before, kind: Kind::Synchronize });
        Hazard { access, before, written }
    })
}

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let target = machine::target(module)?;
    let functions =
        callees_first(module).map_err(|call| call.error("calls a function that is being called"))?;
    for function in functions {
        insert_barriers(function, &target, options.bool("report"))?;
    }
    Ok(())
}

fn insert_barriers(function: Op<'_>, target: &TargetDesc, report: bool) -> PassResult {
    let fail = |(op, message): (Op<'_>, String)| op.error(message);
    barriers_behind_waits(function)?;
    let graph = FlowGraph::new(function);
    let buffers = Buffers::new(&graph, &callees(function), target).map_err(fail)?;
    if buffers.all.is_empty() {
        return Ok(());
    }
    let places = places(&buffers).map_err(fail)?;
    let mut overlaps = overlaps(&places);
    for (i, others) in overlaps.iter_mut().enumerate() {
        others.retain(|other| !buffers.are_apart(i, *other));
    }
    let lasting = (0..places.len()).map(|place| buffers.lasting(place)).collect();
    let steps = graph.ops().iter().map(|op| step_of(*op, &buffers, target)).collect::<Result<_, _>>();
    let steps: Vec<Step> = steps.map_err(fail)?;
    let mut analysis = Analysis {
        graph: &graph,
        overlaps,
        lasting,
        predecessors: graph.predecessors(),
        barriers: vec![None; steps.len()],
        after: vec![Pending::default(); steps.len()],
        steps,
    };
    analysis.solve();
    for (op, hazard) in analysis.graph.ops().iter().zip(&analysis.barriers) {
        let Some(hazard) = hazard else { continue };
        let made = BarrierOp::build(op.loc(), AddrSpace::LOCAL).detached()?.op();
        made.move_before(*op);
        if report {
            let (start, end) = places[hazard.access.buffer];
            let does = if hazard.access.kind.needs_reads_done() { "writes" } else { "reads" };
            let did = if hazard.written { "written" } else { "read" };
            let text = format!("barrier: {} {does} bytes {start} to {end}", op.name());
            let (start, end) = places[hazard.before];
            let note =
                format!("of which other threads may not have {did} all of {start} to {end}, this memory");
            made.emit(
                Severity::Remark,
                false,
                &text,
                &[(buffers.all[buffers.places[hazard.before].buffer].op.loc(), note)],
            );
        }
    }
    Ok(())
}

/// Puts a barrier right behind each wait for copies where warps run a barrier apart.
fn barriers_behind_waits(function: Op<'_>) -> PassResult {
    let (mut apart, mut found) = (false, Vec::new());
    function.walk(&mut |op| {
        apart |= CondBarrierOp::cast(op).is_some();
        if matches!(waits(op), Some((Waits::Copies, _))) {
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
    Ok(())
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
    if let Some(barrier) = BarrierOp::cast(op) {
        step.synchronizes = barrier.addr_space().contains(AddrSpace::LOCAL);
    } else if ArriveBarrierOp::cast(op).is_some() {
        step.releases = true;
    } else if WarpSpecializeOp::cast(op).is_some() || ClusterBarrierOp::cast(op).is_some() {
        // Regions begin and end for all threads together.
        step.synchronizes = true;
    } else if is_conversion(op) && !step.accesses.is_empty() {
        let (from, to) = (op.operand(0).ty(), op.result(0).ty());
        let plan = plans::conversion(from, to, target).map_err(|err| (op, err))?;
        if let Conversion::SharedMemory(shared) | Conversion::Cluster(shared) = &plan.conversion
            && shared.scope != Scope::Warp
        {
            step.synchronizes = true;
            // After the last barrier of the conversion its memory is read.
            if shared.scope == Scope::Block {
                step.then = step.accesses.first().map(|access| Access { kind: Kind::Read, ..*access });
            }
        }
    }
    Ok(step)
}
