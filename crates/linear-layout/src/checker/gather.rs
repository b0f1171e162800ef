//! Execution of gathers and histograms.

use super::conversion::Holders;
use super::conversion::check_together;
use super::{CheckError, check_shared_access, count, is_clear, number};
use crate::plan::{Cost, Detour, Gather, GatherPlan, GatherShared, GatherShuffle, HistogramPlan, Threads};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

pub(super) fn threads(layout: &LinearLayout, target: &TargetDesc) -> Vec<Threads> {
    let size = |dim| layout.in_size(dim).unwrap_or(1);
    let mut all = Vec::new();
    for block in 0..size(Dim::BLOCK) {
        for warp in 0..size(Dim::WARP) {
            all.extend((0..u64::from(target.lanes)).map(|lane| Threads { lane, warp, block }));
        }
    }
    all
}

pub(super) fn holders(layout: &LinearLayout, order: Vec<Dim>) -> Holders<'_> {
    Holders { layout, order }
}

/// The layout that the work is done in, once the conversions of every operand to it, and of results of `back` bits
/// from it, are right; what they cost is added to `cost`.
pub(super) fn between<'a>(
    detour: Option<&'a Detour>,
    operands: &'a LinearLayout,
    elem_bits: &[u32],
    back: &[u32],
    cost: &mut Cost,
    target: &TargetDesc,
) -> Result<&'a LinearLayout, CheckError> {
    let Some(detour) = detour else { return Ok(operands) };
    let ways = [
        (&detour.before, elem_bits, operands, &detour.layout),
        (&detour.after, back, &detour.layout, operands),
    ];
    for (conversions, elem_bits, from, to) in ways {
        let together = check_together(conversions, elem_bits, from, to, target)?;
        count::add(cost, &together);
    }
    Ok(&detour.layout)
}

/// How often as many wavefronts additions to bins at random take as to bins side by side: 32 throws into 32 bins hit the fullest
/// bin 3.5 times on average.
const RANDOM: f64 = 3.5;
/// Warps whose lanes draw indices to find out how many wavefronts lookups take, and how far off a plan may be.
const DRAWS: u64 = 400;
const OFF: f64 = 0.25;

/// Executes a gather of elements of `elem_bits` with the given index for each element of the index tensor (its
/// coordinates packed in the order of the dimensions, the axis last). Returns the cost that was counted.
///
/// # Errors
/// The first result that is not the element that its index names, or a number of the cost other than what the
/// execution takes.
pub fn check_gather(
    plan: &GatherPlan,
    source: &LinearLayout,
    indices: &LinearLayout,
    elem_bits: u32,
    target: &TargetDesc,
    index: &dyn Fn(u64) -> u64,
) -> Result<Cost, CheckError> {
    let rest = |l: &LinearLayout| l.out_dims().filter(|&d| d != plan.axis).collect::<Vec<_>>();
    let order: Vec<Dim> = rest(source).into_iter().chain([plan.axis]).collect();
    let below: u32 = rest(source).iter().map(|&d| source.out_bits(d)).sum();
    let mut cost = Cost::default();
    let source = between(plan.detour.as_ref(), source, &[elem_bits], &[], &mut cost, target)?;
    let (from, to) = (holders(source, order.clone()), holders(indices, order.clone()));
    let size = source.out_size(plan.axis).unwrap_or(1);
    count::same("registers with replicas", plan.copies.len() as u64, to.registers())?;
    for t in threads(indices, target) {
        for r in 0..to.registers() {
            let asked = to.element(r, t)?;
            let at = index(asked) % size;
            let expected = asked & ((1 << below) - 1) | at << below;
            let read = plan.copies.get(r as usize).copied().unwrap_or(u32::MAX);
            let got = match &plan.gather {
                Gather::Shuffle(g) => shuffled(g, &from, read, at, t)?,
                Gather::Shared(g) => {
                    // A load has the index of its first lookup.
                    let place = g.lookups.iter().position(|&l| l == read).unwrap_or(0);
                    let first = g.lookups.get(place - place % g.vector.max(1) as usize).unwrap_or(&read);
                    let at = index(to.element((*first).into(), t)?) % size;
                    looked_up(g, &holders(&g.memory, order.clone()), read, at, t)?
                }
            };
            if got != expected {
                return Err(CheckError::WrongElement { register: r, thread: t, got: Some(got), expected });
            }
        }
    }
    let warps = indices.in_size(Dim::WARP).unwrap_or(1);
    let words = u64::from(elem_bits.div_ceil(32));
    let looked_up =
        plan.copies.iter().enumerate().filter(|&(r, &from)| r as u32 == from).map(|(r, _)| r as u32);
    let own = match &plan.gather {
        Gather::Shuffle(g) => shuffle_cost(g, looked_up, words, warps, target)?,
        Gather::Shared(g) => {
            count::same("lookups", g.lookups.len() as u64, looked_up.count() as u64)?;
            lookup_cost(g, (source, indices), words, warps, target)?
        }
    };
    count::add(&mut cost, &own);
    count::agree(&cost, &plan.cost)?;
    Ok(cost)
}

