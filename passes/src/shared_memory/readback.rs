//! Global memory that a program loads and stores at the same places.
//!
//! Triton orders nothing between the threads of a program there but by `tl.debug_barrier` and by atomics, and says so
//! (triton-lang/triton#10924, #11872): which thread has an element is the compiler's business, so a program that reads back what it
//! stored, or overwrites what it loaded, cannot know whether another thread did. Here it need not: of two accesses that may be
//! to the same data, one a store, by other threads, the second has a barrier before it. The threads are the same where both have pointers of one
//! shape and layout: a thread has the same positions of both, and its own accesses are in order. Of replicas all load, and one
//! stores, so a load and a store are only by the same threads where there is no replication; two stores always are. What is accessed at one
//! position and again at another of the same layout is not looked for; that takes a barrier in the program. Scalars that one thread
//! loads and stores are in order, too ([`one_thread`](super::one_thread)). Of two atomics only one that returns what it finds needs one.
//! Of a call is known whether its callee loads and stores (`calls`), not where.
//!
//! Bulk copies through tensor maps go through another proxy than accesses of threads do (PTX ISA, "Async proxy"), and one thread
//! issues them. What threads stored they see behind a proxy fence of these threads and a barrier. What they store is there for
//! the thread that issued them when it has waited, and for others behind a barrier; until then they are under way, and what may
//! meet them waits first. What they load is there once their mbarrier says so, which whoever needs it waits for. Those through
//! descriptors of one type are issued by the same thread, and in order.
//!
//! All threads must come to a barrier equally often. Each of them loads a scalar for itself, so where other programs store it
//! meanwhile, as a look-back for the sums of the programs before waits for, one thread leaves a loop an iteration earlier than
//! another. Within control flow that such a value decides no access gets a barrier ([`allow_divergence`]): what other programs
//! store, the program has to order itself.

use super::callee;
use super::effects::{fills_by_tma, is_store_by_tma};
use super::once::{ONCE, is_own};
use super::one_thread::is_by_one_thread;
use crate::analysis::pointer_roots::{Arguments, PointerRoots, descriptor_roots, may_meet};
use linear_layout::Dim;
use mlir_host::flow::{becomes, is_region_branch, next};
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Type, Value};
use mlir_host::{is_one_of, match_op};
use ttopt_dialect::amdg::ops::{AsyncTdmCopyGlobalToLocalOp, AsyncTdmCopyLocalToGlobalOp};
use ttopt_dialect::tt::enums::MemSemantic;
use ttopt_dialect::tt::ops::{
    AtomicCasOp, AtomicLoadOp, AtomicPollOp, AtomicRmwOp, AtomicStoreOp, CallOp, FuncOp, LoadOp, StoreOp,
};
use ttopt_dialect::ttg::layout::to_linear_layout;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, WarpIdOp};
use ttopt_dialect::ttng::ops::{AsyncTmaGatherOp, AsyncTmaReduceOp, AsyncTmaScatterOp};

/// An access to global memory.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
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
    /// Whether a barrier may stand before it: all threads come to it equally often.
    pub asks: bool,
    /// Whether it is one of atomic operations.
    atomic: bool,
    /// The type of its pointers, where it is one.
    pointers: Option<Type<'c>>,
    /// Whether each element has one thread.
    owned: bool,
    /// Whether it is of a scalar, by the one thread that stores scalars.
    by_one_thread: bool,
    /// Whether some of it is by threads, and some of it in bulk.
    proxies: Proxies,
}

/// Who accesses memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Proxies {
    /// Threads, by loads, stores and atomic operations.
    pub threads: bool,
    /// Bulk copies that a thread issues.
    pub bulk: bool,
}

impl Proxies {
    const THREADS: Self = Self { threads: true, bulk: false };
    const BULK: Self = Self { threads: false, bulk: true };
}

