//! Parsing and printing.

use crate::ffi::{self, RawOpParser, RawOpPrinter, RawOperand, RawParser, RawPrinter, RawState};
use crate::ir::{Attr, Block, Context, Loc, Op, Region, Type, Value};
use mlir_sys::*;
use std::ffi::c_char;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// An error that was already reported: the only ways to get one are to emit a diagnostic
/// ([`Op::error`](crate::ir::Op::error), [`Loc::error`](crate::ir::Loc::error), [`Parser::error`]) and to be refused
/// by MLIR, which emits one. So no failure is silent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reported(());

impl Reported {
    /// After MLIR, or the shim, emitted a diagnostic.
    pub(crate) const BY_MLIR: Reported = Reported(());
}

/// The result of parsing: an error was reported where it occurred.
pub type ParseResult<T> = Result<T, Reported>;

/// Punctuation. The numbers are shared with the shim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
#[non_exhaustive]
pub enum Punct {
    Arrow = 0,
    LBrace,
    RBrace,
    Colon,
    Comma,
    Equal,
    Less,
    Greater,
    Question,
    Plus,
    Star,
    LParen,
    RParen,
    LSquare,
    RSquare,
    Ellipsis,
    VerticalBar,
    Minus,
    Slash,
}

impl Punct {
    const ALL: [(Punct, &'static str); 19] = [
        (Punct::Arrow, "->"),
        (Punct::LBrace, "{"),
        (Punct::RBrace, "}"),
        (Punct::Colon, ":"),
        (Punct::Comma, ","),
        (Punct::Equal, "="),
        (Punct::Less, "<"),
        (Punct::Greater, ">"),
        (Punct::Question, "?"),
        (Punct::Plus, "+"),
        (Punct::Star, "*"),
        (Punct::LParen, "("),
        (Punct::RParen, ")"),
        (Punct::LSquare, "["),
        (Punct::RSquare, "]"),
        (Punct::Ellipsis, "..."),
        (Punct::VerticalBar, "|"),
        (Punct::Minus, "-"),
        (Punct::Slash, "/"),
    ];
    /// The punctuation spelled `text`.
    pub fn from_text(text: &str) -> Option<Punct> {
        Self::ALL.iter().find(|entry| entry.1 == text).map(|entry| entry.0)
    }
    /// Its spelling.
    pub fn text(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// A position in the source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SrcLoc<'c>(*const c_char, PhantomData<&'c ()>);

/// The text a C++ string collects.
pub(crate) struct CxxString(*mut ffi::RawString);

impl CxxString {
    pub(crate) fn new() -> Self {
        // SAFETY: freed on drop.
        Self(unsafe { ffi::mhStringNew() })
    }
    pub(crate) fn raw(&self) -> *mut ffi::RawString {
        self.0
    }
    pub(crate) fn get(&self) -> String {
        // SAFETY: the string is alive.
        unsafe { ffi::str_of(ffi::mhStringData(self.0)) }.to_owned()
    }
}
impl Drop for CxxString {
    fn drop(&mut self) {
        // SAFETY: made by `new`.
        unsafe { ffi::mhStringFree(self.0) }
    }
}

fn ok(code: i32) -> ParseResult<()> {
    if code != 0 { Ok(()) } else { Err(Reported::BY_MLIR) }
}

/// Parses an attribute or a type.
pub struct Parser<'c> {
    raw: *mut RawParser,
    context: PhantomData<&'c ()>,
}

// SAFETY of this impl's blocks: `raw` is valid while MLIR's callback runs,
// which is as long as this value lives.
impl<'c> Parser<'c> {
    /// # Safety
    /// `raw` is valid while this value lives.
    pub(crate) unsafe fn new(raw: *mut RawParser) -> Self {
        Self { raw, context: PhantomData }
    }
    /// The context.
    pub fn context(&self) -> Context<'c> {
        unsafe { Context::from_raw(ffi::mhParserContext(self.raw)) }
    }
    /// Position of the next token.
    pub fn loc(&self) -> SrcLoc<'c> {
        SrcLoc(unsafe { ffi::mhParserLoc(self.raw) }, PhantomData)
    }
    /// Position of the name that is parsed: of the operation, attribute or type.
    pub fn name_loc(&self) -> SrcLoc<'c> {
        SrcLoc(unsafe { ffi::mhParserNameLoc(self.raw) }, PhantomData)
    }
    /// The location of a position.
    pub fn encoded_loc(&self, loc: SrcLoc<'c>) -> Loc<'c> {
        unsafe { Loc::from_raw(ffi::mhParserEncodedLoc(self.raw, loc.0)) }.expect("a location")
    }
    /// Reports an error.
    pub fn error(&mut self, loc: SrcLoc<'c>, message: impl AsRef<str>) -> Reported {
        unsafe { ffi::mhParserError(self.raw, loc.0, ffi::str_ref(message.as_ref())) };
        Reported::BY_MLIR
    }
    /// Expects punctuation.
    pub fn punct(&mut self, punct: Punct) -> ParseResult<()> {
        ok(unsafe { ffi::mhParsePunct(self.raw, punct as i32, 0) })
    }
    /// Takes punctuation where it is next.
    pub fn opt_punct(&mut self, punct: Punct) -> bool {
        unsafe { ffi::mhParsePunct(self.raw, punct as i32, 1) != 0 }
    }
    /// Expects a keyword.
    pub fn keyword(&mut self, keyword: &str) -> ParseResult<()> {
        ok(unsafe { ffi::mhParseKeyword(self.raw, ffi::str_ref(keyword)) })
    }
    /// Takes a keyword where it is next.
    pub fn opt_keyword(&mut self, keyword: &str) -> bool {
        unsafe { ffi::mhParseOptionalKeyword(self.raw, ffi::str_ref(keyword)) != 0 }
    }
    /// Expects any keyword.
    pub fn any_keyword(&mut self) -> ParseResult<String> {
        let mut text = ffi::str_ref("");
        ok(unsafe { ffi::mhParseAnyKeyword(self.raw, 0, &mut text) })?;
        Ok(unsafe { ffi::str_of(text) }.to_owned())
    }
    /// Takes any keyword where one is next.
    pub fn opt_any_keyword(&mut self) -> Option<String> {
        let mut text = ffi::str_ref("");
        let found = unsafe { ffi::mhParseAnyKeyword(self.raw, 1, &mut text) } != 0;
        found.then(|| unsafe { ffi::str_of(text) }.to_owned())
    }
    /// Expects a keyword or a quoted string.
    pub fn keyword_or_string(&mut self) -> ParseResult<String> {
        let text = CxxString::new();
        ok(unsafe { ffi::mhParseKeywordOrString(self.raw, 0, text.0) })?;
        Ok(text.get())
    }
    /// Expects a quoted string.
    pub fn string(&mut self) -> ParseResult<String> {
        let text = CxxString::new();
        ok(unsafe { ffi::mhParseString(self.raw, 0, text.0) })?;
        Ok(text.get())
    }
    /// Takes a quoted string where one is next.
    pub fn opt_string(&mut self) -> Option<String> {
        let text = CxxString::new();
        let found = unsafe { ffi::mhParseString(self.raw, 1, text.0) } != 0;
        found.then(|| text.get())
    }
    /// Expects an integer.
    pub fn integer(&mut self) -> ParseResult<i64> {
        let mut value = 0;
        ok(unsafe { ffi::mhParseInteger(self.raw, 0, &mut value) })?;
        Ok(value)
    }
    /// Takes an integer where one is next.
    pub fn opt_integer(&mut self) -> ParseResult<Option<i64>> {
        let mut value = 0;
        match unsafe { ffi::mhParseInteger(self.raw, 1, &mut value) } {
            0 => Err(Reported::BY_MLIR),
            1 => Ok(Some(value)),
            _ => Ok(None),
        }
    }
    /// Expects `true` or `false`.
    pub fn boolean(&mut self) -> ParseResult<bool> {
        let loc = self.loc();
        match self.opt_any_keyword().as_deref() {
            Some("true") => Ok(true),
            Some("false") => Ok(false),
            _ => Err(self.error(loc, "expected 'true' or 'false'")),
        }
    }
    /// Expects a type.
    pub fn ty(&mut self) -> ParseResult<Type<'c>> {
        let mut raw = MlirType { ptr: std::ptr::null() };
        ok(unsafe { ffi::mhParseType(self.raw, &mut raw) })?;
        unsafe { Type::from_raw(raw) }.ok_or(Reported::BY_MLIR)
    }
    /// Takes a type where one is next.
    pub fn opt_ty(&mut self) -> ParseResult<Option<Type<'c>>> {
        let mut raw = MlirType { ptr: std::ptr::null() };
        match unsafe { ffi::mhParseOptionalType(self.raw, &mut raw) } {
            0 => Err(Reported::BY_MLIR),
            1 => Ok(unsafe { Type::from_raw(raw) }),
            _ => Ok(None),
        }
    }
    /// Expects an attribute, of `ty` where its type is not spelled.
    pub fn attr(&mut self, ty: Option<Type<'c>>) -> ParseResult<Attr<'c>> {
        let mut raw = MlirAttribute { ptr: std::ptr::null() };
        let ty = ty.map_or(MlirType { ptr: std::ptr::null() }, Type::raw);
        ok(unsafe { ffi::mhParseAttr(self.raw, ty, &mut raw) })?;
        unsafe { Attr::from_raw(raw) }.ok_or(Reported::BY_MLIR)
    }
    /// Takes an attribute where one is next.
    pub fn opt_attr(&mut self, ty: Option<Type<'c>>) -> ParseResult<Option<Attr<'c>>> {
        let mut raw = MlirAttribute { ptr: std::ptr::null() };
        let ty = ty.map_or(MlirType { ptr: std::ptr::null() }, Type::raw);
        match unsafe { ffi::mhParseOptionalAttr(self.raw, ty, &mut raw) } {
            0 => Err(Reported::BY_MLIR),
            1 => Ok(unsafe { Attr::from_raw(raw) }),
            _ => Ok(None),
        }
    }
    /// Expects `@name`, as a string attribute.
    pub fn symbol_name(&mut self) -> ParseResult<Attr<'c>> {
        let mut raw = MlirAttribute { ptr: std::ptr::null() };
        ok(unsafe { ffi::mhParseSymbol(self.raw, &mut raw) })?;
        unsafe { Attr::from_raw(raw) }.ok_or(Reported::BY_MLIR)
    }
    /// Takes `@name` where it is next, as a string attribute.
    pub fn opt_symbol_name(&mut self) -> Option<Attr<'c>> {
        let mut raw = MlirAttribute { ptr: std::ptr::null() };
        let found = unsafe { ffi::mhParseOptionalSymbol(self.raw, &mut raw) } != 0;
        if found { unsafe { Attr::from_raw(raw) } } else { None }
    }
    /// Expects static dimensions: `4x8x` with `trailing_x`, else `4x8`.
    pub fn dims(&mut self, trailing_x: bool) -> ParseResult<Vec<i64>> {
        struct Dims(*mut ffi::RawDims);
        impl Drop for Dims {
            fn drop(&mut self) {
                unsafe { ffi::mhDimsFree(self.0) }
            }
        }
        let dims = Dims(unsafe { ffi::mhDimsNew() });
        ok(unsafe { ffi::mhParseDims(self.raw, trailing_x.into(), dims.0) })?;
        let mut n = 0;
        let data = unsafe { ffi::mhDimsData(dims.0, &mut n) };
        Ok(if n == 0 { Vec::new() } else { unsafe { std::slice::from_raw_parts(data, n as usize) }.to_vec() })
    }
    /// Expects `open item, item, … close`.
    pub fn list<T>(
        &mut self,
        open: Punct,
        close: Punct,
        mut item: impl FnMut(&mut Self) -> ParseResult<T>,
    ) -> ParseResult<Vec<T>> {
        self.punct(open)?;
        let mut items = Vec::new();
        if self.opt_punct(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if !self.opt_punct(Punct::Comma) {
                break;
            }
        }
        self.punct(close)?;
        Ok(items)
    }
    /// Expects `[1, 2, …]`.
    pub fn int_list(&mut self) -> ParseResult<Vec<i64>> {
        self.list(Punct::LSquare, Punct::RSquare, |parser| parser.integer())
    }
    /// Expects one of the keywords (or quoted strings); `what` names the list in the error.
    pub fn one_of<T: Copy>(&mut self, what: &str, cases: &[(&str, T)]) -> ParseResult<T> {
        let loc = self.loc();
        let text = self.opt_any_keyword().or_else(|| self.opt_string()).unwrap_or_default();
        match cases.iter().find(|case| case.0 == text) {
            Some(case) => Ok(case.1),
            None => {
                let all: Vec<&str> = cases.iter().map(|case| case.0).collect();
                Err(self.error(loc, format!("expected {what}, one of: {}", all.join(", "))))
            }
        }
    }
}

