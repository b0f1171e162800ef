//! Assembly formats in the notation of ODS, compiled once and interpreted.
//!
//! The notation is MLIR's declarative assembly format: literals between
//! backticks, `$operand`, `$attribute`, `$region`, `type($x)`,
//! `functional-type(a, b)`, `qualified(x)`, `custom<Name>(…)`, `operands`,
//! `results`, `attr-dict`, `prop-dict`, `successors`, `oilist(…|…)`, and optional
//! groups `(… $anchor^ …)?` with an else part `:(…)`. Spaces are placed by the same
//! rules as MLIR's generated printers place them. `legacy<Name>`, which ODS has not,
//! is a custom directive that is parsed where it is there, and never printed: an
//! older spelling of something.

use crate::asm::{OpParser, OpPrinter, ParseResult, Punct, SrcLoc, Unresolved};
use crate::def::{Arity, AttrField, AttrSyntax, Inputs, OpDef, Presence, TypeConstraint, ValueDef};
use crate::ir::{Attr, Op, Region, Type, Value};
use crate::traits::Trait;

/// What a directive refers to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arg {
    /// Operand group.
    Operand(usize),
    /// Result group.
    Result(usize),
    /// Inherent attribute.
    Attr(usize),
    /// Region.
    Region(usize),
    /// All operands.
    Operands,
    /// All results.
    Results,
    /// Types of an operand group.
    OperandType(usize),
    /// Types of a result group.
    ResultType(usize),
}

#[derive(Debug)]
enum Kind {
    Punct(Punct),
    Keyword(String),
    Newline,
    Space,
    Var(Arg),
    Type(Arg, bool),
    FunctionalType(Arg, Arg),
    Custom(usize, Vec<Arg>),
    /// What only the parser knows.
    Legacy(usize),
    AttrDict(bool),
    PropDict,
    Successors,
    Optional {
        then: Vec<Element>,
        or_else: Vec<Element>,
        anchor: Arg,
    },
    /// Clauses in any order, each at most once, and what shows that it is there.
    Clauses(Vec<(Vec<Element>, Arg)>),
}

#[derive(Debug)]
struct Element {
    kind: Kind,
    space: bool,
}

/// A compiled format.
#[derive(Debug)]
pub struct Compiled {
    elements: Vec<Element>,
    /// Inherent attributes that the format writes outside of the dictionary.
    written: u64,
}

/// What was parsed so far, before types are resolved.
pub struct Parsed<'c> {
    /// Operands by group.
    pub operands: Vec<Vec<Unresolved<'c>>>,
    /// Operand types by group, where they were spelled.
    pub operand_types: Vec<Option<Vec<Type<'c>>>>,
    /// Result types by group, where they were spelled.
    pub result_types: Vec<Option<Vec<Type<'c>>>>,
    all_operands: Option<Vec<Unresolved<'c>>>,
    all_operand_types: Option<Vec<Type<'c>>>,
    all_result_types: Option<Vec<Type<'c>>>,
    start: SrcLoc<'c>,
}

//===----------------------------------------------------------------------===//
// Compiling
//===----------------------------------------------------------------------===//

struct Reader<'a> {
    def: &'a OpDef,
    rest: &'a str,
    space: bool,
    punctuation: bool,
    written: u64,
}

type Compile<T> = Result<T, String>;

