//! A dialect whose every callback panics: nothing that came after a panic succeeds.

mod session;

use mlir_host::attrs::{FlatSymbolRefAttr, I32Attr, UnitAttr};
use mlir_host::def::*;
use mlir_host::ir::{Attr, Type};
use mlir_host::pass::PassDef;
use mlir_host::rewrite::{Pattern, apply_greedily};
use mlir_host::traits::Trait;
use mlir_host::{DialectDef, op};
use session::Session;

static I32: TypeConstraint =
    TypeConstraint::only("32-bit signless integer", |ty| ty.is_int(32), |ctx| Type::int(ctx, 32));

/// `#bad.text`, which nobody can print.
static TEXT_ATTR: AttrDef = AttrDef {
    parse: |parser| Ok(vec![Attr::unit(parser.context())]),
    print: |_, printer| {
        printer.text("<half");
        panic!("boom");
    },
    ..AttrDef::new("bad", "text")
};

/// `#bad.alias`, whose alias nobody knows.
static ALIAS_ATTR: AttrDef = AttrDef::new("bad", "alias");

/// `!bad.wrong`, which nobody can verify.
static WRONG_TYPE: TypeDef = TypeDef {
    parse: |parser| Ok(vec![Attr::unit(parser.context())]),
    verify: Some(|_, _| panic!("boom")),
    ..TypeDef::new("bad", "wrong")
};

/// `!bad.text`, which nobody can parse.
static TEXT_TYPE: TypeDef = TypeDef { parse: |_| panic!("boom"), ..TypeDef::new("bad", "text") };

op! {
    /// Has effects that nobody knows.
    pub struct Effectful = "bad.effects" {
        results: [result: I32],
        format: "attr-dict",
        with: { effects: Effects::Dynamic(|_, _| panic!("boom")), speculation: Speculation::Always },
    }
}

op! {
    /// May or may not run early.
    pub struct Early = "bad.early" {
        results: [result: I32],
        format: "attr-dict",
        with: { effects: Effects::None, speculation: Speculation::Dynamic(|_| panic!("boom")) },
    }
}

op! {
    /// Cannot be folded.
    pub struct Fold = "bad.fold" {
        operands: [src: I32],
        results: [result: I32],
        format: "$src attr-dict",
        with: { fold: Some(|_, _| panic!("boom")) },
    }
}

op! {
    /// Folds to a constant that cannot be made.
    pub struct Constant = "bad.constant" {
        results: [result: I32],
        format: "attr-dict",
        with: { fold: Some(|op, _| Some(vec![Folded::Attr(Attr::int(op.context(), 32, 1))])) },
    }
}

static HALF: Pattern = Pattern {
    name: "half",
    root: "bad.pattern",
    benefit: 1,
    apply: |op, rewriter| {
        rewriter.modify(op, |op| op.set_attr("half", Attr::unit(op.context())));
        panic!("boom");
    },
};

op! {
    /// Is rewritten by half.
    pub struct Patterned = "bad.pattern" {
        format: "attr-dict",
        with: { canonicalize: &[Pattern { ..HALF }] },
    }
}

op! {
    /// Has a pattern that reports an error and keeps silent about it.
    pub struct Reporting = "bad.reporting" {
        format: "attr-dict",
        with: {
            canonicalize: &[Pattern {
                name: "reporting",
                root: "bad.reporting",
                benefit: 1,
                apply: |op, _| {
                    op.error("is wrong");
                    false
                },
            }],
        },
    }
}

op! {
    /// Cannot be printed.
    pub struct Print = "bad.print" {
        attrs: [value[opt]: I32Attr],
        with: {
            format: Format::Custom {
                parse: |parser| parser.attr_dict(false),
                print: |_, printer| {
                    printer.text(" half");
                    panic!("boom");
                },
            },
        },
    }
}

op! {
    /// Cannot be parsed.
    pub struct Parse = "bad.parse" {
        with: { format: Format::Custom { parse: |_| panic!("boom"), print: |_, _| {} } },
    }
}

op! {
    /// Cannot be verified.
    pub struct Verify = "bad.verify" {
        attrs: [regions[opt]: UnitAttr],
        regions: [body: Blocks::Any],
        with: {
            verify: Some(|op| if Verify::of(op).regions().is_some() { Ok(()) } else { panic!("boom") }),
            verify_regions: Some(|_| panic!("boom")),
        },
    }
}

op! {
    /// Goes nobody knows where.
    pub struct Branch = "bad.branch" {
        regions: [body: Blocks::Any],
        with: { successor_regions: Some(|_, _, _| panic!("boom")) },
    }
}

