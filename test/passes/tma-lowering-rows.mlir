// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-nvidia-optimize-descriptor-encoding,triton-nvidia-tma-lowering)' | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#vector = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
// The rows of a dot are swizzled as it wants them; others have none, so that copies are long.
// CHECK-DAG: #[[PRODUCT:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[LONG:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[WARPS:.*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Rows and blocks wait together; all lanes of a warp get the numbers of its rows.
// CHECK-LABEL: @gather(
// CHECK:      %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<32x64xf16, #[[PRODUCT]], #smem, mutable>
// CHECK:      %[[N:.*]] = ttg.convert_layout %{{.*}} : tensor<32xi32, #{{.*}}> -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #[[WARPS]]}>>
// CHECK:      ttng.barrier_expect %[[BAR:.*]], 12288, %true
// CHECK-NEXT: ttng.async_tma_gather %{{.*}}[%[[N]], %{{.*}}] %[[A]], %[[BAR]], %true : !tt.tensordesc<1x64xf16, #[[PRODUCT]]>
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %{{.*}} %[[B:.*]], %[[BAR]], %true {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>}
// CHECK-NEXT: ttng.wait_barrier %[[BAR]], %{{.*}} deps %[[A]], %[[B]]
// CHECK:      ttg.local_dealloc %[[A]]
tt.func public @gather(%d: !tt.tensordesc<1x64xf16>, %e: !tt.tensordesc<64x64xf16>, %r: tensor<32xi32, #vector>, %p: tensor<64x64x!tt.ptr<f16>, #blocked>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_gather %d[%r, %c0] : (!tt.tensordesc<1x64xf16>, tensor<32xi32, #vector>, i32) -> tensor<32x64xf16, #blocked>
  %xs = ttg.local_alloc %x : (tensor<32x64xf16, #blocked>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
  %y = tt.descriptor_load %e[%c0, %c0] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16, #blocked>
  tt.store %p, %y : tensor<64x64x!tt.ptr<f16>, #blocked>
  ttg.local_dealloc %xs : !ttg.memdesc<32x64xf16, #shared, #smem>
  tt.return
}

// CHECK-LABEL: @scatter(
// CHECK:      ttng.async_tma_gather {{.*}} : !tt.tensordesc<1x256xf16, #[[LONG]]>
// CHECK:      %[[X:.*]] = ttg.local_load
// CHECK:      %[[N:.*]] = ttg.convert_layout
// CHECK-NEXT: %[[B:.*]] = ttg.local_alloc %[[X]]
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_scatter %{{.*}}[%[[N]], %{{.*}}] %[[B]] : !tt.tensordesc<1x256xf16, #[[LONG]]>
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
tt.func public @scatter(%d: !tt.tensordesc<1x256xf16>, %r: tensor<32xi32, #vector>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_gather %d[%r, %c0] : (!tt.tensordesc<1x256xf16>, tensor<32xi32, #vector>, i32) -> tensor<32x256xf16, #blocked>
  tt.descriptor_scatter %d[%r, %c0], %x : !tt.tensordesc<1x256xf16>, tensor<32xi32, #vector>, i32, tensor<32x256xf16, #blocked>
  tt.return
}

// The numbers of rows may come from a load: those wait first.
// CHECK-LABEL: @numbers(
// CHECK: ttng.wait_barrier
// CHECK: ttg.local_load
// CHECK: ttng.async_tma_gather
// CHECK: ttng.wait_barrier
tt.func public @numbers(%d: !tt.tensordesc<1x64xi32>, %e: !tt.tensordesc<32xi32>, %p: tensor<32x64x!tt.ptr<i32>, #blocked>) {
  %c0 = arith.constant 0 : i32
  %r = tt.descriptor_load %e[%c0] : !tt.tensordesc<32xi32> -> tensor<32xi32, #vector>
  %x = tt.descriptor_gather %d[%r, %c0] : (!tt.tensordesc<1x64xi32>, tensor<32xi32, #vector>, i32) -> tensor<32x64xi32, #blocked>
  tt.store %p, %x : tensor<32x64x!tt.ptr<i32>, #blocked>
  tt.return
}
}
