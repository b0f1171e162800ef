//! `--tritongpu-allocate-warp-groups`: says which warps of a CTA run which partition of `ttg.warp_specialize`, and how
//! many registers each of them may have.
//!
//! Partitions run on *worker warps*, which follow the warps that a kernel begins with (its *default warps*). Every
//! `ttg.warp_specialize` of a kernel numbers its partitions from the first worker warp, the ones with most warps first,
//! so that partitions of whole warp groups begin at one (PTX ISA, "wgmma": a warp group is four warps of which the first
//! has a number that is a multiple of four). Numbers that the input gives are kept.
//!
//! Attributes that it writes:
//! * `warpGroupStartIds` on each `ttg.warp_specialize`, and `ttg.total-num-warps` on the module;
//! * `actualRegisters` where `requestedRegisters` asks for registers: those of a thread of the default warps, then of each
//!   partition; and `ttg.maxnreg` on the module, what every thread begins with;
//! * `ttg.runs_once` on one that is all that its kernel has, and that the kernel reaches exactly once: its worker warps
//!   need not be told what to run, nor when the kernel ends.

use crate::analysis::registers::REGISTERS;
use crate::is_private;
use crate::machine::{self, error};
use crate::thread_group::ThreadGroup;
use linear_layout::target::TargetDesc;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, Value, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::upstream::ConstantOp;
use ttopt_dialect::tt::ops::{CallOp, FuncOp};
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::{LocalAllocOp, WarpSpecializeOp};
use ttopt_dialect::ttg::types::{ASYNC_TOKEN, MemDescType};

/// The pass.
pub static ALLOCATE_WARP_GROUPS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    ..PassDef::new(
        "tritongpu-allocate-warp-groups",
        "Say which warps and registers the partitions of ttg.warp_specialize have",
        run,
    )
};

/// Marks a `ttg.warp_specialize` that is the only one of its kernel, which runs it exactly once.
pub const RUNS_ONCE: &str = "ttg.runs_once";
/// On a kernel: where in shared memory the word is that tells worker warps what to run, in bytes.
pub const DISPATCH: &str = "ttg.warp_dispatch";
/// Bytes of that word.
pub const DISPATCH_BYTES: u64 = 4;
/// Bytes that each word of what is captured takes in shared memory: a scalar, a pointer, an offset.
pub const CAPTURE_BYTES: u64 = 8;
/// The barrier at which all warps of a CTA wait for each other; a CTA has 16 (PTX ISA, "barrier"), of which 0 is the
/// default warps' and those from 1 are the partitions'.
pub const BARRIER_OF_ALL: u32 = 15;

/// Registers come in blocks of so many a thread, a thread can use 255 of them, `setmaxnreg` gives at least 24 (PTX ISA,
/// "setmaxnreg").
const REGISTER_STEP: u32 = 8;
const FEWEST_REGISTERS: u32 = 24;
const MOST_REGISTERS: u32 = 248;
/// Warps of a warp group.
const GROUP_WARPS: u32 = 4;
/// More than any CTA has.
const MOST_WARPS: u32 = 1 << 10;

/// Every `ttg.warp_specialize` under `root`.
pub fn specializations(root: Op<'_>) -> Vec<Op<'_>> {
    let mut found = Vec::new();
    root.walk(&mut |op| {
        if WarpSpecializeOp::cast(op).is_some() {
            found.push(op);
            // None is inside of another.
            return Walk::Skip;
        }
        Walk::Advance
    });
    found
}

/// How the worker warps of a kernel get a value that a partition captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// It is an argument of the kernel, which all warps have.
    Argument,
    /// It is computed again: a constant, or where a buffer is.
    Again,
    /// It is written to shared memory by the default warps, in so many words of [`CAPTURE_BYTES`].
    Words(u64),
}

