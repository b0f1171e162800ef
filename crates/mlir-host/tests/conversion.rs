//! Dialect conversion: what is converted, what is left, and what fails where.

mod session;

use mlir_host::asm::Reported;
use mlir_host::attrs::{DictArrayAttr, FunctionTypeAttr, StrAttr, SymbolNameAttr};
use mlir_host::conversion::*;
use mlir_host::def::*;
use mlir_host::ir::{Attr, Block, Op, Type, Walk};
use mlir_host::rewrite::{IrRewriter, create, create_branch, new_region};
use mlir_host::traits::Trait;
use mlir_host::{DialectDef, op};
use session::Session;

/// `!src.num` becomes an i32.
static NUM: TypeDef = TypeDef { parse: |_| Ok(vec![]), ..TypeDef::new("src", "num") };
/// `!src.pair` becomes two of them.
static PAIR: TypeDef = TypeDef { parse: |_| Ok(vec![]), ..TypeDef::new("src", "pair") };
/// `!src.token` becomes nothing.
static TOKEN: TypeDef = TypeDef { parse: |_| Ok(vec![]), ..TypeDef::new("src", "token") };
/// `!src.stays` cannot be converted.
static STAYS: TypeDef = TypeDef { parse: |_| Ok(vec![]), ..TypeDef::new("src", "stays") };
/// `!src.boom` panics.
static BOOM: TypeDef = TypeDef { parse: |_| Ok(vec![]), ..TypeDef::new("src", "boom") };

op! {
    /// Adds numbers, or pairs.
    pub struct Add = "src.add" {
        operands: [lhs: ANY_TYPE, rhs: ANY_TYPE],
        results: [sum: ANY_TYPE],
    }
}

op! {
    /// Names two groups of operands.
    pub struct Groups = "src.groups" {
        operands: [some[var]: ANY_TYPE, more[var]: ANY_TYPE],
    }
}

op! {
    /// Does what the pattern under test does.
    pub struct Work = "src.work" {
        operands: [inputs[var]: ANY_TYPE],
        results: [outputs[var]: ANY_TYPE],
        regions: [bodies[var]: Blocks::Any],
    }
}

op! {
    /// A function.
    pub struct Func = "src.func" {
        attrs: [
            sym_name: SymbolNameAttr, function_type: FunctionTypeAttr, sym_visibility[opt]: StrAttr,
            arg_attrs[opt]: DictArrayAttr, res_attrs[opt]: DictArrayAttr,
        ],
        regions: [body: Blocks::Any],
        traits: [Trait::Function, Trait::ISOLATED],
        with: { format: Format::Function },
    }
}

op! {
    /// Gives values back.
    pub struct Return = "src.return" {
        operands: [values[var]: ANY_TYPE],
        traits: [Trait::TERMINATOR, Trait::RETURN_LIKE],
        format: "($values^ `:` type($values))? attr-dict",
    }
}

static SRC: DialectDef = DialectDef {
    ops: &[Add::DEF, Groups::DEF, Work::DEF, Func::DEF, Return::DEF],
    types: &[&NUM, &PAIR, &TOKEN, &STAYS, &BOOM],
    ..DialectDef::new("src")
};

static TYPES: TypeConverter = TypeConverter {
    conversions: &[
        |ty| {
            let number = Type::int(ty.context(), 32);
            match ty.def() {
                Some(def) if std::ptr::eq(def, &NUM) => Converted::To(number),
                Some(def) if std::ptr::eq(def, &PAIR) => Converted::ToMany(vec![number, number]),
                Some(def) if std::ptr::eq(def, &TOKEN) => Converted::ToMany(vec![]),
                Some(def) if std::ptr::eq(def, &STAYS) => Converted::Fails,
                Some(def) if std::ptr::eq(def, &BOOM) => panic!("boom"),
                _ => Converted::Unknown,
            }
        },
        keep,
    ],
    ..TypeConverter::new("numbers")
};

static ADD: ConversionPattern = ConversionPattern {
    types: Some(&TYPES),
    one_to_many: true,
    ..ConversionPattern::new("add", "src.add", |op, operands, rewriter| {
        let (lhs, rhs) = (operands.group(op, "lhs"), operands.group(op, "rhs"));
        assert_eq!((lhs, rhs), (operands.many(0), operands.many(1)));
        let mut sums = Vec::new();
        for (a, b) in lhs.iter().zip(rhs) {
            sums.push(rewriter.generic("arith.addi", op.loc(), &[*a, *b], &[a.ty()], &[])?.result(0));
        }
        rewriter.replace_by_many(op, &[sums]);
        Ok(true)
    })
};

