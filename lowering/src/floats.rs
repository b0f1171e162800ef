//! Formats of floats: bits of constants, and conversions in integer arithmetic.

use crate::emit::{Emit, ICmp, Lowered, unsupported};
use mlir_host::ir::{Attr, FloatKind, Value};

/// A binary floating-point format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Format {
    /// Bits of the exponent.
    pub exponent: u32,
    /// Bits of the mantissa.
    pub mantissa: u32,
    /// Exponent bias.
    pub bias: i32,
    /// Has infinities (all exponent bits set, no mantissa bits).
    pub infinity: bool,
    /// The only NaN is negative zero's encoding, and there is no negative zero.
    pub unsigned_zero: bool,
}

/// The format of an 8-bit or smaller kind.
pub fn format(kind: FloatKind) -> Option<Format> {
    let (exponent, mantissa, bias, infinity, unsigned_zero) = match kind {
        FloatKind::F8E4M3FN => (4, 3, 7, false, false),
        FloatKind::F8E5M2 => (5, 2, 15, true, false),
        FloatKind::F8E4M3FNUZ => (4, 3, 8, false, true),
        FloatKind::F8E5M2FNUZ => (5, 2, 16, false, true),
        _ => return None,
    };
    Some(Format { exponent, mantissa, bias, infinity, unsigned_zero })
}

impl Format {
    /// Bits of NaN.
    pub fn nan(self) -> u32 {
        match (self.unsigned_zero, self.infinity) {
            (true, _) => 0x80,
            (false, true) => 0x7f,
            (false, false) => 0x7f,
        }
    }
    /// The number that the bits of a normal, positive one stand for.
    pub fn value(self, bits: u32) -> f64 {
        let exponent = (bits >> self.mantissa) as i32 - self.bias;
        let mantissa = f64::from(bits & ((1 << self.mantissa) - 1)) / f64::from(1 << self.mantissa);
        (1.0 + mantissa) * 2f64.powi(exponent)
    }
    /// Bits of the largest finite value.
    pub fn max_finite(self) -> u32 {
        match (self.unsigned_zero, self.infinity) {
            (true, _) => 0x7f,
            (false, true) => (((1 << self.exponent) - 1) << self.mantissa) - 1,
            (false, false) => 0x7e,
        }
    }
}

/// Bits of `value` in an 8-bit format, rounded to the nearest even; overflow
/// gives infinity where there is one, else NaN. `None` for other kinds.
pub fn encode(kind: FloatKind, value: f64) -> Option<u32> {
    let format = format(kind)?;
    let sign = u32::from(value.is_sign_negative()) << 7;
    if value.is_nan() {
        return Some(format.nan());
    }
    let magnitude = value.abs();
    let overflow =
        if format.infinity { ((1 << format.exponent) - 1) << format.mantissa } else { format.nan() };
    let bits = if magnitude.is_infinite() {
        overflow
    } else if magnitude == 0.0 {
        0
    } else {
        // Exponent of the unit in the last place, at least the subnormals'.
        let exponent = ((magnitude.to_bits() >> 52) as i32 - 1023).max(1 - format.bias);
        let scaled = magnitude * 2f64.powi(format.mantissa as i32 - exponent);
        let rounded = scaled.round_ties_even() as i64;
        let hidden = 1i64 << format.mantissa;
        // A normal number's hidden bit adds one to the exponent field.
        let field = ((i64::from(exponent + format.bias) - 1) << format.mantissa) + rounded;
        let field = if rounded < hidden { rounded } else { field };
        if field > i64::from(format.max_finite()) { overflow } else { field as u32 }
    };
    if format.unsigned_zero && bits == 0 {
        return Some(0);
    }
    if bits == format.nan() && format.unsigned_zero {
        return Some(bits);
    }
    Some(sign | bits)
}

