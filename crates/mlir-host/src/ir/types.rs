//! Types.

use super::{Attr, Context, handle};
use crate::def::TypeDef;
use crate::ffi;
use mlir_sys::*;
use std::ffi::c_void;

handle!(
    /// A type: builtin, hosted or of any other dialect.
    Type, MlirType, *const c_void
);

/// The floating-point formats of the builtin dialect that GPUs compute with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum FloatKind {
    F4E2M1FN,
    F8E4M3FN,
    F8E4M3FNUZ,
    F8E5M2,
    F8E5M2FNUZ,
    F8E8M0FNU,
    BF16,
    F16,
    TF32,
    F32,
    F64,
}

impl FloatKind {
    const ALL: [(
        FloatKind,
        unsafe extern "C" fn(MlirType) -> bool,
        unsafe extern "C" fn(MlirContext) -> MlirType,
        u32,
    ); 11] = [
        (FloatKind::F32, mlirTypeIsAF32, mlirF32TypeGet, 32),
        (FloatKind::F16, mlirTypeIsAF16, mlirF16TypeGet, 16),
        (FloatKind::BF16, mlirTypeIsABF16, mlirBF16TypeGet, 16),
        (FloatKind::F64, mlirTypeIsAF64, mlirF64TypeGet, 64),
        (FloatKind::F8E5M2, mlirTypeIsAFloat8E5M2, mlirFloat8E5M2TypeGet, 8),
        (FloatKind::F8E4M3FN, mlirTypeIsAFloat8E4M3FN, mlirFloat8E4M3FNTypeGet, 8),
        (FloatKind::F8E4M3FNUZ, mlirTypeIsAFloat8E4M3FNUZ, mlirFloat8E4M3FNUZTypeGet, 8),
        (FloatKind::F8E5M2FNUZ, mlirTypeIsAFloat8E5M2FNUZ, mlirFloat8E5M2FNUZTypeGet, 8),
        (FloatKind::TF32, mlirTypeIsATF32, mlirTF32TypeGet, 19),
        (FloatKind::F4E2M1FN, mlirTypeIsAFloat4E2M1FN, mlirFloat4E2M1FNTypeGet, 4),
        (FloatKind::F8E8M0FNU, mlirTypeIsAFloat8E8M0FNU, mlirFloat8E8M0FNUTypeGet, 8),
    ];

    /// Width in bits.
    pub fn bits(self) -> u32 {
        Self::ALL.iter().find(|entry| entry.0 == self).map_or(0, |entry| entry.3)
    }
}

