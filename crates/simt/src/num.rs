//! Number formats, bit-exact.
//!
//! Narrow formats are held as their bits. Conversions to a narrower format round to nearest, ties to even,
//! unless the name says otherwise. Every conversion goes through one routine, [`round_to`], that rounds a
//! double to a format given by its exponent and mantissa widths; a double holds every f32, f16, bf16 and
//! f8 value exactly, so no value is rounded twice.
//!
//! | format | exponent bits | mantissa bits | bias | infinities | NaN |
//! | --- | ---: | ---: | ---: | --- | --- |
//! | f16 | 5 | 10 | 15 | yes | IEEE |
//! | bf16 | 8 | 7 | 127 | yes | IEEE |
//! | e5m2 | 5 | 2 | 15 | yes | IEEE |
//! | e4m3 (fn) | 4 | 3 | 7 | no, largest finite 448 | 0x7f, 0xff |
//! | e5m2, e4m3 (fnuz) | 5, 4 | 2, 3 | 16, 8 | no | the code of −0 |
//! | e2m1 | 2 | 1 | 1 | no, largest finite 6 | none |
//! | tf32 | 8 | 10 | 127 | yes | IEEE; a float with 13 ignored low bits |

/// Rounding of a conversion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// To nearest, ties away from zero (`cvt.rna`).
    NearestAway,
    /// Toward zero.
    Zero,
    /// Toward negative infinity.
    Down,
    /// Toward positive infinity.
    Up,
}

/// A binary floating-point format with IEEE-like encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Exponent field width.
    pub exp: u32,
    /// Mantissa field width.
    pub man: u32,
    /// What codes stand for infinity and NaN.
    pub specials: Specials,
}

/// The codes of a format that are not finite numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Specials {
    /// The all-ones exponent means infinity and NaN.
    Ieee,
    /// Only the code of all ones is NaN; values beyond the largest finite one saturate or become NaN.
    AllOnesNan,
    /// No infinity, no negative zero: the code of −0 is NaN, and the bias is larger by one.
    Fnuz,
    /// All codes are finite numbers.
    None,
}

/// IEEE half.
pub const F16: Format = Format { exp: 5, man: 10, specials: Specials::Ieee };
/// bfloat16.
pub const BF16: Format = Format { exp: 8, man: 7, specials: Specials::Ieee };
/// IEEE single.
pub const F32: Format = Format { exp: 8, man: 23, specials: Specials::Ieee };
/// f8e5m2.
pub const E5M2: Format = Format { exp: 5, man: 2, specials: Specials::Ieee };
/// f8e4m3fn.
pub const E4M3: Format = Format { exp: 4, man: 3, specials: Specials::AllOnesNan };
/// f8e4m3fnuz of gfx942.
pub const E4M3_FNUZ: Format = Format { exp: 4, man: 3, specials: Specials::Fnuz };
/// f8e5m2fnuz of gfx942.
pub const E5M2_FNUZ: Format = Format { exp: 5, man: 2, specials: Specials::Fnuz };
/// f4e2m1fn.
pub const E2M1: Format = Format { exp: 2, man: 1, specials: Specials::None };
/// tf32 as a 19-bit code.
pub const TF32: Format = Format { exp: 8, man: 10, specials: Specials::Ieee };

