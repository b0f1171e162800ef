//! Schedules of loops: in which iteration of the new loop each operation runs, which buffers go round in rings, and
//! what is waited for where. Plain data; no IR.
//!
//! A loop of `S` stages runs an operation of stage `s` for iteration `i` of the source in its own iteration
//! `i - (S - 1 - s)`: the last stage runs when the source would, earlier stages run ahead. What runs ahead before the
//! loop begins is the prologue. The loop has as many iterations as the source; what would run ahead of iterations that
//! do not exist is predicated, so that there is no epilogue.
//!
//! Every ring has its *producer*, a copy beside the program or a store, and readers in the last stage. A slot may be
//! written again once all that read it are *done*: at once for operations that read it themselves, at a wait for dots
//! that run beside the program. The schedule puts waits, with exact counts of what may still be under way, and makes
//! rings as deep as that order asks for.

use super::order::Order;
use crate::analysis::registers::{REGISTERS, RESERVED};
use crate::buffer_plans::COPY_BYTES;
use smallvec::SmallVec;
use std::fmt;

/// What the scheduler has to know about an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Has no effect: runs for iterations that do not exist, too.
    Pure,
    /// Runs ahead only under a predicate: a load, or what may trap.
    Guarded,
    /// Stays in the last stage, in the order of the program.
    Fixed,
    /// Copies to a slot of a ring beside the program, counted in groups (`cp.async`), under a predicate.
    Copy,
    /// Copies to a slot of a ring beside the program, which a barrier in memory announces, under a predicate.
    BulkCopy,
    /// Threads write a slot of a ring. What runs ahead does so for iterations that do not exist, too: nobody reads it.
    Fill,
    /// Multiplies matrices beside the program (`wgmma`).
    Dot,
}

/// An operation of the loop.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// What it may do.
    pub kind: Kind,
    /// Whether it should run ahead as far as possible.
    pub early: bool,
    /// By how many iterations the program asks that it runs ahead.
    pub asked: Option<u32>,
    /// Where in an iteration the program asks for it: what has a smaller number comes first.
    pub cluster: Option<u32>,
    /// Whether it should run ahead by one iteration at most, for the registers that it takes: of what depends on it, if that runs
    /// ahead.
    pub near: bool,
    /// Whether so much is computed in it that data for what follows it need not be there before it.
    pub heavy: bool,
    /// The ring that it writes.
    pub writes: Option<usize>,
    /// The rings that it reads.
    pub reads: SmallVec<[usize; 2]>,
    /// For a dot: whether what it reads besides rings is written again in the next iteration.
    pub blocking: bool,
    /// For a dot: whether threads can sum over half of K, and then over the other half.
    pub divisible: bool,
    /// Whether it reads to registers, from rings that copies fill, what the first dot of an iteration multiplies first: it runs in
    /// the iteration before, where that multiplies last.
    pub fetches: bool,
    /// Registers of a thread that its results take; indices, addresses and masks count nothing.
    pub words: u64,
}

impl Node {
    /// An operation that nothing special is known of.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            early: false,
            asked: None,
            cluster: None,
            near: false,
            heavy: false,
            writes: None,
            reads: SmallVec::new(),
            blocking: false,
            divisible: false,
            fetches: false,
            words: 0,
        }
    }
}

/// That an operation uses what another one computed, `distance` iterations before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Edge {
    /// What computes.
    pub from: usize,
    /// What uses.
    pub to: usize,
    /// Iterations between them.
    pub distance: u32,
    /// Whether `to` is a dot that adds to the result of another while that may be under way.
    pub accumulates: bool,
}

/// A loop, as the scheduler sees it. Nodes are in the order of the program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LoopGraph {
    /// Its operations.
    pub nodes: Vec<Node>,
    /// What they use.
    pub edges: Vec<Edge>,
    /// Bytes of a slot of each ring.
    pub rings: Vec<u64>,
}

/// What a schedule may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// Stages at most.
    pub stages: u32,
    /// Stages that are wanted. There may be more where as many CTAs fit, or four of five, and no more is under way than the L2 bears.
    pub wanted: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared: u64,
    /// Of these, what each CTA takes besides rings.
    pub taken: u64,
    /// CTAs that a multiprocessor has registers for.
    pub ctas: u64,
    /// Whether the assembler may find registers for more: where there are more programs, and it says how many CTAs fit.
    pub may_fit_more: bool,
    /// Whether dots that run beside the program wait for each other earlier where rings then leave shared memory for one more CTA.
    pub leave_room: bool,
    /// Registers of a thread for values that wait for their use.
    pub registers: u64,
    /// Threads of a CTA.
    pub threads: u64,
    /// Bytes of copies that have to be under way on a multiprocessor for its loops not to wait for memory.
    pub needed_ahead: u64,
    /// Bytes of copies under way on a multiprocessor beyond which the L2 loses what several programs read.
    pub most_ahead: u64,
    /// Whether the first copies of a CTA wait for loads of their addresses, which other CTAs hide: then the L2 costs stages, not CTAs.
    pub starts_late: bool,
    /// Whether a CTA that has a multiprocessor to itself keeps its matrix units busy: its dots run beside the program and
    /// take no less than what else an iteration does. Then more CTAs gain nothing, and more stages come first.
    pub busy_alone: bool,
    /// Whether there are likely too few programs for several on each multiprocessor: recurrences that multiply, of which there is one for
    /// each sequence. Then more stages come first, too.
    pub few_programs: bool,
    /// Whether halves of the warps of a CTA that has a multiprocessor to itself may take turns at memory and matrix units.
    pub halves: bool,
}

