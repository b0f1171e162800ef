//! Definitions: what an operation, attribute or type is, declared once.
//!
//! These are plain data in statics, usually written with the macros
//! [`op!`](crate::op), [`enum_attr!`](crate::enum_attr) and
//! [`dialect!`](crate::DialectDef). Parsing, printing, verification and the
//! C++ interfaces are all derived from them.

use crate::asm::{OpParser, OpPrinter, ParseResult, Parser, Printer};
use crate::format::Compiled;
use crate::interface::Implementation;
use crate::ir::{Attr, Context, Op, Region, Symbols, Type, Value};
use crate::once::Once;
use crate::rewrite::Pattern;
use crate::traits::Trait;

/// `Err` holds the message, without the `'op' op` prefix.
pub type VerifyResult = Result<(), String>;

/// How many values or regions a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arity {
    /// Exactly one.
    One,
    /// None or one.
    Optional,
    /// Any number.
    Variadic,
}

/// A predicate on types, with the words of its error message.
pub struct TypeConstraint {
    /// What a matching type is, as in "must be `summary`".
    pub summary: &'static str,
    /// The predicate.
    pub matches: fn(Type<'_>) -> bool,
    /// The only matching type, when there is only one: it need not be spelled.
    pub buildable: Option<for<'c> fn(Context<'c>) -> Type<'c>>,
    /// The one hosted type that matches: `type($x)` prints only its parameters.
    pub hosted: Option<&'static TypeDef>,
}

impl TypeConstraint {
    /// A constraint that many types satisfy.
    pub const fn new(summary: &'static str, matches: fn(Type<'_>) -> bool) -> Self {
        Self { summary, matches, buildable: None, hosted: None }
    }
    /// A constraint that one type satisfies.
    pub const fn only(
        summary: &'static str,
        matches: fn(Type<'_>) -> bool,
        build: for<'c> fn(Context<'c>) -> Type<'c>,
    ) -> Self {
        Self { summary, matches, buildable: Some(build), hosted: None }
    }
    /// Types made by one hosted definition.
    pub const fn hosted(summary: &'static str, matches: fn(Type<'_>) -> bool, def: &'static TypeDef) -> Self {
        Self { summary, matches, buildable: None, hosted: Some(def) }
    }
}

/// Any type at all.
pub static ANY_TYPE: TypeConstraint = TypeConstraint::new("any type", |_| true);

/// A group of operands or results under one name.
pub struct ValueDef {
    /// The name used in formats and accessors.
    pub name: &'static str,
    /// What each value's type must satisfy.
    pub constraint: &'static TypeConstraint,
    /// How many values.
    pub arity: Arity,
}

/// How an attribute is written inside an assembly format.
#[derive(Clone, Copy)]
pub enum AttrSyntax {
    /// As any attribute.
    Any,
    /// As a value of a type that is not spelled.
    Typed(for<'c> fn(Context<'c>) -> Type<'c>),
    /// As a keyword.
    Enum(&'static [EnumCase]),
    /// `[1, 2]`
    I32Array,
    /// `[1, 2]`
    I64Array,
    /// `@name`, stored as a string.
    SymbolName,
    /// Nothing; present or not.
    Unit,
}

/// A case of an enum attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnumCase {
    /// Stored value.
    pub value: i64,
    /// Spelling.
    pub keyword: &'static str,
}

/// A predicate on attributes.
pub struct AttrConstraint {
    /// What a matching attribute is, as in "failed to satisfy constraint: `summary`".
    pub summary: &'static str,
    /// The predicate.
    pub matches: fn(Attr<'_>) -> bool,
    /// How it is written in formats.
    pub syntax: AttrSyntax,
}

/// A kind of attribute with a Rust value.
pub trait AttrKind {
    /// What the accessors return.
    type Value<'c>;
    /// The constraint.
    const CONSTRAINT: AttrConstraint;
    /// Reads an attribute that satisfies the constraint.
    fn decode<'c>(attr: Attr<'c>) -> Option<Self::Value<'c>>;
    /// The attribute with this value; `None` where the value is that there is none.
    fn encode<'c>(ctx: Context<'c>, value: Self::Value<'c>) -> Option<Attr<'c>>;
}

