// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=2 | FileCheck %s
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=1 | FileCheck %s --check-prefix=ONE

// Without copies beside the program data waits in registers for one iteration.

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // CHECK-LABEL: @matmul
  // The first iteration's data, if there is one.
  // CHECK:         arith.cmpi
  // CHECK:         %[[FIRST:.*]] = tt.load %arg0, %{{.*}} :
  // CHECK:         scf.for {{.*}} iter_args({{.*}}%[[DATA:[a-z0-9]+]] = %[[FIRST]]
  // CHECK:           %[[BUFFER:.*]] = ttg.local_alloc %[[DATA]]
  // CHECK:           ttg.local_load %[[BUFFER]]
  // CHECK:           %[[NEXT:.*]] = tt.load %{{.*}}, %{{.*}} :
  // CHECK:           tt.dot
  // CHECK:           scf.yield {{.*}}%[[NEXT]]
  // ONE-LABEL: @matmul
  // ONE-NOT:     tt.load
  // ONE:         scf.for
  // ONE:           tt.load %{{[a-z0-9]+}} :
  tt.func @matmul(%p: tensor<64x64x!tt.ptr<f16>, #blocked>, %y: tensor<64x64xf16, #b>, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %step = arith.constant dense<64> : tensor<64x64xi32, #blocked>
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%q = %p, %acc = %zero) -> (tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xf32, #mma>) : i32 {
      %0 = tt.load %q : tensor<64x64x!tt.ptr<f16>, #blocked>
      %1 = ttg.local_alloc %0 : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %2 = ttg.local_load %1 : !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf16, #a>
      %3 = tt.dot %2, %y, %acc : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #mma>
      %4 = tt.addptr %q, %step : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
      scf.yield %4, %3 : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xf32, #mma>
    }
    tt.return %r#1 : tensor<64x64xf32, #mma>
  }
}