static FUNC: ConversionPattern = ConversionPattern::function("src.func", &TYPES);
static UPSTREAM_FUNC: ConversionPattern = ConversionPattern::function("func.func", &TYPES);
static RETURN: ConversionPattern = ConversionPattern::types_of("src.return", &TYPES);
static UPSTREAM_RETURN: ConversionPattern = ConversionPattern::types_of("func.return", &TYPES);
static CALL: ConversionPattern = ConversionPattern::types_of("func.call", &TYPES);
static GROUPS: ConversionPattern = ConversionPattern::types_of("src.groups", &TYPES);
static PATTERNS: &[&ConversionPattern] =
    &[&ADD, &FUNC, &UPSTREAM_FUNC, &RETURN, &UPSTREAM_RETURN, &CALL, &GROUPS];

/// Everything has legal types, and the dialect has no operations but these.
static RULES: &[Rule<'static>] = &[
    Rule::op("builtin.module", Legality::Legal),
    Rule::op("src.func", Legality::Dynamic(|op| Some(TYPES.is_legal_function(op)))),
    Rule::op("func.func", Legality::Dynamic(|op| Some(TYPES.is_legal_function(op)))),
    Rule::op("src.return", Legality::Dynamic(|op| Some(TYPES.is_legal(op)))),
    Rule::op("src.groups", Legality::Dynamic(|op| Some(TYPES.is_legal(op)))),
    Rule::dialect("func", Legality::Dynamic(|op| Some(TYPES.is_legal(op)))),
    Rule::dialect("src", Legality::Illegal),
    Rule::dialect("arith", Legality::Legal),
    Rule::dialect("cf", Legality::Legal),
];

