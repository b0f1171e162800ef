//! The facts about one value, and how facts of different paths meet.

use smallvec::SmallVec;
use std::fmt;

/// Divisibility of zero: a multiple of every power of two that matters.
pub const MAX_DIV: u64 = 1 << 62;

/// The largest power of two that divides `value`; [`MAX_DIV`] for zero.
pub fn pow2(value: i64) -> u64 {
    if value == 0 { MAX_DIV } else { 1 << value.trailing_zeros().min(62) }
}

/// Neighbours that are fewer than most: what lasts for no more is not usual.
const FEW: u64 = 8;

/// What is known along one dimension.
///
/// The positions along the dimension fall into aligned groups of `len`. In
/// each, for any fixed coordinates of the other dimensions, neighbours differ
/// by `step`, and the first value is a multiple of `div`. `len` and `div` are
/// powers of two; `step` is zero where `len` is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Run {
    /// Difference of neighbours, in units for integers and bytes for pointers.
    pub step: i64,
    /// Length of the groups.
    pub len: u64,
    /// What the first value of each group is a multiple of.
    pub div: u64,
    /// Difference that most neighbours have, where it can be told, though not for which: `step` where `len` is more than
    /// one. A remainder by an unknown size mostly runs on, and a quotient by it mostly stays. Says what accesses cost, and
    /// never what is allowed.
    pub usual: Option<i64>,
    /// How many neighbours that lasts for, `len` at least: few for the remainder by a small constant, such as the taps of a convolution,
    /// and for what is loaded for a few neighbours together, such as entries of a code book.
    pub lasts: u64,
}

impl Run {
    /// A run in normal form.
    pub fn new(step: i64, len: u64, div: u64) -> Run {
        let usual = (len > 1).then_some(step);
        Run { step: usual.unwrap_or(0), len, div: div.min(MAX_DIV), usual, lasts: u64::MAX }
    }

    /// What values at positions that are multiples of `len` are multiples of.
    pub fn div_at(&self, len: u64) -> u64 {
        if len >= self.len { self.div } else { self.div.min(pow2(self.step.wrapping_mul(len as i64))) }
    }
}

/// The facts about an integer, a pointer, or a tensor of them.
///
/// They hold as long as signed arithmetic does not overflow. Where it does,
/// a rising run breaks, but only where the value is a multiple of a large
/// power of two, so accesses that respect both `len` and `div` never straddle
/// the break.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AxisInfo {
    /// One entry per dimension; none for scalars.
    pub runs: SmallVec<[Run; 2]>,
    /// What values are multiples of whose every coordinate is a multiple of
    /// the run's length: for a scalar, the scalar itself.
    pub corner: u64,
    /// The one value of all elements.
    pub constant: Option<i64>,
    /// Whether no element is negative.
    pub nonneg: bool,
    /// Distance of consecutive elements: 1 for integers, the bytes of the
    /// pointee for pointers.
    pub unit: i64,
}

impl AxisInfo {
    /// Nothing known.
    pub fn unknown(rank: usize) -> AxisInfo {
        AxisInfo {
            runs: SmallVec::from_elem(Run::new(0, 1, 1), rank),
            corner: 1,
            constant: None,
            nonneg: false,
            unit: 1,
        }
    }

    /// A scalar of which only a divisor is known.
    pub fn multiple_of(div: u64) -> AxisInfo {
        AxisInfo { corner: div.clamp(1, MAX_DIV), ..AxisInfo::unknown(0) }
    }

    /// All elements are `value`.
    pub fn constant(value: i64, shape: &[i64]) -> AxisInfo {
        let scalar = AxisInfo {
            corner: pow2(value),
            constant: Some(value),
            nonneg: value >= 0,
            ..AxisInfo::unknown(0)
        };
        scalar.splat(shape)
    }

    /// Number of dimensions.
    pub fn rank(&self) -> usize {
        self.runs.len()
    }

