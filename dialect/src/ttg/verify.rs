//! Verification of the layouts of memory descriptors, and of the attributes of modules.

use super::attrs::encoding;
use super::module_attrs;
use super::types::MemDescType;
pub use crate::encoding::verify::TENSOR_LAYOUTS;
use crate::encoding::verify::each_value;
use crate::tt::ops::FuncOp;
use linear_layout::Encoding;
use mlir_host::def::VerifyResult;
use mlir_host::ir::{Attr, Op};
use mlir_host::is_one_of;
use mlir_host::traits::Trait;
use mlir_host::upstream::{FuncFuncOp, LlvmFuncOp, ModuleOp};

/// As [`TENSOR_LAYOUTS`], for memory descriptors.
pub const MEMDESC_LAYOUTS: Trait = Trait::Verify("memdesc layouts", memdesc_layouts);
/// What holds of all operations on tensors and buffers.
pub const ON_BUFFERS: Trait = Trait::All(&[TENSOR_LAYOUTS, MEMDESC_LAYOUTS]);

fn memdesc_layouts(op: Op<'_>) -> VerifyResult {
    let mut ctas = None;
    each_value(op, |value| {
        let Some(ty) = MemDescType::cast(value.ty()) else { return Ok(()) };
        let value = encoding(ty.encoding())?;
        let wanted = *ctas.get_or_insert_with(|| module_attrs::num_ctas(op).unwrap_or(1));
        let blocks = 1u64 << value.cga_layout().len().min(32);
        if matches!(value, Encoding::TensorMemoryScales(_)) || blocks == u64::from(wanted) {
            return Ok(());
        }
        Err(format!(
            "{} is for {blocks} CTAs, but here there are {wanted} ({})",
            ty.encoding(),
            module_attrs::NUM_CTAS
        ))
    })
}

/// Verifies the attributes of the dialect on operations: those of modules.
pub(super) fn op_attr(op: Op<'_>, name: &str, attr: Attr<'_>) -> VerifyResult {
    let positive = || match attr.as_int() {
        Some(value) if attr.ty().is_some_and(|ty| ty.is_int(32)) => {
            if value > 0 && value.count_ones() == 1 {
                Ok(())
            } else {
                Err(format!("attribute '{name}' must be a power of two, got {value}"))
            }
        }
        _ => Err(format!("attribute '{name}' must be a 32-bit integer, got {attr}")),
    };
    let number = |least: i64| match attr.as_int() {
        Some(value) if (least..=i64::from(i32::MAX)).contains(&value) => Ok(()),
        _ => Err(format!("attribute '{name}' must be an integer from {least} to {}, got {attr}", i32::MAX)),
    };
    // Functions may run on another number of warps than the module says.
    let (on_module, on_function) =
        (ModuleOp::cast(op).is_some(), is_one_of!(op, FuncOp | FuncFuncOp | LlvmFuncOp));
    match name {
        module_attrs::NUM_WARPS if !on_module && !on_function => {
            Err(format!("attribute '{name}' is only for modules and functions"))
        }
        module_attrs::NUM_CTAS | module_attrs::THREADS_PER_WARP | module_attrs::TARGET if !on_module => {
            Err(format!("attribute '{name}' is only for modules"))
        }
        module_attrs::NUM_WARPS | module_attrs::NUM_CTAS | module_attrs::THREADS_PER_WARP => positive(),
        module_attrs::TOTAL_NUM_WARPS | module_attrs::MAX_REGISTERS if on_module => number(1),
        module_attrs::SHARED
        | module_attrs::WAVES_PER_EU
        | module_attrs::TENSOR_MEMORY_SIZE
        | module_attrs::GLOBAL_SCRATCH_SIZE
        | module_attrs::GLOBAL_SCRATCH_ALIGNMENT
        | module_attrs::PROFILE_SCRATCH_SIZE
        | module_attrs::PROFILE_SCRATCH_ALIGNMENT
            if on_module =>
        {
            number(0)
        }
        module_attrs::TARGET if attr.as_str().is_none() => {
            Err(format!("attribute '{name}' must be a string, got {attr}"))
        }
        _ => Ok(()),
    }
}
