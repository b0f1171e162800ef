//! Writes a schedule down: prologue, loop, and what is waited for behind it. Decides nothing.
//!
//! A value that is computed in one stage and used in a later one, or in the next iteration of the source, is carried
//! by iter_args, one for each iteration of the new loop between the two. Slots of rings are numbered by counters that
//! go round, one for each distance from the loop's own iteration.

use super::nest::Nest;
use super::plan::{Kind, LoopSchedule, Step};
use super::source::{Action, Source, body, divisions, is_division, parts_along_k};
use super::spread::SPREAD;
use crate::fence_insertion;
use crate::ir_util::{
    cmpi, compare, constant, is_outside, loop_predicate, operands_within, substitute, trip_count,
};
use crate::machine::internal;
use crate::shared_memory::barriers::HALVES;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Type, Value, Walk};
use mlir_host::pass::PassResult;
use mlir_host::rewrite::{IrRewriter, create, new_region};
use std::collections::hash_map::Entry;
use ttopt_dialect::amdg::ops::{
    AsyncTdmCopyGlobalToLocalOp, CondBarrierOp, ExtractSliceOp, UpdateTensorDescriptorOp,
};
use ttopt_dialect::tt::ops::{DescriptorLoadOp, DotOp, LoadOp};
use ttopt_dialect::ttg::enums::AddrSpace;
use ttopt_dialect::ttg::ops::{
    AsyncCommitGroupOp, AsyncCopyGlobalToLocalOp, AsyncWaitOp, BarrierOp, LocalDeallocOp, LocalStoreOp,
    MemDescSubsliceOp, WarpIdOp, is_memdesc_view,
};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::WarpGroupDotWaitOp;

mod masks;
mod nest;

type Made<T> = Result<T, Reported>;

/// Where something is loaded, its mask, and what stands for masked elements.
type Accessed<'c> = (Value<'c>, Option<Value<'c>>, Option<Value<'c>>);

/// What of a prologue is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    /// All of it.
    All,
    /// What is computed again right before the loop, where loads and copies have been issued before.
    Rest,
}

/// What a value of the source is in an iteration: of the prologue, or of the loop.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum When {
    /// Iteration of the source, in the prologue.
    Before(u32),
    /// What this iteration of the loop computes.
    Now,
}

/// Something that iter_args carry: what a value was in iterations of the loop before this one.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Carried<'c> {
    /// A result of an operation.
    Value(Value<'c>),
    /// An iter_arg of the source, by its number.
    Arg(usize),
}

