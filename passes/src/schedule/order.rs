//! The order of what one iteration of a pipelined loop does: operations, waits with what may still be under way, and the place where
//! what runs ahead is issued. [`plan`](super::plan) tries orders; [`checker`](super::checker) executes them.

use super::plan::{Edge, Kind, LoopGraph, Node, Step};
use smallvec::SmallVec;

/// Dots that may be under way at most (PTX ISA, "wgmma.wait_group").
const MOST_PENDING: u32 = 7;

/// An iteration being put in order.
pub(super) struct Order<'a> {
    graph: &'a LoopGraph,
    stage: &'a [u32],
    stages: u32,
    needs: Vec<SmallVec<[Edge; 4]>>,
    users: Vec<SmallVec<[Edge; 4]>>,
    /// Dots whose results something but another dot uses, with the iterations between.
    used: Vec<(usize, u32)>,
    pub(super) steps: Vec<Step>,
    /// Places after which the operations that run ahead may come.
    places: Vec<usize>,
    /// The place behind the first dot of an iteration, where no other dot is under way: it begins at once, and what runs ahead is
    /// issued beside it.
    behind_dot: Option<usize>,
}

impl<'a> Order<'a> {
    /// The steps of an iteration, in which what runs ahead comes at `place`; not at all without one.
    pub(super) fn new(graph: &'a LoopGraph, stage: &'a [u32], stages: u32, place: Option<usize>) -> Self {
        let is_used = |edge: &&Edge| graph.nodes[edge.from].kind == Kind::Dot && !edge.accumulates;
        let used = graph.edges.iter().filter(is_used).map(|edge| (edge.from, edge.distance)).collect();
        let (needs, users) = (graph.needs(), graph.users());
        let mut order = Self {
            graph,
            stage,
            stages,
            needs,
            users,
            used,
            steps: Vec::new(),
            places: Vec::new(),
            behind_dot: None,
        };
        let groups = order.groups();
        let is_dot = |n: &usize| graph.nodes[*n].kind == Kind::Dot;
        // Whether no dot of an iteration is under way when the next one begins.
        let in_time = |dot: usize| !graph.nodes[dot].blocking && order.used.contains(&(dot, 0));
        let alone = (0..stage.len()).filter(is_dot).all(in_time);
        let last: Vec<usize> = (0..stage.len()).filter(|n| !order.is_ahead(*n)).collect();
        let mut waited = vec![false; graph.nodes.len()];
        // What is awaited for the next iteration has been awaited for this one.
        let next = order.fetched(&groups);
        next.iter().flatten().for_each(|copy| waited[*copy] = true);
        let last_dot = last.iter().copied().rfind(|n| graph.nodes[*n].heavy).filter(|_| !next.is_empty());
        for n in last {
            if last_dot == Some(n) {
                let waits = next.iter().map(|copies| Step::AwaitNext { copies: copies.clone(), pending: 0 });
                order.steps.extend(waits);
                order.places = vec![order.steps.len()];
            }
            order.await_data(n, &groups, &mut waited);
            order.await_dots(n, &mut waited);
            order.steps.push(Step::Run(n));
            let node = &graph.nodes[n];
            if node.kind == Kind::Copy {
                order.steps.push(Step::Commit);
            }
            if is_dot(&n) && alone && next.is_empty() {
                order.behind_dot.get_or_insert(order.steps.len());
            }
            if node.kind == Kind::Dot && !node.blocking && !order.used.iter().any(|used| used.0 == n) {
                order.steps.push(Step::AwaitDots { dots: [(n, 1)].into_iter().collect(), pending: 0 });
                order.places.push(order.steps.len());
            }
        }
        if last_dot.is_none() {
            order.places.push(order.steps.len());
        }
        let rings = |n: usize| stage[n] + 1 < stages && graph.nodes[n].writes.is_some();
        if !(0..stage.len()).any(rings) {
            order.places.push(0);
        }
        if let Some(place) = place {
            order.insert_early(place, &groups);
        }
        // Before what they read is written again.
        let blocking =
            |n: &usize| graph.nodes[*n].kind == Kind::Dot && graph.nodes[*n].blocking && !waited[*n];
        let dots: SmallVec<[_; 2]> = (0..stage.len()).filter(blocking).map(|n| (n, 0)).collect();
        if !dots.is_empty() {
            order.steps.push(Step::AwaitDots { dots, pending: 0 });
        }
        order
    }

