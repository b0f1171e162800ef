// RUN: %ttopt %s --tritongpu-pipeline="num-stages=1 add-stage=true explain=true" 2>&1 | FileCheck %s

// Who asks for one stage gets a pipeline where it costs nothing. Here it costs one of four CTAs, whose warps hide more than copies an
// iteration ahead would, as is assumed of a loop without a known end, too.
// CHECK: remark: has no software pipeline: without it more CTAs fit in shared memory
// CHECK-LABEL: @many_iterations
// CHECK-NOT: ttg.async_copy_global_to_local
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
#shared = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @many_iterations(%pa: tensor<64x64x!tt.ptr<f32>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 4]> : tensor<2xi32>}, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
      %y = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
      %e = math.exp2 %x : tensor<64x64xf32, #a>
      %f = arith.mulf %y, %e : tensor<64x64xf32, #a>
      %es = ttg.local_alloc %e : (tensor<64x64xf32, #a>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
      %fs = ttg.local_alloc %f : (tensor<64x64xf32, #a>) -> !ttg.memdesc<64x64xf32, #shared, #smem>
      %l = ttg.local_load %es : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #left>
      %m = ttg.local_load %fs : !ttg.memdesc<64x64xf32, #shared, #smem> -> tensor<64x64xf32, #right>
      %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.return %r : tensor<64x64xf32, #mma>
  }
}
