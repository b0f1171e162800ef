//! A small dialect hosted in Rust, driven through MLIR.

use mlir_host::asm::Punct;
use mlir_host::attrs::{BoolAttr, DenseI32Array, I32Attr, StrAttr, UnitAttr};
use mlir_host::def::*;
use mlir_host::ir::{Attr, Context, Op, Type};
use mlir_host::rewrite::{Pattern, apply_greedily};
use mlir_host::traits::{Trait, Upstream};
use mlir_host::{Alias, DialectDef, driver::Registry, enum_attr, op};
use mlir_sys::*;

static I32: TypeConstraint =
    TypeConstraint::only("32-bit signless integer", |ty| ty.is_int(32), |ctx| Type::int(ctx, 32));
static BOX: TypeConstraint = TypeConstraint::hosted("a box", |ty| ty.is(&BOX_TYPE), &BOX_TYPE);

/// `!ex.box<i32>`
static BOX_TYPE: TypeDef = TypeDef {
    summary: "a box of something",
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let ty = parser.ty()?;
        parser.punct(Punct::Greater)?;
        Ok(vec![Attr::type_of(ty)])
    },
    print: |params, printer| {
        printer.text("<");
        printer.ty(params[0].as_type().expect("checked"));
        printer.text(">");
    },
    verify: Some(|_, params| {
        let inner = params[0].as_type().ok_or("expected a type")?;
        if inner.is_index() { Err("boxes of index are not allowed".to_owned()) } else { Ok(()) }
    }),
    ..TypeDef::new("ex", "box")
};

/// `#ex.tile<[4, 8]>`
static TILE_ATTR: AttrDef = AttrDef {
    parse: |parser| {
        parser.punct(Punct::Less)?;
        let sizes = parser.int_list()?;
        parser.punct(Punct::Greater)?;
        Ok(vec![Attr::i64_array(parser.context(), &sizes)])
    },
    print: |params, printer| {
        printer.text("<");
        printer.int_list(params[0].as_i64_array().unwrap_or_default());
        printer.text(">");
    },
    ..AttrDef::new("ex", "tile")
};

enum_attr! {
    /// A rounding mode.
    pub enum Rounding {
        /// Towards zero.
        TowardsZero = 0 => "rtz",
        /// To the nearest.
        Nearest = 1 => "rtne",
    }
}

op! {
    /// Adds.
    pub struct Add = "ex.add" {
        operands: [lhs: I32, rhs: I32],
        results: [sum: I32],
        traits: [Trait::SAME_TYPE],
        format: "$lhs `,` $rhs attr-dict",
        with: {
            effects: Effects::None,
            speculation: Speculation::Always,
            fold: Some(|op, constants| {
                let [a, b] = [constants[0]?.as_int()?, constants[1]?.as_int()?];
                Some(vec![Folded::Attr(Attr::int(op.context(), 32, i64::from((a + b) as i32)))])
            }),
            canonicalize: &[Pattern {
                name: "add-zero",
                root: "ex.add",
                benefit: 1,
                apply: |op, rewriter| {
                    let add = Add(op);
                    let zero = add.rhs().def_op().and_then(|def| def.attr("value")).and_then(Attr::as_int);
                    if zero == Some(0) {
                        rewriter.replace(op, &[add.lhs()]);
                    }
                    zero == Some(0)
                },
            }],
        },
    }
}

op! {
    /// Everything a format can say.
    pub struct Everything = "ex.everything" {
        operands: [src: I32, mask[opt]: ANY_TYPE, rest[var]: ANY_TYPE],
        results: [out: BOX],
        attrs: [
            rounding: Rounding, axis[default "3 : i32"]: I32Attr, name[opt]: StrAttr, order[opt]: DenseI32Array,
            flag[opt]: UnitAttr, volatile("isVolatile")[default "false"]: BoolAttr,
        ],
        format: "$rounding `,` $src (`,` `mask` $mask^)? (`rest` `(` $rest^ `)`)? (`axis` `=` $axis^)? (`order` $order^)? (`flag` $flag^)? attr-dict (`:` type($mask)^)? (`of` type($rest)^)? `->` type($out)",
    }
}

