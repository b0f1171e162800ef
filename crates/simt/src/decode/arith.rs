//! Arithmetic instructions of inline PTX.

use super::asm::{Line, Vars, bits_of, float_of};
use super::{Decoder, What};
use crate::bytecode::*;
use crate::num::{self, Round};
use crate::ptx::Operand;

/// The carry flag among the variables of a piece of assembly; no register of its own can have this name.
const CARRY: &str = "cc flag";

/// Instructions of two integers.
fn int_op(name: &str, signed: bool) -> Option<IntOp> {
    Some(match (name, signed) {
        ("div", true) => IntOp::SDiv,
        ("div", false) => IntOp::UDiv,
        ("rem", true) => IntOp::SRem,
        ("rem", false) => IntOp::URem,
        ("min", true) => IntOp::SMin,
        ("min", false) => IntOp::UMin,
        ("max", true) => IntOp::SMax,
        ("max", false) => IntOp::UMax,
        ("and", _) => IntOp::And,
        ("or", _) => IntOp::Or,
        ("xor", _) => IntOp::Xor,
        _ => return None,
    })
}

/// Instructions of one integer.
fn int_un(name: &str) -> Option<IntUn> {
    Some(match name {
        "not" => IntUn::Not,
        "neg" => IntUn::Neg,
        "abs" => IntUn::Abs,
        "popc" => IntUn::Popc,
        "clz" => IntUn::Clz,
        "brev" => IntUn::BitReverse,
        _ => return None,
    })
}

