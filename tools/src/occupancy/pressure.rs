//! How many registers a kernel needs at least of each thread, found as an assembler would: liveness between basic blocks,
//! and inside of each an order of the instructions that keeps few registers alive.
//!
//! Code that is lowered from tensors does one operation on all elements of a thread before the next, so that in the order
//! of the text all of a tensor is alive. An assembler does as many operations as it can on one element. So instructions
//! are placed from the last to the first, each time one that leaves the fewest registers alive, and of those the one whose
//! result was asked for last.

use super::read::{Block, Instruction, Kernel, Order, Register};

/// Instructions that are ready to be placed of which the best is looked for: those that became ready last.
const WINDOW: usize = 64;
/// Words of the sets of registers that blocks pass on; kernels with more have no estimate.
const MOST_WORDS: usize = 1 << 20;

/// What one basic block needs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Need {
    /// Instructions of the block, in all iterations of the loops around it.
    pub instructions: f64,
    /// How often the block runs.
    pub times: f64,
    /// Registers of 32 bits that it needs of a thread.
    pub registers: f64,
    /// Registers that it needs in an order that is chosen for their sake alone.
    pub fewest: f64,
    /// Registers that it takes where there are enough, so that instructions need not wait for each other.
    pub at_ease: f64,
    /// Registers of what it loads from global memory and could have under way at once.
    pub flight: f64,
    /// Registers that it needs besides what it loads, or [`Need::registers`] where that is less.
    pub besides: f64,
}

/// Iterations of a loop whose trip count nobody knows.
const ITERATIONS: f64 = 10.0;
/// Loops around a block that count.
const MOST_LOOPS: i32 = 4;
/// What an assembler keeps of the difference between the order of the text and one that is best for registers: it also
/// orders for latency. Fitted with the constants of `occupancy`.
const KEPT: f64 = 0.15;
/// What it keeps of that difference where registers are to be had.
const KEPT_AT_EASE: f64 = 0.3625;

/// What each block of `kernel` needs; `None` where there are too many to tell in time. Blocks that need less than `least`
/// registers as they are written are not ordered anew.
pub fn needs(kernel: &Kernel, least: u64) -> Option<Vec<Need>> {
    let weights = weights(kernel);
    let flow = Flow::of(kernel, &weights)?;
    let mut live = Live { weights: &weights, since: vec![0; weights.len()], start: 0, sum: 0 };
    let mut scratch = Scratch { made: vec![None; weights.len()], read: vec![Vec::new(); weights.len()] };
    let mut levels = vec![0; weights.len()];
    let mut unloaded = weights.clone();
    loads(kernel).for_each(|register| unloaded[*register as usize] = 0);
    let mut others = Live { weights: &unloaded, since: vec![0; weights.len()], start: 0, sum: 0 };
    let loops = loops(&kernel.blocks);
    let needs = kernel.blocks.iter().enumerate().map(|(i, block)| {
        live.restart(&flow.leaving[i]);
        let written = in_order(block, &mut live);
        let (mut halves, mut at_ease) = (written as f64, written as f64);
        let mut fewest = written;
        if written > 2 * least {
            live.restart(&flow.leaving[i]);
            let best = ordered(block, &mut live, &mut scratch).min(written);
            fewest = best;
            halves = best as f64 + KEPT * (written - best) as f64;
            at_ease = best as f64 + KEPT_AT_EASE * (written - best) as f64;
        }
        let times = ITERATIONS.powi(loops[i].min(MOST_LOOPS));
        live.restart(&flow.leaving[i]);
        let during_call = (live.sum + 2 * block.subroutine) as f64;
        let (halves, at_ease) = (halves.max(during_call), at_ease.max(during_call));
        let flight = flight(block, &weights, &mut levels);
        // Only loads under way ask what there is besides.
        let besides = if flight > 0 { besides(block, &flow.leaving[i], &mut others) } else { halves };
        Need {
            instructions: times * block.instructions.len() as f64,
            times,
            registers: halves / 2.0,
            fewest: (fewest as f64).max(during_call) / 2.0,
            at_ease: at_ease / 2.0,
            flight: flight as f64 / 2.0,
            besides: besides.min(halves) / 2.0,
        }
    });
    Some(needs.collect())
}

