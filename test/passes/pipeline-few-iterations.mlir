// RUN: %ttopt %s --tritongpu-pipeline="num-stages=4" | FileCheck %s

// A loop of two iterations has no use for more than two slots, nor a loop of three for a fourth stage: more are shared memory that other CTAs could have.
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// CHECK-LABEL: @two
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x128x32xf16
// CHECK-LABEL: @three
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x128x32xf16
// CHECK-LABEL: @unknown
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<4x128x32xf16
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @two(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %n: i32, %zero: tensor<128x32xf32, #mma>) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }

  tt.func @three(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %n: i32, %zero: tensor<128x32xf32, #mma>) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }

  tt.func @unknown(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %n: i32, %zero: tensor<128x32xf32, #mma>) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }
}