op! {
    /// Uses symbols that nobody knows.
    pub struct User = "bad.user" {
        format: "attr-dict",
        with: { verify_symbols: Some(|_, _| panic!("boom")) },
    }
}

op! {
    /// Calls a function.
    pub struct Call = "bad.call" {
        attrs: [callee: FlatSymbolRefAttr],
        traits: [Trait::Call],
    }
}

op! {
    /// Is in a function that may be inlined or not.
    pub struct Inlined = "bad.inlined" { format: "attr-dict", }
}

op! {
    /// Gives operands back.
    pub struct Yield = "bad.yield" {
        traits: [Trait::TERMINATOR, Trait::RETURN_LIKE],
        format: "attr-dict",
        with: { effects: Effects::None },
    }
}

static BAD: DialectDef = DialectDef {
    ops: &[
        Effectful::DEF,
        Early::DEF,
        Fold::DEF,
        Constant::DEF,
        Patterned::DEF,
        Reporting::DEF,
        Print::DEF,
        Parse::DEF,
        Verify::DEF,
        Branch::DEF,
        User::DEF,
        Call::DEF,
        Inlined::DEF,
        Yield::DEF,
    ],
    attrs: &[&TEXT_ATTR, &ALIAS_ATTR],
    types: &[&WRONG_TYPE, &TEXT_TYPE],
    dependencies: &["arith"],
    attr_alias: Some(|attr| if attr.is(&ALIAS_ATTR) { panic!("boom") } else { mlir_host::Alias::None }),
    verify_op_attr: Some(|_, _, _| panic!("boom")),
    verify_arg_attr: Some(|_, _, _, _| panic!("boom")),
    materialize_constant: Some(|_, _, _| panic!("boom")),
    inline_op: Some(|_, _| panic!("boom")),
    inline_call: Some(|_, _| panic!("boom")),
    ..DialectDef::new("bad")
};

op! {
    /// Has a default that is not an attribute.
    pub struct Defaulted = "worse.default" {
        attrs: [value[default "((("]: I32Attr],
        format: "attr-dict",
    }
}

static WORSE: DialectDef = DialectDef { ops: &[Defaulted::DEF], ..DialectDef::new("worse") };

const BOOM: &str = "internal error (this is a bug): boom";

fn parse(text: &str) -> Session {
    Session::parse(&[&BAD], text)
}

/// The text is refused, saying why.
#[track_caller]
fn refused(text: &str) {
    let session = parse(text);
    assert!(session.module.ptr.is_null(), "no error in {}", session.op());
    assert!(session.says(BOOM), "{:?}", session.diagnostics);
}

/// MLIR's own pass meets the panic and fails, saying why; gives the IR that is left.
#[track_caller]
fn fails(text: &str, pass: &str) -> String {
    let session = parse(text);
    assert!(session.diagnostics.is_empty(), "{:?}", session.diagnostics);
    assert!(!session.run(&format!("builtin.module({pass})"), true), "{pass} succeeds");
    assert!(session.says(BOOM), "{:?}", session.diagnostics);
    assert!(session.context().is_poisoned());
    session.op().to_string()
}

#[test]
fn after_a_panic_an_operation_has_all_effects() {
    let session = parse("%0 = bad.effects\n%1 = bad.effects");
    let first = session.op().region(0).first_block().unwrap().first().unwrap();
    assert!(first.writes_memory() && !first.is_memory_effect_free());
    assert!(fails("%0 = bad.effects", "canonicalize").contains("bad.effects"));
    // MLIR does not verify behind a pass that changed nothing.
    let session = parse("%0 = bad.effects\n%1 = bad.effects");
    session.run("builtin.module(cse)", true);
    assert!(session.says(BOOM) && session.context().is_poisoned(), "{:?}", session.diagnostics);
    assert_eq!(session.op().to_string().matches("bad.effects").count(), 2);
}

#[test]
fn after_a_panic_an_operation_is_not_speculatable() {
    let left = fails(
        "func.func @f(%n: index) {\n%c0 = arith.constant 0 : index\n%c1 = arith.constant 1 : index\n\
         scf.for %i = %c0 to %n step %c1 {\n%0 = bad.early\n%c = arith.constant 7 : i32\n}\nreturn\n}",
        "loop-invariant-code-motion",
    );
    let (of_loop, of_op) = (left.find("scf.for").unwrap(), left.find("bad.early").unwrap());
    assert!(of_loop < of_op, "{left}");
}

#[test]
fn folds_and_constants() {
    fails("%c = arith.constant 1 : i32\n%0 = bad.fold %c", "canonicalize");
    fails("%0 = bad.constant\n%1 = arith.addi %0, %0 : i32\nbad.pattern", "sccp,canonicalize");
}

