// RUN: %ttopt %s -split-input-file --tritongpu-combine-tensor-select-and-if | FileCheck %s

// CHECK-LABEL: @combined
// CHECK-SAME: (%[[C:.+]]: i1, %[[X:.+]]: tensor<64xf32>, %[[Y:.+]]: tensor<64xf32>, %[[N:.+]]: i32)
// CHECK-NOT: arith.select
// CHECK: %[[R:.+]]:2 = scf.if %[[C]] -> (i32, tensor<64xf32>) {
// CHECK: scf.yield %{{.+}}, %[[X]] : i32, tensor<64xf32>
// CHECK: } else {
// CHECK: scf.yield %[[N]], %[[Y]] : i32, tensor<64xf32>
// CHECK: } {tag}
// CHECK: tt.return %[[R]]#0, %[[R]]#1
tt.func @combined(%c: i1, %x: tensor<64xf32>, %y: tensor<64xf32>, %n: i32) -> (i32, tensor<64xf32>) {
  %s = arith.select %c, %x, %y : tensor<64xf32>
  %r = scf.if %c -> (i32) {
    %m = arith.addi %n, %n : i32
    scf.yield %m : i32
  } else {
    scf.yield %n : i32
  } {tag}
  tt.return %r, %s : i32, tensor<64xf32>
}

// -----

// A branch without results and without a second side; uses inside of it know the condition.
// CHECK-LABEL: @no_else
// CHECK: %[[R:.+]] = scf.if %arg0 -> (tensor<64xf32>) {
// CHECK: tt.store %arg3, %arg1
// CHECK: scf.yield %arg1
// CHECK: } else {
// CHECK: scf.yield %arg2
// CHECK: tt.return %[[R]]
tt.func @no_else(%c: i1, %x: tensor<64xf32>, %y: tensor<64xf32>, %p: tensor<64x!tt.ptr<f32>>) -> tensor<64xf32> {
  %s = arith.select %c, %x, %y : tensor<64xf32>
  scf.if %c {
    tt.store %p, %s : tensor<64x!tt.ptr<f32>>
  }
  tt.return %s : tensor<64xf32>
}

// -----

// Another condition; a use before the branch; a selection after it; scalars; masks.
// CHECK-LABEL: @stays
// CHECK-COUNT-5: arith.select
// CHECK: scf.if %arg0 {
// CHECK: arith.select
tt.func @stays(%c: i1, %d: i1, %x: tensor<64xf32>, %y: tensor<64xf32>, %m: tensor<64xi1>, %n: i32, %p: tensor<64x!tt.ptr<f32>>, %q: !tt.ptr<i32>) -> tensor<64xf32> {
  %other = arith.select %d, %x, %y : tensor<64xf32>
  tt.store %p, %other : tensor<64x!tt.ptr<f32>>
  %before = arith.select %c, %x, %y : tensor<64xf32>
  tt.store %p, %before : tensor<64x!tt.ptr<f32>>
  %scalar = arith.select %c, %n, %n : i32
  tt.store %q, %scalar : !tt.ptr<i32>
  %masked = arith.select %m, %x, %y : tensor<64xi1>, tensor<64xf32>
  tt.store %p, %masked : tensor<64x!tt.ptr<f32>>
  %elsewhere = arith.select %d, %y, %x : tensor<64xf32>
  scf.if %c {
    tt.store %p, %elsewhere : tensor<64x!tt.ptr<f32>>
  }
  %after = arith.select %c, %x, %y : tensor<64xf32>
  tt.return %after : tensor<64xf32>
}
