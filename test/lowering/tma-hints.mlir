// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func @generic(
// CHECK:      %[[P:.*]] = llvm.inline_asm "createpolicy.fractional.L2::evict_first.b64 $0, 0f3F800000;", "=l" : () -> i64
// CHECK:      "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.L2::cache_hint [ $1 ], [ $2, {$3, $4} ], [ $5 ], $6;", "b,r,l,r,r,r,l,~{memory}" {{.*}}, %[[P]] :
// CHECK:      %[[Q:.*]] = llvm.inline_asm "createpolicy.fractional.L2::evict_last.b64 $0, 0f3F800000;", "=l" : () -> i64
// CHECK:      "@$0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group.L2::cache_hint [ $2, {$3, $4} ], [ $1 ], $5;", "b,r,l,r,r,l,~{memory}" {{.*}}, %[[Q]] :
tt.func public @generic(%d: !tt.tensordesc<16x64xf16, #wide>, %i: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %buf, %bar, %c {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<16x64xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%i, %i] %buf {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.tensordesc<16x64xf16, #wide>, !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  tt.return
}

// What is usual needs no policy, unless it is said to be one of L2.
// CHECK-LABEL: llvm.func @normal(
// CHECK-NOT:  createpolicy
// CHECK:      mbarrier::complete_tx::bytes [ $1 ]
// CHECK:      "createpolicy.fractional.L2::evict_last.L2::evict_first.b64 $0, 0f3F000000;"
// CHECK:      mbarrier::complete_tx::bytes.L2::cache_hint [ $1 ]
tt.func public @normal(%d: !tt.tensordesc<16x64xf16, #wide>, %i: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %buf, %bar, %c {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_normal>} : !tt.tensordesc<16x64xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %i] %buf, %bar, %c {cachePolicy = #ttng.cache_policy<l2_primary = evict_last, l2_secondary = evict_first, l2_fraction = 5.000000e-01 : f32>} : !tt.tensordesc<16x64xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<16x64xf16, #wide, #smem, mutable>
  tt.return
}
}
