// RUN: %ttopt %s --triton-relax-atomics=explain=true 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks

// Sums of floating-point numbers that nobody reads before the kernel ends, whatever else is stored.
// REMARK: relax-atomics.mlir:[[#@LINE+8]]:8: remark: the atomic operation is relaxed: no program uses what one gives
// REMARK: relax-atomics.mlir:[[#@LINE+13]]:8: remark
// CHECK-LABEL: @sums
// CHECK: atomic_rmw fadd, relaxed, gpu
// CHECK: atomic_rmw fadd, relaxed, gpu
tt.func public @sums(%x: !tt.ptr<f32>, %out: !tt.ptr<f32>, %dx: !tt.ptr<f32>) {
  %v = tt.load %x : !tt.ptr<f32>
  tt.store %dx, %v : !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  %p = tt.splat %dx : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %w = tt.splat %v : f32 -> tensor<64xf32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %o = tt.splat %out : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %o, %i : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %1 = tt.atomic_rmw fadd, acq_rel, gpu, %q, %w : (tensor<64x!tt.ptr<f32>>, tensor<64xf32>) -> tensor<64xf32>
  tt.return
}

// Tensors of integers where the kernel stores nothing.
// REMARK: relax-atomics.mlir:[[#@LINE+6]]:8: remark
// CHECK-LABEL: @counts
// CHECK: atomic_rmw add, relaxed, gpu
tt.func public @counts(%out: !tt.ptr<i32>, %at: tensor<64xi32>, %v: tensor<64xi32>) {
  %o = tt.splat %out : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %q = tt.addptr %o, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %0 = tt.atomic_rmw add, acq_rel, gpu, %q, %v : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}

// Beside sums, where it stores nothing.
// REMARK: relax-atomics.mlir:[[#@LINE+8]]:8: remark
// REMARK: relax-atomics.mlir:[[#@LINE+8]]:8: remark
// CHECK-LABEL: @counts_and_sums
// CHECK: atomic_rmw fadd, relaxed, gpu
// CHECK: atomic_rmw add, relaxed, gpu
tt.func public @counts_and_sums(%x: !tt.ptr<f32>, %f: f32, %out: !tt.ptr<i32>, %at: tensor<64xi32>, %v: tensor<64xi32>) {
  %o = tt.splat %out : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %q = tt.addptr %o, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %x, %f : (!tt.ptr<f32>, f32) -> f32
  %1 = tt.atomic_rmw add, acq_rel, gpu, %q, %v : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}

// A count may be a sign that something was stored: here nothing says that it is none.
// CHECK-LABEL: @sign_after_store
// CHECK: atomic_rmw add, acq_rel, gpu
tt.func public @sign_after_store(%x: !tt.ptr<i32>, %out: !tt.ptr<i32>, %at: tensor<64xi32>, %v: tensor<64xi32>) {
  %o = tt.splat %out : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %q = tt.addptr %o, %at : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %c = arith.constant 1 : i32
  tt.store %x, %c : !tt.ptr<i32>
  %0 = tt.atomic_rmw add, acq_rel, gpu, %q, %v : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
  tt.return
}

