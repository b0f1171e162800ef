//! Other texts of a kernel that an estimate of the machine code chooses among ([`BY_MACHINE_CODE`]).
//!
//! A text is tried where what is known of the PTX and of the binary made of it says that it may pay, and is kept where the estimated
//! cycles of both binaries ([`cycles`]) say that it does, by a factor that timings decided for each (`docs/ptxas.md`).

use super::pressure::Need;
use super::read::{self, Kernel};
use super::reorder;
use super::search::Limits;
use super::{
    FEWEST_REGISTERS, MOST_REGISTERS, PARTS, SPILLS, WARPS_WITH_DOTS, apart, granted, has, is_alone, latency,
    near, only_kernel, pressure, rename, times, together, unbounded, waits_for_dots, warps_of, warps_of_part,
    with_bound, written_out,
};
use crate::binary;
use crate::machine_code::{Cycles, constants, cycles, parts, stack_loads_in_loops};
use tracing::debug;

/// PTX made of PTX, the cubin of that, and its capability.
type Rewrite = fn(&[u8], &[u8], u32) -> Option<Vec<u8>>;

/// Another text for a kernel, which an estimate of the machine code of both tells to be better or not.
#[derive(Clone, Copy)]
pub(super) struct Variant {
    /// What it is, for users.
    pub(super) name: &'static str,
    /// It, of the PTX and the cubin made of that for a capability, as in 90, where it is worth to be tried.
    pub(super) text: Rewrite,
    /// Whether it has another number of CTAs.
    pub(super) changes_ctas: bool,
    /// Whether the kernel of the PTX had better be the second cubin than the first one.
    pub(super) is_worth: fn(&[u8], &[u8], &[u8], u32) -> bool,
}

/// Those to be tried one after the other, each of the best text before.
pub(super) const BY_MACHINE_CODE: [Variant; 12] = [
    Variant {
        name: "with fewer CTAs for more registers",
        text: with_more_registers,
        changes_ctas: true,
        is_worth: is_worth_more_registers,
    },
    Variant {
        name: "with fewer CTAs for what is computed again from arguments",
        text: with_registers_for_arguments,
        changes_ctas: true,
        is_worth: is_worth_registers_for_arguments,
    },
    Variant {
        name: "with loops written out",
        text: with_loops_written_out,
        changes_ctas: false,
        is_worth: is_worth_writing_out,
    },
    Variant {
        name: "with masked loads in blocks of their own",
        text: with_loads_apart,
        changes_ctas: false,
        is_worth: is_worth_loads_apart,
    },
    Variant {
        name: "with masked loads of few masks in blocks of their own",
        text: with_fewer_loads_apart,
        changes_ctas: false,
        is_worth: is_worth_loads_apart,
    },
    Variant {
        name: "with loops written out, loads of all iterations first and as many CTAs as ptxas likes",
        text: with_loads_of_all_iterations_first,
        changes_ctas: true,
        is_worth: is_worth_loads_of_all_iterations_first,
    },
    Variant {
        name: "with loops written out, loads first and as many CTAs as ptxas likes",
        text: with_loops_written_out_and_loads_first,
        changes_ctas: true,
        is_worth: is_worth_writing_out_with_loads_first,
    },
    Variant {
        name: "with loads first and as many CTAs as ptxas likes",
        text: with_loads_first,
        changes_ctas: true,
        is_worth: is_worth_loads_first,
    },
    Variant {
        name: "with a barrier between loads and what uses them",
        text: with_loads_together,
        changes_ctas: false,
        is_worth: is_worth_loads_together,
    },
    Variant {
        name: "with few registers alive",
        text: with_few_registers_alive,
        changes_ctas: false,
        is_worth: is_worth_few_registers_alive,
    },
    Variant {
        name: "with few registers alive and as many CTAs as ptxas likes",
        text: with_few_registers_alive_and_no_bound,
        changes_ctas: true,
        is_worth: is_worth_few_registers_alive_and_no_bound,
    },
    Variant {
        name: "with as many CTAs as ptxas likes",
        text: with_no_bound,
        changes_ctas: true,
        is_worth: is_worth_its_own_bound,
    },
];

/// Whether warps of the kernel of `ptx` wait for memory at least `share` times as long as they issue instructions.
fn waits_at_least(share: f64, ptx: &[u8], cubin: &[u8], capability: u32) -> Option<bool> {
    let (found, warps) = estimated(ptx, cubin, capability)?;
    let waits = found.alone / warps.max(1.0);
    Some(waits >= share * found.issued)
}

/// Registers that ptxas leaves, or fewer, where it would use more: pairs and fragments do not always fit.
const SPARE: u64 = 2;
/// By how much a kernel has to be faster with fewer CTAs, by the estimate and [`LATENCY`](super::LATENCY) together (timings: `docs/ptxas.md`).
const FASTER_WITH_MORE_REGISTERS: f64 = 1.15;

/// The PTX of one kernel with half of its CTAs, to be tried once `cubin` was made of it for `capability`, as in 90; `None` where it
/// does not need all of the registers that it is granted, warps do not wait for memory so long that it could pay, or it has no more warps
/// than its dots want ([`with_more_ctas`](super::with_more_ctas)).
fn with_more_registers(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let (kernel, bound) = only_kernel(ptx)?;
    if waits_for_dots(ptx, &kernel) && bound * warps_of(kernel.threads) <= WARPS_WITH_DOTS {
        return None;
    }
    let fewer =
        (needs_all(cubin, granted(bound * warps_of(kernel.threads)))? && bound > 1).then_some(bound / 2)?;
    let waits = waits_at_least(FASTER_WITH_MORE_REGISTERS, ptx, cubin, capability)?;
    (waits && !near::loads_are_near(ptx)).then(|| with_bound(ptx, &kernel, fewer))
}

