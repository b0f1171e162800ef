//! AMDGCN intrinsics (names without `llvm.amdgcn.`).
//!
//! Sources: LLVM's "User Guide for AMDGPU Backend" and IntrinsicsAMDGPU for names and operands; the CDNA3,
//! RDNA3 and RDNA4 instruction set architecture documents for what they do.

use super::inst::fmt;
use super::{Decoder, What};
use crate::bytecode::*;
use crate::gpu::Fp8;
use crate::ir::{Inst, Order, Ty};
use crate::num::{self, Round};
use std::sync::OnceLock;

fn unknown(name: &str) -> String {
    format!("the intrinsic @llvm.amdgcn.{name}")
}

/// The function of one operand that an intrinsic is.
fn function(base: &str) -> Option<FloatUn> {
    Some(match base {
        "exp2" => FloatUn::Exp2,
        "log" => FloatUn::Log2,
        "rcp" => FloatUn::Rcp,
        "rsq" => FloatUn::Rsqrt,
        "sqrt" => FloatUn::Sqrt,
        "sin" => FloatUn::SinRev,
        "cos" => FloatUn::CosRev,
        "fract" => FloatUn::Fract,
        "frexp.mant" => FloatUn::FrexpMant,
        "tanh" => FloatUn::Tanh,
        _ => return None,
    })
}

