//! Execution of scans: a value is the range of elements combined into it.

use std::collections::HashMap;

use super::gather::{between, holders, threads};
use super::{CheckError, count, is_clear, number};
use crate::plan::{Cost, ScanExchange, ScanPlan, ScanStep, Threads};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// First and last element.
type Value = (u64, u64);

/// Executes a scan of operands of these widths in which combining joins neighbouring ranges: in the end every element
/// must hold the range from the first element of its line (the last, when reversed) to itself. Returns the cost that
/// was counted.
///
/// # Errors
/// A combination of ranges that are not neighbours, a wrong range in the end, accesses that are not aligned vectors,
/// or a number of the cost other than what the execution takes.
pub fn check_scan(
    plan: &ScanPlan,
    layout: &LinearLayout,
    elem_bits: &[u32],
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let mut cost = Cost::default();
    let back: Option<Vec<u32>> = plan.wanted.iter().map(|&result| elem_bits.get(result).copied()).collect();
    let Some(back) = back.filter(|_| plan.wanted.is_sorted_by(|a, b| a < b)) else {
        return Err(bad(format!("results {:?} of {} operands", plan.wanted, elem_bits.len())));
    };
    let layout = between(plan.detour.as_ref(), layout, elem_bits, &back, &mut cost, target)?;
    // The axis first, so that an element is `line · size + place`.
    let rest = layout.out_dims().filter(|&d| d != plan.axis);
    let order: Vec<Dim> = std::iter::once(plan.axis).chain(rest).collect();
    let all = holders(layout, order);
    let size = layout.out_size(plan.axis).unwrap_or(1);
    let threads = threads(layout, target);
    let warps = layout.in_size(Dim::WARP).unwrap_or(1);
    let mut run = Run {
        plan,
        threads,
        values: HashMap::new(),
        elem_bits,
        warps,
        target,
        cost,
        combinations: 0,
        selects: 0,
    };
    for &t in &run.threads {
        for r in 0..all.registers() {
            let element = all.element(r, t)?;
            run.values.insert((t, r as u32), (element, element));
        }
    }
    for step in &plan.steps {
        run.step(step)?;
    }
    for (i, exchange) in plan.exchanges.iter().enumerate() {
        run.exchange(exchange, i > 0)?;
    }
    count::same("registers with replicas", plan.copies.len() as u64, all.registers())?;
    for &t in &run.threads {
        for r in 0..all.registers() {
            let element = all.element(r, t)?;
            let line = element / size * size;
            let expected = if plan.reverse { (element, line + size - 1) } else { (line, element) };
            let from = plan.copies.get(r as usize).copied().unwrap_or(u32::MAX);
            let got = run.values.get(&(t, from)).copied();
            if got != Some(expected) {
                return Err(bad(format!("register {r} of {t:?}: {got:?} instead of {expected:?}")));
            }
        }
    }
    count::agree(&run.cost, &plan.cost)?;
    count::same("combinations", run.combinations, plan.combinations)?;
    count::same("selects", run.selects, plan.selects)?;
    Ok(run.cost)
}

fn bad(what: String) -> CheckError {
    CheckError::Malformed(what)
}

/// A scan that is being executed.
struct Run<'a> {
    plan: &'a ScanPlan,
    threads: Vec<Threads>,
    values: HashMap<(Threads, u32), Value>,
    elem_bits: &'a [u32],
    warps: u64,
    target: &'a TargetDesc,
    cost: Cost,
    /// Pairs that each thread combined.
    combinations: u64,
    /// Pairs that some threads only did.
    selects: u64,
}

