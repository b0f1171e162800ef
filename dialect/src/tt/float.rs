//! Values of the narrow float formats, for folding constants.
//!
//! Only zeros and normal numbers are represented: what hardware does with
//! subnormal, infinite and NaN values differs, so those are never folded.

use crate::tt::enums::RoundingMode;
use mlir_host::ir::FloatKind;

/// A binary format: exponent and mantissa widths, and the exponents of normal numbers.
#[derive(Clone, Copy)]
struct Layout {
    exponent_bits: u32,
    mantissa_bits: u32,
    min_exponent: i32,
    max: f64,
    negative_zero: bool,
}

fn layout(kind: FloatKind) -> Option<Layout> {
    let layout = |exponent_bits, mantissa_bits, min_exponent, max, negative_zero| Layout {
        exponent_bits,
        mantissa_bits,
        min_exponent,
        max,
        negative_zero,
    };
    Some(match kind {
        FloatKind::F8E4M3FN => layout(4, 3, -6, 448.0, true),
        FloatKind::F8E5M2 => layout(5, 2, -14, 57344.0, true),
        FloatKind::F8E4M3FNUZ => layout(4, 3, -7, 240.0, false),
        FloatKind::F8E5M2FNUZ => layout(5, 2, -15, 57344.0, false),
        FloatKind::F16 => layout(5, 10, -14, 65504.0, true),
        FloatKind::BF16 => layout(8, 7, -126, f64::from(f32::from_bits(0x7f7f_0000)), true),
        FloatKind::F32 => layout(8, 23, -126, f64::from(f32::MAX), true),
        FloatKind::F64 => layout(11, 52, -1022, f64::MAX, true),
        _ => return None,
    })
}

const MANTISSA_BITS: u32 = f64::MANTISSA_DIGITS - 1;

fn exponent(value: f64) -> i32 {
    ((value.to_bits() >> MANTISSA_BITS) & 0x7ff) as i32 - 1023
}

fn representable(layout: Layout, value: f64) -> bool {
    if value == 0.0 {
        return layout.negative_zero || value.is_sign_positive();
    }
    value.is_normal() && exponent(value) >= layout.min_exponent && value.abs() <= layout.max
}

/// `value` rounded to a format; `None` where it is not a zero or a normal
/// number there, or inexact without a rounding mode.
pub(crate) fn round(value: f64, kind: FloatKind, mode: Option<RoundingMode>) -> Option<f64> {
    let layout = layout(kind)?;
    let drop = MANTISSA_BITS - layout.mantissa_bits;
    let bits = value.to_bits();
    let mask = (1u64 << drop) - 1;
    // A carry out of the mantissa goes to the exponent, as it should.
    let rounded = match mode {
        _ if bits & mask == 0 => bits,
        None => return None,
        Some(RoundingMode::TowardsZero) => bits & !mask,
        Some(RoundingMode::NearestEven) => {
            let odd = (bits >> drop) & 1;
            (bits + (mask >> 1) + odd) & !mask
        }
    };
    // A subnormal of the format may round up to a normal number: that is left alone too.
    let rounded = f64::from_bits(rounded);
    (representable(layout, value.clamp(-layout.max, layout.max)) && representable(layout, rounded))
        .then_some(rounded)
}

/// The bits of a value that the format represents exactly.
pub(crate) fn encode(value: f64, kind: FloatKind) -> Option<u64> {
    let layout = layout(kind)?;
    let value = round(value, kind, None)?;
    let sign = u64::from(value.is_sign_negative()) << (layout.exponent_bits + layout.mantissa_bits);
    if value == 0.0 {
        return Some(sign);
    }
    let biased = (exponent(value) - layout.min_exponent + 1) as u64;
    let mantissa = (value.to_bits() & ((1 << MANTISSA_BITS) - 1)) >> (MANTISSA_BITS - layout.mantissa_bits);
    Some(sign | biased << layout.mantissa_bits | mantissa)
}

/// The value of bits that stand for a zero or a normal number.
pub(crate) fn decode(bits: u64, kind: FloatKind) -> Option<f64> {
    let layout = layout(kind)?;
    let mantissa = bits & ((1 << layout.mantissa_bits) - 1);
    let biased = (bits >> layout.mantissa_bits) & ((1 << layout.exponent_bits) - 1);
    let negative = (bits >> (layout.exponent_bits + layout.mantissa_bits)) & 1 == 1;
    let magnitude = match (biased, mantissa) {
        (0, 0) => 0.0,
        (0, _) => return None,
        _ => {
            let exponent = biased as i64 - 1 + i64::from(layout.min_exponent);
            let exponent = u64::try_from(exponent + 1023).ok().filter(|exponent| *exponent < 2047)?;
            f64::from_bits(exponent << MANTISSA_BITS | mantissa << (MANTISSA_BITS - layout.mantissa_bits))
        }
    };
    let value = if negative { -magnitude } else { magnitude };
    representable(layout, value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use FloatKind::*;
    use RoundingMode::*;

    #[test]
    fn rounding() {
        assert_eq!(round(1.3, F8E5M2, Some(NearestEven)), Some(1.25));
        assert_eq!(round(1.375, F8E5M2, Some(NearestEven)), Some(1.5));
        assert_eq!(round(1.125, F8E5M2, Some(NearestEven)), Some(1.0));
        assert_eq!(round(1.99, F8E5M2, Some(NearestEven)), Some(2.0));
        assert_eq!(round(-1.99, F8E5M2, Some(TowardsZero)), Some(-1.75));
        assert_eq!(round(1.3, F8E5M2, None), None);
        assert_eq!(round(448.0, F8E4M3FN, None), Some(448.0));
        assert_eq!(round(480.0, F8E4M3FN, Some(TowardsZero)), None);
        assert_eq!(round(1e-6, F16, Some(NearestEven)), None);
        assert_eq!(round(f64::INFINITY, F16, Some(NearestEven)), None);
        assert_eq!(round(f64::NAN, F16, Some(NearestEven)), None);
        assert_eq!(round(-0.0, F8E4M3FNUZ, None), None);
        assert_eq!(round(f64::from(1.1f32), F32, None), Some(f64::from(1.1f32)));
        assert_eq!(round(1.1, F64, None), Some(1.1));
    }

    #[test]
    fn bits_of_values() {
        assert_eq!(encode(1.0, F8E4M3FN), Some(0x38));
        assert_eq!(encode(-448.0, F8E4M3FN), Some(0xfe));
        assert_eq!(encode(1.0, F8E4M3FNUZ), Some(0x40));
        assert_eq!(encode(1.0, F16), Some(0x3c00));
        assert_eq!(encode(-2.0, BF16), Some(0xc000));
        assert_eq!(decode(0x7fc0, BF16), None);
        assert_eq!(decode(0x0001, F16), None);
        assert_eq!(decode(0x7c00, F16), None);
        for value in [0.0f32, 1.0, -1.5, 3.4e38, 1.2e-38, -7.25] {
            assert_eq!(encode(f64::from(value), F32), Some(u64::from(value.to_bits())));
            assert_eq!(decode(u64::from(value.to_bits()), F32), Some(f64::from(value)));
            assert_eq!(encode(f64::from(value), F64), Some(f64::from(value).to_bits()));
        }
        for kind in [F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ, F16, BF16] {
            for bits in 0..(1u64 << kind.bits()) {
                if let Some(value) = decode(bits, kind) {
                    assert_eq!(encode(value, kind), Some(bits), "{kind:?} {bits:#x} {value}");
                }
            }
        }
    }
}