op! {
    /// Clauses in any order, an attribute that may be absent, results by number.
    pub struct Clauses = "ex.clauses" {
        operands: [offsets[var]: I32, dest[opt]: BOX],
        results: [first: I32, second[opt]: I32],
        attrs: [times[optdefault "0 : i32"]: I32Attr],
        format: "oilist(`offsets` `=` `[` $offsets `]` | `dest` `=` $dest `:` qualified(type($dest))) attr-dict `:` functional-type(operands, results)",
    }
}

op! {
    /// Says something about a value.
    pub struct Note = "ex.note" {
        operands: [src: ANY_TYPE],
        attrs: [text: StrAttr],
        format: "$src `,` $text attr-dict `:` type($src)",
    }
}

op! {
    /// Gives its operands.
    pub struct Forward = "ex.forward" {
        operands: [values[var]: BOX],
        results: [outputs[var]: BOX],
        format: "$values attr-dict `:` type($values)",
        with: { infer: Some(|inputs| Ok(inputs.operands.iter().map(|value| value.ty()).collect())) },
    }
}

op! {
    /// Panics when it is verified with `boom`.
    pub struct Fragile = "ex.fragile" {
        attrs: [boom[opt]: UnitAttr],
        format: "attr-dict",
        with: { verify: Some(|op| if Fragile(op).boom().is_some() { panic!("boom") } else { Err("is fragile".into()) }) },
    }
}

op! {
    /// Only has the generic form.
    pub struct Loop = "ex.loop" {
        operands: [inputs[var]: ANY_TYPE],
        results: [first: ANY_TYPE, second: ANY_TYPE],
        attrs: [axis: I32Attr],
        regions: [body: Blocks::Exactly(1)],
        traits: [Trait::SINGLE_BLOCK],
    }
}

op! {
    /// Ends a loop.
    pub struct Yield = "ex.yield" {
        operands: [values[var]: ANY_TYPE],
        traits: [Trait::TERMINATOR, Trait::RETURN_LIKE, Trait::HasParent(&["ex.loop"])],
        format: "($values^ `:` type($values))? attr-dict",
        with: { effects: Effects::None, speculation: Speculation::Always },
    }
}

op! {
    /// Holds another operation, whose operand it spells.
    pub struct Outer = "ex.outer" {
        regions: [holder: Blocks::Exactly(1)],
        traits: [Trait::SINGLE_BLOCK, Trait::Upstream(Upstream::NoTerminator)],
        with: {
            format: Format::Custom {
                parse: |parser| {
                    let operand = parser.operand()?;
                    let inner = parser.nested(Inner::DEF, |parser| {
                        let ty = Type::int(parser.context(), 32);
                        parser.resolve(&operand, ty)?;
                        parser.region(None)
                    })?;
                    parser.add_region_with(inner);
                    parser.attr_dict(false)
                },
                print: |op, printer| {
                    let inner = Outer(op).holder().first_block().and_then(|block| Inner::cast(block.first()?));
                    if let Some(inner) = inner {
                        printer.text(" ");
                        printer.operand(inner.value());
                        printer.text(" ");
                        printer.region(inner.body(), true, true);
                    }
                    printer.attr_dict(op, 0, &[], false);
                },
            },
        },
    }
}

op! {
    /// Is held by another operation.
    pub struct Inner = "ex.inner" {
        operands: [value: I32],
        regions: [body: Blocks::Any],
    }
}

op! {
    /// A function.
    pub struct Func = "ex.func" {
        attrs: [
            sym_name: mlir_host::attrs::SymbolNameAttr,
            function_type: mlir_host::attrs::FunctionTypeAttr,
            sym_visibility[opt]: StrAttr,
            arg_attrs[opt]: mlir_host::attrs::DictArrayAttr,
            res_attrs[opt]: mlir_host::attrs::DictArrayAttr,
        ],
        regions: [body: Blocks::Any],
        traits: [Trait::Function, Trait::ISOLATED],
        with: { format: Format::Function },
    }
}

