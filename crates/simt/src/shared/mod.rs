//! Shared memory of the programs of a cluster, with the shadow that finds races.
//!
//! Each byte remembers its last write and the reads since, as [`Epoch`]s: warp, lane, time, instruction. An access races
//! with a remembered one when its lane's clock does not cover that epoch (see [`Clock`]). Sets of several readers are
//! interned, so a byte needs one word for its reads. Lanes of a warp that read the same byte without a
//! synchronization between are remembered as "several lanes", which only a synchronization of the whole warp covers;
//! kernels in which fewer lanes synchronize ([`Shared::new`]'s `exact`) keep each.
//!
//! A second clock counts what the asynchronous proxy can see: a write through the generic proxy must be followed by
//! `fence.proxy.async` before a tensor core or a bulk copy reads it.
//!
//! Bytes that an asynchronous copy is going to write, and bytes that one is still reading, are counted, and
//! touching them before the wait is reported.
//!
//! On AMD the lanes of a wave execute their accesses together and in order, so they never race with each other.

mod clock;
mod epoch;
mod stored;

use std::collections::HashMap;

pub use clock::{Clock, Knows, Lanes, Snapshot};
pub use epoch::{Epoch, MAX_WARPS, SEVERAL};
pub use stored::Stored;

/// Marks an index into the table of reader sets.
const SET: u64 = 1 << 63;

/// An address is an offset with the rank of its program in the cluster from this bit on.
pub const RANK_SHIFT: u32 = 24;
/// Marks addresses of another program's memory in the registers of a kernel.
pub const REMOTE: u32 = 1 << 30;

/// What an access to shared memory ran into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hazard {
    /// The other access of a race, and whether it wrote. A write that races with reads names a reader.
    pub race: Option<(Epoch, bool)>,
    /// The bytes are the target of this copy, which has not been waited for.
    pub pending: Option<Epoch>,
    /// The bytes are still being read by an asynchronous operation (writes only): this one, or another.
    pub being_read: Option<Epoch>,
    /// Never written (reads only).
    pub uninit: bool,
    /// Written here through the generic proxy without a fence (asynchronous reads only).
    pub unfenced: Option<Epoch>,
}

impl Hazard {
    /// Adds what another access of the same instruction ran into.
    pub fn merge(&mut self, other: Hazard) {
        self.race = self.race.or(other.race);
        self.pending = self.pending.or(other.pending);
        self.being_read = self.being_read.or(other.being_read);
        self.uninit |= other.uninit;
        self.unfenced = self.unfenced.or(other.unfenced);
    }

    /// Whether anything but missing initialization was found.
    pub fn any(&self) -> bool {
        self.race.is_some() || self.pending.is_some() || self.being_read.is_some() || self.unfenced.is_some()
    }
}

/// Who accesses.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    /// The access.
    pub now: Epoch,
    /// What its lane, or what all lanes, know.
    pub knows: &'a Knows,
    /// Whether all that the lanes of its own warp did is known: they execute in order, or do this together.
    pub whole: bool,
    /// The times of its warp's lanes' last proxy fences; given for asynchronous accesses.
    pub fenced: Option<&'a [u32]>,
}

impl Who<'_> {
    /// Whether a remembered access happened before.
    #[inline(always)]
    fn covers(&self, e: Epoch) -> bool {
        let (warp, lane) = (e.warp(), e.lane());
        (warp == self.now.warp()
            && (self.whole
                || (lane == self.now.lane() && lane != SEVERAL)
                // What all lanes issue together comes before whatever one of them does later.
                || (lane == SEVERAL && e.is_asynchronous())))
            || self.knows.seen.knows(warp, lane, e.time())
    }

    /// Whether a remembered access of device memory happened before.
    fn covers_device(&self, e: Epoch) -> bool {
        let mine = e.warp() == self.now.warp() && (self.whole || e.lane() == self.now.lane());
        mine || self.agrees(e) || self.knows.device().knows(e.warp(), e.lane(), e.time())
    }

    /// Whether the asynchronous proxy sees a write to shared memory.
    fn sees(&self, e: Epoch) -> bool {
        self.sees_by(e, &self.knows.proxy)
    }

    /// The same of device memory, with the times of fences that are for it.
    fn sees_device(&self, e: Epoch) -> bool {
        self.sees_by(e, &self.knows.proxy_device)
    }

    fn sees_by(&self, e: Epoch, proxy: &Clock) -> bool {
        let Some(fenced) = self.fenced else { return true };
        if e.is_asynchronous() || proxy.knows(e.warp(), e.lane(), e.time()) {
            return true;
        }
        let mine = e.warp() == self.now.warp() && (self.whole || e.lane() == self.now.lane());
        let fence = match e.lane() {
            SEVERAL => fenced.iter().min(),
            lane => fenced.get(lane as usize),
        };
        mine && fence.is_some_and(|t| e.time() <= *t)
    }

    /// Whether two accesses may meet: both strong.
    fn agrees(&self, e: Epoch) -> bool {
        self.now.is_strong() && e.is_strong()
    }
}