/// Bytes of text up to which starting ptxas is about half of its time.
const SHORT_TEXT: usize = 8 << 10;
/// Iterations of a loop whose loads ptxas puts under way at once.
const UNROLLED: f64 = 4.0;

/// The text of [`BY_MACHINE_CODE`] that a short one is likely to be compared with.
pub(super) fn likely_next(ptx: &[u8]) -> Option<Vec<u8>> {
    let short = Some(ptx).filter(|text| text.len() <= SHORT_TEXT)?;
    with_half_of_the_ctas(short).or_else(|| apart::apart(short, apart::Which::All))
}

/// The PTX of one kernel with half of its CTAs ([`with_more_registers`]), where it is likely to need all of the registers that it is
/// granted: for the loads of several iterations of a loop.
fn with_half_of_the_ctas(ptx: &[u8]) -> Option<Vec<u8>> {
    let (kernel, bound) = only_kernel(ptx).filter(|(_, bound)| *bound > 1)?;
    let granted = granted(bound * warps_of(kernel.threads));
    let needs = pressure::needs(&kernel, FEWEST_REGISTERS)?;
    let unrolled = |need: &Need| need.registers + (UNROLLED - 1.0) * need.flight;
    let loops = needs.iter().filter(|need| need.times > 1.0 && need.flight > 0.0);
    (granted < MOST_REGISTERS
        && loops.map(unrolled).any(|registers| registers + SPARE as f64 >= granted as f64))
    .then(|| with_bound(ptx, &kernel, bound / 2))
}

/// Whether `cubin` uses all registers that ptxas was granted for a thread, fewer than there may be.
fn needs_all(cubin: &[u8], granted: u64) -> Option<bool> {
    Some(u64::from(binary::registers(cubin)?) + SPARE >= granted && granted < MOST_REGISTERS)
}

/// Whether the kernel of `ptx` had better have `fewer` CTAs than be `cubin`.
fn is_worth_more_registers(ptx: &[u8], cubin: &[u8], fewer: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, fewer, capability, is_faster_with_more_registers) && more_stack(cubin, fewer) == 0
}

/// Arguments that are loaded again from which on the next bound that leaves more registers is tried.
const LOADED_AGAIN: usize = 8;
/// By how much a kernel has to be faster then, by the estimate and [`LATENCY`](super::LATENCY) together.
const FASTER_WITH_ARGUMENTS: f64 = 1.05;

/// The PTX of one kernel with the next bound that leaves a thread more registers, to be tried once `cubin` was made of it for
/// `capability`, as in 90; `None` where it does not need all of those that it is granted, or loads few arguments more often than the PTX
/// says. Where registers are short, ptxas computes again what follows from arguments and constants wherever it is wanted.
fn with_registers_for_arguments(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let (kernel, bound) = only_kernel(ptx)?;
    let warps = warps_of(kernel.threads);
    let have = granted(bound * warps);
    let loads = times(ptx, b"ld.param");
    if !needs_all(cubin, have)? || constants(cubin, capability)? < loads + LOADED_AGAIN {
        return None;
    }
    let fewer = (1..bound).rev().find(|ctas| granted(ctas * warps) > have)?;
    Some(with_bound(ptx, &kernel, fewer))
}

/// Whether the kernel of `ptx` had better have `fewer` CTAs than be `cubin`, which computes again what follows from arguments.
fn is_worth_registers_for_arguments(ptx: &[u8], cubin: &[u8], fewer: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, fewer, capability, is_faster_with_arguments) && more_stack(cubin, fewer) == 0
}

fn is_faster_with_arguments(before: Estimated, after: Estimated) -> bool {
    let time = |(found, warps): Estimated| found.shared_by(warps) * latency(warps * PARTS as f64);
    time(before) >= FASTER_WITH_ARGUMENTS * time(after)
}

/// Cycles of a kernel, and the warps that share a part of a multiprocessor.
type Estimated = (Cycles, f64);

