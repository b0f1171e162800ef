//! `--tritongpu-remove-layout-conversions`: every value in the layout that its
//! uses want, conversions only where that costs less than anything else.
//!
//! Accesses to memory, dots and whatever else has a layout for a reason are
//! *anchors* (DESIGN.md §6). From them the pass
//!
//! 1. spreads layouts forward, along uses: a value computed from anchored
//!    values has their layout. What is computed from constants, ranges and
//!    scalars alone stays open (`assign`);
//! 2. gives open values the layout that their uses ask for, those in deep
//!    loops first;
//! 3. has stores write what they store in the layout that it has where that
//!    costs less than converting it (`stores`);
//! 4. rematerializes a computation whose values are all wanted in one other
//!    layout in that layout, back to where converting costs least (`rematerialize`);
//! 5. serves each use that still disagrees in the layout that it wants: by
//!    converting the value, by rematerializing it, or by converting something
//!    smaller that it is computed from, whichever costs least (`materialize`);
//! 6. removes what has no uses left, and iter_args whose only use is their own
//!    next value (`dead`).
//!
//! Loop-carried values and results of branches share one layout with what they
//! are passed to. Conversions in the input are nothing but hints: the pass
//! removes them all and chooses layouts again, and repeats this while the cost
//! of moving data between threads falls. A function is rewritten only if that
//! lowers its cost; if the cost rises, the pass retries once with the layouts of
//! loop-carried values fixed. A function that does not become cheaper stays as
//! it is, to the byte: so a second run of the pass does nothing.

mod assign;
mod carry;
mod cost;
mod dead;
mod materialize;
mod plan;
mod rematerialize;
mod sink;
mod stores;

pub(crate) use cost::Conversion;
pub(crate) use plan::{Alternative, Planner, Request, unconverted};

use crate::ir_util::operations_in_dominance_order;
use crate::machine::{Layouts, Machine, error};
use crate::rules::is_conversion;
use assign::Carried;
use mlir_host::asm::Reported;
use mlir_host::ir::{Block, Op, Region, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use std::cmp::Ordering;

/// The pass.
pub static TRITONGPU_REMOVE_LAYOUT_CONVERSIONS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-remove-layout-conversions",
        "Let values take the layouts that their uses want, and convert only where that is the cheapest way",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    improve(module, &Layouts::new(module.context(), Machine::of(module)?))
}

/// Decides anew about all layouts of a module that has some.
///
/// # Errors
/// Where there is no layout for an operation; it is reported.
pub(crate) fn improve<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    let mut ops = remove_unused(module)?;
    // Without conversions every use has the layout that it wants. Those that were removed free values for other
    // layouts.
    while ops.iter().any(|op| is_conversion(*op)) {
        match round(module, &ops, layouts)? {
            Some(next) => ops = next,
            None => break,
        }
    }
    Ok(())
}

/// Decides anew once about a module that has `ops`; the operations that it then has, if that made a function cheaper.
fn round<'c>(module: Op<'c>, ops: &[Op<'c>], layouts: &Layouts<'c>) -> Result<Option<Vec<Op<'c>>>, Reported> {
    let done = attempt(module, ops, Carried::Decided, layouts)?;
    if !done.costlier || done.cheaper.is_some() {
        return Ok(done.cheaper);
    }
    // The layouts of what control flow carries follow from uses, not from costs: those it has may be better.
    let ops = operations_in_dominance_order(module);
    attempt(module, &ops, Carried::Kept, layouts).map(|done| done.cheaper)
}

/// What came of deciding anew.
struct Attempt<'c> {
    /// The operations that there are then, if a function became cheaper.
    cheaper: Option<Vec<Op<'c>>>,
    /// Whether a function would have become costlier.
    costlier: bool,
}

