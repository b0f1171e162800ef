//! Verifiers.

use crate::tt::infer::same_layout;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Op, Symbols, TensorType, Type, Value};
use mlir_host::traits::Trait;

/// Tensors have no more elements than this: they are held in registers.
pub const MAX_TENSOR_ELEMENTS: i64 = 1 << 20;

/// Tensors have a power of two of elements, and not too many.
pub const TENSOR_SIZE: Trait = Trait::Verify("tensor size", tensor_size);
/// All operands that are tensors have the same layout.
pub const SAME_OPERANDS_ENCODING: Trait = Trait::Verify("same operands encoding", same_operands_encoding);
/// All operands and results that are tensors have the same layout.
pub const SAME_ENCODING: Trait = Trait::Verify("same operands and result encoding", same_encoding);
/// All results have the same type.
pub const SAME_RESULTS: Trait = Trait::Verify("same results type", same_results);
/// [`SAME_ENCODING`], for accesses to memory.
pub const LOAD_STORE_ENCODING: Trait = SAME_ENCODING;
/// All operands and results of an access to memory have the same shape.
pub const LOAD_STORE_SHAPE: Trait = Trait::Verify("same load and store shape", load_store_shape);

fn tensor_size(op: Op<'_>) -> VerifyResult {
    let values =
        op.operands().map(|value| ("operand", value)).chain(op.results().map(|value| ("result", value)));
    for (what, value) in values {
        let Some(tensor) = value.ty().as_tensor() else { continue };
        let elements = tensor.shape().iter().try_fold(1i64, |product, dim| product.checked_mul(*dim));
        let which = value_index(op, what, value);
        match elements {
            Some(n) if (1..=MAX_TENSOR_ELEMENTS).contains(&n) && n & (n - 1) == 0 => {}
            Some(n) if (0..=MAX_TENSOR_ELEMENTS).contains(&n) => {
                return Err(format!(
                    "{what} #{which} must have a power of two of elements, but '{}' has {n}",
                    value.ty()
                ));
            }
            _ => {
                return Err(format!(
                    "{what} #{which} must have at most {MAX_TENSOR_ELEMENTS} elements, but '{}' has more",
                    value.ty()
                ));
            }
        }
    }
    Ok(())
}

fn value_index(op: Op<'_>, what: &str, value: Value<'_>) -> usize {
    if what == "result" {
        value.index()
    } else {
        op.operands().position(|operand| operand == value).unwrap_or(0)
    }
}

fn tensors<'c>(values: impl Iterator<Item = Value<'c>>) -> impl Iterator<Item = TensorType<'c>> {
    values.filter_map(|value| value.ty().as_tensor())
}

fn same_among<'c>(mut tensors: impl Iterator<Item = TensorType<'c>>) -> bool {
    let Some(first) = tensors.next() else { return true };
    tensors.all(|tensor| {
        first.encoding() == tensor.encoding()
            || same_layout(&first.shape(), first.encoding(), tensor.encoding())
    })
}

fn same_operands_encoding(op: Op<'_>) -> VerifyResult {
    if same_among(tensors(op.operands())) {
        Ok(())
    } else {
        Err("requires the same encoding for all operands".to_owned())
    }
}

fn same_encoding(op: Op<'_>) -> VerifyResult {
    if same_among(tensors(op.operands().chain(op.results()))) {
        Ok(())
    } else {
        Err("requires the same encoding for all operands and results".to_owned())
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
    let mut types = op.operands().chain(op.results()).map(Value::ty);
    let Some(first) = types.next() else { return Ok(()) };
    match types.find(|ty| shape(*ty) != shape(first)) {
        None => Ok(()),
        Some(other) => Err(format!(
            "requires the same shape for all operands and results, but got '{first}' and '{other}'"
        )),
    }
}

/// .
pub fn bitcast(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn fp_to_fp(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn elementwise_inline_asm(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn load(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn store(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn atomic_load(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn atomic_store(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn atomic_poll(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn unsplat(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn reshape(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn broadcast(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn cat(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn trans(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn make_range(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn gather(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn dot(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn dot_scaled(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn reduce(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn reduce_region(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn scan(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn scan_region(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn map_elementwise(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn map_elementwise_region(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn return_(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn descriptor_load(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn descriptor_store(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn descriptor_reduce(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn descriptor_gather(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn descriptor_scatter(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn join(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

/// .
pub fn call(_op: Op<'_>, _symbols: Symbols) -> VerifyResult {
    Ok(())
}
