// Every operation prints as it is read, also through the generic form and with locations.
//
// RUN: %ttopt %s -o %t.1 && %ttopt %t.1 -o %t.2 && diff %t.1 %t.2
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
#blocked4 = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared1 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#shared2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#shared3 = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#shared4 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem1 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem_scales = #ttng.tensor_memory_scales_encoding<>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @barriers(
tt.func @barriers(%arg0: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %arg1: i32, %arg2: i1, %arg3: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>) {
  // CHECK: ttng.init_barrier %{{[a-z0-9_]+}}, 2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.init_barrier %arg0, 2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.barrier_expect %{{[a-z0-9_]+}}, 8192, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.barrier_expect %arg0, 8192, %arg2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.barrier_expect %{{[a-z0-9_]+}}, 8192 {fromCTA = 0 : i32}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.barrier_expect %arg0, 8192 {fromCTA = 0 : i32}, %arg2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.wait_barrier %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.wait_barrier %arg0, %arg1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.wait_barrier %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.wait_barrier %arg0, %arg1, %arg2 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.wait_barrier %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} deps %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.wait_barrier %arg0, %arg1 deps %arg3 : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.wait_barrier %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} deps %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.wait_barrier %arg0, %arg1, %arg2 deps %arg3, %arg3 : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.arrive_barrier %{{[a-z0-9_]+}}, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.arrive_barrier %arg0, 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.arrive_barrier %{{[a-z0-9_]+}}, 2, %{{[a-z0-9_]+}} {fromCTA = 0 : i32} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.arrive_barrier %arg0, 2, %arg2 {fromCTA = 0 : i32} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.async_copy_mbarrier_arrive %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.async_copy_mbarrier_arrive %arg0 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.async_copy_mbarrier_arrive %{{[a-z0-9_]+}} {noIncrement} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.async_copy_mbarrier_arrive %arg0 {noIncrement} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.inval_barrier %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.inval_barrier %arg0 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  tt.return
}

// CHECK-LABEL: tt.func @fences(
tt.func @fences() {
  // CHECK: ttng.fence_async_shared {bCluster = false}
  ttng.fence_async_shared {bCluster = false}
  // CHECK: ttng.fence_async_shared {bCluster = true}
  ttng.fence_async_shared {bCluster = true}
  tt.return
}

// CHECK-LABEL: tt.func @launch_control(
tt.func @launch_control(%arg0: !ttg.memdesc<2xi64, #shared, #smem, mutable>, %arg1: !ttg.memdesc<1xi64, #shared, #smem, mutable>) {
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_try_cancel_sync : tensor<2xi64, #blocked>
  %0 = ttng.clc_try_cancel_sync : tensor<2xi64, #blocked>
  // CHECK: ttng.clc_try_cancel %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<2xi64, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.clc_try_cancel %arg0, %arg1 : !ttg.memdesc<2xi64, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_load_result %{{[a-z0-9_]+}} : !ttg.memdesc<2xi64, #shared, #smem, mutable> -> i128
  %1 = ttng.clc_load_result %arg0 : !ttg.memdesc<2xi64, #shared, #smem, mutable> -> i128
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_is_canceled %{{[a-z0-9_]+}} : i128 -> i1
  %2 = ttng.clc_is_canceled %1 : i128 -> i1
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_get_program_id %{{[a-z0-9_]+}}, x : i128 -> i32
  %3 = ttng.clc_get_program_id %1, x : i128 -> i32
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_get_program_id %{{[a-z0-9_]+}}, y : i128 -> i32
  %4 = ttng.clc_get_program_id %1, y : i128 -> i32
  // CHECK: %{{[a-z0-9_]+}} = ttng.clc_get_program_id %{{[a-z0-9_]+}}, z : i128 -> i32
  %5 = ttng.clc_get_program_id %1, z : i128 -> i32
  tt.return
}