/// Those of `cubin`, another one of whose kernel was made of `ptx`.
fn estimated(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Estimated> {
    let (kernel, _) = only_kernel(ptx)?;
    let (found, warps) = (cycles(cubin, capability)?, warps_of_part(kernel.threads, cubin)?);
    debug!(found.alone, found.issued, found.loads, warps, "cycles of machine code");
    Some((found, warps))
}

/// Whether `other`, a second cubin of the kernel of `ptx`, is faster than `cubin`, as `faster` says of their estimates.
fn is_faster(
    ptx: &[u8],
    cubin: &[u8],
    other: &[u8],
    capability: u32,
    faster: impl Fn(Estimated, Estimated) -> bool,
) -> bool {
    let both = estimated(ptx, cubin, capability).zip(estimated(ptx, other, capability));
    both.is_some_and(|(before, after)| faster(before, after))
}

/// Whether code is `factor` times as fast, warps sharing a part of a multiprocessor: not by room for more of them, which the bound was
/// chosen to leave or not to.
fn is_faster_with_as_many_warps(factor: f64, (before, warps): Estimated, (after, room): Estimated) -> bool {
    before.shared_by(warps) >= factor * after.shared_by(room.min(warps))
}

/// Whether one way through a kernel has as many loads as another that is compared with it, or few more.
fn loads_as_much(before: Cycles, after: Cycles) -> bool {
    after.loads <= MORE_LOADS * before.loads
}

/// Bytes of stack that a thread of `other` has more than one of `cubin`; 0 where it has fewer.
fn more_stack(cubin: &[u8], other: &[u8]) -> u32 {
    let stack = |cubin| binary::stack_bytes(cubin).unwrap_or(0);
    stack(other).saturating_sub(stack(cubin))
}

/// Whether fewer warps with more registers each are faster: for what the estimate leaves out, fewer hide less.
fn is_faster_with_more_registers(before: Estimated, after: Estimated) -> bool {
    let time = |(found, warps): Estimated| found.each(warps) * latency(warps * PARTS as f64);
    time(before) >= FASTER_WITH_MORE_REGISTERS * time(after)
}

/// By how much masked loads have to be faster in blocks of their own, by the estimate, which is not that exact (timings:
/// `docs/ptxas.md`).
const FASTER_APART: f64 = 1.25;
/// How many times the loads of one way through a kernel may be those of another that is compared with it.
const MORE_LOADS: f64 = 1.1;
/// Bytes of stack that they may cost a thread.
const STACK_APART: u32 = 64;

/// The PTX of one kernel with its masked loads in blocks of their own, to be tried once `cubin` was made of it for `capability`, as
/// in 90; `None` where there are few, or warps do not wait for them so long that it could pay.
fn with_loads_apart(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let waits = waits_at_least(FASTER_APART, ptx, cubin, capability)?;
    (waits && !near::loads_are_near(ptx)).then(|| apart::apart(ptx, apart::Which::All))?
}

/// The same with loads of few masks, where there are others.
fn with_fewer_loads_apart(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let all = with_loads_apart(ptx, cubin, capability)?;
    apart::apart(ptx, apart::Which::OfFewMasks).filter(|few| *few != all)
}

/// Whether the kernel of `ptx` had better be `apart`, with its masked loads in blocks of their own, than `cubin`.
fn is_worth_loads_apart(ptx: &[u8], cubin: &[u8], apart: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, apart, capability, is_faster_apart) && more_stack(cubin, apart) <= STACK_APART
}

/// Whether masked loads apart are faster. An assembler may unroll loops that have no branches in them, but a way with more loads is
/// another way. Whether a grid has the warps for which fewer registers leave room is not known.
fn is_faster_apart((before, warps): Estimated, (after, room): Estimated) -> bool {
    before.each(warps) >= FASTER_APART * after.each(room.min(warps)) && loads_as_much(before, after)
}

/// By how much a kernel has to be faster with its loops written out, by the estimate: one of 1.01 was slower by an eighth
/// (`docs/ptxas.md`).
const FASTER_WRITTEN_OUT: f64 = 1.1;

/// The PTX of one kernel with its innermost loops written out, to be tried once `cubin` was made of it for `capability`, as in 90;
/// `None` where one of them runs too often or nobody knows how often, or warps hardly wait for memory.
fn with_loops_written_out(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    waits_at_least(LEAST_WAITS, ptx, cubin, capability)?.then(|| written_out::written_out(ptx))?
}

/// Waits for memory, as a share of what is issued, for which it is worth to look what loops become written out.
const LEAST_WAITS: f64 = 0.5;

/// Whether the kernel of `ptx` had better have its loops `written_out` than be `cubin`.
fn is_worth_writing_out(ptx: &[u8], cubin: &[u8], written_out: &[u8], capability: u32) -> bool {
    is_faster_written_out(FASTER_WRITTEN_OUT, ptx, cubin, written_out, capability)
        && more_stack(cubin, written_out) == 0
}

/// Registers of 32 bits that loads which stand first may keep alive.
const REGISTERS_OF_LOADS: u32 = 64;
/// By how much a kernel has to be faster with its loads first, by the estimate.
const FASTER_LOADS_FIRST: f64 = 1.1;

/// The text with loads before what computes, and without a bound: how many registers loads may have under way is then ptxas's choice.
/// `None` where warps hardly wait for memory, or nearly all loads find their line in L1.
fn with_loads_first(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let waits = waits_at_least(LEAST_WAITS, ptx, cubin, capability)? && !near::loads_are_near(ptx);
    waits.then(|| reorder::with_loads_first(ptx, REGISTERS_OF_LOADS))?.and_then(|text| unbounded(&text))
}

fn is_worth_loads_first(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_worth_another_order_by(FASTER_LOADS_FIRST, ptx, cubin, other, capability)
        && leaves_enough_warps(ptx, cubin, other)
}

/// Whether code of the same loads in another order is `factor` times as fast.
fn is_faster_in_order(factor: f64, before: Estimated, after: Estimated) -> bool {
    is_faster_with_as_many_warps(factor, before, after) && loads_as_much(before.0, after.0)
}

/// By how much a kernel has to be faster with a barrier between loads and what uses them, by the estimate (timings: `docs/ptxas.md`).
const FASTER_TOGETHER: f64 = 1.25;
/// Bytes of stack that all that was loaded may cost a thread.
const STACK_TOGETHER: u32 = 128;

