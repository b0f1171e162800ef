//! Scalar arithmetic, one lane at a time.
//!
//! f16 and bf16 operations are done in f32 and rounded once; for +, −, ×, ÷ and √ this is the correctly
//! rounded result, since f32 has more than twice the precision. Fused multiply-adds round once (see
//! [`crate::num::add_to_odd`]). The approximate functions of the hardware (`ex2.approx`, `rcp.approx`, …) are
//! evaluated in f64 and rounded to f32: never worse than the hardware's bound, and not bit-equal to it.

mod convert;
mod float;

use crate::bytecode::*;
use crate::num::Round;

pub use convert::*;
pub use float::*;

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
