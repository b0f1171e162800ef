//! Writes down that the prologue of the next tile comes behind the loop of this one.
//!
//! The prologue is written three times: for the first tile, before the loop around; for the next tile, behind the loop,
//! with what it needs of the body of the loop around; and, but for what loads, right before the loop, which needs addresses
//! and counters again. Values that were loaded are iter_args of the loop around.

use super::{Carried, Expansion, Made, Part};
use crate::ir_util::{cmpi, compute_again, loop_predicate, remake, substitute};
use crate::machine::internal;
use crate::schedule::nest::Nest;
use crate::schedule::plan::{Kind, Prologue, Slots, Step};
use crate::schedule::source::{Action, is_division};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Type, Value};
use mlir_host::pass::PassResult;
use ttopt_dialect::tt::ops::LoadOp;
use ttopt_dialect::ttg::ops::AsyncWaitOp;

/// The loop around, while its loop is expanded.
pub(super) struct Around<'a, 'c> {
    nest: &'a Nest<'c>,
    /// The loop around as it is now.
    pub(super) outer: Op<'c>,
    /// Nodes whose results depend on what is loaded.
    loaded: Vec<bool>,
    /// The iter_args of the loop around that carry what was loaded for this tile, in the order of first values.
    carried: Vec<Value<'c>>,
    /// Counters and phases of this tile, where slots go on.
    slots: Vec<Value<'c>>,
}

impl<'a, 'c> Expansion<'a, 'c> {
    /// Prepares for a prologue that comes behind the loop of the tile before.
    pub(super) fn enter(&mut self, nest: &'a Nest<'c>) {
        let loaded = self.loaded_nodes();
        let (carried, slots) = (Vec::new(), Vec::new());
        self.around = Some(Around { nest, outer: nest.outer, loaded, carried, slots });
    }

    /// What comes before the loop of a tile whose copies are under way: the first tile's before the loop around, and
    /// addresses and counters here.
    pub(super) fn prologue_of_nest(&mut self) -> PassResult {
        let (outer, args, block) = match &self.around {
            Some(around) => (around.outer, around.nest.args.clone(), around.nest.block),
            None => return Ok(()),
        };
        self.rewriter.set_before(outer);
        self.env.insert(block.arg(0), outer.operand(0));
        for arg in args {
            self.env.insert(block.arg(arg + 1), outer.operand(arg + 3));
        }
        let exists = self.compare(loop_predicate(outer), outer.operand(0), outer.operand(1))?;
        let values = self.prologue_of_tile(exists)?;
        let mut first = values.clone();
        if self.continues() {
            first.extend(self.first_counters()?);
        }
        self.grow(&first, values.len())?;
        self.leave_tile();
        self.rewriter.set_before(self.op);
        self.prologue(Part::Rest)
    }