/// What a verified operation has in a slot.
///
/// # Panics
/// When it is missing, which verification of the operation would have found.
#[track_caller]
pub fn required<T>(op: Op<'_>, slot: usize, value: Option<T>) -> T {
    value.unwrap_or_else(|| {
        let field =
            op.def().and_then(|def| def.attrs.get(slot)).map_or("of an unknown slot", |field| field.name);
        panic!("'{}' lacks the attribute '{field}', and was not verified", op.name())
    })
}

/// Whether an inherent attribute must be there.
#[derive(Clone, Copy)]
pub enum Presence {
    /// It must.
    Required,
    /// It may be absent.
    Optional,
    /// Absent means this attribute, given in MLIR's syntax.
    Default(&'static str),
    /// It may be absent, and is not written in attribute dictionaries when it
    /// is this attribute.
    OptionalDefault(&'static str),
}

/// An inherent attribute.
pub struct AttrField {
    /// Its name.
    pub name: &'static str,
    /// What it must satisfy.
    pub constraint: &'static AttrConstraint,
    /// Whether it must be there.
    pub presence: Presence,
}

/// How many blocks a region has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Any number.
    Any,
    /// Exactly so many.
    Exactly(usize),
    /// At least so many.
    AtLeast(usize),
}

/// A region or a list of regions.
pub struct RegionDef {
    /// Its name.
    pub name: &'static str,
    /// One or a list.
    pub arity: Arity,
    /// Its blocks.
    pub blocks: Blocks,
}

/// What an operation does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum EffectKind {
    Read = 0,
    Write = 1,
    Allocate = 2,
    Free = 3,
}

/// The value an effect is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EffectOn {
    /// No particular value.
    Nothing,
    /// Each operand of this group.
    Operand(&'static str),
    /// Each result of this group.
    Result(&'static str),
}

/// One memory effect.
#[derive(Clone, Copy, Debug)]
pub struct Effect {
    /// What is done.
    pub kind: EffectKind,
    /// The resource's name, such as `GlobalMemory`; empty for the default one.
    pub resource: &'static str,
    /// On which value.
    pub on: EffectOn,
}

/// The memory effects of an operation.
pub enum Effects {
    /// Unknown: nothing is assumed.
    Unknown,
    /// None.
    None,
    /// These.
    List(&'static [Effect]),
    /// Depends on the operation.
    Dynamic(fn(Op<'_>, &mut dyn FnMut(Effect))),
}

/// Whether an operation may run when it would not have.
pub enum Speculation {
    /// Not known to.
    Never,
    /// It may.
    Always,
    /// When all of its regions' operations may.
    Recursive,
    /// Depends on the operation.
    Dynamic(fn(Op<'_>) -> bool),
}

/// `type(to) = with(type(from))`: infers a type that the format leaves out,
/// and is verified.
pub struct TypeRule {
    /// What is verified, as in "failed to verify that `summary`".
    pub summary: &'static str,
    /// An operand or result group.
    pub from: &'static str,
    /// An operand or result group.
    pub to: &'static str,
    /// The function; `None` where it is not defined.
    pub with: for<'c> fn(Type<'c>) -> Option<Type<'c>>,
    /// Whether a missing `to` is fine and nothing is inferred for it.
    pub verify_only: bool,
}

impl TypeRule {
    /// A rule used for inference and verification.
    pub const fn new(
        summary: &'static str,
        from: &'static str,
        to: &'static str,
        with: for<'c> fn(Type<'c>) -> Option<Type<'c>>,
    ) -> Self {
        Self { summary, from, to, with, verify_only: false }
    }
}

/// What result types are inferred from.
pub struct Inputs<'a, 'c> {
    /// The context.
    pub ctx: Context<'c>,
    /// All operands.
    pub operands: &'a [Value<'c>],
    /// Attributes by name; only inherent ones while parsing or building.
    pub attr: &'a dyn Fn(&str) -> Option<Attr<'c>>,
    /// The regions, empty while parsing or building.
    pub regions: &'a [Region<'c>],
}

impl<'c> Inputs<'_, 'c> {
    /// The types of all results: what the definition infers, or what its rules, traits and constraints leave no choice about.
    ///
    /// # Errors
    /// What cannot be inferred, or does not fit.
    pub(crate) fn infer(&self, def: &OpDef) -> Result<Vec<Type<'c>>, String> {
        if let Some(infer) = def.infer {
            return infer(self);
        }
        let fixed = |group: &usize| def.operands[..*group].iter().all(|value| value.arity == Arity::One);
        let by_rule = |result: &ValueDef| {
            let rule = def.types.iter().find(|rule| rule.to == result.name)?;
            let group = def.operand_index(rule.from).filter(fixed)?;
            (rule.with)(self.operands.get(group)?.ty())
        };
        let same = def.has_trait(&Trait::SAME_TYPE);
        let types = def.results.iter().map(|result| {
            let one = (result.arity == Arity::One).then_some(result)?;
            by_rule(one)
                .or_else(|| one.constraint.buildable.map(|build| build(self.ctx)))
                .or_else(|| self.operands.first().filter(|_| same).map(|value| value.ty()))
        });
        let types = def.results.iter().zip(types);
        types.map(|(result, ty)| ty.ok_or_else(|| format!("result '{}' needs a type", result.name))).collect()
    }
}

