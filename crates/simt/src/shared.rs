//! Shared memory of one program, with the shadow that finds races.
//!
//! Every warp has a vector clock: entry *w* counts the synchronizations of warp *w* that this warp knows of.
//! A barrier joins the clocks of its warps; an arrival on a barrier object publishes a clock, a wait on it
//! takes it over. Each byte remembers its last write and the reads since, as (warp, clock) epochs. An access
//! races with a remembered one when its warp's clock does not cover that epoch (Flanagan and Freund,
//! "FastTrack: Efficient and Precise Dynamic Race Detection"). Sets of several readers are interned, so a
//! byte needs one word for its reads.
//!
//! A second vector clock per warp counts what the asynchronous proxy can see: a write through the generic
//! proxy must be followed by `fence.proxy.async` before a tensor core or a bulk copy reads it.
//!
//! Bytes that an asynchronous copy is going to write, and bytes that one is still reading, are counted, and
//! touching them before the wait is reported.

use std::collections::HashMap;

/// A warp's knowledge of all warps' clocks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clock(pub Vec<u32>);

impl Clock {
    /// Takes over what another clock knows.
    pub fn join(&mut self, other: &Clock) {
        for (a, b) in self.0.iter_mut().zip(&other.0) {
            *a = (*a).max(*b);
        }
    }
}

/// Who wrote or read: warp + 1 in the top bits, flags for the asynchronous proxy and for atomic operations,
/// the clock below.
type Epoch = u32;
const CLOCK_BITS: u32 = 21;
const CLOCK_MASK: u32 = (1 << CLOCK_BITS) - 1;
const PROXY: u32 = 1 << CLOCK_BITS;
const ATOMIC: u32 = 2 << CLOCK_BITS;
const WARP_SHIFT: u32 = CLOCK_BITS + 2;
/// Marks an index into the table of reader sets.
const SET: u32 = 1 << 31;

fn epoch(warp: u32, clock: u32, proxy: bool) -> Epoch {
    (warp + 1) << WARP_SHIFT | if proxy { PROXY } else { 0 } | (clock & CLOCK_MASK)
}

fn warp_of(e: Epoch) -> u32 {
    (e >> WARP_SHIFT) - 1
}

/// Most warps whose accesses can be told apart.
pub const MAX_WARPS: u32 = (1 << (31 - WARP_SHIFT)) - 2;

/// An address is an offset with the rank of its program in the cluster from this bit on.
pub const RANK_SHIFT: u32 = 24;
/// Marks addresses of another program's memory in the registers of a kernel.
pub const REMOTE: u32 = 1 << 30;

/// What an access to shared memory ran into.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hazard {
    /// The other warp of a race, and whether it wrote. A write that races with reads names a reader.
    pub race: Option<(u32, bool)>,
    /// The bytes are the target of a copy that has not been waited for.
    pub pending: bool,
    /// The bytes are still being read by an asynchronous operation (writes only).
    pub being_read: bool,
    /// Never written (reads only).
    pub uninit: bool,
    /// Written through the generic proxy without a fence (asynchronous reads only).
    pub unfenced: bool,
}

impl Hazard {
    /// Adds what another access of the same instruction ran into.
    pub fn merge(&mut self, other: Hazard) {
        self.race = self.race.or(other.race);
        self.pending |= other.pending;
        self.being_read |= other.being_read;
        self.uninit |= other.uninit;
        self.unfenced |= other.unfenced;
    }

    /// Whether anything but missing initialization was found.
    pub fn any(&self) -> bool {
        self.race.is_some() || self.pending || self.being_read || self.unfenced
    }
}

/// Who accesses.
#[derive(Clone, Copy)]
pub struct Who<'a> {
    /// Warp.
    pub warp: u32,
    /// Its clock.
    pub clock: &'a Clock,
    /// What the asynchronous proxy sees of the warps' writes; given for asynchronous accesses.
    pub proxy: Option<&'a Clock>,
}

impl Who<'_> {
    fn covers(&self, e: Epoch) -> bool {
        let w = warp_of(e);
        w == self.warp || (e & CLOCK_MASK) <= self.clock.0[w as usize]
    }

    fn now(&self) -> Epoch {
        epoch(self.warp, self.clock.0[self.warp as usize], self.proxy.is_some())
    }
}