    /// The loop around gets iter_args that begin as `first`, `loaded` of which are what was loaded.
    fn grow(&mut self, first: &[Value<'c>], loaded: usize) -> PassResult {
        let Some(around) = &mut self.around else { return Ok(()) };
        let old = around.outer;
        if first.is_empty() {
            return Ok(());
        }
        let operands: Vec<Value<'c>> = old.operands().chain(first.iter().copied()).collect();
        let types: Vec<Type<'c>> = old.results().map(Value::ty).chain(first.iter().map(|v| v.ty())).collect();
        let made = remake(old, &operands, &types)?;
        for (new, old) in made.results().zip(old.results()) {
            old.replace_all_uses_with(new);
        }
        old.erase();
        let args: Vec<Value<'c>> =
            first.iter().map(|value| around.nest.block.add_arg(value.ty(), made.loc())).collect();
        around.outer = made;
        around.carried = args[..loaded].to_vec();
        around.slots = args[loaded..].to_vec();
        Ok(())
    }

    /// Behind the loop `made` of a tile: the prologue of the next one.
    pub(super) fn next_tile(&mut self, made: Op<'c>) -> PassResult {
        let (outer, args, block) = match &self.around {
            Some(around) => (around.outer, around.nest.args.clone(), around.nest.block),
            None => return Ok(()),
        };
        let end = block.terminator().ok_or_else(|| internal(outer, "a loop without an end"))?;
        let (index, to, step) = (block.arg(0), outer.operand(1), outer.operand(2));
        let left = self.emit("arith.subi", &[to, index], index.ty())?;
        let exists = self.compare(cmpi::UGT, left, step)?;
        let next = self.emit("arith.addi", &[index, step], index.ty())?;
        // What the next values need, where it comes behind the loop.
        let inner = self.op;
        let behind = |op: Op<'c>| op.block() == inner.block() && !op.is_before_in_block(inner);
        let mut known = FastMap::default();
        let mut values = vec![(index, next)];
        for arg in args {
            let value = compute_again(&mut self.rewriter, end.operand(arg), &mut known, &behind)?;
            values.push((block.arg(arg + 1), value));
        }
        self.env.extend(values);
        let slots = self.lags.iter().map(|(_, lag)| *lag as usize).sum();
        if self.continues() {
            self.slot_results = (slots..made.num_results()).map(|i| made.result(i)).collect();
        }
        let mut yields: Vec<Value<'c>> = end.operands().collect();
        yields.extend(self.prologue_of_tile(exists)?);
        yields.extend(std::mem::take(&mut self.slot_results));
        end.set_operands(&yields);
        self.leave_tile();
        Ok(())
    }

    /// The prologue of the tile that `env` has values of, if it `exists`; gives what it loaded.
    fn prologue_of_tile(&mut self, exists: Value<'c>) -> Made<Vec<Value<'c>>> {
        self.tile_exists = Some(exists);
        let Some(around) = &self.around else { return Ok(Vec::new()) };
        for op in around.nest.before.clone() {
            self.of_tile(op, exists)?;
        }
        self.prologue(Part::All)?;
        let mut values = Vec::new();
        for (value, i) in self.first_places() {
            if self.is_loaded(value, i) {
                values.push(self.before(value, i)?);
            }
        }
        Ok(values)
    }

    /// An operation of the body of the loop around, for the tile that `env` has values of.
    fn of_tile(&mut self, op: Op<'c>, exists: Value<'c>) -> PassResult {
        if let Some(load) = LoadOp::cast(op) {
            let (pointer, mask, other) = (
                self.outside(load.ptr()),
                load.mask().map(|mask| self.outside(mask)),
                load.other().map(|other| self.outside(other)),
            );
            let mask = self.mask(pointer, mask, Some(exists))?;
            let made = self.load_from(load, (pointer, mask, other))?;
            self.env.insert(load.result(), made);
            return Ok(());
        }
        let mut divisor = None;
        if is_division(op) {
            let by = self.outside(op.operand(1));
            divisor = Some(self.safe_divisor(op.operand(1), by, exists)?);
        }
        let made = self.rewriter.clone_op(op);
        substitute(made, &self.env);
        if let Some(divisor) = divisor {
            made.set_operand(1, divisor);
        }
        self.env.extend(op.results().zip(made.results()));
        Ok(())
    }

    /// Forgets the values of a tile that has begun.
    fn leave_tile(&mut self) {
        self.env.clear();
        self.made.clear();
        self.tile_exists = None;
    }

    /// A value from outside of the loop, in the tile that is being written.
    pub(super) fn outside(&self, value: Value<'c>) -> Value<'c> {
        self.env.get(&value).copied().unwrap_or(value)
    }

    /// Whether slots go on where the tile before left them.
    pub(super) fn continues(&self) -> bool {
        self.schedule.prologue == Prologue::TileBefore(Slots::Continue)
    }

    /// Counters and phases when the loop of a tile begins.
    pub(super) fn slots_of_tile(&self) -> Option<Vec<Value<'c>>> {
        self.around.as_ref().filter(|_| self.continues()).map(|around| around.slots.clone())
    }

    /// What was loaded for this tile before it began, the `number`th.
    pub(super) fn loaded_before(&self, number: usize) -> Option<Value<'c>> {
        self.around.as_ref().and_then(|around| around.carried.get(number)).copied()
    }

    /// Whether `value` of iteration `i` of the prologue depends on what is loaded.
    pub(super) fn is_loaded(&self, value: Value<'c>, i: u32) -> bool {
        let Some(around) = &self.around else { return false };
        self.maker_before(value, i).is_some_and(|n| around.loaded[n])
    }

    /// Whether the prologue of this tile, right before its loop, has node `n`: all but what loads has been forgotten.
    pub(super) fn is_rest(&self, n: usize) -> bool {
        let copies = matches!(self.source.graph.nodes[n].kind, Kind::Copy | Kind::BulkCopy);
        !copies && self.around.as_ref().is_none_or(|around| !around.loaded[n])
    }

    /// The node that computes `value` of iteration `i` in the prologue.
    fn maker_before(&self, value: Value<'c>, i: u32) -> Option<usize> {
        let Some(arg) = self.arg_number(value) else { return self.source.makers.get(&value).copied() };
        if i == 0 || self.is_constant(arg) {
            return None;
        }
        self.maker_before(self.yielded[arg], i - 1)
    }

    fn loaded_nodes(&self) -> Vec<bool> {
        let graph = &self.source.graph;
        let loads = |action: &Action<'c>| matches!(action, Action::Op(op) if LoadOp::cast(*op).is_some());
        let mut loaded: Vec<bool> = self.source.actions.iter().map(loads).collect();
        let mut open: Vec<usize> = (0..loaded.len()).filter(|n| loaded[*n]).collect();
        while let Some(n) = open.pop() {
            for edge in graph.edges.iter().filter(|edge| edge.from == n) {
                if !std::mem::replace(&mut loaded[edge.to], true) {
                    open.push(edge.to);
                }
            }
        }
        loaded
    }

    /// Behind the loop around: copies for tiles that do not exist have come, too.
    pub(super) fn leave_nest(&mut self) -> PassResult {
        let Some(around) = &self.around else { return Ok(()) };
        let outer = around.outer;
        let next = outer.next().ok_or_else(|| internal(outer, "a loop that ends its block"))?;
        self.rewriter.set_before(next);
        if self.schedule.kernel.contains(&Step::Commit) {
            AsyncWaitOp::build(self.op.loc(), &[], 0).insert(&mut self.rewriter)?;
        }
        Ok(())
    }

    /// Erases what nothing uses in the body of the loop around: the parts of prologues that only copies need.
    pub(super) fn erase_unused(&self) {
        let Some(around) = &self.around else { return };
        let ops: Vec<Op<'c>> = around.nest.block.ops().collect();
        for op in ops.into_iter().rev() {
            if op.num_results() > 0 && op.results().all(Value::is_unused) && op.is_pure() {
                op.erase();
            }
        }
    }

    /// The slot of iteration `i` of the next tile in rings of `depth` slots, where they go on.
    pub(super) fn slot_of_next(&mut self, depth: u32, i: u32) -> Made<Option<Value<'c>>> {
        if self.slot_results.is_empty() || depth == 1 {
            return Ok(None);
        }
        let place = |distance: u32| self.counters.iter().position(|counter| *counter == (depth, distance));
        if let Some(place) = place(i % depth) {
            return Ok(Some(self.slot_results[place]));
        }
        let first = place(0).ok_or_else(|| internal(self.op, "a ring without a counter"))?;
        let mut slot = self.slot_results[first];
        for _ in 0..i % depth {
            slot = self.go_round(slot, depth)?.0;
        }
        Ok(Some(slot))
    }

    /// The values that iterations hand on, with the iterations of the prologue that they begin as.
    pub(super) fn first_places(&self) -> Vec<(Value<'c>, u32)> {
        let mut places = Vec::new();
        for (what, lag) in &self.lags {
            let (value, i) = match *what {
                Carried::Value(value) => {
                    (value, self.last() - self.schedule.stage[self.source.makers[&value]])
                }
                Carried::Arg(arg) => {
                    (self.block.arg(arg + 1), self.schedule.stages - self.stage_of_next(arg))
                }
            };
            places.extend((1..=*lag).map(|back| (value, i - back)));
        }
        places
    }

    /// What constants, rings and barriers come before.
    pub(super) fn anchor(&self) -> Op<'c> {
        self.around.as_ref().map_or(self.op, |around| around.outer)
    }
}
