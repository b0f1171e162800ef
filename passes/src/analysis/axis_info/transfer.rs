//! Transfer functions of arithmetic, free of IR.
//!
//! Each is sound for wrapping arithmetic up to the caveat of
//! [`AxisInfo`](super::AxisInfo) on overflow; the tests evaluate random
//! expressions and compare.

use super::lattice::{AxisInfo, MAX_DIV, Run, pow2};

/// How a comparison orders its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `a < b` or its negation `a >= b`.
    Less,
    /// `a > b` or its negation `a <= b`.
    Greater,
    /// `a == b` or its negation.
    Equal,
}

/// `value` as a signed integer of `bits` bits.
pub fn wrap(value: i64, bits: u32) -> i64 {
    match bits {
        // Truth values are 0 and 1.
        1 => value & 1,
        2..=63 => value << (64 - bits) >> (64 - bits),
        _ => value,
    }
}

/// The bits of a signed integer of `bits` bits, read as an unsigned one.
pub fn unsigned(value: i64, bits: u32) -> u64 {
    if bits >= 64 { value as u64 } else { value as u64 & ((1 << bits) - 1) }
}

fn is_power_of_two(value: i64) -> bool {
    value > 0 && value & (value - 1) == 0
}

/// A guess at a size that is not known, for the order of dimensions and for costs only: sizes of one are constants, those of rows are
/// mostly multiples of sixteen, and others (channels, heads, classes) are small. What is even is a part of the former or a multiple
/// of the latter.
fn likely_size(info: &AxisInfo) -> i64 {
    match info.all_divisible_by() {
        16.. => 4096,
        2.. => 128,
        _ => 16,
    }
}

/// The facts of a constant where both operands are constants.
fn fold(a: &AxisInfo, b: &AxisInfo, bits: u32, f: impl Fn(i64, i64) -> Option<i64>) -> Option<AxisInfo> {
    let value = wrap(f(a.constant?, b.constant?)?, bits);
    Some(uniform(a, value))
}

/// `value` in all elements, with the runs of `like`, which is uniform too.
fn uniform(like: &AxisInfo, value: i64) -> AxisInfo {
    let mut out = like.clone();
    out.runs.iter_mut().for_each(|run| run.div = pow2(value));
    AxisInfo { corner: pow2(value), constant: Some(value), nonneg: value >= 0, ..out }
}

/// What most quotients by a constant of neighbours that differ by `step` differ by: of three quarters one, of a half or less nothing.
fn usual_quotient(step: i64, divisor: i64) -> Option<i64> {
    let (whole, rest) = (step.checked_div(divisor)?, step.checked_rem(divisor)?);
    let is_more_than_half = 2 * i128::from(rest).abs() > i128::from(divisor).abs();
    Some(if is_more_than_half { whole + step.signum() * divisor.signum() } else { whole })
}

/// `(step, length)` of what is only known where both operands are uniform.
fn both_uniform(a: Run, b: Run) -> (i64, u64) {
    if a.step == 0 && b.step == 0 { (0, a.len.min(b.len)) } else { (0, 1) }
}

/// Length of the groups in which a run with a step that is a power of two
/// stays between neighbouring multiples of `other`, which is uniform. Runs
/// start at multiples of `group * step` there.
fn aligned_group(run: Run, other: Run) -> u64 {
    let len = run.len.min(other.len);
    if other.step != 0 || !is_power_of_two(run.step) {
        return 1;
    }
    len.min((run.div.min(other.div) / run.step as u64).max(1))
}

impl AxisInfo {
    /// Sum.
    pub fn add(&self, rhs: &AxisInfo, bits: u32) -> AxisInfo {
        if let Some(folded) = fold(self, rhs, bits, |a, b| Some(a.wrapping_add(b))) {
            return folded;
        }
        let mut out = self.zip(rhs, |a, b| (a.step.wrapping_add(b.step), a.len.min(b.len)), u64::min);
        out.usually(self, rhs, i64::checked_add);
        out.nonneg = self.nonneg && rhs.nonneg;
        out
    }

