//! Two loops as one, where the outer one only goes on with what the inner one computes: a convolution that adds up over the
//! rows and columns of its filter and over channels. A pipeline of one loop has one prologue.
//!
//! The new loop counts iterations of both. It carries the induction variables, what the outer loop carries, and what the
//! inner one uses of the body of the outer one, which is computed again where the inner loop would begin again. What the
//! inner loop does is done in the same order, and as often.

use super::source::{Refusal, body};
use crate::ir_util::{
    cmpi, compare, compute_again, is_loop, is_outside, loop_predicate, substitute, trip_count,
};
use crate::machine::internal;
use mlir_host::asm::Reported;
use mlir_host::hash::{FastMap, FastSet};
use mlir_host::ir::{Attr, Block, Op, Type, Value, Walk};
use mlir_host::rewrite::{IrRewriter, create, new_region};
use mlir_host::upstream::ForOp;

type Made<T> = Result<T, Reported>;

/// Two loops that can be one.
pub struct Pair<'c> {
    /// The outer loop.
    pub outer: Op<'c>,
    /// The inner one.
    pub inner: Op<'c>,
    /// What the inner loop goes on with: numbers of iter_args of the outer loop and of its own.
    chains: Vec<(usize, usize)>,
    /// Other iter_args of the outer loop, and of the inner one.
    own: Vec<usize>,
    reset: Vec<usize>,
    /// What the inner loop uses of the body of the outer one.
    used: Vec<Value<'c>>,
}

impl<'c> Pair<'c> {
    /// The pair of `inner` and the loop around it.
    ///
    /// # Errors
    /// Why they stay two.
    pub fn of(inner: Op<'c>) -> Result<Self, Refusal> {
        let outer = inner.parent().filter(|outer| ForOp::cast(*outer).is_some());
        let outer = outer.ok_or("no loop is around it")?;
        let (block, end) = body(outer).ok_or("it has no body")?;
        let is_int = |op: Op<'c>| op.operand(0).ty().int_bits().is_some();
        if !is_int(outer) || !is_int(inner) {
            return Err("it counts in indices");
        }
        if block.ops().any(|op| op != inner && op != end && (!op.is_pure() || is_loop(op))) {
            return Err("something is done besides in the loop around it");
        }
        let is_outside = |value: Value<'c>| is_outside(value, block);
        if !inner.operands().take(3).all(is_outside) {
            return Err("how often it runs depends on the loop around it");
        }
        let mut pair =
            Pair { outer, inner, chains: Vec::new(), own: Vec::new(), reset: Vec::new(), used: Vec::new() };
        for arg in 0..outer.num_results() {
            let next = end.operand(arg);
            if next.def_op() != Some(inner) {
                pair.own.push(arg);
                continue;
            }
            let (value, number) = (block.arg(arg + 1), next.index());
            let goes_on = inner.result(number).uses().all(|(user, _)| user == end);
            let only = goes_on && value.uses().all(|(user, i)| user == inner && i == 3 + number);
            if !only
                || inner.operand(3 + number) != value
                || pair.chains.iter().any(|chain| chain.1 == number)
            {
                return Err("the loop around it changes what it goes on with");
            }
            pair.chains.push((arg, number));
        }
        let is_chained = |number: &usize| pair.chains.iter().any(|chain| chain.1 == *number);
        let reset: Vec<usize> = (0..inner.num_results()).filter(|number| !is_chained(number)).collect();
        if reset.iter().any(|number| !inner.result(*number).is_unused()) {
            return Err("the loop around it uses what it computes");
        }
        if pair.own.iter().any(|arg| !outer.result(*arg).is_unused()) {
            return Err("what the loop around it carries is used behind it");
        }
        if pair.chains.is_empty() {
            return Err("the loop around it goes on with nothing");
        }
        pair.reset = reset;
        pair.used = used_inside(inner, block);
        Ok(pair)
    }

    /// What is computed where the inner loop begins again.
    pub fn again(&self) -> impl Iterator<Item = Op<'c>> {
        let inner = self.inner;
        let block = inner.block();
        let end = block.and_then(Block::terminator);
        block.into_iter().flat_map(Block::ops).filter(move |op| *op != inner && Some(*op) != end)
    }

    /// Makes one loop of both; gives it.
    ///
    /// # Errors
    /// When an operation cannot be made; it is reported.
    pub fn join(self) -> Made<Op<'c>> {
        let ctx = self.outer.context();
        let mut rewriter = IrRewriter::new(ctx);
        rewriter.set_before(self.outer);
        let mut join = Join { pair: &self, rewriter };
        join.run()
    }
}

/// What is used in `inner` of the values of `block` around it.
fn used_inside<'c>(inner: Op<'c>, block: Block<'c>) -> Vec<Value<'c>> {
    let (mut used, mut seen) = (Vec::new(), FastSet::default());
    inner.walk(&mut |op| {
        if op != inner {
            let of_block = |value: &Value<'c>| value.def_op().is_some_and(|op| op.block() == Some(block));
            used.extend(op.operands().filter(of_block).filter(|value| seen.insert(*value)));
        }
        Walk::Advance
    });
    used
}

