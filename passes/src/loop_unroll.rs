//! `--triton-loop-unroll`: several iterations of a loop as one.
//!
//! A loop marked `tt.loop_unroll_factor = n` becomes one that does `n`
//! iterations at a time, and the loop itself, for those that are left. The
//! number of iterations is computed without assuming that bounds are
//! positive, that the loop runs at all, or that their difference is
//! representable as a signed number.

use crate::ir_util::{Scalars, constant, loop_predicate, substitute, trip_count};
use crate::machine::error;
use mlir_host::asm::Reported;
use mlir_host::hash::FastMap;
use mlir_host::ir::{Attr, Op, Type, Value};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, Rewriter};
use mlir_host::upstream::ForOp;

/// The pass.
pub static TRITON_LOOP_UNROLL: PassDef = PassDef {
    dependencies: &["arith", "scf"],
    ..PassDef::new("triton-loop-unroll", "Unroll loops by their tt.loop_unroll_factor", run)
};

/// The attribute that asks for it.
const FACTOR: &str = "tt.loop_unroll_factor";
/// More iterations than this in one are taken for a mistake.
const MAX_FACTOR: i64 = 1024;

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let mut marked = Vec::new();
    root.walk_post(&mut |op| {
        if ForOp::cast(op).is_some() && op.attr(FACTOR).is_some() {
            marked.push(op);
        }
    });
    let mut rewriter = IrRewriter::new(root.context());
    for op in marked {
        let Some(factor) = op.attr(FACTOR).and_then(Attr::as_int) else {
            return Err(error(op, format!("expects an integer as \"{FACTOR}\"")));
        };
        if factor > MAX_FACTOR {
            return Err(error(op, format!("cannot be unrolled {factor} times, the most is {MAX_FACTOR}")));
        }
        op.remove_attr(FACTOR);
        if factor > 1 {
            unroll(&mut rewriter, op, factor)?;
        }
    }
    Ok(())
}

/// Where the unrolled loop ends, as a value; whether nothing is left then.
struct End<'c> {
    value: Value<'c>,
    exact: bool,
}

/// Has a loop do `factor` iterations at a time, and what is left in the loop itself, which comes behind.
///
/// # Errors
/// Where operations cannot be made.
pub(crate) fn unroll<'c>(rewriter: &mut Rewriter<'c>, op: Op<'c>, factor: i64) -> PassResult {
    let (from, to, step) = (op.operand(0), op.operand(1), op.operand(2));
    rewriter.set_before(op);
    let mut scalars = Scalars { rewriter, loc: op.loc(), ty: from.ty() };
    let end = match (trip_count(op), constant(from), constant(step)) {
        (Some(trips), Some(first), Some(by)) => {
            let done = trips - trips % factor as u64;
            if done == 0 {
                return Ok(());
            }
            // At most one step beyond the upper bound; wraps as the loop itself would.
            let value = i128::from(first) + i128::from(done) * i128::from(by);
            End { value: scalars.number(value as i64)?, exact: done == trips }
        }
        _ => End { value: end_of_whole(&mut scalars, op, [from, to, step], factor)?, exact: false },
    };
    let by = scalars.times(step, factor)?;

    let main = rewriter.clone_op(op);
    main.set_operand(1, end.value);
    main.set_operand(2, by);
    repeat(rewriter, op, main, factor)?;

    if end.exact {
        rewriter.replace(op, &main.results().collect::<Vec<_>>());
        return Ok(());
    }
    op.set_operand(0, end.value);
    for (i, value) in main.results().enumerate() {
        op.set_operand(3 + i, value);
    }
    // A few iterations fill no pipeline.
    op.set_attr("tt.num_stages", Attr::int(op.context(), 32, 1));
    Ok(())
}

/// The induction variable's value after as many iterations as are a multiple
/// of `factor`.
fn end_of_whole<'c>(
    s: &mut Scalars<'_, 'c>,
    op: Op<'c>,
    [from, to, step]: [Value<'c>; 3],
    factor: i64,
) -> Result<Value<'c>, Reported> {
    let i1 = Type::int(op.context(), 1);
    let predicate = Attr::int(op.context(), 64, loop_predicate(op));
    let runs = s.rewriter.generic("arith.cmpi", op.loc(), &[from, to], &[i1], &[("predicate", predicate)]);
    let runs = runs?.result(0);
    // As an unsigned number, the difference of two bounds always fits.
    let distance = s.op("arith.subi", &[to, from])?;
    let trips = if constant(step) == Some(1) {
        distance
    } else {
        let one = s.number(1)?;
        let last = s.op("arith.subi", &[distance, one])?;
        let steps = s.op("arith.divui", &[last, step])?;
        s.op("arith.addi", &[steps, one])?
    };
    let by = s.number(factor)?;
    let left = s.op("arith.remui", &[trips, by])?;
    let whole = s.op("arith.subi", &[trips, left])?;
    let span = if constant(step) == Some(1) { whole } else { s.op("arith.muli", &[whole, step])? };
    let zero = s.number(0)?;
    let span = s.op("arith.select", &[runs, span, zero])?;
    s.op("arith.addi", &[from, span])
}

/// Appends `factor - 1` copies of the body of `op` to that of `main`, its clone.
fn repeat<'c>(rewriter: &mut Rewriter<'c>, op: Op<'c>, main: Op<'c>, factor: i64) -> PassResult {
    let body = |op: Op<'c>| op.region(0).first_block().and_then(|block| Some((block, block.terminator()?)));
    let (Some((block, last)), Some((main_block, main_last))) = (body(op), body(main)) else {
        return Err(error(op, "expects a body that ends in scf.yield"));
    };
    let induction = main_block.arg(0);
    let mut carried: Vec<Value<'c>> = main_last.operands().collect();
    for copy in 1..factor {
        rewriter.set_before(main_last);
        let mut scalars = Scalars { rewriter, loc: op.loc(), ty: induction.ty() };
        let offset = scalars.times(op.operand(2), copy)?;
        let index = scalars.op("arith.addi", &[induction, offset])?;
        let mut map: FastMap<Value<'c>, Value<'c>> = block.args().skip(1).zip(carried).collect();
        map.insert(block.arg(0), index);
        for inner in block.ops().filter(|inner| *inner != last) {
            let made = rewriter.clone_op(inner);
            substitute(made, &map);
            map.extend(inner.results().zip(made.results()));
        }
        carried = last.operands().map(|value| map.get(&value).copied().unwrap_or(value)).collect();
    }
    for (i, value) in carried.into_iter().enumerate() {
        main_last.set_operand(i, value);
    }
    Ok(())
}
