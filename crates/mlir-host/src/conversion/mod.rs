//! Dialect conversion: whatever a target does not allow is rewritten, types included.
//!
//! A target is a list of [`Rule`]s, which say what is legal. [`ConversionPattern`]s rewrite what is not, to what a rule says is
//! legal or other patterns convert. They are given the operands as they were converted, at the types to which a
//! [`TypeConverter`] converts them.
//! [`apply_partial_conversion`] leaves what no rule is about and no pattern converts; [`apply_full_conversion`] fails there.
//! Where something converted meets something that is not, a value of the other type is *materialized* by the converter, or
//! the conversion fails.
//!
//! ```
//! use mlir_host::conversion::*;
//! use mlir_host::ir::{Op, Type};
//! use mlir_host::pass::PassResult;
//!
//! /// Integers of any width become i64.
//! static WIDE: TypeConverter = TypeConverter {
//!     conversions: &[|ty| match ty.int_bits() {
//!         Some(_) => Converted::To(Type::int(ty.context(), 64)),
//!         None => Converted::Unknown,
//!     }, keep],
//!     ..TypeConverter::new("wide")
//! };
//!
//! static ADD: ConversionPattern = ConversionPattern {
//!     types: Some(&WIDE),
//!     ..ConversionPattern::new("widen-add", "arith.addi", |op, operands, rewriter| {
//!         let (lhs, rhs) = (operands.one(0), operands.one(1));
//!         let sum = rewriter.generic("arith.addi", op.loc(), &[lhs, rhs], &[lhs.ty()], &[])?;
//!         rewriter.replace(op, &[sum.result(0)]);
//!         Ok(true)
//!     })
//! };
//! static FUNCTION: ConversionPattern = ConversionPattern::function("func.func", &WIDE);
//! static RETURN: ConversionPattern = ConversionPattern::types_of("func.return", &WIDE);
//!
//! static TARGET: &[Rule<'static>] = &[
//!     Rule::op("func.func", Legality::Dynamic(|op| Some(WIDE.is_legal_function(op)))),
//!     Rule::others(Legality::Dynamic(|op| Some(WIDE.is_legal(op)))),
//! ];
//!
//! fn run(root: Op<'_>) -> PassResult {
//!     apply_full_conversion(root, TARGET, &[&ADD, &FUNCTION, &RETURN])
//! }
//! ```
//!
//! MLIR takes back what a pattern did when it fails, or when what it made cannot be made legal. It takes back what the
//! rewriter was told of, and nothing else, so that patterns change everything by their rewriter. Until the conversion
//! succeeded, operations that were replaced are still in the IR, and their results have their old uses.
//!
//! A callback that panics or reports an error ends the conversion, which then fails with that error and no other. A panic also
//! poisons the context ([`poison`](crate::poison)).

mod callbacks;
mod rewriter;
mod types;

pub(crate) use callbacks::{convert_op, convert_type, is_legal, materialize};
pub use rewriter::{ConversionRewriter, Operands};
pub use types::{Converted, Materialization, MaterializeFn, Signature, TypeConverter, cast, keep};

use crate::asm::Reported;
use crate::ffi;
use crate::grave::Converting;
use crate::ir::{Attr, Op};
use crate::poison::{caught_here, errors_here, note_error};
use crate::rewrite::{NewRegion, create_with, new_region};
use std::ffi::c_void;

/// Whether operations are legal.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Legality {
    /// They are.
    Legal,
    /// They are not.
    Illegal,
    /// Some are. `None`: as if no rule were about it.
    Dynamic(for<'c> fn(Op<'c>) -> Option<bool>),
}

#[derive(Clone, Copy)]
enum Of {
    Op,
    Dialect,
    Others,
}

/// Says of some operations whether they are legal. A rule about an operation goes before one about its dialect.
#[derive(Clone, Copy)]
pub struct Rule<'a> {
    of: Of,
    name: &'a str,
    legality: Legality,
    nested: bool,
}

impl<'a> Rule<'a> {
    /// About the operation of this name.
    pub const fn op(name: &'a str, legality: Legality) -> Self {
        Self { of: Of::Op, name, legality, nested: false }
    }
    /// The operation of this name is legal with all that is nested in it.
    pub const fn whole(name: &'a str) -> Self {
        Self { of: Of::Op, name, legality: Legality::Legal, nested: true }
    }
    /// About the operations of a dialect.
    pub const fn dialect(name: &'a str, legality: Legality) -> Self {
        Self { of: Of::Dialect, name, legality, nested: false }
    }
    /// About the operations that no other rule is about.
    pub const fn others(legality: Legality) -> Self {
        Self { of: Of::Others, name: "", legality, nested: false }
    }
}

