//! One access, as the shadow of shared memory remembers it: who, when, where in the code.

/// The lane of accesses by several lanes of a warp.
pub const SEVERAL: u32 = 64;

const TIME_BITS: u32 = 26;
const LANE_SHIFT: u32 = TIME_BITS;
const PROXY: u64 = 1 << 33;
const STRONG: u64 = 1 << 34;
const PC_SHIFT: u32 = 35;
const PC_MAX: u64 = (1 << 20) - 1;
const WARP_SHIFT: u32 = 55;

/// Most warps whose accesses can be told apart.
pub const MAX_WARPS: u32 = (1 << (63 - WARP_SHIFT)) - 2;

/// An access: warp, lane, time, instruction, and flags. Zero is none; the top bit is free.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub(super) u64);

impl Epoch {
    /// An access by `lane` of `warp` at `time` by instruction `pc`.
    #[inline(always)]
    pub fn new(warp: u32, lane: u32, time: u32, pc: u32) -> Epoch {
        let pc = u64::from(pc).min(PC_MAX);
        let time = u64::from(time) & ((1 << TIME_BITS) - 1);
        Epoch(u64::from(warp + 1) << WARP_SHIFT | pc << PC_SHIFT | u64::from(lane) << LANE_SHIFT | time)
    }

    /// The same by the asynchronous proxy.
    pub fn asynchronous(self) -> Epoch {
        Epoch(self.0 | PROXY)
    }

    /// The same by an atomic, relaxed or volatile operation.
    pub fn strong(self) -> Epoch {
        Epoch(self.0 | STRONG)
    }

    /// The same by several lanes.
    pub(super) fn by_several(self) -> Epoch {
        Epoch(self.0 & !(127 << LANE_SHIFT) | u64::from(SEVERAL) << LANE_SHIFT)
    }

    pub(super) fn is_none(self) -> bool {
        self.0 == 0
    }

    /// Warp.
    #[inline(always)]
    pub fn warp(self) -> u32 {
        ((self.0 >> WARP_SHIFT) as u32 & 0xff) - 1
    }

    /// Lane, or [`SEVERAL`].
    #[inline(always)]
    pub fn lane(self) -> u32 {
        (self.0 >> LANE_SHIFT) as u32 & 127
    }

    /// Time.
    #[inline(always)]
    pub fn time(self) -> u32 {
        self.0 as u32 & ((1 << TIME_BITS) - 1)
    }

    /// Instruction, where it is known.
    pub fn pc(self) -> Option<u32> {
        let pc = self.0 >> PC_SHIFT & PC_MAX;
        (pc < PC_MAX).then_some(pc as u32)
    }

    /// Whether by the asynchronous proxy.
    pub fn is_asynchronous(self) -> bool {
        self.0 & PROXY != 0
    }

    /// Whether atomic, relaxed or volatile.
    pub fn is_strong(self) -> bool {
        self.0 & STRONG != 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_do_not_meet() {
        let e = Epoch::new(MAX_WARPS - 1, SEVERAL, (1 << 26) - 1, 7);
        assert_eq!((e.warp(), e.lane(), e.time(), e.pc()), (MAX_WARPS - 1, SEVERAL, (1 << 26) - 1, Some(7)));
        assert!(!e.is_strong() && e.strong().is_strong() && !e.strong().is_asynchronous());
        assert_eq!(
            (Epoch::new(3, 5, 9, u32::MAX).pc(), Epoch::new(3, 5, 9, 0).by_several().lane()),
            (None, 64)
        );
        assert_eq!(e.0 >> 63, 0);
    }
}