    /// Whether an operation comes with those that run ahead: it does, or one that does uses what it computes in the same
    /// iteration of the new loop.
    pub(super) fn is_ahead(&self, n: usize) -> bool {
        let at_once = |edge: &Edge| edge.distance > 0 && self.stage[edge.to] + edge.distance == self.stage[n];
        self.stage[n] + 1 < self.stages || self.users[n].iter().any(at_once)
    }

    /// The steps of an iteration in which what is stored for the next one, and what is read of it, comes before the last dot, to rings of
    /// so many slots; `None` where rings are read too late for that.
    pub(super) fn storing_ahead(mut self, slots: u32) -> Option<Vec<Step>> {
        let graph = self.graph;
        let nodes = &graph.nodes;
        let run = |step: &Step| if let Step::Run(n) = step { Some(*n) } else { None };
        let mut last = self.steps.iter().map(run).collect::<Option<Vec<usize>>>()?;
        let first = last.iter().position(|n| nodes[*n].heavy)?;
        let reads = |n: usize| !nodes[n].reads.is_empty();
        if last[..first].iter().any(|n| reads(*n)) {
            return None;
        }
        if slots == 1 {
            // What is read, and what that needs, comes behind the first dot.
            let mut soon = vec![false; nodes.len()];
            let mut open: Vec<usize> = last[first..].iter().copied().filter(|n| reads(*n)).collect();
            while let Some(n) = open.pop() {
                if last[first..].contains(&n) && !std::mem::replace(&mut soon[n], true) {
                    let within = self.needs[n].iter().filter(|edge| edge.distance == 0);
                    open.extend(within.map(|edge| edge.from));
                }
            }
            if last[first..].iter().any(|n| soon[*n] && nodes[*n].heavy) {
                return None;
            }
            let behind = last.split_off(first + 1);
            let (soon, later): (Vec<usize>, Vec<usize>) = behind.into_iter().partition(|n| soon[*n]);
            last.extend(soon.into_iter().chain(later));
        }
        let dot = last.iter().rposition(|n| nodes[*n].heavy)?;
        let read = last.iter().rposition(|n| reads(*n)).map_or(0, |at| at + 1);
        if read > dot {
            return None;
        }
        let free = if slots == 1 { read.max(first + 1) } else { first + 1 }.min(dot);
        let dots: Vec<usize> = (free..=dot).filter(|at| nodes[last[*at]].heavy).collect();
        let half = *dots.get(dots.len() / 2)?;
        // Other buffers that threads fill and read share the barrier.
        let others = |at: &usize| nodes[last[*at]].kind == Kind::Fixed && !reads(last[*at]);
        let place = (free..half).find(others).unwrap_or(half);
        let mut placed = vec![false; nodes.len()];
        let mut with_needs = |which: &dyn Fn(&Node) -> bool| {
            let mut open: Vec<usize> = (0..nodes.len()).filter(|n| which(&nodes[*n])).collect();
            let mut own = vec![false; nodes.len()];
            while let Some(n) = open.pop() {
                if !std::mem::replace(&mut own[n], true) {
                    let same = |edge: &&Edge| self.stage[edge.from] == self.stage[n] + edge.distance;
                    open.extend(self.needs[n].iter().filter(same).map(|edge| edge.from));
                }
            }
            let own: Vec<usize> =
                (0..nodes.len()).filter(|n| own[*n] && self.is_ahead(*n) && !placed[*n]).collect();
            own.iter().for_each(|n| placed[*n] = true);
            own.into_iter().map(Step::Run).collect::<Vec<_>>()
        };
        let mut stores = with_needs(&|node| node.kind == Kind::Fill);
        stores.insert(0, Step::Issued);
        let fetches = with_needs(&|node| node.fetches);
        let runs = |all: &[usize]| all.iter().map(|n| Step::Run(*n)).collect::<Vec<_>>();
        let steps = [runs(&last[..place]), stores, runs(&last[place..dot]), fetches, runs(&last[dot..])];
        let mut rest: Vec<usize> = (0..nodes.len()).filter(|n| self.is_ahead(*n) && !placed[*n]).collect();
        rest.sort_by_key(|n| std::cmp::Reverse(self.stage[*n]));
        self.steps = steps.concat();
        self.insert_loads(&rest);
        let mut at = vec![0; nodes.len()];
        for (place, step) in self.steps.iter().enumerate() {
            run(step).into_iter().for_each(|n| at[n] = place);
        }
        // A load may need what comes with the stores only.
        let in_order = |edge: &Edge| {
            self.stage[edge.from] != self.stage[edge.to] + edge.distance || at[edge.from] < at[edge.to]
        };
        graph.edges.iter().all(in_order).then_some(self.steps)
    }