struct Expansion<'a, 'c> {
    source: &'a Source<'c>,
    schedule: &'a LoopSchedule,
    rewriter: IrRewriter<'c>,
    /// The loop of the source.
    op: Op<'c>,
    block: Block<'c>,
    yielded: Vec<Value<'c>>,
    /// The parts of each ring, and the barriers of its slots where bulk copies fill them.
    rings: Vec<Vec<Value<'c>>>,
    barriers: FastMap<usize, Value<'c>>,
    /// What has been computed.
    made: FastMap<(Value<'c>, When), Value<'c>>,
    /// Iterations that each value is carried.
    lags: Vec<(Carried<'c>, u32)>,
    /// The iter_args of the new loop that carry something, the youngest first.
    args: FastMap<Carried<'c>, Vec<Value<'c>>>,
    /// Counters of slots, by the depth of the ring and the distance from the loop's iteration.
    counters: Vec<(u32, u32)>,
    counter_args: Vec<Value<'c>>,
    /// Depths of rings whose slots have barriers, and the phases of the iteration's.
    phases: Vec<u32>,
    phase_args: Vec<Value<'c>>,
    /// The induction variable, and whether the iteration exists, of each distance.
    indices: FastMap<u32, Value<'c>>,
    exists: FastMap<u32, Value<'c>>,
    /// Buffers of slots, by what they are a buffer of, and the distance.
    slots: FastMap<(Value<'c>, u32), Value<'c>>,
    /// The body of the new loop.
    kernel: Option<Block<'c>>,
    constants: FastMap<(Type<'c>, i64), Value<'c>>,
    /// What the first half of a dot gives, until the second one uses it.
    half: Option<Value<'c>>,
    /// The loop around, where the prologue comes behind the loop of the tile before.
    around: Option<nest::Around<'a, 'c>>,
    /// What values of the loop around are in the tile whose prologue is written, and whether there is that tile.
    env: FastMap<Value<'c>, Value<'c>>,
    tile_exists: Option<Value<'c>>,
    /// Counters and phases as the loop left them, for the prologue of the next tile.
    slot_results: Vec<Value<'c>>,
    /// Parts of masks in whose place there are others, larger ones before what they are made of.
    replaced: Vec<Op<'c>>,
}

/// Replaces the loop by one that follows its schedule; gives the new loop.
///
/// # Errors
/// When an operation cannot be made; it is reported.
pub fn expand<'c>(source: &Source<'c>, schedule: &LoopSchedule, nest: Option<&Nest<'c>>) -> Made<Op<'c>> {
    let op = source.op;
    let (block, end) = body(op).ok_or_else(|| internal(op, "a loop without a body has a schedule"))?;
    let mut expansion = Expansion {
        source,
        schedule,
        rewriter: IrRewriter::new(op.context()),
        op,
        block,
        yielded: end.operands().collect(),
        rings: Vec::new(),
        barriers: FastMap::default(),
        made: FastMap::default(),
        lags: Vec::new(),
        args: FastMap::default(),
        counters: Vec::new(),
        counter_args: Vec::new(),
        phases: Vec::new(),
        phase_args: Vec::new(),
        indices: FastMap::default(),
        exists: FastMap::default(),
        slots: FastMap::default(),
        kernel: None,
        constants: FastMap::default(),
        half: None,
        around: None,
        env: FastMap::default(),
        tile_exists: None,
        slot_results: Vec::new(),
        replaced: Vec::new(),
    };
    if let Some(nest) = nest.filter(|_| schedule.is_prologue_ahead()) {
        expansion.enter(nest);
    }
    expansion.run()
}

impl<'c> Expansion<'_, 'c> {
    fn run(&mut self) -> Made<Op<'c>> {
        self.allocate()?;
        self.find_lags();
        self.find_counters();
        if self.around.is_some() {
            self.prologue_of_nest()?;
        } else {
            self.rewriter.set_before(self.op);
            self.prologue(Part::All)?;
        }
        let nested = self.around.is_some();
        let second = if self.schedule.halves { Some(self.begin_halves()?) } else { None };
        let made = self.make_loop()?;
        if let Some(second) = second {
            self.end_halves(made, second)?;
        }
        self.finish(made)?;
        if !nested {
            self.forget_masks();
        }
        Ok(made)
    }

    fn last(&self) -> u32 {
        self.schedule.stages - 1
    }

    fn emit(&mut self, name: &str, args: &[Value<'c>], ty: Type<'c>) -> Made<Value<'c>> {
        Ok(self.rewriter.generic(name, self.op.loc(), args, &[ty], &[])?.result(0))
    }

    fn compare(&mut self, predicate: i64, a: Value<'c>, b: Value<'c>) -> Made<Value<'c>> {
        compare(&mut self.rewriter, self.op.loc(), predicate, a, b)
    }

    /// A constant, before the loop.
    fn number(&mut self, ty: Type<'c>, value: i64) -> Made<Value<'c>> {
        if let Some(known) = self.constants.get(&(ty, value)) {
            return Ok(*known);
        }
        let attrs = [("value", Attr::int_of(ty, value))];
        let made = create("arith.constant", self.op.loc(), &[], &[ty], &attrs, &[])?;
        let inside = self.kernel.and_then(Block::parent).filter(|_| self.around.is_none());
        made.move_before(inside.unwrap_or(self.anchor()));
        self.constants.insert((ty, value), made.result(0));
        Ok(made.result(0))
    }

    fn i32(&self) -> Type<'c> {
        Type::int(self.op.context(), 32)
    }

    fn allocate(&mut self) -> PassResult {
        let anchor = self.anchor();
        self.rewriter.set_before(anchor);
        for (ring, parts) in self.source.slots.iter().enumerate() {
            let depth = self.schedule.depths[ring];
            let parts = parts.iter().map(|slot| self.buffers(*slot, depth)).collect::<Made<_>>()?;
            self.rings.push(parts);
        }
        for action in &self.source.actions {
            if let Action::Bulk(bulk, ring) = action {
                self.make_barriers(self.source.bulks[*bulk].barrier, *ring)?;
            }
        }
        Ok(())
    }

    /// Memory for `depth` buffers like `slot`.
    fn buffers(&mut self, slot: MemDescType<'c>, depth: u32) -> Made<Value<'c>> {
        let mut shape = vec![i64::from(depth)];
        shape.extend(slot.shape());
        let ty = MemDescType::new(&shape, slot.element(), slot.encoding(), slot.space(), true)
            .ok_or_else(|| internal(self.op, format!("no ring has slots of {}", slot.ty())))?;
        self.emit("ttg.local_alloc", &[], ty.ty())
    }

    /// Barriers for the slots of a ring, instead of `old`.
    fn make_barriers(&mut self, old: Value<'c>, ring: usize) -> PassResult {
        let ty =
            MemDescType::cast(old.ty()).ok_or_else(|| internal(self.op, "a barrier that is no buffer"))?;
        let depth = self.schedule.depths[ring];
        let barriers = self.buffers(ty, depth)?;
        self.barriers.insert(ring, barriers);
        self.each_barrier(barriers, ty, depth, "ttng.init_barrier")
    }

    /// Puts an operation for each of the barriers of a ring.
    fn each_barrier(
        &mut self,
        barriers: Value<'c>,
        ty: MemDescType<'c>,
        depth: u32,
        name: &str,
    ) -> PassResult {
        for slot in 0..depth {
            let number = self.number(self.i32(), slot.into())?;
            let barrier = self.emit("ttg.memdesc_index", &[barriers, number], ty.ty())?;
            let count = [("count", Attr::int(self.op.context(), 32, 1))];
            let attrs = if name == "ttng.init_barrier" { &count[..] } else { &[] };
            self.rewriter.generic(name, self.op.loc(), &[barrier], &[], attrs)?;
        }
        Ok(())
    }

    //===------------------------------------------------------------------===//
    // Values from other iterations
    //===------------------------------------------------------------------===//

    /// The number of an iter_arg of the source.
    fn arg_number(&self, value: Value<'c>) -> Option<usize> {
        (value.arg_block() == Some(self.block)).then(|| value.index().checked_sub(1)).flatten()
    }

    /// The stage in which the next value of an iter_arg is computed.
    fn stage_of_next(&self, arg: usize) -> u32 {
        self.source.makers.get(&self.yielded[arg]).map_or(0, |node| self.schedule.stage[*node])
    }

    /// Whether an iter_arg is the same in all iterations.
    fn is_constant(&self, arg: usize) -> bool {
        self.arg_number(self.yielded[arg]) == Some(arg)
    }

    fn find_lags(&mut self) {
        let mut lags: Vec<(Carried<'c>, u32)> = Vec::new();
        let mut known: FastMap<Carried<'c>, usize> = FastMap::default();
        let mut need = |what: Carried<'c>, lag: u32| match known.get(&what) {
            Some(at) => lags[*at].1 = lags[*at].1.max(lag),
            None if lag > 0 => {
                known.insert(what, lags.len());
                lags.push((what, lag));
            }
            None => {}
        };
        for (n, action) in self.source.actions.iter().enumerate() {
            let stage = self.schedule.stage[n];
            let mut visit = |nested: Op<'c>| {
                for value in nested.operands() {
                    if let Some(arg) = self.arg_number(value) {
                        if !self.is_constant(arg) {
                            need(Carried::Arg(arg), stage + 1 - self.stage_of_next(arg));
                        }
                    } else if let Some(maker) = self.source.makers.get(&value) {
                        need(Carried::Value(value), stage - self.schedule.stage[*maker]);
                    }
                }
                Walk::Advance
            };
            for op in action.ops(self.source) {
                op.walk(&mut visit);
            }
        }
        for arg in 0..self.yielded.len() {
            if !self.is_constant(arg) && !self.op.result(arg).is_unused() {
                need(Carried::Arg(arg), self.schedule.stages - self.stage_of_next(arg));
            }
        }
        self.lags = lags;
    }

    /// A value of iteration `i` of the source, in the prologue.
    fn before(&mut self, value: Value<'c>, i: u32) -> Made<Value<'c>> {
        if let Some(arg) = self.arg_number(value) {
            if i == 0 || self.is_constant(arg) {
                return Ok(self.outside(self.op.operand(3 + arg)));
            }
            return self.before(self.yielded[arg], i - 1);
        }
        if value.arg_block() == Some(self.block) {
            return self.index(When::Before(i), i);
        }
        if !self.source.makers.contains_key(&value) {
            return Ok(self.outside(value));
        }
        let made = self.made.get(&(value, When::Before(i))).copied();
        made.ok_or_else(|| internal(self.op, format!("the prologue lacks {} of iteration {i}", value.ty())))
    }

    /// A value as an operation of `stage` uses it in the loop.
    fn now(&mut self, value: Value<'c>, stage: u32) -> Made<Value<'c>> {
        // An iter_arg whose next value was computed in a later stage, for the iteration before, is that value.
        let mut made = value;
        let (what, lag) = if let Some(arg) = self.arg_number(value) {
            if self.is_constant(arg) {
                return Ok(self.op.operand(3 + arg));
            }
            made = self.yielded[arg];
            (Carried::Arg(arg), stage + 1 - self.stage_of_next(arg))
        } else if value.arg_block() == Some(self.block) {
            return self.index(When::Now, self.last() - stage);
        } else if let Some(maker) = self.source.makers.get(&value) {
            (Carried::Value(value), stage - self.schedule.stage[*maker])
        } else {
            return Ok(value);
        };
        let found = match lag {
            0 => self.made.get(&(made, When::Now)).copied(),
            _ => self.args.get(&what).and_then(|args| args.get(lag as usize - 1)).copied(),
        };
        found.ok_or_else(|| internal(self.op, format!("the loop lacks {}", value.ty())))
    }

    /// The induction variable `ahead` iterations later.
    fn index(&mut self, when: When, ahead: u32) -> Made<Value<'c>> {
        if let Some(known) = self.indices.get(&ahead) {
            return Ok(*known);
        }
        let first = match (when, self.kernel) {
            (When::Now, Some(kernel)) => kernel.arg(0),
            _ => self.outside(self.op.operand(0)),
        };
        let index = if ahead == 0 { first } else { self.after(first, ahead)? };
        self.indices.insert(ahead, index);
        Ok(index)
    }

    /// `index` some steps later.
    fn after(&mut self, index: Value<'c>, steps: u32) -> Made<Value<'c>> {
        let (step, ty) = (self.outside(self.op.operand(2)), index.ty());
        let known = constant(step).and_then(|step| step.checked_mul(steps.into()));
        let distance = match known {
            _ if steps == 1 => step,
            Some(distance) => self.number(ty, distance)?,
            None => {
                let count = self.number(ty, steps.into())?;
                self.emit("arith.muli", &[step, count], ty)?
            }
        };
        self.emit("arith.addi", &[index, distance], ty)
    }

    /// Whether the source has an iteration `ahead` of the one that begins at `index`: counted so that nothing
    /// overflows, in one comparison where the steps are known, else step by step. `None` where it is known to.
    fn exists(&mut self, when: When, ahead: u32) -> Made<Option<Value<'c>>> {
        let i1 = Type::int(self.op.context(), 1);
        if let (When::Before(i), Some(trips)) = (when, trip_count(self.op)) {
            return match u64::from(i) < trips {
                true => Ok(self.tile_exists),
                false => self.number(i1, 0).map(Some),
            };
        }
        if ahead == 0 && when == When::Now {
            return Ok(None);
        }
        if let Some(known) = self.exists.get(&ahead) {
            return Ok(Some(*known));
        }
        let (to, step) = (self.outside(self.op.operand(1)), self.outside(self.op.operand(2)));
        let found = if ahead == 0 {
            let from = self.outside(self.op.operand(0));
            let found = self.compare(loop_predicate(self.op), from, to)?;
            match self.tile_exists {
                Some(tile) => self.emit("arith.andi", &[tile, found], i1)?,
                None => found,
            }
        } else {
            // The distance to the end fits in an unsigned number wherever there is an iteration.
            let least =
                |bits: u32| constant(step)?.checked_mul(ahead.into()).filter(|by| by >> (bits - 1) == 0);
            let at_once = to.ty().int_bits().and_then(least);
            let passed = if at_once.is_some() { 0 } else { ahead - 1 };
            let before = self.exists(when, passed)?;
            let index = self.index(when, passed)?;
            let left = self.emit("arith.subi", &[to, index], index.ty())?;
            let by = at_once.map_or(Ok(step), |by| self.number(to.ty(), by))?;
            let more = self.compare(cmpi::UGT, left, by)?;
            match before {
                Some(before) => self.emit("arith.andi", &[before, more], i1)?,
                None => more,
            }
        };
        self.exists.insert(ahead, found);
        Ok(Some(found))
    }

    //===------------------------------------------------------------------===//
    // Operations
    //===------------------------------------------------------------------===//

    fn prologue(&mut self, part: Part) -> PassResult {
        self.forget_iteration();
        for round in 0..self.last() {
            for place in 0..self.schedule.kernel.len() {
                match &self.schedule.kernel[place] {
                    Step::Run(node) if self.source.graph.nodes[*node].fetches => {}
                    Step::Run(node) => {
                        // Stage s begins in round s.
                        let i = round.checked_sub(self.schedule.stage[*node]);
                        if let Some(i) = i.filter(|_| part == Part::All || self.is_rest(*node)) {
                            self.node(*node, When::Before(i))?;
                        }
                    }
                    Step::Commit if part == Part::All => _ = self.commit()?,
                    _ => {}
                }
            }
        }
        if self.schedule.reads_ahead(&self.source.graph) {
            self.first_operands()?;
        }
        self.forget_iteration();
        Ok(())
    }

    /// Reads what the first iteration multiplies first, where all copies of the prologue have been begun.
    fn first_operands(&mut self) -> PassResult {
        let kernel = &self.schedule.kernel;
        for (place, step) in kernel.iter().enumerate() {
            if let Step::AwaitNext { pending, .. } = step {
                let behind = kernel[place..].iter().filter(|step| **step == Step::Commit).count();
                self.await_copies(*pending + behind as u32)?;
            }
        }
        for step in kernel {
            if let Step::Run(node) = step
                && self.source.graph.nodes[*node].fetches
            {
                self.node(*node, When::Before(0))?;
            }
        }
        Ok(())
    }

    /// Forgets what belongs to the iterations that were written last.
    fn forget_iteration(&mut self) {
        self.indices.clear();
        self.exists.clear();
        self.slots.clear();
    }

    fn commit(&mut self) -> Made<Op<'c>> {
        Ok(AsyncCommitGroupOp::build(self.op.loc(), &[]).insert(&mut self.rewriter)?.op())
    }

    /// A value that node `n` uses.
    fn operand(&mut self, value: Value<'c>, n: usize, when: When) -> Made<Value<'c>> {
        if let Some((ring, part)) = self.source.buffers.get(&value).copied() {
            return self.slot(self.rings[ring][part], ring, self.schedule.stage[n], when);
        }
        match when {
            When::Before(i) => self.before(value, i),
            When::Now => self.now(value, self.schedule.stage[n]),
        }
    }

    /// The buffer of `buffers`, a part of a ring or its barriers, for the iteration that operations of `stage` run for.
    fn slot(&mut self, buffers: Value<'c>, ring: usize, stage: u32, when: When) -> Made<Value<'c>> {
        let depth = self.schedule.depths[ring];
        let distance = match when {
            When::Before(i) => i,
            When::Now => self.last() - stage,
        };
        if let Some(known) = self.slots.get(&(buffers, distance)) {
            return Ok(*known);
        }
        let number = match when {
            When::Before(_) => match self.slot_of_next(depth, distance)? {
                Some(slot) => slot,
                None => self.number(self.i32(), i64::from(distance % depth))?,
            },
            When::Now if depth == 1 => self.number(self.i32(), 0)?,
            When::Now => {
                let counter = self.counters.iter().position(|counter| *counter == (depth, distance % depth));
                let counter = counter.ok_or_else(|| internal(self.op, "a ring without a counter"))?;
                self.counter_args[counter]
            }
        };
        let all =
            MemDescType::cast(buffers.ty()).ok_or_else(|| internal(self.op, "a ring that is no buffer"))?;
        let ty = MemDescType::new(&all.shape()[1..], all.element(), all.encoding(), all.space(), true);
        let ty = ty.ok_or_else(|| internal(self.op, "a ring without slots"))?;
        let slot = self.emit("ttg.memdesc_index", &[buffers, number], ty.ty())?;
        self.slots.insert((buffers, distance), slot);
        Ok(slot)
    }

    /// The only buffer of a slot.
    fn only(&mut self, ring: usize, stage: u32, when: When) -> Made<Value<'c>> {
        self.slot(self.rings[ring][0], ring, stage, when)
    }

    fn node(&mut self, n: usize, when: When) -> PassResult {
        let stage = self.schedule.stage[n];
        let ahead = match when {
            When::Before(i) => i,
            When::Now => self.last() - stage,
        };
        match self.source.actions[n] {
            Action::Copy(op, ring) => {
                let exists = self.exists(when, ahead)?;
                let slot = self.only(ring, stage, when)?;
                self.copy(op, n, when, slot, exists)
            }
            Action::Read(op, ring) => {
                let slot = self.only(ring, stage, when)?;
                let loaded = self.emit("ttg.local_load", &[slot], op.result(0).ty())?;
                self.made.insert((op.result(0), when), loaded);
                Ok(())
            }
            Action::Fill(op, ring) => {
                let slot = self.only(ring, stage, when)?;
                let src = self.operand(op.operand(0), n, when)?;
                LocalStoreOp::build(op.loc(), src, slot).insert(&mut self.rewriter)?;
                Ok(())
            }
            Action::Bulk(bulk, ring) => {
                let exists = self.exists(when, ahead)?;
                let barrier = self.slot(self.barriers[&ring], ring, stage, when)?;
                self.bulk(bulk, n, when, barrier, exists)
            }
            Action::Op(op) => {
                let guarded = self.source.graph.nodes[n].kind == Kind::Guarded;
                let exists = if guarded { self.exists(when, ahead)? } else { None };
                match (LoadOp::cast(op), exists) {
                    (Some(load), Some(exists)) => self.load(load, n, when, exists),
                    (_, exists) => self.clone(op, n, when, exists),
                }
            }
        }
    }

    /// `op`, with what it uses in this iteration.
    fn clone(&mut self, op: Op<'c>, n: usize, when: When, exists: Option<Value<'c>>) -> PassResult {
        let mut map: FastMap<Value<'c>, Value<'c>> = FastMap::default();
        for value in operands_within(op) {
            if let Entry::Vacant(entry) = map.entry(value) {
                entry.insert(self.operand(value, n, when)?);
            }
        }
        // Constants go before what is made of them.
        let mut harmless = Vec::new();
        // An iteration has divided by what is the same in all of them where the loop runs.
        let has_divided = when == When::Now && is_division(op) && is_outside(op.operand(1), self.block);
        let exists = exists.filter(|_| !has_divided);
        if exists.is_some() {
            for division in divisions(op) {
                harmless.push(self.harmless_divisor(division.operand(1))?);
            }
        }
        let made = self.rewriter.clone_op(op);
        substitute(made, &map);
        if let Some(exists) = exists {
            for (division, harmless) in divisions(made).into_iter().zip(harmless) {
                self.rewriter.set_before(division);
                let divisor = division.operand(1);
                let divisor = self.emit("arith.select", &[exists, divisor, harmless], divisor.ty())?;
                division.set_operand(1, divisor);
            }
            self.rewriter.set_after(made);
        }
        if is_memdesc_view(made) {
            keep_mutable(made)?;
        }
        if self.source.graph.nodes[n].kind == Kind::Dot {
            made.set_attr("isAsync", Attr::bool(op.context(), true));
        }
        self.made.extend(op.results().zip(made.results()).map(|(old, new)| ((old, when), new)));
        Ok(())
    }

    /// `by`, which takes the place of the divisor `divisor`, where there is an iteration that divides.
    fn safe_divisor(&mut self, divisor: Value<'c>, by: Value<'c>, exists: Value<'c>) -> Made<Value<'c>> {
        let harmless = self.harmless_divisor(divisor)?;
        self.emit("arith.select", &[exists, by, harmless], by.ty())
    }

    /// What divides in place of `divisor` where there is no iteration. It is a multiple of what `divisor` is a multiple of: one would make
    /// remainders neighbours no more, which are copied together (`x + i % channels`).
    fn harmless_divisor(&mut self, divisor: Value<'c>) -> Made<Value<'c>> {
        let ty = divisor.ty();
        let tensor = ty.as_tensor();
        let element = tensor.map_or(ty, |tensor| tensor.element());
        // Of a signed number the highest bit is its sign.
        let most = 1 << (element.int_bits().unwrap_or(32).clamp(2, 32) - 2);
        let multiple = self.source.divisors.get(&divisor).map_or(1, |multiple| (*multiple).min(most));
        let number = self.number(element, multiple as i64)?;
        if tensor.is_some() { self.emit("tt.splat", &[number], ty) } else { Ok(number) }
    }

    /// The operands of a load in this iteration.
    fn accessed(
        &mut self,
        load: LoadOp<'c>,
        n: usize,
        when: When,
        exists: Option<Value<'c>>,
    ) -> Made<Accessed<'c>> {
        let pointer = self.operand(load.ptr(), n, when)?;
        let mask = load.mask().map(|mask| self.operand(mask, n, when)).transpose()?;
        let other = load.other().map(|other| self.operand(other, n, when)).transpose()?;
        let mask = self.mask(pointer, mask, exists)?;
        Ok((pointer, mask, other))
    }

    fn load(&mut self, load: LoadOp<'c>, n: usize, when: When, exists: Value<'c>) -> PassResult {
        let accessed = self.accessed(load, n, when, Some(exists))?;
        let made = self.load_from(load, accessed)?;
        self.made.insert((load.result(), when), made);
        Ok(())
    }

    /// What `load` loads, from another place, with another mask and values in place of masked ones.
    fn load_from(&mut self, load: LoadOp<'c>, (pointer, mask, other): Accessed<'c>) -> Made<Value<'c>> {
        let op = load.op();
        let made = LoadOp::build(op.loc(), pointer)
            .mask(mask)
            .other(other)
            .cache_policy(load.cache_policy())
            .is_volatile(load.is_volatile())
            .discardable_of(op)
            .results(&[load.result().ty()])
            .insert(&mut self.rewriter)?;
        Ok(made.result())
    }

    fn copy(
        &mut self,
        op: Op<'c>,
        n: usize,
        when: When,
        slot: Value<'c>,
        exists: Option<Value<'c>>,
    ) -> PassResult {
        if let Some(load) = DescriptorLoadOp::cast(op) {
            return self.tensor_copy(load, n, when, slot, exists);
        }
        let load = LoadOp::of(op);
        let (pointer, mask, other) = self.accessed(load, n, when, exists)?;
        AsyncCopyGlobalToLocalOp::build(op.loc(), pointer, slot)
            .mask(mask)
            .other(other.filter(|_| mask.is_some()))
            .cache_policy(load.cache_policy())
            .discardable_of(op)
            .insert(&mut self.rewriter)?;
        Ok(())
    }

    /// A tensor operation, which moves nothing if the iteration does not exist.
    fn tensor_copy(
        &mut self,
        load: DescriptorLoadOp<'c>,
        n: usize,
        when: When,
        slot: Value<'c>,
        exists: Option<Value<'c>>,
    ) -> PassResult {
        let desc = self.operand(load.desc(), n, when)?;
        let indices = load.indices().map(|index| self.operand(index, n, when)).collect::<Made<Vec<_>>>()?;
        let i32t = self.i32();
        let active = exists.map(|exists| self.emit("arith.extui", &[exists], i32t)).transpose()?;
        let block = UpdateTensorDescriptorOp::build(self.op.loc(), desc, &indices, &[])
            .pred(active)
            .clamp_bounds(true)
            .results(&[desc.ty()])
            .insert(&mut self.rewriter)?;
        AsyncTdmCopyGlobalToLocalOp::build(load.op().loc(), block.result(), slot)
            .insert(&mut self.rewriter)?;
        Ok(())
    }

    /// Bulk copies that arrive at `barrier`, if the iteration exists.
    fn bulk(
        &mut self,
        bulk: usize,
        n: usize,
        when: When,
        barrier: Value<'c>,
        exists: Option<Value<'c>>,
    ) -> PassResult {
        let bulk = &self.source.bulks[bulk];
        let i1 = Type::int(self.op.context(), 1);
        let exists = match exists {
            Some(exists) => exists,
            None => self.number(i1, 1)?,
        };
        for op in [bulk.expect].into_iter().chain(bulk.copies.iter().copied()) {
            // The last operand of each is its predicate.
            let last = op.num_operands() - 1;
            let mut operands = Vec::new();
            for (i, value) in op.operands().enumerate() {
                operands.push(match value {
                    _ if i == last => exists,
                    value if value == bulk.barrier => barrier,
                    value => self.operand(value, n, when)?,
                });
            }
            let made = self.rewriter.clone_op(op);
            made.set_operands(&operands);
        }
        Ok(())
    }

    //===------------------------------------------------------------------===//
    // The loop
    //===------------------------------------------------------------------===//

    /// Counters for the slots that operations of the loop use.
    fn find_counters(&mut self) {
        if self.continues() {
            let mut depths = self.schedule.depths.clone();
            depths.sort_unstable();
            depths.dedup();
            self.counters.extend(depths.into_iter().filter(|depth| *depth > 1).map(|depth| (depth, 0)));
        }
        for (n, node) in self.source.graph.nodes.iter().enumerate() {
            for ring in node.writes.iter().chain(&node.reads) {
                let depth = self.schedule.depths[*ring];
                let counter = (depth, self.schedule.ahead(n) % depth);
                if depth > 1 && !self.counters.contains(&counter) {
                    self.counters.push(counter);
                }
                // Phases change where the slots of the loop's own iteration go round.
                if self.barriers.contains_key(ring) && !self.phases.contains(&depth) {
                    self.phases.push(depth);
                    if depth > 1 && !self.counters.contains(&(depth, 0)) {
                        self.counters.push((depth, 0));
                    }
                }
            }
        }
    }

    /// What the carried values are when the loop begins.
    fn first_values(&mut self) -> Made<Vec<Value<'c>>> {
        let (mut values, mut loaded) = (Vec::new(), 0);
        for (value, i) in self.first_places() {
            values.push(if self.is_loaded(value, i) {
                loaded += 1;
                let before = self.loaded_before(loaded - 1);
                before.ok_or_else(|| internal(self.op, "the loop around lacks what was loaded"))?
            } else {
                self.before(value, i)?
            });
        }
        match self.slots_of_tile() {
            Some(slots) => values.extend(slots),
            None => values.extend(self.first_counters()?),
        }
        Ok(values)
    }

    /// What counters and phases are where the first slots are used first.
    fn first_counters(&mut self) -> Made<Vec<Value<'c>>> {
        let counters: Vec<i64> = self.counters.iter().map(|(_, distance)| (*distance).into()).collect();
        let phases = std::iter::repeat_n(0, self.phases.len());
        counters.into_iter().chain(phases).map(|first| self.number(self.i32(), first)).collect()
    }

