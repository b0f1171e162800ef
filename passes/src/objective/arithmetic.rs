//! What one element of an operation of arithmetic takes.
//!
//! The figures are instructions of what `ttc` and ptxas 12.8 make for sm_90 of a kernel that applies one operation to what it loads,
//! beyond those of one that only adds (`bench/gpu/micro/arithmetic.py`); where a function has a path for rare arguments, those of
//! the other one. AMD's device library has polynomials of the same length: unmeasured there.

use crate::plans::word_bits;
use linear_layout::target::CostModel;
use linear_layout::{Dim, LinearLayout};
use mlir_host::ir::{Op, Value};
use mlir_host::upstream::{
    AbsFOp, AbsIOp, CeilDivSIOp, CeilDivUIOp, CeilOp, ConstantOp, CopySignOp, CosOp, CtPopOp, Dialect,
    DivFOp, DivSIOp, DivUIOp, Exp2Op, ExpOp, FloorDivSIOp, FloorOp, FmaOp, Log2Op, LogOp, MulIOp, RemFOp,
    RemSIOp, RemUIOp, RsqrtOp, SinOp, SqrtOp, TanhOp,
};
use mlir_host::{is_one_of, match_op};
use ttopt_dialect::tt::ops::{ApproxDivFOp, ExternElementwiseOp, PreciseDivFOp, PreciseSqrtOp};

/// Instructions for one element.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    /// Of the arithmetic units.
    plain: f64,
    /// Of the unit for special functions, which converts between integers and floating-point numbers, too.
    special: f64,
}

impl Work {
    const fn new(plain: f64, special: f64) -> Self {
        Self { plain, special }
    }
}

/// Instructions of a function of 64-bit numbers that has a polynomial.
const OF_DOUBLE: Work = Work::new(60.0, 1.0);
/// The same of 32-bit numbers, where nothing more is known of it.
const OF_SINGLE: Work = Work::new(28.0, 1.0);

/// Cycles of a warp for one element of `op` in each lane.
pub(crate) fn cycles(op: Op<'_>, cost: &CostModel) -> f64 {
    let work = work(op);
    work.plain * cost.alu + work.special * cost.special
}

/// Cycles of a warp for all elements of `op` where threads hold its result in `layout`, copies in registers counted.
pub(crate) fn cycles_in(op: Op<'_>, layout: &LinearLayout, cost: &CostModel) -> f64 {
    layout.in_size(Dim::REGISTER).unwrap_or(1) as f64 * cycles(op, cost)
}

fn work(op: Op<'_>) -> Work {
    let mut values = op.operands().chain(op.results());
    let wide = values.any(|value| word_bits(value.ty()) == Ok(64));
    let one = Work::new(if wide { 2.0 } else { 1.0 }, 0.0);
    if is_one_of!(op, DivSIOp | DivUIOp | RemSIOp | RemUIOp | CeilDivSIOp | CeilDivUIOp | FloorDivSIOp) {
        return division(op, wide);
    }
    if Dialect::of(op) == Some(Dialect::Math) {
        return function(op, wide, one);
    }
    match_op!(op, {
        MulIOp if wide => Work::new(4.0, 0.0),
        DivFOp | PreciseDivFOp if wide => Work::new(30.0, 1.0),
        DivFOp | ApproxDivFOp => Work::new(6.0, 1.0),
        PreciseDivFOp | PreciseSqrtOp => Work::new(14.0, 1.0),
        RemFOp => Work::new(24.0, 1.0),
        ExternElementwiseOp if wide => OF_DOUBLE,
        ExternElementwiseOp => OF_SINGLE,
        _ => one,
    })
}

/// Of the dialect of functions.
fn function(op: Op<'_>, wide: bool, one: Work) -> Work {
    let other = if wide { OF_DOUBLE } else { OF_SINGLE };
    match_op!(op, {
        FmaOp | AbsFOp | AbsIOp | CopySignOp => one,
        FloorOp | CeilOp | CtPopOp => Work::new(0.0, 1.0),
        Exp2Op | SqrtOp | RsqrtOp if !wide => Work::new(0.0, 1.0),
        ExpOp if !wide => Work::new(4.0, 1.0),
        TanhOp if !wide => Work::new(16.0, 2.0),
        LogOp | Log2Op if !wide => Work::new(26.0, 0.0),
        SinOp | CosOp if !wide => Work::new(34.0, 0.0),
        _ => other,
    })
}

/// Of a division of integers or its remainder: by constants they are shifts and multiplications.
fn division(op: Op<'_>, wide: bool) -> Work {
    let signed = !is_one_of!(op, DivUIOp | RemUIOp | CeilDivUIOp);
    match divisor(op.operand(1)) {
        Some(by) if by > 0 && by & (by - 1) == 0 => {
            Work::new(if signed { 3.0 } else { 1.0 } * if wide { 2.0 } else { 1.0 }, 0.0)
        }
        Some(_) => Work::new(if wide { 14.0 } else { 4.0 }, 0.0),
        // Wide ones branch to narrow ones where both numbers are.
        None if wide => Work::new(40.0, 3.0),
        None => Work::new(18.0, 3.0),
    }
}

/// The number that all elements are divided by, if it is constant.
fn divisor(value: Value<'_>) -> Option<i64> {
    let value = ConstantOp::defining(value)?.value()?;
    match value.as_elements() {
        Some(elements) => elements.splat_value()?.as_int(),
        None => value.as_int(),
    }
}
