//! What integers are known to lie between.
//!
//! A range holds of all elements of a tensor, and of a number that is read as signed. Nothing is said of what may not fit in its
//! type: that wraps around.

use crate::ir_util::{cmpi, constant, loop_predicate, operations_in_dominance_order, trip_count};
use mlir_host::hash::FastMap;
use mlir_host::ir::{Op, Value};
use mlir_host::match_op;
use mlir_host::upstream::{
    AddIOp, AndIOp, ConstantOp, DivSIOp, DivUIOp, ExtSIOp, ExtUIOp, ForOp, IndexCastOp, MaxSIOp, MinSIOp,
    MulIOp, RemSIOp, RemUIOp, SelectOp, ShLIOp, ShRSIOp, ShRUIOp, SubIOp, TruncIOp,
};
use ttopt_dialect::tt::ops::{
    BroadcastOp, ExpandDimsOp, GetNumProgramsOp, GetProgramIdOp, MakeRangeOp, ReshapeOp, SplatOp, TransOp,
};
use ttopt_dialect::ttg::ops::ConvertLayoutOp;

/// The least number and the greatest.
pub type Range = (i64, i64);

/// Ranges of the values of a module.
pub struct Ranges<'c> {
    known: FastMap<Value<'c>, Range>,
}

impl<'c> Ranges<'c> {
    /// Those of what is in `root`.
    pub fn new(root: Op<'c>) -> Self {
        let mut this = Self { known: FastMap::default() };
        for op in operations_in_dominance_order(root) {
            if let Some(counting) = ForOp::cast(op) {
                this.add_arguments(counting);
            }
            if op.num_results() == 1
                && let Some(range) = of_result(op, &mut |value| this.of(value))
            {
                this.known.insert(op.result(0), range);
            }
        }
        this
    }

    /// What `value` lies between, where that is known.
    pub fn of(&self, value: Value<'c>) -> Option<Range> {
        self.known.get(&value).copied()
    }

    /// The induction variable, and iter_args to which each iteration adds what is known before the loop.
    fn add_arguments(&mut self, counting: ForOp<'c>) {
        let Some(body) = counting.body() else { return };
        let trips = trip_count(counting.op()).and_then(|trips| i64::try_from(trips).ok());
        for value in body.args() {
            let range = match (ForOp::carrying(value), trips) {
                (None, _) => self.of_counter(counting),
                (Some((_, first, next)), Some(trips)) => self.of_sum(value, first, next, trips),
                _ => None,
            };
            if let Some(range) = range.and_then(|range| fit(value, range)) {
                self.known.insert(value, range);
            }
        }
    }

    fn of_counter(&self, counting: ForOp<'c>) -> Option<Range> {
        let (lower, step) = (self.of(counting.lower())?, self.of(counting.step())?);
        let unsigned = loop_predicate(counting.op()) == cmpi::ULT;
        if step.0 < 1 || unsigned && lower.0 < 0 {
            return None;
        }
        let last = match self.of(counting.upper()) {
            Some(upper) if !unsigned || upper.0 >= 0 => upper.1.saturating_sub(1),
            // It may be read as negative.
            _ if unsigned => return None,
            _ => greatest(counting.lower())?,
        };
        Some((lower.0, last.max(lower.0)))
    }

    /// Of an iter_arg of a loop of so many iterations.
    fn of_sum(&self, value: Value<'c>, first: Value<'c>, next: Value<'c>, trips: i64) -> Option<Range> {
        let first = self.of(first)?;
        let sum = AddIOp::defining(next)?;
        let (a, b) = (sum.op().operand(0), sum.op().operand(1));
        // What is computed in the loop is not known yet.
        let step = self.of(if a == value { b } else { Some(a).filter(|_| b == value)? })?;
        let steps = trips.checked_sub(1)?.max(0);
        let low = first.0.checked_add(step.0.min(0).checked_mul(steps)?)?;
        let high = first.1.checked_add(step.1.max(0).checked_mul(steps)?)?;
        Some((low, high))
    }
}

/// Operations in a row that are looked into for one range.
pub const DEPTH: usize = 24;

/// What `value`, of integers, lies between, by what it is computed from, and nothing known of loops around it.
pub fn of_value(value: Value<'_>) -> Option<Range> {
    within(value, DEPTH, &mut FastMap::default())
}

fn within<'c>(
    value: Value<'c>,
    depth: usize,
    known: &mut FastMap<Value<'c>, Option<Range>>,
) -> Option<Range> {
    if let Some(found) = known.get(&value) {
        return *found;
    }
    let depth = depth.checked_sub(1)?;
    let op = value.def_op().filter(|op| op.num_results() == 1)?;
    let found = of_result(op, &mut |operand| within(operand, depth, known));
    known.insert(value, found);
    found
}

