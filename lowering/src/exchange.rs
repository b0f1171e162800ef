//! Emits plans that move data between registers, lanes, warps and CTAs.

use crate::emit::{Failure, Lowered, unsupported};
use crate::lower::Lower;
use crate::shared::{self, Memory};
use crate::words::{join_words, split_words};
use linear_layout::plan::{
    Conversion, ConversionPlan, Exchange, Scope, SelectStage, SharedPlan, ShufflePlan,
};
use mlir_host::ir::Value;
use smallvec::SmallVec;

/// Converts a thread's values, integers of the plan's element width, to another
/// layout. `scratch` is the plan's shared memory, if it needs some: when the
/// code begins no thread uses it, and when it ends other threads may still
/// read from it.
///
/// # Errors
/// When the target lacks an instruction of the plan.
pub fn convert<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &ConversionPlan,
    values: &[Value<'c>],
    scratch: Option<Value<'c>>,
) -> Lowered<Vec<Value<'c>>> {
    match &plan.conversion {
        Conversion::NoOp => Ok(values.to_vec()),
        Conversion::RegisterPermute { sources } => sources
            .iter()
            .map(|source| values.get(*source as usize).copied())
            .collect::<Option<_>>()
            .ok_or_else(|| Failure::Unsupported("the plan reads registers that do not exist".to_owned())),
        Conversion::WarpShuffle(plan) => by_shuffles(l, plan, values),
        Conversion::SharedMemory(shared) | Conversion::Cluster(shared) => {
            through_shared(l, shared, values, memory_of(plan, shared, scratch)?)
        }
    }
}

/// What one of several conversions done together converts, and its shared memory, if it needs some.
pub struct Part<'p, 'c> {
    /// The plan.
    pub plan: &'p ConversionPlan,
    /// A thread's values, integers of the plan's element width.
    pub words: Vec<Value<'c>>,
    /// As for [`convert`].
    pub scratch: Option<Value<'c>>,
}

/// Converts several tensors, whose plans are `plans`: through shared memory all at once, where one barrier serves all.
///
/// # Errors
/// When the target lacks an instruction of a plan.
pub fn convert_together<'c>(
    l: &mut Lower<'_, 'c>,
    plans: &[ConversionPlan],
    parts: &[Part<'_, 'c>],
) -> Lowered<Vec<Vec<Value<'c>>>> {
    let Some((scope, _)) = ConversionPlan::one_wait(plans) else {
        return parts.iter().map(|part| convert(l, part.plan, &part.words, part.scratch)).collect();
    };
    for part in parts {
        if let Conversion::SharedMemory(shared) = &part.plan.conversion {
            let memory = memory_of(part.plan, shared, part.scratch)?;
            shared::store(l, &shared.store, memory, &part.words, 0)?;
        }
    }
    l.synchronize(scope)?;
    let load = |part: &Part<'_, 'c>| {
        let Conversion::SharedMemory(shared) = &part.plan.conversion else {
            return convert(l, part.plan, &part.words, part.scratch);
        };
        let memory = memory_of(part.plan, shared, part.scratch)?;
        let mut loaded = vec![None; shared.load.copies.len()];
        shared::load(l, &shared.load, memory, &mut loaded, 0)?;
        shared::spread(&shared.load, &loaded)
    };
    parts.iter().map(load).collect()
}

/// The shared memory of a plan that goes through it.
fn memory_of<'c>(
    plan: &ConversionPlan,
    shared: &SharedPlan,
    scratch: Option<Value<'c>>,
) -> Lowered<Memory<'static, 'c>> {
    if shared.store.storage_bits != plan.elem_bits {
        return unsupported(format!("elements of {} bits in shared memory", plan.elem_bits));
    }
    match scratch {
        Some(scratch) => Ok(Memory::at(scratch)),
        None => unsupported("has no shared memory: run --allocate-shared-memory-nv first"),
    }
}

