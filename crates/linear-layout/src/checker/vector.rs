//! Execution of accesses to global memory: elements are numbered as they lie there.

use std::collections::{BTreeMap, BTreeSet};

use super::gather::threads;
use super::{CheckError, check_shared_access, count, is_clear};
use crate::plan::{AddressFacts, SharedAccessPlan, Threads, VectorPlan};
use crate::target::TargetDesc;
use crate::{Dim, LinearLayout};

/// A tensor in global memory.
pub(super) struct Global<'a> {
    pub(super) layout: &'a LinearLayout,
    pub(super) facts: &'a AddressFacts,
}

impl Global<'_> {
    /// The number of the element of a register, the first dimension of the order running fastest; of the first of those
    /// that have one address.
    fn index(&self, register: u64, t: Threads) -> Result<u64, CheckError> {
        let l = self.layout;
        let parts =
            [(Dim::REGISTER, register), (Dim::LANE, t.lane), (Dim::WARP, t.warp), (Dim::BLOCK, t.block)];
        let input = parts.iter().fold(0, |word, &(dim, value)| {
            word | (value % l.in_size(dim).unwrap_or(1)) << l.in_shift(dim).unwrap_or(0).min(63)
        });
        let point = l.unpack_out(l.apply_packed(input));
        let (mut index, mut shift) = (0, 0);
        for (i, &dim) in self.facts.order.iter().enumerate() {
            let value = point.iter().find(|p| p.0 == dim).map(|p| p.1);
            let missing = || CheckError::Malformed(format!("no dimension `{dim}`"));
            let value = value.ok_or_else(missing)?;
            let alike = self.facts.repeats.get(i).copied().unwrap_or(1).max(1);
            if !alike.is_power_of_two() {
                return Err(CheckError::Malformed(format!("groups of {alike} elements")));
            }
            index |= (value - value % alike) << shift;
            shift += l.out_bits(dim);
        }
        Ok(index)
    }

    /// The number of the first element of an access, whose registers must be consecutive from there on, in an aligned
    /// run that the facts vouch for.
    pub(super) fn run(&self, registers: &[u32], t: Threads) -> Result<u64, CheckError> {
        let elems = registers.len() as u64;
        let first = self.index(registers.first().copied().unwrap_or(u32::MAX).into(), t)?;
        if elems == 0 || !first.is_multiple_of(elems) {
            return Err(CheckError::Misaligned { offset: first, elems });
        }
        for (expected, &register) in (first..).zip(registers) {
            let got = self.index(register.into(), t)?;
            if got != expected {
                let register = register.into();
                return Err(CheckError::WrongElement { register, thread: t, got: Some(got), expected });
            }
        }
        if self.vouched(elems) {
            Ok(first)
        } else {
            Err(CheckError::Malformed(format!("runs of {elems} elements")))
        }
    }

    /// Whether aligned runs of so many elements are contiguous and share their mask.
    fn vouched(&self, elems: u64) -> bool {
        let aligned = |n: u64| n.max(1).is_multiple_of(elems);
        elems == 1 || aligned(self.facts.contiguous) && aligned(self.facts.mask_constancy)
    }
}

