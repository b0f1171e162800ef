//! `--triton-counted-loops`: while loops that count become for loops.
//!
//! `while k < K: …; k += BLOCK` is an `scf.while` of a condition and a body, and all that is known of loops (software pipelines,
//! ranges of counters, loops that are joined, what moves out of them) is known of `scf.for`. Where the condition compares a
//! number that the loop carries with one that it does not change, and the body adds one that it does not change, both do the same:
//!
//! * up, while it is less than (or at most) a bound: from the first number to the bound, in steps of what is added; so where the
//!   condition compares a multiple of it, or how far a block reaches that begins there, and it is never negative;
//! * down by a constant, while it is greater than a constant that is not negative, as what is left of a sum: the loop counts
//!   what has been taken away, from zero to what there is above the constant.
//!
//! A number that each iteration adds the same constant to as to the counter is a sum of the counter then.

use crate::ir_util::cmpi::{SGE, SGT, SLE, SLT, UGE, UGT, ULE, ULT};
use crate::ir_util::{compare, constant, is_outside, substitute};
use crate::machine::internal;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Block, Op, Type, Value};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, create, new_region};
use mlir_host::upstream::{AddIOp, CmpIOp, MulIOp, SubIOp, WhileOp};

/// The pass.
pub static TRITON_COUNTED_LOOPS: PassDef = PassDef {
    dependencies: &["arith", "scf", "tt"],
    ..PassDef::new("triton-counted-loops", "Turn while loops that count into for loops", run)
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let mut loops = Vec::new();
    root.walk_post(&mut |op| loops.extend(WhileOp::cast(op)));
    for counted in loops.into_iter().filter_map(|op| Counted::of(op.op())) {
        counted.rewrite()?;
    }
    Ok(())
}

/// The number that a loop counts, among those that it carries.
#[derive(Clone, Copy)]
enum Count<'c> {
    /// From what it is first to less than `bound`, in steps of `step`.
    Up { bound: Value<'c>, step: Value<'c>, inclusive: bool, unsigned: bool, compared: Compared },
    /// While it is greater than `above`, which is not negative, by `step` less each time.
    Down { above: i64, step: i64 },
}

/// What of a counter is compared.
#[derive(Clone, Copy)]
enum Compared {
    Itself,
    /// So many times as much, which is more than none.
    Times(i64),
    /// So much more than it, which is not negative.
    Plus(i64),
}

/// What an iteration adds to a number.
#[derive(Clone, Copy)]
enum Step<'c> {
    /// A value from before the loop, which is no constant below one.
    Value(Value<'c>),
    /// A negative constant: this one, less than zero.
    Less(i64),
}

/// A while loop: the blocks of its condition and of its body.
#[derive(Clone, Copy)]
struct Loop<'c> {
    op: Op<'c>,
    before: Block<'c>,
    after: Block<'c>,
}

/// One that counts.
struct Counted<'c> {
    of: Loop<'c>,
    /// Which of the values that the loop carries is the counter.
    counter: usize,
    count: Count<'c>,
}

impl<'c> Counted<'c> {
    fn of(op: Op<'c>) -> Option<Self> {
        let [before, after] = [0, 1].map(|i| op.region(i).first_block());
        let (before, after) = (before?, after?);
        let (condition, yields) = (before.terminator()?, after.terminator()?);
        let compare = CmpIOp::defining(condition.operand(0))?;
        if compare.op().block() != Some(before) {
            return None;
        }
        let this = Loop { op, before, after };
        // Between the condition and the body values keep what they are, but may change their places.
        let passed = |value: Value<'c>| value.arg_block() == Some(before) || is_outside(value, before);
        if !condition.operands().skip(1).all(passed) {
            return None;
        }
        let (predicate, a, b) = (compare.predicate()?, compare.op().operand(0), compare.op().operand(1));
        let sides = [(predicate, a, b), (mirrored(predicate)?, b, a)];
        let found = sides.into_iter().find_map(|(predicate, of_counter, bound)| {
            let (counter, compared) = this.compared(of_counter)?;
            let number = counter.index();
            let next = yields.operands().nth(number)?;
            let count = this.count(predicate, counter, compared, bound, next)?;
            Some((of_counter, bound, Self { of: this, counter: number, count }))
        });
        let (of_counter, bound, counted) = found?;
        // What else is computed for the condition does not change, nor does the bound.
        let ours = |at: Op<'c>| at == condition || at == compare.op() || Some(at) == of_counter.def_op();
        let from_counter = |value: Value<'c>| value.arg_block() == Some(before) || value == of_counter;
        let stays = |at: Op<'c>| at.is_pure() && at.num_regions() == 0 && !at.operands().any(from_counter);
        let all = before.ops().filter(|at| !ours(*at)).all(stays);
        (all && bound.arg_block() != Some(before)).then_some(counted)
    }
}

