//! `--tritonamdgpu-plain-operations`: operations of the dialect `amdg` become those of `tt` and `ttg` that do the same, so
//! that TTGIR of Triton's own is lowered by the plans and handlers that there are.
//!
//! * Accesses to a base and offsets are accesses through `addptr(splat(base), offsets)`. Loads and stores are marked as
//!   `--tritonamdgpu-buffer-accesses` marks them: whoever wrote `amdg.buffer_load` knows that the offsets fit. The stride of a
//!   row, by which caches may be told apart, and what is known of contiguity are hints. Loads to shared memory are copies.
//! * A transposition within threads is a conversion between its two layouts: which registers move is in them.
//! * Formats of 4 and 8 bits that are widened and scaled are widened first; products with powers of two, rounded once.

use crate::buffer_accesses::BUFFER;
use crate::ir_util::emit;
use crate::machine::error;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, FloatKind, Op, Type, Value, Walk};
use mlir_host::is_one_of;
use mlir_host::match_op;
use mlir_host::pass::{Options, PassDef, PassResult};
use mlir_host::rewrite::create;
use ttopt_dialect::amdg::ops::{
    BufferAtomicCasOp, BufferAtomicRmwOp, BufferLoadOp, BufferLoadToLocalOp, BufferStoreOp,
    InThreadTransposeOp, ScaledUpcastFp4Op, ScaledUpcastFp8Op,
};
use ttopt_dialect::tt::ops::{AtomicCasOp, AtomicRmwOp, LoadOp, StoreOp};
use ttopt_dialect::ttg::ops::{AsyncCopyGlobalToLocalOp, ConvertLayoutOp, Fp4ToFpOp};

/// The pass.
pub static TRITONAMDGPU_PLAIN_OPERATIONS: PassDef = PassDef {
    anchor: "builtin.module",
    dependencies: &["arith", "tt", "ttg"],
    ..PassDef::new(
        "tritonamdgpu-plain-operations",
        "Turn operations of the dialect amdg into those of tt and ttg that do the same",
        run,
    )
};

fn run(module: Op<'_>, _: &Options) -> PassResult {
    let mut found = Vec::new();
    module.walk(&mut |op| {
        if is_rewritten(op) {
            found.push(op);
        }
        Walk::Advance
    });
    found.into_iter().try_for_each(rewrite)
}

/// Whether there is something else that does the same; lowering has, or refuses, the others.
fn is_rewritten(op: Op<'_>) -> bool {
    is_one_of!(
        op,
        BufferLoadOp
            | BufferLoadToLocalOp
            | BufferStoreOp
            | BufferAtomicRmwOp
            | BufferAtomicCasOp
            | InThreadTransposeOp
            | ScaledUpcastFp4Op
            | ScaledUpcastFp8Op
    )
}

fn rewrite(op: Op<'_>) -> PassResult {
    let made = match_op!(op, {
        BufferLoadOp(load) => buffer_load(load)?,
        BufferLoadToLocalOp(load) => buffer_load_to_local(load)?,
        BufferStoreOp(store) => buffer_store(store)?,
        BufferAtomicRmwOp(rmw) => buffer_rmw(rmw)?,
        BufferAtomicCasOp(cas) => buffer_cas(cas)?,
        InThreadTransposeOp(transpose) => ConvertLayoutOp::build(op.loc(), transpose.src())
            .results(&[op.result(0).ty()])
            .detached()?
            .op(),
        ScaledUpcastFp4Op(upcast) => upcast_fp4(upcast)?,
        ScaledUpcastFp8Op(upcast) => upcast_fp8(upcast)?,
        _ => return Ok(()),
    });
    if made.block().is_none() {
        made.move_before(op);
    }
    for (old, new) in op.results().zip(made.results()) {
        old.replace_all_uses_with(new);
    }
    op.erase();
    Ok(())
}

/// The pointers to what lies at `offsets` from `base`.
fn pointers<'c>(op: Op<'c>, base: Value<'c>, offsets: Value<'c>) -> Result<Value<'c>, Reported> {
    let ty = offsets.ty().as_tensor().and_then(|ty| ty.with_element(base.ty()));
    let ty = ty.ok_or_else(|| error(op, "has offsets that are no tensor"))?.ty();
    let bases = emit(op, "tt.splat", &[base], ty)?;
    emit(op, "tt.addptr", &[bases, offsets], ty)
}

