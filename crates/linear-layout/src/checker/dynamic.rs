//! Execution of scans, gathers and histograms.

use std::collections::HashMap;

use super::conversion::Holders;
use super::{CheckError, check_conversion, check_shared_access};
use crate::plan::{Detour, Gather, GatherPlan, HistogramPlan, ScanPlan, Threads};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

fn threads(layout: &LinearLayout, target: &TargetDesc) -> Vec<Threads> {
    let size = |dim| layout.in_size(dim).unwrap_or(1);
    let mut all = Vec::new();
    for block in 0..size(Dim::BLOCK) {
        for warp in 0..size(Dim::WARP) {
            all.extend((0..u64::from(target.lanes)).map(|lane| Threads { lane, warp, block }));
        }
    }
    all
}

fn holders(layout: &LinearLayout, order: Vec<Dim>) -> Holders<'_> {
    Holders { layout, order }
}

/// The layout that the work is done in, once the conversions to it and back are right.
fn between<'a>(
    detour: Option<&'a Detour>,
    operands: &'a LinearLayout,
    target: &TargetDesc,
) -> Result<&'a LinearLayout, CheckError> {
    let Some(detour) = detour else { return Ok(operands) };
    for conversion in &detour.before {
        check_conversion(conversion, operands, &detour.layout, target)?;
    }
    for conversion in &detour.after {
        check_conversion(conversion, &detour.layout, operands, target)?;
    }
    if detour.before.is_empty() {
        return Err(CheckError::Malformed("a detour without conversions".into()));
    }
    Ok(&detour.layout)
}

/// Executes a scan in which combining joins neighbouring ranges: in the end every element must hold the
/// range from the first element of its line (the last, when reversed) to itself.
///
/// # Errors
/// A combination of ranges that are not neighbours, or a wrong range in the end.
pub fn check_scan(plan: &ScanPlan, layout: &LinearLayout, target: &TargetDesc) -> Result<(), CheckError> {
    let layout = between(plan.detour.as_ref(), layout, target)?;
    if plan.detour.as_ref().is_some_and(|d| d.after.len() != d.before.len()) {
        return Err(CheckError::Malformed("results are not converted back".into()));
    }
    // The axis first, so that an element is `line · size + place`.
    let rest = layout.out_dims().filter(|&d| d != plan.axis);
    let order: Vec<Dim> = std::iter::once(plan.axis).chain(rest).collect();
    let all = holders(layout, order);
    let size = layout.out_size(plan.axis).unwrap_or(1);
    let mut values: HashMap<(Threads, u32), (u64, u64)> = HashMap::new();
    let threads = threads(layout, target);
    for &t in &threads {
        for r in 0..all.registers() {
            let element = all.element(r, t)?;
            values.insert((t, r as u32), (element, element));
        }
    }
    let bad = |what: String| CheckError::Malformed(what);
    // What comes before in the direction of the scan, and what comes after it.
    let joined = |a: (u64, u64), b: (u64, u64)| {
        let (low, high) = if plan.reverse { (b, a) } else { (a, b) };
        if low.1 + 1 == high.0 {
            Ok((low.0, high.1))
        } else {
            Err(bad(format!("{low:?} and {high:?} are not neighbours")))
        }
    };
    for step in &plan.steps {
        let before = values.clone();
        for &t in &threads {
            let (bits, along) = (t.lane & step.condition, t.lane & step.neighbour);
            let applies = match (step.neighbour, plan.reverse) {
                (0, true) => bits == 0,
                (0, false) => bits == step.condition,
                (mask, true) => along != mask,
                (_, false) => along != 0,
            };
            if !applies {
                continue;
            }
            let from = Threads { lane: step.source(t.lane, plan.reverse), ..t };
            if from.lane >= target.lanes.into() || (!step.shuffled && from != t) {
                return Err(bad(format!("{t:?} cannot read {from:?}")));
            }
            for &(to, source) in &step.pairs {
                let (a, b) = (before.get(&(from, source)), before.get(&(t, to)));
                let (Some(&a), Some(&b)) = (a, b) else { return Err(bad(format!("no register {source}"))) };
                values.insert((t, to), joined(a, b)?);
            }
        }
    }
    for x in &plan.exchanges {
        let mut memory: HashMap<(u64, u64), (u64, u64)> = HashMap::new();
        for &t in threads.iter().filter(|&&t| x.stores(t)) {
            for (offset, r) in x.stored() {
                let offset = x.store.of(t) ^ offset;
                let Some(&value) = values.get(&(t, r)) else { return Err(bad(format!("no register {r}"))) };
                if offset >= x.elems || memory.insert((t.block, offset), value).is_some() {
                    return Err(bad(format!("offset {offset} is outside or taken")));
                }
            }
        }
        let last = x.offsets.len() as u64 - 1;
        for &t in &threads {
            for line in &x.lines {
                for &(r, number) in &line.registers {
                    let number = x.number.of(t) ^ number;
                    let earlier = if plan.reverse { number + 1..last + 1 } else { 0..number };
                    let Some(&mine) = values.get(&(t, r)) else {
                        return Err(bad(format!("no register {r}")));
                    };
                    let mut sum = mine;
                    // From the nearest block to the farthest.
                    let mut nearest: Vec<u64> = earlier.collect();
                    if !plan.reverse {
                        nearest.reverse();
                    }
                    for block in nearest {
                        let offset = x.load.of(t) ^ line.offset ^ x.offsets[block as usize];
                        let Some(&total) = memory.get(&(t.block, offset)) else {
                            return Err(bad(format!("nothing was stored at offset {offset}")));
                        };
                        sum = joined(total, sum)?;
                    }
                    values.insert((t, r), sum);
                }
            }
        }
    }
    for &t in &threads {
        for r in 0..all.registers() {
            let element = all.element(r, t)?;
            let line = element / size * size;
            let expected = if plan.reverse { (element, line + size - 1) } else { (line, element) };
            let from = plan.copies.get(r as usize).copied().unwrap_or(u32::MAX);
            let got = values.get(&(t, from)).copied();
            if got != Some(expected) {
                return Err(bad(format!("register {r} of {t:?}: {got:?} instead of {expected:?}")));
            }
        }
    }
    Ok(())
}