impl<'c> Loop<'c> {
    /// The carried number of which `value`, of the condition, is known, and what it is of that.
    fn compared(&self, value: Value<'c>) -> Option<(Value<'c>, Compared)> {
        let is_carried = |value: Value<'c>| value.arg_block() == Some(self.before);
        if is_carried(value) {
            return Some((value, Compared::Itself));
        }
        let op = value.def_op().filter(|op| op.block() == Some(self.before))?;
        let by = |least: i64| {
            let sides = [(op.operand(0), op.operand(1)), (op.operand(1), op.operand(0))];
            let of = |(it, by): (Value<'c>, Value<'c>)| Some((it, constant(by).filter(|by| *by >= least)?));
            sides.into_iter().filter_map(of).find(|(it, _)| is_carried(*it))
        };
        let (counter, compared) = match_op!(op, {
            MulIOp => by(1).map(|(it, by)| (it, Compared::Times(by)))?,
            AddIOp => by(0).map(|(it, by)| (it, Compared::Plus(by)))?,
            _ => return None,
        });
        // Nothing is rounded the wrong way then.
        constant(self.op.operand(counter.index())).filter(|first| *first >= 0)?;
        Some((counter, compared))
    }

    /// How `counter`, which is `next` in the next iteration, is counted, while `predicate` holds of it, as it is `compared`, and `bound`.
    fn count(
        &self,
        predicate: i64,
        counter: Value<'c>,
        compared: Compared,
        bound: Value<'c>,
        next: Value<'c>,
    ) -> Option<Count<'c>> {
        if !matches!(counter.ty().int_bits(), Some(32 | 64)) {
            return None;
        }
        match (predicate, self.step(counter, next)?, compared) {
            (SLT | SLE, Step::Value(step), Compared::Times(_) | Compared::Plus(_)) => {
                constant(step)?;
                Some(Count::Up { bound, step, inclusive: predicate == SLE, unsigned: false, compared })
            }
            (SLT | SLE | ULT | ULE, Step::Value(step), Compared::Itself) => {
                let (inclusive, unsigned) = (matches!(predicate, SLE | ULE), matches!(predicate, ULT | ULE));
                Some(Count::Up { bound, step, inclusive, unsigned, compared })
            }
            (SGT | SGE, Step::Less(step), Compared::Itself) => {
                let above = constant(bound)?.checked_sub(i64::from(predicate == SGE))?;
                (above >= 0).then_some(Count::Down { above, step })
            }
            _ => None,
        }
    }

    /// What each iteration adds to `carried`, which is `next` in the next one.
    fn step(&self, carried: Value<'c>, next: Value<'c>) -> Option<Step<'c>> {
        let is_it = |value: Value<'c>| self.carried(value) == Some(carried);
        let is_kept = |value: Value<'c>| is_outside(value, self.after);
        if let Some(sum) = AddIOp::defining(next) {
            let (a, b) = (sum.op().operand(0), sum.op().operand(1));
            let by =
                [(a, b), (b, a)].into_iter().find_map(|(it, by)| (is_it(it) && is_kept(by)).then_some(by))?;
            return match constant(by) {
                Some(by) if by < 0 => Some(Step::Less(by.checked_neg()?)),
                Some(0) => None,
                _ => Some(Step::Value(by)),
            };
        }
        let difference = SubIOp::defining(next)?.op();
        let by = constant(difference.operand(1)).filter(|by| *by > 0 && is_it(difference.operand(0)))?;
        Some(Step::Less(by))
    }

    /// Which value that the loop carries `value`, an argument of the body, is.
    fn carried(&self, value: Value<'c>) -> Option<Value<'c>> {
        if value.arg_block() != Some(self.after) {
            return None;
        }
        let condition = self.before.terminator()?;
        condition.operands().nth(1 + value.index()).filter(|value| value.arg_block() == Some(self.before))
    }
}