/// The shared memory of the programs of a cluster.
pub struct Shared {
    /// First offset.
    pub base: u32,
    /// Bytes of a program.
    size: u32,
    data: Vec<u8>,
    writes: Vec<Epoch>,
    reads: Vec<u32>,
    sets: Vec<Box<[Epoch]>>,
    interned: HashMap<(u32, Epoch), u32>,
    pending: Vec<u8>,
    pending_total: u32,
    reading: Vec<u16>,
    reading_total: u32,
    checks: bool,
}

impl Shared {
    /// `size` bytes from `base` on for each of `ranks` programs.
    pub fn new(base: u32, size: u32, ranks: u32, checks: bool) -> Shared {
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

    /// Notes a read and returns what is wrong with it.
    #[inline]
    pub fn note_read(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let mut h = Hazard::default();
        if !self.checks {
            return h;
        }
        let i = self.index(address);
        let range = i..i + n as usize;
        if self.pending_total > 0 {
            h.pending = self.pending[range.clone()].iter().any(|p| *p != 0);
        }
        let now = who.now();
        let (mut last_write, mut last_read) = (Epoch::MAX, u32::MAX);
        let mut new_read = 0;
        for k in range {
            let w = self.writes[k];
            if w != last_write {
                last_write = w;
                if w == 0 {
                    h.uninit = true;
                } else {
                    if !who.covers(w) {
                        h.race = Some((warp_of(w), true));
                    }
                    if let Some(p) = who.proxy
                        && w & PROXY == 0
                        && (w & CLOCK_MASK) > p.0[warp_of(w) as usize]
                    {
                        h.unfenced = true;
                    }
                }
            }
            let r = self.reads[k];
            if r != last_read {
                last_read = r;
                new_read = self.with_reader(r, now, who);
            }
            self.reads[k] = new_read;
        }
        h
    }

    /// The reads `r` plus one now.
    fn with_reader(&mut self, r: u32, now: Epoch, who: Who<'_>) -> u32 {
        if r == 0 || (r & SET == 0 && who.covers(r)) {
            return now;
        }
        if let Some(known) = self.interned.get(&(r, now)) {
            return *known;
        }
        let one = [r];
        let old: &[Epoch] = if r & SET == 0 { &one } else { &self.sets[(r & !SET) as usize] };
        let mut set: Vec<Epoch> = old.iter().copied().filter(|e| !who.covers(*e)).collect();
        let new = if set.is_empty() {
            now
        } else {
            set.push(now);
            set.sort_unstable();
            self.sets.push(set.into());
            SET | (self.sets.len() as u32 - 1)
        };
        self.interned.insert((r, now), new);
        new
    }

    /// Notes a write and returns what is wrong with it.
    #[inline]
    pub fn note_write(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let mut h = Hazard::default();
        if !self.checks {
            return h;
        }
        let i = self.index(address);
        let range = i..i + n as usize;
        if self.pending_total > 0 {
            h.pending = self.pending[range.clone()].iter().any(|p| *p != 0);
        }
        if self.reading_total > 0 {
            h.being_read = self.reading[i / 16..=(i + n as usize - 1) / 16].iter().any(|c| *c != 0);
        }
        let now = who.now();
        let (mut last_write, mut last_read) = (Epoch::MAX, u32::MAX);
        for k in range {
            let (w, r) = (self.writes[k], self.reads[k]);
            if w != last_write {
                last_write = w;
                if w != 0 && !who.covers(w) && h.race.is_none() {
                    h.race = Some((warp_of(w), true));
                }
            }
            if r != last_read {
                last_read = r;
                let one = [r];
                let readers: &[Epoch] = match r {
                    0 => &[],
                    r if r & SET == 0 => &one,
                    r => &self.sets[(r & !SET) as usize],
                };
                if let Some(e) = readers.iter().find(|e| !who.covers(**e)) {
                    h.race = Some((warp_of(*e), false));
                }
            }
            self.writes[k] = now;
            self.reads[k] = 0;
        }
        h
    }

    /// Notes an atomic operation. Atomic operations do not race with each other: those of other warps are
    /// only compared with ordinary accesses.
    pub fn note_atomic(&mut self, address: u32, n: u32, who: Who<'_>) -> Hazard {
        let mut h = Hazard::default();
        if !self.checks {
            return h;
        }
        let i = self.index(address);
        for k in i..i + n as usize {
            let (w, r) = (self.writes[k], self.reads[k]);
            h.uninit |= w == 0;
            h.pending |= self.pending[k] != 0;
            if w & ATOMIC == 0 {
                if w != 0 && !who.covers(w) {
                    h.race = Some((warp_of(w), true));
                }
                let one = [r];
                let readers: &[Epoch] = match r {
                    0 => &[],
                    r if r & SET == 0 => &one,
                    r => &self.sets[(r & !SET) as usize],
                };
                if let Some(e) = readers.iter().find(|e| !who.covers(**e)) {
                    h.race = Some((warp_of(*e), false));
                }
                self.reads[k] = 0;
            }
            self.writes[k] = who.now() | ATOMIC;
        }
        h
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

    /// The copy is done. `warp` and `clock` date the write.
    pub fn end_write(&mut self, address: u32, n: u32, warp: u32, clock: u32, proxy: bool) {
        if self.checks {
            let i = self.index(address);
            let now = epoch(warp, clock, proxy);
            for k in i..i + n as usize {
                self.pending[k] = self.pending[k].saturating_sub(1);
                self.writes[k] = now;
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

    /// It is done reading; from now on the read counts as one of the warp at its current clock.
    pub fn end_read(&mut self, address: u32, n: u32, who: Who<'_>) {
        if self.checks {
            let i = self.index(address);
            for c in &mut self.reading[i / 16..=(i + n as usize - 1) / 16] {
                *c = c.saturating_sub(1);
            }
            self.reading_total = self.reading_total.saturating_sub(1);
            let now = who.now();
            let (mut last, mut new) = (u32::MAX, 0);
            for k in i..i + n as usize {
                let r = self.reads[k];
                if r != last {
                    last = r;
                    new = self.with_reader(r, now, who);
                }
                self.reads[k] = new;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn who(warp: u32, clock: &Clock) -> Who<'_> {
        Who { warp, clock, proxy: None }
    }

    #[test]
    fn unordered_accesses_of_two_warps_race() {
        let mut s = Shared::new(0, 64, 1, true);
        let (a, mut b) = (Clock(vec![1, 0]), Clock(vec![0, 1]));
        assert!(!s.note_write(0, 4, who(0, &a)).any());
        assert_eq!(s.note_read(2, 4, who(1, &b)).race, Some((0, true)));
        b.join(&a);
        let h = s.note_read(0, 4, who(1, &b));
        assert_eq!(h, Hazard::default());
        assert_eq!(s.note_write(0, 1, who(0, &a)).race, Some((1, false)));
    }

    #[test]
    fn every_reader_of_a_byte_counts() {
        let mut s = Shared::new(0, 16, 1, true);
        let clocks: Vec<Clock> = (0..3).map(|w| Clock((0..3).map(|i| u32::from(i == w)).collect())).collect();
        for w in 0..3 {
            s.note_read(0, 4, who(w, &clocks[w as usize]));
        }
        let mut knows_two = clocks[2].clone();
        knows_two.join(&clocks[1]);
        assert_eq!(s.note_write(0, 4, who(2, &knows_two)).race, Some((0, false)));
    }

    #[test]
    fn copies_in_flight_are_out_of_bounds_to_everyone() {
        let mut s = Shared::new(0, 64, 1, true);
        let a = Clock(vec![1]);
        s.begin_write(16, 16, who(0, &a));
        assert!(s.note_read(30, 4, who(0, &a)).pending);
        assert!(!s.note_read(32, 4, who(0, &a)).pending);
        s.end_write(16, 16, 0, 1, false);
        assert_eq!(s.note_read(16, 16, who(0, &a)), Hazard::default());
        s.begin_read(16, 16, who(0, &a));
        assert!(s.note_write(20, 4, who(0, &a)).being_read);
    }

    #[test]
    fn the_other_proxy_needs_a_fence() {
        let mut s = Shared::new(0, 64, 1, true);
        let a = Clock(vec![1]);
        s.note_write(0, 16, who(0, &a));
        let unfenced = Clock(vec![0]);
        assert!(s.note_read(0, 16, Who { warp: 0, clock: &a, proxy: Some(&unfenced) }).unfenced);
        assert!(!s.note_read(0, 16, Who { warp: 0, clock: &a, proxy: Some(&a) }).unfenced);
    }
}
