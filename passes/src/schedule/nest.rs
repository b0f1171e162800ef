//! Loops in loops over tiles: whether the prologue of the next tile can come behind the loop of this one, before what else is
//! done with it.
//!
//! The loop stays what it is. What its prologue needs of the next tile, as its number and pointers, is computed once more
//! before the end of this one. That is possible if it depends on nothing that this tile computes, and if nothing in the
//! loop around could tell that loads of the next tile come before stores of this one.

use super::plan::{Kind, LoopSchedule};
use super::source::{Action, Refusal, Source, Written, body, is_division, is_harmless};
use crate::analysis::pointer_roots::descriptor_roots;
use crate::analysis::registers::{ctas_together, knows_ctas};
use crate::ir_util::{enclosing_function, is_loop, operands_within, programs_of_tiles};
use crate::shared_memory::effects::is_store_by_tma;
use linear_layout::target::TargetDesc;
use mlir_host::hash::FastSet;
use mlir_host::ir::{Block, Op, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::LoadOp;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalDeallocOp, LocalLoadOp, LocalStoreOp};
use ttopt_dialect::ttng::ops::{
    FenceAsyncSharedOp, InitBarrierOp, InvalBarrierOp, TmaStoreWaitOp, WarpGroupDotWaitOp,
};

/// The attribute with which Triton asks for the loops of a nest to overlap.
pub const FLATTEN: &str = "tt.flatten";

/// A loop that has a loop with a schedule in it.
pub struct Nest<'c> {
    /// The loop around.
    pub outer: Op<'c>,
    /// Its body.
    pub block: Block<'c>,
    /// What the prologue needs of the body before the loop, in the order of the program.
    pub before: Vec<Op<'c>>,
    /// Values of the loop around of which it needs the next ones: the numbers of iter_args.
    pub args: Vec<usize>,
}

/// The loop around a loop, with its body.
pub fn around(op: Op<'_>) -> Option<(Op<'_>, Block<'_>)> {
    let outer = op.parent().filter(|outer| ForOp::cast(*outer).is_some())?;
    Some((outer, body(outer)?.0))
}

/// Whether a CTA that runs `op` is known to have its multiprocessor to itself, but for shared memory: it goes over tiles in steps of
/// the number of programs, or its warps have no registers for another one.
pub fn is_alone(op: Op<'_>, warps: u64, target: &TargetDesc) -> bool {
    let function = enclosing_function(op).unwrap_or(op);
    let mut outer = std::iter::successors(op.parent(), |op| op.parent());
    let by_tiles = outer.any(|op| programs_of_tiles(op, target) == Some(1));
    by_tiles || knows_ctas(target) && ctas_together(function, warps, 0, target) < 2
}

impl<'c> Nest<'c> {
    /// The nest of the loop of `source`, which `schedule` is for.
    ///
    /// # Errors
    /// Why its prologue stays where it is.
    pub fn of(source: &Source<'c>, schedule: &LoopSchedule) -> Result<Self, Refusal> {
        let (outer, block) = around(source.op).ok_or("no loop over tiles is around it")?;
        let mut reason = None;
        outer.walk(&mut |op| {
            if op == source.op {
                return Walk::Skip;
            }
            if op != outer && is_loop(op) {
                reason = Some("another loop is beside it");
            } else if op != outer && !is_harmless(op) && !is_local(op) {
                reason = Some("what is around it writes memory, or waits");
            }
            if reason.is_some() { Walk::Stop } else { Walk::Advance }
        });
        if let Some(reason) = reason {
            return Err(reason);
        }
        let ends = source.op.results().zip(source.yielded());
        let is_dot = |value: &Value<'c>| {
            source.makers.get(value).is_some_and(|n| source.graph.nodes[*n].kind == Kind::Dot)
        };
        if ends.into_iter().any(|(result, value)| is_dot(&value) && result.is_unused()) {
            return Err("nothing uses what it multiplies");
        }
        let written = Written::of(outer);
        let mut nest =
            Closure { block, inner: source.op, written, seen: FastSet::default(), args: Vec::new() };
        for value in prologue_values(source, schedule) {
            nest.need(value)?;
        }
        nest.loads(source, schedule)?;
        let before = block.ops().filter(|op| nest.seen.contains(op)).collect();
        Ok(Nest { outer, block, before, args: nest.args })
    }

    /// What of the body of the loop around is computed twice.
    pub fn again(&self) -> impl Iterator<Item = Op<'c>> {
        self.before.iter().copied()
    }

    /// What comes behind the loop.
    pub fn behind(&self, inner: Op<'c>) -> impl Iterator<Item = Op<'c>> {
        std::iter::successors(inner.next(), |op| op.next())
    }
}

