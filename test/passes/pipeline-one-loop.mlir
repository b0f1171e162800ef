// RUN: %ttopt %s --tritongpu-pipeline="num-stages=3 explain=true" 2>&1 | FileCheck %s

// An outer loop that only goes on with the sums of the inner one is one loop with it: one prologue, one end. Where the inner loop
// would begin again, what it uses of the outer one is computed again, in a branch.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: remark: becomes one loop with the loop around it: an iteration of the outer one takes {{[0-9]+}} cycles as one loop, {{[0-9]+}} as two
  // CHECK: remark: stays a loop of its own in the loop around it: how often it runs depends on the loop around it
  // CHECK-LABEL: @rows
  // CHECK: %[[ROWS:.*]] = arith.select
  // CHECK: %[[COLUMNS:.*]] = arith.select
  // CHECK: arith.muli %{{.*}}, %{{.*}} : i64
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: scf.for {{.*}} : i64 {
  // CHECK-NOT: scf.for
  // CHECK: tt.dot
  // CHECK: tt.return
  tt.func @rows(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %m: i32, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %s = scf.for %row = %c0 to %m step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %base = arith.muli %row, %c64 : i32
      %p = tt.addptr %a, %base : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %sum) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %k = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %k, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      scf.yield %r : tensor<64x64xf32, #mma>
    } {tt.flatten}
    tt.return %s : tensor<64x64xf32, #mma>
  }

  // CHECK-LABEL: @triangle
  // CHECK: scf.for
  // CHECK: scf.for
  tt.func @triangle(%pa: tensor<64x64x!tt.ptr<f32>, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %m: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %s = scf.for %row = %c0 to %m step %c1 iter_args(%sum = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %r = scf.for %i = %c0 to %row step %c1 iter_args(%c = %sum) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %k = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %k, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      scf.yield %r : tensor<64x64xf32, #mma>
    } {tt.flatten}
    tt.return %s : tensor<64x64xf32, #mma>
  }
}
