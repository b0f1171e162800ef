//! Canonicalization patterns.

use crate::encoding;
use crate::tt::fold::{constant, is_zero, splat_value};
use crate::tt::ops::*;
use crate::tt::types::{pointee, scalar_bits};
use mlir_host::ir::{Attr, Op, TensorType, Value};
use mlir_host::is_one_of;
use mlir_host::rewrite::{Pattern, RewriteFn, Rewriter};
use mlir_host::upstream::{AddFOp, AddIOp};

const fn pattern(name: &'static str, root: &'static str, apply: RewriteFn) -> Pattern {
    Pattern { name, root, benefit: 1, apply }
}

/// Runs a rewrite written with `?`: `None` says that nothing changed.
macro_rules! rewrites {
    ($( $(#[$doc:meta])* $name:ident = $f:ident on $root:ty; )*) => {
        $( $(#[$doc])* pub static $name: [Pattern; 1] =
            [pattern(stringify!($f), <$root>::NAME, |op, rewriter| $f(op, rewriter).is_some())]; )*
    };
}

rewrites! {
    /// Of `tt.int_to_ptr`.
    INT_TO_PTR = simplify_int_to_ptr on IntToPtrOp;
    /// Of `tt.load`.
    LOAD = simplify_load on LoadOp;
    /// Of `tt.store`.
    STORE = simplify_store on StoreOp;
    /// Of `tt.atomic_store`.
    ATOMIC_STORE = drop_masked_atomic_store on AtomicStoreOp;
    /// Of `tt.expand_dims`.
    EXPAND_DIMS = simplify_expand_dims on ExpandDimsOp;
    /// Of `tt.reshape`.
    RESHAPE = simplify_reshape on ReshapeOp;
    /// Of `tt.broadcast`.
    BROADCAST = broadcast_of_splat on BroadcastOp;
    /// Of `tt.trans`.
    TRANS = trans_of_splat on TransOp;
    /// Of `tt.join`.
    JOIN = join_of_splats on JoinOp;
    /// Of `tt.split`.
    SPLIT = split_of_splat on SplitOp;
    /// Of `tt.dot`.
    DOT = add_to_accumulator on DotOp;
}

/// `dot(a, b, 0) + c` is `dot(a, b, c)`, from the floating-point sum.
pub static DOT_ADD_FLOAT: Pattern =
    pattern("dot-add-float", "arith.addf", |op, rewriter| accumulate_sum(op, rewriter).is_some());
/// `dot(a, b, 0) + c` is `dot(a, b, c)`, from the integer sum.
pub static DOT_ADD_INT: Pattern =
    pattern("dot-add-int", "arith.addi", |op, rewriter| accumulate_sum(op, rewriter).is_some());

/// A splat of `x` with the type of `result`.
fn splat_like<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    x: Value<'c>,
    result: Value<'c>,
) -> Option<Value<'c>> {
    rewriter.set_before(op);
    Some(SplatOp::build(op.loc(), x).results(&[result.ty()]).insert(rewriter).ok()?.result())
}

/// Replaces an operation on the splat `src` by a splat.
fn splat_instead<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>, src: Value<'c>) -> Option<()> {
    let splat = SplatOp::defining(src)?;
    let new = splat_like(rewriter, op, splat.src(), op.result(0))?;
    rewriter.replace(op, &[new]);
    Some(())
}