impl Capture {
    /// How `value` is passed.
    ///
    /// # Errors
    /// For values that threads hold differently.
    pub fn of(value: Value<'_>) -> Result<Capture, String> {
        if value.ty().as_tensor().is_some() {
            return Err(format!(
                "a partition captures {}, whose elements only the default warps hold: pass it through shared memory",
                value.ty()
            ));
        }
        if let Some(op) = value.def_op() {
            let is_constant = ConstantOp::cast(op).is_some();
            let is_place = LocalAllocOp::cast(op).is_some() && op.num_operands() == 0;
            if is_constant || is_place {
                return Ok(Capture::Again);
            }
        } else if let Some(block) = value.arg_block()
            && let Some(function) = block.parent().filter(|op| FuncOp::cast(*op).is_some())
            && function.region(0).first_block() == Some(block)
        {
            return Ok(Capture::Argument);
        }
        Ok(Capture::Words(match MemDescType::cast(value.ty()) {
            Some(buffer) => 1 + u64::from(crate::buffer_plans::is_part(buffer)),
            None => u64::from(!value.ty().is(&ASYNC_TOKEN)),
        }))
    }

    /// Bytes of shared memory that it needs.
    pub fn bytes(self) -> u64 {
        match self {
            Capture::Words(words) => words * CAPTURE_BYTES,
            Capture::Argument | Capture::Again => 0,
        }
    }
}

/// Bytes of shared memory through which `op`, a `ttg.warp_specialize`, passes what its partitions capture.
///
/// # Errors
/// As [`Capture::of`].
pub fn capture_bytes(op: Op<'_>) -> Result<u64, String> {
    let captures = WarpSpecializeOp::of(op).partitions();
    captures.iter().flat_map(|op| op.explicit_captures()).map(|value| Ok(Capture::of(value)?.bytes())).sum()
}

/// Whether worker warps of `kernel` must be told what to run: it specializes warps in several places, or not exactly
/// once, or is one of a cluster, whose barriers worker warps take part in.
pub fn needs_dispatch(kernel: Op<'_>) -> bool {
    let in_cluster = module_attrs::num_ctas(kernel).unwrap_or(1) > 1;
    specializations(kernel).iter().any(|op| in_cluster || op.attr(RUNS_ONCE).is_none())
}

/// Registers of the threads of one `ttg.warp_specialize`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Of each thread of the kernel when it begins.
    pub at_start: u32,
    /// Of each of the default warps.
    pub own: u32,
    /// Of the worker warps, by warp group.
    pub workers: Vec<(ThreadGroup, u32)>,
}

