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
//! falls that [`objective`](crate::objective) counts. A function is rewritten only if that
//! lowers its cost; if the cost rises, the pass retries once with the layouts of
//! loop-carried values fixed. A function that does not become cheaper stays as
//! it is, to the byte: so a second run of the pass does nothing.

mod assign;
mod carry;
mod dead;
mod materialize;
mod plan;
mod rematerialize;
mod sink;
mod stores;

pub(crate) use plan::{Alternative, Planner, Request, unconverted};

use crate::ir_util::operations_in_dominance_order;
use crate::machine::{Layouts, Machine, error};
use crate::objective::{Objective, Total};
use crate::rules::is_conversion;
use assign::Carried;
use mlir_host::asm::Reported;
use mlir_host::ir::{Block, Op, Region};
use mlir_host::pass::{Options, PassDef, PassResult};
use std::cmp::Ordering;
use std::rc::Rc;

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

/// Decides again about all layouts of a module that has some.
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

/// Decides again once about a module that has `ops`; the operations that it then has, if that made a function cheaper.
fn round<'c>(module: Op<'c>, ops: &[Op<'c>], layouts: &Layouts<'c>) -> Result<Option<Vec<Op<'c>>>, Reported> {
    let done = attempt(module, ops, Carried::Decided, layouts)?;
    if !done.costlier || done.cheaper.is_some() {
        return Ok(done.cheaper);
    }
    // The layouts of what control flow carries follow from uses, not from costs: those it has may be better.
    let ops = operations_in_dominance_order(module);
    attempt(module, &ops, Carried::Kept, layouts).map(|done| done.cheaper)
}

/// What came of deciding again.
struct Attempt<'c> {
    /// The operations that there are then, if a function became cheaper.
    cheaper: Option<Vec<Op<'c>>>,
    /// Whether a function would have become costlier.
    costlier: bool,
}

/// A module as it was, and what its functions cost.
struct Before<'c> {
    module: Op<'c>,
    totals: Vec<Total>,
}

/// The operations at the top of a module: its functions.
fn functions<'c>(module: Op<'c>) -> impl Iterator<Item = Op<'c>> {
    module.regions().flat_map(Region::blocks).flat_map(Block::ops)
}

fn totals<'c>(module: Op<'c>, objective: &Objective<'c>, layouts: &Layouts<'c>) -> Vec<Total> {
    functions(module).map(|function| objective.of_function(function, layouts)).collect()
}

/// Decides again. Functions that cost less than before change, others stay.
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
        let now = totals(module, &Objective::new(module), layouts);
        let (mut cheaper, mut same, mut costlier) = (false, false, false);
        let both = functions(module).zip(functions(before.module));
        for ((function, old), (now, was)) in both.zip(now.iter().zip(&before.totals)) {
            match now.compare(was) {
                Ordering::Less => cheaper = true,
                order => {
                    (same, costlier) = (true, costlier | order.is_gt());
                    function.regions().zip(old.regions()).for_each(|(now, old)| now.take_body(old));
                }
            }
        }
        let next = if same { None } else { next };
        let cheaper = cheaper.then(|| next.unwrap_or_else(|| operations_in_dominance_order(module)));
        Attempt { cheaper, costlier }
    });
    before.module.erase();
    done
}

/// Decides again, with the module as it was in `before` where anything changes.
fn decide<'c>(
    module: Op<'c>,
    ops: &[Op<'c>],
    carried: Carried,
    layouts: &Layouts<'c>,
    before: &mut Option<Before<'c>>,
) -> PassResult {
    let objective = Rc::new(Objective::new(module));
    let as_it_was =
        || Before { module: module.clone_detached(), totals: totals(module, &objective, layouts) };
    let mut assignment =
        assign::Assignment::new(ops, carried, layouts).map_err(|(op, reason)| error(op, reason))?;
    if assignment.changes(ops) {
        before.get_or_insert_with(as_it_was);
        assignment.apply(ops)?;
    }
    let mut planner = Planner::with(objective.clone(), layouts);
    stores::place(ops, &mut assignment, &mut planner);
    let rematerialized = rematerialize::rematerialize(ops, &assignment, &mut planner);
    if before.is_none()
        && rematerialized.is_empty()
        && materialize::is_settled(ops, &assignment, &mut planner)
    {
        return Ok(());
    }
    before.get_or_insert_with(as_it_was);
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
