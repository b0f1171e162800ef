// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#two = #ttg.linear<{register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>
#swapped = #ttg.linear<{register = [[2]], lane = [[1], [4], [8], [16], [32]], warp = [[64], [128]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // One exchange between neighbours, and selects of what is sent and received.
  // CHECK-LABEL: llvm.func @shuffle
  // CHECK-NOT: global_smem
  tt.func @shuffle(%v: tensor<256xf32, #two>) {
    // CHECK-COUNT-2: llvm.select
    // CHECK: "llvm.nvvm.shfl.sync.bfly.i32"
    // CHECK-NOT: shfl
    // CHECK-COUNT-2: llvm.select
    // CHECK: llvm.return
    %0 = ttg.convert_layout %v : tensor<256xf32, #two> -> tensor<256xf32, #swapped>
    tt.return
  }

  // CHECK-LABEL: llvm.func @shared
  tt.func @shared(%v: tensor<32x64xf32, #a>) {
    // CHECK-COUNT-8: llvm.store %{{.*}} : vector<2xi32>, !llvm.ptr<3>
    // CHECK: nvvm.barrier
    // CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
    // CHECK-NOT: nvvm.barrier
    // CHECK: llvm.return
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return
  }

  // A callee is told where its memory is.
  // CHECK-LABEL: llvm.func internal @callee
  // CHECK-SAME: %[[SHARED:[a-z0-9]*]]: !llvm.ptr<3>)
  // CHECK-NOT: addressof
  // CHECK: llvm.store %{{.*}}, %{{.*}} : vector<2xi32>, !llvm.ptr<3>
  tt.func private @callee(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  // CHECK-LABEL: llvm.func @caller
  tt.func @caller(%v: tensor<32x64xf32, #a>) {
    // CHECK: %[[BASE:.*]] = llvm.mlir.addressof @global_smem
    // CHECK: llvm.call @callee({{.*}}%[[BASE]])
    %0 = tt.call @callee(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    tt.return
  }
}
