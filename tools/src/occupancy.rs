//! How many CTAs of a kernel a multiprocessor is asked to hold: `.minnctapersm` of its PTX.
//!
//! ptxas divides the registers of a multiprocessor by the bound. Told of one CTA it spends registers on loads in
//! flight until few warps are left to hide latencies; told of too many it spills. So what a bound costs is estimated for
//! each, and the cheapest taken: the instructions of the kernel with those that spills add, times what is lost where few
//! warps hide latencies. How many registers the code needs is found in the PTX itself (`pressure`), where addresses,
//! masks and fragments are what they will be.
//!
//! The constants were fitted to some 2,000 timings: kernels of libraries, each assembled for up to four bounds
//! (`docs/objective.md`).

mod apart;
mod near;
mod pressure;
mod read;
mod rename;
mod reorder;
mod search;
mod together;
mod variants;
mod written_out;

use crate::binary;
use crate::machine_code::asynchronous_dots;
use linear_layout::target::TargetDesc;
use pressure::Need;
use read::Kernel;
pub use search::{Ahead, Assembled, Assembler, Chosen, Limits, best_text, better_of, with_next_text};
use tracing::debug;
use ttopt_passes::choice::{Candidate, Choice, Unit};
use ttopt_passes::kernel_decisions::most_ctas;
pub use variants::{WITH_FEW_REPLICAS, has_few_replicas};

/// Registers of one of the four parts of a multiprocessor, for each lane of a warp (CUDA programming guide, "Technical
/// Specifications per Compute Capability": 65,536 registers, four schedulers).
const REGISTERS_OF_PART: u64 = (64 << 10) / 4 / 32;
/// Parts of a multiprocessor, each with a scheduler.
const PARTS: u64 = 4;
/// Registers are allocated by so many a lane (the same table: 256 a warp).
const GRANULE: u64 = 8;
/// Most registers of a thread (the same table).
const MOST_REGISTERS: u64 = 255;
/// Fewest registers that ptxas is told to use: those of 64 warps.
const FEWEST_REGISTERS: u64 = 32;
/// Warps that hide each other's latencies in most kernels.
const ENOUGH_WARPS: u64 = 40;
/// With `w` warps, up to [`ENOUGH_WARPS`], a kernel takes `1 + LATENCY / w` times the time of its instructions.
const LATENCY: f64 = 10.0;
/// A kernel whose warps wait for each other takes `1 + MEETINGS / c` times that where a multiprocessor holds `c` CTAs: while
/// warps of one are at a barrier, only those of others run.
const MEETINGS: f64 = 2.0;
/// Instructions' time that writing a spilled register and reading it again takes: two accesses, each of which holds up
/// what waits for it.
const SPILL: f64 = 5.0;
/// Most registers of a thread that may be spilled for more CTAs: more do not stay in L1.
const MOST_SPILLED: f64 = 16.0;
/// So many times the registers that a kernel takes at ease ([`Need::at_ease`]) are used, by loads in flight.
const IN_FLIGHT: f64 = 1.2;
/// What is lost where there are none for loads in flight, as a share of the time.
const WITHOUT_FLIGHT: f64 = 0.4;
/// Rounds in which a kernel may load what it could load at once, before they count: other warps fill as many.
const ROUNDS: f64 = 6.0;
/// Registers that the loads of a kernel have at least.
const LEAST_IN_FLIGHT: f64 = 8.0;
/// Between bounds that cost the same, more CTAs: by this share for each warp.
const PREFERENCE: f64 = 1e-4;
/// Where a loop loads from global memory, more warps than this are not preferred: ptxas unrolls such loops as far as
/// registers allow.
const WARPS_OF_LOADING_LOOPS: u64 = 48;
/// As long as so many CTAs have them: with fewer, a barrier stops a larger part of the warps.
const CTAS_OF_LOADING_LOOPS: u64 = 6;

/// Costs up to so many times the least are nearly as little (timings: `docs/objective.md`).
const NEARLY: f64 = 1.08;

/// What was found out about a kernel, and what it was given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Occupancy {
    /// Registers of 32 bits that the kernel needs of each thread.
    pub registers: u64,
    /// CTAs that a multiprocessor should hold at once.
    pub ctas: u64,
}

/// Gives each kernel of `ptx` that has a bound (`.minnctapersm`) the one that costs least, `most` at most; what was found
/// for the last of them. Kernels that call functions, and text that is no PTX, stay as they are.
pub fn bound(ptx: &mut Vec<u8>, most: u64) -> Option<Occupancy> {
    bound_and_tell(ptx, most, false, None)
}

/// The same, which tells what other bounds would have cost. Of kernels that come back to what they read in an earlier loop
/// programs drive it out of each other's caches, and of recurrences that multiply there are few: `few` gives these as few CTAs as
/// cost nearly as little.
pub fn bound_and_tell(
    ptx: &mut Vec<u8>,
    most: u64,
    few: bool,
    mut tell: Option<&mut dyn FnMut(&Choice)>,
) -> Option<Occupancy> {
    let mut found = None;
    let mut changes = Vec::new();
    for kernel in read::kernels(ptx) {
        let Some(needs) = pressure::needs(&kernel, FEWEST_REGISTERS) else { continue };
        let registers = needs.iter().map(|need| need.registers).fold(0.0, f64::max).ceil() as u64;
        let ctas = ctas(&needs, &kernel, most, if few { NEARLY } else { 1.0 });
        if let Some(tell) = tell.as_mut() {
            choice(&needs, &kernel, most, registers, ctas).iter().for_each(tell);
        }
        debug!(registers, ctas, threads = kernel.threads, "registers of a kernel");
        changes.push((kernel.bound.clone(), ctas));
        found = Some(Occupancy { registers, ctas });
    }
    // From the last, so that places of those before stay.
    for (place, ctas) in changes.into_iter().rev() {
        ptx.splice(place, ctas.to_string().into_bytes());
    }
    found
}