impl<'a> Reader<'a> {
    fn skip(&mut self) {
        self.rest = self.rest.trim_start();
    }
    fn take(&mut self, text: &str) -> bool {
        self.skip();
        match self.rest.strip_prefix(text) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
    fn expect(&mut self, text: &str) -> Compile<()> {
        if self.take(text) { Ok(()) } else { Err(format!("expected `{text}` at `{}`", self.rest)) }
    }
    fn word(&mut self) -> &'a str {
        self.skip();
        let end =
            self.rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != '-').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        word
    }
    fn variable(&mut self) -> Compile<Arg> {
        self.expect("$")?;
        let end = self.rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(self.rest.len());
        let (name, rest) = self.rest.split_at(end);
        self.rest = rest;
        let def = self.def;
        def.operand_index(name)
            .map(Arg::Operand)
            .or_else(|| def.result_index(name).map(Arg::Result))
            .or_else(|| def.attrs.iter().position(|attr| attr.name == name).map(Arg::Attr))
            .or_else(|| def.regions.iter().position(|region| region.name == name).map(Arg::Region))
            .ok_or_else(|| format!("unknown variable ${name}"))
    }
    /// `$x`, `operands`, `results`, `type(…)`, `qualified(…)`, `ref(…)`.
    fn argument(&mut self) -> Compile<Arg> {
        self.skip();
        if self.rest.starts_with('$') {
            return self.variable();
        }
        match self.word() {
            "operands" => Ok(Arg::Operands),
            "results" => Ok(Arg::Results),
            word @ ("type" | "qualified" | "ref") => {
                self.expect("(")?;
                let inner = self.argument()?;
                self.expect(")")?;
                Ok(match (word, inner) {
                    ("type", Arg::Operand(i)) => Arg::OperandType(i),
                    ("type", Arg::Result(i)) => Arg::ResultType(i),
                    _ => inner,
                })
            }
            other => Err(format!("unknown argument {other}")),
        }
    }
    /// Whether a space goes before an element that is not a literal.
    fn spaced(&mut self) -> bool {
        let space = self.space || !self.punctuation;
        self.space = true;
        self.punctuation = false;
        space
    }
    fn literal(&mut self, text: &str) -> Compile<Element> {
        if text.is_empty() || text == " " {
            self.punctuation = text.is_empty();
            self.space = false;
            return Ok(Element { kind: Kind::Space, space: text == " " });
        }
        if text == "\\n" {
            return Ok(Element { kind: Kind::Newline, space: false });
        }
        let first = text.chars().next().unwrap_or(' ');
        let before = if text.len() != 1 && text != "->" {
            true
        } else if self.punctuation {
            !">)}],".contains(first)
        } else {
            !"<>(){}[],".contains(first)
        };
        let space = self.space && before;
        self.space = text.len() != 1 || !"<({[".contains(first);
        self.punctuation = first != '_' && !first.is_ascii_alphabetic();
        let kind = match Punct::from_text(text) {
            Some(punct) => Kind::Punct(punct),
            None if first == '_' || first.is_ascii_alphabetic() => Kind::Keyword(text.to_owned()),
            None => return Err(format!("`{text}` is neither a keyword nor punctuation")),
        };
        Ok(Element { kind, space })
    }
    /// Elements up to `)` or the end; the anchor is the element followed by `^`.
    fn sequence(&mut self, anchor: &mut Option<Arg>) -> Compile<Vec<Element>> {
        let mut elements = Vec::new();
        loop {
            self.skip();
            if self.rest.is_empty() || self.rest.starts_with([')', '|']) {
                return Ok(elements);
            }
            if let Some(rest) = self.rest.strip_prefix('`') {
                let end = rest.find('`').ok_or("unterminated literal")?;
                self.rest = &rest[end + 1..];
                let element = self.literal(&rest[..end])?;
                elements.push(element);
                continue;
            }
            if self.take("(") {
                let mut inner = None;
                let then = self.sequence(&mut inner)?;
                self.expect(")")?;
                let mut or_else = Vec::new();
                if self.take(":") {
                    self.expect("(")?;
                    or_else = self.sequence(&mut None)?;
                    self.expect(")")?;
                }
                self.expect("?")?;
                let anchor = inner.ok_or("optional group without an anchor")?;
                elements.push(Element { kind: Kind::Optional { then, or_else, anchor }, space: false });
                continue;
            }
            let (kind, referred) = self.directive()?;
            let space = match kind {
                Kind::Clauses(_) | Kind::Legacy(_) => false,
                Kind::AttrDict(_) | Kind::PropDict => {
                    self.punctuation = false;
                    false
                }
                // Unit attributes print nothing.
                Kind::Var(Arg::Attr(i))
                    if matches!(self.def.attrs[i].constraint.syntax, AttrSyntax::Unit) =>
                {
                    false
                }
                _ => self.spaced(),
            };
            if self.rest.starts_with('^') {
                self.rest = &self.rest[1..];
                *anchor = referred;
            }
            elements.push(Element { kind, space });
        }
    }
    /// `oilist(clause | clause | …)`; each clause is anchored by its first variable.
    fn clauses(&mut self) -> Compile<Kind> {
        self.expect("(")?;
        let mut clauses = Vec::new();
        loop {
            let elements = self.sequence(&mut None)?;
            if !matches!(elements.first().map(|element| &element.kind), Some(Kind::Keyword(_))) {
                return Err("a clause of an oilist starts with a keyword".to_owned());
            }
            let variable = elements.iter().find_map(|element| match element.kind {
                Kind::Var(arg) => Some(arg),
                _ => None,
            });
            clauses.push((elements, variable.ok_or("clause without a variable")?));
            if !self.take("|") {
                break;
            }
        }
        self.expect(")")?;
        Ok(Kind::Clauses(clauses))
    }
    fn directive(&mut self) -> Compile<(Kind, Option<Arg>)> {
        if self.rest.starts_with('$') {
            let var = self.variable()?;
            if let Arg::Attr(i) = var {
                self.written |= 1 << i;
            }
            return Ok((Kind::Var(var), Some(var)));
        }
        let word = self.word();
        Ok(match word {
            "operands" => (Kind::Var(Arg::Operands), Some(Arg::Operands)),
            "attr-dict" => (Kind::AttrDict(false), None),
            "attr-dict-with-keyword" => (Kind::AttrDict(true), None),
            "prop-dict" => (Kind::PropDict, None),
            "successors" => (Kind::Successors, None),
            "oilist" => (self.clauses()?, None),
            "type" => {
                self.expect("(")?;
                let arg = self.argument()?;
                self.expect(")")?;
                (Kind::Type(arg, false), Some(arg))
            }
            "qualified" => {
                self.expect("(")?;
                self.skip();
                let (kind, arg) = self.directive()?;
                self.expect(")")?;
                match kind {
                    Kind::Type(arg, _) => (Kind::Type(arg, true), Some(arg)),
                    kind => (kind, arg),
                }
            }
            "functional-type" => {
                self.expect("(")?;
                let inputs = self.argument()?;
                self.expect(",")?;
                let results = self.argument()?;
                self.expect(")")?;
                (Kind::FunctionalType(inputs, results), Some(results))
            }
            "custom" => {
                self.expect("<")?;
                let name = self.word();
                self.expect(">")?;
                self.expect("(")?;
                let mut args = Vec::new();
                if !self.take(")") {
                    loop {
                        let arg = self.argument()?;
                        if let Arg::Attr(i) = arg {
                            self.written |= 1 << i;
                        }
                        args.push(arg);
                        if !self.take(",") {
                            break;
                        }
                    }
                    self.expect(")")?;
                }
                let which = self.def.custom.iter().position(|custom| custom.name == name);
                let which = which.ok_or_else(|| format!("unknown custom directive {name}"))?;
                let anchor = args.first().copied();
                (Kind::Custom(which, args), anchor)
            }
            "legacy" => {
                self.expect("<")?;
                let name = self.word();
                self.expect(">")?;
                let which = self.def.custom.iter().position(|custom| custom.name == name);
                (Kind::Legacy(which.ok_or_else(|| format!("unknown custom directive {name}"))?), None)
            }
            other => return Err(format!("unknown directive `{other}` at `{}`", self.rest)),
        })
    }
}

