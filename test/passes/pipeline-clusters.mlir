// RUN: %ttopt %s --split-input-file --verify-diagnostics --tritongpu-pipeline="num-stages=2 explain=true" -o /dev/null

// Stages and clusters of Triton's scheduler: what is kept, what cannot be, and what means nothing.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @behind_the_dot(%pa: tensor<64x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    // expected-remark@+2 {{choice of the schedule}}
    // expected-remark-re@+1 {{has a software pipeline of 3 stages:{{.*}}ttng.warp_group_dot{{.*}}copy to ring 0}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tt.load %pa {loop.stage = 0 : i32, loop.cluster = 2 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x {loop.stage = 2 : i32, loop.cluster = 0 : i32} : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %xs, %c {loop.stage = 2 : i32, loop.cluster = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    } {tt.scheduled_max_stage = 2 : i32}
    tt.return %r : tensor<64x64xf32, #mma>
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @dot_ahead(%pa: tensor<64x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    // expected-remark@+3 {{choice of the schedule}}
    // expected-remark@+2 {{has a software pipeline of 3 stages}}
    // expected-remark@+1 {{its schedule is not what its attributes ask for: operation 1, ttng.warp_group_dot, runs 0 iterations ahead, not 1}}
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tt.load %pa {loop.stage = 0 : i32} : tensor<64x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x {loop.stage = 1 : i32} : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %xs, %c {loop.stage = 1 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    } {tt.scheduled_max_stage = 2 : i32}
    tt.return %r : tensor<64x64xf32, #mma>
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @beyond(%p: !tt.ptr<f32>, %n: i32) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      // expected-error@+1 {{has stage 3 of a loop whose last stage is 2}}
      %x = tt.load %p {loop.stage = 3 : i32} : !tt.ptr<f32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    } {tt.num_stages = 2 : i32, tt.scheduled_max_stage = 2 : i32}
    tt.return %0 : f32
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @negative(%p: !tt.ptr<f32>, %n: i32) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      // expected-error@+1 {{expects an integer that is not negative as "tt.latency"}}
      %x = tt.load %p {tt.latency = -1 : i32} : !tt.ptr<f32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    } {tt.num_stages = 2 : i32}
    tt.return %0 : f32
  }
}