impl Budget {
    /// How many CTAs fit whose rings take so many bytes each.
    pub fn ctas_with(&self, rings: u64) -> u64 {
        self.ctas_in_memory(rings).min(self.ctas.max(1))
    }

    /// The same by shared memory alone.
    pub fn ctas_in_memory(&self, rings: u64) -> u64 {
        self.shared / (self.taken + rings).max(1)
    }
}

impl Budget {
    /// How many programs have so many bytes of rings each beside each other, where nobody knows of their registers and the system takes
    /// no shared memory for them.
    pub fn programs_with(&self, rings: u64) -> u64 {
        let taken = self.taken.saturating_sub(RESERVED) + rings;
        self.shared.saturating_sub(RESERVED) / taken.max(1)
    }
}

/// A step of an iteration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An operation.
    Run(usize),
    /// The first half of an operation (false), or the second one.
    RunHalf(usize, bool),
    /// Ends a group of copies.
    Commit,
    /// The copies of a group have arrived, those of as many groups as `pending` need not have.
    AwaitCopies {
        /// The copies.
        copies: SmallVec<[usize; 2]>,
        /// Groups that may be under way.
        pending: u32,
    },
    /// The copies that a barrier in memory announces have arrived.
    AwaitBulk(usize),
    /// The copies of a group have arrived for the next iteration: where halves of the warps run apart, or where operands of that
    /// iteration are read behind it. Such reads are the end of the prologue, and so is this wait.
    AwaitNext {
        /// The copies.
        copies: SmallVec<[usize; 2]>,
        /// Groups that may be under way.
        pending: u32,
    },
    /// A barrier, where one half of the warps is done with what the other half begins.
    Meet,
    /// Whether the hardware is to prefer the warp to others (`s_setprio`).
    Prefer(bool),
    /// Dots that come before are issued before what comes behind, though nothing there needs them: so much is multiplied while loads
    /// are under way for which what comes behind waits. Says something to LLVM's scheduler only.
    Issued,
    /// The end of an iteration whose accesses to memory are issued between its matrix instructions, evenly
    /// ([`spread`](super::spread)). Says something to LLVM's scheduler only.
    Spread,
    /// Dots are done, as many as `pending` later ones need not be.
    AwaitDots {
        /// The dots, each of this iteration (0) or of the one before it (1).
        dots: SmallVec<[(usize, u32); 2]>,
        /// Dots that may be under way.
        pending: u32,
    },
}

/// Where the prologue of a loop comes that a loop around it runs once for each tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prologue {
    /// Right before the loop.
    Before,
    /// Behind the loop of the tile before, where everything of that is done, and before whatever else the loop around does
    /// with it; that of the first tile comes before the loop around. Rings outlive the loop.
    TileBefore(Slots),
}

/// In which slots the next run of a loop begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slots {
    /// In the first ones again: all are free.
    Restart,
    /// In those that come next: barriers in memory know how often they have been used.
    Continue,
}

/// The schedule of a loop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoopSchedule {
    /// Stages.
    pub stages: u32,
    /// The stage of each operation.
    pub stage: Vec<u32>,
    /// What an iteration of the loop does, in order. In the prologue groups end at the same places.
    pub kernel: Vec<Step>,
    /// Slots of each ring.
    pub depths: Vec<u32>,
    /// Whether what advances pointers of copies runs in the iteration that uses the next values, before the copies.
    pub advances_late: bool,
    /// Whether one half of the warps runs one barrier behind the other.
    pub halves: bool,
    /// Where the prologue comes.
    pub prologue: Prologue,
    /// Iterations of the program in one of the loop. Where values wait in registers for as many iterations less one, each iteration
    /// loads to registers of its own (modulo variable expansion); else one hands them to the next by moves, which wait for what was
    /// loaded.
    pub unroll: u32,
}

/// A schedule that fits, and how many CTAs fit with it.
#[derive(Clone)]
struct Candidate {
    schedule: LoopSchedule,
    ctas: u64,
}

impl Candidate {
    /// All schedules within `budget`: most stages first, and of those what runs ahead at the first place first. Where some keep
    /// the order that the program asks for, those.
    fn all(graph: &LoopGraph, budget: &Budget) -> Vec<Self> {
        let of_stages =
            |graph| (2..=budget.stages).rev().flat_map(move |stages| Self::of_stages(graph, stages, budget));
        let mut all: Vec<Self> = of_stages(graph).collect();
        // What threads store for a dot that runs beside them takes two slots, and what is copied for it one more. Where all that
        // leaves room for one CTA, two that wait for their dots fill each other's waits.
        let stores = graph.nodes.iter().any(|node| node.kind == Kind::Fill);
        if stores && !budget.busy_alone && all.iter().all(|candidate| candidate.ctas == 1) {
            let mut waits = graph.clone();
            waits.nodes.iter_mut().for_each(|node| node.blocking |= node.kind == Kind::Dot);
            all.extend(of_stages(&waits).filter(|candidate| candidate.ctas > 1));
        }
        let keeps = |candidate: &Self| candidate.schedule.misplaced(graph).is_none();
        if all.iter().any(keeps) {
            all.retain(keeps);
        }
        all
    }

    fn of_stages(graph: &LoopGraph, stages: u32, budget: &Budget) -> Vec<Self> {
        let Some(mut stage) = LoopSchedule::stages_of(graph, stages, budget) else { return Vec::new() };
        let fitting = |schedule: LoopSchedule| {
            let ctas = budget.ctas_with(schedule.shared_bytes(graph));
            (ctas > 0).then_some(Self { schedule, ctas })
        };
        let all = LoopSchedule::orders(graph, stages, &stage, false).into_iter().filter_map(fitting);
        let in_groups = graph.bytes_of(|kind| kind == Kind::Copy);
        if !budget.busy_alone || in_groups <= MANY_COPIES * COPY_BYTES * budget.threads {
            return all.collect();
        }
        // Where CTAs are alone, pointers of copies advance late.
        let shared: Vec<Self> = all.filter(|candidate| candidate.ctas > 1).collect();
        advance_late(graph, &mut stage);
        let late = LoopSchedule::orders(graph, stages, &stage, true).into_iter().filter_map(fitting);
        let alone = late.filter(|candidate| candidate.ctas == 1);
        let mut all: Vec<Self> = alone.collect();
        all.extend(shared);
        all
    }

