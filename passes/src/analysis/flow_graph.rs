//! Control flow of a function between operations, through structured regions
//! and branches alike.

use crate::ir_util::blocks_in_dominance_order;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Block, Op, Region};
use smallvec::SmallVec;

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
    matches!(op.name(), "tt.reduce" | "tt.scan" | "tt.map_elementwise")
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
        let mut next = Vec::new();
        let block = |block: Option<Block<'c>>, next: &mut Vec<Op<'c>>| {
            next.extend(block.and_then(|block| block.first()));
        };
        let region = |region: Region<'c>, next: &mut Vec<Op<'c>>| block(region.first_block(), next);
        let after = |op: Op<'c>, next: &mut Vec<Op<'c>>| next.extend(op.next());
        let is_terminator = op.block().and_then(Block::last) == Some(op);
        match op.name() {
            "scf.if" => {
                op.regions().for_each(|each| region(each, &mut next));
                if op.regions().any(Region::is_empty) {
                    after(op, &mut next);
                }
            }
            "scf.while" => region(op.region(0), &mut next),
            "scf.condition" => {
                if let Some(parent) = op.parent() {
                    region(parent.region(1), &mut next);
                    after(parent, &mut next);
                }
            }
            _ if op.num_regions() > 0 && !is_opaque(op) => {
                // Loops may run no iteration; of others nothing is assumed.
                op.regions().for_each(|each| region(each, &mut next));
                after(op, &mut next);
            }
            _ if op.successors().len() > 0 => op.successors().for_each(|to| block(Some(to), &mut next)),
            _ if is_terminator => match op.parent() {
                Some(parent) if parent.name() == "scf.while" => region(parent.region(0), &mut next),
                Some(parent) if self.numbers.contains_key(&parent) => {
                    if !matches!(parent.name(), "scf.if" | "ttg.warp_specialize" | "ttg.mask") {
                        parent.regions().for_each(|each| region(each, &mut next));
                    }
                    after(parent, &mut next);
                    // Partitions end where the operation around them does.
                    if parent.name() == "ttg.warp_specialize.partitions" {
                        next.clear();
                        if let Some(around) = parent.parent() {
                            after(around, &mut next);
                        }
                    }
                }
                _ => {}
            },
            _ => after(op, &mut next),
        }
        let mut numbers: SmallVec<[u32; 2]> =
            next.into_iter().filter_map(|op| self.numbers.get(&op).map(|n| *n as u32)).collect();
        numbers.sort_unstable();
        numbers.dedup();
        numbers
    }
}
