//! Bulk copies and the tensor maps that describe them.

use std::sync::atomic::Ordering;

use super::warp::BulkOut;
use super::{BulkIn, Cta, Warp};
use crate::alu;
use crate::bytecode::*;
use crate::check::Kind;
use crate::mem::GLOBAL_BASE;
use crate::shared::RANK_SHIFT;
use crate::tma::{self, ElemType, Map, Piece};

impl<const W: usize> Cta<'_, W> {
    pub(super) fn map_replace(
        &mut self,
        warp: &mut Warp<W>,
        field: MapField,
        addr: Src,
        value: Src,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        self.demand(warp, addr, 1 << l, "an address");
        self.demand(warp, value, 1 << l, "a field of a tensor map");
        let (a, v) = (warp.src(self.consts, addr)[l], warp.src(self.consts, value)[l]);
        let Some((offset, n)) = tma::field(field) else {
            self.report(warp, Kind::Invalid, l as u32, Some(a), || format!("tensormap.replace of {field:?}"));
            return;
        };
        if a >= GLOBAL_BASE {
            match self.shape.global.locate_mut(a + u64::from(offset), u64::from(n)) {
                Ok((b, o)) => b.write(o, n, v),
                Err(f) => self.report(warp, Kind::OutOfBounds, l as u32, Some(a), || {
                    format!("a tensor map outside every buffer: {f:?}")
                }),
            }
            return;
        }
        let at = warp.shared(a).saturating_add(offset);
        if !self.shared.contains(u64::from(at), u64::from(n)) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(a), || {
                "a tensor map outside shared memory".to_owned()
            });
            return;
        }
        let h = self.shared.note_write(at, u32::from(n), warp.who(l));
        if h.any() {
            self.hazard(warp, l as u32, u64::from(at), h, true);
        }
        self.shared.write(at, n, v);
    }

    pub(super) fn map_copy(&mut self, warp: &mut Warp<W>, dst: Src, src: Src, pred: Option<Pred>) {
        let Some(l) = self.leader(warp, pred) else { return };
        let (to, from) = (warp.src(self.consts, dst)[l], warp.src(self.consts, src)[l]);
        let from = warp.shared(from);
        if !self.shared.contains(u64::from(from), u64::from(tma::MAP_BYTES)) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(from)), || {
                "a tensor map outside shared memory".to_owned()
            });
            return;
        }
        let h = self.shared.note_read(from, tma::MAP_BYTES, warp.who(l));
        if h.any() {
            self.hazard(warp, l as u32, u64::from(from), h, false);
        }
        match self.shape.global.locate_mut(to, u64::from(tma::MAP_BYTES)) {
            Ok((b, o)) => {
                for (i, byte) in self.shared.bytes(from, tma::MAP_BYTES).iter().enumerate() {
                    b.write(o + i as u64, 1, u64::from(*byte));
                }
            }
            Err(f) => self.report(warp, Kind::OutOfBounds, l as u32, Some(to), || {
                format!("a tensor map is copied outside: {f:?}")
            }),
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
    }

    fn read_map(&mut self, warp: &Warp<W>, address: u64, coords: &[i32], rows: bool) -> Option<Map> {
        let (count, rank) = (coords.len(), if rows { 2 } else { coords.len() });
        let parsed = match self.shape.global.locate(address, u64::from(tma::MAP_BYTES)) {
            Ok((b, o)) => {
                let bytes: Vec<u8> = (0..u64::from(tma::MAP_BYTES)).map(|i| b.read(o + i, 1) as u8).collect();
                Map::new(&bytes)
            }
            Err(f) => Err(format!("a tensor map outside every buffer: {f:?}")),
        };
        match parsed {
            Ok(m) if m.rank() == rank && (!rows || (count == 5 && m.rows() == 1)) => Some(m),
            Ok(m) => {
                let have = m.rank();
                self.report(warp, Kind::Invalid, 0, Some(address), || {
                    if rows {
                        format!("a copy of four rows with {count} coordinates and a tensor map of rank {have}, which must have rank 2 and boxes of one row")
                    } else {
                        format!("a copy with {count} coordinates and a tensor map of rank {have}")
                    }
                });
                None
            }
            Err(e) => {
                self.report(warp, Kind::Invalid, 0, Some(address), || e);
                None
            }
        }
    }

    fn box_address(&mut self, warp: &Warp<W>, a: u64, map: &Map, rows: bool) -> Option<u32> {
        let at = warp.shared(a);
        if !at.is_multiple_of(map.shared_align()) {
            self.report(warp, Kind::Misaligned, 0, Some(a), || {
                "a bulk tensor copy whose shared address is no multiple of 128".to_owned()
            });
        }
        if self.shared.contains(u64::from(at), u64::from(map.box_bytes()) * if rows { 4 } else { 1 }) {
            return Some(at);
        }
        self.report(warp, Kind::OutOfBounds, 0, Some(a), || {
            "a bulk tensor copy outside shared memory".to_owned()
        });
        None
    }

    /// Hardware traps on copies that begin elsewhere (seen on an H200; CUDA programming guide, "Asynchronous
    /// Data Copies using TMA": no negative indices where a tensor is written).
    fn check_start(&mut self, warp: &Warp<W>, map: &Map, coords: &[i32], writes: bool) {
        let bytes = i64::from(map.elem.bytes());
        if let Some(first) = coords.first().filter(|first| i64::from(**first) * bytes % 16 != 0) {
            self.report(warp, Kind::Misaligned, 0, None, || {
                format!(
                    "a bulk tensor copy begins at element {first} of {bytes} bytes, no multiple of 16 bytes"
                )
            });
        }
        if writes && coords.iter().any(|c| *c < 0) {
            self.report(warp, Kind::Invalid, 0, None, || {
                format!("a bulk copy to a tensor begins at {coords:?}; indices must not be negative")
            });
        }
    }

    pub(super) fn tma_load(
        &mut self,
        warp: &mut Warp<W>,
        dst: Src,
        map: Src,
        (coords, rows): (&[Src], bool),
        mbar: Src,
        multicast: Option<Src>,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in coords.iter().chain([&dst, &map, &mbar]) {
            self.demand(warp, *s, 1 << l, "an operand of a bulk copy");
        }
        let at = |s: Src| warp.src(self.consts, s)[l];
        let (dst, map, mbar, multicast) = (at(dst), at(map), at(mbar), multicast.map(at));
        let coords: Vec<i32> = coords.iter().map(|s| at(*s) as u32 as i32).collect();
        let Some(map) = self.read_map(warp, map, &coords, rows) else { return };
        let Some(base) = self.box_address(warp, dst, &map, rows) else { return };
        self.check_start(warp, &map, &coords, false);
        let t = map.elem.bytes();
        let mut pieces = Vec::new();
        for p in boxes(&map, base, &coords, rows) {
            let mut data = Vec::with_capacity(16);
            for e in 0..p.total {
                let inside = e >= p.outside && e < p.outside + p.inside;
                let bits = if inside {
                    self.global_element(warp, p.global + u64::from((e - p.outside) * t), t)
                } else {
                    map.fill()
                };
                data.extend_from_slice(&bits.to_le_bytes()[..t as usize]);
            }
            self.count_bulk(warp, p.global, p.inside * t);
            self.check_bulk_order(warp, l, p.global, u64::from(p.inside * t));
            pieces.push((p.shared, data));
        }
        self.send(warp, l, mbar, multicast, pieces);
    }

    fn global_element(&mut self, warp: &Warp<W>, a: u64, n: u32) -> u64 {
        match self.shape.global.locate(a, u64::from(n)) {
            Ok((b, o)) => b.read(o, n as u8),
            Err(f) => {
                self.report(warp, Kind::OutOfBounds, 0, Some(a), || {
                    format!("a bulk copy reads outside: {f:?}")
                });
                0
            }
        }
    }

    fn count_bulk(&mut self, warp: &Warp<W>, global: u64, bytes: u32) {
        if bytes == 0 {
            return;
        }
        let c = &mut self.counts.at[warp.pc as usize];
        c.sectors += ((global + u64::from(bytes) - 1) >> 5) - (global >> 5) + 1;
        c.min_sectors += u64::from(bytes).div_ceil(32);
        c.global_bytes += u64::from(bytes);
        c.shared_bytes += u64::from(bytes);
    }

    /// Issues a copy by lane `l` of pieces that are known already, or are still to be read at `from`.
    fn issue_in(
        &mut self,
        warp: &mut Warp<W>,
        l: usize,
        mbar: u32,
        pieces: Vec<(u32, Vec<u8>)>,
        from: Option<u32>,
    ) {
        for (a, data) in &pieces {
            let h = self.shared.begin_write(*a, data.len() as u32, warp.who_async(l));
            if h.any() {
                self.hazard(warp, l as u32, u64::from(*a), h, true);
            }
        }
        let by = warp.who_async(l).now;
        let at = pieces.iter().map(|p| p.0).collect();
        let data: Vec<u8> = pieces.into_iter().flat_map(|p| p.1).collect();
        if let Some(from) = from {
            let h = self.shared.begin_read(from, data.len() as u32, warp.who_async(l));
            if h.any() {
                self.hazard(warp, l as u32, u64::from(from), h, false);
            }
        }
        let knows = warp.order.publish(1 << l);
        self.bulk_in.push(BulkIn { mbar, at, data, from, by, knows });
    }

    pub(super) fn bulk_load(
        &mut self,
        warp: &mut Warp<W>,
        operands: [Src; 4],
        multicast: Option<Src>,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in operands.iter().chain(&multicast) {
            self.demand(warp, *s, 1 << l, "an operand of a bulk copy");
        }
        let [to, from, n, mbar] = operands.map(|s| warp.src(self.consts, s)[l]);
        let multicast = multicast.map(|s| warp.src(self.consts, s)[l]);
        let to = warp.shared(to);
        if n % 16 != 0 || !from.is_multiple_of(16) || !to.is_multiple_of(16) {
            self.report(warp, Kind::Misaligned, l as u32, Some(from), || format!("a bulk copy of {n} bytes"));
        }
        if !self.shared.contains(u64::from(to), n) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(to)), || {
                "a bulk copy outside shared memory".to_owned()
            });
            return;
        }
        let mut pieces = Vec::new();
        for i in (0..n).step_by(16) {
            let len = (n - i).min(16);
            let data = (0..len).map(|k| self.global_element(warp, from + i + k, 1) as u8).collect();
            pieces.push((to + i as u32, data));
        }
        self.count_bulk(warp, from, n as u32);
        self.check_bulk_order(warp, l, from, n);
        self.send(warp, l, mbar, multicast, pieces);
    }

    /// Issues a load into this program's memory, or at the same place into that of several.
    fn send(
        &mut self,
        warp: &mut Warp<W>,
        l: usize,
        mbar: u64,
        ranks: Option<u64>,
        pieces: Vec<(u32, Vec<u8>)>,
    ) {
        let Some(ranks) = ranks else { return self.issue_in(warp, l, warp.shared(mbar), pieces, None) };
        let offset = |a: u32| a & ((1 << RANK_SHIFT) - 1);
        if ranks & 0xffff == 0 || (ranks & 0xffff) >> self.ranks != 0 {
            let all = self.ranks;
            self.report(warp, Kind::Invalid, 0, None, || {
                format!("a multicast to the programs {ranks:#x} of a cluster of {all}")
            });
        }
        for rank in (0..self.ranks).filter(|r| ranks >> r & 1 != 0) {
            let there = |a: u32| rank << RANK_SHIFT | offset(a);
            let copies = pieces.iter().map(|(a, data)| (there(*a), data.clone())).collect();
            self.issue_in(warp, l, there(warp.shared(mbar)), copies, None);
        }
    }

    /// A copy between the shared memories of a cluster.
    pub(super) fn bulk_move(&mut self, warp: &mut Warp<W>, operands: [Src; 4], pred: Option<Pred>) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in operands {
            self.demand(warp, s, 1 << l, "an operand of a bulk copy");
        }
        let [to, from, n, mbar] = operands.map(|s| warp.src(self.consts, s)[l]);
        let (to, from) = (warp.shared(to), warp.shared(from));
        if n % 16 != 0 || !from.is_multiple_of(16) || !to.is_multiple_of(16) {
            self.report(warp, Kind::Misaligned, l as u32, Some(u64::from(from)), || {
                format!("a bulk copy of {n} bytes")
            });
        }
        if n > u64::from(u32::MAX)
            || !self.shared.contains(u64::from(to), n)
            || !self.shared.contains(u64::from(from), n)
        {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(to)), || {
                "a bulk copy outside shared memory".to_owned()
            });
            return;
        }
        self.check_owner(warp, l as u32, to);
        let piece = |i: u32| (to + i, vec![0; (n as u32 - i).min(16) as usize]);
        let pieces = (0..n as u32).step_by(16).map(piece).collect();
        self.issue_in(warp, l, warp.shared(mbar), pieces, Some(from));
    }

    /// `st.async`: the data arrive when somebody waits for the barrier object.
    pub(super) fn st_async(&mut self, warp: &mut Warp<W>, v: &[Src], at: &Access, mbar: Src) {
        let bytes = u32::from(at.bytes) * v.len() as u32;
        let active = warp.active(self.consts, at.pred);
        for s in v.iter().chain([&at.addr, &mbar]) {
            self.demand(warp, *s, active, "an operand of st.async");
        }
        for l in (0..W).filter(|l| active >> l & 1 != 0) {
            let value = |s: Src| warp.src(self.consts, s)[l];
            let to = warp.shared(value(at.addr).wrapping_add(at.offset as u64));
            let object = warp.shared(value(mbar));
            if !self.shared.contains(u64::from(to), u64::from(bytes)) {
                self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(to)), || {
                    "st.async outside shared memory".to_owned()
                });
                continue;
            }
            let data = v.iter().flat_map(|s| value(*s).to_le_bytes()[..at.bytes as usize].to_vec()).collect();
            self.check_owner(warp, l as u32, to);
            self.issue_in(warp, l, object, vec![(to, data)], None);
        }
    }

    pub(super) fn bulk_store(
        &mut self,
        warp: &mut Warp<W>,
        operands: [Src; 3],
        (reduce, elem): (TmaReduce, ElemType),
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in operands {
            self.demand(warp, s, 1 << l, "an operand of a bulk copy");
        }
        let [to, from, n] = operands.map(|s| warp.src(self.consts, s)[l]);
        if n % 16 != 0 || !from.is_multiple_of(16) || !to.is_multiple_of(16) {
            self.report(warp, Kind::Misaligned, l as u32, Some(to), || format!("a bulk copy of {n} bytes"));
        }
        let from = warp.shared(from);
        if !self.shared.contains(u64::from(from), n) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(from)), || {
                "a bulk copy outside shared memory".to_owned()
            });
            return;
        }
        let pieces = (0..n).step_by(16).map(|i| (from + i as u32, to + i, (n - i).min(16) as u32)).collect();
        self.count_bulk(warp, to, n as u32);
        self.issue_out(warp, BulkOut { lane: l, pieces, reduce, elem });
    }

    pub(super) fn tma_store(
        &mut self,
        warp: &mut Warp<W>,
        src: Src,
        map: Src,
        (coords, rows): (&[Src], bool),
        reduce: TmaReduce,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in coords.iter().chain([&src, &map]) {
            self.demand(warp, *s, 1 << l, "an operand of a bulk copy");
        }
        let at = |s: Src| warp.src(self.consts, s)[l];
        let (src, map) = (at(src), at(map));
        let coords: Vec<i32> = coords.iter().map(|s| at(*s) as u32 as i32).collect();
        let Some(map) = self.read_map(warp, map, &coords, rows) else { return };
        let Some(base) = self.box_address(warp, src, &map, rows) else { return };
        self.check_start(warp, &map, &coords, true);
        let t = map.elem.bytes();
        let mut pieces = Vec::new();
        for p in boxes(&map, base, &coords, rows).into_iter().filter(|p| p.inside > 0) {
            self.count_bulk(warp, p.global, p.inside * t);
            pieces.push((p.shared + p.outside * t, p.global, p.inside * t));
        }
        self.issue_out(warp, BulkOut { lane: l, pieces, reduce, elem: map.elem });
    }

    fn issue_out(&mut self, warp: &mut Warp<W>, job: BulkOut) {
        for (a, _, n) in &job.pieces {
            let h = self.shared.begin_read(*a, *n, warp.who_async(job.lane));
            if h.any() {
                self.hazard(warp, job.lane as u32, u64::from(*a), h, false);
            }
            if h.uninit {
                self.report(warp, Kind::Uninitialized, job.lane as u32, Some(u64::from(*a)), || {
                    "a bulk copy reads uninitialized shared memory".to_owned()
                });
            }
        }
        warp.open_out.push(job);
    }

    /// Groups belong to the lane that committed them: lanes that wait finish their own.
    pub(super) fn bulk_wait(&mut self, warp: &mut Warp<W>, keep: u32, lanes: u64) {
        let done = warp.out.len().saturating_sub(keep as usize);
        let mut groups = std::mem::take(&mut warp.out);
        for group in &mut groups[..done] {
            let (ready, rest): (Vec<BulkOut>, _) =
                std::mem::take(group).into_iter().partition(|j| lanes >> j.lane & 1 != 0);
            ready.iter().for_each(|job| self.perform(warp, job));
            *group = rest;
        }
        let latest = groups.split_off(done);
        groups.retain(|g| !g.is_empty());
        groups.extend(latest);
        warp.out = groups;
    }

    /// Writes a bulk copy to global memory.
    pub(super) fn perform(&mut self, warp: &Warp<W>, job: &BulkOut) {
        let t = if job.reduce == TmaReduce::Store { 1 } else { job.elem.bytes() };
        for (from, to, n) in &job.pieces {
            match self.shape.global.locate_mut(*to, u64::from(*n)) {
                Ok((b, o)) => {
                    self.stored.note_write(*to, u64::from(*n), warp.who_async(job.lane));
                    for i in (0..*n).step_by(t as usize) {
                        let v = self.shared.read(from + i, t as u8);
                        let at = o + u64::from(i);
                        match atomic_of(job.reduce, job.elem) {
                            None => b.write(at, t as u8, v),
                            Some(op) => {
                                b.update(at, t as u8, |old| alu::atomic(op, t as u8, old, v, 0));
                            }
                        }
                    }
                }
                Err(f) => self.report(warp, Kind::OutOfBounds, 0, Some(*to), || {
                    format!("a bulk copy writes outside: {f:?}")
                }),
            }
            self.shared.end_read(*from, *n, warp.who_async(job.lane));
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
    }
}