/// Executes `plan` for a tensor in `layout`: every access must be an aligned run in memory that the facts vouch for,
/// every element of a thread be moved once (of those with one address, one), every element of the tensor by one thread only, no wider access fit, and
/// the sectors and lines be those that the first access of a warp touches.
///
/// # Errors
/// The first thing found wrong.
pub fn check_vector(
    plan: &VectorPlan,
    layout: &LinearLayout,
    elem_bits: u32,
    facts: &AddressFacts,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let global = Global { layout, facts };
    let registers = layout.in_size(Dim::REGISTER).unwrap_or(1);
    count::same("bits of an element", plan.elem_bits.into(), elem_bits.into())?;
    count::same("registers with replicas", plan.copies.len() as u64, registers)?;
    let elems = u64::from(plan.vec_elems);
    let bits = elems * u64::from(elem_bits);
    if !bits.is_multiple_of(8) || (elems > 1 && bits > target.max_global_vector_bits.into()) {
        return Err(CheckError::Malformed(format!("accesses of {bits} bits")));
    }
    let threads = threads(layout, target);
    let mut stored = BTreeMap::new();
    for &t in &threads {
        let mut moved = BTreeMap::new();
        for access in &plan.accesses {
            count::same("elements of an access", access.registers.len() as u64, elems)?;
            let first = global.run(&access.registers, t)?;
            for (index, &register) in (first..).zip(&access.registers) {
                if let Some(other) = moved.insert(index, register) {
                    let reason = format!("registers {other} and {register} move element {index}");
                    return Err(CheckError::Malformed(reason));
                }
            }
        }
        for (register, &from) in (0..registers).zip(&plan.copies) {
            let index = global.index(register, t)?;
            if moved.get(&index) != Some(&from) {
                let reason = format!("register {register} is not moved with register {from}");
                return Err(CheckError::Malformed(reason));
            }
        }
        if is_clear(&plan.duplicates, t) {
            moved.keys().for_each(|&index| *stored.entry(index).or_insert(0) += 1);
        }
    }
    let held: BTreeSet<u64> = threads
        .iter()
        .flat_map(|&t| (0..registers).map(move |r| (r, t)))
        .map(|(r, t)| global.index(r, t))
        .collect::<Result<_, _>>()?;
    // What has one address may be loaded by several threads; stores know of no such groups.
    let apart = facts.repeats.is_empty();
    if apart && (!stored.keys().eq(&held) || stored.values().any(|&times| times != 1)) {
        return Err(CheckError::Malformed("elements are not stored by one thread each".into()));
    }
    widest(plan, &global, &threads, target)?;
    pieces(plan, &global, &threads, target)
}

/// Whether accesses of twice as many elements would do.
fn widest(
    plan: &VectorPlan,
    global: &Global<'_>,
    threads: &[Threads],
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let twice = 2 * u64::from(plan.vec_elems);
    let bits = twice * u64::from(plan.elem_bits);
    if bits > target.max_global_vector_bits.into() || !global.vouched(twice) {
        return Ok(());
    }
    let mut places = None;
    for &t in threads {
        let of_registers: Result<Vec<u64>, CheckError> =
            (0..plan.copies.len() as u64).map(|r| global.index(r, t)).collect();
        let of_registers = of_registers?;
        // A register has the same place in its access in every thread.
        let own: Vec<u64> = of_registers.iter().map(|index| index % twice).collect();
        if *places.get_or_insert_with(|| own.clone()) != own {
            return Ok(());
        }
        let held: BTreeSet<u64> = of_registers.into_iter().collect();
        if held.iter().any(|index| (0..twice).any(|i| !held.contains(&(index / twice * twice + i)))) {
            return Ok(());
        }
    }
    Err(CheckError::Malformed(format!("not minimal: accesses of {twice} elements fit")))
}

