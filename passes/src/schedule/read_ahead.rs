//! Operands that are read from shared memory to registers an iteration before they are multiplied.
//!
//! Threads that read operands of a dot themselves wait for copies and for each other when an iteration begins, and then for
//! shared memory: the assembler takes no read across a barrier, so nothing multiplies meanwhile. Here the dots of an iteration
//! are taken apart along K. What the first part of the first dot multiplies is read behind the wait in the iteration before,
//! where the last part of the last dot still multiplies.
//!
//! [`ReadAhead`] says which dots have how many parts; it is made from the loop and its schedule. The loop is then put in that
//! form, of which the planner makes a schedule ([`LoopSchedule::reading_ahead`](super::plan::LoopSchedule::reading_ahead)).

use super::plan::{Budget, COPY_BYTES, Kind, LoopSchedule};
use super::source::{Action, Refusal, Source, parts_along_k};
use crate::analysis::registers::{free_registers, tensor_words};
use crate::buffer_plans;
use crate::machine::internal;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::asm::Reported;
use mlir_host::ir::{Op, Type, Value};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::tt::ops::DotOp;
use ttopt_dialect::ttg::is_cut_between_tiles;
use ttopt_dialect::ttg::ops::{LocalLoadOp, MemDescSubsliceOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;

/// Registers of an address.
const ADDRESS_WORDS: u64 = 2;
/// What parts may take in place of the whole, for which reads share less.
const NO_SLOWER: f64 = 1.05;

/// A dot whose operands are read from rings, in parts along K.
struct Parts<'c> {
    dot: DotOp<'c>,
    reads: [LocalLoadOp<'c>; 2],
    /// How many parts, a power of two.
    count: i64,
    /// The types of a part of each operand.
    types: [Type<'c>; 2],
}

/// Which dots of a loop are taken apart so that operands can be read an iteration ahead.
pub struct ReadAhead<'c> {
    around: Op<'c>,
    first: Parts<'c>,
    /// The last dot, where that is another one.
    last: Option<Parts<'c>>,
}

impl<'c> ReadAhead<'c> {
    /// Of the loop of `source`, whose schedule is `schedule` so far.
    ///
    /// # Errors
    /// Why nothing is read ahead.
    pub fn of(
        source: &Source<'c>,
        schedule: &LoopSchedule,
        budget: &Budget,
        target: &TargetDesc,
    ) -> Result<Self, Refusal> {
        let nodes = &source.graph.nodes;
        if schedule.halves || schedule.is_prologue_ahead() {
            return Err("halves of its warps, or tiles, overlap");
        }
        if nodes.iter().any(|node| node.writes.is_some() && node.kind != Kind::Copy) {
            return Err("not all of its rings are filled by copies that are counted in groups");
        }
        let dots: Vec<usize> = (0..nodes.len()).filter(|n| nodes[*n].heavy).collect();
        let (Some(first), Some(last)) = (dots.first().copied(), dots.last().copied()) else {
            return Err("nothing is multiplied in it");
        };
        // Behind the wait for the next iteration's operands copies begin, to slots that this one has read.
        if schedule.depths.contains(&1) {
            return Err("a ring has a single slot");
        }
        if (last..nodes.len()).any(|n| !nodes[n].reads.is_empty()) {
            return Err("rings are read behind its last dot");
        }
        let first_parts = Parts::of(source, first, target)?;
        let last_parts = (last != first).then(|| Parts::of(source, last, target)).transpose()?;
        // What is read ahead waits beside the last part of the last dot.
        let words: u64 = first_parts.words();
        let ctas = budget.ctas_with(schedule.shared_bytes(&source.graph)).max(1);
        // Each copy has an address, of which tensors say nothing.
        let copies = source.graph.copied_bytes() / (COPY_BYTES * budget.threads).max(1);
        let words = words + ADDRESS_WORDS * copies;
        if words > free_registers(source.op, source.warps * ctas, target) {
            return Err("there are no registers for it");
        }
        Ok(Self { around: source.op, first: first_parts, last: last_parts })
    }

    /// Takes the dots apart; gives the reads that are to run an iteration ahead.
    ///
    /// # Errors
    /// When an operation cannot be made; it is reported.
    pub fn apply(self) -> Result<Vec<Op<'c>>, Reported> {
        let mut rewriter = IrRewriter::new(self.around.context());
        if let Some(last) = self.last {
            last.apply(&mut rewriter)?;
        }
        self.first.apply(&mut rewriter)
    }
}

