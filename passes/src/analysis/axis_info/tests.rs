//! Claims are checked against values: random expressions are evaluated
//! element by element.

use super::*;

/// A small generator, so that failures can be repeated from their seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }
    fn below(&mut self, n: u64) -> u64 {
        self.next() % n
    }
    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// A tensor in row-major order, and what is claimed about it.
#[derive(Clone, Debug)]
struct Tensor {
    shape: Vec<i64>,
    values: Vec<i64>,
    info: AxisInfo,
    text: String,
}

impl Tensor {
    fn coords(&self, mut flat: usize) -> Vec<u64> {
        let mut coords = vec![0; self.shape.len()];
        for (d, size) in self.shape.iter().enumerate().rev() {
            coords[d] = flat as u64 % *size as u64;
            flat /= *size as usize;
        }
        coords
    }

    fn stride(&self, d: usize) -> usize {
        self.shape[d + 1..].iter().product::<i64>() as usize
    }

    fn divides(div: u64, value: i64) -> bool {
        value.unsigned_abs().is_multiple_of(div)
    }

    /// Every claim holds. With `wrapping`, runs only up to their divisor.
    fn check(&self, wrapping: bool) {
        let info = &self.info;
        assert_eq!(info.rank(), self.shape.len(), "{}", self.text);
        for (flat, &value) in self.values.iter().enumerate() {
            let coords = self.coords(flat);
            let here = || format!("{} at {coords:?}: {value}, claimed {info:?}", self.text);
            if let Some(constant) = info.constant {
                assert_eq!(constant, value, "constant {}", here());
            }
            if !wrapping {
                assert!(!info.nonneg || value >= 0, "sign {}", here());
            }
            if coords.iter().zip(&info.runs).all(|(c, run)| c % run.len == 0) {
                assert!(Self::divides(info.corner, value), "corner {}", here());
            }
            for (d, run) in info.runs.iter().enumerate() {
                if coords[d].is_multiple_of(run.len) {
                    assert!(Self::divides(run.div, value), "divisor along {d} {}", here());
                }
                // An access has at most 16 elements; these wrap at 128.
                let vector = match run.step {
                    _ if !wrapping => run.len,
                    0 => run.len,
                    step => run
                        .len
                        .min(16)
                        .min((run.div / (step.unsigned_abs() & step.unsigned_abs().wrapping_neg())).max(1)),
                };
                if !coords[d].is_multiple_of(vector) {
                    let before = self.values[flat - self.stride(d)];
                    assert_eq!(value - before, run.step, "step along {d} {}", here());
                }
            }
        }
    }
}

fn leaf(random: &mut Random, shape: &[i64], bits: u32) -> Tensor {
    let count = shape.iter().product::<i64>() as usize;
    match random.below(4) {
        0 => {
            let d = random.below(shape.len() as u64) as usize;
            let start = random.pick(&[0, 0, 1, 4, 6, 8, 16]);
            let size = shape[d];
            let mut info = AxisInfo::range(start, size);
            let mut from = vec![size];
            for axis in 0..shape.len() {
                if axis != d {
                    info = info.expand_dims(axis);
                    from.insert(axis, 1);
                }
            }
            let info = info.broadcast(&from, shape);
            let mut tensor =
                Tensor { shape: shape.to_vec(), values: vec![0; count], info, text: format!("r{d}+{start}") };
            tensor.values = (0..count).map(|i| start + tensor.coords(i)[d] as i64).collect();
            tensor
        }
        1 => {
            let value = wrap(random.pick(&[0, 1, 2, 3, 4, 7, 8, 16, 24, 64, -1, -4, -8, -16]), bits);
            let info = AxisInfo::constant(value, shape);
            Tensor { shape: shape.to_vec(), values: vec![value; count], info, text: format!("{value}") }
        }
        kind => {
            let div = 1i64 << random.below(6);
            let positive = kind == 2;
            let factor = random.below(9) as i64 - if positive { 0 } else { 4 };
            let value = wrap(factor * div, bits);
            let mut info = AxisInfo::multiple_of(div as u64);
            info.nonneg = positive && value >= 0;
            let text = format!("s({value}%{div})");
            Tensor { shape: shape.to_vec(), values: vec![value; count], info: info.splat(shape), text }
        }
    }
}

