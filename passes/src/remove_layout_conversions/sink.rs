//! Conversions into the branch that alone needs them.

use mlir_host::hash::FastSet;
use mlir_host::ir::{Block, Op, Region};
use mlir_host::upstream::IfOp;

/// Moves `op`, which is pure, into the innermost branch that has all its uses.
/// It never moves into a loop.
pub fn sink(op: Op<'_>) {
    if let Some(first) = destination(op) {
        op.move_before(first);
    }
}

/// The operation before which [`sink`] moves `op`, where it does.
pub fn destination<'c>(op: Op<'c>) -> Option<Op<'c>> {
    let block = op.block()?;
    // The operations that have the uses, as seen from the region of `op`.
    let mut users: Vec<Op<'c>> = op.result(0).uses().map(|(user, _)| user).collect();
    let mut place = common_block(&mut users, block.parent_region()?)?;
    if place != block && is_in_cycle(place) {
        return None;
    }
    // Into a branch that has them all, and on.
    loop {
        let first = users.first().copied()?;
        let inside = users.iter().all(|user| *user == first) && IfOp::cast(first).is_some();
        if !inside {
            break;
        }
        let nested = first.regions().find_map(|region| {
            let mut nested: Vec<Op<'c>> = op.result(0).uses().map(|(user, _)| user).collect();
            common_block(&mut nested, region).map(|block| (block, nested))
        });
        let Some((block, nested)) = nested else { break };
        (place, users) = (block, nested);
    }
    let first = users.into_iter().reduce(|a, b| if b.is_before_in_block(a) { b } else { a });
    first.filter(|_| place != block)
}

/// Replaces `ops` by the operations of `region` that contain them; the block
/// that has all those, if there is one.
fn common_block<'c>(ops: &mut [Op<'c>], region: Region<'c>) -> Option<Block<'c>> {
    for op in ops.iter_mut() {
        while op.block()?.parent_region()? != region {
            *op = op.parent()?;
        }
    }
    let first = ops.first()?.block()?;
    ops.iter().all(|op| op.block() == Some(first)).then_some(first)
}

/// Whether control can come back to `block` within its region.
fn is_in_cycle(block: Block<'_>) -> bool {
    fn next(block: Block<'_>) -> Vec<Block<'_>> {
        block.terminator().into_iter().flat_map(Op::successors).collect()
    }
    let mut seen = FastSet::default();
    let mut stack = next(block);
    while let Some(at) = stack.pop() {
        if at == block {
            return true;
        }
        if seen.insert(at) {
            stack.extend(next(at));
        }
    }
    false
}
