// Every operation prints as it is read, also through the generic form and with locations.
//
// RUN: %ttopt %s -o %t.1 && %ttopt %t.1 -o %t.2 && diff %t.1 %t.2
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked4 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked5 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#linear = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: tt.func @registers(
tt.func @registers(%arg0: tensor<32x32xf32, #blocked>, %arg1: tensor<128x32xf16, #blocked1>, %arg2: !ttg.memdesc<64x128xi8, #shared, #smem>, %arg3: !ttg.async.token) {
  // CHECK: %{{[a-z0-9_]+}} = amdg.concat %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked> -> tensor<64x64xf32, #blocked>
  %0 = amdg.concat %arg0, %arg0, %arg0, %arg0 : tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked> -> tensor<64x64xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = amdg.extract_slice %{{[a-z0-9_]+}} [32, 0] : tensor<64x64xf32, #blocked> to tensor<32x64xf32, #blocked>
  %1 = amdg.extract_slice %0 [32, 0] : tensor<64x64xf32, #blocked> to tensor<32x64xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = amdg.in_thread_transpose %{{[a-z0-9_]+}} : tensor<128x32xf16, #blocked1> -> tensor<128x32xf16, #linear>
  %2 = amdg.in_thread_transpose %arg1 : tensor<128x32xf16, #blocked1> -> tensor<128x32xf16, #linear>
  // CHECK: %{{[a-z0-9_]+}} = amdg.local_load_packed_transposed %{{[a-z0-9_]+}} : !ttg.memdesc<64x128xi8, #shared, #smem> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>
  %3 = amdg.local_load_packed_transposed %arg2 : !ttg.memdesc<64x128xi8, #shared, #smem> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>
  // CHECK: %{{[a-z0-9_]+}} = amdg.local_load_packed_transposed %{{[a-z0-9_]+}} token %{{[a-z0-9_]+}} : !ttg.memdesc<64x128xi8, #shared, #smem> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>
  %4 = amdg.local_load_packed_transposed %arg2 token %arg3 : !ttg.memdesc<64x128xi8, #shared, #smem> -> tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>>
  tt.return
}

