// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

// ptxas refuses the longer dots of doubles in a kernel whose threads may have fewer than 64 registers: the shortest one is taken then.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [8, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.maxnreg = 56 : i32} {
  // CHECK-NOT:     nvvm.mma
  // CHECK-COUNT-4: llvm.nvvm.mma.m8n8k4.row.col.f64
  // CHECK-NOT:     nvvm.mma
  tt.func private @f64(%a: tensor<32x8xf64, #a>, %b: tensor<8x16xf64, #b>, %c: tensor<32x16xf64, #mma>) -> tensor<32x16xf64, #mma> {
    %d = tt.dot %a, %b, %c : tensor<32x8xf64, #a> * tensor<8x16xf64, #b> -> tensor<32x16xf64, #mma>
    tt.return %d : tensor<32x16xf64, #mma>
  }
}