impl<'c> GlobalAccess<'c> {
    /// What `op` accesses.
    pub fn of(op: Op<'c>, roots: &mut PointerRoots<'c>) -> Option<Self> {
        if fills_by_tma(op) || is_store_by_tma(op) {
            return Some(Self::in_bulk(op));
        }
        let (reads, writes, sem) = match_op!(op, {
            LoadOp => (true, false, MemSemantic::Relaxed),
            AsyncCopyGlobalToLocalOp => (true, false, MemSemantic::Relaxed),
            // Nothing of these is left when it has been waited for.
            AsyncTdmCopyGlobalToLocalOp => (true, false, MemSemantic::Relaxed),
            AsyncTdmCopyLocalToGlobalOp => (false, true, MemSemantic::Relaxed),
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
        let atomic = !is_one_of!(
            op,
            LoadOp
                | AsyncCopyGlobalToLocalOp
                | StoreOp
                | AsyncTdmCopyGlobalToLocalOp
                | AsyncTdmCopyLocalToGlobalOp
        );
        Some(Self {
            reads,
            writes,
            asks: true,
            atomic,
            waits_before: matches!(sem, MemSemantic::Release | MemSemantic::AcquireRelease),
            waits_after: matches!(sem, MemSemantic::Acquire | MemSemantic::AcquireRelease),
            roots: roots.of(pointer),
            pointers: Some(pointers),
            owned: is_owned(pointers),
            by_one_thread: is_by_one_thread(op),
            proxies: Proxies::THREADS,
        })
    }

    /// Through a tensor map.
    fn in_bulk(op: Op<'c>) -> Self {
        let map = op.operand(0);
        Self {
            reads: fills_by_tma(op),
            writes: is_store_by_tma(op),
            asks: true,
            atomic: AsyncTmaReduceOp::cast(op).is_some(),
            waits_before: false,
            waits_after: false,
            roots: descriptor_roots(map),
            pointers: Some(map.ty()),
            // Rows are copied by all warps.
            owned: !is_one_of!(op, AsyncTmaGatherOp | AsyncTmaScatterOp),
            by_one_thread: false,
            proxies: Proxies::BULK,
        }
    }

    /// By any thread, anywhere: what a callee does.
    pub fn anywhere(reads: bool, writes: bool, proxies: Proxies) -> Self {
        Self {
            reads,
            writes,
            asks: true,
            atomic: false,
            waits_before: false,
            waits_after: false,
            roots: None,
            pointers: None,
            owned: false,
            by_one_thread: false,
            proxies,
        }
    }

    /// The arguments that its pointers are computed from, if that is known.
    pub fn roots(&self) -> Option<&Arguments<'c>> {
        self.roots.as_ref()
    }

    /// Who accesses.
    pub fn proxies(&self) -> Proxies {
        self.proxies
    }

    /// Whether `later` must wait for `self`, a store in bulk that nobody has waited for.
    pub fn may_be_under_way_at(&self, later: &Self) -> bool {
        !(self.atomic && later.atomic) && self.may_meet(later, self.owned && !later.reads)
    }

    /// Whether `later`, which loads where `self` stores, may load what another thread stored.
    pub fn may_be_read_by(&self, later: &Self) -> bool {
        self.may_meet(later, self.owned)
    }

    /// Whether `later`, which stores where `self` loads, may store what another thread is still to load.
    pub fn may_be_overwritten_by(&self, later: &Self) -> bool {
        !(self.atomic && later.atomic) && self.may_meet(later, self.owned)
    }

    /// Whether `later`, which stores where `self` stores, may store what another thread stores.
    pub fn may_be_stored_by(&self, later: &Self) -> bool {
        !(self.atomic && later.atomic) && self.may_meet(later, self.owned || !self.proxies.bulk)
    }

    /// Whether both may be to the same data, by other threads, where pointers of one type are `owned` by the same ones.
    fn may_meet(&self, later: &Self, owned: bool) -> bool {
        let same_threads = owned && self.pointers.is_some() && self.pointers == later.pointers;
        let one_thread = self.by_one_thread && later.by_one_thread;
        !same_threads && !one_thread && may_meet(self.roots.as_deref(), later.roots.as_deref())
    }
}

/// Functions to which the threads of a program may not come equally often, and arguments of which they may have different values.
#[derive(Default)]
pub struct Divergence<'c> {
    called: FastSet<&'c str>,
    arguments: FastMap<&'c str, Vec<usize>>,
}

impl<'c> Divergence<'c> {
    /// Whether something was noted of calls of `function`.
    pub fn concerns(&self, function: Op<'c>) -> bool {
        let name = FuncOp::of(function).sym_name();
        self.called.contains(name) || self.arguments.get(name).is_some_and(|arguments| !arguments.is_empty())
    }

