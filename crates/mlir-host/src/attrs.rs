//! Kinds of builtin attributes.

use crate::def::{AttrConstraint, AttrKind, AttrSyntax};
use crate::ir::{Attr, Context, Type};

macro_rules! kind {
    ($(#[$doc:meta])* $name:ident, $value:ty, $summary:literal, $syntax:expr, $matches:expr, $decode:expr, $encode:expr) => {
        $(#[$doc])*
        pub struct $name;
        impl AttrKind for $name {
            type Value<'c> = $value;
            const CONSTRAINT: AttrConstraint =
                AttrConstraint { summary: $summary, matches: $matches, syntax: $syntax };
            fn decode<'c>(attr: Attr<'c>) -> Option<$value> {
                let decode: for<'a> fn(Attr<'a>) -> Option<_> = $decode;
                decode(attr)
            }
            fn encode<'c>(ctx: Context<'c>, value: $value) -> Option<Attr<'c>> {
                let encode: for<'a> fn(Context<'a>, $value) -> Attr<'a> = $encode;
                Some(encode(ctx, value))
            }
        }
    };
}

fn is_int(attr: Attr<'_>, bits: u32) -> bool {
    attr.as_int().is_some() && attr.ty().is_some_and(|ty| ty.is_int(bits))
}

kind!(
    /// A 32-bit signless integer.
    I32Attr, i64, "32-bit signless integer attribute",
    AttrSyntax::Typed(|ctx| Type::int(ctx, 32)), |attr| is_int(attr, 32), |attr| attr.as_int(),
    |ctx, value| Attr::int(ctx, 32, value)
);
kind!(
    /// A 64-bit signless integer.
    I64Attr, i64, "64-bit signless integer attribute",
    AttrSyntax::Typed(|ctx| Type::int(ctx, 64)), |attr| is_int(attr, 64), |attr| attr.as_int(),
    |ctx, value| Attr::int(ctx, 64, value)
);
kind!(
    /// A 1-bit signless integer that is not spelled `true` or `false` only.
    I1Attr, bool, "1-bit signless integer attribute",
    AttrSyntax::Typed(|ctx| Type::int(ctx, 1)), |attr| is_int(attr, 1), |attr| attr.as_int().map(|value| value != 0),
    |ctx, value| Attr::int(ctx, 1, value.into())
);
kind!(
    /// `true` or `false`.
    BoolAttr, bool, "bool attribute",
    AttrSyntax::Typed(|ctx| Type::int(ctx, 1)), |attr| attr.as_bool().is_some(), |attr| attr.as_bool(),
    |ctx, value| Attr::bool(ctx, value)
);
/// Present or not.
pub struct UnitAttr;
impl AttrKind for UnitAttr {
    type Value<'c> = bool;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "unit attribute",
        matches: |attr| attr.is_unit(),
        syntax: AttrSyntax::Unit,
    };
    fn decode(_: Attr<'_>) -> Option<bool> {
        Some(true)
    }
    fn encode(ctx: Context<'_>, value: bool) -> Option<Attr<'_>> {
        value.then(|| Attr::unit(ctx))
    }
}
kind!(
    /// `array<i32: …>`.
    DenseI32Array, Vec<i32>, "i32 dense array attribute",
    AttrSyntax::I32Array, |attr| attr.as_i32_array().is_some(), |attr| attr.as_i32_array(),
    |ctx, value| Attr::i32_array(ctx, &value)
);
kind!(
    /// `array<i64: …>`.
    DenseI64Array, Vec<i64>, "i64 dense array attribute",
    AttrSyntax::I64Array, |attr| attr.as_i64_array().is_some(), |attr| attr.as_i64_array(),
    |ctx, value| Attr::i64_array(ctx, &value)
);

