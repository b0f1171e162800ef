// RUN: poly-opt %s -split-input-file --poly-to-arith | FileCheck %s

// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[P0:.*]]: i32, %[[P1:.*]]: i32, %[[X:.*]]: i32) -> i32
// CHECK-DAG: %[[C5:.*]] = arith.constant 5 : i32
// CHECK-DAG: %[[C0:.*]] = arith.constant 0 : i32
// CHECK: %[[S0:.*]] = arith.addi %[[P0]], %[[C5]]
// CHECK: %[[S1:.*]] = arith.addi %[[P1]], %[[C0]]
// CHECK: %[[M:.*]] = arith.muli %[[S1]], %[[X]]
// CHECK: %[[Y:.*]] = arith.addi %[[M]], %[[S0]]
// CHECK: return %[[Y]] : i32
func.func @f(%p: !poly.poly<2>, %x: i32) -> i32 {
  %q = poly.constant [5] : !poly.poly<2>
  %s = poly.add %p, %q : !poly.poly<2>
  %y = poly.eval %s at %x : !poly.poly<2>
  return %y : i32
}

// -----

// CHECK: func.func private @g(i1, i32, i32) -> (i32, i32)
func.func private @g(i1, !poly.poly<2>) -> !poly.poly<2>
// CHECK-LABEL: func.func @calls(
// CHECK-SAME: %[[B:.*]]: i1, %[[P0:.*]]: i32, %[[P1:.*]]: i32) -> (i32, i32)
// CHECK: %[[R:.*]]:2 = call @g(%[[B]], %[[P0]], %[[P1]])
// CHECK: return %[[R]]#0, %[[R]]#1 : i32, i32
func.func @calls(%b: i1, %p: !poly.poly<2>) -> !poly.poly<2> {
  %r = call @g(%b, %p) : (i1, !poly.poly<2>) -> !poly.poly<2>
  return %r : !poly.poly<2>
}
