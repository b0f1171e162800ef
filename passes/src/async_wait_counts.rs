//! `--tritonamdgpu-update-async-wait-count`: waits for groups of copies become waits for instructions.
//!
//! A warp waits until at most so many of its loads are under way, which end in the order in which they were issued (CDNA3
//! ISA, `S_WAITCNT`, `VMCNT`; LLVM 22, `s_wait_asynccnt`). `ttg.async_wait {num = n}` leaves the copies of the last `n` groups under way: this pass
//! counts the loads that they are made of, and where control flow comes together takes the fewest, since whoever waits
//! for more waits long enough. A copy that some warps may branch around counts as none. Loads to registers, which the hardware
//! counts, too, are waited for as well, unless they are pinned behind the copies that are awaited: then they stay under way. Those are
//! buffer instructions of 16 bytes, all of which is stored to shared memory an iteration later, so that LLVM neither leaves one out nor makes one
//! of two. Other loads, and stores, only make a wait longer.
//!
//! Tensor operations of groups have a counter of their own (`s_wait_tensorcnt`): where a function has such loads, each wait becomes one for that, and
//! one for copies, where there are some. Each is one instruction, and so are those from shared memory.
//!
//! A forward dataflow problem: at each operation, the fewest loads of the group that is open and of each closed group, the
//! latest first. `amdg.async_wait` of somebody else's counts instructions that are not ours: it becomes a wait for all.

use crate::analysis::axis_info::AxisInfoAnalysis;
use crate::analysis::flow_graph::FlowGraph;
use crate::buffer_accesses::BUFFER;
use crate::machine::{self, error};
use crate::plans;
use crate::schedule::pass::PINNED;
use crate::schedule::source::body;
use crate::shared_memory::once::ONCE;
use crate::shared_memory::one_thread::ALONE;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::upstream::ForOp;
use ttopt_dialect::amdg;
use ttopt_dialect::amdg::ops::{
    AsyncTdmCopyGlobalToLocalOp, AsyncTdmCopyLocalToGlobalOp, AsyncTdmIntrinsicWaitOp,
};
use ttopt_dialect::tt::ops::{CallOp, FuncOp, LoadOp};
use ttopt_dialect::ttg::ops::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp, LocalAllocOp, LocalStoreOp,
};

/// The pass.
pub static TRITONAMDGPU_UPDATE_ASYNC_WAIT_COUNT: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["amdg"],
    ..PassDef::new(
        "tritonamdgpu-update-async-wait-count",
        "Make waits for groups of copies to shared memory wait for a number of instructions",
        run,
    )
};

/// The most loads that a warp may leave under way (CDNA3 ISA, `VMCNT` has six bits, as has LLVM 22's `ASYNCcnt`).
const MOST: u32 = 63;
/// Bits of the widest load.
const WIDEST: u32 = 128;

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let target = machine::target(module)?;
    let (mut functions, mut waits) = (Vec::new(), false);
    module.walk(&mut |op| {
        if FuncOp::cast(op).is_some() {
            functions.push(op);
        }
        waits |= AsyncWaitOp::cast(op).is_some() || amdg::ops::AsyncWaitOp::cast(op).is_some();
        Walk::Advance
    });
    if !waits {
        return Ok(());
    }
    let axis = AxisInfoAnalysis::new(module);
    functions.into_iter().try_for_each(|function| update(function, &axis, &target))
}

/// Loads of the group that is open, then of those before it, the latest first. Groups that are not there have none.
type Groups = Vec<Loads>;

/// Loads that are surely issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Loads {
    /// All of them.
    all: u32,
    /// Of these, what is loaded to registers.
    to_registers: u32,
    /// Tensor operations, which have a counter of their own.
    tensors: u32,
}

impl Loads {
    fn and(self, other: Loads) -> Loads {
        Loads {
            all: (self.all + other.all).min(MOST),
            to_registers: (self.to_registers + other.to_registers).min(MOST),
            tensors: (self.tensors + other.tensors).min(MOST),
        }
    }

    fn fewest(self, other: Loads) -> Loads {
        Loads {
            all: self.all.min(other.all),
            to_registers: self.to_registers.min(other.to_registers),
            tensors: self.tensors.min(other.tensors),
        }
    }
}

/// What an operation does to groups.
enum Step {
    Load(Loads),
    Commit,
    /// Groups are not known behind it.
    Forget,
}

fn step<'c>(op: Op<'c>, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> Result<Option<Step>, Reported> {
    Ok(Some(match_op!(op, {
        AsyncCopyGlobalToLocalOp(copy) => {
            let plan = plans::copy_accesses(copy, axis, target).map_err(|why| error(op, &why))?;
            let always = plans::is_always_issued(copy, &plan);
            let all = if always { plan.accesses.len() as u32 } else { 0 };
            Step::Load(Loads { all, ..Loads::default() })
        },
        AsyncTdmCopyGlobalToLocalOp | AsyncTdmCopyLocalToGlobalOp => {
            Step::Load(Loads { tensors: 1, ..Loads::default() })
        },
        LoadOp => {
            let pinned = [PINNED, BUFFER].iter().all(|mark| op.attr(mark).is_some());
            let alone = [ONCE, ALONE].iter().all(|mark| op.attr(mark).is_none());
            // The counter of asynchronous copies counts nothing else.
            let counted = pinned && alone && !target.primitives.async_to_lds && is_stored(op);
            let Some(plan) = plans::access(op, axis, target).ok().filter(|_| counted) else {
                return Ok(None);
            };
            let wide = plan.vec_elems * plan.elem_bits == WIDEST;
            let all = if wide { plan.accesses.len() as u32 } else { 0 };
            Step::Load(Loads { all, to_registers: all, tensors: 0 })
        },
        AsyncCommitGroupOp => Step::Commit,
        CallOp => Step::Forget,
        _ => return Ok(None),
    })))
}

