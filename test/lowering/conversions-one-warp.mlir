// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

// Of CTAs of one warp at least four share a multiprocessor, and each fills what others wait for: a quarter of the latencies counts, and shared
// memory takes 61 cycles, 24 shuffles and 64 selects 62 (95 and 80 where they count in full). The engine estimates with these costs, and what
// it chose by them is what is emitted.
#d = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
#b = #ttg.dot_op<{opIdx = 1, parent = #d}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: llvm.func @replicated
  // CHECK-NOT: shfl
  // CHECK-COUNT-2: "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16.p3"
  // CHECK: "llvm.nvvm.bar.warp.sync"
  // CHECK-COUNT-8: "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
  // CHECK-NOT: shfl
  // CHECK: llvm.return
  tt.func @replicated(%v: tensor<16x16xf32, #d>) {
    %0 = ttg.convert_layout %v : tensor<16x16xf32, #d> -> tensor<16x16xf32, #b>
    tt.return
  }
}