/// Rounds a double to a format and returns the code. `saturate` gives the largest finite value where the
/// result would be infinite (NaN stays NaN), as `.satfinite` does.
pub fn round_to(v: f64, f: Format, r: Round, saturate: bool) -> u32 {
    let bits = v.to_bits();
    let negative = bits >> 63 != 0;
    let sign = u32::from(negative) << (f.exp + f.man);
    let fnuz = f.specials == Specials::Fnuz;
    let bias = i64::from(bias(f));
    let exp_max = (1u32 << f.exp) - 1;
    let all = (1u32 << (f.exp + f.man)) - 1;
    // The sign of a FNUZ NaN is part of its code.
    let nan_code = 1 << (f.exp + f.man);
    let (largest, infinity, nan) = match f.specials {
        Specials::Ieee => ((exp_max << f.man) - 1, exp_max << f.man, exp_max << f.man | 1 << (f.man - 1)),
        Specials::AllOnesNan => (all - 1, all, all),
        Specials::Fnuz => (all, nan_code, nan_code),
        Specials::None => (all, all, all),
    };
    if v.is_nan() {
        return if fnuz { nan_code } else { sign | nan };
    }
    if v.is_infinite() {
        return sign | if saturate { largest } else { infinity };
    }
    let exponent = ((bits >> 52) & 0x7ff) as i64;
    if exponent == 0 {
        // A double this small is below half of the smallest value of every format here.
        let tiny = bits << 1 != 0;
        let code = u32::from(tiny && away(r, negative));
        return if fnuz && code == 0 { 0 } else { sign | code };
    }
    let mantissa = (bits & ((1 << 52) - 1)) | 1 << 52;
    let e = exponent - 1023 + bias;
    // Bits of the double's mantissa below the last bit of the result; more when it is subnormal.
    let drop = (52 - f.man as i64) + if e < 1 { 1 - e } else { 0 };
    let (kept, half, rest) = if drop > 60 {
        (0, false, true)
    } else {
        let d = drop as u32;
        (mantissa >> d, mantissa >> (d - 1) & 1 != 0, mantissa & ((1 << (d - 1)) - 1) != 0)
    };
    let up = match r {
        Round::Nearest => half && (rest || kept & 1 != 0),
        Round::NearestAway => half,
        _ => (half || rest) && away(r, negative),
    };
    let rounded = kept + u64::from(up);
    // Adding the mantissa with its leading bit to the exponent field carries into the exponent.
    let code = if e < 1 { rounded } else { (((e - 1) as u64) << f.man) + rounded };
    if code > u64::from(largest) {
        let clamp = saturate
            || (f.specials == Specials::Ieee
                && !matches!(r, Round::Nearest | Round::NearestAway)
                && !away(r, negative));
        return sign | if clamp { largest } else { infinity };
    }
    if fnuz && code == 0 { 0 } else { sign | code as u32 }
}

fn bias(f: Format) -> i32 {
    (1 << (f.exp - 1)) - if f.specials == Specials::Fnuz { 0 } else { 1 }
}

fn away(r: Round, negative: bool) -> bool {
    matches!((r, negative), (Round::Up, false) | (Round::Down, true))
}

/// The value of a code as a double.
pub fn value_of(code: u32, f: Format) -> f64 {
    let sign = if code >> (f.exp + f.man) & 1 != 0 { -1.0 } else { 1.0 };
    let exp_max = (1u32 << f.exp) - 1;
    let e = code >> f.man & exp_max;
    let m = code & ((1 << f.man) - 1);
    let bias = bias(f);
    match f.specials {
        Specials::Ieee if e == exp_max => {
            let nan = f64::from_bits(f64::NAN.to_bits() | (u64::from(sign < 0.0) << 63));
            return if m == 0 { sign * f64::INFINITY } else { nan };
        }
        Specials::AllOnesNan if e == exp_max && m == (1 << f.man) - 1 => return f64::NAN,
        Specials::Fnuz if e == 0 && m == 0 && sign < 0.0 => return f64::NAN,
        _ => {}
    }
    let (m, e) = if e == 0 { (m, 1) } else { (m | 1 << f.man, e as i32) };
    sign * f64::from(m) * pow2(e - bias - f.man as i32)
}

fn pow2(e: i32) -> f64 {
    f64::from_bits(((e + 1023) as u64) << 52)
}

/// f16 → f32, exact.
#[inline(always)]
pub fn f16_to_f32(h: u16) -> f32 {
    let h = u32::from(h);
    let sign = (h & 0x8000) << 16;
    let body = (h & 0x7fff) << 13;
    // Scaling by 2^112 moves the exponent bias and normalizes subnormals in one exact multiplication.
    let scaled = f32::from_bits(body) * f32::from_bits(0x7780_0000);
    let special = (h & 0x7c00) == 0x7c00;
    f32::from_bits(sign | if special { body | 0x7f80_0000 } else { scaled.to_bits() })
}

/// bf16 → f32, exact.
#[inline(always)]
pub fn bf16_to_f32(b: u16) -> f32 {
    f32::from_bits(u32::from(b) << 16)
}

/// f32 → f16.
pub fn f32_to_f16(v: f32) -> u16 {
    let bits = v.to_bits();
    let sign = (bits >> 16 & 0x8000) as u16;
    let a = bits & 0x7fff_ffff;
    // Normal results that do not overflow are the usual case and need no double.
    if (0x3880_0000..0x477f_e000).contains(&a) {
        let r = a + 0xfff + (a >> 13 & 1);
        return sign | ((r - 0x3800_0000) >> 13) as u16;
    }
    round_to(f64::from(v), F16, Round::Nearest, false) as u16
}

/// f32 → bf16.
pub fn f32_to_bf16(v: f32) -> u16 {
    let bits = v.to_bits();
    if v.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7fff + (bits >> 16 & 1)) >> 16) as u16
}