    /// Difference.
    pub fn sub(&self, rhs: &AxisInfo, bits: u32) -> AxisInfo {
        if let Some(folded) = fold(self, rhs, bits, |a, b| Some(a.wrapping_sub(b))) {
            return folded;
        }
        let mut out = self.zip(rhs, |a, b| (a.step.wrapping_sub(b.step), a.len.min(b.len)), u64::min);
        out.usually(self, rhs, i64::checked_sub);
        out
    }

    /// Product.
    pub fn mul(&self, rhs: &AxisInfo, bits: u32) -> AxisInfo {
        if let Some(folded) = fold(self, rhs, bits, |a, b| Some(a.wrapping_mul(b))) {
            return folded;
        }
        let by = self.constant.or(rhs.constant);
        let step = |a: Run, b: Run| match by {
            Some(value) => {
                let run = if self.constant.is_some() { b } else { a };
                run.step.checked_mul(value).map_or((0, 1), |step| (step, a.len.min(b.len)))
            }
            None => both_uniform(a, b),
        };
        let mut out = self.zip(rhs, step, |a, b| a.saturating_mul(b).min(MAX_DIV));
        out.usually(self, rhs, |a, b| match by {
            // One of them is the constant, which differs nowhere.
            Some(value) => a.checked_add(b)?.checked_mul(value),
            None if b == 0 => a.checked_mul(likely_size(rhs)),
            None if a == 0 => b.checked_mul(likely_size(self)),
            None => None,
        });
        out.nonneg = self.nonneg && rhs.nonneg;
        if by == Some(0) {
            return uniform(if self.constant.is_some() { self } else { rhs }, 0);
        }
        out
    }

    /// Product with a positive number, such as the size of an element.
    pub fn scale(&self, by: i64) -> AxisInfo {
        let mut out = self.clone();
        let factor = pow2(by);
        for run in &mut out.runs {
            run.step = run.step.wrapping_mul(by);
            run.div = run.div.saturating_mul(factor).min(MAX_DIV);
            run.usual = run.usual.and_then(|step| step.checked_mul(by));
        }
        out.corner = out.corner.saturating_mul(factor).min(MAX_DIV);
        out.constant = out.constant.map(|value| value.wrapping_mul(by));
        out
    }

    /// Quotient: rounded towards zero if `signed`.
    pub fn div(&self, rhs: &AxisInfo, signed: bool, bits: u32) -> AxisInfo {
        let folded = fold(self, rhs, bits, |a, b| {
            if signed {
                a.checked_div(b)
            } else {
                Some(unsigned(a, bits).checked_div(unsigned(b, bits))? as i64)
            }
        });
        if let Some(folded) = folded {
            return folded;
        }
        // Rounding towards zero makes groups around zero longer.
        self.quotient(rhs, rhs.constant, self.nonneg || !signed, self.nonneg && (rhs.nonneg || !signed))
    }

    /// Shift to the right.
    pub fn shr(&self, rhs: &AxisInfo, signed: bool, bits: u32) -> AxisInfo {
        let folded = fold(self, rhs, bits, |a, b| match u32::try_from(b) {
            Ok(by) if by >= bits => None,
            Ok(by) if signed => Some(a >> by),
            Ok(by) => Some((unsigned(a, bits) >> by) as i64),
            Err(_) => None,
        });
        if let Some(folded) = folded {
            return folded;
        }
        match rhs.constant {
            Some(by) if (0..i64::from(bits.min(62))).contains(&by) => {
                let power = 1i64 << by;
                let nonneg = self.nonneg || (!signed && by > 0);
                self.quotient(&uniform(rhs, power), Some(power), true, nonneg)
            }
            _ => {
                let mut out = self.zip(rhs, both_uniform, |_, _| 1);
                out.nonneg = self.nonneg;
                out
            }
        }
    }