/// What `kernel` loads from global memory.
fn loads(kernel: &Kernel) -> impl Iterator<Item = &Register> {
    let instructions = kernel.blocks.iter().flat_map(|block| &block.instructions);
    instructions.filter(|at| at.order == Order::Load).flat_map(|at| &at.makes)
}

/// Half registers that `block` needs as it is written, where loads, by `live`, weigh nothing.
fn besides(block: &Block, leaving: &[Register], live: &mut Live<'_>) -> f64 {
    live.restart(leaving);
    in_order(block, live) as f64
}

/// Half registers of the loads from global memory in `block` that wait for nothing but each other's issue: no other load, no
/// store and no barrier. The most of any such set. `levels` has zeros, for each register.
fn flight(block: &Block, weights: &[u8], levels: &mut [u32]) -> u64 {
    let (mut most, mut sums) = (0, Vec::new());
    for at in &block.instructions {
        if matches!(at.order, Order::Barrier | Order::Store) {
            most = sums.drain(..).fold(most, u64::max);
        }
        let is_load = at.order == Order::Load;
        let level = at.uses.iter().map(|used| levels[*used as usize]).max().unwrap_or(0);
        if is_load {
            sums.resize(sums.len().max(level as usize + 1), 0);
            sums[level as usize] +=
                at.makes.iter().map(|made| u64::from(weights[*made as usize])).sum::<u64>();
        }
        at.makes.iter().for_each(|made| levels[*made as usize] = level + u32::from(is_load));
    }
    for made in block.instructions.iter().flat_map(|at| &at.makes) {
        levels[*made as usize] = 0;
    }
    sums.into_iter().fold(most, u64::max)
}

/// Loops around each block: branches back, to a block that stands before, make one.
fn loops(blocks: &[Block]) -> Vec<i32> {
    let mut begins = vec![0; blocks.len() + 1];
    for (b, block) in blocks.iter().enumerate() {
        for next in block.next.iter().filter(|next| **next as usize <= b) {
            begins[*next as usize] += 1;
            begins[b + 1] -= 1;
        }
    }
    let mut depth = 0;
    blocks
        .iter()
        .zip(begins)
        .map(|(_, change)| {
            depth += change;
            depth
        })
        .collect()
}

/// Half registers of each register: none where its number is the same in all threads, since uniform registers and
/// constants hold such.
fn weights(kernel: &Kernel) -> Vec<u8> {
    let mut varies = vec![false; kernel.halves.len()];
    let mut users: Vec<Vec<(u32, u32)>> = vec![Vec::new(); kernel.halves.len()];
    let mut open: Vec<Register> = Vec::new();
    for (b, block) in kernel.blocks.iter().enumerate() {
        for (i, instruction) in block.instructions.iter().enumerate() {
            instruction.uses.iter().for_each(|used| users[*used as usize].push((b as u32, i as u32)));
            if instruction.varies {
                open.extend(&instruction.makes);
            }
        }
    }
    while let Some(register) = open.pop() {
        if !std::mem::replace(&mut varies[register as usize], true) {
            for &(block, i) in &users[register as usize] {
                open.extend(&kernel.blocks[block as usize].instructions[i as usize].makes);
            }
        }
    }
    kernel.halves.iter().zip(varies).map(|(halves, varies)| if varies { *halves } else { 0 }).collect()
}

/// The registers that each block passes on.
struct Flow {
    leaving: Vec<Vec<Register>>,
}