static EX: DialectDef = DialectDef {
    ops: &[
        Add::DEF,
        Clauses::DEF,
        Forward::DEF,
        Everything::DEF,
        Note::DEF,
        Fragile::DEF,
        Loop::DEF,
        Yield::DEF,
        Func::DEF,
        Outer::DEF,
        Inner::DEF,
    ],
    attrs: &[&TILE_ATTR],
    types: &[&BOX_TYPE],
    dependencies: &["arith"],
    attr_alias: Some(|attr| if attr.is(&TILE_ATTR) { Alias::Final("tile".into()) } else { Alias::None }),
    materialize_constant: Some(|value, ty, loc| {
        mlir_host::rewrite::create("arith.constant", loc, &[], &[ty], &[("value", value)], &[])
    }),
    ..DialectDef::new("ex")
};

/// A parsed module and the diagnostics so far.
struct Session {
    context: MlirContext,
    module: MlirModule,
    // Boxed: the handler holds its address.
    #[allow(clippy::box_collection)]
    diagnostics: Box<Vec<String>>,
}

unsafe extern "C" fn collect(diagnostic: MlirDiagnostic, data: *mut std::ffi::c_void) -> MlirLogicalResult {
    unsafe extern "C" fn append(text: MlirStringRef, out: *mut std::ffi::c_void) {
        let bytes = unsafe { std::slice::from_raw_parts(text.data.cast::<u8>(), text.length) };
        unsafe { (*out.cast::<String>()).push_str(std::str::from_utf8(bytes).unwrap()) }
    }
    let mut text = String::new();
    unsafe { mlirDiagnosticPrint(diagnostic, Some(append), (&raw mut text).cast()) };
    unsafe { (*data.cast::<Vec<String>>()).push(text) };
    MlirLogicalResult { value: 1 }
}

fn parse(text: &str) -> Session {
    unsafe {
        let mut registry = Registry::new();
        registry.add_upstream();
        registry.add(&[&EX]);
        let context = mlirContextCreateWithRegistry(registry.raw(), false);
        let mut diagnostics = Box::new(Vec::new());
        mlirContextAttachDiagnosticHandler(context, Some(collect), (&raw mut *diagnostics).cast(), None);
        // MLIR's lexer looks one byte past the end.
        let terminated = std::ffi::CString::new(text).unwrap();
        let text = MlirStringRef { data: terminated.as_ptr(), length: text.len() };
        let module = mlirModuleCreateParse(context, text);
        Session { context, module, diagnostics }
    }
}

impl Session {
    fn op(&self) -> Op<'_> {
        assert!(!self.module.ptr.is_null(), "parse error: {:?}", self.diagnostics);
        unsafe { Op::from_raw(mlirModuleGetOperation(self.module)) }.unwrap()
    }
    fn context(&self) -> Context<'_> {
        unsafe { Context::from_raw(self.context) }
    }
}
impl Drop for Session {
    fn drop(&mut self) {
        unsafe {
            if !self.module.ptr.is_null() {
                mlirModuleDestroy(self.module);
            }
            mlirContextDestroy(self.context);
        }
    }
}

#[track_caller]
fn round_trip(body: &str) {
    let text = format!("module {{\n  {body}\n}}\n");
    let session = parse(&text);
    let printed = session.op().to_string();
    assert_eq!(printed.trim(), text.trim());
}

#[track_caller]
fn error(body: &str, wanted: &str) {
    let session = parse(body);
    assert!(session.module.ptr.is_null(), "no error in {}", session.op());
    assert!(session.diagnostics.iter().any(|text| text.contains(wanted)), "got {:?}", session.diagnostics);
}

#[test]
fn formats_round_trip() {
    round_trip(
        "%c1_i32 = arith.constant 1 : i32\n  %0 = ex.add %c1_i32, %c1_i32\n  \
         %1 = ex.everything rtne, %0 -> <i32>\n  \
         %2 = ex.everything rtz, %0, mask %0 rest(%0, %1) axis = 4 order [1, 0] flag \
         {isVolatile = true, name = \"x\", other = 1 : i64} : i32 of i32, !ex.box<i32> -> <f32>",
    );
}