/// What a thread gets by shuffles.
fn shuffled(
    g: &GatherShuffle,
    from: &Holders<'_>,
    read: u32,
    at: u64,
    t: Threads,
) -> Result<u64, CheckError> {
    let lane = g.lane_bits.iter().fold(t.lane, |lane, &(bit, l)| lane & !(1 << l) | (at >> bit & 1) << l);
    let which = g.register_bits.iter().enumerate().fold(0, |w, (k, &bit)| w | (at >> bit & 1) << k);
    let candidate = g.candidates.get(read as usize).and_then(|c| c.get(which as usize));
    let missing = || CheckError::Malformed(format!("no candidate {which} of register {read}"));
    from.element((*candidate.ok_or_else(missing)?).into(), Threads { lane, ..t })
}

/// What a thread finds in shared memory.
fn looked_up(
    g: &GatherShared,
    memory: &Holders<'_>,
    read: u32,
    at: u64,
    t: Threads,
) -> Result<u64, CheckError> {
    let place = g.lookups.iter().position(|&l| l == read).and_then(|i| g.offsets.get(i));
    let missing = || CheckError::Malformed(format!("register {read} is not looked up"));
    let bits = g.index.iter().enumerate().filter(|&(bit, _)| at >> bit & 1 == 1);
    let offset = bits.fold(number(&g.address, t) ^ place.ok_or_else(missing)?, |o, (_, x)| o ^ x);
    memory.place(offset, t.block % g.memory.in_size(Dim::BLOCK).unwrap_or(1))
}

/// The different distances that bits move by.
fn distances(moved: impl Iterator<Item = i64>) -> u64 {
    moved.collect::<std::collections::BTreeSet<i64>>().len() as u64
}

/// Wavefronts of a lookup of one word by a warp whose lanes draw indices, on average.
fn drawn_wavefronts(
    g: &GatherShared,
    indices: &LinearLayout,
    target: &TargetDesc,
) -> Result<f64, CheckError> {
    let bytes = loaded(g);
    let service = target.service(bytes, Direction::Load, false);
    let all: Vec<Dim> = indices.out_dims().collect();
    let asked = holders(indices, all);
    let bits = u64::from(g.store.access.storage_bits.max(8));
    let (mut seed, mut sum) = (0x9e37_79b9_7f4a_7c15_u64, 0);
    for _ in 0..DRAWS {
        // Lanes with replicas of an index draw one.
        let mut drawn: Vec<(u64, u64)> = Vec::new();
        // A phase of the first lane.
        let mut words: Vec<u64> = Vec::new();
        for nth in 0..1u64 << service.lanes.len() {
            let lane = service.lanes.iter().enumerate().filter(|(bit, _)| nth >> bit & 1 == 1);
            let t = Threads { lane: lane.fold(0, |lane, (_, l)| lane ^ l), warp: 0, block: 0 };
            let element = asked.element(0, t)?;
            let known = drawn.iter().find(|(other, _)| *other == element).map(|(_, at)| *at);
            let at = known.unwrap_or_else(|| {
                seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                seed >> 33
            });
            drawn.push((element, at));
            let bits_of = g.index.iter().enumerate().filter(|&(bit, _)| at >> bit & 1 == 1);
            let offset = bits_of.fold(number(&g.address, t), |o, (_, x)| o ^ x);
            let first = offset * bits / 8 / u64::from(target.bank_width);
            words.extend(first..first + u64::from(bytes / target.bank_width));
        }
        words.sort_unstable();
        words.dedup();
        let in_bank = |bank| words.iter().filter(|w| *w % u64::from(service.banks) == bank).count();
        sum += (0..u64::from(service.banks)).map(in_bank).max().unwrap_or(0);
    }
    Ok((target.lanes >> service.lanes.len()) as f64 * sum as f64 / DRAWS as f64)
}