impl<'c> Counted<'c> {
    fn rewrite(self) -> PassResult {
        let Self { of: Loop { op, before, after }, counter, count } = self;
        let missing = || internal(op, "a loop without a condition");
        let (condition, yields) =
            (before.terminator().ok_or_else(missing)?, after.terminator().ok_or_else(missing)?);
        let mut rewriter = IrRewriter::new(op.context());
        let passed: Vec<Value<'c>> = condition.operands().skip(1).collect();
        let nexts: Vec<Value<'c>> = yields.operands().collect();
        let first: Vec<Value<'c>> = op.operands().collect();
        // What the condition computes of what does not change, comes before the loop.
        let of_counter = |at: &Op<'c>| at.operands().any(|value| value.arg_block() == Some(before));
        let compare = condition.operand(0).def_op();
        let others = before.ops().filter(|at| *at != condition && Some(*at) != compare && !of_counter(at));
        for at in others.collect::<Vec<_>>() {
            at.move_before(op);
        }
        rewriter.set_before(op);
        let (lower, upper, step, unsigned) = self.bounds(&mut rewriter)?;
        // What goes along with the counter is a sum of it; what is needed behind the loop is carried all the same.
        let is_read = |number: usize| {
            let shows = |(result, value): (Value<'c>, &Value<'c>)| {
                *value == before.arg(number) && !result.is_unused()
            };
            op.results().zip(&passed).any(shows)
        };
        let along = |number: usize| {
            if is_read(number) || number == counter {
                return None;
            }
            let (ty, by) = match count {
                Count::Up { step, .. } => (step.ty(), constant(step)?),
                Count::Down { step, .. } => (lower.ty(), step),
            };
            match self.of.step(before.arg(number), nexts[number])? {
                Step::Value(value) => (constant(value)? == by && value.ty() == ty).then_some(()),
                Step::Less(_) => None,
            }
        };
        let sums: Vec<usize> = (0..first.len()).filter(|number| along(*number).is_some()).collect();
        let kept: Vec<usize> = (0..first.len())
            .filter(|number| !sums.contains(number) && (*number != counter || is_read(*number)))
            .collect();
        // How far each is from the counter, where it is not the same.
        let mut apart = Vec::with_capacity(sums.len());
        for number in &sums {
            let (begin, zero) = (first[*number], constant(lower) == Some(0));
            let same = begin == lower || constant(begin).is_some_and(|begin| constant(lower) == Some(begin));
            apart.push(match (same, zero) {
                (true, _) => None,
                (_, true) => Some(begin),
                _ => Some(
                    rewriter.generic("arith.subi", op.loc(), &[begin, lower], &[lower.ty()], &[])?.result(0),
                ),
            });
        }
        let begun: Vec<Value<'c>> = kept.iter().map(|number| first[*number]).collect();
        let types: Vec<Type<'c>> = begun.iter().map(|value| value.ty()).collect();
        let operands: Vec<Value<'c>> = [lower, upper, step].into_iter().chain(begun).collect();
        let mut attrs = op.discardable_attrs();
        if unsigned {
            attrs.push(("unsignedCmp", Attr::unit(op.context())));
        }
        let made = create("scf.for", op.loc(), &operands, &types, &attrs, &[new_region()])?;
        rewriter.insert(made);
        let arguments: Vec<_> = [lower.ty()].into_iter().chain(types).map(|ty| (ty, op.loc())).collect();
        let body = Block::new(&arguments);
        made.region(0).append(body);
        rewriter.set_end(body);
        // What the values that the while loop carried are now.
        let mut now: FastMap<Value<'c>, Value<'c>> = FastMap::default();
        let mut emit = |name: &str, a: Value<'c>, b: Value<'c>| {
            Ok::<_, Reported>(rewriter.generic(name, op.loc(), &[a, b], &[a.ty()], &[])?.result(0))
        };
        let counted = match count {
            Count::Up { .. } => body.arg(0),
            Count::Down { .. } => emit("arith.subi", first[counter], body.arg(0))?,
        };
        now.insert(before.arg(counter), counted);
        for (number, apart) in sums.iter().zip(&apart) {
            let sum = apart.map(|apart| emit("arith.addi", body.arg(0), apart)).transpose()?;
            now.insert(before.arg(*number), sum.unwrap_or(body.arg(0)));
        }
        let carried = kept.iter().enumerate().filter(|(_, number)| **number != counter);
        now.extend(carried.map(|(at, number)| (before.arg(*number), body.arg(1 + at))));
        let values: Vec<Value<'c>> = kept.iter().map(|number| nexts[*number]).collect();
        let last = create("scf.yield", yields.loc(), &values, &[], &[], &[])?;
        body.append(last);
        for at in after.ops().filter(|at| *at != yields).collect::<Vec<_>>() {
            at.move_before(last);
        }
        let inside: FastMap<_, _> = after
            .args()
            .zip(&passed)
            .map(|(arg, value)| (arg, now.get(value).copied().unwrap_or(*value)))
            .collect();
        substitute(made, &inside);
        for (result, value) in op.results().zip(&passed) {
            let number = (value.arg_block() == Some(before)).then(|| value.index());
            let at = number.and_then(|number| kept.iter().position(|kept| *kept == number));
            match (number, at) {
                (None, _) => result.replace_all_uses_with(*value),
                (_, Some(at)) => result.replace_all_uses_with(made.result(at)),
                // Nobody reads it.
                _ => {}
            }
        }
        op.erase();
        Ok(())
    }