    /// Where in `function`, whose operations are `ops`, values computed from `differ`, or from what callers pass of such values, decide
    /// control flow. Notes how that comes to the functions that it calls.
    fn spread(&mut self, function: Op<'c>, ops: &[Op<'c>], mut differ: Vec<Value<'c>>) -> Decided<'c> {
        let name = FuncOp::of(function).sym_name();
        let passed = self.arguments.get(name).into_iter().flatten();
        let entry = function.region(0).first_block();
        differ.extend(passed.filter_map(|i| entry?.args().nth(*i)));
        let (inside, differs) = decided_by(differ);
        let decided = Decided { everywhere: self.called.contains(name), inside };
        for op in ops.iter().filter(|op| CallOp::cast(**op).is_some()) {
            self.call(*op, decided.includes(*op), &differs);
        }
        decided
    }

    /// Notes what a call passes on: whether its control flow is such, and which of its operands are.
    fn call(&mut self, call: Op<'c>, diverges: bool, differs: &FastSet<Value<'c>>) {
        let Some(name) = callee(call) else { return };
        if diverges {
            self.called.insert(name);
        }
        let operands = call.operands().enumerate().filter(|(_, value)| differs.contains(value));
        self.arguments.entry(name).or_default().extend(operands.map(|(i, _)| i));
    }
}

/// Operations of a function to which threads may not come equally often.
pub struct Decided<'c> {
    /// All of them, since callers come to the function so.
    everywhere: bool,
    /// Those inside of these.
    inside: FastSet<Op<'c>>,
}

impl<'c> Decided<'c> {
    /// Whether there are none.
    pub fn is_nowhere(&self) -> bool {
        !self.everywhere && self.inside.is_empty()
    }

    /// Whether `op` is one of them.
    pub fn includes(&self, op: Op<'c>) -> bool {
        let is_inside = || op.ancestor(|outer| self.inside.contains(&outer)).is_some();
        self.everywhere || !self.inside.is_empty() && is_inside()
    }
}

/// Has no barrier before `accesses`, those of `ops`, to which threads of a program may not come equally often; `ops` are those of
/// `function`, whose callers were asked before.
pub fn allow_divergence<'c>(
    function: Op<'c>,
    ops: &[Op<'c>],
    accesses: &mut [Option<GlobalAccess<'c>>],
    divergence: &mut Divergence<'c>,
) {
    let stores = || accesses.iter().flatten().filter(|access| access.writes);
    let anything = stores().any(|store| store.roots.is_none());
    let stored: FastSet<Value<'_>> =
        stores().flat_map(|store| store.roots.iter().flatten().copied()).collect();
    let may_change = |(op, access): (&Op<'_>, &Option<GlobalAccess<'_>>)| match access {
        _ if op.attr(ONCE).is_some() => false,
        // What a callee returns it may have loaded.
        Some(load) if load.reads && (!load.writes || CallOp::cast(*op).is_some()) => {
            let stored_here =
                load.roots.as_ref().is_none_or(|roots| roots.iter().any(|root| stored.contains(root)));
            LoadOp::cast(*op).is_some_and(|load| load.is_volatile())
                || anything
                || !stored.is_empty() && stored_here
        }
        _ => is_own(*op),
    };
    let sources = ops.iter().zip(accesses.iter()).filter(|pair| may_change(*pair));
    let differ = sources.flat_map(|(op, _)| op.results()).collect();
    let decided = divergence.spread(function, ops, differ);
    for (op, access) in ops.iter().zip(accesses) {
        if let Some(access) = access.as_mut().filter(|access| access.asks && decided.includes(*op)) {
            access.asks = false;
        }
    }
}

/// The operations among those of `function` whose control flow the number of a warp decides; `divergence` says how callers come to
/// `function`, and gets to know how it comes to those that it calls.
pub fn decided_by_warp<'c>(function: Op<'c>, ops: &[Op<'c>], divergence: &mut Divergence<'c>) -> Decided<'c> {
    let numbers = ops.iter().filter(|op| WarpIdOp::cast(**op).is_some());
    divergence.spread(function, ops, numbers.flat_map(|op| op.results()).collect())
}

/// The operations whose control flow values computed from `open` decide: branches, loops, and whatever has blocks that jump.
/// With these values.
fn decided_by(mut open: Vec<Value<'_>>) -> (FastSet<Op<'_>>, FastSet<Value<'_>>) {
    let (mut seen, mut decided) = (FastSet::default(), FastSet::default());
    while let Some(value) = open.pop() {
        if !seen.insert(value) {
            continue;
        }
        for (user, operand) in value.uses() {
            let carried = becomes(user, operand);
            if !carried.is_empty() {
                open.extend(carried);
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
    (decided, seen)
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