/// A random expression, `None` where it divides by zero, or overflows unless `wrapping`.
fn expression(random: &mut Random, shape: &[i64], depth: u32, bits: u32, wrapping: bool) -> Option<Tensor> {
    if depth == 0 || random.below(6) == 0 {
        return Some(leaf(random, shape, bits));
    }
    let a = expression(random, shape, depth - 1, bits, wrapping)?;
    let b = expression(random, shape, depth - 1, bits, wrapping)?;
    let u = |value: i64| unsigned(value, bits);
    let (x, y) = (&a.info, &b.info);
    type Eval<'a> = Box<dyn Fn(i64, i64) -> Option<i64> + 'a>;
    let (name, info, eval): (&str, AxisInfo, Eval) = match random.below(20) {
        0..=2 => ("+", x.add(y, bits), Box::new(|a, b| a.checked_add(b))),
        3 => ("-", x.sub(y, bits), Box::new(|a, b| a.checked_sub(b))),
        4 | 5 => ("*", x.mul(y, bits), Box::new(|a, b| a.checked_mul(b))),
        6 => ("/", x.div(y, true, bits), Box::new(|a, b| a.checked_div(b))),
        7 => ("/u", x.div(y, false, bits), Box::new(move |a, b| Some(u(a).checked_div(u(b))? as i64))),
        8 => ("%", x.rem(y, true, bits), Box::new(|a, b| a.checked_rem(b))),
        9 => ("%u", x.rem(y, false, bits), Box::new(move |a, b| Some(u(a).checked_rem(u(b))? as i64))),
        10 => (
            "<<",
            x.shl(y, bits),
            Box::new(move |a, b| if (0..i64::from(bits)).contains(&b) { Some(a << b) } else { None }),
        ),
        11 => (
            ">>",
            x.shr(y, true, bits),
            Box::new(move |a, b| if (0..i64::from(bits)).contains(&b) { Some(a >> b) } else { None }),
        ),
        12 => (
            ">>u",
            x.shr(y, false, bits),
            Box::new(
                move |a, b| if (0..i64::from(bits)).contains(&b) { Some((u(a) >> b) as i64) } else { None },
            ),
        ),
        13 => ("&", x.and(y, bits), Box::new(|a, b| Some(a & b))),
        14 => ("|", x.or(y, false, bits), Box::new(|a, b| Some(a | b))),
        15 => ("^", x.or(y, true, bits), Box::new(|a, b| Some(a ^ b))),
        16 => ("max", x.extremum(y, true, true, bits), Box::new(|a, b| Some(a.max(b)))),
        17 => (
            "minu",
            x.extremum(y, false, false, bits),
            Box::new(move |a, b| Some(if u(a) < u(b) { a } else { b })),
        ),
        18 => {
            let (order, less): (Order, fn(i64, i64) -> bool) = random.pick(&[
                (Order::Less, (|a, b| a < b) as fn(i64, i64) -> bool),
                (Order::Less, |a, b| a >= b),
                (Order::Greater, |a, b| a > b),
                (Order::Greater, |a, b| a <= b),
                (Order::Equal, |a, b| a == b),
            ]);
            let c = expression(random, shape, depth - 1, bits, wrapping)?;
            let d = expression(random, shape, depth - 1, bits, wrapping)?;
            let test = x.compare(y, order);
            let choice: Vec<i64> = a.values.iter().zip(&b.values).map(|(a, b)| less(*a, *b) as i64).collect();
            let text = format!("({} {order:?} {})", a.text, b.text);
            Tensor { shape: shape.to_vec(), values: choice.clone(), info: test.clone(), text: text.clone() }
                .check(wrapping);
            let values = (0..choice.len()).map(|i| if choice[i] != 0 { c.values[i] } else { d.values[i] });
            return Some(Tensor {
                shape: shape.to_vec(),
                values: values.collect(),
                info: test.select(&c.info, &d.info),
                text: format!("({text} ? {} : {})", c.text, d.text),
            });
        }
        _ => ("join", x.join(y), Box::new(|a, _| Some(a))),
    };
    let mut values = Vec::new();
    for (a, b) in a.values.iter().zip(&b.values) {
        let exact = eval(*a, *b)?;
        let value = wrap(exact, bits);
        if value != exact && !wrapping {
            return None;
        }
        values.push(value);
    }
    Some(Tensor { shape: shape.to_vec(), values, info, text: format!("({} {name} {})", a.text, b.text) })
}

#[test]
fn claims_hold_for_random_expressions() {
    let mut random = Random(1);
    let mut checked = 0;
    while checked < 60_000 {
        let shape = random.pick(&[&[16i64][..], &[64], &[4, 8], &[8, 4], &[1, 16], &[2, 4, 4]]);
        let depth = 1 + random.below(4) as u32;
        if let Some(tensor) = expression(&mut random, shape, depth, 32, false) {
            tensor.check(false);
            checked += 1;
        }
    }
}

#[test]
fn aligned_vectors_never_straddle_an_overflow() {
    let mut random = Random(2);
    let mut checked = 0;
    while checked < 30_000 {
        let shape = random.pick(&[&[64i64][..], &[256], &[16, 16]]);
        // Quotients and remainders use the sign, which overflow invalidates.
        let Some(tensor) = sums(&mut random, shape, 3) else { continue };
        tensor.check(true);
        checked += 1;
    }
}

