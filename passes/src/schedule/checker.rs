//! Executes schedules step by step, to find out whether they are right. Shares no code with the planner.
//!
//! A loop of `trips` iterations is run as the schedule says, prologue first, on a machine that does everything as late
//! as it may: copies arrive when a wait says so, dots end when a wait says so, each kind in order. Slots of rings
//! remember whose data they hold and which dots may still read them. Anything that could go wrong on hardware is an
//! error in words:
//!
//! * a value, or data of a ring, is used before it is there, or another iteration's is;
//! * a slot is written while something may still read it;
//! * an operation with effects runs for an iteration that does not exist, twice, never or out of order; but threads may store
//!   to a slot for such an iteration, which takes from the slot what it had;
//! * of an operation in two halves one is missing, or the second comes before the first;
//! * a wait claims that something is there which need not be;
//! * what is read an iteration ahead is read before its wait, or not by one iteration;
//! * accesses are spread between matrix instructions where something else waits for these, or where halves of the warps take turns;
//! * more is taken than the budget has.
//!
//! A loop that another loop runs once for each tile is run so, too: an iteration is one of a tile. Where prologues come
//! behind the loop of the tile before, that of the next tile is run there, after everything of this tile is done; slots and
//! barriers are those that the tile before left.

use super::plan::{Budget, Kind, LoopGraph, LoopSchedule, Prologue, Slots, Step};
use super::spread::{Group, Item, Unit};
use std::collections::{HashMap, HashSet, VecDeque};

/// An iteration: the tile, and its number there.
type Iteration = (usize, u64);

/// What a slot holds.
#[derive(Clone, Default)]
struct Slot {
    /// The iteration whose data it has, or will have.
    holds: Option<Iteration>,
    /// Whether it has it.
    there: bool,
    /// Dots that may be reading it.
    readers: HashSet<(usize, Iteration)>,
    /// How often its barrier has announced data.
    announced: u64,
}

struct Machine<'a> {
    graph: &'a LoopGraph,
    schedule: &'a LoopSchedule,
    /// How many iterations each tile has.
    trips: &'a [u64],
    slots: Vec<Vec<Slot>>,
    /// What has run, with the iteration it ran for.
    ran: HashSet<(usize, Iteration)>,
    /// Ended groups of copies that may be under way, and the group that is open.
    groups: VecDeque<Vec<(usize, Iteration)>>,
    open: Vec<(usize, Iteration)>,
    /// Copies that a barrier announces, under way.
    bulk: HashSet<(usize, Iteration)>,
    /// Dots that may be under way, in order.
    dots: VecDeque<(usize, Iteration)>,
    /// The last operation of those that stay in order.
    last_fixed: Option<(Iteration, usize)>,
    /// An operation of which the first half has run, and not yet the second one.
    half: Option<(usize, Iteration)>,
}

/// Checks that `schedule` computes what `graph` does, within `budget`, for tiles of so many iterations each, one after the
/// other.
///
/// # Errors
/// The first thing that could go wrong.
pub fn check(
    graph: &LoopGraph,
    schedule: &LoopSchedule,
    budget: &Budget,
    trips: &[u64],
) -> Result<(), String> {
    check_sizes(graph, schedule, budget)?;
    check_spread(graph, schedule)?;
    let slots = schedule.depths.iter().map(|depth| vec![Slot::default(); *depth as usize]).collect();
    let mut machine = Machine {
        graph,
        schedule,
        trips,
        slots,
        ran: HashSet::new(),
        groups: VecDeque::new(),
        open: Vec::new(),
        bulk: HashSet::new(),
        dots: VecDeque::new(),
        last_fixed: None,
        half: None,
    };
    machine.tiles()?;
    for node in 0..graph.nodes.len() {
        for (tile, trips) in trips.iter().enumerate() {
            if let Some(i) = (0..*trips).find(|i| !machine.ran.contains(&(node, (tile, *i)))) {
                return Err(format!("operation {node} never runs for iteration {i} of tile {tile}"));
            }
        }
    }
    if !schedule.halves {
        return Ok(());
    }
    if schedule.prologue != Prologue::Before {
        return Err("halves of the warps run apart, and tiles overlap".to_owned());
    }
    trips.iter().try_for_each(|trips| check_halves(graph, schedule, *trips))
}

