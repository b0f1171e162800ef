//! Inline PTX that moves data asynchronously, synchronizes, or works on matrices.

use super::asm::{Line, Vars};
use super::{Decoder, What};
use crate::bytecode::*;
use crate::ir::Order;
use crate::ptx::Operand;
use crate::tma::ElemType;
use std::sync::OnceLock;

fn elem(t: &str) -> Option<Elem> {
    Some(match t {
        "f64" => Elem::F64,
        "f32" => Elem::F32,
        "tf32" => Elem::Tf32,
        "f16" => Elem::F16,
        "bf16" => Elem::BF16,
        "e4m3" => Elem::E4M3,
        "e5m2" => Elem::E5M2,
        "s8" => Elem::S8,
        "u8" => Elem::U8,
        "s32" => Elem::S32,
        _ => return None,
    })
}

/// `m16n8k16` as numbers.
fn shape(l: &Line<'_>) -> Option<(u32, u32, u32)> {
    let text = l.op.iter().find(|p| {
        p.starts_with('m')
            && p.contains('n')
            && p.contains('k')
            && p[1..].starts_with(|c: char| c.is_ascii_digit())
    })?;
    let (m, rest) = text[1..].split_once('n')?;
    let (n, k) = rest.split_once('k')?;
    Some((m.parse().ok()?, n.parse().ok()?, k.parse().ok()?))
}

/// How a bulk copy combines what it brings with what is there.
fn tma_reduce(part: &str) -> Option<TmaReduce> {
    Some(match part {
        "add" => TmaReduce::Add,
        "min" => TmaReduce::Min,
        "max" => TmaReduce::Max,
        "and" => TmaReduce::And,
        "or" => TmaReduce::Or,
        "xor" => TmaReduce::Xor,
        _ => return None,
    })
}

/// The elements that a bulk copy without a tensor map combines.
fn reduced_type(ty: &str) -> Option<ElemType> {
    Some(match ty {
        "f16" => ElemType::F16,
        "bf16" => ElemType::BF16,
        "f32" => ElemType::F32,
        "f64" => ElemType::F64,
        "u32" | "b32" => ElemType::U32,
        "s32" => ElemType::S32,
        "u64" | "b64" => ElemType::U64,
        "s64" => ElemType::S64,
        _ => return None,
    })
}