/// Sums and products of 8 bits that wrap around.
fn sums(random: &mut Random, shape: &[i64], depth: u32) -> Option<Tensor> {
    if depth == 0 || random.below(5) == 0 {
        let leaf = leaf(random, shape, 32);
        let values = leaf.values.iter().map(|value| wrap(*value, 8)).collect();
        let constant = leaf.info.constant.map(|value| wrap(value, 8));
        return Some(Tensor { values, info: AxisInfo { constant, ..leaf.info }, ..leaf });
    }
    let (a, b) = (sums(random, shape, depth - 1)?, sums(random, shape, depth - 1)?);
    let (name, info, eval): (_, _, fn(i64, i64) -> i64) = match random.below(3) {
        0 => ("+", a.info.add(&b.info, 8), |a, b| a + b),
        1 => ("-", a.info.sub(&b.info, 8), |a, b| a - b),
        _ => ("*", a.info.mul(&b.info, 8), |a, b| a * b),
    };
    // Runs that fall may break after their first element; extension drops them.
    if info.runs.iter().any(|run| !(0..=1).contains(&run.step)) {
        return None;
    }
    let values = a.values.iter().zip(&b.values).map(|(a, b)| wrap(eval(*a, *b), 8)).collect();
    Some(Tensor { shape: shape.to_vec(), values, info, text: format!("({} {name} {})", a.text, b.text) })
}

#[test]
fn claims_survive_shape_operations() {
    let mut random = Random(3);
    let mut checked = 0;
    while checked < 30_000 {
        let (from, to) = random.pick(&[
            (&[16i64][..], &[4i64, 4][..]),
            (&[4, 4], &[16]),
            (&[64], &[2, 8, 4]),
            (&[4, 1, 8], &[4, 8]),
            (&[4, 8], &[4, 1, 8]),
            (&[4, 8], &[8, 4]),
            (&[2, 4, 8], &[8, 2, 4]),
            (&[1, 8], &[8, 1]),
            (&[4, 4, 4], &[4, 16]),
        ]);
        let Some(tensor) = expression(&mut random, from, 3, 32, false) else { continue };
        let info = tensor.info.reshape(from, to);
        let text = format!("reshape {from:?} {to:?} {}", tensor.text);
        Tensor { shape: to.to_vec(), info, text, values: tensor.values.clone() }.check(false);
        if from.len() == 2 {
            let shape = vec![from[1], from[0]];
            let (rows, columns) = (from[0] as usize, from[1] as usize);
            let values = (0..rows * columns).map(|i| tensor.values[i % rows * columns + i / rows]).collect();
            let text = format!("transpose {}", tensor.text);
            Tensor { shape, values, info: tensor.info.transpose(&[1, 0]), text }.check(false);
        }
        checked += 1;
    }
}

#[test]
fn quotients_and_remainders_by_unknown_sizes_have_usual_steps() {
    let offsets = AxisInfo::range(0, 128);
    let size = AxisInfo::unknown(0).splat(&[128]);
    let (row, column) = (offsets.div(&size, true, 32), offsets.rem(&size, true, 32));
    assert_eq!((row.runs[0].len, row.runs[0].usual), (1, Some(0)), "mostly the same row");
    assert_eq!((column.runs[0].len, column.runs[0].usual), (1, Some(1)), "mostly the next column");
    let at = row.mul(&size, 32).add(&column, 32);
    assert!(at.usually_contiguous(0), "{at}");
    assert_eq!(at.contiguity(0), 1, "but it cannot be relied on");
    // A clamp meets few, and a sum of two that run on goes in steps of two.
    assert_eq!(at.extremum(&size, false, true, 32).runs[0].usual, Some(1));
    assert_eq!(at.add(&offsets, 32).runs[0].usual, Some(2));
    assert_eq!(offsets.rem(&AxisInfo::constant(3, &[128]), true, 32).runs[0].usual, Some(1));
    assert_eq!(
        offsets.mul(&AxisInfo::constant(8, &[128]), 32).rem(&AxisInfo::constant(6, &[128]), true, 32).runs[0]
            .usual,
        None
    );
    // Of two pitches, the multiple of sixteen is likely the larger one.
    let pitch = |div| offsets.mul(&AxisInfo::multiple_of(div).splat(&[128]), 32).runs[0].usual;
    assert!(pitch(16) > pitch(1) && pitch(1) > Some(1));
}