/// The shared memory of the programs of a cluster.
pub struct Shared {
    /// First offset.
    pub base: u32,
    /// Bytes of a program.
    size: u32,
    data: Vec<u8>,
    /// Epochs as words, of which zeros cost nothing to begin with.
    writes: Vec<u64>,
    /// Epochs, or indices into `sets` marked by `SET`.
    reads: Vec<u64>,
    sets: Vec<Box<[Epoch]>>,
    interned: HashMap<(u64, Epoch), u64>,
    pending: Vec<u8>,
    pending_total: u32,
    reading: Vec<u16>,
    reading_total: u32,
    checks: bool,
    exact: bool,
}

impl Shared {
    /// `size` bytes from `base` on for each of `ranks` programs. `exact`: every reader is remembered by its lane.
    pub fn new(base: u32, size: u32, ranks: u32, checks: bool, exact: bool) -> Shared {
        let n = size as usize * ranks as usize;
        let shadow = if checks { n } else { 0 };
        Shared {
            base,
            size,
            data: vec![0; n],
            writes: vec![0; shadow],
            reads: vec![0; shadow],
            sets: Vec::new(),
            interned: HashMap::new(),
            pending: vec![0; shadow],
            pending_total: 0,
            reading: vec![0; shadow.div_ceil(16)],
            reading_total: 0,
            checks,
            exact,
        }
    }

    /// Whether `n` bytes from `address` on exist.
    #[inline]
    pub fn contains(&self, address: u64, n: u64) -> bool {
        let (rank, place) = (address >> RANK_SHIFT, address & ((1 << RANK_SHIFT) - 1));
        let offset = place.wrapping_sub(u64::from(self.base));
        let size = u64::from(self.size);
        offset < size && n <= size - offset && rank < self.data.len() as u64 / size
    }

    /// First offset behind the end.
    pub fn end(&self) -> u32 {
        self.base + self.size
    }

    fn index(&self, address: u32) -> usize {
        let offset = (address & ((1 << RANK_SHIFT) - 1)) - self.base;
        (address >> RANK_SHIFT) as usize * self.size as usize + offset as usize
    }

    /// The bytes themselves; the range must be inside.
    #[inline]
    pub fn bytes(&self, address: u32, n: u32) -> &[u8] {
        let i = self.index(address);
        &self.data[i..i + n as usize]
    }

    /// The bytes themselves, to write.
    #[inline]
    pub fn bytes_mut(&mut self, address: u32, n: u32) -> &mut [u8] {
        let i = self.index(address);
        &mut self.data[i..i + n as usize]
    }

    /// Reads `n` ≤ 8 bytes, zero-extended.
    #[inline]
    pub fn read(&self, address: u32, n: u8) -> u64 {
        let b = self.bytes(address, u32::from(n));
        match n {
            4 => u64::from(u32::from_le_bytes([b[0], b[1], b[2], b[3]])),
            _ => b.iter().rev().fold(0, |v, b| v << 8 | u64::from(*b)),
        }
    }

    /// Writes the low `n` ≤ 8 bytes.
    #[inline]
    pub fn write(&mut self, address: u32, n: u8, v: u64) {
        self.bytes_mut(address, u32::from(n)).copy_from_slice(&v.to_le_bytes()[..n as usize]);
    }

