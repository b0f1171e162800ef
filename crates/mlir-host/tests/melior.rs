//! A program of melior's that uses a hosted dialect.

use melior::Context;
use melior::ir::attribute::{IntegerAttribute, StringAttribute};
use melior::ir::operation::{OperationBuilder, OperationLike as _};
use melior::ir::r#type::IntegerType;
use melior::ir::{BlockLike as _, Identifier, Location, Module, OperationRef, Type, Value};
use mlir_host::attrs::I32Attr;
use mlir_host::def::{ANY_TYPE, Effects, Speculation};
use mlir_host::driver::Registry;
use mlir_host::ir::{Attr, Op};
use mlir_host::owned::{OwnedContext, OwnedModule, PassManager};
use mlir_host::traits::Trait;
use mlir_host::{DialectDef, ir, op};

op! {
    /// Its operand, so many times.
    pub struct Times = "mel.times" {
        operands: [src: ANY_TYPE],
        results: [result: ANY_TYPE],
        attrs: [count: I32Attr],
        traits: [Trait::SAME_TYPE, Trait::InferTypes],
        format: "$src `by` $count attr-dict `:` type($src)",
        with: { effects: Effects::None, speculation: Speculation::Always },
    }
}

static MEL: DialectDef = DialectDef { ops: &[Times::DEF], ..DialectDef::new("mel") };

fn context() -> Context {
    let context = Context::new();
    let mut registry = Registry::new();
    registry.add_codegen();
    registry.add(&[&MEL]);
    registry.append_to((&context).into());
    for dialect in ["arith", "mel"] {
        assert!(ir::Context::from(&context).load(dialect));
    }
    context
}

#[test]
fn what_melior_parsed_is_read_by_typed_handles() {
    let context = context();
    let text = "%0 = arith.constant 1 : i32\n%1 = mel.times %0 by 3 : i32";
    let module = Module::parse(&context, text).expect("parsed");
    let ops: Vec<Op<'_>> = Op::from(&module).region(0).first_block().expect("a body").ops().collect();
    let times = Times::cast(ops[1]).expect("one of ours");
    assert_eq!((times.count(), times.src()), (3, ops[0].result(0)));
    // And back.
    let operation = OperationRef::from(times.op());
    assert_eq!(operation.name().as_string_ref().as_str().expect("text"), "mel.times");
    assert_eq!(Value::from(times.src()).to_string(), ops[0].result(0).to_string());
    assert_eq!(Type::from(times.src().ty()), IntegerType::new(&context, 32).into());
    assert_eq!(Op::from(operation), times.op());
    assert_eq!(ir::Block::from(module.body()), ops[0].block().expect("in the body"));
}

#[test]
fn melior_builds_hosted_operations_and_infers_their_types() {
    let context = context();
    let at = Location::unknown(&context);
    let module = Module::new(at);
    let one = module.body().append_operation(melior::dialect::arith::constant(
        &context,
        IntegerAttribute::new(IntegerType::new(&context, 32).into(), 1).into(),
        at,
    ));
    let count = Attr::int((&context).into(), 32, 5);
    let made = OperationBuilder::new("mel.times", at)
        .add_operands(&[one.result(0).expect("one").into()])
        .add_attributes(&[(Identifier::new(&context, "count"), count.into())])
        .enable_result_type_inference()
        .build()
        .expect("inferred");
    let made = module.body().append_operation(made);
    let times = Times::cast(made.into()).expect("one of ours");
    assert!(times.count() == 5 && times.result().ty().is_int(32));
    assert!(module.as_operation().verify());
    // Attributes go both ways.
    let text = StringAttribute::new(&context, "here").into();
    times.op().set_attr("note", Attr::from(text));
    assert_eq!(melior::ir::Attribute::from(times.op().attr("note").expect("set")), text);
}

#[test]
fn what_melior_owns_becomes_ours_and_goes_back() {
    let context = OwnedContext::from(context());
    let text = "%0 = arith.constant 1 : i32 %1 = mel.times %0 by 3 : i32";
    let module = OwnedModule::parse(context.handle(), text, "").expect("parsed");
    let printed = module.to_string();
    let mut module = Module::from(module);
    assert_eq!(module.as_operation().to_string(), printed);
    mlir_host::driver::register_transform_passes();
    let passes = PassManager::parse(context.handle(), "builtin.module(canonicalize)").expect("known");
    melior::pass::PassManager::from(passes).run(&mut module).expect("it does not fail");
    let module = OwnedModule::from(module);
    assert_eq!(module.body().ops().count(), 0, "{module}");
}
