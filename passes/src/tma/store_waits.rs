//! `--triton-nvidia-delay-store-waits`: stores through tensor maps stay under way while the next tile is computed.
//!
//! A store from shared memory is waited for at once, since its buffer may be used for something else afterwards. Where the last
//! one ends the body of a loop over tiles, the next iteration can wait instead, right before it writes to a buffer of its own
//! stores; all that comes before runs beside the store. The buffer stays occupied that long
//! (`shared_memory/liveness.rs`), so a wait moves only where shared memory suffices for as many CTAs as before.
//!
//! Stores that are under way together come in any order, so those of one iteration go without waits between only where they are known
//! to be to different data: other arguments, or through one descriptor at coordinates that are a block apart.
//!
//! Nothing in the loop may see whether a store is done: it has no atomic operations, calls or barriers of its own, and
//! what it loads are other arguments of the kernel than what it stores.

use crate::analysis::pointer_roots::{Arguments, descriptor_roots, may_meet, pointer_roots};
use crate::analysis::registers::RESERVED;
use crate::ir_util::{allocation, constant, programs_of_tiles};
use crate::machine::{self, internal};
use crate::shared_memory::allocate::place_buffers;
use crate::shared_memory::callees_first;
use crate::shared_memory::effects::{fills_by_tma, is_store_by_tma, waits_for_all_stores};
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::create;
use mlir_host::traits::Upstream;
use mlir_host::upstream::{ForOp, Integer};
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{LoadOp, StoreOp};
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::ops::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp, LocalAllocOp, LocalDeallocOp, LocalLoadOp,
    LocalStoreOp,
};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{
    AsyncTmaCopyLocalToGlobalOp, BarrierExpectOp, FenceAsyncSharedOp, InitBarrierOp, InvalBarrierOp,
    TmaStoreWaitOp, WaitBarrierOp, WarpGroupDotOp, WarpGroupDotWaitOp,
};

/// The pass.
pub static DELAY_STORE_WAITS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg", "ttng"],
    ..PassDef::new(
        "triton-nvidia-delay-store-waits",
        "Leave stores through tensor maps under way until the next iteration writes to their buffers",
        run,
    )
};

type Roots<'c> = Arguments<'c>;

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut loops = Vec::new();
    module.walk(&mut |op| {
        if ForOp::cast(op).is_some() {
            loops.extend(op.region(0).first_block().and_then(|body| Delay::of(op, body)));
        }
        Walk::Advance
    });
    if loops.is_empty() {
        return Ok(());
    }
    let Some(target) = machine::Machine::of(module)?.target else { return Ok(()) };
    // Recursion is reported where memory is allocated.
    let Ok(functions) = callees_first(module) else { return Ok(()) };
    let mut callees = FastMap::default();
    for function in functions {
        let bytes = || place_buffers(function, &callees, &target).map(|placed| placed.needs.bytes);
        for delay in loops.iter().filter(|delay| delay.around.ancestor(|op| op == function).is_some()) {
            let fit = || Ok::<_, Reported>(ctas(bytes()?, delay.around, &target));
            let before = fit()?;
            let behind = delay.apply()?;
            if fit()? < before {
                delay.undo(behind);
                continue;
            }
            // Stores of the same iteration need not wait for each other, either.
            for wait in &delay.between {
                let after = wait.next();
                wait.move_before(delay.wait);
                match after {
                    Some(after) if fit()? < before => wait.move_before(after),
                    _ => wait.erase(),
                }
            }
        }
        let needs = place_buffers(function, &callees, &target)?.needs;
        if let Some(name) = function.attr("sym_name").and_then(Attr::as_str) {
            callees.insert(name.to_owned(), needs);
        }
    }
    Ok(())
}

/// How many CTAs of `bytes` bytes of shared memory a multiprocessor holds; no more than it has programs for, where `around` goes
/// over the tiles of programs that are launched once.
fn ctas(bytes: u64, around: Op<'_>, target: &TargetDesc) -> u64 {
    let fit =
        if bytes > target.shared_bytes { 0 } else { (target.shared_bytes + RESERVED) / (bytes + RESERVED) };
    programs_of_tiles(around, target).map_or(fit, |programs| fit.min(programs))
}

/// A wait that can move.
struct Delay<'c> {
    around: Op<'c>,
    /// The last store of an iteration.
    store: Op<'c>,
    wait: Op<'c>,
    /// Waits for earlier stores of the iteration, where the others need not wait for these.
    between: SmallVec<[Op<'c>; 2]>,
    /// What first touches a buffer that is stored.
    first: Op<'c>,
}

