//! Operands that are read from shared memory to registers an iteration before they are multiplied.
//!
//! Threads that read operands of a dot themselves wait for copies and for each other when an iteration begins, and then for
//! shared memory: the assembler takes no read across a barrier, so nothing multiplies meanwhile. Here the dots of an iteration
//! are taken apart along K. What the first part of the first dot multiplies is read behind the wait in the iteration before,
//! where the last part of the last dot still multiplies.
//!
//! [`ReadAhead`] says which dots have how many parts; it is made from the loop and its schedule. The loop is then put in that
//! form, of which the planner makes a schedule ([`LoopSchedule::reading_ahead`]).

use super::past_registers::part_of;
use super::plan::{Budget, Kind, LoopSchedule};
use super::source::{Action, Refusal, Source, body, is_read_within, parts_along_k};
use crate::analysis::registers::{free_registers, knows_ctas, tensor_words, waves_together};
use crate::buffer_plans::{self, COPY_BYTES};
use crate::ir_util::viewed;
use crate::machine::internal;
use linear_layout::Encoding;
use linear_layout::target::{Direction, TargetDesc};
use mlir_host::asm::Reported;
use mlir_host::ir::{Op, Type, Value};
use mlir_host::rewrite::IrRewriter;
use ttopt_dialect::amdg::ops::ExtractSliceOp;
use ttopt_dialect::tt::ops::{DotOp, LoadOp};
use ttopt_dialect::ttg::attrs::encoding;
use ttopt_dialect::ttg::ops::{LocalAllocOp, LocalLoadOp, MemDescSubsliceOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;

/// Where nobody would expect that operands are read ahead.
const UNEXPECTED: Refusal = "";
/// Registers of an address.
const ADDRESS_WORDS: u64 = 2;
/// What parts may take in place of the whole, for which reads share less.
const NO_SLOWER: f64 = 1.05;

/// Where an operand of a dot comes from.
#[derive(Clone, Copy)]
enum Operand<'c> {
    /// It is read from a slot of a ring, from a buffer that threads fill in the iteration, or a view of either; the type of what it is read from.
    Read(LocalLoadOp<'c>, MemDescType<'c>),
    /// It is read from a ring in which it lies as in memory; the type of a slot.
    Loaded(Value<'c>, MemDescType<'c>),
    /// It is in registers.
    Held(Value<'c>),
}

/// A dot in parts along K, of which at least one operand is read from a ring.
struct Parts<'c> {
    dot: DotOp<'c>,
    operands: [Operand<'c>; 2],
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
    /// Registers of a thread for the operands of the first one.
    words: u64,
    /// Registers that a thread has free where the next iteration's operands are read.
    free: u64,
}

impl<'c> ReadAhead<'c> {
    /// Of the loop of `source`, whose schedule is `schedule` so far.
    ///
    /// # Errors
    /// Why nothing is read ahead; empty where nobody would expect that.
    pub fn of(
        source: &Source<'c>,
        schedule: &LoopSchedule,
        budget: &Budget,
        target: &TargetDesc,
    ) -> Result<Self, Refusal> {
        let nodes = &source.graph.nodes;
        let asks = nodes.iter().any(|node| node.asked.is_some() || node.cluster.is_some());
        if schedule.halves || schedule.is_prologue_ahead() || asks {
            return Err(UNEXPECTED);
        }
        let dots: Vec<usize> = (0..nodes.len()).filter(|n| nodes[*n].heavy).collect();
        let (Some(first), Some(last)) = (dots.first().copied(), dots.last().copied()) else {
            return Err(UNEXPECTED);
        };
        if ![first, last].iter().all(|n| dot_of_warps(source, *n).is_some()) {
            return Err(UNEXPECTED);
        }
        let fills = |kind| nodes.iter().any(|node| node.writes.is_some() && node.kind == kind);
        if fills(Kind::BulkCopy) || fills(Kind::Copy) && fills(Kind::Fill) {
            return Err("not all of its rings are filled by copies that are counted in groups");
        }
        // Behind the wait for the next iteration's operands copies begin, to slots that this one has read.
        if fills(Kind::Copy) && schedule.depths.contains(&1) {
            return Err("a ring has a single slot");
        }
        if (last..nodes.len()).any(|n| !nodes[n].reads.is_empty()) {
            return Err("rings are read behind its last dot");
        }
        let first_parts = Parts::of(source, first, target)?;
        let last_parts = (last != first).then(|| Parts::of(source, last, target)).transpose()?;
        let is_outside = |value: Value<'c>| {
            let block = value.arg_block().or_else(|| value.def_op()?.block());
            block != source.op.region(0).first_block()
        };
        let in_ring = |operand: &Operand<'c>| match operand {
            Operand::Read(read, _) => source.buffers.contains_key(&viewed(read.src())),
            Operand::Loaded(..) => true,
            Operand::Held(value) => is_outside(*value),
        };
        if !first_parts.operands.iter().all(in_ring) {
            return Err("an operand of its first dot is computed in the iteration");
        }
        // What is read ahead waits beside the last part of the last dot. Each copy has an address, of which tensors say nothing.
        let copies = source.graph.copied_bytes() / (COPY_BYTES * budget.threads).max(1);
        let words = first_parts.words() + ADDRESS_WORDS * copies;
        let dots = (first_parts.dot.op(), last_parts.as_ref().unwrap_or(&first_parts).dot.op());
        // What was loaded to registers so far is counted as a whole, and read in parts.
        let all = std::iter::once(&first_parts).chain(&last_parts);
        let loaded: u64 = all.map(Parts::loaded_words).min().unwrap_or(0);
        let rings = schedule.shared_bytes(&source.graph);
        let warps = if knows_ctas(target) {
            source.warps * budget.ctas_with(rings).max(1)
        } else {
            (source.warps * budget.programs_with(rings)).min(waves_together(dots.0, target)).max(source.warps)
        };
        let free = free_registers(dots.0, dots.1, warps, target);
        if words > free + loaded {
            return Err("there are no registers for it");
        }
        let (words, free) = (first_parts.words() * first_parts.count.unsigned_abs(), free + loaded);
        Ok(Self { around: source.op, first: first_parts, last: last_parts, words, free })
    }

    /// The buffers of the loop of `source` that threads fill in each iteration with operands of its first dot as they were loaded, where
    /// none of these are in a ring so far.
    pub fn stored(source: &Source<'c>) -> Vec<Op<'c>> {
        let nodes = &source.graph.nodes;
        let dot = (0..nodes.len()).find(|n| nodes[*n].heavy).and_then(|n| dot_of_warps(source, n));
        let (Some(dot), Some((block, _))) = (dot, body(source.op)) else { return Vec::new() };
        let read = [dot.a(), dot.b()].into_iter().filter_map(LocalLoadOp::defining);
        let buffers: Vec<Op<'c>> = read.filter_map(|read| viewed(read.src()).def_op()).collect();
        let is_loaded = |op: &Op<'c>| {
            let from = LocalAllocOp::cast(*op).and_then(|alloc| alloc.src());
            from.is_some_and(|from| LoadOp::defining(from).is_some())
        };
        if buffers.iter().any(|op| source.buffers.contains_key(&op.result(0)) || !is_loaded(op)) {
            return Vec::new();
        }
        buffers.into_iter().filter(|op| op.block() == Some(block) && is_read_within(*op, block)).collect()
    }

    /// Whether a thread has registers for all that the first dot multiplies.
    pub fn holds_all(&self) -> bool {
        self.words <= self.free
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

impl<'c> Operand<'c> {
    /// Of `value`, an operand of `dot`.
    fn of(value: Value<'c>, dot: DotOp<'c>, source: &Source<'c>) -> Self {
        if value.uses().count() != 1 {
            return Self::Held(value);
        }
        let ring = source.actions.iter().find_map(|action| match action {
            Action::Read(load, ring) if load.result(0) == value => Some(*ring),
            _ => None,
        });
        if let Some(slot) = ring.and_then(|ring| source.slots[ring].first()) {
            let slot = MemDescType::new(&slot.shape(), slot.element(), slot.encoding(), slot.space(), false);
            return slot.map_or(Self::Held(value), |slot| Self::Loaded(value, slot));
        }
        let read = LocalLoadOp::defining(value)
            .filter(|read| read.token().is_none() && read.op().block() == dot.op().block())
            .filter(|read| {
                let buffer = viewed(read.src());
                let filled = |op: Op<'c>| dot.op().block().is_some_and(|block| is_read_within(op, block));
                source.buffers.contains_key(&buffer) || buffer.def_op().is_some_and(filled)
            });
        // A ring may have another layout than the buffer whose place it takes.
        let from = |read: LocalLoadOp<'c>| match source.buffers.get(&read.src()) {
            Some((ring, part)) => source.slots[*ring].get(*part).copied(),
            None => MemDescType::cast(read.src().ty()),
        };
        read.and_then(|read| Some(Self::Read(read, from(read)?))).unwrap_or(Self::Held(value))
    }

    fn held(&self) -> Option<Value<'c>> {
        if let Self::Held(value) = self { Some(*value) } else { None }
    }
}