/// The only thing to be converted is `src.work`.
static WORK: &[Rule<'static>] = &[Rule::op("src.work", Legality::Illegal)];

fn parse(text: &str) -> Session {
    let session = Session::parse(&[&SRC], text);
    assert!(session.op().verify() && session.diagnostics.is_empty(), "{:?}", session.diagnostics);
    assert!(["arith", "cf", "func"].iter().all(|dialect| session.context().load(dialect)));
    session
}

/// The text after the conversion, which is valid.
#[track_caller]
fn converted(text: &str, rules: &[Rule<'_>], patterns: &[&'static ConversionPattern]) -> String {
    let session = parse(text);
    let done = apply_full_conversion(session.op(), rules, patterns);
    assert!(done.is_ok() && session.diagnostics.is_empty(), "{:?}", session.diagnostics);
    assert!(session.op().verify(), "{:?}\n{}", session.diagnostics, session.op());
    session.op().to_string()
}

/// The conversion fails with one error, which is at that line, and leaves what there was.
#[track_caller]
fn fails(
    text: &str,
    rules: &[Rule<'_>],
    patterns: &[&'static ConversionPattern],
    line: u32,
    error: &str,
) -> Session {
    let session = parse(text);
    let before = shape(session.op());
    assert!(apply_partial_conversion(session.op(), rules, patterns).is_err(), "succeeds: {}", session.op());
    assert!(session.diagnostics.len() == 1 && session.says(error), "{:?}", session.diagnostics);
    assert_eq!(session.diagnostics.lines(), [line], "{:?}", session.diagnostics);
    assert_eq!(shape(session.op()), before);
    session
}

/// What there is, whether MLIR prints it prettily or, being poisoned, does not.
fn shape(root: Op<'_>) -> String {
    let mut text = String::new();
    root.walk(&mut |op| {
        let operands: Vec<String> =
            op.operands().map(|value| format!("{:?} {}", value.raw().ptr, value.ty())).collect();
        text += &format!("{} {:?} {operands:?}\n", op.name(), op.attrs());
        Walk::Advance
    });
    text
}

#[test]
fn one_value_becomes_another_or_several_or_none() {
    let text = "src.func @f(%a: !src.num, %p: !src.pair, %t: !src.token, %b: i1) -> (!src.pair, !src.num) {
        %0 = \"src.add\"(%a, %a) : (!src.num, !src.num) -> !src.num
        %1 = \"src.add\"(%p, %p) : (!src.pair, !src.pair) -> !src.pair
        src.return %1, %0 : !src.pair, !src.num
    }";
    let text = converted(text, RULES, PATTERNS);
    assert!(text.contains("@f(%arg0: i32, %arg1: i32, %arg2: i32, %arg3: i1) -> (i32, i32, i32)"), "{text}");
    assert!(text.contains("%0 = arith.addi %arg0, %arg0 : i32"), "{text}");
    assert!(text.contains("%1 = arith.addi %arg1, %arg1 : i32"), "{text}");
    assert!(text.contains("%2 = arith.addi %arg2, %arg2 : i32"), "{text}");
    assert!(text.contains("src.return %1, %2, %0 : i32, i32, i32"), "{text}");
}

#[test]
fn functions_of_mlir_calls_and_declarations() {
    let text = "func.func private @g(!src.num {llvm.noundef}, !src.pair) -> (!src.pair, !src.token)
    func.func @f(%a: !src.num, %p: !src.pair) -> !src.pair {
        %0:2 = func.call @g(%a, %p) {here} : (!src.num, !src.pair) -> (!src.pair, !src.token)
        return %0#0 : !src.pair
    }";
    let text = converted(text, RULES, PATTERNS);
    assert!(text.contains("@g(i32 {llvm.noundef}, i32, i32) -> (i32, i32)"), "{text}");
    assert!(
        text.contains("%0:2 = call @g(%arg0, %arg1, %arg2) {here} : (i32, i32, i32) -> (i32, i32)"),
        "{text}"
    );
    assert!(text.contains("return %0#0, %0#1 : i32, i32"), "{text}");
}

#[test]
fn all_blocks_of_a_function() {
    let text = "func.func @f(%c: i1, %a: !src.num) -> !src.num {
        cf.cond_br %c, ^bb1(%a : !src.num), ^bb2
    ^bb1(%x: !src.num):
        %0 = \"src.add\"(%x, %a) : (!src.num, !src.num) -> !src.num
        return %0 : !src.num
    ^bb2:
        return %a : !src.num
    }";
    static BRANCH: ConversionPattern = ConversionPattern::types_of("cf.cond_br", &TYPES);
    let branch = Rule::op("cf.cond_br", Legality::Dynamic(|op| Some(TYPES.is_legal(op))));
    let text = converted(text, &[RULES, &[branch]].concat(), &[PATTERNS, &[&BRANCH]].concat());
    assert!(text.contains("cf.cond_br %arg0, ^bb1(%arg1 : i32), ^bb2"), "{text}");
    assert!(text.contains("^bb1(%0: i32):") && text.contains("arith.addi %0, %arg1 : i32"), "{text}");
}

#[test]
fn attributes_of_an_argument_that_becomes_several() {
    let text = "\n src.func private @f(!src.pair {llvm.noundef})";
    fails(text, RULES, PATTERNS, 2, "'src.func' op argument 0 has attributes, and becomes 2 arguments");
    let text = "\n src.func private @f() -> (i32, !src.token {llvm.noundef})";
    fails(text, RULES, PATTERNS, 2, "'src.func' op result 1 has attributes, and becomes 0 results");
}

#[test]
fn groups_of_operands_are_not_mixed_up() {
    let groups = |a: &str, b: &str| {
        format!(
            "src.func @f(%a: {a}, %b: {b}) {{\n\
             \"src.groups\"(%a, %b) <{{operandSegmentSizes = array<i32: 1, 1>}}> : ({a}, {b}) -> ()\nsrc.return\n}}"
        )
    };
    let text = converted(&groups("!src.num", "i1"), RULES, PATTERNS);
    assert!(
        text.contains("\"src.groups\"(%arg0, %arg1) <{operandSegmentSizes = array<i32: 1, 1>}> : (i32, i1)"),
        "{text}"
    );
    let text = groups("!src.num", "!src.pair");
    fails(&text, RULES, PATTERNS, 2, "failed to legalize operation 'src.groups'");
}

#[test]
fn an_operation_that_is_left() {
    let text = "func.func @f(%a: !src.num) {\n%0 = \"src.add\"(%a, %a) : (!src.num, !src.num) -> !src.num\n\
                \"src.work\"() : () -> ()\nreturn\n}";
    let error = "failed to legalize operation 'src.work' that was explicitly marked illegal";
    fails(text, RULES, PATTERNS, 3, error);
}

#[test]
fn what_no_rule_is_about() {
    let text = "func.func @f() {\n\"src.work\"() : () -> ()\nreturn\n}";
    let session = parse(text);
    assert!(apply_partial_conversion(session.op(), &[], &[]).is_ok(), "{:?}", session.diagnostics);
    let (module, rest) = (Rule::dialect("builtin", Legality::Legal), Rule::dialect("func", Legality::Legal));
    assert!(apply_full_conversion(session.op(), &[module, rest], &[]).is_err());
    assert!(session.says("failed to legalize operation 'src.work'"), "{:?}", session.diagnostics);
    assert_eq!(session.diagnostics.lines(), [2]);
    assert!(apply_full_conversion(session.op(), &[Rule::others(Legality::Legal)], &[]).is_ok());
    assert!(apply_full_conversion(session.op(), &[Rule::others(Legality::Illegal)], &[]).is_err());
    assert!(apply_full_conversion(session.op(), &[module, Rule::whole("func.func")], &[]).is_ok());
    let some = Rule::others(Legality::Dynamic(|op| Some(op.name() != "func.return")));
    assert!(apply_full_conversion(session.op(), &[some], &[]).is_err());
    assert!(session.says("failed to legalize operation 'func.return'"), "{:?}", session.diagnostics);
}

#[test]
fn a_type_that_cannot_be_converted() {
    let error = "failed to legalize operation 'src.func'";
    fails("\nsrc.func private @f(!src.stays)", RULES, PATTERNS, 2, error);
    // Without the conversion that keeps all others, i1 is unknown.
    static NOTHING: TypeConverter = TypeConverter::new("nothing");
    static NO_FUNC: ConversionPattern = ConversionPattern::function("src.func", &NOTHING);
    let rules = [Rule::op("src.func", Legality::Dynamic(|op| Some(NOTHING.is_legal_function(op))))];
    fails("\nsrc.func private @f(i1)", &rules, &[&NO_FUNC], 2, error);
}

/// A pattern for `src.work`, on operands of any type.
const fn work(name: &'static str, apply: ConvertFn) -> ConversionPattern {
    ConversionPattern::new(name, "src.work", apply)
}

/// The operation that works is in line 2.
const WORKS: &str = "func.func @f(%a: i32) {\n%0 = \"src.work\"(%a) : (i32) -> i32\n\"src.groups\"(%0) \
                     <{operandSegmentSizes = array<i32: 1, 0>}> : (i32) -> ()\nreturn\n}";

/// Each of these changes something before it goes wrong.
#[test]
fn panics_and_errors_of_patterns() {
    fn change<'c>(op: Op<'c>, rewriter: &mut ConversionRewriter<'c>) {
        rewriter.modify(op, |op| op.set_attr("half", Attr::unit(op.context())));
    }
    static PANICS: ConversionPattern = work("panics", |op, _, rewriter| {
        change(op, rewriter);
        panic!("boom");
    });
    let poisoned = |pattern, error: &str| {
        let session = fails(WORKS, WORK, &[pattern], 2, error);
        assert!(session.context().is_poisoned());
        // Nothing is converted any more.
        assert!(apply_partial_conversion(session.op(), &[], &[]).is_err());
    };
    poisoned(&PANICS, "pattern panics: internal error (this is a bug): boom");

    static REPORTS: ConversionPattern = work("reports", |op, _, rewriter| {
        change(op, rewriter);
        Err(op.error("is too much work"))
    });
    // Other patterns are not asked.
    static NEVER: ConversionPattern =
        ConversionPattern { benefit: 0, ..work("never", |_, _, _| panic!("asked")) };
    let session = fails(WORKS, WORK, &[&NEVER, &REPORTS], 2, "'src.work' op is too much work");
    assert!(!session.context().is_poisoned());

    // An error is an error, also where the pattern passes over it.
    static FORGETS: ConversionPattern = work("forgets", |op, _, _| {
        op.error("is too much work");
        Ok(false)
    });
    fails(WORKS, WORK, &[&FORGETS], 2, "'src.work' op is too much work");

    static LAZY: ConversionPattern = work("lazy", |op, operands, rewriter| {
        rewriter.generic("arith.addi", op.loc(), &[operands.one(0); 2], &[operands.one(0).ty()], &[])?;
        Ok(true)
    });
    poisoned(
        &LAZY,
        "pattern lazy: internal error (this is a bug): src.work was neither replaced nor modified",
    );

    static TWICE: ConversionPattern = work("twice", |op, operands, rewriter| {
        rewriter.replace(op, &[operands.one(0)]);
        rewriter.erase(op);
        Ok(true)
    });
    poisoned(&TWICE, "src.work was replaced or erased already");

    static BEHIND: ConversionPattern = work("behind", |op, operands, rewriter| {
        rewriter.replace(op, &[operands.one(0)]);
        op.erase();
        Ok(true)
    });
    poisoned(&BEHIND, "an operation is erased in a dialect conversion by another way than its rewriter");

    static OTHER: ConversionPattern = work("other", |op, _, _| {
        let mut rewriter = IrRewriter::new(op.context());
        rewriter.set_before(op);
        rewriter.erase(op);
        Ok(true)
    });
    poisoned(&OTHER, "an operation is changed in a dialect conversion by another way than its rewriter");

    static NESTED: ConversionPattern = work("nested", |op, _, _| {
        apply_partial_conversion(op, &[], &[])?;
        Ok(true)
    });
    poisoned(&NESTED, "a conversion within a conversion");

    static AROUND: ConversionPattern = work("around", |op, _, rewriter| {
        let function = op.parent().expect("a function");
        rewriter.erase(function.parent().expect("a module"));
        Ok(true)
    });
    poisoned(
        &AROUND,
        "builtin.module, which is to be converted, or what is around it, is replaced or erased",
    );

    static TYPELESS: ConversionPattern =
        work("typeless", |_, _, rewriter| Ok(rewriter.types().name.is_empty()));
    poisoned(&TYPELESS, "the pattern has a type converter");

    static FILLED: ConversionPattern = work("filled", |op, _, rewriter| {
        rewriter.insert(op.parent().expect("a function").clone_detached());
        Ok(true)
    });
    poisoned(&FILLED, "regions of func.func are filled before it is inserted");

    static APPENDS: ConversionPattern = work("appends", |op, operands, _| {
        let made = create("src.work", op.loc(), operands.flat(), &[], &[], &[])?;
        op.block().expect("a block").append(made);
        Ok(true)
    });
    poisoned(&APPENDS, "an operation is appended in a dialect conversion by another way than its rewriter");
}

