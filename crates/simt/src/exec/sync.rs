//! Barriers, barrier objects and asynchronous copies.
//!
//! Asynchronous operations take effect as late as the programming model allows: `cp.async`, and a load to the LDS, writes
//! shared memory at the wait for its group, a bulk load when somebody waits for its barrier object, a bulk store
//! reads shared memory and writes global memory at the wait for its group. Their bytes are marked in between.

use super::warp::{BulkOut, CopyGroup, LaneCopy, State};
use super::{BARRIERS, Cta, Mbar, Warp};
use crate::bytecode::*;
use crate::check::Kind;
use crate::counts;
use crate::shared::{Epoch, Knows, Who};

impl<const W: usize> Cta<'_, W> {
    /// Executes an operation of this module. False: the instruction is not over, or the warp has moved on
    /// by itself.
    pub(super) fn synchronize(&mut self, warp: &mut Warp<W>, op: &Op) -> bool {
        match op {
            Op::WarpSync { mask } => self.warp_sync(warp, *mask),
            Op::Bar { id, threads, wait, reduce, pred } => {
                return self.barrier(warp, *id, *threads, *wait, *reduce, *pred);
            }
            Op::ClusterArrive { relaxed } => self.meeting_arrive(warp, *relaxed),
            Op::ClusterWait => return self.meeting_wait(warp),
            Op::Fence { order, device } => self.fence(warp, *order, *device),
            Op::WgmmaFence => warp.fence_tick = Some(warp.tick),
            Op::FenceAsync { device } => warp.order.fence_proxy(warp.mask, warp.live, *device),
            Op::CpAsync { dst, src, src_bytes } => self.cp_async(warp, dst, *src, *src_bytes),
            Op::CpCommit { whole } => {
                let mut group = std::mem::take(&mut warp.open_copies);
                group.lanes = if *whole { warp.live } else { warp.mask };
                warp.copies.push(group);
            }
            Op::CpWait { keep } => self.cp_wait(warp, *keep),
            Op::CpMbarArrive { addr, noinc, pred } => self.cp_mbar_arrive(warp, *addr, *noinc, *pred),
            Op::WgmmaCommit => self.wgmma_commit(warp),
            Op::WgmmaWait { keep, .. } => self.wgmma_wait(warp, *keep),
            Op::MbarInit { addr, count, pred } => self.mbar_init(warp, *addr, *count, *pred),
            Op::MbarInval { addr, pred } => {
                for (_, a) in self.lane_values(warp, *addr, *pred) {
                    if self.mbars.remove(&warp.shared(a)).is_none() {
                        self.report(warp, Kind::Invalid, 0, Some(a), || {
                            "mbarrier.inval of no barrier object".to_owned()
                        });
                    }
                }
            }
            Op::MbarArrive { addr, count, tx, arrive, drop, d, pred } => {
                self.mbar_arrive(warp, *addr, *count, *tx, (*arrive, *drop), *d, *pred)
            }
            Op::MbarTry { d, addr, parity, wait, pred } => {
                return self.mbar_try(warp, *d, *addr, *parity, *wait, *pred);
            }
            Op::MapReplace { field, addr, value, pred } => {
                self.map_replace(warp, *field, *addr, *value, *pred)
            }
            Op::MapCopy { dst, src, pred } => self.map_copy(warp, *dst, *src, *pred),
            Op::TmaLoad { dst, map, coords, mbar, rows, multicast, pred } => {
                self.tma_load(warp, *dst, *map, (coords, *rows), *mbar, *multicast, *pred)
            }
            Op::TmaStore { src, map, coords, rows, reduce, pred } => {
                self.tma_store(warp, *src, *map, (coords, *rows), *reduce, *pred)
            }
            Op::BulkLoad { dst, src, bytes, mbar, multicast, pred } => {
                self.bulk_load(warp, [*dst, *src, *bytes, *mbar], *multicast, *pred)
            }
            Op::BulkMove { dst, src, bytes, mbar, pred } => {
                self.bulk_move(warp, [*dst, *src, *bytes, *mbar], *pred)
            }
            Op::StAsync { v, at, mbar } => self.st_async(warp, v, at, *mbar),
            Op::BulkStore { dst, src, bytes, reduce, elem, pred } => {
                self.bulk_store(warp, [*dst, *src, *bytes], (*reduce, *elem), *pred)
            }
            Op::TensorMove { loads, words } => self.tensor_move(warp, *loads, words),
            Op::TensorWait { keep } => self.tensor_wait(warp, *keep),
            Op::BulkCommit { pred } => {
                let runs = warp.active(self.consts, *pred) != 0;
                let group = if runs { std::mem::take(&mut warp.open_out) } else { Vec::new() };
                warp.out.extend(runs.then_some(group));
            }
            Op::BulkWait { keep, pred } => {
                let lanes = warp.active(self.consts, *pred);
                if lanes != 0 {
                    self.bulk_wait(warp, *keep, lanes);
                }
            }
            _ => {}
        }
        true
    }

    /// The lanes that execute, and the values of an operand in them.
    fn lane_values(&mut self, warp: &Warp<W>, s: Src, pred: Option<Pred>) -> Vec<(usize, u64)> {
        if let Some(p) = pred {
            self.demand(warp, p.src, warp.mask, "a predicate");
        }
        let active = warp.active(self.consts, pred);
        self.demand(warp, s, active, "an address");
        let v = warp.src(self.consts, s);
        (0..W).filter(|l| active >> l & 1 != 0).map(|l| (l, v[l])).collect()
    }

    /// The first lane that executes, if any.
    pub(super) fn leader(&mut self, warp: &Warp<W>, pred: Option<Pred>) -> Option<usize> {
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
        reduce: Option<(BarReduce, Src, Reg)>,
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
        if id >= BARRIERS {
            self.report(warp, Kind::Invalid, 0, None, || format!("barrier {id}; there are 16"));
            return true;
        }
        let needed = wanted.div_ceil(W as u32);
        let number = id;
        let id = id + BARRIERS * warp.rank as usize;
        let b = &mut self.barriers[id];
        if b.arrived > 0 && b.needed != needed {
            let other = b.needed;
            self.report(warp, Kind::Divergent, 0, None, || {
                format!("barrier {number} is executed for {needed} warps while others wait in it for {other}")
            });
        }
        let b = &mut self.barriers[id];
        b.needed = needed;
        b.arrived += 1;
        let told = warp.order.publish_at_barrier(warp.live);
        match &mut b.knows {
            Some(k) => k.join(&told),
            none => *none = Some(told),
        }
        if let Some((kind, v, d)) = reduce {
            let values = warp.src(self.consts, v);
            for (l, x) in values.iter().enumerate().filter(|(l, _)| warp.mask >> l & 1 != 0) {
                let _ = l;
                b.votes.0 += x & 1;
                b.votes.1 += 1;
            }
            warp.vote = Some((kind, d));
        }
        warp.pc += 1;
        if wait {
            b.waiting |= 1 << warp.index;
            warp.state = State::AtBarrier(id as u32);
        }
        if b.arrived >= b.needed {
            self.release(id, Some(warp));
        }
        false
    }

    /// Lets the warps of a barrier go.
    pub(super) fn release(&mut self, id: usize, current: Option<&mut Warp<W>>) {
        let b = std::mem::take(&mut self.barriers[id]);
        let Some(knows) = b.knows else { return };
        let go = |w: &mut Warp<W>| {
            if w.state == State::AtBarrier(id as u32) {
                w.order.meet(&knows);
                w.state = State::Ready;
                if let Some((kind, d)) = w.vote.take() {
                    let v = match kind {
                        BarReduce::Popc => b.votes.0,
                        BarReduce::And => u64::from(b.votes.0 == b.votes.1),
                        BarReduce::Or => u64::from(b.votes.0 != 0),
                    };
                    w.set(d, &[v; W], 0);
                }
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
            let a = warp.shared(targets[l]);
            let align = u64::from(dst.align);
            if !u64::from(a).is_multiple_of(align) || (reads >> l & 1 != 0 && !from[l].is_multiple_of(align))
            {
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
                    Ok((b, o)) => {
                        (0..take).for_each(|i| data[i as usize] = b.read(o + i, 1) as u8);
                        self.check_order(warp, l, from[l], take, warp.who(l));
                    }
                    Err(f) => {
                        let text = format!("cp.async reads {take} bytes outside: {f:?}");
                        self.report(warp, Kind::OutOfBounds, l as u32, Some(from[l]), || text);
                    }
                }
            }
            let h = self.shared.begin_write(a, n as u32, warp.who(l));
            if h.any() {
                self.hazard(warp, l as u32, u64::from(a), h, true);
            }
            let copy = LaneCopy { lane: l as u8, at: a, data, bytes: n as u8, pc: warp.pc };
            warp.open_copies.copies.push(copy);
        }
        let (plain, min, _) = counts::sectors(&from, reads, n);
        let sectors = if n == 16 { counts::copy_sectors(&from, reads) } else { plain };
        let waves = self.shape.program.gpu.banks().waves(&targets, active, n, n, true);
        let c = &mut self.counts.at[warp.pc as usize];
        c.sectors += sectors;
        c.min_sectors += min;
        c.global_bytes += n * u64::from(reads.count_ones());
        c.wavefronts += waves.total;
        c.conflicts += waves.conflicts;
        c.min_wavefronts += waves.min;
        c.shared_bytes += n * u64::from(active.count_ones());
    }

    /// The copies of all but the `keep` latest groups of each lane become visible.
    fn cp_wait(&mut self, warp: &mut Warp<W>, keep: u32) {
        let mut newer = [0u32; W];
        let now = (warp.slot, warp.order.now());
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
            self.land(g, done, now);
        }
        groups.retain(|g| g.lanes != 0);
        warp.copies = groups;
    }

    /// Writes the copies of some lanes of a group.
    fn land(&mut self, g: &mut CopyGroup, lanes: u64, (warp, time): (u32, u32)) {
        if lanes == 0 {
            return;
        }
        let shared = &mut self.shared;
        g.copies.retain(|c| {
            if lanes >> c.lane & 1 == 0 {
                return true;
            }
            let n = u32::from(c.bytes);
            shared.bytes_mut(c.at, n).copy_from_slice(&c.data[..n as usize]);
            shared.end_write(c.at, n, Epoch::new(warp, c.lane.into(), time, c.pc));
            false
        });
        g.lanes &= !lanes;
    }

    /// The arrival happens at once, with the copies done: later than any earlier moment at which the
    /// hardware could have done them, and before anybody who waits for the barrier object goes on.
    fn cp_mbar_arrive(&mut self, warp: &mut Warp<W>, addr: Src, noinc: bool, pred: Option<Pred>) {
        let active = warp.active(self.consts, pred);
        let now = (warp.slot, warp.order.now());
        let mut open = std::mem::take(&mut warp.open_copies);
        open.lanes = warp.live;
        self.land(&mut open, active, now);
        warp.open_copies = CopyGroup { lanes: 0, copies: open.copies };
        let mut groups = std::mem::take(&mut warp.copies);
        groups.iter_mut().for_each(|g| {
            let lanes = g.lanes & active;
            self.land(g, lanes, now);
        });
        groups.retain(|g| g.lanes != 0);
        warp.copies = groups;
        let list = self.lane_values(warp, addr, pred);
        self.tell(warp, &list);
        for (l, a) in list {
            if !noinc && let Some(m) = self.mbars.get_mut(&warp.shared(a)) {
                m.pending += 1;
            }
            self.arrive(warp, l, a, 1, 0);
        }
    }

    // ---- barrier objects ----

    fn mbar_init(&mut self, warp: &mut Warp<W>, addr: Src, count: Src, pred: Option<Pred>) {
        let counts = self.lane_values(warp, count, pred);
        let list = self.lane_values(warp, addr, pred);
        for ((l, a), (_, count)) in list.into_iter().zip(counts) {
            if !a.is_multiple_of(8) || !self.shared.contains(u64::from(warp.shared(a)), 8) {
                self.report(warp, Kind::Invalid, 0, Some(a), || {
                    "a barrier object outside shared memory or misaligned".to_owned()
                });
                continue;
            }
            let none = Knows::new(self.warps.len() as u32, false);
            let h = self.shared.note_write(warp.shared(a), 8, warp.who(l));
            if h.any() {
                self.hazard(warp, l as u32, a, h, true);
            }
            let m = Mbar { count, pending: count, tx: 0, phase: 0, arriving: none.clone(), released: none };
            self.mbars.insert(warp.shared(a), m);
        }
    }

    fn mbar_arrive(
        &mut self,
        warp: &mut Warp<W>,
        addr: Src,
        count: Src,
        tx: Option<Src>,
        (arrive, drop): (bool, bool),
        d: Option<Reg>,
        pred: Option<Pred>,
    ) {
        let counts = self.lane_values(warp, count, pred);
        let bytes = match tx {
            Some(t) => self.lane_values(warp, t, pred),
            None => counts.iter().map(|(l, _)| (*l, 0)).collect(),
        };
        let list = self.lane_values(warp, addr, pred);
        // The state that an arrival returns is the number of the phase it belongs to.
        if let Some(d) = d {
            let addresses = *warp.src(self.consts, addr);
            let phase = addresses.map(|a| self.mbars.get(&warp.shared(a)).map_or(0, |m| m.phase));
            let active = warp.active(self.consts, pred);
            warp.set_in(d, &phase, 0, active);
        }
        self.tell(warp, &list);
        for (((l, a), (_, n)), (_, t)) in list.into_iter().zip(counts).zip(bytes) {
            if drop && let Some(m) = self.mbars.get_mut(&warp.shared(a)) {
                m.count = m.count.saturating_sub(n);
            }
            self.arrive(warp, l, a, if arrive { n } else { 0 }, t as i64);
        }
    }

    /// Lanes that arrive on barrier objects tell those who will wait there what they know and did.
    fn tell(&mut self, warp: &mut Warp<W>, list: &[(usize, u64)]) {
        let mut left = list.to_vec();
        while let Some((_, first)) = left.first().copied() {
            let lanes = left.iter().filter(|(_, a)| *a == first).fold(0, |m, (l, _)| m | 1u64 << l);
            left.retain(|(_, a)| *a != first);
            let told = warp.order.publish(lanes);
            if let Some(m) = self.mbars.get_mut(&warp.shared(first)) {
                m.arriving.join(&told);
            }
        }
    }

    fn arrive(&mut self, warp: &Warp<W>, l: usize, address: u64, n: u64, tx: i64) {
        let a = warp.shared(address);
        let Some(m) = self.mbars.get_mut(&a) else {
            self.report(warp, Kind::Invalid, l as u32, Some(address), || {
                "an arrival on something that is no barrier object".to_owned()
            });
            return;
        };
        m.tx += tx;
        if n > m.pending {
            let pending = m.pending;
            m.pending = 0;
            self.report(warp, Kind::Invalid, l as u32, Some(address), || {
                format!("{n} arrivals on a barrier object that expects {pending}")
            });
        } else {
            m.pending -= n;
        }
        self.complete(a);
    }

    /// Ends the phase of a barrier object when nothing is missing.
    fn complete(&mut self, a: u32) {
        let all = self.warps.len() as u32;
        let Some(m) = self.mbars.get_mut(&a) else { return };
        if m.pending == 0 && m.tx == 0 {
            m.phase += 1;
            m.pending = m.count;
            m.released = std::mem::replace(&mut m.arriving, Knows::new(all, false));
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
        let a = warp.shared(address);
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
                warp.order.acquire(warp.active(self.consts, pred), warp.live, &m.released);
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
        for mut job in std::mem::take(&mut self.bulk_in) {
            if job.mbar != a {
                rest.push(job);
                continue;
            }
            let all = job.data.len() as u32;
            if let Some(from) = job.from {
                job.data.copy_from_slice(self.shared.bytes(from, all));
            }
            for (i, chunk) in job.data.chunks(16).enumerate() {
                let at = job.at[i];
                let n = chunk.len() as u32;
                self.shared.bytes_mut(at, n).copy_from_slice(chunk);
                self.shared.end_write(at, n, job.by);
            }
            if let Some(from) = job.from {
                let who = Who { now: job.by, knows: &job.knows, whole: false, fenced: None };
                self.shared.end_read(from, all, who);
            }
            if let Some(m) = self.mbars.get_mut(&a) {
                m.tx -= job.data.len() as i64;
                m.arriving.join(&job.knows);
            }
            self.complete(a);
        }
        self.bulk_in = rest;
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
        if warp.mask == warp.live && warp.tensors.iter().any(|under_way| !under_way.loads) {
            self.report(warp, Kind::AsyncHazard, warp.mask.trailing_zeros(), None, || {
                "the program ends before a tensor operation out of its shared memory is waited for".to_owned()
            });
            self.tensor_wait(warp, 0);
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