fn through_shared<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &SharedPlan,
    values: &[Value<'c>],
    memory: Memory<'_, 'c>,
) -> Lowered<Vec<Value<'c>>> {
    let mut loaded = vec![None; plan.load.copies.len()];
    for pass in 0..plan.tiles {
        if pass > 0 {
            // The pass before has been read.
            l.synchronize(plan.scope)?;
        }
        shared::store(l, &plan.store, memory, values, pass)?;
        l.synchronize(plan.scope)?;
        shared::load(l, &plan.load, memory, &mut loaded, pass)?;
    }
    if plan.scope == Scope::Cluster {
        // No block may end, or use this memory again, while others read from it.
        l.synchronize(plan.scope)?;
    }
    shared::spread(&plan.load, &loaded)
}

/// What one shuffle, or two for elements of 64 bits, carries.
type Payload<'c> = SmallVec<[Value<'c>; 2]>;

fn by_shuffles<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &ShufflePlan,
    values: &[Value<'c>],
) -> Lowered<Vec<Value<'c>>> {
    let malformed = || Failure::Unsupported("the plan names registers that do not exist".to_owned());
    let bits = plan.storage_bits;
    let elems = plan.payload_elems();
    let payload_bits = bits * elems as u32;
    let i32t = l.emit.i32();
    let mut payloads: Vec<Payload<'c>> = Vec::with_capacity(plan.sources.len());
    for registers in &plan.sources {
        let elements: Vec<Value<'c>> = registers
            .iter()
            .map(|register| values.get(*register as usize).copied())
            .collect::<Option<_>>()
            .ok_or_else(malformed)?;
        payloads.push(match join_words(l, &elements, bits)?.as_slice() {
            [word] if payload_bits == 64 => {
                let pair = l.emit.vector(2, i32t)?;
                let halves = l.emit.bitcast(*word, pair)?;
                (0..2).map(|i| l.emit.extract_element(halves, i, i32t)).collect::<Lowered<_>>()?
            }
            [word] if payload_bits < 32 => {
                SmallVec::from_slice(&[l.emit.value("llvm.zext", &[*word], i32t, &[])?])
            }
            [word] => SmallVec::from_slice(&[*word]),
            _ => return Err(malformed()),
        });
    }
    let payloads = select(l, payloads, &plan.send)?;
    let mut received = Vec::with_capacity(plan.rounds.len());
    for round in &plan.rounds {
        let payload = payloads.get(round.payload as usize).ok_or_else(malformed)?;
        let mut words = Payload::new();
        for word in payload {
            words.push(match &round.exchange {
                Exchange::Local => *word,
                Exchange::Xor { mask, instruction } => {
                    l.target.shuffle_xor(&mut l.emit, *word, *mask, *instruction)?
                }
                Exchange::Index { base, lanes, .. } => {
                    let mut lane = l.thread_number(lanes, 1)?;
                    if *base != 0 {
                        let base = l.emit.const_i32(*base as i64)?;
                        lane = l.emit.xor(lane, base)?;
                    }
                    l.target.shuffle_index(&mut l.emit, *word, lane)?
                }
            });
        }
        received.push(words);
    }
    let (before, last) = match plan.receive.split_last() {
        Some((last, before)) => (select(l, received, before)?, Some(last)),
        None => (received, None),
    };
    if let Some(last) = last
        && let Some(words) = pick_words(l, plan, &before, last)?
    {
        return split_words(l, &words, bits, plan.targets.len());
    }
    let received = select(l, before, last.map_or(&[], std::slice::from_ref))?;
    let mut elements = Vec::with_capacity(received.len());
    for payload in received {
        let word = match payload.as_slice() {
            [low, high] => {
                let pair = l.emit.vector(2, i32t)?;
                let mut joined = l.emit.undef(pair)?;
                joined = l.emit.insert_element(joined, *low, 0)?;
                joined = l.emit.insert_element(joined, *high, 1)?;
                let i64t = l.emit.i64();
                l.emit.bitcast(joined, i64t)?
            }
            [word] if payload_bits < 32 => {
                let narrow = l.emit.int(payload_bits);
                l.emit.value("llvm.trunc", &[*word], narrow, &[])?
            }
            [word] => *word,
            _ => return Err(malformed()),
        };
        elements.push(split_words(l, &[word], bits, elems)?);
    }
    plan.targets
        .iter()
        .map(|(payload, position)| elements.get(*payload as usize)?.get(*position as usize).copied())
        .collect::<Option<_>>()
        .ok_or_else(malformed)
}

