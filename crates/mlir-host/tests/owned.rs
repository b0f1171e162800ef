//! Contexts, modules and pass managers of one's own, and what MLIR has to say as values.

use mlir_host::attrs::I32Attr;
use mlir_host::def::{ANY_TYPE, Effects, Speculation};
use mlir_host::diagnostics::{self, Diagnostic, Handler, Severity};
use mlir_host::driver::{Registry, register_transform_passes};
use mlir_host::ir::Op;
use mlir_host::owned::{OwnedContext, OwnedModule, PassManager};
use mlir_host::pass::{OptionKind, Options, PassDef, PassOption, PassResult};
use mlir_host::traits::Trait;
use mlir_host::{DialectDef, op};
use std::sync::{Arc, Mutex, Once};

op! {
    /// Its operand, so many times.
    pub struct Times = "own.times" {
        operands: [src: ANY_TYPE],
        results: [result: ANY_TYPE],
        attrs: [count: I32Attr],
        traits: [Trait::SAME_TYPE],
        format: "$src `by` $count attr-dict `:` type($src)",
        with: { effects: Effects::None, speculation: Speculation::Always },
    }
}

static OWN: DialectDef = DialectDef { ops: &[Times::DEF], ..DialectDef::new("own") };

/// Says of each function how it is called, and fails where it is called `stop`.
static NAMES: PassDef = PassDef {
    anchor: "func.func",
    options: &[PassOption {
        name: "prefixes",
        description: "before each name",
        kind: OptionKind::Strs(&["a"]),
    }],
    ..PassDef::new("own-names", "says how functions are called", say_names)
};

fn say_names(op: Op<'_>, options: &Options) -> PassResult {
    let name = op.attr("sym_name").expect("it has one").to_string();
    if name.contains("stop") {
        return Err(op.error("stops here"));
    }
    op.remark(format!("{}{name}", options.strings("prefixes").join("")));
    Ok(())
}

fn context() -> OwnedContext {
    // MLIR's registry of passes has no lock.
    static PASSES: Once = Once::new();
    PASSES.call_once(|| {
        register_transform_passes();
        NAMES.register();
    });
    let mut registry = Registry::new();
    registry.add_upstream();
    registry.add(&[&OWN]);
    OwnedContext::new(&registry)
}

fn messages(said: &[Diagnostic]) -> Vec<&str> {
    said.iter().map(|diagnostic| diagnostic.message.as_str()).collect()
}

#[test]
fn a_module_lives_in_a_context_and_is_parsed_printed_and_read() {
    let context = context();
    let text = "%0 = arith.constant 1 : i32\n%1 = own.times %0 by 3 : i32";
    let module = OwnedModule::parse(context.handle(), text, "here.mlir").expect("parsed");
    let ops: Vec<Op<'_>> = module.body().ops().collect();
    assert_eq!(Times::cast(ops[1]).expect("one of ours").count(), 3);
    assert_eq!(ops[1].loc().position(), Some(("here.mlir".to_owned(), 2, 6)));
    let again =
        OwnedModule::parse(context.handle(), &module.to_string(), "").expect("what is printed parses");
    assert_eq!(again.to_string(), module.to_string());
    assert_eq!(OwnedModule::new(context.handle().unknown_loc()).to_string(), "module {\n}\n");
}

#[test]
fn what_is_wrong_is_a_value_with_its_place() {
    let context = context();
    let mut said = Vec::new();
    let inputs: [&[u8]; 4] = [
        b"%0 = arith.constant 1 : i32\n%1 = own.times %2 by 3 : i32",
        b"ML\xefR\x01",
        b"%0 = own.none",
        b"\xff",
    ];
    for input in inputs {
        let parse =
            || OwnedModule::parse(context.handle(), input, "wrong.mlir").map(|module| module.to_string());
        assert!(diagnostics::during(context.handle(), |diagnostic| said.push(diagnostic), parse).is_err());
    }
    assert!(said.len() >= inputs.len() && said.iter().all(|one| one.severity == Severity::Error), "{said:?}");
    assert_eq!((said[0].range.file.as_str(), said[0].range.line), ("wrong.mlir", 2));
    assert!(said[1].message.starts_with("wrong.mlir: "), "{said:?}");
    assert!(said[2].to_string().starts_with("wrong.mlir:1:"), "{said:?}");
}