impl<'c> Parts<'c> {
    /// Of node `n` of `source`, in the smallest parts that are read in no more cycles than the whole.
    fn of(source: &Source<'c>, n: usize, target: &TargetDesc) -> Result<Self, Refusal> {
        let dot = match source.actions[n] {
            Action::Op(op) => {
                DotOp::cast(op).filter(|dot| dot.op().block() == source.op.region(0).first_block())
            }
            _ => None,
        };
        let dot = dot.ok_or("its dots run beside the program, or scale their operands")?;
        if dot.max_num_imprecise_acc() != 0 {
            return Err("its dots are summed up in parts already");
        }
        let read = |value: Value<'c>| {
            let read = LocalLoadOp::defining(value).filter(|read| read.token().is_none())?;
            let only = value.uses().count() == 1 && read.op().block() == dot.op().block();
            (only && source.buffers.contains_key(&root(read.src()))).then_some(read)
        };
        let reads = [read(dot.a()), read(dot.b())];
        let [Some(a), Some(b)] = reads else {
            return Err("not all operands are read from rings as they are");
        };
        let made = |count| Self::with([a, b], dot, count);
        let whole = made(1).and_then(|whole| whole.cycles(target)).ok_or("its operands have no parts")?;
        let as_fast = |parts: &Self| parts.cycles(target).is_some_and(|cycles| cycles <= NO_SLOWER * whole);
        let counts = (0..i64::BITS).map(|bits| 1i64 << bits);
        let all = counts.map_while(made);
        all.filter(as_fast).last().ok_or("its operands have no parts")
    }

    fn with(reads: [LocalLoadOp<'c>; 2], dot: DotOp<'c>, count: i64) -> Option<Self> {
        let types = parts_along_k(dot, count)?;
        let parts = Self { dot, reads, count, types };
        (0..2).all(|i| parts.buffer(i).is_some()).then_some(parts)
    }

    /// The dimension of operand `i` that is summed over.
    fn along(&self, i: usize) -> usize {
        self.types[i].as_tensor().map_or(0, |ty| ty.rank() - 1 - i)
    }

    /// The type of a part of the buffer that operand `i` is read from.
    fn buffer(&self, i: usize) -> Option<MemDescType<'c>> {
        let whole = MemDescType::cast(self.reads[i].src().ty())?;
        if self.count == 1 {
            return Some(whole);
        }
        let shape = self.types[i].as_tensor()?.shape();
        let fits = shape.len() == whole.rank() && is_cut_between_tiles(whole, &shape);
        let alloc = whole.alloc_shape();
        let part = MemDescType::view(
            &shape,
            whole.element(),
            whole.encoding(),
            whole.space(),
            whole.mutable(),
            &alloc,
        );
        part.filter(|_| fits)
    }

    /// Cycles in which all parts of both operands are read.
    fn cycles(&self, target: &TargetDesc) -> Option<f64> {
        let read = |i: usize| {
            let plan = buffer_plans::access(self.types[i], self.buffer(i)?, Direction::Load, target).ok()?;
            Some(plan.access.cycles(target) * self.count as f64)
        };
        Some(read(0)? + read(1)?)
    }

    /// Registers of a thread for a part of both operands.
    fn words(&self) -> u64 {
        self.reads.iter().map(|read| tensor_words(read.result()) / self.count.unsigned_abs()).sum()
    }

    /// Makes a dot of each part, right behind what reads it; gives the reads of the first one.
    fn apply(self, rewriter: &mut IrRewriter<'c>) -> Result<Vec<Op<'c>>, Reported> {
        let (dot, mut sum) = (self.dot.op(), self.dot.c());
        let mut first = Vec::new();
        rewriter.set_before(dot);
        for part in 0..self.count {
            let mut operands = Vec::new();
            for i in 0..2 {
                let read = self.read(i, part, rewriter)?;
                first.extend((part == 0).then_some(read));
                operands.push(read.result(0));
            }
            operands.push(sum);
            let made = rewriter.clone_op(dot);
            made.set_operands(&operands);
            sum = made.result(0);
        }
        dot.result(0).replace_all_uses_with(sum);
        dot.erase();
        for read in self.reads {
            erase_unused(read.op());
        }
        Ok(first)
    }

    /// A read of a part of operand `i`, through views of its own.
    fn read(&self, i: usize, part: i64, rewriter: &mut IrRewriter<'c>) -> Result<Op<'c>, Reported> {
        let old = self.reads[i];
        let mut views = Vec::new();
        let mut at = old.src();
        while let Some(view) = at.def_op().filter(|op| is_memdesc_view(*op)) {
            views.push(view);
            at = view.operand(0);
        }
        for view in views.into_iter().rev() {
            let made = rewriter.clone_op(view);
            made.set_operand(0, at);
            at = made.result(0);
        }
        if self.count > 1 {
            let ty = self.buffer(i).ok_or_else(|| internal(old.op(), "a part of a buffer that is none"))?;
            let mut offsets = vec![0; ty.rank()];
            let size = ty.shape()[self.along(i)];
            offsets[self.along(i)] = i32::try_from(size * part)
                .map_err(|_| internal(old.op(), "a part of a buffer begins beyond all memory"))?;
            at = MemDescSubsliceOp::build(old.op().loc(), at, offsets)
                .results(&[ty.ty()])
                .insert(rewriter)?
                .result();
        }
        Ok(LocalLoadOp::build(old.op().loc(), at).results(&[self.types[i]]).insert(rewriter)?.op())
    }
}

/// The buffer that `value` is a view of.
fn root(mut value: Value<'_>) -> Value<'_> {
    while let Some(view) = value.def_op().filter(|op| is_memdesc_view(*op)) {
        value = view.operand(0);
    }
    value
}

/// Erases `op`, and the views that it alone used, where nothing uses it.
fn erase_unused(op: Op<'_>) {
    let mut open = Some(op);
    while let Some(op) = open.filter(|op| op.results().all(|result| result.is_unused())) {
        open = op.operand(0).def_op().filter(|op| is_memdesc_view(*op));
        op.erase();
    }
}
