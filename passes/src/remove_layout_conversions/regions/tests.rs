use super::super::assign::Carried;
use super::*;
use crate::ir_util::operations_in_dominance_order;
use crate::machine::Machine;
use crate::testing::Session;

/// The names of what moves in a function of this body, all of it to `#b`. `%x` and `%h` are in `#a`, `%y` is in `#b`, and
/// stay there; `%at` points to one number.
fn moved(body: &str) -> Vec<String> {
    let session = Session::new(&format!(
        "tt.func @f(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>,
                    %r: tensor<64x64x!tt.ptr<f16>, #a>, %at: !tt.ptr<f32>, %c: i1) {{
           %x = tt.load %p {{isVolatile = true}} : tensor<64x64x!tt.ptr<f32>, #a>
           %h = tt.load %r {{isVolatile = true}} : tensor<64x64x!tt.ptr<f16>, #a>
           %y = tt.load %q {{isVolatile = true}} : tensor<64x64x!tt.ptr<f32>, #b>
           {body}
           tt.return
         }}"
    ));
    let layouts = Layouts::new(session.context(), Machine::of(session.module()).expect("a machine"));
    let ops = operations_in_dominance_order(session.module());
    let assignment = Assignment::new(&ops, Carried::Decided, &layouts).map_err(|err| err.1).expect("layouts");
    let mut planner = Planner::new(session.module(), &layouts);
    let wanted =
        ops.iter().rev().find(|op| StoreOp::cast(**op).is_some()).and_then(|op| layout_of(op.operand(0)));
    let homes = homes(&ops, &assignment, &layouts);
    let moves = moves(&ops, &assignment, &homes, &mut planner, (false, None));
    assert!(moves.iter().all(|to| Some(to.layout) == wanted));
    moves.iter().map(|to| to.op.name().to_owned()).collect()
}

const A: &str = "tensor<64x64xf32, #a>";
const TO_B: &str = "tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>";
const PTR_A: &str = "tensor<64x64x!tt.ptr<f32>, #a>";
const PTR_B: &str = "tensor<64x64x!tt.ptr<f32>, #b>";

#[test]
fn loads_move_with_what_is_computed_from_them() {
    // An exponential must not be computed twice, but elsewhere it may be.
    let body = format!(
        "%s = tt.splat %at : !tt.ptr<f32> -> {PTR_A}
         %l = tt.load %s : {PTR_A}
         %e = math.exp %l : {A}
         %0 = ttg.convert_layout %e : {TO_B}
         tt.store %q, %0 : {PTR_B}"
    );
    assert_eq!(moved(&body), ["tt.load", "math.exp"]);
}

#[test]
fn what_cannot_move_is_converted_where_that_costs_least() {
    // Half as many bytes before the exponential as behind it.
    let body = format!(
        "%w = arith.extf %h : tensor<64x64xf16, #a> to {A}
         %e = math.exp %w : {A}
         %0 = ttg.convert_layout %e : {TO_B}
         tt.store %q, %0 : {PTR_B}"
    );
    assert_eq!(moved(&body), ["arith.extf", "math.exp"]);
}

#[test]
fn results_of_branches_move() {
    let body = format!(
        "%r0 = scf.if %c -> ({A}) {{
           scf.yield %x : {A}
         }} else {{
           %e = math.exp %y : tensor<64x64xf32, #b>
           %k = ttg.convert_layout %e : tensor<64x64xf32, #b> -> {A}
           scf.yield %k : {A}
         }}
         %0 = ttg.convert_layout %r0 : {TO_B}
         tt.store %q, %0 : {PTR_B}"
    );
    assert_eq!(moved(&body), ["scf.if"]);
}

#[test]
fn nothing_moves_for_nothing() {
    let kept = format!("%e = math.exp %x : {A}\ntt.store %p, %e : {PTR_A}\ntt.store %q, %y : {PTR_B}");
    assert_eq!(moved(&kept), [""; 0]);
    // Converting before or behind is the same.
    let same =
        format!("%e = math.exp %x : {A}\n%0 = ttg.convert_layout %e : {TO_B}\ntt.store %q, %0 : {PTR_B}");
    assert_eq!(moved(&same), [""; 0]);
}
