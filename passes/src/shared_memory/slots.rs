//! Which buffers of one allocation are never the same.
//!
//! Software pipelines use the buffers of an allocation in turn: one is filled
//! while others are read, and their numbers go round modulo their count. Here a
//! number is brought into the form `root + offset` modulo the count; two with
//! the same root and other offsets name different buffers, at any moment. The
//! roots of iter_args that each iteration advances by a constant are the loop
//! and that constant: such values keep their distance.
//!
//! As everywhere, counters are taken not to overflow.

use crate::ir_util::constant;
use mlir_host::ir::{Attr, Op, Value};

/// What a number is counted from.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Root<'c> {
    Zero,
    /// Grows by so much in each iteration.
    Loop(Op<'c>, i64),
    Value(Value<'c>),
}

#[derive(Clone, Copy)]
struct Form<'c> {
    root: Root<'c>,
    offset: i64,
}

/// Deeper expressions are not looked into.
const DEPTH: u32 = 16;

/// Whether `a` and `b`, numbers of one of `count` buffers, differ whenever both
/// have been computed in the same iteration of the loops around them.
pub fn differ<'c>(a: Value<'c>, b: Value<'c>, count: i64) -> bool {
    let (a, b) = (form(a, count, None, DEPTH), form(b, count, None, DEPTH));
    count > 1 && a.root == b.root && (a.offset - b.offset).rem_euclid(count) != 0
}

/// `value` modulo `count`; `stop` is taken as it is.
fn form<'c>(value: Value<'c>, count: i64, stop: Option<Value<'c>>, depth: u32) -> Form<'c> {
    let itself = Form { root: Root::Value(value), offset: 0 };
    if stop == Some(value) || depth == 0 {
        return itself;
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
    match op.name() {
        "arith.addi" => match (constant(op.operand(0)), constant(op.operand(1))) {
            (_, Some(by)) => shifted(by, op.operand(0)),
            (Some(by), _) => shifted(by, op.operand(1)),
            _ => itself,
        },
        "arith.subi" => constant(op.operand(1)).map_or(itself, |by| shifted(-by, op.operand(0))),
        "arith.remui" | "arith.remsi" if constant(op.operand(1)) == Some(count) => of(op.operand(0)),
        "arith.andi" if count & (count - 1) == 0 && constant(op.operand(1)) == Some(count - 1) => {
            of(op.operand(0))
        }
        "arith.index_cast" | "arith.extsi" | "arith.extui" | "arith.trunci" => of(op.operand(0)),
        "arith.select" => match next_around(op, count) {
            Some(next) if in_range(next.operand(0), count) => of(next.result(0)),
            _ => itself,
        },
        _ => itself,
    }
}

/// The addition of one in `x + 1 < count ? x + 1 : 0`, however it is compared.
fn next_around<'c>(select: Op<'c>, count: i64) -> Option<Op<'c>> {
    let compare = select.operand(0).def_op().filter(|op| op.name() == "arith.cmpi")?;
    // As arith numbers them: eq, ne, slt, sge, ult, uge.
    let holds_below = match compare.attr("predicate").and_then(Attr::as_int)? {
        1 | 2 | 6 => true,
        0 | 5 | 9 => false,
        _ => return None,
    };
    let (below, above) = if holds_below { (1, 2) } else { (2, 1) };
    let (next, zero) = (select.operand(below), select.operand(above));
    let right = compare.operand(0) == next
        && constant(compare.operand(1)) == Some(count)
        && constant(zero) == Some(0);
    let next = next.def_op().filter(|op| right && op.name() == "arith.addi")?;
    (constant(next.operand(1)) == Some(1)).then_some(next)
}

/// Whether a value is known to be one of `0..count`.
fn in_range(value: Value<'_>, count: i64) -> bool {
    let bounded = |value: Value<'_>| {
        constant(value).is_some_and(|number| (0..count).contains(&number))
            || value.def_op().is_some_and(|op| match op.name() {
                "arith.remui" => constant(op.operand(1)) == Some(count),
                "arith.select" => next_around(op, count).is_some(),
                _ => false,
            })
    };
    bounded(value) || carries(value).is_some_and(|(_, first, next)| bounded(first) && bounded(next))
}

/// The loop of which `value` is an iter_arg, and what it is in the first and in the next iteration.
fn carries<'c>(value: Value<'c>) -> Option<(Op<'c>, Value<'c>, Value<'c>)> {
    let block = value.arg_block()?;
    let op = block.parent().filter(|op| op.name() == "scf.for")?;
    let i = value.index().checked_sub(1)?;
    Some((op, op.operand(3 + i), block.terminator()?.operands().nth(i)?))
}

/// The form of a block argument of a loop.
fn carried<'c>(value: Value<'c>, count: i64, depth: u32) -> Option<Form<'c>> {
    if let Some((op, first, next)) = carries(value) {
        let (first, next) = (form(first, count, None, depth - 1), form(next, count, Some(value), depth - 1));
        let counts = first.root == Root::Zero && next.root == Root::Value(value);
        let step = next.offset.rem_euclid(count);
        return counts.then_some(Form { root: Root::Loop(op, step), offset: first.offset });
    }
    // The induction variable.
    let op = value.arg_block()?.parent().filter(|op| op.name() == "scf.for" && value.index() == 0)?;
    let (first, step) = (constant(op.operand(0))?, constant(op.operand(2))?);
    Some(Form { root: Root::Loop(op, step.rem_euclid(count)), offset: first })
}
