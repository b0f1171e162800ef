//! `--triton-licm`: what is the same in every iteration, before the loop.
//!
//! Pure operations whose operands come from outside of a loop move before it, and
//! so do buffers in shared memory that are filled once with such operands: they
//! hold what registers would hold throughout the loop.
//!
//! Loads move, too, from an `scf.for` in which nothing writes memory or waits for
//! another thread: since the loop may run no iteration, and its pointers may
//! then point nowhere, such a load is masked by whether it runs one. Divisions of numbers move from any
//! `scf.for`: where that runs no iteration, they divide by one.

use crate::ir_util::{fills_constant_buffer, is_loop, loop_predicate, trip_count};
use crate::machine::error;
use crate::schedule::source::is_division;
use crate::tma;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, Type, Value, Walk};
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{IrRewriter, Rewriter};
use mlir_host::traits::Upstream;
use mlir_host::upstream::ForOp;
use ttopt_dialect::tt::ops::{LoadOp, SplatOp};

/// The pass.
pub static TRITON_LICM: PassDef = PassDef {
    dependencies: &["arith", "tt"],
    ..PassDef::new(
        "triton-licm",
        "Move what is the same in all iterations before the loop, loads included",
        run,
    )
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    let mut loops = Vec::new();
    root.walk_post(&mut |op| {
        if is_loop(op) {
            loops.push(op);
        }
    });
    let mut rewriter = IrRewriter::new(root.context());
    // Inner loops come first: what leaves one may leave the next.
    loops.into_iter().try_for_each(|op| hoist(&mut rewriter, op))
}

fn hoist<'c>(rewriter: &mut Rewriter<'c>, op: Op<'c>) -> PassResult {
    let loads_may_move = ForOp::cast(op).is_some() && only_reads(op) && trip_count(op) != Some(0);
    // Whether the loop runs at all, once it has been computed.
    let mut runs: Option<Value<'c>> = None;
    for region in op.regions() {
        for block in region.blocks() {
            let mut next = block.first();
            while let Some(inner) = next {
                next = inner.next();
                if inner.has_trait(Upstream::Terminator) || !is_invariant(inner, op) {
                    continue;
                }
                if inner.is_pure() || fills_constant_buffer(inner) {
                    inner.move_before(op);
                } else if is_division(inner) && divides_once(inner, op) {
                    if trip_count(op).is_none() {
                        keep_from_zero(rewriter, op, inner, &mut runs)?;
                    }
                    inner.move_before(op);
                } else if loads_may_move
                    && let Some(load) = LoadOp::cast(inner)
                    && !load.is_volatile()
                {
                    if trip_count(op).is_some() {
                        inner.move_before(op);
                    } else {
                        hoist_load(rewriter, op, inner, load, &mut runs)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// Whether neither the loop nor anything in it writes memory or synchronizes.
fn only_reads(op: Op<'_>) -> bool {
    op.walk(&mut |inner| {
        let reads = LoadOp::cast(inner).is_some_and(|load| !load.is_volatile()) || tma::is_load(inner);
        if reads || inner.has_trait(Upstream::RecursiveMemoryEffects) || inner.is_memory_effect_free() {
            Walk::Advance
        } else {
            Walk::Stop
        }
    }) != Walk::Stop
}

/// Whether no operand of `op`, or of what is nested in it, is made in the loop.
fn is_invariant<'c>(op: Op<'c>, within: Op<'c>) -> bool {
    let inside = |value: Value<'c>| {
        let mut owner = value.def_op().map_or_else(|| value.arg_block()?.parent(), Some);
        while let Some(at) = owner {
            if at == op {
                return false;
            }
            // A result of the loop itself cannot be used inside of it.
            if at == within {
                return true;
            }
            owner = at.parent();
        }
        false
    };
    op.walk(&mut |nested| {
        if nested.operands().any(inside) { Walk::Stop } else { Walk::Advance }
    }) != Walk::Stop
}

/// Whether each iteration of `op` does `division`, which may trap, and nothing is to be known of its divisor: that of a tensor says
/// which elements are equal.
fn divides_once(division: Op<'_>, op: Op<'_>) -> bool {
    ForOp::cast(op).is_some() && trip_count(op) != Some(0) && division.result(0).ty().as_tensor().is_none()
}

/// Whether `op`, an `scf.for`, runs an iteration, computed before it.
fn runs_at_all<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    runs: &mut Option<Value<'c>>,
) -> Result<Value<'c>, Reported> {
    rewriter.set_before(op);
    if let Some(known) = *runs {
        return Ok(known);
    }
    let predicate = Attr::int(op.context(), 64, loop_predicate(op));
    let i1 = Type::int(op.context(), 1);
    let operands = [op.operand(0), op.operand(1)];
    let made = rewriter.generic("arith.cmpi", op.loc(), &operands, &[i1], &[("predicate", predicate)])?;
    *runs = Some(made.result(0));
    Ok(made.result(0))
}

/// Has `division` divide by one where `op` runs no iteration.
fn keep_from_zero<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    division: Op<'c>,
    runs: &mut Option<Value<'c>>,
) -> PassResult {
    let runs = runs_at_all(rewriter, op, runs)?;
    let divisor = division.operand(1);
    let ty = divisor.ty();
    let one = rewriter.generic("arith.constant", op.loc(), &[], &[ty], &[("value", Attr::int_of(ty, 1))])?;
    let made = rewriter.generic("arith.select", op.loc(), &[runs, divisor, one.result(0)], &[ty], &[])?;
    division.set_operand(1, made.result(0));
    Ok(())
}

fn hoist_load<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    old: Op<'c>,
    load: LoadOp<'c>,
    runs: &mut Option<Value<'c>>,
) -> PassResult {
    let condition = runs_at_all(rewriter, op, runs)?;
    let pointer = old.operand(0);
    let mut mask = condition;
    if let Some(tensor) = pointer.ty().as_tensor() {
        let ty = tensor.with_element(condition.ty()).ok_or_else(|| error(old, "no type for a mask"))?;
        mask = SplatOp::build(old.loc(), mask).results(&[ty.ty()]).insert(rewriter)?.result();
    }
    if let Some(own) = load.mask() {
        let made = rewriter.generic("arith.andi", old.loc(), &[mask, own], &[mask.ty()], &[]);
        mask = made?.result(0);
    }
    let made = LoadOp::build(old.loc(), pointer)
        .mask(mask)
        .other(load.other())
        .cache_policy(load.cache_policy())
        .is_volatile(load.is_volatile())
        .discardable_of(old)
        .results(&[load.result().ty()])
        .insert(rewriter)?;
    rewriter.replace(old, &[made.result()]);
    Ok(())
}
