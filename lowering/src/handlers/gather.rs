//! Gathers along one dimension, and histograms: which element is needed is
//! known at run time only.

use super::combine::{convert, map_words};
use crate::emit::{Failure, ICmp, Lowered, int_bits, internal, unsupported};
use crate::lower::{Handler, Lower};
use crate::shared::{self, Memory};
use crate::target::BarrierMemory;
use crate::words::{from_word, to_words};
use linear_layout::plan::{ConversionPlan, Gather, GatherPlan, GatherShared, GatherShuffle};
use mlir_host::ir::{Op, Value};
use std::collections::BTreeMap;
use ttopt_dialect::tt::ops::HistogramOp;
use ttopt_passes::plans;

pub(super) const HANDLERS: &[(&str, Handler)] = &[("tt.gather", gather), ("tt.histogram", histogram)];

fn gather<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let (source, result) = (op.operand(0), op.result(0));
    if l.layout(op.operand(1).ty())? != l.layout(result.ty())? {
        return unsupported("the indices and the result have different layouts");
    }
    let plan = plans::gather(op, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let element = source.ty().element();
    let mut values = l.get(source)?.to_vec();
    let mut read = false;
    for conversion in plan.detour.iter().flat_map(|detour| &detour.before) {
        values = convert(l, op, conversion, &values, element, 0)?;
        read |= conversion.shared_bytes() > 0;
    }
    let indices = l.get(op.operand(1))?;
    let indices: Vec<Value<'c>> = indices.iter().map(|index| to_i32(l, *index)).collect::<Lowered<_>>()?;
    let found = match &plan.gather {
        Gather::Shuffle(shuffle) => by_shuffles(l, op, &plan, shuffle, &values, &indices)?,
        Gather::Shared(shared) => {
            if read {
                l.barrier(BarrierMemory::Shared)?;
            }
            through_shared(l, op, shared, &values, &indices)?
        }
    };
    let all: Option<Vec<Value<'c>>> =
        plan.copies.iter().map(|register| found.get(register).copied()).collect();
    match all {
        Some(values) => {
            l.set(result, values);
            Ok(())
        }
        None => unsupported("the plan lacks registers of the result"),
    }
}

/// An integer as an `i32`; what is above the width of an index does not matter.
fn to_i32<'c>(l: &mut Lower<'_, 'c>, value: Value<'c>) -> Lowered<Value<'c>> {
    let i32t = l.emit.i32();
    match value.ty().int_bits() {
        Some(32) => Ok(value),
        Some(bits) if bits > 32 => l.emit.value("llvm.trunc", &[value], i32t, &[]),
        Some(_) => l.emit.value("llvm.zext", &[value], i32t, &[]),
        None => unsupported(format!("{} is no index", value.ty())),
    }
}

/// The XOR of `to` over all `(bit, to)` with that bit of `value` set: bits
/// that move by the same distance move together.
fn moved<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    pairs: impl IntoIterator<Item = (u32, u64)>,
) -> Lowered<Option<Value<'c>>> {
    let mut by_distance: BTreeMap<i64, u64> = BTreeMap::new();
    for (bit, mut to) in pairs {
        while to != 0 {
            let distance = i64::from(to.trailing_zeros()) - i64::from(bit);
            *by_distance.entry(distance).or_default() |= 1 << bit;
            to &= to - 1;
        }
    }
    let mut sum: Option<Value<'c>> = None;
    for (distance, mask) in by_distance {
        let bits = l.emit.mask(value, mask as i64)?;
        let bits = match distance {
            0 => bits,
            1.. => l.emit.shl(bits, distance as u32)?,
            _ => l.emit.lshr(bits, -distance as u32)?,
        };
        sum = Some(match sum {
            None => bits,
            Some(sum) => l.emit.xor(sum, bits)?,
        });
    }
    Ok(sum)
}

/// Found elements by register of the result.
type Found<'c> = BTreeMap<u32, Value<'c>>;

