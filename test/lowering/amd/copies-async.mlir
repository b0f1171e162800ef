// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM
// A copy of 16 bits is none, however each lane writes where it says:
// RUN: sed 's/sizePerThread = \[1, 8\], threadsPerWarp = \[4, 8\]/sizePerThread = [8, 1], threadsPerWarp = [8, 4]/' %s > %t.narrow.mlir
// RUN: not %ttc %t.narrow.mlir --emit llvm 2>&1 | FileCheck %s --check-prefix=NARROW
// NARROW: error: 'ttg.async_copy_global_to_local' op 16 consecutive bits are too few to copy without registers

// Asynchronous copies to the LDS on gfx1250: each lane has its address there, so memory is padded or swizzled as it likes, and lanes exchange
// nothing. Their counter counts nothing else, and a barrier waits for reads of the LDS alone, by LLVM's fences.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#padded = #ttg.padded_shared<[128:+8] {order = [1, 0], shape = [64, 64]}>
#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-DAG:   #[[COPIES:.*]] = #llvm.alias_scope<id = "ttopt.copies"
// CHECK-DAG:   #[[THREADS:.*]] = #llvm.alias_scope<id = "ttopt.threads"
// CHECK-LABEL: llvm.func amdgpu_kernelcc @copies(
// CHECK-COUNT-4: rocdl.global.load.async.to.lds.b128 %{{.*}}, %{{.*}}, 0, 0 {alias_scopes = [#[[COPIES]]]}
// CHECK:         "llvm.amdgcn.sched.barrier"
// CHECK-NOT:     bpermute
// CHECK-COUNT-4: rocdl.global.load.async.to.lds.b128 %{{.*}} {alias_scopes = [#[[COPIES]]]}
// CHECK:         rocdl.s.wait.asynccnt 4
// CHECK:         llvm.fence syncscope("workgroup") release
// CHECK:         "llvm.amdgcn.s.barrier"
// CHECK:         llvm.fence syncscope("workgroup") acquire
// CHECK:         llvm.load %{{.*}} {alias_scopes = [#[[THREADS]]], alignment = 16 : i64, noalias_scopes = [#[[COPIES]]]}
// ASM-LABEL: copies:
// ASM-COUNT-8: global_load_async_to_lds_b128
// ASM-NOT:     s_wait_asynccnt
// ASM:         s_wait_asynccnt 0x4
// ASM-NOT:     s_wait_asynccnt
// ASM:         s_barrier_wait
// ASM-NOT:     s_wait_asynccnt
// ASM:         ds_load_b128
tt.func public @copies(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64x1xi32, #b>
  %ns = tt.splat %n : i32 -> tensor<64x1xi32, #b>
  %rn = arith.muli %r2, %ns : tensor<64x1xi32, #b>
  %r = tt.broadcast %rn : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
  %x = arith.addi %r, %c : tensor<64x64xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
  %at = tt.addptr %ps, %x : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>
  %t0 = ttg.async_copy_global_to_local %at, %m0 : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #padded, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %at, %m1 : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #swizzled, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w = ttg.async_wait %g0 {num = 1 : i32}
  %v = ttg.local_load %m0 token %w : !ttg.memdesc<64x64xf16, #padded, #smem, mutable> -> tensor<64x64xf16, #b>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
  %to = tt.addptr %qs, %x : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
  tt.store %to, %v : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}
