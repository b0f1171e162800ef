//! Removes iter_args, and other values passed through control flow, that nothing needs.
//!
//! When a loop carries a value in a second layout, the first one may be left as an iter_arg from which only its own next
//! value is computed. It has a use in every iteration, so that looking for values without uses does not find it. Live is
//! what operations with effects use, and what that is computed from, backward through control flow; iter_args, block
//! arguments and results that are not live are removed with all that computes them.

use crate::ir_util::{for_each_edge, incoming, remake};
use mlir_host::asm::Reported;
use mlir_host::flow::twins;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, Region, Type, Value, Walk};
use mlir_host::pass::PassResult;
use mlir_host::upstream::{WhileOp, is_branch, is_structured};
use smallvec::SmallVec;
use std::ops::Range;
use ttopt_dialect::tt::ops::LoadOp;

#[cfg(test)]
mod tests;

/// Whether `op` is gone with its results.
pub(super) fn is_removable(op: Op<'_>) -> bool {
    let load = || LoadOp::cast(op).is_some_and(|load| !load.is_volatile());
    op.num_results() > 0 && (op.is_pure() || load())
}

/// Removes iter_args, block arguments and results that are not live from a module that has `ops`; whether
/// there was such. Otherwise the module stays as it is.
///
/// To be called where no operation without regions is unused.
///
/// # Errors
/// When an operation cannot be made; it is reported.
pub fn remove_dead_carried<'c>(module: Op<'c>, ops: &[Op<'c>]) -> Result<bool, Reported> {
    if !ops.iter().any(|op| may_carry_dead(*op)) {
        return Ok(false);
    }
    let mut liveness = Liveness::default();
    liveness.visit(module);
    liveness.spread();
    liveness.sweep()
}

/// Whether `op` has results that control flow makes and nobody uses, or carries values that are no results.
fn may_carry_dead(op: Op<'_>) -> bool {
    // What a loop with a condition passes to its second region is no result.
    WhileOp::cast(op).is_some()
        || is_structured(op) && op.results().any(Value::is_unused)
        || op.successors().any(|block| block.num_args() > 0)
}

#[derive(Default)]
struct Liveness<'c> {
    alive: FastSet<Value<'c>>,
    /// Values that are alive; what they are computed from is not looked at yet.
    pending: Vec<Value<'c>>,
    /// Operations that go with their results.
    removable: Vec<Op<'c>>,
    /// Operations that pass values on, those around others first.
    passing: Vec<Op<'c>>,
    /// Whether all that passes values to a block is known.
    known: FastMap<Block<'c>, bool>,
}

impl<'c> Liveness<'c> {
    /// Finds the values that operations in `op` use whatever becomes of their own results.
    fn visit(&mut self, op: Op<'c>) {
        for op in op.regions().flat_map(Region::blocks).flat_map(Block::ops) {
            let passed = self.passed(op);
            if !passed.is_empty() || is_structured(op) {
                self.passing.push(op);
            } else if is_removable(op) {
                self.removable.push(op);
                continue;
            }
            self.pending
                .extend(op.operands().enumerate().filter(|(i, _)| !passed.contains(i)).map(|(_, v)| v));
            self.visit(op);
        }
    }

    /// The operands that `op` passes to results or arguments.
    fn passed(&mut self, op: Op<'c>) -> Range<usize> {
        let mut from = op.num_operands();
        if is_structured(op) || op.parent().is_some_and(is_structured) || is_branch(op) {
            for_each_edge(op, &mut |i, _| from = from.min(i));
        }
        if !op.successors().all(|block| self.is_known(block)) {
            return 0..0;
        }
        from..op.num_operands()
    }

    fn is_known(&mut self, block: Block<'c>) -> bool {
        let known = || block.num_args() == 0 || incoming(block.arg(0)).is_some();
        *self.known.entry(block).or_insert_with(known)
    }

