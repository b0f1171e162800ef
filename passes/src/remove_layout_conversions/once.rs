//! What is expensive to compute, once for each element.
//!
//! Ranges and what is computed from them have the layout that their uses ask for, in which many threads may hold the same
//! element: rows of a tile have a division each in every thread that has one of their columns. Where that costs more than computing
//! all elements in the default layout, in which threads share them, and converting what comes of it, they are computed there.

use super::plan::{Planner, Request, unconverted};
use super::said::Said;
use crate::choice::{Candidate, Choice, Unit, short};
use crate::ir_util::{layout_of, with_layout};
use crate::objective::{conversion, weight};
use crate::rules::{Rule, rule};
use linear_layout::Dim;
use mlir_host::ir::{Attr, Op, TensorType, Value};
use ttopt_dialect::ttg::layout::to_linear_layout;

/// Cycles of an operation below which no conversion is looked at: none is cheaper.
const CHEAP: f64 = 100.0;

/// How many times what it takes otherwise computing something in all threads has to cost: of 41 kernels of `unseen_kernels` for which it
/// costs more at all, those below ran at 0.95 of their speed in the geometric mean on an H200 (a conversion is also a barrier on the way
/// to addresses, which nothing else fills), from 0.40 to 1.33; the other ten at 1.09, from 0.97 to 1.88 (`docs/passes.md`).
const DEARER: f64 = 2.5;

/// The values among what `ops`, in dominance order, compute that had better be computed once for each element and converted, and
/// the layouts for that.
pub fn compute_once<'c>(
    ops: &[Op<'c>],
    planner: &mut Planner<'_, 'c>,
    said: &Said<'c>,
) -> Vec<(Value<'c>, Attr<'c>)> {
    let mut moved = Vec::new();
    for &op in ops.iter().filter(|op| rule(**op) == Some(Rule::Same) && op.num_regions() == 0) {
        let mut results = op.results();
        let (Some(result), None) = (results.next(), results.next()) else { continue };
        let Some((ty, own)) = result.ty().as_tensor().zip(layout_of(result)) else { continue };
        let Some(here) = planner.working(op, own).filter(|here| *here >= CHEAP) else { continue };
        if passes_on(result) {
            continue;
        }
        let Some((to, saved, there)) = elsewhere(op, ty, own, planner) else { continue };
        let here = weight(op) * here + saved;
        if here < DEARER * there {
            continue;
        }
        if said.asks() {
            let chosen = Candidate::new(
                format!("once for each element, in {}, and convert it", short(to)),
                Some(there),
            );
            let other =
                Candidate::new(format!("in {}, by all threads that have one", short(own)), Some(here));
            said.note(
                op,
                &Choice::new(format!("where {} is computed", op.name()), Unit::Cycles, chosen).instead(other),
            );
        }
        moved.push((result, to));
    }
    planner.forget();
    moved
}

/// Whether control flow passes the value on, which then shares its layout with others.
fn passes_on(value: Value<'_>) -> bool {
    value.uses().any(|(user, _)| user.num_results() == 0 && matches!(rule(user), None | Some(Rule::Control)))
}

/// The default layout for what `op` gives, in which fewer threads have each element than in its `own`, the cycles that its operands then
/// take less, and those of computing it there and of converting it, in all iterations.
fn elsewhere<'c>(
    op: Op<'c>,
    ty: TensorType<'c>,
    own: Attr<'c>,
    planner: &mut Planner<'_, 'c>,
) -> Option<(Attr<'c>, f64, f64)> {
    let layouts = planner.layouts();
    let shape = ty.shape();
    let to = layouts.default(&shape).ok().filter(|to| *to != own)?;
    let [from, into] = [own, to].map(|layout| to_linear_layout(layout, &shape));
    let (from, into) = (from.ok()?, into.ok()?);
    // A partition has other warps than the kernel begins with.
    if from.in_bits(Dim::WARP) != into.in_bits(Dim::WARP)
        || into.in_bits(Dim::REGISTER) >= from.in_bits(Dim::REGISTER)
    {
        return None;
    }
    let computed = planner.working(op, to)? + conversion(with_layout(ty, to)?.as_tensor()?, own, layouts)?;
    let operands = op.operands().map(unconverted).filter(|operand| layout_of(*operand).is_some());
    let (mut here, mut there) = (0.0, weight(op) * computed);
    for value in operands {
        // What only this needs moves along: what it takes in all threads is saved, too.
        let cycles = planner.plan(Request { value, layout: to, moves: true }).1?;
        if cycles < 0.0 { here -= cycles } else { there += cycles }
    }
    Some((to, here, there))
}