impl Decoder<'_> {
    pub(super) fn amd_asm(&mut self, text: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let mut lines =
            text.split(['\n', ';']).map(str::trim).filter(|l| !l.is_empty() && !l.starts_with("//"));
        let only = lines.next().unwrap_or("");
        let op = only.split_whitespace().next().unwrap_or("");
        if lines.next().is_some() {
            return Err(format!("the inline assembly '{text}'"));
        }
        match op {
            "" | "s_nop" | "s_waitcnt" | "s_sleep" | "s_setprio" | "buffer_inv" | "s_waitcnt_vscnt" => {
                self.emit(Op::Nop("wait"));
                if inst.ty == Ty::Void {
                    Ok(Vec::new())
                } else {
                    Ok(args.first().cloned().unwrap_or_default())
                }
            }
            "s_trap" | "s_endpgm" => {
                self.emit(Op::Trap);
                Ok(Vec::new())
            }
            "s_barrier" => self.amd_barrier(),
            _ => Err(format!("the instruction '{op}' in inline assembly")),
        }
    }

    fn amd_barrier(&mut self) -> What<Vec<Src>> {
        let id = self.constant(0);
        self.emit(Op::Bar { id, threads: None, wait: true, reduce: None, pred: None });
        Ok(Vec::new())
    }

    pub(super) fn amdgcn(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let a = |i: usize| args.get(i).and_then(|v| v.first()).copied().ok_or_else(unknown);
        if name.starts_with("mfma.scale.") {
            return self.mfma_narrow(name, args);
        }
        if name.starts_with("mfma.") {
            return self.mfma(name, inst, args);
        }
        if name.starts_with("wmma.scale.") {
            return self.wmma_scaled(name, args);
        }
        if name.starts_with("wmma.") {
            return self.wmma(name, inst, args);
        }
        if let "global.load.lds" | "global.load.async.lds" = name {
            return self.load_to_lds(name, args);
        }
        if let Some(rest) = name.strip_prefix("tensor.") {
            return self.tensor_move(name, rest, args);
        }
        if let Some(bits) = name.strip_prefix("global.load.async.to.lds.b") {
            return self.async_to_lds(name, bits, args);
        }
        if let "raw.ptr.buffer.load.lds" | "raw.ptr.buffer.load.async.lds" = name {
            return self.buffer_to_lds(name, args);
        }
        if let Some(rest) = name.strip_prefix("raw.ptr.buffer.") {
            return self.raw_buffer(rest, inst, args).map_err(|e| if e.is_empty() { unknown() } else { e });
        }
        let axis = |s: &str| match s {
            "x" => 0,
            "y" => 1,
            _ => 2,
        };
        if let Some(ax) = name.strip_prefix("workitem.id.") {
            return Ok(vec![self.special(Special::Tid(axis(ax)))]);
        }
        if let Some(ax) = name.strip_prefix("workgroup.id.") {
            return Ok(vec![self.special(Special::Ctaid(axis(ax)))]);
        }
        let base: String = name
            .split('.')
            .take_while(|p| {
                !matches!(
                    *p,
                    "i1" | "i8"
                        | "i16"
                        | "i32"
                        | "i64"
                        | "f16"
                        | "bf16"
                        | "f32"
                        | "f64"
                        | "v2i32"
                        | "v2f16"
                        | "v2bf16"
                )
            })
            .collect::<Vec<_>>()
            .join(".");
        // The types of a conversion are part of its name.
        let base = if name.starts_with("cvt.") { name.to_owned() } else { base };
        match base.as_str() {
            "make.buffer.rsrc.p8.p1" | "make.buffer.rsrc.p8.p0" => {
                let mut count = a(2)?;
                if inst.arg_tys[2].bits() == 32 {
                    count = self.value(|d| Op::Cvt { cvt: Cvt::Zext(32), d, a: count });
                }
                Ok(vec![a(0)?, count])
            }
            "s.barrier" => self.amd_barrier(),
            "wave.barrier"
            | "sched.group.barrier"
            | "s.setprio"
            | "s.sleep"
            | "s.setreg"
            | "s.sendmsg"
            | "iglp.opt"
            | "s.nop"
            | "s.barrier.signal"
            | "s.prefetch.data" => self.nop("hint"),
            "sched.barrier" => {
                // Accesses to global memory may not cross it (LLVM, "User Guide for AMDGPU Backend").
                const ACCESSES: u64 = 0x10 | 0x20;
                let pins =
                    a(0).ok().and_then(|mask| self.known(mask)).is_some_and(|mask| mask & ACCESSES == 0);
                if pins {
                    self.pinned_in = Some(self.current);
                }
                self.nop("hint")
            }
            "s.barrier.wait" => self.amd_barrier(),
            "s.waitcnt" => {
                let counters = self.known(a(0)?).ok_or_else(unknown)?;
                let vmcnt = counters & 0xf | (counters >> 14 & 3) << 4;
                // CDNA3 ISA, S_WAITCNT: the counter has six bits, all of them set for no wait.
                self.emit(if vmcnt < 63 { Op::CpWait { keep: vmcnt as u32 } } else { Op::Nop("wait") });
                Ok(Vec::new())
            }
            "asyncmark" => {
                self.emit(Op::CpCommit { whole: true });
                Ok(Vec::new())
            }
            "s.wait.asynccnt" => {
                let keep = self.known(a(0)?).ok_or_else(unknown)? as u32;
                self.emit(Op::CpWait { keep });
                Ok(Vec::new())
            }
            "s.wait.tensorcnt" => {
                let keep = self.known(a(0)?).ok_or_else(unknown)? as u32;
                self.emit(Op::TensorWait { keep });
                Ok(Vec::new())
            }
            "s.wait.dscnt" | "s.wait.loadcnt" | "s.wait.storecnt" | "s.wait.kmcnt" | "s.wait.expcnt" => {
                self.nop("wait")
            }
            "wait.asyncmark" => {
                let keep = self.known(a(0)?).ok_or_else(unknown)? as u32;
                self.emit(Op::CpWait { keep });
                Ok(Vec::new())
            }
            "implicitarg.ptr" => Ok(vec![self.special(Special::ImplicitArgs)]),
            "wavefrontsize" => {
                let lanes = self.gpu.lanes;
                Ok(vec![self.constant(u64::from(lanes))])
            }
            _ => self.amd_lanes(name, &base, inst, args),
        }
    }

    /// What lanes exchange.
    fn amd_lanes(&mut self, name: &str, base: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let a = |i: usize| args.get(i).and_then(|v| v.first()).copied().ok_or_else(unknown);
        match base {
            "mbcnt.lo" | "mbcnt.hi" => {
                let (mask, x, high) = (a(0)?, a(1)?, name == "mbcnt.hi");
                Ok(vec![self.value(|d| Op::Mbcnt { d, high, mask, a: x })])
            }
            "ballot" => {
                let (v, mask) = (a(0)?, self.constant(u64::MAX));
                Ok(vec![self.value(|d| Op::Vote { kind: Vote::Ballot, d, v, mask })])
            }
            "readfirstlane" => {
                Ok(args[0].iter().map(|v| self.value(|d| Op::ReadLane { d, v: *v, lane: None })).collect())
            }
            "readlane" => {
                let lane = Some(a(1)?);
                Ok(args[0].iter().map(|v| self.value(|d| Op::ReadLane { d, v: *v, lane })).collect())
            }
            "writelane" => {
                let (v, lane, old) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::WriteLane { d, old, v, lane })])
            }
            "ds.bpermute" | "ds.permute" => {
                let kind = if base == "ds.bpermute" { Permute::Backward } else { Permute::Forward };
                let (idx, v) = (a(0)?, a(1)?);
                Ok(vec![self.value(|d| Op::Permute { kind, d, d2: None, v, idx, c: idx })])
            }
            "ds.swizzle" => {
                let (v, pattern) = (a(0)?, self.known(a(1)?).ok_or_else(unknown)?);
                Ok(vec![self.value(|d| Op::Permute {
                    kind: Permute::Swizzle(pattern as u16),
                    d,
                    d2: None,
                    v,
                    idx: v,
                    c: v,
                })])
            }
            "permlane16" | "permlanex16" => {
                let kind = Permute::PermLane16 { x: base == "permlanex16" };
                let (v, idx, c) = (a(1)?, a(2)?, a(3)?);
                Ok(vec![self.value(|d| Op::Permute { kind, d, d2: None, v, idx, c })])
            }
            "permlane32.swap" | "permlane16.swap" => {
                let kind = Permute::Swap(if base == "permlane32.swap" { 32 } else { 16 });
                let (d, d2) = (self.fresh(), self.fresh());
                let (v, c) = (a(0)?, a(1)?);
                self.emit(Op::Permute { kind, d, d2: Some(d2), v, idx: c, c });
                Ok(vec![Src::reg(d), Src::reg(d2)])
            }
            _ if base.starts_with("ds.read.tr") || base.starts_with("ds.load.tr") => {
                self.transposed_read(name, inst, a(0)?)
            }
            "update.dpp" => self.amd_dpp(name, args),
            "mov.dpp" => Err(unknown()),
            _ => self.amd_math(name, base, inst, args),
        }
    }

    /// `global.load.lds`: from each lane's pointer.
    fn load_to_lds(&mut self, name: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let [from, to, bytes, offset, ..] = args else { return Err(unknown()) };
        let known = |d: &Self, arg: &[Src]| d.known(*arg.first()?);
        let (Some(bytes), Some(0)) = (known(self, bytes), known(self, offset)) else { return Err(unknown()) };
        self.write_lds(name, from[0], to[0], bytes, None)
    }

    /// `global.load.async.to.lds.b128` and its like: from each lane's pointer to where it says, counted in order by a counter of their own
    /// (LLVM 22's gfx1250).
    fn async_to_lds(&mut self, name: &str, bits: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let [from, to, offset, _] = args else { return Err(unknown()) };
        let bytes = match bits {
            "8" => 1,
            "32" => 4,
            "64" => 8,
            "128" => 16,
            _ => return Err(unknown()),
        };
        let cpu = self.gpu.demand("it is one of gfx1250").map_err(|err| err.to_string())?;
        if cpu.name != "gfx1250" || self.known(*offset.first().ok_or_else(unknown)?) != Some(0) {
            return Err(unknown());
        }
        self.copy_to_lds(from[0], to[0], bytes, bytes.into(), None);
        self.emit(Op::CpCommit { whole: true });
        Ok(Vec::new())
    }

    /// `tensor.load.to.lds` and `tensor.store.from.lds`, with two groups of words of a descriptor (`.d2`) or four.
    fn tensor_move(&mut self, name: &str, rest: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let loads = match rest.strip_suffix(".d2").unwrap_or(rest) {
            "load.to.lds" => true,
            "store.from.lds" => false,
            _ => return Err(unknown()),
        };
        let cpu = self.gpu.demand("it is one of gfx1250").map_err(|err| err.to_string())?;
        let [groups @ .., _] = args else { return Err(unknown()) };
        let sizes: Vec<usize> = groups.iter().map(Vec::len).collect();
        if cpu.name != "gfx1250" || !matches!(sizes[..], [4, 8] | [4, 8, 4, 4]) {
            return Err(unknown());
        }
        let words = groups.iter().flatten().copied().collect();
        self.emit(Op::TensorMove { loads, words });
        Ok(Vec::new())
    }

    fn copy_to_lds(&mut self, src: Src, addr: Src, bytes: u8, align: u32, read: Option<Src>) {
        let dst = Access {
            space: Space::Shared,
            addr,
            offset: 0,
            bytes,
            align,
            pred: None,
            gaps: 0,
            order: Order::default(),
            buffer: None,
        };
        self.emit(Op::CpAsync { dst, src, src_bytes: read });
    }

    /// `raw.ptr.buffer.load.lds`: lanes whose offset is outside of the buffer write zeros.
    fn buffer_to_lds(&mut self, name: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let [rsrc, to, bytes, voffset, soffset, offset, ..] = args else { return Err(unknown()) };
        let known = |d: &Self, arg: &[Src]| d.known(*arg.first()?);
        let (Some(bytes), Some(0), [base, count]) = (known(self, bytes), known(self, offset), &rsrc[..])
        else {
            return Err(unknown());
        };
        let mut at = voffset[0];
        if known(self, soffset) != Some(0) {
            at = self.int_op(IntOp::Add, 32, at, soffset[0]);
        }
        let at = self.value(|d| Op::Cvt { cvt: Cvt::Zext(32), d, a: at });
        let (size, zero) = (self.constant(bytes), self.constant(0));
        let end = self.int_op(IntOp::Add, 64, at, size);
        let outside = self.value(|d| Op::ICmp { op: Cmp::UGt, w: 64, d, a: end, b: *count });
        let read = self.value(|d| Op::Select { d, c: outside, a: zero, b: size });
        let from = self.int_op(IntOp::Add, 64, *base, at);
        self.write_lds(name, from, to[0], bytes, Some(read))
    }

    /// A load of `bytes` bytes a lane that writes the lanes of a wave one after the other, at the address of the first
    /// (CDNA3 ISA, "Memory Buffer Load to LDS"). Each is waited for by its number, but those that are named
    /// asynchronous by marks.
    fn write_lds(&mut self, name: &str, src: Src, to: Src, bytes: u64, read: Option<Src>) -> What<Vec<Src>> {
        if !matches!(bytes, 4 | 12 | 16) {
            return Err(format!("the intrinsic @llvm.amdgcn.{name} of {bytes} bytes"));
        }
        let first = self.value(|d| Op::ReadLane { d, v: to, lane: None });
        let (all, zero, size) = (self.constant(u64::MAX), self.constant(0), self.constant(bytes));
        let low = self.value(|d| Op::Mbcnt { d, high: false, mask: all, a: zero });
        let lane = self.value(|d| Op::Mbcnt { d, high: true, mask: all, a: low });
        let own = self.int_op(IntOp::Mul, 32, lane, size);
        let addr = self.int_op(IntOp::Add, 32, first, own);
        self.pinned_in = None;
        self.copy_to_lds(src, addr, bytes as u8, 4, read);
        if !name.contains(".async.") {
            self.emit(Op::CpCommit { whole: true });
        }
        Ok(Vec::new())
    }

    /// `ds.read.tr16.b64`, `ds.read.tr8.b64` and those of gfx1250, `ds.load.tr16.b128` and `ds.load.tr8.b64`: a read of 8 or 16 bytes,
    /// and an exchange among lanes.
    fn transposed_read(&mut self, name: &str, inst: &Inst, address: Src) -> What<Vec<Src>> {
        let parts: Vec<&str> = name.split('.').take(4).collect();
        let (cpu, kind, bytes) = match parts[..] {
            [_, "read", "tr16", "b64"] => ("gfx950", Permute::Transpose(16), 8),
            [_, "read", "tr8", "b64"] => ("gfx950", Permute::Transpose(8), 8),
            [_, "load", "tr16", "b128"] => ("gfx1250", Permute::Square, 16),
            [_, "load", "tr8", "b64"] => ("gfx1250", Permute::Squares, 8),
            _ => return Err(unknown(name)),
        };
        if self.gpu.demand(&format!("it is one of {cpu}")).map_err(|err| err.to_string())?.name != cpu {
            return Err(unknown(name));
        }
        let at = Access {
            space: Space::Shared,
            addr: address,
            offset: 0,
            bytes,
            align: bytes.into(),
            pred: None,
            gaps: 0,
            order: Order::default(),
            buffer: None,
        };
        if bytes == 8 {
            let v = self.load(&Ty::Int(64), at)?[0];
            let word = self.value(|d| Op::Permute { kind, d, d2: None, v, idx: v, c: v });
            return Ok(self.unpack(&inst.ty, word));
        }
        let read = self.load(&Ty::Vec(Box::new(Ty::Int(64)), 2), at)?;
        let [v, c] = read[..] else { return Err(unknown(name)) };
        let (d, d2) = (self.fresh(), self.fresh());
        self.emit(Op::Permute { kind, d, d2: Some(d2), v, idx: v, c });
        let half = match &inst.ty {
            Ty::Vec(element, n) => Ty::Vec(element.clone(), n / 2),
            _ => return Err(unknown(name)),
        };
        let mut all = self.unpack(&half, Src::reg(d));
        all.extend(self.unpack(&half, Src::reg(d2)));
        Ok(all)
    }

    /// `update.dpp`, of every register of a value.
    fn amd_dpp(&mut self, name: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let imm = |i: usize| args.get(i).and_then(|v| self.known(v[0])).ok_or_else(unknown);
        let (ctrl, row_mask, bank_mask, bound) = (imm(2)?, imm(3)?, imm(4)?, imm(5)?);
        let mut out = Vec::new();
        for (old, v) in args[0].iter().zip(&args[1]) {
            let d = self.fresh();
            self.emit(Op::Dpp(Box::new(Dpp {
                d,
                old: *old,
                v: *v,
                ctrl: ctrl as u16,
                row_mask: row_mask as u8,
                bank_mask: bank_mask as u8,
                bound_ctrl: bound != 0,
            })));
            out.push(Src::reg(d));
        }
        Ok(out)
    }

    /// Arithmetic.
    fn amd_math(&mut self, name: &str, base: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let a = |i: usize| args.get(i).and_then(|v| v.first()).copied().ok_or_else(unknown);
        match base {
            "perm" => {
                let (x, y, c) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::IntTern { op: IntTern::AmdPerm, w: 32, d, a: x, b: y, c })])
            }
            "ubfe" | "sbfe" => {
                let op = if base == "ubfe" { IntTern::BfeU } else { IntTern::BfeS };
                let (x, y, c) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::IntTern { op, w: inst.ty.bits() as u8, d, a: x, b: y, c })])
            }
            "alignbit" | "alignbyte" => {
                let (x, y, mut c) = (a(0)?, a(1)?, a(2)?);
                if base == "alignbyte" {
                    let three = self.constant(3);
                    c = self.int_op(IntOp::Shl, 32, c, three);
                }
                Ok(vec![self.value(|d| Op::IntTern { op: IntTern::Fshr, w: 32, d, a: x, b: y, c })])
            }
            "frexp.exp" => {
                let (f, x) = (fmt(&inst.arg_tys[0])?, a(0)?);
                let op = FloatUn::FrexpExp;
                // Powers of f64 fit in an f32.
                let round = Round::Nearest;
                let power = self.value(|d| Op::FloatUn { op, f, round, ftz: false, approx: false, d, a: x });
                let width = inst.ty.bits() as u8;
                let cvt = Cvt::FloatToInt { from: f, width, signed: true, round: Round::Zero, top: false };
                Ok(vec![self.value(|d| Op::Cvt { cvt, d, a: power })])
            }
            _ if function(base).is_some() => {
                let (op, f, x) = (function(base).ok_or_else(unknown)?, fmt(&inst.ty)?, a(0)?);
                // The transcendental units flush subnormals of f32 only for exp2, log and sine.
                let make =
                    |d| Op::FloatUn { op, f, round: Round::Nearest, ftz: false, approx: true, d, a: x };
                Ok(vec![self.value(make)])
            }
            "trig.preop" => {
                let (x, segment) = (a(0)?, a(1)?);
                Ok(vec![self.float_op(FloatOp::TwoByPi, Fmt::F64, x, segment)])
            }
            "fdiv.fast" => {
                let (x, y) = (a(0)?, a(1)?);
                Ok(vec![self.float_op(FloatOp::Div, Fmt::F32, x, y)])
            }
            "fmed3" => {
                if fmt(&inst.ty)? != Fmt::F32 {
                    return Err(unknown());
                }
                let (x, y, c) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::Med3 { d, a: x, b: y, c })])
            }
            "fdot2" => {
                // Other names have sums of 16 bits.
                let f = match name {
                    "fdot2" => Fmt::F16,
                    "fdot2.f32.bf16" => Fmt::BF16,
                    _ => return Err(unknown()),
                };
                let c = a(2)?;
                let (x, y) = ([args[0][0], args[0][1]], [args[1][0], args[1][1]]);
                Ok(vec![self.value(|d| Op::Dot2 { f, d, a: x, b: y, c })])
            }
            "sdot4" => {
                // Sums wrap where they are not clamped.
                if self.known(a(3)?) != Some(0) {
                    return Err(unknown());
                }
                let (x, y, c) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::IntTern { op: IntTern::Dp4aS, w: 32, d, a: x, b: y, c })])
            }
            "cvt.pkrtz" => {
                let cvt = Cvt::Float {
                    from: Fmt::F32,
                    to: Fmt::F16,
                    round: Round::Zero,
                    saturate: false,
                    relu: false,
                    ftz: false,
                };
                let (x, y) = (a(0)?, a(1)?);
                Ok(vec![self.value(|d| Op::Cvt { cvt, d, a: x }), self.value(|d| Op::Cvt { cvt, d, a: y })])
            }
            _ => self.amd_fp8_conversion(name, base, args),
        }
    }

    /// Conversions of 8-bit floats.
    fn amd_fp8_conversion(&mut self, name: &str, base: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || unknown(name);
        let a = |i: usize| args.get(i).and_then(|v| v.first()).copied().ok_or_else(unknown);
        match base {
            "cvt.pk.f32.fp8" | "cvt.pk.f32.bf8" | "cvt.f32.fp8" | "cvt.f32.bf8" => {
                let from = self.amd_fp8(name.ends_with("bf8"))?;
                let select = self.known(a(1)?).ok_or_else(unknown)? as u8;
                let x = a(0)?;
                let mut one = |shift: u8| {
                    let code = self.value(|d| Op::Bits { d, a: x, shift, width: 8 });
                    self.value(|d| Op::Cvt { cvt: Cvt::FromCode { from, to: Fmt::F32 }, d, a: code })
                };
                if name.contains(".pk.") {
                    Ok(vec![one(select * 16), one(select * 16 + 8)])
                } else {
                    Ok(vec![one(select * 8)])
                }
            }
            "cvt.scalef32.pk.f16.fp4" | "cvt.scalef32.pk.bf16.fp4" => {
                // CDNA4 ISA, V_CVT_SCALEF32_PK_F16_FP4: a byte of the source, times the power of two of the scale.
                let to = if base.contains(".bf16.") { Fmt::BF16 } else { Fmt::F16 };
                let (byte, scale) = (self.known(a(2)?).ok_or_else(unknown)? as u8, self.known(a(1)?));
                if scale != Some(u64::from(1f32.to_bits())) {
                    return Err("a scale other than one".to_owned());
                }
                let x = a(0)?;
                let mut one = |shift: u8| {
                    let code = self.value(|d| Op::Bits { d, a: x, shift, width: 4 });
                    self.value(|d| Op::Cvt { cvt: Cvt::FromCode { from: num::E2M1, to }, d, a: code })
                };
                Ok(vec![one(byte * 8), one(byte * 8 + 4)])
            }
            "cvt.pk.fp8.f32" | "cvt.pk.bf8.f32" => {
                let to = self.amd_fp8(name.contains("bf8"))?;
                let (x, y, old) = (a(0)?, a(1)?, a(2)?);
                let high = self.known(a(3)?).ok_or_else(unknown)? != 0;
                let cvt =
                    Cvt::ToCode { from: Fmt::F32, to, round: Round::Nearest, saturate: false, relu: false };
                let (lo, hi) =
                    (self.value(|d| Op::Cvt { cvt, d, a: x }), self.value(|d| Op::Cvt { cvt, d, a: y }));
                let pair = self.join(&[lo, hi], 8);
                // What is undefined all over does not make the half undefined that is written here.
                let old = if self.is_undefined(old) { self.constant(0) } else { old };
                let keep =
                    self.value(|d| Op::Bits { d, a: old, shift: if high { 0 } else { 16 }, width: 16 });
                Ok(vec![if high { self.join(&[keep, pair], 16) } else { self.join(&[pair, keep], 16) }])
            }
            _ => Err(unknown()),
        }
    }

    /// The 8-bit format of conversions.
    fn amd_fp8(&self, bf8: bool) -> What<num::Format> {
        let cpu = self.gpu.demand("its 8-bit floats depend on it").map_err(|e| e.to_string())?;
        Ok(match (cpu.fp8, bf8) {
            (Fp8::Fnuz, true) => num::E5M2_FNUZ,
            (Fp8::Fnuz, false) => num::E4M3_FNUZ,
            (Fp8::Ocp, true) => num::E5M2,
            (Fp8::Ocp, false) => num::E4M3,
            (Fp8::None, _) => return Err(format!("8-bit floats, which {} does not have", cpu.name)),
        })
    }

    /// The 8-bit format of matrix instructions.
    fn amd_fp8_elem(&self, bf8: bool) -> Option<Elem> {
        Some(match (self.gpu.cpu?.fp8, bf8) {
            (Fp8::Fnuz, true) => Elem::E5M2Fnuz,
            (Fp8::Fnuz, false) => Elem::E4M3Fnuz,
            (Fp8::Ocp, true) => Elem::E5M2,
            (Fp8::Ocp, false) => Elem::E4M3,
            (Fp8::None, _) => return None,
        })
    }

    fn raw_buffer(&mut self, rest: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let mut parts = rest.split('.');
        let kind = parts.next().unwrap_or("");
        // Loads: rsrc, voffset, soffset, aux; stores and atomics have the value first.
        let first = usize::from(kind != "load");
        let (Some(rsrc), Some(voffset), Some(soffset)) =
            (args.get(first), args.get(first + 1), args.get(first + 2))
        else {
            return Err(String::new());
        };
        if rest.contains(".lds") || rsrc.len() != 2 {
            return Err(String::new());
        }
        let mut offset = voffset[0];
        if self.known(soffset[0]) != Some(0) {
            offset = self.int_op(IntOp::Add, 32, offset, soffset[0]);
        }
        let mut at = Access {
            space: Space::Global,
            addr: rsrc[0],
            offset: 0,
            bytes: 0,
            align: 1,
            pred: None,
            gaps: 0,
            order: Order { strong: kind == "atomic", ..Order::default() },
            buffer: Some((rsrc[1], offset)),
        };
        match kind {
            "load" => {
                let loaded = self.load(&inst.ty, at)?;
                // The counter of loads that write the LDS counts it, too, but on gfx1250, where they have their own.
                if self.pinned_in == Some(self.current)
                    && self.gpu.cpu.is_none_or(|cpu| cpu.name != "gfx1250")
                    && inst.ty.scalars().iter().map(Ty::bits).sum::<u32>() == 128
                {
                    self.emit(Op::CpCommit { whole: true });
                }
                Ok(loaded)
            }
            "store" => {
                self.store(&inst.arg_tys[0], &args[0], at)?;
                Ok(Vec::new())
            }
            "atomic" => {
                let op = parts.next().unwrap_or("");
                let ty = &inst.arg_tys[0];
                let op = match op {
                    "swap" => AtomOp::Exch,
                    "add" => AtomOp::Add,
                    "sub" => AtomOp::Sub,
                    "and" => AtomOp::And,
                    "or" => AtomOp::Or,
                    "xor" => AtomOp::Xor,
                    "smax" => AtomOp::SMax,
                    "smin" => AtomOp::SMin,
                    "umax" => AtomOp::UMax,
                    "umin" => AtomOp::UMin,
                    "fadd" if args[0].len() == 2 => AtomOp::FAdd2(fmt(ty.element())?),
                    "fadd" => AtomOp::FAdd(fmt(ty)?),
                    "fmax" => AtomOp::FMax(fmt(ty)?),
                    "fmin" => AtomOp::FMin(fmt(ty)?),
                    _ => return Err(String::new()),
                };
                let total: u32 = ty.scalars().iter().map(Ty::bits).sum();
                at.bytes = (total / 8) as u8;
                at.align = u32::from(at.bytes);
                let v = if args[0].len() > 1 { self.pack(ty, &args[0]) } else { args[0][0] };
                let d = self.fresh();
                self.emit(Op::Atom { op, d: vec![d].into(), v: vec![v].into(), cmp: Box::new([]), at });
                if args[0].len() > 1 { Ok(self.unpack(ty, Src::reg(d))) } else { Ok(vec![Src::reg(d)]) }
            }
            _ => Err(String::new()),
        }
    }

    fn mfma(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.amdgcn.{name}");
        let mut parts = name.split('.').skip(1);
        let cd = match parts.next() {
            Some("f32") => Elem::F32,
            Some("f64") => Elem::F64,
            Some("i32") => Elem::S32,
            _ => return Err(unknown()),
        };
        // `32x32x8f16` or `32x32x4` with the type in the next part.
        let dims = parts.next().ok_or_else(unknown)?;
        let cut = dims.find(|c: char| c.is_ascii_alphabetic() && c != 'x').unwrap_or(dims.len());
        let split = if dims[..cut].ends_with('x') { cut - 1 } else { cut };
        let numbers: Vec<u32> = dims[..split].split('x').filter_map(|n| n.parse().ok()).collect();
        let [m, n, k] = numbers[..] else { return Err(unknown()) };
        let (first, second) = if split < dims.len() {
            (&dims[split..], None)
        } else {
            (parts.next().ok_or_else(unknown)?, parts.next())
        };
        let elem = |t: &str| {
            Some(match t {
                "f16" => Elem::F16,
                "bf16" => Elem::BF16,
                "f32" => Elem::F32,
                "xf32" => Elem::Tf32,
                "f64" => Elem::F64,
                "i8" => Elem::S8,
                "fp8" | "bf8" => self.amd_fp8_elem(t == "bf8")?,
                _ => return None,
            })
        };
        let ea = elem(first).ok_or_else(unknown)?;
        let eb = second.and_then(elem).unwrap_or(ea);
        let per_lane: u32 = inst.arg_tys[0].scalars().iter().map(Ty::bits).sum::<u32>() / ea.bits();
        let blocks = 64 * per_lane / (m * k);
        if args[3..].iter().any(|x| self.known(x[0]) != Some(0)) {
            return Err(format!("the intrinsic @llvm.amdgcn.{name} with broadcast or negation"));
        }
        self.matrix(
            MmaLayout::Mfma { blocks },
            (m, n, k),
            (ea, eb),
            cd,
            false,
            [&args[0], &args[1], &args[2]],
        )
        .ok_or_else(unknown)
    }

    /// `mfma.scale.f32.16x16x128.f8f6f4`: the operands' formats, and which byte of which register has their scales. Where
    /// all four of those are zero, LLVM takes the instruction without scales.
    fn mfma_narrow(&mut self, name: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.amdgcn.{name}");
        let parts: Vec<&str> = name.split('.').collect();
        let shape = match parts.get(3) {
            Some(&"16x16x128") => (16, 16, 128),
            Some(&"32x32x64") => (32, 32, 64),
            _ => return Err(unknown()),
        };
        if parts.get(2) != Some(&"f32") || parts.get(4) != Some(&"f8f6f4") || args.len() != 9 {
            return Err(unknown());
        }
        let number = |d: &Self, at: usize| d.known(args[at][0]);
        let elem = |d: &Self, at: usize| match number(d, at)? {
            0 => Some(Elem::E4M3),
            1 => Some(Elem::E5M2),
            4 => Some(Elem::E2M1),
            _ => None,
        };
        let (Some(a), Some(b)) = (elem(self, 3), elem(self, 4)) else {
            return Err(format!("the intrinsic @llvm.amdgcn.{name} in this format"));
        };
        let byte = |d: &Self, at: usize| number(d, at).filter(|byte| *byte < 4).map(|byte| byte as u8);
        let (Some(first), Some(second)) = (byte(self, 5), byte(self, 7)) else { return Err(unknown()) };
        let plain = (5..9).all(|at| number(self, at) == Some(0));
        let scales = (!plain).then(|| ([args[6][0], args[8][0]], [first, second]));
        let operands = [&args[0], &args[1], &args[2]];
        let layout = MmaLayout::MfmaNarrow;
        self.scaled_matrix(layout, shape, (a, b), (Elem::F32, false), operands, scales).ok_or_else(unknown)
    }

    fn wmma(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.amdgcn.{name}");
        let parts: Vec<&str> = name.split('.').collect();
        let (Some(cd), Some(dims), Some(t)) = (parts.get(1), parts.get(2), parts.get(3)) else {
            return Err(unknown());
        };
        if *cd == "i32" && *dims == "16x16x16" && self.gpu.lanes == 32 {
            return self.wmma_integer(t, inst, args).ok_or_else(unknown);
        }
        if let Some(k @ (4 | 32 | 64 | 128)) = dims.strip_prefix("16x16x").and_then(|k| k.parse().ok()) {
            return self.wmma_gfx1250(name, k, args);
        }
        let elem = |t: &str| {
            Some(match t {
                "f16" => Elem::F16,
                "bf16" => Elem::BF16,
                "fp8" | "bf8" => self.amd_fp8_elem(t == "bf8")?,
                _ => return None,
            })
        };
        let ea = elem(t).ok_or_else(unknown)?;
        let eb = parts.get(4).and_then(|t| elem(t)).unwrap_or(ea);
        if *cd != "f32" || *dims != "16x16x16" || self.gpu.lanes != 32 {
            return Err(unknown());
        }
        let per_lane: u32 = inst.arg_tys[0].scalars().iter().map(Ty::bits).sum::<u32>() / ea.bits();
        let layout = if per_lane == 16 { MmaLayout::WmmaGfx11 } else { MmaLayout::WmmaGfx12 };
        self.matrix(layout, (16, 16, 16), (ea, eb), Elem::F32, false, [&args[0], &args[1], &args[2]])
            .ok_or_else(unknown)
    }

    /// Those of gfx1250 (LLVM's `IntrinsicsAMDGPU`): operands with what is done to their signs, and whether instructions behind use them
    /// again, which says nothing of the result.
    fn wmma_gfx1250(&mut self, name: &str, k: u32, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.amdgcn.{name}");
        let parts: Vec<&str> = name.split('.').collect();
        let [_, cd, _, t, ..] = parts[..] else { return Err(unknown()) };
        let cpu = self.gpu.demand("it is one of gfx1250").map_err(|err| err.to_string())?;
        if cpu.name != "gfx1250" {
            return Err(unknown());
        }
        let flag = |d: &Self, s: &[Src]| d.known(*s.first()?);
        let (cd, ab, modifiers, operands) = match (cd, t, args) {
            ("i32", "iu8", [sign_a, a, sign_b, b, c, _, _, clamp]) => {
                let signed =
                    |d: &Self, sign: &[Src]| Some(if flag(d, sign)? & 1 != 0 { Elem::S8 } else { Elem::U8 });
                let ab = signed(self, sign_a).zip(signed(self, sign_b)).ok_or_else(unknown)?;
                (Elem::S32, ab, vec![clamp], [a, b, c])
            }
            ("f32", "f32" | "f16" | "bf16", [a_sign, a, b_sign, b, c_sign, c, _, _]) => {
                let elem = match t {
                    "f32" => Elem::F32,
                    "f16" => Elem::F16,
                    _ => Elem::BF16,
                };
                (Elem::F32, (elem, elem), vec![a_sign, b_sign, c_sign], [a, b, c])
            }
            ("f32", "fp8" | "bf8", [a, b, c_sign, c, _, _]) => {
                let second = parts.get(4).filter(|t| matches!(**t, "fp8" | "bf8")).ok_or_else(unknown)?;
                let elem = |t: &str| self.amd_fp8_elem(t == "bf8");
                let ab = elem(t).zip(elem(second)).ok_or_else(unknown)?;
                (Elem::F32, ab, vec![c_sign], [a, b, c])
            }
            _ => return Err(unknown()),
        };
        if modifiers.into_iter().any(|modifier| flag(self, modifier) != Some(0)) {
            return Err(format!("the intrinsic @llvm.amdgcn.{name} with negation or clamping"));
        }
        let layout = MmaLayout::WmmaGfx1250;
        self.matrix(layout, (16, 16, k), ab, cd, false, operands).ok_or_else(unknown)
    }

    /// `wmma.scale.f32.16x16x128.f8f6f4` of gfx1250: operands with their formats, scales with the half of the wave that has them and their own
    /// format, and flags.
    fn wmma_scaled(&mut self, name: &str, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.amdgcn.{name}");
        let cpu = self.gpu.demand("it is one of gfx1250").map_err(|err| err.to_string())?;
        let is_known = name.starts_with("wmma.scale.f32.16x16x128.f8f6f4") && cpu.name == "gfx1250";
        let [left, a, right, b, c_sign, c, half_a, kind_a, scale_a, half_b, kind_b, scale_b, _, _] = args
        else {
            return Err(unknown());
        };
        let number = |d: &Self, s: &[Src]| d.known(*s.first()?);
        let elem = |d: &Self, s: &[Src]| match number(d, s)? {
            0 => Some(Elem::E4M3),
            1 => Some(Elem::E5M2),
            4 => Some(Elem::E2M1),
            _ => None,
        };
        let Some(ab) = elem(self, left).zip(elem(self, right)).filter(|_| is_known) else {
            return Err(format!("the intrinsic @llvm.amdgcn.{name} in this format"));
        };
        if [c_sign, kind_a, kind_b].into_iter().any(|flag| number(self, flag) != Some(0)) {
            return Err(format!(
                "the intrinsic @llvm.amdgcn.{name} with negation, or scales of another format"
            ));
        }
        let half = |d: &Self, s: &[Src]| number(d, s).filter(|half| *half < 2).map(|half| half as u8);
        let halves = half(self, half_a).zip(half(self, half_b)).ok_or_else(unknown)?;
        let scales = ([scale_a[0], scale_b[0]], [halves.0, halves.1]);
        let (layout, shape, sums) = (MmaLayout::WmmaGfx1250, (16, 16, 128), (Elem::F32, false));
        self.scaled_matrix(layout, shape, ab, sums, [a, b, c], Some(scales)).ok_or_else(unknown)
    }

    /// `wmma.i32.16x16x16.iu8` and `.iu4`: flags say which operands are signed, and whether sums are clamped.
    fn wmma_integer(&mut self, t: &str, inst: &Inst, args: &[Vec<Src>]) -> Option<Vec<Src>> {
        let [sign_a, a, sign_b, b, c, clamp] = args else { return None };
        let flag = |d: &Self, s: &[Src]| d.known(*s.first()?).map(|v| v & 1 != 0);
        let elem = |signed: bool| match (t, signed) {
            ("iu8", true) => Some(Elem::S8),
            ("iu8", false) => Some(Elem::U8),
            ("iu4", true) => Some(Elem::S4),
            ("iu4", false) => Some(Elem::U4),
            _ => None,
        };
        let (ea, eb) = (elem(flag(self, sign_a)?)?, elem(flag(self, sign_b)?)?);
        let per_lane = inst.arg_tys[1].scalars().iter().map(Ty::bits).sum::<u32>() / ea.bits();
        let layout = if per_lane == 16 { MmaLayout::WmmaGfx11 } else { MmaLayout::WmmaGfx12 };
        let saturate = flag(self, clamp)?;
        self.matrix(layout, (16, 16, 16), (ea, eb), Elem::S32, saturate, [a, b, c])
    }

    fn matrix(
        &mut self,
        layout: MmaLayout,
        shape: (u32, u32, u32),
        ab: (Elem, Elem),
        cd: Elem,
        saturate: bool,
        operands: [&Vec<Src>; 3],
    ) -> Option<Vec<Src>> {
        self.scaled_matrix(layout, shape, ab, (cd, saturate), operands, None)
    }

    /// The same with a register of scales for a and for b, and which of its bytes they are.
    fn scaled_matrix(
        &mut self,
        layout: MmaLayout,
        shape: (u32, u32, u32),
        ab: (Elem, Elem),
        (cd, saturate): (Elem, bool),
        [a, b, c]: [&Vec<Src>; 3],
        scales: Option<([Src; 2], [u8; 2])>,
    ) -> Option<Vec<Src>> {
        let d: Vec<Reg> = c.iter().map(|_| self.fresh()).collect();
        let mma = Mma {
            layout,
            shape,
            ab,
            cd,
            d: d.clone().into(),
            a: a.clone().into(),
            b: b.clone().into(),
            c: c.clone().into(),
            saturate,
            scales: scales.map_or(Vec::new(), |scales| scales.0.to_vec()).into(),
            scale_bytes: scales.map_or([0; 2], |scales| scales.1),
            places: OnceLock::new(),
        };
        if !crate::mma::supported(&mma) {
            return None;
        }
        self.emit(Op::Mma(Box::new(mma)));
        Some(d.into_iter().map(Src::reg).collect())
    }
}
