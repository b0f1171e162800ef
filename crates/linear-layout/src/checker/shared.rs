//! Execution of accesses to shared memory of a given layout.

use std::collections::{BTreeSet, HashMap};

use super::conversion::Holders;
use super::memory::{Memory, MemoryReport, counted, execute, moved_words, permutes};
use super::{CheckError, count};
use crate::plan::{AccessPlan, SharedAccessPlan, Threads};
use crate::target::{Direction, TargetDesc};
use crate::{Dim, LinearLayout};

/// Executes `plan` between labelled registers in the layout `distributed` and memory in the layout
/// `memory`. A load must fill every register with its element; a store must leave at every offset that it
/// touches the element that belongs there, and all elements somewhere.
///
/// # Errors
/// The first thing found wrong: data, addresses, or a number of wavefronts other than planned.
pub fn check_shared_access(
    plan: &SharedAccessPlan,
    distributed: &LinearLayout,
    memory: &LinearLayout,
    target: &TargetDesc,
) -> Result<MemoryReport, CheckError> {
    let order: Vec<Dim> = memory.out_dims().collect();
    let holders = Holders { layout: distributed, order };
    let size = |l: &LinearLayout, dim| l.in_size(dim).unwrap_or(1);
    let warps = size(distributed, Dim::WARP);
    let blocks = size(distributed, Dim::BLOCK).max(size(memory, Dim::BLOCK));
    // Partition after partition.
    let part = size(memory, Dim::OFFSET);
    let offsets = part * size(memory, Dim::PARTITION);
    let place = |o: u64| o + plan.padding.iter().map(|&(every, pad)| o / every * pad).sum::<u64>();
    let belongs = |block: u64, offset: u64| {
        let shift = memory.in_shift(Dim::BLOCK).unwrap_or(0);
        let block = block % size(memory, Dim::BLOCK);
        let word = |dim, value: u64| value.checked_shl(memory.in_shift(dim).unwrap_or(0)).unwrap_or(0);
        let place = word(Dim::OFFSET, offset % part) | word(Dim::PARTITION, offset / part);
        memory.apply_packed(place | block.checked_shl(shift).unwrap_or(0))
    };
    let mut ram = Memory::new(blocks as usize, place(offsets) as usize + 1);
    let load = plan.access.direction == Direction::Load;
    if load {
        for block in 0..blocks {
            for offset in 0..offsets {
                ram.place(block, place(offset), belongs(block, offset))?;
            }
        }
    }
    if let Some(access) = plan.access.accesses.iter().find(|a| a.registers.len() as u64 > part) {
        let n = access.registers.len();
        return Err(CheckError::Malformed(format!("{n} elements of an access in partitions of {part}")));
    }
    let mut held: HashMap<(Threads, u64), Option<u64>> = HashMap::new();
    let mut failure = None;
    let mut registers = |t: Threads, r: u32, value: Option<Option<u64>>| match value {
        Some(value) => held.insert((t, r.into()), value).flatten(),
        None => holders.element(r.into(), t).map_err(|e| failure = Some(e)).ok(),
    };
    let threads: Vec<Threads> = (0..blocks * warps * u64::from(target.lanes))
        .map(|n| (n / u64::from(target.lanes), n % u64::from(target.lanes)))
        .map(|(n, lane)| Threads { lane, warp: n % warps, block: n / warps })
        .collect();
    let mut report = MemoryReport::default();
    let access = &plan.access;
    execute(access, 0, warps, blocks, target, &mut ram, &plan.padding, &mut registers, &mut report)?;
    if let Some(error) = failure {
        return Err(error);
    }
    if load {
        for &thread in &threads {
            for register in 0..holders.registers() {
                let from = plan.access.copies.get(register as usize).copied().unwrap_or(u32::MAX);
                let got = held.get(&(thread, from.into())).copied().flatten();
                let expected = holders.element(register, thread)?;
                if got != Some(expected) {
                    return Err(CheckError::WrongElement { register, thread, got, expected });
                }
            }
        }
    } else {
        let mut seen = vec![false; 1usize << memory.total_out_bits()];
        for block in 0..blocks {
            for offset in 0..offsets {
                if let Some(got) = ram.read(block, place(offset))? {
                    let expected = belongs(block, offset);
                    if got != expected {
                        let reason = format!("offset {offset} holds {got}, it should hold {expected}");
                        return Err(CheckError::Malformed(reason));
                    }
                    seen[got as usize] = true;
                }
            }
        }
        if let Some(missing) = seen.iter().position(|s| !s) {
            return Err(CheckError::Malformed(format!("element {missing} is stored nowhere")));
        }
    }
    count::same("bits of partitions", memory.in_bits(Dim::PARTITION).into(), plan.partition_bits.into())?;
    check_copies(access, &holders, &threads)?;
    if plan.padding.is_empty() {
        counted(access, &report, &threads, target)?;
    } else {
        report_of_first_warp(access, &report)?;
    }
    Ok(report)
}

/// With padding, banks shift from warp to warp; the plan counts those of the first.
fn report_of_first_warp(access: &AccessPlan, report: &MemoryReport) -> Result<(), CheckError> {
    count::same("byte permutes of an access", permutes(access)?, access.packing_ops)?;
    count::same("words moved to their fragments", moved_words(access), access.fragment_moves)?;
    let what = if access.direction == Direction::Load { "load" } else { "store" };
    if let Some((&(_, warp), &got)) = report.wavefronts.iter().next()
        && got != access.wavefronts
    {
        return Err(CheckError::Wavefronts { what, warp, got, expected: access.wavefronts });
    }
    for &n in report.phases.values() {
        count::same("wavefronts of an access at least", n, access.minimum)?;
    }
    for &n in report.instructions.values() {
        count::same("instructions of a warp", n, access.count)?;
    }
    Ok(())
}

/// Each register holds the same element as the one that is moved for it.
fn check_copies(access: &AccessPlan, holders: &Holders<'_>, threads: &[Threads]) -> Result<(), CheckError> {
    count::same("registers with replicas", access.copies.len() as u64, holders.registers())?;
    let moved: BTreeSet<u32> = access.accesses.iter().flat_map(|a| a.registers.iter().copied()).collect();
    for &thread in threads {
        for (register, &from) in (0u64..).zip(&access.copies) {
            let (got, expected) = (holders.element(from.into(), thread)?, holders.element(register, thread)?);
            if got != expected || !moved.contains(&from) {
                return Err(CheckError::WrongElement { register, thread, got: Some(got), expected });
            }
        }
    }
    Ok(())
}