/// Whether `op` is about shared memory only, or waits for no more than what its own CTA has under way.
fn is_local(op: Op<'_>) -> bool {
    is_store_by_tma(op)
        || is_one_of!(op, LocalAllocOp | LocalDeallocOp | LocalLoadOp | LocalStoreOp)
        || is_one_of!(op, TmaStoreWaitOp | FenceAsyncSharedOp | WarpGroupDotWaitOp)
        || is_one_of!(op, InitBarrierOp | InvalBarrierOp)
}

/// What the prologue uses from outside of the loop.
fn prologue_values<'c>(source: &Source<'c>, schedule: &LoopSchedule) -> Vec<Value<'c>> {
    let inner = source.op.region(0).first_block();
    let mut values: Vec<Value<'c>> = source.op.operands().take(3).collect();
    // Barriers are those of slots.
    let is_barrier = |value: Value<'c>| source.bulks.iter().any(|bulk| bulk.barrier == value);
    for (n, action) in source.actions.iter().enumerate() {
        if schedule.ahead(n) == 0 {
            continue;
        }
        for op in action.ops(source) {
            for value in operands_within(op).into_iter().filter(|value| !is_barrier(*value)) {
                match value.index().checked_sub(1).filter(|_| value.arg_block() == inner) {
                    Some(arg) => values.push(source.op.operand(3 + arg)),
                    None => values.push(value),
                }
            }
        }
    }
    values
}

struct Closure<'c> {
    block: Block<'c>,
    inner: Op<'c>,
    written: Written<'c>,
    seen: FastSet<Op<'c>>,
    args: Vec<usize>,
}

impl<'c> Closure<'c> {
    /// Needs `value` for the next tile.
    fn need(&mut self, value: Value<'c>) -> Result<(), Refusal> {
        let mut open = vec![value];
        while let Some(value) = open.pop() {
            if value.arg_block() == Some(self.block) {
                self.need_next(value)?;
                continue;
            }
            let made = value.def_op().filter(|op| op.block() == Some(self.block));
            let Some(op) = made.filter(|op| self.seen.insert(*op)) else { continue };
            let is_load = LoadOp::cast(op).is_some_and(|load| !load.is_volatile());
            if is_load && self.written.may_be(op.operand(0)) {
                return Err("what it loads ahead for the next tile may be what this tile stores");
            }
            if !is_load && !op.is_pure() && !is_division(op) {
                return Err("where the next tile is depends on what is around it");
            }
            open.extend(operands_within(op));
        }
        Ok(())
    }

    /// Needs the next value of an iter_arg, which this tile must be able to tell before it is done.
    fn need_next(&mut self, value: Value<'c>) -> Result<(), Refusal> {
        let Some(arg) = value.index().checked_sub(1).filter(|arg| !self.args.contains(arg)) else {
            return Ok(());
        };
        self.args.push(arg);
        let end = self.block.terminator().ok_or("it has no end")?;
        let mut open = vec![end.operand(arg)];
        while let Some(value) = open.pop() {
            let made = value.def_op().filter(|op| op.block() == Some(self.block));
            let Some(op) = made.filter(|op| !op.is_before_in_block(self.inner)) else { continue };
            if !op.is_pure() || op == self.inner {
                return Err("where the next tile is depends on what this tile computes");
            }
            open.extend(operands_within(op));
        }
        Ok(())
    }

    /// Whether loads and copies that run ahead may pass what the loop around stores.
    fn loads(&self, source: &Source<'c>, schedule: &LoopSchedule) -> Result<(), Refusal> {
        let reads_written = |op: Op<'c>| match LoadOp::cast(op) {
            Some(_) => self.written.may_be(op.operand(0)),
            None => self.written.may_be_of(descriptor_roots(op.operand(0))),
        };
        let ahead = (0..source.actions.len()).filter(|n| schedule.ahead(*n) > 0);
        for action in ahead.map(|n| source.actions[n]) {
            let loads = match action {
                Action::Op(op) => LoadOp::cast(op).is_some(),
                Action::Copy(..) | Action::Bulk(..) => true,
                Action::Read(..) | Action::Fill(..) => false,
            };
            if loads && action.ops(source).into_iter().any(reads_written) {
                return Err("what it loads ahead for the next tile may be what this tile stores");
            }
        }
        Ok(())
    }
}
