//! Exchange between the lanes of a warp.
//!
//! Sources: PTX ISA, "Parallel Synchronization and Communication Instructions" (shfl.sync, vote.sync,
//! redux.sync, elect.sync); CDNA3 ISA, "Data Parallel Processing" and the LDS permute instructions.

use super::{Cta, Warp};
use crate::bytecode::*;
use crate::check::Kind;

impl<const W: usize> Cta<'_, W> {
    /// A synchronizing warp operation must be executed by all lanes that its mask names.
    fn same_lanes(&mut self, warp: &Warp<W>, mask: Src, what: &'static str) {
        let named = warp.uniform(self.consts, mask) & super::warp::full::<W>() & warp.live;
        if named & !warp.mask != 0 {
            let active = warp.mask;
            self.report(warp, Kind::Divergent, (named & !active).trailing_zeros(), None, || {
                format!("{what} names the lanes {named:#x} but only {active:#x} execute it")
            });
        }
    }

    pub(super) fn shfl(&mut self, warp: &mut Warp<W>, kind: Shfl, d: Reg, p: Option<Reg>, s: [Src; 4]) {
        self.same_lanes(warp, s[3], "shfl.sync");
        let (v, b, c) =
            (*warp.src(self.consts, s[0]), *warp.src(self.consts, s[1]), *warp.src(self.consts, s[2]));
        let from_undef = warp.undef(self.consts, s[0]);
        let (mut out, mut inside) = ([0; W], [0; W]);
        let mut undef = warp.undef(self.consts, s[1]);
        let mut dead = 0u64;
        for l in 0..W {
            let (lane, clamp, seg) = (l as i64, (c[l] & 31) as i64, (c[l] >> 8 & 31) as i64);
            let offset = (b[l] & 31) as i64;
            let last = (lane & seg) | (clamp & !seg);
            let first = lane & seg;
            let (source, ok) = match kind {
                Shfl::Up => (lane - offset, lane - offset >= last),
                Shfl::Down => (lane + offset, lane + offset <= last),
                Shfl::Bfly => (lane ^ offset, (lane ^ offset) <= last),
                Shfl::Idx => (first | (offset & !seg), (first | (offset & !seg)) <= last),
            };
            let source = if ok { source as usize } else { l };
            out[l] = v[source];
            inside[l] = u64::from(ok);
            undef |= (from_undef >> source & 1) << l;
            if warp.live >> source & 1 == 0 || warp.mask >> source & 1 == 0 {
                dead |= 1 << l;
            }
        }
        if dead & warp.mask != 0 {
            self.report(warp, Kind::Divergent, (dead & warp.mask).trailing_zeros(), None, || {
                "shfl.sync reads from a lane that does not execute it".to_owned()
            });
        }
        warp.set(d, &out, undef);
        if let Some(p) = p {
            warp.set(p, &inside, warp.undef(self.consts, s[1]));
        }
    }

    pub(super) fn vote(&mut self, warp: &mut Warp<W>, kind: Vote, d: Reg, v: Src, mask: Src) {
        if W == 32 {
            self.same_lanes(warp, mask, "a vote or reduction");
        }
        let values = *warp.src(self.consts, v);
        let active = warp.mask & warp.uniform(self.consts, mask);
        let lanes = || (0..W).filter(|l| active >> l & 1 != 0).map(|l| values[l]);
        let ballot = (0..W).fold(0u64, |m, l| m | (values[l] & 1) << l) & active;
        let signed = |x: u64| x as u32 as i32;
        let r = match kind {
            Vote::All => u64::from(ballot == active),
            Vote::Any => u64::from(ballot != 0),
            Vote::Uni => u64::from(ballot == 0 || ballot == active),
            Vote::Ballot => ballot,
            Vote::Add => lanes().fold(0, |a, b| (a + b) & 0xffff_ffff),
            Vote::And => lanes().fold(0xffff_ffff, |a, b| a & b),
            Vote::Or => lanes().fold(0, |a, b| a | b),
            Vote::Xor => lanes().fold(0, |a, b| a ^ b),
            Vote::UMin => lanes().min().unwrap_or(0),
            Vote::UMax => lanes().max().unwrap_or(0),
            Vote::SMin => u64::from(lanes().map(signed).min().unwrap_or(0) as u32),
            Vote::SMax => u64::from(lanes().map(signed).max().unwrap_or(0) as u32),
        };
        let undef = if warp.undef(self.consts, v) & active != 0 { u64::MAX } else { 0 };
        warp.set(d, &[r; W], undef);
    }

    /// `match.sync`.
    pub(super) fn matching(
        &mut self,
        warp: &mut Warp<W>,
        all: bool,
        d: Reg,
        p: Option<Reg>,
        v: Src,
        mask: Src,
    ) {
        self.same_lanes(warp, mask, "match.sync");
        let values = *warp.src(self.consts, v);
        let active = warp.mask & warp.uniform(self.consts, mask);
        let mut out = [0u64; W];
        for (l, o) in out.iter_mut().enumerate() {
            *o = (0..W).fold(0, |m, k| m | u64::from(values[k] == values[l]) << k) & active;
        }
        let undef = if warp.undef(self.consts, v) & active != 0 { u64::MAX } else { 0 };
        if all {
            let same = (0..W).all(|l| active >> l & 1 == 0 || out[l] == active);
            out = [if same { active } else { 0 }; W];
            if let Some(p) = p {
                warp.set(p, &[u64::from(same); W], undef);
            }
        }
        warp.set(d, &out, undef);
    }

    pub(super) fn elect(&mut self, warp: &mut Warp<W>, d: Option<Reg>, p: Reg, mask: Src) {
        self.same_lanes(warp, mask, "elect.sync");
        let leader = (warp.mask & warp.uniform(self.consts, mask)).trailing_zeros() as usize;
        let mut is = [0; W];
        if leader < W {
            is[leader] = 1;
        }
        if let Some(d) = d {
            warp.set(d, &[leader as u64; W], 0);
        }
        warp.set(p, &is, 0);
    }

    pub(super) fn permute(
        &mut self,
        warp: &mut Warp<W>,
        kind: Permute,
        d: Reg,
        d2: Option<Reg>,
        s: [Src; 3],
    ) {
        let [v, idx, c] = s.map(|s| *warp.src(self.consts, s));
        let [uv, ui, uc] = s.map(|s| warp.undef(self.consts, s));
        let mut out = [0; W];
        let mut undef = 0u64;
        match kind {
            Permute::Forward => {
                // Lanes that nobody writes to receive zero; the highest lane wins.
                for l in 0..W {
                    if warp.mask >> l & 1 != 0 {
                        let to = (idx[l] >> 2) as usize % W;
                        out[to] = v[l];
                        undef = (undef & !(1 << to)) | (uv >> l & 1) << to;
                    }
                }
                undef |= ui;
            }
            Permute::Transpose(bits) => {
                let (bits, each) = (u32::from(bits), 64 / u64::from(bits));
                for (l, out) in out.iter_mut().enumerate() {
                    for row in 0..each {
                        let unit = row * 16 + l as u64 % 16;
                        let from = l / 16 * 16 + (unit / each) as usize;
                        let value = v[from] >> ((unit % each) as u32 * bits) & ((1 << bits) - 1);
                        *out |= value << (row as u32 * bits);
                        undef |= (uv >> from & 1) << l;
                    }
                }
            }
            Permute::Square => {
                let (mut high, mut undef_high) = ([0; W], 0u64);
                for l in 0..W {
                    let (half, shift) = (l % 8 / 4, l % 4 * 16);
                    for row in 0..8 {
                        let from = l / 8 * 8 + row;
                        let (words, undefs) = if half == 0 { (&v, uv) } else { (&c, uc) };
                        let (to, undef) =
                            if row < 4 { (&mut out[l], &mut undef) } else { (&mut high[l], &mut undef_high) };
                        *to |= (words[from] >> shift & 0xffff) << (row % 4 * 16);
                        *undef |= (undefs >> from & 1) << l;
                    }
                }
                if let Some(d2) = d2 {
                    warp.set(d2, &high, undef_high);
                }
            }
            Permute::Squares => {
                for (l, out) in out.iter_mut().enumerate() {
                    for row in 0..8 {
                        let from = l / 16 * 16 + row / 4 * 8 + l % 16 / 8 * 4 + row % 4;
                        *out |= (v[from] >> (l % 8 * 8) & 0xff) << (row * 8);
                        undef |= (uv >> from & 1) << l;
                    }
                }
            }
            Permute::Swap(rows) => {
                // Odd rows of the first operand change places with even rows of the second.
                let n = rows as usize;
                let mut other = c;
                let mut undef2 = uc;
                out = v;
                undef = uv;
                for l in (0..W).filter(|l| (l / n) % 2 == 1) {
                    (out[l], other[l - n]) = (c[l - n], v[l]);
                    undef = (undef & !(1 << l)) | (uc >> (l - n) & 1) << l;
                    undef2 = (undef2 & !(1 << (l - n))) | (uv >> l & 1) << (l - n);
                }
                if let Some(d2) = d2 {
                    warp.set(d2, &other, undef2);
                }
            }
            _ => {
                for l in 0..W {
                    let from = match kind {
                        Permute::Backward => (idx[l] >> 2) as usize % W,
                        Permute::PermLane16 { x } => {
                            let select = if l % 16 < 8 { idx[l] } else { c[l] };
                            let lane = (select >> (4 * (l % 8)) & 15) as usize;
                            let row = if x { (l / 16) ^ 1 } else { l / 16 };
                            row * 16 + lane
                        }
                        Permute::Swizzle(p) if p & 0x8000 != 0 => {
                            (l & !3) | (p as usize >> (2 * (l & 3)) & 3)
                        }
                        Permute::Swizzle(p) => {
                            let p = p as usize;
                            (l & !31) | ((((l & 31) & p) | (p >> 5 & 31)) ^ (p >> 10 & 31))
                        }
                        _ => l,
                    };
                    // Lanes that are switched off read as zero.
                    let on = warp.mask >> from & 1 != 0;
                    out[l] = if on { v[from] } else { 0 };
                    undef |= if on { (uv >> from & 1) << l } else { 0 };
                }
                undef |= ui;
            }
        }
        warp.set(d, &out, undef);
    }

    pub(super) fn dpp(&mut self, warp: &mut Warp<W>, x: &Dpp) {
        let (v, old) = (*warp.src(self.consts, x.v), *warp.src(self.consts, x.old));
        let (uv, uo) = (warp.undef(self.consts, x.v), warp.undef(self.consts, x.old));
        let mut out = old;
        let mut undef = uo;
        for (l, o) in out.iter_mut().enumerate() {
            if x.row_mask >> ((l / 16) & 3) & 1 == 0 || x.bank_mask >> ((l / 4) & 3) & 1 == 0 {
                continue;
            }
            match dpp_source(x.ctrl, l, W).filter(|s| warp.mask >> s & 1 != 0) {
                Some(s) => {
                    *o = v[s];
                    undef = (undef & !(1 << l)) | (uv >> s & 1) << l;
                }
                None if x.bound_ctrl => {
                    *o = 0;
                    undef &= !(1 << l);
                }
                None => {}
            }
        }
        warp.set(x.d, &out, undef);
    }

    pub(super) fn read_lane(&mut self, warp: &mut Warp<W>, d: Reg, v: Src, lane: Option<Src>) {
        let from = match lane {
            Some(s) => warp.uniform(self.consts, s) as usize % W,
            None => warp.mask.trailing_zeros() as usize % W,
        };
        let undef = if warp.undef(self.consts, v) >> from & 1 != 0 { u64::MAX } else { 0 };
        let value = warp.src(self.consts, v)[from];
        warp.set(d, &[value; W], undef);
    }

    pub(super) fn write_lane(&mut self, warp: &mut Warp<W>, d: Reg, old: Src, v: Src, lane: Src) {
        let at = warp.uniform(self.consts, lane) as usize % W;
        let mut out = *warp.src(self.consts, old);
        out[at] = warp.uniform(self.consts, v);
        let undef = warp.undef(self.consts, old) & !(1 << at);
        warp.set(d, &out, undef);
    }

    /// The barrier within a warp.
    pub(super) fn warp_sync(&mut self, warp: &mut Warp<W>, mask: Src) {
        self.same_lanes(warp, mask, "bar.warp.sync");
        let lanes = warp.uniform(self.consts, mask) & warp.mask;
        warp.order.sync(lanes, warp.live);
    }
}

