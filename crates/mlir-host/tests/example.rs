//! A small dialect hosted in Rust, driven through MLIR.

mod session;

use mlir_host::asm::Punct;
use mlir_host::attrs::{BoolAttr, DenseI32Array, I32Attr, StrAttr, UnitAttr};
use mlir_host::def::*;
use mlir_host::flow::{Next, for_each_edge, incoming, is_loop, is_region_branch, next, twins};
use mlir_host::ir::{Attr, Type, Walk};
use mlir_host::pass::{OptionKind, OptionValue, PassDef, PassOption};
use mlir_host::rewrite::{Pattern, apply_greedily};
use mlir_host::traits::{Trait, Upstream};
use mlir_host::{Alias, DialectDef, enum_attr, op};
use session::Session;

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
                    let add = Add::of(op);
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
    /// Gives two groups of results.
    pub struct Groups = "ex.groups" {
        results: [some[var]: I32, more[var]: BOX],
        format: "attr-dict `:` type($some) `and` type($more)",
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
        with: { verify: Some(|op| if Fragile::of(op).boom().is_some() { panic!("boom") } else { Err("is fragile".into()) }) },
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
    /// Runs its regions, each with all operands.
    pub struct Parts = "ex.parts" {
        operands: [values[var]: ANY_TYPE],
        regions: [parts[var]: Blocks::AtLeast(1)],
        with: {
            passes_operands: true,
            successor_regions: Some(|op, from, push| match from {
                -1 => (0..op.num_regions()).for_each(|region| push(region as isize)),
                _ => push(-1),
            }),
        },
    }
}