    /// Whether rings leave room for a second CTA where registers seem to suffice for one: the assembler may find some.
    fn leaves_room(&self, graph: &LoopGraph, budget: &Budget) -> bool {
        self.ctas == 1 && self.leaves_one_more(graph, budget)
    }

    /// The same for one more than there are.
    fn leaves_one_more(&self, graph: &LoopGraph, budget: &Budget) -> bool {
        budget.may_fit_more && budget.ctas_in_memory(self.schedule.shared_bytes(graph)) > self.ctas
    }

    /// Iterations that a multiprocessor has under way ahead of those that compute.
    fn iterations_ahead(&self, budget: &Budget) -> u64 {
        u64::from(self.schedule.stages - 1) * if budget.busy_alone { 1 } else { self.ctas }
    }
}

/// Copies that a thread issues in an iteration, above which they wait too long for each other's addresses. On an H100 a copy
/// holds its address register for about 25 cycles; 16 of them took 400 of the 650 cycles of an iteration, 8 were not seen.
const MANY_COPIES: u64 = 8;

/// Who asks for so many stages or more has few programs, each of which has a multiprocessor to itself: products of a few rows.
/// CTAs that would fit beside it do not hide its latency.
pub(super) const FEW_PROGRAMS: u32 = 5;

/// Iterations that are one iteration of a loop where what is loaded to registers waits for several: the most that fit. On an H100 with
/// 2, 4 and 8 of them the more the faster (docs/schedules.md, "Registers of their own").
const UNROLLED: [u32; 2] = [8, 4];
/// Registers of a thread in which loads may wait then. More programs at once would hide latency, too.
const MOST_WORDS_WAITING: u64 = 48;
/// Iterations that such a loop has at least.
const LEAST_ROUNDS: u64 = 2;

impl LoopSchedule {
    /// The schedule of `graph` that has most data under way within `budget`, but no more than the L2 bears where less is
    /// enough; `None` where nothing would run ahead.
    pub fn new(graph: &LoopGraph, budget: &Budget) -> Option<Self> {
        let Candidate { schedule, ctas } = Self::chosen(graph, budget)?;
        let halves = if budget.halves && ctas == 1 { schedule.in_halves(graph) } else { None };
        Some(halves.unwrap_or(schedule))
    }

    /// Whether a schedule that is as good by all that is known, but for the slots of its rings, leaves shared memory for one more CTA.
    pub fn could_leave_room(&self, graph: &LoopGraph, budget: &Budget) -> bool {
        let dots = graph.nodes.iter().any(|node| node.kind == Kind::Dot);
        let other = || Self::new(graph, &Budget { leave_room: true, ..*budget });
        dots && !budget.leave_room && budget.may_fit_more && other().is_some_and(|other| other != *self)
    }

    fn chosen(graph: &LoopGraph, budget: &Budget) -> Option<Candidate> {
        let wanted = Self::of_wanted(graph, &Budget { stages: budget.stages.min(budget.wanted), ..*budget })?;
        // Of five CTAs one is not missed.
        let is_free = |candidate: &&Candidate| {
            let under_way = candidate.schedule.bytes_under_way(graph, candidate.ctas);
            candidate.schedule.stages > budget.wanted
                && 5 * candidate.ctas >= 4 * wanted.ctas
                && candidate.leaves_room(graph, budget) >= wanted.leaves_room(graph, budget)
                && under_way <= budget.most_ahead
        };
        let most = |candidate: &&Candidate| (candidate.schedule.stages, candidate.ctas);
        let free = if budget.wanted < budget.stages {
            Candidate::all(graph, budget).iter().rev().filter(is_free).max_by_key(most).cloned()
        } else {
            None
        };
        Some(free.unwrap_or(wanted))
    }