/// A string.
pub struct StrAttr;
impl AttrKind for StrAttr {
    type Value<'c> = &'c str;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "string attribute",
        matches: |attr| attr.as_str().is_some(),
        // With no type: what follows a colon is not the string's type.
        // A closure, because the function's lifetime is not late-bound.
        #[allow(clippy::redundant_closure)]
        syntax: AttrSyntax::Typed(|ctx| Type::none(ctx)),
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<&'c str> {
        attr.as_str()
    }
    fn encode<'c>(ctx: Context<'c>, value: &'c str) -> Option<Attr<'c>> {
        Some(Attr::string(ctx, value))
    }
}

/// The name of a symbol: a string written `@name`.
pub struct SymbolNameAttr;
impl AttrKind for SymbolNameAttr {
    type Value<'c> = &'c str;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "string attribute",
        matches: |attr| attr.as_str().is_some(),
        syntax: AttrSyntax::SymbolName,
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<&'c str> {
        attr.as_str()
    }
    fn encode<'c>(ctx: Context<'c>, value: &'c str) -> Option<Attr<'c>> {
        Some(Attr::string(ctx, value))
    }
}

/// A flat reference to a symbol.
pub struct FlatSymbolRefAttr;
impl AttrKind for FlatSymbolRefAttr {
    type Value<'c> = Attr<'c>;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "flat symbol reference attribute",
        matches: |attr| attr.as_symbol().is_some(),
        syntax: AttrSyntax::Any,
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<Attr<'c>> {
        Some(attr)
    }
    fn encode<'c>(_: Context<'c>, value: Attr<'c>) -> Option<Attr<'c>> {
        Some(value)
    }
}

/// A type.
pub struct TypeAttr;
impl AttrKind for TypeAttr {
    type Value<'c> = Type<'c>;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "any type attribute",
        matches: |attr| attr.as_type().is_some(),
        syntax: AttrSyntax::Any,
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<Type<'c>> {
        attr.as_type()
    }
    fn encode<'c>(_: Context<'c>, value: Type<'c>) -> Option<Attr<'c>> {
        Some(Attr::type_of(value))
    }
}

/// A function type.
pub struct FunctionTypeAttr;
impl AttrKind for FunctionTypeAttr {
    type Value<'c> = crate::ir::FunctionType<'c>;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "type attribute of function type",
        matches: |attr| attr.as_type().is_some_and(|ty| ty.as_function().is_some()),
        syntax: AttrSyntax::Any,
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<Self::Value<'c>> {
        attr.as_type()?.as_function()
    }
    fn encode<'c>(_: Context<'c>, value: Self::Value<'c>) -> Option<Attr<'c>> {
        Some(Attr::type_of(value.ty()))
    }
}

/// An array of dictionaries.
pub struct DictArrayAttr;
impl AttrKind for DictArrayAttr {
    type Value<'c> = Vec<Attr<'c>>;
    const CONSTRAINT: AttrConstraint = AttrConstraint {
        summary: "Array of dictionary attributes",
        matches: |attr| {
            attr.as_array().is_some_and(|items| items.iter().all(|item| item.as_dict().is_some()))
        },
        syntax: AttrSyntax::Any,
    };
    fn decode<'c>(attr: Attr<'c>) -> Option<Vec<Attr<'c>>> {
        attr.as_array()
    }
    fn encode<'c>(ctx: Context<'c>, value: Vec<Attr<'c>>) -> Option<Attr<'c>> {
        Some(Attr::array(ctx, &value))
    }
}

/// Any attribute.
pub struct AnyAttr;
impl AttrKind for AnyAttr {
    type Value<'c> = Attr<'c>;
    const CONSTRAINT: AttrConstraint =
        AttrConstraint { summary: "any attribute", matches: |_| true, syntax: AttrSyntax::Any };
    fn decode<'c>(attr: Attr<'c>) -> Option<Attr<'c>> {
        Some(attr)
    }
    fn encode<'c>(_: Context<'c>, value: Attr<'c>) -> Option<Attr<'c>> {
        Some(value)
    }
}