/// The text with a barrier between loads and what uses them; `None` where warps hardly wait for memory, or nearly all loads find their
/// line in L1.
fn with_loads_together(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let waits = waits_at_least(LEAST_WAITS, ptx, cubin, capability)? && !near::loads_are_near(ptx);
    waits.then(|| together::together(ptx))?
}

fn is_worth_loads_together(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, other, capability, |a, b| is_faster_in_order(FASTER_TOGETHER, a, b))
        && more_stack(cubin, other) <= STACK_TOGETHER
}

/// The text with its innermost loops written out, the loads of each iteration before what computes in it, and without a bound.
fn with_loops_written_out_and_loads_first(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let text = with_loops_written_out(ptx, cubin, capability)?;
    unbounded(&reorder::with_loads_first(&text, REGISTERS_OF_LOADS)?)
}

fn is_worth_writing_out_with_loads_first(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_worth_loads_first_by(FASTER_WRITTEN_OUT, ptx, cubin, other, capability)
}

fn is_worth_loads_first_by(factor: f64, ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_faster_written_out(factor, ptx, cubin, other, capability)
        && more_stack(cubin, other) <= STACK_APART
        && leaves_enough_warps(ptx, cubin, other)
}

/// By how much a kernel has to be faster with the loads of all iterations first, by the estimate: with 1.45 `sample_levels` ran at 0.85
/// (docs/ptxas.md).
const FASTER_ALL_FIRST: f64 = 1.5;

/// The same with the loads of all iterations before what computes in any.
fn with_loads_of_all_iterations_first(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let text = rename::with_own_names(&with_loops_written_out(ptx, cubin, capability)?)?;
    unbounded(&reorder::with_loads_first(&text, REGISTERS_OF_LOADS)?)
}

fn is_worth_loads_of_all_iterations_first(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_worth_loads_first_by(FASTER_ALL_FIRST, ptx, cubin, other, capability)
}

/// Whether registers leave room for warps that hide all other latencies nearly as well as before. `depthwise_large` had two CTAs in place
/// of five for its loads, and ran at 0.64.
fn leaves_enough_warps(ptx: &[u8], cubin: &[u8], other: &[u8]) -> bool {
    let warps = || {
        let (kernel, _) = only_kernel(ptx)?;
        Some((warps_of_part(kernel.threads, cubin)?, warps_of_part(kernel.threads, other)?))
    };
    warps().is_some_and(|(had, has)| latency(has * PARTS as f64) <= SPILLS * latency(had * PARTS as f64))
}

fn is_faster_written_out(factor: f64, ptx: &[u8], cubin: &[u8], written_out: &[u8], capability: u32) -> bool {
    let times = || {
        let (kernel, _) = only_kernel(ptx)?;
        let (before, after) = (parts(cubin, capability)?, cycles(written_out, capability)?);
        // An assembler may have unrolled the loops: they run as often as makes the loads that are there without them.
        let iterations = (after.loads - before.rest.loads) / before.innermost.loads;
        let before = Some(before.with(iterations)).filter(|_| iterations >= 1.0 && iterations.is_finite())?;
        let warps = (warps_of_part(kernel.threads, cubin)?, warps_of_part(kernel.threads, written_out)?);
        debug!(?before, ?after, ?warps, "cycles of machine code with loops written out");
        Some((before.shared_by(warps.0), after.shared_by(warps.1)))
    };
    times().is_some_and(|(before, after)| before >= factor * after)
}

/// Registers of a thread from which on ptxas does more to stay below a bound than to order instructions another way.
const MANY_REGISTERS: u32 = 64;
/// By how much a kernel of many registers has to be faster without a bound, by the estimate, for the same warps or fewer. Of 95 kernels on
/// an H100 the three for which that holds took 0.81, 0.83 and 0.90 of the time (`docs/ptxas.md`).
const FASTER_WITHOUT_BOUND: f64 = 1.14;
/// The same of one of few registers, which a bound only makes ptxas order otherwise: of 20 for which that holds one ran at 0.97 of its
/// speed, and the best at 1.19 (`docs/ptxas.md`).
const FASTER_WITHOUT_BOUND_OF_FEW: f64 = 1.01;

/// The PTX of one kernel without a bound, to be tried once `cubin` was made of it for `capability`, as in 90; `None` where there is no
/// estimate of its machine code, or it has few registers and hardly waits for memory.
fn with_no_bound(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let worth_trying = match has_many_registers(cubin)? {
        true => cycles(cubin, capability).is_some(),
        false => waits_at_least(LEAST_WAITS, ptx, cubin, capability)?,
    };
    worth_trying.then(|| unbounded(ptx))?
}

fn has_many_registers(cubin: &[u8]) -> Option<bool> {
    Some(binary::registers(cubin)? >= MANY_REGISTERS)
}

/// Whether the kernel of `ptx` had better be `other`, made without a bound, than `cubin`.
fn is_worth_its_own_bound(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    let factor = faster_without_bound(has_many_registers(cubin).unwrap_or(false));
    let Some((kernel, _)) = only_kernel(ptx) else { return false };
    let meets = || kernel.synchronizes && !has_loops(&kernel);
    // CTAs of dots have rules of their own ([`with_more_ctas`](super::with_more_ctas)).
    let multiplies = multiplies(ptx, &kernel);
    let faster = |a, b| {
        is_faster_with_as_many_warps(factor, a, b)
            || !multiplies && is_faster_with_room(a, b)
            || is_as_fast_alone(a, b) && meets()
    };
    is_faster(ptx, cubin, other, capability, faster) && more_stack(cubin, other) == 0
}