    /// The copy that is going to write some of these bytes.
    fn pending(&self, i: usize, n: u32) -> Option<Epoch> {
        let at = self.pending[i..i + n as usize].iter().position(|p| *p != 0)?;
        Some(Epoch(self.writes[i + at]))
    }

    /// Notes a read and returns what is wrong with it.
    #[inline]
    pub fn note_read(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let mut h = Hazard::default();
        if !self.checks {
            return h;
        }
        let i = self.index(address);
        if self.pending_total > 0 {
            h.pending = self.pending(i, n);
        }
        let (mut last_write, mut last_read) = (Epoch(u64::MAX), u64::MAX);
        let mut new_read = 0;
        for k in i..i + n as usize {
            let w = Epoch(self.writes[k]);
            if w != last_write {
                last_write = w;
                if w.is_none() {
                    h.uninit = true;
                } else {
                    if !who.covers(w) && !who.agrees(w) {
                        h.race = Some((w, true));
                    }
                    if who.fenced.is_some() && !who.sees(w) {
                        h.unfenced = Some(w);
                    }
                }
            }
            let r = self.reads[k];
            if r != last_read {
                last_read = r;
                new_read = self.with_reader(r, who);
            }
            self.reads[k] = new_read;
        }
        h
    }

    /// The reads `r` plus one now.
    #[inline(always)]
    fn with_reader(&mut self, r: u64, who: Who<'_>) -> u64 {
        if r == 0 {
            return who.now.0;
        }
        if r & SET == 0 {
            if who.covers(Epoch(r)) {
                return who.now.0;
            }
            if !self.exact && Epoch(r).warp() == who.now.warp() {
                return who.now.by_several().0;
            }
        }
        self.with_readers(r, who)
    }

    fn with_readers(&mut self, r: u64, who: Who<'_>) -> u64 {
        // One entry a warp, where lanes do not matter.
        let now = if self.exact { who.now } else { who.now.by_several() };
        if let Some(known) = self.interned.get(&(r, now)) {
            return *known;
        }
        let one = [Epoch(r)];
        let old: &[Epoch] = if r & SET == 0 { &one } else { &self.sets[(r & !SET) as usize] };
        let replaced = |e: Epoch| who.covers(e) || (!self.exact && e.warp() == now.warp()) || e.0 == now.0;
        let mut set: Vec<Epoch> = old.iter().copied().filter(|e| !replaced(*e)).collect();
        if !self.exact {
            set.iter_mut().for_each(|e| *e = e.by_several());
        }
        let new = if set.is_empty() {
            now.0
        } else {
            set.push(now);
            set.sort_unstable();
            self.sets.push(set.into());
            SET | (self.sets.len() as u64 - 1)
        };
        self.interned.insert((r, now), new);
        new
    }

    /// A remembered reader for which something holds.
    #[inline(always)]
    fn reader(&self, r: u64, wanted: impl Fn(Epoch) -> bool) -> Option<Epoch> {
        match r {
            0 => None,
            r if r & SET == 0 => Some(Epoch(r)).filter(|e| wanted(*e)),
            r => self.sets[(r & !SET) as usize].iter().copied().find(|e| wanted(*e)),
        }
    }

    /// Notes a write and returns what is wrong with it.
    #[inline]
    pub fn note_write(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let mut h = Hazard::default();
        if !self.checks {
            return h;
        }
        let i = self.index(address);
        if self.pending_total > 0 {
            h.pending = self.pending(i, n);
        }
        if self.reading_total > 0 {
            h.being_read = self.still_read(i, n);
        }
        let (mut last_write, mut last_read) = (Epoch(u64::MAX), u64::MAX);
        for k in i..i + n as usize {
            let (w, r) = (Epoch(self.writes[k]), self.reads[k]);
            if w != last_write {
                last_write = w;
                if !w.is_none() && h.race.is_none() && !who.covers(w) && !who.agrees(w) {
                    h.race = Some((w, true));
                }
            }
            if r != last_read {
                last_read = r;
                if let Some(e) = self.reader(r, |e| !who.covers(e) && !who.agrees(e)) {
                    h.race = Some((e, false));
                }
            }
            self.writes[k] = who.now.0;
            self.reads[k] = 0;
        }
        h
    }