op! {
    /// Ends a part.
    pub struct End = "ex.end" {
        traits: [Trait::TERMINATOR, Trait::RETURN_LIKE],
        format: "attr-dict",
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
                    let inner = Outer::of(op).holder().first_block().and_then(|block| Inner::cast(block.first()?));
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
    /// Has what MLIR infers types by.
    pub struct Inferred = "ex.inferred" {
        operands: [lhs: ANY_TYPE, rhs: I32],
        results: [first: ANY_TYPE, second: I32],
        attrs: [times[default "1 : i32"]: I32Attr],
        traits: [Trait::InferTypes],
        with: {
            infer: Some(|inputs| match (inputs.attr)("times").and_then(Attr::as_int) {
                Some(13) => Err("thirteen is not a number of times".to_owned()),
                Some(14) => panic!("boom"),
                Some(n) => Ok(vec![Type::int(inputs.ctx, 8 * n as u32), inputs.operands[1].ty()]),
                None => Err("how often?".to_owned()),
            }),
        },
    }
}

op! {
    /// Leaves no choice about its type.
    pub struct Ruled = "ex.ruled" {
        operands: [lhs: ANY_TYPE, rhs: ANY_TYPE],
        results: [result: ANY_TYPE],
        traits: [Trait::SAME_TYPE, Trait::InferTypes],
    }
}

op! {
    /// Writes into tensors.
    pub struct Fill = "ex.fill" {
        operands: [value: ANY_TYPE, into[var]: ANY_TYPE],
        results: [filled[var]: ANY_TYPE],
        format: "$value `into` $into attr-dict `:` type($value) `,` type($into) `->` type($filled)",
        with: { destinations: Some("into") },
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
        Groups::DEF,
        Everything::DEF,
        Note::DEF,
        Fragile::DEF,
        Loop::DEF,
        Yield::DEF,
        Parts::DEF,
        End::DEF,
        Func::DEF,
        Outer::DEF,
        Inner::DEF,
        Inferred::DEF,
        Ruled::DEF,
        Fill::DEF,
    ],
    attrs: &[&TILE_ATTR],
    types: &[&BOX_TYPE],
    dependencies: &["arith"],
    attr_alias: Some(|attr| if attr.is(&TILE_ATTR) { Alias::Final("tile".into()) } else { Alias::None }),
    materialize_constant: Some(|value, ty, loc| {
        mlir_host::rewrite::create("arith.constant", loc, &[], &[ty], &[("value", value)], &[]).ok()
    }),
    ..DialectDef::new("ex")
};

fn parse(text: &str) -> Session {
    Session::parse(&[&EX], text)
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
    assert_eq!(everything.rounding(), Rounding::Nearest);
    assert_eq!(everything.axis(), 3);
    assert!(!everything.volatile());
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
    let add = Add::build(constant.loc(), value, value).insert(&mut rewriter).unwrap();
    assert!(add.sum().ty().is_int(32));
    assert!(session.op().verify(), "{:?} {}", session.diagnostics, session.op());
    let built = Everything::build(constant.loc(), value, &[], Rounding::Nearest);
    assert!(built.insert(&mut rewriter).is_err());
    assert!(session.diagnostics.iter().any(|text| text.contains("result 'out' needs a type")));
}

/// What is optional may be set in any order, twice, or to nothing.
#[test]
fn builders_put_groups_and_attributes_in_their_places() {
    let session =
        parse("%0 = arith.constant 1 : i32\n%1 = ex.everything rtne, %0 rest(%0) of i32 -> !ex.box<i32>");
    let ops: Vec<_> = session.op().region(0).first_block().unwrap().ops().collect();
    let (one, thing) = (ops[0].result(0), ops[1].result(0));
    let mut rewriter = mlir_host::rewrite::IrRewriter::new(session.context());
    rewriter.set_after(ops[1]);
    let unit = mlir_host::ir::Attr::unit(session.context());
    let made = Everything::build(ops[0].loc(), one, &[one, thing], Rounding::Nearest)
        .order(vec![1, 0])
        .axis(7)
        .name("x")
        .axis(8)
        .flag(true)
        .flag(false)
        .volatile(true)
        .mask(one)
        .mask(thing)
        .discardable("here", unit)
        .results(&[thing.ty()])
        .insert(&mut rewriter)
        .unwrap();
    assert!(session.op().verify(), "{:?} {}", session.diagnostics, session.op());
    assert_eq!((made.src(), made.mask()), (one, Some(thing)));
    assert_eq!(made.rest().collect::<Vec<_>>(), [one, thing]);
    assert_eq!((made.axis(), made.volatile(), made.rounding()), (8, true, Rounding::Nearest));
    assert_eq!((made.name(), made.order(), made.flag()), (Some("x"), Some(vec![1, 0]), None));
    assert_eq!(made.op().discardable_attr("here"), Some(unit));
    let copy = Everything::build(ops[0].loc(), one, &[], Rounding::Nearest).discardable_of(made.op());
    let copy = copy.mask(None).results(&[thing.ty()]).insert(&mut rewriter).unwrap();
    assert_eq!((copy.mask(), copy.rest().count(), copy.axis(), copy.volatile()), (None, 0, 3, false));
    assert_eq!(copy.op().discardable_attr("here"), Some(unit));
}

/// In IR that was not verified a required attribute may be missing.
#[test]
fn required_attributes_that_are_missing() {
    let session = parse("%0 = arith.constant 1 : i32\n%1 = ex.everything rtne, %0 -> !ex.box<i32>");
    let ops: Vec<_> = session.op().region(0).first_block().unwrap().ops().collect();
    let everything = Everything::of(ops[1]);
    assert_eq!(everything.unverified().rounding(), Some(Rounding::Nearest));
    everything.op().set_slot(0, None);
    everything.op().set_slot(1, None);
    assert_eq!(everything.unverified().rounding(), None);
    assert_eq!((everything.unverified().axis(), everything.axis()), (Some(3), 3));
    let panic = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| everything.rounding())).unwrap_err();
    let said = panic.downcast_ref::<String>().unwrap();
    assert_eq!(said, "'ex.everything' lacks the attribute 'rounding', and was not verified");
    assert!(!session.op().verify());
    assert!(session.says("requires attribute 'rounding'"), "{:?}", session.diagnostics);
}

/// Where control flow takes the operands of each operation below, in the order of the text.
fn edges(session: &Session) -> Vec<String> {
    let mut all = Vec::new();
    session.op().walk(&mut |op| {
        for_each_edge(op, &mut |i, target| {
            let place = match target.def_op() {
                Some(op) => format!("{} result {}", op.name(), target.index()),
                None => format!("argument {}", target.index()),
            };
            all.push(format!("{} operand {i} -> {place}", op.name()));
            let from = incoming(target).expect("what has an edge is known");
            assert!(from.contains(&(op, i)), "{} is not among what {place} comes from", op.name());
        });
        Walk::Advance
    });
    all
}

