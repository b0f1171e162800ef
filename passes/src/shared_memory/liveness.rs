//! Which buffers of shared memory are occupied at the same time.
//!
//! A buffer is occupied at an operation that control can reach from where it
//! is allocated, and from which control can reach a use of it without passing
//! the allocation again. Uses are those of any value that may refer to it, and
//! the waits for what copies it beside the program.

use super::buffers::Buffers;
use super::effects;
use crate::analysis::flow_graph::FlowGraph;
use mlir_host::ir::Op;
use ttopt_dialect::ttg::ops::WarpSpecializeOp;

/// A set of buffers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
struct Set(Vec<u64>);

impl Set {
    fn new(len: usize) -> Self {
        Self(vec![0; len.div_ceil(64)])
    }
    fn insert(&mut self, i: usize) {
        self.0[i / 64] |= 1 << (i % 64);
    }
    fn remove(&mut self, i: usize) {
        self.0[i / 64] &= !(1 << (i % 64));
    }
    fn contains(&self, i: usize) -> bool {
        self.0[i / 64] >> (i % 64) & 1 == 1
    }
    /// Whether anything was added.
    fn unite(&mut self, other: &Set) -> bool {
        let mut changed = false;
        for (mine, other) in self.0.iter_mut().zip(&other.0) {
            changed |= other & !*mine != 0;
            *mine |= other;
        }
        changed
    }
    fn intersect(&mut self, other: &Set) {
        self.0.iter_mut().zip(&other.0).for_each(|(mine, other)| *mine &= other);
    }
    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.0.iter().enumerate().flat_map(|(word, bits)| {
            (0..64).filter(move |bit| bits >> bit & 1 == 1).map(move |bit| 64 * word + bit)
        })
    }
}

/// Which buffers exclude each other from the same bytes.
pub struct Interference {
    /// By buffer, those that it excludes.
    excluded: Vec<Set>,
    /// The different sets of buffers that are occupied at some operation.
    crowds: Vec<Set>,
}

impl Interference {
    /// Of the buffers of the function of `graph`.
    pub fn new(graph: &FlowGraph<'_>, buffers: &Buffers<'_>) -> Self {
        let occupied = occupied(graph, buffers);
        let n = buffers.all.len();
        let mut conflicts = vec![Set::new(n); n];
        let mut seen = std::collections::HashSet::new();
        let crowds: Vec<Set> = occupied.iter().filter(|set| seen.insert(*set)).cloned().collect();
        for set in &crowds {
            set.iter().for_each(|buffer| _ = conflicts[buffer].unite(set));
        }
        for op in graph.ops().iter().filter(|op| WarpSpecializeOp::cast(**op).is_some()) {
            at_once(graph, *op, buffers.of_op(*op), &occupied, &mut conflicts);
        }
        Self { excluded: conflicts, crowds }
    }

    /// The different sets of buffers that are occupied at some operation, as numbers of buffers.
    pub fn crowds(&self) -> Vec<Vec<usize>> {
        self.crowds.iter().map(|set| set.iter().collect()).collect()
    }

    /// Whether two buffers are occupied at the same time.
    pub fn excludes(&self, a: usize, b: usize) -> bool {
        a != b && self.excluded[a].contains(b)
    }
}

/// The buffers occupied at each operation.
fn occupied(graph: &FlowGraph<'_>, buffers: &Buffers<'_>) -> Vec<Set> {
    let n = buffers.all.len();
    let len = graph.ops().len();
    let empty = vec![Set::new(n); len];
    let (mut uses, mut allocates, mut copied_from, mut waits) =
        (empty.clone(), empty.clone(), empty.clone(), vec![false; len]);
    for (i, op) in graph.ops().iter().enumerate() {
        for operand in op.operands() {
            buffers.of_value(operand).iter().for_each(|buffer| uses[i].insert(*buffer));
        }
        if let Some(buffer) = buffers.of_op(*op) {
            allocates[i].insert(buffer);
        }
        if effects::is_store_by_tma(*op) || effects::is_tensor_store(*op) {
            copied_from[i] = uses[i].clone();
        }
        waits[i] = effects::waits_for_all_stores(*op);
    }
    let predecessors = graph.predecessors();
    // Where uses lie ahead.
    let mut ahead = uses.clone();
    let mut open: Vec<usize> = (0..len).collect();
    while let Some(i) = open.pop() {
        let mut before = ahead[i].clone();
        allocates[i].iter().for_each(|buffer| before.remove(buffer));
        for previous in &predecessors[i] {
            if ahead[*previous as usize].unite(&before) {
                open.push(*previous as usize);
            }
        }
    }
    // What was allocated, and what is being copied from.
    let mut behind = allocates.clone();
    let mut copies = copied_from;
    let mut open: Vec<usize> = (0..len).rev().collect();
    while let Some(i) = open.pop() {
        let (allocated, mut copying) = (behind[i].clone(), copies[i].clone());
        if waits[i] {
            copying = Set::new(n);
        }
        for next in graph.successors(i) {
            if behind[next].unite(&allocated) | copies[next].unite(&copying) {
                open.push(next);
            }
        }
    }
    // `ahead` holds what is used at the operation or after it.
    for i in 0..len {
        ahead[i].intersect(&behind[i]);
        ahead[i].unite(&allocates[i]);
        ahead[i].unite(&copies[i]);
    }
    ahead
}

/// Regions of `op` run at the same time: what one occupies at any time excludes
/// what another does, and all exclude `captured`, in which `op` passes to its partitions what they capture.
fn at_once(
    graph: &FlowGraph<'_>,
    op: Op<'_>,
    captured: Option<usize>,
    occupied: &[Set],
    conflicts: &mut [Set],
) {
    let n = conflicts.len();
    let mut regions: Vec<Vec<Op<'_>>> = vec![op.region(0).blocks().flat_map(|block| block.ops()).collect()];
    if let Some(partitions) = op.region(1).first_block().and_then(|block| block.first()) {
        let inside = partitions.regions().map(|r| r.blocks().flat_map(|block| block.ops()).collect());
        regions.extend(inside);
    }
    let sets: Vec<Set> = regions
        .iter()
        .map(|ops| {
            let mut set = Set::new(n);
            for op in ops {
                op.walk(&mut |op| {
                    if let Some(i) = graph.number(op) {
                        set.unite(&occupied[i]);
                    }
                    mlir_host::ir::Walk::Advance
                });
            }
            set
        })
        .chain(captured.map(|buffer| {
            let mut set = Set::new(n);
            set.insert(buffer);
            set
        }))
        .collect();
    for (i, mine) in sets.iter().enumerate() {
        for other in sets.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, set)| set) {
            mine.iter().for_each(|buffer| _ = conflicts[buffer].unite(other));
        }
    }
}
