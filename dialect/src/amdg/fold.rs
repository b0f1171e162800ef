//! Folders.

use super::ops::*;
use mlir_host::def::Folded;
use mlir_host::ir::{Attr, Op, Value};

type Fold<'c> = Option<Vec<Folded<'c>>>;

/// The whole, or one of the tensors that were put side by side.
pub(super) fn extract_slice<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let slice = ExtractSliceOp::of(op);
    let ty = slice.result().ty();
    if slice.source().ty() == ty {
        return Some(vec![Folded::Value(slice.source())]);
    }
    let parts: Vec<Value<'c>> = ConcatOp::defining(slice.source())?.sources().collect();
    if parts.first()?.ty() != ty {
        return None;
    }
    // Parts are in row-major order.
    let (whole, part) = (slice.source().ty().as_tensor()?.shape(), ty.as_tensor()?.shape());
    let mut at = 0;
    for ((whole, part), offset) in whole.iter().zip(&part).zip(slice.static_offsets()) {
        if *part < 1 || offset % part != 0 {
            return None;
        }
        at = at * (whole / part) + offset / part;
    }
    Some(vec![Folded::Value(*parts.get(usize::try_from(at).ok()?)?)])
}

/// One tensor.
pub(super) fn concat<'c>(op: Op<'c>, _: &[Option<Attr<'c>>]) -> Fold<'c> {
    let concat = ConcatOp::of(op);
    let mut sources = concat.sources();
    let only = sources.next().filter(|only| only.ty() == concat.result().ty())?;
    sources.next().is_none().then(|| vec![Folded::Value(only)])
}
