//! Reaches all registers of an operation.

use crate::bytecode::*;

/// Gives an operation's registers to `def` and `used`: results before the semicolon, operands behind it.
macro_rules! io {
    ($def:ident, $used:ident; $($d:expr),*; $($u:expr),*) => {{
        $($used($u);)*
        $($def($d);)*
    }};
}

/// Calls `def` for every result and `used` for every operand. A register that is both read and written
/// (predicated destinations keep their value) is given to both. The table of all operations: one row each.
pub fn visit(op: &mut Op, def: &mut impl FnMut(&mut Reg), used: &mut impl FnMut(&mut Src)) {
    match op {
        Op::Mov { d, s } | Op::Freeze { d, s } => io!(def, used; d; s),
        Op::Undef { d } | Op::Special { d, .. } => def(d),
        Op::Int { d, a, b, .. }
        | Op::Float { d, a, b, .. }
        | Op::ICmp { d, a, b, .. }
        | Op::FCmp { d, a, b, .. }
        | Op::Join { d, a, b, .. }
        | Op::Lea { d, base: a, index: b, .. }
        | Op::Mbcnt { d, mask: a, a: b, .. }
        | Op::MapShared { d, addr: a, rank: b } => io!(def, used; d; a, b),
        Op::IntUn { d, a, .. }
        | Op::FloatUn { d, a, .. }
        | Op::FClass { d, a, .. }
        | Op::Cvt { d, a, .. }
        | Op::Bits { d, a, .. }
        | Op::RankOf { d, addr: a } => io!(def, used; d; a),
        Op::IntTern { d, a, b, c, .. }
        | Op::Fma { d, a, b, c, .. }
        | Op::Med3 { d, a, b, c }
        | Op::Select { d, c, a, b } => io!(def, used; d; a, b, c),
        Op::Dot2 { d, a: [a0, a1], b: [b0, b1], c, .. } => io!(def, used; d; a0, a1, b0, b1, c),
        Op::Pick { d, index, items } => {
            items.iter_mut().for_each(&mut *used);
            io!(def, used; d; index);
        }
        Op::Jump { .. } | Op::Exit | Op::Trap | Op::Nop(_) => {}
        Op::Branch { c, .. } => used(c),
        Op::Print { format, args } => io!(def, used; ; format, args),
        Op::Message { d, part, last } => {
            def(d);
            match part {
                MessagePart::Begin => {}
                MessagePart::Text(text) => used(text),
                MessagePart::Args { count, args } => {
                    used(count);
                    args.iter_mut().for_each(&mut *used);
                }
            }
            last.iter_mut().for_each(used);
        }
        Op::Assert { message, file, line, func } => io!(def, used; ; message, file, line, func),
        // Memory, and what the lanes of a warp do together.
        Op::Ld { d, at } => {
            access(at, used);
            kept(d, &at.pred, def, used);
        }
        Op::Atom { d, v, cmp, at, .. } => {
            access(at, used);
            v.iter_mut().chain(cmp.iter_mut()).for_each(&mut *used);
            kept(d, &at.pred, def, used);
        }
        Op::St { v, at } | Op::StMatrix { v, addr: at, .. } => {
            access(at, used);
            v.iter_mut().for_each(used);
        }
        Op::LdMatrix { d, addr, .. } => {
            access(addr, used);
            d.iter_mut().for_each(def);
        }
        Op::CpAsync { dst, src, src_bytes } => {
            access(dst, used);
            used(src);
            src_bytes.iter_mut().for_each(used);
        }
        Op::StAsync { v, at, mbar } => {
            access(at, used);
            v.iter_mut().for_each(&mut *used);
            used(mbar);
        }
        Op::Shfl { d, p, v, b, c, mask, .. } => {
            io!(def, used; d; v, b, c, mask);
            p.iter_mut().for_each(def);
        }
        Op::Vote { d, v, mask, .. } => io!(def, used; d; v, mask),
        Op::Match { d, p, v, mask, .. } => {
            io!(def, used; d; v, mask);
            p.iter_mut().for_each(def);
        }
        Op::Elect { d, p, mask } => {
            d.iter_mut().for_each(&mut *def);
            io!(def, used; p; mask);
        }
        Op::Permute { d, d2, v, idx, c, .. } => {
            io!(def, used; d; v, idx, c);
            d2.iter_mut().for_each(def);
        }
        Op::Dpp(x) => io!(def, used; &mut x.d; &mut x.old, &mut x.v),
        Op::ReadLane { d, v, lane } => {
            lane.iter_mut().for_each(&mut *used);
            io!(def, used; d; v);
        }
        Op::WriteLane { d, old, v, lane } => io!(def, used; d; old, v, lane),
        // Barriers, asynchronous copies and matrix operations.
        Op::WarpSync { mask } => used(mask),
        Op::Bar { id, threads, reduce, pred: p, .. } => {
            used(id);
            threads.iter_mut().for_each(&mut *used);
            pred(p, used);
            if let Some((_, v, d)) = reduce {
                io!(def, used; d; v);
            }
        }
        Op::MbarInit { addr: a, count: b, pred: p }
        | Op::MapReplace { addr: a, value: b, pred: p, .. }
        | Op::MapCopy { dst: a, src: b, pred: p } => {
            io!(def, used; ; a, b);
            pred(p, used);
        }
        Op::CpMbarArrive { addr, pred: p, .. } | Op::MbarInval { addr, pred: p } => {
            used(addr);
            pred(p, used);
        }
        Op::MbarArrive { addr, count, tx, d, pred: p, .. } => {
            io!(def, used; ; addr, count);
            tx.iter_mut().for_each(&mut *used);
            pred(p, used);
            d.iter_mut().for_each(def);
        }
        Op::MbarTry { d, addr, parity, pred: p, .. } => {
            io!(def, used; ; addr, parity);
            kept(std::slice::from_mut(d), p, def, used);
            pred(p, used);
        }
        Op::Mma(m) => {
            m.a.iter_mut()
                .chain(m.b.iter_mut())
                .chain(m.c.iter_mut())
                .chain(m.scales.iter_mut())
                .for_each(used);
            m.d.iter_mut().for_each(def);
        }
        Op::Wgmma(m) => {
            m.a.iter_mut().chain(m.c.iter_mut()).for_each(&mut *used);
            io!(def, used; ; &mut m.b, &mut m.scale_d);
            m.d.iter_mut().for_each(def);
        }
        Op::WgmmaWait { regs, .. } => {
            regs.iter_mut().for_each(|d| io!(def, used; d; &mut Src::reg(*d)));
        }
        Op::TmaLoad { dst, map, coords, mbar, multicast, pred: p, .. } => {
            [dst, map, mbar].into_iter().chain(multicast).chain(coords).for_each(&mut *used);
            pred(p, used);
        }
        Op::TmaStore { src, map, coords, pred: p, .. } => {
            [src, map].into_iter().chain(coords).for_each(&mut *used);
            pred(p, used);
        }
        Op::BulkLoad { dst, src, bytes, mbar, multicast, pred: p } => {
            [dst, src, bytes, mbar].into_iter().chain(multicast).for_each(&mut *used);
            pred(p, used);
        }
        Op::BulkMove { dst, src, bytes, mbar, pred: p } => {
            io!(def, used; ; dst, src, bytes, mbar);
            pred(p, used);
        }
        Op::BulkStore { dst, src, bytes, pred: p, .. } => {
            io!(def, used; ; dst, src, bytes);
            pred(p, used);
        }
        Op::TensorMove { words, .. } => words.iter_mut().for_each(used),
        Op::BulkCommit { pred: p } | Op::BulkWait { pred: p, .. } => pred(p, used),
        Op::CpCommit { .. }
        | Op::CpWait { .. }
        | Op::TensorWait { .. }
        | Op::FenceAsync { .. }
        | Op::Fence { .. }
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::ClusterArrive { .. }
        | Op::ClusterWait => {}
    }
}

