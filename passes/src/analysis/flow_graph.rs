//! Control flow of a function between operations, through structured regions
//! and branches alike.

use crate::ir_util::blocks_in_dominance_order;
use mlir_host::flow::{self, Next};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Block, Op, Region};
use smallvec::SmallVec;
use ttopt_dialect::tt::ops::{MapElementwiseOp, ReduceOp, ScanOp};
use ttopt_dialect::ttg::ops::{MaskOp, WarpReturnOp};

/// Operations of a function, and which can run right after which.
///
/// Regions that no operation passes control to, such as the combining function
/// of a reduction, are not entered: their parent stands for them.
pub struct FlowGraph<'c> {
    ops: Vec<Op<'c>>,
    numbers: FastMap<Op<'c>, usize>,
    successors: Vec<SmallVec<[u32; 2]>>,
}

/// Whether the regions of `op` are functions of its operands, in which nothing
/// happens but arithmetic.
fn is_opaque(op: Op<'_>) -> bool {
    ReduceOp::cast(op).is_some() || ScanOp::cast(op).is_some() || MapElementwiseOp::cast(op).is_some()
}

fn collect<'c>(op: Op<'c>, ops: &mut Vec<Op<'c>>) {
    for region in op.regions() {
        for block in blocks_in_dominance_order(region) {
            for op in block.ops() {
                ops.push(op);
                if !is_opaque(op) {
                    collect(op, ops);
                }
            }
        }
    }
}

impl<'c> FlowGraph<'c> {
    /// The graph of the body of `function`.
    pub fn new(function: Op<'c>) -> Self {
        let mut ops = Vec::new();
        collect(function, &mut ops);
        let numbers: FastMap<Op<'c>, usize> = ops.iter().enumerate().map(|(i, op)| (*op, i)).collect();
        let mut graph = Self { ops, numbers, successors: Vec::new() };
        graph.successors = (0..graph.ops.len()).map(|i| graph.follow(graph.ops[i])).collect();
        graph
    }

    /// The operations, each after those that dominate it.
    pub fn ops(&self) -> &[Op<'c>] {
        &self.ops
    }
    /// The number of an operation of the function.
    pub fn number(&self, op: Op<'c>) -> Option<usize> {
        self.numbers.get(&op).copied()
    }
    /// The operations that can run right after operation `i`.
    pub fn successors(&self, i: usize) -> impl Iterator<Item = usize> + '_ {
        self.successors[i].iter().map(|next| *next as usize)
    }
    /// The inverse of [`successors`](Self::successors).
    pub fn predecessors(&self) -> Vec<SmallVec<[u32; 2]>> {
        let mut all = vec![SmallVec::new(); self.ops.len()];
        for (i, next) in self.successors.iter().enumerate() {
            next.iter().for_each(|next| all[*next as usize].push(i as u32));
        }
        all
    }

    fn follow(&self, op: Op<'c>) -> SmallVec<[u32; 2]> {
        let mut next: Vec<Option<Op<'c>>> = Vec::new();
        let into = |region: Region<'c>| region.first_block().and_then(|block| block.first());
        let is_terminator = op.block().and_then(Block::last) == Some(op);
        match flow::next(op) {
            Some(places) => next.extend(places.into_iter().map(|place| match place {
                Next::Region(region) => into(region),
                Next::Block(block) => block.first(),
                Next::After(op) => op.next(),
            })),
            // Of what is not known to be control flow nothing is assumed.
            None if op.num_regions() > 0 && !is_opaque(op) => {
                next.extend(op.regions().map(into));
                next.push(op.next());
            }
            None if is_terminator => {
                if let Some(parent) = op.parent().filter(|parent| self.numbers.contains_key(parent)) {
                    next.extend(parent.regions().filter(|_| MaskOp::cast(parent).is_none()).map(into));
                    next.push(parent.next());
                }
            }
            None => next.push(op.next()),
        }
        // Partitions end where the operation around them does.
        if WarpReturnOp::cast(op).is_some() {
            let around = op.parent().and_then(|partitions| partitions.parent());
            next.push(around.and_then(|around| around.next()));
        }
        let next = next.into_iter().flatten();
        let mut numbers: SmallVec<[u32; 2]> =
            next.filter_map(|op| self.numbers.get(&op).map(|n| *n as u32)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