    /// The one of those with the stages that are wanted.
    fn of_wanted(graph: &LoopGraph, budget: &Budget) -> Option<Candidate> {
        let all = Candidate::all(graph, budget);
        // What threads read for their dots takes fewer registers than it has words, since the assembler reads it piece by piece, and what
        // they sum up less than half of those that two CTAs leave: a second CTA may fit after all.
        let sums: u64 = graph.nodes.iter().filter(|node| node.heavy).map(|node| node.words).sum();
        let may_share =
            graph.nodes.iter().all(|node| node.kind != Kind::Dot) && 4 * sums * budget.threads < REGISTERS;
        let most = |candidate: &&Candidate| {
            let few = budget.few_programs || budget.stages >= FEW_PROGRAMS;
            let alone = if few { candidate.schedule.stages } else { 0 };
            let room = may_share && candidate.leaves_room(graph, budget)
                || budget.leave_room && candidate.leaves_one_more(graph, budget);
            (alone, candidate.iterations_ahead(budget), candidate.ctas, room)
        };
        // Of equals the first one.
        let best = all.iter().rev().max_by_key(most)?;
        let under_way = |candidate: &Candidate| candidate.schedule.bytes_under_way(graph, candidate.ctas);
        // Copies are issued a while after their iteration has begun.
        let late = |candidate: &Candidate| candidate.ctas * graph.copied_bytes() / 4;
        let enough = |candidate: &&Candidate| {
            let bytes = under_way(candidate);
            // A CTA alone has nobody to fill its own waits.
            let alone = candidate.ctas == 1 && best.ctas > 1;
            let fewer = budget.starts_late && candidate.ctas < best.ctas;
            !alone
                && !fewer
                && bytes <= budget.most_ahead
                && bytes.saturating_sub(late(candidate)) >= budget.needed_ahead
        };
        if under_way(best) <= budget.most_ahead {
            return Some(best.clone());
        }
        // Of those that have enough under way but no more than the L2 bears, most CTAs, then most stages. Of two stages the
        // one with the fewest slots, of more the one that copies first (measured: docs/schedules.md).
        let key = |other: &&Candidate| {
            let schedule = &other.schedule;
            let bytes = if schedule.stages == 2 { schedule.shared_bytes(graph) } else { 0 };
            (other.ctas, schedule.stages, std::cmp::Reverse(bytes))
        };
        let bounded = all.iter().rev().filter(enough).max_by_key(key).unwrap_or(best);
        if bounded.schedule.stages > 2 {
            return Some(bounded.clone());
        }
        // Where there are few programs a CTA has its multiprocessor to itself whatever fits beside it, and waits for memory
        // with a single iteration ahead. Of those with two, most CTAs; then most stages that the L2 bears, else the fewest.
        let two_ahead = all.iter().rev().filter(|candidate| candidate.schedule.stages > 2);
        let key = |other: &&Candidate| {
            let (borne, stages) = (under_way(other) <= budget.most_ahead, i64::from(other.schedule.stages));
            (other.ctas, borne, if borne { stages } else { -stages })
        };
        Some(two_ahead.max_by_key(key).unwrap_or(bounded).clone())
    }

    /// The same for two halves of the warps, of which each SIMD has one warp each: while one half multiplies, the other reads
    /// operands from shared memory and begins copies. An iteration is a part for memory and a part for matrix units, each
    /// ended by a barrier, and one half runs one barrier behind the other. What one half copies, the other one reads: the
    /// wait for an iteration's copies is in the iteration before, a barrier earlier than the first read. `None` where an
    /// iteration does anything else.
    fn in_halves(&self, graph: &LoopGraph) -> Option<Self> {
        let runs =
            |step: &Step, is: &dyn Fn(&Node) -> bool| matches!(step, Step::Run(n) if is(&graph.nodes[*n]));
        let is_wait = |step: &Step| !matches!(step, Step::Run(_) | Step::Commit);
        let wait = self.kernel.iter().position(is_wait)?;
        let Step::AwaitCopies { copies, .. } = &self.kernel[wait] else { return None };
        let dot = self.kernel.iter().position(|step| runs(step, &|node| node.heavy))?;
        let touches = |step: &Step| runs(step, &|node| !node.reads.is_empty() || node.writes.is_some());
        let others = self.kernel[wait + 1..].iter().any(is_wait)
            || self.kernel.iter().filter(|step| **step == Step::Commit).count() != 1
            || graph.nodes.iter().any(|node| node.writes.is_some() && node.kind != Kind::Copy)
            || self.kernel[..wait].iter().any(touches)
            || self.kernel[dot..].iter().any(touches);
        // With two stages the wait would be for what has just been begun.
        if others || dot < wait || self.stages < 3 {
            return None;
        }
        let pending = self.stages - 2;
        let mut kernel: Vec<Step> =
            self.kernel[..wait].iter().chain(&self.kernel[wait + 1..dot]).cloned().collect();
        kernel.extend([Step::AwaitNext { copies: copies.clone(), pending }, Step::Meet, Step::Prefer(true)]);
        kernel.extend_from_slice(&self.kernel[dot..]);
        kernel.extend([Step::Prefer(false), Step::Meet]);
        Some(Self { kernel, halves: true, ..self.clone() })
    }

    /// A schedule for two halves of the warps where threads store operands to shared memory, from registers to which they were
    /// loaded an iteration before. What is stored is for the next iteration. With two slots it goes to the one that nobody
    /// reads, in the part for memory. With one slot both halves must have read it, and both must have stored to it before one
    /// reads it again: there a dot has two parts, and so has memory, which is read in one and written in the other, while the
    /// other half of the warps multiplies. `None` where an iteration does anything else, or that does not fit.
    pub fn in_turns(graph: &LoopGraph, budget: &Budget) -> Option<Self> {
        const STAGES: u32 = 3;
        if budget.stages < STAGES {
            return None;
        }
        let stage = Self::stages_of(graph, STAGES, budget)?;
        let nodes = &graph.nodes;
        let stored = |n: usize| nodes[n].kind == Kind::Fill && stage[n] + 2 == STAGES;
        let asks = |node: &Node| node.asked.is_some() || node.cluster.is_some();
        let touches = |n: &usize| !nodes[*n].reads.is_empty() || nodes[*n].writes.is_some();
        if graph.rings.is_empty()
            || (0..nodes.len()).any(|n| nodes[n].writes.is_some() && !stored(n))
            || nodes.iter().any(asks)
        {
            return None;
        }
        let order = Order::new(graph, &stage, STAGES, None);
        let run = |step: &Step| if let Step::Run(n) = step { Some(*n) } else { None };
        let last = order.steps.iter().map(run).collect::<Option<Vec<usize>>>()?;
        let dot = last.iter().position(|n| nodes[*n].heavy)?;
        let (read, rest) = (&last[..dot], &last[dot + 1..]);
        if rest.iter().any(|n| nodes[*n].heavy || touches(n)) || touches(&last[dot]) {
            return None;
        }
        let mut ahead: Vec<usize> = (0..nodes.len()).filter(|n| order.is_ahead(*n)).collect();
        ahead.sort_by_key(|n| std::cmp::Reverse(stage[*n]));
        let dot = last[dot];
        let runs = |all: &[usize]| all.iter().map(|n| Step::Run(*n)).collect::<Vec<_>>();
        let multiplied = |dot: Step, rest: &[usize]| {
            let mut steps = vec![Step::Meet, Step::Prefer(true), dot];
            steps.extend(runs(rest));
            steps.extend([Step::Prefer(false), Step::Meet]);
            steps
        };
        let fitting = |kernel: Vec<Step>, slots: u32| {
            let (stage, depths) = (stage.clone(), vec![slots; graph.rings.len()]);
            let (advances_late, halves, prologue) = (false, true, Prologue::Before);
            let schedule =
                Self { stages: STAGES, stage, kernel, depths, advances_late, halves, prologue, unroll: 1 };
            (budget.ctas_with(schedule.shared_bytes(graph)) > 0).then_some(schedule)
        };
        let two = [runs(read), runs(&ahead), multiplied(Step::Run(dot), rest)].concat();
        let one = || {
            let (first, second) = (Step::RunHalf(dot, false), Step::RunHalf(dot, true));
            let kernel =
                [runs(read), multiplied(first, &[]), runs(&ahead), multiplied(second, rest)].concat();
            nodes[dot].divisible.then_some(kernel).and_then(|kernel| fitting(kernel, 1))
        };
        fitting(two, 2).or_else(one)
    }