/// Pieces of memory that the first access of a warp touches; runs beyond those known to be contiguous lie apart.
fn pieces(
    plan: &VectorPlan,
    global: &Global<'_>,
    threads: &[Threads],
    target: &TargetDesc,
) -> Result<(), CheckError> {
    let (Some(access), true) = (plan.accesses.first(), plan.elem_bits.is_power_of_two()) else {
        return Ok(());
    };
    // The largest powers of two that divide them.
    let aligned = |n: u64| 1u64 << n.max(1).trailing_zeros();
    let run = aligned(global.facts.neighbours).max(aligned(global.facts.contiguous));
    let (mut elements, mut elements_of_all) = (BTreeSet::new(), BTreeSet::new());
    for lane in 0..u64::from(target.lanes) {
        for &register in &access.registers {
            elements.insert(global.index(register.into(), Threads { lane, ..Threads::default() })?);
        }
    }
    let whole = run * u64::from(plan.elem_bits);
    let row = global.facts.order.first().and_then(|dim| global.layout.out_size(*dim)).unwrap_or(1);
    for &t in threads {
        for register in plan.accesses.iter().flat_map(|access| &access.registers) {
            elements_of_all.insert(global.index((*register).into(), Threads { block: 0, ..t })?);
        }
    }
    for (what, bits, planned) in
        [("sectors", 256, plan.sectors), ("lines", 1024, plan.lines), ("runs", whole, plan.runs)]
    {
        // Neighbours that are a stride apart share pieces, too, of which rows have a power of two, nearest to the stride.
        let stride = if what == "runs" || run > 1 { 0 } else { global.facts.stride_bits };
        let within = |n: u64| n.saturating_mul(stride).min(u64::from(u32::MAX)).pow(2) <= 2 * bits * bits;
        let share = |n: &u64| stride > 0 && within(*n) && *n <= row;
        let near = (0..16).map(|bit| 1u64 << bit).filter(share).max().unwrap_or(1);
        let piece = |index: &u64| match near {
            1 => (index / run, index % run * u64::from(plan.elem_bits) / bits),
            near => (index / near, 0),
        };
        let touched: BTreeSet<_> = elements.iter().map(piece).collect();
        count::same(what, touched.len() as u64, planned)?;
        if what == "sectors" {
            let all: BTreeSet<_> = elements_of_all.iter().map(piece).collect();
            count::same("sectors of all accesses", all.len() as u64, plan.all_sectors)?;
        }
    }
    let bytes = |elements: u64| (elements * u64::from(plan.elem_bits)).div_ceil(8);
    count::same("bytes of a run", bytes(elements.len() as u64 / plan.runs.max(1)), plan.run_bytes)?;
    count::same("bytes that runs are aligned to", bytes(aligned(global.facts.contiguous)), plan.run_alignment)
}

/// Executes copies from global to shared memory that pass through no registers: right in shared memory as stores are,
/// and each an aligned run in global memory, of a size that the target copies.
///
/// # Errors
/// As [`check_shared_access`], and the first access that is no such run.
pub fn check_async_copy(
    plan: &SharedAccessPlan,
    distributed: &LinearLayout,
    memory: &LinearLayout,
    facts: &AddressFacts,
    target: &TargetDesc,
) -> Result<(), CheckError> {
    check_shared_access(plan, distributed, memory, target)?;
    let global = Global { layout: distributed, facts };
    for &t in &threads(distributed, target) {
        for access in &plan.access.accesses {
            global.run(&access.registers, t)?;
        }
    }
    let bytes = plan.access.instruction.bits_per_lane() / 8;
    // PTX ISA, "cp.async": `.cg` copies 16 bytes, past the L1. LLVM 22, `IntrinsicsAMDGPU`: `global.load.async.to.lds`.
    let row = facts.neighbours * u64::from(plan.access.storage_bits) / 8;
    let is_table = row <= 16 && facts.within <= 32 * 1024;
    let name = match (target.primitives.cp_async, target.primitives.async_to_lds, bytes) {
        (true, _, 16) if !is_table => "cp.async.cg.shared.global 16".to_owned(),
        (true, _, 4 | 8 | 16) => format!("cp.async.ca.shared.global {bytes}"),
        (false, true, 1 | 4 | 8 | 16) => format!("global_load_async_to_lds_b{}", 8 * bytes),
        _ => return Err(CheckError::Malformed(format!("no copy of {bytes} bytes"))),
    };
    if name != plan.mnemonic {
        return Err(CheckError::Malformed(format!("{} is {name}", plan.mnemonic)));
    }
    let through_l1 = u64::from(name.starts_with("cp.async.ca"));
    count::same("whether copies go through the L1", u64::from(plan.through_l1), through_l1)
}
