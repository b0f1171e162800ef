//! Conversions into the branch that alone needs them.

use mlir_host::hash::FastSet;
use mlir_host::ir::{Block, Op, Region};

/// Moves `op`, which is pure, into the innermost branch that has all its uses.
/// It never moves into a loop.
pub fn sink(op: Op<'_>) {
    let (Some(block), Some(region)) = (op.block(), op.block().and_then(Block::parent_region)) else { return };
    // The operations that have the uses, as seen from the region of `op`.
    let mut users: Vec<Op<'_>> = op.result(0).uses().map(|(user, _)| user).collect();
    let Some(mut place) = common_block(&mut users, region) else { return };
    if place != block && is_in_cycle(place) {
        return;
    }
    // Into a branch that has them all, and on.
    loop {
        let Some(first) = users.first().copied() else { return };
        let inside = users.iter().all(|user| *user == first) && first.name() == "scf.if";
        if !inside {
            break;
        }
        let nested = first.regions().find_map(|region| {
            let mut nested: Vec<Op<'_>> = op.result(0).uses().map(|(user, _)| user).collect();
            common_block(&mut nested, region).map(|block| (block, nested))
        });
        let Some((block, nested)) = nested else { break };
        (place, users) = (block, nested);
    }
    if place != block {
        let first = users.iter().copied().reduce(|a, b| if b.is_before_in_block(a) { b } else { a });
        if let Some(first) = first {
            op.move_before(first);
        }
    }
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