/// Emits the conversion of an `f32` to an 8-bit format, saturating to the
/// largest finite value, NaN to NaN. For targets without an instruction.
///
/// # Errors
/// When the format is not an 8-bit one.
pub fn emit_from_f32<'c>(
    e: &mut Emit<'c>,
    value: Value<'c>,
    to: FloatKind,
    towards_zero: bool,
) -> Lowered<Value<'c>> {
    let Some(format) = format(to) else { return unsupported(format!("conversion to {to:?}")) };
    let i32t = e.i32();
    let bits = e.bitcast(value, i32t)?;
    let magnitude = e.mask(bits, 0x7fff_ffff)?;
    // Below the smallest normal number: adding 2^k aligns the unit in the last
    // place of the sum with that of the subnormals, and rounds as it should.
    let shift = 23 - format.mantissa;
    let smallest_normal = i64::from(127 + 1 - format.bias) << 23;
    let align_bits = i64::from(127 + 1 - format.bias + shift as i32) << 23;
    let align = e.const_i32(align_bits)?;
    let f32t = e.f32();
    let subnormal = if towards_zero {
        // Scale so that the integer part is the field, and truncate it.
        let scale = e.const_float(f32t, 2f64.powi(format.bias - 1 + format.mantissa as i32))?;
        let magnitude_f = e.bitcast(magnitude, f32t)?;
        let scaled = e.same("llvm.fmul", &[magnitude_f, scale])?;
        e.value("llvm.fptoui", &[scaled], i32t, &[])?
    } else {
        let magnitude_f = e.bitcast(magnitude, f32t)?;
        let align_f = e.bitcast(align, f32t)?;
        let sum = e.same("llvm.fadd", &[magnitude_f, align_f])?;
        let sum = e.bitcast(sum, i32t)?;
        e.same("llvm.sub", &[sum, align])?
    };
    // Normal numbers: rebias the exponent and round in integer arithmetic.
    let rebias = e.const_i32((i64::from(format.bias) - 127) << 23)?;
    let mut normal = e.add(magnitude, rebias)?;
    if !towards_zero {
        let odd = e.lshr(magnitude, shift)?;
        let odd = e.mask(odd, 1)?;
        let half = e.const_i32((1 << (shift - 1)) - 1)?;
        normal = e.add(normal, half)?;
        normal = e.add(normal, odd)?;
    }
    let normal = e.lshr(normal, shift)?;
    let threshold = e.const_i32(smallest_normal)?;
    let is_small = e.icmp(ICmp::Ult, magnitude, threshold)?;
    let max = e.const_i32(format.max_finite().into())?;
    let clamped = e.same("llvm.intr.umin", &[normal, max])?;
    // Huge magnitudes wrap the rebiased field; they are above the largest finite value too.
    let huge = e.const_i32(i64::from(127 + (1 << format.exponent) - format.bias) << 23)?;
    let is_huge = e.icmp(ICmp::Uge, magnitude, huge)?;
    let clamped = e.select(is_huge, max, clamped)?;
    let field = e.select(is_small, subnormal, clamped)?;
    let sign = e.lshr(bits, 24)?;
    let sign = e.mask(sign, 0x80)?;
    let signed = e.or(field, sign)?;
    let signed = if format.unsigned_zero {
        let zero = e.const_i32(0)?;
        let is_zero = e.icmp(ICmp::Eq, field, zero)?;
        e.select(is_zero, zero, signed)?
    } else {
        signed
    };
    let infinity = e.const_i32(0x7f80_0000)?;
    let is_nan = e.icmp(ICmp::Ugt, magnitude, infinity)?;
    let nan = e.const_i32(format.nan().into())?;
    let result = e.select(is_nan, nan, signed)?;
    let i8t = e.i8();
    e.value("llvm.trunc", &[result], i8t, &[])
}

