//! Verifiers of what stays in the registers of each thread.

use super::super::ops::*;
use crate::ttg::attrs::{encoding, is_distributed};
use crate::ttg::layout::to_linear_layout;
use crate::ttng::verify::{memdesc, tensor};
use linear_layout::{Dim, Encoding, LinearLayout, standard_out_dims};
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Op, TensorType};
use std::collections::HashSet;
use std::sync::Arc;

fn layout_of(what: &str, ty: TensorType<'_>) -> Result<Arc<LinearLayout>, String> {
    match ty.encoding() {
        Some(attr) if is_distributed(attr) => to_linear_layout(attr, &ty.shape()),
        _ => Err(format!("the {what} must have a layout, got '{}'", ty.ty())),
    }
}

/// A layout's coordinates of what each register of the first thread holds.
fn held(layout: &LinearLayout) -> Vec<Vec<u64>> {
    let columns = layout.columns_of(Dim::REGISTER);
    let mut words = vec![0u64];
    for column in columns {
        words.extend_from_within(..);
        let half = words.len() / 2;
        words.iter_mut().skip(half).for_each(|word| *word ^= column);
    }
    words.into_iter().map(|word| layout.coords(word).to_vec()).collect()
}

/// Every element that a thread needs is in a register of its own: `part` says where the source has what
/// the result has at some coordinates.
fn stays(source: TensorType<'_>, result: TensorType<'_>, part: impl Fn(&[u64]) -> Vec<u64>) -> VerifyResult {
    let (from, to) = (layout_of("source", source)?, layout_of("result", result)?);
    for (dim, what) in [(Dim::LANE, "lanes"), (Dim::WARP, "warps")] {
        let bases = |layout: &LinearLayout| -> Vec<Vec<u64>> {
            layout.columns_of(dim).iter().map(|column| layout.coords(*column).to_vec()).collect()
        };
        if bases(&from) != bases(&to) {
            return Err(format!(
                "{what} must hold the same in the source and the result, but move along {:?} and {:?}",
                bases(&from),
                bases(&to)
            ));
        }
    }
    let registers: HashSet<Vec<u64>> = held(&from).into_iter().collect();
    for at in held(&to) {
        let wanted = part(&at);
        if !registers.contains(&wanted) {
            return Err(format!(
                "element {at:?} of the result is {wanted:?} of the source, which no register of the same \
                 thread holds"
            ));
        }
    }
    Ok(())
}

/// A part of a tensor.
pub fn extract_slice(op: Op<'_>) -> VerifyResult {
    let slice = ExtractSliceOp::of(op);
    let (source, result) = (tensor(slice.source())?, tensor(slice.result())?);
    let offsets = slice.static_offsets();
    if source.element() != result.element() {
        return Err(format!(
            "the source has elements of '{}', but the result of '{}'",
            source.element(),
            result.element()
        ));
    }
    let (from, to) = (source.shape(), result.shape());
    if from.len() != to.len() || offsets.len() != from.len() {
        return Err(format!(
            "source, result and offsets must have as many dimensions, got {}, {} and {}",
            from.len(),
            to.len(),
            offsets.len()
        ));
    }
    for (dim, ((from, to), offset)) in from.iter().zip(&to).zip(&offsets).enumerate() {
        if to > from || !(0..=from - to).contains(offset) {
            return Err(format!(
                "dimension {dim} of the source has {from} elements, which do not include {to} from {offset}"
            ));
        }
    }
    stays(source, result, |at| {
        at.iter().zip(&offsets).map(|(at, offset)| at + offset.unsigned_abs()).collect()
    })
}

/// Tensors side by side.
pub fn concat(op: Op<'_>) -> VerifyResult {
    let concat = ConcatOp::of(op);
    let result = tensor(concat.result())?;
    let mut sources = concat.sources();
    let Some(first) = sources.next() else { return Err("there must be a source".into()) };
    if let Some(other) = sources.find(|source| source.ty() != first.ty()) {
        return Err(format!("all sources must have one type, got '{}' and '{}'", first.ty(), other.ty()));
    }
    let source = tensor(first)?;
    if source.element() != result.element() {
        return Err(format!(
            "the sources have elements of '{}', but the result of '{}'",
            source.element(),
            result.element()
        ));
    }
    let (part, whole) = (source.shape(), result.shape());
    if part.len() != whole.len() {
        return Err(format!("the sources have {} dimensions, but the result {}", part.len(), whole.len()));
    }
    if let Some(dim) = (0..part.len()).find(|dim| part[*dim] < 1 || whole[*dim] % part[*dim] != 0) {
        return Err(format!(
            "dimension {dim} of the result, {}, is no multiple of the sources', {}",
            whole[dim], part[dim]
        ));
    }
    let wanted = whole.iter().zip(&part).try_fold(1i64, |n, (whole, part)| n.checked_mul(whole / part));
    let given = concat.sources().count();
    if wanted != i64::try_from(given).ok() {
        return Err(format!(
            "{} sources of {part:?} make {whole:?}, got {given}",
            wanted.unwrap_or(i64::MAX)
        ));
    }
    stays(source, result, |at| at.iter().zip(&part).map(|(at, size)| at % size.unsigned_abs()).collect())
}