fn index_of<'c>(indices: &[Value<'c>], register: u32) -> Lowered<Value<'c>> {
    let missing = || Failure::Unsupported("the plan looks up registers that do not exist".to_owned());
    indices.get(register as usize).copied().ok_or_else(missing)
}

fn by_shuffles<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    plan: &GatherPlan,
    shuffle: &GatherShuffle,
    values: &[Value<'c>],
    indices: &[Value<'c>],
) -> Lowered<Found<'c>> {
    let element = op.operand(0).ty().element();
    let (lane, ..) = l.thread()?;
    let replaced = shuffle.lane_bits.iter().fold(0u64, |mask, (_, bit)| mask | 1 << bit);
    let mut found = Found::new();
    for (register, candidates) in (0..).zip(&shuffle.candidates) {
        if plan.copies.get(register as usize) != Some(&register) {
            continue;
        }
        let index = index_of(indices, register)?;
        let chosen = moved(l, index, shuffle.lane_bits.iter().map(|(bit, to)| (*bit, 1 << to)))?;
        let from = match chosen {
            None => None,
            Some(chosen) => {
                let kept = l.emit.mask(lane, !(replaced as i64))?;
                Some(l.emit.or_disjoint(kept, chosen)?)
            }
        };
        let mut left = Vec::with_capacity(candidates.len());
        for candidate in candidates {
            let Some(value) = values.get(*candidate as usize).copied() else {
                return unsupported("the plan reads registers that do not exist");
            };
            left.push(match from {
                None => value,
                Some(from) => map_words(l, value, element, &mut |l, word| {
                    l.target.shuffle_index(&mut l.emit, word, from)
                })?,
            });
        }
        for bit in &shuffle.register_bits {
            let set = l.emit.mask(index, 1 << bit)?;
            let zero = l.emit.const_i32(0)?;
            let set = l.emit.icmp(ICmp::Ne, set, zero)?;
            left = left
                .chunks(2)
                .map(|pair| match pair {
                    [low, high] => l.emit.select(set, *high, *low),
                    _ => unsupported("the plan lacks candidates"),
                })
                .collect::<Lowered<_>>()?;
        }
        if let Some(value) = left.first() {
            found.insert(register, *value);
        }
    }
    Ok(found)
}

fn through_shared<'c>(
    l: &mut Lower<'_, 'c>,
    op: Op<'c>,
    plan: &GatherShared,
    values: &[Value<'c>],
    indices: &[Value<'c>],
) -> Lowered<Found<'c>> {
    let element = op.operand(0).ty().element();
    let bits = plan.store.access.storage_bits;
    let scale = u64::from(bits / 8);
    let scratch = l.scratch(op)?;
    let words = to_words(l, values, element, bits)?;
    shared::store(l, &plan.store.access, Memory::at(scratch), &words, 0)?;
    l.barrier(BarrierMemory::Shared)?;
    let line = l.thread_number(&plan.address, scale)?;
    let byte = l.emit.int(8);
    let mut found = Found::new();
    let vector = plan.vector.max(1) as usize;
    for (registers, offset) in plan.lookups.chunks(vector).zip(plan.offsets.iter().step_by(vector)) {
        let Some(first) = registers.first() else { continue };
        let index = index_of(indices, *first)?;
        let mut at = line;
        if *offset != 0 {
            let offset = l.emit.const_i32((offset * scale) as i64)?;
            at = l.emit.xor(at, offset)?;
        }
        if let Some(chosen) = moved(l, index, (0..).zip(plan.index.iter().map(|to| to * scale)))? {
            at = l.emit.xor(at, chosen)?;
        }
        let ptr = l.emit.gep(scratch, at, byte)?;
        let loaded = l.target.load_shared(&mut l.emit, ptr, registers.len(), bits)?;
        if loaded.len() != registers.len() {
            return unsupported("a lookup gives other elements than the plan says");
        }
        for (register, word) in registers.iter().zip(loaded) {
            found.insert(*register, from_word(l, word, element)?);
        }
    }
    Ok(found)
}