#[test]
fn edges_of_loops_do_not_depend_on_trip_counts() {
    for count in [0, 1, 7] {
        let session = parse(&format!(
            "func.func @f(%x: i32) -> i32 {{\n%l = arith.constant 0 : index\n%u = arith.constant {count} : index\n\
             %s = arith.constant 1 : index\n%r = scf.for %i = %l to %u step %s iter_args(%a = %x) -> i32 {{\n\
             scf.yield %a : i32\n}}\nreturn %r : i32\n}}"
        ));
        assert_eq!(
            edges(&session),
            [
                "scf.for operand 3 -> argument 1",
                "scf.for operand 3 -> scf.for result 0",
                "scf.yield operand 0 -> argument 1",
                "scf.yield operand 0 -> scf.for result 0",
            ]
        );
        let function = session.op().region(0).first_block().unwrap().first().unwrap();
        let body = function.region(0).first_block().unwrap();
        let looped = body.ops().find(|op| is_loop(*op)).unwrap();
        let (index, carried) =
            (looped.region(0).first_block().unwrap().arg(0), looped.region(0).first_block().unwrap().arg(1));
        assert_eq!(incoming(index), None);
        assert_eq!(incoming(function.region(0).first_block().unwrap().arg(0)), None);
        assert_eq!(twins(looped.result(0)).as_slice(), [looped.result(0), carried]);
        assert_eq!(twins(carried).as_slice(), [carried, looped.result(0)]);
        let entry = looped.region(0);
        assert_eq!(next(looped).unwrap().as_slice(), [Next::Region(entry), Next::After(looped)]);
    }
}

#[test]
fn edges_of_what_passes_its_operands_to_its_regions() {
    let session = parse(
        "func.func @f(%x: i32, %y: i1) {\n\"ex.parts\"(%x, %y) ({\n^bb0(%a: i32, %b: i1):\nex.end\n}, {\n\
         ^bb0(%c: i32, %d: i1):\nex.end\n}) : (i32, i1) -> ()\nreturn\n}",
    );
    assert_eq!(
        edges(&session),
        [
            "ex.parts operand 0 -> argument 0",
            "ex.parts operand 1 -> argument 1",
            "ex.parts operand 0 -> argument 0",
            "ex.parts operand 1 -> argument 1",
        ]
    );
    let function = session.op().region(0).first_block().unwrap().first().unwrap();
    let parts = function.region(0).first_block().unwrap().first().unwrap();
    let [first, second] = [0, 1].map(|region| parts.region(region).first_block().unwrap().arg(1));
    assert_eq!(incoming(second).unwrap().as_slice(), [(parts, 1)]);
    assert_eq!(twins(second).as_slice(), [second, first]);
    assert!(!mlir_host::upstream::can_pass_more(second), "it is not one of scf's");
}

#[test]
fn operations_of_mlir_have_types() {
    use mlir_host::upstream::{ConstantOp, ForOp, IfOp, Integer, is_structured};
    let session = parse(
        "func.func @f(%x: i32, %y: i32) -> i32 {\n%l = arith.constant 0 : index\n%u = arith.constant 7 : index\n\
         %s = arith.constant 2 : index\n%r = scf.for %i = %l to %u step %s iter_args(%a = %x) -> i32 {\n\
         %b = arith.subi %a, %y : i32\nscf.yield %b : i32\n}\n\
         %v = arith.constant dense<3> : tensor<4xi32>\nreturn %r : i32\n}",
    );
    let function = session.op().region(0).first_block().unwrap().first().unwrap();
    let ops: Vec<_> = function.region(0).first_block().unwrap().ops().collect();
    let around = ops.iter().find_map(|op| ForOp::cast(*op)).unwrap();
    assert!(is_structured(around.op()) && IfOp::cast(around.op()).is_none());
    let ints = [around.lower(), around.upper(), around.step()];
    assert_eq!(ints.map(|value| ConstantOp::defining(value)?.int()), [Some(0), Some(7), Some(2)]);
    assert_eq!(ops.iter().filter_map(|op| ConstantOp::cast(*op)?.int()).collect::<Vec<_>>(), [0, 7, 2, 3]);
    let body = around.body().unwrap();
    let (index, carried) = (body.arg(0), body.arg(1));
    assert_eq!((around.induction_variable(), ForOp::counting(index)), (Some(index), Some(around)));
    assert_eq!((ForOp::counting(carried), ForOp::carrying(index)), (None, None));
    let [x, y] = [0, 1].map(|i| function.region(0).first_block().unwrap().arg(i));
    let next = body.first().unwrap().result(0);
    assert_eq!(ForOp::carrying(carried), Some((around, x, next)));
    assert_eq!(next.def_op().and_then(Integer::of), Some(Integer::Sub(carried, y)));
    assert!(
        [next, carried, around.op().result(0)].map(mlir_host::upstream::can_pass_more) == [false, true, true]
    );
}

