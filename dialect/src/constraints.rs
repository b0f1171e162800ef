//! Type constraints shared by the dialects.

use crate::tt::types;
use crate::tt::types::{POINTER, is_pointer};
use mlir_host::def::TypeConstraint;
use mlir_host::ir::{FloatKind, Type};

fn is_float(ty: Type<'_>) -> bool {
    use FloatKind::*;
    matches!(ty.float_kind(), Some(F8E4M3FN | F8E4M3FNUZ | F8E5M2 | F8E5M2FNUZ | F16 | BF16 | F32 | F64))
}

fn is_int(ty: Type<'_>) -> bool {
    ty.is_signless() && matches!(ty.int_bits(), Some(1 | 4 | 8 | 16 | 32 | 64))
}

fn tensor_of(ty: Type<'_>, element: fn(Type<'_>) -> bool) -> bool {
    ty.as_tensor().is_some_and(|tensor| element(tensor.element()))
}

fn is_scalar(ty: Type<'_>) -> bool {
    is_float(ty) || is_int(ty) || is_pointer(ty)
}

macro_rules! constraints {
    ($( $(#[$doc:meta])* $name:ident: $summary:literal, $matches:expr; )*) => {
        $( $(#[$doc])* pub static $name: TypeConstraint = TypeConstraint::new($summary, $matches); )*
    };
}

constraints! {
    /// A float that GPUs compute with.
    FLOAT: "floating-point", is_float;
    /// A tensor of floats.
    FLOAT_TENSOR: "ranked tensor of floating-point values", |ty| tensor_of(ty, is_float);
    /// A float or a tensor of floats.
    FLOAT_LIKE: "floating-point or ranked tensor of floating-point values", |ty| is_float(ty.element());
    /// `i1` or a tensor of it.
    BOOL_LIKE: "1-bit signless integer or ranked tensor of 1-bit signless integer values", |ty| ty.element().is_int(1);
    /// A tensor of `i1`.
    BOOL_TENSOR: "ranked tensor of 1-bit signless integer values", |ty| tensor_of(ty, |element| element.is_int(1));
    /// An integer or a tensor of integers.
    INT_LIKE: "integer or ranked tensor of integer values", |ty| is_int(ty.element());
    /// A tensor of integers.
    INT_TENSOR: "ranked tensor of integer values", |ty| tensor_of(ty, is_int);
    /// `i32` or a tensor of it.
    I32_LIKE: "32-bit signless integer or ranked tensor of 32-bit signless integer values", |ty| ty.element().is_int(32);
    /// `i64` or a tensor of it.
    I64_LIKE: "64-bit signless integer or ranked tensor of 64-bit signless integer values", |ty| ty.element().is_int(64);
    /// `f32` or a tensor of it.
    F32_LIKE: "32-bit float or ranked tensor of 32-bit float values", |ty| ty.element().float_kind() == Some(FloatKind::F32);
    /// A pointer or a tensor of pointers.
    PTR_LIKE: "ptr or ranked tensor of ptr values", |ty| is_pointer(ty.element());
    /// A tensor of pointers.
    PTR_TENSOR: "ranked tensor of ptr values", |ty| tensor_of(ty, is_pointer);
    /// A tensor of numbers.
    NUMBER_TENSOR: "ranked tensor of floating-point or integer values", |ty| tensor_of(ty, |element| is_float(element) || is_int(element));
    /// A tensor of floats or of bytes, which may hold packed 4-bit floats.
    FLOAT_OR_I8_TENSOR: "ranked tensor of floating-point or 8-bit signless integer values", |ty| tensor_of(ty, |element| is_float(element) || element.is_int(8));
    /// A tensor of row indices.
    ROW_OFFSETS: "ranked tensor of 16-bit signless integer or 32-bit signless integer values", |ty| tensor_of(ty, |element| element.is_int(16) || element.is_int(32));
    /// A tensor of anything Triton computes with.
    TENSOR: "ranked tensor of floating-point or integer or ptr values", |ty| tensor_of(ty, is_scalar);
    /// A scalar or tensor of anything Triton computes with.
    ANY: "floating-point or ranked tensor of floating-point values or integer or ranked tensor of integer values or ptr or ranked tensor of ptr values", |ty| is_scalar(ty.element());
}

/// A pointer.
pub static PTR: TypeConstraint = TypeConstraint::hosted("ptr", is_pointer, &POINTER);
/// A tensor descriptor.
pub static TENSOR_DESC: TypeConstraint =
    TypeConstraint::hosted("tensor descriptor", |ty| ty.is(&types::TENSOR_DESC), &types::TENSOR_DESC);
/// `i1`.
pub static I1: TypeConstraint =
    TypeConstraint::only("1-bit signless integer", |ty| ty.is_int(1), |ctx| Type::int(ctx, 1));
/// `i32`.
pub static I32: TypeConstraint =
    TypeConstraint::only("32-bit signless integer", |ty| ty.is_int(32), |ctx| Type::int(ctx, 32));
/// `i64`.
pub static I64: TypeConstraint =
    TypeConstraint::only("64-bit signless integer", |ty| ty.is_int(64), |ctx| Type::int(ctx, 64));
