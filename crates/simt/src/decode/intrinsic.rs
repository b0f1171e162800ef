//! Target-independent intrinsics, and dispatch to the targets' own.

use super::inst::fmt;
use super::{Decoder, What};
use crate::bytecode::*;
use crate::ir::{Inst, Order, Ty};
use crate::num::Round;

/// Intrinsics of two integers.
fn int_op(base: &str) -> Option<IntOp> {
    Some(match base {
        "smax" => IntOp::SMax,
        "smin" => IntOp::SMin,
        "umax" => IntOp::UMax,
        "umin" => IntOp::UMin,
        "usub" => IntOp::USubSat,
        "uadd" => IntOp::UAddSat,
        "sadd" => IntOp::SAddSat,
        "ssub" => IntOp::SSubSat,
        _ => return None,
    })
}

/// What `.with.overflow` gives: the value that wraps, and whether it does.
fn with_overflow(base: &str) -> Option<(IntOp, IntOp)> {
    Some(match base {
        "usub" => (IntOp::Sub, IntOp::USubOvf),
        "uadd" => (IntOp::Add, IntOp::UAddOvf),
        "umul" => (IntOp::Mul, IntOp::UMulOvf),
        "ssub" => (IntOp::Sub, IntOp::SSubOvf),
        "sadd" => (IntOp::Add, IntOp::SAddOvf),
        "smul" => (IntOp::Mul, IntOp::SMulOvf),
        _ => return None,
    })
}

/// Intrinsics of one integer.
fn int_un(base: &str) -> Option<IntUn> {
    Some(match base {
        "abs" => IntUn::Abs,
        "ctpop" => IntUn::Popc,
        "ctlz" => IntUn::Clz,
        "cttz" => IntUn::Ctz,
        "bitreverse" => IntUn::BitReverse,
        "bswap" => IntUn::ByteSwap,
        _ => return None,
    })
}

/// Intrinsics of two floats.
fn float_op(base: &str) -> Option<FloatOp> {
    Some(match base {
        "maxnum" | "maximumnum" => FloatOp::Max,
        "minnum" | "minimumnum" => FloatOp::Min,
        "maximum" => FloatOp::Maximum,
        "minimum" => FloatOp::Minimum,
        "copysign" => FloatOp::CopySign,
        "pow" => FloatOp::Pow,
        "ldexp" => FloatOp::LdExp,
        _ => return None,
    })
}

/// Intrinsics of one float.
fn float_un(base: &str) -> Option<FloatUn> {
    Some(match base {
        "fabs" => FloatUn::Abs,
        "sqrt" => FloatUn::Sqrt,
        "exp2" => FloatUn::Exp2,
        "exp" => FloatUn::Exp,
        "log2" => FloatUn::Log2,
        "log10" => FloatUn::Log10,
        "log" => FloatUn::Log,
        "sin" => FloatUn::Sin,
        "cos" => FloatUn::Cos,
        "tanh" => FloatUn::Tanh,
        "floor" => FloatUn::Floor,
        "ceil" => FloatUn::Ceil,
        "trunc" => FloatUn::Trunc,
        "rint" | "nearbyint" | "roundeven" => FloatUn::Rint,
        "round" => FloatUn::Round,
        "canonicalize" => FloatUn::Canonical,
        _ => return None,
    })
}