/// Bytes that a thread may spill for the sake of more CTAs, however few there would be without.
const MOST_STACK: u32 = 96;
/// Bytes that a thread may spill where a few CTAs less make spills unnecessary. What is spilled leaves L1 as CTAs follow each
/// other: kernels that wait for memory write that many bytes more.
const LITTLE_STACK: u32 = 12;
/// What spills of more than [`LITTLE_STACK`] cost, as a factor of the time: fewer warps may cost as much ([`LATENCY`]).
const SPILLS: f64 = 1.15;

/// What the PTX of one kernel says once its assembler found that a thread needs `stack` bytes to spill to: fewer CTAs, so
/// that each thread gets at least as many registers more. `None` where that is not worth it, or there is one CTA already, or a
/// thread has all registers that it can: then ptxas makes the same code of fewer CTAs. The constants are of timings
/// (`docs/objective.md`).
fn with_fewer_spills(ptx: &[u8], stack: u32) -> Option<Vec<u8>> {
    if stack <= LITTLE_STACK {
        return None;
    }
    let (kernel, bound) = only_kernel(ptx)?;
    let warps = warps_of(kernel.threads);
    let has = granted(bound * warps);
    if has == MOST_REGISTERS {
        return None;
    }
    let wanted = (has + u64::from(stack / 4)).min(MOST_REGISTERS);
    let fewer = (1..bound).rev().find(|ctas| *ctas == 1 || granted(ctas * warps) >= wanted)?;
    if stack <= MOST_STACK && latency((fewer * warps) as f64) > SPILLS * latency((bound * warps) as f64) {
        return None;
    }
    Some(with_bound(ptx, &kernel, fewer))
}

/// What the PTX of one kernel says without a bound, once its assembler found that a thread needs `stack` bytes to spill to: with one
/// ptxas moves more apart, loads and constants to the front of long blocks, and then spills what it need not have, even of all registers
/// that there are (`docs/ptxas.md`). `None` where it spills little.
fn without_bound(ptx: &[u8], stack: u32) -> Option<Vec<u8>> {
    (stack > LITTLE_STACK).then(|| unbounded(ptx))?
}

/// The PTX of one kernel without its bound.
pub fn unbounded(ptx: &[u8]) -> Option<Vec<u8>> {
    let (kernel, _) = only_kernel(ptx)?;
    let begin = ptx[..kernel.bound.start].iter().rposition(|byte| *byte == b'\n')?;
    let mut text = ptx.to_vec();
    text.drain(begin..kernel.bound.end);
    Some(text)
}

/// Bytes of four registers: where a thread spills no more, fewer CTAs lose as often as they gain (timings: `docs/ptxas.md`).
const FEW_SPILLS: u32 = 16;

/// Whether the kernel of `ptx` had better be `unbounded`, of which a thread spills to `stack` bytes, than `cubin`, of which one spills
/// to `before`: by an eighth less where as many CTAs fit, else as [`with_fewer_spills`] and [`is_worth_fewer_ctas`] say.
fn is_worth_no_bound(ptx: &[u8], (cubin, before): (&[u8], u32), (unbounded, stack): (&[u8], u32)) -> bool {
    let warps = || {
        let (kernel, _) = only_kernel(ptx)?;
        Some((warps_of_part(kernel.threads, cubin)?, warps_of_part(kernel.threads, unbounded)?))
    };
    warps().is_some_and(|(had, has)| {
        let slower = || latency(has * PARTS as f64) > SPILLS * latency(had * PARTS as f64);
        if has >= had {
            8 * stack <= 7 * before
        } else {
            before > FEW_SPILLS && is_worth_fewer_ctas(stack, before) && (before > MOST_STACK || !slower())
        }
    })
}

/// The kernel of PTX that has one, and its bound.
fn only_kernel(ptx: &[u8]) -> Option<(Kernel, u64)> {
    let mut kernels = read::kernels(ptx);
    let kernel = kernels.pop().filter(|_| kernels.is_empty())?;
    let bound = std::str::from_utf8(ptx.get(kernel.bound.clone())?).ok()?.trim().parse().ok()?;
    Some((kernel, bound))
}

/// The PTX of one kernel with its instructions in an order in which a thread's registers suffice, if one is found.
fn in_an_order_that_fits(ptx: &[u8]) -> Option<Vec<u8>> {
    let text = reorder::reordered(ptx, reorder::Choice::FewestAlive).filter(|text| text != ptx)?;
    let needs = pressure::needs(&only_kernel(&text)?.0, MOST_REGISTERS)?;
    needs.iter().all(|need| need.fewest <= MOST_REGISTERS as f64).then_some(text)
}

/// PTX with another bound of one of its kernels.
fn with_bound(ptx: &[u8], kernel: &Kernel, ctas: u64) -> Vec<u8> {
    let mut text = ptx.to_vec();
    text.splice(kernel.bound.clone(), ctas.to_string().into_bytes());
    text
}