impl<'c> Delay<'c> {
    /// The wait at the end of an iteration of `around`, a loop of `body`, if the next iteration can do it.
    fn of(around: Op<'c>, body: Block<'c>) -> Option<Self> {
        let store = body.ops().filter(|op| is_store_by_tma(*op)).last()?;
        let wait =
            std::iter::successors(store.next(), |op| op.next()).find(|op| waits_for_all_stores(*op))?;
        let stored: Vec<Op<'c>> = body.ops().filter(|op| is_store_by_tma(*op)).collect();
        let allocs: Vec<Op<'c>> =
            stored.iter().map(|store| buffer_of(*store, body)).collect::<Option<_>>()?;
        let first = body.ops().find(|op| allocs.contains(op))?;
        let roots: Vec<Roots<'c>> =
            stored.iter().map(|store| descriptor_roots(store.operand(0))).collect::<Option<_>>()?;
        let written: Roots<'c> = roots.iter().flatten().copied().collect();
        let apart = |i: usize, j: usize| {
            !may_meet(Some(&roots[i]), Some(&roots[j])) || are_apart(stored[i], stored[j])
        };
        let in_any_order = (0..stored.len()).all(|j| (0..j).all(|i| apart(i, j)));
        let mut blind = true;
        around.walk(&mut |op| {
            // Stores of inner loops and branches have their own waits, which would wait for this one, too.
            let nested =
                op.block() != Some(body) && (is_store_by_tma(op) || TmaStoreWaitOp::cast(op).is_some());
            blind &= op == around || !nested && is_blind(op, &written);
            if blind { Walk::Advance } else { Walk::Stop }
        });
        let waits = body.ops().filter(|op| waits_for_all_stores(*op) && op.is_before_in_block(store));
        let between = if in_any_order { waits.collect() } else { SmallVec::new() };
        blind.then_some(Self { around, store, wait, between, first })
    }

    /// Moves the wait; gives the one behind the loop.
    fn apply(&self) -> Result<Op<'c>, Reported> {
        self.wait.move_before(self.first);
        let pendings = self.wait.attr("pendings").ok_or_else(|| internal(self.wait, "a wait for nothing"))?;
        let behind = create(self.wait.name(), self.wait.loc(), &[], &[], &[("pendings", pendings)], &[])?;
        behind.move_after(self.around);
        Ok(behind)
    }

    fn undo(&self, behind: Op<'c>) {
        behind.erase();
        self.wait.move_after(self.store);
    }
}

/// Whether two stores are known to be to different elements: through one descriptor, a block or more apart in some dimension.
fn are_apart(a: Op<'_>, b: Op<'_>) -> bool {
    let (Some(a), Some(b)) = (AsyncTmaCopyLocalToGlobalOp::cast(a), AsyncTmaCopyLocalToGlobalOp::cast(b))
    else {
        return false;
    };
    let Some(desc) = TensorDescType::cast(a.desc().ty()).filter(|_| a.desc() == b.desc()) else {
        return false;
    };
    a.coord().zip(b.coord()).zip(desc.shape()).any(|((a, b), size)| {
        let ((a, before), (b, after)) = (counted(a), counted(b));
        a == b && before.abs_diff(after) >= size.unsigned_abs()
    })
}

/// A number as another one, or none, plus a constant. As everywhere, coordinates are taken not to overflow.
fn counted(number: Value<'_>) -> (Option<Value<'_>>, i64) {
    let (mut base, mut offset) = (number, 0i64);
    loop {
        if let Some(number) = constant(base) {
            return (None, offset.saturating_add(number));
        }
        let (from, by) = match base.def_op().and_then(Integer::of) {
            Some(Integer::Add(a, b)) => match (constant(a), constant(b)) {
                (_, Some(by)) => (a, by),
                (Some(by), _) => (b, by),
                _ => return (Some(base), offset),
            },
            Some(Integer::Sub(a, b)) if constant(b).is_some() => {
                (a, constant(b).map_or(0, i64::saturating_neg))
            }
            _ => return (Some(base), offset),
        };
        (base, offset) = (from, offset.saturating_add(by));
    }
}

/// The operation of `body` that allocates what `store` stores.
fn buffer_of<'c>(store: Op<'c>, body: Block<'c>) -> Option<Op<'c>> {
    let buffer = store.operands().find(|value| MemDescType::cast(value.ty()).is_some())?;
    let op = allocation(buffer)?;
    (LocalAllocOp::cast(op).is_some() && op.block() == Some(body)).then_some(op)
}

/// Whether `op` could not tell whether something is in global memory at `written` yet. What it has nested is asked by itself.
fn is_blind<'c>(op: Op<'c>, written: &[Value<'c>]) -> bool {
    let reads = if LoadOp::cast(op).is_some() || AsyncCopyGlobalToLocalOp::cast(op).is_some() {
        pointer_roots(op.operand(0))
    } else if fills_by_tma(op) {
        op.operands().find(|value| MemDescType::cast(value.ty()).is_none()).and_then(descriptor_roots)
    } else {
        let harmless = op.is_memory_effect_free()
            || op.has_trait(Upstream::RecursiveMemoryEffects)
            || is_store_by_tma(op)
            || StoreOp::cast(op).is_some()
            || is_one_of!(op, LocalAllocOp | LocalDeallocOp | LocalLoadOp | LocalStoreOp)
            || is_one_of!(op, AsyncCommitGroupOp | AsyncWaitOp | TmaStoreWaitOp | FenceAsyncSharedOp)
            || is_one_of!(op, InitBarrierOp | InvalBarrierOp | BarrierExpectOp | WaitBarrierOp)
            || is_one_of!(op, WarpGroupDotOp | WarpGroupDotWaitOp);
        return harmless;
    };
    !may_meet(reads.as_deref(), Some(written))
}