/// The dot that node `n` of `source` is, if its result is in fragments of instructions that a warp issues.
fn dot_of_warps<'c>(source: &Source<'c>, n: usize) -> Option<DotOp<'c>> {
    let Action::Op(op) = source.actions[n] else { return None };
    let dot = DotOp::cast(op).filter(|_| op.block() == source.op.region(0).first_block())?;
    let layout = encoding(dot.d().ty().as_tensor()?.encoding()?).ok()?;
    matches!(layout, Encoding::NvidiaMma(_) | Encoding::AmdMfma(_) | Encoding::AmdWmma(_)).then_some(dot)
}

impl<'c> Parts<'c> {
    /// Of node `n` of `source`, in the smallest parts that are read in no more cycles than the whole.
    fn of(source: &Source<'c>, n: usize, target: &TargetDesc) -> Result<Self, Refusal> {
        let dot = dot_of_warps(source, n).ok_or(UNEXPECTED)?;
        if dot.max_num_imprecise_acc() != 0 {
            return Err("its dots are summed up in parts already");
        }
        let operands = [dot.a(), dot.b()].map(|value| Operand::of(value, dot, source));
        if operands.iter().all(|operand| operand.held().is_some()) {
            return Err("no operand of a dot is read from a ring as it is");
        }
        let made = |count| Self::with(operands, dot, count);
        let whole = made(1).and_then(|whole| whole.cycles(target)).ok_or("its operands have no parts")?;
        let as_fast = |parts: &Self| parts.cycles(target).is_some_and(|cycles| cycles <= NO_SLOWER * whole);
        let counts = (0..i64::BITS).map(|bits| 1i64 << bits);
        counts.map_while(made).filter(as_fast).last().ok_or("its operands have no parts")
    }