#[test]
fn clauses_and_optional_results() {
    round_trip(
        "%c1_i32 = arith.constant 1 : i32\n  %first, %second = ex.clauses : () -> (i32, i32)\n  \
         %first_0 = ex.clauses offsets = [%c1_i32, %c1_i32] {times = 2 : i32} : (i32, i32) -> i32",
    );
    round_trip(
        "%c1_i32 = arith.constant 1 : i32\n  %0 = ex.everything rtne, %c1_i32 -> <i32>\n  \
         %1:2 = ex.forward %0, %0 : !ex.box<i32>, !ex.box<i32>",
    );
    let text = |times: &str| {
        format!("%0 = arith.constant 1 : i32\n%1 = ex.clauses offsets = [%0] {times} : (i32) -> i32")
    };
    let session = parse(&text("{times = 0 : i32}"));
    assert!(session.op().to_string().contains("ex.clauses offsets = [%c1_i32] : (i32) -> i32"));
    error(&text("offsets = [%0]"), "`offsets` clause can appear at most once");
}

#[test]
fn a_type_after_a_string_is_not_its_type() {
    round_trip("%c1_i32 = arith.constant 1 : i32\n  ex.note %c1_i32, \"it's one\" : i32");
}

#[test]
fn generic_form_shows_all_properties() {
    let session =
        parse("%0 = arith.constant 1 : i32\n%1 = ex.everything rtne, %0, mask %0 : i32 -> !ex.box<i32>");
    let generic = session.op().region(0).first_block().unwrap().ops().nth(1).unwrap();
    let everything = Everything::cast(generic).unwrap();
    assert_eq!(everything.rounding(), Some(Rounding::Nearest));
    assert_eq!(everything.axis(), Some(3));
    assert_eq!(everything.volatile(), Some(false));
    assert_eq!(everything.mask(), Some(everything.src()));
    assert_eq!(everything.rest().count(), 0);
    let again = parse(
        "%0 = arith.constant 1 : i32\n%1 = \"ex.everything\"(%0, %0) <{rounding = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32, i32) -> !ex.box<i32>",
    );
    assert_eq!(again.op().to_string(), session.op().to_string());
}

#[test]
fn regions_functions_and_result_names() {
    round_trip(
        "ex.func @f(%arg0: i32 {llvm.noundef}) -> i32 {\n    \
         %first, %second = \"ex.loop\"(%arg0) <{axis = 1 : i32}> ({\n    ^bb0(%arg1: i32):\n      \
         ex.yield %arg1 : i32\n    }) : (i32) -> (i32, i32)\n    llvm.unreachable\n  }",
    );
}

#[test]
fn aliases() {
    let session = parse("module attributes {a.b = #ex.tile<[4, 8]>} {}");
    assert!(session.diagnostics.is_empty(), "{:?}", session.diagnostics);
    assert!(session.op().to_string().starts_with("#tile = #ex.tile<[4, 8]>\n"), "{}", session.op());
}

#[test]
fn an_operation_parses_another_one() {
    let text = "%c1_i32 = arith.constant 1 : i32\n  ex.outer %c1_i32 {\n    llvm.unreachable\n  } {flag}";
    round_trip(text);
    let session = parse(text);
    let outer = session.op().region(0).first_block().unwrap().ops().nth(1).unwrap();
    assert_eq!(outer.num_operands(), 0);
    assert!(Inner::cast(outer.region(0).first_block().unwrap().first().unwrap()).is_some());
    // The text ends inside of the nested operation's region.
    error("%0 = arith.constant 1 : i32\nex.outer %0 {", "expected operation name in quotes");
}

#[test]
fn global_ids_tell_contexts_apart() {
    let text =
        "module attributes {a.b = #ex.tile<[4, 8]>, a.c = #ex.tile<[4, 8]>, a.d = #ex.tile<[4, 9]>} {}";
    let (one, two) = (parse(text), parse(text));
    let id = |session: &Session, name: &str| session.op().attr(name).unwrap().global_id().unwrap();
    assert_eq!(id(&one, "a.b"), id(&one, "a.c"));
    assert_ne!(id(&one, "a.b"), id(&one, "a.d"));
    assert_ne!(id(&one, "a.b").0, id(&two, "a.b").0);
    assert_eq!(Attr::unit(one.context()).global_id(), None);
}

