//! `--tritongpu-kernel-decisions`: what lowering and code generation are to do with whole functions, written down as
//! attributes once shared memory is allocated. Lowering reads them and decides nothing.
//!
//! * `ttg.min_ctas_per_sm` on a kernel: how many of its CTAs a multiprocessor should hold at once. It is always there:
//!   ptxas, left without a bound, falls back to few registers and kilobytes of spills on some large kernels, and gives
//!   many others fewer registers than they need to keep loads in flight.
//! * `ttg.most_ctas_per_sm` on the module: how many of the kernel's CTAs shared memory and threads leave room for. Where
//!   the code is assembled, the bound is chosen anew up to this, from the registers that the code then needs.
//! * `ttg.rematerialize` on operations before the last loop, and `ttg.rematerialized_behind` on that loop: they are
//!   computed again behind it, so that their results take no registers throughout
//!   ([`Recomputation`]).
//! * `ttg.issuing_warp` on the module: the warp of each group of threads of which one lane issues bulk copies and makes
//!   barriers in shared memory.
//! * `ttg.first_warp_only` on operations that wait for a tensor map: only the issuing warp uses it, since no rows are
//!   copied one by one by all warps. Where the mark is missing, all threads wait.
//! * `ttg.reduce_loop_addresses` on the module: whether LLVM's loop passes run, which unroll loops of few iterations and
//!   give the addresses of a loop a register each. Dots in loops need the registers.

use crate::analysis::recomputation::Recomputation;
use crate::analysis::registers::{RESERVED, ctas_together, is_short_of_registers};
use crate::ir_util::{constant, multiplies};
use crate::is_private;
use crate::machine::{self, Machine};
use crate::schedule::pass::SCHEDULED_CTAS;
use crate::warp_groups::specializations;
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::upstream::{ForOp, WhileOp};
use ttopt_dialect::tt::ops::FuncOp;
use ttopt_dialect::ttg::module_attrs;
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, MemDescIndexOp, is_memdesc_view};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::{
    AsyncTmaGatherOp, AsyncTmaScatterOp, TensormapFenceproxyAcquireOp, WarpGroupDotOp,
};

/// CTAs of a kernel that a multiprocessor should hold at once, an `i32` of at least one.
pub const MIN_CTAS: &str = "ttg.min_ctas_per_sm";
/// CTAs of a kernel for which a multiprocessor has shared memory and threads, an `i32` of at least one.
pub const MOST_CTAS: &str = "ttg.most_ctas_per_sm";
/// Marks an operation that is computed again behind the loop with [`REMATERIALIZED_BEHIND`].
pub const REMATERIALIZE: &str = "ttg.rematerialize";
/// Marks the loop behind which operations with [`REMATERIALIZE`] are computed again.
pub const REMATERIALIZED_BEHIND: &str = "ttg.rematerialized_behind";
/// The warp, counted from the first of its group of threads, of which one lane issues bulk copies: an `i32`.
pub const ISSUING_WARP: &str = "ttg.issuing_warp";
/// Marks an operation that waits for a tensor map which only the issuing warp uses.
pub const FIRST_WARP_ONLY: &str = "ttg.first_warp_only";
/// Marks a copy whose masks are to be predicates, where each access has its own. Predicates are computed again for each copy, from
/// what takes more registers than the numbers of bytes that could say the same.
pub const MASKS_ARE_PREDICATES: &str = "ttg.masks_are_predicates";
/// Marks a dot whose warp is found out where the function begins: else it is where the dot is, which holds no register in between.
pub const WARP_OUTSIDE_LOOPS: &str = "ttg.warp_outside_loops";
/// Whether the addresses of loops are to be reduced in strength, a `bool`.
pub const REDUCE_LOOP_ADDRESSES: &str = "ttg.reduce_loop_addresses";

/// The pass.
pub static TRITONGPU_KERNEL_DECISIONS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttg"],
    options: &[PassOption {
        name: "explain",
        description: "report what was decided and why, as remarks",
        kind: OptionKind::Bool(false),
    }],
    ..PassDef::new(
        "tritongpu-kernel-decisions",
        "Write down CTAs per multiprocessor, what is rematerialized behind a loop, and whether loop addresses are reduced",
        run,
    )
};