    /// A schedule for `graph`, the loop of this schedule with dots in parts along K, some of whose reads are to run an iteration
    /// ahead ([`Node::fetches`]): what the first dot multiplies first is read to registers while the last dot of the iteration
    /// before multiplies its last part. The wait for copies, and with it the barrier, come before that part; what else is read
    /// of the iteration has been read there, so that its slots are free for copies. Reads have a stage of their own: copies run as
    /// far ahead of them as here, and take no more slots. `None` where that is not so, or does not fit.
    pub fn reading_ahead(&self, graph: &LoopGraph, budget: &Budget) -> Option<Self> {
        let fetches = |node: &&Node| node.fetches;
        let words: u64 = graph.nodes.iter().filter(fetches).map(|node| node.words).sum();
        let budget = Budget { registers: budget.registers + words, ..*budget };
        let copied = |ring: &usize| {
            graph.nodes.iter().any(|node| node.kind == Kind::Copy && node.writes == Some(*ring))
        };
        if !graph.nodes.iter().filter(fetches).all(|node| node.reads.iter().all(copied)) {
            return None;
        }
        let fits = |found: &Self| {
            let no_more = found.depths.iter().zip(&self.depths).all(|(slots, before)| slots <= before);
            no_more && found.depths.len() == self.depths.len() && found.pending_next().is_some()
        };
        [self.stages + 1, self.stages].into_iter().find_map(|stages| {
            let stage = Self::stages_of(graph, stages, &budget)?;
            let one_ahead = |n: usize| !graph.nodes[n].fetches || stage[n] + 2 == stages;
            let in_time = |edge: &Edge| !graph.nodes[edge.from].fetches || stage[edge.to] + 1 == stages;
            if !(0..stage.len()).all(one_ahead) || !graph.edges.iter().all(in_time) {
                return None;
            }
            Self::orders(graph, stages, &stage, false).into_iter().find(fits)
        })
    }

    /// Whether operands are read an iteration ahead.
    pub fn reads_ahead(&self, graph: &LoopGraph) -> bool {
        !self.halves && graph.nodes.iter().any(|node| node.fetches)
    }

    /// The same as [`Self::reading_ahead`] where threads store what is read ahead to shared memory, from registers to which it was loaded an iteration before: what
    /// is stored is for the next iteration, too, and comes before its first part is read, a barrier between. With two slots it goes to
    /// the one that nobody reads; with one everything is read of it behind the first dot, and a barrier comes before the stores. They come
    /// where half of the dots behind that have been begun, so that nobody waits for them at the barrier. `None` where an iteration does
    /// anything else, or that does not fit.
    pub fn reading_stored(graph: &LoopGraph, slots: u32, budget: &Budget) -> Option<Self> {
        const STAGES: u32 = 3;
        let nodes = &graph.nodes;
        let words: u64 = nodes.iter().filter(|node| node.fetches).map(|node| node.words).sum();
        let budget = Budget { registers: budget.registers + words, ..*budget };
        let stage = Self::stages_of(graph, STAGES, &budget)?;
        let one_ahead = |n: usize| stage[n] + 2 == STAGES;
        let stored = |n: usize| nodes[n].kind == Kind::Fill && one_ahead(n);
        let asks = |node: &Node| node.asked.is_some() || node.cluster.is_some();
        let in_time = |edge: &Edge| !nodes[edge.from].fetches || stage[edge.to] + 1 == STAGES;
        if graph.rings.is_empty()
            || (0..nodes.len()).any(|n| nodes[n].writes.is_some() && !stored(n))
            || (0..nodes.len()).any(|n| nodes[n].fetches && !one_ahead(n))
            || !graph.edges.iter().all(in_time)
            || nodes.iter().any(asks)
        {
            return None;
        }
        // What is read ahead as a whole leaves its slot free.
        let whole = nodes.iter().all(|node| node.reads.is_empty() || node.fetches);
        let slots = if whole { 1 } else { slots };
        let kernel = Order::new(graph, &stage, STAGES, None).storing_ahead(slots)?;
        let (depths, prologue) = (vec![slots; graph.rings.len()], Prologue::Before);
        let schedule = Self {
            stages: STAGES,
            stage,
            kernel,
            depths,
            advances_late: false,
            halves: false,
            prologue,
            unroll: 1,
        };
        (budget.ctas_with(schedule.shared_bytes(graph)) > 0).then_some(schedule)
    }