// CHECK-LABEL: tt.func @packed(
tt.func @packed(%arg0: tensor<32x64xf16, #blocked1>, %arg1: tensor<32x64xf32, #blocked1>, %arg2: tensor<32x32xi8, #blocked2>, %arg3: tensor<32x64xf8E5M2, #blocked1>) {
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith add %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  %0 = ttng.packed_arith add %arg0, %arg0 : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith sub %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  %1 = ttng.packed_arith sub %arg0, %arg0 : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith mul %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf32, #blocked1>, tensor<32x64xf32, #blocked1>) -> tensor<32x64xf32, #blocked1>
  %2 = ttng.packed_arith mul %arg1, %arg1 : (tensor<32x64xf32, #blocked1>, tensor<32x64xf32, #blocked1>) -> tensor<32x64xf32, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith min %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  %3 = ttng.packed_arith min %arg0, %arg0 : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith max %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  %4 = ttng.packed_arith max %arg0, %arg0 : (tensor<32x64xf16, #blocked1>, tensor<32x64xf16, #blocked1>) -> tensor<32x64xf16, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith fma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x64xf16, #blocked1>, tensor<32x64xf32, #blocked1>, tensor<32x64xf32, #blocked1>) -> tensor<32x64xf32, #blocked1>
  %5 = ttng.packed_arith fma %arg0, %arg1, %arg1 : (tensor<32x64xf16, #blocked1>, tensor<32x64xf32, #blocked1>, tensor<32x64xf32, #blocked1>) -> tensor<32x64xf32, #blocked1>
  // CHECK: %{{[a-z0-9_]+}} = ttng.packed_arith add %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (tensor<32x32xi8, #blocked2>, tensor<32x64xf8E5M2, #blocked1>) -> tensor<32x64xf8E5M2, #blocked1>
  %6 = ttng.packed_arith add %arg2, %arg3 : (tensor<32x32xi8, #blocked2>, tensor<32x64xf8E5M2, #blocked1>) -> tensor<32x64xf8E5M2, #blocked1>
  tt.return
}

// CHECK-LABEL: tt.func @descriptors(
tt.func @descriptors(%arg0: !tt.tensordesc<64x64xf16, #shared1>, %arg1: !ttng.tensordesc_im2col<64x64xf16, #shared1>, %arg2: i32, %arg3: i16, %arg4: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %arg5: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, %arg6: i1, %arg7: !tt.tensordesc<1x64xf16, #shared1>, %arg8: tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>, %arg9: !tt.ptr<i8>, %arg10: i64) {
  // CHECK: ttng.async_tma_copy_global_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %arg0[%arg2, %arg2] %arg5, %arg4, %arg6 : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_copy_global_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %arg0[%arg2, %arg2] %arg5, %arg4, %arg6 {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_copy_global_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] offsets = [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttng.tensordesc_im2col<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_copy_global_to_local %arg1[%arg2, %arg2, %arg2, %arg2] offsets = [%arg3, %arg3] %arg5, %arg4, %arg6 : !ttng.tensordesc_im2col<64x64xf16, #shared1>, !ttg.memdesc<1xi64, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_copy_local_to_global %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_copy_local_to_global %arg0[%arg2, %arg2] %arg5 : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_copy_local_to_global %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}} {cachePolicy = #ttng.cache_policy<l2_primary = evict_first, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_copy_local_to_global %arg0[%arg2, %arg2] %arg5 {cachePolicy = #ttng.cache_policy<l2_primary = evict_first, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_reduce add, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_reduce add, %arg0[%arg2, %arg2] %arg5 : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_reduce max, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}} : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_reduce max, %arg0[%arg2, %arg2] %arg5 : !tt.tensordesc<64x64xf16, #shared1>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_gather %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !tt.tensordesc<1x64xf16, #shared1>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>, i32, !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, i1
  ttng.async_tma_gather %arg7[%arg8, %arg2] %arg5, %arg4, %arg6 : !tt.tensordesc<1x64xf16, #shared1>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>, i32, !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, i1
  // CHECK: ttng.async_tma_scatter %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] %{{[a-z0-9_]+}} : !tt.tensordesc<1x64xf16, #shared1>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>, i32, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.async_tma_scatter %arg7[%arg8, %arg2] %arg5 : !tt.tensordesc<1x64xf16, #shared1>, tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked3}>>, i32, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  // CHECK: ttng.async_tma_store_wait {pendings = 1 : i32}
  ttng.async_tma_store_wait {pendings = 1 : i32}
  // CHECK: ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  // CHECK: %{{[a-z0-9_]+}} = ttng.reinterpret_tensor_descriptor %{{[a-z0-9_]+}} : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared1>
  %0 = ttng.reinterpret_tensor_descriptor %arg9 : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared1>
  // CHECK: ttng.tensormap_create %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}], [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}], [%{{[a-z0-9_]+}}], [%{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32, i32, i64, i32, i32) -> ()
  ttng.tensormap_create %arg9, %arg9, [%arg2, %arg2], [%arg2, %arg2], [%arg10], [%arg2, %arg2] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32, i32, i64, i32, i32) -> ()
  // CHECK: ttng.tensormap_fenceproxy_acquire %{{[a-z0-9_]+}} : !tt.ptr<i8>
  ttng.tensormap_fenceproxy_acquire %arg9 : !tt.ptr<i8>
  tt.return
}

// CHECK-LABEL: tt.func @warp_groups(
tt.func @warp_groups(%arg0: !ttg.memdesc<128x64xf16, #shared1, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared1, #smem>, %arg2: tensor<128x64xf32, #mma>, %arg3: tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>, %arg4: i1) {
  // CHECK: %{{[a-z0-9_]+}} = ttng.warp_group_dot %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<128x64xf16, #shared1, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
  %0 = ttng.warp_group_dot %arg0, %arg1, %arg2 : !ttg.memdesc<128x64xf16, #shared1, #smem> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
  // CHECK: %{{[a-z0-9_]+}} = ttng.warp_group_dot %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 32 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
  %1 = ttng.warp_group_dot %arg3, %arg1, %arg2, %arg4 {inputPrecision = 0 : i32, isAsync = true, maxNumImpreciseAcc = 32 : i32} : tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16, #shared1, #smem> -> tensor<128x64xf32, #mma>
  // CHECK: %{{[a-z0-9_]+}} = ttng.warp_group_dot_wait %{{[a-z0-9_]+}} {pendings = 0 : i32} : tensor<128x64xf32, #mma>
  %2 = ttng.warp_group_dot_wait %0 {pendings = 0 : i32} : tensor<128x64xf32, #mma>
  // CHECK: %{{[a-z0-9_]+}}:2 = ttng.warp_group_dot_wait %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {pendings = 1 : i32, warpGroupLocal} : tensor<128x64xf32, #mma>, !ttg.memdesc<128x64xf16, #shared1, #smem>
  %3:2 = ttng.warp_group_dot_wait %1, %arg0 {pendings = 1 : i32, warpGroupLocal} : tensor<128x64xf32, #mma>, !ttg.memdesc<128x64xf16, #shared1, #smem>
  tt.return
}

// CHECK-LABEL: tt.func @products(
tt.func @products(%arg0: !ttg.memdesc<128x64xf16, #shared1, #smem>, %arg1: !ttg.memdesc<64x64xf16, #shared1, #smem>, %arg2: !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, %arg3: !ttg.memdesc<1xi64, #shared, #smem, mutable>, %arg4: i1, %arg5: !ttg.async.token, %arg6: !ttg.memdesc<128x128xf8E4M3FN, #shared2, #smem>, %arg7: !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, %arg8: !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, %arg9: !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>, %arg10: !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>) {
  // CHECK: ttng.tc_gen5_mma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  ttng.tc_gen5_mma %arg0, %arg1, %arg2, %arg4, %arg4 : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: ttng.tc_gen5_mma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {is_async} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.tc_gen5_mma %arg0, %arg1, %arg2, %arg4, %arg4, %arg3[%arg4] {is_async} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttng.tc_gen5_mma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {is_async, is_unsigned, multicast} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  %0 = ttng.tc_gen5_mma %arg0, %arg1, %arg2[%arg5], %arg4, %arg4, %arg3[%arg4], %arg3[%arg4] {is_async, is_unsigned, multicast} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttng.tc_gen5_mma %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  %1 = ttng.tc_gen5_mma %arg0, %arg1, %arg2[], %arg4, %arg4 : !ttg.memdesc<128x64xf16, #shared1, #smem>, !ttg.memdesc<64x64xf16, #shared1, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: ttng.tc_gen5_mma_scaled %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} lhs = e4m3 rhs = e4m3 : !ttg.memdesc<128x128xf8E4M3FN, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>
  ttng.tc_gen5_mma_scaled %arg6, %arg7, %arg2, %arg8, %arg9, %arg4, %arg4 lhs = e4m3 rhs = e4m3 : !ttg.memdesc<128x128xf8E4M3FN, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>
  // CHECK: %{{[a-z0-9_]+}} = ttng.tc_gen5_mma_scaled %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} lhs = e4m3 rhs = e4m3, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {is_async} : !ttg.memdesc<128x128xf8E4M3FN, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  %2 = ttng.tc_gen5_mma_scaled %arg6, %arg7, %arg2[%arg5], %arg8, %arg9, %arg4, %arg4 lhs = e4m3 rhs = e4m3, %arg3[%arg4] {is_async} : !ttg.memdesc<128x128xf8E4M3FN, #shared2, #smem>, !ttg.memdesc<128x64xf8E4M3FN, #shared3, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.memdesc<128x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<64x4xi8, #tmem_scales, #ttng.tensor_memory>, !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.tc_gen5_commit %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  ttng.tc_gen5_commit %arg3 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
  // CHECK: ttng.tc_gen5_commit %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} descs %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  ttng.tc_gen5_commit %arg3, %arg4 descs %arg10, %arg10 : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
  tt.return
}

// CHECK-LABEL: tt.func @tensor_memory(
tt.func @tensor_memory(%arg0: tensor<128x64xf32, #blocked4>, %arg1: i1, %arg2: !ttg.async.token, %arg3: !ttg.memdesc<128x64xf32, #shared4, #smem>, %arg4: !ttg.memdesc<128x128xf32, #tmem1, #ttng.tensor_memory, mutable>) {
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  %result = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
  %result_0, %token = ttng.tmem_alloc : () -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_alloc %{{[a-z0-9_]+}} : (tensor<128x64xf32, #blocked4>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
  %result_1 = ttng.tmem_alloc %arg0 : (tensor<128x64xf32, #blocked4>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_alloc %{{[a-z0-9_]+}} : (tensor<128x64xf32, #blocked4>) -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
  %result_2, %token_3 = ttng.tmem_alloc %arg0 : (tensor<128x64xf32, #blocked4>) -> (!ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>, !ttg.async.token)
  // CHECK: ttng.tmem_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  ttng.tmem_store %arg0, %result, %arg1 : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  %0 = ttng.tmem_store %arg0, %result[%arg2], %arg1 : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[], %{{[a-z0-9_]+}} : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  %1 = ttng.tmem_store %arg0, %result[], %arg1 : tensor<128x64xf32, #blocked4> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  // CHECK: ttng.tmem_wait store
  ttng.tmem_wait store
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_load %{{[a-z0-9_]+}} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  %result_4 = ttng.tmem_load %result : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_load %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  %result_5, %token_6 = ttng.tmem_load %result[%0] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_load %{{[a-z0-9_]+}}[] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  %result_7, %token_8 = ttng.tmem_load %result[] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_load %{{[a-z0-9_]+}} {redOp = #ttng.redOp<max>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked4}>>
  %result_9, %red = ttng.tmem_load %result {redOp = #ttng.redOp<max>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked4}>>
  // CHECK: %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} = ttng.tmem_load %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {NaN = true, abs = true, redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked4}>>
  %result_10, %token_11, %red_12 = ttng.tmem_load %result[%arg2] {NaN = true, abs = true, redOp = #ttng.redOp<min>} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked4>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #blocked4}>>
  // CHECK: ttng.tmem_wait load
  ttng.tmem_wait load
  // CHECK: %{{[a-z0-9_]+}} = ttng.tmem_subslice %{{[a-z0-9_]+}} {offset = 64 : i32} : !ttg.memdesc<128x128xf32, #tmem1, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem1, #ttng.tensor_memory, mutable, 128x128>
  %2 = ttng.tmem_subslice %arg4 {offset = 64 : i32} : !ttg.memdesc<128x128xf32, #tmem1, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x64xf32, #tmem1, #ttng.tensor_memory, mutable, 128x128>
  // CHECK: ttng.tmem_copy %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<128x64xf32, #shared4, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  ttng.tmem_copy %arg3, %result : !ttg.memdesc<128x64xf32, #shared4, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
  tt.return
}

}