/// How many times as long as they issue warps of a CTA that is alone have to wait for a second one to be worth something.
const MUCH_WAITING: f64 = 1.5;
/// How much longer a warp may take alone where a second CTA has room, and how many more instructions it may issue.
const LONGER_WITH_SECOND: f64 = 1.05;
/// Bytes of stack that this may cost a thread, outside of loops.
const STACK_OF_SECOND: u32 = 256;

/// The PTX of one kernel with room for two CTAs in place of one, to be tried once `cubin` was made of it for `capability`, as in 90, where
/// warps mostly wait: the registers that it seems to need may be those of another order of instructions. `None` where two have room anyway.
pub(super) fn with_a_second_cta(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let (kernel, bound) = only_kernel(ptx)?;
    let warps = warps_of(kernel.threads);
    let is_alone = is_alone(bound, warps, binary::registers(cubin)?.into());
    let fits = granted(2 * warps) >= kernel.least.max(FEWEST_REGISTERS);
    let may = is_alone && fits && !multiplies(ptx, &kernel);
    (may && waits_at_least(MUCH_WAITING, ptx, cubin, capability)?).then(|| with_bound(ptx, &kernel, 2))
}

/// Whether a kernel has dots on matrix units.
fn multiplies(ptx: &[u8], kernel: &Kernel) -> bool {
    has(ptx, kernel, b"mma.sync") || has(ptx, kernel, b"wgmma.mma_async")
}

fn pays_as_second(before: Estimated, after: Estimated) -> bool {
    is_hardly_longer_with_room(before, after, LONGER_WITH_SECOND, LONGER_WITH_SECOND)
}

/// Whether the kernel of `ptx` had better be `second`, of which two CTAs have room, than `cubin`.
pub(super) fn is_worth_a_second_cta(ptx: &[u8], cubin: &[u8], second: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, second, capability, pays_as_second)
        && more_stack(cubin, second) <= STACK_OF_SECOND
        && stack_loads_in_loops(second, capability) <= stack_loads_in_loops(cubin, capability)
}

fn has_loops(kernel: &Kernel) -> bool {
    pressure::needs(kernel, FEWEST_REGISTERS).is_none_or(|needs| needs.iter().any(|need| need.times > 1.0))
}

/// By how much longer a warp may take alone where there is room for more warps, and by how much more instructions it may issue, by the
/// estimate: of 47 kernels with barriers and no loops for which that holds, none ran at less than 0.97 of its speed on an H200, 10 at 1.03
/// or more, the best at 1.16. Without barriers they gain nothing (`docs/ptxas.md`).
const LONGER_ALONE: f64 = 1.1;
const MORE_ISSUED: f64 = 1.02;

/// Whether a warp takes hardly longer alone and there is room for more of them: while some wait at a barrier, others run.
fn is_as_fast_alone(before: Estimated, after: Estimated) -> bool {
    is_hardly_longer_with_room(before, after, LONGER_ALONE, MORE_ISSUED)
}

/// Whether there is room for more warps, each of which takes at most `longer` times as long alone and issues `more` times as much.
fn is_hardly_longer_with_room(
    (before, warps): Estimated,
    (after, room): Estimated,
    longer: f64,
    more: f64,
) -> bool {
    room > warps
        && loads_as_much(before, after)
        && after.alone <= longer * before.alone
        && after.issued <= more * before.issued
}

/// Warps of a part of a multiprocessor that leave much of each other's waits unfilled: room for more is worth something then.
const FEW_WARPS: f64 = 3.0;
/// By how much a kernel of so few has to be faster with more, by the estimate and [`LATENCY`](super::LATENCY) together (timings: `docs/ptxas.md`).
const FASTER_WITH_ROOM: f64 = 1.2;

/// Whether code of few warps, to which the bound was chosen since the estimate of registers saw no room for more, is faster with those
/// that ptxas has room for.
fn is_faster_with_room((before, warps): Estimated, (after, room): Estimated) -> bool {
    let time = |found: Cycles, warps: f64| found.shared_by(warps) * latency(warps * PARTS as f64);
    warps <= FEW_WARPS
        && loads_as_much(before, after)
        && time(before, warps) >= FASTER_WITH_ROOM * time(after, room)
}

fn faster_without_bound(many_registers: bool) -> f64 {
    if many_registers { FASTER_WITHOUT_BOUND } else { FASTER_WITHOUT_BOUND_OF_FEW }
}

/// By how much a kernel has to be faster with few registers alive, by the estimate: of 24 on an H100 for which that holds the worst ran at
/// 0.96 of its speed before and the best at 1.57; with 1.09 one at 0.88 (`docs/ptxas.md`).
const FASTER_WITH_FEW_ALIVE: f64 = 1.1;

/// The PTX of one kernel in an order that leaves few registers alive: what is computed from a load, as far as it goes without others, comes
/// before the next load. ptxas, which keeps close to the order of the text, then has registers for loads of the next iteration, and what
/// comes from one place of memory is read together. `None` for dots, whose operands another order holds apart, and where warps hardly wait.
fn with_few_registers_alive(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let (kernel, _) = only_kernel(ptx)?;
    if has(ptx, &kernel, b"mma.sync") || has(ptx, &kernel, b"wgmma.mma_async") {
        return None;
    }
    waits_at_least(LEAST_WAITS, ptx, cubin, capability)?
        .then(|| reorder::reordered(ptx, reorder::Choice::FewestAlive))?
        .filter(|text| text != ptx)
}