/// What a half of the warps does to a slot of a ring between two barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Touch {
    /// Reads what was copied for the iteration.
    Read,
    /// Begins to copy for the iteration.
    Begin,
    /// Knows that its own copies for the iteration have arrived.
    Arrived,
}

/// Checks that two halves of the warps, of which the second is one barrier behind, keep out of each other's way. Between two
/// barriers nothing orders what the halves do, nor what two warps of one half do.
fn check_halves(graph: &LoopGraph, schedule: &LoopSchedule, trips: u64) -> Result<(), String> {
    let lead = touches(graph, schedule, trips)?;
    // When each half does it: both halves do the same, and all of the prologue comes before a barrier of both.
    let when = |half: i64, at: i64| if at < 0 { at } else { at + half };
    for (ring, slots) in schedule.depths.iter().enumerate() {
        let of_ring: Vec<_> = lead.iter().filter(|(other, ..)| *other == ring).collect();
        for (_, touch, i, at) in &of_ring {
            let others = of_ring
                .iter()
                .flat_map(|(_, other, of, time)| [0, 1].map(|half| (*other, *of, when(half, *time))));
            for mine in [0, 1].map(|half| when(half, *at)) {
                let place = |what: Touch, of: u64| {
                    others
                        .clone()
                        .filter(move |(other, j, _)| *other == what && *j == of)
                        .map(|(.., time)| time)
                };
                let before = |what: Touch, of: u64| place(what, of).all(|time| time < mine);
                match touch {
                    Touch::Read if !before(Touch::Arrived, *i) || place(Touch::Arrived, *i).count() == 0 => {
                        return Err(format!(
                            "half reads ring {ring} of iteration {i} before the other half's copies"
                        ));
                    }
                    // What was in the slot.
                    Touch::Begin
                        if i.checked_sub(u64::from(*slots)).is_some_and(|of| !before(Touch::Read, of)) =>
                    {
                        return Err(format!(
                            "half copies to ring {ring} what the other half may be reading, in iteration {i}"
                        ));
                    }
                    _ => {}
                }
            }
        }
    }
    Ok(())
}

/// Whether a loop copies to shared memory without threads waiting for it.
fn has_copies(graph: &LoopGraph) -> bool {
    graph.nodes.iter().any(|node| matches!(node.kind, Kind::Copy | Kind::BulkCopy))
}

/// What the first half does to rings: the ring, what, for which iteration, and behind how many barriers of the loop; less than
/// none before it.
fn touches(
    graph: &LoopGraph,
    schedule: &LoopSchedule,
    trips: u64,
) -> Result<Vec<(usize, Touch, u64, i64)>, String> {
    let (mut all, mut groups, mut barriers, mut preferred) = (Vec::new(), VecDeque::new(), 0i64, false);
    let mut open: Vec<(usize, u64)> = Vec::new();
    let copies = has_copies(graph);
    let arrive = |groups: &mut VecDeque<Vec<(usize, u64)>>, pending: u32, at: i64, all: &mut Vec<_>| {
        while groups.len() > pending as usize {
            all.extend(
                groups.pop_front().into_iter().flatten().map(|(ring, i)| (ring, Touch::Arrived, i, at)),
            );
        }
    };
    let ahead = i64::from(schedule.stages) - 1;
    for now in -ahead..trips as i64 {
        for step in &schedule.kernel {
            let at = if now < 0 { -2 } else { barriers };
            match step {
                Step::Run(n) => {
                    let node = &graph.nodes[*n];
                    let Ok(i) = u64::try_from(now + ahead - i64::from(schedule.stage[*n])) else { continue };
                    if i < trips {
                        all.extend(node.reads.iter().map(|ring| (*ring, Touch::Read, i, at)));
                    }
                    match node.writes {
                        // What threads store is there behind the next barrier, as what else they have done.
                        Some(ring) if node.kind == Kind::Fill => {
                            all.extend([(ring, Touch::Begin, i, at), (ring, Touch::Arrived, i, at)]);
                        }
                        Some(ring) if i < trips => {
                            all.push((ring, Touch::Begin, i, at));
                            open.push((ring, i));
                        }
                        _ => {}
                    }
                }
                Step::Commit => groups.push_back(std::mem::take(&mut open)),
                Step::AwaitNext { pending, .. } if now >= 0 => arrive(&mut groups, *pending, at, &mut all),
                Step::Meet if now >= 0 => barriers += 1,
                Step::Prefer(this) if now >= 0 => {
                    if preferred == *this {
                        return Err("a warp is preferred twice, or never".to_owned());
                    }
                    preferred = *this;
                }
                _ => {}
            }
        }
        if preferred {
            return Err("a warp is preferred beyond its dots".to_owned());
        }
        if now == -1 && copies {
            arrive(&mut groups, schedule.pending_next().ok_or("halves wait for nothing")?, -1, &mut all);
        }
    }
    Ok(all)
}

