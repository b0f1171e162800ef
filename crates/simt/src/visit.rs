//! Reaches all registers of an operation.

use crate::bytecode::*;

/// Calls `def` for every result and `used` for every operand. A register that is both read and written
/// (predicated destinations keep their value) is given to both.
pub fn visit(op: &mut Op, def: &mut impl FnMut(&mut Reg), used: &mut impl FnMut(&mut Src)) {
    let access = |at: &mut Access, used: &mut dyn FnMut(&mut Src)| {
        used(&mut at.addr);
        if let Some(p) = &mut at.pred {
            used(&mut p.src);
        }
        if let Some((n, o)) = &mut at.buffer {
            used(n);
            used(o);
        }
    };
    let pred = |p: &mut Option<Pred>, used: &mut dyn FnMut(&mut Src)| {
        if let Some(p) = p {
            used(&mut p.src);
        }
    };
    match op {
        Op::Mov { d, s } | Op::Freeze { d, s } => {
            used(s);
            def(d);
        }
        Op::Undef { d } | Op::Special { d, .. } => def(d),
        Op::Int { d, a, b, .. }
        | Op::Float { d, a, b, .. }
        | Op::ICmp { d, a, b, .. }
        | Op::FCmp { d, a, b, .. }
        | Op::Join { d, a, b, .. }
        | Op::Lea { d, base: a, index: b, .. }
        | Op::Mbcnt { d, mask: a, a: b, .. } => {
            used(a);
            used(b);
            def(d);
        }
        Op::IntUn { d, a, .. }
        | Op::FloatUn { d, a, .. }
        | Op::FClass { d, a, .. }
        | Op::Cvt { d, a, .. }
        | Op::Bits { d, a, .. } => {
            used(a);
            def(d);
        }
        Op::IntTern { d, a, b, c, .. }
        | Op::Fma { d, a, b, c, .. }
        | Op::Med3 { d, a, b, c }
        | Op::Select { d, c, a, b } => {
            used(a);
            used(b);
            used(c);
            def(d);
        }
        Op::Dot2 { d, a, b, c, .. } => {
            a.iter_mut().chain(b).for_each(&mut *used);
            used(c);
            def(d);
        }
        Op::Pick { d, index, items } => {
            used(index);
            items.iter_mut().for_each(&mut *used);
            def(d);
        }
        Op::Ld { d, at } => {
            access(at, used);
            for d in d.iter_mut() {
                if at.pred.is_some() {
                    used(&mut Src::reg(*d));
                }
                def(d);
            }
        }
        Op::St { v, at } => {
            access(at, used);
            v.iter_mut().for_each(used);
        }
        Op::Atom { d, v, cmp, at, .. } => {
            access(at, used);
            v.iter_mut().for_each(&mut *used);
            cmp.iter_mut().for_each(&mut *used);
            for d in d.iter_mut() {
                if at.pred.is_some() {
                    used(&mut Src::reg(*d));
                }
                def(d);
            }
        }
        Op::CpAsync { dst, src, src_bytes } => {
            access(dst, used);
            used(src);
            src_bytes.iter_mut().for_each(used);
        }
        Op::CpCommit
        | Op::CpWait { .. }
        | Op::FenceAsync
        | Op::Fence
        | Op::WgmmaFence
        | Op::WgmmaCommit
        | Op::ClusterArrive { .. }
        | Op::ClusterWait
        | Op::Trap
        | Op::Nop(_)
        | Op::Jump { .. }
        | Op::Exit => {}
        Op::CpMbarArrive { addr, pred: p, .. } | Op::MbarInval { addr, pred: p } => {
            used(addr);
            pred(p, used);
        }
        Op::Shfl { d, p, v, b, c, mask, .. } => {
            [v, b, c, mask].into_iter().for_each(&mut *used);
            def(d);
            p.iter_mut().for_each(def);
        }
        Op::Vote { d, v, mask, .. } => {
            used(v);
            used(mask);
            def(d);
        }
        Op::Match { d, p, v, mask, .. } => {
            used(v);
            used(mask);
            def(d);
            p.iter_mut().for_each(def);
        }
        Op::MapShared { d, addr, rank } => {
            used(addr);
            used(rank);
            def(d);
        }
        Op::RankOf { d, addr } => {
            used(addr);
            def(d);
        }
        Op::Elect { d, p, mask } => {
            used(mask);
            d.iter_mut().for_each(&mut *def);
            def(p);
        }
        Op::Permute { d, d2, v, idx, c, .. } => {
            [v, idx, c].into_iter().for_each(used);
            def(d);
            d2.iter_mut().for_each(def);
        }
        Op::Dpp(x) => {
            used(&mut x.old);
            used(&mut x.v);
            def(&mut x.d);
        }
        Op::ReadLane { d, v, lane } => {
            used(v);
            lane.iter_mut().for_each(used);
            def(d);
        }
        Op::WriteLane { d, old, v, lane } => {
            [old, v, lane].into_iter().for_each(used);
            def(d);
        }
        Op::WarpSync { mask } => used(mask),
        Op::Bar { id, threads, reduce, pred: p, .. } => {
            used(id);
            threads.iter_mut().for_each(&mut *used);
            pred(p, used);
            if let Some((_, v, d)) = reduce {
                used(v);
                def(d);
            }
        }
        Op::MbarInit { addr, count, pred: p } => {
            used(addr);
            used(count);
            pred(p, used);
        }
        Op::MbarArrive { addr, count, tx, d, pred: p, .. } => {
            used(addr);
            used(count);
            tx.iter_mut().for_each(&mut *used);
            pred(p, used);
            d.iter_mut().for_each(def);
        }
        Op::MbarTry { d, addr, parity, pred: p, .. } => {
            used(addr);
            used(parity);
            if p.is_some() {
                used(&mut Src::reg(*d));
            }
            pred(p, used);
            def(d);
        }
        Op::LdMatrix { d, addr, .. } => {
            access(addr, used);
            d.iter_mut().for_each(def);
        }
        Op::StMatrix { v, addr, .. } => {
            access(addr, used);
            v.iter_mut().for_each(used);
        }
        Op::Mma(m) => {
            m.a.iter_mut().chain(m.b.iter_mut()).chain(m.c.iter_mut()).for_each(used);
            m.d.iter_mut().for_each(def);
        }
        Op::Wgmma(m) => {
            m.a.iter_mut().chain(m.c.iter_mut()).for_each(&mut *used);
            used(&mut m.b);
            used(&mut m.scale_d);
            m.d.iter_mut().for_each(def);
        }
        Op::WgmmaWait { regs, .. } => {
            for d in regs.iter_mut() {
                used(&mut Src::reg(*d));
                def(d);
            }
        }
        Op::MapReplace { addr, value, pred: p, .. } => {
            used(addr);
            used(value);
            pred(p, used);
        }
        Op::MapCopy { dst, src, pred: p } => {
            used(dst);
            used(src);
            pred(p, used);
        }
        Op::TmaLoad { dst, map, coords, mbar, multicast, pred: p, .. } => {
            [dst, map, mbar].into_iter().chain(multicast).for_each(&mut *used);
            coords.iter_mut().for_each(&mut *used);
            pred(p, used);
        }
        Op::TmaStore { src, map, coords, pred: p, .. } => {
            [src, map].into_iter().for_each(&mut *used);
            coords.iter_mut().for_each(&mut *used);
            pred(p, used);
        }
        Op::BulkLoad { dst, src, bytes, mbar, multicast, pred: p } => {
            [dst, src, bytes, mbar].into_iter().chain(multicast).for_each(&mut *used);
            pred(p, used);
        }
        Op::BulkMove { dst, src, bytes, mbar, pred: p } => {
            [dst, src, bytes, mbar].into_iter().for_each(&mut *used);
            pred(p, used);
        }
        Op::StAsync { v, at, mbar } => {
            access(at, used);
            v.iter_mut().for_each(&mut *used);
            used(mbar);
        }
        Op::BulkStore { dst, src, bytes, pred: p, .. } => {
            [dst, src, bytes].into_iter().for_each(&mut *used);
            pred(p, used);
        }
        Op::BulkCommit { pred: p } | Op::BulkWait { pred: p, .. } => pred(p, used),
        Op::Print { format, args } => {
            used(format);
            used(args);
        }
        Op::Assert { message, file, line, func } => [message, file, line, func].into_iter().for_each(used),
        Op::Branch { c, .. } => used(c),
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
