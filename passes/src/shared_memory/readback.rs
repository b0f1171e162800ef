//! Global memory that a program stores and loads again.
//!
//! Triton orders nothing between the threads of a program there but by `tl.debug_barrier` and by atomics, and says so
//! (triton-lang/triton#10924, #11872): which thread has an element is the compiler's business, so a program that reads back what it
//! stored cannot know whether another thread did. Here it need not: a load that may read what a store before it wrote, and
//! whose threads are not those of the store, has a barrier before it. They are the same where both have pointers of one shape and
//! layout, without replication: a thread has the same positions of both, and its own accesses are in order. What is stored at one
//! position and loaded at another of the same layout is not looked for; that takes a barrier in the program.
//!
//! All threads must come to a barrier equally often. Each of them loads a scalar for itself, so where other programs store it
//! meanwhile, as a look-back for the sums of the programs before waits for, one thread leaves a loop an iteration earlier than
//! another. Within control flow that such a value decides no load gets a barrier ([`allow_divergence`]): what other programs
//! store, the program has to order itself.

use crate::analysis::pointer_roots::{Arguments, PointerRoots, may_meet};
use linear_layout::Dim;
use mlir_host::flow::{for_each_edge, is_region_branch, next};
use mlir_host::hash::FastSet;
use mlir_host::ir::{Op, Type, Value};
use mlir_host::match_op;
use ttopt_dialect::tt::enums::MemSemantic;
use ttopt_dialect::tt::ops::{
    AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, AtomicStoreOp, ElementwiseInlineAsmOp, LoadOp,
    StoreOp,
};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::AsyncCopyGlobalToLocalOp;

/// An access to global memory.
#[derive(Clone, Debug)]
pub struct GlobalAccess<'c> {
    /// Whether it loads.
    pub reads: bool,
    /// Whether it stores.
    pub writes: bool,
    /// Whether all threads wait for each other before it.
    pub waits_before: bool,
    /// Whether they do after it.
    pub waits_after: bool,
    /// The arguments that its pointers are computed from.
    roots: Option<Arguments<'c>>,
    /// The type of its pointers.
    pointers: Type<'c>,
    /// Whether each element has one thread.
    owned: bool,
}

impl<'c> GlobalAccess<'c> {
    /// What `op` accesses.
    pub fn of(op: Op<'c>, roots: &mut PointerRoots<'c>) -> Option<Self> {
        let (reads, writes, sem) = match_op!(op, {
            LoadOp => (true, false, MemSemantic::Relaxed),
            AsyncCopyGlobalToLocalOp => (true, false, MemSemantic::Relaxed),
            StoreOp => (false, true, MemSemantic::Relaxed),
            AtomicLoadOp(load) => (true, false, load.sem()),
            AtomicStoreOp(store) => (false, true, store.sem()),
            AtomicPollOp(poll) => (true, false, poll.sem()),
            AtomicRmwOp(rmw) => (true, true, rmw.sem()),
            AtomicCasOp(cas) => (true, true, cas.sem()),
            _ => return None,
        });
        let pointer = op.operand(0);
        let pointers = pointer.ty();
        Some(Self {
            reads,
            writes,
            waits_before: matches!(sem, MemSemantic::Release | MemSemantic::AcquireRelease),
            waits_after: matches!(sem, MemSemantic::Acquire | MemSemantic::AcquireRelease),
            roots: roots.of(pointer),
            pointers,
            owned: is_owned(pointers),
        })
    }

    /// Whether another thread than the one that stores with `self` may load that with `load`.
    pub fn may_be_read_by(&self, load: &Self) -> bool {
        let same_threads = self.pointers == load.pointers && self.owned;
        !same_threads && may_meet(self.roots.as_deref(), load.roots.as_deref())
    }
}

/// Takes the loads from `accesses`, those of `ops`, to which threads of a program may not come equally often.
pub fn allow_divergence(ops: &[Op<'_>], accesses: &mut [Option<GlobalAccess<'_>>]) {
    let stores = || accesses.iter().flatten().filter(|access| access.writes);
    let anything = stores().any(|store| store.roots.is_none());
    let stored: FastSet<Value<'_>> =
        stores().flat_map(|store| store.roots.iter().flatten().copied()).collect();
    let may_change = |(op, access): (&Op<'_>, &Option<GlobalAccess<'_>>)| match access {
        Some(load) if load.reads && !load.writes => {
            let stored_here =
                load.roots.as_ref().is_none_or(|roots| roots.iter().any(|root| stored.contains(root)));
            LoadOp::cast(*op).is_some_and(|load| load.is_volatile())
                || (anything || !stored.is_empty()) && (anything || stored_here)
        }
        _ => ElementwiseInlineAsmOp::cast(*op).is_some_and(|asm| !asm.pure()),
    };
    let sources = ops.iter().zip(accesses.iter()).filter(|pair| may_change(*pair));
    let decided = decided_by(sources.flat_map(|(op, _)| op.results()).collect());
    if decided.is_empty() {
        return;
    }
    for (op, access) in ops.iter().zip(accesses) {
        if let Some(load) = access
            && load.reads
            && op.ancestor(|outer| decided.contains(&outer)).is_some()
        {
            load.reads = false;
        }
    }
}

/// The operations whose control flow values computed from `open` decide: branches, loops, and whatever has blocks that jump.
fn decided_by(mut open: Vec<Value<'_>>) -> FastSet<Op<'_>> {
    let (mut seen, mut decided) = (FastSet::default(), FastSet::default());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        for (user, operand) in value.uses() {
            let mut carried = false;
            for_each_edge(user, &mut |i, target| {
                if i == operand {
                    carried = true;
                    open.push(target);
                }
            });
            if carried {
                continue;
            }
            open.extend(user.results());
            // A bound of a loop, or a condition: of a branch, of a loop, of a jump between blocks.
            let chooses = || next(user).is_some_and(|places| places.len() > 1);
            let outer = if is_region_branch(user) { Some(user) } else { user.parent().filter(|_| chooses()) };
            if let Some(outer) = outer
                && decided.insert(outer)
            {
                open.extend(outer.results());
                open.extend(
                    outer.regions().flat_map(|region| region.blocks()).flat_map(|block| block.args()),
                );
            }
        }
    }
    decided
}

/// Whether no two threads have an element of a tensor of this type.
fn is_owned(ty: Type<'_>) -> bool {
    let layout = || {
        let tensor = ty.as_tensor()?;
        to_linear_layout(tensor.encoding()?, &tensor.shape()).ok()
    };
    layout().is_some_and(|layout| {
        [Dim::LANE, Dim::WARP, Dim::BLOCK].into_iter().all(|dim| layout.free_variable_mask(dim) == 0)
    })
}
