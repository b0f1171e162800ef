//! Traits that several operations share, with their verifiers.

use crate::encoding::verify::TENSOR_LAYOUTS;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Op, TensorType, Type, Value};
use mlir_host::traits::{Trait, Upstream};

/// Tensors have no more elements than this: they are held in registers.
pub const MAX_TENSOR_ELEMENTS: i64 = 1 << 20;

/// Tensors have a power of two of elements, and not too many.
pub const TENSOR_SIZE: Trait = Trait::Verify("tensor size", tensor_size);
/// All operands that have an encoding have the same one.
pub const SAME_OPERANDS_ENCODING: Trait = Trait::Verify("same operands encoding", same_operands_encoding);
/// All operands and results that have an encoding have the same one.
pub const SAME_ENCODING: Trait = Trait::Verify("same operands and result encoding", same_encoding);
/// All results have the same type.
pub const SAME_RESULTS: Trait = Trait::Verify("same results type", same_results);
/// [`SAME_ENCODING`], for accesses to memory.
pub const LOAD_STORE_ENCODING: Trait = SAME_ENCODING;
/// All operands and results of an access to memory have the same shape.
pub const LOAD_STORE_SHAPE: Trait = Trait::Verify("same load and store shape", load_store_shape);

/// What holds of all operations on tensors.
pub const ON_TENSORS: Trait = Trait::All(&[TENSOR_SIZE, TENSOR_LAYOUTS]);
/// Works on each element by itself, and gives elements of the same type.
pub const ELEMENTWISE_ON_ONE_TYPE: Trait =
    Trait::All(&[Trait::Pure, Trait::Upstream(Upstream::Elementwise), Trait::SAME_TYPE, ON_TENSORS]);
/// Works on each element by itself, and gives elements of another type.
pub const ELEMENTWISE_CAST: Trait = Trait::All(&[
    Trait::Pure,
    Trait::Upstream(Upstream::Elementwise),
    Trait::SAME_SHAPE,
    SAME_ENCODING,
    ON_TENSORS,
]);

fn values<'c>(op: Op<'c>) -> impl Iterator<Item = Value<'c>> {
    op.operands().chain(op.results())
}

fn tensor_size(op: Op<'_>) -> VerifyResult {
    for (i, value) in values(op).enumerate() {
        let Some(tensor) = value.ty().as_tensor() else { continue };
        // A dynamic size is a negative number.
        let count = tensor.shape().iter().try_fold(1i64, |product, dim| match *dim {
            dim if dim < 0 => None,
            dim => product.checked_mul(dim),
        });
        let problem = match count {
            Some(n) if n > MAX_TENSOR_ELEMENTS => {
                format!("must have at most {MAX_TENSOR_ELEMENTS} elements, but has {n}")
            }
            Some(n) if n.count_ones() == 1 => continue,
            Some(n) => format!("must have a power of two of elements, but has {n}"),
            None => {
                format!("must have at most {MAX_TENSOR_ELEMENTS} elements, but has more or an unknown number")
            }
        };
        let (what, index) = match i.checked_sub(op.num_operands()) {
            None => ("operand", i),
            Some(index) => ("result", index),
        };
        return Err(format!("{what} #{index} {problem}: '{}'", value.ty()));
    }
    Ok(())
}

/// The first two encodings that differ.
fn different_encodings<'c>(
    values: impl Iterator<Item = Value<'c>>,
) -> Option<(TensorType<'c>, TensorType<'c>)> {
    let mut tensors = values.filter_map(|value| value.ty().as_tensor()).filter(|ty| ty.encoding().is_some());
    let first = tensors.next()?;
    let other = tensors.find(|tensor| tensor.encoding() != first.encoding())?;
    Some((first, other))
}

fn same_operands_encoding(op: Op<'_>) -> VerifyResult {
    match different_encodings(op.operands()) {
        None => Ok(()),
        Some((a, b)) => {
            Err(format!("requires the same encoding for all operands, but got '{}' and '{}'", a.ty(), b.ty()))
        }
    }
}

fn same_encoding(op: Op<'_>) -> VerifyResult {
    match different_encodings(values(op)) {
        None => Ok(()),
        Some((a, b)) => Err(format!(
            "requires the same encoding for all operands and results, but got '{}' and '{}'",
            a.ty(),
            b.ty()
        )),
    }
}

fn same_results(op: Op<'_>) -> VerifyResult {
    let mut types = op.results().map(Value::ty);
    let Some(first) = types.next() else { return Ok(()) };
    match types.find(|ty| *ty != first) {
        None => Ok(()),
        Some(other) => {
            Err(format!("requires the same type for all results, but got '{first}' and '{other}'"))
        }
    }
}

fn load_store_shape(op: Op<'_>) -> VerifyResult {
    let shape = |ty: Type<'_>| ty.as_tensor().map(|tensor| tensor.shape());
    let mut types = values(op).map(Value::ty);
    let Some(first) = types.next() else { return Ok(()) };
    let wanted = shape(first);
    match types.find(|ty| shape(*ty) != wanted) {
        None => Ok(()),
        Some(other) => Err(format!(
            "requires the same shape for all operands and results, but got '{first}' and '{other}'"
        )),
    }
}