/// Whether `stack` bytes are so many fewer than `before` that fewer CTAs, which need them, had better stay.
fn is_worth_fewer_ctas(stack: u32, before: u32) -> bool {
    2 * stack <= before
}

/// Warps up to which a kernel whose warps wait for their dots is tried with more CTAs than its estimated registers allow.
const WARPS_WITH_DOTS: u64 = 16;
/// Registers that it may use more than it would be granted then: ptxas makes up for about as many.
const REGISTERS_TO_DO_WITHOUT: u64 = 64;
/// The same where a second CTA would have room beside one that is alone and has asynchronous dots.
const REGISTERS_OF_SECOND: u64 = 72;
/// The same of other kernels: `qr_panel` (bench/gpu/unseen_kernels), which would use 144, takes 0.76 of the time with 128 for each of two.
const REGISTERS_OF_SECOND_WITHOUT_DOTS: u64 = 24;
/// Bytes that a thread may then spill.
const STACK_OF_MORE_CTAS: u32 = 16;

/// What the PTX of one kernel says to have more CTAs, once its assembler found that a thread uses `registers` registers and
/// spills nothing: for kernels of few warps that wait for their dots, where dots and loads of other CTAs fill that time; and for those whose
/// CTA would be alone, whatever runs beside its threads, since what they compute between dots and barriers then runs beside nothing. Whether ptxas can do with
/// as few registers it says best itself. At most `most` CTAs have room in shared memory. The constants are of timings (`docs/objective.md`).
fn with_more_ctas(ptx: &[u8], registers: u32, most: u64) -> Option<Vec<u8>> {
    let (kernel, bound) = only_kernel(ptx)?;
    let (warps, registers) = (warps_of(kernel.threads), u64::from(registers));
    let multiplies = || has(ptx, &kernel, b"wgmma.mma_async");
    let is_alone = || is_alone(bound, warps, registers);
    let without = match waits_for_dots(ptx, &kernel) {
        true => REGISTERS_TO_DO_WITHOUT,
        false if !is_alone() => return None,
        false if multiplies() => REGISTERS_OF_SECOND,
        false => REGISTERS_OF_SECOND_WITHOUT_DOTS,
    };
    let more = (bound + 1..=most.min(WARPS_WITH_DOTS / warps))
        .find(|ctas| granted(ctas * warps) < registers)
        .filter(|ctas| granted(ctas * warps) >= kernel.least)
        .filter(|ctas| granted(ctas * warps) + without >= registers)?;
    Some(with_bound(ptx, &kernel, more))
}

/// Whether a CTA of so many warps, of which `bound` are to fit, has no room for a second one beside its registers.
fn is_alone(bound: u64, warps: u64, registers: u64) -> bool {
    bound == 1 && granted(2 * warps) < registers
}

/// CTAs that a kernel keeps for dots that run one after the other: with one, nothing runs beside them, and `local_chunks`
/// (bench/gpu/unseen_kernels) is faster with two that wait for each of their dots.
const LEAST_CTAS_OF_DOTS: u64 = 2;

/// What the PTX of one kernel says without a bound, once its assembler had each asynchronous dot wait for the one before: where sums and
/// operands have too few registers it does so, and says that in a remark (C7511, C7512). `None` where dots run as the PTX says.
fn with_dots_beside_each_other(ptx: &[u8], cubin: &[u8], capability: u32) -> Option<Vec<u8>> {
    let (_, bound) = only_kernel(ptx)?;
    let serial = bound > LEAST_CTAS_OF_DOTS && waits_for_each_dot(ptx, cubin, capability);
    serial.then(|| unbounded(ptx))?
}

/// Whether the kernel of `ptx` had better be `other`, made without a bound, than one whose dots wait for each other.
fn is_worth_dots_beside_each_other(ptx: &[u8], other: &[u8], capability: u32) -> bool {
    let ctas = || {
        let (kernel, _) = only_kernel(ptx)?;
        Some(warps_of_part(kernel.threads, other)? * PARTS as f64 / warps_of(kernel.threads) as f64)
    };
    !waits_for_each_dot(ptx, other, capability)
        && ctas().is_some_and(|ctas| ctas >= LEAST_CTAS_OF_DOTS as f64)
}

/// Whether `cubin` has a wait for each of the asynchronous dots of `ptx`, which has fewer waits than dots.
fn waits_for_each_dot(ptx: &[u8], cubin: &[u8], capability: u32) -> bool {
    let (asked, waits) = (times(ptx, b"wgmma.mma_async"), times(ptx, b"wgmma.wait_group"));
    waits < asked
        && asynchronous_dots(cubin, capability)
            .is_some_and(|found| found.dots > 0 && found.waits >= found.dots)
}

/// Whether warps of a kernel wait for their dots: `mma.sync`, or `wgmma` where nothing is copied meanwhile.
fn waits_for_dots(ptx: &[u8], kernel: &Kernel) -> bool {
    let has = |text: &[u8]| has(ptx, kernel, text);
    has(b"mma.sync") || (has(b"wgmma.mma_async") && !has(b"cp.async"))
}

/// Whether the text of a kernel has `text` in it.
fn has(ptx: &[u8], kernel: &Kernel, text: &[u8]) -> bool {
    read::position(ptx, kernel.bound.end, text).is_some()
}