    fn with(operands: [Operand<'c>; 2], dot: DotOp<'c>, count: i64) -> Option<Self> {
        let types = parts_along_k(dot, count)?;
        let parts = Self { dot, operands, count, types };
        (0..2).all(|i| operands[i].held().is_some() || parts.buffer(i).is_some()).then_some(parts)
    }

    /// The dimension of operand `i` that is summed over.
    fn along(&self, i: usize) -> usize {
        self.types[i].as_tensor().map_or(0, |ty| ty.rank() - 1 - i)
    }

    /// The type of a part of the buffer that operand `i` is read from.
    fn buffer(&self, i: usize) -> Option<MemDescType<'c>> {
        let whole = match self.operands[i] {
            Operand::Read(_, from) | Operand::Loaded(_, from) => from,
            Operand::Held(_) => return None,
        };
        if self.count == 1 { Some(whole) } else { part_of(whole, &self.types[i].as_tensor()?.shape()) }
    }

    /// Cycles in which all parts of both operands are read.
    fn cycles(&self, target: &TargetDesc) -> Option<f64> {
        let read = |i: usize| {
            if self.operands[i].held().is_some() {
                return Some(0.0);
            }
            let plan = buffer_plans::access(self.types[i], self.buffer(i)?, Direction::Load, target).ok()?;
            Some(plan.access.cycles(target) * self.count as f64)
        };
        Some(read(0)? + read(1)?)
    }

    /// Registers of a thread for what is read of a part.
    fn words(&self) -> u64 {
        let values = [self.dot.a(), self.dot.b()].into_iter().zip(&self.operands);
        let read = values.filter(|(_, operand)| operand.held().is_none());
        read.map(|(value, _)| tensor_words(value) / self.count.unsigned_abs()).sum()
    }

