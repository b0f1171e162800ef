use super::*;
use crate::machine::Machine;
use crate::testing::Session;

/// How the operand of the only conversion of a function of this body is had in its layout; the body is given a volatile
/// load `%x` in `#v`. The conversion is taken to be of the input: it does not count as a use.
fn how(body: &str) -> (How, Option<f64>) {
    let session = Session::new(&format!(
        "tt.func private @use(tensor<512xf32, #w>)
         tt.func @f(%p: tensor<512x!tt.ptr<f32>, #v>, %n: i32, %s: f32, %c: i1) {{
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %x = tt.load %p {{isVolatile = true}} : tensor<512x!tt.ptr<f32>, #v>
           {body}
           tt.return
         }}"
    ));
    let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
    let conversion = session.value("ttg.convert_layout").def_op().expect("a conversion");
    let layout = layout_of(conversion.result(0)).expect("a layout");
    let request = Request { value: conversion.operand(0), layout, moves: true };
    let mut planner = Planner::new(session.module(), &layouts);
    let plan = planner.plan(request);
    // A plan is made once, and is the same by itself.
    assert_eq!(planner.plan(request), plan);
    planner.forget();
    assert_eq!(planner.plan(request), plan);
    plan
}

const TO: &str = "tensor<512xf32, #v> -> tensor<512xf32, #w>";
const V: &str = "tensor<512xf32, #v>";

/// Converts `%y` and uses it.
fn used() -> String {
    format!("%w = ttg.convert_layout %y : {TO}\ntt.call @use(%w) : (tensor<512xf32, #w>) -> ()")
}

#[test]
fn what_costs_nothing_is_computed_again() {
    let (how, cost) = how(&format!("%y = tt.splat %s : f32 -> {V}\n{}", used()));
    assert_eq!(how, How::Copy);
    assert!(cost.is_some_and(|cost| cost <= 0.0), "{cost:?}");
}

#[test]
fn what_must_happen_once_is_converted() {
    let (how, cost) =
        how(&format!("%w = ttg.convert_layout %x : {TO}\ntt.call @use(%w) : (tensor<512xf32, #w>) -> ()"));
    assert_eq!(how, How::Convert);
    assert!(cost.is_some_and(|cost| cost > 0.0), "{cost:?}");
}

#[test]
fn the_narrow_side_of_a_cast_is_converted() {
    let body = format!(
        "%h = arith.truncf %x : {V} to tensor<512xf16, #v>\n%y = arith.extf %h : tensor<512xf16, #v> to {V}"
    );
    let narrow = how(&format!("{body}\n{}", used()));
    let wide =
        how(&format!("%w = ttg.convert_layout %x : {TO}\ntt.call @use(%w) : (tensor<512xf32, #w>) -> ()"));
    assert_eq!(narrow.0, How::Copy);
    assert!(narrow.1 <= wide.1, "{narrow:?} {wide:?}");
}

#[test]
fn a_loop_carries_what_its_iterations_can_have_at_once() {
    let looped = |next: &str| {
        how(&format!(
            "%zero = tt.splat %s : f32 -> {V}
             %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %zero) -> ({V}) : i32 {{
               {}
               {next}
               scf.yield %next : {V}
             }}",
            used()
        ))
    };
    // Both what goes in and what goes around are made where they are wanted.
    let splat = looped(&format!("%f = arith.sitofp %i : i32 to f32\n%next = tt.splat %f : f32 -> {V}"));
    assert_eq!(splat.0, How::Carry);
    // Here a conversion stays in the loop either way.
    let loaded = looped("%next = tt.load %p {isVolatile = true} : tensor<512x!tt.ptr<f32>, #v>");
    assert!(loaded.1 > splat.1, "{loaded:?} {splat:?}");
    // A value that only goes around needs its own plan: it is taken to cost nothing while it is made.
    assert_eq!(looped("%next = arith.mulf %y, %y : tensor<512xf32, #v>").0, How::Carry);
}

#[test]
fn a_conversion_in_a_loop_costs_more_than_one_before_it() {
    let convert =
        format!("%w = ttg.convert_layout %x : {TO}\ntt.call @use(%w) : (tensor<512xf32, #w>) -> ()");
    let before = how(&convert);
    let made = format!("%y = tt.load %p {{isVolatile = true}} : tensor<512x!tt.ptr<f32>, #v>\n{}", used());
    let inside = how(&format!("scf.for %i = %c0 to %n step %c1 : i32 {{\n{made}\n}}"));
    // What is made before the loop is converted there, wherever it is used.
    let outside = how(&format!("scf.for %i = %c0 to %n step %c1 : i32 {{\n{convert}\n}}"));
    assert_eq!(before, outside);
    assert!(inside.1 > before.1, "{inside:?} {before:?}");
}

#[test]
fn a_value_has_its_own_layout() {
    let same = format!("%w = ttg.convert_layout %x : {V} -> {V}");
    assert_eq!(how(&same), (How::Have, Some(0.0)));
}
