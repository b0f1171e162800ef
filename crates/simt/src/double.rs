//! Directed rounding of double-precision arithmetic.
//!
//! The processor that runs the simulator rounds to nearest. The other modes are computed here from the exact result,
//! held as an integer with a sticky lowest bit: 126 bits are enough for one rounding to 53.

use crate::num::Round;

/// A positive or negative value `mantissa * 2^exponent`; a lost remainder is kept as a set lowest bit.
#[derive(Clone, Copy)]
struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
}

impl Exact {
    /// A finite double.
    fn new(v: f64) -> Exact {
        let bits = v.to_bits();
        let (field, fraction) = ((bits >> 52 & 0x7ff) as i32, bits & ((1 << 52) - 1));
        let (mantissa, exponent) = if field == 0 { (fraction, 1) } else { (fraction | 1 << 52, field) };
        Exact { negative: bits >> 63 != 0, mantissa: u128::from(mantissa), exponent: exponent - 1075 }
    }

    /// The same value with bit 125 as the highest.
    fn normalized(mut self) -> Exact {
        if self.mantissa != 0 {
            let shift = self.mantissa.leading_zeros() as i32 - 2;
            self.mantissa = if shift >= 0 { self.mantissa << shift } else { sticky(self.mantissa, -shift) };
            self.exponent -= shift;
        }
        self
    }

    /// The double next to it in the direction of the mode.
    fn round(self, mode: Round) -> f64 {
        let sign = u64::from(self.negative) << 63;
        if self.mantissa == 0 {
            return f64::from_bits(sign);
        }
        let v = self.normalized();
        // The exponent of the lowest bit that the result has room for.
        let lowest = (v.exponent + 73).max(-1074);
        let drop = lowest - v.exponent;
        let kept = if drop > 127 { 0 } else { (v.mantissa >> drop) as u64 };
        let rest = if drop > 127 { v.mantissa } else { v.mantissa & ((1 << drop) - 1) };
        let half = if drop > 127 { u128::MAX } else { 1 << (drop - 1) };
        let up = match mode {
            Round::Nearest => rest > half || (rest == half && kept & 1 != 0),
            Round::NearestAway => rest >= half,
            Round::Zero => false,
            Round::Up => rest != 0 && !v.negative,
            Round::Down => rest != 0 && v.negative,
        };
        let kept = kept + u64::from(up);
        // The leading bit of a normal number, and a carry, go into the exponent field.
        let bits = ((lowest + 1074) as u64).wrapping_shl(52).wrapping_add(kept);
        if bits < 0x7ff << 52 {
            return f64::from_bits(sign | bits);
        }
        let infinite = match mode {
            Round::Nearest | Round::NearestAway => true,
            Round::Zero => false,
            Round::Up => !v.negative,
            Round::Down => v.negative,
        };
        let largest = f64::MAX.to_bits();
        f64::from_bits(sign | if infinite { f64::INFINITY.to_bits() } else { largest })
    }
}

/// Shifts right; what falls off sets the lowest bit.
fn sticky(v: u128, n: i32) -> u128 {
    match n {
        0 => v,
        1..=127 => v >> n | u128::from(v & ((1 << n) - 1) != 0),
        _ => u128::from(v != 0),
    }
}

/// `a * b + c`, rounded once.
pub fn fma(a: f64, b: f64, c: f64, mode: Round) -> f64 {
    let nearest = a.mul_add(b, c);
    if mode == Round::Nearest || !(a.is_finite() && b.is_finite() && c.is_finite()) {
        return nearest;
    }
    let (x, y) = (Exact::new(a), Exact::new(b));
    let product = Exact {
        negative: x.negative != y.negative,
        mantissa: x.mantissa * y.mantissa,
        exponent: x.exponent + y.exponent,
    };
    let z = Exact::new(c);
    if product.mantissa == 0 && z.mantissa == 0 {
        let negative = if product.negative == z.negative { z.negative } else { mode == Round::Down };
        return if negative { -0.0 } else { 0.0 };
    }
    if product.mantissa == 0 || z.mantissa == 0 {
        return if z.mantissa == 0 { product } else { z }.round(mode);
    }
    let (mut big, mut small) = (product.normalized(), z.normalized());
    if (big.exponent, big.mantissa) < (small.exponent, small.mantissa) {
        (big, small) = (small, big);
    }
    let aligned = sticky(small.mantissa, big.exponent - small.exponent);
    let mantissa =
        if big.negative == small.negative { big.mantissa + aligned } else { big.mantissa - aligned };
    if mantissa == 0 {
        return if mode == Round::Down { -0.0 } else { 0.0 };
    }
    Exact { mantissa, ..big }.round(mode)
}

/// `a + b`.
pub fn add(a: f64, b: f64, mode: Round) -> f64 {
    if mode == Round::Nearest { a + b } else { fma(a, 1.0, b, mode) }
}