/// How often PTX has `text` in it.
fn times(ptx: &[u8], text: &[u8]) -> usize {
    let next = |at: &usize| read::position(ptx, at + text.len(), text);
    std::iter::successors(read::position(ptx, 0, text), next).count()
}

/// CTAs of `shared` bytes of shared memory that have room on a multiprocessor of `target`; one where the target is unknown.
pub fn room_for(shared: u64, target: &str) -> u64 {
    TargetDesc::parse(target).map_or(1, |target| most_ctas(1, shared, &target))
}

/// Whether `stack` bytes of a thread are so few that more CTAs, which need them, had better stay.
fn is_worth_more_ctas(stack: u32) -> bool {
    stack <= STACK_OF_MORE_CTAS
}

/// Bytes of stack from which on instructions are tried in other orders: fewer cost little.
const STACK_TO_REORDER: u32 = 64;
/// Another order is kept if it needs less than this share of the stack.
const LESS_STACK: f64 = 0.85;

/// The PTX of one kernel with its instructions in other orders, to be tried one by one once its assembler found that a
/// thread needs `stack` bytes to spill to; none where that is little, or the kernel calls functions.
fn in_other_orders(ptx: &[u8], stack: u32) -> impl Iterator<Item = Vec<u8>> {
    let choices = [reorder::Choice::FewestAlive, reorder::Choice::LastInText];
    choices
        .into_iter()
        .filter(move |_| stack > STACK_TO_REORDER)
        .filter_map(|choice| reorder::reordered(ptx, choice))
}

/// Whether `stack` bytes are so many fewer than `before` that instructions had better stay in the order that needs them.
fn is_worth_another_order(stack: u32, before: u32) -> bool {
    f64::from(stack) < LESS_STACK * f64::from(before)
}

/// Warps of a part of a multiprocessor at most, from Ampere on.
const MOST_WARPS_OF_PART: f64 = 16.0;

/// Warps that share a part of a multiprocessor, by the registers that `cubin` uses, whose CTAs have so many threads.
fn warps_of_part(threads: u64, cubin: &[u8]) -> Option<f64> {
    let (warps, registers) = (warps_of(threads), u64::from(binary::registers(cubin)?));
    let ctas = (1..=64 / warps).rev().find(|ctas| granted(ctas * warps) >= registers).unwrap_or(1);
    Some(((ctas * warps) as f64 / 4.0).min(MOST_WARPS_OF_PART))
}

/// The fewest CTAs, up to `most`, that cost at most `nearly` times the least.
fn ctas(needs: &[Need], kernel: &Kernel, most: u64, nearly: f64) -> u64 {
    let all: Vec<(f64, u64)> = costs(needs, kernel, most).collect();
    let least = all.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    all.iter().find(|(cost, _)| *cost <= nearly * least).map_or(1, |(_, ctas)| *ctas)
}

/// What numbers of CTAs, up to `most`, cost.
fn costs(needs: &[Need], kernel: &Kernel, most: u64) -> impl Iterator<Item = (f64, u64)> {
    let warps = warps_of(kernel.threads);
    let can_be = move |ctas: &u64| *ctas == 1 || granted(ctas * warps) >= kernel.least;
    (1..=most.max(1)).filter(can_be).map(move |ctas| (cost(needs, kernel.synchronizes, warps, ctas), ctas))
}

/// Warps of so many threads.
fn warps_of(threads: u64) -> u64 {
    threads.div_ceil(32).max(1)
}

/// The choice of `ctas` CTAs, in words.
fn choice(needs: &[Need], kernel: &Kernel, most: u64, registers: u64, ctas: u64) -> Option<Choice> {
    let name = |ctas: u64| {
        let granted = granted(ctas * warps_of(kernel.threads));
        format!("{ctas} CTA{} with {granted} registers a thread", if ctas == 1 { "" } else { "s" })
    };
    let all: Vec<(f64, u64)> = costs(needs, kernel, most).collect();
    let chosen = all.iter().position(|(_, other)| *other == ctas)?;
    let told = all.iter().map(|(cost, ctas)| {
        // Spills that are never taken have no cost.
        Candidate::new(name(*ctas), Some(*cost).filter(|cost| cost.is_finite()))
    });
    let subject = format!("CTAs on a multiprocessor, of code that needs {registers} registers");
    Choice::among(subject, Unit::Times, told.collect(), chosen)
}

/// What a bound of `ctas` CTAs of `warps` warps, which wait for each other or not, costs: times that of a kernel without
/// spills or latencies.
fn cost(needs: &[Need], synchronizes: bool, warps: u64, ctas: u64) -> f64 {
    let warps = ctas * warps;
    let granted = granted(warps) as f64;
    let most = needs.iter().map(|need| need.registers).fold(0.0, f64::max);
    if ctas > 1 && most - granted > MOST_SPILLED {
        return f64::INFINITY;
    }
    let instructions: f64 = needs.iter().map(|need| need.instructions).sum();
    let spilled = |need: &Need| (need.registers - granted).max(0.0) * need.times;
    let spills = SPILL * needs.iter().map(spilled).sum::<f64>() / instructions.max(1.0);
    let at_ease = needs.iter().map(|need| need.at_ease).fold(0.0, f64::max);
    let waits = WITHOUT_FLIGHT * (IN_FLIGHT * at_ease - granted).max(0.0) / at_ease.max(1.0);
    let meetings = if synchronizes { MEETINGS / ctas as f64 } else { 0.0 };
    let all = |need: &Need| rounds(need, granted) * need.instructions;
    let rounds = needs.iter().map(all).sum::<f64>() / instructions.max(1.0);
    (1.0 + spills + waits)
        * latency(warps as f64 / rounds)
        * (1.0 + meetings)
        * (1.0 - PREFERENCE * preferred(needs, warps, ctas))
}

