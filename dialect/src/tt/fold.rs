//! Folders.

use crate::tt::enums::RoundingMode;
use crate::tt::float;
use crate::tt::infer::is_permutation;
use crate::tt::ops::*;
use mlir_host::def::Folded;
use mlir_host::ir::{Attr, Loc, Op, Type, Value};
use mlir_host::rewrite;
use mlir_host::upstream::ConstantOp;

/// What folders return.
type Fold<'c> = Option<Vec<Folded<'c>>>;

/// Makes an `arith.constant`.
pub fn materialize_constant<'c>(value: Attr<'c>, ty: Type<'c>, loc: Loc<'c>) -> Option<Op<'c>> {
    if value.ty() != Some(ty) {
        return None;
    }
    rewrite::create("arith.constant", loc, &[], &[ty], &[("value", value)], &[]).ok()
}

/// The value of a constant operation.
pub fn constant<'c>(value: Value<'c>) -> Option<Attr<'c>> {
    ConstantOp::defining(value)?.value()
}

/// The one value of all elements of a constant.
pub fn splat_value<'c>(constant: Attr<'c>) -> Option<Attr<'c>> {
    match constant.as_elements() {
        Some(elements) => elements.splat_value(),
        None => Some(constant),
    }
}

/// Whether a constant is all zero, of either sign.
pub fn is_zero(constant: Attr<'_>) -> bool {
    let value = splat_value(constant);
    value.is_some_and(|value| value.as_int() == Some(0) || value.as_float() == Some(0.0))
}

/// A constant of type `ty` with this value in all elements.
fn filled<'c>(ty: Type<'c>, value: Attr<'c>) -> Option<Attr<'c>> {
    if value.ty() != Some(ty.element()) {
        return None;
    }
    Some(if ty.as_tensor().is_some() { Attr::splat(ty, value) } else { value })
}

fn value(value: Value<'_>) -> Fold<'_> {
    Some(vec![Folded::Value(value)])
}

fn attr(attr: Attr<'_>) -> Fold<'_> {
    Some(vec![Folded::Attr(attr)])
}

fn first<'c>(constants: &[Option<Attr<'c>>]) -> Option<Attr<'c>> {
    constants.first().copied().flatten()
}

/// The result with the one value of all elements of the constant operand.
fn refill<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    attr(filled(op.result(0).ty(), splat_value(first(constants)?)?)?)
}

/// As [`refill`], or the same elements in the result's shape.
fn reshaped<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let elements = first(constants)?.as_elements()?;
    let ty = op.result(0).ty();
    match elements.splat_value() {
        Some(value) => attr(filled(ty, value)?),
        None => attr(elements.reshape_to(ty)?),
    }
}

//===----------------------------------------------------------------------===//
// Casts and arithmetic
//===----------------------------------------------------------------------===//

/// `int_to_ptr(ptr_to_int(p))` is `p`.
pub fn int_to_ptr<'c>(op: Op<'c>, _constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let cast = IntToPtrOp::of(op);
    let inner = PtrToIntOp::defining(cast.src())?;
    if inner.src().ty() == cast.result().ty() { value(inner.src()) } else { None }
}

/// `ptr_to_int(int_to_ptr(x))` is `x`.
pub fn ptr_to_int<'c>(op: Op<'c>, _constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let cast = PtrToIntOp::of(op);
    let inner = IntToPtrOp::defining(cast.src())?;
    if inner.src().ty() == cast.result().ty() { value(inner.src()) } else { None }
}

/// Nothing changes; `bitcast(bitcast(x))`; constants.
pub fn bitcast<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let cast = BitcastOp::of(op);
    let ty = cast.result().ty();
    if cast.src().ty() == ty {
        return value(cast.src());
    }
    if let Some(inner) = BitcastOp::defining(cast.src()) {
        if inner.src().ty() == ty {
            return value(inner.src());
        }
        op.set_operand(0, inner.src());
        return Some(Vec::new());
    }
    attr(filled(ty, reinterpret(splat_value(first(constants)?)?, ty.element())?)?)
}

/// The bits of a constant as a value of another type of the same width.
fn reinterpret<'c>(value: Attr<'c>, to: Type<'c>) -> Option<Attr<'c>> {
    let from = value.ty()?;
    let bits = match from.float_kind() {
        Some(kind) => float::encode(value.as_float()?, kind)?,
        None => value.as_int()? as u64,
    };
    match (to.float_kind(), to.int_bits()) {
        (Some(kind), _) => {
            let mask = u64::MAX.checked_shr(64 - kind.bits())?;
            Some(Attr::float_of(to, float::decode(bits & mask, kind)?))
        }
        (None, Some(1..=64)) if to.is_signless() => Some(Attr::int_of(to, bits as i64)),
        _ => None,
    }
}