fn is_worth_few_registers_alive(ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_worth_another_order_by(FASTER_WITH_FEW_ALIVE, ptx, cubin, other, capability)
}

fn is_worth_another_order_by(factor: f64, ptx: &[u8], cubin: &[u8], other: &[u8], capability: u32) -> bool {
    is_faster(ptx, cubin, other, capability, |a, b| is_faster_in_order(factor, a, b))
        && more_stack(cubin, other) == 0
}

/// The same without a bound: loads that come before others may then have registers besides.
fn with_few_registers_alive_and_no_bound(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    unbounded(&with_few_registers_alive(ptx, cubin, capability)?)
}

/// By how much a kernel has to be faster then: of eleven on an H100 for which that holds the worst ran at 0.92 of its speed before, one
/// at 0.96, and the best at 1.59 (`docs/ptxas.md`).
const FASTER_WITH_FEW_ALIVE_AND_NO_BOUND: f64 = 1.15;

fn is_worth_few_registers_alive_and_no_bound(
    ptx: &[u8],
    cubin: &[u8],
    other: &[u8],
    capability: u32,
) -> bool {
    is_worth_another_order_by(FASTER_WITH_FEW_ALIVE_AND_NO_BOUND, ptx, cubin, other, capability)
}

/// How much faster code without loads that wait in registers for later iterations must be by the estimate: on an H100 five of 42
/// kernels are, and run 1.22 to 1.71 times as fast; of those below, the best gains 8 % and the worst loses half (docs/ptxas.md).
pub(super) const FASTER_WITHOUT_LOADS_AHEAD: f64 = 1.18;

/// Whether the second of two texts with their binaries is `factor` times as fast as the first, in which loads run ahead in
/// registers, and spills little more.
pub(super) fn is_worth_no_loads_ahead(
    with: (&[u8], &[u8]),
    without: (&[u8], &[u8]),
    limits: Limits,
    factor: f64,
) -> bool {
    let faster = time_of(with, limits)
        .zip(time_of(without, limits))
        .is_some_and(|(before, after)| is_faster_without_loads_ahead(factor, &before, &after));
    faster && more_stack(with.1, without.1) <= STACK_APART
}

/// What the estimate says of the machine code of a text, of which as many CTAs share a multiprocessor as registers and shared memory leave
/// room for.
struct Together {
    /// Cycles of one of them.
    cycles: f64,
    /// Loads of one way through it.
    loads: f64,
    /// Warps that share a part of the multiprocessor.
    warps: f64,
}

fn time_of((ptx, cubin): (&[u8], &[u8]), limits: Limits) -> Option<Together> {
    // The best text may have no bound.
    let threads = read::threads(ptx)?;
    let (found, by_registers) = (cycles(cubin, limits.capability)?, warps_of_part(threads, cubin)?);
    let by_memory = (limits.most_ctas * warps_of(threads)) as f64 / PARTS as f64;
    let warps = by_registers.min(by_memory);
    Some(Together { cycles: found.shared_by(warps), loads: found.loads, warps })
}

/// The first line of a text in which few threads load the same: what others load is handed to them.
pub const WITH_FEW_REPLICAS: &str = "// What several threads load is handed to them by one.\n";
/// By how much such a text has to be faster, by the estimate (timings: `docs/ptxas.md`).
const FASTER_WITH_FEW_REPLICAS: f64 = 1.25;

/// Whether few threads load the same in the text, in which they did before.
pub fn has_few_replicas(ptx: &[u8]) -> bool {
    ptx.starts_with(WITH_FEW_REPLICAS.as_bytes())
}

/// Whether the second of two texts of a kernel, each with its machine code, is clearly faster, with no fewer warps beside each other: in it
/// few threads load the same.
pub(super) fn is_worth_few_replicas(first: (&[u8], &[u8]), second: (&[u8], &[u8]), limits: Limits) -> bool {
    let faster = time_of(first, limits).zip(time_of(second, limits)).is_some_and(|(before, after)| {
        before.cycles >= FASTER_WITH_FEW_REPLICAS * after.cycles && after.warps >= before.warps
    });
    faster && more_stack(first.1, second.1) <= STACK_APART
}

/// Whether the first of two texts has more asynchronous copies to shared memory than the second.
pub(super) fn copies_more(ptx: &[u8], other: &[u8]) -> bool {
    const COPY: &[u8] = b"cp.async.";
    let copies = |text: &[u8]| text.windows(COPY.len()).filter(|part| *part == COPY).count();
    copies(ptx) > copies(other)
}

/// How many more loads from the stack in innermost loops a pipeline may cost: with up to 31 more of twelve kernels eight lost by having one stage,
/// 0.57 to 0.98 of their speed, with 33 or more ten of ten gained, up to 3.67 (docs/ptxas.md, "A second text").
const MORE_STACK_LOADS: usize = 32;

/// Whether the second of two binaries of a kernel, in which loops have one stage, is better than the first: in innermost loops it loads half
/// as much from the stack. What the estimate says is not asked: of two stages where one is asked for, those that it takes for faster run
/// 1.18 and 1.28 times as long (docs/schedules.md).
pub(super) fn is_worth_no_copies_ahead(cubin: &[u8], other: &[u8], capability: u32) -> bool {
    let loads = |cubin| stack_loads_in_loops(cubin, capability);
    loads(cubin).zip(loads(other)).is_some_and(|(with, without)| spills_for_copies(with, without))
}

