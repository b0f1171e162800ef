//! What is rematerialized behind a loop instead of being kept in registers throughout it.

use super::flow_graph::FlowGraph;
use super::registers::fills_registers;
use crate::ir_util::{blocks_in_dominance_order, is_loop, multiplies};
use linear_layout::target::TargetDesc;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Op, Value, Walk};
use mlir_host::match_op;
use mlir_host::upstream::{
    AddIOp, AndIOp, CmpIOp, ConstantOp, ExtSIOp, ExtUIOp, MulIOp, OrIOp, ShLIOp, SubIOp, TruncIOp, XOrIOp,
};
use ttopt_dialect::tt::ops::{AddPtrOp, BroadcastOp, ExpandDimsOp, MakeRangeOp, SplatOp};
use ttopt_dialect::tt::types::pointee;

/// A loop that needs the registers in which values would wait for their uses behind it.
#[derive(Clone, Debug)]
pub struct Recomputation<'c> {
    /// The loop.
    pub behind: Op<'c>,
    /// What is computed again there, each operation after those that it uses.
    pub ops: Vec<Op<'c>>,
}

impl<'c> Recomputation<'c> {
    /// For the last loop of `function`, whose CTAs have `warps` warps, which must be in its last block, if dots in it take nearly all registers:
    /// addresses and indices that only operations behind it use. Behind other loops they would only wait again.
    pub fn of(function: Op<'c>, warps: u64, target: &TargetDesc) -> Option<Self> {
        let last = blocks_in_dominance_order(function.region(0)).pop()?;
        let behind = last.ops().filter(|op| is_loop(*op)).last()?;
        if !multiplies(behind) || !fills_registers(&FlowGraph::new(function), behind, warps, target) {
            return None;
        }
        let mut found =
            Finder { used_inside: FastSet::default(), known: FastMap::default(), ops: Vec::new() };
        behind.walk(&mut |op| {
            found.used_inside.extend(op.operands().filter(|_| op != behind));
            Walk::Advance
        });
        for op in std::iter::successors(behind.next(), |op| op.next()) {
            op.walk(&mut |op| {
                for value in op.operands().filter(|value| is_before(*value, behind)) {
                    found.visit(value);
                }
                Walk::Advance
            });
        }
        Some(Self { behind, ops: found.ops })
    }
}

/// Whether `value` is a result of an operation before `behind`, which is in the last block of a function.
fn is_before<'c>(value: Value<'c>, behind: Op<'c>) -> bool {
    value.def_op().is_some_and(|op| {
        op.parent() == behind.parent() && (op.block() != behind.block() || op.is_before_in_block(behind))
    })
}

struct Finder<'c> {
    used_inside: FastSet<Value<'c>>,
    /// Whether a value takes no register throughout the loop, or would take one anyway.
    known: FastMap<Value<'c>, bool>,
    ops: Vec<Op<'c>>,
}

impl<'c> Finder<'c> {
    /// Lists what computes `value` again; whether all that this takes is there behind the loop.
    fn visit(&mut self, value: Value<'c>) -> bool {
        if let Some(known) = self.known.get(&value) {
            return *known;
        }
        let is_there = value.ty().as_tensor().is_none() || self.used_inside.contains(&value);
        let free = is_there || value.def_op().is_some_and(|op| self.compute(op));
        self.known.insert(value, free);
        free
    }

    fn compute(&mut self, op: Op<'c>) -> bool {
        let again = computes_indices(op) && op.operands().all(|operand| self.visit(operand));
        if again && ConstantOp::cast(op).is_none() {
            self.ops.push(op);
        }
        again
    }
}

/// Whether `op` makes a tensor of pointers or integers of its operands and the number of the thread alone, quickly.
fn computes_indices(op: Op<'_>) -> bool {
    let is_index = |value: Value<'_>| {
        let element = value.ty().as_tensor().map(|ty| ty.element());
        element.is_some_and(|ty| ty.int_bits().is_some() || pointee(ty).is_some())
    };
    let is_cheap = match_op!(op, {
        MakeRangeOp | SplatOp | ExpandDimsOp | BroadcastOp | AddPtrOp => true,
        ConstantOp | AddIOp | SubIOp | MulIOp | AndIOp | OrIOp | XOrIOp | ShLIOp | CmpIOp => true,
        ExtSIOp | ExtUIOp | TruncIOp => true,
        _ => false,
    });
    is_cheap && op.results().all(is_index)
}
