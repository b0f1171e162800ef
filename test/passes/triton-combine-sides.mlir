// RUN: %ttopt %s -split-input-file --triton-combine | FileCheck %s
// RUN: %ttopt %s -split-input-file --triton-combine --verify-each -o /dev/null

// Both sides load the same way from other pointers: one load, of what was selected before tensors were made of it.
// CHECK-LABEL: @pointers
// CHECK-SAME: (%[[C:.+]]: i1, %[[P:.+]]: !tt.ptr<f32>, %[[Q:.+]]: !tt.ptr<f32>, %[[M:.+]]: tensor<64xi1>)
// CHECK-NOT: scf.if
// CHECK: %[[R:.+]] = tt.make_range
// CHECK: %[[S:.+]] = arith.select %[[C]], %[[P]], %[[Q]] : !tt.ptr<f32>
// CHECK: %[[T:.+]] = tt.splat %[[S]]
// CHECK: %[[A:.+]] = tt.addptr %[[T]], %[[R]]
// CHECK: %[[L:.+]] = tt.load %[[A]], %[[M]]
// CHECK: %[[E:.+]] = math.exp %[[L]]
// CHECK: tt.return %[[E]], %[[L]]
tt.func @pointers(%c: i1, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %m: tensor<64xi1>) -> (tensor<64xf32>, tensor<64xf32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %pa = tt.addptr %ps, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %qa = tt.addptr %qs, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x:2 = scf.if %c -> (tensor<64xf32>, tensor<64xf32>) {
    %l = tt.load %pa, %m : tensor<64x!tt.ptr<f32>>
    %e = math.exp %l : tensor<64xf32>
    scf.yield %e, %l : tensor<64xf32>, tensor<64xf32>
  } else {
    %l = tt.load %qa, %m : tensor<64x!tt.ptr<f32>>
    %e = math.exp %l : tensor<64xf32>
    scf.yield %e, %l : tensor<64xf32>, tensor<64xf32>
  }
  tt.return %x#0, %x#1 : tensor<64xf32>, tensor<64xf32>
}

// -----

// Stores, and numbers that sides give.
// CHECK-LABEL: @stores
// CHECK-SAME: (%[[C:.+]]: i1, %[[P:.+]]: !tt.ptr<i32>, %[[A:.+]]: i32, %[[B:.+]]: i32)
// CHECK-NOT: scf.if
// CHECK: %[[V:.+]] = arith.select %[[C]], %[[A]], %[[B]]
// CHECK-NEXT: tt.store %[[P]], %[[V]]
// CHECK-NEXT: tt.return %[[V]]
tt.func @stores(%c: i1, %p: !tt.ptr<i32>, %a: i32, %b: i32) -> i32 {
  %x = scf.if %c -> (i32) {
    tt.store %p, %a : !tt.ptr<i32>
    scf.yield %a : i32
  } else {
    tt.store %p, %b : !tt.ptr<i32>
    scf.yield %b : i32
  }
  tt.return %x : i32
}

// -----

// A tensor that is not made of numbers would be selected element by element: the branch stays.
// CHECK-LABEL: @tensors
// CHECK: scf.if
tt.func @tensors(%c: i1, %p: tensor<64x!tt.ptr<f32>>, %q: tensor<64x!tt.ptr<f32>>) -> tensor<64xf32> {
  %x = scf.if %c -> (tensor<64xf32>) {
    %l = tt.load %p : tensor<64x!tt.ptr<f32>>
    scf.yield %l : tensor<64xf32>
  } else {
    %l = tt.load %q : tensor<64x!tt.ptr<f32>>
    scf.yield %l : tensor<64xf32>
  }
  tt.return %x : tensor<64xf32>
}

// -----

// Values of a side in other places, other attributes, other operations, nothing that accesses memory: all stay.
// CHECK-LABEL: @different
// CHECK-COUNT-5: scf.if
// CHECK: tt.return
tt.func @different(%c: i1, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %y: f32) -> (f32, f32, f32, f32) {
  %0 = scf.if %c -> (f32) {
    %l = tt.load %p : !tt.ptr<f32>
    %s = arith.subf %l, %y : f32
    scf.yield %s : f32
  } else {
    %l = tt.load %q : !tt.ptr<f32>
    %s = arith.subf %y, %l : f32
    scf.yield %s : f32
  }
  %1 = scf.if %c -> (f32) {
    %l = tt.load %p {isVolatile = true} : !tt.ptr<f32>
    scf.yield %l : f32
  } else {
    %l = tt.load %q : !tt.ptr<f32>
    scf.yield %l : f32
  }
  %2 = scf.if %c -> (f32) {
    %l = tt.load %p : !tt.ptr<f32>
    %s = arith.addf %l, %y : f32
    scf.yield %s : f32
  } else {
    %l = tt.load %q : !tt.ptr<f32>
    %s = arith.mulf %l, %y : f32
    scf.yield %s : f32
  }
  %3 = scf.if %c -> (f32) {
    %s = arith.addf %2, %y : f32
    scf.yield %s : f32
  } else {
    %s = arith.addf %1, %y : f32
    scf.yield %s : f32
  }
  scf.if %c {
    tt.store %p, %y : !tt.ptr<f32>
  }
  tt.return %0, %1, %2, %3 : f32, f32, f32, f32
}

// -----

// Of a branch in a branch the inner one goes; it leaves a selection, which the other side of the outer one has not.
// CHECK-LABEL: @nested
// CHECK: scf.if
// CHECK-NEXT: arith.select
// CHECK-NEXT: tt.load
// CHECK-NEXT: scf.yield
// CHECK-NOT: scf.if
// CHECK: tt.return
tt.func @nested(%c: i1, %d: i1, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %r: !tt.ptr<f32>) -> f32 {
  %x = scf.if %c -> (f32) {
    %i = scf.if %d -> (f32) {
      %l = tt.load %p : !tt.ptr<f32>
      scf.yield %l : f32
    } else {
      %l = tt.load %q : !tt.ptr<f32>
      scf.yield %l : f32
    }
    scf.yield %i : f32
  } else {
    %l = tt.load %r : !tt.ptr<f32>
    scf.yield %l : f32
  }
  tt.return %x : f32
}
