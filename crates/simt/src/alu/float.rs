//! Floating-point arithmetic.

use super::sext;
use crate::bytecode::*;
use crate::double;
use crate::num::{self, Round};

/// The value of a narrow or single float as f32.
#[inline(always)]
pub fn to_f32(f: Fmt, v: u64) -> f32 {
    match f {
        Fmt::F16 => num::f16_to_f32(v as u16),
        Fmt::BF16 => num::bf16_to_f32(v as u16),
        _ => f32::from_bits(v as u32),
    }
}

/// The value of any float as f64.
#[inline(always)]
pub fn to_f64(f: Fmt, v: u64) -> f64 {
    if f == Fmt::F64 { f64::from_bits(v) } else { f64::from(to_f32(f, v)) }
}

/// A double rounded to a format.
pub fn from_f64(f: Fmt, v: f64, r: Round) -> u64 {
    match f {
        Fmt::F64 => v.to_bits(),
        Fmt::F32 => u64::from(num::f64_to_f32(v, r).to_bits()),
        Fmt::F16 => u64::from(num::round_to(v, num::F16, r, false)),
        Fmt::BF16 => u64::from(num::round_to(v, num::BF16, r, false)),
    }
}

/// A float comparison.
#[inline(always)]
pub fn fcmp(op: FloatCmp, a: f64, b: f64) -> bool {
    let is = if a < b {
        1
    } else if a == b {
        2
    } else if a > b {
        4
    } else {
        8
    };
    op.0 & is != 0
}

fn float64(op: FloatOp, a: f64, b: f64) -> f64 {
    match op {
        FloatOp::Add => a + b,
        FloatOp::Sub => a - b,
        FloatOp::Mul => a * b,
        FloatOp::Div => a / b,
        FloatOp::Rem => a % b,
        FloatOp::Min => min_max(a, b, false),
        FloatOp::Max => min_max(a, b, true),
        FloatOp::Minimum if a.is_nan() || b.is_nan() => f64::NAN,
        FloatOp::Maximum if a.is_nan() || b.is_nan() => f64::NAN,
        FloatOp::Minimum => min_max(a, b, false),
        FloatOp::Maximum => min_max(a, b, true),
        FloatOp::CopySign => a.copysign(b),
        FloatOp::Pow => a.powf(b),
        FloatOp::LdExp | FloatOp::TwoByPi => a,
    }
}

fn min_max(a: f64, b: f64, max: bool) -> f64 {
    if a.is_nan() {
        return b;
    }
    if b.is_nan() {
        return a;
    }
    let a_first = a < b || (a == b && a.is_sign_negative());
    if a_first != max { a } else { b }
}

/// The bits of 2/π behind its binary point.
const TWO_BY_PI: [u64; 19] = [
    0xa2f9_836e_4e44_1529,
    0xfc27_57d1_f534_ddc0,
    0xdb62_9599_3c43_9041,
    0xfe51_63ab_debb_c561,
    0xb724_6e3a_424d_d2e0,
    0x0649_2eea_09d1_921c,
    0xfe1d_eb1c_b129_a73e,
    0xe882_35f5_2ebb_4484,
    0xe99c_7026_b45f_7e41,
    0x3991_d639_8353_39f4,
    0x9c84_5f8b_bdf9_283b,
    0x1ff8_97ff_de05_980f,
    0xef2f_118b_5a0a_6d1f,
    0x6d36_7ecf_27cb_09b7,
    0x4f46_3f66_9e5f_ea2d,
    0x7527_bac7_ebe5_f17b,
    0x3d07_39f7_8a52_92ea,
    0x6bfb_5fb1_1f8d_5d08,
    0x5603_3046_fc7b_6bab,
];