impl<'c> Type<'c> {
    /// Parses a type; errors are reported by MLIR.
    pub fn parse(ctx: Context<'c>, text: &str) -> Option<Self> {
        // SAFETY: the context is valid.
        unsafe { Self::from_raw(mlirTypeParseGet(ctx.raw(), ffi::str_ref(text))) }
    }
    /// The context.
    pub fn context(self) -> Context<'c> {
        // SAFETY: the handle is valid.
        unsafe { Context::from_raw(mlirTypeGetContext(self.raw())) }
    }
    /// Signless integer of `bits` bits.
    pub fn int(ctx: Context<'c>, bits: u32) -> Self {
        // SAFETY: the context is valid; integer types are never null.
        unsafe { Self::from_raw(mlirIntegerTypeGet(ctx.raw(), bits)) }.expect("an integer type")
    }
    /// Float of the given format.
    pub fn float(ctx: Context<'c>, kind: FloatKind) -> Self {
        let get = FloatKind::ALL.iter().find(|entry| entry.0 == kind).map(|entry| entry.2);
        // SAFETY: the context is valid; every kind is in the table.
        unsafe { Self::from_raw(get.expect("every kind is listed")(ctx.raw())) }.expect("a float type")
    }
    /// `index`.
    pub fn index(ctx: Context<'c>) -> Self {
        // SAFETY: the context is valid.
        unsafe { Self::from_raw(mlirIndexTypeGet(ctx.raw())) }.expect("the index type")
    }
    /// `none`.
    pub fn none(ctx: Context<'c>) -> Self {
        // SAFETY: the context is valid.
        unsafe { Self::from_raw(mlirNoneTypeGet(ctx.raw())) }.expect("the none type")
    }
    /// Width in bits of an integer type of any signedness.
    pub fn int_bits(self) -> Option<u32> {
        // SAFETY: the handle is valid.
        unsafe { mlirTypeIsAInteger(self.raw()).then(|| mlirIntegerTypeGetWidth(self.raw())) }
    }
    /// Whether this is a signless integer of `bits` bits.
    pub fn is_int(self, bits: u32) -> bool {
        self.int_bits() == Some(bits) && self.is_signless()
    }
    /// Whether an integer type is signless (`i32`, not `si32` or `ui32`).
    pub fn is_signless(self) -> bool {
        // SAFETY: the handle is valid and an integer type where asked.
        unsafe { mlirTypeIsAInteger(self.raw()) && mlirIntegerTypeIsSignless(self.raw()) }
    }
    /// Whether this is `index`.
    pub fn is_index(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { mlirTypeIsAIndex(self.raw()) }
    }
    /// The float format, `None` for other types.
    pub fn float_kind(self) -> Option<FloatKind> {
        // SAFETY: the handle is valid.
        FloatKind::ALL.iter().find(|entry| unsafe { entry.1(self.raw()) }).map(|entry| entry.0)
    }
    /// Whether this is any builtin float.
    pub fn is_float(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { mlirTypeIsAFloat(self.raw()) }
    }
    /// Width in bits of an integer or float.
    pub fn bits(self) -> Option<u32> {
        // SAFETY: the handle is valid.
        self.int_bits().or_else(|| unsafe { self.is_float().then(|| mlirFloatTypeGetWidth(self.raw())) })
    }
    /// This type as a ranked tensor.
    pub fn as_tensor(self) -> Option<TensorType<'c>> {
        // SAFETY: the handle is valid.
        unsafe { mlirTypeIsARankedTensor(self.raw()) }.then_some(TensorType(self))
    }
    /// The size and the element type of a vector of one dimension.
    pub fn as_vector(self) -> Option<(usize, Type<'c>)> {
        // SAFETY: the handle is valid, and that of a shaped type where its shape is asked for.
        unsafe {
            let is_row = mlirTypeIsAVector(self.raw()) && mlirShapedTypeGetRank(self.raw()) == 1;
            let size = is_row.then(|| mlirShapedTypeGetDimSize(self.raw(), 0))?;
            Some((usize::try_from(size).ok()?, Type::from_raw(mlirShapedTypeGetElementType(self.raw()))?))
        }
    }
    /// This type as a function type.
    pub fn as_function(self) -> Option<FunctionType<'c>> {
        // SAFETY: the handle is valid.
        unsafe { mlirTypeIsAFunction(self.raw()) }.then_some(FunctionType(self))
    }
    /// The element type of a tensor, else the type itself.
    pub fn element(self) -> Type<'c> {
        self.as_tensor().map_or(self, |tensor| tensor.element())
    }
    /// The definition when the type is hosted.
    pub fn def(self) -> Option<&'static TypeDef> {
        // SAFETY: hosted types are registered with a pointer to their definition.
        unsafe { ffi::mhTypeDef(self.raw()).cast::<TypeDef>().as_ref() }
    }
    /// Whether the type is hosted and defined by `def`.
    pub fn is(self, def: &'static TypeDef) -> bool {
        self.def().is_some_and(|mine| std::ptr::eq(mine, def))
    }
    /// Parameters of a hosted type.
    pub fn params(self) -> &'c [Attr<'c>] {
        if self.def().is_none() {
            return &[];
        }
        let mut n = 0;
        // SAFETY: the type is dynamic; its parameters live as long as the context.
        // `Attr` is a transparent non-null pointer and parameters are never null.
        unsafe {
            let data = ffi::mhTypeParams(self.raw(), &mut n);
            if n == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), n as usize) }
        }
    }
}

/// A ranked tensor type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TensorType<'c>(Type<'c>);

