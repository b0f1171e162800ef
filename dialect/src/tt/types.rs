//! Types: pointers.

use mlir_host::asm::Punct;
use mlir_host::def::TypeDef;
use mlir_host::dialect::hosted_type;
use mlir_host::ir::{Attr, Type};

/// `!tt.ptr<f32>` or `!tt.ptr<f32, 3>`: a pointee and an address space
/// (1, global memory, is not spelled).
pub static POINTER: TypeDef = TypeDef {
    summary: "pointer to a scalar",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let pointee = parser.ty()?;
        let space = if parser.opt_punct(Punct::Comma) { parser.integer()? } else { 1 };
        parser.punct(Punct::Greater)?;
        Ok(vec![Attr::type_of(pointee), Attr::int(parser.context(), 32, space)])
    },
    print: |params, printer| {
        printer.text("<");
        if let Some(pointee) = params[0].as_type() {
            printer.ty(pointee);
        }
        if let Some(space) = params[1].as_int().filter(|space| *space != 1) {
            printer.text(&format!(", {space}"));
        }
        printer.text(">");
    },
    ..TypeDef::new("tt", "ptr")
};

/// Whether `ty` is a pointer.
pub fn is_pointer(ty: Type<'_>) -> bool {
    ty.is(&POINTER)
}

/// The pointee of a pointer.
pub fn pointee(ty: Type<'_>) -> Option<Type<'_>> {
    if is_pointer(ty) { ty.params().first()?.as_type() } else { None }
}

/// `!tt.ptr<pointee>` in global memory.
pub fn pointer_to(pointee: Type<'_>) -> Option<Type<'_>> {
    let ctx = pointee.context();
    hosted_type(ctx, &POINTER, &[Attr::type_of(pointee), Attr::int(ctx, 32, 1)])
}