    /// `floors`: whether the quotient is rounded down wherever it matters.
    fn quotient(&self, rhs: &AxisInfo, by: Option<i64>, floors: bool, nonneg: bool) -> AxisInfo {
        let by = by.filter(|value| is_power_of_two(*value));
        let pick = |a: Run, b: Run| {
            let len = a.len.min(b.len);
            match by {
                _ if a.step == 0 => both_uniform(a, b),
                Some(value) if a.div_at(1) >= value as u64 && a.step % value == 0 => (a.step / value, len),
                _ if floors => (0, aligned_group(a, b)),
                _ => (0, 1),
            }
        };
        let mut out = self.zip(rhs, pick, |a, _| match by {
            Some(value) if a >= value as u64 => (a / value as u64).max(1),
            _ => 1,
        });
        out.usually(self, rhs, |a, b| match rhs.constant {
            Some(value) if b == 0 => usual_quotient(a, value),
            // Sizes are larger than steps.
            _ => (b == 0 && a.abs() <= 1).then_some(0),
        });
        out.usually_until(self, rhs.constant, |run| run.usual == Some(0));
        out.nonneg = nonneg;
        out
    }

    /// Remainder: with the sign of the dividend if `signed`.
    pub fn rem(&self, rhs: &AxisInfo, signed: bool, bits: u32) -> AxisInfo {
        let folded = fold(self, rhs, bits, |a, b| {
            if signed {
                a.checked_rem(b)
            } else {
                Some(unsigned(a, bits).checked_rem(unsigned(b, bits))? as i64)
            }
        });
        if let Some(folded) = folded {
            return folded;
        }
        let nonneg = self.nonneg || (!signed && rhs.nonneg);
        self.remainder(rhs, self.nonneg || !signed, nonneg)
    }

    fn remainder(&self, rhs: &AxisInfo, floors: bool, nonneg: bool) -> AxisInfo {
        let pick = |a: Run, b: Run| match a.step {
            0 => both_uniform(a, b),
            step if floors => (step, aligned_group(a, b)),
            _ => (0, 1),
        };
        let mut out = self.zip(rhs, pick, u64::min);
        out.usually(self, rhs, |a, b| match rhs.constant {
            Some(value) if b == 0 => (a.abs() < value).then_some(a),
            _ => (b == 0 && a.abs() <= 1).then_some(a),
        });
        out.usually_until(self, rhs.constant, |_| true);
        out.nonneg = nonneg;
        out
    }

    /// Shift to the left.
    pub fn shl(&self, rhs: &AxisInfo, bits: u32) -> AxisInfo {
        match rhs.constant {
            Some(by) if (0..i64::from(bits.min(62))).contains(&by) => self.mul(&uniform(rhs, 1 << by), bits),
            _ => self.zip(rhs, both_uniform, |a, _| a),
        }
    }

    /// Bitwise and.
    pub fn and(&self, rhs: &AxisInfo, bits: u32) -> AxisInfo {
        if let Some(folded) = fold(self, rhs, bits, |a, b| Some(a & b)) {
            return folded;
        }
        if self.constant.is_some() {
            return rhs.and(self, bits);
        }
        let nonneg = self.nonneg || rhs.nonneg;
        match rhs.constant {
            Some(mask) if bits > 1 && is_power_of_two(mask.wrapping_add(1)) => {
                self.remainder(&uniform(rhs, mask + 1), true, nonneg)
            }
            Some(mask) if bits > 1 && is_power_of_two(mask.wrapping_neg()) => {
                let unit = uniform(rhs, mask.wrapping_neg());
                let pick = |a: Run, b: Run| match a.step {
                    0 => both_uniform(a, b),
                    step if a.div_at(1) >= unit.corner => (step, a.len.min(b.len)),
                    _ => (0, aligned_group(a, b)),
                };
                let mut out = self.zip(&unit, pick, u64::max);
                out.nonneg = nonneg;
                out
            }
            _ => {
                let mut out = self.zip(rhs, both_uniform, u64::max);
                out.nonneg = nonneg;
                out
            }
        }
    }

