//! Stores in the layout of what they store.
//!
//! Coalescing chose a layout for each store from the addresses alone. Where the
//! stored value has another one, the store can write it as it is instead: it
//! then takes other pointers and masks, which are mostly cheap to compute, and
//! more accesses. A product in registers often fills whole sectors as it is.

use super::assign::Assignment;
use super::plan::{Planner, Request, unconverted};
use crate::ir_util::{layout_of, weight};
use mlir_host::ir::{Attr, Op};

/// Gives each store of `ops` the layout of its value where that leaves less to do.
pub fn place<'c>(ops: &[Op<'c>], assignment: &mut Assignment<'c>, planner: &mut Planner<'_, 'c>) {
    for &op in ops.iter().filter(|op| op.name() == "tt.store") {
        let value = unconverted(op.operand(1));
        let Some(own) = layout_of(value) else { continue };
        let Some(chosen) = assignment.demand(op, 1, planner.layouts()).filter(|chosen| *chosen != own) else {
            continue;
        };
        if let (Some(as_it_is), Some(converted)) = (cost(op, own, planner), cost(op, chosen, planner))
            && as_it_is < converted
        {
            assignment.repin(op, own);
        }
    }
}

/// Cycles of a store in `layout`, and of what it takes to have its operands there.
fn cost<'c>(op: Op<'c>, layout: Attr<'c>, planner: &mut Planner<'_, 'c>) -> Option<f64> {
    let access = weight(op) * planner.storing(op, op.operand(1), layout)?;
    let tensors = op.operands().map(unconverted).filter(|operand| layout_of(*operand).is_some());
    let plan = |value| planner.plan(Request { value, layout, moves: true }).1;
    Some(access + tensors.map(plan).sum::<f64>())
}
