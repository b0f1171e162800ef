//! Scalar arithmetic, one lane at a time.
//!
//! f16 and bf16 operations are done in f32 and rounded once; for +, −, ×, ÷ and √ this is the correctly
//! rounded result, since f32 has more than twice the precision. Fused multiply-adds round once (see
//! [`num::add_to_odd`]). The approximate functions of the hardware (`ex2.approx`, `rcp.approx`, …) are
//! evaluated in f64 and rounded to f32: never worse than the hardware's bound, and not bit-equal to it.

use crate::bytecode::*;
use crate::double;
use crate::num::{self, Round};

/// The low `w` bits.
#[inline(always)]
pub fn low(v: u64, w: u8) -> u64 {
    if w >= 64 { v } else { v & ((1 << w) - 1) }
}

/// Sign-extends from `w` bits.
#[inline(always)]
pub fn sext(v: u64, w: u8) -> i64 {
    let s = 64 - u32::from(w.min(64));
    ((v << s) as i64) >> s
}

/// A two-operand integer operation; operands are zero-extended, the result need not be.
pub fn int(op: IntOp, w: u8, a: u64, b: u64) -> u64 {
    let (sa, sb) = (sext(a, w), sext(b, w));
    let wide = u32::from(w);
    let min = -(1i128 << (wide - 1));
    let max = (1i128 << (wide - 1)) - 1;
    let umax = low(u64::MAX, w);
    let clamp = |v: i128| v.clamp(min, max) as u64;
    let signed_overflow = |v: i128| u64::from(v < min || v > max);
    match op {
        IntOp::Add => a.wrapping_add(b),
        IntOp::Sub => a.wrapping_sub(b),
        IntOp::Mul => a.wrapping_mul(b),
        IntOp::MulHiU => ((u128::from(a) * u128::from(b)) >> wide) as u64,
        IntOp::MulHiS => ((i128::from(sa) * i128::from(sb)) >> wide) as u64,
        // Division by zero is undefined in LLVM; the hardware gives all ones and the dividend.
        IntOp::UDiv => a.checked_div(b).unwrap_or(u64::MAX),
        IntOp::URem => a.checked_rem(b).unwrap_or(a),
        IntOp::SDiv => {
            if sb == 0 {
                u64::MAX
            } else {
                sa.wrapping_div(sb) as u64
            }
        }
        IntOp::SRem => {
            if sb == 0 {
                a
            } else {
                sa.wrapping_rem(sb) as u64
            }
        }
        // Shifts by the width or more give zero or the sign, as in PTX.
        IntOp::Shl => {
            if b >= u64::from(w) {
                0
            } else {
                a << b
            }
        }
        IntOp::LShr => {
            if b >= u64::from(w) {
                0
            } else {
                a >> b
            }
        }
        IntOp::AShr => (sa >> b.min(63)) as u64,
        IntOp::And => a & b,
        IntOp::Or => a | b,
        IntOp::Xor => a ^ b,
        IntOp::SMin => sa.min(sb) as u64,
        IntOp::SMax => sa.max(sb) as u64,
        IntOp::UMin => a.min(b),
        IntOp::UMax => a.max(b),
        IntOp::USubSat => a.saturating_sub(b),
        IntOp::UAddSat => (u128::from(a) + u128::from(b)).min(u128::from(umax)) as u64,
        IntOp::SAddSat => clamp(i128::from(sa) + i128::from(sb)),
        IntOp::SSubSat => clamp(i128::from(sa) - i128::from(sb)),
        IntOp::SAddOvf => signed_overflow(i128::from(sa) + i128::from(sb)),
        IntOp::SSubOvf => signed_overflow(i128::from(sa) - i128::from(sb)),
        IntOp::SMulOvf => signed_overflow(i128::from(sa) * i128::from(sb)),
        IntOp::UAddOvf => u64::from(u128::from(a) + u128::from(b) > u128::from(umax)),
        IntOp::USubOvf => u64::from(a < b),
        IntOp::UMulOvf => u64::from(u128::from(a) * u128::from(b) > u128::from(umax)),
    }
}