    /// How many elements along dimension `d` follow one another in aligned groups.
    pub fn contiguity(&self, d: usize) -> u64 {
        if self.runs[d].step == self.unit { self.runs[d].len } else { 1 }
    }

    /// How many elements along dimension `d` are equal in aligned groups.
    pub fn constancy(&self, d: usize) -> u64 {
        if self.runs[d].step == 0 { self.runs[d].len } else { 1 }
    }

    /// What the first element of each group of [`contiguity`](Self::contiguity)
    /// elements along `d` is a multiple of (in bytes for pointers).
    pub fn divisibility(&self, d: usize) -> u64 {
        self.runs[d].div_at(self.contiguity(d))
    }

    /// What every element is a multiple of.
    pub fn all_divisible_by(&self) -> u64 {
        self.runs.iter().map(|run| run.div_at(1)).max().unwrap_or(self.corner)
    }

    /// What values are multiples of whose coordinates are multiples of `lens`.
    pub fn corner_at(&self, lens: &[u64]) -> u64 {
        let inside = self.runs.iter().zip(lens).filter(|(run, len)| **len < run.len);
        inside.fold(self.corner, |div, (run, len)| div.min(pow2(run.step.wrapping_mul(*len as i64))))
    }

    /// Facts that hold on both of two paths.
    pub fn join(&self, other: &AxisInfo) -> AxisInfo {
        let constant = self.constant.filter(|value| other.constant == Some(*value));
        if let Some(value) = constant {
            return AxisInfo { constant: Some(value), ..self.clone() };
        }
        let mut out = self.zip(
            other,
            |a, b| if a.step == b.step { (a.step, a.len.min(b.len)) } else { (0, 1) },
            u64::min,
        );
        out.usually(self, other, |a, b| (a == b).then_some(a));
        out.nonneg = self.nonneg && other.nonneg;
        out
    }

    /// What neighbours usually differ by, along dimensions where no run is known, if `f` says it for those of two operands.
    pub(super) fn usually(&mut self, a: &AxisInfo, b: &AxisInfo, f: impl Fn(i64, i64) -> Option<i64>) {
        for (run, (a, b)) in self.runs.iter_mut().zip(a.runs.iter().zip(&b.runs)) {
            if run.len == 1 {
                run.usual = a.usual.zip(b.usual).and_then(|(a, b)| f(a, b));
            }
            run.lasts = a.lasts.min(b.lasts).max(run.len);
        }
    }

    /// What neighbours usually differ by in a quotient by `divisor`, or in a remainder, ends where the quotient of `divided` changes, in
    /// runs that `ends` says it for.
    pub(super) fn usually_until(
        &mut self,
        divided: &AxisInfo,
        divisor: Option<i64>,
        ends: impl Fn(&Run) -> bool,
    ) {
        let Some(divisor) = divisor.map(i64::unsigned_abs) else { return };
        for (run, divided) in self.runs.iter_mut().zip(&divided.runs).filter(|(run, _)| ends(run)) {
            if let Some(steps) = divided.usual.and_then(|step| divisor.checked_div(step.unsigned_abs())) {
                run.lasts = run.lasts.min(steps.max(run.len));
            }
        }
    }

    /// Whether most neighbours along dimension `d` follow one another in memory.
    pub fn usually_contiguous(&self, d: usize) -> bool {
        self.runs[d].usual == Some(self.unit) && self.runs[d].lasts >= FEW
    }

    /// Facts of an elementwise function of two values: `pick` gives step and
    /// length, not longer than either run, and `div` combines divisors of
    /// values at the same position.
    pub(super) fn zip(
        &self,
        other: &AxisInfo,
        pick: impl Fn(Run, Run) -> (i64, u64),
        div: impl Fn(u64, u64) -> u64,
    ) -> AxisInfo {
        let mut lens: SmallVec<[u64; 4]> = SmallVec::new();
        let mut runs = SmallVec::new();
        for (a, b) in self.runs.iter().zip(&other.runs) {
            let (step, len) = pick(*a, *b);
            debug_assert!(len >= 1 && len <= a.len.min(b.len), "a run of {len} from {a:?} and {b:?}");
            lens.push(len);
            runs.push(Run::new(step, len, div(a.div_at(len), b.div_at(len))));
        }
        let corner = div(self.corner_at(&lens), other.corner_at(&lens)).min(MAX_DIV);
        AxisInfo { runs, corner, constant: None, nonneg: false, unit: self.unit }
    }

