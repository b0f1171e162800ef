// RUN: %ttopt %s --tritongpu-reduce-data-duplication | FileCheck %s

// Dots that are multiplied within threads take operands with all of K in each thread. One that is loaded before a loop waits
// in shared memory for it where it would take more than a quarter of the registers; a smaller one stays.
#b = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #b}>
#right = #ttg.dot_op<{opIdx = 1, parent = #b}>
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
}