#[test]
fn edges_of_while_if_and_branches() {
    let session = parse(
        "func.func @f(%c: i1, %x: i32, %y: i32) -> i32 {\n%w = scf.while (%a = %x) : (i32) -> i32 {\n\
         scf.condition(%c) %a : i32\n} do {\n^bb0(%b: i32):\nscf.yield %b : i32\n}\n\
         %s = scf.if %c -> i32 {\nscf.yield %x : i32\n} else {\nscf.yield %y : i32\n}\n\
         cf.cond_br %c, ^bb1(%w : i32), ^bb2(%s, %x : i32, i32)\n^bb1(%p: i32):\ncf.br ^bb2(%p, %y : i32, i32)\n\
         ^bb2(%q: i32, %r: i32):\nreturn %q : i32\n}",
    );
    assert_eq!(
        edges(&session),
        [
            "scf.while operand 0 -> argument 0",
            "scf.condition operand 1 -> argument 0",
            "scf.condition operand 1 -> scf.while result 0",
            "scf.yield operand 0 -> argument 0",
            "scf.yield operand 0 -> scf.if result 0",
            "scf.yield operand 0 -> scf.if result 0",
            "cf.cond_br operand 1 -> argument 0",
            "cf.cond_br operand 2 -> argument 0",
            "cf.cond_br operand 3 -> argument 1",
            "cf.br operand 0 -> argument 0",
            "cf.br operand 1 -> argument 1",
        ]
    );
    let function = session.op().region(0).first_block().unwrap().first().unwrap();
    let ops: Vec<_> = function.region(0).first_block().unwrap().ops().collect();
    let [looped, branch, _] = ops[..] else { panic!("{}", session.op()) };
    assert!(is_region_branch(looped) && is_loop(looped) && is_region_branch(branch) && !is_loop(branch));
    let [before, after] = [0, 1].map(|region| looped.region(region).first_block().unwrap());
    assert_eq!(next(looped).unwrap().as_slice(), [Next::Region(looped.region(0))]);
    let condition = before.terminator().unwrap();
    assert_eq!(next(condition).unwrap().len(), 2);
    assert_eq!(next(after.terminator().unwrap()).unwrap().as_slice(), [Next::Region(looped.region(0))]);
    assert_eq!(twins(looped.result(0)).as_slice(), [looped.result(0), after.arg(0)]);
    assert_eq!(twins(branch.result(0)).as_slice(), [branch.result(0)]);
    let last = function.region(0).blocks().last().unwrap();
    assert_eq!(next(last.first().unwrap()), None);
    assert_eq!(next(branch).unwrap().len(), 2);
}

#[test]
fn result_groups_have_sizes() {
    round_trip("%some:2, %more = ex.groups : i32, i32 and !ex.box<i32>");
    let session =
        parse("%0 = arith.constant 2 : i32\n%some:2, %more = ex.groups : i32, i32 and !ex.box<i32>");
    let ops: Vec<_> = session.op().region(0).first_block().unwrap().ops().collect();
    let groups = Groups::of(ops[1]);
    assert_eq!((groups.some().len(), groups.more().len()), (2, 1));
    let (number, thing) = (groups.some()[0].ty(), groups.more()[0].ty());
    let mut rewriter = mlir_host::rewrite::IrRewriter::new(session.context());
    rewriter.set_after(ops[1]);
    let loc = ops[1].loc();
    let made = Groups::build(loc).result_groups(&[&[number], &[thing, thing]]).insert(&mut rewriter).unwrap();
    assert_eq!((made.some().len(), made.more().len()), (1, 2));
    assert!(session.op().verify(), "{:?}", session.diagnostics);
    assert!(Groups::build(loc).results(&[number, thing, thing]).insert(&mut rewriter).is_err());
    assert!(session.says("needs to know which groups its 3 results are of"), "{:?}", session.diagnostics);
    error(
        "%0:2 = \"ex.groups\"() <{resultSegmentSizes = array<i32: 2, 1>}> : () -> (i32, i32)",
        "result count (2) does not match the sizes of its 2 groups",
    );
}

