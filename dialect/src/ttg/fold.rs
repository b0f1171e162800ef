//! Folders.

use super::ops::*;
use super::types::MemDescType;
use mlir_host::def::Folded;
use mlir_host::ir::{Attr, Op};

type Fold<'c> = Option<Vec<Folded<'c>>>;

/// A conversion to the same type, or of a constant that is the same everywhere.
pub(super) fn convert_layout<'c>(op: Op<'c>, constants: &[Option<Attr<'c>>]) -> Fold<'c> {
    let convert = ConvertLayoutOp::of(op);
    let ty = convert.result().ty();
    if convert.src().ty() == ty {
        return Some(vec![Folded::Value(convert.src())]);
    }
    let constant = constants.first().copied().flatten()?;
    Some(vec![Folded::Attr(constant.as_elements()?.splat_to(ty)?)])
}

/// A buffer that is not written, filled with what was loaded from an equal one
/// that is not written either.
pub(super) fn local_alloc<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let alloc = LocalAllocOp::of(op);
    let ty = MemDescType::cast(alloc.result().ty())?;
    let loaded = LocalLoadOp::defining(alloc.src()?)?.src();
    (!ty.mutable() && loaded.ty() == ty.ty()).then(|| vec![Folded::Value(loaded)])
}

/// The whole, or a part of a part.
pub(super) fn memdesc_subslice<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let slice = MemDescSubsliceOp::of(op);
    if slice.src().ty() == slice.result().ty() {
        return Some(vec![Folded::Value(slice.src())]);
    }
    let inner = MemDescSubsliceOp::defining(slice.src())?;
    let (a, b) = (inner.offsets(), slice.offsets());
    let offsets: Option<Vec<i32>> = a.iter().zip(&b).map(|(a, b)| a.checked_add(*b)).collect();
    op.set_attr("offsets", Attr::i32_array(op.context(), &offsets?));
    op.set_operand(0, inner.src());
    Some(Vec::new())
}

/// No permutation, or a permutation of a permutation.
pub(super) fn memdesc_trans<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let trans = MemDescTransOp::of(op);
    let order = trans.order();
    if order.iter().enumerate().all(|(i, dim)| *dim == i as i32) && trans.src().ty() == trans.result().ty() {
        return Some(vec![Folded::Value(trans.src())]);
    }
    let inner = MemDescTransOp::defining(trans.src())?;
    let first = inner.order();
    let composed: Option<Vec<i32>> =
        order.iter().map(|dim| first.get(usize::try_from(*dim).ok()?).copied()).collect();
    op.set_attr("order", Attr::i32_array(op.context(), &composed?));
    op.set_operand(0, inner.src());
    Some(Vec::new())
}

/// The same type, or a view of a view.
pub(super) fn memdesc_reinterpret<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let view = MemDescReinterpretOp::of(op);
    if view.src().ty() == view.result().ty() {
        return Some(vec![Folded::Value(view.src())]);
    }
    let inner = MemDescReinterpretOp::defining(view.src())?;
    op.set_operand(0, inner.src());
    Some(Vec::new())
}