/// `int_to_ptr(ptr_to_int(p))` of another pointee is a bitcast;
/// `int_to_ptr(ptr_to_int(p) + n)` is `addptr` where `n` is a multiple of the pointee's size.
fn simplify_int_to_ptr<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let cast = IntToPtrOp::of(op);
    let ty = cast.result().ty();
    rewriter.set_before(op);
    if let Some(inner) = PtrToIntOp::defining(cast.src()) {
        let new = BitcastOp::build(op.loc(), inner.src()).results(&[ty]).insert(rewriter).ok()?;
        rewriter.replace(op, &[new.result()]);
        return Some(());
    }
    let sum = AddIOp::defining(cast.src())?.op();
    let (inner, offset) = [(0, 1), (1, 0)].into_iter().find_map(|(base, offset)| {
        Some((PtrToIntOp::defining(sum.operand(base))?, constant(sum.operand(offset))?))
    })?;
    let bytes = splat_value(offset)?.as_int()?;
    // Pointers to less than a byte step by one byte.
    let size = i64::from(scalar_bits(pointee(ty.element())?)?.div_ceil(8));
    if size == 0 || bytes % size != 0 {
        return None;
    }
    let offset_ty = sum.result(0).ty();
    let elements = Attr::int_of(offset_ty.element(), bytes / size);
    let elements = if offset_ty.as_tensor().is_some() { Attr::splat(offset_ty, elements) } else { elements };
    let base = if inner.src().ty() == ty {
        inner.src()
    } else {
        BitcastOp::build(op.loc(), inner.src()).results(&[ty]).insert(rewriter).ok()?.result()
    };
    let offset =
        rewriter.generic("arith.constant", op.loc(), &[], &[offset_ty], &[("value", elements)]).ok()?;
    let new = AddPtrOp::build(op.loc(), base, offset.result(0)).results(&[ty]).insert(rewriter).ok()?;
    rewriter.replace(op, &[new.result()]);
    Some(())
}

/// The one value of all elements of a constant mask.
fn mask_value(mask: Option<Value<'_>>) -> Option<bool> {
    splat_value(constant(mask?)?)?.as_int().map(|value| value != 0)
}

/// A mask that is true goes, and with it what stands in for masked elements;
/// where it is false, that is the result.
fn simplify_load<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let load = LoadOp::of(op);
    if mask_value(load.mask())? {
        let ptr = load.ptr();
        let sizes = Attr::i32_array(op.context(), &[1, 0, 0]);
        rewriter.modify(op, |op| {
            op.set_operands(&[ptr]);
            op.set_attr("operandSegmentSizes", sizes);
        });
    } else {
        let other = load.other()?;
        rewriter.replace(op, &[other]);
    }
    Some(())
}

/// A mask that is true goes; where it is false, the store does.
fn simplify_store<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let store = StoreOp::of(op);
    if mask_value(store.mask())? {
        let (ptr, value) = (store.ptr(), store.value());
        rewriter.modify(op, |op| op.set_operands(&[ptr, value]));
    } else {
        rewriter.erase(op);
    }
    Some(())
}

/// A store whose mask is false goes.
fn drop_masked_atomic_store<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    if mask_value(AtomicStoreOp::of(op).mask())? {
        return None;
    }
    rewriter.erase(op);
    Some(())
}

/// `expand_dims(splat(x))` is a splat; `expand_dims(broadcast(x))` is
/// `broadcast(expand_dims(x))`, which has fewer elements to expand.
fn simplify_expand_dims<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let expand = ExpandDimsOp::of(op);
    if splat_instead(op, rewriter, expand.src()).is_some() {
        return Some(());
    }
    let broadcast = BroadcastOp::defining(expand.src())?;
    let (narrow, wide) = (broadcast.src().ty().as_tensor()?, broadcast.result().ty().as_tensor()?);
    let result = expand.result().ty().as_tensor()?;
    if narrow.encoding() != wide.encoding() {
        return None;
    }
    let axis = expand.axis();
    let at = usize::try_from(axis).ok().filter(|axis| *axis <= narrow.rank())?;
    let encoding = encoding::infer::expand_dims(narrow.encoding(), at).ok()?;
    if encoding != result.encoding() {
        return None;
    }
    let mut shape = narrow.shape();
    shape.insert(at, 1);
    let ty = TensorType::new(&shape, narrow.element(), encoding)?.ty();
    rewriter.set_before(op);
    let expanded =
        ExpandDimsOp::build(op.loc(), broadcast.src(), axis).results(&[ty]).insert(rewriter).ok()?;
    let new =
        BroadcastOp::build(op.loc(), expanded.result()).results(&[result.ty()]).insert(rewriter).ok()?;
    rewriter.replace(op, &[new.result()]);
    Some(())
}