/// `v_trig_preop_f64`: a segment of 53 bits of 2/π as a number, by which an angle is multiplied to find its
/// quadrant. What is more than a whole turn for an angle of that exponent is left out; segments of greatest angles
/// are larger by 2¹²⁸, as the angles are made smaller (RDNA3 ISA, V_TRIG_PREOP_F64).
fn two_by_pi(angle: u64, segment: u64) -> f64 {
    let exponent = (angle >> 52 & 0x7ff) as i32;
    let shift = (segment & 31) as i32 * 53 + (exponent - 1077).max(0);
    let (word, bit) = (shift as usize / 64, shift as u32 % 64);
    let at = |i: usize| u128::from(TWO_BY_PI.get(i).copied().unwrap_or(0));
    let both = at(word) << 64 | at(word + 1);
    let top = (both << bit >> 75) as u64;
    let scale = if exponent >= 1968 { 128 } else { 0 } - 53 - shift;
    // Two steps: a power alone may be smaller than numbers are.
    top as f64 * 2f64.powi(scale / 2) * 2f64.powi(scale - scale / 2)
}

/// A two-operand float operation.
pub fn float(op: FloatOp, f: Fmt, round: Round, ftz: bool, a: u64, b: u64) -> u64 {
    if op == FloatOp::LdExp {
        let n = sext(b, 32).clamp(-4000, 4000) as i32;
        return from_f64(f, to_f64(f, a) * 2f64.powi(n / 2) * 2f64.powi(n - n / 2), round);
    }
    if op == FloatOp::TwoByPi {
        return two_by_pi(a, b).to_bits();
    }
    if f == Fmt::F64 {
        let (x, y) = (f64::from_bits(a), f64::from_bits(b));
        let r = match op {
            FloatOp::Add => double::add(x, y, round),
            FloatOp::Sub => double::add(x, -y, round),
            FloatOp::Mul => double::mul(x, y, round),
            FloatOp::Div => double::div(x, y, round),
            _ => float64(op, x, y),
        };
        return r.to_bits();
    }
    let (mut x, mut y) = (to_f32(f, a), to_f32(f, b));
    if ftz && f == Fmt::F32 {
        (x, y) = (num::flush(x), num::flush(y));
    }
    let quick = round == Round::Nearest;
    let r = match op {
        FloatOp::Add if quick => x + y,
        FloatOp::Sub if quick => x - y,
        FloatOp::Mul if quick => x * y,
        FloatOp::Div if quick => x / y,
        FloatOp::Rem => x % y,
        FloatOp::Pow => f64::from(x).powf(f64::from(y)) as f32,
        // Rounding twice in the same direction is rounding once.
        FloatOp::Add => num::f64_to_f32(double::add(f64::from(x), f64::from(y), round), round),
        FloatOp::Sub => num::f64_to_f32(double::add(f64::from(x), -f64::from(y), round), round),
        FloatOp::Mul => num::f64_to_f32(f64::from(x) * f64::from(y), round),
        FloatOp::Div => num::f64_to_f32(f64::from(x) / f64::from(y), round),
        _ => float64(op, f64::from(x), f64::from(y)) as f32,
    };
    narrow(f, if ftz && f == Fmt::F32 { num::flush(r) } else { r })
}

/// An f32 result rounded to the format of the operation.
#[inline(always)]
pub fn narrow(f: Fmt, r: f32) -> u64 {
    match f {
        Fmt::F16 => u64::from(num::f32_to_f16(r)),
        Fmt::BF16 => u64::from(num::f32_to_bf16(r)),
        _ => u64::from(r.to_bits()),
    }
}

/// A fused multiply-add.
#[inline(always)]
pub fn fma(f: Fmt, round: Round, ftz: bool, relu: bool, a: u64, b: u64, c: u64) -> u64 {
    let out = match f {
        Fmt::F64 => double::fma(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c), round).to_bits(),
        Fmt::F32 => {
            let (mut x, mut y, mut z) =
                (f32::from_bits(a as u32), f32::from_bits(b as u32), f32::from_bits(c as u32));
            if ftz {
                (x, y, z) = (num::flush(x), num::flush(y), num::flush(z));
            }
            let (x, y, z) = (f64::from(x), f64::from(y), f64::from(z));
            let exact = match round {
                Round::Nearest => num::fma_to_odd(x, y, z),
                _ => double::fma(x, y, z, round),
            };
            let r = num::f64_to_f32(exact, round);
            u64::from(if ftz { num::flush(r) } else { r }.to_bits())
        }
        _ => {
            let exact = num::fma_to_odd(to_f64(f, a), to_f64(f, b), to_f64(f, c));
            from_f64(f, exact, round)
        }
    };
    if relu && to_f64(f, out) < 0.0 { 0 } else { out }
}