impl Flow {
    /// Liveness, backwards, of the registers that more than one block has.
    fn of(kernel: &Kernel, weights: &[u8]) -> Option<Flow> {
        const NOWHERE: u32 = u32::MAX;
        const SHARED: u32 = u32::MAX - 1;
        let mut home = vec![NOWHERE; weights.len()];
        for (b, block) in kernel.blocks.iter().enumerate() {
            for register in block.instructions.iter().flat_map(|at| at.makes.iter().chain(&at.uses)) {
                let home = &mut home[*register as usize];
                *home = if *home == NOWHERE || *home == b as u32 { b as u32 } else { SHARED };
            }
        }
        // A block that is its own successor passes on what it has alone, too.
        let loops = |b: u32| kernel.blocks[b as usize].next.contains(&b);
        let passed: Vec<Register> = (0..weights.len() as u32)
            .filter(|r| {
                let home = home[*r as usize];
                weights[*r as usize] > 0 && (home == SHARED || home != NOWHERE && loops(home))
            })
            .collect();
        let mut number = vec![NOWHERE; weights.len()];
        passed.iter().enumerate().for_each(|(i, register)| number[*register as usize] = i as u32);
        let words = passed.len().div_ceil(64);
        if words * kernel.blocks.len() > MOST_WORDS {
            return None;
        }
        let leaving = solve(&kernel.blocks, words, &number);
        let leaving = leaving.iter().map(|set| {
            let ones = (0..passed.len()).filter(|i| set[i / 64] >> (i % 64) & 1 != 0);
            ones.map(|i| passed[i]).collect()
        });
        Some(Flow { leaving: leaving.collect() })
    }
}

/// Sets of registers, by `number`, that are alive behind each block.
fn solve(blocks: &[Block], words: usize, number: &[u32]) -> Vec<Vec<u64>> {
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); blocks.len()];
    for (b, block) in blocks.iter().enumerate() {
        block.next.iter().for_each(|next| before[*next as usize].push(b as u32));
    }
    let empty = vec![0u64; words];
    let (mut needs, mut makes) = (vec![empty.clone(); blocks.len()], vec![empty.clone(); blocks.len()]);
    for (b, block) in blocks.iter().enumerate() {
        for at in &block.instructions {
            let bit = |register: &Register| number.get(*register as usize).filter(|n| **n != u32::MAX);
            for n in at.uses.iter().filter_map(bit) {
                let (word, bit) = (*n as usize / 64, 1 << (n % 64));
                needs[b][word] |= bit & !makes[b][word];
            }
            for n in at.makes.iter().filter_map(bit) {
                makes[b][*n as usize / 64] |= 1 << (n % 64);
            }
        }
    }
    let (mut entering, mut leaving) = (needs, vec![empty; blocks.len()]);
    let mut open: Vec<u32> = (0..blocks.len() as u32).collect();
    while let Some(b) = open.pop() {
        let b = b as usize;
        let mut changed = false;
        for word in 0..words {
            let out = blocks[b].next.iter().fold(0, |all, next| all | entering[*next as usize][word]);
            leaving[b][word] = out;
            let new = entering[b][word] | out & !makes[b][word];
            changed |= new != entering[b][word];
            entering[b][word] = new;
        }
        if changed {
            open.extend(&before[b]);
        }
    }
    leaving
}

/// The registers that are alive at a place, and what they weigh.
struct Live<'a> {
    weights: &'a [u8],
    /// When a register came alive: it is if that was not before `start`.
    since: Vec<u32>,
    start: u32,
    sum: u64,
}

impl Live<'_> {
    fn restart(&mut self, registers: &[Register]) {
        self.start += 1;
        self.sum = 0;
        registers.iter().for_each(|register| self.add(*register));
    }

    fn weight(&self, register: Register) -> u64 {
        u64::from(self.weights[register as usize])
    }

    fn has(&self, register: Register) -> bool {
        self.since[register as usize] == self.start
    }

    fn add(&mut self, register: Register) {
        if !self.has(register) {
            self.since[register as usize] = self.start;
            self.sum += self.weight(register);
        }
    }

    fn remove(&mut self, register: Register) {
        if self.has(register) {
            self.since[register as usize] = 0;
            self.sum -= self.weight(register);
        }
    }

    /// Goes back over an instruction; the most that is alive on the way.
    fn pass(&mut self, at: &Instruction) -> u64 {
        // What it makes has a place of its own while it runs, also if nobody uses it.
        let unused = at.makes.iter().filter(|made| !self.has(**made)).map(|made| self.weight(*made));
        let while_running = self.sum + unused.sum::<u64>();
        at.makes.iter().filter(|made| !at.uses.contains(made)).for_each(|made| self.remove(*made));
        at.uses.iter().for_each(|used| self.add(*used));
        self.sum.max(while_running)
    }

    /// How much more is alive before an instruction than behind it.
    fn change(&self, at: &Instruction) -> i64 {
        let sum = |registers: &mut dyn Iterator<Item = &Register>| {
            registers.map(|register| self.weight(*register) as i64).sum::<i64>()
        };
        let more = |used: &&Register| !self.has(**used);
        let gone = |made: &&Register| self.has(**made) && !at.uses.contains(*made);
        sum(&mut at.uses.iter().filter(more)) - sum(&mut at.makes.iter().filter(gone))
    }
}

