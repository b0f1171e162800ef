//! Loads, stores and atomics of a warp.

use std::sync::atomic::Ordering;

use super::{Cta, Warp};
use crate::alu;
use crate::bytecode::*;
use crate::check::Kind;
use crate::counts;
use crate::mem::{Buffer, Fault, LOCAL_WINDOW, SHARED_WINDOW, WINDOW};
use crate::shared::{Epoch, Hazard, RANK_SHIFT, Who};

/// Where one lane's address points.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    Off,
    Global(&'a Buffer, u64),
    Shared(u32),
    Local(usize),
}

/// -0 of both floats of 16 bits.
const NOTHING: u64 = 0x8000;

/// Lanes that add one half of a word to memory, and the bit that it begins at, zero for all others.
struct Alone<const W: usize> {
    lanes: u64,
    shifts: [u64; W],
}

impl<'a, const W: usize> Cta<'a, W> {
    /// Addresses of all lanes, and the lanes that access.
    pub(super) fn addresses(&mut self, warp: &Warp<W>, at: &Access) -> ([u64; W], u64) {
        if let Some(p) = at.pred {
            self.demand(warp, p.src, warp.mask, "a predicate of a memory access");
        }
        let mut active = warp.active(self.consts, at.pred);
        self.demand(warp, at.addr, active, "an address");
        let base = warp.src(self.consts, at.addr);
        let mut out = [0; W];
        for l in 0..W {
            out[l] = base[l].wrapping_add(at.offset as u64);
        }
        if let Some((limit, offset)) = at.buffer {
            self.demand(warp, offset, active, "an address");
            let (limit, offset) = (warp.src(self.consts, limit), warp.src(self.consts, offset));
            let size = u64::from(at.bytes);
            for l in 0..W {
                let o = offset[l] & 0xffff_ffff;
                out[l] = out[l].wrapping_add(o);
                if o + size > limit[l] {
                    active &= !(1 << l);
                }
            }
        }
        (out, active)
    }