/// Bytes of one load, a word at least.
fn loaded(g: &GatherShared) -> u32 {
    let several = if g.vector > 1 { g.vector * g.store.access.storage_bits.max(8) / 8 } else { 0 };
    several.max(4)
}

/// One shuffle for each candidate, one select fewer, and an instruction for each bit of the index that chooses among these.
fn shuffle_cost(
    g: &GatherShuffle,
    looked_up: impl Iterator<Item = u32>,
    words: u64,
    warps: u64,
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let mut cost = Cost::default();
    for register in looked_up {
        let candidates = g.candidates.get(register as usize).map_or(0, |c| c.len() as u64);
        count::same("candidates", candidates, 1 << g.register_bits.len())?;
        cost.shuffles += candidates * words;
        cost.selects += (candidates - 1) * words;
        let moved = g.lane_bits.iter().map(|(bit, lane)| i64::from(*lane) - i64::from(*bit));
        cost.address_ops += distances(moved) + g.register_bits.len() as u64;
    }
    let alu = (cost.selects + cost.address_ops) as f64 * target.cost.alu;
    let each = cost.shuffles as f64 * target.cost.shuffle + alu;
    cost.cycles = target.cost.shuffle_latency + warps as f64 * each;
    Ok(cost)
}

/// One load and one address for each vector of lookups, which conflict as drawn indices do; the store of everything before a barrier.
fn lookup_cost(
    g: &GatherShared,
    (source, indices): (&LinearLayout, &LinearLayout),
    words: u64,
    warps: u64,
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    check_shared_access(&g.store, source, &g.memory, target)?;
    let bytes =
        g.memory.in_size(Dim::OFFSET).unwrap_or(1) * u64::from(g.store.access.storage_bits.max(8)) / 8;
    count::same("bytes of shared memory", bytes, g.shared_bytes)?;
    let (stored, n) = (&g.store.access, g.lookups.len() as u64);
    // What one load takes lies side by side.
    let (vector, words) = (u64::from(g.vector.max(1)), if g.vector > 1 { 1 } else { words });
    for load in g.offsets.chunks(g.vector.max(1) as usize) {
        if !load.iter().copied().eq((0..load.len() as u64).map(|k| load[0] + k)) {
            return Err(CheckError::Malformed("lookups of one load lie apart".into()));
        }
    }
    let aligned = |offset: &u64| offset.is_multiple_of(vector);
    let bases = g.address.lane.iter().chain(&g.address.warp).chain(&g.address.block).chain(&g.index);
    if !n.is_multiple_of(vector) || !bases.chain(g.offsets.iter().step_by(vector as usize)).all(aligned) {
        return Err(CheckError::Malformed("a load is not aligned".into()));
    }
    let loads = n / vector;
    let word_lanes = 1u64 << target.phase_lanes(loaded(g), Direction::Load).len();
    let reads = loads * words * (u64::from(target.lanes) / word_lanes);
    let drawn = drawn_wavefronts(g, indices, target)?;
    if (g.wavefronts / drawn - 1.0).abs() > OFF {
        let reason = format!("a lookup is said to take {} wavefronts, and takes {drawn}", g.wavefronts);
        return Err(CheckError::Malformed(reason));
    }
    let scale = u64::from(stored.storage_bits.max(8) / 8);
    let bits = (0..64).flat_map(|to| (0..g.index.len()).map(move |bit| (bit, to)));
    let moved = bits.filter(|(bit, to)| (g.index[*bit] * scale) >> to & 1 == 1);
    // A shift, and what takes a mask and XORs, for each distance; and what adds the offset.
    let moved = (2 * distances(moved.map(|(bit, to)| to - bit as i64)) + 1) * loads;
    let wavefronts = (loads * words) as f64 * g.wavefronts;
    let load = wavefronts * target.cost.wavefront
        + loads as f64 * target.cost.issue
        + moved as f64 * target.cost.alu;
    let store = count::checked_cycles(stored, target);
    Ok(Cost {
        cycles: 1.5 * target.cost.shared_latency + target.cost.block_barrier + warps as f64 * (store + load),
        stores: stored.count,
        loads,
        barriers: 1,
        permutes: stored.packing_ops,
        address_ops: stored.address_ops + moved,
        wavefronts: stored.wavefronts + wavefronts as u64,
        minimum_wavefronts: stored.minimum + reads,
        ..Cost::default()
    })
}