impl Registers {
    /// Those that this pass gave to `op`, if it did.
    ///
    /// # Errors
    /// When attributes do not fit each other.
    pub fn of(op: Op<'_>) -> Result<Option<Registers>, String> {
        let specialize = WarpSpecializeOp::of(op);
        let Some(actual) = specialize.actual_registers() else { return Ok(None) };
        let number = |n: i32| u32::try_from(n).map_err(|_| format!("{n} is no number of registers"));
        let at_start = module_attrs::max_registers(op)
            .ok_or("has `actualRegisters` in a module without \"ttg.maxnreg\"")?;
        let total = module_attrs::total_num_warps(op).ok_or("needs \"ttg.total-num-warps\"")?;
        let own_warps = ThreadGroup::of(op)?.warps;
        let partitions: Vec<ThreadGroup> = specialize
            .partition_regions()
            .into_iter()
            .filter_map(|region| region.first_block()?.first())
            .map(ThreadGroup::of)
            .collect::<Result<_, _>>()?;
        let [own, others @ ..] = &actual[..] else { return Err("`actualRegisters` is empty".to_owned()) };
        if others.len() != partitions.len() || own_warps % GROUP_WARPS != 0 || total % GROUP_WARPS != 0 {
            return Err("`actualRegisters` do not fit the warps and partitions".to_owned());
        }
        let workers = (own_warps..total).step_by(GROUP_WARPS as usize).map(|first_warp| {
            let group = ThreadGroup { first_warp, warps: GROUP_WARPS, barrier: 0 };
            let meets = |other: &ThreadGroup| {
                other.first_warp < first_warp + GROUP_WARPS && first_warp < other.first_warp + other.warps
            };
            let inside = partitions.iter().zip(others).filter(|(other, _)| meets(other));
            let most = inside.map(|(_, registers)| *registers).max();
            Ok((group, most.map_or(Ok(FEWEST_REGISTERS), number)?))
        });
        let workers = workers.collect::<Result<_, String>>()?;
        Ok(Some(Registers { at_start, own: number(*own)?, workers }))
    }
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let functions: Vec<Op<'_>> =
        module.region(0).first_block().into_iter().flat_map(|block| block.ops()).collect();
    let mut total = module_attrs::total_num_warps(module).unwrap_or(0);
    let mut asks = Vec::new();
    for function in functions.into_iter().filter(|op| FuncOp::cast(*op).is_some()) {
        let found = specializations(function);
        for op in &found {
            op.remove_attr(RUNS_ONCE);
            check(*op, function)?;
            total = total.max(number_warps(*op)?);
        }
        if let [only] = found[..]
            && only.block() == function.region(0).first_block()
        {
            only.set_attr(RUNS_ONCE, Attr::unit(module.context()));
        }
        asks.extend(found);
    }
    if asks.is_empty() {
        return Ok(());
    }
    let target = machine::target(module)?;
    let requested = asks.iter().any(|op| WarpSpecializeOp::of(*op).requested_registers().is_some());
    if requested {
        // Registers are given to whole warp groups.
        total = total.next_multiple_of(GROUP_WARPS);
    }
    module_attrs::set_total_num_warps(module, total);
    if requested {
        let begins = registers_at_start(module, total, &target);
        module_attrs::set_max_registers(module, begins);
        for op in asks {
            give_registers(op, begins, total)?;
        }
    }
    Ok(())
}

fn check(op: Op<'_>, function: Op<'_>) -> PassResult {
    if is_private(function) {
        return Err(error(op, "is in a function that is called: warps specialize in kernels only"));
    }
    let specialize = WarpSpecializeOp::of(op);
    let (most, count) = (BARRIER_OF_ALL as usize - 1, specialize.partition_regions().len());
    if count > most {
        return Err(error(op, format!("has {count} partitions; there are barriers for {most}")));
    }
    capture_bytes(op).map_err(|message| error(op, message))?;
    for region in specialize.partition_regions() {
        for inside in region.blocks().flat_map(|block| block.ops()) {
            let mut call = None;
            inside.walk(&mut |op| {
                call = CallOp::cast(op).map(|_| op);
                if call.is_some() { Walk::Stop } else { Walk::Advance }
            });
            if let Some(call) = call {
                return Err(error(
                    call,
                    "functions that are not inlined are compiled for the warps of the kernel, not for those of a partition",
                ));
            }
        }
    }
    Ok(())
}