/// What the one result of `op` lies between, by what `of` knows of its operands.
pub fn of_result<'c>(op: Op<'c>, of: &mut dyn FnMut(Value<'c>) -> Option<Range>) -> Option<Range> {
    let mut of = |i: usize| of(op.operand(i));
    let positive = |range: &Range| range.0 > 0;
    let natural = |range: &Range| range.0 >= 0;
    let range = match_op!(op, {
        MakeRangeOp(made) => (made.start(), made.end() - 1),
        ConstantOp => {
            let number = constant(op.result(0))?;
            (number, number)
        },
        GetProgramIdOp => (0, greatest(op.result(0))?),
        GetNumProgramsOp => (1, greatest(op.result(0))?),
        SplatOp | BroadcastOp | ExpandDimsOp | ReshapeOp | TransOp | ConvertLayoutOp => of(0)?,
        IndexCastOp | TruncIOp => of(0)?,
        ExtSIOp => match of(0) {
            Some(range) => range,
            None => (least(op.operand(0))?, greatest(op.operand(0))?),
        },
        ExtUIOp => match of(0).filter(natural) {
            Some(range) => range,
            // As many as the bits say.
            None => (0, greatest(op.operand(0))?.checked_mul(2)?.checked_add(1)?),
        },
        AddIOp => {
            let (a, b) = (of(0)?, of(1)?);
            (a.0.checked_add(b.0)?, a.1.checked_add(b.1)?)
        },
        SubIOp => {
            let (a, b) = (of(0)?, of(1)?);
            (a.0.checked_sub(b.1)?, a.1.checked_sub(b.0)?)
        },
        MulIOp => {
            let (a, b) = (of(0)?, of(1)?);
            let corners = [(a.0, b.0), (a.0, b.1), (a.1, b.0), (a.1, b.1)].map(|(a, b)| a.checked_mul(b));
            let corners = [corners[0]?, corners[1]?, corners[2]?, corners[3]?];
            (corners.into_iter().min()?, corners.into_iter().max()?)
        },
        ShLIOp => {
            let (a, by) = (of(0).filter(natural)?, of(1).filter(|by| by.0 >= 0 && by.1 < 63)?);
            (a.0.checked_mul(1 << by.0)?, a.1.checked_mul(1 << by.1)?)
        },
        AndIOp => {
            let bounds = [of(0), of(1)].into_iter().flatten().filter(natural);
            (0, bounds.map(|range| range.1).min()?)
        },
        RemSIOp | RemUIOp => {
            let most = of(1).filter(positive)?.1 - 1;
            let dividend = of(0);
            let is_unsigned = RemUIOp::cast(op).is_some();
            // A remainder has the sign of what is divided, and is no further from zero.
            match dividend {
                Some(dividend) if dividend.0 >= 0 => (0, dividend.1.min(most)),
                _ if is_unsigned => (0, most),
                Some(dividend) => (dividend.0.max(-most), dividend.1.min(most).max(0)),
                None => (-most, most),
            }
        },
        DivSIOp | DivUIOp => {
            let (a, b) = (of(0).filter(natural)?, of(1).filter(positive)?);
            (a.0 / b.1, a.1 / b.0)
        },
        ShRUIOp | ShRSIOp => {
            let (a, by) = (of(0).filter(natural)?, of(1).filter(|by| by.0 >= 0 && by.1 < 63));
            by.map_or((0, a.1), |by| (a.0 >> by.1, a.1 >> by.0))
        },
        MinSIOp => match (of(0), of(1)) {
            (Some(a), Some(b)) => (a.0.min(b.0), a.1.min(b.1)),
            (a, b) => (least(op.result(0))?, a.or(b)?.1),
        },
        MaxSIOp => match (of(0), of(1)) {
            (Some(a), Some(b)) => (a.0.max(b.0), a.1.max(b.1)),
            (a, b) => (a.or(b)?.0, greatest(op.result(0))?),
        },
        SelectOp => {
            let (a, b) = (of(1)?, of(2)?);
            (a.0.min(b.0), a.1.max(b.1))
        },
        _ => return None,
    });
    fit(op.result(0), range)
}

/// The range, where all of it fits in the type of `value`: else it wraps around.
fn fit(value: Value<'_>, range: Range) -> Option<Range> {
    (range.0 >= least(value)? && range.1 <= greatest(value)?).then_some(range)
}

fn least(value: Value<'_>) -> Option<i64> {
    Some(-greatest(value)? - 1)
}

/// The greatest number of the type of `value`.
fn greatest(value: Value<'_>) -> Option<i64> {
    // An index has 64 bits.
    let ty = value.ty().element();
    let bits = ty.int_bits().or_else(|| ty.is_index().then_some(64))?;
    (bits <= 64).then(|| i64::MAX >> (64 - bits.max(1)))
}
