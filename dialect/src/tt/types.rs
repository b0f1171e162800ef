//! Types: pointers and tensor descriptors.

use crate::tt::enums::AddressSpace;
use mlir_host::asm::Punct;
use mlir_host::def::TypeDef;
use mlir_host::dialect::hosted_type;
use mlir_host::ir::{Attr, TensorType, Type};

/// `!tt.ptr<f32>` or `!tt.ptr<f32, "constant">`: a pointee and an address
/// space (global memory is not spelled).
pub static POINTER: TypeDef = TypeDef {
    summary: "pointer to an integer or floating-point value",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let pointee = parser.ty()?;
        let mut space = AddressSpace::Global;
        if parser.opt_punct(Punct::Comma) {
            let loc = parser.loc();
            let name = parser.string()?;
            space = match AddressSpace::from_keyword(&name) {
                Some(space) => space,
                None => return Err(parser.error(loc, format!("invalid pointer address space '{name}'"))),
            };
        }
        parser.punct(Punct::Greater)?;
        Ok(vec![Attr::type_of(pointee), space.attr(parser.context())])
    },
    print: |params, printer| {
        printer.text("<");
        if let Some(pointee) = params.first().and_then(|param| param.as_type()) {
            printer.ty(pointee);
        }
        let space = params.get(1).and_then(|param| param.as_int()).and_then(AddressSpace::from_value);
        if let Some(space) = space.filter(|space| *space != AddressSpace::Global) {
            printer.text(&format!(", \"{}\"", space.keyword()));
        }
        printer.text(">");
    },
    verify: Some(|_, params| {
        let pointee = params.first().and_then(|param| param.as_type()).ok_or("pointer without a pointee")?;
        if pointee.int_bits().is_some() || pointee.is_float() {
            Ok(())
        } else {
            Err(format!("pointer types must point to integer or floating-point types, but got '{pointee}'"))
        }
    }),
    ..TypeDef::new("tt", "ptr")
};

/// `!tt.tensordesc<4x8xf32>` or `!tt.tensordesc<4x8xui8, #shared>`: the shape
/// and element type of the block that loads and stores through the descriptor
/// move, and the shared memory layout, where one was chosen. Integer elements
/// carry the signedness of the front end.
pub static TENSOR_DESC: TypeDef = TypeDef {
    summary: "descriptor of a tensor in global memory",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        // Triton 3.4 to 3.8: a tensor type, with its encoding.
        let first = parser.opt_ty()?;
        if let Some(block) = first.and_then(Type::as_tensor) {
            parser.punct(Punct::Greater)?;
            let shape = Attr::i64_array(parser.context(), &block.shape());
            return Ok([shape, Attr::type_of(block.element())].into_iter().chain(block.encoding()).collect());
        }
        // A block without dimensions has been read.
        let (shape, element) = match first {
            Some(element) => (Vec::new(), element),
            None => (parser.dims(true)?, parser.ty()?),
        };
        let mut params = vec![Attr::i64_array(parser.context(), &shape), Attr::type_of(element)];
        if parser.opt_punct(Punct::Comma) {
            params.push(parser.attr(None)?);
        }
        parser.punct(Punct::Greater)?;
        Ok(params)
    },
    print: |params, printer| {
        printer.text("<");
        for dim in params.first().and_then(|param| param.as_i64_array()).unwrap_or_default() {
            printer.text(&format!("{dim}x"));
        }
        if let Some(element) = params.get(1).and_then(|param| param.as_type()) {
            printer.ty(element);
        }
        if let Some(layout) = params.get(2) {
            printer.text(", ");
            printer.attr(*layout);
        }
        printer.text(">");
    },
    verify: Some(|_, params| {
        let element =
            params.get(1).and_then(|param| param.as_type()).ok_or("descriptor without an element")?;
        if element.as_tensor().is_some() {
            return Err(format!(
                "tensor descriptors must not wrap tensor types, but got '{element}': use \
                 !tt.tensordesc<shape x element-type[, layout]>"
            ));
        }
        Ok(())
    }),
    ..TypeDef::new("tt", "tensordesc")
};

/// Whether `ty` is a pointer.
pub fn is_pointer(ty: Type<'_>) -> bool {
    ty.is(&POINTER)
}