    /// Registers of operands that were loaded to registers so far, all parts but one.
    fn loaded_words(&self) -> u64 {
        let words = |operand: &Operand<'c>| match operand {
            Operand::Loaded(value, _) => {
                tensor_words(*value) - tensor_words(*value) / self.count.unsigned_abs()
            }
            _ => 0,
        };
        self.operands.iter().map(words).sum()
    }

    /// Makes a dot of each part, right behind what reads it; gives the reads of the first one.
    fn apply(self, rewriter: &mut IrRewriter<'c>) -> Result<Vec<Op<'c>>, Reported> {
        let (dot, mut sum) = (self.dot.op(), self.dot.c());
        rewriter.set_before(dot);
        // What was loaded to registers so far is read from a buffer, whose place a ring takes.
        let mut buffers: [Option<Value<'c>>; 2] = [None; 2];
        for (operand, buffer) in self.operands.iter().zip(&mut buffers) {
            *buffer = match operand {
                Operand::Held(_) => None,
                Operand::Read(read, _) => Some(read.src()),
                Operand::Loaded(value, slot) => {
                    let made = LocalAllocOp::build(dot.loc()).src(Some(*value)).results(&[slot.ty()]);
                    Some(made.insert(rewriter)?.result())
                }
            };
        }
        let mut first = Vec::new();
        for part in 0..self.count {
            let mut operands = Vec::new();
            for (i, buffer) in buffers.iter().enumerate() {
                let made = match buffer {
                    None => self.slice(i, part, rewriter)?,
                    Some(buffer) => self.read(i, *buffer, part, rewriter)?,
                };
                first.extend(made.def_op().filter(|_| part == 0 && buffer.is_some()));
                operands.push(made);
            }
            operands.push(sum);
            let made = rewriter.clone_op(dot);
            made.set_operands(&operands);
            sum = made.result(0);
        }
        dot.result(0).replace_all_uses_with(sum);
        dot.erase();
        for operand in self.operands {
            if let Operand::Read(read, _) = operand {
                erase_unused(read.op());
            }
        }
        Ok(first)
    }

    /// Where a part of operand `i` begins.
    fn offsets(&self, i: usize, part: i64) -> Vec<i64> {
        let shape = self.types[i].as_tensor().map(|ty| ty.shape().to_vec()).unwrap_or_default();
        let along = self.along(i);
        (0..shape.len()).map(|dim| if dim == along { shape[dim] * part } else { 0 }).collect()
    }

    /// A part of operand `i`, which is in registers.
    fn slice(&self, i: usize, part: i64, rewriter: &mut IrRewriter<'c>) -> Result<Value<'c>, Reported> {
        let whole = if i == 0 { self.dot.a() } else { self.dot.b() };
        if self.count == 1 {
            return Ok(whole);
        }
        let made = ExtractSliceOp::build(self.dot.op().loc(), whole, self.offsets(i, part));
        Ok(made.results(&[self.types[i]]).insert(rewriter)?.result())
    }

    /// A read of a part of operand `i` from `buffer`, through views of its own.
    fn read(
        &self,
        i: usize,
        buffer: Value<'c>,
        part: i64,
        rewriter: &mut IrRewriter<'c>,
    ) -> Result<Value<'c>, Reported> {
        let dot = self.dot.op();
        let (mut views, mut at) = (Vec::new(), buffer);
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
            let shape = self.types[i].as_tensor().map(|ty| ty.shape());
            let ty = MemDescType::cast(at.ty()).zip(shape).and_then(|(ty, shape)| {
                let (element, layout, alloc) = (ty.element(), ty.encoding(), ty.alloc_shape());
                MemDescType::view(&shape, element, layout, ty.space(), ty.mutable(), &alloc)
            });
            let ty = ty.ok_or_else(|| internal(dot, "a part of a buffer that is none"))?;
            let offsets = self.offsets(i, part).into_iter().map(i32::try_from).collect::<Result<Vec<_>, _>>();
            let offsets =
                offsets.map_err(|_| internal(dot, "a part of a buffer begins beyond all memory"))?;
            let made = MemDescSubsliceOp::build(dot.loc(), at, offsets).results(&[ty.ty()]);
            at = made.insert(rewriter)?.result();
        }
        Ok(LocalLoadOp::build(dot.loc(), at).results(&[self.types[i]]).insert(rewriter)?.result())
    }
}

/// Erases `op`, and the views that it alone used, where nothing uses it.
fn erase_unused(op: Op<'_>) {
    let mut open = Some(op);
    while let Some(op) = open.filter(|op| op.results().all(|result| result.is_unused())) {
        open = op.operand(0).def_op().filter(|op| is_memdesc_view(*op));
        op.erase();
    }
}
