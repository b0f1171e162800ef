//! Result types of operations whose results follow from their operands.

use crate::encoding::infer as encoding;
use crate::encoding::layout::equivalent;
use mlir_host::def::Inputs;
use mlir_host::ir::{Attr, TensorType, Type};

/// Result types, or why there are none.
type Inferred<'c> = Result<Vec<Type<'c>>, String>;

/// Whether an inferred type may stand for the given one: the same shape,
/// element type and layout, even if the layouts are spelled differently.
pub fn compatible(inferred: Type<'_>, given: Type<'_>) -> bool {
    let (Some(inferred), Some(given)) = (inferred.as_tensor(), given.as_tensor()) else {
        return inferred == given;
    };
    inferred.element() == given.element()
        && inferred.shape() == given.shape()
        && same_layout(&inferred.shape(), inferred.encoding(), given.encoding())
}

/// Whether two encodings put the elements of a tensor of `shape` at the same places.
pub fn same_layout(shape: &[i64], a: Option<Attr<'_>>, b: Option<Attr<'_>>) -> bool {
    match (a, b) {
        (Some(a), Some(b)) => equivalent(a, b, shape),
        _ => a == b,
    }
}

fn tensor<'c>(inputs: &Inputs<'_, 'c>, index: usize) -> Result<TensorType<'c>, String> {
    let value = inputs.operands.get(index).ok_or_else(|| format!("expects operand #{index}"))?;
    let ty = value.ty();
    ty.as_tensor().ok_or_else(|| format!("operand #{index} must be a ranked tensor, but got '{ty}'"))
}

fn make<'c>(shape: &[i64], element: Type<'c>, encoding: Option<Attr<'c>>) -> Result<Type<'c>, String> {
    let ty = TensorType::new(shape, element, encoding);
    ty.map(TensorType::ty).ok_or_else(|| format!("has no result type of shape {shape:?} with its encoding"))
}

fn int(inputs: &Inputs<'_, '_>, name: &str) -> Result<i64, String> {
    let attr = (inputs.attr)(name).ok_or_else(|| format!("requires attribute '{name}'"))?;
    attr.as_int().ok_or_else(|| format!("attribute '{name}' must be an integer, but is {attr}"))
}

/// `axis`, which must be below `rank`.
fn axis(inputs: &Inputs<'_, '_>, rank: usize, what: &str) -> Result<usize, String> {
    let axis = int(inputs, "axis")?;
    let in_range = usize::try_from(axis).ok().filter(|axis| *axis < rank);
    in_range.ok_or_else(|| format!("axis {axis} is out of range: {what} has {rank} dimension(s)"))
}

/// The element type.
pub fn unsplat<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    Ok(vec![tensor(inputs, 0)?.element()])
}

/// The operand's type with a dimension of size one more.
pub fn expand_dims<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let src = tensor(inputs, 0)?;
    let axis = axis(inputs, src.rank() + 1, "the result")?;
    let mut shape = src.shape();
    shape.insert(axis, 1);
    let encoding = encoding::expand_dims(src.encoding(), axis)?;
    Ok(vec![make(&shape, src.element(), encoding)?])
}

/// The operand's type with its dimensions permuted.
pub fn trans<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let src = tensor(inputs, 0)?;
    let order =
        (inputs.attr)("order").and_then(|attr| attr.as_i32_array()).ok_or("requires attribute 'order'")?;
    let shape = src.shape();
    if !is_permutation(&order, shape.len()) {
        return Err(format!(
            "order {order:?} must be a permutation of the {} dimension(s) of its operand",
            shape.len()
        ));
    }
    let permuted: Vec<i64> = order.iter().map(|dim| shape[*dim as usize]).collect();
    let encoding = encoding::trans(src.encoding(), &shape, &order)?;
    Ok(vec![make(&permuted, src.element(), encoding)?])
}

/// Whether `order` has each number below `rank` once.
pub(crate) fn is_permutation(order: &[i32], rank: usize) -> bool {
    let mut sorted = order.to_vec();
    sorted.sort_unstable();
    sorted.len() == rank && sorted.iter().enumerate().all(|(i, dim)| *dim == i as i32)
}

/// The operands' type with a last dimension of size two more.
pub fn join<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let lhs = tensor(inputs, 0)?;
    let mut shape = lhs.shape();
    let encoding = encoding::join(lhs.encoding(), &shape)?;
    shape.push(2);
    Ok(vec![make(&shape, lhs.element(), encoding)?])
}

/// Whether two types of what is joined are of the same halves. The pair may be in any two registers, of which `join` gives
/// neighbours: one result has one layout of the operands, but not the other way round.
pub fn joined_alike(inferred: Type<'_>, given: Type<'_>) -> bool {
    let (Some(one), Some(other)) = (inferred.as_tensor(), given.as_tensor()) else { return false };
    let shape = other.shape();
    let alike = || {
        let (Ok(a), Ok(b)) =
            (encoding::split(one.encoding(), &shape), encoding::split(other.encoding(), &shape))
        else {
            return false;
        };
        same_layout(&shape[..shape.len() - 1], a, b)
    };
    compatible(inferred, given) || (one.element() == other.element() && one.shape() == shape && alike())
}

/// The operand's type without its last dimension, twice.
pub fn split<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let src = tensor(inputs, 0)?;
    let mut shape = src.shape();
    match shape.last() {
        None => return Err("operand must have a last dimension of size 2, but has none".to_owned()),
        Some(2) => {}
        Some(last) => {
            return Err(format!("last dimension of the operand must have size 2, but has size {last}"));
        }
    }
    let encoding = encoding::split(src.encoding(), &shape)?;
    shape.pop();
    let ty = make(&shape, src.element(), encoding)?;
    Ok(vec![ty; 2])
}

/// The source's elements in the indices' shape and encoding.
pub fn gather<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let (src, indices) = (tensor(inputs, 0)?, tensor(inputs, 1)?);
    Ok(vec![make(&indices.shape(), src.element(), indices.encoding())?])
}

/// The accumulator's type.
pub fn dot<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    Ok(vec![tensor(inputs, 2)?.ty()])
}

/// The attribute of a `tt.reduce` whose results are in another layout than the operands' without the axis: that layout. Triton's passes
/// know nothing of it, so it is there only from the passes to LLVM on.
pub const RESULT_LAYOUT: &str = "ttg.result_layout";

/// The operands' types without the reduced dimension, or with [`RESULT_LAYOUT`]; scalars when none is left.
pub fn reduce<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    let one = |index: usize| -> Result<Type<'c>, String> {
        let src = tensor(inputs, index)?;
        let axis = axis(inputs, src.rank(), "the operand")?;
        let mut shape = src.shape();
        shape.remove(axis);
        if shape.is_empty() {
            return Ok(src.element());
        }
        let encoding = match (inputs.attr)(RESULT_LAYOUT) {
            Some(layout) => Some(layout),
            None => encoding::reduce(src.encoding(), axis)?,
        };
        make(&shape, src.element(), encoding)
    };
    (0..inputs.operands.len()).map(one).collect()
}

/// The operands' types.
pub fn scan<'c>(inputs: &Inputs<'_, 'c>) -> Inferred<'c> {
    Ok(inputs.operands.iter().map(|value| value.ty()).collect())
}
