//! Barriers, barrier objects and asynchronous copies.
//!
//! Asynchronous operations take effect as late as the programming model allows: `cp.async` writes shared
//! memory at the wait for its group, a bulk load when somebody waits for its barrier object, a bulk store
//! reads shared memory and writes global memory at the wait for its group. Their bytes are marked in between.

use std::sync::atomic::Ordering;

use super::warp::{BulkOut, CopyGroup, State};
use super::{BulkIn, Cta, Mbar, Warp, who, who_async};
use crate::alu;
use crate::bytecode::*;
use crate::check::Kind;
use crate::counts;
use crate::mem::SHARED_WINDOW;
use crate::shared::Clock;
use crate::tma::{self, ElemType, Map};

impl<const W: usize> Cta<'_, W> {
    /// Executes an operation of this module. False: the instruction is not over, or the warp has moved on
    /// by itself.
    pub(super) fn synchronize(&mut self, warp: &mut Warp<W>, op: &Op) -> bool {
        match op {
            Op::WarpSync { mask } => self.warp_sync(warp, *mask),
            Op::Bar { id, threads, wait, pred } => return self.barrier(warp, *id, *threads, *wait, *pred),
            Op::FenceAsync => {
                let seen = warp.clock.clone();
                warp.proxy.join(&seen);
                // What this warp writes from now on needs another fence.
                warp.clock.0[warp.index as usize] += 1;
            }
            Op::CpAsync { dst, src, src_bytes } => self.cp_async(warp, dst, *src, *src_bytes),
            Op::CpCommit => {
                let mut group = std::mem::take(&mut warp.open_copies);
                group.lanes = warp.mask;
                warp.copies.push(group);
            }
            Op::CpWait { keep } => self.cp_wait(warp, *keep),
            Op::CpMbarArrive { addr, noinc, pred } => self.cp_mbar_arrive(warp, *addr, *noinc, *pred),
            Op::WgmmaCommit => self.wgmma_commit(warp),
            Op::WgmmaWait { keep, .. } => self.wgmma_wait(warp, *keep),
            Op::MbarInit { addr, count, pred } => self.mbar_init(warp, *addr, *count, *pred),
            Op::MbarInval { addr, pred } => {
                for a in self.lane_values(warp, *addr, *pred) {
                    if self.mbars.remove(&shared_address(a)).is_none() {
                        self.report(warp, Kind::Invalid, 0, Some(a), || {
                            "mbarrier.inval of no barrier object".to_owned()
                        });
                    }
                }
            }
            Op::MbarArrive { addr, count, tx, arrive, d, pred } => {
                self.mbar_arrive(warp, *addr, *count, *tx, *arrive, *d, *pred)
            }
            Op::MbarTry { d, addr, parity, wait, pred } => {
                return self.mbar_try(warp, *d, *addr, *parity, *wait, *pred);
            }
            Op::MapReplace { field, addr, value, pred } => {
                self.map_replace(warp, *field, *addr, *value, *pred)
            }
            Op::MapCopy { dst, src, pred } => self.map_copy(warp, *dst, *src, *pred),
            Op::TmaLoad { dst, map, coords, mbar, pred } => {
                self.tma_load(warp, *dst, *map, coords, *mbar, *pred)
            }
            Op::TmaStore { src, map, coords, reduce, pred } => {
                self.tma_store(warp, *src, *map, coords, *reduce, *pred)
            }
            Op::BulkLoad { dst, src, bytes, mbar, pred } => {
                self.bulk_load(warp, *dst, *src, *bytes, *mbar, *pred)
            }
            Op::BulkStore { dst, src, bytes, pred } => self.bulk_store(warp, *dst, *src, *bytes, *pred),
            Op::BulkCommit { pred } => {
                let runs = warp.active(self.consts, *pred) != 0;
                let group = if runs { std::mem::take(&mut warp.open_out) } else { Vec::new() };
                warp.out.extend(runs.then_some(group));
            }
            Op::BulkWait { keep, pred } if warp.active(self.consts, *pred) != 0 => {
                self.bulk_wait(warp, *keep)
            }
            _ => {}
        }
        true
    }

    /// The values of an operand in the lanes that execute.
    fn lane_values(&mut self, warp: &Warp<W>, s: Src, pred: Option<Pred>) -> Vec<u64> {
        if let Some(p) = pred {
            self.demand(warp, p.src, warp.mask, "a predicate");
        }
        let active = warp.active(self.consts, pred);
        self.demand(warp, s, active, "an address");
        let v = warp.src(self.consts, s);
        (0..W).filter(|l| active >> l & 1 != 0).map(|l| v[l]).collect()
    }

    /// The first lane that executes, if any.
    fn leader(&mut self, warp: &Warp<W>, pred: Option<Pred>) -> Option<usize> {
        if let Some(p) = pred {
            self.demand(warp, p.src, warp.mask, "a predicate");
        }
        let active = warp.active(self.consts, pred);
        (active != 0).then(|| active.trailing_zeros() as usize)
    }

    // ---- barriers ----

    fn barrier(
        &mut self,
        warp: &mut Warp<W>,
        id: Src,
        threads: Option<Src>,
        wait: bool,
        pred: Option<Pred>,
    ) -> bool {
        if warp.active(self.consts, pred) == 0 {
            return true;
        }
        if warp.mask != warp.live {
            let (mask, live) = (warp.mask, warp.live);
            self.report(warp, Kind::Divergent, (live & !mask).trailing_zeros(), None, || {
                format!("a barrier is executed by the lanes {mask:#x} while {live:#x} are running")
            });
        }
        let id = warp.uniform(self.consts, id) as usize;
        let all = self.shape.threads;
        let wanted = threads.map_or(all, |t| warp.uniform(self.consts, t) as u32);
        if id >= self.barriers.len() {
            self.report(warp, Kind::Invalid, 0, None, || format!("barrier {id}; there are 16"));
            return true;
        }
        let needed = wanted.div_ceil(W as u32);
        let b = &mut self.barriers[id];
        if b.arrived > 0 && b.needed != needed {
            let other = b.needed;
            self.report(warp, Kind::Divergent, 0, None, || {
                format!("barrier {id} is executed for {needed} warps while others wait in it for {other}")
            });
        }
        let b = &mut self.barriers[id];
        b.needed = needed;
        b.arrived += 1;
        match &mut b.clock {
            Some((c, p)) => {
                c.join(&warp.clock);
                p.join(&warp.proxy);
            }
            none => *none = Some((warp.clock.clone(), warp.proxy.clone())),
        }
        warp.pc += 1;
        if wait {
            b.waiting |= 1 << warp.index;
            warp.state = State::AtBarrier(id as u32);
        } else {
            warp.clock.0[warp.index as usize] += 1;
        }
        if b.arrived >= b.needed {
            self.release(id, Some(warp));
        }
        false
    }

    /// Lets the warps of a barrier go.
    pub(super) fn release(&mut self, id: usize, current: Option<&mut Warp<W>>) {
        let b = std::mem::take(&mut self.barriers[id]);
        let Some((clock, proxy)) = b.clock else { return };
        let go = |w: &mut Warp<W>| {
            if w.state == State::AtBarrier(id as u32) {
                w.clock.join(&clock);
                w.proxy.join(&proxy);
                let own = w.index as usize;
                w.clock.0[own] += 1;
                w.state = State::Ready;
            }
        };
        self.warps.iter_mut().flatten().for_each(|w| go(w));
        if let Some(w) = current {
            go(w);
        }
    }

    // ---- cp.async ----

    fn cp_async(&mut self, warp: &mut Warp<W>, dst: &Access, src: Src, src_bytes: Option<Src>) {
        if let Some(p) = dst.pred {
            self.demand(warp, p.src, warp.mask, "a predicate of a memory access");
        }
        let active = warp.active(self.consts, dst.pred);
        self.demand(warp, dst.addr, active, "an address");
        let n = u64::from(dst.bytes);
        let to = *warp.src(self.consts, dst.addr);
        let from = *warp.src(self.consts, src);
        let size = src_bytes.map_or([n; W], |s| *warp.src(self.consts, s));
        let reads = (0..W).fold(0u64, |m, l| m | u64::from(active >> l & 1 != 0 && size[l] != 0) << l);
        self.demand(warp, src, reads, "an address");
        let mut targets = [0; W];
        for l in 0..W {
            targets[l] = to[l].wrapping_add(dst.offset as u64);
            if active >> l & 1 == 0 {
                continue;
            }
            let a = shared_address(targets[l]);
            if !u64::from(a).is_multiple_of(n) || (reads >> l & 1 != 0 && !from[l].is_multiple_of(n)) {
                self.report(warp, Kind::Misaligned, l as u32, Some(targets[l]), || {
                    format!("cp.async of {n} bytes")
                });
            }
            if !self.shared.contains(u64::from(a), n) {
                self.report(warp, Kind::OutOfBounds, l as u32, Some(targets[l]), || {
                    "cp.async writes outside shared memory".to_owned()
                });
                continue;
            }
            let mut data = [0; 16];
            let take = size[l].min(n);
            if take > 0 {
                match self.shape.global.locate(from[l], take) {
                    Ok((b, o)) => (0..take).for_each(|i| data[i as usize] = b.read(o + i, 1) as u8),
                    Err(f) => {
                        let text = format!("cp.async reads {take} bytes outside: {f:?}");
                        self.report(warp, Kind::OutOfBounds, l as u32, Some(from[l]), || text);
                    }
                }
            }
            let h = self.shared.begin_write(a, n as u32, who(warp));
            if h.any() {
                self.hazard(warp, l as u32, u64::from(a), h, true);
            }
            warp.open_copies.copies.push((l as u8, a, data, n as u8));
        }
        let (sectors, min, _) = counts::sectors(&from, reads, n);
        let (waves, min_waves) = counts::wavefronts(&targets, active, n);
        let c = &mut self.counts.at[warp.pc as usize];
        c.sectors += sectors;
        c.min_sectors += min;
        c.global_bytes += n * u64::from(reads.count_ones());
        c.wavefronts += waves;
        c.min_wavefronts += min_waves;
        c.shared_bytes += n * u64::from(active.count_ones());
    }

    /// The copies of all but the `keep` latest groups of each lane become visible.
    fn cp_wait(&mut self, warp: &mut Warp<W>, keep: u32) {
        let mut newer = [0u32; W];
        let clock = warp.clock.0[warp.index as usize];
        let mut groups = std::mem::take(&mut warp.copies);
        for g in groups.iter_mut().rev() {
            let mut done = 0u64;
            for (l, n) in newer.iter_mut().enumerate() {
                if g.lanes >> l & 1 != 0 {
                    *n += 1;
                    if *n > keep && warp.mask >> l & 1 != 0 {
                        done |= 1 << l;
                    }
                }
            }
            self.land(g, done, warp.index, clock);
        }
        groups.retain(|g| g.lanes != 0);
        warp.copies = groups;
    }

    /// Writes the copies of some lanes of a group.
    fn land(&mut self, g: &mut CopyGroup, lanes: u64, warp: u32, clock: u32) {
        if lanes == 0 {
            return;
        }
        let shared = &mut self.shared;
        g.copies.retain(|(l, a, data, n)| {
            if lanes >> l & 1 == 0 {
                return true;
            }
            shared.bytes_mut(*a, u32::from(*n)).copy_from_slice(&data[..*n as usize]);
            shared.end_write(*a, u32::from(*n), warp, clock, false);
            false
        });
        g.lanes &= !lanes;
    }

    /// The arrival happens at once, with the copies done: later than any earlier moment at which the
    /// hardware could have done them, and before anybody who waits for the barrier object goes on.
    fn cp_mbar_arrive(&mut self, warp: &mut Warp<W>, addr: Src, noinc: bool, pred: Option<Pred>) {
        let active = warp.active(self.consts, pred);
        let clock = warp.clock.0[warp.index as usize];
        let mut open = std::mem::take(&mut warp.open_copies);
        open.lanes = warp.live;
        self.land(&mut open, active, warp.index, clock);
        warp.open_copies = CopyGroup { lanes: 0, copies: open.copies };
        let mut groups = std::mem::take(&mut warp.copies);
        groups.iter_mut().for_each(|g| {
            let lanes = g.lanes & active;
            self.land(g, lanes, warp.index, clock);
        });
        groups.retain(|g| g.lanes != 0);
        warp.copies = groups;
        for a in self.lane_values(warp, addr, pred) {
            if !noinc && let Some(m) = self.mbars.get_mut(&shared_address(a)) {
                m.pending += 1;
            }
            self.arrive(warp, a, 1, 0);
        }
        warp.clock.0[warp.index as usize] += 1;
    }

    // ---- barrier objects ----

    fn mbar_init(&mut self, warp: &mut Warp<W>, addr: Src, count: Src, pred: Option<Pred>) {
        let counts = self.lane_values(warp, count, pred);
        let list = self.lane_values(warp, addr, pred);
        for (a, count) in list.into_iter().zip(counts) {
            if !a.is_multiple_of(8) || !self.shared.contains(u64::from(shared_address(a)), 8) {
                self.report(warp, Kind::Invalid, 0, Some(a), || {
                    "a barrier object outside shared memory or misaligned".to_owned()
                });
                continue;
            }
            let zero = Clock(vec![0; warp.clock.0.len()]);
            let none = (zero.clone(), zero);
            let h = self.shared.note_write(shared_address(a), 8, who(warp));
            if h.any() {
                self.hazard(warp, 0, a, h, true);
            }
            let m = Mbar { count, pending: count, tx: 0, phase: 0, arriving: none.clone(), released: none };
            self.mbars.insert(shared_address(a), m);
        }
    }

    fn mbar_arrive(
        &mut self,
        warp: &mut Warp<W>,
        addr: Src,
        count: Src,
        tx: Option<Src>,
        arrive: bool,
        d: Option<Reg>,
        pred: Option<Pred>,
    ) {
        let counts = self.lane_values(warp, count, pred);
        let bytes = match tx {
            Some(t) => self.lane_values(warp, t, pred),
            None => vec![0; counts.len()],
        };
        let list = self.lane_values(warp, addr, pred);
        let any = !list.is_empty();
        for ((a, n), t) in list.into_iter().zip(counts).zip(bytes) {
            self.arrive(warp, a, if arrive { n } else { 0 }, t as i64);
        }
        if let Some(d) = d {
            warp.set(d, &[0; W], 0);
        }
        if any {
            warp.clock.0[warp.index as usize] += 1;
        }
    }

    fn arrive(&mut self, warp: &Warp<W>, address: u64, n: u64, tx: i64) {
        let a = shared_address(address);
        let Some(m) = self.mbars.get_mut(&a) else {
            self.report(warp, Kind::Invalid, 0, Some(address), || {
                "an arrival on something that is no barrier object".to_owned()
            });
            return;
        };
        m.arriving.0.join(&warp.clock);
        m.arriving.1.join(&warp.proxy);
        m.tx += tx;
        if n > m.pending {
            let pending = m.pending;
            m.pending = 0;
            self.report(warp, Kind::Invalid, 0, Some(address), || {
                format!("{n} arrivals on a barrier object that expects {pending}")
            });
        } else {
            m.pending -= n;
        }
        self.complete(a);
    }

    /// Ends the phase of a barrier object when nothing is missing.
    fn complete(&mut self, a: u32) {
        let Some(m) = self.mbars.get_mut(&a) else { return };
        if m.pending == 0 && m.tx == 0 {
            m.phase += 1;
            m.pending = m.count;
            let zero = Clock(vec![0; m.arriving.0.0.len()]);
            m.released = std::mem::replace(&mut m.arriving, (zero.clone(), zero));
        }
    }

    /// Whether the phase of a parity is over.
    pub(super) fn mbar_ready(&self, a: u32, parity: u32) -> bool {
        self.mbars.get(&a).is_some_and(|m| (m.phase & 1) as u32 != parity & 1)
    }

    fn mbar_try(
        &mut self,
        warp: &mut Warp<W>,
        d: Reg,
        addr: Src,
        parity: Src,
        wait: bool,
        pred: Option<Pred>,
    ) -> bool {
        let Some(l) = self.leader(warp, pred) else { return true };
        self.demand(warp, addr, 1 << l, "an address");
        self.demand(warp, parity, 1 << l, "the parity of a wait");
        let address = warp.src(self.consts, addr)[l];
        let a = shared_address(address);
        let parity = warp.src(self.consts, parity)[l] as u32 & 1;
        if !self.mbars.contains_key(&a) {
            self.report(warp, Kind::Invalid, l as u32, Some(address), || {
                "a wait for something that is no barrier object".to_owned()
            });
        }
        if !self.mbar_ready(a, parity) {
            self.deliver(a);
        }
        let ready = self.mbar_ready(a, parity);
        if ready {
            if let Some(m) = self.mbars.get(&a) {
                warp.clock.join(&m.released.0);
                warp.proxy.join(&m.released.1);
            }
        } else if wait {
            warp.state = State::AtMbar(a, parity);
            return false;
        }
        let active = warp.active(self.consts, pred);
        warp.set_in(d, &[u64::from(ready); W], 0, active);
        true
    }

    /// Bulk loads that a barrier object waits for arrive.
    pub(super) fn deliver(&mut self, a: u32) {
        let mut rest = Vec::new();
        for job in std::mem::take(&mut self.bulk_in) {
            if job.mbar != a {
                rest.push(job);
                continue;
            }
            for (i, chunk) in job.data.chunks(16).enumerate() {
                let at = job.at[i];
                let n = chunk.len() as u32;
                self.shared.bytes_mut(at, n).copy_from_slice(chunk);
                self.shared.end_write(at, n, job.warp, job.stamp, true);
            }
            if let Some(m) = self.mbars.get_mut(&a) {
                m.tx -= job.data.len() as i64;
                m.arriving.0.join(&job.clock.0);
                m.arriving.1.join(&job.clock.1);
            }
            self.complete(a);
        }
        self.bulk_in = rest;
    }

    // ---- bulk copies ----

    fn map_replace(
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
        let at = shared_address(a) + offset;
        if !self.shared.contains(u64::from(at), u64::from(n)) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(a), || {
                "a tensor map outside shared memory".to_owned()
            });
            return;
        }
        let h = self.shared.note_write(at, u32::from(n), who(warp));
        if h.any() {
            self.hazard(warp, l as u32, u64::from(at), h, true);
        }
        self.shared.write(at, n, v);
    }

    fn map_copy(&mut self, warp: &mut Warp<W>, dst: Src, src: Src, pred: Option<Pred>) {
        let Some(l) = self.leader(warp, pred) else { return };
        let (to, from) = (warp.src(self.consts, dst)[l], warp.src(self.consts, src)[l]);
        let from = shared_address(from);
        if !self.shared.contains(u64::from(from), u64::from(tma::MAP_BYTES)) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(from)), || {
                "a tensor map outside shared memory".to_owned()
            });
            return;
        }
        let h = self.shared.note_read(from, tma::MAP_BYTES, who(warp));
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

    fn read_map(&mut self, warp: &Warp<W>, address: u64, rank: usize) -> Option<Map> {
        let parsed = match self.shape.global.locate(address, u64::from(tma::MAP_BYTES)) {
            Ok((b, o)) => {
                let bytes: Vec<u8> = (0..u64::from(tma::MAP_BYTES)).map(|i| b.read(o + i, 1) as u8).collect();
                Map::new(&bytes)
            }
            Err(f) => Err(format!("a tensor map outside every buffer: {f:?}")),
        };
        match parsed {
            Ok(m) if m.rank() == rank => Some(m),
            Ok(m) => {
                let have = m.rank();
                self.report(warp, Kind::Invalid, 0, Some(address), || {
                    format!("a copy with {rank} coordinates and a tensor map of rank {have}")
                });
                None
            }
            Err(e) => {
                self.report(warp, Kind::Invalid, 0, Some(address), || e);
                None
            }
        }
    }

    fn box_address(&mut self, warp: &Warp<W>, a: u64, map: &Map) -> Option<u32> {
        let at = shared_address(a);
        if !at.is_multiple_of(map.shared_align()) {
            self.report(warp, Kind::Misaligned, 0, Some(a), || {
                "a bulk tensor copy whose shared address is no multiple of 128".to_owned()
            });
        }
        if self.shared.contains(u64::from(at), u64::from(map.box_bytes())) {
            return Some(at);
        }
        self.report(warp, Kind::OutOfBounds, 0, Some(a), || {
            "a bulk tensor copy outside shared memory".to_owned()
        });
        None
    }

    fn tma_load(
        &mut self,
        warp: &mut Warp<W>,
        dst: Src,
        map: Src,
        coords: &[Src],
        mbar: Src,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        for s in coords.iter().chain([&dst, &map, &mbar]) {
            self.demand(warp, *s, 1 << l, "an operand of a bulk copy");
        }
        let at = |s: Src| warp.src(self.consts, s)[l];
        let (dst, map, mbar) = (at(dst), at(map), at(mbar));
        let coords: Vec<i32> = coords.iter().map(|s| at(*s) as u32 as i32).collect();
        let Some(map) = self.read_map(warp, map, coords.len()) else { return };
        let Some(base) = self.box_address(warp, dst, &map) else { return };
        let t = map.elem.bytes();
        let mut pieces = Vec::new();
        for p in map.pieces(base, &coords) {
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
            pieces.push((p.shared, data));
        }
        self.issue_in(warp, mbar, pieces);
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

    fn issue_in(&mut self, warp: &mut Warp<W>, mbar: u64, pieces: Vec<(u32, Vec<u8>)>) {
        for (a, data) in &pieces {
            let h = self.shared.begin_write(*a, data.len() as u32, who_async(warp));
            if h.any() {
                self.hazard(warp, 0, u64::from(*a), h, true);
            }
        }
        let stamp = warp.clock.0[warp.index as usize];
        let at = pieces.iter().map(|p| p.0).collect();
        let data = pieces.into_iter().flat_map(|p| p.1).collect();
        let clock = (warp.clock.clone(), warp.proxy.clone());
        self.bulk_in.push(BulkIn { mbar: shared_address(mbar), at, data, warp: warp.index, stamp, clock });
        warp.clock.0[warp.index as usize] += 1;
    }

    fn bulk_load(
        &mut self,
        warp: &mut Warp<W>,
        dst: Src,
        src: Src,
        bytes: Src,
        mbar: Src,
        pred: Option<Pred>,
    ) {
        let Some(l) = self.leader(warp, pred) else { return };
        let [to, from, n, mbar] = [dst, src, bytes, mbar].map(|s| warp.src(self.consts, s)[l]);
        let to = shared_address(to);
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
        self.issue_in(warp, mbar, pieces);
    }

    fn bulk_store(&mut self, warp: &mut Warp<W>, dst: Src, src: Src, bytes: Src, pred: Option<Pred>) {
        let Some(l) = self.leader(warp, pred) else { return };
        let [to, from, n] = [dst, src, bytes].map(|s| warp.src(self.consts, s)[l]);
        let from = shared_address(from);
        if !self.shared.contains(u64::from(from), n) {
            self.report(warp, Kind::OutOfBounds, l as u32, Some(u64::from(from)), || {
                "a bulk copy outside shared memory".to_owned()
            });
            return;
        }
        let pieces = (0..n).step_by(16).map(|i| (from + i as u32, to + i, (n - i).min(16) as u32)).collect();
        self.count_bulk(warp, to, n as u32);
        self.issue_out(warp, BulkOut { pieces, reduce: TmaReduce::Store, elem: ElemType::U8 });
    }

    fn tma_store(
        &mut self,
        warp: &mut Warp<W>,
        src: Src,
        map: Src,
        coords: &[Src],
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
        let Some(map) = self.read_map(warp, map, coords.len()) else { return };
        let Some(base) = self.box_address(warp, src, &map) else { return };
        let t = map.elem.bytes();
        let mut pieces = Vec::new();
        for p in map.pieces(base, &coords).into_iter().filter(|p| p.inside > 0) {
            self.count_bulk(warp, p.global, p.inside * t);
            pieces.push((p.shared + p.outside * t, p.global, p.inside * t));
        }
        self.issue_out(warp, BulkOut { pieces, reduce, elem: map.elem });
    }

    fn issue_out(&mut self, warp: &mut Warp<W>, job: BulkOut) {
        for (a, _, n) in &job.pieces {
            let h = self.shared.begin_read(*a, *n, who_async(warp));
            if h.any() {
                self.hazard(warp, 0, u64::from(*a), h, false);
            }
            if h.uninit {
                self.report(warp, Kind::Uninitialized, 0, Some(u64::from(*a)), || {
                    "a bulk copy reads uninitialized shared memory".to_owned()
                });
            }
        }
        warp.open_out.push(job);
    }

    fn bulk_wait(&mut self, warp: &mut Warp<W>, keep: u32) {
        let done = warp.out.len().saturating_sub(keep as usize);
        let rest = warp.out.split_off(done);
        for job in std::mem::replace(&mut warp.out, rest).into_iter().flatten() {
            self.perform(warp, &job);
        }
    }

    /// Writes a bulk copy to global memory.
    fn perform(&mut self, warp: &Warp<W>, job: &BulkOut) {
        let t = if job.reduce == TmaReduce::Store { 1 } else { job.elem.bytes() };
        for (from, to, n) in &job.pieces {
            match self.shape.global.locate_mut(*to, u64::from(*n)) {
                Ok((b, o)) => {
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
            self.shared.end_read(*from, *n, who_async(warp));
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
    }

    // ---- the end ----

    pub(super) fn end_of_lanes(&mut self, warp: &mut Warp<W>) {
        if warp.mask == warp.live {
            let open = warp.out.iter().any(|g| !g.is_empty()) || !warp.open_out.is_empty();
            if open {
                self.report(warp, Kind::AsyncHazard, warp.mask.trailing_zeros(), None, || {
                    "the program ends before a bulk copy out of its shared memory is waited for".to_owned()
                });
                let jobs: Vec<BulkOut> =
                    warp.out.drain(..).flatten().chain(warp.open_out.drain(..)).collect();
                jobs.iter().for_each(|j| self.perform(warp, j));
            }
        }
        warp.end_lanes();
    }

    /// All warps have ended.
    pub(super) fn finish(&mut self) {
        for id in 0..self.barriers.len() {
            let b = &self.barriers[id];
            if b.waiting != 0 {
                self.release(id, None);
            }
        }
    }
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

/// An address operand of shared memory, generic or not.
fn shared_address(a: u64) -> u32 {
    (if a >= SHARED_WINDOW { a - SHARED_WINDOW } else { a }) as u32
}