/// Decides anew. Functions for which that costs less than what was there change, others stay.
fn attempt<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    carried: Carried,
    layouts: &Layouts<'c>,
) -> Result<Attempt<'c>, Reported> {
    let mut before = None;
    let done = decide(module, ops, carried, layouts, &mut before).and_then(|()| match before {
        Some(_) => remove_unused(module).map(Some),
        None => Ok(None),
    });
    let Some(before) = before else { return done.map(|_| Attempt { cheaper: None, costlier: false }) };
    let done = done.map(|next| {
        let functions = |module: Op<'c>| module.regions().flat_map(Region::blocks).flat_map(Block::ops);
        let (mut cheaper, mut same, mut costlier) = (false, false, false);
        for (function, before) in functions(module).zip(functions(before)) {
            match compare(function, before, layouts) {
                Ordering::Less => cheaper = true,
                order => {
                    (same, costlier) = (true, costlier | order.is_gt());
                    function.regions().zip(before.regions()).for_each(|(now, before)| now.take_body(before));
                }
            }
        }
        let next = if same { None } else { next };
        let cheaper = cheaper.then(|| next.unwrap_or_else(|| operations_in_dominance_order(module)));
        Attempt { cheaper, costlier }
    });
    before.erase();
    done
}

/// How the cycles that moving data between threads takes in a function compare with those in `other`: moving it as no
/// plan does is worse than any number. Of the cycles of `other` no more is added up than it takes to know.
fn compare<'c>(function: Op<'c>, other: Op<'c>, layouts: &Layouts<'c>) -> Ordering {
    // Below this the difference is an error of rounding.
    const LEAST: f64 = 1.0 + 1e-9;
    let (mut own, mut unplanned) = (0.0, 0usize);
    function.walk(&mut |op| {
        match cost::moving(op, layouts) {
            Some(cycles) => own += cycles,
            None => unplanned += 1,
        }
        Walk::Advance
    });
    let (mut sum, mut others) = (0.0, 0usize);
    other.walk(&mut |op| {
        match cost::moving(op, layouts) {
            Some(cycles) => sum += cycles,
            None => others += 1,
        }
        let known = others > unplanned || unplanned == 0 && sum > own * LEAST;
        if known { Walk::Stop } else { Walk::Advance }
    });
    let cycles = if sum > own * LEAST {
        Ordering::Less
    } else if own > sum * LEAST {
        Ordering::Greater
    } else {
        Ordering::Equal
    };
    unplanned.cmp(&others).then(cycles)
}

/// Decides anew, with a copy of the module in `before` where anything changes.
fn decide<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    carried: Carried,
    layouts: &Layouts<'c>,
    before: &mut Option<Op<'c>>,
) -> PassResult {
    let mut assignment =
        assign::Assignment::new(ops, carried, layouts).map_err(|(op, reason)| error(op, reason))?;
    if assignment.changes(ops) {
        before.get_or_insert_with(|| module.clone_detached());
        assignment.apply(ops)?;
    }
    let mut planner = Planner::new(module, layouts);
    stores::place(ops, &mut assignment, &mut planner);
    let rematerialized = rematerialize::rematerialize(ops, &assignment, &mut planner);
    if before.is_none()
        && rematerialized.is_empty()
        && materialize::is_settled(ops, &assignment, &mut planner)
    {
        return Ok(());
    }
    before.get_or_insert_with(|| module.clone_detached());
    for (value, layout) in rematerialized {
        assignment.reassign(value, layout);
    }
    planner.forget();
    let mut pass = materialize::Materialize::new(module, planner);
    for &op in ops {
        pass.operands(op, &mut assignment)?;
    }
    pass.finish();
    Ok(())
}

/// Erases operations that only make values nobody uses, and control flow's values that nobody uses; those that stay,
/// in dominance order.
fn remove_unused(module: Op<'_>) -> Result<Vec<Op<'_>>, Reported> {
    let mut ops = operations_in_dominance_order(module);
    // From the last, for what an unused operation uses may be unused then.
    ops.reverse();
    ops.retain(|op| {
        let unused = op.num_results() > 0 && op.results().all(|result| result.is_unused());
        let goes = unused && op.num_regions() == 0 && dead::is_removable(*op);
        if goes {
            op.erase();
        }
        !goes
    });
    ops.reverse();
    if dead::remove_dead_carried(module, &ops)? { Ok(operations_in_dominance_order(module)) } else { Ok(ops) }
}
