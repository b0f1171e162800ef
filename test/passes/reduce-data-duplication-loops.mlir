// RUN: %ttopt %s --tritongpu-reduce-data-duplication | FileCheck %s

// Dots that are multiplied within threads take operands with all of K in each thread. One that is loaded before a loop waits
// in shared memory for it where it would take more than a quarter of the registers; a smaller one stays.
#b = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #b}>
#right = #ttg.dot_op<{opIdx = 1, parent = #b}>
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#turned = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[4, 0], [8, 0], [16, 0], [32, 0], [0, 0]], warp = [[0, 0], [0, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @large
// CHECK:       %[[A:.*]] = tt.load
// CHECK-NEXT:  %[[M:.*]] = ttg.local_alloc %[[A]]
// CHECK:       scf.for
// CHECK:         %[[R:.*]] = ttg.local_load %[[M]]
// CHECK-NEXT:    tt.dot %[[R]]
tt.func @large(%p: tensor<32x64x!tt.ptr<f32>, #left>, %q: tensor<64x64xf32, #right>, %n: i32) -> tensor<32x64xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32, #b>
  %a = tt.load %p : tensor<32x64x!tt.ptr<f32>, #left>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x64xf32, #b>) : i32 {
    %d = tt.dot %a, %q, %acc : tensor<32x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<32x64xf32, #b>
    scf.yield %d : tensor<32x64xf32, #b>
  }
  tt.return %r : tensor<32x64xf32, #b>
}

// CHECK-LABEL: @small
// CHECK-NOT:   ttg.local_alloc
tt.func @small(%p: tensor<32x16x!tt.ptr<f32>, #left>, %q: tensor<16x64xf32, #right>, %n: i32) -> tensor<32x64xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32, #b>
  %a = tt.load %p : tensor<32x16x!tt.ptr<f32>, #left>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<32x64xf32, #b>) : i32 {
    %d = tt.dot %a, %q, %acc : tensor<32x16xf32, #left> * tensor<16x64xf32, #right> -> tensor<32x64xf32, #b>
    scf.yield %d : tensor<32x64xf32, #b>
  }
  tt.return %r : tensor<32x64xf32, #b>
}

// Where nothing runs more often than the load, it is multiplied as it comes.
// CHECK-LABEL: @once
// CHECK-NOT:   ttg.local_alloc
tt.func @once(%p: tensor<32x64x!tt.ptr<f32>, #left>, %q: tensor<64x64xf32, #right>) -> tensor<32x64xf32, #b> {
  %zero = arith.constant dense<0.0> : tensor<32x64xf32, #b>
  %a = tt.load %p : tensor<32x64x!tt.ptr<f32>, #left>
  %d = tt.dot %a, %q, %zero : tensor<32x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<32x64xf32, #b>
  tt.return %d : tensor<32x64xf32, #b>
}

// A conversion within warps has no barrier, but all of its result at once: that of an operand with all of K goes through memory,
// from where it is read as it is multiplied.
// CHECK-LABEL: @within_warps
// CHECK-NOT:   ttg.convert_layout
// CHECK:       %[[M:.*]] = ttg.local_alloc
// CHECK-NEXT:  %[[R:.*]] = ttg.local_load %[[M]]
// CHECK:       tt.dot %[[R]]
tt.func @within_warps(%a: tensor<32x64xf32, #rows>, %q: tensor<64x64xf32, #right>, %acc: tensor<32x64xf32, #b>) -> tensor<32x64xf32, #b> {
  %c = ttg.convert_layout %a : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #left>
  %d = tt.dot %c, %q, %acc : tensor<32x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<32x64xf32, #b>
  tt.return %d : tensor<32x64xf32, #b>
}

// What is transposed behind its conversion is the same: it is converted last, to the layout of the operand.
// CHECK-LABEL: @transposed
// CHECK-NOT:   ttg.convert_layout
// CHECK:       %[[T:.*]] = tt.trans
// CHECK-NEXT:  %[[M:.*]] = ttg.local_alloc %[[T]]
// CHECK-NEXT:  %[[R:.*]] = ttg.local_load %[[M]]
// CHECK:       tt.dot %{{.*}}, %[[R]]
tt.func @transposed(%w: tensor<64x64xf32, #rows>, %a: tensor<32x64xf32, #left>, %acc: tensor<32x64xf32, #b>) -> tensor<32x64xf32, #b> {
  %c = ttg.convert_layout %w : tensor<64x64xf32, #rows> -> tensor<64x64xf32, #turned>
  %t = tt.trans %c {order = array<i32: 1, 0>} : tensor<64x64xf32, #turned> -> tensor<64x64xf32, #right>
  %d = tt.dot %a, %t, %acc : tensor<32x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<32x64xf32, #b>
  tt.return %d : tensor<32x64xf32, #b>
}
}
