// RUN: %ttopt %s -split-input-file --triton-combine | FileCheck %s

// CHECK-LABEL: @sum_of_product
// CHECK: tt.dot %arg0, %arg0, %arg1
// CHECK-NOT: arith.addf
tt.func @sum_of_product(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %e = arith.addf %d, %c : tensor<16x16xf32>
  tt.return %e : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @sum_of_integer_product
// CHECK: tt.dot %arg0, %arg0, %arg1
// CHECK-NOT: arith.addi
tt.func @sum_of_integer_product(%a: tensor<16x16xi8>, %c: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %d = tt.dot %a, %a, %zero : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  %e = arith.addi %c, %d : tensor<16x16xi32>
  tt.return %e : tensor<16x16xi32>
}

// -----

// CHECK-LABEL: @accumulator_in_use
// CHECK: arith.addf
tt.func @accumulator_in_use(%a: tensor<16x16xf16>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %a, %b : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %e = arith.addf %d, %c : tensor<16x16xf32>
  tt.return %e : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @wide_offsets
// CHECK: %[[SUM:.+]] = arith.addi %arg1, %arg2 : i64
// CHECK: tt.addptr %arg0, %[[SUM]]
tt.func @wide_offsets(%p: !tt.ptr<f32>, %i: i64, %j: i64) -> !tt.ptr<f32> {
  %q = tt.addptr %p, %i : !tt.ptr<f32>, i64
  %r = tt.addptr %q, %j : !tt.ptr<f32>, i64
  tt.return %r : !tt.ptr<f32>
}

// -----

// CHECK-LABEL: @constant_offsets
// CHECK: %[[SUM:.+]] = arith.constant 12 : i32
// CHECK: tt.addptr %arg0, %[[SUM]] : !tt.ptr<f32>, i32
tt.func @constant_offsets(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %four = arith.constant 4 : i32
  %eight = arith.constant 8 : i32
  %q = tt.addptr %p, %four : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %eight : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}

// -----

// The sum of two offsets of 32 bits may not fit 32 bits.
// CHECK-LABEL: @narrow_offsets
// CHECK-COUNT-2: tt.addptr
// CHECK-LABEL: @large_constants
// CHECK-COUNT-2: tt.addptr
tt.func @narrow_offsets(%p: !tt.ptr<f32>, %i: i32, %j: i32) -> !tt.ptr<f32> {
  %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %j : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}
tt.func @large_constants(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %most = arith.constant 2147483647 : i32
  %one = arith.constant 1 : i32
  %q = tt.addptr %p, %most : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %one : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}

// -----

// CHECK-LABEL: @select_of_load
// CHECK: %[[X:.+]] = tt.load %arg0, %arg1, %arg2
// CHECK-NEXT: tt.return %[[X]]
tt.func @select_of_load(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %m, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}

// -----

// By a scalar that all elements are masked with.
// CHECK-LABEL: @select_by_scalar
// CHECK: tt.load %arg0, %{{.+}}, %arg2
// CHECK-NOT: arith.select
tt.func @select_by_scalar(%p: tensor<64x!tt.ptr<f32>>, %c: i1, %other: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %m = tt.splat %c : i1 -> tensor<64xi1>
  %x = tt.load %p, %m, %zero : tensor<64x!tt.ptr<f32>>
  %y = arith.select %c, %x, %other : tensor<64xf32>
  tt.return %y : tensor<64xf32>
}

// -----

// Another mask; a value that is not there yet; a load with other uses.
// CHECK-LABEL: @other_mask
// CHECK: arith.select
// CHECK-LABEL: @value_from_later
// CHECK: arith.select
// CHECK-LABEL: @other_uses
// CHECK: arith.select
tt.func @other_mask(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %n: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %n, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}
tt.func @value_from_later(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %later = arith.addf %other, %other : tensor<64xf32>
  %y = arith.select %m, %x, %later : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}
tt.func @other_uses(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %m, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %x, %y : tensor<64xf32>, tensor<64xf32>
}