    /// The asynchronous operation that still reads some of these bytes.
    fn still_read(&self, i: usize, n: u32) -> Option<Epoch> {
        let last = i + n as usize - 1;
        if self.reading[i / 16..=last / 16].iter().all(|c| *c == 0) {
            return None;
        }
        let reader = |k: usize| self.reader(self.reads[k], Epoch::is_asynchronous);
        Some((i..=last).find_map(reader).unwrap_or_default())
    }

    /// Notes an atomic operation, whose access is strong.
    pub fn note_atomic(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        if !self.checks {
            return Hazard::default();
        }
        let i = self.index(address);
        let uninit = self.writes[i..i + n as usize].iter().any(|w| Epoch(*w).is_none());
        let who = Who { now: who.now.strong(), ..who };
        Hazard { uninit, ..self.note_write(address, n, who) }
    }

    /// Marks bytes as uninitialized: an undefined value was stored.
    pub fn forget(&mut self, address: u32, n: u32) {
        if self.checks {
            let i = self.index(address);
            self.writes[i..i + n as usize].fill(0);
        }
    }

    /// An asynchronous copy is going to write these bytes.
    pub fn begin_write(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let h = self.note_write(address, n, who);
        if self.checks {
            let i = self.index(address);
            for p in &mut self.pending[i..i + n as usize] {
                *p = p.saturating_add(1);
            }
            self.pending_total += n;
        }
        h
    }

    /// The copy is done, and counts as a write by `now`.
    pub fn end_write(&mut self, address: u32, n: u32, now: Epoch) {
        if self.checks {
            let i = self.index(address);
            for k in i..i + n as usize {
                self.pending[k] = self.pending[k].saturating_sub(1);
                self.writes[k] = now.0;
                self.reads[k] = 0;
            }
            self.pending_total = self.pending_total.saturating_sub(n);
        }
    }

    /// An asynchronous operation starts to read these bytes.
    pub fn begin_read(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let h = self.note_read(address, n, who);
        if self.checks {
            let i = self.index(address);
            for c in &mut self.reading[i / 16..=(i + n as usize - 1) / 16] {
                *c = c.saturating_add(1);
            }
            self.reading_total += 1;
        }
        h
    }

