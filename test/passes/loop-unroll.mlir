// RUN: %ttopt %s --triton-loop-unroll | FileCheck %s
// RUN: %ttopt %s --triton-loop-unroll --canonicalize | FileCheck %s --check-prefix=FOLDED

// The loop does two iterations at a time; what is left is done by the loop itself.
// CHECK-LABEL: tt.func @dynamic
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %c0_i32, %[[N:arg0]] : i32
// CHECK: %[[TRIPS:.*]] = arith.subi %[[N]], %c0_i32
// CHECK: %[[LEFT:.*]] = arith.remui %[[TRIPS]], %{{.*}} : i32
// CHECK: %[[WHOLE:.*]] = arith.subi %[[TRIPS]], %[[LEFT]]
// A loop that does not run goes nowhere.
// CHECK: %[[SPAN:.*]] = arith.select %[[RUNS]], %[[WHOLE]], %{{.*}}
// CHECK: %[[END:.*]] = arith.addi %c0_i32, %[[SPAN]]
// CHECK: %[[MAIN:.*]] = scf.for %[[I:.*]] = %c0_i32 to %[[END]] step %{{.*}} iter_args(%[[A:.*]] = %arg1)
// CHECK: %[[B:.*]] = arith.addi %[[A]], %[[I]]
// CHECK: %[[J:.*]] = arith.addi %[[I]], %{{.*}}
// CHECK: %[[C:.*]] = arith.addi %[[B]], %[[J]]
// CHECK: scf.yield %[[C]]
// CHECK: } {tt.num_stages = 3 : i32}
// CHECK: scf.for %{{.*}} = %[[END]] to %[[N]] step %c1_i32 iter_args(%{{.*}} = %[[MAIN]])
// CHECK: } {tt.num_stages = 1 : i32}
tt.func @dynamic(%n: i32, %x: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (i32) : i32 {
    %s = arith.addi %a, %i : i32
    scf.yield %s : i32
  } {tt.loop_unroll_factor = 2 : i32, tt.num_stages = 3 : i32}
  tt.return %r : i32
}

// Steps other than one, of unsigned bounds: the last step may go beyond the bound.
// CHECK-LABEL: tt.func @steps
// CHECK: arith.cmpi ult
// CHECK: %[[DISTANCE:.*]] = arith.subi %arg1, %arg0 : i64
// CHECK: %[[LAST:.*]] = arith.subi %[[DISTANCE]], %{{.*}}
// CHECK: %[[STEPS:.*]] = arith.divui %[[LAST]], %arg2
// CHECK: %[[TRIPS:.*]] = arith.addi %[[STEPS]], %{{.*}}
// CHECK: arith.remui %[[TRIPS]], %{{.*}}
// CHECK: scf.for unsigned
tt.func @steps(%from: i64, %to: i64, %by: i64, %p: !tt.ptr<i64>) {
  scf.for unsigned %i = %from to %to step %by : i64 {
    tt.store %p, %i : !tt.ptr<i64>
  } {tt.loop_unroll_factor = 4 : i32}
  tt.return
}

// Constants that divide leave no second loop.
// FOLDED-LABEL: tt.func @whole
// FOLDED: scf.for %{{.*}} = %c-3_i32 to %c9_i32 step %c4_i32
// FOLDED-COUNT-4: tt.store
// FOLDED-NOT: scf.for
tt.func @whole(%p: !tt.ptr<i32>) {
  %from = arith.constant -3 : i32
  %to = arith.constant 8 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %from to %to step %one : i32 {
    %j = arith.addi %i, %one : i32
    tt.store %p, %j : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 11 : i32}
  %to4 = arith.constant 9 : i32
  scf.for %i = %from to %to4 step %one : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 4 : i32}
  tt.return
}

// Seven iterations by three: six, and one.
// FOLDED-LABEL: tt.func @rest
// FOLDED: scf.for %{{.*}} = %c0_i32 to %c12_i32 step %c6_i32
// FOLDED: tt.store %arg0, %c12_i32
tt.func @rest(%p: !tt.ptr<i32>) {
  %from = arith.constant 0 : i32
  %to = arith.constant 13 : i32
  %two = arith.constant 2 : i32
  scf.for %i = %from to %to step %two : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 3 : i32}
  tt.return
}

// Fewer iterations than the factor, and a factor of one.
// CHECK-LABEL: tt.func @few
// CHECK-COUNT-2: scf.for
// CHECK-NOT: scf.for
// CHECK-NOT: tt.loop_unroll_factor
// CHECK: tt.return
tt.func @few(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  scf.for %i = %c0 to %c2 step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 4 : i32}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 1 : i32}
  tt.return
}

// Nested operations of copies use the values of their own iteration.
// CHECK-LABEL: tt.func @nested
// CHECK: scf.for %[[I:.*]] = %c0_i32 to
// CHECK: %[[X:.*]] = scf.if
// CHECK: scf.yield %[[I]]
// CHECK: tt.store %{{.*}}, %[[X]]
// CHECK: %[[J:.*]] = arith.addi %[[I]]
// CHECK: %[[Y:.*]] = scf.if
// CHECK: scf.yield %[[J]]
// CHECK: tt.store %{{.*}}, %[[Y]]
tt.func @nested(%p: !tt.ptr<i32>, %n: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = scf.if %b -> i32 {
      scf.yield %i : i32
    } else {
      scf.yield %n : i32
    }
    tt.store %p, %x : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 2 : i32}
  tt.return
}
