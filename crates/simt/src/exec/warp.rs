//! The state of a warp.

use crate::bytecode::*;
use crate::exec::Consts;
use crate::ir::Vendor;
use crate::mem::SHARED_WINDOW;
use crate::shared::{Epoch, Knows, Lanes, RANK_SHIFT, REMOTE, SEVERAL, Snapshot, Who};

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
    pub copies: Vec<LaneCopy>,
}

/// What asynchronous matrix operations read.
#[derive(Default)]
pub(crate) struct Operands {
    /// Shared memory.
    pub ranges: Vec<(u32, u32)>,
    /// Registers, and when they had been written.
    pub regs: Vec<(Reg, u64)>,
}

/// A `cp.async` of one lane.
pub(crate) struct LaneCopy {
    pub lane: u8,
    /// Where it goes in shared memory.
    pub at: u32,
    pub data: [u8; 16],
    pub bytes: u8,
    /// The instruction.
    pub pc: u32,
}

/// A tensor operation of AMD's tensor data mover that is under way.
pub(crate) struct TensorMove {
    /// Whether it writes shared memory.
    pub loads: bool,
    /// Rows, where each lies in shared memory, and what is loaded.
    pub rows: Vec<(u32, crate::tdm::Row, Vec<u8>)>,
    /// The instruction.
    pub pc: u32,
}

/// A bulk copy out of shared memory.
#[derive(Clone)]
pub(crate) struct BulkOut {
    /// The lane that issued it.
    pub lane: usize,
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
    /// Number of the `wgmma` group that a register waits for, and the shape of its operation; empty until the first
    /// one.
    tags: Vec<(u32, u32)>,
    tagged: Vec<Reg>,
    /// When and where each register was last written, but for copies and matrix operations: tick and instruction.
    /// Empty where no asynchronous matrix operation could be concerned.
    written: Vec<u64>,
    /// Instructions executed.
    pub tick: u32,
    /// The tick of the last `wgmma.fence`.
    pub fence_tick: Option<u32>,
    pub pc: u32,
    pub join: u32,
    pub mask: u64,
    pub stack: Vec<Entry>,
    pub live: u64,
    pub state: State,
    /// What its lanes know of each other's accesses and of those of other warps.
    pub order: Lanes,
    /// Whether its lanes access memory together and in order (AMD).
    lockstep: bool,
    pub open_copies: CopyGroup,
    pub copies: Vec<CopyGroup>,
    pub open_out: Vec<BulkOut>,
    pub out: Vec<Vec<BulkOut>>,
    /// The latest tensor operations, in order.
    pub tensors: Vec<TensorMove>,
    /// What the open `wgmma` group reads.
    pub open_wgmma: Operands,
    pub wgmma: Vec<(u32, Operands)>,
    pub wgmma_committed: u32,
    pub local: Vec<u8>,
    pub local_init: Vec<bool>,
    pub local_bytes: u32,
    /// The barrier result that this warp waits for.
    pub vote: Option<(BarReduce, Reg)>,
    /// What relaxed reads saw that others released: it counts from the next fence on.
    pub observed: Vec<(u64, Knows)>,
    /// What the lanes knew and did at their last fences: their relaxed writes release it.
    pub fences: Vec<Snapshot>,
    /// The lanes' messages to the host that are not complete.
    pub messages: Vec<Message>,
    /// The last read of uninitialized memory, for messages.
    pub uninit: Option<(u32, u64)>,
}

