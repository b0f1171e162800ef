//! The state of a warp.

use crate::bytecode::*;
use crate::exec::Consts;
use crate::mem::SHARED_WINDOW;
use crate::shared::{Clock, RANK_SHIFT, REMOTE};

/// What a warp is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Ready,
    AtBarrier(u32),
    AtMbar(u32, u32),
    /// In `barrier.cluster.wait`.
    AtMeeting,
    Ended,
}

/// Lanes to be run from an address until a meeting point.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub pc: u32,
    pub join: u32,
    pub mask: u64,
}

/// A group of `cp.async` copies of the lanes that committed it.
#[derive(Default)]
pub(crate) struct CopyGroup {
    pub lanes: u64,
    /// Lane, address in shared memory, bytes and how many of them.
    pub copies: Vec<(u8, u32, [u8; 16], u8)>,
}

/// A bulk copy out of shared memory.
#[derive(Clone)]
pub(crate) struct BulkOut {
    /// Pieces of shared memory with the global address each goes to.
    pub pieces: Vec<(u32, u64, u32)>,
    pub reduce: TmaReduce,
    pub elem: crate::tma::ElemType,
}

pub(crate) struct Warp<const W: usize> {
    /// Its number in its program.
    pub index: u32,
    /// Its program's rank in the cluster.
    pub rank: u32,
    /// Its number in the cluster.
    pub slot: u32,
    regs: Vec<[u64; W]>,
    /// Lanes whose value is undefined.
    undef: Vec<u64>,
    /// Number of the `wgmma` group that a register waits for; empty until the first one.
    tags: Vec<u32>,
    tagged: Vec<Reg>,
    pub pc: u32,
    pub join: u32,
    pub mask: u64,
    pub stack: Vec<Entry>,
    pub live: u64,
    pub state: State,
    pub clock: Clock,
    /// What the asynchronous proxy sees.
    pub proxy: Clock,
    pub open_copies: CopyGroup,
    pub copies: Vec<CopyGroup>,
    pub open_out: Vec<BulkOut>,
    pub out: Vec<Vec<BulkOut>>,
    /// Shared memory that the open `wgmma` group reads.
    pub open_wgmma: Vec<(u32, u32)>,
    pub wgmma: Vec<(u32, Vec<(u32, u32)>)>,
    pub wgmma_committed: u32,
    pub local: Vec<u8>,
    pub local_init: Vec<bool>,
    pub local_bytes: u32,
    /// The barrier result that this warp waits for.
    pub vote: Option<(BarReduce, Reg)>,
    /// The last read of uninitialized memory, for messages.
    pub uninit: Option<(u32, u64)>,
}

/// All lanes of a warp.
pub(super) const fn full<const W: usize>() -> u64 {
    if W == 64 { u64::MAX } else { (1 << W) - 1 }
}

impl<const W: usize> Warp<W> {
    /// Warp number `slot` of a cluster of `ranks` programs with `warps` warps and `threads` threads each.
    pub fn new(p: &Program, slot: u32, warps: u32, ranks: u32, threads: u32) -> Warp<W> {
        let index = slot % warps;
        let lanes = threads.saturating_sub(index * W as u32).min(W as u32);
        let live = if lanes >= 64 { u64::MAX } else { (1u64 << lanes) - 1 };
        let clock = |own: u32| Clock((0..warps * ranks).map(|w| if w == slot { own } else { 0 }).collect());
        let local = p.local_bytes as usize * W;
        Warp {
            index,
            rank: slot / warps,
            slot,
            regs: vec![[0; W]; p.regs as usize],
            undef: vec![u64::MAX; p.regs as usize],
            tags: Vec::new(),
            tagged: Vec::new(),
            pc: 0,
            join: NO_JOIN,
            mask: live,
            stack: Vec::new(),
            live,
            state: State::Ready,
            clock: clock(1),
            proxy: clock(0),
            open_copies: CopyGroup::default(),
            copies: Vec::new(),
            open_out: Vec::new(),
            out: Vec::new(),
            open_wgmma: Vec::new(),
            wgmma: Vec::new(),
            wgmma_committed: 0,
            local: vec![0; local],
            local_init: vec![false; local],
            local_bytes: p.local_bytes,
            vote: None,
            uninit: None,
        }
    }

    /// The place in shared memory that an address operand names, generic or not: program of the cluster and
    /// offset, as [`Shared`](crate::shared::Shared) wants it.
    #[inline]
    pub fn shared(&self, a: u64) -> u32 {
        let a = if a >= SHARED_WINDOW { a - SHARED_WINDOW } else { a };
        match a {
            _ if a < 1 << RANK_SHIFT => self.rank << RANK_SHIFT | a as u32,
            _ if a >> 30 == u64::from(REMOTE >> 30) => a as u32 & !REMOTE,
            _ => u32::MAX,
        }
    }

    /// The values of an operand.
    #[inline(always)]
    pub fn src<'s>(&'s self, c: &'s Consts<W>, s: Src) -> &'s [u64; W] {
        match s.split() {
            Ok(r) => &self.regs[r as usize],
            Err(i) => &c.planes[i as usize],
        }
    }