/// Executes a gather with the given index for each element of the index tensor (its coordinates packed in
/// the order of the dimensions, the axis last).
///
/// # Errors
/// The first result that is not the element that its index names.
pub fn check_gather(
    plan: &GatherPlan,
    source: &LinearLayout,
    indices: &LinearLayout,
    target: &TargetDesc,
    index: &dyn Fn(u64) -> u64,
) -> Result<(), CheckError> {
    let rest = |l: &LinearLayout| l.out_dims().filter(|&d| d != plan.axis).collect::<Vec<_>>();
    let order: Vec<Dim> = rest(source).into_iter().chain([plan.axis]).collect();
    let below: u32 = rest(source).iter().map(|&d| source.out_bits(d)).sum();
    let source = between(plan.detour.as_ref(), source, target)?;
    let (from, to) = (holders(source, order.clone()), holders(indices, order.clone()));
    let size = source.out_size(plan.axis).unwrap_or(1);
    if let Gather::Shared(g) = &plan.gather {
        check_shared_access(&g.store, source, &g.memory, target)?;
    }
    for t in threads(indices, target) {
        for r in 0..to.registers() {
            let asked = to.element(r, t)?;
            let at = index(asked) % size;
            let expected = asked & ((1 << below) - 1) | at << below;
            let got = match &plan.gather {
                Gather::Shuffle(g) => {
                    let read = plan.copies.get(r as usize).copied().unwrap_or(u32::MAX);
                    let lane = g
                        .lane_bits
                        .iter()
                        .fold(t.lane, |lane, &(bit, l)| lane & !(1 << l) | (at >> bit & 1) << l);
                    let which =
                        g.register_bits.iter().enumerate().fold(0, |w, (k, &bit)| w | (at >> bit & 1) << k);
                    let candidate = g.candidates.get(read as usize).and_then(|c| c.get(which as usize));
                    let missing = || CheckError::Malformed(format!("no candidate {which} of register {r}"));
                    from.element((*candidate.ok_or_else(missing)?).into(), Threads { lane, ..t })?
                }
                Gather::Shared(g) => {
                    let read = plan.copies.get(r as usize).copied().unwrap_or(u32::MAX);
                    let Some(number) = g.lookups.iter().position(|&l| l == read) else {
                        return Err(CheckError::Malformed(format!("register {r} is not looked up")));
                    };
                    let bits = g.index.iter().enumerate().filter(|&(bit, _)| at >> bit & 1 == 1);
                    let offset = bits.fold(g.address.of(t) ^ g.offsets[number], |o, (_, x)| o ^ x);
                    let block = t.block % g.memory.in_size(Dim::BLOCK).unwrap_or(1);
                    holders(&g.memory, order.clone()).place(offset, block)?
                }
            };
            if got != expected {
                return Err(CheckError::WrongElement { register: r, thread: t, got: Some(got), expected });
            }
        }
    }
    Ok(())
}

/// Executes a histogram in which every element falls into bin `element % bins`.
///
/// # Errors
/// Elements that are counted more or less than once, or what is wrong with the accesses to the bins.
pub fn check_histogram(
    plan: &HistogramPlan,
    source: &LinearLayout,
    result: &LinearLayout,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let memory = result.out_dims().next().map(|dim| LinearLayout::identity_1d(plan.bins, Dim::OFFSET, dim));
    let Some(Ok(memory)) = memory else { return Err(CheckError::Malformed("no bins".into())) };
    check_shared_access(&plan.clear, result, &memory, target)?;
    check_shared_access(&plan.load, result, &memory, target)?;
    let source = between(plan.detour.as_ref(), source, target)?;
    let all = holders(source, source.out_dims().collect());
    // Every block has bins of its own.
    let blocks = [source, result].map(|l| l.in_size(Dim::BLOCK).unwrap_or(1)).into_iter().max().unwrap_or(1);
    let lanes = threads(source, target);
    for block in 0..blocks {
        let mut counted = vec![0u64; 1usize << source.total_out_bits()];
        let mine = lanes.iter().filter(|t| t.block == 0).map(|&t| Threads { block, ..t });
        for t in mine.filter(|&t| plan.duplicates.is_clear(t)) {
            for &r in &plan.registers {
                counted[all.element(r.into(), t)? as usize] += 1;
            }
        }
        if let Some(element) = counted.iter().position(|&n| n != 1) {
            let reason = format!("element {element} counts {} times in block {block}", counted[element]);
            return Err(CheckError::Malformed(reason));
        }
    }
    Ok(())
}