/// A one-operand integer operation.
pub fn int_un(op: IntUn, w: u8, a: u64) -> u64 {
    let shift = 64 - u32::from(w);
    match op {
        IntUn::Not => !a,
        IntUn::Neg => a.wrapping_neg(),
        IntUn::Abs => sext(a, w).unsigned_abs(),
        IntUn::Popc => u64::from(a.count_ones()),
        IntUn::FindU | IntUn::FindS => {
            let a = if matches!(op, IntUn::FindS) && sext(a, w) < 0 { low(!a, w) } else { a };
            a.checked_ilog2().map_or(u64::MAX, u64::from)
        }
        IntUn::Clz => u64::from(a.leading_zeros() - shift),
        IntUn::Ctz => u64::from(a.trailing_zeros().min(u32::from(w))),
        IntUn::BitReverse => a.reverse_bits() >> shift,
        IntUn::ByteSwap => a.swap_bytes() >> shift,
    }
}

/// A three-operand integer operation.
pub fn int_tern(op: IntTern, w: u8, a: u64, b: u64, c: u64) -> u64 {
    let bits = u64::from(w);
    match op {
        IntTern::MadLo => a.wrapping_mul(b).wrapping_add(c),
        IntTern::MadHiU => int(IntOp::MulHiU, w, a, b).wrapping_add(c),
        IntTern::MadHiS => int(IntOp::MulHiS, w, a, b).wrapping_add(c),
        IntTern::Fshl => {
            let n = c % bits;
            if n == 0 { a } else { a << n | b >> (bits - n) }
        }
        IntTern::Fshr => {
            let n = c % bits;
            if n == 0 { b } else { b >> n | a << (bits - n) }
        }
        IntTern::Prmt => {
            let bytes = (b << 32 | a).to_le_bytes();
            (0..4).fold(0, |r, i| {
                let s = c >> (4 * i);
                let byte = bytes[(s & 7) as usize];
                let byte = if s & 8 != 0 { ((byte as i8) >> 7) as u8 } else { byte };
                r | u64::from(byte) << (8 * i)
            })
        }
        IntTern::AmdPerm => {
            let bytes = (a << 32 | b).to_le_bytes();
            (0..4).fold(0, |r, i| {
                let s = (c >> (8 * i)) as u8;
                let byte = match s {
                    0..=7 => bytes[s as usize],
                    // 8 to 11 replicate the sign of bytes 1, 3, 5, 7.
                    8..=11 => ((bytes[(s as usize - 8) * 2 + 1] as i8) >> 7) as u8,
                    12 => 0,
                    _ => 0xff,
                };
                r | u64::from(byte) << (8 * i)
            })
        }
        IntTern::Lop3(t) => (0..8).filter(|i| t >> i & 1 != 0).fold(0, |r, i: u8| {
            let pick = |v: u64, bit: u8| if i & bit != 0 { v } else { !v };
            r | (pick(a, 4) & pick(b, 2) & pick(c, 1))
        }),
        IntTern::BfeU | IntTern::BfeS => {
            let (pos, len) = (b & 0xff, c & 0xff);
            let v = if pos >= bits { 0 } else { low(a, w) >> pos };
            let signed = matches!(op, IntTern::BfeS);
            let fill = signed && sext(a, w) < 0;
            if len == 0 {
                return 0;
            }
            let len = len.min(bits) as u8;
            // Bits beyond the top are copies of the sign for the signed form.
            let v = if fill && pos < bits {
                v | (u64::MAX << (bits - pos).min(63))
            } else if fill {
                u64::MAX
            } else {
                v
            };
            if signed { sext(low(v, len), len) as u64 } else { low(v, len) }
        }
        IntTern::AddCarry => {
            u64::from(u128::from(a) + u128::from(b) + u128::from(c) > u128::from(low(u64::MAX, w)))
        }
        IntTern::SubBorrow => u64::from(u128::from(a) < u128::from(b) + u128::from(c)),
        IntTern::SadU => a.abs_diff(b).wrapping_add(c),
        IntTern::SadS => sext(a, w).abs_diff(sext(b, w)).wrapping_add(c),
        IntTern::Med3S => {
            let (x, y, z) = (sext(a, w), sext(b, w), sext(c, w));
            x.min(y).max(x.max(y).min(z)) as u64
        }
        IntTern::Med3U => a.min(b).max(a.max(b).min(c)),
        IntTern::Dp4aS => (0..4).fold(c, |r, i| {
            let (x, y) = (sext(a >> (8 * i) & 0xff, 8), sext(b >> (8 * i) & 0xff, 8));
            r.wrapping_add((x * y) as u64)
        }),
        IntTern::Dp4aU => {
            (0..4).fold(c, |r, i| r.wrapping_add((a >> (8 * i) & 0xff) * (b >> (8 * i) & 0xff)))
        }
        IntTern::ShlAdd => (a << (c & 31)).wrapping_add(b),
        IntTern::BitSelect => (a & c) | (b & !c),
    }
}

