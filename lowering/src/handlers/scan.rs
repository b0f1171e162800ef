//! Inclusive scans along one dimension.

use super::combine::{Combine, Item};
use crate::emit::{Failure, ICmp, Lowered, unsupported};
use crate::lower::{Handler, Lower};
use crate::words::{from_words, join_words, split_words, to_words};
use linear_layout::plan::{ConversionPlan, Replace, ScanExchange, ScanPlan, ScanStep, ThreadMasks};
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
        items = combine.convert(l, op, &detour.before, &items)?;
        read = ConversionPlan::scratch_bytes(&detour.before) > 0;
    }
    for step in &plan.steps {
        let sources = sources(l, op, &combine, &plan, step, &items, &mut read)?;
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
            let made = match changes {
                None => combined,
                Some(changes) => combined
                    .iter()
                    .zip(&mine)
                    .map(|(new, old)| l.emit.select(changes, *new, *old))
                    .collect::<Lowered<Item<'c>>>()?,
            };
            items[*to as usize] = made;
        }
    }
    let all: Option<Vec<Item<'c>>> =
        plan.copies.iter().map(|register| items.get(*register as usize).cloned()).collect();
    let Some(mut items) = all else { return unsupported("the plan lacks registers of the result") };
    if let Some(detour) = &plan.detour {
        if read && ConversionPlan::scratch_bytes(&detour.after) > 0 {
            l.barrier()?;
        }
        items = combine.convert(l, op, &detour.after, &items)?;
    }
    for (number, result) in op.results().enumerate() {
        let values: Vec<Value<'c>> = items.iter().filter_map(|item| item.get(number).copied()).collect();
        l.set(result, values);
    }
    Ok(())
}

/// Whether this thread's registers change: those with the bits set, or clear in reverse.
fn condition<'c>(l: &mut Lower<'_, 'c>, masks: ThreadMasks, reverse: bool) -> Lowered<Option<Value<'c>>> {
    if masks.is_empty() {
        Ok(None)
    } else if reverse {
        l.is_representative(masks.lane, masks.warp, masks.block)
    } else {
        // One bit.
        l.is_odd(masks).map(Some)
    }
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
    op: Op<'c>,
    combine: &Combine<'c>,
    plan: &ScanPlan,
    step: &ScanStep,
    items: &[Item<'c>],
    read: &mut bool,
) -> Lowered<HashMap<u32, Item<'c>>> {
    let registers = step.sources();
    let mine: Option<Vec<Item<'c>>> = registers.iter().map(|r| items.get(*r as usize).cloned()).collect();
    let Some(mine) = mine else { return unsupported("the plan reads registers that do not exist") };
    let theirs = match (&step.exchange, step.scope) {
        (Some(exchange), _) => {
            if std::mem::replace(read, true) {
                l.barrier()?;
            }
            through_shared(l, op, combine, plan, (step, exchange), &mine)?
        }
        (None, None) => mine,
        (None, Some(_)) => {
            let (lane, ..) = l.thread()?;
            let from = match step.neighbour {
                0 => replaced(l, lane, step.lane)?,
                mask => neighbour(l, lane, mask, plan.reverse)?,
            };
            mine.iter()
                .map(|item| {
                    combine.map_words(l, item, |l, word| l.target.shuffle_index(&mut l.emit, word, from))
                })
                .collect::<Lowered<_>>()?
        }
    };
    Ok(registers.into_iter().zip(theirs).collect())
}

/// Totals of other warps: stored by the threads that hold them, loaded by all.
fn through_shared<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    combine: &Combine<'c>,
    plan: &ScanPlan,
    (step, exchange): (&ScanStep, &ScanExchange),
    items: &[Item<'c>],
) -> Lowered<Vec<Item<'c>>> {
    let bits = plans::operand_bits(op).map_err(Failure::Unsupported)?;
    let offsets = plan.scratch_offsets(&bits);
    let stores = is_source(l, plan, step)?;
    let chunk = if items.len().is_power_of_two() { exchange.vec_elems as usize } else { 1 };
    let byte = l.emit.int(8);
    // Where each operand's totals begin for this thread.
    let mut starts = Vec::with_capacity(bits.len());
    for (bits, offset) in bits.iter().zip(&offsets) {
        let base = l.scratch_part(op, *offset)?;
        let thread = l.thread_number(&exchange.address, u64::from(bits / 8))?;
        starts.push(l.emit.gep(base, thread, byte)?);
    }
    let at = |l: &mut Lower<'_, 'c>, operand: usize, first: usize| -> Lowered<Value<'c>> {
        if first == 0 {
            return Ok(starts[operand]);
        }
        let distance = l.emit.const_i32((first as u64 * u64::from(bits[operand] / 8)) as i64)?;
        l.emit.gep(starts[operand], distance, byte)
    };
    for (operand, ty) in combine.types.iter().enumerate() {
        let values: Vec<Value<'c>> = items.iter().filter_map(|item| item.get(operand).copied()).collect();
        let words = to_words(l, &values, *ty, bits[operand])?;
        for (i, words) in words.chunks(chunk.max(1)).enumerate() {
            let ptr = at(l, operand, i * chunk)?;
            let words = join_words(l, words, bits[operand])?;
            l.target.store_shared(&mut l.emit, ptr, &words, stores)?;
        }
    }
    l.barrier()?;
    let mut loaded: Vec<Item<'c>> = vec![Vec::new(); items.len()];
    for (operand, ty) in combine.types.iter().enumerate() {
        for (i, items) in loaded.chunks_mut(chunk.max(1)).enumerate() {
            let ptr = at(l, operand, i * chunk)?;
            let total = bits[operand] * items.len() as u32;
            let width = if bits[operand] == 64 { 64 } else { total.min(32) };
            let words = l.target.load_shared(&mut l.emit, ptr, (total / width) as usize, width)?;
            let words = split_words(l, &words, bits[operand], items.len())?;
            for (item, value) in items.iter_mut().zip(from_words(l, &words, *ty)?) {
                item.push(value);
            }
        }
    }
    Ok(loaded)
}

/// Whether this thread holds totals, and is the one of those with copies that stores them.
fn is_source<'c>(l: &mut Lower<'_, 'c>, plan: &ScanPlan, step: &ScanStep) -> Lowered<Option<Value<'c>>> {
    let (lane, warp, _) = l.thread()?;
    let mut differs: Option<Value<'c>> = None;
    for (number, bits, copies) in
        [(lane, step.lane, plan.duplicates.lane), (warp, step.warp, plan.duplicates.warp)]
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