    /// A scalar in all elements of a tensor.
    pub fn splat(&self, shape: &[i64]) -> AxisInfo {
        let run = |size: &i64| Run::new(0, power_of_two_in(*size), self.corner);
        AxisInfo { runs: shape.iter().map(run).collect(), ..self.clone() }
    }

    /// `start, start + 1, …`
    pub fn range(start: i64, size: i64) -> AxisInfo {
        let div = pow2(start);
        AxisInfo {
            runs: SmallVec::from_slice(&[Run::new(1, power_of_two_in(size), div)]),
            corner: div,
            constant: (size == 1).then_some(start),
            nonneg: start >= 0,
            unit: 1,
        }
    }

    /// A new dimension of size one at `axis`.
    pub fn expand_dims(&self, axis: usize) -> AxisInfo {
        let mut out = self.clone();
        out.runs.insert(axis.min(self.rank()), Run::new(0, 1, self.all_divisible_by()));
        out
    }

    /// Dimensions of size one repeated.
    pub fn broadcast(&self, from: &[i64], to: &[i64]) -> AxisInfo {
        let mut out = self.clone();
        for ((run, from), to) in out.runs.iter_mut().zip(from).zip(to) {
            if from != to {
                *run = Run::new(0, power_of_two_in(*to), run.div);
            }
        }
        out
    }

    /// Dimension `i` of the result is dimension `order[i]`.
    pub fn transpose(&self, order: &[i32]) -> AxisInfo {
        let runs = order.iter().filter_map(|d| self.runs.get(*d as usize).copied());
        AxisInfo { runs: runs.collect(), ..self.clone() }
    }

    /// The same elements in row-major order under another shape.
    pub fn reshape(&self, from: &[i64], to: &[i64]) -> AxisInfo {
        let mut out = AxisInfo { runs: SmallVec::new(), ..self.clone() };
        let mut exact = true;
        let (mut i, mut j) = (0, 0);
        while i < from.len() || j < to.len() {
            // The shortest groups of dimensions with equally many elements.
            let (i0, j0) = (i, j);
            let next = |at: &mut usize, shape: &[i64]| {
                *at += 1;
                shape.get(*at - 1).copied()
            };
            let (mut a, mut b) = (1, 1);
            if i < from.len() {
                a = next(&mut i, from).unwrap_or(1);
            }
            if j < to.len() {
                b = next(&mut j, to).unwrap_or(1);
            }
            while a != b {
                let grown = if a < b {
                    next(&mut i, from).map(|size| a *= size)
                } else {
                    next(&mut j, to).map(|size| b *= size)
                };
                if grown.is_none() {
                    return AxisInfo { unit: self.unit, ..AxisInfo::unknown(to.len()) };
                }
            }
            if i - i0 == 1 && j - j0 == 1 {
                out.runs.push(self.runs[i0]);
                continue;
            }
            let flat = merge(&self.runs[i0..i], &from[i0..i], self.all_divisible_by());
            exact = false;
            out.runs.extend(split(flat, &to[j0..j], self.all_divisible_by()));
        }
        if !exact {
            out.corner = out.runs.iter().map(|run| run.div).max().unwrap_or(self.corner);
        }
        if let Some(value) = self.constant {
            return AxisInfo { unit: self.unit, ..AxisInfo::constant(value, to) };
        }
        out
    }