#[test]
fn what_is_nested_moves_out() {
    static OUT: ConversionPattern = work("out", |op, _, rewriter| {
        for inner in op.region(0).first_block().expect("a block").ops() {
            if inner.name() == "arith.constant" {
                rewriter.move_before(inner, op);
            }
        }
        rewriter.erase(op);
        Ok(true)
    });
    let text = "\"src.work\"() ({\n%c = arith.constant 7 : i32\nsrc.return\n}) : () -> ()";
    let session = parse(text);
    assert!(apply_partial_conversion(session.op(), WORK, &[&OUT]).is_ok(), "{:?}", session.diagnostics);
    let text = session.op().to_string();
    assert!(text.contains("arith.constant 7 : i32") && !text.contains("src."), "{text}");
    static IN: ConversionPattern = work("in", |op, _, rewriter| {
        let inner = op.region(0).first_block().and_then(Block::first).expect("an operation");
        rewriter.move_before(op, inner);
        Ok(true)
    });
    let text = "\n\"src.work\"() ({\nsrc.return\n}) : () -> ()";
    fails(text, WORK, &[&IN], 2, "src.work is moved into itself");
}

#[test]
fn the_next_pattern_is_tried() {
    fn double<'c>(
        op: Op<'c>,
        operands: &Operands<'_, 'c>,
        rewriter: &mut ConversionRewriter<'c>,
    ) -> Result<(), Reported> {
        let one = operands.one(0);
        let sum = rewriter.generic("arith.addi", op.loc(), &[one; 2], &[one.ty()], &[])?;
        rewriter.replace(op, &[sum.result(0)]);
        Ok(())
    }
    // What it did is taken back, the mark of what was replaced among it.
    static FIRST: ConversionPattern = ConversionPattern {
        benefit: 2,
        ..work("first", |op, operands, rewriter| {
            double(op, operands, rewriter)?;
            Ok(false)
        })
    };
    static SECOND: ConversionPattern = work("second", |op, operands, rewriter| {
        rewriter.replace(op, &[operands.one(0)]);
        Ok(true)
    });
    let session = parse(WORKS);
    assert!(apply_partial_conversion(session.op(), WORK, &[&SECOND, &FIRST]).is_ok());
    let text = session.op().to_string();
    assert!(text.contains("\"src.groups\"(%arg0)") && !text.contains("addi"), "{text}");
    fails(WORKS, WORK, &[&FIRST], 2, "failed to legalize operation 'src.work'");
    // What it makes must be legal, too.
    let strict = [WORK, &[Rule::dialect("arith", Legality::Illegal)]].concat();
    static THIRD: ConversionPattern = ConversionPattern {
        benefit: 2,
        ..work("third", |op, operands, rewriter| {
            double(op, operands, rewriter)?;
            Ok(true)
        })
    };
    let session = parse(WORKS);
    assert!(apply_partial_conversion(session.op(), &strict, &[&SECOND, &THIRD]).is_ok());
    assert!(!session.op().to_string().contains("addi"), "{}", session.op());
    fails(WORKS, &strict, &[&THIRD], 2, "failed to legalize operation 'src.work'");
}