/// Gives each partition of `op` its first warp. Returns how many warps there are then.
fn number_warps(op: Op<'_>) -> Result<u32, Reported> {
    let specialize = WarpSpecializeOp::of(op);
    let warps: Vec<u32> = specialize.partition_num_warps().iter().map(|n| n.unsigned_abs()).collect();
    let own = ThreadGroup::of(op).map_err(|message| error(op, message))?.warps;
    let mut order: Vec<usize> = (0..warps.len()).collect();
    let starts: Vec<u32> = match specialize.warp_group_start_ids() {
        Some(given) => {
            let starts: Option<Vec<u32>> = given.iter().map(|start| u32::try_from(*start).ok()).collect();
            starts.ok_or_else(|| error(op, "`warpGroupStartIds` has a negative number"))?
        }
        None => {
            order.sort_by_key(|partition| std::cmp::Reverse(warps[*partition]));
            let (mut starts, mut next) = (vec![0; warps.len()], own);
            for partition in &order {
                starts[*partition] = next;
                next = next.saturating_add(warps[*partition]);
            }
            starts
        }
    };
    order.sort_by_key(|partition| starts[*partition]);
    let mut end = own;
    for partition in order {
        if starts[partition] < end {
            return Err(error(
                op,
                format!(
                    "partition {partition} begins at warp {}, which is not free: warps up to {end} have other work",
                    starts[partition]
                ),
            ));
        }
        end = starts[partition].saturating_add(warps[partition]);
    }
    if end > MOST_WARPS {
        return Err(error(op, format!("needs {end} warps, of which a CTA has at most {MOST_WARPS}")));
    }
    let starts: Vec<i32> = starts.iter().map(|start| *start as i32).collect();
    op.set_attr("warpGroupStartIds", Attr::i32_array(op.context(), &starts));
    Ok(end)
}

/// Registers of each thread when a kernel of `warps` warps begins: its share, or what the module says already.
fn registers_at_start(module: Op<'_>, warps: u32, target: &TargetDesc) -> u32 {
    let given = module_attrs::max_registers(module);
    let share = REGISTERS as u32 / (warps * target.lanes).max(1);
    let share = share - share % REGISTER_STEP;
    given.unwrap_or(share.clamp(FEWEST_REGISTERS, MOST_REGISTERS))
}

/// Divides the registers of a CTA with `total` warps: partitions get what they ask for, the default warps what is left.
fn give_registers(op: Op<'_>, begins: u32, total: u32) -> PassResult {
    let specialize = WarpSpecializeOp::of(op);
    let Some(requested) = specialize.requested_registers() else { return Ok(()) };
    let own = ThreadGroup::of(op).map_err(|message| error(op, message))?.warps;
    let warps = specialize.partition_num_warps();
    let starts = specialize.warp_group_start_ids().unwrap_or_default();
    if requested.len() != warps.len() {
        return Err(error(
            op,
            format!("`requestedRegisters` has {} entries for {} partitions", requested.len(), warps.len()),
        ));
    }
    if own % GROUP_WARPS != 0 {
        return Err(error(
            op,
            format!(
                "registers move between warp groups of {GROUP_WARPS} warps, but the kernel begins with {own}"
            ),
        ));
    }
    // By warp group: the most that one of its partitions asks for.
    let mut groups = vec![FEWEST_REGISTERS; (total / GROUP_WARPS) as usize];
    let groups_of = |i: usize| {
        let start = starts[i] as u32;
        (start / GROUP_WARPS) as usize..(start + warps[i] as u32).div_ceil(GROUP_WARPS) as usize
    };
    for (i, asked) in requested.iter().enumerate() {
        let Ok(asked) = u32::try_from(*asked) else {
            return Err(error(op, format!("`requestedRegisters` has the number {asked}")));
        };
        let asked = asked.clamp(FEWEST_REGISTERS, MOST_REGISTERS);
        let asked = asked.next_multiple_of(REGISTER_STEP);
        groups[groups_of(i)].iter_mut().for_each(|group| *group = (*group).max(asked));
    }
    let default_groups = (own / GROUP_WARPS) as usize;
    let workers: u32 = groups[default_groups..].iter().sum();
    let left = (begins * groups.len() as u32).saturating_sub(workers) / default_groups as u32;
    let left = (left - left % REGISTER_STEP).min(MOST_REGISTERS);
    if left < FEWEST_REGISTERS {
        return Err(error(
            op,
            format!(
                "its partitions ask for so many registers that {left} are left for each thread of the default warps"
            ),
        ));
    }
    let mut actual = vec![left as i32];
    actual.extend((0..warps.len()).map(|i| groups[groups_of(i).start] as i32));
    op.set_attr("actualRegisters", Attr::i32_array(op.context(), &actual));
    Ok(())
}