/// Converts an operation, which it replaces, erases or modifies in place. `false` where it does not apply; what it did until
/// then is taken back.
pub type ConvertFn =
    for<'a, 'c> fn(Op<'c>, &Operands<'a, 'c>, &mut ConversionRewriter<'c>) -> Result<bool, Reported>;

/// A pattern of a dialect conversion.
pub struct ConversionPattern {
    /// For diagnostics.
    pub name: &'static str,
    /// The operation it converts; empty for any.
    pub root: &'static str,
    /// Higher goes first.
    pub benefit: u32,
    /// By what the types of operands are converted. Without one they are given as they are by now.
    pub types: Option<&'static TypeConverter>,
    /// Whether it applies where an operand became several values, or none.
    pub one_to_many: bool,
    /// Whether it may be applied to what it made itself.
    pub recursive: bool,
    /// The work.
    pub apply: ConvertFn,
}

impl ConversionPattern {
    /// A pattern without a type converter, to be extended by struct update.
    pub const fn new(name: &'static str, root: &'static str, apply: ConvertFn) -> Self {
        Self { name, root, benefit: 1, types: None, one_to_many: false, recursive: false, apply }
    }
    /// Converts the types of a function, `func.func` or another one whose `function_type` is a builtin one, and of the
    /// blocks in it.
    pub const fn function(root: &'static str, types: &'static TypeConverter) -> Self {
        Self { types: Some(types), ..Self::new("convert-function", root, convert_function) }
    }
    /// Makes an operation once more, with the converted operands and types of results: for what only passes values on, such
    /// as `func.return`, `func.call` or a region's `yield`. Its regions are moved, and their blocks converted.
    ///
    /// Where one value becomes several, or none, it does not apply to operations with several groups of operands or results.
    pub const fn types_of(root: &'static str, types: &'static TypeConverter) -> Self {
        Self { types: Some(types), one_to_many: true, ..Self::new("convert-types", root, convert_types) }
    }
}