/// Accesses are spread over a whole iteration, in which all threads do the same and nothing but dots waits for dots.
fn check_spread(graph: &LoopGraph, schedule: &LoopSchedule) -> Result<(), String> {
    let Some(place) = schedule.kernel.iter().position(|step| *step == Step::Spread) else { return Ok(()) };
    if place + 1 != schedule.kernel.len() {
        return Err("accesses are spread over a part of an iteration".to_owned());
    }
    if schedule.halves || schedule.kernel.iter().any(|step| matches!(step, Step::Meet | Step::RunHalf(..))) {
        return Err("accesses are spread where halves of the warps take turns".to_owned());
    }
    for edge in &graph.edges {
        if graph.nodes[edge.from].heavy && !graph.nodes[edge.to].heavy {
            return Err(format!("accesses are spread between dots, for which operation {} waits", edge.to));
        }
    }
    if !graph.nodes.iter().any(|node| node.heavy) {
        return Err("accesses are spread between no dots".to_owned());
    }
    Ok(())
}

fn check_sizes(graph: &LoopGraph, schedule: &LoopSchedule, budget: &Budget) -> Result<(), String> {
    let (nodes, rings) = (graph.nodes.len(), graph.rings.len());
    if schedule.stage.len() != nodes || schedule.depths.len() != rings {
        return Err("is the schedule of another loop".to_owned());
    }
    if schedule.stages > budget.stages || schedule.stage.iter().any(|stage| *stage >= schedule.stages) {
        return Err(format!("{} stages, the budget has {}", schedule.stages, budget.stages));
    }
    if schedule.depths.contains(&0) {
        return Err("a ring has no slots".to_owned());
    }
    let fetches = |n: &usize| graph.nodes[*n].fetches;
    if let Some(n) = (0..nodes).filter(fetches).find(|n| schedule.stage[*n] + 2 != schedule.stages) {
        return Err(format!("operation {n} does not read for the next iteration"));
    }
    let bytes: u64 = graph.rings.iter().zip(&schedule.depths).map(|(size, n)| size * u64::from(*n)).sum();
    let left = budget.shared.saturating_sub(budget.taken);
    if bytes > left {
        return Err(format!("rings take {bytes} bytes, the budget has {left}"));
    }
    let (mut held, mut longest) = (HashMap::<usize, u64>::new(), 0);
    for edge in graph.edges.iter().filter(|edge| edge.distance == 0 && graph.nodes[edge.from].words > 0) {
        let between = schedule.stage[edge.to].saturating_sub(schedule.stage[edge.from]);
        longest = longest.max(between);
        let most = held.entry(edge.from).or_default();
        *most = (*most).max(u64::from(between) * graph.nodes[edge.from].words);
    }
    match schedule.unroll {
        0 => return Err("an iteration of the loop does nothing".to_owned()),
        1 => {}
        unroll if longest < unroll => {}
        unroll => return Err(format!("values wait for {longest} iterations in registers of {unroll}")),
    }
    let registers: u64 = held.values().sum();
    if registers > budget.registers {
        return Err(format!("{registers} registers hold values, the budget has {}", budget.registers));
    }
    Ok(())
}