/// The pointee of a pointer.
pub fn pointee(ty: Type<'_>) -> Option<Type<'_>> {
    if is_pointer(ty) { ty.params().first()?.as_type() } else { None }
}

/// The address space of a pointer.
pub fn address_space(ty: Type<'_>) -> Option<AddressSpace> {
    if is_pointer(ty) { AddressSpace::from_value(ty.params().get(1)?.as_int()?) } else { None }
}

/// `!tt.ptr<pointee>` in global memory.
pub fn pointer_to(pointee: Type<'_>) -> Option<Type<'_>> {
    let ctx = pointee.context();
    hosted_type(ctx, &POINTER, &[Attr::type_of(pointee), AddressSpace::Global.attr(ctx)])
}

/// Width in bits of a pointer, integer or float.
pub fn scalar_bits(ty: Type<'_>) -> Option<u32> {
    if is_pointer(ty) { Some(64) } else { ty.bits() }
}

/// What a pointer or tensor of pointers points to: a scalar, or a tensor of
/// the same shape and encoding.
pub fn pointee_like(ty: Type<'_>) -> Option<Type<'_>> {
    match ty.as_tensor() {
        Some(tensor) => Some(tensor.with_element(pointee(tensor.element())?)?.ty()),
        None => pointee(ty),
    }
}

/// A pointer to global memory, or a tensor of them, that points to `ty`.
pub fn pointer_like(ty: Type<'_>) -> Option<Type<'_>> {
    match ty.as_tensor() {
        Some(tensor) => Some(tensor.with_element(pointer_to(tensor.element())?)?.ty()),
        None => pointer_to(ty),
    }
}

/// `i1`, or a tensor of it with the shape and encoding of `ty`.
pub fn bool_like(ty: Type<'_>) -> Option<Type<'_>> {
    let bool = Type::int(ty.context(), 1);
    match ty.as_tensor() {
        Some(tensor) => Some(tensor.with_element(bool)?.ty()),
        None => Some(bool),
    }
}

/// The mask of an access through `ty`, a pointer or a tensor of pointers.
pub fn mask_like(ty: Type<'_>) -> Option<Type<'_>> {
    bool_like(ty)
}

/// A tensor descriptor type.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TensorDescType<'c>(Type<'c>);

impl<'c> TensorDescType<'c> {
    /// `ty` as a tensor descriptor.
    pub fn cast(ty: Type<'c>) -> Option<Self> {
        ty.is(&TENSOR_DESC).then_some(Self(ty))
    }
    /// `!tt.tensordesc<shape x element, layout>`.
    pub fn new(shape: &[i64], element: Type<'c>, layout: Option<Attr<'c>>) -> Option<Self> {
        let ctx = element.context();
        let mut params = vec![Attr::i64_array(ctx, shape), Attr::type_of(element)];
        params.extend(layout);
        hosted_type(ctx, &TENSOR_DESC, &params).map(Self)
    }
    /// The type.
    pub fn ty(self) -> Type<'c> {
        self.0
    }
    /// Shape of the block.
    pub fn shape(self) -> Vec<i64> {
        self.0.params().first().and_then(|param| param.as_i64_array()).unwrap_or_default()
    }
    /// Element type, with signedness where it is an integer.
    pub fn element(self) -> Type<'c> {
        self.0.params().get(1).and_then(|param| param.as_type()).unwrap_or(self.0)
    }
    /// Element type of the blocks that are loaded and stored: integers are signless.
    pub fn signless_element(self) -> Type<'c> {
        let element = self.element();
        element.int_bits().map_or(element, |bits| Type::int(element.context(), bits))
    }
    /// The shared memory layout, where one was chosen.
    pub fn layout(self) -> Option<Attr<'c>> {
        self.0.params().get(2).copied()
    }
    /// The block as a tensor without an encoding.
    pub fn block(self) -> Option<TensorType<'c>> {
        TensorType::new(&self.shape(), self.signless_element(), None)
    }
}

/// The same type, for rules that say that two types agree.
pub fn same(ty: Type<'_>) -> Option<Type<'_>> {
    Some(ty)
}