/// What each thread holds, transposed: the first dimension to move becomes the second.
pub fn in_thread_transpose(op: Op<'_>) -> VerifyResult {
    let transpose = InThreadTransposeOp::of(op);
    let (src, result) = (tensor(transpose.src())?, tensor(transpose.result())?);
    let shape = src.shape();
    if src.element() != result.element() || shape != result.shape() {
        return Err(format!(
            "source and result must have the same shape and elements, got '{}' and '{}'",
            src.ty(),
            result.ty()
        ));
    }
    let Some(Ok(Encoding::Blocked(blocked))) = src.encoding().map(encoding) else {
        return Err(format!("the source must have a #ttg.blocked layout, got '{}'", src.ty()));
    };
    let [fast, slow] = blocked.order[..] else {
        return Err(format!("the source must be a matrix, got '{}'", src.ty()));
    };
    let from = layout_of("source", src)?;
    let mut bases: Vec<(Dim, Vec<Vec<u64>>)> = from
        .in_dims()
        .map(|dim| (dim, from.columns_of(dim).iter().map(|column| from.coords(*column).to_vec()).collect()))
        .collect();
    // How many bits a thread moves along a dimension before lanes do.
    let own = |dim: usize| -> usize {
        let most = from.out_size(Dim::out(dim)).unwrap_or(1);
        blocked.size_per_thread.get(dim).map_or(0, |size| (*size).min(most).max(1).ilog2() as usize)
    };
    let (fast, slow) = (own(fast), own(slow));
    if let Some((_, registers)) = bases.iter_mut().find(|(dim, _)| *dim == Dim::REGISTER)
        && let Some(tile) = registers.get_mut(..fast + slow)
    {
        tile.rotate_left(fast);
    }
    let outs: Vec<Dim> = standard_out_dims(shape.len()).collect();
    let wanted = LinearLayout::from_bases(&bases, &outs).map_err(|err| err.to_string())?;
    let given = layout_of("result", result)?;
    if *given == wanted {
        Ok(())
    } else {
        Err(format!(
            "the result must have the source's layout transposed in each thread, {}, but has {}",
            wanted.bases_display(),
            given.bases_display()
        ))
    }
}

/// The dimensions of a buffer, the one along which offsets move first in front.
fn order(attr: mlir_host::ir::Attr<'_>, shape: &[i64]) -> Result<Vec<usize>, String> {
    if let Encoding::SwizzledShared(e) | Encoding::AmdRotatingShared(e) = encoding(attr)? {
        return Ok(e.order);
    }
    let layout = to_linear_layout(attr, shape)?;
    let mut order: Vec<usize> = Vec::new();
    for column in layout.columns_of(Dim::OFFSET) {
        let moved = layout.coords(*column).iter().position(|coordinate| *coordinate != 0);
        order.extend(moved.filter(|dim| !order.contains(dim)));
    }
    let rest: Vec<usize> = (0..shape.len()).rev().filter(|dim| !order.contains(dim)).collect();
    order.extend(rest);
    Ok(order)
}

/// Pairs packed along M or N in shared memory become pairs packed along K.
pub fn local_load_packed_transposed(op: Op<'_>) -> VerifyResult {
    let load = LocalLoadPackedTransposedOp::of(op);
    let (src, result) = (memdesc(load.src())?, tensor(load.result())?);
    let Some(Ok(Encoding::DotOperand(operand))) = result.encoding().map(encoding) else {
        return Err(format!("the result must have a #ttg.dot_op layout, got '{}'", result.ty()));
    };
    let (packed, shape) = (src.shape(), result.shape());
    let rank = shape.len();
    if packed.len() != rank || rank < 2 {
        return Err(format!("source and result must be matrices, got '{}' and '{}'", src.ty(), result.ty()));
    }
    let (k, other) = (operand.k_dim(rank), operand.non_k_dim(rank));
    let mut wanted_order = vec![other, k];
    wanted_order.extend((0..rank - 2).rev());
    let given_order = order(src.encoding(), &packed)?;
    if given_order != wanted_order {
        return Err(format!(
            "the buffer of operand {} must have the order {wanted_order:?}, got {given_order:?}",
            operand.op_idx
        ));
    }
    let wanted: Vec<i64> = (0..rank)
        .map(|dim| match dim {
            dim if dim == k => shape[dim].saturating_mul(2),
            dim if dim == other => shape[dim] / 2,
            dim => shape[dim],
        })
        .collect();
    if packed != wanted {
        return Err(format!(
            "the result {shape:?}, packed along dimension {other} instead of {k}, needs a buffer of {wanted:?}, \
             got {packed:?}"
        ));
    }
    Ok(())
}
