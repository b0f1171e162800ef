//! Which buffers of one allocation are never the same.
//!
//! Software pipelines use the buffers of an allocation in turn: one is filled
//! while others are read, and their numbers go round modulo their count. Here a
//! number is brought into the form `root + offset` modulo the count; two with
//! the same root and other offsets name different buffers, at any moment. The
//! roots of iter_args that each iteration advances by a constant are the loop
//! and that constant: such values keep their distance.
//!
//! Loops may carry the buffers themselves from where they were filled to where they are read, some iterations later. A
//! carried buffer has the number that what becomes it had an iteration before.
//!
//! As everywhere, counters are taken not to overflow.

use crate::ir_util::constant;
use mlir_host::ir::Value;
use mlir_host::upstream::{AddIOp, CmpIOp, ForOp, Integer, SelectOp};
use ttopt_dialect::ttg::ops::{LocalAllocOp, MemDescIndexOp};
use ttopt_dialect::ttg::types::MemDescType;

/// What a number is counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root<'c> {
    Zero,
    /// Grows by so much in each iteration.
    Loop(ForOp<'c>, i64),
    Value(Value<'c>),
}

#[derive(Clone, Copy)]
struct Form<'c> {
    root: Root<'c>,
    offset: i64,
}

/// Deeper expressions are not looked into.
const DEPTH: u32 = 16;

/// Whether `a` and `b`, numbers of one of `count` buffers or such buffers, differ whenever both
/// have been computed in the same iteration of the loops around them.
pub fn differ<'c>(a: Value<'c>, b: Value<'c>, count: i64) -> bool {
    let (a, b) = (form(a, count, None, DEPTH), form(b, count, None, DEPTH));
    count > 1 && a.root == b.root && (a.offset - b.offset).rem_euclid(count) != 0
}

/// Whether `buffer`, one of `count` that a loop carries, is a different one in each iteration, in turn.
pub fn takes_turns(buffer: Value<'_>, count: i64) -> bool {
    count > 1 && matches!(form(buffer, count, None, DEPTH).root, Root::Loop(..))
}

/// `value` modulo `count`; `stop` is taken as it is.
fn form<'c>(value: Value<'c>, count: i64, stop: Option<Value<'c>>, depth: u32) -> Form<'c> {
    let itself = Form { root: Root::Value(value), offset: 0 };
    if stop == Some(value) || depth == 0 {
        return itself;
    }
    if MemDescType::cast(value.ty()).is_some() {
        return carried_buffer(value, count, depth).unwrap_or(itself);
    }
    let of = |value| form(value, count, stop, depth - 1);
    if let Some(number) = constant(value) {
        return Form { root: Root::Zero, offset: number };
    }
    let Some(op) = value.def_op() else {
        return carried(value, count, depth).unwrap_or(itself);
    };
    let shifted = |by: i64, value| {
        let form = of(value);
        Form { offset: form.offset + by, ..form }
    };
    match Integer::of(op) {
        Some(Integer::Add(a, b)) => match (constant(a), constant(b)) {
            (_, Some(by)) => shifted(by, a),
            (Some(by), _) => shifted(by, b),
            _ => itself,
        },
        Some(Integer::Sub(a, b)) => constant(b).map_or(itself, |by| shifted(-by, a)),
        Some(Integer::Rem(a, b, _)) if constant(b) == Some(count) => of(a),
        Some(Integer::And(a, b)) if count & (count - 1) == 0 && constant(b) == Some(count - 1) => of(a),
        Some(Integer::Resized(a)) => of(a),
        Some(Integer::Select(select)) => match next_around(select, count) {
            Some((next, before)) if in_range(before, count) => of(next),
            _ => itself,
        },
        _ => itself,
    }
}

/// `x + 1` and `x` of `x + 1 < count ? x + 1 : 0`, however it is compared.
fn next_around<'c>(select: SelectOp<'c>, count: i64) -> Option<(Value<'c>, Value<'c>)> {
    let [condition, yes, no] = [0, 1, 2].map(|i| select.op().operand(i));
    let compare = CmpIOp::defining(condition)?;
    // As arith numbers them: eq, ne, slt, sge, ult, uge.
    let (next, zero) = match compare.predicate()? {
        1 | 2 | 6 => (yes, no),
        0 | 5 | 9 => (no, yes),
        _ => return None,
    };
    let right = compare.op().operand(0) == next
        && constant(compare.op().operand(1)) == Some(count)
        && constant(zero) == Some(0);
    let sum = AddIOp::defining(next).filter(|_| right)?.op();
    (constant(sum.operand(1)) == Some(1)).then_some((next, sum.operand(0)))
}

/// Whether a value is known to be one of `0..count`.
fn in_range(value: Value<'_>, count: i64) -> bool {
    let bounded = |value: Value<'_>| {
        constant(value).is_some_and(|number| (0..count).contains(&number))
            || value.def_op().and_then(Integer::of).is_some_and(|number| match number {
                Integer::Rem(_, by, signed) => !signed && constant(by) == Some(count),
                Integer::Select(select) => next_around(select, count).is_some(),
                _ => false,
            })
    };
    bounded(value) || ForOp::carrying(value).is_some_and(|(_, first, next)| bounded(first) && bounded(next))
}

/// The form of the number of a buffer of an allocation, which loops may have carried.
fn carried_buffer<'c>(value: Value<'c>, count: i64, depth: u32) -> Option<Form<'c>> {
    if let Some(view) = MemDescIndexOp::defining(value) {
        let allocated = LocalAllocOp::defining(view.src()).is_some();
        return allocated.then(|| form(view.index(), count, None, depth - 1));
    }
    let (around, first, next) = ForOp::carrying(value)?;
    let (first, next) = (form(first, count, None, depth - 1), form(next, count, None, depth - 1));
    let Root::Loop(of, step) = next.root else { return None };
    let before = next.offset - step;
    let fits = of == around && first.root == Root::Zero && (first.offset - before).rem_euclid(count) == 0;
    fits.then_some(Form { root: next.root, offset: before })
}

/// The form of a block argument of a loop.
fn carried<'c>(value: Value<'c>, count: i64, depth: u32) -> Option<Form<'c>> {
    if let Some((around, first, next)) = ForOp::carrying(value) {
        let (first, next) = (form(first, count, None, depth - 1), form(next, count, Some(value), depth - 1));
        let counts = first.root == Root::Zero && next.root == Root::Value(value);
        let step = next.offset.rem_euclid(count);
        return counts.then_some(Form { root: Root::Loop(around, step), offset: first.offset });
    }
    let around = ForOp::counting(value)?;
    let (first, step) = (constant(around.lower())?, constant(around.step())?);
    Some(Form { root: Root::Loop(around, step.rem_euclid(count)), offset: first })
}