/// A function of floats of 16 bits: through `f32`, and rounded once at the end.
///
/// # Errors
/// Those of `f`, which works on `f32`.
pub fn through_single<'c>(
    e: &mut Emit<'c>,
    args: &[Value<'c>],
    f: impl FnOnce(&mut Emit<'c>, &[Value<'c>]) -> Lowered<Value<'c>>,
) -> Lowered<Value<'c>> {
    let (ty, f32t) = (args[0].ty(), e.f32());
    let wide =
        args.iter().map(|arg| e.value("llvm.fpext", &[*arg], f32t, &[])).collect::<Lowered<Vec<_>>>()?;
    let result = f(e, &wide)?;
    e.value("llvm.fptrunc", &[result], ty, &[])
}

/// An `f64` as an `f32` rounded to odd, of which `truncated` is the `f32` towards zero: what is rounded from it to fewer bits
/// is as if rounded once.
///
/// # Errors
/// When an operation cannot be made.
pub fn to_odd<'c>(e: &mut Emit<'c>, value: Value<'c>, truncated: Value<'c>) -> Lowered<Value<'c>> {
    let (i32t, f64t, i1) = (e.i32(), value.ty(), e.i1());
    let back = e.value("llvm.fpext", &[truncated], f64t, &[])?;
    // one (ordered and unequal) is predicate 6.
    let predicate = Attr::int(e.context(), 64, 6);
    let inexact = e.value("llvm.fcmp", &[back, value], i1, &[("predicate", predicate)])?;
    let sticky = e.value("llvm.zext", &[inexact], i32t, &[])?;
    let bits = e.bitcast(truncated, i32t)?;
    let odd = e.or(bits, sticky)?;
    e.bitcast(odd, truncated.ty())
}

/// Emits the exact conversion of an 8-bit format to `f16`, where its bits, moved up, are those of an `f16` but for a
/// factor; `None` for formats of which that is not so.
///
/// # Errors
/// When an operation cannot be made.
pub fn emit_to_f16<'c>(e: &mut Emit<'c>, value: Value<'c>, from: FloatKind) -> Lowered<Option<Value<'c>>> {
    let (i16t, f16t) = (e.i16(), e.float(FloatKind::F16));
    let Some(format) = format(from).filter(|format| format.mantissa == 3 || format.infinity) else {
        return Ok(None);
    };
    let wide = e.value("llvm.zext", &[value], i16t, &[])?;
    if format.infinity {
        // The upper half of an f16, infinities and NaNs among it.
        let bits = e.shl(wide, 8)?;
        return e.bitcast(bits, f16t).map(Some);
    }
    let field = e.mask(wide, 0x7f)?;
    let aligned = e.shl(field, 10 - format.mantissa)?;
    let sign = e.mask(wide, 0x80)?;
    let sign = e.shl(sign, 8)?;
    let bits = e.or_disjoint(aligned, sign)?;
    let small = e.bitcast(bits, f16t)?;
    // Exponents of f16 have a bias of 15. Subnormals become normal, exactly.
    let scale = e.const_float(f16t, 2f64.powi(15 - format.bias))?;
    let number = e.same("llvm.fmul", &[small, scale])?;
    let (tested, nan) = if format.unsigned_zero { (wide, 0x80) } else { (field, format.nan()) };
    let nan = e.const_int(16, nan.into())?;
    let is_nan = e.icmp(ICmp::Eq, tested, nan)?;
    let nan = e.const_float(f16t, f64::NAN)?;
    e.select(is_nan, nan, number).map(Some)
}