impl Run<'_> {
    /// What comes before in the direction of the scan, and what comes after it.
    fn joined(&self, a: Value, b: Value) -> Result<Value, CheckError> {
        let (low, high) = if self.plan.reverse { (b, a) } else { (a, b) };
        if low.1 + 1 == high.0 {
            Ok((low.0, high.1))
        } else {
            Err(bad(format!("{low:?} and {high:?} are not neighbours")))
        }
    }

    /// The lane that `lane` reads, if it takes part.
    fn source(&self, step: &ScanStep, lane: u64) -> Option<u64> {
        let reverse = self.plan.reverse;
        if step.neighbour == 0 {
            let takes_part = lane & step.condition == if reverse { 0 } else { step.condition };
            return takes_part.then_some(lane & !step.lane.clear | step.lane.set);
        }
        // The bits of the mask side by side are the number of the lane along the axis.
        let bits: Vec<u32> = (0..64).filter(|bit| step.neighbour >> bit & 1 == 1).collect();
        let along: u64 = bits.iter().enumerate().map(|(i, bit)| (lane >> bit & 1) << i).sum();
        let next = if reverse { along + 1 } else { along.checked_sub(1)? };
        (next >> bits.len() == 0).then(|| {
            let set: u64 = bits.iter().enumerate().map(|(i, bit)| (next >> i & 1) << bit).sum();
            lane & !step.neighbour | set
        })
    }

    fn step(&mut self, step: &ScanStep) -> Result<(), CheckError> {
        let before = self.values.clone();
        let pairs = step.pairs.len() as u64;
        self.combinations += pairs;
        if self.threads.iter().any(|t| self.source(step, t.lane).is_none()) {
            self.selects += pairs;
        }
        for &t in &self.threads {
            let Some(lane) = self.source(step, t.lane) else { continue };
            let from = Threads { lane, ..t };
            if lane >= self.target.lanes.into() || (!step.shuffled && from != t) {
                return Err(bad(format!("{t:?} cannot read {from:?}")));
            }
            for &(to, source) in &step.pairs {
                let (a, b) = (before.get(&(from, source)), before.get(&(t, to)));
                let (Some(&a), Some(&b)) = (a, b) else { return Err(bad(format!("no register {source}"))) };
                let value = self.joined(a, b)?;
                self.values.insert((t, to), value);
            }
        }
        if step.shuffled {
            let mut sources: Vec<u32> = step.pairs.iter().map(|pair| pair.1).collect();
            sources.sort_unstable();
            sources.dedup();
            let words: u64 = self.elem_bits.iter().map(|bits| u64::from(bits.div_ceil(32))).sum();
            let sent = sources.len() as u64 * words;
            self.cost.shuffles += sent;
            // By index: through the crossbar.
            self.cost.cycles +=
                self.target.cost.shuffle_latency + (self.warps * sent) as f64 * self.target.cost.shuffle;
        }
        Ok(())
    }

    /// Totals of blocks through shared memory. `again`: others may still read what the exchange before left there.
    fn exchange(&mut self, x: &ScanExchange, again: bool) -> Result<(), CheckError> {
        if x.reverse != self.plan.reverse {
            return Err(bad("an exchange in the other direction".into()));
        }
        let totals = x.lines.iter().flat_map(|line| line.totals.iter().map(move |t| (line.offset, t)));
        let stored: Result<Vec<(u64, u32)>, CheckError> = totals
            .map(|(line, &(r, n))| {
                let block = x.offsets.get(n as usize).ok_or_else(|| bad(format!("no block {n}")))?;
                Ok((line ^ block, r))
            })
            .collect();
        let stored = stored?;
        let loaded: Vec<u64> =
            x.lines.iter().flat_map(|line| x.offsets.iter().map(|block| line.offset ^ block)).collect();
        let memory = self.store(x, &stored)?;
        self.load(x, &memory)?;
        let cost = self.target.cost;
        let waits = 1 + u64::from(again);
        self.cost.barriers += waits;
        self.cost.cycles += 1.5 * cost.shared_latency + waits as f64 * cost.block_barrier;
        let offsets = stored.iter().map(|s| s.0).collect();
        self.accesses(offsets, &|t| number(&x.store, t), x.store_elems, Direction::Store)?;
        self.accesses(loaded, &|t| number(&x.load, t), x.load_elems, Direction::Load)
    }

    fn store(
        &self,
        x: &ScanExchange,
        stored: &[(u64, u32)],
    ) -> Result<HashMap<(u64, u64), Value>, CheckError> {
        let mut memory = HashMap::new();
        let stays = |number: u64, replace: &crate::plan::Replace| number & replace.clear == replace.set;
        let stores =
            |t: &&Threads| stays(t.lane, &x.lane) && stays(t.warp, &x.warp) && is_clear(&x.duplicates, **t);
        for &t in self.threads.iter().filter(stores) {
            for &(offset, r) in stored {
                let offset = number(&x.store, t) ^ offset;
                let Some(&value) = self.values.get(&(t, r)) else {
                    return Err(bad(format!("no register {r}")));
                };
                if offset >= x.elems || memory.insert((t.block, offset), value).is_some() {
                    return Err(bad(format!("offset {offset} is outside or taken")));
                }
            }
        }
        let blocks = self.threads.iter().map(|t| t.block + 1).max().unwrap_or(1);
        count::same("elements of shared memory", memory.len() as u64, x.elems * blocks)?;
        Ok(memory)
    }

    fn load(&mut self, x: &ScanExchange, memory: &HashMap<(u64, u64), Value>) -> Result<(), CheckError> {
        let blocks = x.offsets.len() as u64;
        for line in &x.lines {
            // The totals one after the other, then every register with what comes before it, where anything does.
            self.combinations += blocks - 1 + line.registers.len() as u64;
            self.selects += line.registers.len() as u64;
        }
        for t in self.threads.clone() {
            for line in &x.lines {
                for &(r, part) in &line.registers {
                    let own = number(&x.number, t) ^ part;
                    let Some(&mine) = self.values.get(&(t, r)) else {
                        return Err(bad(format!("no register {r}")));
                    };
                    let mut sum = mine;
                    // From the nearest block to the farthest.
                    let nearest: Vec<u64> = if self.plan.reverse {
                        (own + 1..blocks).collect()
                    } else {
                        (0..own).rev().collect()
                    };
                    for block in nearest {
                        let offset = number(&x.load, t)
                            ^ line.offset
                            ^ x.offsets.get(block as usize).unwrap_or(&u64::MAX);
                        let Some(&total) = memory.get(&(t.block, offset)) else {
                            return Err(bad(format!("nothing was stored at offset {offset}")));
                        };
                        sum = self.joined(total, sum)?;
                    }
                    self.values.insert((t, r), sum);
                }
            }
        }
        Ok(())
    }

    /// Counts the accesses to places `offsets` of a thread, `elems` at a time, which must be aligned vectors in every
    /// thread. Wavefronts are those of full warps without conflicts.
    fn accesses(
        &mut self,
        mut offsets: Vec<u64>,
        address: &dyn Fn(Threads) -> u64,
        elems: u32,
        direction: Direction,
    ) -> Result<(), CheckError> {
        offsets.sort_unstable();
        let elems = u64::from(elems.max(1));
        for &t in &self.threads {
            for vector in offsets.chunks(elems as usize) {
                let first = address(t) ^ vector[0];
                if !first.is_multiple_of(elems) {
                    return Err(CheckError::Misaligned { offset: first, elems });
                }
                if !vector.iter().map(|o| address(t) ^ o).eq(first..first + elems) {
                    return Err(bad(format!("{elems} elements from offset {first} on are not consecutive")));
                }
            }
        }
        let n = offsets.len() as u64 / elems;
        for &bits in self.elem_bits {
            let bytes = (u64::from(bits.next_power_of_two().max(8)) / 8 * elems) as u32;
            if 8 * bytes > self.target.max_vector_bits.max(bits.next_power_of_two()) {
                return Err(bad(format!("accesses of {bytes} bytes")));
            }
            let wavefronts =
                n * u64::from(self.target.lanes) / served_together(bytes, direction, self.target);
            match direction {
                Direction::Store => self.cost.stores += n,
                Direction::Load => self.cost.loads += n,
            }
            self.cost.wavefronts += wavefronts;
            self.cost.minimum_wavefronts += wavefronts;
            let each = wavefronts as f64 * self.target.cost.wavefront + n as f64 * self.target.cost.issue;
            self.cost.cycles += self.warps as f64 * each;
        }
        Ok(())
    }
}

/// Lanes that one wavefront serves.
fn served_together(bytes: u32, direction: Direction, target: &TargetDesc) -> u64 {
    1 << target.phase_lanes(bytes, direction).len()
}