    /// The same with accesses spread between matrix instructions, where an iteration copies, reads and multiplies, and nothing of
    /// it uses what is multiplied but sums that go on: else not all of its matrix instructions can be issued beside accesses. What threads
    /// store they have loaded an iteration before: spread loads have less time, and wait in more registers (docs/amd.md).
    #[must_use]
    pub fn spreading(mut self, graph: &LoopGraph) -> Self {
        let nodes = &graph.nodes;
        let sums_go_on = graph.edges.iter().all(|edge| !nodes[edge.from].heavy || nodes[edge.to].heavy);
        let others = nodes.iter().any(|node| matches!(node.kind, Kind::Dot | Kind::BulkCopy | Kind::Fill));
        let in_order = self.halves || self.is_prologue_ahead() || self.is_spread();
        if sums_go_on && !others && !in_order && nodes.iter().any(|node| node.heavy) {
            // What is multiplied before the next iteration's copies are awaited is issued before that: meanwhile what has been read arrives, and
            // no more of it waits in registers than without.
            if let Some(wait) = self.kernel.iter().position(|step| matches!(step, Step::AwaitNext { .. })) {
                self.kernel.insert(wait, Step::Issued);
            }
            self.kernel.push(Step::Spread);
        }
        self
    }

    /// Whether accesses are spread between matrix instructions.
    pub fn is_spread(&self) -> bool {
        self.kernel.contains(&Step::Spread)
    }

    /// The same with the prologue of each tile behind the loop of the tile before.
    #[must_use]
    pub fn with_prologue_ahead(self, graph: &LoopGraph) -> Self {
        let announced = graph.nodes.iter().any(|node| node.kind == Kind::BulkCopy);
        let slots = if announced { Slots::Continue } else { Slots::Restart };
        Self { prologue: Prologue::TileBefore(slots), ..self }
    }

    /// Groups that may be under way where the next iteration's copies are awaited; `None` where they are not.
    pub fn pending_next(&self) -> Option<u32> {
        self.kernel.iter().find_map(|step| match step {
            Step::AwaitNext { pending, .. } => Some(*pending),
            _ => None,
        })
    }

    /// The same where what is loaded to registers waits there for several iterations, and as many and one more are one iteration of the
    /// loop, which runs `trips` times, if that is known. `None` where so much does not fit in registers, or the loop is too short.
    pub fn further(&self, graph: &LoopGraph, budget: &Budget, trips: Option<u64>) -> Option<Self> {
        let mut far = graph.clone();
        far.nodes.iter_mut().for_each(|node| node.near = false);
        UNROLLED.into_iter().find_map(|unroll| {
            if trips.is_some_and(|trips| trips < LEAST_ROUNDS * u64::from(unroll)) {
                return None;
            }
            let budget = Budget { stages: unroll, wanted: unroll, registers: MOST_WORDS_WAITING, ..*budget };
            let schedule = Self::new(&far, &budget)?;
            let all = (0..graph.nodes.len()).all(|n| self.ahead(n) == 0 || schedule.ahead(n) > 0);
            let waits = waiting_registers(&far, &schedule.stage) > 0;
            (all && waits && schedule.stages == unroll).then_some(Self { unroll, ..schedule })
        })
    }

    /// Whether the prologue of a tile comes behind the loop of the tile before.
    pub fn is_prologue_ahead(&self) -> bool {
        self.prologue != Prologue::Before
    }

    /// All schedules within `budget`, each with how many CTAs fit beside each other: most stages first.
    pub fn candidates(graph: &LoopGraph, budget: &Budget) -> Vec<(u64, Self)> {
        Candidate::all(graph, budget).into_iter().map(|one| (one.ctas, one.schedule)).collect()
    }

    /// Bytes of copies that a multiprocessor has under way with `ctas` CTAs of this schedule.
    pub fn bytes_under_way(&self, graph: &LoopGraph, ctas: u64) -> u64 {
        ctas * self.bytes_ahead(graph)
    }

    /// Stages of the operations where there are `stages`; `None` where nothing would run ahead within `budget`.
    fn stages_of(graph: &LoopGraph, stages: u32, budget: &Budget) -> Option<Vec<u32>> {
        let mut early: Vec<bool> = graph.nodes.iter().map(|node| node.early).collect();
        loop {
            let stage = assign(graph, stages, &mut early)?;
            if waiting_registers(graph, &stage) <= budget.registers {
                return Some(stage);
            }
            // What takes most registers waits where it is.
            let waits = |n: &usize| early[*n] && graph.nodes[*n].kind == Kind::Guarded;
            let most = (0..stage.len()).filter(waits).max_by_key(|n| graph.nodes[*n].words)?;
            early[most] = false;
        }
    }

    /// The orders of `stages` stages, one for each place where what runs ahead may come.
    fn orders(graph: &LoopGraph, stages: u32, stage: &[u32], advances_late: bool) -> Vec<Self> {
        // Each costs time in the length of the loop, and loops that were written out have a place for each of their dots.
        const MOST_PLACES: usize = 32;
        let mut places = Order::new(graph, stage, stages, None).places();
        if places.len() > MOST_PLACES {
            let last = places.len() - 1;
            places = (0..MOST_PLACES).map(|i| places[i * last / (MOST_PLACES - 1)]).collect();
        }
        let order = |place: usize| {
            let kernel = Order::new(graph, stage, stages, Some(place)).count()?;
            let (stage, depths, prologue) = (stage.to_vec(), Vec::new(), Prologue::Before);
            let mut schedule =
                Self { stages, stage, kernel, depths, advances_late, halves: false, prologue, unroll: 1 };
            schedule.depths = schedule.needed_depths(graph);
            Some(schedule)
        };
        places.into_iter().filter_map(order).collect()
    }

