// As ops.mlir, of clusters of two CTAs.
//
// RUN: %ttopt %s -o %t.1 && %ttopt %t.1 -o %t.2 && diff %t.1 %t.2
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}>
#shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 0]]}>
#shared3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#shared4 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @cluster(
tt.func @cluster(%arg0: !ttg.memdesc<2xi64, #shared, #smem, mutable>, %arg1: tensor<32x64xf16, #blocked>, %arg2: !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>, %arg3: i1, %arg4: i32, %arg5: !tt.tensordesc<64x64xf16, #shared2>, %arg6: !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>) {
  // CHECK: ttng.fence_mbarrier_init_release_cluster
  ttng.fence_mbarrier_init_release_cluster
  // CHECK: ttng.cluster_barrier
  ttng.cluster_barrier
  // CHECK: ttng.cluster_barrier {relaxed = true}
  ttng.cluster_barrier {relaxed = true}
  // CHECK: ttng.arrive_barrier %{{[a-z0-9_]+}}, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  ttng.arrive_barrier %arg0, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  // CHECK: ttng.barrier_expect %{{[a-z0-9_]+}}, 4096 {fromCTA = 1 : i32}, %{{[a-z0-9_]+}} : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  ttng.barrier_expect %arg0, 4096 {fromCTA = 1 : i32}, %arg3 : !ttg.memdesc<2xi64, #shared, #smem, mutable>
  // CHECK: ttng.async_shared_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<32x64xf16, #blocked> -> !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<2xi64, #shared, #smem, mutable>
  ttng.async_shared_store %arg1, %arg2, %arg0 : tensor<32x64xf16, #blocked> -> !ttg.memdesc<32x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<2xi64, #shared, #smem, mutable>
  // CHECK: ttng.async_tma_copy_global_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {multicast} : !tt.tensordesc<64x64xf16, #shared2>, !ttg.memdesc<2xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>
  ttng.async_tma_copy_global_to_local %arg5[%arg4, %arg4] %arg6, %arg0, %arg3 {multicast} : !tt.tensordesc<64x64xf16, #shared2>, !ttg.memdesc<2xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared2, #smem, mutable>
  tt.return
}

// CHECK-LABEL: tt.func @pairs(
tt.func @pairs(%arg0: !ttg.memdesc<256x64xf16, #shared3, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared4, #smem>, %arg2: !ttg.memdesc<256x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg3: !ttg.memdesc<2xi64, #shared, #smem, mutable>, %arg4: i1) {
  // CHECK: ttng.tc_gen5_mma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {is_async, two_ctas} : !ttg.memdesc<256x64xf16, #shared3, #smem>, !ttg.memdesc<64x64xf16, #shared4, #smem>, !ttg.memdesc<256x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<2xi64, #shared, #smem, mutable>
  ttng.tc_gen5_mma %arg0, %arg1, %arg2, %arg4, %arg4, %arg3[%arg4] {is_async, two_ctas} : !ttg.memdesc<256x64xf16, #shared3, #smem>, !ttg.memdesc<64x64xf16, #shared4, #smem>, !ttg.memdesc<256x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<2xi64, #shared, #smem, mutable>
  tt.return
}

}
