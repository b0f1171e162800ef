// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM

// Asynchronous copies on gfx1250 whose offsets are known to be small: a lane has 32 bits of an address, and the rest is in scalar registers.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// The instruction adds both.
// CHECK-LABEL:    llvm.func amdgpu_kernelcc @copies(
// CHECK-NOT:      llvm.inttoptr
// CHECK-COUNT-4:  llvm.getelementptr %arg0[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK:          llvm.amdgcn.sched.barrier
// ASM-LABEL:      copies:
// ASM-COUNT-4:    global_load_async_to_lds_b128 v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9]+:[0-9]+}}]
// Where all lanes have one mask, the base is that of zeros.
// CHECK:          %[[BASE:.*]] = llvm.select %[[ALIKE:.*]], %arg0, %{{.*}} : i1, !llvm.ptr<1>
// CHECK-COUNT-4:  llvm.getelementptr %[[BASE]][%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK:          llvm.amdgcn.sched.barrier
// ASM-COUNT-4:    global_load_async_to_lds_b128 v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9]+:[0-9]+}}]
// Where each has its own, zeros are so far from the base.
// CHECK:          %[[DISTANCE:.*]] = llvm.sub %{{.*}}, %{{.*}} : i64
// CHECK-COUNT-4:  llvm.select %{{.*}}, %{{.*}}, %[[DISTANCE]] : i1, i64
// CHECK:          llvm.amdgcn.sched.barrier
// ASM-COUNT-4:    global_load_async_to_lds_b128 v{{[0-9]+}}, v[{{[0-9]+:[0-9]+}}], off
// Bytes that are apart are copied one at a time.
// CHECK-COUNT-32: rocdl.global.load.async.to.lds.b8
// CHECK:          llvm.amdgcn.sched.barrier
// ASM-COUNT-32:   global_load_async_to_lds_b8 v{{[0-9]+}}, v{{[0-9]+}}, s[{{[0-9]+:[0-9]+}}]
// ASM-NOT:        global_load
tt.func public @copies(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %q: !tt.ptr<i8> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %last: i32) {
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
  %two = arith.constant dense<2> : tensor<64x64xi32, #b>
  %every = arith.muli %x, %two : tensor<64x64xi32, #b>
  %qs = tt.splat %q : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>, #b>
  %apart = tt.addptr %qs, %every : tensor<64x64x!tt.ptr<i8>, #b>, tensor<64x64xi32, #b>
  %is = arith.cmpi slt, %n, %last : i32
  %alike = tt.splat %is : i1 -> tensor<64x64xi1, #b>
  %lasts = tt.splat %last : i32 -> tensor<64x1xi32, #b>
  %inside = arith.cmpi slt, %r2, %lasts : tensor<64x1xi32, #b>
  %own = tt.broadcast %inside : tensor<64x1xi1, #b> -> tensor<64x64xi1, #b>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %m2 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  %m3 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #plain, #smem, mutable>
  %t0 = ttg.async_copy_global_to_local %at, %m0 : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #plain, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %at, %m1 mask %alike : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #plain, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %t2 = ttg.async_copy_global_to_local %at, %m2 mask %own : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #plain, #smem, mutable>
  %g2 = ttg.async_commit_group tokens %t2
  %t3 = ttg.async_copy_global_to_local %apart, %m3 : tensor<64x64x!tt.ptr<i8>, #b> -> <64x64xi8, #plain, #smem, mutable>
  %g3 = ttg.async_commit_group tokens %t3
  %w = ttg.async_wait %g3 {num = 0 : i32}
  tt.return
}
}
