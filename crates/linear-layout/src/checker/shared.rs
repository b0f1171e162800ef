//! Execution of accesses to shared memory of a given layout.

use std::collections::HashMap;

use super::CheckError;
use super::conversion::Holders;
use super::memory::{Memory, MemoryReport, execute};
use crate::plan::{SharedAccessPlan, Threads};
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
    let mut report = MemoryReport::default();
    let access = &plan.access;
    execute(access, 0, warps, blocks, target, &mut ram, &plan.padding, &mut registers, &mut report)?;
    if let Some(error) = failure {
        return Err(error);
    }
    if load {
        for block in 0..blocks {
            for warp in 0..warps {
                for lane in 0..u64::from(target.lanes) {
                    let thread = Threads { lane, warp, block };
                    for register in 0..holders.registers() {
                        let from = plan.access.copies.get(register as usize).copied().unwrap_or(u32::MAX);
                        let got = held.get(&(thread, from.into())).copied().flatten();
                        let expected = holders.element(register, thread)?;
                        if got != Some(expected) {
                            return Err(CheckError::WrongElement { register, thread, got, expected });
                        }
                    }
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
    let what = if load { "load" } else { "store" };
    let first = report.wavefronts.iter().find(|&(&(_, warp), _)| warp == 0);
    for (&(_, warp), &got) in if plan.padding.is_empty() { None } else { first }.into_iter() {
        if got != access.wavefronts {
            return Err(CheckError::Wavefronts { what, warp, got, expected: access.wavefronts });
        }
    }
    if plan.padding.is_empty() {
        for (&(_, warp), &got) in &report.wavefronts {
            if got != access.wavefronts {
                return Err(CheckError::Wavefronts { what, warp, got, expected: access.wavefronts });
            }
        }
    }
    Ok(report)
}