/// `reshape(reshape(x))` and `reshape(expand_dims(x))` are one reshape,
/// `reshape(splat(x))` a splat. A reshape whose layout was chosen stays.
fn simplify_reshape<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let reshape = ReshapeOp::of(op);
    if reshape.efficient_layout().is_some() {
        return None;
    }
    if splat_instead(op, rewriter, reshape.src()).is_some() {
        return Some(());
    }
    let (src, reorders) = match ReshapeOp::defining(reshape.src()) {
        Some(inner) => (inner.src(), inner.allow_reorder().is_some()),
        None => (ExpandDimsOp::defining(reshape.src())?.src(), false),
    };
    let reorders = reorders || reshape.allow_reorder().is_some();
    rewriter.modify(op, |op| {
        op.set_operand(0, src);
        if reorders {
            op.set_attr("allow_reorder", Attr::unit(op.context()));
        }
    });
    Some(())
}

/// `broadcast(splat(x))` is a splat.
fn broadcast_of_splat<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    splat_instead(op, rewriter, BroadcastOp::of(op).src())
}

/// `trans(splat(x))` is a splat.
fn trans_of_splat<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    splat_instead(op, rewriter, TransOp::of(op).src())
}

/// `join(splat(x), splat(x))` is a splat.
fn join_of_splats<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let join = JoinOp::of(op);
    let (lhs, rhs) = (SplatOp::defining(join.lhs())?, SplatOp::defining(join.rhs())?);
    if lhs.src() != rhs.src() {
        return None;
    }
    splat_instead(op, rewriter, join.lhs())
}

/// `split(splat(x))` is two splats.
fn split_of_splat<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let split = SplitOp::of(op);
    let splat = SplatOp::defining(split.src())?;
    let half = splat_like(rewriter, op, splat.src(), split.out_lhs())?;
    rewriter.replace(op, &[half, half]);
    Some(())
}

/// Puts `addend` in the place of the zero accumulator of `dot`, and the new
/// product in the place of `sum`, which was the only use of the old one.
fn accumulate<'c>(rewriter: &mut Rewriter<'c>, dot: DotOp<'c>, sum: Op<'c>, addend: Value<'c>) -> Option<()> {
    let zero = constant(dot.c()).is_some_and(is_zero);
    // With a limit, partial sums leave the accumulator: the order of addition would change.
    let float = AddFOp::cast(sum).is_some();
    let limited = float && dot.max_num_imprecise_acc() != 0;
    if !zero || limited || addend == dot.d() || addend.ty() != dot.d().ty() || dot.d().uses().count() != 1 {
        return None;
    }
    rewriter.set_before(sum);
    let new = rewriter.clone_op(dot.op());
    rewriter.modify(new, |new| new.set_operand(2, addend));
    rewriter.replace(sum, &[new.result(0)]);
    rewriter.erase(dot.op());
    Some(())
}

/// From the sum.
fn accumulate_sum<'c>(sum: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let operands = [sum.operand(0), sum.operand(1)];
    [(0, 1), (1, 0)].into_iter().find_map(|(product, addend)| {
        accumulate(rewriter, DotOp::defining(operands[product])?, sum, operands[addend])
    })
}

/// From the product: it must be in the block of the sum, lest it move into a loop.
fn add_to_accumulator<'c>(op: Op<'c>, rewriter: &mut Rewriter<'c>) -> Option<()> {
    let dot = DotOp::of(op);
    let (sum, index) = dot.d().uses().next()?;
    if !is_one_of!(sum, AddFOp | AddIOp) || sum.block() != op.block() {
        return None;
    }
    accumulate(rewriter, dot, sum, sum.operand(1 - index))
}