// CHECK-LABEL: tt.func @buffers(
tt.func @buffers(%arg0: !tt.ptr<f32>, %arg1: tensor<256xi32, #blocked2>, %arg2: tensor<256xi1, #blocked2>, %arg3: tensor<256xf32, #blocked2>, %arg4: i32, %arg5: !ttg.memdesc<256xf32, #shared1, #smem, mutable>, %arg6: !tt.ptr<i32>, %arg7: tensor<256x!tt.ptr<f32>, #blocked2>, %arg8: !ttg.async.token) {
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_load %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  %0 = amdg.buffer_load %arg0[%arg1] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_load %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} stride = %{{[a-z0-9_]+}} {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>, contiguity = 4 : i32} : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  %1 = amdg.buffer_load %arg0[%arg1], %arg2, %arg3 stride = %arg4 {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>, contiguity = 4 : i32} : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_load %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  %2 = amdg.buffer_load %arg0[%arg1], %arg2 : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_load_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] into %{{[a-z0-9_]+}} : !tt.ptr<f32>[tensor<256xi32, #blocked2>]  -> <256xf32, #shared1, #smem, mutable>
  %3 = amdg.buffer_load_to_local %arg0[%arg1] into %arg5 : !tt.ptr<f32>[tensor<256xi32, #blocked2>]  -> <256xf32, #shared1, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_load_to_local %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] mask = %{{[a-z0-9_]+}} other = %{{[a-z0-9_]+}} stride = %{{[a-z0-9_]+}} cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal> into %{{[a-z0-9_]+}} {contiguity = 4 : i32} : !tt.ptr<f32>[tensor<256xi32, #blocked2>] tensor<256xf32, #blocked2> -> <256xf32, #shared1, #smem, mutable>
  %4 = amdg.buffer_load_to_local %arg0[%arg1] mask = %arg2 other = %arg3 stride = %arg4 cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal> into %arg5 {contiguity = 4 : i32} : !tt.ptr<f32>[tensor<256xi32, #blocked2>] tensor<256xf32, #blocked2> -> <256xf32, #shared1, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  %5 = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %arg3, %arg0[%arg1] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_atomic_rmw max, relaxed, sys, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} stride = %{{[a-z0-9_]+}} : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  %6 = amdg.buffer_atomic_rmw max, relaxed, sys, %arg1, %arg6[%arg1], %arg2 stride = %arg4 : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_atomic_cas acq_rel, cta, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  %7 = amdg.buffer_atomic_cas acq_rel, cta, %arg1, %arg1, %arg6[%arg1] : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.buffer_atomic_cas relaxed, gpu, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] stride = %{{[a-z0-9_]+}} : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  %8 = amdg.buffer_atomic_cas relaxed, gpu, %arg1, %arg1, %arg6[%arg1] stride = %arg4 : !tt.ptr<i32> -> tensor<256xi32, #blocked2>
  // CHECK: amdg.buffer_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  amdg.buffer_store %arg3, %arg0[%arg1] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: amdg.buffer_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} stride = %{{[a-z0-9_]+}} {contiguity = 2 : i32} : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  amdg.buffer_store %arg3, %arg0[%arg1], %arg2 stride = %arg4 {contiguity = 2 : i32} : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_copy_local_to_global %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<256xf32, #shared1, #smem, mutable> -> tensor<256x!tt.ptr<f32>, #blocked2>
  %9 = amdg.async_copy_local_to_global %arg5, %arg7 : !ttg.memdesc<256xf32, #shared1, #smem, mutable> -> tensor<256x!tt.ptr<f32>, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_copy_local_to_global %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal> {contiguity = 4 : i32} : !ttg.memdesc<256xf32, #shared1, #smem, mutable> -> tensor<256x!tt.ptr<f32>, #blocked2>
  %10 = amdg.async_copy_local_to_global %arg5, %arg7 mask %arg2 cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal> {contiguity = 4 : i32} : !ttg.memdesc<256xf32, #shared1, #smem, mutable> -> tensor<256x!tt.ptr<f32>, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_wait {num_inst = 0 : i32}
  %11 = amdg.async_wait {num_inst = 0 : i32}
  // CHECK: %{{[a-z0-9_]+}} = amdg.async_wait %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {num_inst = 2 : i32}
  %12 = amdg.async_wait %9, %10 {num_inst = 2 : i32}
  tt.return
}

// CHECK-LABEL: tt.func @masked(
tt.func @masked(%arg0: !llvm.ptr<1>, %arg1: i1, %arg2: f32, %arg3: vector<4xf16>, %arg4: i32) {
  // CHECK: %{{[a-z0-9_]+}} = amdg.masked_load %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : (!llvm.ptr<1>, i1, f32) -> f32
  %0 = amdg.masked_load %arg0, %arg1, %arg2 : (!llvm.ptr<1>, i1, f32) -> f32
  // CHECK: %{{[a-z0-9_]+}} = amdg.masked_load %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} cacheModifier = cg forceNoAlias true : (!llvm.ptr<1>, i1, vector<4xf16>, i32) -> vector<4xf16>
  %1 = amdg.masked_load %arg0, %arg1, %arg3, %arg4 cacheModifier = cg forceNoAlias true : (!llvm.ptr<1>, i1, vector<4xf16>, i32) -> vector<4xf16>
  // CHECK: %{{[a-z0-9_]+}} = amdg.masked_load %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} volatile true : (!llvm.ptr<1>, i1, f32) -> f32
  %2 = amdg.masked_load %arg0, %arg1, %arg2 volatile true : (!llvm.ptr<1>, i1, f32) -> f32
  // CHECK: amdg.masked_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !llvm.ptr<1>, f32, i1
  amdg.masked_store %arg0, %arg2, %arg1 : !llvm.ptr<1>, f32, i1
  // CHECK: amdg.masked_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} cacheModifier = wt forceNoAlias true : !llvm.ptr<1>, vector<4xf16>, i1
  amdg.masked_store %arg0, %arg3, %arg1 cacheModifier = wt forceNoAlias true : !llvm.ptr<1>, vector<4xf16>, i1
  tt.return
}

// CHECK-LABEL: tt.func @scaled(
tt.func @scaled(%arg0: tensor<256x16xi8, #blocked3>, %arg1: tensor<256x32xbf16, #blocked4>, %arg2: tensor<256x1xi8, #blocked5>, %arg3: tensor<256x32xbf16, #blocked4>, %arg4: tensor<256x32xf8E5M2, #blocked4>) {
  // CHECK: %{{[a-z0-9_]+}} = amdg.scaled_upcast_fp4 %{{[a-z0-9_]+}} scale %{{[a-z0-9_]+}} {axis = 1 : i32} : tensor<256x16xi8, #blocked3>, tensor<256x32xbf16, #blocked4> -> tensor<256x32xbf16, #blocked4>
  %0 = amdg.scaled_upcast_fp4 %arg0 scale %arg1 {axis = 1 : i32} : tensor<256x16xi8, #blocked3>, tensor<256x32xbf16, #blocked4> -> tensor<256x32xbf16, #blocked4>
  // CHECK: %{{[a-z0-9_]+}} = amdg.scaled_upcast_fp4 %{{[a-z0-9_]+}} scale %{{[a-z0-9_]+}} {axis = 1 : i32} : tensor<256x16xi8, #blocked3>, tensor<256x1xi8, #blocked5> -> tensor<256x32xf16, #blocked4>
  %1 = amdg.scaled_upcast_fp4 %arg0 scale %arg2 {axis = 1 : i32} : tensor<256x16xi8, #blocked3>, tensor<256x1xi8, #blocked5> -> tensor<256x32xf16, #blocked4>
  // CHECK: %{{[a-z0-9_]+}} = amdg.scaled_upcast_fp8 %{{[a-z0-9_]+}} scale %{{[a-z0-9_]+}} : tensor<256x32xf8E5M2, #blocked4>, tensor<256x32xbf16, #blocked4> -> tensor<256x32xf16, #blocked4>
  %2 = amdg.scaled_upcast_fp8 %arg4 scale %arg1 : tensor<256x32xf8E5M2, #blocked4>, tensor<256x32xbf16, #blocked4> -> tensor<256x32xf16, #blocked4>
  // CHECK: %{{[a-z0-9_]+}} = amdg.scaled_downcast_fp4 %{{[a-z0-9_]+}} scale %{{[a-z0-9_]+}} {axis = 1 : i32} : tensor<256x32xbf16, #blocked4>, tensor<256x1xi8, #blocked5> -> tensor<256x16xi8, #blocked3>
  %3 = amdg.scaled_downcast_fp4 %arg3 scale %arg2 {axis = 1 : i32} : tensor<256x32xbf16, #blocked4>, tensor<256x1xi8, #blocked5> -> tensor<256x16xi8, #blocked3>
  // CHECK: %{{[a-z0-9_]+}} = amdg.scaled_downcast_fp8 %{{[a-z0-9_]+}} scale %{{[a-z0-9_]+}} {axis = 1 : i32} : tensor<256x32xbf16, #blocked4>, tensor<256x1xi8, #blocked5> -> tensor<256x32xf8E4M3FN, #blocked4>
  %4 = amdg.scaled_downcast_fp8 %arg3 scale %arg2 {axis = 1 : i32} : tensor<256x32xbf16, #blocked4>, tensor<256x1xi8, #blocked5> -> tensor<256x32xf8E4M3FN, #blocked4>
  tt.return
}

// CHECK-LABEL: tt.func @barriers(
tt.func @barriers(%arg0: i1, %arg1: !ttg.memdesc<1xi64, #shared1, #smem, mutable>, %arg2: i32) {
  // CHECK: amdg.cond_barrier %{{[a-z0-9_]+}}
  amdg.cond_barrier %arg0
  // CHECK: amdg.init_barrier %{{[a-z0-9_]+}}, 4 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  amdg.init_barrier %arg1, 4 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  // CHECK: amdg.wait_barrier %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  amdg.wait_barrier %arg1, %arg2 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = amdg.arrive_barrier %{{[a-z0-9_]+}}, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> i32
  %0 = amdg.arrive_barrier %arg1, 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> i32
  // CHECK: amdg.async_copy_mbarrier_arrive %{{[a-z0-9_]+}} : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  amdg.async_copy_mbarrier_arrive %arg1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
  tt.return
}

}