impl Decoder<'_> {
    pub(super) fn ptx_mma(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let types: Vec<Elem> = l.op.iter().filter_map(|p| elem(p)).collect();
        let (Some(shape), [cd, a, b, c], 4) = (shape(l), &types[..], l.args.len()) else {
            return l.unknown();
        };
        if cd != c || l.pred.is_some() || !l.has("row") || !l.has("col") {
            return l.unknown();
        }
        let d = self.dests(v, l.arg(0)?)?;
        let list = |s: &mut Self, i: usize| s.list(v, l.arg(i)?, "b64");
        let (fa, fb, fc) = (list(self, 1)?, list(self, 2)?, list(self, 3)?);
        let mma = Mma {
            layout: MmaLayout::Ptx,
            shape,
            ab: (*a, *b),
            cd: *cd,
            d: d.into(),
            a: fa.into(),
            b: fb.into(),
            c: fc.into(),
            saturate: l.has("satfinite"),
            scales: Box::new([]),
            scale_bytes: [0; 2],
            places: OnceLock::new(),
        };
        if !crate::mma::supported(&mma) {
            return l.unknown();
        }
        self.emit(Op::Mma(Box::new(mma)));
        Ok(())
    }

    pub(super) fn ptx_matrix(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let parts: Vec<&str> = l.op.iter().map(String::as_str).collect();
        let store = l.op[0] == "stmatrix";
        let (Some((form, packed)), 2) = (MatrixForm::new(store, &parts), l.args.len()) else {
            return l.unknown();
        };
        let number = parts.iter().find_map(|p| p.strip_prefix('x')?.parse::<usize>().ok());
        let registers = number.unwrap_or(0) * form.registers();
        if !matches!(registers, 1 | 2 | 4) {
            return l.unknown();
        }
        if !store {
            let d = self.dests(v, l.arg(0)?)?;
            if d.len() != registers {
                return l.unknown();
            }
            let mut addr = self.ptx_access(v, l, l.arg(1)?, 16, 1)?;
            addr.align = 16;
            self.emit(Op::LdMatrix { d: d.into(), addr, form, packed });
        } else {
            let values = self.list(v, l.arg(1)?, "b32")?;
            if values.len() != registers {
                return l.unknown();
            }
            let mut addr = self.ptx_access(v, l, l.arg(0)?, 16, 1)?;
            addr.align = 16;
            self.emit(Op::StMatrix { v: values.into(), addr, form });
        }
        Ok(())
    }

    fn wgmma(&mut self, l: &Line<'_>, v: &mut Vars, outputs: &[Reg]) -> What<()> {
        match l.op[1].as_str() {
            "fence" => {
                self.emit(Op::WgmmaFence);
                return Ok(());
            }
            "commit_group" => {
                self.emit(Op::WgmmaCommit);
                return Ok(());
            }
            "wait_group" => {
                let keep = self.immediate(v, l, 0)?;
                self.emit(Op::WgmmaWait { keep, regs: outputs.into() });
                return Ok(());
            }
            "mma_async" => {}
            _ => return l.unknown(),
        }
        let types: Vec<Elem> = l.op.iter().filter_map(|p| elem(p)).collect();
        let (Some((64, n, k)), [cd, a, b]) = (shape(l), &types[..]) else { return l.unknown() };
        if l.args.len() < 4 || l.has("sp") {
            return l.unknown();
        }
        let d = self.dests(v, l.arg(0)?)?;
        let c: Vec<Src> = d.iter().map(|r| v.tied.remove(r).unwrap_or(Src::reg(*r))).collect();
        let fa = self.list(v, l.arg(1)?, "b64")?;
        let fb = self.src(v, l.arg(2)?, "b64")?;
        let scale_d = self.src(v, l.arg(3)?, "pred")?;
        let mut flags = Vec::new();
        for i in 4..l.args.len() {
            flags.push(self.immediate(v, l, i)? as i32);
        }
        let neg = |i: usize| flags.get(i).copied() == Some(-1);
        let in_registers = fa.len() > 1;
        let trans = |i: usize| flags.get(i).copied().unwrap_or(0) == 1;
        let trans = if in_registers { (false, trans(2)) } else { (trans(2), trans(3)) };
        let w = Wgmma {
            n,
            k,
            ab: (*a, *b),
            cd: *cd,
            d: d.into(),
            c: c.into(),
            a: fa.into(),
            b: fb,
            scale_d,
            neg: (neg(0), neg(1)),
            trans,
            saturate: l.has("satfinite"),
        };
        if !crate::wgmma::supported(&w) {
            return l.unknown();
        }
        self.emit(Op::Wgmma(Box::new(w)));
        Ok(())
    }

    fn immediate(&mut self, v: &Vars, l: &Line<'_>, i: usize) -> What<u32> {
        let Some(o) = l.args.get(i) else { return l.unknown() };
        let s = self.src(v, o, "b32")?;
        self.known(s)
            .map(|n| n as u32)
            .ok_or_else(|| format!("operand {i} of '{}', which must be a constant", l.text))
    }

    pub(super) fn ptx_sync(&mut self, l: &Line<'_>, v: &mut Vars, outputs: &[Reg]) -> What<()> {
        match l.op[0].as_str() {
            "cp" => self.ptx_copy(l, v),
            "mbarrier" => self.ptx_mbarrier(l, v),
            "tensormap" => self.ptx_tensormap(l, v),
            "wgmma" => self.wgmma(l, v, outputs),
            "fence" => {
                self.emit(match l.op.get(1).map(String::as_str) {
                    Some("proxy") if l.has("async") => Op::FenceAsync { device: !l.text.contains("shared") },
                    Some(kind @ ("sc" | "acq_rel" | "acquire" | "release")) => {
                        let order = Order::atomic(kind != "release", kind != "acquire");
                        Op::Fence { order, device: true }
                    }
                    _ => Op::Nop("fence"),
                });
                Ok(())
            }
            "bar" | "barrier" => self.ptx_barrier(l, v),
            "shfl" => {
                let kind = match l.op.get(2).map(String::as_str) {
                    Some("up") => Shfl::Up,
                    Some("down") => Shfl::Down,
                    Some("bfly") => Shfl::Bfly,
                    Some("idx") => Shfl::Idx,
                    _ => return l.unknown(),
                };
                let extra = match l.args.len() {
                    n @ (5 | 6) if l.pred.is_none() => n - 5,
                    _ => return l.unknown(),
                };
                let d = self.dest(v, l.arg(0)?)?;
                let p = if extra == 1 { Some(self.dest(v, l.arg(1)?)?) } else { None };
                let s: Vec<Src> =
                    l.args.iter().skip(1 + extra).map(|o| self.src(v, o, "b32")).collect::<What<_>>()?;
                self.emit(Op::Shfl { kind, d, p, v: s[0], b: s[1], c: s[2], mask: s[3] });
                Ok(())
            }
            "activemask" => {
                let d = self.dest(v, l.arg(0)?)?;
                let s = self.special(Special::ActiveMask);
                self.result(l, d, s);
                Ok(())
            }
            "match" => {
                let all = l.has("all");
                let pair = match l.args.len() {
                    n @ (3 | 4) if l.pred.is_none() && (all || n == 3) => n - 3,
                    _ => return l.unknown(),
                };
                let d = self.dest(v, l.arg(0)?)?;
                let p = if pair == 1 { Some(self.dest(v, l.arg(1)?)?) } else { None };
                let (x, mask) =
                    (self.src(v, l.arg(1 + pair)?, l.ty())?, self.src(v, l.arg(2 + pair)?, "b32")?);
                self.emit(Op::Match { all, d, p, v: x, mask });
                Ok(())
            }
            "vote" | "redux" => {
                if l.op.get(1).is_none_or(|p| p != "sync") || l.ty() == "f32" {
                    return l.unknown();
                }
                let signed = l.op.last().is_some_and(|t| t == "s32");
                let kind = match l.op.get(2).map(String::as_str) {
                    Some("all") => Vote::All,
                    Some("any") => Vote::Any,
                    Some("uni") => Vote::Uni,
                    Some("ballot") => Vote::Ballot,
                    Some("add") => Vote::Add,
                    Some("and") => Vote::And,
                    Some("or") => Vote::Or,
                    Some("xor") => Vote::Xor,
                    Some("min") if signed => Vote::SMin,
                    Some("max") if signed => Vote::SMax,
                    Some("min") => Vote::UMin,
                    Some("max") => Vote::UMax,
                    _ => return l.unknown(),
                };
                if l.args.len() != 3 || l.pred.is_some() {
                    return l.unknown();
                }
                let d = self.dest(v, l.arg(0)?)?;
                let (x, mask) = (self.src(v, l.arg(1)?, "b32")?, self.src(v, l.arg(2)?, "b32")?);
                self.emit(Op::Vote { kind, d, v: x, mask });
                Ok(())
            }
            _ => {
                if l.args.len() != 3 {
                    return l.unknown();
                }
                let d = self.dest(v, l.arg(0)?)?;
                let p = self.dest(v, l.arg(1)?)?;
                let mask = self.src(v, l.arg(2)?, "b32")?;
                self.emit(Op::Elect { d: Some(d), p, mask });
                Ok(())
            }
        }
    }

    fn ptx_barrier(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        if l.has("warp") {
            let mask = self.src(v, l.arg(0)?, "b32")?;
            self.emit(Op::WarpSync { mask });
            return Ok(());
        }
        if l.has("cluster") {
            if l.pred.is_some() {
                return l.unknown();
            }
            match l.op.get(2).map(String::as_str) {
                Some("arrive") => self.emit(Op::ClusterArrive { relaxed: l.has("relaxed") }),
                Some("wait") => self.emit(Op::ClusterWait),
                _ => return l.unknown(),
            }
            return Ok(());
        }
        let red = l.has("red");
        let wait = l.has("sync") || red;
        let skip = usize::from(red);
        if !wait && !l.has("arrive") {
            return l.unknown();
        }
        let id = self.src(v, l.arg(skip)?, "b32")?;
        let threads = match l.args.get(skip + 1) {
            Some(o) if !red || l.args.len() == 4 => Some(self.src(v, o, "b32")?),
            _ => None,
        };
        let reduce = if red {
            let kind = match () {
                () if l.has("popc") => BarReduce::Popc,
                () if l.has("and") => BarReduce::And,
                () if l.has("or") => BarReduce::Or,
                () => return l.unknown(),
            };
            let Some(last) = l.args.last().filter(|_| matches!(l.args.len(), 3 | 4) && l.pred.is_none())
            else {
                return l.unknown();
            };
            Some((kind, self.src(v, last, "pred")?, self.dest(v, l.arg(0)?)?))
        } else {
            None
        };
        self.emit(Op::Bar { id, threads, wait, reduce, pred: l.pred });
        Ok(())
    }

    fn ptx_mbarrier(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let pred = l.pred;
        let kind = l.op[1].as_str();
        match kind {
            "init" => {
                let addr = self.address(v, l.arg(0)?)?;
                let count = self.src(v, l.arg(1)?, "b32")?;
                self.emit(Op::MbarInit { addr, count, pred });
            }
            "inval" => {
                let addr = self.address(v, l.arg(0)?)?;
                self.emit(Op::MbarInval { addr, pred });
            }
            "expect_tx" => {
                let addr = self.address(v, l.arg(0)?)?;
                let tx = Some(self.src(v, l.arg(1)?, "b32")?);
                let count = self.constant(0);
                self.emit(Op::MbarArrive { addr, count, tx, arrive: false, drop: false, d: None, pred });
            }
            "complete_tx" => {
                let addr = self.address(v, l.arg(0)?)?;
                let bytes = self.src(v, l.arg(1)?, "b32")?;
                let zero = self.constant(0);
                let tx = Some(self.int_op(IntOp::Sub, 64, zero, bytes));
                self.emit(Op::MbarArrive {
                    addr,
                    count: zero,
                    tx,
                    arrive: false,
                    drop: false,
                    d: None,
                    pred,
                });
            }
            "arrive" | "arrive_drop" => {
                let at = l.args.iter().position(|a| matches!(a, Operand::Mem(..))).unwrap_or(0);
                let addr = self.address(v, l.arg(at)?)?;
                let d = match l.args[0] {
                    Operand::Var(_) if at == 1 => Some(self.dest(v, l.arg(0)?)?),
                    _ => None,
                };
                let extra = match l.args.get(at + 1) {
                    Some(o) => Some(self.src(v, o, "b32")?),
                    None => None,
                };
                let one = self.constant(1);
                let (count, tx) =
                    if l.has("expect_tx") { (one, extra) } else { (extra.unwrap_or(one), None) };
                let drop = kind == "arrive_drop";
                self.emit(Op::MbarArrive { addr, count, tx, arrive: true, drop, d, pred });
            }
            "try_wait" | "test_wait" => {
                let d = self.dest(v, l.arg(0)?)?;
                let addr = self.address(v, l.arg(1)?)?;
                // A state is the number of its phase: its lowest bit is the parity.
                let parity = self.src(v, l.arg(2)?, "b64")?;
                self.emit(Op::MbarTry { d, addr, parity, wait: kind == "try_wait", pred });
            }
            _ => return l.unknown(),
        }
        Ok(())
    }

    fn coords(&mut self, v: &Vars, o: &Operand) -> What<(Src, Vec<Src>)> {
        let Operand::Mem(base, _, more) = o else {
            return Err(format!("{o:?} as a tensor map with coordinates"));
        };
        let map = self.src(v, base, "b64")?;
        let coords = match more.first() {
            Some(list) => self.list(v, list, "b32")?,
            None => return Err("a tensor copy without coordinates".into()),
        };
        Ok((map, coords))
    }

    /// The end of a group of copies, and waits for them.
    fn copy_group(&mut self, l: &Line<'_>, v: &mut Vars) -> What<Option<Op>> {
        let (pred, bulk) = (l.pred, l.has("bulk"));
        let op = if l.has("commit_group") {
            if bulk { Op::BulkCommit { pred } } else { Op::CpCommit { whole: false } }
        } else if l.has("wait_group") || l.has("wait_all") {
            let keep = if l.has("wait_all") { 0 } else { self.immediate(v, l, 0)? };
            if bulk { Op::BulkWait { keep, pred } } else { Op::CpWait { keep } }
        } else {
            return Ok(None);
        };
        if pred.is_some() && !bulk { l.unknown() } else { Ok(Some(op)) }
    }

    /// Bytes that `cp.async` reads of `all`: a number, or all of them unless a predicate says to ignore what is there.
    fn bytes_read(&mut self, v: &Vars, o: &Operand, all: u32) -> What<Src> {
        let (ignored, negated) = match o {
            Operand::Not(o) => (&**o, true),
            Operand::Var(name) if v.predicates.contains(name) => (o, false),
            _ => return self.src(v, o, "b32"),
        };
        let c = self.src(v, ignored, "pred")?;
        let (all, none) = (self.constant(all.into()), self.constant(0));
        let (a, b) = if negated { (all, none) } else { (none, all) };
        Ok(self.value(|d| Op::Select { d, c, a, b }))
    }

    fn ptx_copy(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let pred = l.pred;
        let to_shared = {
            let s = l.op.iter().position(|p| p.starts_with("shared"));
            let g = l.op.iter().position(|p| p == "global");
            matches!((s, g), (Some(s), Some(g)) if s < g)
        };
        if let Some(op) = self.copy_group(l, v)? {
            self.emit(op);
            return Ok(());
        }
        if l.has("prefetch") {
            return self.nop("prefetch").map(drop);
        }
        if l.args.is_empty() {
            return l.unknown();
        }
        if l.has("mbarrier") && l.has("arrive") {
            let addr = self.address(v, l.arg(0)?)?;
            self.emit(Op::CpMbarArrive { addr, noinc: l.has("noinc"), pred });
            return Ok(());
        }
        if l.op.iter().any(|p| p.starts_with("im2col")) || l.args.len() < 2 {
            return l.unknown();
        }
        let rows = l.has("tile::gather4") || l.has("tile::scatter4");
        // Optional operands at the end: the programs that receive the data, and a cache policy.
        let multicast = |d: &mut Self, i: usize| match l.has("multicast::cluster") {
            true => d.src(v, l.arg(i)?, "b16").map(Some),
            false => Ok(None),
        };
        let reduce = match l.op[1] == "reduce" {
            true => l.op.iter().find_map(|p| tma_reduce(p)).map_or_else(|| l.unknown(), Ok)?,
            false => TmaReduce::Store,
        };
        let within = l.op.iter().filter(|p| p.starts_with("shared")).count() == 2;
        match (l.has("bulk"), l.has("tensor"), to_shared) {
            (true, false, _) if within && reduce == TmaReduce::Store => {
                let (dst, src) = (self.address(v, l.arg(0)?)?, self.address(v, l.arg(1)?)?);
                let bytes = self.src(v, l.arg(2)?, "b32")?;
                let mbar = self.address(v, l.arg(3)?)?;
                self.emit(Op::BulkMove { dst, src, bytes, mbar, pred });
            }
            (false, _, true) => {
                let bytes = self.immediate(v, l, 2)?;
                if !matches!(bytes, 4 | 8 | 16) {
                    return l.unknown();
                }
                let mut dst = self.ptx_access(v, l, l.arg(0)?, bytes as u8, 1)?;
                dst.space = Space::Shared;
                let src = self.address(v, l.arg(1)?)?;
                let hint = usize::from(l.has("L2::cache_hint"));
                let read = l.args.get(3).filter(|_| l.args.len() == 4 + hint);
                let src_bytes = read.map(|read| self.bytes_read(v, read, bytes)).transpose()?;
                self.emit(Op::CpAsync { dst, src, src_bytes });
            }
            (true, true, true) => {
                let dst = self.address(v, l.arg(0)?)?;
                let (map, coords) = self.coords(v, l.arg(1)?)?;
                let mbar = self.address(v, l.arg(2)?)?;
                let multicast = multicast(self, 3)?;
                self.emit(Op::TmaLoad { dst, map, coords: coords.into(), mbar, rows, multicast, pred });
            }
            (true, true, false) => {
                let (map, coords) = self.coords(v, l.arg(0)?)?;
                let src = self.address(v, l.arg(1)?)?;
                self.emit(Op::TmaStore { src, map, coords: coords.into(), rows, reduce, pred });
            }
            (true, false, true) => {
                let (dst, src) = (self.address(v, l.arg(0)?)?, self.address(v, l.arg(1)?)?);
                let bytes = self.src(v, l.arg(2)?, "b32")?;
                let mbar = self.address(v, l.arg(3)?)?;
                let multicast = multicast(self, 4)?;
                self.emit(Op::BulkLoad { dst, src, bytes, mbar, multicast, pred });
            }
            (true, false, false) => {
                let (dst, src) = (self.address(v, l.arg(0)?)?, self.address(v, l.arg(1)?)?);
                let bytes = self.src(v, l.arg(2)?, "b32")?;
                let elem = match reduce {
                    TmaReduce::Store => ElemType::U8,
                    _ => reduced_type(l.ty()).map_or_else(|| l.unknown(), Ok)?,
                };
                self.emit(Op::BulkStore { dst, src, bytes, reduce, elem, pred });
            }
            _ => return l.unknown(),
        }
        Ok(())
    }

    fn ptx_tensormap(&mut self, l: &Line<'_>, v: &mut Vars) -> What<()> {
        let pred = l.pred;
        if l.op[1] == "cp_fenceproxy" {
            let (dst, src) = (self.address(v, l.arg(0)?)?, self.address(v, l.arg(1)?)?);
            self.emit(Op::MapCopy { dst, src, pred });
            return Ok(());
        }
        let Some(field) = l.op.get(3).filter(|_| !l.args.is_empty()) else { return l.unknown() };
        let addr = self.address(v, l.arg(0)?)?;
        let (index, value) = match l.args.len() {
            2 => (0, l.arg(1)?),
            3 => (self.immediate(v, l, 1)? as u8, l.arg(2)?),
            _ => return l.unknown(),
        };
        let field = match field.as_str() {
            "global_address" => MapField::GlobalAddress,
            "rank" => MapField::Rank,
            "box_dim" => MapField::BoxDim(index),
            "global_dim" => MapField::GlobalDim(index),
            "global_stride" => MapField::GlobalStride(index),
            "element_stride" => MapField::ElementStride(index),
            "elemtype" => MapField::ElemType,
            "interleave_layout" => MapField::Interleave,
            "swizzle_mode" => MapField::Swizzle,
            "fill_mode" => MapField::Fill,
            _ => return l.unknown(),
        };
        let value = self.src(v, value, "b64")?;
        self.emit(Op::MapReplace { field, addr, value, pred });
        Ok(())
    }
}
