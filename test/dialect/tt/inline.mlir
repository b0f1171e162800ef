// Calls of functions that are not marked `noinline` are inlined, also those
// with several blocks; unused private functions go.
//
// RUN: %ttopt %s --inline --symbol-dce | FileCheck %s

// CHECK: tt.func private @kept(
// CHECK-NOT: tt.func private
tt.func private @kept(%x: i32) -> i32 attributes {noinline = true} {
  tt.return %x : i32
}
tt.func private @gone(%x: i32) -> i32 attributes {noinline = false} {
  %0 = arith.addi %x, %x : i32
  tt.return %0 : i32
}
tt.func private @early(%x: i32, %p: !tt.ptr<i32>) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %0 = arith.cmpi slt, %x, %c0 : i32
  cf.cond_br %0, ^bb1, ^bb2
^bb1:
  tt.return %x, %c0 : i32, i32
^bb2:
  tt.store %p, %x : !tt.ptr<i32>
  tt.return %c0, %x : i32, i32
}

// CHECK-LABEL: tt.func public @kernel(
// CHECK-SAME: [[X:%arg0]]: i32
// CHECK: [[A:%.*]] = tt.call @kept([[X]])
// CHECK: [[B:%.*]] = arith.addi [[X]], [[X]]
// CHECK: cf.cond_br %{{.*}}, [[EXIT:\^bb.]]([[X]], %{{.*}} : i32, i32), ^bb
// CHECK: tt.store
// CHECK-NEXT: cf.br [[EXIT]](%{{.*}}, [[X]] : i32, i32)
// CHECK-NEXT: [[EXIT]]([[C:%.*]]: i32, [[D:%.*]]: i32):
// CHECK-NEXT: tt.return [[A]], [[B]], [[C]], [[D]]
tt.func public @kernel(%x: i32, %p: !tt.ptr<i32>) -> (i32, i32, i32, i32) {
  %0 = tt.call @kept(%x) : (i32) -> i32
  %1 = tt.call @gone(%x) : (i32) -> i32
  %2:2 = tt.call @early(%x, %p) : (i32, !tt.ptr<i32>) -> (i32, i32)
  tt.return %0, %1, %2#0, %2#1 : i32, i32, i32, i32
}
