// RUN: %ttopt %s --tritongpu-pipeline | FileCheck %s

// A dot that takes as long as everything else of an iteration: a CTA has all stages that it asks for, and with them the
// multiprocessor. Each of its threads copies sixteen times an iteration, so addresses are sums of pointers that stay and
// an offset, which advances before the copies that use it: in the iteration in which they do.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @advancing
  // CHECK-SAME: %[[PA:.*]]: tensor<128x64x!tt.ptr<f16>, #blocked>
  // CHECK-SAME: %[[STRIDE:[a-z0-9]+]]: i32
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<5x128x64xf16
  // CHECK-DAG: %[[WIDE:.*]] = arith.extsi %[[STRIDE]] : i32 to i64
  // CHECK-DAG: %[[STEP:.*]] = arith.constant 64 : i64
  // CHECK: scf.for {{.*}} iter_args({{.*}} %[[OA:[a-z0-9]+]] = %c0_i64{{[_0-9]*}}, %[[OB:[a-z0-9]+]] = %c0_i64
  // CHECK: %[[SA:.*]] = arith.addi %[[OA]], %[[STEP]] : i64
  // CHECK: %[[ALL:.*]] = tt.splat %[[SA]] : i64 -> tensor<128x64xi64, #blocked>
  // CHECK: %[[A:.*]] = tt.addptr %{{.*}}, %[[ALL]] : tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<128x64xi64, #blocked>
  // CHECK: %[[SB:.*]] = arith.addi %[[OB]], %[[WIDE]] : i64
  // CHECK: ttg.async_copy_global_to_local %[[A]]
  // CHECK: ttng.warp_group_dot
  // CHECK: scf.yield {{.*}} %[[SA]], %[[SB]]
  // Pointers that something else uses, too, are carried as they are.
  // CHECK-LABEL: @used_behind
  // CHECK: scf.for {{.*}} -> (tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>, {{.*}} i64, i32
  tt.func @advancing(%pa: tensor<128x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pb: tensor<64x128x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) -> tensor<128x128xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %sa = arith.constant dense<64> : tensor<128x64xi32, #blocked>
    %sb = tt.splat %stride : i32 -> tensor<64x128xi32, #blocked>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %a = %pa, %b = %pb) -> (tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<64x128x!tt.ptr<f16>, #blocked>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
      %y = tt.load %b : tensor<64x128x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %ys, %c : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<128x128xf32, #mma>
      %an = tt.addptr %a, %sa : tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<128x64xi32, #blocked>
      %bn = tt.addptr %b, %sb : tensor<64x128x!tt.ptr<f16>, #blocked>, tensor<64x128xi32, #blocked>
      scf.yield %d, %an, %bn : tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<64x128x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 4 : i32}
    tt.return %r#0 : tensor<128x128xf32, #mma>
  }

  tt.func @used_behind(%pa: tensor<128x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pb: tensor<64x128x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> (tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %sa = arith.constant dense<64> : tensor<128x64xi32, #blocked>
    %sb = arith.constant dense<64> : tensor<64x128xi32, #blocked>
    %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %a = %pa, %b = %pb) -> (tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<64x128x!tt.ptr<f16>, #blocked>) : i32 {
      %x = tt.load %a : tensor<128x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #shared, #smem>
      %y = tt.load %b : tensor<64x128x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<64x128xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %ys, %c : !ttg.memdesc<128x64xf16, #shared, #smem> * !ttg.memdesc<64x128xf16, #shared, #smem> -> tensor<128x128xf32, #mma>
      %an = tt.addptr %a, %sa : tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<128x64xi32, #blocked>
      %bn = tt.addptr %b, %sb : tensor<64x128x!tt.ptr<f16>, #blocked>, tensor<64x128xi32, #blocked>
      scf.yield %d, %an, %bn : tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>, tensor<64x128x!tt.ptr<f16>, #blocked>
    } {tt.num_stages = 4 : i32}
    tt.return %r#0, %r#1 : tensor<128x128xf32, #mma>, tensor<128x64x!tt.ptr<f16>, #blocked>
  }
}
