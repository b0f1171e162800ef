// RUN: %ttopt %s --tritongpu-pipeline="num-stages=3 explain=true" 2>&1 | FileCheck %s

// What threads spill needs the L1 that rings take: a loop of four iterations has no pipeline then, one of five has.
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// CHECK: has no software pipeline: of its few iterations one waits, and what threads spill needs the L1 that rings take
// CHECK-COUNT-2: has a software pipeline of
// CHECK-LABEL: @four
// CHECK-NOT: ttg.local_alloc
// CHECK-LABEL: @five
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x128x32xf16
// CHECK-LABEL: @four_that_fit
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x128x32xf16
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @four(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %zero: tensor<128x32xf32, #mma>, %held: tensor<256x128xf32, #mma>) -> (tensor<128x32xf32, #mma>, tensor<256x128xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r, %held : tensor<128x32xf32, #mma>, tensor<256x128xf32, #mma>
  }

  tt.func @five(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %zero: tensor<128x32xf32, #mma>, %held: tensor<256x128xf32, #mma>) -> (tensor<128x32xf32, #mma>, tensor<256x128xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c5 = arith.constant 5 : i32
    %r = scf.for %i = %c0 to %c5 step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r, %held : tensor<128x32xf32, #mma>, tensor<256x128xf32, #mma>
  }

  tt.func @four_that_fit(%p: tensor<128x32x!tt.ptr<f16>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %y: tensor<32x32xf16, #right>, %zero: tensor<128x32xf32, #mma>) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %r = scf.for %i = %c0 to %c4 step %c1 iter_args(%c = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<128x32x!tt.ptr<f16>, #a>
      %l = ttg.convert_layout %x : tensor<128x32xf16, #a> -> tensor<128x32xf16, #left>
      %d = tt.dot %l, %y, %c : tensor<128x32xf16, #left> * tensor<32x32xf16, #right> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }
}