/// Compiles the format of a definition.
///
/// # Errors
/// What is wrong with the format, for the definition's author.
pub fn compile(def: &OpDef, format: &str) -> Result<Compiled, String> {
    let mut reader = Reader { def, rest: format, space: true, punctuation: false, written: 0 };
    let elements = reader.sequence(&mut None).map_err(|err| format!("format of {}: {err}", def.name))?;
    if !reader.rest.is_empty() {
        return Err(format!("format of {}: unexpected `{}`", def.name, reader.rest));
    }
    Ok(Compiled { elements, written: reader.written })
}

//===----------------------------------------------------------------------===//
// Parsing
//===----------------------------------------------------------------------===//

/// Parses an attribute as its field is written in formats.
pub(crate) fn parse_field<'c>(
    parser: &mut OpParser<'c>,
    field: &AttrField,
    optional: bool,
) -> ParseResult<Option<Attr<'c>>> {
    let ctx = parser.context();
    let int_array = |parser: &mut OpParser<'c>| -> ParseResult<Option<Vec<i64>>> {
        if !parser.opt_punct(Punct::LSquare) {
            if optional {
                return Ok(None);
            }
            parser.punct(Punct::LSquare)?;
        }
        let mut values = Vec::new();
        if !parser.opt_punct(Punct::RSquare) {
            loop {
                values.push(parser.integer()?);
                if !parser.opt_punct(Punct::Comma) {
                    break;
                }
            }
            parser.punct(Punct::RSquare)?;
        }
        Ok(Some(values))
    };
    Ok(match field.constraint.syntax {
        AttrSyntax::Any if optional => parser.opt_attr(None)?,
        AttrSyntax::Any => Some(parser.attr(None)?),
        AttrSyntax::Typed(ty) if optional => parser.opt_attr(Some(ty(ctx)))?,
        AttrSyntax::Typed(ty) => Some(parser.attr(Some(ty(ctx)))?),
        AttrSyntax::SymbolName if optional => parser.opt_symbol_name(),
        AttrSyntax::SymbolName => Some(parser.symbol_name()?),
        AttrSyntax::Unit => Some(Attr::unit(ctx)),
        AttrSyntax::Enum(cases) => {
            let loc = parser.loc();
            let text = parser.opt_any_keyword().or_else(|| parser.opt_string());
            let Some(text) = text else {
                if optional {
                    return Ok(None);
                }
                return Err(parser.error(loc, enum_message(field.name, cases)));
            };
            match cases.iter().find(|case| case.keyword == text) {
                Some(case) => Some(Attr::int(ctx, 32, case.value)),
                None => return Err(parser.error(loc, enum_message(field.name, cases))),
            }
        }
        AttrSyntax::I32Array => {
            let loc = parser.loc();
            match int_array(parser)? {
                Some(values) => {
                    let narrow: Result<Vec<i32>, _> = values.into_iter().map(i32::try_from).collect();
                    match narrow {
                        Ok(values) => Some(Attr::i32_array(ctx, &values)),
                        Err(_) => return Err(parser.error(loc, "integer too large for i32")),
                    }
                }
                None => None,
            }
        }
        AttrSyntax::I64Array => int_array(parser)?.map(|values| Attr::i64_array(ctx, &values)),
    })
}

