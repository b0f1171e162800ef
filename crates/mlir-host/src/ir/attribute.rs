//! Attributes.

use super::{Context, TensorType, Type, handle};
use crate::def::AttrDef;
use crate::ffi;
use mlir_sys::*;
use std::ffi::c_void;

handle!(
    /// An attribute: builtin, hosted or of any other dialect.
    Attr, MlirAttribute, *const c_void
);

impl<'c> Attr<'c> {
    /// Parses an attribute; errors are reported by MLIR.
    pub fn parse(ctx: Context<'c>, text: &str) -> Option<Self> {
        // SAFETY: the context is valid.
        unsafe { Self::from_raw(mlirAttributeParseGet(ctx.raw(), ffi::str_ref(text))) }
    }
    /// The context.
    pub fn context(self) -> Context<'c> {
        // SAFETY: the handle is valid.
        unsafe { Context::from_raw(mlirAttributeGetContext(self.raw())) }
    }
    fn new(raw: MlirAttribute) -> Self {
        // SAFETY: only called with results of constructors that never fail.
        unsafe { Self::from_raw(raw) }.expect("an attribute")
    }
    /// Signless integer attribute `value : i<bits>`.
    pub fn int(ctx: Context<'c>, bits: u32, value: i64) -> Self {
        // SAFETY: the type is an integer type.
        Self::new(unsafe { mlirIntegerAttrGet(Type::int(ctx, bits).raw(), value) })
    }
    /// Integer attribute of an integer or index type.
    ///
    /// # Panics
    /// When the type is another one.
    pub fn int_of(ty: Type<'c>, value: i64) -> Self {
        assert!(ty.is_index() || ty.int_bits().is_some(), "an integer of type {ty}");
        // SAFETY: MLIR takes integer and index types.
        Self::new(unsafe { mlirIntegerAttrGet(ty.raw(), value) })
    }
    /// Float attribute of a float type, rounded to it.
    ///
    /// # Panics
    /// When the type is another one.
    pub fn float_of(ty: Type<'c>, value: f64) -> Self {
        assert!(ty.is_float(), "a float of type {ty}");
        // SAFETY: the type is a float type.
        Self::new(unsafe { mlirFloatAttrDoubleGet(ty.context().raw(), ty.raw(), value) })
    }
    /// `true` or `false`.
    pub fn bool(ctx: Context<'c>, value: bool) -> Self {
        // SAFETY: the context is valid.
        Self::new(unsafe { mlirBoolAttrGet(ctx.raw(), value.into()) })
    }
    /// `unit`.
    pub fn unit(ctx: Context<'c>) -> Self {
        // SAFETY: the context is valid.
        Self::new(unsafe { mlirUnitAttrGet(ctx.raw()) })
    }
    /// A string.
    pub fn string(ctx: Context<'c>, value: &str) -> Self {
        // SAFETY: the context is valid.
        Self::new(unsafe { mlirStringAttrGet(ctx.raw(), ffi::str_ref(value)) })
    }
    /// `#llvm.di_lexical_block_file`: lines of a file in a scope whose own file is another. `path` is split at its last slash.
    pub fn di_block_in_file(scope: Attr<'c>, path: &str) -> Self {
        let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
        let ctx = scope.context();
        // SAFETY: the context is valid, and so are the attributes, which are of it.
        unsafe {
            let text = |text: &str| mlirStringAttrGet(ctx.raw(), ffi::str_ref(text));
            let file = mlirLLVMDIFileAttrGet(ctx.raw(), text(name), text(folder));
            Self::new(mlirLLVMDILexicalBlockFileAttrGet(ctx.raw(), scope.raw(), file, 0))
        }
    }
    /// `@name`.
    pub fn symbol(ctx: Context<'c>, name: &str) -> Self {
        // SAFETY: the context is valid.
        Self::new(unsafe { mlirFlatSymbolRefAttrGet(ctx.raw(), ffi::str_ref(name)) })
    }
    /// A type as an attribute.
    pub fn type_of(ty: Type<'c>) -> Self {
        // SAFETY: the type is valid.
        Self::new(unsafe { mlirTypeAttrGet(ty.raw()) })
    }
    /// `array<i32: …>`.
    pub fn i32_array(ctx: Context<'c>, values: &[i32]) -> Self {
        // SAFETY: the slice is valid.
        Self::new(unsafe { mlirDenseI32ArrayGet(ctx.raw(), values.len() as isize, values.as_ptr()) })
    }
    /// `array<i64: …>`.
    pub fn i64_array(ctx: Context<'c>, values: &[i64]) -> Self {
        // SAFETY: the slice is valid.
        Self::new(unsafe { mlirDenseI64ArrayGet(ctx.raw(), values.len() as isize, values.as_ptr()) })
    }
    /// `[a, b, …]`.
    pub fn array(ctx: Context<'c>, values: &[Attr<'c>]) -> Self {
        // SAFETY: `Attr` has the layout of `MlirAttribute`.
        Self::new(unsafe { mlirArrayAttrGet(ctx.raw(), values.len() as isize, values.as_ptr().cast()) })
    }
    /// `{name = value, …}`.
    pub fn dict(ctx: Context<'c>, entries: &[(&str, Attr<'c>)]) -> Self {
        // SAFETY: all handles are valid.
        unsafe {
            let named: Vec<MlirNamedAttribute> = entries
                .iter()
                .map(|(name, attr)| {
                    mlirNamedAttributeGet(mlirIdentifierGet(ctx.raw(), ffi::str_ref(name)), attr.raw())
                })
                .collect();
            Self::new(mlirDictionaryAttrGet(ctx.raw(), named.len() as isize, named.as_ptr()))
        }
    }
    /// A dense elements attribute with one value for all elements.
    ///
    /// # Panics
    /// When the type is no tensor of the value's type, a number.
    pub fn splat(ty: Type<'c>, value: Attr<'c>) -> Self {
        // MLIR checks by assertion only.
        let element = ty.as_tensor().map(TensorType::element);
        let number = value.as_int().is_some() || value.as_float().is_some();
        assert!(number && element == value.ty(), "splat of {value} as {ty}");
        // SAFETY: checked.
        Self::new(unsafe { mlirDenseElementsAttrSplatGet(ty.raw(), value.raw()) })
    }

    /// Value of an integer or boolean attribute, sign-extended.
    pub fn as_int(self) -> Option<i64> {
        // SAFETY: the accessor matching the type's signedness is used.
        unsafe {
            if !mlirAttributeIsAInteger(self.raw()) {
                return None;
            }
            let ty = mlirAttributeGetType(self.raw());
            if mlirTypeIsAInteger(ty) {
                if mlirIntegerTypeGetWidth(ty) > 64 {
                    return None;
                }
                if mlirIntegerTypeIsUnsigned(ty) {
                    return i64::try_from(mlirIntegerAttrGetValueUInt(self.raw())).ok();
                }
                if mlirIntegerTypeIsSigned(ty) {
                    return Some(mlirIntegerAttrGetValueSInt(self.raw()));
                }
            }
            Some(mlirIntegerAttrGetValueInt(self.raw()))
        }
    }
    /// Value of a boolean attribute.
    pub fn as_bool(self) -> Option<bool> {
        // SAFETY: checked to be a bool attribute.
        unsafe { mlirAttributeIsABool(self.raw()).then(|| mlirBoolAttrGetValue(self.raw())) }
    }
    /// Value of a float attribute, rounded to a double.
    pub fn as_float(self) -> Option<f64> {
        // SAFETY: checked to be a float attribute.
        unsafe { mlirAttributeIsAFloat(self.raw()).then(|| mlirFloatAttrGetValueDouble(self.raw())) }
    }
    /// Text of a string attribute.
    pub fn as_str(self) -> Option<&'c str> {
        // SAFETY: checked to be a string; its text lives in the context.
        unsafe { mlirAttributeIsAString(self.raw()).then(|| ffi::str_of(mlirStringAttrGetValue(self.raw()))) }
    }
    /// Bytes of a string attribute, which need not be UTF-8.
    pub fn as_bytes(self) -> Option<&'c [u8]> {
        // SAFETY: checked to be a string; its text lives in the context.
        unsafe {
            mlirAttributeIsAString(self.raw()).then(|| {
                let text = mlirStringAttrGetValue(self.raw());
                if text.length == 0 {
                    &[][..]
                } else {
                    std::slice::from_raw_parts(text.data.cast(), text.length)
                }
            })
        }
    }
    /// Name of a flat symbol reference.
    pub fn as_symbol(self) -> Option<&'c str> {
        // SAFETY: checked to be a flat symbol reference.
        unsafe {
            mlirAttributeIsAFlatSymbolRef(self.raw())
                .then(|| ffi::str_of(mlirFlatSymbolRefAttrGetValue(self.raw())))
        }
    }
    /// The type held by a type attribute.
    pub fn as_type(self) -> Option<Type<'c>> {
        // SAFETY: checked to be a type attribute.
        unsafe {
            if mlirAttributeIsAType(self.raw()) {
                Type::from_raw(mlirTypeAttrGetValue(self.raw()))
            } else {
                None
            }
        }
    }
    /// Whether this is `unit`.
    pub fn is_unit(self) -> bool {
        // SAFETY: the handle is valid.
        unsafe { mlirAttributeIsAUnit(self.raw()) }
    }
    /// Elements of an `array<i32: …>`.
    pub fn as_i32_array(self) -> Option<Vec<i32>> {
        let mut n = 0;
        // SAFETY: the elements live in the context; other attributes give null, empty arrays may.
        unsafe {
            let data = ffi::mhI32Array(self.raw(), &mut n);
            if n > 0 {
                Some(std::slice::from_raw_parts(data, n as usize).to_vec())
            } else {
                mlirAttributeIsADenseI32Array(self.raw()).then(Vec::new)
            }
        }
    }
    /// Elements of an `array<i64: …>`.
    pub fn as_i64_array(self) -> Option<Vec<i64>> {
        let mut n = 0;
        // SAFETY: the elements live in the context; other attributes give null, empty arrays may.
        unsafe {
            let data = ffi::mhI64Array(self.raw(), &mut n);
            if n > 0 {
                Some(std::slice::from_raw_parts(data, n as usize).to_vec())
            } else {
                mlirAttributeIsADenseI64Array(self.raw()).then(Vec::new)
            }
        }
    }
    /// Elements of `[…]`.
    pub fn as_array(self) -> Option<Vec<Attr<'c>>> {
        // SAFETY: checked to be an array; indices are in range.
        unsafe {
            mlirAttributeIsAArray(self.raw()).then(|| {
                (0..mlirArrayAttrGetNumElements(self.raw()))
                    .map(|i| Self::new(mlirArrayAttrGetElement(self.raw(), i)))
                    .collect()
            })
        }
    }
    /// Entries of `{…}`, sorted by name.
    pub fn as_dict(self) -> Option<Vec<(&'c str, Attr<'c>)>> {
        // SAFETY: checked to be a dictionary; indices are in range.
        unsafe {
            mlirAttributeIsADictionary(self.raw()).then(|| {
                (0..mlirDictionaryAttrGetNumElements(self.raw()))
                    .map(|i| {
                        let named = mlirDictionaryAttrGetElement(self.raw(), i);
                        (ffi::str_of(mlirIdentifierStr(named.name)), Self::new(named.attribute))
                    })
                    .collect()
            })
        }
    }
    /// Entry `name` of a dictionary.
    pub fn get(self, name: &str) -> Option<Attr<'c>> {
        // SAFETY: checked to be a dictionary.
        unsafe {
            if !mlirAttributeIsADictionary(self.raw()) {
                return None;
            }
            Attr::from_raw(mlirDictionaryAttrGetElementByName(self.raw(), ffi::str_ref(name)))
        }
    }
    /// This attribute as dense elements.
    pub fn as_elements(self) -> Option<ElementsAttr<'c>> {
        // SAFETY: the handle is valid.
        unsafe { mlirAttributeIsADenseElements(self.raw()) }.then_some(ElementsAttr(self))
    }
    /// The type of a typed attribute.
    pub fn ty(self) -> Option<Type<'c>> {
        // SAFETY: the handle is valid; `None`-typed attributes give a none type or null.
        unsafe { Type::from_raw(mlirAttributeGetType(self.raw())) }
    }
    /// The definition when the attribute is hosted.
    pub fn def(self) -> Option<&'static AttrDef> {
        // SAFETY: hosted attributes are registered with a pointer to their definition.
        unsafe { ffi::mhAttrDef(self.raw()).cast::<AttrDef>().as_ref() }
    }
    /// Whether the attribute is hosted and defined by `def`.
    pub fn is(self, def: &'static AttrDef) -> bool {
        self.def().is_some_and(|mine| std::ptr::eq(mine, def))
    }
    /// Parameters of a hosted attribute.
    pub fn params(self) -> &'c [Attr<'c>] {
        if self.def().is_none() {
            return &[];
        }
        let mut n = 0;
        // SAFETY: the attribute is dynamic; its parameters live in the context and are not null.
        unsafe {
            let data = ffi::mhAttrParams(self.raw(), &mut n);
            if n == 0 { &[] } else { std::slice::from_raw_parts(data.cast(), n as usize) }
        }
    }
    /// The uniqued pointer: equal attributes of one context have equal ids.
    pub fn id(self) -> usize {
        self.raw().ptr as usize
    }
    /// A name for a hosted attribute that no other one ever gets in this
    /// process, not even after its context is gone: the number of the loaded
    /// dialect and the uniqued pointer. `None` for attributes of C++ dialects.
    pub fn global_id(self) -> Option<(u64, usize)> {
        // SAFETY: the handle is valid.
        let instance = unsafe { ffi::mhAttrInstance(self.raw()) };
        (instance != 0).then(|| (instance, self.id()))
    }
}

