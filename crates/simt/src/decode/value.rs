//! Packing, splitting and converting of values.

use super::inst::{fmt, width};
use super::{Decoder, What};
use crate::bytecode::*;
use crate::ir::{Ty, Vendor};
use crate::mem::{LOCAL_WINDOW, SHARED_WINDOW};
use crate::num::Round;

impl Decoder<'_> {
    /// Scalars of a vector joined into one word, the first in the low bits.
    pub(crate) fn pack(&mut self, ty: &Ty, v: &[Src]) -> Src {
        let w = ty.element().bits();
        self.join(v, w)
    }

    /// Words of `w` bits joined into one.
    pub(crate) fn join(&mut self, v: &[Src], w: u32) -> Src {
        let mut out = v[0];
        for (i, s) in v.iter().enumerate().skip(1) {
            let (a, b, shift) = (out, *s, (i as u32 * w) as u8);
            out = self.value(|d| Op::Join { d, a, b, shift });
        }
        out
    }

    /// The scalars of a vector out of one word.
    pub(crate) fn unpack(&mut self, ty: &Ty, s: Src) -> Vec<Src> {
        let w = ty.element().bits();
        let n = ty.scalars().len() as u32;
        self.split(s, w, n)
    }

    /// `n` words of `w` bits out of one.
    pub(crate) fn split(&mut self, s: Src, w: u32, n: u32) -> Vec<Src> {
        (0..n)
            .map(|i| {
                if let Some(v) = self.known(s) {
                    let bits = if w == 64 { v } else { v >> (i * w) & ((1 << w) - 1) };
                    return self.constant(bits);
                }
                self.value(|d| Op::Bits { d, a: s, shift: (i * w) as u8, width: w as u8 })
            })
            .collect()
    }

    /// The same bits seen as scalars of another width.
    pub(crate) fn bitcast(&mut self, from: u32, to: u32, v: &[Src]) -> What<Vec<Src>> {
        if from == to {
            return Ok(v.to_vec());
        }
        if from > 64 || to > 64 {
            return Err(format!("a bitcast between elements of {from} and {to} bits"));
        }
        if to > from && to.is_multiple_of(from) {
            return Ok(v.chunks((to / from) as usize).map(|c| self.join(c, from)).collect());
        }
        if from > to && from.is_multiple_of(to) {
            let mut out = Vec::new();
            for s in v {
                out.extend(self.split(*s, to, from / to));
            }
            return Ok(out);
        }
        let total = from * v.len() as u32;
        if total <= 64 {
            let word = self.join(v, from);
            return Ok(self.split(word, to, total / to));
        }
        Err(format!("a bitcast between elements of {from} and {to} bits"))
    }

    pub(super) fn cast(&mut self, name: &str, from: &Ty, to: &Ty, v: &[Src]) -> What<Vec<Src>> {
        let (fe, te) = (from.element().clone(), to.element().clone());
        if let (Ty::Int(128), "trunc") = (&fe, name) {
            let w = width(&te)?;
            return Ok(vec![if w == 64 {
                v[0]
            } else {
                self.value(|d| Op::Cvt { cvt: Cvt::Zext(w), d, a: v[0] })
            }]);
        }
        if let (Ty::Int(128), "zext" | "sext") = (&te, name) {
            let w = width(&fe)?;
            if name == "zext" {
                return Ok(vec![v[0], self.constant(0)]);
            }
            let low = self.value(|d| Op::Cvt { cvt: Cvt::Sext(w, 64), d, a: v[0] });
            let n = self.constant(63);
            return Ok(vec![low, self.int_op(IntOp::AShr, 64, low, n)]);
        }
        // A 128-bit integer is two words already.
        let words = |t: &Ty| if *t == Ty::Int(128) { 64 } else { t.bits() };
        if name == "bitcast" {
            return self.bitcast(words(&fe), words(&te), v);
        }
        let one = |d: &mut Self, cvt: Cvt| {
            Ok(v.iter().map(|a| d.value(|r| Op::Cvt { cvt, d: r, a: *a })).collect())
        };
        match name {
            "trunc" => one(self, Cvt::Zext(width(&te)?)),
            "zext" => {
                width(&te)?;
                Ok(v.to_vec())
            }
            "sext" => one(self, Cvt::Sext(width(&fe)?, width(&te)?)),
            "ptrtoint" | "inttoptr" if te.bits() < fe.bits() => one(self, Cvt::Zext(width(&te)?)),
            "ptrtoint" | "inttoptr" => Ok(v.to_vec()),
            "addrspacecast" => {
                let (Ty::Ptr(a, _), Ty::Ptr(b, _)) = (&fe, &te) else {
                    return Err("an addrspacecast".into());
                };
                let window = |s: Space| match s {
                    Space::Shared => SHARED_WINDOW,
                    Space::Local => LOCAL_WINDOW,
                    _ => 0,
                };
                let (a, b) = (self.space(*a), self.space(*b));
                let local32 = |s: Space, t: &Ty| s == Space::Shared || (s == Space::Local && t.bits() == 32);
                match (local32(a, &fe), local32(b, &te)) {
                    (true, false) => {
                        let base = self.constant(window(a));
                        Ok(v.iter().map(|s| self.int_op(IntOp::Add, 64, *s, base)).collect())
                    }
                    (false, true) => one(self, Cvt::Zext(32)),
                    _ => Ok(v.to_vec()),
                }
            }
            "fptrunc" | "fpext" => {
                let (from, to) = (fmt(&fe)?, fmt(&te)?);
                one(
                    self,
                    Cvt::Float { from, to, round: Round::Nearest, saturate: false, relu: false, ftz: false },
                )
            }
            "fptoui" | "fptosi" => {
                let (from, width, signed) = (fmt(&fe)?, width(&te)?, name == "fptosi");
                let top = self.gpu.vendor == Vendor::Nvidia && (from == Fmt::F64 || width == 64);
                one(self, Cvt::FloatToInt { from, width, signed, round: Round::Zero, top })
            }
            _ => {
                let cvt = Cvt::IntToFloat {
                    width: width(&fe)?,
                    signed: name == "sitofp",
                    to: fmt(&te)?,
                    round: Round::Nearest,
                };
                one(self, cvt)
            }
        }
    }
}