/// Parses an operation into the state MLIR builds it from.
pub struct OpParser<'c> {
    base: Parser<'c>,
    raw: *mut RawOpParser,
    state: *mut RawState,
}

impl<'c> Deref for OpParser<'c> {
    type Target = Parser<'c>;
    fn deref(&self) -> &Parser<'c> {
        &self.base
    }
}
impl DerefMut for OpParser<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.base
    }
}

/// An operand that was parsed but has no type yet.
#[derive(Clone, Copy, Debug)]
pub struct Unresolved<'c>(RawOperand, PhantomData<&'c ()>);

/// Region arguments with their types.
pub struct RegionArgs<'c>(*mut ffi::RawArgs, PhantomData<&'c ()>);

impl Drop for RegionArgs<'_> {
    fn drop(&mut self) {
        // SAFETY: made by `mhArgsNew`.
        unsafe { ffi::mhArgsFree(self.0) }
    }
}

impl<'c> RegionArgs<'c> {
    /// Number of arguments.
    pub fn len(&self) -> usize {
        // SAFETY: the list is alive.
        unsafe { ffi::mhArgsCount(self.0) as usize }
    }
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Type of argument `i`; `None` when it was not spelled.
    pub fn ty(&self, i: usize) -> Option<Type<'c>> {
        assert!(i < self.len());
        // SAFETY: in range.
        unsafe { Type::from_raw(ffi::mhArgsType(self.0, i as isize)) }
    }
    /// Sets the type of argument `i`.
    pub fn set_ty(&mut self, i: usize, ty: Type<'c>) {
        assert!(i < self.len());
        // SAFETY: in range.
        unsafe { ffi::mhArgsSetType(self.0, i as isize, ty.raw()) }
    }
}

