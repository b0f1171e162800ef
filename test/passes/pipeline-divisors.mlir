// RUN: %ttopt %s --tritongpu-pipeline=num-stages=3 | FileCheck %s

// What divides runs ahead with a divisor that is not zero: a power of two that divides the divisor, as far as is known. With one
// instead, elements of rows that a quotient by a multiple of sixteen tells apart would not be known to lie side by side, and
// nothing could be copied beside the program.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#row = #ttg.slice<{dim = 0, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @by_a_size
  // CHECK: %[[POWER:.*]] = arith.constant 16 : i32
  // CHECK: %[[SAFE:.*]] = tt.splat %[[POWER]] : i32
  // CHECK: %[[BY:.*]] = arith.select %{{.*}}, %{{.*}}, %[[SAFE]]
  // CHECK: arith.divsi %{{.*}}, %[[BY]]
  // CHECK: ttg.async_copy_global_to_local
  // CHECK-NOT: tt.load
  // CHECK: scf.for
  // CHECK: arith.divsi
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: tt.return
  tt.func @by_a_size(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %size: i32 {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %y: tensor<64x32xf16, #b>, %n: i32, %zero: tensor<128x32xf32, #mma>) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #row>
    %sizes = tt.splat %size : i32 -> tensor<64xi32, #row>
    %strides = tt.splat %stride : i32 -> tensor<64xi32, #row>
    %pointers = tt.splat %p : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #blocked>
    %r = scf.for %k = %c0 to %n step %c64 iter_args(%sum = %zero) -> (tensor<128x32xf32, #mma>) : i32 {
      %ks = tt.splat %k : i32 -> tensor<64xi32, #row>
      %at = arith.addi %ks, %range : tensor<64xi32, #row>
      %pixel = arith.divsi %at, %sizes : tensor<64xi32, #row>
      %channel = arith.remsi %at, %sizes : tensor<64xi32, #row>
      %start = arith.muli %pixel, %strides : tensor<64xi32, #row>
      %place = arith.addi %start, %channel : tensor<64xi32, #row>
      %places = tt.expand_dims %place {axis = 0 : i32} : tensor<64xi32, #row> -> tensor<1x64xi32, #blocked>
      %all = tt.broadcast %places : tensor<1x64xi32, #blocked> -> tensor<128x64xi32, #blocked>
      %q = tt.addptr %pointers, %all : tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<128x64xi32, #blocked>
      %x = tt.load %q : tensor<128x64x!tt.ptr<f16>, #blocked>
      %s = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
      %l = ttg.local_load %s : !ttg.memdesc<128x64xf16, #shared, #smem> -> tensor<128x64xf16, #a>
      %d = tt.dot %l, %y, %sum : tensor<128x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }

  // A power of two is positive in a narrow type, too, and nothing that is not known stands for a divisor.
  // CHECK-LABEL: @narrow
  // CHECK: %[[SOME:.*]] = arith.select %{{.*}}, %arg2, %c64_i8{{[_0-9]*}} : i8
  // CHECK: arith.divsi %{{.*}}, %[[SOME]] : i8
  // CHECK: %[[OTHER:.*]] = arith.select %{{.*}}, %arg3, %c1_i8{{[_0-9]*}} : i8
  // CHECK: arith.divsi %{{.*}}, %[[OTHER]] : i8
  // CHECK: scf.for
  tt.func @narrow(%p: !tt.ptr<f32>, %n: i8, %by: i8 {tt.divisibility = 128 : i32}, %other: i8) -> f32 {
    %c0 = arith.constant 0 : i8
    %c1 = arith.constant 1 : i8
    %zero = arith.constant 0.0 : f32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i8 {
      %some = arith.divsi %i, %by : i8
      %at = arith.divsi %some, %other : i8
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i8
      %x = tt.load %q {tt.latency = 1 : i32} : !tt.ptr<f32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    } {tt.num_stages = 2 : i32}
    tt.return %0 : f32
  }
}
