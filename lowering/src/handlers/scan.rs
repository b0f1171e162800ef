//! Inclusive scans along one dimension.

use super::combine::{Combine, Item};
use crate::emit::{Failure, ICmp, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::target::BarrierMemory;
use crate::words::{from_words, join_words, split_words, to_words};
use linear_layout::plan::{
    ConversionPlan, Replace, ScanExchange, ScanLine, ScanPlan, ScanStep, ThreadBases, ThreadMasks,
};
use mlir_host::ir::{Op, Value};
use std::collections::HashMap;
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("tt.scan", scan)];

fn scan<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let plan = plans::scan(op, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let combine = Combine::new(op)?;
    let mut items = combine.items(l, op)?;
    // Whether the scratch memory was read since threads last waited for each other.
    let mut read = false;
    if let Some(detour) = &plan.detour {
        items = combine.convert_all(l, op, &detour.before, &items)?;
        read = ConversionPlan::scratch_bytes(&detour.before) > 0;
    }
    for step in &plan.steps {
        let sources = sources(l, &combine, &plan, step, &items)?;
        let changes = match step.neighbour {
            0 => condition(l, step.condition, plan.reverse)?,
            mask => Some(has_neighbour(l, mask, plan.reverse)?),
        };
        for (to, from) in &step.pairs {
            let (Some(source), Some(mine)) = (sources.get(from), items.get(*to as usize)) else {
                return unsupported("the plan reads registers that do not exist");
            };
            let mine = mine.clone();
            let combined = combine.apply(l, source, &mine)?;
            items[*to as usize] = match changes {
                None => combined,
                Some(changes) => select(l, changes, &combined, &mine)?,
            };
        }
    }
    for exchange in &plan.exchanges {
        if std::mem::replace(&mut read, true) {
            l.barrier(BarrierMemory::Shared)?;
        }
        let totals = Totals::bring(l, op, &combine, &plan, exchange, &items)?;
        for (line, totals) in exchange.lines.iter().zip(&totals.of_line) {
            add_totals(l, &combine, exchange, line, totals, &mut items)?;
        }
    }
    let all: Option<Vec<Item<'c>>> =
        plan.copies.iter().map(|register| items.get(*register as usize).cloned()).collect();
    let Some(items) = all else { return unsupported("the plan lacks registers of the result") };
    // Of a result that nobody wants, it does not matter in which layout it is.
    let results: Vec<Value<'c>> = op.results().collect();
    for (number, result) in results.iter().enumerate() {
        let values: Vec<Value<'c>> = items.iter().filter_map(|item| item.get(number).copied()).collect();
        l.set(*result, values);
    }
    let Some(detour) = &plan.detour else { return Ok(()) };
    if read && ConversionPlan::scratch_bytes(&detour.after) > 0 {
        l.barrier(BarrierMemory::Shared)?;
    }
    let converted = combine.convert(l, op, &detour.after, &plan.wanted, &items)?;
    for (number, values) in plan.wanted.iter().zip(converted) {
        let Some(result) = results.get(*number) else {
            return unsupported("the plan wants results that do not exist");
        };
        l.set(*result, values);
    }
    Ok(())
}

/// Whether this thread's registers change: those with the bits set, or clear in reverse.
fn condition<'c>(l: &mut Lower<'_, 'c>, lanes: u64, reverse: bool) -> Lowered<Option<Value<'c>>> {
    if lanes == 0 {
        Ok(None)
    } else if reverse {
        l.is_representative(lanes, 0, 0)
    } else {
        // One bit.
        l.is_odd(ThreadMasks { lane: lanes, ..ThreadMasks::default() }).map(Some)
    }
}

/// `condition ? new : old`
fn select<'c>(
    l: &mut Lower<'_, 'c>,
    condition: Value<'c>,
    new: &[Value<'c>],
    old: &[Value<'c>],
) -> Lowered<Item<'c>> {
    new.iter().zip(old).map(|(new, old)| l.emit.select(condition, *new, *old)).collect()
}

/// Whether there is a lane before this one, in reverse after it, in the bits of `mask`.
fn has_neighbour<'c>(l: &mut Lower<'_, 'c>, mask: u64, reverse: bool) -> Lowered<Value<'c>> {
    let (lane, ..) = l.thread()?;
    let along = l.emit.mask(lane, mask as i64)?;
    let last = l.emit.const_i32(if reverse { mask as i64 } else { 0 })?;
    l.emit.icmp(ICmp::Ne, along, last)
}