    /// Checks every lane's address for `bytes` bytes and says where it points.
    pub(super) fn places(
        &mut self,
        warp: &Warp<W>,
        at: &Access,
        addresses: &[u64; W],
        active: u64,
        bytes: u64,
        write: bool,
    ) -> ([Place<'a>; W], u64) {
        let mut out = [Place::Off; W];
        let mut good = active;
        let align = u64::from(at.align.max(1));
        let global: &'a crate::mem::Global = self.shape.global;
        for l in 0..W {
            if active >> l & 1 == 0 {
                continue;
            }
            let a = addresses[l];
            if !a.is_multiple_of(align) {
                self.report(warp, Kind::Misaligned, l as u32, Some(a), || {
                    format!("an access of {bytes} bytes that must be aligned to {align}")
                });
            }
            let space = match at.space {
                Space::Generic if a.wrapping_sub(SHARED_WINDOW) < WINDOW => Space::Shared,
                Space::Generic if a.wrapping_sub(LOCAL_WINDOW) < WINDOW => Space::Local,
                Space::Generic => Space::Global,
                s => s,
            };
            out[l] = match space {
                Space::Shared => {
                    let place = warp.shared(a);
                    if self.shared.contains(u64::from(place), bytes) {
                        if place >> RANK_SHIFT != warp.rank {
                            self.check_owner(warp, l as u32, place);
                        }
                        Place::Shared(place)
                    } else {
                        Place::Off
                    }
                }
                Space::Local => {
                    let offset = if a >= LOCAL_WINDOW { a - LOCAL_WINDOW } else { a };
                    let size = u64::from(warp.local_bytes);
                    if offset + bytes <= size {
                        Place::Local(l * size as usize + offset as usize)
                    } else {
                        Place::Off
                    }
                }
                _ => match if write { global.locate_mut(a, bytes) } else { global.locate(a, bytes) } {
                    Ok((b, o)) => Place::Global(b, o),
                    Err(fault) => {
                        self.fault(warp, l, a, bytes, write, &fault);
                        good &= !(1 << l);
                        continue;
                    }
                },
            };
            if matches!(out[l], Place::Off) {
                good &= !(1 << l);
                let what = if space == Space::Shared { "shared memory" } else { "the stack" };
                let (first, end) = if space == Space::Shared {
                    (self.shared.base, self.shared.end())
                } else {
                    (0, warp.local_bytes)
                };
                let verb = if write { "write" } else { "read" };
                self.report(warp, Kind::OutOfBounds, l as u32, Some(a), || {
                    format!("{verb} of {bytes} bytes outside {what}, which is {first:#x} to {end:#x}")
                });
            }
        }
        (out, good)
    }

    #[cold]
    fn fault(&mut self, warp: &Warp<W>, lane: usize, address: u64, bytes: u64, write: bool, fault: &Fault) {
        let verb = if write { "write" } else { "read" };
        let text = match fault {
            Fault::Nowhere => format!("{verb} of {bytes} bytes where there is no buffer"),
            Fault::Outside(name, size, offset) => {
                format!("{verb} of {bytes} bytes at offset {offset} of '{name}', which has {size} bytes")
            }
            Fault::ReadOnly => format!("{verb} of {bytes} bytes of constant data"),
        };
        self.report(warp, Kind::OutOfBounds, lane as u32, Some(address), || text);
    }

    /// A lane that accesses memory as an access says.
    fn accessing<'w>(&self, warp: &'w Warp<W>, l: usize, at: &Access) -> Who<'w> {
        let who = warp.who(l);
        if at.order.strong { Who { now: who.now.strong(), ..who } } else { who }
    }

    /// Reports what the shadow of shared memory found.
    pub(super) fn hazard(&mut self, warp: &Warp<W>, lane: u32, address: u64, h: Hazard, write: bool) {
        let verb = if write { "written" } else { "read" };
        let here = (warp.pc, warp.slot, lane);
        let mut pair = |kind, other: Epoch, message: &dyn Fn(&Self, &str, &str) -> String| {
            let other = (other != Epoch::default()).then_some(other);
            let (by, place) = other.map_or_else(Default::default, |e| self.accessor(e));
            let text = message(self, &by, &place);
            self.report_pair(kind, here, other, Some(address), || text);
        };
        if let Some((other, wrote)) = h.race {
            let did = if wrote { "wrote" } else { "read" };
            let how = match other.warp() == warp.slot {
                true => "no bar.warp.sync",
                false => "no synchronization",
            };
            pair(Kind::SharedRace, other, &|_, by, place| {
                format!("shared memory is {verb} that {by} {did}{place} with {how} between")
            });
        }
        if let Some(copy) = h.pending {
            pair(Kind::AsyncHazard, copy, &|_, _, place| {
                format!(
                    "shared memory is {verb} while an asynchronous copy into it{place} has not been waited for"
                )
            });
        }
        if let Some(reader) = h.being_read.filter(|_| write) {
            pair(Kind::AsyncHazard, reader, &|_, _, place| {
                format!("shared memory is written while an asynchronous operation{place} may still read it")
            });
        }
        if let Some(writer) = h.unfenced {
            pair(Kind::MissingFence, writer, &|_, by, place| {
                format!(
                    "shared memory that {by} wrote by ordinary stores{place} is read asynchronously without \
                     fence.proxy.async"
                )
            });
        }
    }

    /// Reports a load of device memory that another thread has stored and that nothing orders behind the store.
    pub(super) fn check_order(&mut self, warp: &Warp<W>, l: usize, address: u64, bytes: u64, who: Who<'_>) {
        let Some(other) = self.stored.race(address, bytes, who) else { return };
        let (by, place) = self.accessor(other);
        let here = (warp.pc, warp.slot, l as u32);
        self.report_pair(Kind::DeviceRace, here, Some(other), Some(address), || {
            format!("device memory is read that {by} wrote{place} with nothing between that orders it")
        });
    }

    /// The same of what a bulk copy that lane `l` issues loads: the proxy that copies must see the store, too.
    pub(super) fn check_bulk_order(&mut self, warp: &Warp<W>, l: usize, address: u64, bytes: u64) {
        let who = warp.who_async_device(l);
        self.check_order(warp, l, address, bytes, who);
        let Some(other) = self.stored.unfenced(address, bytes, who) else { return };
        let (by, place) = self.accessor(other);
        let here = (warp.pc, warp.slot, l as u32);
        self.report_pair(Kind::MissingFence, here, Some(other), Some(address), || {
            format!("device memory that {by} wrote{place} is copied in bulk without fence.proxy.async")
        });
    }

    /// Counts an access by where its first lane points.
    fn count(
        &mut self,
        warp: &Warp<W>,
        addresses: &[u64; W],
        places: &[Place<'_>; W],
        good: u64,
        (bytes, align): (u64, u64),
        write: bool,
    ) {
        let (mut global, mut shared) = (0u64, 0u64);
        for (l, p) in places.iter().enumerate() {
            match p {
                Place::Global(..) if good >> l & 1 != 0 => global |= 1 << l,
                Place::Shared(_) if good >> l & 1 != 0 => shared |= 1 << l,
                _ => {}
            }
        }
        let c = &mut self.counts.at[warp.pc as usize];
        if global != 0 {
            let (n, min, moved) = counts::sectors(addresses, global, bytes);
            c.sectors += n;
            c.min_sectors += min;
            c.global_bytes += moved;
        }
        if shared != 0 {
            let banks = self.shape.program.gpu.banks();
            let w = banks.waves(addresses, shared, bytes, align, write);
            c.wavefronts += w.total;
            c.min_wavefronts += w.min;
            c.conflicts += w.conflicts;
            c.shared_bytes += bytes * u64::from(shared.count_ones());
        }
    }

    pub(super) fn load(&mut self, warp: &mut Warp<W>, d: &[Reg], at: &Access) {
        // What the instruction loads, and the part of it that is asked for.
        let wide = u64::from(at.bytes) * d.len() as u64;
        let gap = |e: usize| at.gaps >> e & 1 != 0;
        let asked = (0..d.len()).rev().find(|e| !gap(*e)).map_or(0, |e| e as u64 + 1);
        let bytes = u64::from(at.bytes) * asked;
        let (addresses, active) = self.addresses(warp, at);
        let (places, good) = self.places(warp, at, &addresses, active, bytes, false);
        self.count(warp, &addresses, &places, good, (wide, at.align.into()), false);
        self.polled |= at.order.strong;
        let n = at.bytes;
        // Uninitialized elements, one mask of lanes an element.
        let mut undef = [0u64; 64];
        for (l, p) in places.iter().enumerate() {
            match *p {
                Place::Shared(a) => {
                    let mut h = Hazard::default();
                    let who = self.accessing(warp, l, at);
                    if at.gaps == 0 {
                        h = self.shared.note_read(a, bytes as u32, who);
                    } else {
                        for e in (0..d.len()).filter(|e| !gap(*e)) {
                            let at = a + e as u32 * u32::from(n);
                            h.merge(self.shared.note_read(at, u32::from(n), who));
                        }
                    }
                    if h.any() {
                        self.hazard(warp, l as u32, u64::from(a), h, false);
                    }
                    if h.uninit {
                        warp.uninit = Some((warp.pc, u64::from(a)));
                        for (e, u) in undef.iter_mut().enumerate().take(d.len()).filter(|(e, _)| !gap(*e)) {
                            let who = self.accessing(warp, l, at);
                            let one = self.shared.note_read(a + e as u32 * u32::from(n), u32::from(n), who);
                            *u |= u64::from(one.uninit) << l;
                        }
                    }
                }
                Place::Global(..) if at.order.weak => {
                    let races = self.stored.race(addresses[l], bytes, warp.who(l)).is_some();
                    undef.iter_mut().for_each(|u| *u |= u64::from(races) << l);
                }
                Place::Global(..) => {
                    self.check_order(warp, l, addresses[l], bytes, self.accessing(warp, l, at));
                }
                Place::Local(o) => {
                    for (e, u) in undef.iter_mut().enumerate().take(d.len()).filter(|(e, _)| !gap(*e)) {
                        let first = o + e * n as usize;
                        if !warp.local_init[first..first + n as usize].iter().all(|i| *i) {
                            *u |= 1 << l;
                        }
                    }
                }
                _ => {}
            }
        }
        // Lanes outside a buffer resource read zero; other bad lanes too, after their report.
        let write = warp.active(self.consts, at.pred);
        for (e, d) in d.iter().enumerate().filter(|(e, _)| !gap(*e)) {
            let mut out = [0; W];
            let skip = e as u64 * u64::from(n);
            for (o, p) in out.iter_mut().zip(&places) {
                *o = match *p {
                    Place::Off => 0,
                    Place::Global(b, at) => b.read(at + skip, n),
                    Place::Shared(a) => self.shared.read(a + skip as u32, n),
                    Place::Local(o) => {
                        let first = o + skip as usize;
                        warp.local[first..first + n as usize]
                            .iter()
                            .rev()
                            .fold(0, |v, b| v << 8 | u64::from(*b))
                    }
                };
            }
            warp.set_in(*d, &out, undef[e.min(63)], write);
        }
        if at.order.strong && self.shape.program.acquires {
            self.observe(warp, (&places, &addresses), at);
        }
    }

    pub(super) fn store(&mut self, warp: &mut Warp<W>, v: &[Src], at: &Access) {
        let bytes = u64::from(at.bytes) * v.len() as u64;
        let (addresses, active) = self.addresses(warp, at);
        let (places, good) = self.places(warp, at, &addresses, active, bytes, true);
        self.count(warp, &addresses, &places, good, (bytes, at.align.into()), true);
        let n = at.bytes;
        let mut global = 0u64;
        for (l, p) in places.iter().enumerate() {
            match *p {
                Place::Global(..) => {
                    global |= 1 << l;
                    self.stored.note_write(addresses[l], bytes, self.accessing(warp, l, at));
                }
                Place::Shared(a) => self.store_shared(warp, v, at, l, a),
                _ => {}
            }
        }
        for (e, s) in v.iter().enumerate() {
            let skip = e as u64 * u64::from(n);
            if global != 0 {
                self.demand(warp, *s, global, "data stored to global memory");
            }
            let undef = warp.undef(self.consts, *s);
            let values = *warp.src(self.consts, *s);
            for (l, p) in places.iter().enumerate() {
                match *p {
                    Place::Off | Place::Shared(_) => {}
                    Place::Global(b, at) => b.write(at + skip, n, values[l]),
                    Place::Local(o) => {
                        let first = o + skip as usize;
                        warp.local[first..first + n as usize]
                            .copy_from_slice(&values[l].to_le_bytes()[..n as usize]);
                        warp.local_init[first..first + n as usize].fill(undef >> l & 1 == 0);
                    }
                }
            }
        }
        if at.order.strong && self.shape.program.acquires {
            self.release_at(warp, (&places, &addresses), at, false);
        }
        if global != 0 {
            self.shape.progress.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// One lane's store to shared memory.
    #[inline]
    fn store_shared(&mut self, warp: &Warp<W>, v: &[Src], at: &Access, l: usize, address: u32) {
        let n = at.bytes;
        let place = |e: usize| address + e as u32 * u32::from(n);
        let who = self.accessing(warp, l, at);
        let mut h = self.shared.note_write(address, u32::from(n) * v.len() as u32, who);
        if let Some((_, true)) = h.race {
            // Lanes that write what is already there do no harm: replicated layouts do it.
            let differs = v
                .iter()
                .enumerate()
                .any(|(e, s)| self.shared.read(place(e), n) != alu::low(warp.src(self.consts, *s)[l], n * 8));
            if !differs {
                h.race = None;
            }
        }
        if h.any() {
            self.hazard(warp, l as u32, u64::from(address), h, true);
        }
        for (e, s) in v.iter().enumerate() {
            self.shared.write(place(e), n, warp.src(self.consts, *s)[l]);
            if warp.undef(self.consts, *s) >> l & 1 != 0 {
                self.shared.forget(place(e), u32::from(n));
            }
        }
    }

    pub(super) fn atom(
        &mut self,
        warp: &mut Warp<W>,
        op: AtomOp,
        d: &[Reg],
        v: &[Src],
        cmp: &[Src],
        at: &Access,
    ) {
        let bytes = u64::from(at.bytes) * v.len() as u64;
        let (mut addresses, active) = self.addresses(warp, at);
        let alone = self.halves_alone(warp, (op, v), &addresses, active);
        let (mut places, mut good) = self.places(warp, at, &addresses, active & !alone.lanes, bytes, true);
        if alone.lanes != 0 {
            for (address, shift) in addresses.iter_mut().zip(alone.shifts) {
                *address += shift / 8;
            }
            let half = Access { bytes: 2, align: 2, ..at.clone() };
            let (halves, also) = self.places(warp, &half, &addresses, alone.lanes, 2, true);
            for (place, half) in places.iter_mut().zip(halves) {
                if !matches!(half, Place::Off) {
                    *place = half;
                }
            }
            good |= also;
        }
        self.count(warp, &addresses, &places, good, (bytes, at.align.into()), true);
        self.polled = true;
        if self.shape.program.acquires {
            self.observe(warp, (&places, &addresses), at);
            self.release_at(warp, (&places, &addresses), at, true);
        }
        for (l, place) in places.iter().enumerate() {
            if matches!(place, Place::Global(..)) {
                let who = Who { now: warp.who(l).now.strong(), ..warp.who(l) };
                let bytes = if alone.lanes >> l & 1 != 0 { 2 } else { bytes };
                self.check_order(warp, l, addresses[l], bytes, who);
                self.stored.note_write(addresses[l], bytes, who);
            }
        }
        let n = at.bytes;
        if let (AtomOp::Exch | AtomOp::Cas, [low, high]) = (op, v) {
            return self.atom_wide(warp, d, [*low, *high], cmp, at, &places, good);
        }
        let expected = cmp.first().map_or([0; W], |c| *warp.src(self.consts, *c));
        let mut olds = vec![[0; W]; v.len()];
        let mut undef = 0u64;
        for (e, s) in v.iter().enumerate() {
            self.demand(warp, *s, good, "data of an atomic operation");
            let values = *warp.src(self.consts, *s);
            let skip = e as u64 * u64::from(n);
            let old = &mut olds[e];
            for (l, p) in places.iter().enumerate() {
                let is_alone = alone.lanes >> l & 1 != 0;
                let shift = alone.shifts[l];
                let (op, n, value) = match op {
                    AtomOp::FAdd2(format) if is_alone => {
                        (AtomOp::FAdd(format), 2, alu::low(values[l] >> shift, 16))
                    }
                    _ => (op, n, values[l]),
                };
                let new = |o: u64| alu::atomic(op, n, o, value, expected[l]);
                let word = match *p {
                    Place::Off => continue,
                    Place::Global(b, at) => b.update(at + skip, n, new),
                    Place::Shared(a) => {
                        let a = a + skip as u32;
                        let h = self.shared.note_atomic(a, u32::from(n), warp.who(l));
                        if h.any() {
                            self.hazard(warp, l as u32, u64::from(a), h, true);
                        }
                        if h.uninit {
                            warp.uninit = Some((warp.pc, u64::from(a)));
                            undef |= 1 << l;
                        }
                        let o = self.shared.read(a, n);
                        self.shared.write(a, n, alu::low(new(o), n * 8));
                        if h.uninit && op != AtomOp::Exch {
                            self.shared.forget(a, u32::from(n));
                        }
                        o
                    }
                    Place::Local(o) => {
                        let range = o + skip as usize..o + skip as usize + n as usize;
                        let word =
                            warp.local[range.clone()].iter().rev().fold(0, |v, b| v << 8 | u64::from(*b));
                        warp.local[range].copy_from_slice(&new(word).to_le_bytes()[..n as usize]);
                        word
                    }
                };
                old[l] = word << shift;
            }
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
        let write = warp.active(self.consts, at.pred);
        for (d, old) in d.iter().zip(&olds) {
            warp.set_in(*d, old, undef, write);
        }
    }

    /// The lanes that add a pair of halves of which one is -0, which changes no number: only the other one is an access to memory.
    /// Lowering adds one that is alone so, and its neighbour may be somebody else's, or nobody's.
    fn halves_alone(
        &self,
        warp: &Warp<W>,
        (op, v): (AtomOp, &[Src]),
        addresses: &[u64; W],
        active: u64,
    ) -> Alone<W> {
        let mut alone = Alone { lanes: 0, shifts: [0; W] };
        let (AtomOp::FAdd2(_), [word]) = (op, v) else { return alone };
        for (l, word) in warp.src(self.consts, *word).iter().enumerate() {
            let halves = [word & 0xffff, word >> 16 & 0xffff].map(|half| half == NOTHING);
            // One that lies across words is reported as it is.
            if active >> l & 1 == 0 || halves[0] == halves[1] || !addresses[l].is_multiple_of(4) {
                continue;
            }
            alone.lanes |= 1 << l;
            alone.shifts[l] = if halves[0] { 16 } else { 0 };
        }
        alone
    }

    /// An exchange of 16 bytes as one, with or without a comparison.
    #[allow(clippy::too_many_arguments)]
    fn atom_wide(
        &mut self,
        warp: &mut Warp<W>,
        d: &[Reg],
        v: [Src; 2],
        cmp: &[Src],
        at: &Access,
        places: &[Place<'_>; W],
        good: u64,
    ) {
        for s in v.iter().chain(cmp) {
            self.demand(warp, *s, good, "data of an atomic operation");
        }
        let new = v.map(|s| *warp.src(self.consts, s));
        let expected: Vec<[u64; W]> = cmp.iter().map(|s| *warp.src(self.consts, *s)).collect();
        let mut olds = [[0; W]; 2];
        let mut undef = 0u64;
        for (l, p) in places.iter().enumerate() {
            let make = |old: [u64; 2]| {
                let same = expected.iter().zip(old).all(|(e, o)| e[l] == o);
                if same { new.map(|n| n[l]) } else { old }
            };
            let old = match *p {
                Place::Off => continue,
                Place::Global(b, at) => b.update_pair(at, make),
                Place::Shared(a) => {
                    let h = self.shared.note_atomic(a, 16, warp.who(l));
                    if h.any() {
                        self.hazard(warp, l as u32, u64::from(a), h, true);
                    }
                    if h.uninit {
                        warp.uninit = Some((warp.pc, u64::from(a)));
                        undef |= 1 << l;
                    }
                    let old = [self.shared.read(a, 8), self.shared.read(a + 8, 8)];
                    let words = make(old);
                    self.shared.write(a, 8, words[0]);
                    self.shared.write(a + 8, 8, words[1]);
                    if h.uninit && !cmp.is_empty() {
                        self.shared.forget(a, 16);
                    }
                    old
                }
                Place::Local(_) => {
                    self.report(warp, Kind::Invalid, l as u32, None, || {
                        "an atomic operation of 16 bytes on the stack".to_owned()
                    });
                    continue;
                }
            };
            (olds[0][l], olds[1][l]) = (old[0], old[1]);
        }
        self.shape.progress.fetch_add(1, Ordering::Relaxed);
        let write = warp.active(self.consts, at.pred);
        for (d, old) in d.iter().zip(&olds) {
            warp.set_in(*d, old, undef, write);
        }
    }
}
