//! Sides of an `scf.if` that do the same with other values become one, without a branch: `if c { f(load(p, m)) } else
//! { f(load(q, m)) }` is `f(load(select(c, p, q), m))`.
//!
//! A branch keeps the assembler from having loads of a side under way together with those around it, and holds code twice. Only
//! numbers and pointers are selected: where sides read tensors of pointers, what these are made of (`tt.splat`, `tt.addptr`, …)
//! is made once more of what was selected.

use crate::rules::{Rule, rule};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::rewrite::{IrRewriter, create};
use mlir_host::upstream::{AddIOp, IfOp, MulIOp};
use ttopt_dialect::tt::ops::{AddPtrOp, BroadcastOp, ExpandDimsOp, SplatOp};

/// Operations that may be made for the sake of one branch less.
const MOST_MADE: usize = 32;

/// Does so for all operations below `root`.
pub(crate) fn combine_all(root: Op<'_>) {
    let mut branches = Vec::new();
    root.walk(&mut |op| {
        if IfOp::cast(op).is_some() {
            branches.push(op);
        }
        Walk::Advance
    });
    let mut rewriter = IrRewriter::new(root.context());
    // Inner ones first: sides with branches are not compared.
    for branch in branches.into_iter().rev() {
        combine(branch, &mut rewriter);
    }
}

fn combine<'c>(branch: Op<'c>, rewriter: &mut IrRewriter<'c>) -> Option<()> {
    let sides = Sides::of(branch)?;
    let mut left = MOST_MADE;
    sides.pairs.iter().try_for_each(|(one, other)| can_select(*one, *other, &mut left))?;
    rewriter.set_before(branch);
    let mut made = FastMap::default();
    for &(one, other) in &sides.pairs {
        select(branch, one, other, rewriter, &mut made)?;
    }
    let now = |(one, other): &(Value<'c>, Value<'c>)| made.get(&(*one, *other)).copied().unwrap_or(*one);
    for (op, operands) in &sides.ops {
        op.set_operands(&operands.iter().map(now).collect::<Vec<_>>());
        op.move_before(branch);
    }
    let results: Vec<Value<'c>> = sides.results.iter().map(now).collect();
    rewriter.replace(branch, &results);
    Some(())
}

/// Two sides that do the same.
struct Sides<'c> {
    /// What the first one does, each with its operands and those that the other side has in their place.
    ops: Vec<(Op<'c>, Vec<(Value<'c>, Value<'c>)>)>,
    /// What the branch gives, of both sides.
    results: Vec<(Value<'c>, Value<'c>)>,
    /// Values from outside that differ, each pair once or more often.
    pairs: Vec<(Value<'c>, Value<'c>)>,
}

impl<'c> Sides<'c> {
    /// The sides of `branch`; `None` where they do not the same, or nothing that accesses memory.
    fn of(branch: Op<'c>) -> Option<Self> {
        if branch.num_regions() != 2 || branch.region(1).is_empty() {
            return None;
        }
        let ops =
            |side: usize| branch.region(side).blocks().next().map(|block| block.ops().collect::<Vec<_>>());
        let (own, others) = (ops(0)?, ops(1)?);
        let accesses = own.iter().any(|op| rule(*op) == Some(Rule::Memory));
        if !accesses || own.len() != others.len() {
            return None;
        }
        // What the other side computes, and what stands for it.
        let mut same: FastMap<Value<'c>, Value<'c>> = FastMap::default();
        let mut sides = Self { ops: Vec::new(), results: Vec::new(), pairs: Vec::new() };
        let last = own.len().checked_sub(1)?;
        for (i, (one, other)) in own.iter().zip(&others).enumerate() {
            if !is_alike(*one, *other) {
                return None;
            }
            let mut operands = Vec::new();
            for (a, b) in one.operands().zip(other.operands()) {
                match same.get(&b) {
                    Some(known) if *known != a => return None,
                    Some(_) => operands.push((a, a)),
                    None if is_inside(a, branch) => return None,
                    None => {
                        if a != b {
                            sides.pairs.push((a, b));
                        }
                        operands.push((a, b));
                    }
                }
            }
            same.extend(other.results().zip(one.results()));
            if i == last {
                sides.results = operands;
            } else {
                sides.ops.push((*one, operands));
            }
        }
        Some(sides)
    }
}

/// Whether two operations do the same with their operands.
fn is_alike(one: Op<'_>, other: Op<'_>) -> bool {
    one.name() == other.name()
        && one.num_regions() == 0
        && other.num_regions() == 0
        && one.num_operands() == other.num_operands()
        && one.results().map(|result| result.ty()).eq(other.results().map(|result| result.ty()))
        && one.attrs() == other.attrs()
}

fn is_inside<'c>(value: Value<'c>, branch: Op<'c>) -> bool {
    value.def_op().is_some_and(|op| op.parent() == Some(branch))
}

/// What tensors are made of that can be made once more of other numbers and pointers.
fn parts<'c>(one: Value<'c>, other: Value<'c>) -> Option<(Op<'c>, Op<'c>)> {
    let (one, other) = (one.def_op()?, other.def_op()?);
    let known = is_one_of!(one, SplatOp | AddPtrOp | BroadcastOp | ExpandDimsOp | AddIOp | MulIOp);
    (known && is_alike(one, other)).then_some((one, other))
}

/// Whether a selection of the two takes no more operations than are `left`.
fn can_select<'c>(one: Value<'c>, other: Value<'c>, left: &mut usize) -> Option<()> {
    if one == other {
        return Some(());
    }
    *left = left.checked_sub(1)?;
    if one.ty() != other.ty() {
        return None;
    }
    if one.ty().as_tensor().is_none() {
        return Some(());
    }
    let (one, other) = parts(one, other)?;
    one.operands().zip(other.operands()).try_for_each(|(one, other)| can_select(one, other, left))
}

/// Makes what is `one` where the condition of `branch` holds, and `other` where not.
fn select<'c>(
    branch: Op<'c>,
    one: Value<'c>,
    other: Value<'c>,
    rewriter: &mut IrRewriter<'c>,
    made: &mut FastMap<(Value<'c>, Value<'c>), Value<'c>>,
) -> Option<Value<'c>> {
    if one == other {
        return Some(one);
    }
    if let Some(known) = made.get(&(one, other)) {
        return Some(*known);
    }
    let now = if one.ty().as_tensor().is_none() {
        let operands = [branch.operand(0), one, other];
        let op = create("arith.select", branch.loc(), &operands, &[one.ty()], &[], &[]).ok()?;
        rewriter.insert(op)
    } else {
        let (op, others) = parts(one, other)?;
        let operands = op.operands().zip(others.operands());
        let operands: Option<Vec<_>> =
            operands.map(|(one, other)| select(branch, one, other, rewriter, made)).collect();
        let copy = rewriter.clone_op(op);
        copy.set_operands(&operands?);
        copy
    };
    made.insert((one, other), now.result(0));
    Some(now.result(0))
}