/// Executes a histogram of elements of `elem_bits` in which every element falls into bin `element % bins`. Returns
/// the cost that was counted.
///
/// # Errors
/// Elements that are counted more or less than once, what is wrong with the accesses to the bins, or a number of the
/// cost other than what the execution takes.
pub fn check_histogram(
    plan: &HistogramPlan,
    source: &LinearLayout,
    result: &LinearLayout,
    elem_bits: u32,
    target: &TargetDesc,
) -> Result<Cost, CheckError> {
    let memory = result.out_dims().next().map(|dim| LinearLayout::identity_1d(plan.bins, Dim::OFFSET, dim));
    let Some(Ok(memory)) = memory else { return Err(CheckError::Malformed("no bins".into())) };
    for (access, direction) in [(&plan.clear, Direction::Store), (&plan.load, Direction::Load)] {
        if access.access.direction != direction {
            return Err(CheckError::Malformed("bins are stored to be cleared, and loaded to be read".into()));
        }
        check_shared_access(access, result, &memory, target)?;
    }
    count::same("bytes of shared memory", 4 * plan.bins, plan.shared_bytes)?;
    let mut cost = Cost::default();
    let source = between(plan.detour.as_ref(), source, &[elem_bits], &[], &mut cost, target)?;
    let all = holders(source, source.out_dims().collect());
    // Every block has bins of its own.
    let blocks = [source, result].map(|l| l.in_size(Dim::BLOCK).unwrap_or(1)).into_iter().max().unwrap_or(1);
    let lanes = threads(source, target);
    for block in 0..blocks {
        let mut counted = vec![0u64; 1usize << source.total_out_bits()];
        let mine = lanes.iter().filter(|t| t.block == 0).map(|&t| Threads { block, ..t });
        for t in mine.filter(|&t| is_clear(&plan.duplicates, t)) {
            for &r in &plan.registers {
                counted[all.element(r.into(), t)? as usize] += 1;
            }
        }
        if let Some(element) = counted.iter().position(|&n| n != 1) {
            let reason = format!("element {element} counts {} times in block {block}", counted[element]);
            return Err(CheckError::Malformed(reason));
        }
    }
    let own = histogram_cost(plan, source.in_size(Dim::WARP).unwrap_or(1), target);
    count::add(&mut cost, &own);
    count::agree(&cost, &plan.cost)?;
    Ok(cost)
}

/// Clear, barrier, one addition at random for each element, barrier, load: two and a half times the latency of a load.
fn histogram_cost(plan: &HistogramPlan, warps: u64, target: &TargetDesc) -> Cost {
    let (clear, load, n) = (&plan.clear.access, &plan.load.access, plan.registers.len() as u64);
    let atomics = n as f64 * (RANDOM * target.cost.wavefront + target.cost.issue);
    let access = |a| count::checked_cycles(a, target);
    Cost {
        cycles: 2.5 * target.cost.shared_latency
            + 2.0 * target.cost.block_barrier
            + warps as f64 * (access(clear) + atomics + access(load)),
        permutes: clear.packing_ops + load.packing_ops,
        address_ops: clear.address_ops + load.address_ops,
        stores: clear.count + n,
        loads: load.count,
        barriers: 2,
        wavefronts: clear.wavefronts + load.wavefronts + (n as f64 * RANDOM) as u64,
        minimum_wavefronts: clear.minimum + load.minimum + n,
        ..Cost::default()
    }
}