#[test]
fn pass_managers_run_hosted_passes_with_lists_and_mlirs_own() {
    let mut context = context();
    // One function after the other, and several at once: what is said is in the order of the functions.
    for several in [false, true] {
        context.set_threads(several);
        let text = "func.func @one() { %0 = arith.constant 1 : i32 return } func.func @two() { return }";
        let mut module = OwnedModule::parse(context.handle(), text, "").expect("parsed");
        let mut passes = PassManager::new(context.handle());
        passes.add("func.func(canonicalize)").expect("MLIR's");
        passes.add("func.func(own-names{prefixes=x,y})").expect("ours");
        let mut said = Vec::new();
        let run = || passes.run(&mut module);
        diagnostics::during(context.handle(), |one| said.push(one), run).expect("nothing fails");
        assert_eq!(messages(&said), ["xy\"one\"", "xy\"two\""]);
        assert!(!module.to_string().contains("arith"), "{module}");
        let printed = format!("{passes:?}");
        assert!(printed.starts_with("builtin.module(func.func(canonicalize{"), "{printed}");
        assert!(printed.ends_with("own-names{prefixes={x,y}}))"), "{printed}");
    }
}

#[test]
fn a_pass_that_fails_says_so_once() {
    let context = context();
    let text = "func.func @stop() { return }";
    let mut module = OwnedModule::parse(context.handle(), text, "f.mlir").expect("parsed");
    let mut passes =
        PassManager::parse(context.handle(), "builtin.module(func.func(own-names))").expect("known");
    let mut said = Vec::new();
    assert!(diagnostics::during(context.handle(), |one| said.push(one), || passes.run(&mut module)).is_err());
    assert_eq!(messages(&said), ["'func.func' op stops here"]);
    assert_eq!((said[0].range.file.as_str(), said[0].range.line), ("f.mlir", 1));
    // Another context's operation is refused.
    let elsewhere = self::context();
    let mut other = OwnedModule::new(elsewhere.handle().unknown_loc());
    let mut said = Vec::new();
    assert!(
        diagnostics::during(elsewhere.handle(), |one| said.push(one), || passes.run(&mut other)).is_err()
    );
    assert!(messages(&said)[0].contains("another context"), "{said:?}");
    let wrong = PassManager::parse(context.handle(), "builtin.module(no-such-pass)").expect_err("no pass");
    assert!(wrong.contains("no-such-pass"), "{wrong}");
    let wrong = PassManager::new(context.handle()).add_pass(&NAMES, "suffixes=x").expect_err("no option");
    assert!(!wrong.is_empty());
}

#[test]
fn the_last_handler_is_asked_until_it_goes() {
    let context = context();
    let at = context.handle().unknown_loc();
    let collect = || {
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&said);
        (said, move |one: Diagnostic| sink.lock().expect("nobody panics").push(one.message))
    };
    let ((outer, outer_sink), (inner, inner_sink)) = (collect(), collect());
    let _outer = Handler::attach(context.handle(), outer_sink);
    at.warning("one");
    {
        let _inner = Handler::attach(context.handle(), inner_sink);
        at.warning("two");
    }
    at.warning("three");
    assert_eq!(*outer.lock().expect("nobody panics"), ["one", "three"]);
    assert_eq!(*inner.lock().expect("nobody panics"), ["two"]);
    // A sink that panics ends nothing, and the handler before it is back afterwards.
    diagnostics::during(context.handle(), |_| panic!("in a test"), || at.warning("four"));
    at.warning("five");
    assert_eq!(*outer.lock().expect("nobody panics"), ["one", "three", "five"]);
}