#[test]
fn in_place_and_again_and_any() {
    fn count(op: Op<'_>) -> i64 {
        op.attr("left").and_then(Attr::as_int).unwrap_or(3)
    }
    static RULES: &[Rule<'static>] = &[Rule::op("src.work", Legality::Dynamic(|op| Some(count(op) == 0)))];
    static ANY: ConversionPattern = ConversionPattern {
        recursive: true,
        ..ConversionPattern::new("any", "", |op, _, rewriter| {
            if op.name() != "src.work" {
                return Ok(false);
            }
            rewriter.modify(op, |op| op.set_attr("left", Attr::int(op.context(), 32, count(op) - 1)));
            Ok(true)
        })
    };
    let session = parse(WORKS);
    assert!(apply_partial_conversion(session.op(), RULES, &[&ANY]).is_ok(), "{:?}", session.diagnostics);
    assert!(session.op().to_string().contains("left = 0 : i32"), "{}", session.op());
    // A pattern that does not say so is not applied to what it made.
    static ONCE: ConversionPattern =
        ConversionPattern { recursive: false, ..ConversionPattern::new("once", "", ANY.apply) };
    fails(WORKS, RULES, &[&ONCE], 2, "failed to legalize operation 'src.work'");
}

#[test]
fn panics_of_types_and_legality() {
    let text = "func.func @f(%a: !src.boom) {\n\"src.work\"(%a) : (!src.boom) -> ()\nreturn\n}";
    static WORKER: ConversionPattern =
        ConversionPattern { types: Some(&TYPES), ..work("worker", |_, _, _| Ok(false)) };
    let error = "type converter numbers, of !src.boom: internal error (this is a bug): boom";
    let session = fails(text, WORK, &[&WORKER], 2, error);
    assert!(session.context().is_poisoned());
    // Asked by a pattern, or by a rule, it is the panic of those.
    let function = "\nfunc.func private @f(!src.boom)";
    let rules = [Rule::op("func.func", Legality::Illegal)];
    let error = "pattern convert-function: internal error (this is a bug): boom";
    assert!(fails(function, &rules, PATTERNS, 2, error).context().is_poisoned());
    let error = "legality of func.func: internal error (this is a bug): boom";
    assert!(fails(function, RULES, PATTERNS, 2, error).context().is_poisoned());
    static REPORTS: &[Rule<'static>] = &[Rule::op(
        "src.work",
        Legality::Dynamic(|op| {
            op.error("is not to be judged");
            Some(true)
        }),
    )];
    fails(text, REPORTS, &[], 2, "'src.work' op is not to be judged");
}