    /// The new loop's bounds and step, and whether it compares unsigned numbers.
    fn bounds(
        &self,
        rewriter: &mut IrRewriter<'c>,
    ) -> Result<(Value<'c>, Value<'c>, Value<'c>, bool), Reported> {
        let (loc, first) = (self.of.op.loc(), self.of.op.operand(self.counter));
        let ty = first.ty();
        let number = |rewriter: &mut IrRewriter<'c>, value: i64| {
            let attrs = [("value", Attr::int_of(ty, value))];
            Ok::<_, Reported>(rewriter.generic("arith.constant", loc, &[], &[ty], &attrs)?.result(0))
        };
        let emit = |rewriter: &mut IrRewriter<'c>, name: &str, a: Value<'c>, b: Value<'c>| {
            Ok::<_, Reported>(rewriter.generic(name, loc, &[a, b], &[ty], &[])?.result(0))
        };
        Ok(match self.count {
            Count::Up { bound, step, inclusive, unsigned, compared } => {
                let mut upper = bound;
                if inclusive {
                    // Who counts up to the greatest number never ends.
                    let one = number(rewriter, 1)?;
                    upper = emit(rewriter, "arith.addi", bound, one)?;
                }
                match compared {
                    Compared::Itself | Compared::Plus(0) => {}
                    // A bound that is less than what is added is reached at once.
                    Compared::Plus(by) => {
                        let by = number(rewriter, by)?;
                        let most = emit(rewriter, "arith.maxsi", upper, by)?;
                        upper = emit(rewriter, "arith.subi", most, by)?;
                    }
                    // The quotient, rounded up.
                    Compared::Times(by) => {
                        let by = number(rewriter, by)?;
                        let down = emit(rewriter, "arith.divsi", upper, by)?;
                        let product = emit(rewriter, "arith.muli", down, by)?;
                        let less = compare(rewriter, loc, SLT, product, upper)?;
                        let more = rewriter.generic("arith.extui", loc, &[less], &[ty], &[])?.result(0);
                        upper = emit(rewriter, "arith.addi", down, more)?;
                    }
                }
                (first, upper, step, unsigned)
            }
            Count::Down { above, step } => {
                let mut upper = first;
                if above > 0 {
                    let above = number(rewriter, above)?;
                    let most = emit(rewriter, "arith.maxsi", first, above)?;
                    upper = emit(rewriter, "arith.subi", most, above)?;
                }
                (number(rewriter, 0)?, upper, number(rewriter, step)?, false)
            }
        })
    }
}

/// The predicate that holds of `b` and `a` where `predicate` does of `a` and `b`; `None` for equality.
fn mirrored(predicate: i64) -> Option<i64> {
    Some(match predicate {
        SLT => SGT,
        SLE => SGE,
        SGT => SLT,
        SGE => SLE,
        ULT => UGT,
        ULE => UGE,
        UGT => ULT,
        UGE => ULE,
        _ => return None,
    })
}