fn enum_message(name: &str, cases: &[crate::def::EnumCase]) -> String {
    let all: Vec<&str> = cases.iter().map(|case| case.keyword).collect();
    format!(
        "expected string or keyword containing one of the following enum values for attribute '{name}' [{}]",
        all.join(", ")
    )
}

impl<'c> Parsed<'c> {
    fn new(def: &OpDef, start: SrcLoc<'c>) -> Self {
        Self {
            operands: def.operands.iter().map(|_| Vec::new()).collect(),
            operand_types: def.operands.iter().map(|_| None).collect(),
            result_types: def.results.iter().map(|_| None).collect(),
            all_operands: None,
            all_operand_types: None,
            all_result_types: None,
            start,
        }
    }

    fn set_types(&mut self, arg: Arg, types: Vec<Type<'c>>) {
        match arg {
            Arg::Operand(i) | Arg::OperandType(i) => self.operand_types[i] = Some(types),
            Arg::Result(i) | Arg::ResultType(i) => self.result_types[i] = Some(types),
            Arg::Operands => self.all_operand_types = Some(types),
            Arg::Results => self.all_result_types = Some(types),
            Arg::Attr(_) | Arg::Region(_) => {}
        }
    }
}

fn value_def(def: &OpDef, arg: Arg) -> Option<&ValueDef> {
    match arg {
        Arg::Operand(i) | Arg::OperandType(i) => def.operands.get(i),
        Arg::Result(i) | Arg::ResultType(i) => def.results.get(i),
        _ => None,
    }
}

fn parse_one_type<'c>(
    parser: &mut OpParser<'c>,
    constraint: Option<&TypeConstraint>,
    qualified: bool,
) -> ParseResult<Type<'c>> {
    // A stripped hosted type starts with its first parameter token; the full
    // form is accepted too.
    if let (Some(hosted), false) = (constraint.and_then(|c| c.hosted), qualified) {
        let loc = parser.loc();
        if let Some(ty) = parser.opt_ty()? {
            return Ok(ty);
        }
        let params = (hosted.parse)(parser)?;
        let at = parser.encoded_loc(loc);
        return crate::dialect::hosted_type_checked(hosted, &params, at).ok_or(crate::asm::Reported::BY_MLIR);
    }
    parser.ty()
}

fn parse_types<'c>(
    def: &OpDef,
    parser: &mut OpParser<'c>,
    arg: Arg,
    qualified: bool,
    optional: bool,
) -> ParseResult<Vec<Type<'c>>> {
    let value = value_def(def, arg);
    let constraint = value.map(|value| value.constraint);
    let arity = value.map_or(Arity::Variadic, |value| value.arity);
    if arity == Arity::One {
        return Ok(vec![parse_one_type(parser, constraint, qualified)?]);
    }
    let _ = optional;
    let Some(first) = parser.opt_ty()? else {
        return Ok(Vec::new());
    };
    let mut types = vec![first];
    while arity == Arity::Variadic && parser.opt_punct(Punct::Comma) {
        types.push(parse_one_type(parser, constraint, qualified)?);
    }
    Ok(types)
}

fn parse_elements<'c>(
    def: &OpDef,
    elements: &[Element],
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<()> {
    elements.iter().try_for_each(|element| parse_element(def, element, parser, parsed))
}

