//! `--triton-nvidia-gpu-proxy-fence-insertion`: bulk copies to shared memory come after ordinary accesses to
//! the same bytes.
//!
//! Copies write through another proxy than threads read and write (PTX ISA, "Async proxy"): a barrier of the
//! threads orders the two only if each thread has put a `fence.proxy.async` behind its accesses. A forward
//! dataflow problem after allocation: which buffers were accessed since the last fence. mbarriers and
//! tensor maps that are being made bring their own fences.

use crate::analysis::flow_graph::FlowGraph;
use crate::fence_insertion::{self, is_fence};
use crate::ir_util::{enclosing_function, is_private};
use crate::machine;
use crate::shared_memory::barriers::{callees, overlaps, places};
use crate::shared_memory::buffers::Buffers;
use crate::shared_memory::calls::Callees;
use crate::shared_memory::effects::{Access, Kind, accesses, fills_by_tma};
use linear_layout::target::TargetDesc;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Block, Op, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use ttopt_dialect::interfaces::MBarrier;
use ttopt_dialect::tt::ops::CallOp;
use ttopt_dialect::ttg::enums::AddrSpace;
use ttopt_dialect::ttg::ops::BarrierOp;
use ttopt_dialect::ttng::ops::TensormapCreateOp;

/// The pass.
pub static PROXY_FENCE_INSERTION: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng"],
    ..PassDef::new(
        "triton-nvidia-gpu-proxy-fence-insertion",
        "Put fences between accesses of threads to shared memory and bulk copies to it",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut functions = Vec::new();
    module.walk(&mut |op| {
        let function = enclosing_function(op).filter(|_| fills_by_tma(op));
        if let Some(function) = function.filter(|function| !functions.contains(function)) {
            functions.push(function);
        }
        Walk::Advance
    });
    if functions.is_empty() {
        return Ok(());
    }
    let target = machine::target(module)?;
    Callees::of(module, &target)?;
    functions.into_iter().try_for_each(|function| insert(function, &target))
}

struct Analysis {
    steps: Vec<SmallVec<[Access; 4]>>,
    is_fence: Vec<bool>,
    overlaps: Vec<Vec<usize>>,
    predecessors: Vec<SmallVec<[u32; 2]>>,
    /// What callers may have accessed before the first operation.
    entry: BTreeSet<usize>,
    /// Operations that get a fence before them.
    fenced: Vec<bool>,
    after: Vec<BTreeSet<usize>>,
}

/// Whether the operation ends with a fence.
fn fences_itself(op: Op<'_>) -> bool {
    op.interface::<MBarrier>().is_some_and(|barrier| barrier.is_life) || TensormapCreateOp::cast(op).is_some()
}

fn by_threads(access: &Access) -> bool {
    matches!(access.kind, Kind::Read | Kind::Write | Kind::BeginCopy)
}

impl Analysis {
    fn before(&self, i: usize) -> BTreeSet<usize> {
        if self.fenced[i] {
            return BTreeSet::new();
        }
        let mut pending = if i == 0 { self.entry.clone() } else { BTreeSet::new() };
        for previous in &self.predecessors[i] {
            pending.extend(&self.after[*previous as usize]);
        }
        pending
    }

    fn step(&self, i: usize) -> BTreeSet<usize> {
        if self.is_fence[i] {
            return BTreeSet::new();
        }
        let mut pending = self.before(i);
        pending.extend(self.steps[i].iter().filter(|access| by_threads(access)).map(|access| access.buffer));
        pending
    }

    /// Whether operation `i` begins a copy that may come before what threads did to its bytes.
    fn hazard(&self, i: usize) -> bool {
        let mut filled = self.steps[i].iter().filter(|access| access.kind == Kind::Fill).peekable();
        if filled.peek().is_none() {
            return false;
        }
        let pending = self.before(i);
        filled.any(|access| self.overlaps[access.buffer].iter().any(|other| pending.contains(other)))
    }

    /// Decides which operations get a fence, in the order of the program: what comes later sees it at once.
    fn solve(&mut self) {
        let mut changed = true;
        while changed {
            changed = false;
            for i in 0..self.steps.len() {
                if !self.fenced[i] && self.hazard(i) {
                    self.fenced[i] = true;
                    changed = true;
                }
                let after = self.step(i);
                if self.after[i] != after {
                    self.after[i] = after;
                    changed = true;
                }
            }
        }
    }
}

fn insert<'c>(function: Op<'c>, target: &TargetDesc) -> PassResult {
    let fail = |(op, message): (Op<'_>, String)| machine::error(op, message);
    let graph = FlowGraph::new(function);
    let buffers = Buffers::new(&graph, &callees(function), target).map_err(fail)?;
    let ops = graph.ops();
    let is_called = is_private(function);
    let mut analysis = Analysis {
        steps: ops
            .iter()
            .map(|op| if fences_itself(*op) { SmallVec::new() } else { accesses(*op, &buffers) })
            .collect(),
        is_fence: ops.iter().map(|op| is_fence(*op)).collect(),
        overlaps: overlaps(&places(&buffers).map_err(fail)?),
        predecessors: graph.predecessors(),
        entry: if is_called { (0..buffers.all.len()).collect() } else { BTreeSet::new() },
        fenced: vec![false; ops.len()],
        after: vec![BTreeSet::new(); ops.len()],
    };
    analysis.solve();
    // The last barrier of each basic block that no thread accesses shared memory after.
    let mut barriers: FastMap<Block<'c>, Option<Op<'c>>> = FastMap::default();
    for (i, &op) in ops.iter().enumerate() {
        let Some(block) = op.block() else { continue };
        let barrier = barriers.entry(block).or_default();
        if analysis.fenced[i] {
            fence(op, *barrier)?;
        }
        if BarrierOp::cast(op).is_some() {
            *barrier = Some(op);
        } else if analysis.steps[i].iter().any(by_threads)
            || op.num_regions() > 0
            || CallOp::cast(op).is_some()
        {
            *barrier = None;
        }
    }
    Ok(())
}

/// Puts a fence and a barrier before `op`: the `barrier` that is there already, if there is one.
fn fence<'c>(op: Op<'c>, barrier: Option<Op<'c>>) -> PassResult {
    fence_insertion::fence(op)?.move_before(barrier.unwrap_or(op));
    if barrier.is_none() {
        BarrierOp::build(op.loc(), AddrSpace::LOCAL).detached()?.op().move_before(op);
    }
    Ok(())
}