    /// Bytes that a CTA's copies have under way.
    fn bytes_ahead(&self, graph: &LoopGraph) -> u64 {
        let copies = |n: &usize| matches!(graph.nodes[*n].kind, Kind::Copy | Kind::BulkCopy);
        let bytes =
            |n: usize| graph.nodes[n].writes.map_or(0, |ring| graph.rings[ring]) * u64::from(self.ahead(n));
        (0..graph.nodes.len()).filter(copies).map(bytes).sum()
    }

    /// Bytes of all rings.
    pub fn shared_bytes(&self, graph: &LoopGraph) -> u64 {
        graph.rings.iter().zip(&self.depths).map(|(bytes, depth)| bytes * u64::from(*depth)).sum()
    }

    /// The first operation that comes behind another one which the program wants behind it, and that one.
    pub fn misplaced(&self, graph: &LoopGraph) -> Option<(usize, usize)> {
        let mut last: Option<(u32, usize)> = None;
        for step in &self.kernel {
            let Step::Run(n) = step else { continue };
            let Some(cluster) = graph.nodes[*n].cluster else { continue };
            match last {
                Some((before, other)) if before > cluster => return Some((*n, other)),
                _ => last = Some((cluster, *n)),
            }
        }
        None
    }

    /// How many iterations ahead an operation of `node` runs.
    pub fn ahead(&self, node: usize) -> u32 {
        self.stages - 1 - self.stage[node]
    }

    fn position(&self, node: usize) -> usize {
        self.kernel.iter().position(|step| *step == Step::Run(node)).unwrap_or(self.kernel.len())
    }

    /// When dot `node` of an iteration is known to be done: iterations later, and the place there.
    fn done(&self, node: usize) -> (u32, usize) {
        let waits = self.kernel.iter().enumerate().filter_map(|(place, step)| match step {
            Step::AwaitDots { dots, .. } => Some((dots.iter().find(|dot| dot.0 == node)?.1, place)),
            _ => None,
        });
        waits.min().unwrap_or((1, self.kernel.len()))
    }

    /// Slots that each ring must have so that none is written before what read it is done.
    fn needed_depths(&self, graph: &LoopGraph) -> Vec<u32> {
        let mut depths = vec![1; graph.rings.len()];
        for (writer, node) in graph.nodes.iter().enumerate() {
            let Some(ring) = node.writes else { continue };
            let (ahead, write) = (self.ahead(writer), self.position(writer));
            for (reader, _) in graph.nodes.iter().enumerate().filter(|(_, node)| node.reads.contains(&ring)) {
                let (later, place) = match graph.nodes[reader].kind {
                    Kind::Dot => self.done(reader),
                    _ => (0, self.position(reader)),
                };
                // What is read ahead is read as many iterations sooner.
                let depth = (ahead + later + u32::from(place > write)).saturating_sub(self.ahead(reader));
                // The prologue has begun all its copies where it reads what the first iteration multiplies.
                let begun = if graph.nodes[reader].fetches { ahead } else { 0 };
                depths[ring] = depths[ring].max(depth).max(begun);
            }
        }
        depths
    }
}

/// The stage of each operation, those of `early` as soon as they can; `None` where none runs ahead. What cannot is taken
/// out of `early`.
fn assign(graph: &LoopGraph, stages: u32, early: &mut [bool]) -> Option<Vec<u32>> {
    let last = stages - 1;
    let (users, needs) = (graph.users(), graph.needs());
    loop {
        let level = levels(graph, &needs, early);
        let deepest = level.iter().flatten().copied().max()?;
        if deepest > last {
            // More loads that need each other than there are stages: the last ones stay where they are.
            let keep = |n: usize| level[n].is_none_or(|level| level <= last);
            early.iter_mut().enumerate().for_each(|(n, early)| *early &= keep(n));
            continue;
        }
        // Levels share the distance evenly.
        let apart = last / deepest;
        let mut stage = vec![last; graph.nodes.len()];
        // The stage of the first that runs ahead and depends on it.
        let mut used = vec![last; graph.nodes.len()];
        for n in (0..graph.nodes.len()).rev() {
            let within = users[n].iter().filter(|edge| edge.distance == 0).map(|edge| edge.to);
            let first = within.map(|to| if level[to].is_some() { stage[to] } else { used[to] }).min();
            used[n] = first.unwrap_or(last);
            if let Some(level) = level[n] {
                stage[n] = match &graph.nodes[n] {
                    Node { fetches: true, .. } => last.saturating_sub(1),
                    Node { asked: Some(ahead), .. } => last.saturating_sub(*ahead),
                    Node { near: true, .. } => used[n].saturating_sub(1),
                    _ => (level - 1) * apart,
                };
            }
        }
        // What an operation needs runs no later than itself.
        let mut open: Vec<usize> = (0..stage.len()).filter(|n| stage[*n] < last).collect();
        while let Some(n) = open.pop() {
            for edge in &needs[n] {
                if stage[edge.from] > stage[n] {
                    stage[edge.from] = stage[n];
                    open.push(edge.from);
                }
            }
        }
        let movable = |n: usize| match graph.nodes[n].kind {
            Kind::Pure | Kind::Guarded => graph.nodes[n].reads.is_empty() || graph.nodes[n].fetches,
            Kind::Copy | Kind::BulkCopy | Kind::Fill => early[n],
            Kind::Fixed | Kind::Dot => false,
        };
        let stuck: Vec<usize> = (0..stage.len()).filter(|n| stage[*n] < last && !movable(*n)).collect();
        if stuck.is_empty() {
            return Some(stage);
        }
        // What needs them stays with them.
        let (mut seen, mut open) = (vec![false; stage.len()], stuck);
        while let Some(n) = open.pop() {
            if !std::mem::replace(&mut seen[n], true) {
                open.extend(users[n].iter().map(|edge| edge.to));
            }
        }
        let before = early.iter().filter(|early| **early).count();
        early.iter_mut().zip(&seen).for_each(|(early, stays)| *early &= !stays);
        if early.iter().filter(|early| **early).count() == before {
            return None;
        }
    }
}