fn parse_element<'c>(
    def: &OpDef,
    element: &Element,
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<()> {
    match &element.kind {
        Kind::Punct(punct) => parser.punct(*punct),
        Kind::Keyword(keyword) => parser.keyword(keyword),
        Kind::Newline | Kind::Space => Ok(()),
        Kind::Var(arg) => parse_variable(def, *arg, parser, parsed),
        Kind::Type(arg, qualified) => {
            let types = parse_types(def, parser, *arg, *qualified, false)?;
            parsed.set_types(*arg, types);
            Ok(())
        }
        Kind::FunctionalType(inputs, results) => {
            let loc = parser.loc();
            let Some(function) = parser.ty()?.as_function() else {
                return Err(parser.error(loc, "expected function type"));
            };
            parsed.set_types(*inputs, function.inputs());
            parsed.set_types(*results, function.results());
            Ok(())
        }
        Kind::Custom(which, args) => (def.custom[*which].parse)(parser, parsed, args),
        Kind::Legacy(which) => (def.custom[*which].parse)(parser, parsed, &[]),
        Kind::AttrDict(keyword) => parser.attr_dict(*keyword),
        Kind::PropDict => parser.prop_dict(),
        Kind::Successors => parser.successor(),
        Kind::Optional { then, or_else, .. } => {
            if parse_first(def, then, parser, parsed)? {
                parse_elements(def, &then[1..], parser, parsed)
            } else {
                parse_elements(def, or_else, parser, parsed)
            }
        }
        Kind::Clauses(clauses) => parse_clauses(def, clauses, parser, parsed),
    }
}

fn parse_clauses<'c>(
    def: &OpDef,
    clauses: &[(Vec<Element>, Arg)],
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<()> {
    let mut seen = vec![false; clauses.len()];
    loop {
        let loc = parser.loc();
        let mut found = None;
        for (i, (elements, _)) in clauses.iter().enumerate() {
            if let Some(Kind::Keyword(keyword)) = elements.first().map(|element| &element.kind)
                && parser.opt_keyword(keyword)
            {
                found = Some((i, elements, keyword));
                break;
            }
        }
        let Some((i, elements, keyword)) = found else { return Ok(()) };
        if std::mem::replace(&mut seen[i], true) {
            return Err(parser.error(loc, format!("`{keyword}` clause can appear at most once")));
        }
        parse_elements(def, &elements[1..], parser, parsed)?;
    }
}

/// Whether the first element of an optional group is there; takes it.
fn parse_first<'c>(
    def: &OpDef,
    then: &[Element],
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<bool> {
    Ok(match &then.first().map(|element| &element.kind) {
        Some(Kind::Punct(punct)) => parser.opt_punct(*punct),
        Some(Kind::Keyword(keyword)) => parser.opt_keyword(keyword),
        Some(Kind::Var(arg @ Arg::Operand(i))) => {
            parse_variable(def, *arg, parser, parsed)?;
            !parsed.operands[*i].is_empty()
        }
        Some(Kind::Var(Arg::Attr(i))) => match parse_field(parser, &def.attrs[*i], true)? {
            Some(attr) => {
                parser.set_attr(def.attrs[*i].name, attr);
                true
            }
            None => false,
        },
        Some(Kind::Var(Arg::Region(_))) => parser.opt_region()?,
        Some(Kind::Type(arg, qualified)) => {
            let types = parse_types(def, parser, *arg, *qualified, true)?;
            let present = !types.is_empty();
            parsed.set_types(*arg, types);
            present
        }
        _ => false,
    })
}

fn parse_variable<'c>(
    def: &OpDef,
    arg: Arg,
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<()> {
    match arg {
        Arg::Operand(i) => {
            parsed.operands[i] = match def.operands[i].arity {
                Arity::One => vec![parser.operand()?],
                Arity::Optional => parser.opt_operand()?.into_iter().collect(),
                Arity::Variadic => parser.operand_list()?,
            };
            Ok(())
        }
        Arg::Operands => {
            parsed.all_operands = Some(parser.operand_list()?);
            Ok(())
        }
        Arg::Attr(i) => {
            let field = &def.attrs[i];
            if let Some(attr) = parse_field(parser, field, false)? {
                parser.set_attr(field.name, attr);
            }
            Ok(())
        }
        Arg::Region(_) => parser.region(None),
        _ => Ok(()),
    }
}

/// Parses everything after the operation's name.
pub(crate) fn parse<'c>(def: &OpDef, format: &Compiled, parser: &mut OpParser<'c>) -> ParseResult<()> {
    let mut parsed = Parsed::new(def, parser.loc());
    parse_elements(def, &format.elements, parser, &mut parsed)?;
    resolve(def, parser, parsed)
}