// SAFETY of this impl's blocks: `raw` and `state` are valid while MLIR's
// callback runs, which is as long as this value lives.
impl<'c> OpParser<'c> {
    /// # Safety
    /// Both pointers are valid while this value lives.
    pub(crate) unsafe fn new(raw: *mut RawOpParser, state: *mut RawState) -> Self {
        // SAFETY: by the caller.
        let base = unsafe { Parser::new(ffi::mhOpParserBase(raw)) };
        Self { base, raw, state }
    }
    /// Location of the operation.
    pub fn op_loc(&self) -> Loc<'c> {
        unsafe { Loc::from_raw(ffi::mhStateLoc(self.state)) }.expect("a location")
    }
    /// Expects `%value`.
    pub fn operand(&mut self) -> ParseResult<Unresolved<'c>> {
        let mut operand = RawOperand::EMPTY;
        ok(unsafe { ffi::mhParseOperand(self.raw, &mut operand) })?;
        Ok(Unresolved(operand, PhantomData))
    }
    /// Takes `%value` where it is next.
    pub fn opt_operand(&mut self) -> ParseResult<Option<Unresolved<'c>>> {
        let mut operand = RawOperand::EMPTY;
        match unsafe { ffi::mhParseOptionalOperand(self.raw, &mut operand) } {
            0 => Err(Reported::BY_MLIR),
            1 => Ok(Some(Unresolved(operand, PhantomData))),
            _ => Ok(None),
        }
    }
    /// Takes `%a, %b, …` where an operand is next.
    pub fn operand_list(&mut self) -> ParseResult<Vec<Unresolved<'c>>> {
        let mut operands = Vec::new();
        if let Some(first) = self.opt_operand()? {
            operands.push(first);
            while self.opt_punct(Punct::Comma) {
                operands.push(self.operand()?);
            }
        }
        Ok(operands)
    }
    /// Gives the next operand of the operation its type.
    pub fn resolve(&mut self, operand: &Unresolved<'c>, ty: Type<'c>) -> ParseResult<()> {
        ok(unsafe { ffi::mhResolveOperand(self.raw, &operand.0, ty.raw(), self.state) })
    }
    /// Position of an operand.
    pub fn operand_loc(&self, operand: &Unresolved<'c>) -> SrcLoc<'c> {
        SrcLoc(operand.0.loc, PhantomData)
    }
    /// The operands resolved so far.
    pub fn resolved(&self) -> Vec<Value<'c>> {
        let mut buffer = vec![MlirValue { ptr: std::ptr::null() }; 8];
        let n = unsafe { ffi::mhStateOperands(self.state, buffer.as_mut_ptr(), buffer.len() as isize) };
        if n as usize > buffer.len() {
            buffer.resize(n as usize, MlirValue { ptr: std::ptr::null() });
            unsafe { ffi::mhStateOperands(self.state, buffer.as_mut_ptr(), n) };
        }
        buffer[..n as usize].iter().filter_map(|raw| unsafe { Value::from_raw(*raw) }).collect()
    }
    /// Adds result types.
    pub fn add_results(&mut self, types: &[Type<'c>]) {
        unsafe { ffi::mhStateAddTypes(self.state, types.as_ptr().cast(), types.len() as isize) }
    }
    /// Sets an attribute, inherent or discardable.
    pub fn set_attr(&mut self, name: &str, attr: Attr<'c>) {
        unsafe { ffi::mhStateAddAttr(self.state, ffi::str_ref(name), attr.raw()) }
    }
    /// An attribute set so far.
    pub fn get_attr(&self, name: &str) -> Option<Attr<'c>> {
        unsafe { Attr::from_raw(ffi::mhStateGetAttr(self.state, ffi::str_ref(name))) }
    }
    /// Takes `{…}` where it is next, with `attributes` before it if asked for.
    pub fn attr_dict(&mut self, with_keyword: bool) -> ParseResult<()> {
        ok(unsafe { ffi::mhParseAttrDict(self.raw, with_keyword.into(), self.state) })
    }
    /// Takes `<{…}>` where it is next.
    pub fn prop_dict(&mut self) -> ParseResult<()> {
        ok(unsafe { ffi::mhParsePropDict(self.raw, self.state) })
    }
    /// Expects `(%a: type, …)`.
    pub fn region_args(&mut self, types: bool) -> ParseResult<RegionArgs<'c>> {
        let args = RegionArgs(unsafe { ffi::mhArgsNew() }, PhantomData);
        ok(unsafe { ffi::mhParseArgs(self.raw, args.0, types.into()) })?;
        Ok(args)
    }
    /// Expects a region, with arguments that were parsed before it.
    pub fn region(&mut self, args: Option<&RegionArgs<'c>>) -> ParseResult<()> {
        let args = args.map_or(std::ptr::null_mut(), |args| args.0);
        ok(unsafe { ffi::mhParseRegion(self.raw, self.state, args) })
    }
    /// Takes a region where one is next, else adds an empty one.
    pub fn opt_region(&mut self) -> ParseResult<bool> {
        match unsafe { ffi::mhParseOptionalRegion(self.raw, self.state) } {
            0 => Err(Reported::BY_MLIR),
            1 => Ok(true),
            _ => Ok(false),
        }
    }
    /// Adds an empty region.
    pub fn add_region(&mut self) {
        unsafe { ffi::mhStateAddRegion(self.state) }
    }
    /// Adds a region whose only block holds a detached operation.
    pub fn add_region_with(&mut self, op: Op<'c>) {
        assert!(op.block().is_none(), "{} is in a block already", op.name());
        unsafe { ffi::mhStateAddRegionWith(self.state, op.raw()) }
    }
    /// Makes another operation, detached, out of what `parse` takes from the
    /// text: operands, types, attributes and regions go to that operation.
    pub fn nested(
        &mut self,
        def: &'static crate::def::OpDef,
        parse: impl FnOnce(&mut OpParser<'c>) -> ParseResult<()>,
    ) -> ParseResult<Op<'c>> {
        struct State(*mut RawState);
        impl Drop for State {
            fn drop(&mut self) {
                unsafe { ffi::mhStateFree(self.0) }
            }
        }
        let state = State(unsafe { ffi::mhStateNew(self.op_loc().raw(), ffi::str_ref(def.name)) });
        let mut inner = unsafe { OpParser::new(self.raw, state.0) };
        parse(&mut inner)?;
        // SAFETY: as for the impl; the operation takes over the state's regions.
        unsafe { Op::from_raw(ffi::mhStateCreate(state.0)) }.ok_or(Reported::BY_MLIR)
    }
    /// Whether region `i` is empty so far.
    pub fn region_is_empty(&self, i: usize) -> bool {
        unsafe { ffi::mhStateRegionEmpty(self.state, i as isize) != 0 }
    }
    /// Expects `^block`.
    pub fn successor(&mut self) -> ParseResult<()> {
        ok(unsafe { ffi::mhParseSuccessor(self.raw, self.state) })
    }
    /// Expects the rest of a function: name, signature, attributes, body.
    pub fn function(&mut self) -> ParseResult<()> {
        ok(unsafe { ffi::mhParseFunction(self.raw, self.state) })
    }
}