// A number of one program is one.
// CHECK-LABEL: @sign
// CHECK: atomic_rmw add, acq_rel, gpu
tt.func public @sign(%out: !tt.ptr<i32>) {
  %c = arith.constant 1 : i32
  %0 = tt.atomic_rmw add, acq_rel, gpu, %out, %c : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// A maximum of floating-point numbers is made of those of integers.
// REMARK: relax-atomics.mlir:[[#@LINE+6]]:8: remark
// CHECK-LABEL: @maximum
// CHECK: atomic_rmw max, relaxed, gpu
tt.func public @maximum(%x: !tt.ptr<i32>, %out: !tt.ptr<f32>, %v: i32) {
  tt.store %x, %v : !tt.ptr<i32>
  %q = tt.bitcast %out : !tt.ptr<f32> -> !tt.ptr<i32>
  %0 = tt.atomic_rmw max, acq_rel, gpu, %q, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// Orders that a program asks for stay.
// CHECK-LABEL: @asked
// CHECK: atomic_rmw fadd, release, gpu
tt.func public @asked(%out: !tt.ptr<f32>, %v: f32) {
  %0 = tt.atomic_rmw fadd, release, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// So do those among others than the threads of a GPU.
// CHECK-LABEL: @system
// CHECK: atomic_rmw fadd, acq_rel, sys
tt.func public @system(%out: !tt.ptr<f32>, %v: f32) {
  %0 = tt.atomic_rmw fadd, acq_rel, sys, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// What is loaded through the same argument may have been written.
// CHECK-LABEL: @read
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @read(%out: !tt.ptr<f32>, %v: f32, %to: !tt.ptr<f32>) {
  %r = tt.load %out : !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.store %to, %r : !tt.ptr<f32>
  tt.return
}

// What is stored through the same argument is in order with it.
// CHECK-LABEL: @written
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @written(%out: !tt.ptr<f32>, %v: f32) {
  %z = arith.constant 0.0 : f32
  tt.store %out, %z : !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// Nothing is known of other pointers.
// CHECK-LABEL: @anywhere
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @anywhere(%out: !tt.ptr<f32>, %v: f32, %n: i64, %to: !tt.ptr<f32>) {
  %a = tt.int_to_ptr %n : i64 -> !tt.ptr<f32>
  %r = tt.load %a : !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.store %to, %r : !tt.ptr<f32>
  tt.return
}

// Of what is written neither.
// CHECK-LABEL: @elsewhere
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @elsewhere(%n: i64, %v: f32) {
  %a = tt.int_to_ptr %n : i64 -> !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %a, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// Who has the last ticket reads all sums.
// CHECK-LABEL: @tickets
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @tickets(%out: !tt.ptr<f32>, %v: f32, %tickets: !tt.ptr<i32>, %to: !tt.ptr<i32>) {
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  %c = arith.constant 1 : i32
  %n = tt.atomic_rmw add, acq_rel, gpu, %tickets, %c : (!tt.ptr<i32>, i32) -> i32
  tt.store %to, %n : !tt.ptr<i32>
  tt.return
}

// An exchange says who was the last.
// CHECK-LABEL: @exchanged
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @exchanged(%out: !tt.ptr<f32>, %v: f32, %other: !tt.ptr<i32>) {
  %c = arith.constant 1 : i32
  %n = tt.atomic_rmw exch, acq_rel, gpu, %other, %c : (!tt.ptr<i32>, i32) -> i32
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// So does a comparison.
// CHECK-LABEL: @swapped
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @swapped(%out: !tt.ptr<f32>, %v: f32, %other: !tt.ptr<i32>) {
  %c = arith.constant 1 : i32
  %n = tt.atomic_cas acq_rel, gpu, %other, %c, %c : (!tt.ptr<i32>, i32, i32) -> i32
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// A volatile load waits for others.
// CHECK-LABEL: @watched
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @watched(%out: !tt.ptr<f32>, %v: f32, %other: !tt.ptr<f32>, %to: !tt.ptr<f32>) {
  %r = tt.load %other {isVolatile = true} : !tt.ptr<f32>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.store %to, %r : !tt.ptr<f32>
  tt.return
}

// Where the program has barriers it has an order.
// CHECK-LABEL: @barrier
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func public @barrier(%out: !tt.ptr<f32>, %v: f32) {
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  ttg.barrier all
  tt.return
}

// A function that others call does not know its pointers, and a kernel not what it calls.
// CHECK-LABEL: @part
// CHECK: atomic_rmw fadd, acq_rel, gpu
tt.func private @part(%out: !tt.ptr<f32>, %v: f32) attributes {noinline = true} {
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// CHECK-LABEL: @calls
// CHECK: atomic_rmw fadd, acq_rel, gpu
// REMARK-NOT: remark
tt.func public @calls(%out: !tt.ptr<f32>, %v: f32) {
  tt.call @part(%out, %v) : (!tt.ptr<f32>, f32) -> ()
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %out, %v : (!tt.ptr<f32>, f32) -> f32
  tt.return
}