#[test]
fn errors_are_located_and_worded() {
    error("%0 = arith.constant 1 : i64\n%1 = ex.add %0, %0", "expects different type than prior uses");
    error(
        "%0 = arith.constant 1 : i64\n%1 = \"ex.add\"(%0, %0) : (i64, i64) -> i32",
        "'ex.add' op operand #0 must be 32-bit signless integer, but got 'i64'",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = \"ex.add\"(%0) : (i32) -> i32",
        "'ex.add' op requires 2 operands, but found 1",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = ex.everything up, %0 -> <i32>",
        "expected string or keyword containing one of the following enum values for attribute 'rounding' [rtz, rtne]",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = \"ex.everything\"(%0) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> !ex.box<i32>",
        "'ex.everything' op requires attribute 'rounding'",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = \"ex.everything\"(%0) <{rounding = 7 : i32, operandSegmentSizes = array<i32: 1, 0, 0>}> : (i32) -> !ex.box<i32>",
        "attribute 'rounding' failed to satisfy constraint: allowed 32-bit signless integer cases: 0, 1",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = \"ex.everything\"(%0) <{rounding = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 0>}> : (i32) -> !ex.box<i32>",
        "operand count (1) does not match the sizes of its 3 groups",
    );
    error(
        "%0 = arith.constant 1 : i32\n%1 = ex.everything rtz, %0 -> !ex.box<index>",
        "boxes of index are not allowed",
    );
    error("ex.fragile", "'ex.fragile' op is fragile");
    error("ex.func @f()", "symbol declaration cannot have public visibility");
    error("ex.func private @f(i32 {x = 1 : i32})", "'ex.func' op arguments may only have dialect attributes");
    error(
        "\"ex.func\"() <{sym_name = \"f\", function_type = (i32) -> ()}> ({\n^bb0:\n llvm.unreachable\n}) : () -> ()",
        "'ex.func' op entry block must have 1 arguments to match function signature",
    );
    error("ex.yield", "'ex.yield' op expects parent op 'ex.loop'");
    error("ex.loop", "'ex.loop' op has no custom assembly form");
    error("module attributes {a.b = #ex.tiles<[4, 8]>} {}", "unknown attribute `tiles` in dialect `ex`");
}

#[test]
fn a_panic_is_a_diagnostic() {
    error("ex.fragile {boom}", "internal error (this is a bug): boom");
}

#[test]
fn folds_patterns_and_dead_code() {
    let session = parse(
        "func.func @f(%x: i32) -> (i32, i32) {\n%0 = arith.constant 2 : i32\n%1 = ex.add %0, %0\n%z = arith.constant 0 : i32\n%2 = ex.add %x, %z\n%dead = ex.add %x, %x\nreturn %1, %2 : i32, i32\n}",
    );
    assert!(apply_greedily(session.op(), &[&Add::DEF.canonicalize[0]]));
    let text = session.op().to_string();
    assert!(!text.contains("ex.add"), "{text}");
    assert!(text.contains("return %c4_i32, %arg0"), "{text}");
    assert!(session.op().verify(), "{:?} {}", session.diagnostics, session.op());
}

#[test]
fn builders_infer_types() {
    let session = parse("%0 = arith.constant 2 : i32");
    let constant = session.op().region(0).first_block().unwrap().first().unwrap();
    assert!(session.context().load("ex"));
    assert!(!session.context().load("nothing"));
    let mut rewriter = mlir_host::rewrite::IrRewriter::new(session.context());
    rewriter.set_after(constant);
    let value = constant.result(0);
    let add = rewriter.op(Add::DEF, constant.loc()).one(value).one(value).finish().unwrap();
    assert!(add.result(0).ty().is_int(32));
    assert!(session.op().verify(), "{:?} {}", session.diagnostics, session.op());
    assert!(rewriter.op(Everything::DEF, constant.loc()).one(value).opt(None).many(&[]).finish().is_none());
    assert!(session.diagnostics.iter().any(|text| text.contains("result 'out' needs a type")));
}
