// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.padded_shared<[512:+8] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// A masked lane loads zeros from a constant: the load is in no branch, and nothing is stored. What is something else is stored.
// CHECK-LABEL: llvm.func amdgpu_kernelcc @masked(
// CHECK:         %[[ZEROS:.*]] = llvm.mlir.addressof @[[TABLE:__ttopt_table_[0-9]+]] : !llvm.ptr<1>
// CHECK:         %[[FROM:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[ZEROS]] : i1, !llvm.ptr<1>
// CHECK-NOT:     llvm.cond_br
// CHECK:         rocdl.global.load.lds %[[FROM]], %{{.*}}, 16, 0, 0
// CHECK:         rocdl.global.load.lds
// CHECK-NOT:     llvm.store
// CHECK:         "llvm.amdgcn.sched.barrier"
// CHECK:         llvm.cond_br
// CHECK:         rocdl.global.load.lds
// CHECK:         llvm.store %{{.*}} !llvm.ptr<3>
// ASM-LABEL: masked:
// ASM:         global_load_lds_dwordx4
// ASM:         global_load_lds_dwordx4
// ASM-NOT:     ds_write
// ASM:         s_cbranch
tt.func public @masked(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64x1xi32, #b>
  %ns = tt.splat %n : i32 -> tensor<64x1xi32, #b>
  %m1 = arith.cmpi slt, %r2, %ns : tensor<64x1xi32, #b>
  %m = tt.broadcast %m1 : tensor<64x1xi1, #b> -> tensor<64x64xi1, #b>
  %rn = arith.muli %r2, %ns : tensor<64x1xi32, #b>
  %r = tt.broadcast %rn : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
  %x = arith.addi %r, %c : tensor<64x64xi32, #b>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #b>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
  %at = tt.addptr %ps, %x : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
  %b0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  %b1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
  %t0 = ttg.async_copy_global_to_local %at, %b0 mask %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %at, %b1 mask %m other %one : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w = ttg.async_wait %g0, %g1 {num = 0 : i32}
  %v0 = ttg.local_load %b0 token %w : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> tensor<64x64xf16, #b>
  %v1 = ttg.local_load %b1 token %w : !ttg.memdesc<64x64xf16, #s, #smem, mutable> -> tensor<64x64xf16, #b>
  %v = arith.addf %v0, %v1 : tensor<64x64xf16, #b>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #b>
  %to = tt.addptr %qs, %x : tensor<64x64x!tt.ptr<f16>, #b>, tensor<64x64xi32, #b>
  tt.store %to, %v : tensor<64x64x!tt.ptr<f16>, #b>
  tt.return
}
}