/// Prints an attribute or a type.
pub struct Printer<'c> {
    raw: *mut RawPrinter,
    context: PhantomData<&'c ()>,
}

impl fmt::Write for Printer<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.text(text);
        Ok(())
    }
}

// SAFETY of this impl's blocks: `raw` is valid while MLIR's callback runs,
// which is as long as this value lives.
impl<'c> Printer<'c> {
    /// # Safety
    /// `raw` is valid while this value lives.
    pub(crate) unsafe fn new(raw: *mut RawPrinter) -> Self {
        Self { raw, context: PhantomData }
    }
    /// Prints text.
    pub fn text(&mut self, text: &str) {
        unsafe { ffi::mhPrint(self.raw, ffi::str_ref(text)) }
    }
    /// Prints a type.
    pub fn ty(&mut self, ty: Type<'c>) {
        unsafe { ffi::mhPrintType(self.raw, ty.raw()) }
    }
    /// Prints an attribute.
    pub fn attr(&mut self, attr: Attr<'c>) {
        unsafe { ffi::mhPrintAttr(self.raw, attr.raw()) }
    }
    /// Prints an attribute without its type.
    pub fn attr_without_type(&mut self, attr: Attr<'c>) {
        unsafe { ffi::mhPrintAttrWithoutType(self.raw, attr.raw()) }
    }
    /// Prints a hosted attribute without `#dialect.name`, or its alias.
    pub fn stripped_attr(&mut self, attr: Attr<'c>) {
        if unsafe { ffi::mhPrintAttrAlias(self.raw, attr.raw()) } != 0 {
            return;
        }
        match attr.def() {
            Some(def) => (def.print)(attr.params(), self),
            None => self.attr(attr),
        }
    }
    /// Prints a hosted type without `!dialect.name`, or its alias.
    pub fn stripped_ty(&mut self, ty: Type<'c>) {
        if unsafe { ffi::mhPrintTypeAlias(self.raw, ty.raw()) } != 0 {
            return;
        }
        match ty.def() {
            Some(def) => (def.print)(ty.params(), self),
            None => self.ty(ty),
        }
    }
    /// Prints a quoted string.
    pub fn string(&mut self, text: &str) {
        unsafe { ffi::mhPrintString(self.raw, ffi::str_ref(text)) }
    }
    /// Prints a keyword, quoted where it is none.
    pub fn keyword_or_string(&mut self, text: &str) {
        unsafe { ffi::mhPrintKeywordOrString(self.raw, ffi::str_ref(text)) }
    }
    /// Prints `@name`.
    pub fn symbol_name(&mut self, name: &str) {
        unsafe { ffi::mhPrintSymbol(self.raw, ffi::str_ref(name)) }
    }
    /// Prints items with a separator.
    pub fn join<T>(
        &mut self,
        separator: &str,
        items: impl IntoIterator<Item = T>,
        mut item: impl FnMut(&mut Self, T),
    ) {
        for (i, value) in items.into_iter().enumerate() {
            if i > 0 {
                self.text(separator);
            }
            item(self, value);
        }
    }
    /// Prints `[1, 2, …]`.
    pub fn int_list(&mut self, values: impl IntoIterator<Item = i64>) {
        self.text("[");
        self.join(", ", values, |printer, value| printer.text(&value.to_string()));
        self.text("]");
    }
}