    /// It is done reading; from now on the read counts as one by `who`.
    pub fn end_read(&mut self, address: u32, n: u32, who: Who<'_>) {
        if self.checks {
            let i = self.index(address);
            for c in &mut self.reading[i / 16..=(i + n as usize - 1) / 16] {
                *c = c.saturating_sub(1);
            }
            self.reading_total = self.reading_total.saturating_sub(1);
            let (mut last, mut new) = (u64::MAX, 0);
            for k in i..i + n as usize {
                let r = self.reads[k];
                if r != last {
                    last = r;
                    new = self.with_reader(r, who);
                }
                self.reads[k] = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A lane of a warp, at time 1.
    fn who(warp: u32, lane: u32, knows: &Knows) -> Who<'_> {
        Who { now: Epoch::new(warp, lane, 1, 10 * warp + lane), knows, whole: false, fenced: None }
    }

    fn memory() -> Shared {
        Shared::new(0, 64, 1, true, false)
    }

    #[test]
    fn unordered_accesses_of_two_warps_race() {
        let mut s = memory();
        let (a, mut b) = (Knows::new(2, false), Knows::new(2, false));
        assert!(!s.note_write(0, 4, who(0, 3, &a)).any());
        let (other, wrote) = s.note_read(2, 4, who(1, 0, &b)).race.unwrap();
        assert_eq!((other.warp(), other.lane(), other.pc(), wrote), (0, 3, Some(3), true));
        b.join(&Lanes::new((0, 2), 15, 4, false).publish(15));
        let h = s.note_read(0, 4, who(1, 0, &b));
        assert_eq!(h, Hazard::default());
        let (other, wrote) = s.note_write(0, 1, who(0, 3, &a)).race.unwrap();
        assert_eq!((other.warp(), wrote), (1, false));
    }

    #[test]
    fn lanes_of_a_warp_race_until_they_synchronize() {
        let mut s = memory();
        let mut w = Lanes::new((0, 1), 0b11, 2, false);
        let at = |w: &Lanes, lane| Epoch::new(0, lane, w.now(), 0);
        let lane = |w: &Lanes, l| s.note_write(0, 4, Who { now: at(w, l), ..who(0, l, w.of(l)) });
        let mut lane = lane;
        assert!(!lane(&w, 0).any() && !lane(&w, 0).any());
        assert_eq!(lane(&w, 1).race.map(|r| r.0.lane()), Some(0));
        w.sync(0b11, 0b11);
        assert!(!lane(&w, 0).any());
        // A wave in which all execute together, in order.
        let h = s.note_write(0, 4, Who { whole: true, ..who(0, 1, w.of(1)) });
        assert!(!h.any());
    }

    #[test]
    fn readers_of_a_warp_are_one_unless_asked_for() {
        let k = Knows::new(1, false);
        // Lane 1 read too, so lane 0 must not write; where lanes 0 and 1 synchronized, it may.
        let mut partial = Lanes::new((0, 1), 0b111, 3, false);
        partial.sync(0b011, 0b111);
        for (exact, known) in [(false, false), (true, true)] {
            let mut s = Shared::new(0, 64, 1, true, exact);
            for l in 0..2 {
                s.note_read(0, 4, who(0, l, &k));
            }
            let knows = partial.of(0);
            assert_eq!(s.note_write(0, 4, who(0, 0, knows)).race.is_none(), known, "{exact}");
        }
    }

    #[test]
    fn every_reader_of_a_byte_counts() {
        let mut s = memory();
        let mut warps: Vec<Lanes> = (0..3).map(|w| Lanes::new((w, 3), 1, 1, false)).collect();
        for w in 0..3 {
            s.note_read(0, 4, who(w, 0, warps[w as usize].of(0)));
        }
        let known = warps[1].publish(1);
        warps[2].acquire(1, 1, &known);
        assert_eq!(s.note_write(0, 4, who(2, 0, warps[2].of(0))).race.map(|r| r.0.warp()), Some(0));
    }

    #[test]
    fn strong_accesses_do_not_race() {
        let mut s = memory();
        let k = Knows::new(2, false);
        let strong = |w| Who { now: Epoch::new(w, 0, 1, 0).strong(), ..who(w, 0, &k) };
        assert!(!s.note_atomic(0, 4, who(0, 0, &k)).any());
        assert!(!s.note_atomic(0, 4, who(1, 0, &k)).any());
        assert!(!s.note_read(0, 4, strong(0)).any());
        assert!(s.note_read(0, 4, who(0, 0, &k)).any());
    }

    #[test]
    fn copies_in_flight_are_out_of_bounds_to_everyone() {
        let mut s = memory();
        let k = Knows::new(1, false);
        let a = who(0, 0, &k);
        s.begin_write(16, 16, a);
        assert_eq!(s.note_read(30, 4, a).pending, Some(a.now));
        assert_eq!(s.note_read(32, 4, a).pending, None);
        s.end_write(16, 16, a.now);
        assert_eq!(s.note_read(16, 16, a), Hazard::default());
        let reader = Who { now: a.now.asynchronous(), ..a };
        s.begin_read(16, 16, reader);
        assert_eq!(s.note_write(20, 4, a).being_read, Some(reader.now));
    }

    #[test]
    fn the_other_proxy_needs_a_fence() {
        let mut s = memory();
        let mut w = Lanes::new((0, 1), 0b11, 2, false);
        s.note_write(0, 16, who(0, 0, w.of(0)));
        let reads = |s: &mut Shared, w: &Lanes| {
            let now = Epoch::new(0, SEVERAL, w.now(), 0).asynchronous();
            s.note_read(0, 16, Who { now, knows: w.of(SEVERAL), whole: true, fenced: Some(w.fenced()) })
        };
        assert!(reads(&mut s, &w).unfenced.is_some());
        w.fence_proxy(0b10, 0b11, false);
        assert!(reads(&mut s, &w).unfenced.is_some(), "another lane's fence");
        w.fence_proxy(0b01, 0b11, false);
        assert!(reads(&mut s, &w).unfenced.is_none());
    }
}