    /// What values that are alive are computed from is alive.
    fn spread(&mut self) {
        while let Some(value) = self.pending.pop() {
            if !self.alive.insert(value) {
                continue;
            }
            if let Some(incoming) = incoming(value) {
                self.pending.extend(incoming.iter().map(|(op, i)| op.operand(*i)));
                self.pending.extend(twins(value));
            } else if let Some(op) = value.def_op() {
                self.pending.extend(op.operands());
                op.regions().flat_map(Region::blocks).flat_map(Block::ops).for_each(|inner| {
                    inner.walk(&mut |inner| {
                        self.pending.extend(inner.operands());
                        Walk::Advance
                    });
                });
            }
        }
    }

    fn is_dead(&self, value: Value<'c>) -> bool {
        !self.alive.contains(&value)
    }

    /// Removes what is not live, if control flow passes any of it on; whether it does.
    fn sweep(&self) -> Result<bool, Reported> {
        let mut blocks: Vec<Block<'c>> = Vec::new();
        for op in &self.passing {
            blocks.extend(op.regions().filter(|_| is_structured(*op)).filter_map(Region::first_block));
        }
        blocks.extend(self.known.iter().filter(|(_, known)| **known).map(|(block, _)| *block));
        // An induction variable is not carried.
        let is_dead = |arg: Value<'c>| self.is_dead(arg) && incoming(arg).is_some();
        let dead_args = |block: &Block<'c>| -> SmallVec<[usize; 4]> {
            (0..block.num_args()).filter(|i| is_dead(block.arg(*i))).collect()
        };
        let args: Vec<_> = blocks.iter().map(|block| (*block, dead_args(block))).collect();
        let shrunk = self.passing.iter().filter(|op| op.results().any(|result| self.is_dead(result)));
        let shrunk: Vec<Op<'c>> = shrunk.copied().collect();
        if shrunk.is_empty() && args.iter().all(|(_, dead)| dead.is_empty()) {
            return Ok(false);
        }
        for op in &self.passing {
            self.pass_less(*op);
        }
        let dead = self.removable.iter().filter(|op| op.results().all(|result| self.is_dead(result)));
        let dead: Vec<Op<'c>> = dead.copied().collect();
        for op in &dead {
            forget_operands(*op);
        }
        dead.into_iter().for_each(Op::erase);
        for (block, dead) in args {
            dead.into_iter().rev().for_each(|i| block.erase_arg(i));
        }
        // Those inside others first: their places move with those around them.
        shrunk.into_iter().rev().try_for_each(|op| self.shrink(op))?;
        Ok(true)
    }

    /// Takes from `op` the operands that it passes to values that are not alive.
    fn pass_less(&self, op: Op<'c>) {
        let mut dead: SmallVec<[bool; 8]> = SmallVec::from_elem(false, op.num_operands());
        for_each_edge(op, &mut |i, target| {
            let stays = target.arg_block().and_then(|block| self.known.get(&block)) == Some(&false);
            dead[i] = !stays && self.is_dead(target);
        });
        if !dead.contains(&true) {
            return;
        }
        let kept = op.operands().zip(&dead).filter(|(_, dead)| !**dead).map(|(operand, _)| operand);
        op.set_operands(&kept.collect::<Vec<_>>());
        let Some(sizes) = op.attr("operandSegmentSizes").and_then(Attr::as_i32_array) else { return };
        let mut dead = dead.into_iter();
        let alive = |size: &i32| dead.by_ref().take(*size as usize).filter(|dead| !dead).count() as i32;
        let sizes: Vec<i32> = sizes.iter().map(alive).collect();
        op.set_attr("operandSegmentSizes", Attr::i32_array(op.context(), &sizes));
    }

    /// Rebuilds `op` without the results that are not alive.
    fn shrink(&self, op: Op<'c>) -> PassResult {
        let kept: Vec<Value<'c>> = op.results().filter(|result| !self.is_dead(*result)).collect();
        let types: Vec<Type<'c>> = kept.iter().map(|result| result.ty()).collect();
        let operands: Vec<Value<'c>> = op.operands().collect();
        let made = remake(op, &operands, &types)?;
        for (old, new) in kept.into_iter().zip(made.results()) {
            old.replace_all_uses_with(new);
        }
        op.erase();
        Ok(())
    }
}

/// Takes the operands from `op` and all operations in it, which are to be erased.
fn forget_operands(op: Op<'_>) {
    op.walk(&mut |op| {
        op.set_operands(&[]);
        Walk::Advance
    });
}