#[test]
fn a_pattern_fails_the_pass_that_applies_it() {
    fails("bad.pattern", "canonicalize");
    static APPLY: PassDef = PassDef::new("test-apply-half", "", |op, _| {
        apply_greedily(op, &[&HALF]);
        Ok(())
    });
    APPLY.register();
    let session = parse("bad.pattern");
    assert!(!session.run("builtin.module(test-apply-half)", false), "the pass succeeds");
    assert!(session.says("pattern half: internal error (this is a bug): boom"), "{:?}", session.diagnostics);
}

#[test]
fn passes() {
    static PANIC: PassDef = PassDef::new("test-panic", "", |_, _| panic!("boom"));
    PANIC.register();
    let session = parse("module {}");
    assert!(!session.run("builtin.module(test-panic)", false), "the pass succeeds");
    assert!(
        session.says("pass test-panic: internal error (this is a bug): boom"),
        "{:?}",
        session.diagnostics
    );
}

#[test]
fn an_error_that_was_reported_fails_the_pass() {
    let session = parse("bad.reporting");
    session.run("builtin.module(canonicalize)", true);
    assert!(session.says("is wrong") && session.context().is_poisoned(), "{:?}", session.diagnostics);
    static FORGETS: PassDef = PassDef::new("test-forgets", "", |op, _| {
        op.error("is wrong");
        Ok(())
    });
    FORGETS.register();
    let session = parse("module {}");
    assert!(!session.run("builtin.module(test-forgets)", false), "the pass succeeds");
}

#[test]
fn parsers_and_verifiers() {
    refused("bad.parse");
    refused("\"bad.verify\"() ({}) : () -> ()");
    refused("\"bad.verify\"() <{regions}> ({}) : () -> ()");
    refused("module attributes {a = !bad.wrong} {}");
    refused("module attributes {a = !bad.text} {}");
    refused("bad.user");
    refused("module attributes {bad.a = 1 : i32} {}");
    refused("func.func private @f(i32 {bad.a = 1 : i32})");
}

#[test]
fn what_cannot_be_printed_is_printed_in_the_generic_form() {
    let session = parse("bad.print {value = 1 : i32}");
    let text = session.op().to_string();
    assert!(text.contains("\"bad.print\"() <{value = 1 : i32}> : () -> ()"), "{text}");
    assert!(!text.contains("half"), "{text}");
    assert!(session.says(BOOM), "{:?}", session.diagnostics);
    assert!(session.context().is_poisoned());
    assert!(!session.op().verify());
}

#[test]
fn attributes_and_aliases_that_cannot_be_printed() {
    let session = parse("module attributes {a.b = #bad.text} {}");
    let _ = session.op().to_string();
    assert!(session.says(BOOM) && session.context().is_poisoned(), "{:?}", session.diagnostics);
    let session = parse("module attributes {a.b = #bad.alias} {}");
    assert!(session.op().to_string().contains("#bad.alias"));
    assert!(session.says(BOOM) && session.context().is_poisoned(), "{:?}", session.diagnostics);
}

#[test]
fn successors_of_regions() {
    fails("func.func @f() {\n\"bad.branch\"() ({\nbad.yield\n}) : () -> ()\nreturn\n}", "sccp");
}

#[test]
fn inlining() {
    let callee = "func.func private @g() {\nbad.inlined\nreturn\n}\n";
    let left = fails(&format!("{callee}func.func @f() {{\ncall @g() : () -> ()\nreturn\n}}"), "inline");
    assert!(left.contains("callee = @g"), "{left}");
    let callee = "func.func private @g() {\nreturn\n}\n";
    let call = "\"bad.call\"() <{callee = @g}> : () -> ()";
    let left = fails(&format!("{callee}func.func @f() {{\n{call}\nreturn\n}}"), "inline");
    assert!(left.contains("bad.call"), "{left}");
}

#[test]
fn defaults_that_are_no_attributes() {
    let session = Session::parse(&[&WORSE], "worse.default");
    assert!(session.says("the default of attribute 0 of worse.default, `(((`, does not parse"));
    assert!(session.context().is_poisoned() && session.module.ptr.is_null(), "{:?}", session.diagnostics);
}

#[test]
fn contexts_are_poisoned_one_by_one() {
    let good = parse("bad.inlined");
    let bad = parse("bad.print");
    let _ = bad.op().to_string();
    assert!(bad.context().is_poisoned() && !good.context().is_poisoned());
    assert!(good.op().verify(), "{:?}", good.diagnostics);
}
