//! The interpreter of one program.
//!
//! A program is a set of warps that share memory. The programs of a cluster are run together, their warps in
//! one list: those of program 0 first. Warps run one after the other, each until it waits or its
//! turn is over. Within a warp lanes run in lockstep under an active mask. At a branch where they part, the
//! warp remembers (address, lanes, meeting point) for both sides on a stack, runs one side until it reaches
//! the meeting point, then the other, and goes on with all of them: the classical SIMT stack with the
//! immediate post-dominator as meeting point.

mod bulk;
mod cluster;
mod lanes;
mod matrix;
mod memory;
mod order;
mod step;
mod sync;
mod tdm;
mod tensor;
mod warp;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::bytecode::*;
use crate::check::{Finding, Findings, Kind, Site};
use crate::counts::Counts;
use crate::mem::Global;
use crate::shared::{Epoch, Knows, Shared, Stored};

pub(crate) use warp::{State, Warp};

/// What all programs of a launch share.
pub(crate) struct Shape<'a> {
    pub program: &'a Program,
    pub grid: [u32; 3],
    /// Programs of a cluster along x, y, z.
    pub cluster: [u32; 3],
    pub threads: u32,
    /// Along x, y, z.
    pub block: [u32; 3],
    pub shared_bytes: u32,
    pub checks: bool,
    pub global: &'a Global,
    /// Address of the implicit arguments of an AMD kernel.
    pub implicit_args: u64,
    pub stop: &'a AtomicBool,
    /// Bumped by every write to global memory, so that waiting programs know when to look again.
    pub progress: &'a AtomicU64,
    pub print: &'a (dyn Fn(&str) + Sync),
    pub trace: Option<Trace>,
    /// Warp instructions after which a program that does nothing new is given up.
    pub limit: u64,
}

/// What to trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    /// Program id.
    pub program: [u32; 3],
    /// Warp.
    pub warp: u32,
    /// Lane.
    pub lane: u32,
}

/// Constants as the warps read them: one value for all lanes.
pub(crate) struct Consts<const W: usize> {
    pub planes: Vec<[u64; W]>,
    pub undef: Vec<u64>,
}

impl<const W: usize> Consts<W> {
    pub fn new(table: &[(u64, bool)]) -> Consts<W> {
        Consts {
            planes: table.iter().map(|(v, _)| [*v; W]).collect(),
            undef: table.iter().map(|(_, u)| if *u { u64::MAX } else { 0 }).collect(),
        }
    }
}

/// A named barrier.
#[derive(Clone, Default)]
struct Barrier {
    /// Warps that have arrived, and those of them that wait.
    arrived: u32,
    waiting: u64,
    /// Warps needed.
    needed: u32,
    knows: Option<Knows>,
    /// True predicates of its threads, and all threads, for those that combine them.
    votes: (u64, u64),
}

/// A barrier object in shared memory.
struct Mbar {
    count: u64,
    pending: u64,
    tx: i64,
    phase: u64,
    arriving: Knows,
    released: Knows,
}

/// A bulk copy into shared memory that has been issued.
struct BulkIn {
    mbar: u32,
    /// Where each sixteen bytes of the data go.
    at: Vec<u32>,
    data: Vec<u8>,
    /// Where it reads them, if that is shared memory too: they are read when the copy is done.
    from: Option<u32>,
    /// Who issued it, and what is known there.
    by: Epoch,
    knows: Knows,
}

/// What a warp did with its turn.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Waits,
    Ended,
    Expired,
}

/// A cluster of programs being run.
pub(crate) struct Cta<'a, const W: usize> {
    shape: &'a Shape<'a>,
    consts: &'a Consts<W>,
    /// Id of its first program.
    id: [u32; 3],
    /// Programs of the cluster, and warps of each.
    ranks: u32,
    per_rank: u32,
    warps: Vec<Option<Box<Warp<W>>>>,
    shared: Shared,
    stored: Stored,
    /// Sixteen for each program.
    barriers: Vec<Barrier>,
    meeting: cluster::Meeting,
    mbars: BTreeMap<u32, Mbar>,
    bulk_in: Vec<BulkIn>,
    /// What was released at locations in memory.
    released: HashMap<u64, Knows>,
    pub counts: Counts,
    pub findings: Findings,
    executed: u64,
    /// Something in this turn may wait for another program.
    polled: bool,
}