/// A message to the host.
#[derive(Clone, Debug, Default)]
pub struct Message {
    /// In the notation of `printf`.
    pub format: String,
    /// What is printed.
    pub args: Vec<u64>,
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
        let local = p.local_bytes as usize * W;
        Warp {
            index,
            rank: slot / warps,
            slot,
            regs: vec![[0; W]; p.regs as usize],
            undef: vec![u64::MAX; p.regs as usize],
            tags: Vec::new(),
            tagged: Vec::new(),
            written: vec![0; if p.wgmma { p.regs as usize } else { 0 }],
            tick: 0,
            fence_tick: None,
            pc: 0,
            join: NO_JOIN,
            mask: live,
            stack: Vec::new(),
            live,
            state: State::Ready,
            order: Lanes::new((slot, warps * ranks), live, W, p.gpu.vendor == Vendor::Amd),
            lockstep: p.gpu.vendor == Vendor::Amd,
            open_copies: CopyGroup::default(),
            copies: Vec::new(),
            open_out: Vec::new(),
            out: Vec::new(),
            tensors: Vec::new(),
            open_wgmma: Operands::default(),
            wgmma: Vec::new(),
            wgmma_committed: 0,
            local: vec![0; local],
            local_init: vec![false; local],
            local_bytes: p.local_bytes,
            vote: None,
            observed: Vec::new(),
            fences: Vec::new(),
            messages: Vec::new(),
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

    /// A lane as an accessor of shared memory.
    #[inline(always)]
    pub fn who(&self, lane: usize) -> Who<'_> {
        let now = Epoch::new(self.slot, lane as u32, self.order.now(), self.pc);
        Who { now, knows: self.order.of(lane as u32), whole: self.lockstep, fenced: None }
    }

    /// A lane's asynchronous operations as an accessor.
    pub fn who_async(&self, lane: usize) -> Who<'_> {
        let who = self.who(lane);
        Who { now: who.now.asynchronous(), fenced: Some(self.order.fenced()), ..who }
    }

    /// The same of device memory.
    pub fn who_async_device(&self, lane: usize) -> Who<'_> {
        Who { fenced: Some(self.order.fenced_device()), ..self.who_async(lane) }
    }

    /// All lanes at once as an accessor: what one of them gets or gives may be another's.
    pub fn together(&self) -> Who<'_> {
        self.who(SEVERAL as usize)
    }

    /// An asynchronous operation of the whole warp: each lane's earlier accesses come before it.
    pub fn together_async(&self) -> Who<'_> {
        Who { whole: true, ..self.who_async(SEVERAL as usize) }
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
        if let Some(w) = self.written.get_mut(d as usize) {
            *w = u64::from(self.tick) << 32 | u64::from(self.pc);
        }
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
    pub fn tag(&mut self, d: Reg, group: u32, shape: u32) {
        if self.tags.is_empty() {
            self.tags = vec![(0, 0); self.regs.len()];
        }
        if self.tags[d as usize].0 == 0 {
            self.tagged.push(d);
        }
        self.tags[d as usize] = (group, shape);
        self.undef[d as usize] = u64::MAX;
        if let Some(w) = self.written.get_mut(d as usize) {
            *w = 0;
        }
    }

    /// When and where a register was last written (tick and instruction); zero for constants and results of
    /// asynchronous matrix operations.
    pub fn written(&self, s: Src) -> u64 {
        s.split().ok().and_then(|r| self.written.get(r as usize)).copied().unwrap_or(0)
    }

    /// A copy is as old as what it copies: the two may be one register of the machine.
    #[inline(always)]
    pub fn carry(&mut self, d: Reg, from: &[Src]) {
        if !self.written.is_empty() {
            self.written[d as usize] = from.iter().map(|s| self.written(*s)).max().unwrap_or(0);
        }
    }

    /// The shape of the matrix operation that an operand waits for.
    pub fn shape_of(&self, s: Src) -> u32 {
        s.split().ok().and_then(|r| self.tags.get(r as usize)).map_or(0, |t| t.1)
    }

    /// The group that an operand waits for, or zero.
    pub fn tag_of(&self, s: Src) -> u32 {
        match s.split() {
            Ok(r) => self.tags.get(r as usize).map_or(0, |t| t.0),
            Err(_) => 0,
        }
    }

    /// Groups up to `done` have been waited for: their results are there.
    pub fn settle(&mut self, done: u32) {
        let (tags, undef) = (&mut self.tags, &mut self.undef);
        self.tagged.retain(|r| {
            let r = *r as usize;
            if tags[r].0 != 0 && tags[r].0 <= done {
                tags[r] = (0, 0);
                undef[r] = 0;
            }
            tags[r].0 != 0
        });
    }

    /// A register that is written anew no longer waits for anything.
    pub fn untag(&mut self, d: Reg) {
        if let Some(t) = self.tags.get_mut(d as usize)
            && t.0 != 0
        {
            *t = (0, 0);
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