/// Bytes of a word.
const WORD: u32 = 4;

/// The words that a conversion by shuffles ends with, where each has parts of both payloads that the last stage of selects
/// chooses between, and an instruction picks bytes that lanes may differ in: one in the place of two selects, and of what
/// puts their parts together. `None` where that is not so.
fn pick_words<'c>(
    l: &mut Lower<'_, 'c>,
    plan: &ShufflePlan,
    payloads: &[Payload<'c>],
    stage: &SelectStage,
) -> Lowered<Option<Vec<Value<'c>>>> {
    let elems = plan.payload_elems();
    let (bytes, whole) = (plan.storage_bits / 8, plan.storage_bits * elems as u32 == 8 * WORD);
    if !l.target.picks_bytes() || elems < 2 || !whole || !plan.targets.len().is_multiple_of(elems) {
        return Ok(None);
    }
    let mut chosen = Vec::with_capacity(plan.targets.len() / elems);
    for parts in plan.targets.chunks(elems) {
        let (mine, other) = (parts[0].0, parts[0].0 ^ stage.xor as u32);
        if !parts.iter().all(|(payload, _)| [mine, other].contains(payload))
            || parts.iter().all(|(payload, _)| *payload == mine)
        {
            return Ok(None);
        }
        // Which bytes of the two words, those of the first one lowest, where the condition is false; where it is true
        // each is one of the other word.
        let places = parts.iter().flat_map(|(payload, position)| {
            let word = if *payload == mine { 0 } else { WORD };
            (0..bytes).map(move |byte| word + position * bytes + byte)
        });
        let places = places.zip(0..).fold(0, |all, (place, at)| all | place << (8 * at));
        chosen.push((mine, other, places));
    }
    let condition = l.is_odd(stage.condition)?;
    let mut words = Vec::with_capacity(chosen.len());
    for (mine, other, places) in chosen {
        let (Some([mine]), Some([other])) = (
            payloads.get(mine as usize).map(SmallVec::as_slice),
            payloads.get(other as usize).map(SmallVec::as_slice),
        ) else {
            return unsupported("the plan selects a payload that does not exist");
        };
        let swapped = l.emit.const_i32(i64::from(places ^ (WORD * 0x0101_0101)))?;
        let places = l.emit.const_i32(i64::from(places))?;
        let places = l.emit.select(condition, swapped, places)?;
        words.push(l.target.pick_bytes(&mut l.emit, [*mine, *other], places)?);
    }
    Ok(Some(words))
}

/// Applies stages of selects to a list of payloads.
fn select<'c>(
    l: &mut Lower<'_, 'c>,
    mut payloads: Vec<Payload<'c>>,
    stages: &[SelectStage],
) -> Lowered<Vec<Payload<'c>>> {
    for stage in stages {
        let condition = l.is_odd(stage.condition)?;
        let mut next = Vec::with_capacity(payloads.len());
        for (i, mine) in payloads.iter().enumerate() {
            let Some(other) = payloads.get(i ^ stage.xor as usize) else {
                return unsupported("the plan selects a payload that does not exist");
            };
            let words = mine.iter().zip(other);
            next.push(
                words
                    .map(|(mine, other)| l.emit.select(condition, *other, *mine))
                    .collect::<Lowered<Payload<'c>>>()?,
            );
        }
        payloads = next;
    }
    Ok(payloads)
}
