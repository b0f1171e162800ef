//! Execution of loads that write shared memory, the lanes of a warp one after the other.

use std::collections::BTreeSet;

use super::conversion::Holders;
use super::gather::threads;
use super::memory::Memory;
use super::vector::Global;
use super::{CheckError, count, is_clear, number};
use crate::plan::{AddressFacts, LdsLoadPlan, MemoryInstruction, Threads};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// Executes `plan` between pointers in the layout `distributed`, of which `facts` are known, and memory in the layout
/// `memory` with padding as the caller has it: every lane writes the elements whose pointer it was given where the hardware
/// puts them (CDNA3 ISA, "Memory Buffer Load to LDS": the warp's address plus the lane's number times the bytes of a lane),
/// and in the end every element must lie where it belongs, once.
///
/// # Errors
/// The first thing found wrong: data, addresses, an instruction that the target has not, or other counts than planned.
pub fn check_lds_load(
    plan: &LdsLoadPlan,
    distributed: &LinearLayout,
    memory: &LinearLayout,
    padding: &[(u64, u64)],
    facts: &AddressFacts,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let elems = instruction(plan, target)?;
    let global = Global { layout: distributed, facts };
    let holders = Holders { layout: distributed, order: memory.out_dims().collect() };
    let offsets = memory.in_size(Dim::OFFSET).unwrap_or(1);
    let place = |o: u64| o + padding.iter().map(|&(every, pad)| o / every * pad).sum::<u64>();
    let threads = threads(distributed, target);
    let blocks = 1 + threads.iter().map(|t| t.block).max().unwrap_or(0);
    let mut ram = Memory::new(blocks as usize, place(offsets) as usize + 1);
    let access = &plan.access;
    for &t in threads.iter().filter(|t| is_clear(&access.inactive, **t)) {
        for (i, load) in access.accesses.iter().enumerate() {
            let lane = source(plan, i, t)?;
            let from = Threads { lane, ..t };
            global.run(&load.registers, from)?;
            // One address for all lanes: that of the first.
            let first = number(&access.address, Threads { lane: 0, ..t }) ^ load.offset;
            let base = place(first) + t.lane * elems;
            // Of words, as M0 counts them; Triton 3.9 copies 16 bytes a lane to multiples of 8.
            if !(base * u64::from(access.storage_bits)).is_multiple_of(32) {
                return Err(CheckError::Misaligned { offset: base, elems });
            }
            for (at, &register) in (base..).zip(&load.registers) {
                ram.write(t.block, at, holders.element(register.into(), from)?)?;
            }
        }
    }
    for block in 0..blocks {
        for offset in 0..offsets {
            let shift = memory.in_shift(Dim::BLOCK).unwrap_or(0);
            let part = (block % memory.in_size(Dim::BLOCK).unwrap_or(1)).checked_shl(shift).unwrap_or(0);
            let expected = memory.apply_packed(offset | part);
            let got = ram.read(block, place(offset))?;
            if got != Some(expected) {
                let reason = format!("offset {offset} holds {got:?}, it should hold {expected}");
                return Err(CheckError::Malformed(reason));
            }
        }
    }
    counts(plan, &threads, elems * u64::from(access.storage_bits) / 8, target)
}

/// Elements that a lane copies at once.
fn instruction(plan: &LdsLoadPlan, target: &TargetDesc) -> Result<u64, CheckError> {
    let (name, bits) = match plan.access.instruction {
        MemoryInstruction::Vector { bits: 32 } if target.primitives.lds_loads => {
            ("global_load_lds_dword", 32)
        }
        MemoryInstruction::Vector { bits: 128 } if target.primitives.lds_loads_b128 => {
            ("global_load_lds_dwordx4", 128)
        }
        other => return Err(CheckError::Malformed(format!("no load to shared memory by {other:?}"))),
    };
    if plan.mnemonic != name {
        return Err(CheckError::Malformed(format!("{} is {name}", plan.mnemonic)));
    }
    let elems = u64::from(bits / plan.access.storage_bits);
    match plan.access.accesses.iter().find(|load| load.registers.len() as u64 != elems) {
        Some(load) => Err(CheckError::Malformed(format!("{} elements in {bits} bits", load.registers.len()))),
        None => Ok(elems),
    }
}

/// The lane whose elements `t` copies in a load.
fn source(plan: &LdsLoadPlan, load: usize, t: Threads) -> Result<u64, CheckError> {
    let Some(sources) = &plan.sources else { return Ok(t.lane) };
    let Some(own) = sources.loads.get(load) else {
        return Err(CheckError::Malformed(format!("load {load} has no sources")));
    };
    let from = Threads { lane: number(&sources.thread, t) ^ own, ..t };
    if is_clear(&plan.access.inactive, from) {
        Ok(from.lane)
    } else {
        Err(CheckError::Malformed(format!("{t:?} copies for lane {}, which has nothing", from.lane)))
    }
}

/// What the plan counts, counted again.
fn counts(
    plan: &LdsLoadPlan,
    threads: &[Threads],
    bytes: u64,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let access = &plan.access;
    count::same("loads of a warp", access.accesses.len() as u64, access.count)?;
    // What follows in memory takes each bank in turn.
    let lanes =
        threads.iter().filter(|t| t.warp == 0 && t.block == 0 && is_clear(&access.inactive, **t)).count();
    let lines = (lanes as u64 * bytes).div_ceil(u64::from(target.banks * target.bank_width));
    count::same("wavefronts of loads", access.count * lines, access.wavefronts)?;
    count::same("the least wavefronts of loads", access.count * lines, access.minimum)?;
    let warps: BTreeSet<u64> =
        threads.iter().map(|t| number(&access.address, Threads { lane: 0, ..*t })).collect();
    let reached = warps.iter().fold(0, |all, warp| all | warp);
    let computed: BTreeSet<u64> =
        access.accesses.iter().map(|load| load.offset & reached).filter(|offset| *offset != 0).collect();
    count::same("address computations of loads", computed.len() as u64, access.address_ops)
}