impl<'c> TensorType<'c> {
    /// `tensor<shape x element, encoding>`; `None` when MLIR refuses it (the
    /// reason is reported at an unknown location).
    pub fn new(shape: &[i64], element: Type<'c>, encoding: Option<Attr<'c>>) -> Option<Self> {
        // SAFETY: all handles are valid.
        unsafe {
            let loc = mlirLocationUnknownGet(mlirTypeGetContext(element.raw()));
            let encoding = encoding.map_or_else(|| mlirAttributeGetNull(), Attr::raw);
            let raw = mlirRankedTensorTypeGetChecked(
                loc,
                shape.len() as isize,
                shape.as_ptr(),
                element.raw(),
                encoding,
            );
            Type::from_raw(raw).map(Self)
        }
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        self.0
    }
    /// Number of dimensions.
    pub fn rank(self) -> usize {
        self.sizes().len()
    }
    /// Size of dimension `i` in elements.
    pub fn dim(self, i: usize) -> i64 {
        self.sizes()[i]
    }
    /// Sizes in elements.
    pub fn shape(self) -> smallvec::SmallVec<[i64; 4]> {
        smallvec::SmallVec::from_slice(self.sizes())
    }
    /// Sizes in elements, where the type keeps them.
    pub fn sizes(self) -> &'c [i64] {
        let mut n = 0;
        // SAFETY: the handle is a ranked tensor type, whose sizes live in the context.
        unsafe {
            let data = ffi::mhTensorShape(self.0.raw(), &mut n);
            if n == 0 { &[] } else { std::slice::from_raw_parts(data, n as usize) }
        }
    }
    /// Number of elements.
    pub fn num_elements(self) -> i64 {
        self.sizes().iter().product()
    }
    /// Element type.
    pub fn element(self) -> Type<'c> {
        // SAFETY: the handle is a shaped type.
        unsafe { Type::from_raw(mlirShapedTypeGetElementType(self.0.raw())) }.expect("an element type")
    }
    /// The encoding attribute, where there is one.
    pub fn encoding(self) -> Option<Attr<'c>> {
        // SAFETY: the handle is a ranked tensor type.
        unsafe { Attr::from_raw(mlirRankedTensorTypeGetEncoding(self.0.raw())) }
    }
    /// The same shape and encoding with another element type.
    pub fn with_element(self, element: Type<'c>) -> Option<Self> {
        Self::new(&self.shape(), element, self.encoding())
    }
    /// The same shape and element type with another encoding.
    pub fn with_encoding(self, encoding: Option<Attr<'c>>) -> Option<Self> {
        let encoding = encoding.map_or_else(|| unsafe { mlirAttributeGetNull() }, Attr::raw);
        // SAFETY: the handle is a ranked tensor type; shape and elements stay valid.
        unsafe { Type::from_raw(ffi::mhTensorWithEncoding(self.0.raw(), encoding)) }.map(Self)
    }
}

/// A function type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct FunctionType<'c>(Type<'c>);

impl<'c> FunctionType<'c> {
    /// `(inputs) -> results`.
    pub fn new(ctx: Context<'c>, inputs: &[Type<'c>], results: &[Type<'c>]) -> Self {
        // SAFETY: `Type` has the layout of `MlirType`.
        let raw = unsafe {
            mlirFunctionTypeGet(
                ctx.raw(),
                inputs.len() as isize,
                inputs.as_ptr().cast(),
                results.len() as isize,
                results.as_ptr().cast(),
            )
        };
        // SAFETY: function types are never null.
        Self(unsafe { Type::from_raw(raw) }.expect("a function type"))
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        self.0
    }
    /// Input types.
    pub fn inputs(self) -> Vec<Type<'c>> {
        // SAFETY: indices are in range.
        unsafe {
            (0..mlirFunctionTypeGetNumInputs(self.0.raw()))
                .filter_map(|i| Type::from_raw(mlirFunctionTypeGetInput(self.0.raw(), i)))
                .collect()
        }
    }
    /// Result types.
    pub fn results(self) -> Vec<Type<'c>> {
        // SAFETY: indices are in range.
        unsafe {
            (0..mlirFunctionTypeGetNumResults(self.0.raw()))
                .filter_map(|i| Type::from_raw(mlirFunctionTypeGetResult(self.0.raw(), i)))
                .collect()
        }
    }
}
