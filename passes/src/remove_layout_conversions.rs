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
//! 3. gives each use that still disagrees a copy in its own layout: by
//!    computing it again from what is at hand or by converting it, or by
//!    converting something smaller that it is computed from, whichever costs
//!    least (`materialize`);
//! 4. removes what has no uses left.
//!
//! Values carried around loops and out of branches share one layout with what
//! they are passed to. Conversions in the input are nothing but hints: the
//! pass removes them all and decides anew.

mod assign;
mod carry;
mod cost;
mod materialize;
mod plan;
mod sink;

pub(crate) use cost::element_bits;
pub(crate) use plan::{Alternative, Planner, Request, unconverted};

use crate::ir_util::operations_in_dominance_order;
use crate::machine::{Layouts, Machine, error};
use crate::rules::{Rule, rule};
use mlir_host::ir::Op;
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
    let layouts = Layouts::new(module.context(), Machine::of(module)?);
    let conversions = || {
        let ops = operations_in_dominance_order(module);
        ops.into_iter().filter(|op| rule(*op) == Some(Rule::Convert)).count()
    };
    remove_unused(module);
    let mut left = conversions();
    for _ in 0..ROUNDS {
        // Without conversions every use has the layout that it wants.
        if left == 0 {
            break;
        }
        round(module, &layouts)?;
        let now = conversions();
        if now >= left {
            break;
        }
        left = now;
    }
    Ok(())
}

/// Conversions that were removed free values for other layouts, so the pass
/// repeats while that removes more, but not more often than this.
const ROUNDS: usize = 4;

fn round<'c>(module: Op<'c>, layouts: &Layouts<'c>) -> PassResult {
    let ops = operations_in_dominance_order(module);
    let mut assignment = assign::Assignment::new(&ops, layouts).map_err(|(op, reason)| error(op, reason))?;
    assignment.apply(&ops)?;
    let mut pass = materialize::Materialize::new(module, layouts);
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