/// Resolves operands and adds result types and segment sizes.
///
/// # Errors
/// When types are missing or their number is not that of the operands.
pub fn resolve<'c>(def: &OpDef, parser: &mut OpParser<'c>, mut parsed: Parsed<'c>) -> ParseResult<()> {
    if let Some(all) = parsed.all_operands.take() {
        split_operands(def, parser, &mut parsed, all)?;
    }
    let start = parsed.start;
    if let Some(types) = parsed.all_operand_types.take() {
        let total: usize = parsed.operands.iter().map(Vec::len).sum();
        if types.len() != total {
            return Err(parser.error(
                start,
                format!(
                    "number of operands and types do not match: got {total} operands and {} types",
                    types.len()
                ),
            ));
        }
        let mut types = types.into_iter();
        for (group, operands) in parsed.operands.iter().enumerate() {
            parsed.operand_types[group] = Some(types.by_ref().take(operands.len()).collect());
        }
    }
    infer_by_rules(def, parser, &mut parsed);
    for (group, value) in def.operands.iter().enumerate() {
        let operands = &parsed.operands[group];
        let Some(types) = &parsed.operand_types[group] else {
            if operands.is_empty() {
                continue;
            }
            return Err(parser.error(start, format!("cannot infer the type of operand '{}'", value.name)));
        };
        // An absent optional operand may still have an inferred type.
        if operands.is_empty() && value.arity == Arity::Optional {
            continue;
        }
        if types.len() != operands.len() {
            return Err(parser.error(
                start,
                format!(
                    "number of operands and types do not match: got {} operands and {} types",
                    operands.len(),
                    types.len()
                ),
            ));
        }
        for (operand, ty) in operands.iter().zip(types) {
            parser.resolve(operand, *ty)?;
        }
    }
    let ctx = parser.context();
    if def.has_operand_segments() {
        let sizes: Vec<i32> = parsed.operands.iter().map(|group| group.len() as i32).collect();
        parser.set_attr("operandSegmentSizes", Attr::i32_array(ctx, &sizes));
    }
    let types = result_types(def, parser, &mut parsed)?;
    parser.add_results(&types);
    Ok(())
}

fn split_operands<'c>(
    def: &OpDef,
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
    all: Vec<Unresolved<'c>>,
) -> ParseResult<()> {
    let fixed = def.operands.iter().filter(|value| value.arity == Arity::One).count();
    let variable = def.operands.len() - fixed;
    if all.len() < fixed || (variable == 0 && all.len() > fixed) {
        return Err(parser.error(parsed.start, format!("expected {fixed} operands, but found {}", all.len())));
    }
    let mut rest = all.len() - fixed;
    let mut all = all.into_iter();
    for (group, value) in def.operands.iter().enumerate() {
        let n = match value.arity {
            Arity::One => 1,
            Arity::Optional => rest.min(1),
            Arity::Variadic => rest,
        };
        if value.arity != Arity::One {
            rest -= n;
        }
        parsed.operands[group] = all.by_ref().take(n).collect();
    }
    Ok(())
}

/// Fills in types that follow from others.
fn infer_by_rules<'c>(def: &OpDef, parser: &OpParser<'c>, parsed: &mut Parsed<'c>) {
    let ctx = parser.context();
    if let Some(types) = parsed.all_result_types.take() {
        let fixed = def.results.iter().filter(|value| value.arity == Arity::One).count();
        // The wrong number is kept whole in the last group: the verifier reports it.
        let mut rest = types.len().saturating_sub(fixed);
        let mut types = types.into_iter();
        for (group, value) in def.results.iter().enumerate() {
            let n = match value.arity {
                _ if group + 1 == def.results.len() => types.len(),
                Arity::One => 1,
                Arity::Optional => rest.min(1),
                Arity::Variadic => rest,
            };
            if value.arity != Arity::One {
                rest = rest.saturating_sub(n);
            }
            parsed.result_types[group] = Some(types.by_ref().take(n).collect());
        }
    }
    for (group, value) in def.operands.iter().enumerate() {
        if let (None, Some(build)) = (&parsed.operand_types[group], value.constraint.buildable) {
            parsed.operand_types[group] = Some(vec![build(ctx); parsed.operands[group].len()]);
        }
    }
    for (group, value) in def.results.iter().enumerate() {
        if let (None, Some(build), Arity::One) =
            (&parsed.result_types[group], value.constraint.buildable, value.arity)
        {
            parsed.result_types[group] = Some(vec![build(ctx)]);
        }
    }
    let known = |parsed: &Parsed<'c>, name: &str| -> Option<Type<'c>> {
        let types = match def.operand_index(name) {
            Some(i) => parsed.operand_types[i].as_ref(),
            None => parsed.result_types[def.result_index(name)?].as_ref(),
        };
        types?.first().copied()
    };
    // Rules may build on each other; there are few.
    for _ in 0..def.types.len() {
        for rule in def.types.iter().filter(|rule| !rule.verify_only) {
            if known(parsed, rule.to).is_some() {
                continue;
            }
            let Some(ty) = known(parsed, rule.from).and_then(rule.with) else { continue };
            match def.operand_index(rule.to) {
                Some(i) => {
                    let n = parsed.operands[i].len();
                    parsed.operand_types[i] = Some(vec![ty; n.max(1)]);
                }
                None => {
                    if let Some(i) = def.result_index(rule.to) {
                        parsed.result_types[i] = Some(vec![ty]);
                    }
                }
            }
        }
    }
    let same_type = def.has_trait(&Trait::SAME_TYPE);
    if same_type || def.has_trait(&Trait::SAME_OPERAND_TYPES) {
        let operands = parsed.operand_types.iter().flatten().flatten();
        let results = parsed.result_types.iter().flatten().flatten().filter(|_| same_type);
        if let Some(ty) = operands.chain(results).next().copied() {
            for (types, operands) in parsed.operand_types.iter_mut().zip(&parsed.operands) {
                types.get_or_insert_with(|| vec![ty; operands.len()]);
            }
            for types in parsed.result_types.iter_mut().filter(|_| same_type) {
                types.get_or_insert_with(|| vec![ty]);
            }
        }
    }
}

