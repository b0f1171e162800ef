use super::*;
use crate::ir_util::operations_in_dominance_order;
use crate::testing::Session;

/// Whether anything was removed from these functions, and what is left.
fn removed(functions: &str) -> (bool, Session) {
    let session = Session::new(functions);
    let ops = operations_in_dominance_order(session.module());
    let removed = remove_dead_carried(session.module(), &ops).expect("a module");
    session.verify();
    // Once is enough.
    let ops = operations_in_dominance_order(session.module());
    assert!(!remove_dead_carried(session.module(), &ops).expect("a module"), "{}", session.module());
    (removed, session)
}

const USE: &str = "tt.func private @use(i32)\n";

#[test]
fn an_iter_arg_that_only_makes_its_next_value_goes() {
    let (removed, session) = removed(
        "tt.func @f(%n: i32) -> i32 {
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%dead = %n, %live = %c0) -> (i32, i32) : i32 {
             %d = arith.muli %dead, %n : i32
             %l = arith.addi %live, %i : i32
             scf.yield %d, %l : i32, i32
           }
           tt.return %r#1 : i32
         }",
    );
    assert!(removed);
    assert_eq!(session.all("scf.for")[0].num_results(), 1);
    assert_eq!((session.count("arith.muli"), session.count("arith.addi")), (0, 1));
    // The other result moved to the first place.
    assert_eq!(session.all("tt.return")[0].operand(0), session.all("scf.for")[0].result(0));
}

#[test]
fn what_an_effect_needs_is_live_through_other_iter_args() {
    // `b` is used by a call, `a` becomes `b` in the next iteration.
    let text = "tt.func @f(%n: i32) {
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %n, %b = %c0) -> (i32, i32) : i32 {
             tt.call @use(%b) : (i32) -> ()
             %next = arith.addi %a, %i : i32
             scf.yield %next, %a : i32, i32
           }
           tt.return
         }";
    let (removed, session) = removed(&format!("{USE}{text}"));
    assert!(!removed, "{}", session.module());
    assert_eq!(session.all("scf.for")[0].num_results(), 2);
}

#[test]
fn volatile_loads_stay_and_others_go() {
    for (attribute, left) in [("", 0), (" {isVolatile = true}", 1)] {
        let (removed, session) = removed(&format!(
            "tt.func @f(%n: i32, %p: !tt.ptr<i32>) {{
               %c0 = arith.constant 0 : i32
               %c1 = arith.constant 1 : i32
               %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %n) -> (i32) : i32 {{
                 %x = tt.load %p{attribute} : !tt.ptr<i32>
                 %y = arith.addi %a, %x : i32
                 scf.yield %y : i32
               }}
               tt.return
             }}"
        ));
        assert!(removed);
        assert_eq!(
            (session.count("tt.load"), session.count("arith.addi")),
            (left, 0),
            "{}",
            session.module()
        );
    }
}

#[test]
fn both_branches_pass_less() {
    let text = "tt.func @f(%n: i32, %c: i1) -> i32 {
           %r:2 = scf.if %c -> (i32, i32) {
             %x = arith.muli %n, %n : i32
             scf.yield %x, %n : i32, i32
           } else {
             %y = arith.subi %n, %n : i32
             scf.yield %y, %n : i32, i32
           }
           tt.return %r#1 : i32
         }";
    let (removed, session) = removed(text);
    assert!(removed);
    assert_eq!(session.all("scf.if")[0].num_results(), 1);
    assert_eq!((session.count("arith.muli"), session.count("arith.subi")), (0, 0));
    assert!(session.all("scf.yield").iter().all(|end| end.num_operands() == 1));
}

#[test]
fn arguments_of_basic_blocks_go_with_the_operands_of_branches() {
    let text = "tt.func @f(%n: i32, %c: i1) -> i32 {
           %x = arith.muli %n, %n : i32
           cf.cond_br %c, ^one(%x, %n : i32, i32), ^two(%n, %x : i32, i32)
         ^one(%a: i32, %b: i32):
           cf.br ^two(%b, %a : i32, i32)
         ^two(%p: i32, %q: i32):
           tt.return %p : i32
         }";
    let (removed, session) = removed(text);
    assert!(removed);
    assert_eq!(session.count("arith.muli"), 0, "{}", session.module());
    assert_eq!((session.all("cf.cond_br")[0].num_operands(), session.all("cf.br")[0].num_operands()), (3, 1));
}

#[test]
fn a_condition_is_live_and_what_it_passes_on_is_not() {
    let text = "tt.func @f(%n: i32) -> i32 {
           %c0 = arith.constant 0 : i32
           %r:2 = scf.while (%a = %n, %d = %n) : (i32, i32) -> (i32, i32) {
             %go = arith.cmpi sgt, %a, %c0 : i32
             scf.condition(%go) %a, %d : i32, i32
           } do {
           ^bb0(%a: i32, %d: i32):
             %b = arith.subi %a, %n : i32
             %e = arith.muli %d, %n : i32
             scf.yield %b, %e : i32, i32
           }
           tt.return %r#0 : i32
         }";
    let (removed, session) = removed(text);
    assert!(removed);
    assert_eq!((session.count("arith.muli"), session.count("arith.subi")), (0, 1));
    assert_eq!(session.all("scf.while")[0].num_results(), 1);
}

#[test]
fn an_outer_loop_keeps_what_an_inner_one_needs() {
    let text = "tt.func @f(%n: i32) {
           %c0 = arith.constant 0 : i32
           %c1 = arith.constant 1 : i32
           %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %n, %b = %n) -> (i32, i32) : i32 {
             %s:2 = scf.for %j = %c0 to %n step %c1 iter_args(%x = %a, %y = %b) -> (i32, i32) : i32 {
               tt.call @use(%x) : (i32) -> ()
               %z = arith.muli %y, %n : i32
               scf.yield %x, %z : i32, i32
             }
             scf.yield %s#0, %s#1 : i32, i32
           }
           tt.return
         }";
    let (removed, session) = removed(&format!("{USE}{text}"));
    assert!(removed);
    assert_eq!(session.count("arith.muli"), 0);
    assert!(session.all("scf.for").iter().all(|op| op.num_results() == 1), "{}", session.module());
}