impl Decoder<'_> {
    /// The value of an instruction with one result.
    pub(super) fn ptx_value(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let ty = l.ty().to_owned();
        let name = l.op[0].as_str();
        if name == "cvt" {
            return self.ptx_cvt(l, v);
        }
        if name == "set" {
            return self.ptx_set(l, v);
        }
        let operand_ty = match name {
            "shl" | "shr" => "b64",
            _ => ty.as_str(),
        };
        let mut s = Vec::new();
        for (i, o) in l.args.iter().skip(1).enumerate() {
            let t = if i == 0 { ty.as_str() } else { operand_ty };
            let t = match (name, i) {
                ("selp", 2) => "pred",
                ("bfe" | "bfi" | "shf" | "lop3" | "prmt", _) => "b32",
                _ => t,
            };
            s.push(self.src(v, o, t)?);
        }
        if s.is_empty() {
            return l.unknown();
        }
        if matches!(name, "mov" | "cvta" | "mapa") {
            return Ok(s[0]);
        }
        if let Some((f, packed)) = float_of(&ty) {
            return self.ptx_float(l, f, packed, &s);
        }
        let Some(w) = bits_of(&ty) else { return l.unknown() };
        let signed = ty.starts_with('s');
        if l.has("sat") {
            return match (name, signed, w) {
                ("add", true, 32) => Ok(self.int_op(IntOp::SAddSat, 32, s[0], s[1])),
                ("sub", true, 32) => Ok(self.int_op(IntOp::SSubSat, 32, s[0], s[1])),
                _ => l.unknown(),
            };
        }
        let tern_of =
            |d: &mut Self, op, [a, b, c]: [Src; 3]| Ok(d.value(|r| Op::IntTern { op, w, d: r, a, b, c }));
        let tern = |d: &mut Self, op, c| tern_of(d, op, [s[0], s[1], c]);
        let bin = |d: &mut Self, op| Ok(d.int_op(op, w, s[0], s[1]));
        let un = |d: &mut Self, op| Ok(d.value(|r| Op::IntUn { op, w, d: r, a: s[0] }));
        let third = s.get(2).copied();
        match (name, s.len()) {
            ("add" | "addc" | "sub" | "subc", 2) => self.with_carry(l, v, w, s[0], s[1]),
            ("mul", 2) if l.has("hi") => bin(self, if signed { IntOp::MulHiS } else { IntOp::MulHiU }),
            ("mul" | "mad", _) if l.has("wide") => {
                let ext = |d: &mut Self, a| {
                    if signed { d.value(|r| Op::Cvt { cvt: Cvt::Sext(w, 64), d: r, a }) } else { a }
                };
                let (a, b) = (ext(self, s[0]), ext(self, s[1]));
                let p = self.int_op(IntOp::Mul, w * 2, a, b);
                Ok(match third {
                    Some(c) => self.int_op(IntOp::Add, w * 2, p, c),
                    None => p,
                })
            }
            ("mul", 2) => bin(self, IntOp::Mul),
            ("mad" | "madc", 3) if name == "madc" || l.has("cc") => {
                let op = match (l.has("hi"), signed) {
                    (true, true) => IntOp::MulHiS,
                    (true, false) => IntOp::MulHiU,
                    _ => IntOp::Mul,
                };
                let product = self.int_op(op, w, s[0], s[1]);
                self.with_carry(l, v, w, product, s[2])
            }
            ("mad", 3) => {
                let op = match (l.has("hi"), signed) {
                    (true, true) => IntTern::MadHiS,
                    (true, false) => IntTern::MadHiU,
                    _ => IntTern::MadLo,
                };
                tern(self, op, s[2])
            }
            ("sad", 3) => tern(self, if signed { IntTern::SadS } else { IntTern::SadU }, s[2]),
            ("bfind", 1) => Ok(self.find_bit(w, signed, l.has("shiftamt"), s[0])),
            ("shl", 2) => self.clamped_shift(IntOp::Shl, w, s[0], s[1]),
            ("shr", 2) => self.clamped_shift(if signed { IntOp::AShr } else { IntOp::LShr }, w, s[0], s[1]),
            ("prmt", 3) if l.op.len() == 2 => tern(self, IntTern::Prmt, s[2]),
            ("lop3", _) => {
                let table = s.get(3).and_then(|s| self.known(*s)).ok_or("a lop3 with an unknown table")?;
                tern(self, IntTern::Lop3(table as u8), s[2])
            }
            ("bfi", 4) => {
                let (value, field) = self.bit_field(w, &s);
                tern_of(self, IntTern::BitSelect, [value, s[1], field])
            }
            ("mul24", 2) if l.has("lo") => bin(self, IntOp::Mul),
            ("bfe", 3) => tern(self, if signed { IntTern::BfeS } else { IntTern::BfeU }, s[2]),
            ("shf", 3) if l.has("wrap") => {
                // (b:a) shifted; the funnel operations take the high word first.
                let op = if l.has("l") { IntTern::Fshl } else { IntTern::Fshr };
                Ok(self.value(|r| Op::IntTern { op, w: 32, d: r, a: s[1], b: s[0], c: s[2] }))
            }
            ("dp4a", 3) => tern(self, if signed { IntTern::Dp4aS } else { IntTern::Dp4aU }, s[2]),
            ("selp", 3) => Ok(self.value(|d| Op::Select { d, c: s[2], a: s[0], b: s[1] })),
            (_, 2) => int_op(name, signed).map_or_else(|| l.unknown(), |op| bin(self, op)),
            (_, 1) => int_un(name).map_or_else(|| l.unknown(), |op| un(self, op)),
            _ => l.unknown(),
        }
    }

    /// `bfi`: the low bits of the first operand where the field is that begins at the third and has the length of the
    /// fourth, and the field itself as ones.
    fn bit_field(&mut self, w: u8, s: &[Src]) -> (Src, Src) {
        let one = self.constant(1);
        let above = self.int_op(IntOp::Shl, w, one, s[3]);
        let ones = self.int_op(IntOp::Sub, w, above, one);
        (self.int_op(IntOp::Shl, w, s[0], s[2]), self.int_op(IntOp::Shl, w, ones, s[2]))
    }

    /// The sum or difference of two values with the carry flag: `addc`, `subc` and `madc` use it, `.cc` sets it. It is a
    /// register of the piece of assembly, so every lane has its own, and it survives branches and predicates.
    fn with_carry(&mut self, l: &Line<'_>, v: &mut Vars, w: u8, a: Src, b: Src) -> What<Src> {
        let flag = v.map.get(CARRY).copied();
        let carry = match l.op[0].ends_with('c') {
            true => flag.ok_or_else(|| format!("'{}' without a carry before it", l.text))?,
            false => self.constant(0),
        };
        let (op, out) = match l.op[0].starts_with("sub") {
            true => (IntOp::Sub, IntTern::SubBorrow),
            false => (IntOp::Add, IntTern::AddCarry),
        };
        let (carried, value) = (l.op[0].ends_with('c'), self.int_op(op, w, a, b));
        let value = if carried { self.int_op(op, w, value, carry) } else { value };
        if l.has("cc") {
            let out = self.value(|d| Op::IntTern { op: out, w, d, a, b, c: carry });
            let flag = match flag.and_then(|f| f.split().ok()) {
                Some(r) => r,
                None => self.fresh(),
            };
            v.map.insert(CARRY.into(), Src::reg(flag));
            self.result(l, flag, out);
        }
        Ok(value)
    }

    /// `bfind`: where the highest set bit is or, as a shift amount, how far from the top.
    fn find_bit(&mut self, w: u8, signed: bool, amount: bool, a: Src) -> Src {
        let op = if signed { IntUn::FindS } else { IntUn::FindU };
        let found = self.value(|d| Op::IntUn { op, w, d, a });
        let at = self.value(|d| Op::Cvt { cvt: Cvt::Zext(32), d, a: found });
        if !amount {
            return at;
        }
        let (top, none) = (self.constant(u64::from(w) - 1), self.constant(0xffff_ffff));
        let shift = self.int_op(IntOp::Sub, 32, top, at);
        let c = self.value(|d| Op::ICmp { op: Cmp::Eq, w: 32, d, a: at, b: none });
        self.value(|d| Op::Select { d, c, a: none, b: shift })
    }

    /// PTX clamps shift amounts to the width; LLVM leaves larger ones undefined.
    fn clamped_shift(&mut self, op: IntOp, w: u8, a: Src, b: Src) -> What<Src> {
        match self.known(b) {
            Some(n) if n < u64::from(w) => Ok(self.int_op(op, w, a, b)),
            _ => {
                // The interpreter's shifts by the width or more give what PTX wants.
                Ok(self.int_op(op, w, a, b))
            }
        }
    }

    fn ptx_float(&mut self, l: &Line<'_>, f: Fmt, packed: bool, s: &[Src]) -> What<Src> {
        if packed {
            let mut halves = Vec::new();
            for i in 0..2u8 {
                let part: Vec<Src> = s
                    .iter()
                    .map(|s| self.value(|d| Op::Bits { d, a: *s, shift: i * 16, width: 16 }))
                    .collect();
                halves.push(self.ptx_float(l, f, false, &part)?);
            }
            return Ok(self.join(&halves, 16));
        }
        let (ftz, approx) = (l.has("ftz"), l.has("approx"));
        let round = rounding(l);
        if l.has("sat") {
            // The result is clamped to [0, 1], NaN becomes 0.
            let rest: Vec<String> = l.op.iter().filter(|p| *p != "sat").cloned().collect();
            let plain = Line { op: &rest, args: l.args, pred: l.pred, text: l.text };
            let v = self.ptx_float(&plain, f, false, s)?;
            return Ok(self.unit_interval(f, v));
        }
        let bin = |d: &mut Self, op| Ok(d.value(|r| Op::Float { op, f, round, ftz, d: r, a: s[0], b: s[1] }));
        let un = |d: &mut Self, op| Ok(d.value(|r| Op::FloatUn { op, f, round, ftz, approx, d: r, a: s[0] }));
        match (l.op[0].as_str(), s.len()) {
            ("add", 2) => bin(self, FloatOp::Add),
            ("sub", 2) => bin(self, FloatOp::Sub),
            ("mul", 2) => bin(self, FloatOp::Mul),
            ("div", 2) => bin(self, FloatOp::Div),
            ("min" | "max", 2) => {
                let op = match (l.op[0] == "min", l.has("NaN")) {
                    (true, true) => FloatOp::Minimum,
                    (true, false) => FloatOp::Min,
                    (false, true) => FloatOp::Maximum,
                    (false, false) => FloatOp::Max,
                };
                if l.has("xorsign") { Ok(self.xorsign(op, f, ftz, s[0], s[1])) } else { bin(self, op) }
            }
            ("copysign", 2) => {
                Ok(self.value(|r| Op::Float { op: FloatOp::CopySign, f, round, ftz, d: r, a: s[1], b: s[0] }))
            }
            ("fma" | "mad", 3) => {
                let relu = l.has("relu");
                Ok(self.value(|r| Op::Fma { f, round, ftz, relu, d: r, a: s[0], b: s[1], c: s[2] }))
            }
            ("ex2", 1) => un(self, FloatUn::Exp2),
            ("lg2", 1) => un(self, FloatUn::Log2),
            ("rcp", 1) => un(self, FloatUn::Rcp),
            ("rsqrt", 1) => un(self, FloatUn::Rsqrt),
            ("sqrt", 1) => un(self, FloatUn::Sqrt),
            ("sin", 1) => un(self, FloatUn::Sin),
            ("cos", 1) => un(self, FloatUn::Cos),
            ("tanh", 1) => un(self, FloatUn::Tanh),
            ("neg", 1) => un(self, FloatUn::Neg),
            ("abs", 1) => un(self, FloatUn::Abs),
            ("selp", 3) => Ok(self.value(|d| Op::Select { d, c: s[2], a: s[0], b: s[1] })),
            _ => l.unknown(),
        }
    }

    /// `.xorsign.abs`: of the absolute values, with the product's sign (PTX ISA, min and max).
    pub(super) fn xorsign(&mut self, op: FloatOp, f: Fmt, ftz: bool, a: Src, b: Src) -> Src {
        let round = Round::Nearest;
        let [x, y] = [a, b]
            .map(|a| self.value(|d| Op::FloatUn { op: FloatUn::Abs, f, round, ftz, approx: false, d, a }));
        let magnitude = self.value(|d| Op::Float { op, f, round, ftz, d, a: x, b: y });
        let signs = self.int_op(IntOp::Xor, f.bits() as u8, a, b);
        self.float_op(FloatOp::CopySign, f, magnitude, signs)
    }

    /// `.sat`: between 0 and 1, and 0 for NaN.
    pub(super) fn unit_interval(&mut self, f: Fmt, v: Src) -> Src {
        let (zero, one) = (self.constant(0), self.constant(one(f)));
        let v = self.float_op(FloatOp::Max, f, v, zero);
        self.float_op(FloatOp::Min, f, v, one)
    }

    /// `setp`: one predicate, or two: the second is the complement or, for packed operands, that of the upper half.
    pub(super) fn ptx_setp(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let ty = l.ty().to_owned();
        let sources = 2 + usize::from(combined(l).is_some());
        let Some(results @ (1 | 2)) = l.args.len().checked_sub(sources) else { return l.unknown() };
        let mut p = self.compare(l, v, &l.args[results..], &ty)?;
        if p.len() == 1 {
            let one = self.constant(1);
            p.push(self.int_op(IntOp::Xor, 1, p[0], one));
        } else if results == 1 {
            return l.unknown();
        }
        let d = l.args.iter().take(results).map(|o| self.dest(v, o)).collect::<What<Vec<Reg>>>()?;
        for (d, p) in d.into_iter().zip(p) {
            self.result(l, d, p);
        }
        Ok(())
    }

    /// `set`: all ones, or 1.0, where the comparison holds; packed operands give both halves of a word.
    fn ptx_set(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let [.., to, from] = l.op else { return l.unknown() };
        let p = self.compare(l, v, &l.args[1..], from)?;
        let (yes, w) = match (float_of(to), bits_of(to)) {
            (Some((f, _)), _) => (one(f), f.bits()),
            (None, Some(w)) => {
                (u64::MAX >> (64 - u32::from(w) / p.len() as u32), u32::from(w) / p.len() as u32)
            }
            _ => return l.unknown(),
        };
        if p.len() == 2 && w != 16 {
            return l.unknown();
        }
        let (yes, no) = (self.constant(yes), self.constant(0));
        let values: Vec<Src> =
            p.into_iter().map(|c| self.value(|d| Op::Select { d, c, a: yes, b: no })).collect();
        Ok(self.join(&values, w))
    }

    /// The predicates of a comparison of `args`: one, or two for packed operands.
    fn compare(&mut self, l: &Line<'_>, v: &Vars, args: &[Operand], ty: &str) -> What<Vec<Src>> {
        let (Some(kind), [a, b, rest @ ..]) = (l.op.get(1), args) else { return l.unknown() };
        let (a, b) = (self.src(v, a, ty)?, self.src(v, b, ty)?);
        let p = if let Some((f, packed)) = float_of(ty) {
            let name = match kind.as_str() {
                "num" => "ord".to_owned(),
                "nan" => "uno".to_owned(),
                k @ ("equ" | "neu" | "ltu" | "leu" | "gtu" | "geu") => format!("u{}", &k[..2]),
                k @ ("eq" | "lt" | "le" | "gt" | "ge") => format!("o{k}"),
                "ne" => "one".to_owned(),
                _ => return l.unknown(),
            };
            let (op, ftz) = (super::inst::float_cmp(&name), l.has("ftz"));
            let pairs = match packed {
                true => self.split(a, 16, 2).into_iter().zip(self.split(b, 16, 2)).collect(),
                false => vec![(a, b)],
            };
            pairs.into_iter().map(|(a, b)| self.value(|d| Op::FCmp { op, f, ftz, d, a, b })).collect()
        } else {
            let Some(w) = bits_of(ty) else { return l.unknown() };
            let op = match (kind.as_str(), ty.starts_with('s')) {
                ("eq", _) => Cmp::Eq,
                ("ne", _) => Cmp::Ne,
                ("lt", true) => Cmp::SLt,
                ("le", true) => Cmp::SLe,
                ("gt", true) => Cmp::SGt,
                ("ge", true) => Cmp::SGe,
                ("lt" | "lo", false) => Cmp::ULt,
                ("le" | "ls", false) => Cmp::ULe,
                ("gt" | "hi", false) => Cmp::UGt,
                ("ge" | "hs", false) => Cmp::UGe,
                _ => return l.unknown(),
            };
            vec![self.value(|d| Op::ICmp { op, w, d, a, b })]
        };
        match (combined(l), rest) {
            (None, []) => Ok(p),
            (Some(op), [c]) => {
                let c = self.src(v, c, "pred")?;
                Ok(p.into_iter().map(|p: Src| self.int_op(op, 1, p, c)).collect())
            }
            _ => l.unknown(),
        }
    }

    fn ptx_cvt(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Src> {
        let n = l.op.len();
        let (to, from) = (l.op[n - 2].as_str(), l.op[n - 1].as_str());
        let mut s = Vec::new();
        for o in l.args.iter().skip(1) {
            s.push(self.src(v, o, from)?);
        }
        let round = rounding(l);
        let saturate = l.has("satfinite");
        if l.has("rs") || l.has("scaled::n2::ue8m0") {
            return l.unknown();
        }
        let relu = l.has("relu");
        let ftz = l.has("ftz");
        let code = |t: &str| match t {
            "e4m3x2" => Some(num::E4M3),
            "e5m2x2" => Some(num::E5M2),
            _ => None,
        };
        let one = |d: &mut Self, cvt: Cvt, a: Src| d.value(|r| Op::Cvt { cvt, d: r, a });
        // Two values packed: `cvt.rn.f16x2.f32 d, high, low`.
        if let Some(f) = code(to) {
            let pair = match (from, s.len()) {
                ("f32", 2) => [(s[1], Fmt::F32), (s[0], Fmt::F32)],
                ("f16x2" | "bf16x2", 1) => {
                    let fmt = if from == "f16x2" { Fmt::F16 } else { Fmt::BF16 };
                    let h = self.split(s[0], 16, 2);
                    [(h[0], fmt), (h[1], fmt)]
                }
                _ => return l.unknown(),
            };
            let codes: Vec<Src> = pair
                .iter()
                .map(|(a, from)| one(self, Cvt::ToCode { from: *from, to: f, round, saturate, relu }, *a))
                .collect();
            return Ok(self.join(&codes, 8));
        }
        if let Some(f) = code(from) {
            let Some((to, true)) = float_of(to) else { return l.unknown() };
            let h = self.split(s[0], 8, 2);
            let values: Vec<Src> = h.iter().map(|a| one(self, Cvt::FromCode { from: f, to }, *a)).collect();
            return Ok(self.join(&values, 16));
        }
        if to == "tf32" {
            return Ok(one(self, Cvt::ToTf32 { round }, s[0]));
        }
        match (float_of(to), float_of(from)) {
            (Some((to, true)), Some((from, false))) if s.len() == 2 => {
                let c = Cvt::Float { from, to, round, saturate, relu, ftz };
                let (low, high) = (one(self, c, s[1]), one(self, c, s[0]));
                Ok(self.join(&[low, high], 16))
            }
            (Some((to, false)), Some((from, false))) => {
                // `cvt.rni.f32.f32` and the like round to an integer.
                let integral = [
                    ("rni", FloatUn::Rint),
                    ("rzi", FloatUn::Trunc),
                    ("rmi", FloatUn::Floor),
                    ("rpi", FloatUn::Ceil),
                ];
                if let Some((_, op)) = integral.iter().find(|(n, _)| l.has(n)) {
                    if l.has("sat") || to != from {
                        return l.unknown();
                    }
                    return Ok(self.value(|d| Op::FloatUn {
                        op: *op,
                        f: from,
                        round: Round::Nearest,
                        ftz,
                        approx: false,
                        d,
                        a: s[0],
                    }));
                }
                let r = one(self, Cvt::Float { from, to, round, saturate, relu, ftz }, s[0]);
                Ok(if l.has("sat") { self.unit_interval(to, r) } else { r })
            }
            (None, Some((from, false))) => {
                let Some(width) = bits_of(to) else { return l.unknown() };
                let (signed, top) = (to.starts_with('s'), from == Fmt::F64 || width == 64);
                Ok(one(self, Cvt::FloatToInt { from, width, signed, round, top }, s[0]))
            }
            (Some((to, false)), None) => {
                let Some(width) = bits_of(from) else { return l.unknown() };
                Ok(one(self, Cvt::IntToFloat { width, signed: from.starts_with('s'), to, round }, s[0]))
            }
            (None, None) => {
                let (Some(w), Some(from_bits)) = (bits_of(to), bits_of(from)) else { return l.unknown() };
                if l.has("sat") {
                    return l.unknown();
                }
                if from.starts_with('s') && w > from_bits {
                    return Ok(one(self, Cvt::Sext(from_bits, w), s[0]));
                }
                Ok(one(self, Cvt::Zext(w.min(from_bits)), s[0]))
            }
            _ => l.unknown(),
        }
    }
}

/// `setp.lt.and p, a, b, c` combines the result with a predicate.
fn combined(l: &Line<'_>) -> Option<IntOp> {
    Some(match l.op.get(2)?.as_str() {
        "and" => IntOp::And,
        "or" => IntOp::Or,
        "xor" => IntOp::Xor,
        _ => return None,
    })
}

/// The bits of 1.
fn one(f: Fmt) -> u64 {
    match f {
        Fmt::F16 => 0x3c00,
        Fmt::BF16 => 0x3f80,
        Fmt::F32 => 0x3f80_0000,
        Fmt::F64 => 1f64.to_bits(),
    }
}

fn rounding(l: &Line<'_>) -> Round {
    let has = |a: &str, b: &str| l.has(a) || l.has(b);
    if has("rz", "rzi") {
        Round::Zero
    } else if has("rm", "rmi") {
        Round::Down
    } else if has("rp", "rpi") {
        Round::Up
    } else if l.has("rna") {
        Round::NearestAway
    } else {
        Round::Nearest
    }
}