/// `a * b`.
pub fn mul(a: f64, b: f64, mode: Round) -> f64 {
    if mode == Round::Nearest || !(a.is_finite() && b.is_finite()) {
        return a * b;
    }
    let (x, y) = (Exact::new(a), Exact::new(b));
    let negative = x.negative != y.negative;
    Exact { negative, mantissa: x.mantissa * y.mantissa, exponent: x.exponent + y.exponent }.round(mode)
}

/// `a / b`.
pub fn div(a: f64, b: f64, mode: Round) -> f64 {
    if mode == Round::Nearest || !(a.is_finite() && b.is_finite()) || b == 0.0 {
        return a / b;
    }
    // The divisor has at most 53 bits, the dividend is moved up to 126: the quotient has at least 72.
    let (x, y) = (Exact::new(a).normalized(), Exact::new(b));
    let (q, r) = (x.mantissa / y.mantissa, x.mantissa % y.mantissa);
    let negative = Exact::new(a).negative != y.negative;
    Exact { negative, mantissa: q | u128::from(r != 0), exponent: x.exponent - y.exponent }.round(mode)
}

/// The square root.
pub fn sqrt(a: f64, mode: Round) -> f64 {
    if mode == Round::Nearest || !a.is_finite() || a <= 0.0 {
        return a.sqrt();
    }
    let mut x = Exact::new(a).normalized();
    if x.exponent & 1 != 0 {
        // An even exponent halves; bit 126 is free.
        (x.mantissa, x.exponent) = (x.mantissa << 1, x.exponent - 1);
    }
    let root = x.mantissa.isqrt();
    // 64 bits are known: one more to hold what is left over.
    let mantissa = root << 1 | u128::from(root * root != x.mantissa);
    Exact { negative: false, mantissa, exponent: x.exponent / 2 - 1 }.round(mode)
}

/// An integer.
pub fn from_int(v: i128, mode: Round) -> f64 {
    if mode == Round::Nearest {
        return v as f64;
    }
    Exact { negative: v < 0, mantissa: v.unsigned_abs(), exponent: 0 }.round(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The nearest result and its neighbours enclose what the directed modes give.
    fn encloses(nearest: f64, mut of: impl FnMut(Round) -> f64) -> Result<(), TestCaseError> {
        let (down, up, zero) = (of(Round::Down), of(Round::Up), of(Round::Zero));
        if nearest.is_nan() {
            prop_assert!(down.is_nan() && up.is_nan() && zero.is_nan());
            return Ok(());
        }
        prop_assert!(down <= nearest && nearest <= up, "{down:e} {nearest:e} {up:e}");
        prop_assert!(nearest.is_infinite() || down == up || down.next_up() == up, "{down:e} {up:e}");
        let toward_zero = if down.abs() < up.abs() { down } else { up };
        prop_assert_eq!(zero, toward_zero);
        Ok(())
    }

    fn double() -> impl Strategy<Value = f64> {
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            (-40i32..40, any::<i32>()).prop_map(|(e, m)| f64::from(m) * 2f64.powi(e)),
            (0u64..4).prop_map(f64::from_bits),
        ]
    }

    proptest! {
        #[test]
        fn modes_enclose_the_nearest(a in double(), b in double(), c in double()) {
            encloses(a + b, |m| add(a, b, m))?;
            encloses(a * b, |m| mul(a, b, m))?;
            encloses(a / b, |m| div(a, b, m))?;
            encloses(a.sqrt(), |m| sqrt(a, m))?;
            encloses(a.mul_add(b, c), |m| fma(a, b, c, m))?;
        }

        /// The rounding itself against the processor's.
        #[test]
        fn nearest_is_the_processors(a in double(), b in double()) {
            prop_assume!(a.is_finite() && b.is_finite());
            let (x, y) = (Exact::new(a), Exact::new(b));
            let negative = x.negative != y.negative;
            let exact = Exact { negative, mantissa: x.mantissa * y.mantissa, exponent: x.exponent + y.exponent };
            prop_assert_eq!(exact.round(Round::Nearest).to_bits(), (a * b).to_bits());
        }

        #[test]
        fn integers_round(v in any::<i64>()) {
            encloses(v as f64, |m| from_int(i128::from(v), m))?;
        }
    }

    #[test]
    fn zeros_overflows_and_roots() {
        assert!(add(1.5, -1.5, Round::Down).is_sign_negative());
        assert!(add(1.5, -1.5, Round::Up).is_sign_positive());
        assert!(add(-0.0, -0.0, Round::Up).is_sign_negative());
        assert_eq!(mul(f64::MAX, 2.0, Round::Zero), f64::MAX);
        assert_eq!(sqrt(2.0, Round::Down).to_bits(), 0x3ff6_a09e_667f_3bcc);
        assert_eq!(sqrt(2.0, Round::Up).to_bits(), 0x3ff6_a09e_667f_3bcd);
    }
}
