//! Clusters: their barrier, and addresses in the shared memory of their programs.
//!
//! An address of the space `shared::cluster` is an offset when it means the program's own memory, which makes
//! every address of `shared::cta` one; `mapa` gives the others, with the rank in bits 24 to 29 and bit 30 set.
//! Source: PTX ISA, "barrier.cluster", "mapa", "getctarank".

use super::{Cta, State, Warp};
use crate::bytecode::*;
use crate::check::Kind;
use crate::mem::SHARED_WINDOW;
use crate::shared::{Epoch, Knows, RANK_SHIFT, REMOTE, SEVERAL};

/// The barrier of a cluster.
pub(super) struct Meeting {
    phase: u64,
    /// The warps that have arrived in this phase.
    arrived: Vec<bool>,
    /// For every warp the phase it arrived in last, and whether it has waited since.
    joined: Vec<(u64, bool)>,
    arriving: Knows,
    released: Knows,
}

impl Meeting {
    pub fn new(warps: u32) -> Meeting {
        let none = Knows::new(warps, false);
        Meeting {
            phase: 0,
            arrived: vec![false; warps as usize],
            joined: vec![(0, true); warps as usize],
            arriving: none.clone(),
            released: none,
        }
    }
}

impl<const W: usize> Cta<'_, W> {
    /// The id of one of the cluster's programs.
    pub(super) fn id_of(&self, rank: u32) -> [u32; 3] {
        let [x, y, _] = self.shape.cluster;
        [self.id[0] + rank % x, self.id[1] + rank / x % y, self.id[2] + rank / (x * y)]
    }

    /// A warp's name in messages.
    pub(super) fn name(&self, slot: u32) -> String {
        if self.ranks == 1 {
            return format!("warp {slot}");
        }
        format!("warp {} of program {:?}", slot % self.per_rank, self.id_of(slot / self.per_rank))
    }

    /// The lanes of a remembered access in messages, and the place of its instruction.
    pub(super) fn accessor(&self, e: Epoch) -> (String, String) {
        let warp = self.name(e.warp());
        let who = if e.lane() == SEVERAL { warp } else { format!("lane {} of {warp}", e.lane()) };
        (who, e.pc().map(|pc| self.place(pc)).unwrap_or_default())
    }

    /// How many warps of a program have ended.
    pub(super) fn ended(&self, rank: u32) -> u32 {
        self.warps.iter().flatten().filter(|w| w.rank == rank && w.state == State::Ended).count() as u32
    }

    /// Reports an access to the memory of a program that is over.
    pub(super) fn check_owner(&mut self, warp: &Warp<W>, lane: u32, address: u32) {
        let rank = address >> RANK_SHIFT;
        if rank != warp.rank && self.ended(rank) == self.per_rank {
            self.report(warp, Kind::Invalid, lane, Some(u64::from(address)), || {
                format!("an access to the shared memory of program {rank} of the cluster, which has ended")
            });
        }
    }

    pub(super) fn meeting_arrive(&mut self, warp: &mut Warp<W>, relaxed: bool) {
        if warp.mask != warp.live {
            let (mask, live) = (warp.mask, warp.live);
            self.report(warp, Kind::Divergent, (live & !mask).trailing_zeros(), None, || {
                format!(
                    "barrier.cluster.arrive is executed by the lanes {mask:#x} while {live:#x} are running"
                )
            });
        }
        let slot = warp.slot as usize;
        if !self.meeting.joined[slot].1 {
            self.report(warp, Kind::Invalid, 0, None, || {
                "barrier.cluster.arrive twice without barrier.cluster.wait".to_owned()
            });
        }
        let m = &mut self.meeting;
        m.arrived[slot] = true;
        m.joined[slot] = (m.phase, false);
        let told = warp.order.publish(warp.live);
        if !relaxed {
            m.arriving.join(&told);
        }
        self.meeting_complete();
    }

    /// Ends the phase when every warp has arrived or ended.
    fn meeting_complete(&mut self) {
        let m = &mut self.meeting;
        let missing = |(slot, here): (usize, &bool)| {
            !here && !matches!(&self.warps[slot], Some(w) if w.state == State::Ended)
        };
        if m.arrived.iter().enumerate().any(missing) || !m.arrived.contains(&true) {
            return;
        }
        m.phase += 1;
        m.arrived.fill(false);
        let none = Knows::new(m.arrived.len() as u32, false);
        m.released = std::mem::replace(&mut m.arriving, none);
    }

    /// Whether the phase that a warp arrived in is over.
    pub(super) fn meeting_over(&mut self, warp: &Warp<W>) -> bool {
        self.meeting_complete();
        self.meeting.phase > self.meeting.joined[warp.slot as usize].0
    }

    pub(super) fn meeting_wait(&mut self, warp: &mut Warp<W>) -> bool {
        let slot = warp.slot as usize;
        if self.meeting.joined[slot].1 {
            self.report(warp, Kind::Invalid, 0, None, || {
                "barrier.cluster.wait without barrier.cluster.arrive".to_owned()
            });
            return true;
        }
        if !self.meeting_over(warp) {
            warp.state = State::AtMeeting;
            return false;
        }
        let m = &mut self.meeting;
        m.joined[slot].1 = true;
        warp.order.acquire(warp.live, warp.live, &m.released);
        true
    }

    pub(super) fn map_shared(&mut self, warp: &mut Warp<W>, d: Reg, addr: Src, rank: Src) {
        let (a, r) = (*warp.src(self.consts, addr), *warp.src(self.consts, rank));
        let undef = warp.undef(self.consts, addr) | warp.undef(self.consts, rank);
        let mut out = [0; W];
        for (l, o) in out.iter_mut().enumerate() {
            if r[l] >= u64::from(self.ranks) && (warp.mask & !undef) >> l & 1 != 0 {
                let (rank, ranks) = (r[l], self.ranks);
                self.report(warp, Kind::Invalid, l as u32, Some(a[l]), || {
                    format!("mapa of program {rank} of a cluster of {ranks}")
                });
            }
            let window = if a[l] >= SHARED_WINDOW { SHARED_WINDOW } else { 0 };
            let offset = u64::from(warp.shared(a[l])) & ((1 << RANK_SHIFT) - 1);
            *o = window + (u64::from(REMOTE) | (r[l] & 0x3f) << RANK_SHIFT | offset);
        }
        warp.set(d, &out, undef);
    }

    pub(super) fn rank_of(&mut self, warp: &mut Warp<W>, d: Reg, addr: Src) {
        let out = warp.src(self.consts, addr).map(|a| u64::from(warp.shared(a) >> RANK_SHIFT));
        warp.set(d, &out, warp.undef(self.consts, addr));
    }
}
