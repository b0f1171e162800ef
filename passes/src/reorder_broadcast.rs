//! `--triton-reorder-broadcast`: compute first, then repeat.
//!
//! An elementwise operation on tensors that repeat something smaller — splats
//! of scalars, broadcasts along dimensions of size one — is done on what they
//! repeat, and its result is repeated instead.

use crate::ir_util::splat_constant;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::is_one_of;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::{Pattern, Rewriter, apply_greedily};
use mlir_host::upstream::{ConstantOp, Dialect};
use ttopt_dialect::tt::ops::{
    AddPtrOp, BitcastOp, BroadcastOp, ClampFOp, FpToFpOp, IntToPtrOp, PtrToIntOp, SplatOp,
};

/// The pass.
pub static TRITON_REORDER_BROADCAST: PassDef = PassDef {
    dependencies: &["arith", "tt"],
    ..PassDef::new(
        "triton-reorder-broadcast",
        "Move elementwise operations before splats and broadcasts of their operands",
        run,
    )
};

static BEFORE: Pattern = Pattern {
    name: "compute-before-repeating",
    root: "",
    benefit: 1,
    apply: |op, rewriter| on_scalars(op, rewriter).is_some() || on_smaller_tensors(op, rewriter).is_some(),
};

fn run(root: Op<'_>, _: &Options) -> PassResult {
    // Patterns that went on forever would still leave valid IR.
    apply_greedily(root, &[&BEFORE]);
    Ok(())
}

/// Whether the operation computes each element from those at the same place,
/// and the same way on tensors of any shape and on scalars.
fn is_elementwise(op: Op<'_>) -> bool {
    let known = match Dialect::of(op) {
        Some(Dialect::Arith) => ConstantOp::cast(op).is_none(),
        Some(Dialect::Math) => true,
        _ => is_one_of!(op, AddPtrOp | BitcastOp | FpToFpOp | IntToPtrOp | PtrToIntOp | ClampFOp),
    };
    // Hints speak of a tensor's elements.
    known && op.num_results() == 1 && op.num_operands() > 0 && op.discardable_attrs().is_empty()
}

/// A copy of `op` with other operands and another result type, before it.
fn copy<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>, operands: &[Value<'c>], ty: Type<'c>) -> Value<'c> {
    rewriter.set_before(op);
    let copy = rewriter.clone_op(op);
    copy.set_operands(operands);
    copy.result(0).set_type(ty);
    copy.result(0)
}

fn on_scalars<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let result = op.results().next().filter(|_| is_elementwise(op))?.ty();
    result.as_tensor()?;
    let repeats = |value: Value<'c>| SplatOp::defining(value).is_some();
    let scalar_or_splat = |value: Value<'c>| {
        value.ty().as_tensor().is_none() || repeats(value) || splat_constant(value).is_some()
    };
    if !op.operands().any(repeats) || !op.operands().all(scalar_or_splat) {
        return None;
    }
    let mut operands = Vec::new();
    for value in op.operands() {
        operands.push(match (SplatOp::defining(value), splat_constant(value)) {
            (Some(splat), _) => splat.src(),
            (None, Some(constant)) => {
                rewriter.set_before(op);
                let ty = value.ty().element();
                rewriter
                    .generic("arith.constant", op.loc(), &[], &[ty], &[("value", constant)])
                    .ok()?
                    .result(0)
            }
            (None, None) => value,
        });
    }
    let scalar = copy(op, rewriter, &operands, result.element());
    let splat = SplatOp::build(op.loc(), scalar).results(&[result]).insert(rewriter).ok()?;
    rewriter.replace(op, &[splat.result()]);
    Some(())
}

fn on_smaller_tensors<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let result = op.results().next().filter(|_| is_elementwise(op))?.ty().as_tensor()?;
    let mut small: Option<TensorType<'c>> = None;
    for value in op.operands() {
        if let Some(broadcast) = BroadcastOp::defining(value) {
            let ty = broadcast.src().ty().as_tensor()?;
            if small.is_some_and(|small| small.shape() != ty.shape() || small.encoding() != ty.encoding()) {
                return None;
            }
            small = Some(ty);
        } else if value.ty().as_tensor().is_some()
            && SplatOp::defining(value).is_none()
            && splat_constant(value).is_none()
        {
            return None;
        }
    }
    let small = small?;
    let like = |element: Type<'c>| small.with_element(element).map(TensorType::ty);
    rewriter.set_before(op);
    let mut operands = Vec::new();
    for value in op.operands() {
        let loc = op.loc();
        operands.push(if let Some(broadcast) = BroadcastOp::defining(value) {
            broadcast.src()
        } else if let Some(splat) = SplatOp::defining(value) {
            let ty = like(value.ty().element())?;
            SplatOp::build(loc, splat.src()).results(&[ty]).insert(rewriter).ok()?.result()
        } else if let Some(constant) = splat_constant(value) {
            let ty = like(value.ty().element())?;
            let attrs = [("value", Attr::splat(ty, constant))];
            rewriter.generic("arith.constant", loc, &[], &[ty], &attrs).ok()?.result(0)
        } else {
            value
        });
    }
    let computed = copy(op, rewriter, &operands, like(result.element())?);
    let broadcast = BroadcastOp::build(op.loc(), computed).results(&[result.ty()]).insert(rewriter).ok()?;
    rewriter.replace(op, &[broadcast.result()]);
    Some(())
}
