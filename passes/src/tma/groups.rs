//! Loads through tensor maps that can wait at one point, and what needs no registers.

use super::is_load;
use crate::buffer_plans;
use mlir_host::ir::{Block, Op, Value, Walk};
use std::collections::HashSet;
use ttopt_dialect::tt::types::TensorDescType;
use ttopt_dialect::ttg::layout::equivalent;
use ttopt_dialect::ttg::ops::{LocalAllocOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;

/// Loads of one block, nothing between which needs what they load or touches memory: they are issued
/// together, at the last of them, and wait for each other.
pub struct Group<'c> {
    pub loads: Vec<Op<'c>>,
}

/// The buffers that would hold a copy of what `load` puts into shared memory already.
pub fn copies_of<'c>(load: Op<'c>) -> Vec<Op<'c>> {
    let block = load.result(0).ty().as_tensor().map(|ty| ty.shape());
    let (Some(desc), Some(block)) = (TensorDescType::cast(load.operand(0).ty()), block) else {
        return Vec::new();
    };
    let Ok(layout) = buffer_plans::tma_buffer_layout(desc, block.len()) else { return Vec::new() };
    let is_copy = |op: &Op<'c>| {
        let ty = LocalAllocOp::cast(*op).and_then(|alloc| MemDescType::cast(alloc.result().ty()));
        ty.is_some_and(|ty| {
            !ty.mutable() && ty.shape()[..] == block[..] && equivalent(layout, ty.encoding(), &block)
        })
    };
    load.result(0).uses().map(|(op, _)| op).filter(is_copy).collect()
}

/// All loads below `root`, in groups. Loads that nobody needs are in none.
pub fn find<'c>(root: Op<'c>) -> Vec<Group<'c>> {
    let mut blocks = Vec::new();
    root.walk(&mut |op| {
        blocks.extend(op.regions().flat_map(|region| region.blocks()));
        Walk::Advance
    });
    blocks.into_iter().flat_map(in_block).collect()
}

fn in_block<'c>(block: Block<'c>) -> Vec<Group<'c>> {
    let mut groups: Vec<Group<'c>> = Vec::new();
    let mut open = false;
    // What is there only after the wait.
    let mut awaited: HashSet<Value<'c>> = HashSet::new();
    for op in block.ops() {
        // The numbers of rows may be what is awaited.
        let waits = op.operands().any(|value| awaited.contains(&value));
        if is_load(op) {
            if op.result(0).is_unused() {
                continue;
            }
            match groups.last_mut().filter(|_| open && !waits) {
                Some(group) => group.loads.push(op),
                None => {
                    groups.push(Group { loads: vec![op] });
                    awaited.clear();
                }
            }
            open = true;
            awaited.insert(op.result(0));
            for copy in copies_of(op) {
                awaited.insert(copy.result(0));
            }
            continue;
        }
        let names_only = is_memdesc_view(op) || op.results().any(|result| awaited.contains(&result));
        if names_only {
            if waits {
                awaited.extend(op.results());
            }
            continue;
        }
        if waits || op.num_regions() > 0 || !op.is_memory_effect_free() {
            open = false;
        }
    }
    groups
}
