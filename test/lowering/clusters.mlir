// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Stored in the own block, read from where it is; no block goes on while others read from it.
  // CHECK-LABEL: llvm.func @between_blocks
  tt.func @between_blocks(%v: tensor<32x64xf32, #a>) {
    // CHECK: llvm.store %{{.*}} !llvm.ptr<3>
    // CHECK: llvm.nvvm.barrier.cluster.arrive.aligned
    // CHECK-NEXT: llvm.nvvm.barrier.cluster.wait.aligned
    // CHECK: llvm.nvvm.mapa.shared.cluster
    // CHECK: llvm.load %{{.*}} : !llvm.ptr<7>
    // CHECK: llvm.nvvm.barrier.cluster.arrive.aligned
    // CHECK-NEXT: llvm.nvvm.barrier.cluster.wait.aligned
    // CHECK: llvm.return
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return
  }
}
