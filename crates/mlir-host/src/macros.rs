//! Declarative definitions.

/// Defines an operation: a typed handle with accessors, and its [`OpDef`](crate::def::OpDef).
///
/// Sections may be left out, but keep their order. Names are Rust
/// identifiers; where the IR spells them differently the spelling follows in
/// parentheses. `[opt]` and `[var]` make operands, results and regions
/// optional and variadic; attributes are `[opt]`, `[default "text"]`, or
/// `[optdefault "text"]` (may be absent, and is not written when it is that).
/// Everything else of the definition is set in `with`.
///
/// ```
/// use mlir_host::def::*;
/// use mlir_host::{attrs::I32Attr, ir::Type};
/// static I32: TypeConstraint =
///     TypeConstraint::only("32-bit signless integer", |ty| ty.is_int(32), |ctx| Type::int(ctx, 32));
///
/// mlir_host::op! {
///     /// Adds a constant to its operand, under an optional mask.
///     pub struct AddConst = "example.add_const" {
///         operands: [src: I32, mask[opt]: ANY_TYPE],
///         results: [result: I32],
///         attrs: [value: I32Attr, times("repeat")[default "1 : i32"]: I32Attr],
///         format: "$src (`,` $mask^)? `plus` $value attr-dict (`:` type($mask)^)?",
///         with: { effects: Effects::None, speculation: Speculation::Always },
///     }
/// }
/// assert_eq!(AddConst::DEF.name, "example.add_const");
/// assert_eq!(AddConst::DEF.attrs[1].name, "repeat");
/// ```
///
/// What every verified operation has (operands and attributes that are neither
/// optional nor without a default) is returned as it is; code that sees other
/// IR, such as a printer, asks `op.unverified()`, whose accessors give an
/// `Option`. `build` takes what is required, by the names of the definition
/// and in its order; what is optional is set by name:
/// `AddConst::build(loc, src, 3).mask(mask).times(2).insert(rewriter)?`.
#[macro_export]
macro_rules! op {
    (
        $(#[doc = $doc:literal])+
        $vis:vis struct $name:ident = $opname:literal {
            $(operands: [$( $on:ident $(($ostr:literal))? $([$oa:ident])? : $oc:path ),* $(,)?],)?
            $(results: [$( $rn:ident $(($rstr:literal))? $([$ra:ident])? : $rc:path ),* $(,)?],)?
            $(attrs: [$( $an:ident $(($astr:literal))? $([$ap:ident $($adef:literal)?])? : $ac:path ),* $(,)?],)?
            $(regions: [$( $gn:ident $(($gstr:literal))? $([$ga:ident])? : $gb:expr ),* $(,)?],)?
            $(traits: [$( $trait:expr ),* $(,)?],)?
            $(types: [$( $rule:expr ),* $(,)?],)?
            $(format: $format:literal,)?
            $(with: { $( $field:ident : $value:expr ),* $(,)? },)?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        $vis struct $name<'c>($crate::ir::Op<'c>);

        #[allow(non_camel_case_types, dead_code, missing_docs)]
        const _: () = {
            #[repr(usize)] enum Operands { $($($on,)*)? __End }
            #[repr(usize)] enum Results { $($($rn,)*)? __End }
            #[repr(usize)] enum Attrs { $($($an,)*)? __End }
            #[repr(usize)] enum Regions { $($($gn,)*)? __End }

            #[allow(clippy::needless_update)]
            static DEFINITION: $crate::def::OpDef = $crate::def::OpDef::resolved($crate::def::OpDef {
                summary: $crate::op!(@first $($doc),+),
                $(operands: &[$($crate::def::ValueDef {
                    name: $crate::op!(@name $on $($ostr)?),
                    constraint: &$oc,
                    arity: $crate::op!(@arity $($oa)?),
                }),*],)?
                $(results: &[$($crate::def::ValueDef {
                    name: $crate::op!(@name $rn $($rstr)?),
                    constraint: &$rc,
                    arity: $crate::op!(@arity $($ra)?),
                }),*],)?
                $(attrs: &[$($crate::def::AttrField {
                    name: $crate::op!(@name $an $($astr)?),
                    constraint: &<$ac as $crate::def::AttrKind>::CONSTRAINT,
                    presence: $crate::op!(@presence $($ap $($adef)?)?),
                }),*],)?
                $(regions: &[$($crate::def::RegionDef {
                    name: $crate::op!(@name $gn $($gstr)?),
                    arity: $crate::op!(@arity $($ga)?),
                    blocks: $gb,
                }),*],)?
                $(traits: &[$($trait),*],)?
                $(types: &[$($rule),*],)?
                $(format: $crate::def::Format::Assembly($format),)?
                $($($field: $value,)*)?
                ..$crate::def::OpDef::new($opname)
            });

            impl<'c> $name<'c> {
                /// The definition.
                pub const DEF: &'static $crate::def::OpDef = &DEFINITION;
                /// The full name.
                pub const NAME: &'static str = $opname;

                /// This operation, if it is one.
                pub fn cast(op: $crate::ir::Op<'c>) -> Option<Self> {
                    op.is(&DEFINITION).then_some(Self(op))
                }
                /// The operation of this kind, if it is one.
                pub fn of_kind(kind: $crate::ir::OpKind<'c>) -> Option<Self> {
                    Self::is(kind).then_some(Self(kind.op()))
                }
                /// Whether operations of this kind are.
                pub fn is(kind: $crate::ir::OpKind<'_>) -> bool {
                    kind.is(&DEFINITION)
                }
                /// This operation, which is one: for code that is only called for such, as verifiers and folds are.
                ///
                /// # Panics
                /// When it is another one.
                #[track_caller]
                pub fn of(op: $crate::ir::Op<'c>) -> Self {
                    Self::cast(op).unwrap_or_else(|| panic!("{} is no {}", op.name(), $opname))
                }
                /// The operation that defines `value`, if it is one.
                pub fn defining(value: $crate::ir::Value<'c>) -> Option<Self> {
                    Self::cast(value.def_op()?)
                }
                /// The operation.
                pub fn op(self) -> $crate::ir::Op<'c> {
                    self.0
                }
                $($($crate::op!(@operand $on $([$oa])?);)*)?
                $($($crate::op!(@result $rn $([$ra])?);)*)?
                $($($crate::op!(@attr $an $([$ap])? $ac);)*)?
                $($($crate::op!(@region $gn $([$ga])?);)*)?
                /// What is required of its attributes, for code that sees IR which was not verified, such as printers.
                pub fn unverified(self) -> Unverified<'c> {
                    Unverified(self.0)
                }
                $crate::op!(@build {} {}
                    [$($($on $([$oa])?,)*)?] [$($($an $([$ap])? $ac,)*)?]);
            }

            /// The attributes that verified operations have, each of them where it is given and of its kind.
            #[derive(Clone, Copy)]
            pub struct Unverified<'c>($crate::ir::Op<'c>);
            impl<'c> Unverified<'c> {
                $($($crate::op!(@unverified $an $([$ap])? $ac);)*)?
            }

            /// An operation to be made. What is required was given to `build`; what is optional has a method of its name.
            pub struct Builder<'c>($crate::rewrite::Build<'c>);
            impl<'c> Builder<'c> {
                $($($crate::op!(@set_operand $on $([$oa])?);)*)?
                $($($crate::op!(@set_attr $an $([$ap])? $ac);)*)?
                $crate::op!(@finish $name);
            }
        };
    };
    (@first $first:literal $(, $rest:literal)*) => { $first };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $text:literal) => { $text };
    (@arity) => { $crate::def::Arity::One };
    (@arity opt) => { $crate::def::Arity::Optional };
    (@arity var) => { $crate::def::Arity::Variadic };
    (@presence) => { $crate::def::Presence::Required };
    (@presence opt) => { $crate::def::Presence::Optional };
    (@presence default $text:literal) => { $crate::def::Presence::Default($text) };
    (@presence optdefault $text:literal) => { $crate::def::Presence::OptionalDefault($text) };
    (@operand $name:ident) => {
        /// The operand of this name.
        pub fn $name(self) -> $crate::ir::Value<'c> {
            let (start, _) = DEFINITION.operand_group(self.0, Operands::$name as usize);
            self.0.operand(start)
        }
    };
    (@operand $name:ident [opt]) => {
        /// The operand of this name, where it is given.
        pub fn $name(self) -> Option<$crate::ir::Value<'c>> {
            let (start, n) = DEFINITION.operand_group(self.0, Operands::$name as usize);
            (n == 1).then(|| self.0.operand(start))
        }
    };
    (@operand $name:ident [var]) => {
        /// The operands of this name.
        pub fn $name(self) -> $crate::ir::OpOperands<'c> {
            let (start, n) = DEFINITION.operand_group(self.0, Operands::$name as usize);
            self.0.operand_range(start, n)
        }
    };
    (@result $name:ident) => {
        /// The result of this name.
        pub fn $name(self) -> $crate::ir::Value<'c> {
            let (start, _) = DEFINITION.result_group(self.0, Results::$name as usize);
            self.0.result(start)
        }
    };
    (@result $name:ident [opt]) => {
        /// The result of this name, where there is one.
        pub fn $name(self) -> Option<$crate::ir::Value<'c>> {
            let (start, n) = DEFINITION.result_group(self.0, Results::$name as usize);
            (n == 1).then(|| self.0.result(start))
        }
    };
    (@result $name:ident [var]) => {
        /// The results of this name.
        pub fn $name(self) -> Vec<$crate::ir::Value<'c>> {
            $crate::dialect::result_values(self.0, Results::$name as usize)
        }
    };
    (@attr $name:ident $kind:path) => {
        /// The attribute of this name, which every verified operation has; panics in other IR where it is missing.
        #[track_caller]
        pub fn $name(self) -> <$kind as $crate::def::AttrKind>::Value<'c> {
            $crate::def::required(self.0, Attrs::$name as usize, self.unverified().$name())
        }
    };
    (@attr $name:ident [default] $kind:path) => {
        /// The attribute of this name, or its default.
        #[track_caller]
        pub fn $name(self) -> <$kind as $crate::def::AttrKind>::Value<'c> {
            $crate::def::required(self.0, Attrs::$name as usize, self.unverified().$name())
        }
    };
    (@attr $name:ident [$presence:ident] $kind:path) => {
        /// The attribute of this name, where it is given.
        pub fn $name(self) -> Option<<$kind as $crate::def::AttrKind>::Value<'c>> {
            <$kind as $crate::def::AttrKind>::decode(self.0.slot(Attrs::$name as usize)?)
        }
    };
    (@unverified $name:ident $kind:path) => {
        pub fn $name(self) -> Option<<$kind as $crate::def::AttrKind>::Value<'c>> {
            <$kind as $crate::def::AttrKind>::decode(self.0.slot(Attrs::$name as usize)?)
        }
    };
    (@unverified $name:ident [default] $kind:path) => {
        pub fn $name(self) -> Option<<$kind as $crate::def::AttrKind>::Value<'c>> {
            let slot = Attrs::$name as usize;
            <$kind as $crate::def::AttrKind>::decode(self.0.slot(slot).or_else(|| self.0.slot_default(slot))?)
        }
    };
    (@unverified $name:ident [$presence:ident] $kind:path) => {};
    // Sorts out what is required: operands {…} and attributes {…} so far, then what is left of both.
    (@build {$($operands:tt)*} {$($attrs:tt)*} [$name:ident [opt], $($rest:tt)*] $left:tt) => {
        $crate::op!(@build {$($operands)*} {$($attrs)*} [$($rest)*] $left);
    };
    (@build {$($operands:tt)*} {$($attrs:tt)*} [$name:ident [var], $($rest:tt)*] $left:tt) => {
        $crate::op!(@build {$($operands)* $name [var],} {$($attrs)*} [$($rest)*] $left);
    };
    (@build {$($operands:tt)*} {$($attrs:tt)*} [$name:ident, $($rest:tt)*] $left:tt) => {
        $crate::op!(@build {$($operands)* $name [one],} {$($attrs)*} [$($rest)*] $left);
    };
    (@build $operands:tt {$($attrs:tt)*} [] [$name:ident [$presence:ident] $kind:path, $($rest:tt)*]) => {
        $crate::op!(@build $operands {$($attrs)*} [] [$($rest)*]);
    };
    (@build $operands:tt {$($attrs:tt)*} [] [$name:ident $kind:path, $($rest:tt)*]) => {
        $crate::op!(@build $operands {$($attrs)* $name $kind,} [] [$($rest)*]);
    };
    (@build {$($operand:ident [$arity:ident],)*} {$($attr:ident $kind:path,)*} [] []) => {
        /// Starts to make one, from what it must have: operands first, attributes second.
        pub fn build(
            loc: $crate::ir::Loc<'c>,
            $($operand: $crate::op!(@given $arity),)*
            $($attr: <$kind as $crate::def::AttrKind>::Value<'c>,)*
        ) -> Builder<'c> {
            #[allow(unused_mut)]
            let mut build = $crate::rewrite::Build::new(&DEFINITION, loc);
            $(build = build.operands(Operands::$operand as usize, $crate::op!(@values $arity $operand));)*
            $(build = build.attr(Attrs::$attr as usize, <$kind as $crate::def::AttrKind>::encode(loc.context(), $attr));)*
            Builder(build)
        }
    };
    (@given one) => { $crate::ir::Value<'c> };
    (@given var) => { &[$crate::ir::Value<'c>] };
    (@values one $name:ident) => { &[$name] };
    (@values var $name:ident) => { $name };
    (@set_operand $name:ident [opt]) => {
        #[inline]
        pub fn $name(self, value: impl Into<Option<$crate::ir::Value<'c>>>) -> Self {
            Self(self.0.operands(Operands::$name as usize, value.into().as_slice()))
        }
    };
    (@set_operand $name:ident $([$arity:ident])?) => {};
    (@set_attr $name:ident [$presence:ident] $kind:path) => {
        #[inline]
        pub fn $name(self, value: impl Into<Option<<$kind as $crate::def::AttrKind>::Value<'c>>>) -> Self {
            let value = value.into().and_then(|value| {
                <$kind as $crate::def::AttrKind>::encode(self.0.context(), value)
            });
            Self(self.0.attr(Attrs::$name as usize, value))
        }
    };
    (@set_attr $name:ident $kind:path) => {};
    (@finish $name:ident) => {
        /// The result types, where they are not inferred.
        #[inline]
        pub fn results(self, types: &[$crate::ir::Type<'c>]) -> Self {
            Self(self.0.results(types))
        }
        /// The result types by group, for operations that have several groups of any number.
        #[inline]
        pub fn result_groups(self, groups: &[&[$crate::ir::Type<'c>]]) -> Self {
            Self(self.0.result_groups(groups))
        }
        /// The number of regions, where it is not fixed.
        #[inline]
        pub fn num_regions(self, n: usize) -> Self {
            Self(self.0.num_regions(n))
        }
        /// A discardable attribute.
        #[inline]
        pub fn discardable(self, name: &str, attr: $crate::ir::Attr<'c>) -> Self {
            Self(self.0.discardable(name, attr))
        }
        /// All discardable attributes of another operation.
        #[inline]
        pub fn discardable_of(self, op: $crate::ir::Op<'c>) -> Self {
            Self(self.0.discardable_of(op))
        }
        /// Makes the operation where `rewriter` stands.
        ///
        /// # Errors
        /// When the result types could not be inferred or MLIR refused it; the error is reported.
        #[inline]
        pub fn insert(self, rewriter: &mut $crate::rewrite::Rewriter<'c>) -> Result<$name<'c>, $crate::asm::Reported> {
            Ok($name(rewriter.insert(self.0.finish()?)))
        }
        /// Makes the operation, for the caller to put somewhere.
        ///
        /// # Errors
        /// As for `insert`.
        #[inline]
        pub fn detached(self) -> Result<$name<'c>, $crate::asm::Reported> {
            Ok($name(self.0.finish()?))
        }
    };
    (@region $name:ident) => {
        /// The region of this name.
        pub fn $name(self) -> $crate::ir::Region<'c> {
            self.0.region(Regions::$name as usize)
        }
    };
    (@region $name:ident [$arity:ident]) => {
        /// The regions of this name, which is the last one declared.
        pub fn $name(self) -> impl Iterator<Item = $crate::ir::Region<'c>> {
            self.0.regions().skip(Regions::$name as usize)
        }
    };
}

/// Tells operations apart by their types, in the order of the arms, as `match` does values.
///
/// An arm is the name of one type, with a name for the typed handle where that is wanted, or several with `|` between
/// them, maybe a condition, and an expression with a comma behind it. The last arm is `_`. What is asked of MLIR is
/// asked once.
///
/// ```
/// # use mlir_host::{ir::Op, match_op, upstream::{AddIOp, ConstantOp, SubIOp}};
/// fn describe(op: Op<'_>) -> &'static str {
///     match_op!(op, {
///         AddIOp | SubIOp => "arithmetic",
///         ConstantOp(made) if made.int().is_some() => "a number",
///         _ => "something else",
///     })
/// }
/// ```
#[macro_export]
macro_rules! match_op {
    ($op:expr, { $($arms:tt)+ }) => {{
        let kind = $op.kind();
        $crate::match_op!(@arms kind $($arms)+)
    }};
    (@arms $kind:ident _ => $body:expr $(,)?) => { $body };
    (@arms $kind:ident $ty:ident ( $name:ident ) $(if $guard:expr)? => $body:expr, $($rest:tt)+) => {
        if let Some($name) = $ty::of_kind($kind) $(&& $guard)? { $body }
        else { $crate::match_op!(@arms $kind $($rest)+) }
    };
    (@arms $kind:ident $($ty:ident)|+ $(if $guard:expr)? => $body:expr, $($rest:tt)+) => {
        if ($($ty::is($kind))||+) $(&& $guard)? { $body }
        else { $crate::match_op!(@arms $kind $($rest)+) }
    };
}

/// Whether an operation is of one of several types: `is_one_of!(op, AddIOp | SubIOp)`.
#[macro_export]
macro_rules! is_one_of {
    ($op:expr, $($ty:ident)|+) => {{
        let kind = $op.kind();
        $($ty::is(kind))||+
    }};
}

/// Defines an enum that is stored as a 32-bit integer attribute and written
/// as a keyword in formats.
///
/// ```
/// mlir_host::enum_attr! {
///     /// A rounding mode.
///     pub enum Rounding {
///         /// Towards zero.
///         TowardsZero = 0 => "rtz",
///         /// To the nearest, ties to even.
///         NearestEven = 1 => "rtne",
///     }
/// }
/// assert_eq!(Rounding::from_keyword("rtne"), Some(Rounding::NearestEven));
/// ```
#[macro_export]
macro_rules! enum_attr {
    (
        $(#[doc = $doc:literal])+
        $vis:vis enum $name:ident {
            $( $(#[doc = $cdoc:literal])* $case:ident = $value:literal => $text:literal ),+ $(,)?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        $vis enum $name { $( $(#[doc = $cdoc])* $case = $value ),+ }

        impl $name {
            /// All cases.
            pub const CASES: &'static [$crate::def::EnumCase] =
                &[$($crate::def::EnumCase { value: $value, keyword: $text }),+];

            /// The case with this stored value.
            pub fn from_value(value: i64) -> Option<Self> {
                match value { $($value => Some(Self::$case),)+ _ => None }
            }
            /// The case with this spelling.
            pub fn from_keyword(text: &str) -> Option<Self> {
                match text { $($text => Some(Self::$case),)+ _ => None }
            }
            /// The spelling.
            pub fn keyword(self) -> &'static str {
                match self { $(Self::$case => $text),+ }
            }
            /// As an attribute.
            pub fn attr(self, ctx: $crate::ir::Context<'_>) -> $crate::ir::Attr<'_> {
                $crate::ir::Attr::int(ctx, 32, self as i64)
            }
        }

        impl $crate::def::AttrKind for $name {
            type Value<'c> = $name;
            const CONSTRAINT: $crate::def::AttrConstraint = $crate::def::AttrConstraint {
                summary: concat!("allowed 32-bit signless integer cases: ", $crate::enum_attr!(@list $($value),+)),
                matches: |attr| {
                    attr.ty().is_some_and(|ty| ty.is_int(32))
                        && attr.as_int().and_then($name::from_value).is_some()
                },
                syntax: $crate::def::AttrSyntax::Enum($name::CASES),
            };
            fn decode(attr: $crate::ir::Attr<'_>) -> Option<$name> {
                attr.as_int().and_then($name::from_value)
            }
            fn encode(ctx: $crate::ir::Context<'_>, value: $name) -> Option<$crate::ir::Attr<'_>> {
                Some(value.attr(ctx))
            }
        }
    };
    (@list $first:literal $(, $rest:literal)*) => { concat!($first $(, ", ", $rest)*) };
}