#[test]
fn usual_steps_of_divisions_by_constants_last_until_the_quotient_changes() {
    let offsets = AxisInfo::range(0, 128);
    let by = |value| AxisInfo::constant(value, &[128]);
    let lasts = |info: &AxisInfo| (info.runs[0].usual, info.runs[0].lasts);
    let (tap, row) = (offsets.rem(&by(3), true, 32), offsets.div(&by(3), true, 32));
    assert_eq!((lasts(&tap), lasts(&row)), ((Some(1), 3), (Some(0), 3)));
    let size = AxisInfo::unknown(0).splat(&[128]);
    let (unknown, long) = (offsets.rem(&size, true, 32), offsets.rem(&by(63), true, 32));
    assert_eq!((lasts(&unknown), lasts(&long)), ((Some(1), u64::MAX), (Some(1), 63)));
    // A sum lasts as long as both, and steps of two are as many fewer.
    assert_eq!(lasts(&tap.add(&row.mul(&size, 32), 32).add(&unknown, 32)), (Some(2), 3));
    assert_eq!(lasts(&offsets.mul(&by(2), 32).rem(&by(63), true, 32)), (Some(2), 31));
    // Known runs of a power of two, too: of the remainder they end, and a sum of both lasts no longer.
    let (column, entry) = (offsets.rem(&by(8), true, 32), offsets.div(&by(8), true, 32));
    assert_eq!((lasts(&column), lasts(&entry)), ((Some(1), 8), (Some(0), 8)));
    assert_eq!((column.contiguity(0), lasts(&column.add(&entry.mul(&size, 32), 32))), (8, (Some(1), 8)));
    // Of a remainder by a size that is a multiple of 16 nobody knows where it ends.
    let sixteens = offsets.rem(&AxisInfo::multiple_of(16).splat(&[128]), true, 32);
    assert_eq!((sixteens.contiguity(0), lasts(&sixteens)), (16, (Some(1), u64::MAX)));
    // Three neighbours are not most.
    assert!(!tap.usually_contiguous(0) && long.usually_contiguous(0) && unknown.usually_contiguous(0));
}

#[test]
fn quotients_of_less_than_two_neighbors_mostly_rise() {
    let offsets = AxisInfo::range(0, 128);
    let by = |value| AxisInfo::constant(value, &[128]);
    let of = |step, divisor| offsets.mul(&by(step), 32).div(&by(divisor), true, 32);
    let usual = |info: &AxisInfo| (info.runs[0].usual, info.runs[0].lasts);
    // Six bits of each: of four neighbours three begin a byte on, and that goes on. Of three bits each most are in the same byte.
    assert_eq!((usual(&of(6, 8)), of(6, 8).usually_contiguous(0)), ((Some(1), u64::MAX), true));
    assert_eq!((usual(&of(3, 8)), usual(&of(1, 2))), ((Some(0), 2), (Some(0), 2)));
    // 441 samples of 480, and 480 of 441; seven quarters; backwards.
    assert_eq!((usual(&of(441, 480)).0, usual(&of(480, 441)).0), (Some(1), Some(1)));
    assert_eq!((usual(&of(7, 4)).0, usual(&of(-6, 8)).0), (Some(2), Some(-1)));
    // What is allowed says nothing of that.
    assert_eq!(of(6, 8).contiguity(0), 1);
}

#[test]
fn pointers_run_over_rows_when_strides_fit() {
    // base + 2 * row + column, elements of one byte.
    let base = AxisInfo::multiple_of(16).splat(&[512, 2]);
    let rows = AxisInfo::range(0, 512).expand_dims(1);
    let rows = rows.mul(&AxisInfo::constant(2, &[512, 1]), 32).broadcast(&[512, 1], &[512, 2]);
    let columns = AxisInfo::range(0, 2).expand_dims(0).broadcast(&[1, 2], &[512, 2]);
    let pointers = base.add(&rows, 64).add(&columns, 64);
    assert_eq!((pointers.runs[0].step, pointers.runs[0].len), (2, 512));
    assert_eq!((pointers.runs[1].step, pointers.runs[1].len), (1, 2));
    assert_eq!(pointers.corner, 16);
}

#[test]
fn matmul_offsets_keep_their_alignment() {
    // (pid * 128 + range) % n with n a multiple of 16.
    let pid = AxisInfo { nonneg: true, ..AxisInfo::unknown(0) };
    let start = pid.mul(&AxisInfo::constant(128, &[]), 32).splat(&[128]);
    let offsets = start.add(&AxisInfo::range(0, 128), 32);
    let n = AxisInfo::multiple_of(16).splat(&[128]);
    let wrapped = offsets.rem(&n, true, 32);
    assert_eq!((wrapped.contiguity(0), wrapped.divisibility(0)), (16, 16));
    let halves = offsets.div(&AxisInfo::constant(8, &[128]), true, 32);
    assert_eq!((halves.constancy(0), halves.contiguity(0)), (8, 1));
    // Negative dividends round towards zero: no run survives.
    let unknown = AxisInfo::multiple_of(16).splat(&[128]).add(&AxisInfo::range(0, 128), 32);
    assert_eq!(unknown.div(&AxisInfo::constant(8, &[128]), true, 32).constancy(0), 1);
}
