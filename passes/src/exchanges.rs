//! Exchanges of neighbours that undo each other.
//!
//! `tl.flip` reverses an axis by exchanging the halves along each of its bits: the tensor has an axis of two elements there, and
//! `x ^ broadcast(xor-reduction of x)` is the other one. So an exchange is an XOR of an element's number, counted row by row, with the
//! stride of that axis; whatever keeps the numbers (`tt.reshape`, `tt.bitcast`) may stand between. Two with the same stride
//! undo each other, in whatever order: a rotary embedding that reverses both halves of its rows, and then the rows, exchanges the halves.

use crate::ir_util::operations_in_dominance_order;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Value};
use mlir_host::is_one_of;
use mlir_host::upstream::XOrIOp;
use ttopt_dialect::tt::ops::{BitcastOp, BroadcastOp, ExpandDimsOp, ReduceOp, ReshapeOp};

/// An exchange of the two elements along an axis.
struct Exchange<'c> {
    /// What gives the result.
    op: Op<'c>,
    source: Value<'c>,
    /// How far apart the two are.
    stride: i64,
}

impl<'c> Exchange<'c> {
    /// The exchange that `op` ends, if it does.
    fn of(op: Op<'c>) -> Option<Self> {
        XOrIOp::cast(op)?;
        let (left, right) = (op.operand(0), op.operand(1));
        [(left, right), (right, left)].into_iter().find_map(|(source, both)| {
            let lines = ExpandDimsOp::defining(BroadcastOp::defining(both)?.src())?;
            let reduce = ReduceOp::defining(lines.src())?;
            let axis = reduce.axis();
            let same = reduce.op().num_operands() == 1
                && reduce.op().operand(0) == source
                && lines.axis() == axis
                && is_xor(reduce.op());
            let shape = source.ty().as_tensor()?.shape();
            let inner = shape.get(usize::try_from(axis).ok()?..)?;
            (same && inner.first() == Some(&2)).then(|| Exchange {
                op,
                source,
                stride: inner[1..].iter().product(),
            })
        })
    }
}

/// Whether a reduction of one operand combines by XOR.
fn is_xor(reduce: Op<'_>) -> bool {
    let Some(body) = reduce.region(0).first_block() else { return false };
    let ops: Vec<Op<'_>> = body.ops().collect();
    let [combine, end] = ops.as_slice() else { return false };
    let given: FastSet<Value<'_>> = body.args().collect();
    XOrIOp::cast(*combine).is_some()
        && combine.operands().collect::<FastSet<_>>() == given
        && given.len() == 2
        && end.operands().eq(combine.results())
}

/// Whether a result of `op` has the elements of its operand, numbered as there.
fn keeps_numbers(op: Op<'_>) -> bool {
    BitcastOp::cast(op).is_some()
        || ReshapeOp::cast(op).is_some_and(|reshape| reshape.allow_reorder().is_none())
}

/// Removes exchanges below `root` that undo each other.
pub(crate) fn undo(root: Op<'_>) {
    let all: Vec<_> = operations_in_dominance_order(root).into_iter().filter_map(Exchange::of).collect();
    let known: FastMap<Value<'_>, usize> =
        all.iter().enumerate().map(|(i, exchange)| (exchange.op.result(0), i)).collect();
    let (mut seen, mut undone) = (FastSet::default(), FastSet::default());
    // The last first: others lead to it.
    for last in (0..all.len()).rev() {
        let mut left: FastMap<i64, usize> = FastMap::default();
        let mut next = Some(last);
        while let Some(i) = next.filter(|i| seen.insert(*i)) {
            match left.remove(&all[i].stride) {
                Some(behind) => undone.extend([behind, i]),
                None => _ = left.insert(all[i].stride, i),
            }
            next = before(all[i].source, &known);
        }
    }
    let undone = all.iter().enumerate().filter(|(i, _)| undone.contains(i));
    undone.for_each(|(_, exchange)| skip(exchange.op));
}

/// The exchange that `source`, of another one, comes from, if nothing else needs what is between.
fn before<'c>(source: Value<'c>, known: &FastMap<Value<'c>, usize>) -> Option<usize> {
    let (mut at, mut uses) = (source, 2);
    while at.uses().count() == uses {
        if let Some(found) = known.get(&at) {
            return Some(*found);
        }
        let op = at.def_op().filter(|op| keeps_numbers(*op))?;
        (at, uses) = (op.operand(0), 1);
    }
    None
}

/// Lets those that use the result of an exchange use what it exchanges.
fn skip(op: Op<'_>) {
    // Another one may have been before it.
    let Some(exchange) = Exchange::of(op) else { return };
    let mut open: Vec<Op<'_>> = op.operands().filter_map(|operand| operand.def_op()).collect();
    op.result(0).replace_all_uses_with(exchange.source);
    op.erase();
    while let Some(op) = open.pop() {
        let unused = op.results().all(|result| result.is_unused());
        if unused && is_one_of!(op, BroadcastOp | ExpandDimsOp | ReduceOp) {
            open.extend(op.operands().filter_map(|operand| operand.def_op()));
            op.erase();
        }
    }
}