/// Emits the exact conversion of an 8-bit format to `f32`.
///
/// # Errors
/// When the format is not an 8-bit one.
pub fn emit_to_f32<'c>(e: &mut Emit<'c>, value: Value<'c>, from: FloatKind) -> Lowered<Value<'c>> {
    let Some(format) = format(from) else { return unsupported(format!("conversion from {from:?}")) };
    let (i32t, f32t) = (e.i32(), e.f32());
    let wide = e.value("llvm.zext", &[value], i32t, &[])?;
    let field = e.mask(wide, 0x7f)?;
    let aligned = e.shl(field, 23 - format.mantissa)?;
    // As a float of the small format's exponent range, then scaled: exact, and
    // right for subnormals too.
    let small = e.bitcast(aligned, f32t)?;
    let scale = e.const_float(f32t, 2f64.powi(127 - format.bias))?;
    let scaled = e.same("llvm.fmul", &[small, scale])?;
    let magnitude = e.bitcast(scaled, i32t)?;
    let magnitude = if format.unsigned_zero {
        magnitude
    } else {
        // Infinities and NaNs.
        let (limit, above) = if format.infinity {
            let limit = ((1u32 << format.exponent) - 1) << format.mantissa;
            (limit, ICmp::Uge)
        } else {
            (format.nan(), ICmp::Uge)
        };
        let limit = e.const_i32(limit.into())?;
        let special = e.icmp(above, field, limit)?;
        let payload = e.shl(field, 23 - format.mantissa)?;
        let exponent = e.const_i32(0x7f80_0000)?;
        let special_bits = e.or(payload, exponent)?;
        e.select(special, special_bits, magnitude)?
    };
    let sign = e.mask(wide, 0x80)?;
    let sign = e.shl(sign, 24)?;
    let bits = e.or(magnitude, sign)?;
    let bits = if format.unsigned_zero {
        let nan_code = e.const_i32(0x80)?;
        let is_nan = e.icmp(ICmp::Eq, wide, nan_code)?;
        let nan = e.const_i32(0x7fc0_0000)?;
        e.select(is_nan, nan, bits)?
    } else {
        bits
    };
    e.bitcast(bits, f32t)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of 8 bits, by the definition of the format.
    fn decode(kind: FloatKind, bits: u32) -> f64 {
        let format = format(kind).unwrap();
        let sign = if bits & 0x80 != 0 { -1.0 } else { 1.0 };
        let exponent = (bits & 0x7f) >> format.mantissa;
        let mantissa = f64::from(bits & ((1 << format.mantissa) - 1));
        if format.unsigned_zero && bits == 0x80 {
            return f64::NAN;
        }
        let top = (1 << format.exponent) - 1;
        if format.infinity && exponent == top {
            return if mantissa == 0.0 { sign * f64::INFINITY } else { f64::NAN };
        }
        if !format.infinity && !format.unsigned_zero && bits & 0x7f == 0x7f {
            return f64::NAN;
        }
        let unit = 2f64.powi(-(format.mantissa as i32));
        if exponent == 0 {
            sign * mantissa * unit * 2f64.powi(1 - format.bias)
        } else {
            sign * (1.0 + mantissa * unit) * 2f64.powi(exponent as i32 - format.bias)
        }
    }

    const KINDS: [FloatKind; 4] =
        [FloatKind::F8E4M3FN, FloatKind::F8E5M2, FloatKind::F8E4M3FNUZ, FloatKind::F8E5M2FNUZ];

    #[test]
    fn every_code_encodes_to_itself() {
        for kind in KINDS {
            for bits in 0..256 {
                let value = decode(kind, bits);
                let again = encode(kind, value).unwrap();
                if value.is_nan() {
                    assert!(decode(kind, again).is_nan(), "{kind:?} {bits:#x} -> {again:#x}");
                } else {
                    assert_eq!(again, bits, "{kind:?} {bits:#x} = {value}");
                }
            }
        }
    }

    #[test]
    fn rounding_is_to_the_nearest_even() {
        // 17 is between 16 and 18 in e4m3: the even mantissa is 16's.
        assert_eq!(decode(FloatKind::F8E4M3FN, encode(FloatKind::F8E4M3FN, 17.0).unwrap()), 16.0);
        assert_eq!(decode(FloatKind::F8E4M3FN, encode(FloatKind::F8E4M3FN, 19.0).unwrap()), 20.0);
        assert_eq!(encode(FloatKind::F8E5M2, 1e9), Some(0x7c));
        assert_eq!(encode(FloatKind::F8E4M3FN, 1e9), Some(0x7f));
        assert_eq!(encode(FloatKind::F32, 1.0), None);
    }
}
