use super::super::assign::Carried;
use super::*;
use crate::ir_util::operations_in_dominance_order;
use crate::machine::Machine;
use crate::testing::Session;

/// The names of what is rematerialized in a function of this body, `%p` pointers in `#a`, `%q` and `%r` in `#b`, users first.
fn rematerialized(body: &str) -> Vec<String> {
    let session = Session::new(&format!(
        "tt.func @f(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %r: tensor<64x64x!tt.ptr<f32>, #b>) {{
           %x = tt.load %p {{isVolatile = true}} : tensor<64x64x!tt.ptr<f32>, #a>
           {body}
           tt.return
         }}"
    ));
    let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
    let ops = operations_in_dominance_order(session.module());
    let assignment = Assignment::new(&ops, Carried::Decided, &layouts).map_err(|err| err.1).expect("layouts");
    let mut planner = Planner::new(session.module(), &layouts);
    let wanted = layout_of(
        session
            .module()
            .region(0)
            .first_block()
            .unwrap()
            .first()
            .unwrap()
            .region(0)
            .first_block()
            .unwrap()
            .arg(1),
    );
    let rematerialized = rematerialize(&ops, &assignment, &mut planner, &Said::new(false));
    assert!(
        rematerialized.iter().all(|(value, layout)| Some(*layout) == wanted && layout_of(*value) != wanted)
    );
    rematerialized.iter().map(|(value, _)| value.def_op().expect("an operation").name().to_owned()).collect()
}

const A: &str = "tensor<64x64xf32, #a>";
const TO_B: &str = "tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>";
const PTR_A: &str = "tensor<64x64x!tt.ptr<f32>, #a>";
const PTR_B: &str = "tensor<64x64x!tt.ptr<f32>, #b>";

/// Two values of what was loaded, both wanted in `#b`.
fn two_values() -> String {
    format!(
        "%n = arith.truncf %x : {A} to tensor<64x64xf16, #a>
         %big = arith.extf %n : tensor<64x64xf16, #a> to {A}
         %small = arith.subf %x, %big : {A}
         %0 = ttg.convert_layout %big : {TO_B}
         %1 = ttg.convert_layout %small : {TO_B}
         tt.store %q, %0 : {PTR_B}"
    )
}

#[test]
fn what_all_uses_want_elsewhere_is_computed_there() {
    let rematerialized = rematerialized(&format!("{}\ntt.store %r, %1 : {PTR_B}", two_values()));
    assert_eq!(rematerialized, ["arith.subf", "arith.extf", "arith.truncf"]);
}

#[test]
fn a_use_that_wants_the_value_where_it_is_keeps_it_there() {
    let body = format!("{}\ntt.store %r, %1 : {PTR_B}\ntt.store %p, %big : {PTR_A}", two_values());
    let rematerialized = rematerialized(&body);
    assert!(!rematerialized.contains(&"arith.extf".to_owned()), "{rematerialized:?}");
}

#[test]
fn one_value_that_is_wanted_elsewhere_is_no_reason() {
    // Converting before or behind is the same.
    let body = format!(
        "%y = arith.mulf %x, %x : {A}\n%0 = ttg.convert_layout %y : {TO_B}\ntt.store %q, %0 : {PTR_B}"
    );
    assert_eq!(rematerialized(&body), [""; 0]);
}

#[test]
fn conversions_of_fewer_bytes_are_found_in_between() {
    // Behind the cast to 16 bits there is half to convert, before it all.
    let body = format!(
        "%n = arith.truncf %x : {A} to tensor<64x64xf16, #a>
         %y = arith.extf %n : tensor<64x64xf16, #a> to {A}
         %s = arith.mulf %y, %y : {A}
         %t = arith.addf %y, %y : {A}
         %0 = ttg.convert_layout %s : {TO_B}
         %1 = ttg.convert_layout %t : {TO_B}
         tt.store %q, %0 : {PTR_B}
         tt.store %r, %1 : {PTR_B}"
    );
    let mut rematerialized = rematerialized(&body);
    rematerialized.sort();
    assert_eq!(rematerialized, ["arith.addf", "arith.extf", "arith.mulf"]);
}

#[test]
fn loads_and_what_has_other_results_stay() {
    let body = format!(
        "%0 = ttg.convert_layout %x : {TO_B}
         %1 = ttg.convert_layout %x : {TO_B}
         tt.store %q, %0 : {PTR_B}
         tt.store %r, %1 : {PTR_B}"
    );
    assert_eq!(rematerialized(&body), [""; 0]);
}

#[test]
fn what_is_computed_for_several_parts_is_rematerialized_with_the_last_of_them() {
    // Both sums share their terms; only one conversion is left where three would be.
    let body = format!(
        "%s = arith.mulf %x, %x : {A}
         %t = arith.addf %s, %x : {A}
         %u = arith.subf %s, %x : {A}
         %0 = ttg.convert_layout %t : {TO_B}
         %1 = ttg.convert_layout %u : {TO_B}
         tt.store %q, %0 : {PTR_B}
         tt.store %r, %1 : {PTR_B}"
    );
    let mut rematerialized = rematerialized(&body);
    rematerialized.sort();
    assert_eq!(rematerialized, ["arith.addf", "arith.mulf", "arith.subf"]);
}
