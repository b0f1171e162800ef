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
//! 4. gives a computation whose values are all wanted in one other layout that
//!    layout, back to where converting costs least (`lift`);
//! 5. gives each use that still disagrees a copy in its own layout: by
//!    computing it again from what is at hand or by converting it, or by
//!    converting something smaller that it is computed from, whichever costs
//!    least (`materialize`);
//! 6. removes what has no uses left.
//!
//! Values carried around loops and out of branches share one layout with what
//! they are passed to. Conversions in the input are nothing but hints: the
//! pass removes them all and decides anew.

mod assign;
mod carry;
mod cost;
mod lift;
mod materialize;
mod plan;
mod sink;
mod stores;

pub(crate) use plan::{Alternative, Planner, Request, unconverted};

use crate::ir_util::{self, operations_in_dominance_order};
use crate::machine::{Layouts, Machine, error};
use crate::rules::{Rule, rule};
use mlir_host::ir::{Block, Op, Region};
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::tt::ops::LoadOp;

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
    remove_unused(module);
    let mut left = cost_of_conversions(module, layouts);
    for _ in 0..ROUNDS {
        // Without conversions every use has the layout that it wants.
        if left == 0.0 {
            break;
        }
        let before = module.clone_detached();
        let done = round(module, layouts);
        let now = cost_of_conversions(module, layouts);
        if done.is_ok() && now >= left {
            module.regions().zip(before.regions()).for_each(|(region, before)| region.take_body(before));
        }
        before.erase();
        done?;
        if now >= left {
            break;
        }
        left = now;
    }
    Ok(())
}

/// Conversions that were removed free values for other layouts, so the pass
/// repeats while that lowers the cost, but not more often than this. A round
/// that does not is undone: so a second run of the pass changes nothing.
const ROUNDS: usize = 4;

/// How likely control is taken to reach `op` in the function: half for each branch.
fn chance(op: Op<'_>) -> f64 {
    let mut chance = 1.0;
    let mut at = Some(op);
    while let Some(op) = at {
        let entry = op.block().and_then(Block::parent_region).and_then(Region::first_block);
        let parent = op.parent();
        if op.block() != entry || parent.is_some_and(|parent| parent.name() == "scf.if") {
            chance /= 2.0;
        }
        at = parent;
    }
    chance
}

/// Cycles of all conversions of a module, in all iterations of loops.
fn cost_of_conversions<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> f64 {
    let costs = cost::Costs::new(module);
    let ops = operations_in_dominance_order(module).into_iter();
    let of = |op: Op<'c>| {
        let (from, to) = (op.operand(0).ty().as_tensor(), ir_util::layout_of(op.result(0)));
        let cycles = from.zip(to).map_or(0.0, |(from, to)| costs.conversion(from, to, layouts));
        ir_util::weight(op) * chance(op) * (cycles + plan::SYNCHRONIZATION)
    };
    ops.filter(|op| rule(*op) == Some(Rule::Convert)).map(of).sum()
}

fn round<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    let ops = operations_in_dominance_order(module);
    let mut assignment = assign::Assignment::new(&ops, layouts).map_err(|(op, reason)| error(op, reason))?;
    assignment.apply(&ops)?;
    let mut planner = Planner::new(module, layouts);
    stores::place(&ops, &mut assignment, &mut planner);
    for (value, layout) in lift::lift(&ops, &assignment, &mut planner) {
        assignment.reassign(value, layout);
    }
    planner.forget();
    let mut pass = materialize::Materialize::new(module, planner);
    for &op in &ops {
        pass.operands(op, &mut assignment)?;
    }
    pass.finish();
    remove_unused(module);
    Ok(())
}

/// Erases operations that only make values nobody uses.
fn remove_unused(module: Op<'_>) {
    for op in operations_in_dominance_order(module).into_iter().rev() {
        let unused = op.num_results() > 0 && op.results().all(|result| result.is_unused());
        let load = LoadOp::cast(op).is_some_and(|load| load.is_volatile() != Some(true));
        if unused && op.num_regions() == 0 && (load || op.is_pure()) {
            op.erase();
        }
    }
}