/// f64 → f16.
pub fn f64_to_f16(v: f64) -> u16 {
    round_to(v, F16, Round::Nearest, false) as u16
}

/// f64 → bf16.
pub fn f64_to_bf16(v: f64) -> u16 {
    round_to(v, BF16, Round::Nearest, false) as u16
}

/// A double rounded to f32 in the given direction.
pub fn f64_to_f32(v: f64, r: Round) -> f32 {
    if r == Round::Nearest { v as f32 } else { f32::from_bits(round_to(v, F32, r, false)) }
}

/// Drops the 13 low bits of a float, as tensor cores do with tf32 operands.
#[inline(always)]
pub fn tf32_truncate(bits: u32) -> f32 {
    f32::from_bits(bits & 0xffff_e000)
}

/// Flushes subnormals to zero of the same sign.
#[inline(always)]
pub fn flush(v: f32) -> f32 {
    if v.abs() < f32::MIN_POSITIVE { f32::from_bits(v.to_bits() & 0x8000_0000) } else { v }
}

/// The sum of two doubles rounded to odd: a later rounding to a format of at most 51 bits of precision
/// then gives the correctly rounded sum (Boldo and Melquiond, "Emulation of FMA and correctly rounded
/// sums: proved algorithms using rounding to odd").
pub fn add_to_odd(a: f64, b: f64) -> f64 {
    let s = a + b;
    if !s.is_finite() {
        return s;
    }
    let bb = s - a;
    let err = (a - (s - bb)) + (b - bb);
    if err == 0.0 || s.to_bits() & 1 != 0 {
        return s;
    }
    let toward_larger = (err > 0.0) == (s > 0.0);
    let bits = s.to_bits();
    f64::from_bits(if toward_larger { bits + 1 } else { bits - 1 })
}

/// A fused multiply-add of values with at most 24 bits of precision: exact product, one rounding later.
pub fn fma_to_odd(a: f64, b: f64, c: f64) -> f64 {
    add_to_odd(a * b, c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_codes_survive_a_round_trip() {
        for f in [F16, BF16, E5M2, E4M3, E5M2_FNUZ, E4M3_FNUZ] {
            for code in 0..1u32 << (1 + f.exp + f.man) {
                let v = value_of(code, f);
                if !v.is_nan() {
                    assert_eq!(round_to(v, f, Round::Nearest, false), code, "{f:?} {code:#x} = {v}");
                }
            }
        }
    }

    #[test]
    fn half_conversions_agree_with_the_general_routine() {
        for code in 0..=u16::MAX {
            let v = f16_to_f32(code);
            let w = value_of(u32::from(code), F16);
            assert!(f64::from(v) == w || v.is_nan() && w.is_nan());
            if !v.is_nan() {
                for near in [v, f32::from_bits(v.to_bits() ^ 0x1000), f32::from_bits(v.to_bits() ^ 0x1001)] {
                    if near.is_finite() {
                        assert_eq!(
                            u32::from(f32_to_f16(near)),
                            round_to(f64::from(near), F16, Round::Nearest, false)
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn ties_and_overflow() {
        assert_eq!(f32_to_f16(65519.9), 0x7bff);
        assert_eq!(f32_to_f16(65520.0), 0x7c00);
        assert_eq!(round_to(448.0, E4M3, Round::Nearest, false), 0x7e);
        assert_eq!(round_to(465.0, E4M3, Round::Nearest, true), 0x7e);
        assert_eq!(round_to(465.0, E4M3, Round::Nearest, false), 0x7f);
        assert_eq!(round_to(70000.0, E5M2, Round::Nearest, true), 0x7b);
        assert_eq!(round_to(1e9, F16, Round::Zero, false), 0x7bff);
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f80_8000)), 0x3f80);
        assert_eq!(f32_to_bf16(f32::from_bits(0x3f81_8000)), 0x3f82);
        assert_eq!(
            round_to(f64::from(f32::from_bits(0x3f80_1000)), TF32, Round::NearestAway, false),
            (0x3f80_1000 + 0x1000) >> 13
        );
    }

    #[test]
    fn sum_to_odd_keeps_what_rounding_would_lose() {
        // 1 + 2^-11 + 2^-70 lies just above the middle of two halves; plain f64 addition loses the last term.
        let s = add_to_odd(1.0 + 2f64.powi(-11), 2f64.powi(-70));
        assert_eq!(f64_to_f16(s), 0x3c01);
        assert_eq!(f64_to_f16((1.0 + 2f64.powi(-11)) + 2f64.powi(-70)), 0x3c00);
    }
}