/// Warps as they count between bounds that cost the same.
fn preferred(needs: &[Need], warps: u64, ctas: u64) -> f64 {
    let loads_in_loop = || needs.iter().any(|need| need.times > 1.0 && need.flight > 0.0);
    let enough = WARPS_OF_LOADING_LOOPS.min(warps);
    let have_ctas = enough * ctas >= CTAS_OF_LOADING_LOOPS * warps;
    if warps > enough && have_ctas && loads_in_loop() {
        2.0 * enough as f64 - warps as f64
    } else {
        warps as f64
    }
}

/// How many times as long a kernel takes with so many warps as with more than hide all latencies.
fn latency(warps: f64) -> f64 {
    1.0 + LATENCY / warps.min(ENOUGH_WARPS as f64)
}

/// How often the code of `need` waits for what it loads, where it could load all at once but for its registers.
fn rounds(need: &Need, granted: f64) -> f64 {
    let free = (granted - need.besides).max(LEAST_IN_FLIGHT);
    (need.flight / free / ROUNDS).max(1.0)
}

/// Registers that ptxas can give a thread when a multiprocessor is to hold so many warps.
fn granted(warps: u64) -> u64 {
    (REGISTERS_OF_PART / warps.div_ceil(PARTS).max(1) / GRANULE * GRANULE).min(MOST_REGISTERS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_divided_among_the_parts_of_a_multiprocessor() {
        // As ptxas 13.5 answers `.minnctapersm`: 5 CTAs of 64 threads, 3 and 5 of 128, 12 of 32.
        assert_eq!([10, 12, 20, 12, 16, 64, 1].map(granted), [168, 168, 96, 168, 128, 32, 255]);
    }

    fn text(body: &str, threads: u64) -> Vec<u8> {
        let head = ".version 8.4\n.target sm_90a\n.visible .entry k(\n\t.param .u64 k_param_0\n)\n";
        format!("{head}.reqntid {threads}\n.minnctapersm 1\n{{\n{body}\n\tret;\n}}\n").into_bytes()
    }

    /// A kernel that loads `n` numbers, waits at a barrier, and stores their sums with the next.
    fn holds(n: usize) -> String {
        let mut body = format!(
            "\t.reg .b32 \t%r<{}>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n\tmov.u32 %r{n}, %tid.x;\n\
             \tmul.wide.u32 %rd2, %r{n}, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n",
            2 * n + 2
        );
        for i in 0..n {
            body += &format!("\tld.global.b32 %r{i}, [%rd3+{}];\n", 512 * i);
        }
        body += "\tst.shared.b32 [global_smem], %r0;\n\tbar.sync 0;\n";
        for i in 0..n {
            let (sum, next) = (n + 1 + i, (i + 1) % n);
            body += &format!(
                "\tadd.f32 %r{sum}, %r{i}, %r{next};\n\tst.global.b32 [%rd3+{}], %r{sum};\n",
                512 * i
            );
        }
        body
    }

    #[test]
    fn long_dots_of_doubles_get_the_registers_that_ptxas_wants_for_them() {
        let ctas = |dot: &str| {
            let body = holds(16).replacen("ld.param", &format!(
                ".reg .b64 \t%d<5>;\n\tmma.sync.aligned.{dot}.row.col.f64.f64.f64.f64 {{%d1, %d2}}, {{%d3}}, {{%d4}}, {{%d1, %d2}};\n\tld.param"
            ), 1);
            bound(&mut text(&body, 128), 16).unwrap().ctas
        };
        assert!(ctas("m8n8k4") > 8, "threads may have as few registers as they need");
        assert_eq!(ctas("m16n8k16"), 8, "64 for each of 128 threads");
    }

    #[test]
    fn what_is_held_over_a_barrier_decides() {
        let mut ptx = text(&holds(64), 128);
        let found = bound(&mut ptx, 16).unwrap();
        // 64 numbers and an address of two registers, and a sum on its way.
        assert!((66..=68).contains(&found.registers), "{found:?}");
        // 28 warps have 72 registers each; 24 would have 80, 1.2 times as many as needed, but one CTA less runs while warps
        // wait for each other.
        assert_eq!(found.ctas, 7);
        assert!(String::from_utf8(ptx).unwrap().contains("\n.minnctapersm 7\n"));
        let mut ptx = text(&holds(64).replace("bar.sync 0", "bar.warp.sync 0xffffffff"), 128);
        assert_eq!(bound(&mut ptx, 16).unwrap().ctas, 6, "warps do not wait for each other");
        let mut ptx = text(&holds(64).replace("\tst.shared.b32 [global_smem], %r0;\n", ""), 128);
        assert_eq!(bound(&mut ptx, 16).unwrap().ctas, 6, "warps wait for nothing that others write");
        let mut ptx = text(&holds(64), 128);
        assert_eq!(bound(&mut ptx, 3).unwrap().ctas, 3, "shared memory may leave room for fewer");
        // Six cost a little more than seven.
        let mut ptx = text(&holds(64), 128);
        assert_eq!(
            bound_and_tell(&mut ptx, 16, true, None).unwrap().ctas,
            6,
            "it comes back to what it read"
        );
    }

    #[test]
    fn jumps_by_a_list_of_labels_go_to_all_of_them() {
        // What one of the ways needs is held where the list is, and no other way is one that control goes.
        let body = holds(64).replace(
            "\tst.shared.b32 [global_smem], %r0;\n\tbar.sync 0;\n",
            "$L_list_0:\n\t.branchtargets\n\t\t$L_no,\n\t\t$L_yes;\n\tbrx.idx \t%r64, $L_list_0;\n$L_no:\n\tret;\n$L_yes:\n\tbar.warp.sync 0xffffffff;\n",
        );
        let found = bound(&mut text(&body, 128), 16).unwrap();
        assert!((66..=68).contains(&found.registers), "{found:?}");
        let unknown = body.replace("$L_yes;", "$L_nowhere;");
        assert!(bound(&mut text(&unknown, 128), 16).is_none());
    }

    #[test]
    fn what_stands_behind_a_declaration_of_inline_assembly_is_read() {
        // The number would be alive from the beginning of the kernel if nothing made it.
        let halves = "\tadd.s64 %rd4, %rd1, 8;\n\t{ .reg .b32 tmp; mov.b64 {tmp, %r0}, %rd4; }\n";
        let body = holds(64).replace("\tld.global.b32 %r0, [%rd3+0];\n", halves);
        let kernels = read::kernels(&text(&body, 128));
        let makes: usize =
            kernels[0].blocks[0].instructions.iter().filter(|at| at.makes.contains(&0)).count();
        assert_eq!(makes, 1, "{:?}", kernels[0]);
    }

    /// ptxas 13.5 refuses a `wgmma` with eight accumulators in 32 registers: it wants 34.
    #[test]
    fn fragments_have_room() {
        let registers: Vec<String> = (0..8).map(|i| format!("%r{i}")).collect();
        let all = registers.join(", ");
        let body = format!(
            "\t.reg .b32 %r<8>;\n\t.reg .b64 %rd<2>;\n\t.reg .pred %p<1>;\n\twgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {{{all}}}, %rd0, %rd1, %p0, 1, 1, 0, 1;"
        );
        let mut ptx = text(&body, 512);
        assert_eq!(bound(&mut ptx, 4).map(|found| found.ctas), Some(3));
        let mut without = text(&body.replace("wgmma.mma_async", "wgmma.other"), 512);
        assert_eq!(bound(&mut without, 4).map(|found| found.ctas), Some(4));
    }

    #[test]
    fn what_spills_gets_fewer_ctas() {
        let with = |ctas: u64| {
            let text = String::from_utf8(text("", 128)).unwrap();
            text.replace(".minnctapersm 1", &format!(".minnctapersm {ctas}")).into_bytes()
        };
        // Four CTAs of four warps have 128 registers each; 136 bytes are 34 registers, which three leave.
        assert_eq!(with_fewer_spills(&with(4), 136), Some(with(3)));
        assert_eq!(with_fewer_spills(&with(4), 400), Some(with(2)));
        assert_eq!(with_fewer_spills(&with(3), 400), Some(with(2)));
        assert_eq!(with_fewer_spills(&with(1), 400), None);
        // Two of four warps have 255 registers each, and so has one.
        assert_eq!(with_fewer_spills(&with(2), 400), None);
        // Up to 96 bytes only where nearly as many warps are left: 12 of 16, 20 of 24, but not 8 of 12.
        assert_eq!(with_fewer_spills(&with(4), 64), Some(with(3)));
        assert_eq!(with_fewer_spills(&with(6), 36), Some(with(5)));
        assert_eq!(with_fewer_spills(&with(3), 96), None);
        assert_eq!(with_fewer_spills(&with(3), 100), Some(with(2)));
        assert_eq!(with_fewer_spills(&with(6), 12), None);
    }

    #[test]
    fn dots_of_few_warps_are_tried_with_more_ctas() {
        let with = |ctas: u64, body: &str, threads: u64| {
            let text = String::from_utf8(text(body, threads)).unwrap();
            text.replace(".minnctapersm 1", &format!(".minnctapersm {ctas}")).into_bytes()
        };
        let dot = "\tmma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r0}, {%r1}, {%r2}, {%r0};";
        let body = format!("\t.reg .b32 %r<4>;\n{dot}");
        let try_more = |ctas, threads, registers, most| {
            with_more_ctas(&with(ctas, &body, threads), registers, most)
                .map(|text| String::from_utf8(text).unwrap())
        };
        let says = |found: Option<String>, ctas: u64| {
            found.is_some_and(|text| text.contains(&format!(".minnctapersm {ctas}\n")))
        };
        // Twelve warps have 168 registers each, sixteen 128.
        assert!(says(try_more(3, 128, 160, 16), 4));
        assert!(says(try_more(1, 256, 156, 16), 2));
        // 128 suffice: sixteen warps run already. Shared memory has no room. Twenty warps are more than are tried.
        assert_eq!(try_more(3, 128, 128, 16), None);
        assert_eq!(try_more(3, 128, 160, 3), None);
        assert_eq!(try_more(4, 128, 120, 16), None);
        // 193 registers are 65 more than 128.
        assert_eq!(try_more(1, 256, 193, 16), None);
        assert_eq!(with_more_ctas(&with(3, "", 128), 160, 16), None, "no dots");
        // Of asynchronous dots those count that are not beside copies.
        let wgmma = body.replace("mma.sync", "wgmma.mma_async.sync");
        assert!(with_more_ctas(&with(3, &wgmma, 128), 160, 16).is_some());
        let copies = format!("{wgmma}\n\tcp.async.cg.shared.global [%r0], [%rd0], 16;");
        assert_eq!(with_more_ctas(&with(3, &copies, 128), 160, 16), None);
        // Unless the CTA would be alone, for its registers, and there is room for another one.
        assert!(with_more_ctas(&with(1, &copies, 256), 190, 2).is_some());
        assert_eq!(with_more_ctas(&with(1, &copies, 256), 190, 1), None);
        assert_eq!(with_more_ctas(&with(1, &copies, 256), 128, 2), None);
        assert_eq!(with_more_ctas(&with(1, &copies, 256), 210, 2), None, "too many to do without");
        // Fragments of 128 registers want 154, whatever else is computed again or spilled: ptxas refuses 128.
        let fragments = (0..128).map(|n| format!("%r{n}")).collect::<Vec<_>>().join(", ");
        let wide = format!(
            "\t.reg .b32 %r<130>;\n\t.reg .b64 %rd<3>;\n\twgmma.mma_async.sync.aligned.m64n256k16.f32.f16.f16 {{{fragments}}}, \
             %rd0, %rd1, 1, 1, 1, 0, 0;\n\tcp.async.cg.shared.global [%r0], [%rd0], 16;"
        );
        assert_eq!(with_more_ctas(&with(1, &wide, 256), 190, 2), None, "fragments have no room");
        assert!(is_worth_more_ctas(16) && !is_worth_more_ctas(20));
    }

    #[test]
    fn loops_that_load_have_registers_to_be_unrolled() {
        let head = "\t.reg .b32 \t%r<9>;\n\t.reg .pred \t%p<2>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n";
        let looped = format!(
            "{head}$L__BB0_1:\n\tld.global.b32 %r1, [%rd1];\n\tadd.s32 %r2, %r2, %r1;\n\tsetp.lt.s32 %p1, %r2, 100;\n\t@%p1 bra $L__BB0_1;\n\tst.global.b32 [%rd1], %r2;"
        );
        let straight = looped.replace("\t@%p1 bra $L__BB0_1;\n", "");
        let of = |body: &str, threads| bound(&mut text(body, threads), 2048 / threads).unwrap().ctas;
        assert_eq!((of(&looped, 128), of(&straight, 128)), (12, 16));
        // Three CTAs of sixteen warps are too few.
        assert_eq!((of(&looped, 256), of(&looped, 512)), (6, 4));
    }

    #[test]
    fn fewer_ctas_stay_for_half_of_the_stack() {
        assert!(is_worth_fewer_ctas(0, 16) && is_worth_fewer_ctas(50, 100));
        assert!(!is_worth_fewer_ctas(51, 100) && !is_worth_fewer_ctas(16, 16));
    }

    #[test]
    fn a_few_spills_are_less_than_half_of_the_warps() {
        // 129 registers; 16 warps have 128 each, 12 have 168.
        let found = bound(&mut text(&holds(126), 128), 16).unwrap();
        assert_eq!((found.registers, found.ctas), (129, 4));
        let found = bound(&mut text(&holds(150), 128), 16).unwrap();
        assert_eq!(found.ctas, 3);
    }

    #[test]
    fn what_can_be_done_one_by_one_needs_few() {
        let mut body = String::from(
            "\t.reg .b32 \t%r<300>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n\tmov.u32 %r0, %tid.x;\n\
             \tmul.wide.u32 %rd2, %r0, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n",
        );
        // Breadth first, as a tensor operation after the other is lowered: shared memory is read and written, and no
        // barrier says that one must wait for all of the other.
        (0..64).for_each(|i| body += &format!("\tld.global.nc.b32 %r{}, [%rd3+{}];\n", i + 1, 4 * i));
        (0..64).for_each(|i| body += &format!("\tmul.f32 %r{}, %r{}, %r{};\n", i + 101, i + 1, i + 1));
        (0..64).for_each(|i| body += &format!("\tst.shared.b32 [global_smem+{}], %r{};\n", 4 * i, i + 101));
        let found = bound(&mut text(&body, 128), 16).unwrap();
        // Three for addresses, one for a number, and of the 62 that the order of the text has besides the share that stays.
        assert!(found.registers <= 42, "{found:?}");
        assert!(found.ctas >= 8, "{found:?}");
    }

    #[test]
    fn many_loads_that_could_be_under_way_at_once_get_registers() {
        let sums = |n: usize, between: &str| {
            let mut body = format!(
                "\t.reg .b32 \t%r<{}>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n\tmov.u32 %r0, %tid.x;\n\
                 \tmul.wide.u32 %rd2, %r0, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n\tmov.b32 %r1, 0;\n",
                n + 3
            );
            for i in 0..n {
                let r = i + 2;
                body += &format!(
                    "\tld.global.b32 %r{r}, [%rd3+{}];\n\tadd.f32 %r1, %r1, %r{r};\n{between}",
                    512 * i
                );
            }
            body + "\tst.global.b32 [%rd3], %r1;\n"
        };
        let ctas = |n, between| bound(&mut text(&sums(n, between), 128), 16).unwrap().ctas;
        // A few are under way at once with 32 registers, and more CTAs hide latencies.
        assert_eq!(ctas(64, ""), 16);
        // A thousand are not: a kernel of few programs would wait forty times.
        assert!(ctas(1024, "") <= 5, "{}", ctas(1024, ""));
        // Where each waits for the one before, registers gain nothing.
        assert_eq!(ctas(1024, "\tbar.sync 0;\n"), 16);
        // Line tables change nothing.
        for n in [64, 128, 256, 512, 1024] {
            assert_eq!(ctas(n, "$L__tmp7:\n\t.loc\t2 263 15\n"), ctas(n, ""), "{n} loads");
        }
    }

    #[test]
    fn loads_do_not_pass_stores_that_may_write_what_they_read() {
        let mut body = String::from(
            "\t.reg .b32 \t%r<300>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n\tmov.u32 %r0, %tid.x;\n\
             \tmul.wide.u32 %rd2, %r0, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n",
        );
        (0..64).for_each(|i| body += &format!("\tld.global.b32 %r{}, [%rd3+{}];\n", i + 1, 4 * i));
        (0..64).for_each(|i| body += &format!("\tst.global.b32 [%rd3+{}], %r{};\n", 4 * i, i + 1));
        assert!(bound(&mut text(&body, 128), 16).unwrap().registers >= 64);
    }

    /// ptxas divides by a branch to a subroutine, so that what stands before all divisions is alive across the first.
    #[test]
    fn what_is_divided_later_is_alive_across_a_division() {
        let kernel = |divide: &str| {
            let mut body = String::from(
                "\t.reg .b32 \t%r<300>;\n\t.reg .b64 \t%rd<9>;\n\tld.param.b64 %rd1, [k_param_0];\n\tmov.u32 %r0, %tid.x;\n\
                 \tmul.wide.u32 %rd2, %r0, 4;\n\tadd.s64 %rd3, %rd1, %rd2;\n",
            );
            (1..65).for_each(|i| body += &format!("\tld.global.nc.b32 %r{i}, [%rd3+{}];\n", 4 * i));
            (1..65).for_each(|i| body += &format!("\t{divide} %r{}, %r{i}, %r0;\n", i + 100));
            (1..65)
                .for_each(|i| body += &format!("\tst.shared.b32 [global_smem+{}], %r{};\n", 4 * i, i + 100));
            bound(&mut text(&body, 128), 16).unwrap()
        };
        let (rounded, full) = (kernel("div.rn.f32"), kernel("div.full.f32"));
        // 64 numbers, the divisor, an address, and the subroutine's.
        assert!((71..=74).contains(&rounded.registers), "{rounded:?}");
        assert!(full.registers < rounded.registers - 20 && full.ctas > rounded.ctas, "{full:?}");
    }

    #[test]
    fn what_loops_carry_lives_throughout() {
        let mut body =
            String::from("\t.reg .pred \t%p<3>;\n\t.reg .b32 \t%r<300>;\n\tmov.u32 %r0, %tid.x;\n");
        (1..90).for_each(|i| body += &format!("\tadd.s32 %r{i}, %r0, {i};\n"));
        body += "$L__BB0_1:\n";
        (1..90).for_each(|i| body += &format!("\tadd.s32 %r{i}, %r{i}, %r{};\n", i % 89 + 1));
        body += "\tsetp.lt.s32 %p1, %r1, 100;\n\t@%p1 bra $L__BB0_1;\n";
        (1..90).for_each(|i| body += &format!("\tst.shared.b32 [global_smem+{}], %r{i};\n", 4 * i));
        let found = bound(&mut text(&body, 128), 16).unwrap();
        assert!((89..=91).contains(&found.registers), "{found:?}");
    }

    #[test]
    fn what_is_equal_in_all_threads_takes_no_registers_of_theirs() {
        let mut body = String::from("\t.reg .b32 \t%r<300>;\n\tld.param.b32 %r0, [k_param_0];\n");
        (1..90).for_each(|i| body += &format!("\tadd.s32 %r{i}, %r0, {i};\n"));
        body += "\tbar.sync 0;\n";
        (1..90).for_each(|i| body += &format!("\tst.shared.b32 [global_smem+{}], %r{i};\n", 4 * i));
        assert_eq!(bound(&mut text(&body, 128), 16).unwrap().registers, 0);
    }

    #[test]
    fn what_is_not_understood_stays() {
        for text in [
            "",
            ".entry",
            ".visible .entry k(",
            ".visible .entry k()\n.reqntid 128\n{\n\tret;\n}\n",
            ".visible .entry k()\n.reqntid 128\n.minnctapersm 1\n{\n\t.reg .b32 %r<2>;\n\tcall.uni f, ();\n\tret;\n}\n",
            ".visible .entry k()\n.reqntid 128\n.minnctapersm 1\n{\n\tmov.b32 %r7, 1;\n",
            ".visible .entry k()\n.reqntid many\n.minnctapersm 1\n{\n\tret;\n}\n",
        ] {
            let mut ptx = text.as_bytes().to_vec();
            let _ = bound(&mut ptx, 16);
            assert_eq!(ptx, text.as_bytes());
        }
    }
}