fn result_types<'c>(
    def: &OpDef,
    parser: &mut OpParser<'c>,
    parsed: &mut Parsed<'c>,
) -> ParseResult<Vec<Type<'c>>> {
    let complete = def
        .results
        .iter()
        .zip(&parsed.result_types)
        .all(|(value, types)| types.is_some() || (value.arity != Arity::One && def.infer.is_none()));
    if !complete {
        if let Some(infer) = def.infer {
            let operands: Vec<Value<'c>> = parser.resolved();
            let attr =
                |name: &str| parser.get_attr(name).or_else(|| default_attr(def, parser.context(), name));
            let inputs = Inputs { ctx: parser.context(), operands: &operands, attr: &attr, regions: &[] };
            return infer(&inputs).map_err(|message| parser.error(parsed.start, message));
        }
        let missing = def.results.iter().zip(&parsed.result_types).find(|(_, types)| types.is_none());
        let name = missing.map_or("", |(value, _)| value.name);
        return Err(parser.error(parsed.start, format!("cannot infer the type of result '{name}'")));
    }
    if def.has_result_segments() {
        let sizes: Vec<i32> =
            parsed.result_types.iter().map(|types| types.as_ref().map_or(0, Vec::len) as i32).collect();
        let attr = Attr::i32_array(parser.context(), &sizes);
        parser.set_attr("resultSegmentSizes", attr);
    }
    Ok(parsed.result_types.iter_mut().filter_map(Option::take).flatten().collect())
}

/// The default of an inherent attribute.
pub(crate) fn default_attr<'c>(def: &OpDef, ctx: crate::ir::Context<'c>, name: &str) -> Option<Attr<'c>> {
    let field = def.attrs.iter().find(|field| field.name == name)?;
    match field.presence {
        Presence::Default(text) => Attr::parse(ctx, text),
        _ => None,
    }
}

//===----------------------------------------------------------------------===//
// Printing
//===----------------------------------------------------------------------===//

fn group<'c>(def: &OpDef, op: Op<'c>, arg: Arg) -> Vec<Value<'c>> {
    match arg {
        Arg::Operand(i) | Arg::OperandType(i) => {
            let (start, n) = def.operand_group(op, i);
            op.operand_range(start, n).collect()
        }
        Arg::Result(i) | Arg::ResultType(i) => {
            let (start, n) = def.result_group(op, i);
            op.results().skip(start).take(n).collect()
        }
        Arg::Operands => op.operands().collect(),
        Arg::Results => op.results().collect(),
        Arg::Attr(_) | Arg::Region(_) => Vec::new(),
    }
}

/// Prints an attribute as its field is written in formats.
pub(crate) fn print_field<'c>(printer: &mut OpPrinter<'c>, field: &AttrField, attr: Attr<'c>) {
    match field.constraint.syntax {
        AttrSyntax::Any if attr.def().is_some() => printer.attr(attr),
        AttrSyntax::Any => printer.attr(attr),
        AttrSyntax::Typed(_) => printer.attr_without_type(attr),
        AttrSyntax::Unit => {}
        AttrSyntax::SymbolName => printer.symbol_name(attr.as_str().unwrap_or_default()),
        AttrSyntax::Enum(cases) => {
            let value = attr.as_int();
            match cases.iter().find(|case| Some(case.value) == value) {
                Some(case) => printer.keyword_or_string(case.keyword),
                None => printer.attr(attr),
            }
        }
        AttrSyntax::I32Array => {
            printer.int_list(attr.as_i32_array().unwrap_or_default().into_iter().map(i64::from));
        }
        AttrSyntax::I64Array => printer.int_list(attr.as_i64_array().unwrap_or_default()),
    }
}