#[test]
fn erased_operations_stay_in_memory_and_used_ones_in_the_ir() {
    static ERASE: PassDef = PassDef::new("test-erase", "", |op, _| {
        let ops: Vec<_> = op.region(0).first_block().unwrap().ops().collect();
        ops[1].erase();
        assert_eq!(ops[1].name(), "ex.add");
        assert!(ops[1].block().is_none() && ops[0].result(0).is_unused());
        let mut rewriter = mlir_host::rewrite::IrRewriter::new(op.context());
        rewriter.set_before(ops[0]);
        ops[0].erase();
        // The place to insert at is gone.
        assert!(Groups::build(op.loc()).result_groups(&[&[], &[]]).insert(&mut rewriter).is_err());
        Ok(())
    });
    ERASE.register();
    let session = parse("%0 = arith.constant 2 : i32\n%1 = ex.add %0, %0");
    assert!(!session.run("builtin.module(test-erase)", true));
    assert!(session.says("the insertion point was erased"), "{:?}", session.diagnostics);

    static USED: PassDef = PassDef::new("test-erase-used", "", |op, _| {
        op.region(0).first_block().unwrap().first().unwrap().erase();
        Ok(())
    });
    USED.register();
    let session = parse("%0 = arith.constant 2 : i32\n%1 = ex.add %0, %0");
    assert!(!session.run("builtin.module(test-erase-used)", true));
    assert!(session.says("arith.constant is erased, and used"), "{:?}", session.diagnostics);
}

#[test]
fn slots_and_handles_of_other_operations_are_refused() {
    let session = parse("%0 = arith.constant 2 : i32\n%1 = ex.add %0, %0");
    let ops: Vec<_> = session.op().region(0).first_block().unwrap().ops().collect();
    // Neither a hosted operation's slot that it has not, nor any of another operation's.
    assert_eq!((ops[1].slot(0), ops[0].slot(0), ops[0].slot_default(7)), (None, None, None));
    let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| Add::of(ops[0])));
    assert!(wrong.is_err());
    let wrong = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| ops[1].set_slot(0, None)));
    assert!(wrong.is_err());
}

/// Arms are tried in order, conditions may refuse, and what was seen in one context is known in the next.
#[test]
fn operations_are_told_apart_by_type() {
    use mlir_host::upstream::{AddIOp, ConstantOp, SubIOp};
    use mlir_host::{is_one_of, match_op};
    let describe = |op: mlir_host::ir::Op<'_>| {
        match_op!(op, {
            ConstantOp(made) if made.int() == Some(2) => "two".to_owned(),
            ConstantOp => "a number".to_owned(),
            Add(add) if add.lhs() == add.rhs() => "twice".to_owned(),
            AddIOp | Add => "a sum".to_owned(),
            _ => op.name().to_owned(),
        })
    };
    for _ in 0..2 {
        let session = parse(
            "%0 = arith.constant 2 : i32\n%1 = arith.constant 3 : i32\n%2 = ex.add %0, %0\n%3 = ex.add %0, %1
             %4 = arith.addi %0, %1 : i32\n%5 = arith.subi %0, %1 : i32",
        );
        let ops: Vec<_> = session.op().region(0).first_block().unwrap().ops().collect();
        let said: Vec<String> = ops.iter().map(|op| describe(*op)).collect();
        assert_eq!(said[..6], ["two", "a number", "twice", "a sum", "a sum", "arith.subi"]);
        assert!(is_one_of!(ops[5], AddIOp | SubIOp) && !is_one_of!(ops[3], AddIOp | SubIOp));
        assert!(is_one_of!(ops[3], AddIOp | Add) && Add::cast(ops[4]).is_none());
    }
}