/// A number as a mantissa of at least one half and less than one, times a power of two; what has none as itself.
fn frexp(x: f64) -> (f64, i32) {
    if x == 0.0 || !x.is_finite() {
        return (x, 0);
    }
    // Subnormals are made normal first.
    let (x, below) = if x.abs() < f64::MIN_POSITIVE { (x * 2f64.powi(64), 64) } else { (x, 0) };
    let exponent = (x.to_bits() >> 52 & 0x7ff) as i32 - 1022;
    (f64::from_bits(x.to_bits() & !(0x7ff << 52) | 1022 << 52), exponent - below)
}

/// A one-operand float operation.
pub fn float_un(op: FloatUn, f: Fmt, round: Round, ftz: bool, a: u64) -> u64 {
    let sign = 1u64 << (f.bits() - 1);
    match op {
        FloatUn::Neg => return a ^ sign,
        FloatUn::Abs if !ftz => return a & !sign,
        _ => {}
    }
    let mut x = to_f64(f, a);
    if ftz && f == Fmt::F64 {
        return coarse(op, x).to_bits();
    }
    if ftz && f == Fmt::F32 {
        x = f64::from(num::flush(x as f32));
    }
    let r = match op {
        FloatUn::Sqrt if f == Fmt::F64 => double::sqrt(x, round),
        FloatUn::Rcp if f == Fmt::F64 => double::div(1.0, x, round),
        FloatUn::Neg => -x,
        FloatUn::Abs => x.abs(),
        FloatUn::Sqrt => x.sqrt(),
        FloatUn::Rsqrt => 1.0 / x.sqrt(),
        FloatUn::Rcp => 1.0 / x,
        FloatUn::Exp2 => x.exp2(),
        FloatUn::Exp => x.exp(),
        FloatUn::Log2 => x.log2(),
        FloatUn::Log => x.ln(),
        FloatUn::Log10 => x.log10(),
        FloatUn::Sin => x.sin(),
        FloatUn::Cos => x.cos(),
        FloatUn::Tanh => x.tanh(),
        FloatUn::Floor => x.floor(),
        FloatUn::Ceil => x.ceil(),
        FloatUn::Trunc => x.trunc(),
        FloatUn::Rint => x.round_ties_even(),
        FloatUn::Round => x.round(),
        FloatUn::Fract => x - x.floor(),
        FloatUn::SinRev => (x * std::f64::consts::TAU).sin(),
        FloatUn::CosRev => (x * std::f64::consts::TAU).cos(),
        FloatUn::Canonical => x,
        FloatUn::FrexpMant => frexp(x).0,
        FloatUn::FrexpExp => f64::from(frexp(x).1),
    };
    let out = from_f64(f, r, round);
    if ftz && f == Fmt::F32 { u64::from(num::flush(f32::from_bits(out as u32)).to_bits()) } else { out }
}

/// `rcp.approx.ftz.f64` and `rsqrt.approx.ftz.f64`: the low words of operand and result are zero, subnormals are
/// flushed (PTX ISA).
fn coarse(op: FloatUn, x: f64) -> f64 {
    let high = |v: f64| {
        let v = if v.abs() < f64::MIN_POSITIVE { 0f64.copysign(v) } else { v };
        f64::from_bits(v.to_bits() & !0xffff_ffff)
    };
    if x.is_nan() {
        return f64::NAN;
    }
    let x = high(x);
    high(if op == FloatUn::Rcp { 1.0 / x } else { 1.0 / x.sqrt() })
}
