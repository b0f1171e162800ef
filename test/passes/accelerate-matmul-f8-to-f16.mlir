// RUN: %ttopt %s --tritongpu-accelerate-matmul | FileCheck %s

// Who wants 8-bit floats summed in f16 gets sums of f16, in half of the registers.
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #b}>
#right = #ttg.dot_op<{opIdx = 1, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @sums_of_f16
// CHECK:       ttng.warp_group_dot {{.*}} -> tensor<64x64xf16, #
// CHECK-NOT:   arith.truncf
tt.func @sums_of_f16(%x: tensor<64x64xf8E4M3FN, #left>, %y: tensor<64x64xf8E4M3FN, #right>, %acc: tensor<64x64xf16, #b>) -> tensor<64x64xf16, #b> {
  %d = tt.dot %x, %y, %acc {maxNumImpreciseAcc = 1073741824 : i32} : tensor<64x64xf8E4M3FN, #left> * tensor<64x64xf8E4M3FN, #right> -> tensor<64x64xf16, #b>
  tt.return %d : tensor<64x64xf16, #b>
}
}