    /// Facts that the author of the kernel vouches for, each a list with one
    /// number per dimension.
    pub fn assume(&mut self, contiguity: &[u64], divisibility: &[u64], constancy: &[u64]) {
        let unit = self.unit;
        let len_of = |hint: Option<&u64>| hint.map_or(1, |len| 1u64 << len.max(&1).trailing_zeros());
        for (d, run) in self.runs.iter_mut().enumerate() {
            let (c, k) = (len_of(contiguity.get(d)), len_of(constancy.get(d)));
            let (step, len) = if k > c { (0, k) } else { (unit, c) };
            let known = if run.step == step || run.len == 1 { run.len } else { 1 };
            if len > known {
                *run = Run::new(step, len, run.div_at(len));
            }
            if let Some(&div) = divisibility.get(d) {
                // A hint speaks of the first elements of contiguous groups, or of all.
                if run.step == 0 || run.step == unit {
                    run.div = run.div.max(pow2(div as i64));
                }
            }
        }
        if self.runs.is_empty() {
            self.corner = self.corner.max(divisibility.first().map_or(1, |div| pow2(*div as i64)));
        }
        self.corner = self.runs.iter().fold(self.corner, |corner, run| corner.max(run.div));
    }
}

/// The largest power of two that divides a size.
pub(super) fn power_of_two_in(size: i64) -> u64 {
    if size <= 0 { 1 } else { 1 << size.trailing_zeros() }
}

/// The run of several dimensions in row-major order.
fn merge(runs: &[Run], shape: &[i64], all: u64) -> Run {
    let mut flat: Option<Run> = None;
    let mut covered = 1u64;
    for (run, &size) in runs.iter().zip(shape).rev() {
        if size == 1 {
            continue;
        }
        match &mut flat {
            None => {
                flat = Some(*run);
                covered = if run.len == size as u64 { run.len } else { 0 };
            }
            Some(first) if covered > 0 && run.step == first.step.wrapping_mul(covered as i64) => {
                // A flat group starts where both coordinates start a group.
                first.div = first.div.max(run.div);
                first.len = covered * run.len;
                covered = if run.len == size as u64 { first.len } else { 0 };
            }
            Some(_) => covered = 0,
        }
    }
    flat.unwrap_or(Run::new(0, 1, all))
}

/// The runs of a flat run cut into dimensions.
fn split(flat: Run, shape: &[i64], all: u64) -> SmallVec<[Run; 4]> {
    let mut out: SmallVec<[Run; 4]> = SmallVec::new();
    let mut inner = 1u64;
    for &size in shape.iter().rev() {
        let len = (flat.len / inner).clamp(1, power_of_two_in(size));
        let step = flat.step.wrapping_mul(inner as i64);
        // Other coordinates are arbitrary: only the fastest dimension leads
        // to the start of a flat group.
        let div = if inner == 1 && size > 1 { flat.div_at(len) } else { all };
        out.push(Run::new(step, len, div));
        inner *= power_of_two_in(size);
    }
    out.reverse();
    out
}

impl fmt::Display for AxisInfo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A scalar reads as a tensor of one element.
        let scalar;
        let info = if self.runs.is_empty() {
            scalar = AxisInfo { runs: SmallVec::from_slice(&[Run::new(0, 1, self.corner)]), ..self.clone() };
            &scalar
        } else {
            self
        };
        let list = |get: &dyn Fn(usize) -> u64| {
            (0..info.rank()).map(|d| get(d).to_string()).collect::<Vec<_>>().join(", ")
        };
        write!(f, "contiguity = [{}]", list(&|d| info.contiguity(d)))?;
        write!(f, ", divisibility = [{}]", list(&|d| info.divisibility(d)))?;
        write!(f, ", constancy = [{}]", list(&|d| info.constancy(d)))?;
        let strided = |run: &Run| run.step != 0 && run.step != info.unit;
        for (d, run) in info.runs.iter().enumerate().filter(|(_, run)| strided(run)) {
            write!(f, ", stride[{d}] = {} over {}", run.step, run.len)?;
        }
        if let Some(value) = info.constant {
            write!(f, ", constant = {value}")?;
        }
        if info.nonneg && info.constant.is_none() {
            write!(f, ", not negative")?;
        }
        Ok(())
    }
}
