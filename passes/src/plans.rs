//! Plans of operations on tensors, made from their types.
//!
//! The allocation of shared memory, the layout engine and the lowering ask the
//! same functions, so that what was counted, allocated and emitted agree.

use linear_layout::LinearLayout;
use linear_layout::plan::ConversionPlan;
use linear_layout::target::TargetDesc;
use mlir_host::ir::{Op, Type};
use std::sync::Arc;
use ttopt_dialect::tt::types::is_pointer;
use ttopt_dialect::ttg::layout::to_linear_layout;

/// The layout of a tensor type.
///
/// # Errors
/// When the type is no tensor, or has no layout.
pub fn layout(ty: Type<'_>) -> Result<Arc<LinearLayout>, String> {
    let Some(tensor) = ty.as_tensor() else { return Err(format!("{ty} is not a tensor")) };
    let Some(encoding) = tensor.encoding() else {
        return Err(format!("{ty} has no layout: run --convert-triton-to-tritongpu first"));
    };
    to_linear_layout(encoding, &tensor.shape())
}

/// Bits that an element of a tensor takes while it moves between threads:
/// `i1` a byte, pointers 64 bits.
///
/// # Errors
/// For types that have no width.
pub fn word_bits(ty: Type<'_>) -> Result<u32, String> {
    let element = ty.element();
    if is_pointer(element) {
        return Ok(64);
    }
    match element.bits() {
        Some(bits @ 1..=64) => Ok(bits.next_power_of_two().max(8)),
        _ => Err(format!("elements of type {element} cannot move between threads")),
    }
}

/// How values of type `from` become values of type `to`, another layout of
/// the same tensor.
///
/// # Errors
/// When there is no plan.
pub fn conversion(from: Type<'_>, to: Type<'_>, target: &TargetDesc) -> Result<ConversionPlan, String> {
    ConversionPlan::new(&*layout(from)?, &*layout(to)?, word_bits(from)?, target)
        .map_err(|err| err.to_string())
}

/// Shared memory that `op` needs while it runs, in bytes of each block, beside
/// the buffers among its operands. Operations that need some carry the
/// attribute `allocation.offset` when shared memory has been allocated.
///
/// # Errors
/// When an operation has no plan.
pub fn scratch_bytes(op: Op<'_>, target: &TargetDesc) -> Result<u64, String> {
    match op.name() {
        "ttg.convert_layout" => Ok(conversion(op.operand(0).ty(), op.result(0).ty(), target)?.shared_bytes()),
        _ => Ok(0),
    }
}
