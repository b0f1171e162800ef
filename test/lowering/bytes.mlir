// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s

// Bytes that lie in words are computed with four at a time, and become floats of 16 bits without being taken apart.

#b = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// What crosses from one byte to the next is masked; sums keep the highest bits apart. Two words are two of each instruction.
// CHECK-LABEL: llvm.func internal @each_operation(
// CHECK-DAG:   %[[REST:.*]] = llvm.mlir.constant(2139062143 : i32) : i32
// CHECK:       %[[A:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CHECK:       %[[B:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CHECK:       llvm.add %[[A]], %[[B]] : i32
// CHECK-NOT:   llvm.add %{{.*}} : i8
// CHECK:       llvm.sub %{{.*}}, %{{.*}} : i32
// CHECK-NOT:   llvm.sub %{{.*}} : i8
// CHECK:       llvm.or %{{.*}}, %{{.*}} : i32
// CHECK:       llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK-NOT:   llvm.lshr %{{.*}} : i8
// CHECK:       llvm.return
tt.func private @each_operation(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %three = arith.constant dense<3> : tensor<1024xi8, #b>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %p_all = tt.splat %p : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>, #b>
  %p_at = tt.addptr %p_all, %range : tensor<1024x!tt.ptr<i8>, #b>, tensor<1024xi32, #b>
  %q_all = tt.splat %q : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>, #b>
  %q_at = tt.addptr %q_all, %range : tensor<1024x!tt.ptr<i8>, #b>, tensor<1024xi32, #b>
  %x = tt.load %p_at : tensor<1024x!tt.ptr<i8>, #b>
  %y = tt.load %q_at : tensor<1024x!tt.ptr<i8>, #b>
  %sum = arith.addi %x, %y : tensor<1024xi8, #b>
  %less = arith.subi %sum, %y : tensor<1024xi8, #b>
  %either = arith.ori %less, %three : tensor<1024xi8, #b>
  %down = arith.shrui %either, %three : tensor<1024xi8, #b>
  tt.store %p_at, %down : tensor<1024x!tt.ptr<i8>, #b>
  tt.return
}

// What is extended or compared is taken out of its word first: no operation of the word saves one.
// CHECK-LABEL: llvm.func internal @taken_apart(
// CHECK-COUNT-8: llvm.and %{{.*}}, %{{.*}} : i8
// CHECK:       llvm.return
tt.func private @taken_apart(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %mask = arith.constant dense<15> : tensor<1024xi8, #b>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %p_all = tt.splat %p : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>, #b>
  %p_at = tt.addptr %p_all, %range : tensor<1024x!tt.ptr<i8>, #b>, tensor<1024xi32, #b>
  %q_all = tt.splat %q : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>, #b>
  %q_at = tt.addptr %q_all, %range : tensor<1024x!tt.ptr<i32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %p_at : tensor<1024x!tt.ptr<i8>, #b>
  %low = arith.andi %x, %mask : tensor<1024xi8, #b>
  %wide = arith.extui %low : tensor<1024xi8, #b> to tensor<1024xi32, #b>
  tt.store %q_at, %wide : tensor<1024x!tt.ptr<i32>, #b>
  tt.return
}
}
