//! Conversions and classes.

use super::{from_f64, low, sext, to_f64};
use crate::bytecode::*;
use crate::double;
use crate::num::{self, Round};

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
            // PTX ISA, "cvt": singles are flushed, as source and as result.
            if ftz && from == Fmt::F32 {
                x = f64::from(num::flush(x as f32));
            }
            if relu && (x < 0.0) {
                x = 0.0;
            }
            match to {
                Fmt::F16 => u64::from(num::round_to(x, num::F16, round, saturate)),
                Fmt::BF16 => u64::from(num::round_to(x, num::BF16, round, saturate)),
                Fmt::F32 if ftz => {
                    let single = f32::from_bits(from_f64(to, x, round) as u32);
                    u64::from(num::flush(single).to_bits())
                }
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