/// Whether all of what `op` loads is stored to shared memory an iteration later, so that LLVM leaves no part of it out.
fn is_stored(op: Op<'_>) -> bool {
    let stores = |user: Op<'_>| LocalAllocOp::cast(user).is_some() || LocalStoreOp::cast(user).is_some();
    let mut uses = op.result(0).uses();
    let Some((end, number)) = uses.next().filter(|_| uses.next().is_none()) else { return false };
    let Some(around) = end.parent().and_then(ForOp::cast) else { return false };
    let Some((block, _)) = body(around.op()).filter(|(_, last)| *last == end) else { return false };
    let carried = block.arg(1 + number);
    !carried.is_unused() && carried.uses().all(|(user, _)| stores(user))
}

fn update<'c>(function: Op<'c>, axis: &AxisInfoAnalysis<'c>, target: &TargetDesc) -> PassResult {
    let graph = FlowGraph::new(function);
    let steps = graph.ops().iter().map(|op| step(*op, axis, target)).collect::<Result<Vec<_>, _>>()?;
    let wanted = graph.ops().iter().filter_map(|op| AsyncWaitOp::cast(*op)).map(|wait| wait.num()).max();
    let kept = 1 + wanted.map_or(0, |most| most.clamp(0, i64::from(MOST)) as usize);
    let before = solve(&graph, &steps, kept);
    let copies = |op: &Op<'c>| AsyncCopyGlobalToLocalOp::cast(*op).is_some();
    let moves = |op: &Op<'c>| AsyncTdmCopyGlobalToLocalOp::cast(*op).is_some();
    let (copies, moves) = (graph.ops().iter().any(copies), graph.ops().iter().any(moves));
    for (op, groups) in graph.ops().iter().zip(before) {
        if let Some(wait) = amdg::ops::AsyncWaitOp::cast(*op) {
            replace(*op, wait.async_token().collect(), 0)?;
        } else if let Some(wait) = AsyncWaitOp::cast(*op) {
            let left =
                usize::try_from(wait.num()).map_err(|_| op.error("waits for a negative number of groups"))?;
            // Of the group that is open only what does not belong to it.
            let open = groups.first().map_or(0, |open| open.to_registers);
            let closed = groups.iter().skip(1).take(left).map(|group| group.all).sum::<u32>();
            let loads = (open + closed).min(MOST);
            // Of what is open all is behind the groups.
            let tensors = groups.first().map_or(0, |open| open.tensors)
                + groups.iter().skip(1).take(left).map(|group| group.tensors).sum::<u32>();
            let mut tokens: Vec<Value<'c>> = wait.async_token().collect();
            if moves {
                let count = i64::from(tensors.min(MOST));
                let made = AsyncTdmIntrinsicWaitOp::build(op.loc(), &tokens, count)
                    .results(&[op.result(0).ty()])
                    .detached()?
                    .op();
                made.move_before(*op);
                tokens = vec![made.result(0)];
                if !copies {
                    op.result(0).replace_all_uses_with(made.result(0));
                    op.erase();
                    continue;
                }
            }
            replace(*op, tokens, loads.into())?;
        }
    }
    Ok(())
}

/// The groups before each operation, `kept` of them at most.
fn solve(graph: &FlowGraph<'_>, steps: &[Option<Step>], kept: usize) -> Vec<Groups> {
    let mut before: Vec<Option<Groups>> = vec![None; steps.len()];
    if let Some(first) = before.first_mut() {
        *first = Some(Groups::new());
    }
    let mut open = vec![0];
    while let Some(i) = open.pop() {
        let Some(groups) = before.get(i).cloned().flatten() else { continue };
        let after = follow(groups, steps[i].as_ref(), kept);
        for next in graph.successors(i) {
            let joined = match &before[next] {
                None => after.clone(),
                Some(other) => other.iter().zip(&after).map(|(a, b)| a.fewest(*b)).collect(),
            };
            if before[next].as_ref() != Some(&joined) {
                before[next] = Some(joined);
                open.push(next);
            }
        }
    }
    before.into_iter().map(Option::unwrap_or_default).collect()
}

fn follow(mut groups: Groups, step: Option<&Step>, kept: usize) -> Groups {
    match step {
        None => {}
        Some(Step::Load(loads)) => match groups.first_mut() {
            Some(open) => *open = open.and(*loads),
            None => groups.push(*loads),
        },
        Some(Step::Commit) => {
            if groups.is_empty() {
                groups.push(Loads::default());
            }
            groups.insert(0, Loads::default());
            groups.truncate(kept);
        }
        Some(Step::Forget) => groups.clear(),
    }
    groups
}

fn replace<'c>(op: Op<'c>, tokens: Vec<mlir_host::ir::Value<'c>>, loads: i64) -> PassResult {
    let made = amdg::ops::AsyncWaitOp::build(op.loc(), &tokens, loads)
        .results(&[op.result(0).ty()])
        .detached()?
        .op();
    made.move_before(op);
    op.result(0).replace_all_uses_with(made.result(0));
    op.erase();
    Ok(())
}
