// Copies to the LDS of single bytes, as gfx1250 has: a kernel asserts what it finds there.
// RUN: %ttsim %s --quiet --arg p=i8[8192]
// RUN: %ttc %s --emit amdgcn | FileCheck %s
// CHECK-COUNT-32: global_load_async_to_lds_b8
// The assert sees what is wrong, and the simulator that nobody waits:
// RUN: sed 's/select %%m, %%byte, %%zero/select %%m, %%zero, %%byte/' %s > %t.other.mlir
// RUN: not %ttsim %t.other.mlir --quiet --arg p=i8[8192] 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: wrong byte
// RUN: sed 's/{num = 0 : i32}/{num = 1 : i32}/' %s > %t.wait.mlir
// RUN: not %ttsim %t.wait.mlir --quiet --arg p=i8[8192] 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: async-hazard: shared memory is read while an asynchronous copy

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @bytes(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %n64 = arith.constant dense<64> : tensor<64x64xi32, #b>
  %two = arith.constant dense<2> : tensor<64x64xi32, #b>
  %zero = arith.constant dense<0> : tensor<64x64xi8, #b>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64x1xi32, #b>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
  %rn = arith.muli %r, %n64 : tensor<64x64xi32, #b>
  %x = arith.addi %rn, %c : tensor<64x64xi32, #b>
  %twice = arith.muli %x, %two : tensor<64x64xi32, #b>
  %ps = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>, #b>
  %at = tt.addptr %ps, %twice : tensor<64x64x!tt.ptr<i8>, #b>, tensor<64x64xi32, #b>
  %byte = arith.trunci %x : tensor<64x64xi32, #b> to tensor<64x64xi8, #b>
  tt.store %at, %byte : tensor<64x64x!tt.ptr<i8>, #b>
  ttg.barrier all
  %limit = arith.constant dense<37> : tensor<64x64xi32, #b>
  %m = arith.cmpi slt, %r, %limit : tensor<64x64xi32, #b>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #plain, #smem, mutable>
  %t0 = ttg.async_copy_global_to_local %at, %m0 mask %m : tensor<64x64x!tt.ptr<i8>, #b> -> <64x64xi8, #plain, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %w = ttg.async_wait %g0 {num = 0 : i32}
  %v = ttg.local_load %m0 token %w : !ttg.memdesc<64x64xi8, #plain, #smem, mutable> -> tensor<64x64xi8, #b>
  %masks = arith.select %m, %byte, %zero : tensor<64x64xi1, #b>, tensor<64x64xi8, #b>
  %is = arith.cmpi eq, %v, %masks : tensor<64x64xi8, #b>
  tt.assert %is, "wrong byte" : tensor<64x64xi1, #b>
  tt.return
}
}
