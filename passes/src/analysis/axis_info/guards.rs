//! What the conditions say that control flow passes on the way to an operation.
//!
//! Kernels that do two things number the programs of the second from zero: `pid - n`, where `pid >= n`. That no
//! difference of these is negative is known only from the branch.

use mlir_host::ir::{Block, Op, Value};
use mlir_host::match_op;
use mlir_host::upstream::{AndIOp, CmpIOp, CondBranchOp, ConstantOp, IfOp, SubIOp};

/// Conditions looked at on the way.
const STEPS: usize = 32;

/// Whether `op`, a difference of scalars, is not negative because of a condition that holds wherever it is computed.
pub(super) fn is_nonneg(op: Op<'_>) -> bool {
    SubIOp::cast(op).is_some()
        && op.result(0).ty().as_tensor().is_none()
        && holds(op, &|condition, truth| is_at_least(condition, truth, op.operand(0), op.operand(1)))
}

/// Whether `says` is true of a condition, with its value, that decides whether control comes to `op`.
fn holds<'c>(op: Op<'c>, says: &dyn Fn(Value<'c>, bool) -> bool) -> bool {
    let mut block = op.block();
    for _ in 0..STEPS {
        let Some(here) = block else { return false };
        if let Some((condition, truth, from)) = entered_by(here) {
            if condition.is_some_and(|condition| says(condition, truth)) {
                return true;
            }
            block = Some(from);
        } else {
            block = None;
        }
    }
    false
}

/// The block from which alone control comes to `block`, with the condition that decides it and its value, if one does.
fn entered_by(block: Block<'_>) -> Option<(Option<Value<'_>>, bool, Block<'_>)> {
    match block.num_predecessors() {
        0 => {
            let outer = block.parent()?;
            let from = outer.block()?;
            let branch = IfOp::cast(outer).is_some();
            let truth = branch && outer.region(0).first_block() == Some(block);
            Some((branch.then(|| outer.operand(0)), truth, from))
        }
        1 => {
            let from = block.predecessors().next()?;
            let jump = from.terminator()?;
            let branch = CondBranchOp::cast(jump).is_some();
            let truth = branch && jump.successors().next() == Some(block);
            Some((branch.then(|| jump.operand(0)), truth, from))
        }
        _ => None,
    }
}

/// Whether `condition`, where its value is `truth`, says that `a` is not less than `b`, as signed numbers.
fn is_at_least<'c>(condition: Value<'c>, truth: bool, a: Value<'c>, b: Value<'c>) -> bool {
    let Some(test) = condition.def_op() else { return false };
    match_op!(test, {
        AndIOp => truth && test.operands().any(|part| is_at_least(part, truth, a, b)),
        CmpIOp(compare) => {
            let (x, y) = (test.operand(0), test.operand(1));
            match (compare.predicate(), truth) {
                // x >= y, x > y
                (Some(4 | 5), true) | (Some(2 | 3), false) => is_same(x, a) && is_same(y, b),
                // x <= y, x < y
                (Some(2 | 3), true) | (Some(4 | 5), false) => is_same(x, b) && is_same(y, a),
                _ => false,
            }
        },
        _ => false,
    })
}

/// Whether both are one value, or the same constant.
fn is_same<'c>(a: Value<'c>, b: Value<'c>) -> bool {
    let constant = |value| ConstantOp::defining(value)?.value()?.as_int();
    a == b || constant(a).is_some_and(|known| constant(b) == Some(known))
}