/// What a builder of the C API's infers for an operation with these operands and this attribute.
fn inferred_by_mlir(session: &Session, name: &str, times: Option<i64>) -> Result<Vec<String>, ()> {
    use mlir_sys::*;
    let block = session.op().region(0).first_block().expect("a body");
    let one = block.first().expect("a constant").result(0);
    let operands = [one.raw(), one.raw()];
    let text = |text: &str| MlirStringRef { data: text.as_ptr().cast(), length: text.len() };
    // SAFETY: handles are of the session's context, arrays outlive the calls.
    unsafe {
        let mut state = mlirOperationStateGet(text(name), one.def_op().expect("a constant").loc().raw());
        mlirOperationStateAddOperands(&mut state, 2, operands.as_ptr());
        if let Some(times) = times {
            let times = Attr::int(session.context(), 32, times).raw();
            let times =
                mlirNamedAttributeGet(mlirIdentifierGet(session.context().raw(), text("times")), times);
            mlirOperationStateAddAttributes(&mut state, 1, &times);
        }
        mlirOperationStateEnableResultTypeInference(&mut state);
        let made = mlir_host::ir::Op::from_raw(mlirOperationCreate(&mut state)).ok_or(())?;
        let types = made.results().map(|result| result.ty().to_string()).collect();
        mlirOperationDestroy(made.raw());
        Ok(types)
    }
}

#[test]
fn builders_of_mlir_infer_result_types() {
    let session = parse("%0 = arith.constant 1 : i32");
    assert!(session.context().load("ex"));
    let inferred =
        |name: &str, times| inferred_by_mlir(&session, name, times).map_err(|()| session.diagnostics.clone());
    assert_eq!(inferred("ex.inferred", Some(2)).unwrap(), ["i16", "i32"]);
    assert_eq!(inferred("ex.inferred", Some(3)).unwrap(), ["i24", "i32"]);
    // The default, where nothing is given.
    assert_eq!(inferred("ex.inferred", None).unwrap(), ["i8", "i32"]);
    // Another definition has another function of MLIR's.
    assert_eq!(inferred("ex.ruled", None).unwrap(), ["i32"]);
    inferred("ex.inferred", Some(13)).unwrap_err();
    assert!(session.says("thirteen is not a number of times"), "{:?}", session.diagnostics);
    assert!(session.op().verify());
    inferred("ex.inferred", Some(14)).unwrap_err();
    assert!(session.says("boom"), "{:?}", session.diagnostics);
    // Nothing of a context in which something panicked is right any more.
    assert!(session.context().is_poisoned());
}

#[test]
fn destinations_are_tied_to_results() {
    let text = |result: &str| {
        format!(
            "func.func @f(%t: tensor<4xf32>, %x: f32) {{\n  \
             %0 = ex.fill %x into %t : f32, tensor<4xf32> -> {result}\n  return\n}}"
        )
    };
    let session = parse(&text("tensor<4xf32>"));
    assert!(session.op().verify(), "{:?}", session.diagnostics);
    error(
        &text("tensor<5xf32>"),
        "expected type of operand #1 ('tensor<4xf32>') to match type of corresponding result",
    );
}

static LISTS: PassDef = PassDef {
    options: &[
        PassOption { name: "sizes", description: "", kind: OptionKind::Ints(&[4, 8]) },
        PassOption { name: "names", description: "", kind: OptionKind::Strs(&["a"]) },
        PassOption { name: "more", description: "", kind: OptionKind::Ints(&[]) },
    ],
    ..PassDef::new("ex-lists", "Says what its options are", |op, options| {
        let (sizes, names, more) = (options.ints("sizes"), options.strings("names"), options.ints("more"));
        op.remark(format!("{sizes:?} {names:?} {more:?}"));
        Ok(())
    })
};

#[test]
fn options_are_lists() {
    LISTS.register();
    let session = parse("");
    assert!(session.run("builtin.module(ex-lists)", true));
    assert!(session.says("[4, 8] [\"a\"] []"), "{:?}", session.diagnostics);
    assert!(session.run("builtin.module(ex-lists{sizes=1,-2,3 names=b,c more=7})", true));
    assert!(session.says("[1, -2, 3] [\"b\", \"c\"] [7]"), "{:?}", session.diagnostics);
    let given = mlir_host::pass::Options::given(&LISTS, &[("more", OptionValue::Ints(vec![5]))]);
    assert_eq!((given.ints("sizes"), given.ints("more")), (vec![4, 8], vec![5]));
    assert_eq!(given.strings("names"), ["a"]);
}
