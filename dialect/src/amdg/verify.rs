//! Type constraints of the dialect's operands.
//!
//! Beyond operands, attributes, traits and layouts, which definitions check,
//! nothing of what Triton verifies here (shapes of slices, cache policies,
//! sizes of transfers) is verified yet.

use mlir_host::def::TypeConstraint;

/// A tensor of `i32`.
pub static I32_TENSOR: TypeConstraint =
    TypeConstraint::new("tensor of 32-bit signless integer values", |ty| {
        ty.as_tensor().is_some_and(|tensor| tensor.element().is_int(32))
    });