fn run(module: Op<'_>, options: &Options) -> PassResult {
    let (target, machine) = (machine::target(module)?, Machine::of(module)?);
    let ctx = module.context();
    let explains = options.bool("explain");
    module.set_attr(REDUCE_LOOP_ADDRESSES, Attr::bool(ctx, !loops_multiply(module)));
    module.set_attr(ISSUING_WARP, Attr::int_of(Type::int(ctx, 32), 0));
    mark_maps(module);
    let shared = module.attr("ttg.shared").and_then(Attr::as_int).map_or(0, |bytes| bytes.max(0) as u64);
    let warps = module_attrs::total_num_warps(module).map_or(machine.num_warps, u64::from);
    let most = most_ctas(warps * machine.threads_per_warp, shared, &target);
    module.set_attr(MOST_CTAS, Attr::int_of(Type::int(ctx, 32), most as i64));
    let functions = module.region(0).first_block().into_iter().flat_map(|block| block.ops());
    for function in functions.filter(|op| FuncOp::cast(*op).is_some() && op.region(0).first_block().is_some())
    {
        let scheduled = scheduled(function);
        if !is_private(function) {
            // Warps of partitions hide each other's latency.
            let specialized = !specializations(function).is_empty();
            let ctas =
                if specialized { 1 } else { ctas_together(function, machine.num_warps, shared, &target) };
            let ctas = scheduled.map_or(ctas, |most| ctas.min(most));
            function.set_attr(MIN_CTAS, Attr::int_of(Type::int(ctx, 32), ctas as i64));
            if explains && ctas > 1 {
                function.remark(format!(
                    "asks for the registers of {ctas} CTAs a multiprocessor, whose warps hide each other's latency"
                ));
            }
        }
        mark_masks(function, machine.num_warps, &target);
        mark_warps(function);
        if let Some(again) = Recomputation::of(function, machine.num_warps, &target) {
            again.behind.set_attr(REMATERIALIZED_BEHIND, Attr::unit(ctx));
            again.ops.iter().for_each(|op| op.set_attr(REMATERIALIZE, Attr::unit(ctx)));
            if explains {
                again.behind.remark(format!(
                    "takes nearly all registers: {} operations are computed again behind it",
                    again.ops.len()
                ));
            }
        }
    }
    Ok(())
}

/// Whether a loop of `module` has dots, or one of its functions has, which may be called in a loop.
fn loops_multiply(module: Op<'_>) -> bool {
    let mut visit = |op: Op<'_>| {
        let is_called = FuncOp::cast(op).is_some() && is_private(op);
        match is_called || ForOp::cast(op).is_some() || WhileOp::cast(op).is_some() {
            true if multiplies(op) => Walk::Stop,
            // Nor have the loops in it.
            true => Walk::Skip,
            false => Walk::Advance,
        }
    };
    module.walk(&mut visit) == Walk::Stop
}

/// CTAs of `threads` threads and `shared` bytes of shared memory for which a multiprocessor has both.
pub fn most_ctas(threads: u64, shared: u64, target: &TargetDesc) -> u64 {
    let by_threads = u64::from(target.resident_threads) / threads.max(1);
    let by_shared = (target.shared_bytes + RESERVED) / (shared + RESERVED);
    by_threads.min(by_shared).clamp(1, u64::from(target.resident_ctas))
}

/// The CTAs of a multiprocessor that the schedules of loops were made for: they hide latencies themselves, and addresses
/// of what they load ahead take registers that no tensor shows.
fn scheduled(function: Op<'_>) -> Option<u64> {
    let ctas = function.attr(SCHEDULED_CTAS).and_then(Attr::as_int).and_then(|ctas| u64::try_from(ctas).ok());
    function.remove_attr(SCHEDULED_CTAS);
    ctas.filter(|ctas| *ctas > 0)
}

/// Marks the copies of `function` with masks, if it has registers for predicates.
fn mark_masks(function: Op<'_>, warps: u64, target: &TargetDesc) {
    let mut copies = Vec::new();
    function.walk(&mut |op| {
        copies.extend(AsyncCopyGlobalToLocalOp::cast(op).filter(|copy| copy.mask().is_some()).map(|_| op));
        Walk::Advance
    });
    if !copies.is_empty() && !is_short_of_registers(function, warps, target) {
        copies.into_iter().for_each(|op| op.set_attr(MASKS_ARE_PREDICATES, Attr::unit(op.context())));
    }
}

/// Marks the dots whose warp is a number that may be held in a register throughout a loop. Dots whose buffers are the same in all iterations
/// are not marked: all their descriptors would be held.
fn mark_warps(function: Op<'_>) {
    let mut dots = Vec::new();
    function.walk(&mut |op| {
        let dot = WarpGroupDotOp::cast(op)
            .filter(|dot| [dot.a(), dot.b()].iter().all(|operand| changes(*operand, op)));
        dots.extend(dot.map(|_| op));
        Walk::Advance
    });
    dots.into_iter().for_each(|op| op.set_attr(WARP_OUTSIDE_LOOPS, Attr::unit(op.context())));
}

/// Whether `operand` of `dot` is no buffer, or the slot of a ring that the block of the dot chooses.
fn changes<'c>(operand: Value<'c>, dot: Op<'c>) -> bool {
    let mut buffer = operand;
    while MemDescType::cast(buffer.ty()).is_some() {
        let made = buffer.def_op().filter(|op| op.block() == dot.block());
        match made {
            Some(op) if MemDescIndexOp::cast(op).is_some_and(|slot| constant(slot.index()).is_none()) => {
                return true;
            }
            Some(op) if is_memdesc_view(op) => buffer = op.operand(0),
            _ => return false,
        }
    }
    true
}

/// Marks waits for tensor maps where no rows are copied one by one.
fn mark_maps(module: Op<'_>) {
    let (mut maps, mut rows) = (Vec::new(), false);
    module.walk(&mut |op| {
        rows |= AsyncTmaGatherOp::cast(op).is_some() || AsyncTmaScatterOp::cast(op).is_some();
        maps.extend(TensormapFenceproxyAcquireOp::cast(op).map(|_| op));
        Walk::Advance
    });
    if !rows {
        maps.into_iter().for_each(|op| op.set_attr(FIRST_WARP_ONLY, Attr::unit(op.context())));
    }
}