/// What values of the body of the outer loop are in one of its iterations.
type Env<'c> = FastMap<Value<'c>, Value<'c>>;

struct Join<'a, 'c> {
    pair: &'a Pair<'c>,
    rewriter: IrRewriter<'c>,
}

impl<'c> Join<'_, 'c> {
    fn emit(&mut self, name: &str, args: &[Value<'c>], ty: Type<'c>) -> Made<Value<'c>> {
        Ok(self.rewriter.generic(name, self.pair.outer.loc(), args, &[ty], &[])?.result(0))
    }

    fn compare(&mut self, predicate: i64, a: Value<'c>, b: Value<'c>) -> Made<Value<'c>> {
        compare(&mut self.rewriter, self.pair.outer.loc(), predicate, a, b)
    }

    fn number(&mut self, ty: Type<'c>, value: i64) -> Made<Value<'c>> {
        let attrs = [("value", Attr::int_of(ty, value))];
        Ok(self.rewriter.generic("arith.constant", self.pair.outer.loc(), &[], &[ty], &attrs)?.result(0))
    }

    fn run(&mut self) -> Made<Op<'c>> {
        let Pair { outer, inner, .. } = *self.pair;
        let (block, _) = body(outer).ok_or_else(|| internal(outer, "a loop without a body"))?;
        let (inside, end) = body(inner).ok_or_else(|| internal(inner, "a loop without a body"))?;
        let place = self.place_of_bounds();
        self.rewriter.set_before(place);
        let (zero, total, one) = self.bounds()?;
        self.rewriter.set_before(outer);
        let mut env = Env::default();
        env.insert(block.arg(0), outer.operand(0));
        env.extend((0..outer.num_results()).map(|arg| (block.arg(arg + 1), outer.operand(arg + 3))));
        let mut first = vec![inner.operand(0), outer.operand(0)];
        first.extend(self.state(&mut env)?);
        let restarts = first.len();
        first.extend(self.pair.chains.iter().map(|(arg, _)| outer.operand(arg + 3)));
        let types: Vec<Type<'c>> = first.iter().map(|value| value.ty()).collect();
        let operands: Vec<Value<'c>> = [zero, total, one].into_iter().chain(first).collect();
        let made =
            create("scf.for", inner.loc(), &operands, &types, &inner.discardable_attrs(), &[new_region()])?;
        self.rewriter.insert(made);
        let arguments: Vec<_> = [zero.ty()].into_iter().chain(types).map(|ty| (ty, inner.loc())).collect();
        let kernel = Block::new(&arguments);
        made.region(0).append(kernel);
        let args: Vec<Value<'c>> = kernel.args().skip(1).collect();
        // What values of the outer loop, and of the inner one, are now.
        let mut now = Env::default();
        now.insert(block.arg(0), args[1]);
        let carried = self.pair.own.iter().map(|arg| block.arg(arg + 1));
        let begun = self.pair.reset.iter().map(|number| inside.arg(number + 1));
        let chained = self.pair.chains.iter().map(|(_, number)| inside.arg(number + 1));
        let all = carried.chain(self.pair.used.iter().copied()).chain(begun).chain(chained);
        now.extend(all.zip(args[2..].iter().copied()));
        now.insert(inside.arg(0), args[0]);
        self.rewriter.set_end(kernel);
        let yields = self.next(&args, restarts, &now, end)?;
        let last = create("scf.yield", inner.loc(), &yields, &[], &[], &[])?;
        kernel.append(last);
        // The body of the inner loop comes before what was made for the next iteration.
        let start = kernel.first().unwrap_or(last);
        for op in inside.ops().filter(|op| *op != end).collect::<Vec<_>>() {
            op.move_before(start);
        }
        kernel.parent().into_iter().for_each(|made| substitute(made, &now));
        for (at, (arg, _)) in self.pair.chains.iter().enumerate() {
            outer.result(*arg).replace_all_uses_with(made.result(restarts + at));
        }
        outer.erase();
        Ok(made)
    }

    /// The outermost loop before which both loops' bounds are known: a loop around may be joined, too.
    fn place_of_bounds(&self) -> Op<'c> {
        let Pair { outer, inner, .. } = *self.pair;
        let known = |block| {
            let mut bounds = outer.operands().take(3).chain(inner.operands().take(3));
            bounds.all(|value| is_outside(value, block))
        };
        let around = |op: &Op<'c>| {
            let block = op.block().filter(|block| known(*block))?;
            block.parent().filter(|around| ForOp::cast(*around).is_some())
        };
        std::iter::successors(Some(outer), around).last().unwrap_or(outer)
    }

    /// The new loop's bounds and step.
    fn bounds(&mut self) -> Made<(Value<'c>, Value<'c>, Value<'c>)> {
        let Pair { outer, inner, .. } = *self.pair;
        let known = trip_count(outer).zip(trip_count(inner)).and_then(|(a, b)| a.checked_mul(b));
        let ctx = outer.context();
        if let Some(known) = known.and_then(|known| i32::try_from(known).ok()) {
            let ty = Type::int(ctx, 32);
            return Ok((self.number(ty, 0)?, self.number(ty, known.into())?, self.number(ty, 1)?));
        }
        let ty = Type::int(ctx, 64);
        let (a, b) = (self.trips(outer)?, self.trips(inner)?);
        let total = self.emit("arith.muli", &[a, b], ty)?;
        Ok((self.number(ty, 0)?, total, self.number(ty, 1)?))
    }

    /// How often a loop runs, in 64 bits.
    fn trips(&mut self, op: Op<'c>) -> Made<Value<'c>> {
        let (from, to, step) = (op.operand(0), op.operand(1), op.operand(2));
        let (ty, wide) = (from.ty(), Type::int(op.context(), 64));
        let (one, zero) = (self.number(ty, 1)?, self.number(ty, 0)?);
        // The distance is an unsigned number wherever there is an iteration.
        let runs = self.compare(loop_predicate(op), from, to)?;
        let distance = self.emit("arith.subi", &[to, from], ty)?;
        let less = self.emit("arith.subi", &[distance, one], ty)?;
        let steps = self.emit("arith.divui", &[less, step], ty)?;
        let count = self.emit("arith.addi", &[steps, one], ty)?;
        let count = self.emit("arith.select", &[runs, count, zero], ty)?;
        if ty == wide { Ok(count) } else { self.emit("arith.extui", &[count], wide) }
    }

    /// What an iteration of the outer loop begins with: what it carries, what the inner loop uses of it, and what the inner loop
    /// begins with.
    fn state(&mut self, env: &mut Env<'c>) -> Made<Vec<Value<'c>>> {
        let Pair { outer, inner, .. } = *self.pair;
        let (block, _) = body(outer).ok_or_else(|| internal(outer, "a loop without a body"))?;
        let carried = self.pair.own.iter().map(|arg| block.arg(arg + 1));
        let begins = self.pair.reset.iter().map(|number| inner.operand(number + 3));
        let all: Vec<Value<'c>> = carried.chain(self.pair.used.iter().copied()).chain(begins).collect();
        all.into_iter().map(|value| self.of_iteration(value, env)).collect()
    }

    /// A value of the body of the outer loop, computed where the rewriter is.
    fn of_iteration(&mut self, value: Value<'c>, env: &mut Env<'c>) -> Made<Value<'c>> {
        let block = self.pair.inner.block();
        compute_again(&mut self.rewriter, value, env, &|op: Op<'c>| op.block() == block)
    }

    /// What an iteration gives to the next one: the inner loop's next iteration, or the first one of the outer loop's next.
    fn next(
        &mut self,
        args: &[Value<'c>],
        restarts: usize,
        now: &Env<'c>,
        end: Op<'c>,
    ) -> Made<Vec<Value<'c>>> {
        let Pair { outer, inner, .. } = *self.pair;
        let (block, outer_end) = body(outer).ok_or_else(|| internal(outer, "a loop without a body"))?;
        let (index, step) = (args[0], inner.operand(2));
        let left = self.emit("arith.subi", &[inner.operand(1), index], index.ty())?;
        let more = self.compare(cmpi::UGT, left, step)?;
        let types: Vec<Type<'c>> = args[..restarts].iter().map(|arg| arg.ty()).collect();
        let both = [new_region(), new_region()];
        let chosen = create("scf.if", inner.loc(), &[more], &types, &[], &both)?;
        self.rewriter.insert(chosen);
        // The inner loop goes on.
        let branch = Block::new(&[]);
        chosen.region(0).append(branch);
        self.rewriter.set_end(branch);
        let mut yields = vec![self.emit("arith.addi", &[index, step], index.ty())?];
        yields.extend(&args[1..restarts - self.pair.reset.len()]);
        yields.extend(self.pair.reset.iter().map(|number| end.operand(*number)));
        branch.append(create("scf.yield", inner.loc(), &yields, &[], &[], &[])?);
        // It begins again.
        let branch = Block::new(&[]);
        chosen.region(1).append(branch);
        self.rewriter.set_end(branch);
        let outer_index = args[1];
        let next_index = self.emit("arith.addi", &[outer_index, outer.operand(2)], outer_index.ty())?;
        let (mut old, mut new) = (now.clone(), Env::default());
        new.insert(block.arg(0), next_index);
        for arg in &self.pair.own {
            let value = self.of_iteration(outer_end.operand(*arg), &mut old)?;
            new.insert(block.arg(arg + 1), value);
        }
        let mut yields = vec![inner.operand(0), next_index];
        yields.extend(self.state(&mut new)?);
        branch.append(create("scf.yield", inner.loc(), &yields, &[], &[], &[])?);
        let mut all: Vec<Value<'c>> = chosen.results().collect();
        all.extend(self.pair.chains.iter().map(|(_, number)| end.operand(*number)));
        let parent = chosen.block().ok_or_else(|| internal(inner, "a branch without a block"))?;
        self.rewriter.set_end(parent);
        Ok(all)
    }
}