/// Lets what advances pointers of copies run in the iteration that uses the next values, before the copies, rather than in
/// the one before, behind them: a copy takes a while to read its address from its register, and what is written to that
/// register next waits for it. Such an operation uses values of earlier iterations alone, and runs one stage later.
fn advance_late(graph: &LoopGraph, stage: &mut [u32]) {
    let (users, last) = (graph.users(), stage.iter().copied().max().unwrap_or(0));
    let needs = graph.needs();
    for n in 0..stage.len() {
        let copies = |edge: &Edge| edge.to != n && graph.nodes[edge.to].kind == Kind::Copy;
        let in_time = |edge: &Edge| edge.distance > 0 && stage[edge.to] + edge.distance > stage[n];
        if graph.nodes[n].kind == Kind::Pure
            && stage[n] < last
            && needs[n].iter().all(|edge| edge.distance > 0)
            && users[n].iter().all(in_time)
            && users[n].iter().any(copies)
        {
            stage[n] += 1;
        }
    }
}

/// How many loads that run ahead each of them needs, itself included.
fn levels(graph: &LoopGraph, needs: &[SmallVec<[Edge; 4]>], early: &[bool]) -> Vec<Option<u32>> {
    // The order of the program is one of the dependences within an iteration.
    let mut deep = vec![0; graph.nodes.len()];
    for n in 0..graph.nodes.len() {
        let within = needs[n].iter().filter(|edge| edge.distance == 0);
        deep[n] = within.map(|edge| deep[edge.from]).max().unwrap_or(0) + u32::from(early[n]);
    }
    deep.into_iter().zip(early).map(|(deep, early)| early.then_some(deep)).collect()
}

/// Registers of a thread that hold values between stages.
fn waiting_registers(graph: &LoopGraph, stage: &[u32]) -> u64 {
    let mut longest = vec![0; stage.len()];
    for edge in graph.edges.iter().filter(|edge| edge.distance == 0) {
        longest[edge.from] = longest[edge.from].max(stage[edge.to] - stage[edge.from]);
    }
    graph.nodes.iter().zip(longest).map(|(node, longest)| node.words * u64::from(longest)).sum()
}

impl LoopGraph {
    /// The most loads that run ahead which a copy needs, itself included.
    pub fn levels_of_copies(&self) -> u32 {
        let early: Vec<bool> = self.nodes.iter().map(|node| node.early).collect();
        let copies = self.nodes.iter().map(|node| matches!(node.kind, Kind::Copy | Kind::BulkCopy));
        let levels = levels(self, &self.needs(), &early).into_iter().zip(copies);
        levels.filter_map(|(level, copies)| level.filter(|_| copies)).max().unwrap_or(0)
    }

    /// Bytes that copies beside the program write in an iteration.
    pub fn copied_bytes(&self) -> u64 {
        self.bytes_of(|kind| matches!(kind, Kind::Copy | Kind::BulkCopy))
    }

    /// Bytes that nodes of a kind write in an iteration.
    fn bytes_of(&self, counts: impl Fn(Kind) -> bool) -> u64 {
        let writers = self.nodes.iter().filter(|node| counts(node.kind));
        writers.filter_map(|node| node.writes).map(|ring| self.rings[ring]).sum()
    }

    /// The uses of each operation's results.
    pub(super) fn users(&self) -> Vec<SmallVec<[Edge; 4]>> {
        let mut users = vec![SmallVec::new(); self.nodes.len()];
        self.edges.iter().for_each(|edge| users[edge.from].push(*edge));
        users
    }

    /// What each operation uses.
    pub(super) fn needs(&self) -> Vec<SmallVec<[Edge; 4]>> {
        let mut needs = vec![SmallVec::new(); self.nodes.len()];
        self.edges.iter().for_each(|edge| needs[edge.to].push(*edge));
        needs
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Step::Run(n) => write!(f, "run {n}"),
            Step::RunHalf(n, second) => {
                write!(f, "run the {} half of {n}", if *second { "second" } else { "first" })
            }
            Step::Commit => write!(f, "end group"),
            Step::AwaitCopies { copies, pending } => {
                write!(f, "await copies {copies:?}, {pending} groups pending")
            }
            Step::AwaitNext { copies, pending } => {
                write!(f, "await copies {copies:?} of the next iteration, {pending} groups pending")
            }
            Step::Meet => write!(f, "halves of the warps meet"),
            Step::Issued => write!(f, "dots before this are issued"),
            Step::Spread => write!(f, "accesses are spread between matrix instructions"),
            Step::Prefer(true) => write!(f, "prefer this warp"),
            Step::Prefer(false) => write!(f, "prefer no warp"),
            Step::AwaitBulk(n) => write!(f, "await copy {n} at its barrier"),
            Step::AwaitDots { dots, pending } => {
                let names: Vec<String> =
                    dots.iter()
                        .map(|(n, earlier)| {
                            if *earlier == 0 {
                                format!("{n}")
                            } else {
                                format!("{n} of the iteration before")
                            }
                        })
                        .collect();
                write!(f, "await dots {}, {pending} pending", names.join(", "))
            }
        }
    }
}