/// How a slice of a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slice {
    /// It is done.
    Done,
    /// It may be waiting for another program.
    Again,
    /// It was stopped.
    Stopped,
}

const TURN: u64 = 20_000;
/// Named barriers of a program.
const BARRIERS: usize = 16;

impl<'a, const W: usize> Cta<'a, W> {
    pub fn new(shape: &'a Shape<'a>, consts: &'a Consts<W>, id: [u32; 3]) -> Cta<'a, W> {
        let p = shape.program;
        let n = shape.threads.div_ceil(W as u32);
        let ranks: u32 = shape.cluster.iter().product();
        let warps = (0..n * ranks).map(|slot| Some(Box::new(Warp::new(p, slot, n, ranks, shape.threads))));
        Cta {
            shape,
            consts,
            id,
            ranks,
            per_rank: n,
            warps: warps.collect(),
            shared: Shared::new(p.shared_base, shape.shared_bytes, ranks, shape.checks, p.exact),
            stored: Stored::new(shape.checks),
            barriers: vec![Barrier::default(); BARRIERS * ranks as usize],
            meeting: cluster::Meeting::new(n * ranks),
            mbars: BTreeMap::new(),
            bulk_in: Vec::new(),
            released: HashMap::new(),
            counts: Counts::new(p.code.len()),
            findings: Findings::default(),
            executed: 0,
            polled: false,
        }
    }

    /// Runs until the program ends, seems to wait for another one, or is stopped.
    pub fn run(&mut self) -> Slice {
        loop {
            let mut ran = false;
            let mut left = false;
            self.polled = false;
            for w in 0..self.warps.len() {
                if self.shape.stop.load(Ordering::Relaxed) {
                    return Slice::Stopped;
                }
                let Some(mut warp) = self.warps[w].take() else { continue };
                if warp.state == State::Ended || !self.wake(&mut warp) {
                    left |= warp.state != State::Ended;
                    self.warps[w] = Some(warp);
                    continue;
                }
                ran = true;
                let turn = self.turn(&mut warp);
                left |= turn != Turn::Ended;
                self.warps[w] = Some(warp);
            }
            if !left {
                self.finish();
                return Slice::Done;
            }
            if !ran && !self.unblock() {
                self.deadlock();
                return Slice::Done;
            }
            if self.executed > self.shape.limit {
                self.give_up();
                return Slice::Done;
            }
            if self.polled {
                return Slice::Again;
            }
        }
    }

    /// Whether a waiting warp can go on.
    fn wake(&mut self, warp: &mut Warp<W>) -> bool {
        match warp.state {
            State::Ready => true,
            State::Ended | State::AtBarrier(_) => false,
            State::AtMeeting => {
                let go = self.meeting_over(warp);
                if go {
                    warp.state = State::Ready;
                }
                go
            }
            State::AtMbar(addr, parity) => {
                let go = self.mbar_ready(addr, parity) || {
                    self.deliver(addr);
                    self.mbar_ready(addr, parity)
                };
                if go {
                    warp.state = State::Ready;
                }
                go
            }
        }
    }

    fn turn(&mut self, warp: &mut Warp<W>) -> Turn {
        let before = self.executed;
        while warp.state == State::Ready {
            if self.executed - before > TURN {
                return Turn::Expired;
            }
            self.step(warp);
        }
        if warp.state == State::Ended { Turn::Ended } else { Turn::Waits }
    }

    /// Barriers that only wait for warps that have ended let the others go.
    fn unblock(&mut self) -> bool {
        for id in 0..self.barriers.len() {
            let rank = (id / BARRIERS) as u32;
            let ended = self.ended(rank);
            let b = &self.barriers[id];
            if ended > 0 && b.waiting != 0 && b.arrived + ended >= b.needed {
                let warp = rank * self.per_rank + b.waiting.trailing_zeros();
                let pc = self.warps[warp as usize].as_ref().map_or(0, |w| w.pc);
                if self.shape.program.gpu.vendor == crate::ir::Vendor::Nvidia {
                    self.report_at(Kind::Divergent, pc, warp, 0, None, || {
                        format!(
                            "barrier {} is waited for by {} warps while {ended} have ended without it",
                            id % BARRIERS,
                            b_arrived(ended)
                        )
                    });
                }
                self.release(id, None);
                return true;
            }
        }
        false
    }

    fn deadlock(&mut self) {
        let mut list = Vec::new();
        let mut first = None;
        for w in self.warps.iter().flatten() {
            let place = self.place(w.pc);
            match w.state {
                State::AtBarrier(id) => {
                    let b = &self.barriers[id as usize];
                    list.push(format!(
                        "{} at barrier {} ({} of {} warps arrived){place}",
                        self.name(w.slot),
                        id as usize % BARRIERS,
                        b.arrived,
                        b.needed
                    ));
                }
                State::AtMbar(a, parity) => {
                    let what = match self.mbars.get(&a) {
                        Some(m) => {
                            format!("phase {}, {} arrivals and {} bytes missing", m.phase, m.pending, m.tx)
                        }
                        None => "not initialized".to_owned(),
                    };
                    list.push(format!(
                        "{} at the barrier object {a:#x}, parity {parity} ({what}){place}",
                        self.name(w.slot)
                    ));
                }
                State::AtMeeting => {
                    list.push(format!("{} at barrier.cluster.wait{place}", self.name(w.slot)));
                }
                _ => continue,
            }
            first = first.or(Some((w.pc, w.slot)));
        }
        let (pc, warp) = first.unwrap_or((0, 0));
        self.report_at(Kind::Deadlock, pc, warp, 0, None, || {
            format!("no warp can go on: {}", list.join("; "))
        });
    }

    fn give_up(&mut self) {
        let waiting = self.warps.iter().flatten().find(|w| w.state != State::Ended);
        let (pc, warp) = waiting.map_or((0, 0), |w| (w.pc, w.slot));
        let n = self.executed;
        self.report_at(Kind::Deadlock, pc, warp, 0, None, || {
            format!("no end after {n} warp instructions of this program")
        });
    }

    fn place(&self, pc: u32) -> String {
        let p = self.shape.program;
        match p.locs.get(pc as usize) {
            Some(l) if l.line != 0 => format!(" at {}:{}", p.files[l.file as usize], l.line),
            _ => String::new(),
        }
    }

    /// Reports something at an instruction.
    fn report_at(
        &mut self,
        kind: Kind,
        pc: u32,
        slot: u32,
        lane: u32,
        address: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        self.report_pair(kind, (pc, slot, lane), None, address, message);
    }

    /// Reports something that two accesses do to each other.
    fn report_pair(
        &mut self,
        kind: Kind,
        (pc, slot, lane): (u32, u32, u32),
        other: Option<Epoch>,
        address: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        if !self.shape.checks
            && !matches!(kind, Kind::Deadlock | Kind::OutOfBounds | Kind::Assertion | Kind::Invalid)
        {
            return;
        }
        let p = self.shape.program;
        let key = (kind, pc, other.and_then(Epoch::pc));
        if self.findings.again(key, address) {
            return;
        }
        let site = |pc: Option<u32>, slot: u32, lane: u32| {
            let loc = pc.and_then(|pc| p.locs.get(pc as usize)).copied().unwrap_or_default();
            Site {
                file: p.files.get(loc.file as usize).cloned().unwrap_or_default(),
                line: loc.line,
                program: self.id_of(slot / self.per_rank),
                warp: slot % self.per_rank,
                lane,
            }
        };
        let other = other.map(|e| site(e.pc(), e.warp(), e.lane()));
        let here = site(Some(pc), slot, lane);
        let finding = Finding::new(kind, p.name.clone(), here, other, address, message());
        self.findings.add(key, finding);
    }

    fn report(
        &mut self,
        warp: &Warp<W>,
        kind: Kind,
        lane: u32,
        address: Option<u64>,
        message: impl FnOnce() -> String,
    ) {
        self.report_at(kind, warp.pc, warp.slot, lane, address, message);
    }
}

fn b_arrived(ended: u32) -> String {
    if ended == 0 { "no".into() } else { "the other".into() }
}