/// Prints an operation.
pub struct OpPrinter<'c> {
    base: Printer<'c>,
    raw: *mut RawOpPrinter,
}

impl<'c> Deref for OpPrinter<'c> {
    type Target = Printer<'c>;
    fn deref(&self) -> &Printer<'c> {
        &self.base
    }
}
impl DerefMut for OpPrinter<'_> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.base
    }
}

// SAFETY of this impl's blocks: as for `Printer`.
impl<'c> OpPrinter<'c> {
    /// # Safety
    /// `raw` is valid while this value lives.
    pub(crate) unsafe fn new(raw: *mut RawOpPrinter) -> Self {
        // SAFETY: by the caller.
        let base = unsafe { Printer::new(ffi::mhOpPrinterBase(raw)) };
        Self { base, raw }
    }
    /// Prints `%value`.
    pub fn operand(&mut self, value: Value<'c>) {
        unsafe { ffi::mhPrintOperand(self.raw, value.raw()) }
    }
    /// Prints `%a, %b, …`.
    pub fn operands(&mut self, values: impl IntoIterator<Item = Value<'c>>) {
        for (i, value) in values.into_iter().enumerate() {
            if i > 0 {
                self.text(", ");
            }
            self.operand(value);
        }
    }
    /// Prints a region.
    pub fn region(&mut self, region: Region<'c>, entry_args: bool, terminators: bool) {
        unsafe { ffi::mhPrintRegion(self.raw, region.raw(), entry_args.into(), terminators.into(), 0) }
    }
    /// Prints `%arg: type`.
    pub fn region_arg(&mut self, arg: Value<'c>) {
        assert!(arg.arg_block().is_some(), "only block arguments are region arguments");
        unsafe { ffi::mhPrintRegionArg(self.raw, arg.raw()) }
    }
    /// Prints `^block`.
    pub fn successor(&mut self, block: Block<'c>) {
        unsafe { ffi::mhPrintSuccessor(self.raw, block.raw()) }
    }
    /// Starts a new line.
    pub fn newline(&mut self) {
        unsafe { ffi::mhPrintNewline(self.raw) }
    }
    /// Indents the following lines more, or less.
    pub fn indent(&mut self, more: bool) {
        unsafe { ffi::mhPrintIndent(self.raw, more.into()) }
    }
    /// Prints `{…}` with the operation's attributes, but for the inherent ones
    /// in the bit mask and the discardable ones named.
    pub fn attr_dict(&mut self, op: Op<'c>, elided_slots: u64, elided: &[&str], with_keyword: bool) {
        let names: Vec<MlirStringRef> = elided.iter().map(|name| ffi::str_ref(name)).collect();
        unsafe {
            ffi::mhPrintAttrDict(
                self.raw,
                op.raw(),
                elided_slots,
                names.as_ptr(),
                names.len() as isize,
                with_keyword.into(),
            );
        }
    }
    /// Prints the rest of a function.
    pub fn function(&mut self, op: Op<'c>) {
        assert!(op.def().is_some_and(|def| def.has_trait(&crate::traits::Trait::Function)));
        unsafe { ffi::mhPrintFunction(self.raw, op.raw()) }
    }
}