fn mark(op: Op<'_>) -> Op<'_> {
    op.set_attr(BUFFER, Attr::unit(op.context()));
    op
}

fn buffer_load(load: BufferLoadOp<'_>) -> Result<Op<'_>, Reported> {
    let op = load.op();
    let made = LoadOp::build(op.loc(), pointers(op, load.ptr(), load.offsets())?)
        .mask(load.mask())
        .other(load.other())
        .cache_policy(load.cache_policy());
    Ok(mark(made.results(&[op.result(0).ty()]).detached()?.op()))
}

fn buffer_load_to_local(load: BufferLoadToLocalOp<'_>) -> Result<Op<'_>, Reported> {
    let op = load.op();
    let made =
        AsyncCopyGlobalToLocalOp::build(op.loc(), pointers(op, load.ptr(), load.offsets())?, load.dest())
            .mask(load.mask())
            .other(load.other())
            .cache_policy(load.cache_policy())
            .contiguity(load.contiguity());
    Ok(mark(made.results(&[op.result(0).ty()]).detached()?.op()))
}

fn buffer_store(store: BufferStoreOp<'_>) -> Result<Op<'_>, Reported> {
    let op = store.op();
    let made = StoreOp::build(op.loc(), pointers(op, store.ptr(), store.offsets())?, store.value());
    Ok(mark(made.mask(store.mask()).cache_policy(store.cache_policy()).detached()?.op()))
}

fn buffer_rmw(rmw: BufferAtomicRmwOp<'_>) -> Result<Op<'_>, Reported> {
    let op = rmw.op();
    let pointers = pointers(op, rmw.ptr(), rmw.offsets())?;
    let (kind, sem, scope) = (rmw.atomic_rmw_op(), rmw.sem(), rmw.scope());
    let made = AtomicRmwOp::build(op.loc(), pointers, rmw.value(), kind, sem, scope).mask(rmw.mask());
    Ok(made.results(&[op.result(0).ty()]).detached()?.op())
}

fn buffer_cas(cas: BufferAtomicCasOp<'_>) -> Result<Op<'_>, Reported> {
    let op = cas.op();
    let pointers = pointers(op, cas.ptr(), cas.offsets())?;
    let made = AtomicCasOp::build(op.loc(), pointers, cas.cmp(), cas.val(), cas.sem(), cas.scope());
    Ok(made.results(&[op.result(0).ty()]).detached()?.op())
}

fn upcast_fp4(upcast: ScaledUpcastFp4Op<'_>) -> Result<Op<'_>, Reported> {
    let op = upcast.op();
    let ty = op.result(0).ty();
    let wide = Fp4ToFpOp::build(op.loc(), upcast.input(), upcast.axis()).results(&[ty]).detached()?.op();
    wide.move_before(op);
    scaled(op, wide.result(0), upcast.scale())
}

fn upcast_fp8(upcast: ScaledUpcastFp8Op<'_>) -> Result<Op<'_>, Reported> {
    let op = upcast.op();
    // Of eight bits, 16 hold every number.
    let wide = emit(op, "tt.fp_to_fp", &[upcast.input()], op.result(0).ty())?;
    scaled(op, wide, upcast.scale())
}

/// The product of numbers and scales, rounded to the type of the numbers. bf16 has the range of all scales; where f16 is
/// wanted the product is one of f32.
fn scaled<'c>(op: Op<'c>, wide: Value<'c>, scale: Value<'c>) -> Result<Op<'c>, Reported> {
    let ty = wide.ty();
    if scale.ty().element().float_kind() != Some(FloatKind::BF16) {
        return Err(error(op, "has scales that are no bf16, which is not supported"));
    }
    let product =
        |operands: &[Value<'c>], ty: Type<'c>| create("arith.mulf", op.loc(), operands, &[ty], &[], &[]);
    if ty == scale.ty() {
        return product(&[wide, scale], ty);
    }
    let single =
        ty.as_tensor().and_then(|tensor| tensor.with_element(Type::float(op.context(), FloatKind::F32)));
    let single = single.ok_or_else(|| error(op, "gives no tensor"))?.ty();
    let operands = [emit(op, "arith.extf", &[wide], single)?, emit(op, "arith.extf", &[scale], single)?];
    let made = product(&operands, single)?;
    made.move_before(op);
    create("arith.truncf", op.loc(), &[made.result(0)], &[ty], &[], &[])
}