/// Registers of a memory access.
fn access(at: &mut Access, used: &mut impl FnMut(&mut Src)) {
    used(&mut at.addr);
    pred(&mut at.pred, used);
    if let Some((n, o)) = &mut at.buffer {
        used(n);
        used(o);
    }
}

fn pred(p: &mut Option<Pred>, used: &mut impl FnMut(&mut Src)) {
    if let Some(p) = p {
        used(&mut p.src);
    }
}

/// Results that keep their value where the predicate is false.
fn kept(d: &mut [Reg], p: &Option<Pred>, def: &mut impl FnMut(&mut Reg), used: &mut impl FnMut(&mut Src)) {
    for d in d {
        if p.is_some() {
            used(&mut Src::reg(*d));
        }
        def(d);
    }
}

/// A register's name in traces.
pub fn name(s: Src) -> String {
    match s.split() {
        Ok(r) => format!("r{r}"),
        Err(c) => format!("c{c}"),
    }
}

/// The operation's name in traces.
pub fn mnemonic(op: &Op) -> String {
    match op {
        Op::Int { op, w, .. } => format!("{op:?}.i{w}"),
        Op::IntUn { op, w, .. } => format!("{op:?}.i{w}"),
        Op::IntTern { op, w, .. } => format!("{op:?}.i{w}"),
        Op::Float { op, f, .. } => format!("{op:?}.{f:?}"),
        Op::FloatUn { op, f, .. } => format!("{op:?}.{f:?}"),
        Op::ICmp { op, w, .. } => format!("ICmp.{op:?}.i{w}"),
        Op::Nop(what) => (*what).to_owned(),
        other => {
            let text = format!("{other:?}");
            text.split([' ', '(']).next().unwrap_or("").to_owned()
        }
    }
}