/// As `TYPES`, with numbers only, and with materializations.
const fn materializing(to_source: Option<MaterializeFn>, to_target: Option<MaterializeFn>) -> TypeConverter {
    TypeConverter {
        conversions: &[
            |ty| match ty.def() {
                Some(def) if std::ptr::eq(def, &NUM) => Converted::To(Type::int(ty.context(), 32)),
                Some(def) if std::ptr::eq(def, &PAIR) => {
                    Converted::ToMany(vec![Type::int(ty.context(), 32); 2])
                }
                _ => Converted::Unknown,
            },
            keep,
        ],
        to_source,
        to_target,
        ..TypeConverter::new("materializing")
    }
}

/// Its operand is not converted, nor is the use of its result.
const MIXED: &str = "func.func @f(%a: !src.num, %p: !src.pair) -> !src.num {
    %0 = \"src.add\"(%a, %a) : (!src.num, !src.num) -> !src.num
    %1 = \"src.add\"(%p, %p) : (!src.pair, !src.pair) -> !src.pair
    return %0 : !src.num
}";

/// Converts additions and nothing else.
static ADDITIONS: &[Rule<'static>] =
    &[Rule::op("src.add", Legality::Illegal), Rule::dialect("arith", Legality::Legal)];

const fn add(types: &'static TypeConverter) -> ConversionPattern {
    ConversionPattern { types: Some(types), ..ADD_AS }
}
const ADD_AS: ConversionPattern =
    ConversionPattern { one_to_many: true, ..ConversionPattern::new("add", "src.add", ADD_APPLY) };
const ADD_APPLY: ConvertFn = |op, operands, rewriter| (ADD.apply)(op, operands, rewriter);

#[test]
fn materializations_that_are_made() {
    static CASTING: TypeConverter = materializing(Some(cast), Some(cast));
    static ADD: ConversionPattern = add(&CASTING);
    let session = parse(MIXED);
    assert!(apply_partial_conversion(session.op(), ADDITIONS, &[&ADD]).is_ok(), "{:?}", session.diagnostics);
    let text = session.op().to_string();
    assert!(text.contains("unrealized_conversion_cast %arg0 : !src.num to i32"), "{text}");
    assert!(text.contains("unrealized_conversion_cast %arg1 : !src.pair to i32, i32"), "{text}");
    assert!(text.contains(" : i32 to !src.num"), "{text}");
    assert_eq!(text.matches("arith.addi").count(), 3, "{text}");
    assert!(session.op().verify(), "{:?}", session.diagnostics);

    // One's own operation, and what it was told.
    fn wrap<'c>(
        rewriter: &mut mlir_host::rewrite::Rewriter<'c>,
        wanted: &Materialization<'_, 'c>,
    ) -> Result<Option<Vec<mlir_host::ir::Value<'c>>>, Reported> {
        assert!(wanted.original.is_none_or(|ty| ty.is(&NUM) || ty.is(&PAIR)));
        let op = rewriter.generic("src.work", wanted.loc, wanted.inputs, wanted.types, &[])?;
        Ok(Some(op.results().collect()))
    }
    static WRAPPING: TypeConverter = materializing(Some(wrap), Some(wrap));
    static WRAP: ConversionPattern = add(&WRAPPING);
    let session = parse(MIXED);
    assert!(apply_partial_conversion(session.op(), ADDITIONS, &[&WRAP]).is_ok(), "{:?}", session.diagnostics);
    let text = session.op().to_string();
    assert!(!text.contains("unrealized") && text.matches("src.work").count() == 3, "{text}");
}

