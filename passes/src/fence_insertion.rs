//! `--triton-nvidia-gpu-fence-insertion`: what threads wrote to shared memory is
//! made visible to matrix instructions that read it on their own.
//!
//! `wgmma` reads through another proxy than loads and stores do: between a write
//! and such a read there must be a `fence.proxy.async` (PTX ISA, "Async proxy").
//! Dots in the basic block that a buffer was filled in have it before them; a buffer
//! that is filled once for dots elsewhere, as in a loop, is followed by its own.
//! Bulk copies write through the same proxy, so that buffers which only these
//! fill need none.

use crate::ir_util::{fills_constant_buffer, viewed};
use mlir_host::asm::Reported;
use mlir_host::flow::is_region_branch;
use mlir_host::ir::{Block, Op, Value, Walk};
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use ttopt_dialect::tt::ops::CallOp;
use ttopt_dialect::ttg::ops::AsyncWaitOp;
use ttopt_dialect::ttg::ops::{
    LocalAllocOp, LocalDeallocOp, LocalLoadOp, LocalScatterOp, LocalStoreOp, is_memdesc_view,
};
use ttopt_dialect::ttg::types::MemDescType;
use ttopt_dialect::ttng::ops::WaitBarrierOp;
use ttopt_dialect::ttng::ops::{
    AsyncTmaCopyGlobalToLocalOp, AsyncTmaCopyLocalToGlobalOp, AsyncTmaGatherOp, AsyncTmaReduceOp,
    AsyncTmaScatterOp, FenceAsyncSharedOp, WarpGroupDotOp, WarpGroupDotWaitOp,
};

/// The pass.
pub static FENCE_INSERTION: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["ttng"],
    ..PassDef::new(
        "triton-nvidia-gpu-fence-insertion",
        "Put fences between writes to shared memory and matrix instructions that read it",
        run,
    )
};

/// Whether `op` is a fence between accesses by threads and by the async proxy.
pub(crate) fn is_fence(op: Op<'_>) -> bool {
    FenceAsyncSharedOp::cast(op).is_some()
}

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut blocks = Vec::new();
    module.walk(&mut |op| {
        blocks.extend(op.regions().flat_map(|region| region.blocks()));
        Walk::Advance
    });
    blocks.into_iter().try_for_each(insert)
}

/// Puts fences where a block needs them.
fn insert(block: Block<'_>) -> PassResult {
    // Whether nothing was written since a fence of this block.
    let mut fenced = false;
    let ops: Vec<Op<'_>> = block.ops().collect();
    for op in ops {
        if is_fence(op) {
            fenced = true;
        } else if filled_for_elsewhere(op) {
            if op.next().is_some_and(|next| !is_fence(next)) {
                fence(op)?.move_after(op);
            }
            fenced = true;
        } else if may_write(op) {
            fenced = false;
        } else if let Some(dot) = WarpGroupDotOp::cast(op)
            && !fenced
            && [dot.a(), dot.b()].into_iter().any(|operand| written_by_threads(operand))
        {
            fence(op)?.move_before(op);
            fenced = true;
        }
    }
    Ok(())
}

/// A fence with the location of `op`, to be put somewhere.
pub(crate) fn fence(op: Op<'_>) -> Result<Op<'_>, Reported> {
    Ok(FenceAsyncSharedOp::build(op.loc(), false).detached()?.op())
}

/// Whether `op` fills a buffer, which nothing else writes, for dots that are all in other blocks.
fn filled_for_elsewhere(op: Op<'_>) -> bool {
    if !fills_constant_buffer(op) {
        return false;
    }
    let mut dots = 0;
    let mut open = vec![op.result(0)];
    while let Some(value) = open.pop() {
        for (user, _) in value.uses() {
            if is_memdesc_view(user) {
                open.push(user.result(0));
            } else if WarpGroupDotOp::cast(user).is_some() {
                if user.block() == op.block() {
                    return false;
                }
                dots += 1;
            }
        }
    }
    dots > 0
}

/// Whether threads may write shared memory in `op`, or find out that their copies are there.
fn may_write(op: Op<'_>) -> bool {
    match_op!(op, {
        LocalAllocOp(alloc) => alloc.src().is_some(),
        LocalStoreOp | LocalScatterOp | AsyncWaitOp | CallOp => true,
        // Regions of reductions and scans compute with scalars.
        _ => is_region_branch(op),
    })
}

/// Whether a buffer may hold what threads have written.
fn written_by_threads(operand: Value<'_>) -> bool {
    if MemDescType::cast(operand.ty()).is_none() {
        return false;
    }
    let root = viewed(operand);
    match root.def_op() {
        Some(op) if filled_for_elsewhere(op) => return false,
        Some(op) if LocalAllocOp::cast(op).is_some() && op.num_operands() == 0 => {}
        _ => return true,
    }
    let mut open = vec![root];
    while let Some(value) = open.pop() {
        for (op, _) in value.uses() {
            if is_memdesc_view(op) {
                open.push(op.result(0));
                continue;
            }
            match_op!(op, {
                AsyncTmaCopyGlobalToLocalOp | AsyncTmaGatherOp | AsyncTmaCopyLocalToGlobalOp | AsyncTmaScatterOp
                | AsyncTmaReduceOp | WaitBarrierOp | WarpGroupDotOp | LocalLoadOp | LocalDeallocOp => {},
                WarpGroupDotWaitOp => {
                    let results = op.operands().zip(op.results()).filter(|(operand, _)| *operand == value);
                    open.extend(results.map(|(_, result)| result));
                },
                _ => return true,
            });
        }
    }
    false
}
