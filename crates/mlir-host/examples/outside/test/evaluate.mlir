// RUN: poly-opt %s | FileCheck %s --check-prefix=SAME
// RUN: poly-opt %s --poly-evaluate --canonicalize | FileCheck %s
// RUN: poly-opt %s --poly-evaluate=only=8,16 | FileCheck %s --check-prefix=ONLY

// SAME: %[[P:.*]] = poly.constant [1, 2, 3] : !poly.poly<4>
// SAME: %[[Q:.*]] = poly.add %[[P]], %[[P]] : !poly.poly<4>
// SAME: poly.eval %[[Q]] at %{{.*}} : !poly.poly<4>
// CHECK-LABEL: func.func @f(
// CHECK-SAME: %[[X:.*]]: i32) -> i32
// CHECK-NOT: poly.
// CHECK: %[[A:.*]] = arith.muli %[[X]], %c6_i32
// CHECK: %[[B:.*]] = arith.addi %[[A]], %c4_i32
// CHECK: %[[C:.*]] = arith.muli %[[B]], %[[X]]
// CHECK: arith.addi %[[C]], %c2_i32
// ONLY-LABEL: func.func @f(
// ONLY: poly.eval
// ONLY-LABEL: func.func @g(
// ONLY-NOT: poly.eval
func.func @f(%x: i32) -> i32 {
  %p = poly.constant [1, 2, 3] : !poly.poly<4>
  %q = poly.add %p, %p : !poly.poly<4>
  %y = poly.eval %q at %x : !poly.poly<4>
  return %y : i32
}

func.func @g(%x: i32) -> i32 {
  %p = poly.constant [7] : !poly.poly<8>
  %y = poly.eval %p at %x : !poly.poly<8>
  return %y : i32
}