#[test]
fn materializations_that_are_not() {
    let check = |pattern, error: &str, poisons| {
        // Of several that are not made MLIR reports any.
        let session =
            parse(&MIXED.replace("%1 = \"src.add\"(%p, %p) : (!src.pair, !src.pair) -> !src.pair", ""));
        assert!(apply_partial_conversion(session.op(), ADDITIONS, &[pattern]).is_err());
        assert!(session.diagnostics.len() == 1 && session.says(error), "{:?}", session.diagnostics);
        assert_eq!(session.diagnostics.lines(), [2], "{:?}", session.diagnostics);
        assert_eq!(session.context().is_poisoned(), poisons);
    };
    static NO_SOURCE: TypeConverter = materializing(None, Some(cast));
    static SOURCELESS: ConversionPattern = add(&NO_SOURCE);
    check(&SOURCELESS, "failed to legalize unresolved materialization from ('i32') to ('!src.num')", false);
    static NO_TARGET: TypeConverter = materializing(Some(cast), Some(|_, _| Ok(None)));
    static TARGETLESS: ConversionPattern = add(&NO_TARGET);
    check(&TARGETLESS, "failed to legalize unresolved materialization from ('!src.num') to ('i32')", false);
    static PANICKING: TypeConverter = materializing(Some(cast), Some(|_, _| panic!("boom")));
    static PANICS: ConversionPattern = add(&PANICKING);
    let error = "materialization of type converter materializing: internal error (this is a bug): boom";
    check(&PANICS, error, true);
    static WRONG: TypeConverter =
        materializing(Some(|_, wanted| Ok(Some(vec![wanted.inputs[0]]))), Some(cast));
    static LIES: ConversionPattern = add(&WRONG);
    check(&LIES, "it makes [i32] where [!src.num] is wanted", true);
    static ERASING: TypeConverter = materializing(
        Some(|rewriter, wanted| {
            rewriter.erase(wanted.inputs[0].def_op().unwrap());
            Ok(None)
        }),
        Some(cast),
    );
    static ERASES: ConversionPattern = add(&ERASING);
    check(&ERASES, "a materialization changes arith.addi", true);
    static REPORTING: TypeConverter =
        materializing(Some(|_, wanted| Err(wanted.loc.error("no way back"))), Some(cast));
    static REPORTS: ConversionPattern = add(&REPORTING);
    check(&REPORTS, "no way back", false);
}

#[test]
fn what_is_erased_and_used() {
    static ERASE: ConversionPattern = work("erase", |op, _, rewriter| {
        rewriter.erase(op);
        Ok(true)
    });
    let session = parse(WORKS);
    assert!(apply_partial_conversion(session.op(), WORK, &[&ERASE]).is_err());
    assert!(
        session.says("failed to legalize unresolved materialization from () to ('i32')"),
        "{:?}",
        session.diagnostics
    );
    assert_eq!(session.diagnostics.lines(), [2]);
}

