//! Types: descriptors of convolution windows.

use crate::tt::types::TENSOR_DESC;
use crate::tt::types::TensorDescType;
use mlir_host::def::{TypeConstraint, TypeDef};
use mlir_host::ir::{Attr, Type};

/// `!ttng.tensordesc_im2col<64x32xf16>` or `…<64x32xf16, #shared>`: a tensor in
/// global memory seen as a matrix of convolution windows. The parameters are
/// those of `!tt.tensordesc`; the block is always a matrix.
pub static TENSOR_DESC_IM2COL: TypeDef = TypeDef {
    summary: "descriptor of a tensor in global memory as a matrix of convolution windows",
    parse: |parser| (TENSOR_DESC.parse)(parser),
    print: |params, printer| (TENSOR_DESC.print)(params, printer),
    verify: Some(|_, params| {
        let shape = params.first().and_then(|param| param.as_i64_array()).unwrap_or_default();
        if shape.len() == 2 {
            Ok(())
        } else {
            Err(format!("the block of an im2col descriptor must have rank 2, got rank {}", shape.len()))
        }
    }),
    ..TypeDef::new("ttng", "tensordesc_im2col")
};

/// An im2col descriptor type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorDescIm2ColType<'c>(Type<'c>);

impl<'c> TensorDescIm2ColType<'c> {
    /// `ty` as an im2col descriptor.
    pub fn cast(ty: Type<'c>) -> Option<Self> {
        ty.is(&TENSOR_DESC_IM2COL).then_some(Self(ty))
    }
    /// Shape of the block.
    pub fn shape(self) -> Vec<i64> {
        self.0.params().first().and_then(|param| param.as_i64_array()).unwrap_or_default()
    }
    /// Element type, with signedness where it is an integer.
    pub fn element(self) -> Type<'c> {
        self.0.params().get(1).and_then(|param| param.as_type()).unwrap_or(self.0)
    }
    /// The shared memory layout, where one was chosen.
    pub fn layout(self) -> Option<Attr<'c>> {
        self.0.params().get(2).copied()
    }
    /// The tiled descriptor of the same blocks.
    pub fn tiled(self) -> Option<TensorDescType<'c>> {
        TensorDescType::new(&self.shape(), self.element(), self.layout())
    }
}

/// `i16`.
pub static I16: TypeConstraint =
    TypeConstraint::only("16-bit signless integer", |ty| ty.is_int(16), |ctx| Type::int(ctx, 16));
/// `i128`: the response of cluster launch control.
pub static I128: TypeConstraint =
    TypeConstraint::only("128-bit signless integer", |ty| ty.is_int(128), |ctx| Type::int(ctx, 128));