/// Whether code with so many loads from the stack in its innermost loops has them for the sake of copies that code with `without` of them
/// does not have.
fn spills_for_copies(with: usize, without: usize) -> bool {
    with > without + MORE_STACK_LOADS.max(without)
}

/// Whether code that takes `after` cycles with so many loads is `factor` times as fast as what takes `before`. Loops count as
/// many iterations in both, so where an assembler unrolled those of the first alone, the second does only a part of the work in
/// its cycles.
fn is_faster_without_loads_ahead(factor: f64, before: &Together, after: &Together) -> bool {
    let unrolled = (before.loads / after.loads.max(1.0)).round().max(1.0);
    before.cycles >= factor * unrolled * after.cycles
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An estimate of so many cycles of a warp alone, issued, and loads, with warps that share a part of a multiprocessor.
    fn estimate(alone: f64, issued: f64, loads: f64, warps: f64) -> Estimated {
        (Cycles { alone, issued, loads }, warps)
    }

    #[test]
    fn copies_ahead_do_not_pay_where_loops_load_far_more_from_the_stack() {
        // From `bench/gpu/unseen.py` with half of the warps, and Flash Attention: 1.54, 3.67 and 1.36 of the speed before.
        assert!(spills_for_copies(38, 0) && spills_for_copies(324, 37) && spills_for_copies(81, 25));
        // 0.92, 0.57 and 0.62; and what loads nearly as much without.
        assert!(!spills_for_copies(31, 0) && !spills_for_copies(28, 0) && !spills_for_copies(10, 0));
        assert!(!spills_for_copies(351, 279));
    }

    #[test]
    fn a_second_cta_pays_where_warps_take_hardly_longer() {
        // Both halves of three-qubit gates of `bench/gpu/fourth.py`, and the gradients of two-qubit ones.
        let pays = pays_as_second;
        assert!(pays(estimate(236_206.0, 8283.0, 252.0, 4.0), estimate(229_159.0, 8617.0, 252.0, 8.0)));
        assert!(pays(estimate(443_895.0, 11_085.0, 462.0, 4.0), estimate(457_092.0, 11_270.0, 462.0, 8.0)));
        assert!(pays(estimate(235_913.0, 8662.0, 252.0, 4.0), estimate(241_966.0, 8800.0, 252.0, 8.0)));
        // No room after all; what takes longer, or does more.
        let before = estimate(1000.0, 100.0, 10.0, 4.0);
        assert!(!pays(before, estimate(1000.0, 100.0, 10.0, 4.0)));
        assert!(!pays(before, estimate(1100.0, 100.0, 10.0, 8.0)));
        assert!(!pays(before, estimate(1000.0, 110.0, 10.0, 8.0)));
    }

    #[test]
    fn half_of_the_warps_pay_where_waits_fall_by_more_than_they_hide() {
        // From `bench/gpu/unseen.py`: 1.04, 0.89 and 0.87 of the speed before.
        let gemv = [estimate(21312.0, 1033.0, 100.0, 12.0), estimate(11394.0, 956.0, 100.0, 9.0)];
        let restrict = [estimate(7989.0, 1123.0, 216.0, 5.0), estimate(2620.0, 1062.0, 216.0, 2.0)];
        let yin = [estimate(34296.0, 3236.0, 720.0, 7.0), estimate(14875.0, 3226.0, 720.0, 4.0)];
        assert!(is_faster_with_more_registers(gemv[0], gemv[1]));
        assert!(!is_faster_with_more_registers(restrict[0], restrict[1]));
        assert!(!is_faster_with_more_registers(yin[0], yin[1]));
    }

    #[test]
    fn loads_apart_pay_by_shorter_waits_and_not_by_room_for_more_warps() {
        let rows = [estimate(44746.0, 3847.0, 40.0, 9.0), estimate(19293.0, 3853.0, 40.0, 9.0)];
        assert!(is_faster_apart(rows[0], rows[1]));
        // Decoding with few queries, apart: a warp waits longer, and twice as many have room.
        let decode = [estimate(19605.0, 5988.0, 76.0, 2.0), estimate(31556.0, 6016.0, 76.0, 4.0)];
        assert!(!is_faster_apart(decode[0], decode[1]));
        let more_loads = [estimate(44746.0, 3847.0, 40.0, 9.0), estimate(19293.0, 3853.0, 80.0, 9.0)];
        assert!(!is_faster_apart(more_loads[0], more_loads[1]));
    }

    #[test]
    fn registers_for_arguments_pay_by_what_is_issued_less() {
        // Random numbers for stochastic rounding: keys are added up from an argument again and again.
        let before = estimate(2200.0, 552.0, 1.0, 16.0);
        assert!(is_faster_with_arguments(before, estimate(1887.0, 481.0, 1.0, 12.0)));
        assert!(!is_faster_with_arguments(before, estimate(1887.0, 540.0, 1.0, 12.0)));
        // Half of the warps hide less.
        assert!(!is_faster_with_arguments(before, estimate(2200.0, 500.0, 1.0, 4.0)));
    }

    #[test]
    fn loops_that_are_unrolled_do_more_in_their_cycles() {
        // `selective_back` of `bench/gpu/unseen.py`: unrolled four times with loads ahead, and 1.5 times as fast with them.
        let of = |cycles, loads| Together { cycles, loads, warps: 8.0 };
        assert!(!is_faster_without_loads_ahead(1.18, &of(3166.0, 129.0), &of(775.0, 30.0)));
        // `margins_of_classes` and `pixels_and_coarser_ones`: loads ahead of the loop are a tenth of all.
        assert!(is_faster_without_loads_ahead(1.18, &of(88170.0, 2641.0), &of(48880.0, 2401.0)));
        assert!(is_faster_without_loads_ahead(1.18, &of(6100.0, 356.0), &of(4697.0, 324.0)));
    }

    #[test]
    fn no_bound_pays_by_instructions_and_waits_and_not_by_room_for_more_warps() {
        // Outer products of jagged rows: as many registers, and a third of the instructions fewer.
        assert!(is_faster_with_as_many_warps(
            faster_without_bound(true),
            estimate(38425.0, 10667.0, 706.0, 3.0),
            estimate(37697.0, 7144.0, 706.0, 3.0)
        ));
        // A dilated convolution: fewer warps whose loads are under way together.
        assert!(is_faster_with_as_many_warps(
            faster_without_bound(true),
            estimate(53715.0, 3304.0, 1.0, 4.0),
            estimate(15147.0, 3475.0, 1.0, 3.0)
        ));
        // Numerical integrals: the same code with registers for three times as many warps.
        assert!(!is_faster_with_as_many_warps(
            faster_without_bound(true),
            estimate(6293.0, 94.0, 1.0, 5.0),
            estimate(6285.0, 96.0, 1.0, 16.0)
        ));
    }

    #[test]
    fn room_for_more_warps_pays_where_there_are_few() {
        // LightLLM's `_silu_and_mul_kernel` runs in 0.80 of the time with twice as many warps (Triton's 0.80).
        assert!(is_faster_with_room(
            estimate(10770.0, 2418.0, 32.0, 2.0),
            estimate(11245.0, 2398.0, 32.0, 4.0)
        ));
        // `recurrence_backward`: 0.78 of the time by what three CTAs in place of two hide.
        assert!(is_faster_with_room(estimate(113.0, 16784.0, 4.0, 2.0), estimate(109.0, 16781.0, 4.0, 3.0)));
        // `gate_cumsum_fwd`, whose loads would come in more rounds.
        assert!(!is_faster_with_room(
            estimate(5143.0, 3185.0, 18.0, 2.0),
            estimate(9545.0, 3196.0, 18.0, 3.0)
        ));
        // Numerical integrals, as above: five warps are enough.
        assert!(!is_faster_with_room(estimate(6293.0, 94.0, 1.0, 5.0), estimate(6285.0, 96.0, 1.0, 16.0)));
    }

    #[test]
    fn room_pays_where_warps_wait_for_each_other_and_take_hardly_longer() {
        // `resample_particle` takes 0.86 of the time with 16 CTAs in place of nine.
        assert!(is_as_fast_alone(estimate(6851.0, 710.0, 4.0, 9.0), estimate(7406.0, 709.0, 4.0, 16.0)));
        assert!(!is_as_fast_alone(estimate(6851.0, 710.0, 4.0, 9.0), estimate(7406.0, 709.0, 4.0, 9.0)));
        // `fill_gaps` ran at 0.79.
        assert!(!is_as_fast_alone(estimate(4569.0, 1360.0, 8.0, 4.0), estimate(14611.0, 1380.0, 8.0, 5.0)));
    }

    #[test]
    fn no_bound_of_few_registers_pays_by_a_little() {
        // Of `bench/gpu/unseen.py`: `margin_rows` took 0.84 of the time. So did `conv1d_rows`, 0.80, but its loads are in the L1,
        // where the estimate takes them to come from memory.
        assert!(is_faster_with_as_many_warps(
            faster_without_bound(false),
            estimate(14688.0, 2812.0, 64.0, 10.0),
            estimate(15044.0, 2733.0, 64.0, 12.0)
        ));
        assert!(!is_faster_with_as_many_warps(
            faster_without_bound(false),
            estimate(11210.0, 713.0, 64.0, 10.0),
            estimate(21652.0, 782.0, 64.0, 16.0)
        ));
    }

    #[test]
    fn few_registers_alive_without_a_bound_pay_by_more_than_a_tenth() {
        // `black_scholes` took 0.84 of the time, `depthwise_3x3_nhwc` 1.11, with half of the warps.
        let with = |before, after| is_faster_in_order(FASTER_WITH_FEW_ALIVE_AND_NO_BOUND, before, after);
        assert!(with(estimate(9442.0, 1111.0, 8.0, 8.0), estimate(6309.0, 1112.0, 8.0, 8.0)));
        assert!(!with(estimate(4818.0, 572.0, 27.0, 10.0), estimate(1949.0, 574.0, 27.0, 5.0)));
    }

    #[test]
    fn few_registers_alive_pay_by_a_tenth() {
        // `bag_of_largest` took 0.64 of the time, `gated_scores_of_a_block` 1.14.
        assert!(is_faster_in_order(
            FASTER_WITH_FEW_ALIVE,
            estimate(63029.0, 1097.0, 92.0, 8.0),
            estimate(23273.0, 1107.0, 92.0, 7.0)
        ));
        assert!(!is_faster_in_order(
            FASTER_WITH_FEW_ALIVE,
            estimate(33145.0, 8755.0, 400.0, 2.0),
            estimate(29322.0, 8750.0, 400.0, 2.0)
        ));
    }
}