/// Nothing changes; constants.
pub fn fp_to_fp<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let cast = FpToFpOp::of(op);
    let ty = cast.result().ty();
    if cast.src().ty() == ty {
        return value(cast.src());
    }
    let constant = splat_value(first(constants)?)?;
    let mode: Option<RoundingMode> = cast.rounding();
    let rounded = float::round(constant.as_float()?, ty.element().float_kind()?, mode)?;
    attr(filled(ty, Attr::float_of(ty.element(), rounded))?)
}

/// Constants.
pub fn mulhiui<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let &[Some(x), Some(y)] = constants else { return None };
    let ty = op.result(0).ty();
    let bits = ty.element().int_bits().filter(|bits| (1..=64).contains(bits))?;
    let unsigned = |value: Attr<'c>| Some(u128::from(value.as_int()? as u64 & (u64::MAX >> (64 - bits))));
    let product = unsigned(splat_value(x)?)? * unsigned(splat_value(y)?)?;
    attr(filled(ty, Attr::int_of(ty.element(), (product >> bits) as i64))?)
}

/// Adding nothing.
pub fn addptr<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let offset = constants.get(1).copied().flatten()?;
    if is_zero(offset) { value(AddPtrOp::of(op).ptr()) } else { None }
}

//===----------------------------------------------------------------------===//
// Shape
//===----------------------------------------------------------------------===//

/// Constants.
pub fn splat<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    refill(op, constants)
}

/// Constants; `unsplat(splat(x))` is `x`.
pub fn unsplat<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    if let Some(inner) = SplatOp::defining(UnsplatOp::of(op).src()) {
        return value(inner.src());
    }
    refill(op, constants)
}

/// Constants.
pub fn expand_dims<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    reshaped(op, constants)
}

/// Nothing changes, unless elements may be reordered; constants.
pub fn reshape<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let reshape = ReshapeOp::of(op);
    if reshape.src().ty() == reshape.result().ty() && reshape.allow_reorder().is_none() {
        return value(reshape.src());
    }
    reshaped(op, constants)
}

/// Nothing changes; `broadcast(broadcast(x))`; constants.
pub fn broadcast<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let broadcast = BroadcastOp::of(op);
    if broadcast.src().ty() == broadcast.result().ty() {
        return value(broadcast.src());
    }
    if let Some(inner) = BroadcastOp::defining(broadcast.src()) {
        op.set_operand(0, inner.src());
        return Some(Vec::new());
    }
    refill(op, constants)
}

/// `join(split(x))` is `x`; constants.
pub fn join<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let join = JoinOp::of(op);
    if let Some(inner) = SplitOp::defining(join.lhs()) {
        let both = inner.out_lhs() == join.lhs() && inner.out_rhs() == join.rhs();
        if both && inner.src().ty() == join.result().ty() {
            return value(inner.src());
        }
    }
    match *constants {
        [Some(lhs), Some(rhs)] if lhs == rhs => refill(op, constants),
        _ => None,
    }
}

/// `split(join(x, y))` is `x` and `y`; constants.
pub fn split<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let split = SplitOp::of(op);
    if let Some(inner) = JoinOp::defining(split.src()) {
        if inner.lhs().ty() == split.out_lhs().ty() {
            return Some(vec![Folded::Value(inner.lhs()), Folded::Value(inner.rhs())]);
        }
        return None;
    }
    let half = filled(split.out_lhs().ty(), splat_value(first(constants)?)?)?;
    Some(vec![Folded::Attr(half), Folded::Attr(half)])
}

/// Nothing changes; `trans(trans(x))`; constants.
pub fn trans<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let trans = TransOp::of(op);
    let order = trans.order();
    let identity = order.iter().enumerate().all(|(i, dim)| *dim == i as i32);
    if identity && trans.src().ty() == trans.result().ty() {
        return value(trans.src());
    }
    if let Some(inner) = TransOp::defining(trans.src()) {
        let inner_order = Some(inner.order()).filter(|inner| is_permutation(inner, order.len()))?;
        let composed: Option<Vec<i32>> =
            order.iter().map(|dim| inner_order.get(usize::try_from(*dim).ok()?).copied()).collect();
        op.set_operand(0, inner.src());
        op.set_attr("order", Attr::i32_array(op.context(), &composed?));
        return Some(Vec::new());
    }
    refill(op, constants)
}

/// A range of one number.
pub fn make_range<'c>(op: Op<'c>, _constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let range = MakeRangeOp::of(op);
    let (start, end) = (range.start(), range.end());
    let ty = range.result().ty();
    if start.checked_add(1) != Some(end) {
        return None;
    }
    attr(filled(ty, Attr::int_of(ty.element(), start))?)
}