    /// Bitwise or, exclusive or not.
    pub fn or(&self, rhs: &AxisInfo, exclusive: bool, bits: u32) -> AxisInfo {
        let folded = fold(self, rhs, bits, |a, b| Some(if exclusive { a ^ b } else { a | b }));
        if let Some(folded) = folded {
            return folded;
        }
        let mut out = self.zip(rhs, both_uniform, u64::min);
        out.nonneg = self.nonneg && rhs.nonneg;
        out
    }

    /// Minimum or maximum.
    pub fn extremum(&self, rhs: &AxisInfo, max: bool, signed: bool, bits: u32) -> AxisInfo {
        let folded = fold(self, rhs, bits, |a, b| {
            let less = if signed { a < b } else { unsigned(a, bits) < unsigned(b, bits) };
            Some(if less == max { b } else { a })
        });
        if let Some(folded) = folded {
            return folded;
        }
        let mut out = self.zip(rhs, both_uniform, u64::min);
        // Bounds are not met by most elements.
        out.usually(self, rhs, |a, b| (a == b || b == 0).then_some(a).or((a == 0).then_some(b)));
        // The larger of two signed numbers is not negative when one is not;
        // read as unsigned, negative numbers are the large ones.
        let either = max == signed;
        out.nonneg = if either { self.nonneg || rhs.nonneg } else { self.nonneg && rhs.nonneg };
        out
    }

    /// `self ? a : b`, the condition a scalar or of the same shape.
    pub fn select(&self, a: &AxisInfo, b: &AxisInfo) -> AxisInfo {
        match self.constant {
            Some(0) => return b.clone(),
            Some(_) => return a.clone(),
            None => {}
        }
        if a.constant.is_some() && a.constant == b.constant {
            return a.clone();
        }
        let pick = |a: Run, b: Run| if a.step == b.step { (a.step, a.len.min(b.len)) } else { (0, 1) };
        let mut out = a.zip(b, pick, u64::min);
        if self.rank() == out.rank() {
            let uniform = |run: Run| if run.step == 0 { run.len } else { 1 };
            out = out.zip(self, |run, cond| (run.step, run.len.min(uniform(cond))), |div, _| div);
        }
        // What takes the place of masked elements is uniform, and most are not masked.
        out.usually(a, b, |a, b| (a == b || b == 0).then_some(a).or((a == 0).then_some(b)));
        out.nonneg = a.nonneg && b.nonneg;
        out
    }

    /// A comparison; signed and unsigned ones agree.
    pub fn compare(&self, rhs: &AxisInfo, order: Order) -> AxisInfo {
        let pick = |a: Run, b: Run| {
            let len = match (a.step, b.step) {
                (0, 0) => a.len.min(b.len),
                // Between multiples of what both start at, a run does not
                // cross a bound from below.
                (_, 0) if order == Order::Less => aligned_group(a, b),
                (0, _) if order == Order::Greater => aligned_group(b, a),
                _ => 1,
            };
            (0, len)
        };
        let mut out = self.zip(rhs, pick, |_, _| 1);
        out.unit = 1;
        out.nonneg = true;
        out
    }

    /// Extension or truncation between integers of `from` and `to` bits.
    pub fn resize(&self, from: u32, to: u32, signed: bool) -> AxisInfo {
        if let Some(value) = self.constant {
            let value = if signed && from > 1 { value } else { unsigned(value, from) as i64 };
            let value = if signed && from == 1 { -value } else { value };
            return uniform(self, wrap(value, to));
        }
        let mut out = self.clone();
        if to > from {
            // Where a falling run overflows it breaks after its first element.
            for run in out.runs.iter_mut().filter(|run| run.step < 0) {
                *run = Run::new(0, 1, run.div_at(1));
            }
        }
        out.nonneg =
            if to < from { false } else { self.nonneg && (from > 1 || !signed) || (!signed && to > from) };
        out
    }
}