    /// The lanes where an operand is undefined.
    #[inline(always)]
    pub fn undef(&self, c: &Consts<W>, s: Src) -> u64 {
        match s.split() {
            Ok(r) => self.undef[r as usize],
            Err(i) => c.undef[i as usize],
        }
    }

    /// Writes a register in the active lanes.
    #[inline(always)]
    pub fn set(&mut self, d: Reg, v: &[u64; W], undef: u64) {
        let mask = self.mask;
        self.set_in(d, v, undef, mask);
    }

    /// Writes a register in the lanes of a mask.
    #[inline(always)]
    pub fn set_in(&mut self, d: Reg, v: &[u64; W], undef: u64, mask: u64) {
        let reg = &mut self.regs[d as usize];
        if mask == full::<W>() {
            *reg = *v;
            self.undef[d as usize] = undef;
        } else {
            for (l, (old, new)) in reg.iter_mut().zip(v).enumerate() {
                if mask >> l & 1 != 0 {
                    *old = *new;
                }
            }
            let u = &mut self.undef[d as usize];
            *u = (*u & !mask) | (undef & mask);
        }
    }

    /// Marks a register as the result of an asynchronous matrix operation of a group.
    pub fn tag(&mut self, d: Reg, group: u32) {
        if self.tags.is_empty() {
            self.tags = vec![0; self.regs.len()];
        }
        if self.tags[d as usize] == 0 {
            self.tagged.push(d);
        }
        self.tags[d as usize] = group;
        self.undef[d as usize] = u64::MAX;
    }

    /// The group that an operand waits for, or zero.
    pub fn tag_of(&self, s: Src) -> u32 {
        match s.split() {
            Ok(r) => self.tags.get(r as usize).copied().unwrap_or(0),
            Err(_) => 0,
        }
    }

    /// Groups up to `done` have been waited for: their results are there.
    pub fn settle(&mut self, done: u32) {
        let (tags, undef) = (&mut self.tags, &mut self.undef);
        self.tagged.retain(|r| {
            let r = *r as usize;
            if tags[r] != 0 && tags[r] <= done {
                tags[r] = 0;
                undef[r] = 0;
            }
            tags[r] != 0
        });
    }

    /// A register that is written anew no longer waits for anything.
    pub fn untag(&mut self, d: Reg) {
        if let Some(t) = self.tags.get_mut(d as usize)
            && *t != 0
        {
            *t = 0;
            self.tagged.retain(|r| *r != d);
        }
    }

    /// Whether any register waits for a matrix operation.
    pub fn has_tags(&self) -> bool {
        !self.tagged.is_empty()
    }

    /// The value of an operand in the first active lane.
    pub fn uniform(&self, c: &Consts<W>, s: Src) -> u64 {
        self.src(c, s)[(self.mask.trailing_zeros() as usize).min(W - 1)]
    }

    /// The lanes in which an instruction with a predicate runs.
    pub fn active(&self, c: &Consts<W>, p: Option<Pred>) -> u64 {
        let Some(p) = p else { return self.mask };
        let v = self.src(c, p.src);
        let mut m = 0;
        for (l, x) in v.iter().enumerate() {
            m |= u64::from((x & 1 != 0) != p.negate) << l;
        }
        m & self.mask
    }

    /// Ends lanes: they take no further part.
    pub fn end_lanes(&mut self) {
        let gone = self.mask;
        self.live &= !gone;
        for e in &mut self.stack {
            e.mask &= !gone;
        }
        self.pop();
    }

    /// Goes on with the next lanes on the stack.
    pub fn pop(&mut self) {
        loop {
            match self.stack.pop() {
                Some(e) if e.mask == 0 => continue,
                Some(e) => {
                    (self.pc, self.join, self.mask) = (e.pc, e.join, e.mask);
                    return;
                }
                None => {
                    self.state = State::Ended;
                    self.mask = 0;
                    return;
                }
            }
        }
    }

    /// Branches: `yes` lanes go to one address, the other active ones to another.
    pub fn branch(&mut self, yes: u64, to_yes: u32, to_no: u32, join: u32) {
        let no = self.mask & !yes;
        if no == 0 {
            self.pc = to_yes;
            return;
        }
        if yes == 0 {
            self.pc = to_no;
            return;
        }
        // The lanes meet again at `join`; where they already do so for an outer branch, nothing new is
        // remembered.
        if join != NO_JOIN && join != self.join {
            self.stack.push(Entry { pc: join, join: self.join, mask: self.mask });
        }
        let inner = if join == NO_JOIN { self.join } else { join };
        let mut sides =
            [(to_yes, yes), (to_no, no)].into_iter().filter(|(pc, _)| *pc != join || join == NO_JOIN);
        match (sides.next(), sides.next()) {
            (Some((pc, mask)), Some((later, rest))) => {
                self.stack.push(Entry { pc: later, join: inner, mask: rest });
                (self.pc, self.join, self.mask) = (pc, inner, mask);
            }
            (Some((pc, mask)), None) => {
                (self.pc, self.join, self.mask) = (pc, inner, mask);
            }
            _ => self.pc = join,
        }
    }
}