/// An integer comparison.
#[inline(always)]
pub fn icmp(op: Cmp, w: u8, a: u64, b: u64) -> bool {
    match op {
        Cmp::Eq => a == b,
        Cmp::Ne => a != b,
        Cmp::ULt => a < b,
        Cmp::ULe => a <= b,
        Cmp::UGt => a > b,
        Cmp::UGe => a >= b,
        Cmp::SLt => sext(a, w) < sext(b, w),
        Cmp::SLe => sext(a, w) <= sext(b, w),
        Cmp::SGt => sext(a, w) > sext(b, w),
        Cmp::SGe => sext(a, w) >= sext(b, w),
    }
}

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
        FloatOp::LdExp => a,
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

/// A two-operand float operation.
pub fn float(op: FloatOp, f: Fmt, round: Round, ftz: bool, a: u64, b: u64) -> u64 {
    if op == FloatOp::LdExp {
        let n = sext(b, 32).clamp(-4000, 4000) as i32;
        return from_f64(f, to_f64(f, a) * 2f64.powi(n / 2) * 2f64.powi(n - n / 2), round);
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
        FloatUn::FrexpMant => {
            if x == 0.0 || !x.is_finite() {
                x
            } else {
                let e = x.abs().log2().floor() as i32 + 1;
                x * 2f64.powi(-e)
            }
        }
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

fn round_integral(v: f64, r: Round) -> f64 {
    match r {
        Round::Nearest => v.round_ties_even(),
        Round::NearestAway => v.round(),
        Round::Zero => v.trunc(),
        Round::Down => v.floor(),
        Round::Up => v.ceil(),
    }
}

/// A conversion.
pub fn convert(c: Cvt, v: u64) -> u64 {
    match c {
        Cvt::Zext(w) => low(v, w),
        Cvt::Sext(from, to) => low(sext(v, from) as u64, to),
        Cvt::FloatToInt { from, width, signed, round, top } => {
            let x = round_integral(to_f64(from, v), round);
            if top && x.is_nan() {
                return 1 << (width - 1);
            }
            // Rust's casts saturate and give zero for NaN, as the hardware's do.
            let w = u32::from(width);
            if signed {
                let max = (1i128 << (w - 1)) - 1;
                low((x as i128).clamp(-max - 1, max) as u64, width)
            } else {
                (x as i128).clamp(0, (1i128 << w) - 1) as u64
            }
        }
        Cvt::IntToFloat { width, signed, to, round } => {
            let i = if signed { i128::from(sext(v, width)) } else { i128::from(v) };
            match (to, round) {
                (Fmt::F64, _) => double::from_int(i, round).to_bits(),
                (Fmt::F32, Round::Nearest) => u64::from((i as f32).to_bits()),
                _ => {
                    // Beyond 53 bits the low ones only matter as "not zero".
                    let exact = i as f64;
                    let rest = i - exact as i128;
                    let odd = if rest == 0 { exact } else { num::add_to_odd(exact, rest as f64) };
                    from_f64(to, odd, round)
                }
            }
        }
        Cvt::Float { from, to, round, saturate, relu, ftz } => {
            if from == Fmt::F32 && round == Round::Nearest && !saturate && !relu && !ftz {
                let x = f32::from_bits(v as u32);
                return match to {
                    Fmt::F16 => u64::from(num::f32_to_f16(x)),
                    Fmt::BF16 => u64::from(num::f32_to_bf16(x)),
                    Fmt::F32 => v,
                    Fmt::F64 => f64::from(x).to_bits(),
                };
            }
            let mut x = to_f64(from, v);
            if ftz {
                x = f64::from(num::flush(x as f32));
            }
            if relu && (x < 0.0) {
                x = 0.0;
            }
            match to {
                Fmt::F16 => u64::from(num::round_to(x, num::F16, round, saturate)),
                Fmt::BF16 => u64::from(num::round_to(x, num::BF16, round, saturate)),
                _ => from_f64(to, x, round),
            }
        }
        Cvt::ToCode { from, to, round, saturate, relu } => {
            let x = to_f64(from, v);
            u64::from(num::round_to(if relu && x < 0.0 { 0.0 } else { x }, to, round, saturate))
        }
        Cvt::FromCode { from, to } => from_f64(to, num::value_of(v as u32, from), Round::Nearest),
        Cvt::ToTf32 { round } => {
            let x = f32::from_bits(v as u32);
            if x.is_nan() {
                return 0x7fff_ffff;
            }
            u64::from(num::round_to(f64::from(x), num::TF32, round, false)) << 13
        }
    }
}

/// Which of LLVM's `is.fpclass` classes a value belongs to, as a bit.
pub fn class(f: Fmt, v: u64) -> u16 {
    let x = to_f64(f, v);
    let man = match f {
        Fmt::F16 => 10,
        Fmt::BF16 => 7,
        Fmt::F32 => 23,
        Fmt::F64 => 52,
    };
    let tiny = low(v, f.bits() as u8 - 1) < 1 << man;
    match (x.is_nan(), x.is_infinite(), x == 0.0, tiny, x.is_sign_negative()) {
        (true, ..) => {
            if v >> (man - 1) & 1 == 0 {
                1
            } else {
                2
            }
        }
        (_, true, _, _, n) => {
            if n {
                4
            } else {
                512
            }
        }
        (_, _, true, _, n) => {
            if n {
                32
            } else {
                64
            }
        }
        (_, _, _, true, n) => {
            if n {
                16
            } else {
                128
            }
        }
        (.., n) => {
            if n {
                8
            } else {
                256
            }
        }
    }
}

/// The new value of an atomic operation's word.
pub fn atomic(op: AtomOp, bytes: u8, old: u64, v: u64, cmp: u64) -> u64 {
    let w = bytes * 8;
    let int = |o| low(int(o, w, old, v), w);
    let fl = |o, f| float(o, f, Round::Nearest, false, old, v);
    let pair = |o, f| {
        let half = |s: u32| float(o, f, Round::Nearest, false, old >> s & 0xffff, v >> s & 0xffff);
        half(0) | half(16) << 16
    };
    match op {
        AtomOp::Exch => v,
        AtomOp::Cas => {
            if old == cmp {
                v
            } else {
                old
            }
        }
        AtomOp::Add => int(IntOp::Add),
        AtomOp::Sub => int(IntOp::Sub),
        AtomOp::And => old & v,
        AtomOp::Or => old | v,
        AtomOp::Xor => old ^ v,
        AtomOp::SMin => int(IntOp::SMin),
        AtomOp::SMax => int(IntOp::SMax),
        AtomOp::UMin => old.min(v),
        AtomOp::UMax => old.max(v),
        AtomOp::FAdd(f) => fl(FloatOp::Add, f),
        AtomOp::FMin(f) => fl(FloatOp::Min, f),
        AtomOp::FMax(f) => fl(FloatOp::Max, f),
        AtomOp::FAdd2(f) => pair(FloatOp::Add, f),
        AtomOp::FMin2(f) => pair(FloatOp::Min, f),
        AtomOp::FMax2(f) => pair(FloatOp::Max, f),
        AtomOp::Inc => {
            if old >= v {
                0
            } else {
                old + 1
            }
        }
        AtomOp::Dec => {
            if old == 0 || old > v {
                v
            } else {
                old - 1
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn funnel_permute_and_lookup() {
        assert_eq!(low(int_tern(IntTern::Fshl, 32, 0x8000_0001, 0xc000_0000, 1), 32), 3);
        assert_eq!(int_tern(IntTern::Prmt, 32, 0x3322_1100, 0x7766_5544, 0x5140), 0x5511_4400);
        assert_eq!(int_tern(IntTern::Prmt, 32, 0x80, 0, 0x8888), 0xffff_ffff);
        assert_eq!(low(int_tern(IntTern::Lop3(0x96), 32, 0xf0, 0xcc, 0xaa), 32), 0x96);
        assert_eq!(int_tern(IntTern::AmdPerm, 32, 0x7766_5544, 0x3322_1100, 0x0c07_0400), 0x0077_4400);
        assert_eq!(low(int_tern(IntTern::BfeS, 32, 0x8000_0000, 28, 8), 32), 0xffff_fff8);
        assert_eq!(int_tern(IntTern::BfeU, 32, 0x1234_5678, 8, 8), 0x56);
    }

    #[test]
    fn shifts_and_divisions_at_the_edge() {
        assert_eq!(int(IntOp::Shl, 32, 1, 32), 0);
        assert_eq!(low(int(IntOp::AShr, 32, 0x8000_0000, 40), 32), 0xffff_ffff);
        assert_eq!(low(int(IntOp::SDiv, 32, 0x8000_0000, 0xffff_ffff), 32), 0x8000_0000);
        assert_eq!(int(IntOp::SMulOvf, 32, 0x8000_0000, 0xffff_ffff), 1);
        assert_eq!(int(IntOp::USubSat, 16, 3, 5), 0);
    }

    #[test]
    fn rounding_of_sums_and_products() {
        let one = u64::from(1f32.to_bits());
        let tiny = u64::from(2f32.powi(-30).to_bits());
        assert_eq!(float(FloatOp::Add, Fmt::F32, Round::Up, false, one, tiny), one + 1);
        assert_eq!(float(FloatOp::Add, Fmt::F32, Round::Zero, false, one, tiny), one);
        // 1 + 2^-24 + 2^-60: a double would lose the last term before the tie is decided.
        let a = u64::from(2f32.powi(-30).to_bits());
        let c = u64::from((1.0f32 + 2f32.powi(-23)).to_bits());
        assert_eq!(fma(Fmt::F32, Round::Nearest, false, false, a, a, c), c);
        assert_eq!(fma(Fmt::F32, Round::Up, false, false, a, a, c), c + 1);
    }

    #[test]
    fn conversions_saturate() {
        let to_int =
            |width, signed| Cvt::FloatToInt { from: Fmt::F32, width, signed, round: Round::Zero, top: false };
        assert_eq!(convert(to_int(32, true), u64::from((-3e9f32).to_bits())), 0x8000_0000);
        assert_eq!(convert(to_int(8, false), u64::from(300f32.to_bits())), 255);
        assert_eq!(convert(to_int(32, true), u64::from(f32::NAN.to_bits())), 0);
        assert_eq!(convert(Cvt::ToTf32 { round: Round::NearestAway }, 0x3f80_1000), 0x3f80_2000);
    }

    #[test]
    fn minimum_orders_zeros_and_skips_nans() {
        let bits = |v: f32| u64::from(v.to_bits());
        let f = |op, a: f32, b: f32| {
            f32::from_bits(float(op, Fmt::F32, Round::Nearest, false, bits(a), bits(b)) as u32)
        };
        assert!(f(FloatOp::Min, 0.0, -0.0).is_sign_negative());
        assert_eq!(f(FloatOp::Max, f32::NAN, 1.0), 1.0);
        assert!(f(FloatOp::Maximum, f32::NAN, 1.0).is_nan());
    }
}