/// Converts `root` and all that is nested in it, as far as rules and patterns go. Fails where an operation is left that a rule
/// says is illegal.
///
/// # Errors
/// Which are reported, by MLIR at the operation that is left, or by a callback.
///
/// # Panics
/// Within a conversion. A pattern panics that replaces `root` itself.
pub fn apply_partial_conversion(
    root: Op<'_>,
    target: &[Rule<'_>],
    patterns: &[&'static ConversionPattern],
) -> Result<(), Reported> {
    apply(root, false, target, patterns)
}

/// Converts `root` and all that is nested in it. Fails where an operation is left that no rule says is legal.
///
/// # Errors
/// As for [`apply_partial_conversion`].
///
/// # Panics
/// Within a conversion.
pub fn apply_full_conversion(
    root: Op<'_>,
    target: &[Rule<'_>],
    patterns: &[&'static ConversionPattern],
) -> Result<(), Reported> {
    apply(root, true, target, patterns)
}

fn apply(
    root: Op<'_>,
    full: bool,
    target: &[Rule<'_>],
    patterns: &[&'static ConversionPattern],
) -> Result<(), Reported> {
    crate::dialect::install_callbacks();
    let _converting = Converting::new(root);
    // A callback would not be asked, and why was reported.
    if root.context().is_poisoned() {
        return Err(Reported::BY_MLIR);
    }
    let rules: Vec<ffi::RuleSpec> = target.iter().map(rule_spec).collect();
    let specs: Vec<ffi::ConversionPatternSpec> =
        patterns.iter().map(|pattern| pattern_spec(pattern)).collect();
    let before = (caught_here(), errors_here());
    // SAFETY: what the specs point to, rules and statics, outlives the call; the rest is gone behind it.
    let done = unsafe {
        let (rules, n) = (rules.as_ptr(), rules.len() as isize);
        ffi::mhConvert(root.raw(), full.into(), rules, n, specs.as_ptr(), specs.len() as isize)
    };
    match done {
        1 if (caught_here(), errors_here()) == before => Ok(()),
        0 => {
            // By MLIR, which a pass that goes on must not get away with.
            note_error();
            Err(Reported::BY_MLIR)
        }
        -1 => Err(root.error("cannot be converted, and MLIR does not say why")),
        _ => Err(Reported::BY_MLIR),
    }
}

fn rule_spec(rule: &Rule<'_>) -> ffi::RuleSpec {
    ffi::RuleSpec {
        def: (rule as *const Rule<'_>).cast::<c_void>(),
        name: ffi::str_ref(rule.name),
        of: match rule.of {
            Of::Op => 0,
            Of::Dialect => 1,
            Of::Others => 2,
        },
        legality: match rule.legality {
            Legality::Legal if rule.nested => 3,
            Legality::Legal => 0,
            Legality::Illegal => 1,
            Legality::Dynamic(_) => 2,
        },
    }
}

fn pattern_spec(pattern: &'static ConversionPattern) -> ffi::ConversionPatternSpec {
    ffi::ConversionPatternSpec {
        def: (pattern as *const ConversionPattern).cast::<c_void>(),
        root: ffi::str_ref(pattern.root),
        benefit: pattern.benefit,
        recursive: pattern.recursive.into(),
        types: pattern
            .types
            .map_or(std::ptr::null(), |types| (types as *const TypeConverter).cast::<c_void>()),
    }
}

fn convert_function<'c>(
    op: Op<'c>,
    _: &Operands<'_, 'c>,
    rewriter: &mut ConversionRewriter<'c>,
) -> Result<bool, Reported> {
    let types = rewriter.types();
    let Some(old) = op.attr("function_type").and_then(Attr::as_type).and_then(|ty| ty.as_function()) else {
        return Ok(false);
    };
    let (old_inputs, old_results) = (old.inputs(), old.results());
    let (Some(signature), Some(new)) = (Signature::of(types, &old_inputs), types.convert_function_type(old))
    else {
        return Ok(false);
    };
    let args = spread_attrs(op, "arg_attrs", "argument", old_inputs.iter().map(|ty| types.convert(*ty)))?;
    let results = spread_attrs(op, "res_attrs", "result", old_results.iter().map(|ty| types.convert(*ty)))?;
    if !op.regions().all(|body| rewriter.convert_region(body, Some(&signature))) {
        return Ok(false);
    }
    rewriter.modify(op, |op| {
        op.set_attr("function_type", Attr::type_of(new.ty()));
        for (name, attr) in [("arg_attrs", args), ("res_attrs", results)] {
            if let Some(attr) = attr {
                op.set_attr(name, attr);
            }
        }
    });
    Ok(true)
}

/// The attributes of arguments, or results, each of which becomes some of other types. What becomes several, or none, must
/// not have any.
fn spread_attrs<'c>(
    op: Op<'c>,
    name: &str,
    what: &str,
    becomes: impl Iterator<Item = Option<Vec<crate::ir::Type<'c>>>>,
) -> Result<Option<Attr<'c>>, Reported> {
    let Some(attrs) = op.attr(name).and_then(Attr::as_array) else { return Ok(None) };
    let mut spread = Vec::new();
    for (i, (attr, types)) in attrs.into_iter().zip(becomes).enumerate() {
        let n = types.map_or(0, |types| types.len());
        if n != 1 && attr.as_dict().is_some_and(|entries| !entries.is_empty()) {
            return Err(op.error(format!("{what} {i} has attributes, and becomes {n} {what}s")));
        }
        spread.extend(std::iter::repeat_n(attr, n));
    }
    Ok(Some(Attr::array(op.context(), &spread)))
}

fn convert_types<'c>(
    op: Op<'c>,
    operands: &Operands<'_, 'c>,
    rewriter: &mut ConversionRewriter<'c>,
) -> Result<bool, Reported> {
    let types = rewriter.types();
    let lists: Option<Vec<_>> = op.results().map(|result| types.convert(result.ty())).collect();
    let Some(lists) = lists else { return Ok(false) };
    let grouped = ["operandSegmentSizes", "resultSegmentSizes"].iter().any(|name| op.attr(name).is_some());
    let one_to_one = operands.are_one_to_one() && lists.iter().all(|list| list.len() == 1);
    if grouped && !one_to_one {
        return Ok(false);
    }
    let regions: Vec<NewRegion> = op.regions().map(|_| new_region()).collect();
    let (successors, attrs): (Vec<_>, Vec<_>) = (op.successors().collect(), op.attrs());
    let made =
        create_with(op.name(), op.loc(), operands.flat(), &lists.concat(), &attrs, &regions, &successors)?;
    let made = rewriter.insert(made);
    for (from, to) in op.regions().zip(made.regions()) {
        rewriter.move_region(from, to);
        if !rewriter.convert_region(to, None) {
            return Ok(false);
        }
    }
    let mut results = made.results();
    let values: Vec<Vec<_>> = lists.iter().map(|list| results.by_ref().take(list.len()).collect()).collect();
    rewriter.replace_by_many(op, &values);
    Ok(true)
}