/// The most half registers alive in a block as it is written.
fn in_order(block: &Block, live: &mut Live<'_>) -> u64 {
    block.instructions.iter().rev().fold(live.sum, |most, at| most.max(live.pass(at)))
}

/// The most half registers alive in a block in an order that is good for registers.
fn ordered(block: &Block, live: &mut Live<'_>, scratch: &mut Scratch) -> u64 {
    let before = dependences(block, scratch);
    let count = block.instructions.len();
    let mut waiting = vec![0u32; count];
    before.iter().flatten().for_each(|at| waiting[*at as usize] += 1);
    let mut ready: Vec<u32> = (0..count as u32).filter(|at| waiting[*at as usize] == 0).collect();
    let mut asked = vec![0u32; count];
    let mut most = live.sum;
    for step in 1.. {
        let window = &ready[ready.len().saturating_sub(WINDOW)..];
        let best = window.iter().enumerate().min_by_key(|(_, at)| {
            let i = **at as usize;
            (live.change(&block.instructions[i]), u32::MAX - asked[i], u32::MAX - **at)
        });
        let Some((place, _)) = best else { break };
        let at = ready.remove(ready.len() - window.len() + place) as usize;
        most = most.max(live.pass(&block.instructions[at]));
        for &earlier in &before[at] {
            asked[earlier as usize] = step;
            waiting[earlier as usize] -= 1;
            if waiting[earlier as usize] == 0 {
                ready.push(earlier);
            }
        }
    }
    most
}

/// Of each register, in the block that is looked at: the instruction that made it, and those that read it since.
/// Nothing between blocks.
struct Scratch {
    made: Vec<Option<u32>>,
    read: Vec<Vec<u32>>,
}

/// For each instruction those that stay before it.
fn dependences(block: &Block, scratch: &mut Scratch) -> Vec<Vec<u32>> {
    let Scratch { made, read } = scratch;
    let mut before: Vec<Vec<u32>> = vec![Vec::new(); block.instructions.len()];
    let mut memory = Memory::default();
    for (i, at) in block.instructions.iter().enumerate() {
        let (i, own) = (i as u32, &mut before[i]);
        for used in &at.uses {
            own.extend(made[*used as usize]);
            read[*used as usize].push(i);
        }
        for register in &at.makes {
            let register = *register as usize;
            own.extend(made[register]);
            own.extend(read[register].drain(..).filter(|reader| *reader != i));
            made[register] = Some(i);
        }
        memory.place(i, at.order, own);
        own.sort_unstable();
        own.dedup();
        own.retain(|earlier| *earlier != i);
    }
    for register in block.instructions.iter().flat_map(|at| at.makes.iter().chain(&at.uses)) {
        made[*register as usize] = None;
        read[*register as usize].clear();
    }
    before
}

/// The accesses since the last barrier.
#[derive(Default)]
struct Memory {
    barrier: Option<u32>,
    all: Vec<u32>,
    /// Loads from global memory since the last store to it.
    loads: Vec<u32>,
    store: Option<u32>,
}

impl Memory {
    fn place(&mut self, i: u32, order: Order, before: &mut Vec<u32>) {
        if order == Order::Free {
            return;
        }
        before.extend(self.barrier);
        match order {
            Order::Barrier => {
                before.append(&mut self.all);
                *self = Memory { barrier: Some(i), ..Memory::default() };
                return;
            }
            Order::Load => {
                before.extend(self.store);
                self.loads.push(i);
            }
            Order::Store => {
                // Loads before an earlier store stay before that one.
                before.append(&mut self.loads);
                before.extend(self.store);
                self.store = Some(i);
            }
            Order::Shared | Order::Free => {}
        }
        self.all.push(i);
    }
}