fn is_present(def: &OpDef, op: Op<'_>, anchor: Arg) -> bool {
    match anchor {
        Arg::Attr(i) => op.slot(i).is_some_and(|attr| op.slot_default(i) != Some(attr)),
        Arg::Region(i) => i < op.num_regions() && !op.region(i).is_empty(),
        arg => !group(def, op, arg).is_empty(),
    }
}

fn print_elements<'c>(
    def: &OpDef,
    format: &Compiled,
    elements: &[Element],
    op: Op<'c>,
    printer: &mut OpPrinter<'c>,
) {
    for element in elements {
        if element.space {
            printer.text(" ");
        }
        match &element.kind {
            Kind::Punct(punct) => printer.text(punct.text()),
            Kind::Keyword(keyword) => printer.text(keyword),
            Kind::Newline => printer.newline(),
            Kind::Space => {}
            Kind::Var(Arg::Attr(i)) => {
                if let Some(attr) = op.slot(*i) {
                    print_field(printer, &def.attrs[*i], attr);
                }
            }
            Kind::Var(Arg::Region(i)) => print_regions(def, op, *i, printer),
            Kind::Var(arg) => printer.operands(group(def, op, *arg)),
            Kind::Type(arg, qualified) => {
                // As ODS does: the types of optional and variadic groups are written in full.
                let hosted = value_def(def, *arg)
                    .is_some_and(|value| value.constraint.hosted.is_some() && value.arity == Arity::One);
                let types = group(def, op, *arg).into_iter().map(Value::ty);
                printer.join(", ", types, |printer, ty| {
                    if hosted && !qualified { printer.stripped_ty(ty) } else { printer.ty(ty) }
                });
            }
            Kind::FunctionalType(inputs, results) => {
                printer.text("(");
                let inputs = group(def, op, *inputs);
                printer.join(", ", inputs, |printer, value| printer.ty(value.ty()));
                printer.text(") -> ");
                let results = group(def, op, *results);
                let bare = results.len() == 1 && results[0].ty().as_function().is_none();
                if !bare {
                    printer.text("(");
                }
                printer.join(", ", results, |printer, value| printer.ty(value.ty()));
                if !bare {
                    printer.text(")");
                }
            }
            Kind::Custom(which, args) => (def.custom[*which].print)(op, printer, args),
            Kind::Legacy(_) => {}
            Kind::AttrDict(keyword) => {
                printer.attr_dict(op, format.written | elided_slots(def, op), &[], *keyword);
            }
            Kind::PropDict => {}
            Kind::Successors => {
                for (i, block) in op.successors().enumerate() {
                    if i > 0 {
                        printer.text(", ");
                    }
                    printer.successor(block);
                }
            }
            Kind::Optional { then, or_else, anchor } => {
                let branch = if is_present(def, op, *anchor) { then } else { or_else };
                print_elements(def, format, branch, op, printer);
            }
            Kind::Clauses(clauses) => {
                for (elements, _) in clauses.iter().filter(|(_, anchor)| is_present(def, op, *anchor)) {
                    print_elements(def, format, elements, op, printer);
                }
            }
        }
    }
}

fn print_regions<'c>(def: &OpDef, op: Op<'c>, index: usize, printer: &mut OpPrinter<'c>) {
    let regions: Vec<Region<'c>> = if def.regions[index].arity == Arity::One {
        op.regions().skip(index).take(1).collect()
    } else {
        op.regions().skip(index).collect()
    };
    for (i, region) in regions.into_iter().enumerate() {
        if i > 0 {
            printer.text(", ");
        }
        printer.region(region, true, true);
    }
}

/// Slots that a dictionary never shows: segment sizes, and attributes that
/// have their default value.
pub fn elided_slots(def: &OpDef, op: Op<'_>) -> u64 {
    let mut mask = 0u64;
    for slot in [def.operand_segments_slot(), def.result_segments_slot()].into_iter().flatten() {
        mask |= 1 << slot;
    }
    for (i, field) in def.attrs.iter().enumerate() {
        let elided = match field.presence {
            Presence::Default(_) => op.slot(i) == op.slot_default(i),
            Presence::OptionalDefault(text) => {
                op.slot(i).is_some_and(|attr| Attr::parse(op.context(), text) == Some(attr))
            }
            Presence::Required | Presence::Optional => false,
        };
        if elided {
            mask |= 1 << i;
        }
    }
    mask
}

/// Prints everything after the operation's name.
pub(crate) fn print<'c>(def: &OpDef, format: &Compiled, op: Op<'c>, printer: &mut OpPrinter<'c>) {
    print_elements(def, format, &format.elements, op, printer);
}