/// That lane; any for one that has none.
fn neighbour<'c>(l: &mut Lower<'_, 'c>, lane: Value<'c>, mask: u64, reverse: bool) -> Lowered<Value<'c>> {
    let one = (mask & mask.wrapping_neg()) as i64;
    let run = mask >> one.trailing_zeros();
    if run & (run + 1) == 0 {
        // No bits in between: a carry leaves them only where there is no such lane.
        let step = l.emit.const_i32(if reverse { one } else { -one })?;
        return l.emit.add(lane, step);
    }
    // Bits in between hand carries on.
    let step = l.emit.const_i32(if reverse { one } else { -one })?;
    let between = l.emit.const_i32(!(mask as i64))?;
    let from = if reverse { l.emit.or(lane, between)? } else { l.emit.mask(lane, mask as i64)? };
    let next = l.emit.add(from, step)?;
    let next = l.emit.mask(next, mask as i64)?;
    let kept = l.emit.and(lane, between)?;
    l.emit.or_disjoint(kept, next)
}

/// `number` with some bits replaced.
fn replaced<'c>(l: &mut Lower<'_, 'c>, number: Value<'c>, bits: Replace) -> Lowered<Value<'c>> {
    let mut result = number;
    if bits.clear & !bits.set != 0 {
        result = l.emit.mask(result, !(bits.clear as i64))?;
    }
    if bits.set != 0 {
        let set = l.emit.const_i32(bits.set as i64)?;
        result = l.emit.or(result, set)?;
    }
    Ok(result)
}

/// The elements that the sources of a step hold, by register.
fn sources<'c>(
    l: &mut Lower<'_, 'c>,
    combine: &Combine<'c>,
    plan: &ScanPlan,
    step: &ScanStep,
    items: &[Item<'c>],
) -> Lowered<HashMap<u32, Item<'c>>> {
    let registers = step.sources();
    let mine: Option<Vec<Item<'c>>> = registers.iter().map(|r| items.get(*r as usize).cloned()).collect();
    let Some(mine) = mine else { return unsupported("the plan reads registers that do not exist") };
    if !step.shuffled {
        return Ok(registers.into_iter().zip(mine).collect());
    }
    let (lane, ..) = l.thread()?;
    let from = match step.neighbour {
        0 => replaced(l, lane, step.lane)?,
        mask => neighbour(l, lane, mask, plan.reverse)?,
    };
    let theirs = mine
        .iter()
        .map(|item| combine.map_words(l, item, |l, word| l.target.shuffle_index(&mut l.emit, word, from)));
    let theirs: Vec<Item<'c>> = theirs.collect::<Lowered<_>>()?;
    Ok(registers.into_iter().zip(theirs).collect())
}

/// The totals of a thread's lines, by line and block.
struct Totals<'c> {
    of_line: Vec<Vec<Item<'c>>>,
}

impl<'c> Totals<'c> {
    /// Stored by the threads that hold them, loaded by all.
    fn bring(
        l: &mut Lower<'_, 'c>,
        op: Op<'c>,
        combine: &Combine<'c>,
        plan: &ScanPlan,
        exchange: &ScanExchange,
        items: &[Item<'c>],
    ) -> Lowered<Totals<'c>> {
        let bits = plans::operand_bits(op).map_err(Failure::Unsupported)?;
        let scratch = plan.scratch_offsets(&bits);
        let stores = is_source(l, exchange)?;
        let held: Option<Vec<(u64, &Item<'c>)>> =
            exchange.stored().into_iter().map(|(at, r)| Some((at, items.get(r as usize)?))).collect();
        let Some(held) = held else { return unsupported("the plan stores registers that do not exist") };
        for (operand, ty) in combine.types.iter().enumerate() {
            let memory = Memory { bits: bits[operand], start: scratch[operand] };
            for chunk in held.chunks(exchange.store_elems as usize) {
                let values: Vec<Value<'c>> =
                    chunk.iter().filter_map(|(_, item)| item.get(operand).copied()).collect();
                let words = to_words(l, &values, *ty, memory.bits)?;
                let words = join_words(l, &words, memory.bits)?;
                let ptr = memory.at(l, op, &exchange.store, chunk[0].0)?;
                l.target.store_shared(&mut l.emit, ptr, &words, stores)?;
            }
        }
        l.barrier(BarrierMemory::Shared)?;
        let mut of_line = vec![vec![Item::new(); exchange.offsets.len()]; exchange.lines.len()];
        // Nobody asks for the total of the last block alone.
        let last = exchange.order().last().copied();
        let each = exchange.load_elems as usize;
        let wanted: Vec<_> = exchange
            .loaded()
            .into_iter()
            .filter(|(_, (_, block))| each > 1 || Some(*block) != last)
            .collect();
        for (operand, ty) in combine.types.iter().enumerate() {
            let memory = Memory { bits: bits[operand], start: scratch[operand] };
            for chunk in wanted.chunks(each) {
                let ptr = memory.at(l, op, &exchange.load, chunk[0].0)?;
                let total = memory.bits * chunk.len() as u32;
                let width = if memory.bits == 64 { 64 } else { total.min(32) };
                let words = l.target.load_shared(&mut l.emit, ptr, (total / width) as usize, width)?;
                let words = split_words(l, &words, memory.bits, chunk.len())?;
                let values = from_words(l, &words, *ty)?;
                for ((_, (line, block)), value) in chunk.iter().zip(values) {
                    of_line[*line][*block as usize].push(value);
                }
            }
        }
        Ok(Totals { of_line })
    }
}

/// The shared memory of one operand's totals: elements of `bits` bits from
/// byte `start` of the operation's.
#[derive(Clone, Copy)]
struct Memory {
    bits: u32,
    start: u64,
}

impl Memory {
    /// The address of the element whose number is that of the thread XOR `offset`.
    fn at<'c>(
        self,
        l: &mut Lower<'_, 'c>,
        op: Op<'c>,
        bases: &ThreadBases,
        offset: u64,
    ) -> Lowered<Value<'c>> {
        let (byte, size) = (l.emit.int(8), u64::from(self.bits / 8));
        let base = l.scratch_part(op, self.start)?;
        let thread = l.thread_number(bases, size)?;
        if offset == 0 {
            return l.emit.gep(base, thread, byte);
        }
        let distance = l.emit.const_i32((offset * size) as i64)?;
        if bases.union() & offset == 0 {
            let start = l.emit.gep(base, thread, byte)?;
            return l.emit.gep(start, distance, byte);
        }
        let place = l.emit.xor(thread, distance)?;
        l.emit.gep(base, place, byte)
    }
}

