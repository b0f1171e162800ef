// RUN: %ttopt %s --triton-loop-aware-cse --canonicalize | FileCheck %s

// CHECK-LABEL: tt.func @equal
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[A:.*]] = %arg1) -> (i32)
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[A]], %arg2
// CHECK-NEXT: scf.yield %[[S]] : i32
// CHECK: tt.return %[[R]], %[[R]]
tt.func @equal(%n: i32, %x: i32, %m: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %s = arith.addi %a, %m : i32
    %t = arith.addi %b, %m : i32
    scf.yield %s, %t : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// Equal only because each becomes the other.
// CHECK-LABEL: tt.func @crossed
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %arg1) -> (i32)
tt.func @crossed(%n: i32, %x: i32, %m: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %s = arith.addi %a, %m : i32
    %t = arith.addi %b, %m : i32
    scf.yield %t, %s : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// Equal beginnings that are written twice, and a loop within a loop.
// CHECK-LABEL: tt.func @nested
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)
tt.func @nested(%n: i32, %x: i32, %m: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %f = arith.muli %x, %m : i32
  %g = arith.muli %x, %m : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %f, %b = %g) -> (i32, i32) : i32 {
    %q:2 = scf.for %j = %c0 to %n step %c1 iter_args(%c = %a, %d = %a) -> (i32, i32) : i32 {
      %s = arith.addi %c, %j : i32
      %t = arith.addi %d, %j : i32
      scf.yield %s, %t : i32, i32
    }
    scf.yield %q#0, %q#1 : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// Different beginnings, different updates, attributes that differ, and one that differs
// only after two iterations.
// CHECK-LABEL: tt.func @different
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}) -> (i32, i32)
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}) -> (i32, i32)
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}) -> (i1, i1)
// CHECK: scf.for {{.*}} iter_args(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) -> (i32, i32, i32, i32)
tt.func @different(%n: i32, %x: i32, %y: i32, %z: i1) -> (i32, i32, i32, i32, i1, i1, i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (i32, i32) : i32 {
    %s = arith.addi %a, %n : i32
    %t = arith.addi %b, %n : i32
    scf.yield %s, %t : i32, i32
  }
  %u:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %s = arith.addi %a, %n : i32
    %t = arith.subi %b, %n : i32
    scf.yield %s, %t : i32, i32
  }
  %v:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %z, %b = %z) -> (i1, i1) : i32 {
    %s = arith.cmpi slt, %x, %i : i32
    %t = arith.cmpi ult, %x, %i : i32
    %sa = arith.xori %s, %a : i1
    %tb = arith.xori %t, %b : i1
    scf.yield %sa, %tb : i1, i1
  }
  %w:4 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x, %c = %x, %d = %y) -> (i32, i32, i32, i32) : i32 {
    %s = arith.addi %c, %n : i32
    %t = arith.addi %d, %n : i32
    scf.yield %b, %c, %s, %t : i32, i32, i32, i32
  }
  %k = arith.addi %w#2, %w#3 : i32
  tt.return %r#0, %r#1, %u#0, %u#1, %v#0, %v#1, %w#0, %k : i32, i32, i32, i32, i1, i1, i32, i32
}

// Loads may give different values.
// CHECK-LABEL: tt.func @loads
// CHECK: scf.for {{.*}} -> (i32, i32)
tt.func @loads(%n: i32, %x: i32, %p: !tt.ptr<i32>) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %x) -> (i32, i32) : i32 {
    %s = tt.load %p {isVolatile = true} : !tt.ptr<i32>
    %t = tt.load %p {isVolatile = true} : !tt.ptr<i32>
    scf.yield %s, %t : i32, i32
  }
  tt.return %r#0, %r#1 : i32, i32
}

// ----

// The result of one instruction is what the next one takes as its left operand, in another spelling. What takes some work and was
// computed in both, from numbers that the loop carries in both, is computed once; a single addition stays.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#narrow = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @spelled_twice(
// CHECK:         scf.for {{.*}} iter_args(%[[X:[a-z0-9]+]] = %{{.*}}, %[[Y:[a-z0-9]+]] = %{{[0-9]+}},
// CHECK:           arith.addi %[[X]], %{{.*}} : tensor<32x32xi32, #mma>
// CHECK:           arith.addi %[[Y]], %{{.*}} : tensor<32x32xi32, #ttg.dot_op
// CHECK:           arith.sitofp {{.*}} : tensor<32x32xi32, #mma>
// CHECK:           %[[SIN:.*]] = math.sin {{.*}} : tensor<32x32xf32, #mma>
// CHECK-NEXT:      %[[LEFT:.*]] = ttg.convert_layout %[[SIN]] :
// CHECK-NOT:       math.sin
// CHECK:           arith.addf %{{.*}}, %[[LEFT]] :
tt.func public @spelled_twice(%x: i32, %n: i32) -> (tensor<32x32xf32, #mma>, tensor<32x32xf32, #left>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
  %one = arith.constant dense<1.0> : tensor<32x32xf32, #left>
  %two = arith.constant dense<2> : tensor<32x32xi32, #mma>
  %two_left = arith.constant dense<2> : tensor<32x32xi32, #left>
  %a = tt.splat %x : i32 -> tensor<32x32xi32, #mma>
  %b = tt.splat %x : i32 -> tensor<32x32xi32, #left>
  %r:4 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %a, %q = %b, %u = %zero, %v = %one) -> (tensor<32x32xi32, #mma>, tensor<32x32xi32, #left>, tensor<32x32xf32, #mma>, tensor<32x32xf32, #left>) : i32 {
    %s = arith.addi %p, %two : tensor<32x32xi32, #mma>
    %t = arith.addi %q, %two_left : tensor<32x32xi32, #left>
    %f = arith.sitofp %s : tensor<32x32xi32, #mma> to tensor<32x32xf32, #mma>
    %g = arith.sitofp %t : tensor<32x32xi32, #left> to tensor<32x32xf32, #left>
    %h = math.sin %f : tensor<32x32xf32, #mma>
    %k = math.sin %g : tensor<32x32xf32, #left>
    %l = arith.addf %u, %h : tensor<32x32xf32, #mma>
    %m = arith.addf %v, %k : tensor<32x32xf32, #left>
    scf.yield %s, %t, %l, %m : tensor<32x32xi32, #mma>, tensor<32x32xi32, #left>, tensor<32x32xf32, #mma>, tensor<32x32xf32, #left>
  }
  tt.return %r#2, %r#3 : tensor<32x32xf32, #mma>, tensor<32x32xf32, #left>
}

// Elements lie elsewhere: both are computed.
// CHECK-LABEL: @others(
// CHECK:         arith.addi {{.*}} : tensor<32x32xi32, #mma>
// CHECK:         arith.addi {{.*}} : tensor<32x32xi32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
tt.func public @others(%x: i32) -> (tensor<32x32xi32, #mma>, tensor<32x32xi32, #narrow>) {
  %a = tt.splat %x : i32 -> tensor<32x32xi32, #mma>
  %b = tt.splat %x : i32 -> tensor<32x32xi32, #narrow>
  %s = arith.addi %a, %a : tensor<32x32xi32, #mma>
  %t = arith.addi %b, %b : tensor<32x32xi32, #narrow>
  tt.return %s, %t : tensor<32x32xi32, #mma>, tensor<32x32xi32, #narrow>
}
}