    /// The loads to registers that run ahead.
    fn loads_ahead(&self) -> Vec<usize> {
        let nodes = &self.graph.nodes;
        let is_ahead = |n: &usize| self.stage[*n] + 1 < self.stages;
        let is_load = |n: &usize| nodes[*n].early && nodes[*n].kind == Kind::Guarded;
        (0..nodes.len()).filter(is_ahead).filter(is_load).collect()
    }

    /// The first place where all values that `loads` give have been used, by dots only if `by_dots`; `None` where nothing
    /// uses them.
    fn used(&self, loads: &[usize], by_dots: bool) -> Option<usize> {
        let mut loaded = vec![false; self.graph.nodes.len()];
        loads.iter().for_each(|n| loaded[*n] = true);
        let mut at = vec![0; self.graph.nodes.len()];
        for (step, run) in self.steps.iter().enumerate() {
            if let Step::Run(n) = run {
                at[*n] = step + 1;
            }
        }
        let counts = |n: usize| by_dots || !self.graph.nodes[n].heavy;
        let uses = self.graph.edges.iter().filter(|edge| loaded[edge.from] && counts(edge.to));
        uses.map(|edge| at[edge.to]).max()
    }

    /// Places for what runs ahead, the best ones first: beside a dot, else as soon as may be.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = self.places.clone();
        places.sort_unstable();
        places.dedup();
        self.behind_dot.into_iter().chain(places).collect()
    }

    /// The group of each copy: those whose data the same step of the last stage waits for.
    fn groups(&self) -> Vec<SmallVec<[usize; 2]>> {
        let nodes = &self.graph.nodes;
        let mut copies: Vec<(usize, usize)> = Vec::new();
        for (n, node) in nodes.iter().enumerate() {
            let Some(ring) = node.writes.filter(|_| node.kind == Kind::Copy) else { continue };
            let reader = nodes.iter().position(|other| other.reads.contains(&ring));
            copies.push((reader.unwrap_or(nodes.len()), n));
        }
        copies.sort_unstable();
        let mut groups: Vec<SmallVec<[usize; 2]>> = Vec::new();
        let mut first = 0;
        for (reader, copy) in copies {
            let together = groups.last().is_some_and(|group| {
                let between = nodes[first..reader].iter().any(|node| node.heavy);
                let stage = self.stage[copy];
                // One that runs two iterations ahead can be awaited a dot sooner than it is read.
                let together = !between || self.stages - stage > 2;
                together && self.stage[group[0]] == stage && stage + 1 < self.stages
            });
            match groups.last_mut().filter(|_| together) {
                Some(group) => group.push(copy),
                None => {
                    groups.push([copy].into_iter().collect());
                    first = reader;
                }
            }
        }
        groups
    }

    /// The groups of copies of which operands are read an iteration ahead.
    fn fetched(&self, groups: &[SmallVec<[usize; 2]>]) -> Vec<SmallVec<[usize; 2]>> {
        let nodes = &self.graph.nodes;
        let ahead = |ring: &usize| nodes.iter().any(|node| node.fetches && node.reads.contains(ring));
        let is_fetched = |copy: &usize| nodes[*copy].writes.as_ref().is_some_and(ahead);
        groups.iter().filter(|group| group.iter().any(is_fetched)).cloned().collect()
    }

    /// Waits for the data that `n` reads: once for the copies of all groups, since each wait is a barrier.
    fn await_data(&mut self, n: usize, groups: &[SmallVec<[usize; 2]>], waited: &mut [bool]) {
        let (mut copies, mut bulk) = (SmallVec::<[usize; 2]>::new(), Vec::new());
        for &ring in &self.graph.nodes[n].reads {
            let writes = |node: &Node| node.writes == Some(ring);
            let Some(copy) = self.graph.nodes.iter().position(writes).filter(|copy| !waited[*copy]) else {
                continue;
            };
            match self.graph.nodes[copy].kind {
                Kind::Copy => {
                    let Some(group) = groups.iter().find(|group| group.contains(&copy)) else { continue };
                    group.iter().for_each(|copy| waited[*copy] = true);
                    copies.extend_from_slice(group);
                }
                Kind::BulkCopy => {
                    waited[copy] = true;
                    bulk.push(Step::AwaitBulk(copy));
                }
                _ => {}
            }
        }
        if !copies.is_empty() {
            self.steps.push(Step::AwaitCopies { copies, pending: 0 });
            self.places.push(self.steps.len());
        }
        for wait in bulk {
            self.steps.push(wait);
            self.places.push(self.steps.len());
        }
    }

    /// Waits for the dots whose results `n` uses.
    fn await_dots(&mut self, n: usize, waited: &mut [bool]) {
        let is_dot = |edge: &&Edge| self.graph.nodes[edge.from].kind == Kind::Dot && !edge.accumulates;
        let mut dots: SmallVec<[(usize, u32); 2]> = SmallVec::new();
        for edge in self.needs[n].iter().filter(is_dot) {
            let dot = (edge.from, edge.distance.min(1));
            let done = if dot.1 == 0 { waited[dot.0] } else { self.waits_before(dot) };
            if !done && !dots.contains(&dot) {
                dots.push(dot);
            }
        }
        if dots.is_empty() {
            return;
        }
        dots.iter().filter(|dot| dot.1 == 0).for_each(|dot| waited[dot.0] = true);
        // Dots end in order: the dots of the iteration before end first.
        let earlier: SmallVec<[usize; 2]> =
            self.used.iter().filter(|(_, distance)| *distance > 0).map(|(dot, _)| *dot).collect();
        for dot in earlier {
            let known = dots.iter().any(|other| other.0 == dot) || self.waits_before((dot, 1)) || waited[dot];
            if !known {
                dots.push((dot, 1));
            }
        }
        dots.sort_unstable_by_key(|dot| (std::cmp::Reverse(dot.1), dot.0));
        self.steps.push(Step::AwaitDots { dots, pending: 0 });
        self.places.push(self.steps.len());
    }

    fn waits_before(&self, dot: (usize, u32)) -> bool {
        let waits = |step: &Step| matches!(step, Step::AwaitDots { dots, .. } if dots.contains(&dot));
        self.steps.iter().any(waits)
    }

    /// Puts what runs ahead at `place`: what is copied after what it depends on, groups ended where they are complete. Loads
    /// to registers come sooner where what they replace has been used sooner: that takes no more registers.
    fn insert_early(&mut self, place: usize, groups: &[SmallVec<[usize; 2]>]) {
        let mut ahead: Vec<usize> = (0..self.stage.len()).filter(|n| self.is_ahead(*n)).collect();
        ahead.sort_by_key(|n| std::cmp::Reverse(self.stage[*n]));
        if place == 0 {
            return self.insert_loads(&ahead);
        }
        let (sooner, soon) = self.sooner(place);
        let is_copy = |n: &usize| self.graph.nodes[*n].kind == Kind::Copy;
        let others = ahead.iter().filter(|n| !is_copy(n) && !soon[**n]).map(|n| Step::Run(*n));
        let mut steps: Vec<Step> = others.collect();
        for group in groups.iter().filter(|group| self.stage[group[0]] + 1 < self.stages) {
            steps.extend(group.iter().map(|copy| Step::Run(*copy)));
            steps.push(Step::Commit);
        }
        self.steps.splice(place..place, steps);
        let soon = ahead.into_iter().filter(|n| soon[*n]).map(Step::Run);
        self.steps.splice(sooner..sooner, soon);
    }

    /// Puts what runs ahead, `ahead`, where nothing of it writes a ring: at the start of the iteration, in loops with dots each
    /// load before a dot, the first that comes after what uses the value that the load replaces. Its result needs no
    /// registers of its own then, from which to be moved, which waits for it; and the barrier between what is written to
    /// shared memory and what the dot reads of it keeps the assembler from moving the load to where it would.
    fn insert_loads(&mut self, ahead: &[usize]) {
        let is_dot = |step: &Step| matches!(step, Step::Run(n) if self.graph.nodes[*n].heavy);
        let dots: Vec<usize> = (0..self.steps.len()).filter(|step| is_dot(&self.steps[*step])).collect();
        let own = |n: usize| {
            let used = self.used(&[n], false).unwrap_or(0);
            dots.iter().copied().find(|dot| *dot >= used).unwrap_or(if dots.is_empty() { 0 } else { used })
        };
        // What they need comes no later.
        let mut at = vec![self.steps.len(); self.graph.nodes.len()];
        let mut open: Vec<(usize, usize)> = self.loads_ahead().into_iter().map(|n| (n, own(n))).collect();
        while let Some((n, place)) = open.pop() {
            if place < at[n] {
                at[n] = place;
                let same = |edge: &&Edge| self.stage[edge.from] == self.stage[n] + edge.distance;
                open.extend(self.needs[n].iter().filter(same).map(|edge| (edge.from, place)));
            }
        }
        let mut runs: Vec<(usize, usize)> = ahead.iter().map(|n| (at[*n], *n)).collect();
        if dots.is_empty() {
            runs.iter_mut().for_each(|(place, _)| *place = 0);
        }
        runs.sort_by_key(|(place, _)| *place);
        let mut steps = Vec::with_capacity(self.steps.len() + runs.len());
        let mut runs = runs.into_iter().peekable();
        for (place, step) in std::mem::take(&mut self.steps).into_iter().enumerate() {
            while let Some((_, n)) = runs.next_if(|(at, _)| *at <= place) {
                steps.push(Step::Run(n));
            }
            steps.push(step);
        }
        steps.extend(runs.map(|(_, n)| Step::Run(n)));
        self.steps = steps;
    }

    /// The first place, `place` at the latest, where all values that loads to registers replace have been used, and what
    /// comes there: those loads, and what they need of the same iteration.
    fn sooner(&self, place: usize) -> (usize, Vec<bool>) {
        let nodes = &self.graph.nodes;
        let mut soon = vec![false; nodes.len()];
        let loads = self.loads_ahead();
        let sooner = self.used(&loads, true).unwrap_or(place);
        if sooner >= place {
            return (place, soon);
        }
        let mut open = loads;
        while let Some(n) = open.pop() {
            if !std::mem::replace(&mut soon[n], true) {
                let same = |edge: &&Edge| self.stage[edge.from] == self.stage[n] + edge.distance;
                open.extend(self.needs[n].iter().filter(same).map(|edge| edge.from));
            }
        }
        // What needs a copy of this iteration, or anything of the last stage, stays behind it.
        let stays = |n: usize| soon[n] && (self.stage[n] + 1 == self.stages || nodes[n].writes.is_some());
        if (0..nodes.len()).any(stays) { (place, vec![false; nodes.len()]) } else { (sooner, soon) }
    }

    /// The steps with exact counts; `None` where more dots would be under way than can be.
    pub(super) fn count(mut self) -> Option<Vec<Step>> {
        let groups = self.commits();
        let (last, stage) = (self.stages - 1, self.stage);
        // Groups that are ended behind that of a copy which ran `ahead` iterations before, up to a place.
        let groups_after = |copy: &usize, ahead: u32, place: usize| {
            let commit = groups.iter().find(|(_, group)| group.contains(copy))?.0;
            let before = groups.iter().filter(|(at, _)| *at < place).count() as u32;
            let upto = groups.iter().filter(|(at, _)| *at <= commit).count() as u32;
            (ahead * groups.len() as u32 + before).checked_sub(upto)
        };
        for place in 0..self.steps.len() {
            let pending = match &self.steps[place] {
                Step::AwaitCopies { copies, .. } => {
                    // Groups arrive in the order in which they are ended: the last one of those that hold the copies counts.
                    let after = copies.iter().map(|copy| groups_after(copy, last - stage[*copy], place));
                    after.collect::<Option<Vec<_>>>()?.into_iter().min()?
                }
                Step::AwaitNext { copies, .. } => {
                    groups_after(&copies[0], (last - stage[copies[0]]).checked_sub(1)?, place)?
                }
                Step::AwaitDots { dots, .. } => {
                    let after = dots.iter().map(|dot| self.dots_after(*dot, place));
                    after.collect::<Option<Vec<_>>>()?.into_iter().min()?
                }
                _ => continue,
            };
            match &mut self.steps[place] {
                Step::AwaitCopies { pending: count, .. } | Step::AwaitNext { pending: count, .. } => {
                    *count = pending;
                }
                Step::AwaitDots { pending: count, .. } if pending <= MOST_PENDING => *count = pending,
                _ => return None,
            }
        }
        Some(self.steps)
    }

    /// Where groups end, and their copies.
    fn commits(&self) -> Vec<(usize, SmallVec<[usize; 2]>)> {
        let (mut all, mut open) = (Vec::new(), SmallVec::new());
        for (place, step) in self.steps.iter().enumerate() {
            match step {
                Step::Run(n) if self.graph.nodes[*n].kind == Kind::Copy => open.push(*n),
                Step::Commit => all.push((place, std::mem::take(&mut open))),
                _ => {}
            }
        }
        all
    }

    /// Dots that are issued after `dot`, before `place`; `None` where `dot` is not issued.
    fn dots_after(&self, (dot, earlier): (usize, u32), place: usize) -> Option<u32> {
        let is_dot = |step: &Step| matches!(step, Step::Run(n) if self.graph.nodes[*n].kind == Kind::Dot);
        let at = self.steps.iter().position(|step| *step == Step::Run(dot))?;
        let count = |steps: &[Step]| steps.iter().filter(|step| is_dot(step)).count() as u32;
        Some(if earlier == 0 {
            count(&self.steps[at + 1..place])
        } else {
            count(&self.steps[at + 1..]) + count(&self.steps[..place])
        })
    }
}
