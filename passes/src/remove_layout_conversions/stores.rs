//! Stores in the layout of what they store.
//!
//! Coalescing chose a layout for each store from the addresses alone. Where the
//! stored value has another one, the store can write it as it is instead: it
//! then takes other pointers and masks, which are mostly cheap to compute, and
//! more accesses. The result of a dot often fills whole sectors as it is.

use super::assign::Assignment;
use super::plan::{Planner, Request, unconverted};
use super::said::Said;
use crate::choice::{Candidate, Choice, Unit, short};
use crate::ir_util::layout_of;
use crate::objective::weight;
use mlir_host::ir::{Attr, Op, Value};
use ttopt_dialect::tt::ops::StoreOp;

/// Gives each store of `ops` the layout of its value where that leaves less to do.
pub fn place<'c>(
    ops: &[Op<'c>],
    assignment: &mut Assignment<'c>,
    planner: &mut Planner<'_, 'c>,
    said: &Said<'c>,
) {
    for &op in ops.iter().filter(|op| StoreOp::cast(**op).is_some()) {
        let value = unconverted(op.operand(1));
        let Some(own) = layout_of(value) else { continue };
        let Some(chosen) = assignment.demand(op, 1, planner.layouts()).filter(|chosen| *chosen != own) else {
            continue;
        };
        let (Some(as_it_is), Some(converted)) = (cost(op, own, planner), cost(op, chosen, planner)) else {
            continue;
        };
        let layout = if as_it_is < converted { own } else { chosen };
        if said.asks() {
            said.note(op, &choice(op, layout, [(own, as_it_is), (chosen, converted)], planner));
        }
        if layout == own {
            assignment.repin(op, own);
        }
        // Stores after this one share what it needs.
        operands(op).for_each(|value| planner.expect(Request { value, layout, moves: true }));
    }
    planner.forget();
}

/// The choice of `layout` for a store, which costs so much in each of two layouts.
fn choice<'c>(
    op: Op<'c>,
    layout: Attr<'c>,
    costs: [(Attr<'c>, f64); 2],
    planner: &Planner<'_, 'c>,
) -> Choice {
    let [own, converted] = costs.map(|(to, all)| {
        let access = planner.storing(op, op.operand(1), to).map_or(0.0, |cycles| weight(op) * cycles);
        let name = match to == costs[0].0 {
            true => format!("as its value is, {}", short(to)),
            false => format!("as its addresses ask, {}", short(to)),
        };
        Candidate::of_terms(name, &[("access", access), ("operands", all - access)])
    });
    let (chosen, other) = if layout == costs[0].0 { (own, converted) } else { (converted, own) };
    Choice::new("the layout of this store", Unit::Cycles, chosen).instead(other)
}

/// The tensors that a store takes.
fn operands<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.operands().map(unconverted).filter(|operand| layout_of(*operand).is_some())
}

/// Cycles of a store in `layout`, and of what it takes to have its operands there; `None` where it cannot be.
fn cost<'c>(op: Op<'c>, layout: Attr<'c>, planner: &mut Planner<'_, 'c>) -> Option<f64> {
    let access = weight(op) * planner.storing(op, op.operand(1), layout)?;
    let plan = |value| planner.plan(Request { value, layout, moves: true }).1;
    Some(access + operands(op).map(plan).sum::<Option<f64>>()?)
}
