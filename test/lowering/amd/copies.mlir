// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM

// Copies to the LDS past the registers: one address for a wave, alias scopes that keep other accesses to the LDS apart, and
// barriers that do not wait for what is under way.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.padded_shared<[512:+8] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-DAG:   #[[COPIES:.*]] = #llvm.alias_scope<id = "ttopt.copies"
// CHECK-DAG:   #[[THREADS:.*]] = #llvm.alias_scope<id = "ttopt.threads"
// CHECK-LABEL: llvm.func amdgpu_kernelcc @copies(
// CHECK:         rocdl.global.load.lds %{{.*}}, %{{.*}}, 16, 0, 0 {alias_scopes = [#[[COPIES]]]}
// CHECK:         rocdl.global.load.lds
// CHECK:         "llvm.amdgcn.sched.barrier"
// CHECK:         rocdl.raw.ptr.buffer.load.lds %{{.*}} {alias_scopes = [#[[COPIES]]]}
// CHECK:         rocdl.raw.ptr.buffer.load.lds
// vmcnt(2)
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(3954 : i32)
// CHECK:         "llvm.amdgcn.s.waitcnt"(%[[TWO]])
// CHECK:         llvm.fence syncscope("wavefront") release
// CHECK:         "llvm.amdgcn.s.barrier"
// CHECK:         llvm.fence syncscope("wavefront") acquire
// CHECK:         llvm.load %{{.*}} {alias_scopes = [#[[THREADS]]], alignment = 16 : i64, noalias_scopes = [#[[COPIES]]]}
// ASM-LABEL: copies:
// ASM:         global_load_lds_dwordx4
// ASM:         global_load_lds_dwordx4
// ASM:         buffer_load_dwordx4 {{.*}} lds
// ASM:         buffer_load_dwordx4 {{.*}} lds
// ASM-NOT:     vmcnt(0)
// ASM:         s_waitcnt vmcnt(2)
// ASM-NOT:     vmcnt(0)
// ASM:         s_barrier
// ASM-NOT:     vmcnt(0)
// ASM:         ds_read_b128
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
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  %t0 = ttg.async_copy_global_to_local %at, %m0 : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = amdg.buffer_load_to_local %p[%x] into %m1 : !tt.ptr<f16>[tensor<64x64xi32, #b>] -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w = ttg.async_wait %g0 {num = 1 : i32}
  %v = ttg.local_load %m0 token %w : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> tensor<64x64xf16, #b>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
  %to = tt.addptr %qs, %x : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
  tt.store %to, %v : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}