/// The pieces of a box, or of four rows: then the coordinates are a column and the rows.
fn boxes(map: &Map, shared: u32, coords: &[i32], rows: bool) -> Vec<Piece> {
    if !rows {
        return map.pieces(shared, coords);
    }
    let row = |(i, r): (usize, &i32)| map.pieces(shared + i as u32 * map.box_bytes(), &[coords[0], *r]);
    coords[1..].iter().enumerate().flat_map(row).collect()
}

fn atomic_of(r: TmaReduce, e: ElemType) -> Option<AtomOp> {
    let float = match e {
        ElemType::F16 => Some(Fmt::F16),
        ElemType::BF16 => Some(Fmt::BF16),
        ElemType::F32 => Some(Fmt::F32),
        ElemType::F64 => Some(Fmt::F64),
        _ => None,
    };
    let signed = matches!(e, ElemType::S32 | ElemType::S64);
    Some(match (r, float) {
        (TmaReduce::Store, _) => return None,
        (TmaReduce::Add, Some(f)) => AtomOp::FAdd(f),
        (TmaReduce::Add, None) => AtomOp::Add,
        (TmaReduce::Min, Some(f)) => AtomOp::FMin(f),
        (TmaReduce::Max, Some(f)) => AtomOp::FMax(f),
        (TmaReduce::Min, None) => {
            if signed {
                AtomOp::SMin
            } else {
                AtomOp::UMin
            }
        }
        (TmaReduce::Max, None) => {
            if signed {
                AtomOp::SMax
            } else {
                AtomOp::UMax
            }
        }
        (TmaReduce::And, _) => AtomOp::And,
        (TmaReduce::Or, _) => AtomOp::Or,
        (TmaReduce::Xor, _) => AtomOp::Xor,
    })
}