impl Machine<'_> {
    /// All tiles, one after the other.
    fn tiles(&mut self) -> Result<(), String> {
        let is_ahead = self.schedule.prologue != Prologue::Before;
        if is_ahead && !self.trips.is_empty() {
            self.prologue(0)?;
        }
        for tile in 0..self.trips.len() {
            if !is_ahead {
                // Rings and their barriers are new ones.
                self.slots.iter_mut().flatten().for_each(|slot| *slot = Slot::default());
                self.prologue(tile)?;
            }
            if self.schedule.halves {
                self.begin_halves()?;
            }
            for now in 0..self.trips[tile] as i64 {
                self.iteration(tile, now)?;
            }
            self.end()?;
            if is_ahead && tile + 1 < self.trips.len() {
                self.prologue(tile + 1)?;
            }
        }
        Ok(())
    }

    /// Before halves of the warps run apart, what the first iteration reads has arrived.
    fn begin_halves(&mut self) -> Result<(), String> {
        if has_copies(self.graph) {
            self.await_groups(self.schedule.pending_next().ok_or("halves wait for nothing")?);
        }
        Ok(())
    }

    /// What comes behind the loop of a tile: what it has under way ends.
    fn end(&mut self) -> Result<(), String> {
        while !self.dots.is_empty() {
            self.end_dot();
        }
        self.groups.clear();
        match self.bulk.iter().next() {
            Some((copy, (tile, i))) => {
                Err(format!("nobody waits for copy {copy} of iteration {i} of tile {tile}"))
            }
            None => Ok(()),
        }
    }

    fn prologue(&mut self, tile: usize) -> Result<(), String> {
        let ahead = i64::from(self.schedule.stages) - 1;
        (-ahead..0).try_for_each(|now| self.iteration(tile, now))?;
        if self.schedule.halves {
            return Ok(());
        }
        self.first_operands(tile).map_err(|what| format!("the end of the prologue of tile {tile}: {what}"))
    }

    /// Where operands are read an iteration ahead, those of the first iteration are read at the end of the prologue, behind waits
    /// that leave under way what the prologue has begun since.
    fn first_operands(&mut self, tile: usize) -> Result<(), String> {
        let (schedule, first) = (self.schedule, (tile, 0));
        for (place, step) in schedule.kernel.iter().enumerate() {
            let Step::AwaitNext { copies, pending } = step else { continue };
            let behind = schedule.kernel[place..].iter().filter(|step| **step == Step::Commit).count();
            self.await_groups(*pending + behind as u32);
            if self.exists(first) {
                copies.iter().try_for_each(|copy| self.claim(*copy, first))?;
            }
        }
        for step in &schedule.kernel {
            if let Step::Run(node) = step
                && self.graph.nodes[*node].fetches
            {
                self.run(*node, first)?;
            }
        }
        Ok(())
    }

    fn iteration(&mut self, tile: usize, now: i64) -> Result<(), String> {
        let trips = self.trips[tile];
        self.steps(tile, now).map_err(|what| format!("iteration {now} of {trips} of tile {tile}: {what}"))
    }

    /// One iteration of the new loop; those below zero are the prologue.
    fn steps(&mut self, tile: usize, now: i64) -> Result<(), String> {
        for step in &self.schedule.kernel {
            match step {
                // The prologue ends with what is read of the first iteration.
                Step::Run(node) if now < 0 && self.graph.nodes[*node].fetches => {}
                Step::Run(node) => {
                    let ahead = self.schedule.stages - 1 - self.schedule.stage[*node];
                    if let Ok(i) = u64::try_from(now + i64::from(ahead)) {
                        self.run(*node, (tile, i))?;
                    }
                }
                Step::RunHalf(node, second) => {
                    let ahead = self.schedule.stages - 1 - self.schedule.stage[*node];
                    if let Ok(i) = u64::try_from(now + i64::from(ahead)) {
                        self.run_half(*node, (tile, i), *second)?;
                    }
                }
                Step::Commit => self.groups.push_back(std::mem::take(&mut self.open)),
                _ if now < 0 => {}
                Step::AwaitNext { copies, pending } => {
                    self.await_groups(*pending);
                    // Where halves run apart, they are checked by themselves.
                    let next = (tile, now as u64 + 1);
                    if !self.schedule.halves && self.exists(next) {
                        copies.iter().try_for_each(|copy| self.claim(*copy, next))?;
                    }
                }
                Step::Meet | Step::Prefer(_) | Step::Issued | Step::Spread => {}
                Step::AwaitCopies { copies, pending } => {
                    self.await_groups(*pending);
                    let now = (tile, now as u64);
                    copies.iter().try_for_each(|copy| self.claim(*copy, now))?;
                }
                Step::AwaitBulk(copy) => self.await_bulk(*copy, (tile, now as u64))?,
                Step::AwaitDots { dots, pending } => {
                    while self.dots.len() > *pending as usize {
                        self.end_dot();
                    }
                    for (dot, earlier) in dots {
                        let Some(i) = (now as u64).checked_sub(u64::from(*earlier)) else { continue };
                        let i = (tile, i);
                        if self.dots.contains(&(*dot, i)) || !self.ran.contains(&(*dot, i)) {
                            return Err(format!("a wait says that dot {dot} of iteration {i:?} is done"));
                        }
                    }
                }
            }
        }
        if let Some((n, i)) = self.half {
            return Err(format!("only the first half of operation {n} runs for iteration {i:?}"));
        }
        let blocking = |dot: &&(usize, Iteration)| self.graph.nodes[dot.0].blocking;
        match self.dots.iter().find(blocking) {
            Some((dot, i)) => Err(format!("dot {dot} of iteration {i:?} is under way at the end")),
            None => Ok(()),
        }
    }

    fn await_groups(&mut self, pending: u32) {
        while self.groups.len() > pending as usize {
            for (copy, i) in self.groups.pop_front().into_iter().flatten() {
                self.arrive(copy, i);
            }
        }
    }

    fn end_dot(&mut self) {
        if let Some(dot) = self.dots.pop_front() {
            self.slots.iter_mut().flatten().for_each(|slot| _ = slot.readers.remove(&dot));
        }
    }

    /// How many iterations the slots have gone round before iteration `i`.
    fn turns(&self, (tile, i): Iteration) -> u64 {
        let goes_on = self.schedule.prologue == Prologue::TileBefore(Slots::Continue);
        let before = if goes_on { &self.trips[..tile] } else { &[] };
        before.iter().sum::<u64>() + i
    }

    fn exists(&self, (tile, i): Iteration) -> bool {
        i < self.trips[tile]
    }

    fn slot(&mut self, ring: usize, i: Iteration) -> &mut Slot {
        let turns = self.turns(i) as usize;
        let ring = &mut self.slots[ring];
        let number = turns % ring.len();
        &mut ring[number]
    }

    /// Waits at the barrier of a slot, which has a phase for each time that the slots go round.
    fn await_bulk(&mut self, copy: usize, i: Iteration) -> Result<(), String> {
        let Some(ring) = self.graph.nodes[copy].writes else { return Ok(()) };
        let phase = self.turns(i) / self.slots[ring].len() as u64;
        if self.bulk.remove(&(copy, i)) {
            self.arrive(copy, i);
            self.slot(ring, i).announced += 1;
        }
        let announced = self.slot(ring, i).announced;
        if announced != phase + 1 {
            return Err(format!("waits for phase {phase} of a barrier that has announced {announced} times"));
        }
        self.claim(copy, i)
    }

    fn arrive(&mut self, copy: usize, i: Iteration) {
        if let Some(ring) = self.graph.nodes[copy].writes
            && self.exists(i)
        {
            let slot = self.slot(ring, i);
            slot.there |= slot.holds == Some(i);
        }
    }

    fn claim(&mut self, copy: usize, i: Iteration) -> Result<(), String> {
        let Some(ring) = self.graph.nodes[copy].writes else { return Ok(()) };
        let slot = self.slot(ring, i);
        if slot.holds == Some(i) && slot.there {
            return Ok(());
        }
        Err(format!("a wait says that copy {copy} of iteration {i:?} has arrived"))
    }

    /// Half of operation `n` for iteration `i`, which has run when the second half has. Both read what it reads.
    fn run_half(&mut self, n: usize, i: Iteration, second: bool) -> Result<(), String> {
        let node = &self.graph.nodes[n];
        if !node.divisible || node.kind != Kind::Pure || node.writes.is_some() || !node.reads.is_empty() {
            return Err(format!("operation {n} has no halves"));
        }
        if self.half != second.then_some((n, i)) {
            return Err(format!("the halves of operation {n} of iteration {i:?} are out of order"));
        }
        if second {
            self.half = None;
            return self.run(n, i);
        }
        self.half = Some((n, i));
        self.check_operands(n, i)
    }

    /// Operation `n` for iteration `i`, under a predicate where there is no such iteration.
    fn run(&mut self, n: usize, i: Iteration) -> Result<(), String> {
        let node = &self.graph.nodes[n];
        let exists = self.exists(i);
        let has_effects = matches!(node.kind, Kind::Fixed | Kind::Dot);
        if has_effects && !exists {
            return Err(format!("operation {n} runs for iteration {i:?}, which does not exist"));
        }
        if !self.ran.insert((n, i)) {
            return Err(format!("operation {n} runs twice for iteration {i:?}"));
        }
        if node.kind == Kind::Fixed {
            if self.last_fixed.is_some_and(|last| last > (i, n)) {
                return Err(format!("operation {n} of iteration {i:?} is out of order"));
            }
            self.last_fixed = Some((i, n));
        }
        self.check_operands(n, i)?;
        if exists {
            let reads = node.reads.clone();
            reads.iter().try_for_each(|ring| self.read(*ring, n, i))?;
        }
        // Nobody predicates what threads store.
        if let Some(ring) = node.writes.filter(|_| exists || node.kind == Kind::Fill) {
            self.write(ring, n, i)?;
        }
        match node.kind {
            Kind::Copy => self.open.push((n, i)),
            Kind::BulkCopy if exists => _ = self.bulk.insert((n, i)),
            Kind::Dot => {
                self.dots.push_back((n, i));
                if self.dots.len() > 8 {
                    return Err("more than 8 dots are under way".to_owned());
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn check_operands(&self, n: usize, (tile, i): Iteration) -> Result<(), String> {
        for edge in self.graph.edges.iter().filter(|edge| edge.to == n) {
            let Some(of) = i.checked_sub(u64::from(edge.distance)) else { continue };
            let of = (tile, of);
            let from = edge.from;
            if !self.ran.contains(&(from, of)) {
                return Err(format!("operation {n} of iteration {i} needs {from} of iteration {of:?}"));
            }
            if self.dots.contains(&(from, of)) && !(edge.accumulates && self.graph.nodes[n].kind == Kind::Dot)
            {
                return Err(format!(
                    "operation {n} of iteration {i} uses dot {from} of {of:?}, which is under way"
                ));
            }
        }
        Ok(())
    }

    fn read(&mut self, ring: usize, n: usize, i: Iteration) -> Result<(), String> {
        let is_dot = self.graph.nodes[n].kind == Kind::Dot;
        let slot = self.slot(ring, i);
        if slot.holds != Some(i) || !slot.there {
            return Err(format!("operation {n} reads iteration {i:?} of ring {ring}, which is not there"));
        }
        if is_dot {
            slot.readers.insert((n, i));
        }
        Ok(())
    }

    fn write(&mut self, ring: usize, n: usize, i: Iteration) -> Result<(), String> {
        let at_once = self.graph.nodes[n].kind == Kind::Fill;
        let readers: Vec<usize> = (0..self.graph.nodes.len())
            .filter(|reader| self.graph.nodes[*reader].reads.contains(&ring))
            .collect();
        let old = self.slot(ring, i).clone();
        if let Some((dot, of)) = old.readers.iter().next() {
            return Err(format!(
                "operation {n} writes ring {ring}, which dot {dot} of iteration {of:?} reads"
            ));
        }
        for (reader, of) in old.holds.iter().flat_map(|of| readers.iter().map(move |reader| (*reader, *of))) {
            if self.exists(of) && !self.ran.contains(&(reader, of)) {
                return Err(format!(
                    "operation {n} writes ring {ring} before {reader} of iteration {of:?} reads"
                ));
            }
        }
        let slot = self.slot(ring, i);
        *slot = Slot { holds: Some(i), there: at_once, readers: HashSet::new(), announced: slot.announced };
        Ok(())
    }
}

/// Checks that `groups` issue what `items`, an iteration, do: all of it, in an order that they allow, and accesses with matrix
/// instructions between them where there are some. A read takes as long as `latency` matrix instructions.
///
/// # Errors
/// The first thing that is wrong.
pub fn check_groups(items: &[Item], groups: &[Group], latency: u32) -> Result<(), String> {
    let mut left: Vec<u32> = items
        .iter()
        .map(|item| match item {
            Item::Dot(count, _) | Item::Access(_, count) => *count,
            Item::Barrier | Item::Issued => 0,
        })
        .collect();
    let (mut run, mut part_before) = (0, 0);
    for unit in groups.iter().flat_map(|group| std::iter::repeat_n(group.unit, group.count as usize)) {
        // Reads and stores of shared memory are one sequence.
        let same = |item: &Item| match item {
            Item::Dot(..) => unit == Unit::Matrix,
            Item::Access(other, _) => (*other == Unit::Load) == (unit == Unit::Load) && unit != Unit::Matrix,
            Item::Barrier | Item::Issued => false,
        };
        let next = (0..items.len()).find(|at| left[*at] > 0 && same(&items[*at]));
        let at = next.ok_or_else(|| format!("more of {unit:?} than an iteration has"))?;
        if let Item::Access(other, _) = &items[at]
            && *other != unit
        {
            return Err(format!("item {at} is {other:?}, not {unit:?}"));
        }
        for (before, item) in items[..at].iter().enumerate().filter(|(before, _)| left[*before] > 0) {
            let between = &items[before..at];
            let crosses = between.contains(&Item::Barrier)
                && matches!((item, &items[at]), (Item::Access(..), Item::Access(..)));
            if crosses || between.contains(&Item::Issued) {
                return Err(format!("item {at} comes before item {before}"));
            }
        }
        if let Item::Dot(_, needs) = &items[at]
            && let Some(need) = needs.iter().find(|need| left[**need] > 0)
        {
            return Err(format!("item {at} multiplies what item {need} has not read"));
        }
        left[at] -= 1;
        let part = items[..at].iter().filter(|item| **item == Item::Issued).count();
        run = if unit == Unit::Matrix || part != part_before { 0 } else { run }
            + u32::from(unit != Unit::Matrix);
        part_before = part;
        let most = longest_allowed(items, part, latency);
        if run > most {
            return Err(format!("{run} accesses follow each other, {most} are enough"));
        }
    }
    match left.iter().position(|left| *left > 0) {
        Some(at) => Err(format!("item {at} is not issued as a whole")),
        None => Ok(()),
    }
}

/// How many accesses of a part have to follow each other: of those that come before a dot, its share of the matrix instructions before
/// that; twice that, where one share ends and another one begins.
fn longest_allowed(items: &[Item], part: usize, latency: u32) -> u32 {
    let mut parts = items.split(|item| *item == Item::Issued);
    let first = parts.by_ref().take(part).map(|items| items.len() + 1).sum::<usize>();
    let Some(own) = parts.next() else { return 0 };
    let accesses = |which: &dyn Fn(usize, bool) -> bool| -> u32 {
        let count = |(at, item): (usize, &Item)| match item {
            Item::Access(unit, count) if which(at, *unit == Unit::Load) => *count,
            _ => 0,
        };
        own.iter().enumerate().map(count).sum()
    };
    let (mut matrix, mut most) = (0u32, 1);
    for item in own {
        let Item::Dot(count, needs) = item else { continue };
        let own_need = |need: &usize| need.checked_sub(first).filter(|need| *need < own.len());
        if let Some(last) = needs.iter().filter_map(own_need).max() {
            let barrier = own[last..].iter().position(|item| *item == Item::Barrier);
            let window = barrier.map_or(own.len(), |at| last + at);
            let before = accesses(&|at, load| at <= last || load && at < window);
            most = most.max(if matrix > latency { before.div_ceil(matrix - latency) } else { before });
        }
        matrix += count;
    }
    // A barrier may wait for what is read.
    2 * most.max(accesses(&|_, _| true).div_ceil(matrix.saturating_sub(latency).max(1)))
}
