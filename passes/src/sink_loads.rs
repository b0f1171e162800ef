//! Loads from global memory where the registers that they wait in are short.
//!
//! Kernels without loops load all of their tiles first. Those that are wanted last wait in registers for everything that is
//! computed before, and where there are not enough of these, ptxas spills them, and reads them again. Here loads move
//! down across the operations at which a function has too few registers, those that wait longest first: to the last dot before
//! their first use, which hides their latency, or to the use itself, if that leaves fewer registers to spill. A load
//! that neither helps stays.

use crate::analysis::pointer_roots::{may_meet, pointer_roots};
use crate::analysis::registers::{
    UNSEEN_REGISTERS, short_of_registers, spilled_registers, spilled_with, tensor_words,
};
use crate::ir_util::{in_block, is_dot};
use linear_layout::target::TargetDesc;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::traits::Upstream;
use std::cmp::Reverse;
use ttopt_dialect::tt::ops::{LoadOp, StoreOp};
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp};

/// Registers that tensors alone have too few of, from which on it is sure that ptxas spills.
const SURELY_SPILLED: u64 = 32;
/// Registers below which a load is not worth moving.
const FEW_WORDS: u64 = 8;
/// A load before a dot may leave so many times the registers to spill that a load before its use does.
const FOR_LATENCY: f64 = 1.1;

/// Moves loads of `function`, whose CTAs have `warps` warps, down where that leaves fewer registers to spill.
pub fn sink_loads(function: Op<'_>, warps: u64, target: &TargetDesc) {
    let short: FastSet<Op<'_>> = short_of_registers(function, target).into_iter().collect();
    if short.is_empty() {
        return;
    }
    // Where it is not sure that registers are spilled, loads that are under way early are worth more.
    let sure = spilled_registers(function, warps, target).iter().map(|(_, words)| *words).sum::<u64>();
    if sure < SURELY_SPILLED {
        return;
    }
    let mut moves = Vec::new();
    function.walk(&mut |op| {
        moves.extend(Move::of(op, &short));
        Walk::Advance
    });
    if moves.is_empty() {
        return;
    }
    // Those that wait longest first: the others may find registers enough then.
    let mut places = FastMap::default();
    function.walk(&mut |op| {
        places.insert(op, places.len());
        Walk::Advance
    });
    moves.sort_by_key(|one| Reverse(places.get(&one.user).copied()));
    let spills = || {
        spilled_with(UNSEEN_REGISTERS, function, warps, target).iter().map(|(_, words)| *words).sum::<u64>()
            as f64
    };
    let mut before = spills();
    for one in moves {
        if before == 0.0 {
            return;
        }
        let next = one.load.next();
        let at = |place: Op<'_>| {
            one.load.move_before(place);
            spills()
        };
        let at_use = at(one.user);
        let at_dot = one.dot.map_or(f64::MAX, at);
        if at_dot < before && at_dot <= at_use * FOR_LATENCY {
            before = at_dot;
        } else if at_use < before {
            before = at(one.user);
        } else if let Some(next) = next {
            one.load.move_before(next);
        }
    }
}

/// A load that can move.
struct Move<'c> {
    load: Op<'c>,
    /// The last dot before the first use, if there is one on the way.
    dot: Option<Op<'c>>,
    /// The first use, or what has it in its regions.
    user: Op<'c>,
}

impl<'c> Move<'c> {
    /// How `op` can move down across one of the operations of `short`.
    fn of(op: Op<'c>, short: &FastSet<Op<'c>>) -> Option<Self> {
        let load = LoadOp::cast(op).filter(|load| !load.is_volatile())?;
        if tensor_words(load.result()) < FEW_WORDS {
            return None;
        }
        let block = op.block()?;
        let users: Option<Vec<Op<'c>>> =
            load.result().uses().map(|(user, _)| in_block(user, block)).collect();
        let user = users?.into_iter().reduce(|a, b| if b.is_before_in_block(a) { b } else { a })?;
        // What the next iteration uses was loaded early on purpose.
        if Some(user) == block.terminator() {
            return None;
        }
        let between: Vec<Op<'c>> =
            std::iter::successors(op.next(), |at| at.next()).take_while(|at| *at != user).collect();
        let roots = pointer_roots(load.ptr());
        let crosses = between.iter().any(|at| has(*at, &|inner| short.contains(&inner)));
        if !crosses || !between.iter().all(|at| !has(*at, &|inner| may_write(inner, roots.as_deref()))) {
            return None;
        }
        let dot = between.iter().rev().copied().find(|at| is_dot(*at));
        Some(Self { load: op, dot, user })
    }
}

/// Whether `op`, or an operation in its regions, is one that `is` holds for.
fn has<'c>(op: Op<'c>, is: &dyn Fn(Op<'c>) -> bool) -> bool {
    op.walk(&mut |inner| if is(inner) { Walk::Stop } else { Walk::Advance }) == Walk::Stop
}

/// Whether `op` may write what is loaded through pointers of the arguments `roots`, or makes it visible.
fn may_write<'c>(op: Op<'c>, roots: Option<&[Value<'c>]>) -> bool {
    if StoreOp::cast(op).is_some() {
        return may_meet(roots, pointer_roots(op.operand(0)).as_deref());
    }
    let harmless = op.is_memory_effect_free()
        || op.has_trait(Upstream::RecursiveMemoryEffects)
        || is_dot(op)
        || is_one_of!(op, LoadOp | LocalAllocOp | LocalLoadOp);
    !harmless
}