/// The lane that a lane receives from under a `dpp_ctrl`; `None` if it has none.
fn dpp_source(ctrl: u16, l: usize, lanes: usize) -> Option<usize> {
    let row = l & !15;
    let r = l & 15;
    let n = usize::from(ctrl & 15);
    match ctrl {
        0x000..=0x0ff => Some((l & !3) | (usize::from(ctrl) >> (2 * (l & 3)) & 3)),
        0x101..=0x10f => (r + n < 16).then_some(row + r + n),
        0x111..=0x11f => (r >= n).then(|| row + r - n),
        0x121..=0x12f => Some(row + (r + 16 - n) % 16),
        0x130 => (l + 1 < lanes).then_some(l + 1),
        0x134 => Some((l + 1) % lanes),
        0x138 => l.checked_sub(1),
        0x13c => Some((l + lanes - 1) % lanes),
        0x140 => Some(row + 15 - r),
        0x141 => Some((l & !7) + 7 - (l & 7)),
        // Broadcasts of the last lane of a row, or of the half, into the next one.
        0x142 => row.checked_sub(1),
        0x143 => (l >= 32).then_some(31),
        0x150..=0x15f => Some(row + n),
        0x160..=0x16f => Some(row + (r ^ n)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::dpp_source;

    #[test]
    fn dpp_patterns() {
        assert_eq!(dpp_source(0xb1, 4, 64), Some(5));
        assert_eq!(dpp_source(0x111, 16, 64), None);
        assert_eq!(dpp_source(0x111, 17, 64), Some(16));
        assert_eq!(dpp_source(0x128, 3, 64), Some(11));
        assert_eq!(dpp_source(0x140, 0, 64), Some(15));
        assert_eq!(dpp_source(0x142, 20, 64), Some(15));
        assert_eq!(dpp_source(0x143, 40, 64), Some(31));
    }
}