    fn make_loop(&mut self) -> Made<Op<'c>> {
        self.rewriter.set_before(self.op);
        let first = self.first_values()?;
        let types: Vec<Type<'c>> = first.iter().map(|value| value.ty()).collect();
        let operands: Vec<Value<'c>> = self.op.operands().take(3).chain(first).collect();
        let mut attrs = self.op.discardable_attrs();
        attrs.extend(self.op.attr("unsignedCmp").map(|attr| ("unsignedCmp", attr)));
        let loc = self.op.loc();
        let made = create("scf.for", loc, &operands, &types, &attrs, &[new_region()])?;
        made.move_before(self.op);
        let arguments: Vec<_> =
            [self.op.operand(0).ty()].into_iter().chain(types).map(|ty| (ty, loc)).collect();
        let kernel = Block::new(&arguments);
        made.region(0).append(kernel);
        self.kernel = Some(kernel);
        let mut next = 1;
        for (what, lag) in self.lags.clone() {
            let args = (0..lag as usize).map(|i| kernel.arg(next + i)).collect();
            self.args.insert(what, args);
            next += lag as usize;
        }
        let phases = next + self.counters.len();
        self.counter_args = (next..phases).map(|i| kernel.arg(i)).collect();
        self.phase_args = (phases..kernel.num_args()).map(|i| kernel.arg(i)).collect();
        self.rewriter.set_end(kernel);
        for place in 0..self.schedule.kernel.len() {
            self.step(place)?;
        }
        self.end_loop(kernel)?;
        if self.schedule.is_spread() {
            made.set_attr(SPREAD, Attr::unit(made.context()));
        }
        Ok(made)
    }

    fn step(&mut self, place: usize) -> PassResult {
        match &self.schedule.kernel[place] {
            Step::Run(node) => self.node(*node, When::Now),
            Step::RunHalf(node, second) => self.half(*node, *second),
            Step::Commit => self.commit().map(|_| ()),
            Step::AwaitCopies { copies, pending } => {
                self.await_copies(*pending)?;
                if self.is_fenced_here(place, copies) {
                    let fence = fence_insertion::fence(self.op)?;
                    self.rewriter.insert(fence);
                }
                Ok(())
            }
            Step::AwaitNext { pending, .. } => self.await_copies(*pending),
            Step::Meet => self.meet(),
            Step::Prefer(this) => self.prefer(*this),
            Step::Issued => self.issued(),
            Step::Spread => Ok(()),
            Step::AwaitBulk(copy) => self.await_bulk(*copy),
            Step::AwaitDots { dots, pending } => {
                let mut what = Vec::new();
                for (dot, earlier) in dots {
                    let Action::Op(op) = self.source.actions[*dot] else {
                        return Err(internal(self.op, "waits for a dot that is none"));
                    };
                    what.push((op.result(0), *earlier));
                }
                self.await_dots(&what, *pending)
            }
        }
    }

    /// Half of a dot along K. The second half adds to what the first one gives, and its result is the dot's.
    fn half(&mut self, n: usize, second: bool) -> PassResult {
        let not_halved = || internal(self.op, "half of what is no dot");
        let Action::Op(op) = self.source.actions[n] else { return Err(not_halved()) };
        let types = DotOp::cast(op).and_then(|dot| parts_along_k(dot, 2)).ok_or_else(not_halved)?;
        let mut operands = Vec::new();
        for (i, ty) in types.into_iter().enumerate() {
            let whole = self.operand(op.operand(i), n, When::Now)?;
            let mut offsets = vec![0; ty.as_tensor().map_or(0, |ty| ty.rank())];
            if second && let Some(ty) = ty.as_tensor() {
                let along = ty.rank() - 1 - i;
                offsets[along] = ty.dim(along);
            }
            let slice = ExtractSliceOp::build(op.loc(), whole, offsets).results(&[ty]);
            operands.push(slice.insert(&mut self.rewriter)?.result());
        }
        operands.push(match self.half.take().filter(|_| second) {
            Some(first) => first,
            None => self.operand(op.operand(2), n, When::Now)?,
        });
        let made = self.rewriter.clone_op(op);
        made.set_operands(&operands);
        if second {
            self.made.insert((op.result(0), When::Now), made.result(0));
        } else {
            self.half = Some(made.result(0));
        }
        Ok(())
    }

    /// Whether the wait for `copies` at `place` is followed by a fence: dots read through another proxy than threads, of
    /// which each orders what it has copied, before the barrier that shows it to all. Where the first dot that reads what was
    /// copied also reads what threads store after the wait, the fence between these stores and the barrier before the dot
    /// orders the copies, too.
    fn is_fenced_here(&self, place: usize, copies: &[usize]) -> bool {
        let nodes = &self.source.graph.nodes;
        let copied = |ring: &usize| copies.iter().any(|copy| nodes[*copy].writes == Some(*ring));
        let mut stored: Vec<usize> = Vec::new();
        for step in &self.schedule.kernel[place + 1..] {
            let Step::Run(n) = step else { continue };
            let node = &nodes[*n];
            match node.kind {
                Kind::Fill => stored.extend(node.writes),
                Kind::Dot if node.reads.iter().any(copied) => {
                    return !node.reads.iter().any(|ring| stored.contains(ring));
                }
                _ => {}
            }
        }
        false
    }

    fn await_bulk(&mut self, copy: usize) -> PassResult {
        let Action::Bulk(bulk, ring) = self.source.actions[copy] else {
            return Err(internal(self.op, "waits for a bulk copy that is none"));
        };
        let depth = self.schedule.depths[ring];
        let phase = self.phases.iter().position(|other| *other == depth).map(|i| self.phase_args[i]);
        let phase = phase.ok_or_else(|| internal(self.op, "a barrier without a phase"))?;
        let mut operands = vec![self.slot(self.barriers[&ring], ring, self.last(), When::Now)?, phase];
        for part in self.rings[ring].clone() {
            operands.push(self.slot(part, ring, self.last(), When::Now)?);
        }
        let made = self.rewriter.clone_op(self.source.bulks[bulk].wait);
        made.set_operands(&operands);
        Ok(())
    }

    /// A barrier that LLVM moves nothing across.
    fn meet(&mut self) -> PassResult {
        BarrierOp::build(self.op.loc(), AddrSpace::LOCAL).insert(&mut self.rewriter)?;
        let nothing = [("mask", Attr::int(self.op.context(), 32, 0))];
        self.rewriter.generic("rocdl.sched.barrier", self.op.loc(), &[], &[], &nothing)?;
        Ok(())
    }

    /// Reads of the LDS may cross, and where accesses are not spread scalar instructions, of which barriers are some (LLVM, "User Guide for
    /// AMDGPU Backend", llvm.amdgcn.sched.barrier): neither matrix instructions nor what is to come behind them.
    fn issued(&mut self) -> PassResult {
        const SCALAR: i64 = 0x4;
        const READS: i64 = 0x100;
        let may_cross = if self.schedule.is_spread() { READS } else { READS | SCALAR };
        let mask = [("mask", Attr::int(self.op.context(), 32, may_cross))];
        self.rewriter.generic("rocdl.sched.barrier", self.op.loc(), &[], &[], &mask)?;
        Ok(())
    }

    fn prefer(&mut self, this: bool) -> PassResult {
        let priority = [("priority", Attr::int(self.op.context(), 16, this.into()))];
        self.rewriter.generic("rocdl.s.setprio", self.op.loc(), &[], &[], &priority)?;
        Ok(())
    }

    /// Before the loop: what its first iteration reads is there, and the second half of the warps waits for the first one to
    /// come to its first barrier. Gives what says whether a warp is of the second half.
    fn begin_halves(&mut self) -> Made<Value<'c>> {
        self.rewriter.set_before(self.op);
        if let Some(next) = self.schedule.pending_next() {
            self.await_copies(next)?;
        }
        BarrierOp::build(self.op.loc(), AddrSpace::LOCAL).insert(&mut self.rewriter)?;
        let warp = WarpIdOp::build(self.op.loc()).results(&[self.i32()]).insert(&mut self.rewriter)?.result();
        let half = self.number(self.i32(), (self.source.warps / 2) as i64)?;
        let second = self.compare(cmpi::SGE, warp, half)?;
        CondBarrierOp::build(self.op.loc(), second).insert(&mut self.rewriter)?;
        Ok(second)
    }

    /// Behind the loop the first half waits for the second one.
    fn end_halves(&mut self, made: Op<'c>, second: Value<'c>) -> PassResult {
        made.set_attr(HALVES, Attr::unit(made.context()));
        self.rewriter.set_before(self.op);
        let yes = self.number(Type::int(self.op.context(), 1), 1)?;
        let first = self.emit("arith.xori", &[second, yes], second.ty())?;
        CondBarrierOp::build(self.op.loc(), first).insert(&mut self.rewriter)?;
        Ok(())
    }

    fn await_copies(&mut self, pending: u32) -> PassResult {
        AsyncWaitOp::build(self.op.loc(), &[], pending.into()).insert(&mut self.rewriter)?;
        Ok(())
    }

    /// Waits for dots, through which their results pass; with them those of later dots that are still under way,
    /// so that nothing uses the registers of either before the wait.
    fn await_dots(&mut self, dots: &[(Value<'c>, u32)], pending: u32) -> PassResult {
        let mut through: Vec<Value<'c>> = Vec::new();
        let mut names: Vec<(Value<'c>, u32)> = Vec::new();
        for (result, earlier) in dots {
            if *earlier == 0 {
                names.push((*result, 0));
                continue;
            }
            match self.made.get(&(*result, When::Now)) {
                // The dot of this iteration has the registers of the one before it, or its own.
                Some(_) => names.push((*result, 0)),
                None => names.push((*result, 1)),
            }
        }
        let mut entries: Vec<(Value<'c>, Option<Carried<'c>>)> = Vec::new();
        for (result, earlier) in names {
            if earlier == 0 {
                let made = self.made.get(&(result, When::Now)).copied();
                let made = made.ok_or_else(|| internal(self.op, "waits for a dot that is not there"))?;
                through.push(made);
                entries.push((result, None));
                continue;
            }
            for arg in 0..self.yielded.len() {
                let what = Carried::Arg(arg);
                if self.yielded[arg] == result
                    && let Some(args) = self.args.get(&what)
                {
                    through.push(args[0]);
                    entries.push((result, Some(what)));
                }
            }
        }
        if through.is_empty() {
            return Ok(());
        }
        let waited = wait(&mut self.rewriter, self.op, &through, pending)?;
        for ((result, what), new) in entries.into_iter().zip(waited.results()) {
            match what {
                None => _ = self.made.insert((result, When::Now), new),
                Some(what) => {
                    if let Some(args) = self.args.get_mut(&what) {
                        args[0] = new;
                    }
                }
            }
        }
        Ok(())
    }

    /// Passes on what the next iteration needs.
    fn end_loop(&mut self, kernel: Block<'c>) -> PassResult {
        let mut yields = Vec::new();
        for (what, lag) in self.lags.clone() {
            let value = match what {
                Carried::Value(value) => value,
                Carried::Arg(arg) => self.yielded[arg],
            };
            let outside = !self.source.makers.contains_key(&value);
            let newest = if outside { Some(value) } else { self.made.get(&(value, When::Now)).copied() };
            yields.push(newest.ok_or_else(|| internal(self.op, "an iteration lacks what it passes on"))?);
            yields.extend(self.args[&what].iter().take(lag as usize - 1));
        }
        let mut wraps: FastMap<u32, Value<'c>> = FastMap::default();
        for ((depth, distance), arg) in self.counters.clone().into_iter().zip(self.counter_args.clone()) {
            let (next, below) = self.go_round(arg, depth)?;
            yields.push(next);
            if distance == 0 {
                wraps.insert(depth, below);
            }
        }
        for (depth, phase) in self.phases.clone().into_iter().zip(self.phase_args.clone()) {
            let one = self.number(self.i32(), 1)?;
            let other = self.emit("arith.xori", &[phase, one], self.i32())?;
            yields.push(match wraps.get(&depth) {
                Some(below) => self.emit("arith.select", &[*below, phase, other], self.i32())?,
                None => other,
            });
        }
        let end = create("scf.yield", self.op.loc(), &yields, &[], &[], &[])?;
        kernel.append(end);
        Ok(())
    }

    /// `counter + 1`, modulo `depth`, and whether that is not 0.
    fn go_round(&mut self, counter: Value<'c>, depth: u32) -> Made<(Value<'c>, Value<'c>)> {
        let i32t = self.i32();
        let (one, zero) = (self.number(i32t, 1)?, self.number(i32t, 0)?);
        let count = self.number(i32t, depth.into())?;
        let next = self.emit("arith.addi", &[counter, one], i32t)?;
        let below = self.compare(cmpi::SLT, next, count)?;
        Ok((self.emit("arith.select", &[below, next, zero], i32t)?, below))
    }

    /// What comes behind the loop: nothing is under way any more, and results are those of the last iteration.
    fn finish(&mut self, made: Op<'c>) -> PassResult {
        self.rewriter.set_before(self.op);
        let mut first = 0;
        let (mut results, mut dots) = (vec![None; self.yielded.len()], Vec::new());
        for (what, lag) in &self.lags {
            if let Carried::Arg(arg) = what {
                let back = self.schedule.stages - self.stage_of_next(*arg);
                if back <= *lag {
                    let value = made.result(first + back as usize - 1);
                    let is_dot = self
                        .source
                        .makers
                        .get(&self.yielded[*arg])
                        .is_some_and(|n| self.source.graph.nodes[*n].kind == Kind::Dot);
                    if is_dot {
                        dots.push(*arg);
                    }
                    results[*arg] = Some(value);
                }
            }
            first += *lag as usize;
        }
        if !dots.is_empty() {
            let through: Vec<Value<'c>> = dots.iter().filter_map(|arg| results[*arg]).collect();
            let waited = wait(&mut self.rewriter, self.op, &through, 0)?;
            dots.iter().zip(waited.results()).for_each(|(arg, value)| results[*arg] = Some(value));
        }
        if self.schedule.kernel.contains(&Step::Commit) {
            self.await_copies(0)?;
        }
        self.next_tile(made)?;
        self.leave_nest()?;
        for ring in 0..self.rings.len() {
            let Some(barriers) = self.barriers.get(&ring).copied() else { continue };
            let Action::Bulk(bulk, _) = self.producer(ring)? else { continue };
            let old = self.source.bulks[bulk].barrier;
            let ty = MemDescType::cast(old.ty())
                .ok_or_else(|| internal(self.op, "a barrier that is no buffer"))?;
            self.each_barrier(barriers, ty, self.schedule.depths[ring], "ttng.inval_barrier")?;
        }
        for part in self.rings.clone().into_iter().flatten() {
            LocalDeallocOp::build(self.op.loc(), part).insert(&mut self.rewriter)?;
        }
        for (arg, result) in results.into_iter().enumerate() {
            let old = self.op.result(arg);
            let constant = self.is_constant(arg).then(|| self.op.operand(3 + arg));
            match constant.or(result) {
                Some(new) => old.replace_all_uses_with(new),
                None if old.is_unused() => {}
                None => return Err(internal(self.op, "a result of the loop is lost")),
            }
        }
        let mut always: Vec<Op<'c>> = Vec::new();
        for op in self.source.bulks.iter().flat_map(|bulk| bulk.copies.iter().chain([&bulk.expect])) {
            let predicate = op.operand(op.num_operands() - 1).def_op();
            always.extend(predicate.filter(|op| !always.contains(op)));
        }
        self.op.erase();
        // Predicates of what was always done.
        always.into_iter().filter(|op| op.result(0).is_unused() && op.is_pure()).for_each(Op::erase);
        // What made the barriers of the source, and ended them.
        for bulk in &self.source.bulks {
            let users: Vec<Op<'c>> = bulk.barrier.uses().map(|(user, _)| user).collect();
            users.into_iter().for_each(Op::erase);
            if let Some(alloc) = bulk.barrier.def_op() {
                alloc.erase();
            }
        }
        self.erase_unused();
        Ok(())
    }

    /// What fills a ring.
    fn producer(&self, ring: usize) -> Made<Action<'c>> {
        let fills = |node: &super::plan::Node| node.writes == Some(ring);
        let node = self.source.graph.nodes.iter().position(fills);
        node.map(|n| self.source.actions[n]).ok_or_else(|| internal(self.op, "a ring that nothing fills"))
    }
}

/// Waits until at most `pending` dots are under way; `through` are values that pass through.
fn wait<'c>(rewriter: &mut IrRewriter<'c>, at: Op<'c>, through: &[Value<'c>], pending: u32) -> Made<Op<'c>> {
    let types: Vec<Type<'c>> = through.iter().map(|value| value.ty()).collect();
    let made = WarpGroupDotWaitOp::build(at.loc(), through, pending.into()).results(&types);
    Ok(made.insert(rewriter)?.op())
}

/// Gives a view of a slot, which is written, a type that says so; a part of it has the slot's layout.
fn keep_mutable<'c>(view: Op<'c>) -> PassResult {
    let result = view.result(0);
    let not_a_view = || internal(view, "a view that is no buffer");
    let of = |value: Value<'c>| MemDescType::cast(value.ty()).ok_or_else(not_a_view);
    let (from, ty) = (of(view.operand(0))?, of(result)?);
    let is_part = MemDescSubsliceOp::cast(view).is_some();
    let layout = if is_part { from.encoding() } else { ty.encoding() };
    if from.mutable() == ty.mutable() && layout == ty.encoding() {
        return Ok(());
    }
    let ty = MemDescType::view(&ty.shape(), ty.element(), layout, ty.space(), true, &ty.alloc_shape());
    result.set_type(ty.ok_or_else(not_a_view)?.ty());
    Ok(())
}