impl Decoder<'_> {
    pub(super) fn intrinsic(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        if let Some(rest) = name.strip_prefix("llvm.nvvm.") {
            return self.nvvm(rest, inst, args);
        }
        if let Some(rest) = name.strip_prefix("llvm.amdgcn.") {
            return self.amdgcn(rest, inst, args);
        }
        match name {
            "__nvvm_reflect" => return self.reflect(inst),
            "vprintf" => {
                self.emit(Op::Print { format: args[0][0], args: args[1][0] });
                return Ok(vec![self.constant(1)]);
            }
            "__ockl_printf_begin" | "__ockl_fprintf_stderr_begin" => {
                return Ok(vec![self.value(|d| Op::Message { d, part: MessagePart::Begin, last: None })]);
            }
            "__ockl_printf_append_string_n" => {
                let (part, last) = (MessagePart::Text(args[1][0]), Some(args[3][0]));
                return Ok(vec![self.value(|d| Op::Message { d, part, last })]);
            }
            "__ockl_printf_append_args" => {
                let (count, last) = (args[1][0], args.last().map(|v| v[0]));
                let args = args[2..args.len() - 1].iter().map(|v| v[0]).collect();
                return Ok(vec![self.value(|d| Op::Message {
                    d,
                    part: MessagePart::Args { count, args },
                    last,
                })]);
            }
            "__assertfail" => {
                let (message, file, line, func) = (args[0][0], args[1][0], args[2][0], args[3][0]);
                self.emit(Op::Assert { message, file, line, func });
                return Ok(Vec::new());
            }
            "__triton_assert_fail" | "__assert_fail" => {
                let at = |i: usize, none: Src| args.get(i).map_or(none, |v| v[0]);
                let none = self.constant(0);
                self.emit(Op::Assert {
                    message: at(0, none),
                    file: at(1, none),
                    line: at(2, none),
                    func: at(3, none),
                });
                return Ok(Vec::new());
            }
            _ => {}
        }
        let Some(rest) = name.strip_prefix("llvm.") else {
            return Err(format!("the call of @{name}, which has no body"));
        };
        self.generic(rest, inst, args)
            .map_err(|e| if e.is_empty() { format!("the intrinsic @{name}") } else { e })
    }

    /// `__nvvm_reflect` asks for a compilation option by name.
    fn reflect(&mut self, inst: &Inst) -> What<Vec<Src>> {
        let crate::ir::Operand::Const(c) = &inst.args[0] else {
            return Err("__nvvm_reflect of a variable".into());
        };
        let Some(crate::ir::Scalar::Global(g, _)) = c.first() else {
            return Err("__nvvm_reflect without a name".into());
        };
        let bytes = &self.module.globals[*g].init;
        let name = String::from_utf8_lossy(bytes.split(|b| *b == 0).next().unwrap_or(&[])).into_owned();
        let v = match name.as_str() {
            "__CUDA_FTZ" => u64::from(self.ftz_flag),
            "__CUDA_PREC_SQRT" | "__CUDA_PREC_DIV" => 1,
            "__CUDA_ARCH" => {
                let cpu = self.gpu.demand("it asks for __CUDA_ARCH").map_err(|e| e.to_string())?;
                10 * cpu.name.trim_start_matches("sm_").parse().unwrap_or(0)
            }
            _ => 0,
        };
        Ok(vec![self.constant(v)])
    }

    fn generic(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let base = name.split('.').next().unwrap_or(name);
        let ty = inst.arg_tys.first().cloned().unwrap_or(Ty::Void);
        let element = ty.element().clone();
        let w = element.bits() as u8;
        let n = args.first().map_or(0, Vec::len);
        let un = |d: &mut Self, op: IntUn| {
            (0..n).map(|i| d.value(|r| Op::IntUn { op, w, d: r, a: args[0][i] })).collect()
        };
        let bin = |d: &mut Self, op: IntOp| (0..n).map(|i| d.int_op(op, w, args[0][i], args[1][i])).collect();
        let fun = |d: &mut Self, op: FloatUn| -> What<Vec<Src>> {
            let f = fmt(&element)?;
            Ok((0..n)
                .map(|i| {
                    d.value(|r| Op::FloatUn {
                        op,
                        f,
                        round: Round::Nearest,
                        ftz: false,
                        approx: false,
                        d: r,
                        a: args[0][i],
                    })
                })
                .collect())
        };
        let fbin = |d: &mut Self, op: FloatOp| -> What<Vec<Src>> {
            let f = fmt(&element)?;
            Ok((0..n).map(|i| d.float_op(op, f, args[0][i], args[1][i])).collect())
        };
        match base {
            "assume" | "lifetime" | "dbg" | "experimental" | "invariant" | "donothing" | "prefetch"
            | "sideeffect" => Ok(Vec::new()),
            "trap" | "debugtrap" | "ubsantrap" => {
                self.emit(Op::Trap);
                Ok(Vec::new())
            }
            "expect" | "annotation" | "ssa" | "launder" | "strip" => Ok(args[0].clone()),
            _ if name.contains(".with.overflow") => {
                let Some((plain, overflows)) = with_overflow(base) else { return Err(String::new()) };
                let mut out: Vec<Src> = bin(self, plain);
                out.extend::<Vec<Src>>(bin(self, overflows));
                Ok(out)
            }
            "fshl" | "fshr" => {
                let op = if base == "fshl" { IntTern::Fshl } else { IntTern::Fshr };
                let make =
                    |r, i: usize| Op::IntTern { op, w, d: r, a: args[0][i], b: args[1][i], c: args[2][i] };
                Ok((0..n).map(|i| self.value(|r| make(r, i))).collect())
            }
            "fma" | "fmuladd" => {
                let f = fmt(&element)?;
                let make = |r, i: usize| Op::Fma {
                    f,
                    round: Round::Nearest,
                    ftz: false,
                    relu: false,
                    d: r,
                    a: args[0][i],
                    b: args[1][i],
                    c: args[2][i],
                };
                Ok((0..n).map(|i| self.value(|r| make(r, i))).collect())
            }
            "is" => {
                let f = fmt(&element)?;
                let mask = self.known(args[1][0]).unwrap_or(0) as u16;
                Ok(args[0].iter().map(|a| self.value(|d| Op::FClass { f, mask, d, a: *a })).collect())
            }
            "fptosi" | "fptoui" if name.contains(".sat") => {
                let cvt = Cvt::FloatToInt {
                    from: fmt(&element)?,
                    width: inst.ty.element().bits() as u8,
                    signed: base == "fptosi",
                    round: Round::Zero,
                    top: false,
                };
                Ok(args[0].iter().map(|a| self.value(|d| Op::Cvt { cvt, d, a: *a })).collect())
            }
            // -1, 0 or 1: which of the two is larger.
            "scmp" | "ucmp" => {
                let (more, less) = if base == "scmp" { (Cmp::SGt, Cmp::SLt) } else { (Cmp::UGt, Cmp::ULt) };
                let width = inst.ty.element().bits() as u8;
                let compared = |d: &mut Self, i: usize, op: Cmp| {
                    d.value(|r| Op::ICmp { op, w, d: r, a: args[0][i], b: args[1][i] })
                };
                let sign = |i: usize| {
                    let (more, less) = (compared(self, i, more), compared(self, i, less));
                    self.int_op(IntOp::Sub, width, more, less)
                };
                Ok((0..n).map(sign).collect())
            }
            "vector" => self.vector(name, inst, args),
            "masked" => self.masked(name, inst, args),
            "memcpy" | "memmove" | "memset" => self.block(base, inst, args),
            _ => match (int_op(base), int_un(base), float_op(base), float_un(base)) {
                (Some(op), ..) => Ok(bin(self, op)),
                (_, Some(op), ..) => Ok(un(self, op)),
                (_, _, Some(op), _) => fbin(self, op),
                (.., Some(op)) => fun(self, op),
                _ => Err(String::new()),
            },
        }
    }

    /// `masked.load` and `masked.store` with a constant mask, which LLVM makes of accesses with gaps between.
    fn masked(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let load = name.starts_with("masked.load.");
        if !load && !name.starts_with("masked.store.") {
            return Err(String::new());
        }
        let (ty, pointer) = if load { (&inst.ty, 0) } else { (&inst.arg_tys[0], 1) };
        let mask = &args[pointer + 1];
        let on: Vec<bool> = mask
            .iter()
            .map(|m| self.known(*m).map(|m| m & 1 != 0).ok_or("a masked access with a variable mask"))
            .collect::<Result<_, _>>()?;
        let bits = ty.element().bits();
        if !matches!(bits, 8 | 16 | 32 | 64) || on.len() > 64 {
            return Err(format!("a masked access of {ty:?}"));
        }
        let mut at = self.access(&inst.arg_tys[pointer], args[pointer][0], bits / 8, Order::default())?;
        at.bytes = (bits / 8) as u8;
        if load {
            if !on.contains(&true) {
                return Ok(args[2].clone());
            }
            let d: Vec<Reg> = on.iter().map(|_| self.fresh()).collect();
            at.gaps = on.iter().enumerate().fold(0, |m, (i, on)| m | u64::from(!on) << i);
            self.emit(Op::Ld { d: d.clone().into(), at });
            let pick = |(i, on): (usize, &bool)| if *on { Src::reg(d[i]) } else { args[2][i] };
            return Ok(on.iter().enumerate().map(pick).collect());
        }
        for (i, _) in on.iter().enumerate().filter(|(_, on)| **on) {
            let mut one = at.clone();
            one.offset = (i * bits as usize / 8) as i64;
            self.emit(Op::St { v: vec![args[0][i]].into(), at: one });
        }
        Ok(Vec::new())
    }

    /// `memcpy`, `memmove` and `memset` of a constant number of bytes, in words of up to eight of them. All
    /// is loaded before anything is stored, so the ranges may overlap.
    fn block(&mut self, kind: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let length = args.get(2).and_then(|n| self.known(n[0]));
        let Some(length) = length.filter(|n| *n <= 1 << 16) else {
            return Err(format!("a {kind} of a variable number of bytes, or of more than 65536"));
        };
        let mut words = Vec::new();
        let mut at = 0;
        while at < length {
            let n = (1u64 << (length - at).ilog2().min(3)) as u8;
            let data = if kind == "memset" {
                let (byte, ones) = (args[1][0], self.constant(0x0101_0101_0101_0101));
                let spread = self.int_op(IntOp::Mul, 64, byte, ones);
                self.value(|d| Op::Cvt { cvt: Cvt::Zext(8 * n), d, a: spread })
            } else {
                let mut from = self.access(&inst.arg_tys[1], args[1][0], 1, Order::default())?;
                (from.offset, from.bytes) = (at as i64, n);
                let d = self.fresh();
                self.emit(Op::Ld { d: vec![d].into(), at: from });
                Src::reg(d)
            };
            words.push((at, n, data));
            at += u64::from(n);
        }
        for (at, n, data) in words {
            let mut to = self.access(&inst.arg_tys[0], args[0][0], 1, Order::default())?;
            (to.offset, to.bytes) = (at as i64, n);
            self.emit(Op::St { v: vec![data].into(), at: to });
        }
        Ok(Vec::new())
    }

    /// `llvm.vector.reduce.*`: from element 0 on, one after the other.
    fn vector(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let Some(kind) = name.strip_prefix("vector.reduce.").and_then(|r| r.split('.').next()) else {
            return Err(String::new());
        };
        let last = args.len() - 1;
        let element = inst.arg_tys[last].element().clone();
        let w = element.bits() as u8;
        let (mut acc, rest) =
            if last == 1 { (args[0][0], &args[1][..]) } else { (args[0][0], &args[0][1..]) };
        for s in rest {
            let int = match kind {
                "add" => Some(IntOp::Add),
                "mul" => Some(IntOp::Mul),
                "and" => Some(IntOp::And),
                "or" => Some(IntOp::Or),
                "xor" => Some(IntOp::Xor),
                "smax" => Some(IntOp::SMax),
                "smin" => Some(IntOp::SMin),
                "umax" => Some(IntOp::UMax),
                "umin" => Some(IntOp::UMin),
                _ => None,
            };
            acc = match int {
                Some(op) => self.int_op(op, w, acc, *s),
                None => {
                    let op = match kind {
                        "fadd" => FloatOp::Add,
                        "fmul" => FloatOp::Mul,
                        "fmax" => FloatOp::Max,
                        "fmin" => FloatOp::Min,
                        "fmaximum" => FloatOp::Maximum,
                        "fminimum" => FloatOp::Minimum,
                        _ => return Err(String::new()),
                    };
                    self.float_op(op, fmt(&element)?, acc, *s)
                }
            };
        }
        Ok(vec![acc])
    }
}