/// Infers the types of all results.
pub type InferFn = for<'a, 'c> fn(&Inputs<'a, 'c>) -> Result<Vec<Type<'c>>, String>;

/// What a fold produced.
#[derive(Clone, Copy, Debug)]
pub enum Folded<'c> {
    /// An existing value.
    Value(Value<'c>),
    /// A constant.
    Attr(Attr<'c>),
}

/// Folds an operation whose constant operands are given. `Some(vec![])` says
/// that the operation was changed in place.
pub type FoldFn = for<'c> fn(Op<'c>, &[Option<Attr<'c>>]) -> Option<Vec<Folded<'c>>>;

/// Pushes the numbers of the regions (-1 for the parent) reached from a region
/// (-1: on entry).
pub type SuccessorRegionsFn = fn(Op<'_>, isize, &mut dyn FnMut(isize));

/// The textual form of an operation.
pub enum Format {
    /// Only MLIR's generic form.
    Generic,
    /// A format in the notation of ODS.
    Assembly(&'static str),
    /// Code.
    Custom {
        /// Parses everything after the operation's name.
        parse: for<'c> fn(&mut OpParser<'c>) -> ParseResult<()>,
        /// Prints everything after the operation's name.
        print: for<'c> fn(Op<'c>, &mut OpPrinter<'c>),
    },
    /// The syntax of functions.
    Function,
}

/// The code behind `custom<Name>(…)` of a format.
pub struct CustomDirective {
    /// The name.
    pub name: &'static str,
    /// Parses it. The arguments are the directive's, in order.
    pub parse: for<'c> fn(
        &mut OpParser<'c>,
        &mut crate::format::Parsed<'c>,
        &[crate::format::Arg],
    ) -> ParseResult<()>,
    /// Prints it.
    pub print: for<'c> fn(Op<'c>, &mut OpPrinter<'c>, &[crate::format::Arg]),
}

/// An operation.
pub struct OpDef {
    /// Full name, such as `tt.load`.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Operand groups in order.
    pub operands: &'static [ValueDef],
    /// Result groups in order.
    pub results: &'static [ValueDef],
    /// Inherent attributes. Segment sizes are added where needed.
    pub attrs: &'static [AttrField],
    /// Regions in order.
    pub regions: &'static [RegionDef],
    /// Traits.
    pub traits: &'static [Trait],
    /// Type rules.
    pub types: &'static [TypeRule],
    /// Result type inference.
    pub infer: Option<InferFn>,
    /// Whether inferred types may stand for the given ones; equality if absent.
    pub compatible: Option<fn(Type<'_>, Type<'_>) -> bool>,
    /// Textual form.
    pub format: Format,
    /// Custom directives of the format.
    pub custom: &'static [CustomDirective],
    /// Verifier, run after everything that is derived from this definition.
    pub verify: Option<fn(Op<'_>) -> VerifyResult>,
    /// Verifier that runs after nested operations were verified.
    pub verify_regions: Option<fn(Op<'_>) -> VerifyResult>,
    /// Verifier of the symbols it uses.
    pub verify_symbols: Option<fn(Op<'_>, Symbols<'_>) -> VerifyResult>,
    /// Folder.
    pub fold: Option<FoldFn>,
    /// Canonicalization patterns.
    pub canonicalize: &'static [Pattern],
    /// Memory effects.
    pub effects: Effects,
    /// Speculatability.
    pub speculation: Speculation,
    /// Region branch behaviour: pushes region numbers (-1 for the parent)
    /// reached from a region (-1: on entry).
    pub successor_regions: Option<SuccessorRegionsFn>,
    /// Whether each region that is reached on entry gets all operands as its arguments.
    pub passes_operands: bool,
    /// The group of operands that results are tied to, one by one, as MLIR's `DestinationStyleOpInterface` has it.
    pub destinations: Option<&'static str>,
    /// Interfaces of one's own.
    pub interfaces: &'static [Implementation],
    /// The compiled format; filled on registration.
    pub compiled: Once<Compiled>,
}

impl OpDef {
    /// A definition with nothing in it, to be extended by struct update.
    pub const fn new(name: &'static str) -> Self {
        Self {
            name,
            summary: "",
            operands: &[],
            results: &[],
            attrs: &[],
            regions: &[],
            traits: &[],
            types: &[],
            infer: None,
            compatible: None,
            format: Format::Generic,
            custom: &[],
            verify: None,
            verify_regions: None,
            verify_symbols: None,
            fold: None,
            canonicalize: &[],
            effects: Effects::Unknown,
            speculation: Speculation::Never,
            successor_regions: None,
            passes_operands: false,
            destinations: None,
            interfaces: &[],
            compiled: Once::new(),
        }
    }

    /// With what [`Trait::Pure`] says of effects and speculation, if it is among the traits.
    pub const fn resolved(mut self) -> Self {
        if any_is_pure(self.traits) {
            self.effects = Effects::None;
            self.speculation = Speculation::Always;
        }
        self
    }

    /// The dialect.
    pub fn dialect(&self) -> &'static str {
        self.name.split_once('.').map_or("", |(dialect, _)| dialect)
    }

    /// Name without the dialect.
    pub fn mnemonic(&self) -> &'static str {
        self.name.split_once('.').map_or(self.name, |(_, rest)| rest)
    }

    fn sized(&self, values: &[ValueDef], same: Trait) -> bool {
        values.iter().filter(|value| value.arity != Arity::One).count() > 1 && !self.has_trait(&same)
    }

    /// Whether the sizes of operand groups are in `operandSegmentSizes`.
    pub fn has_operand_segments(&self) -> bool {
        self.sized(self.operands, Trait::SameVariadicOperandSize)
    }

    /// Whether the sizes of result groups are in `resultSegmentSizes`.
    pub fn has_result_segments(&self) -> bool {
        self.sized(self.results, Trait::SameVariadicResultSize)
    }

    /// Slot of `operandSegmentSizes`.
    pub(crate) fn operand_segments_slot(&self) -> Option<usize> {
        self.has_operand_segments().then_some(self.attrs.len())
    }

    /// Slot of `resultSegmentSizes`.
    pub(crate) fn result_segments_slot(&self) -> Option<usize> {
        self.has_result_segments().then_some(self.attrs.len() + usize::from(self.has_operand_segments()))
    }

    /// Number of inherent attributes, segment sizes included.
    pub fn num_slots(&self) -> usize {
        self.attrs.len() + usize::from(self.has_operand_segments()) + usize::from(self.has_result_segments())
    }

    /// Names of the inherent attributes.
    pub fn slot_names(&self) -> impl Iterator<Item = &'static str> {
        let operands = self.has_operand_segments().then_some("operandSegmentSizes");
        let results = self.has_result_segments().then_some("resultSegmentSizes");
        self.attrs.iter().map(|attr| attr.name).chain(operands).chain(results)
    }

    /// Slot of an inherent attribute.
    pub fn slot(&self, name: &str) -> Option<usize> {
        self.slot_names().position(|slot| slot == name)
    }

    /// Sizes of groups that share `total` values.
    fn group_sizes(
        groups: &[ValueDef],
        total: usize,
        segments: Option<Attr<'_>>,
    ) -> Option<smallvec::SmallVec<[usize; 8]>> {
        if let Some(sizes) = segments {
            let sizes = sizes.as_i32_array()?;
            return sizes.into_iter().map(|size| usize::try_from(size).ok()).collect();
        }
        let fixed = groups.iter().filter(|group| group.arity == Arity::One).count();
        let variable = groups.len() - fixed;
        let each = total.checked_sub(fixed)?.checked_div(variable).unwrap_or(0);
        Some(groups.iter().map(|group| if group.arity == Arity::One { 1 } else { each }).collect())
    }

    /// Number of operands in each group; `None` when they do not add up.
    pub fn operand_sizes(&self, op: Op<'_>) -> Option<smallvec::SmallVec<[usize; 8]>> {
        let segments = match self.operand_segments_slot() {
            Some(slot) => Some(op.slot(slot)?),
            None => None,
        };
        Self::group_sizes(self.operands, op.num_operands(), segments)
    }

    /// Number of results in each group; `None` when they do not add up.
    pub fn result_sizes(&self, op: Op<'_>) -> Option<smallvec::SmallVec<[usize; 8]>> {
        let segments = match self.result_segments_slot() {
            Some(slot) => Some(op.slot(slot)?),
            None => None,
        };
        Self::group_sizes(self.results, op.num_results(), segments)
    }

    /// First operand and number of operands of group `group`.
    pub fn operand_group(&self, op: Op<'_>, group: usize) -> (usize, usize) {
        if self.operands[..=group].iter().all(|value| value.arity == Arity::One) {
            return (group, 1);
        }
        match self.operand_sizes(op) {
            Some(sizes) if sizes.len() == self.operands.len() => (sizes[..group].iter().sum(), sizes[group]),
            _ => (0, 0),
        }
    }

    /// First result and number of results of group `group`.
    pub fn result_group(&self, op: Op<'_>, group: usize) -> (usize, usize) {
        if self.results[..=group].iter().all(|value| value.arity == Arity::One) {
            return (group, 1);
        }
        match self.result_sizes(op) {
            Some(sizes) if sizes.len() == self.results.len() => (sizes[..group].iter().sum(), sizes[group]),
            _ => (0, 0),
        }
    }

    /// Index of an operand group.
    pub fn operand_index(&self, name: &str) -> Option<usize> {
        self.operands.iter().position(|value| value.name == name)
    }

    /// Index of a result group.
    pub fn result_index(&self, name: &str) -> Option<usize> {
        self.results.iter().position(|value| value.name == name)
    }

    /// Whether the trait is listed, by itself or in a bundle.
    pub fn has_trait(&self, which: &Trait) -> bool {
        self.traits.iter().any(|each| each.includes(which))
    }

    /// Calls `each` on the traits, those of bundles one by one, in order, until it returns an error.
    pub(crate) fn try_each_trait<E>(
        &self,
        mut each: impl FnMut(&'static Trait) -> Result<(), E>,
    ) -> Result<(), E> {
        self.traits.iter().try_for_each(|one| one.try_each(&mut each))
    }
}

const fn any_is_pure(traits: &[Trait]) -> bool {
    let mut i = 0;
    while i < traits.len() {
        match &traits[i] {
            Trait::Pure => return true,
            Trait::All(bundle) if any_is_pure(bundle) => return true,
            _ => i += 1,
        }
    }
    false
}

/// A hosted attribute or type: a name and a list of parameters.
pub struct ParamDef {
    /// The dialect.
    pub dialect: &'static str,
    /// The name without the dialect.
    pub mnemonic: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// Parses what follows the name.
    pub parse: for<'c> fn(&mut Parser<'c>) -> ParseResult<Vec<Attr<'c>>>,
    /// Prints what follows the name.
    pub print: for<'c> fn(&[Attr<'c>], &mut Printer<'c>),
    /// Checks the parameters.
    pub verify: Option<for<'c> fn(Context<'c>, &[Attr<'c>]) -> VerifyResult>,
}

impl ParamDef {
    /// A definition without parameters.
    pub const fn new(dialect: &'static str, mnemonic: &'static str) -> Self {
        Self { dialect, mnemonic, summary: "", parse: |_| Ok(Vec::new()), print: |_, _| {}, verify: None }
    }
}

/// A hosted attribute.
pub type AttrDef = ParamDef;
/// A hosted type.
pub type TypeDef = ParamDef;
