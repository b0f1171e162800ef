//! NVVM intrinsics (names without `llvm.nvvm.`).
//!
//! Sources: LLVM's "User Guide for NVPTX Back-end" and IntrinsicsNVVM for names and operands, the PTX ISA
//! for what they do.

use super::{Decoder, What};
use crate::bytecode::*;
use crate::ir::{Inst, Order, Ty};
use crate::mem::{GLOBAL_BASE, LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::num::{self, Round};

fn axis(c: &str) -> u8 {
    match c {
        "x" => 0,
        "y" => 1,
        _ => 2,
    }
}

/// What `redux.sync` and `vote` compute.
fn vote(name: &str) -> Option<Vote> {
    Some(match name.trim_end_matches(".sync") {
        "redux.sync.add" => Vote::Add,
        "redux.sync.min" => Vote::SMin,
        "redux.sync.max" => Vote::SMax,
        "redux.sync.umin" => Vote::UMin,
        "redux.sync.umax" => Vote::UMax,
        "redux.sync.and" => Vote::And,
        "redux.sync.or" => Vote::Or,
        "redux.sync.xor" => Vote::Xor,
        "vote.all" => Vote::All,
        "vote.any" => Vote::Any,
        "vote.uni" => Vote::Uni,
        "vote.ballot" => Vote::Ballot,
        _ => return None,
    })
}

/// Functions of one float, by the first part of the intrinsic's name.
fn float_un(part: &str) -> Option<FloatUn> {
    Some(match part {
        "ex2" => FloatUn::Exp2,
        "lg2" => FloatUn::Log2,
        "rcp" => FloatUn::Rcp,
        "rsqrt" => FloatUn::Rsqrt,
        "sqrt" => FloatUn::Sqrt,
        "sin" => FloatUn::Sin,
        "cos" => FloatUn::Cos,
        "tanh" => FloatUn::Tanh,
        "floor" => FloatUn::Floor,
        "ceil" => FloatUn::Ceil,
        "trunc" => FloatUn::Trunc,
        "round" => FloatUn::Rint,
        "fabs" => FloatUn::Abs,
        "neg" => FloatUn::Neg,
        _ => return None,
    })
}

/// Functions of two floats; `nan` says that one that is no number gives none.
fn float_op(part: &str, nan: bool) -> Option<FloatOp> {
    Some(match part {
        "add" => FloatOp::Add,
        "mul" => FloatOp::Mul,
        "div" => FloatOp::Div,
        "fmin" if nan => FloatOp::Minimum,
        "fmax" if nan => FloatOp::Maximum,
        "fmin" => FloatOp::Min,
        "fmax" => FloatOp::Max,
        _ => return None,
    })
}

/// The rounding that an intrinsic's name says.
fn rounding(parts: &[&str]) -> Round {
    let modes = [("rz", Round::Zero), ("rm", Round::Down), ("rp", Round::Up)];
    modes.into_iter().find(|(part, _)| parts.contains(part)).map_or(Round::Nearest, |(_, round)| round)
}

impl Decoder<'_> {
    pub(super) fn special(&mut self, what: Special) -> Src {
        self.value(|d| Op::Special { d, what })
    }

    pub(super) fn nvvm(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let unknown = || format!("the intrinsic @llvm.nvvm.{name}");
        let a = |i: usize| args.get(i).and_then(|v| v.first()).copied().ok_or_else(unknown);
        if let Some(reg) = name.strip_prefix("read.ptx.sreg.") {
            return self.sreg(reg).map(|s| vec![s]).ok_or_else(unknown);
        }
        if let Some(kind) = name.strip_prefix("shfl.sync.") {
            return self.shfl_intrinsic(kind, args).ok_or_else(unknown);
        }
        if let Some(kind) = vote(name) {
            let (v, mask) = if name.starts_with("vote.") { (a(1)?, a(0)?) } else { (a(0)?, a(1)?) };
            return Ok(vec![self.value(|d| Op::Vote { kind, d, v, mask })]);
        }
        if let Some(v) = self.nvvm_as_ptx(name, inst, args) {
            return v;
        }
        if let Some(v) = self.pair_conversion(name, args) {
            return Ok(v);
        }
        if name.starts_with("ldmatrix.sync.aligned.") || name.starts_with("stmatrix.sync.aligned.") {
            return self.matrix_intrinsic(name, inst, args);
        }
        if let Some(op) = self.nvvm_order(name, a)? {
            self.emit(op);
            return Ok(Vec::new());
        }
        match name {
            "elect.sync" => {
                let (d, p, mask) = (self.fresh(), self.fresh(), a(0)?);
                self.emit(Op::Elect { d: Some(d), p, mask });
                Ok(vec![Src::reg(d), Src::reg(p)])
            }
            "activemask" => Ok(vec![self.special(Special::ActiveMask)]),
            "is_explicit_cluster" => {
                let (size, one) = (self.special(Special::ClusterSize), self.constant(1));
                Ok(vec![self.value(|d| Op::ICmp { op: Cmp::UGt, w: 32, d, a: size, b: one })])
            }
            "isspacep.shared" | "isspacep.shared.cluster" | "isspacep.local" => {
                let window = if name.ends_with("local") { LOCAL_WINDOW } else { SHARED_WINDOW };
                let (base, size, p) = (self.constant(window), self.constant(WINDOW), a(0)?);
                let offset = self.int_op(IntOp::Sub, 64, p, base);
                Ok(vec![self.value(|d| Op::ICmp { op: Cmp::ULt, w: 64, d, a: offset, b: size })])
            }
            "isspacep.global" => {
                let (base, p) = (self.constant(GLOBAL_BASE), a(0)?);
                Ok(vec![self.value(|d| Op::ICmp { op: Cmp::UGe, w: 64, d, a: p, b: base })])
            }
            "setmaxnreg.inc.sync.aligned.u32" | "setmaxnreg.dec.sync.aligned.u32" => self.nop("setmaxnreg"),
            "nanosleep" => self.nop("nanosleep"),
            "griddepcontrol.wait" | "griddepcontrol.launch.dependents" => self.nop("griddepcontrol"),
            "prmt" => {
                let (x, y, c) = (a(0)?, a(1)?, a(2)?);
                Ok(vec![self.value(|d| Op::IntTern { op: IntTern::Prmt, w: 32, d, a: x, b: y, c })])
            }
            _ if name.starts_with("fence.") => self.nop("fence"),
            _ if name.starts_with("move.") || name.starts_with("internal.addrspace.wrap") => Ok(vec![a(0)?]),
            _ => self.nvvm_math(name, inst, args).ok_or_else(unknown),
        }
    }

    /// What orders threads and memory, and gives nothing: barriers, fences, ends and waits of groups of copies and dots.
    fn nvvm_order(&mut self, name: &str, a: impl Fn(usize) -> What<Src>) -> What<Option<Op>> {
        let bar = |id, threads, wait| Op::Bar { id, threads, wait, reduce: None, pred: None };
        let keep = |what: &str| -> What<u32> {
            let known = self.known(a(0)?);
            known.map(|n| n as u32).ok_or_else(|| format!("a {what} of a variable number"))
        };
        Ok(Some(match name {
            "bar.warp.sync" => Op::WarpSync { mask: a(0)? },
            "barrier0" | "syncthreads" => bar(self.constant(0), None, true),
            "barrier.cta.sync.aligned.all" | "barrier.cta.sync.all" | "barrier.n" | "barrier.sync" => {
                bar(a(0)?, None, true)
            }
            "barrier.cta.sync.aligned.count" | "barrier.cta.sync.count" | "barrier" | "barrier.sync.cnt" => {
                bar(a(0)?, Some(a(1)?), true)
            }
            "barrier.cta.arrive.aligned.count" | "barrier.cta.arrive.count" => bar(a(0)?, Some(a(1)?), false),
            "cp.async.commit.group" => Op::CpCommit { whole: false },
            "cp.async.wait.group" => Op::CpWait { keep: keep("cp.async.wait.group")? },
            "cp.async.wait.all" => Op::CpWait { keep: 0 },
            "cp.async.bulk.commit.group" => Op::BulkCommit { pred: None },
            "cp.async.bulk.wait.group" | "cp.async.bulk.wait.group.read" => {
                Op::BulkWait { keep: keep("bulk wait")?, pred: None }
            }
            "wgmma.commit_group.sync.aligned" => Op::WgmmaCommit,
            "wgmma.wait_group.sync.aligned" => {
                Op::WgmmaWait { keep: keep("wgmma.wait_group")?, regs: Box::new([]) }
            }
            "wgmma.fence.sync.aligned" => Op::WgmmaFence,
            "membar.cta" | "membar.gl" | "membar.sys" => Op::Fence { order: Order::BOTH, device: true },
            "exit" => Op::Exit,
            _ if name.starts_with("fence.proxy.async") => Op::FenceAsync { device: !name.contains("shared") },
            _ if name.starts_with("fence.sc") || name.starts_with("fence.acq_rel") => {
                Op::Fence { order: Order::BOTH, device: true }
            }
            _ => return Ok(None),
        }))
    }

    pub(super) fn nop(&mut self, what: &'static str) -> What<Vec<Src>> {
        self.emit(Op::Nop(what));
        Ok(Vec::new())
    }

    pub(super) fn sreg(&mut self, name: &str) -> Option<Src> {
        // Intrinsics write dots where PTX has underscores.
        let name = name.replacen("cluster.", "cluster_", 1).replacen("lanemask_", "lanemask.", 1);
        let (base, ax) = name.split_once('.').unwrap_or((&name, "x"));
        let what = match base {
            "tid" => Special::Tid(axis(ax)),
            "ntid" => Special::NTid(axis(ax)),
            "ctaid" => Special::Ctaid(axis(ax)),
            "nctaid" => Special::NCtaid(axis(ax)),
            "laneid" => Special::LaneId,
            "warpid" => Special::WarpId,
            "warpsize" => return Some(self.constant(32)),
            "lanemask" => match ax {
                "lt" => Special::LaneMaskLt,
                "le" => Special::LaneMaskLe,
                "gt" => Special::LaneMaskGt,
                "ge" => Special::LaneMaskGe,
                "eq" => {
                    let (one, lane) = (self.constant(1), self.special(Special::LaneId));
                    return Some(self.int_op(IntOp::Shl, 32, one, lane));
                }
                _ => return None,
            },
            "clock" | "clock64" | "globaltimer" => Special::Clock,
            "nwarpid" => Special::NWarpId,
            "clusterid" => Special::ClusterId(axis(ax)),
            "nclusterid" => Special::NClusterId(axis(ax)),
            "cluster_ctaid" => Special::ClusterCtaid(axis(ax)),
            "cluster_nctaid" => Special::ClusterNCtaid(axis(ax)),
            "cluster_ctarank" => Special::ClusterRank,
            "cluster_nctarank" => Special::ClusterSize,
            _ => return None,
        };
        Some(self.special(what))
    }

    fn shfl_intrinsic(&mut self, kind: &str, args: &[Vec<Src>]) -> Option<Vec<Src>> {
        let (kind, ty) = kind.split_once('.')?;
        let kind = match kind {
            "up" => Shfl::Up,
            "down" => Shfl::Down,
            "bfly" => Shfl::Bfly,
            "idx" => Shfl::Idx,
            _ => return None,
        };
        let [mask, v, b, c] = args else { return None };
        let (mask, v, b, c) = (mask[0], v[0], b[0], c[0]);
        let d = self.fresh();
        let p = ty.ends_with('p').then(|| self.fresh());
        self.emit(Op::Shfl { kind, d, p, v, b, c, mask });
        Some(std::iter::once(d).chain(p).map(Src::reg).collect())
    }

    fn matrix_intrinsic(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> What<Vec<Src>> {
        let parts: Vec<&str> = name.split('.').collect();
        let Some((form, packed)) = MatrixForm::new(parts[0] == "stmatrix", &parts) else {
            return Err(format!("the intrinsic @llvm.nvvm.{name}"));
        };
        let mut addr = self.access(&inst.arg_tys[0], args[0][0], 16, Order::default())?;
        addr.bytes = 16;
        if parts[0] == "ldmatrix" {
            let d: Vec<Reg> = inst.ty.scalars().iter().map(|_| self.fresh()).collect();
            self.emit(Op::LdMatrix { d: d.clone().into(), addr, form, packed });
            return Ok(d.into_iter().map(Src::reg).collect());
        }
        let v: Vec<Src> = args[1..].iter().map(|s| s[0]).collect();
        self.emit(Op::StMatrix { v: v.into(), addr, form });
        Ok(Vec::new())
    }

    /// Conversions of two values at once, such as `ff.to.e4m3x2.rn`; the first operand is the upper half.
    fn pair_conversion(&mut self, name: &str, args: &[Vec<Src>]) -> Option<Vec<Src>> {
        let relu = name.contains(".relu");
        let round = if name.contains(".rz") { Round::Zero } else { Round::Nearest };
        let mut words = name.split('.');
        let (from, to) = match words.next()? {
            "ff2f16x2" => ("ff", "f16x2"),
            "ff2bf16x2" => ("ff", "bf16x2"),
            from => (words.next() == Some("to")).then_some((from, words.next()?))?,
        };
        let code = |t: &str| match t {
            "e4m3x2" => Some(num::E4M3),
            "e5m2x2" => Some(num::E5M2),
            _ => None,
        };
        if let Some(format) = code(from) {
            let to = match to {
                "f16x2" => Fmt::F16,
                _ => return None,
            };
            let halves = self.split(*args.first()?.first()?, 8, 2);
            let cvt = Cvt::FromCode { from: format, to };
            return Some(halves.into_iter().map(|a| self.value(|d| Op::Cvt { cvt, d, a })).collect());
        }
        let (values, from) = match from {
            "ff" => (vec![*args.get(1)?.first()?, *args.first()?.first()?], Fmt::F32),
            "f16x2" => (args.first()?.clone(), Fmt::F16),
            "bf16x2" => (args.first()?.clone(), Fmt::BF16),
            _ => return None,
        };
        let saturate = code(to).is_some() || name.contains(".satfinite");
        let cvt = match (code(to), to) {
            (Some(to), _) => Cvt::ToCode { from, to, round, saturate, relu },
            (None, "f16x2") => Cvt::Float { from, to: Fmt::F16, round, saturate, relu, ftz: false },
            (None, "bf16x2") => Cvt::Float { from, to: Fmt::BF16, round, saturate, relu, ftz: false },
            _ => return None,
        };
        let values: Vec<Src> = values.into_iter().map(|a| self.value(|d| Op::Cvt { cvt, d, a })).collect();
        Some(if code(to).is_some() { vec![self.join(&values, 8)] } else { values })
    }

    /// Arithmetic intrinsics such as `fma.rn.ftz.f`, by the parts of their names.
    fn nvvm_math(&mut self, name: &str, inst: &Inst, args: &[Vec<Src>]) -> Option<Vec<Src>> {
        let parts: Vec<&str> = name.split('.').collect();
        let has = |p: &str| parts.contains(&p);
        let f = match inst.ty.element() {
            Ty::F16 => Fmt::F16,
            Ty::BF16 => Fmt::BF16,
            Ty::F64 => Fmt::F64,
            _ => Fmt::F32,
        };
        let ftz = has("ftz");
        let approx = has("approx");
        let round = rounding(&parts);
        let n = args.first().map_or(0, Vec::len);
        if let Some(op) = float_un(parts[0]) {
            return Some(
                args[0]
                    .iter()
                    .map(|a| self.value(|d| Op::FloatUn { op, f, round, ftz, approx, d, a: *a }))
                    .collect(),
            );
        }
        if let Some(op) = float_op(parts[0], has("nan")) {
            return Some(
                (0..n)
                    .map(|i| match (args[0][i], args[1][i]) {
                        (a, b) if has("xorsign") => self.xorsign(op, f, ftz, a, b),
                        (a, b) => self.value(|d| Op::Float { op, f, round, ftz, d, a, b }),
                    })
                    .collect(),
            );
        }
        let cvt = |d: &mut Self, cvt: Cvt| Some(vec![d.value(|r| Op::Cvt { cvt, d: r, a: args[0][0] })]);
        let float_to = |from, to, relu| Cvt::Float { from, to, round, saturate: false, relu, ftz };
        let flushed = |d: &mut Self, a: Src| {
            let (op, round) = (FloatUn::Canonical, Round::Nearest);
            d.value(|r| Op::FloatUn { op, f, round, ftz: true, approx: false, d: r, a })
        };
        match parts[0] {
            "fma" => {
                let relu = has("relu");
                let make = |d, i: usize| Op::Fma {
                    f,
                    round,
                    ftz,
                    relu,
                    d,
                    a: args[0][i],
                    b: args[1][i],
                    c: args[2][i],
                };
                Some((0..n).map(|i| self.value(|d| make(d, i))).collect())
            }
            "mulhi" => {
                let op = if has("ui") || has("ull") || has("us") { IntOp::MulHiU } else { IntOp::MulHiS };
                let w = inst.ty.bits() as u8;
                Some(vec![self.int_op(op, w, args[0][0], args[1][0])])
            }
            "d2i" if has("lo") => cvt(self, Cvt::Zext(32)),
            "d2i" if has("hi") => {
                Some(vec![self.value(|d| Op::Bits { d, a: args[0][0], shift: 32, width: 32 })])
            }
            "f2i" | "f2ui" | "f2ll" | "f2ull" | "d2i" | "d2ui" | "d2ll" | "d2ull" => {
                let from = if parts[0].starts_with('d') { Fmt::F64 } else { Fmt::F32 };
                let signed = !parts[0].contains('u');
                let width = inst.ty.bits() as u8;
                let top = from == Fmt::F64 || width == 64;
                let a = if ftz { flushed(self, args[0][0]) } else { args[0][0] };
                let c = Cvt::FloatToInt { from, width, signed, round, top };
                Some(vec![self.value(|d| Op::Cvt { cvt: c, d, a })])
            }
            "i2f" | "ui2f" | "ll2f" | "ull2f" | "i2d" | "ui2d" | "ll2d" | "ull2d" => {
                let width = inst.arg_tys[0].bits() as u8;
                cvt(self, Cvt::IntToFloat { width, signed: !parts[0].starts_with('u'), to: f, round })
            }
            "f2h" => cvt(self, float_to(Fmt::F32, Fmt::F16, false)),
            "h2f" => cvt(self, float_to(Fmt::F16, Fmt::F32, false)),
            "d2f" => cvt(self, float_to(Fmt::F64, Fmt::F32, false)),
            "f2bf16" => cvt(self, float_to(Fmt::F32, Fmt::BF16, has("relu"))),
            "bitcast" => Some(args[0].clone()),
            "lohi" => Some(vec![self.join(&[args[0][0], args[1][0]], 32)]),
            "saturate" => {
                let a = if ftz { flushed(self, args[0][0]) } else { args[0][0] };
                Some(vec![self.unit_interval(f, a)])
            }
            "sad" => {
                let op = if parts[1].starts_with('u') { IntTern::SadU } else { IntTern::SadS };
                let (w, a, b, c) = (inst.ty.bits() as u8, args[0][0], args[1][0], args[2][0]);
                Some(vec![self.value(|d| Op::IntTern { op, w, d, a, b, c })])
            }
            _ => None,
        }
    }
}
