use super::super::assign::Carried;
use super::super::plan::Planner;
use super::super::said::Said;
use super::*;
use crate::ir_util::operations_in_dominance_order;
use crate::machine::{Layouts, Machine};
use crate::testing::Session;

/// Carries the tensor that `find` finds in layout `#w` too, and gives it so to the call of `@use`.
fn carried(functions: &str, find: impl Fn(&Session) -> Value<'_>) -> Session {
    let text = format!(
        "tt.func private @use(tensor<512xf32, #v>)\ntt.func private @wanted(tensor<512xf32, #w>)\n{functions}"
    );
    let session = Session::new(&text);
    {
        let module = session.module();
        let layouts = Layouts::new(session.context(), Machine::of(module).expect("a machine"));
        let ops = operations_in_dominance_order(module);
        let mut assignment =
            Assignment::new(&ops, Carried::Kept, &layouts).map_err(|err| err.1).expect("layouts");
        let wanted = session.all("tt.func")[1].region(0);
        assert!(wanted.is_empty());
        let ty = session.all("tt.func")[1].attr("function_type").and_then(Attr::as_type).expect("a type");
        let layout = ty.as_function().and_then(|ty| ty.inputs()[0].as_tensor()?.encoding()).expect("#w");
        let user = session.all("tt.call")[0];
        let request = Request { value: find(&session), layout, moves: false };
        let mut pass = Materialize::new(module, Planner::new(module, &layouts), Said::new(false).into());
        let made = pass.carry(request, user, &mut assignment).expect("to carry");
        assert_eq!(layout_of(made), Some(layout));
        user.set_operand(0, made);
        user.set_attr("callee", Attr::symbol(session.context(), "wanted"));
        pass.finish();
    }
    session.verify();
    session
}

/// Where the conversions stand: the names of the operations around them.
fn places(session: &Session) -> Vec<&str> {
    let conversions = session.all("ttg.convert_layout");
    conversions.into_iter().map(|op| op.parent().expect("a parent").name()).collect()
}

#[test]
fn a_loop_gets_one_iter_arg_more() {
    let session = carried(
        "tt.func @f(%x: tensor<512xf32, #v>, %n: i32) -> tensor<512xf32, #v> {
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<512xf32, #v>) : i32 {
             tt.call @use(%t) : (tensor<512xf32, #v>) -> ()
             %m = arith.mulf %t, %t : tensor<512xf32, #v>
             scf.yield %m : tensor<512xf32, #v>
           }
           tt.return %r : tensor<512xf32, #v>
         }",
        |session| session.all("scf.for")[0].region(0).first_block().unwrap().arg(1),
    );
    let (around, end) = (session.all("scf.for")[0], session.all("scf.yield")[0]);
    assert_eq!((around.num_results(), end.num_operands()), (2, 2), "{}", session.module());
    // The same value goes into the loop and around it, in both layouts.
    let body = around.region(0).first_block().unwrap();
    for (initial, next) in [(around.operand(3), end.operand(0)), (around.operand(4), end.operand(1))] {
        assert_eq!(initial.ty(), next.ty());
    }
    assert_eq!(body.arg(2).ty(), around.operand(4).ty());
    assert_ne!(body.arg(1).ty(), body.arg(2).ty());
    // What was returned still is.
    assert_eq!(session.all("tt.return")[0].operand(0), around.result(0));
}

#[test]
fn a_branch_gets_one_result_more_from_both_sides() {
    let session = carried(
        "tt.func @f(%x: tensor<512xf32, #v>, %y: tensor<512xf32, #v>, %c: i1) -> tensor<512xf32, #v> {
           %r = scf.if %c -> (tensor<512xf32, #v>) {
             scf.yield %x : tensor<512xf32, #v>
           } else {
             scf.yield %y : tensor<512xf32, #v>
           }
           tt.call @use(%r) : (tensor<512xf32, #v>) -> ()
           tt.return %r : tensor<512xf32, #v>
         }",
        |session| session.value("scf.if"),
    );
    let branch = session.all("scf.if")[0];
    assert_eq!(branch.num_results(), 2);
    for end in session.all("scf.yield") {
        let made = end.operand(1).def_op().expect("a conversion");
        assert_eq!((made.name(), made.operand(0)), ("ttg.convert_layout", end.operand(0)));
    }
    assert_eq!(session.all("tt.return")[0].operand(0), branch.result(0));
}

#[test]
fn a_basic_block_gets_one_argument_more_from_all_that_branch_there() {
    let session = carried(
        "tt.func @f(%x: tensor<512xf32, #v>, %y: tensor<512xf32, #v>, %n: i32, %c: i1) {
           cf.cond_br %c, ^one(%n : i32), ^two(%x, %n : tensor<512xf32, #v>, i32)
         ^one(%k: i32):
           cf.br ^two(%y, %k : tensor<512xf32, #v>, i32)
         ^two(%t: tensor<512xf32, #v>, %m: i32):
           tt.call @use(%t) : (tensor<512xf32, #v>) -> ()
           tt.return
         }",
        |session| session.all("tt.call")[0].operand(0),
    );
    let (condition, branch) = (session.all("cf.cond_br")[0], session.all("cf.br")[0]);
    assert_eq!((condition.num_operands(), branch.num_operands()), (5, 3), "{}", session.module());
    let sizes = condition.attr("operandSegmentSizes").and_then(Attr::as_i32_array);
    assert_eq!(sizes, Some(vec![1, 1, 3]));
    for (last, of) in [(condition.operand(4), condition.operand(2)), (branch.operand(2), branch.operand(0))] {
        assert_eq!(last.def_op().map(|op| (op.name(), op.operand(0))), Some(("ttg.convert_layout", of)));
    }
}

#[test]
fn a_loop_around_carries_what_the_inner_one_asks_for() {
    let session = carried(
        "tt.func @f(%x: tensor<512xf32, #v>, %n: i32) {
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<512xf32, #v>) : i32 {
             %s = scf.for %j = %c0 to %n step %c1 iter_args(%u = %t) -> (tensor<512xf32, #v>) : i32 {
               tt.call @use(%u) : (tensor<512xf32, #v>) -> ()
               scf.yield %u : tensor<512xf32, #v>
             }
             scf.yield %s : tensor<512xf32, #v>
           }
           tt.return
         }",
        |session| session.all("tt.call")[0].operand(0),
    );
    assert!(session.all("scf.for").iter().all(|op| op.num_results() == 2), "{}", session.module());
    // Nothing is computed in the loops, so one conversion before them is all.
    assert_eq!(places(&session), ["tt.func"]);
}

#[test]
fn a_loop_with_a_condition_carries_it_through_both_regions() {
    let session = carried(
        "tt.func @f(%x: tensor<512xf32, #v>, %c: i1) -> tensor<512xf32, #v> {
           %r = scf.while (%t = %x) : (tensor<512xf32, #v>) -> tensor<512xf32, #v> {
             scf.condition(%c) %t : tensor<512xf32, #v>
           } do {
           ^bb0(%u: tensor<512xf32, #v>):
             tt.call @use(%u) : (tensor<512xf32, #v>) -> ()
             scf.yield %u : tensor<512xf32, #v>
           }
           tt.return %r : tensor<512xf32, #v>
         }",
        |session| session.all("tt.call")[0].operand(0),
    );
    let around = session.all("scf.while")[0];
    assert_eq!((around.num_operands(), around.num_results()), (2, 2), "{}", session.module());
    assert_eq!(
        (session.all("scf.condition")[0].num_operands(), session.all("scf.yield")[0].num_operands()),
        (3, 2)
    );
    assert_eq!(places(&session), ["tt.func"]);
}