/// `src.work` of a condition and two regions branches to one of them; what it gives are the block's arguments behind it.
static BRANCHES: ConversionPattern = work("branches", |op, operands, rewriter| {
    let around = op.block().and_then(Block::parent_region).expect("a region");
    let (loc, before) = (op.loc(), op.block().expect("a block"));
    let behind = rewriter.split_block(op);
    let joined = rewriter.create_block(around, &[(op.result(0).ty(), loc)]);
    let mut arms = Vec::new();
    for region in op.regions() {
        let arm = rewriter.create_block(around, &[]);
        let body = region.first_block().expect("a block");
        let last = body.last().expect("a terminator");
        let value = last.operand(0);
        let branch = rewriter.insert(create_branch("cf.br", loc, &[value], &[], &[joined])?);
        rewriter.erase(last);
        rewriter.inline_block(body, branch, &[]);
        arms.push(arm);
    }
    rewriter.set_end(before);
    let sizes = Attr::i32_array(op.context(), &[1, 0, 0]);
    let branch =
        create_branch("cf.cond_br", loc, &[operands.one(0)], &[("operandSegmentSizes", sizes)], &arms)?;
    rewriter.insert(branch);
    rewriter.set_end(joined);
    rewriter.insert(create_branch("cf.br", loc, &[], &[], &[behind])?);
    rewriter.replace(op, &[joined.arg(0)]);
    Ok(true)
});

#[test]
fn regions_become_blocks() {
    let text = "func.func @f(%c: i1, %a: i32) -> i32 {
        %0 = \"src.work\"(%c) ({
            %1 = arith.addi %a, %a : i32
            src.return %1 : i32
        }, {
            src.return %a : i32
        }) : (i1) -> i32
        return %0 : i32
    }";
    let session = parse(text);
    let rules = [WORK, &[Rule::dialect("cf", Legality::Legal)]].concat();
    assert!(
        apply_partial_conversion(session.op(), &rules, &[&BRANCHES]).is_ok(),
        "{:?}",
        session.diagnostics
    );
    assert!(session.op().verify(), "{:?}\n{}", session.diagnostics, session.op());
    let text = session.op().to_string();
    assert!(text.contains("cf.cond_br %arg0, ^bb") && !text.contains("src."), "{text}");
    assert_eq!(text.matches("cf.br").count(), 3, "{text}");
}

#[test]
fn signatures_of_one_s_own() {
    // The first argument goes, the second becomes two, another one comes.
    static SIGN: ConversionPattern = ConversionPattern {
        types: Some(&TYPES),
        ..work("sign", |op, operands, rewriter| {
            let block = op.region(0).first_block().expect("a block");
            let mut signature = Signature::new(2);
            signature.replace(0, vec![operands.one(0)]);
            let i32 = Type::int(op.context(), 32);
            signature.convert(1, rewriter.types().convert(block.arg(1).ty()).expect("a conversion"));
            signature.add(vec![Type::int(op.context(), 1)]);
            assert_eq!(signature.types(), [i32, i32, Type::int(op.context(), 1)]);
            let block = rewriter.convert_block(block, &signature);
            assert_eq!(block.num_args(), 3);
            let made = create(
                "src.work",
                op.loc(),
                operands.flat(),
                &[],
                &[("done", Attr::unit(op.context()))],
                &[new_region()],
            )?;
            let made = rewriter.insert(made);
            rewriter.move_region(op.region(0), made.region(0));
            rewriter.erase(op);
            Ok(true)
        })
    };
    let text = "func.func @f(%a: i32) {
        \"src.work\"(%a) ({
        ^bb0(%x: i32, %p: !src.pair):
            %0 = \"src.add\"(%p, %p) : (!src.pair, !src.pair) -> !src.pair
            %1 = arith.addi %x, %x : i32
            src.return
        }) : (i32) -> ()
        return
    }";
    let done = Rule::op("src.work", Legality::Dynamic(|op| Some(op.attr("done").is_some())));
    let text = converted(text, &[RULES, &[done]].concat(), &[PATTERNS, &[&SIGN]].concat());
    assert!(text.contains("^bb0(%arg1: i32, %arg2: i32, %arg3: i1):"), "{text}");
    assert!(text.contains("arith.addi %arg1, %arg1") && text.contains("arith.addi %arg2, %arg2"), "{text}");
    assert!(text.contains("arith.addi %arg0, %arg0"), "{text}");
    let panics = |f: fn()| std::panic::catch_unwind(f).is_err();
    assert!(panics(|| Signature::new(1).convert(1, vec![])));
    assert!(panics(|| Signature::new(1).replace(0, vec![])));
    assert!(panics(|| {
        let mut signature = Signature::new(1);
        signature.convert(0, vec![]);
        signature.convert(0, vec![]);
    }));
}

#[test]
fn a_region_is_not_moved_into_itself() {
    static MOVES: ConversionPattern = work("moves", |op, _, rewriter| {
        let inner = op.region(0).first_block().and_then(Block::first).expect("an operation");
        rewriter.move_region(op.region(0), inner.region(0));
        Ok(true)
    });
    let text = "\n\"src.work\"() ({\n\"src.work\"() ({}) : () -> ()\nsrc.return\n}) : () -> ()";
    fails(text, WORK, &[&MOVES], 2, "a region is moved into itself");
}