/// Dense elements: a constant tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ElementsAttr<'c>(Attr<'c>);

impl<'c> ElementsAttr<'c> {
    /// The attribute.
    pub fn attr(self) -> Attr<'c> {
        self.0
    }
    /// Number of elements.
    pub fn len(self) -> i64 {
        // SAFETY: checked on construction.
        unsafe { mlirElementsAttrGetNumElements(self.0.raw()) }
    }
    /// Whether there are no elements.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
    /// The one value of all elements, where they are equal.
    pub fn splat_value(self) -> Option<Attr<'c>> {
        // SAFETY: checked to be a splat.
        unsafe {
            if mlirDenseElementsAttrIsSplat(self.0.raw()) {
                Attr::from_raw(mlirDenseElementsAttrGetSplatValue(self.0.raw()))
            } else {
                None
            }
        }
    }
    /// The same splat for another tensor type of the same element type.
    pub fn splat_to(self, ty: Type<'c>) -> Option<Attr<'c>> {
        let value =
            self.splat_value().filter(|value| value.ty() == ty.as_tensor().map(TensorType::element))?;
        Some(Attr::splat(ty, value))
    }
    /// The bits of the elements, in order, as integers in a tensor of one
    /// dimension; those of `i1` as bytes. `None` for elements of unusual width.
    pub fn as_words(self) -> Option<Attr<'c>> {
        let bits = match self.0.ty()?.element() {
            ty if ty.is_index() => 64,
            ty => ty.bits()?,
        };
        let (len, word) = (usize::try_from(self.len()).ok()?, bits.max(8));
        let ty = TensorType::new(&[self.len()], Type::int(self.0.context(), word), None)?.ty();
        // SAFETY: elements of whole bytes lie one after the other, all of them unless one stands for all;
        // MLIR copies the buffer, whose size is that of the type.
        unsafe {
            let raw = self.0.raw();
            if mlirDenseElementsAttrIsSplat(raw) {
                return None;
            }
            if bits == 1 {
                let bytes: Vec<u8> = (0..self.len() as isize)
                    .map(|i| u8::from(mlirDenseElementsAttrGetBoolValue(raw, i)))
                    .collect();
                return Attr::from_raw(mlirDenseElementsAttrRawBufferGet(
                    ty.raw(),
                    len,
                    bytes.as_ptr().cast(),
                ));
            }
            let size = len * (word as usize / 8);
            matches!(word, 8 | 16 | 32 | 64).then_some(())?;
            Attr::from_raw(mlirDenseElementsAttrRawBufferGet(
                ty.raw(),
                size,
                mlirDenseElementsAttrGetRawData(raw),
            ))
        }
    }
    /// The same elements with another shape of as many elements.
    pub fn reshape_to(self, ty: Type<'c>) -> Option<Attr<'c>> {
        let tensor = ty.as_tensor()?;
        if tensor.num_elements() != self.len() || Some(tensor.element()) != self.0.ty().map(Type::element) {
            return None;
        }
        // SAFETY: number and type of the elements agree.
        unsafe { Attr::from_raw(mlirDenseElementsAttrReshapeGet(self.0.raw(), ty.raw())) }
    }
}