/// Whether `value`, which is `low` in 32 bits, is a bin: others are not counted.
/// `None` where all values are.
fn is_bin<'c>(
    l: &mut Lower<'_, 'c>,
    value: Value<'c>,
    low: Value<'c>,
    bins: u64,
) -> Lowered<Option<Value<'c>>> {
    let width = int_bits(value)?;
    // No number of 64 bits or more has values beyond all of them.
    if bins.checked_shr(width).unwrap_or(0) > 0 {
        return Ok(None);
    }
    let whole = if width > 32 { value } else { low };
    let bins = l.emit.const_int(width.max(32), bins as i64)?;
    l.emit.icmp(ICmp::Ult, whole, bins).map(Some)
}

fn histogram<'c>(l: &mut Lower<'_, 'c>, op: Op<'c>) -> Lowered<()> {
    let Some(histogram) = HistogramOp::cast(op) else { return internal("malformed histogram") };
    let (source, mask, result) = (histogram.src(), histogram.mask(), op.result(0));
    let plan = plans::histogram(op, l.target.desc()).map_err(Failure::Unsupported)?;
    l.remark(op, || plan.to_string());
    let mut values = l.get(source)?.to_vec();
    let mut masks = mask.map(|mask| l.get(mask)).transpose()?.map(|masks| masks.to_vec());
    let before: &[ConversionPlan] = plan.detour.as_ref().map_or(&[], |detour| &detour.before);
    for conversion in before {
        // The mask goes the way of the elements, as integers of their width.
        let types = [(Some(&mut values), source.ty().element()), (masks.as_mut(), l.emit.i1())];
        for (values, ty) in types {
            if let Some(values) = values {
                *values = convert(l, op, conversion, values, ty, 0)?;
                if conversion.shared_bytes() > 0 {
                    l.barrier(BarrierMemory::Shared)?;
                }
            }
        }
    }
    let scratch = l.scratch(op)?;
    let memory = Memory::at(scratch);
    let n = l.num_values(result.ty())?;
    let zero = l.emit.const_i32(0)?;
    shared::store(l, &plan.clear.access, memory, &vec![zero; n], 0)?;
    l.barrier(BarrierMemory::Shared)?;
    let counts = l.is_representative(plan.duplicates.lane, plan.duplicates.warp, plan.duplicates.block)?;
    let i32t = l.emit.i32();
    for register in &plan.registers {
        let register = *register as usize;
        let Some(value) = values.get(register).copied() else {
            return unsupported("the plan counts registers that do not exist");
        };
        let live = masks.as_ref().and_then(|masks| masks.get(register)).copied();
        let mine = match (live, counts) {
            (Some(live), Some(counts)) => Some(l.emit.and(live, counts)?),
            (one, other) => one.or(other),
        };
        let bin = to_i32(l, value)?;
        let mine = match is_bin(l, value, bin, plan.bins)? {
            None => mine,
            Some(is_bin) => Some(match mine {
                None => is_bin,
                Some(mine) => l.emit.and(mine, is_bin)?,
            }),
        };
        let ptr = l.emit.gep(scratch, bin, i32t)?;
        l.target.count_shared(&mut l.emit, ptr, mine)?;
    }
    l.barrier(BarrierMemory::Shared)?;
    let mut loaded = vec![None; n];
    shared::load(l, &plan.load.access, memory, &mut loaded, 0)?;
    let words = shared::spread(&plan.load.access, &loaded)?;
    let ty = l.register_type(result.ty().element())?;
    let counts: Vec<Value<'c>> = words
        .into_iter()
        .map(|word| match ty.int_bits() {
            Some(32) => Ok(word),
            Some(64) => l.emit.value("llvm.zext", &[word], ty, &[]),
            Some(..32) => l.emit.value("llvm.trunc", &[word], ty, &[]),
            _ => unsupported(format!("counts of type {ty}")),
        })
        .collect::<Lowered<_>>()?;
    l.set(result, counts);
    Ok(())
}
