//! Operations that passes on dots make.

use super::plan::Element;
use crate::machine::error;
use mlir_host::asm::Reported;
use mlir_host::ir::{Attr, Op, TensorType, Type, Value};
use mlir_host::rewrite::Rewriter;
use ttopt_dialect::tt::enums::RoundingMode;
use ttopt_dialect::tt::ops::FpToFpOp;

/// The tensor type with other elements.
///
/// # Errors
/// When MLIR refuses it; the error is reported at `op`.
pub fn with_element<'c>(op: Op<'c>, ty: TensorType<'c>, element: Type<'c>) -> Result<Type<'c>, Reported> {
    let made = ty.with_element(element).map(TensorType::ty);
    made.ok_or_else(|| error(op, format!("no tensor type like {} with elements {element}", ty.ty())))
}

/// `value` with elements of type `element`, by operations at the insertion
/// point; they stand in for a part of `op`.
///
/// # Errors
/// When there is no such conversion; the error is reported at `op`.
pub fn cast<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    value: Value<'c>,
    element: Element,
) -> Result<Value<'c>, Reported> {
    let Some(ty) = value.ty().as_tensor() else { return Ok(value) };
    let Some(from) = Element::of(ty.element()) else { return Err(error(op, "elements are no numbers")) };
    // What a pair of 4-bit floats is in are bytes.
    if from == element || (from, element) == (Element::Int(8), Element::F4Pair) {
        return Ok(value);
    }
    let to = with_element(op, ty, element.ty(op.context()))?;
    if let (Element::Float(_), Element::Float(_)) = (from, element)
        && (from.is_fp8() || element.is_fp8())
    {
        let rounding = (element.bits() < from.bits()).then_some(RoundingMode::NearestEven);
        let made = FpToFpOp::build(op.loc(), value).rounding(rounding).results(&[to]);
        return Ok(made.insert(rewriter)?.result());
    }
    let name = match (from, element) {
        (Element::Float(_), Element::Float(_)) if from.bits() < element.bits() => "arith.extf",
        (Element::Float(_), Element::Float(_)) if from.bits() > element.bits() => "arith.truncf",
        (Element::Int(_), Element::Int(_)) if from.bits() < element.bits() => "arith.extsi",
        (Element::Int(_), Element::Int(_)) => "arith.trunci",
        _ => {
            return Err(error(
                op,
                format!("cannot multiply '{}' as '{}'", ty.element(), element.ty(op.context())),
            ));
        }
    };
    generic(rewriter, op, name, &[value], to, &[])
}

/// An operation with one result.
///
/// # Errors
/// When MLIR refuses it, which it has reported.
pub fn generic<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    name: &str,
    operands: &[Value<'c>],
    result: Type<'c>,
    attrs: &[(&str, Attr<'c>)],
) -> Result<Value<'c>, Reported> {
    let made = rewriter.generic(name, op.loc(), operands, &[result], attrs);
    Ok(made?.result(0))
}

/// A constant tensor with one value for all elements.
///
/// # Errors
/// As [`generic`].
pub fn splat<'c>(
    rewriter: &mut Rewriter<'c>,
    op: Op<'c>,
    ty: Type<'c>,
    value: Attr<'c>,
) -> Result<Value<'c>, Reported> {
    generic(rewriter, op, "arith.constant", &[], ty, &[("value", Attr::splat(ty, value))])
}