/// Combines the elements of a line with the totals of the blocks before theirs.
fn add_totals<'c>(
    l: &mut Lower<'_, 'c>,
    combine: &Combine<'c>,
    exchange: &ScanExchange,
    line: &ScanLine,
    totals: &[Item<'c>],
    items: &mut [Item<'c>],
) -> Lowered<()> {
    let order = exchange.order();
    // By block, all before it combined; nothing for the first.
    let mut before: Vec<Option<Item<'c>>> = vec![None; order.len()];
    let mut sum: Option<Item<'c>> = None;
    for pair in order.windows(2) {
        let total = &totals[pair[0] as usize];
        let next = match &sum {
            None => total.clone(),
            Some(sum) => combine.apply(l, sum, total)?,
        };
        before[pair[1] as usize] = Some(next.clone());
        sum = Some(next);
    }
    let thread = l.thread_number(&exchange.number, 1)?;
    let numbers = exchange.thread_numbers();
    let mut known: HashMap<u64, (Option<Item<'c>>, Option<Value<'c>>)> = HashMap::new();
    for &(register, part) in &line.registers {
        if let std::collections::hash_map::Entry::Vacant(entry) = known.entry(part) {
            // What comes before this thread's block, and whether anything does.
            let mut source: Option<Item<'c>> = None;
            let mut exists = None;
            for &number in &numbers {
                let here = match (&before[(number ^ part) as usize], &source) {
                    (Some(other), Some(source)) => {
                        let is_here = is_number(l, thread, number, ICmp::Eq)?;
                        select(l, is_here, other, source)?
                    }
                    (Some(other), None) => other.clone(),
                    (None, _) => {
                        exists = Some(is_number(l, thread, number, ICmp::Ne)?);
                        continue;
                    }
                };
                source = Some(here);
            }
            entry.insert((source, exists));
        }
        let Some((Some(source), exists)) = known.get(&part) else { continue };
        let Some(mine) = items.get(register as usize).cloned() else {
            return unsupported("the plan changes registers that do not exist");
        };
        let combined = combine.apply(l, source, &mine)?;
        items[register as usize] = match exists {
            None => combined,
            Some(exists) => select(l, *exists, &combined, &mine)?,
        };
    }
    Ok(())
}

/// Compares the thread's number with `number`.
fn is_number<'c>(l: &mut Lower<'_, 'c>, thread: Value<'c>, number: u64, how: ICmp) -> Lowered<Value<'c>> {
    let number = l.emit.const_i32(number as i64)?;
    l.emit.icmp(how, thread, number)
}

/// Whether this thread holds totals, and is the one of those with replicas that stores them.
fn is_source<'c>(l: &mut Lower<'_, 'c>, exchange: &ScanExchange) -> Lowered<Option<Value<'c>>> {
    let (lane, warp, _) = l.thread()?;
    let mut differs: Option<Value<'c>> = None;
    for (number, bits, copies) in
        [(lane, exchange.lane, exchange.duplicates.lane), (warp, exchange.warp, exchange.duplicates.warp)]
    {
        let mask = bits.clear | copies;
        if mask == 0 {
            continue;
        }
        let mut rest = l.emit.mask(number, mask as i64)?;
        if bits.set != 0 {
            let set = l.emit.const_i32(bits.set as i64)?;
            rest = l.emit.xor(rest, set)?;
        }
        differs = Some(match differs {
            None => rest,
            Some(differs) => l.emit.or(differs, rest)?,
        });
    }
    let Some(differs) = differs else { return Ok(None) };
    let zero = l.emit.const_i32(0)?;
    l.emit.icmp(ICmp::Eq, differs, zero).map(Some)
}
