// As ops.mlir, of the tensor data mover (gfx1250).
//
// RUN: %ttopt %s -o %t.1 && %ttopt %t.1 -o %t.2 && diff %t.1 %t.2
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @copies(
tt.func @copies(%arg0: !tt.tensordesc<64x64xf16>, %arg1: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, %arg2: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, %arg3: !ttg.memdesc<1xi64, #shared2, #smem, mutable>, %arg4: tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, %arg5: tensor<64xi16, #ttg.slice<{dim = 0, parent = #blocked}>>) {
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_copy_global_to_local %{{[a-z0-9_]+}} into %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %0 = amdg.async_tdm_copy_global_to_local %arg0 into %arg1 : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_copy_global_to_local %{{[a-z0-9_]+}} into %{{[a-z0-9_]+}}, barrier = %{{[a-z0-9_]+}} {cache = 3 : i32, warp_used_hint = 3 : i32} : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %1 = amdg.async_tdm_copy_global_to_local %arg0 into %arg1, barrier = %arg3 {cache = 3 : i32, warp_used_hint = 3 : i32} : !tt.tensordesc<64x64xf16>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_copy_local_to_global %{{[a-z0-9_]+}} from %{{[a-z0-9_]+}} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %2 = amdg.async_tdm_copy_local_to_global %arg0 from %arg1 : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_copy_local_to_global %{{[a-z0-9_]+}} from %{{[a-z0-9_]+}}, barrier = %{{[a-z0-9_]+}} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %3 = amdg.async_tdm_copy_local_to_global %arg0 from %arg1, barrier = %arg3 : !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_fused_copy_global_to_local %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} into %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {warp_used_hints = array<i32: 3, 12>} : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  %4 = amdg.async_tdm_fused_copy_global_to_local %arg0, %arg0 into %arg1, %arg2 {warp_used_hints = array<i32: 3, 12>} : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_gather %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] to %{{[a-z0-9_]+}} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %5 = amdg.async_tdm_gather %arg0[%arg4] to %arg1 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_gather %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] to %{{[a-z0-9_]+}}, barrier = %{{[a-z0-9_]+}} : tensor<64xi16, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %6 = amdg.async_tdm_gather %arg0[%arg5] to %arg2, barrier = %arg3 : tensor<64xi16, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_scatter %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] from %{{[a-z0-9_]+}} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %7 = amdg.async_tdm_scatter %arg0[%arg4] from %arg1 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_scatter %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] from %{{[a-z0-9_]+}}, barrier = %{{[a-z0-9_]+}} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  %8 = amdg.async_tdm_scatter %arg0[%arg4] from %arg2, barrier = %arg3 : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<1xi64, #shared2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_wait %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {num = 0 : i32}
  %9 = amdg.async_tdm_wait %0, %1 {num = 0 : i32}
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_intrinsic_wait {count = 0 : i32}
  %10 = amdg.async_tdm_intrinsic_wait {count = 0 : i32}
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_tdm_intrinsic_wait %{{[a-z0-9_]+}} {count = 2 : i32}
  %11 = amdg.async_tdm_intrinsic_wait %5 {count = 2 : i32}
  tt.return
}

// CHECK-LABEL: tt.func @descriptors(
tt.func @descriptors(%arg0: !tt.tensordesc<64x64xf16>, %arg1: i32, %arg2: i1) {
  // CHECK: amdg.tdm_prefetch %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, speculative = false : !tt.tensordesc<64x64xf16>
  amdg.tdm_prefetch %arg0[%arg1, %arg1], %arg2, speculative = false : !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.tdm_prefetch %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, speculative = true returnOffsets : !tt.tensordesc<64x64xf16> -> tensor<64x1xi64, #blocked1>
  %0 = amdg.tdm_prefetch %arg0[%arg1, %arg1], %arg2, speculative = true returnOffsets : !tt.tensordesc<64x64xf16> -> tensor<64x1xi64, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = amdg.update_tensor_descriptor %{{[a-z0-9_]+}} add_offsets = [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] : !tt.tensordesc<64x64xf16>
  %1 = amdg.update_tensor_descriptor %arg0 add_offsets = [%arg1, %arg1] : !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.update_tensor_descriptor %{{[a-z0-9_]+}} add_offsets = [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] set_bounds = [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] pred = %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16>
  %2 = amdg.update_tensor_descriptor %arg0 add_offsets = [%arg1, %arg1] set_bounds = [%arg1, %arg1] pred = %arg1 : !tt.tensordesc<64x64xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.update_tensor_descriptor %{{[a-z0-9_]+}} add_offsets = [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] {clamp_bounds} : !tt.tensordesc<64x64xf16>
  %3 = amdg.update_tensor_descriptor %arg0 add_offsets = [%arg1, %arg1] {clamp_bounds} : !tt.tensordesc<64x64xf16>
  tt.return
}

}
