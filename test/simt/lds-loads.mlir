// Copies from global memory to the LDS, past the registers: a kernel asserts what it finds in the LDS.
// RUN: %ttsim %s --quiet --arg p=i32[4096] --arg q=i16[4096]
// Loads of one word, as gfx942 has: rows of the buffers' 16-bit elements are too wide for it.
// RUN: sed -e '/call @halves/d' -e '/^.. Warps, lanes/,/^}$/d' -e 's/gfx950/gfx942/' -e 's/sizePerThread = \[1, 4\], threadsPerWarp = \[4, 16\]/sizePerThread = [1, 1], threadsPerWarp = [1, 64]/' \
// RUN:   -e 's/\[256:+4\]/[4096:+4]/' -e 's/vec = 4,/vec = 2,/' %s > %t.942.mlir
// RUN: %ttsim %t.942.mlir --quiet --arg p=i32[4096] --arg q=i16[4096]
// Asynchronous copies, as gfx1250 has: each lane writes where it says, so swizzled memory takes no exchange, and no buffer is needed.
// RUN: sed -e 's/gfx950/gfx1250/; s/threads-per-warp" = 64/threads-per-warp" = 32/' -e 's/threadsPerWarp = \[4, 16\]/threadsPerWarp = [2, 16]/; s/threadsPerWarp = \[8, 8\]/threadsPerWarp = [4, 8]/' \
// RUN:   -e 's/amdg.buffer_load_to_local .p\[%x\] mask = %m into %m2 : .* -> </ttg.async_copy_global_to_local %at, %m2 mask %m : tensor<64x64x!tt.ptr<i32>, #b> -> </' %s > %t.1250.mlir
// RUN: %ttsim %t.1250.mlir --quiet --arg p=i32[4096] --arg q=i16[4096]
// RUN: %ttc %t.1250.mlir --emit amdgcn | FileCheck %s --check-prefix=ASYNC
// ASYNC-NOT: ds_bpermute
// ASYNC:     global_load_async_to_lds_b128
// ASYNC-NOT: ds_bpermute
// The asserts see what is wrong:
// RUN: sed 's/other %number/other %x/' %s > %t.other.mlir
// RUN: not %ttsim %t.other.mlir --quiet --arg p=i32[4096] --arg q=i16[4096] 2>&1 | FileCheck %s --check-prefix=OTHER
// OTHER: wrong word
// Without the wait the LDS is read while it is written, and without all groups waited for, the last one:
// RUN: sed '/@words/,/tt.return/s/{num = 0 : i32}/{num = 1 : i32}/' %s > %t.wait.mlir
// RUN: not %ttsim %t.wait.mlir --quiet --arg p=i32[4096] --arg q=i16[4096] 2>&1 | FileCheck %s --check-prefix=WAIT
// RUN: sed '/@words/,/tt.return/s/{num = 0 : i32}/{num = 1 : i32}/' %t.1250.mlir > %t.1250.wait.mlir
// RUN: not %ttsim %t.1250.wait.mlir --quiet --arg p=i32[4096] --arg q=i16[4096] 2>&1 | FileCheck %s --check-prefix=WAIT
// WAIT: async-hazard: shared memory is read while an asynchronous copy

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#h = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#swizzled = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#turned = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 8, order = [1, 0]}>
#padded = #ttg.padded_shared<[256:+4] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {


tt.func public @words(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i16> {tt.divisibility = 16 : i32}) {
  %n64 = arith.constant dense<64> : tensor<64x64xi32, #b>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64x1xi32, #b>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
  %rn = arith.muli %r, %n64 : tensor<64x64xi32, #b>
  %x = arith.addi %rn, %c : tensor<64x64xi32, #b>
  %number = arith.constant dense<7> : tensor<64x64xi32, #b>
  %zero = arith.constant dense<0> : tensor<64x64xi32, #b>
  %limit = arith.constant dense<37> : tensor<64x64xi32, #b>
  %m = arith.cmpi slt, %r, %limit : tensor<64x64xi32, #b>
  %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>, #b>
  %at = tt.addptr %ps, %x : tensor<64x64x!tt.ptr<i32>, #b>, tensor<64x64xi32, #b>
  tt.store %at, %x : tensor<64x64x!tt.ptr<i32>, #b>
  ttg.barrier all
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #plain, #smem, mutable>
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #padded, #smem, mutable>
  %m2 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #swizzled, #smem, mutable>
  %m3 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #swizzled, #smem, mutable>
  // All of it; masked, with something else, with zero by offsets beyond the buffer, with zero by stores.
  %t0 = ttg.async_copy_global_to_local %at, %m0 {isVolatile = true} : tensor<64x64x!tt.ptr<i32>, #b> -> <64x64xi32, #plain, #smem, mutable>
  %t1 = ttg.async_copy_global_to_local %at, %m1 mask %m other %number : tensor<64x64x!tt.ptr<i32>, #b> -> <64x64xi32, #padded, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0, %t1
  %t2 = amdg.buffer_load_to_local %p[%x] mask = %m into %m2 : !tt.ptr<i32>[tensor<64x64xi32, #b>] -> <64x64xi32, #swizzled, #smem, mutable>
  %t3 = ttg.async_copy_global_to_local %at, %m3 mask %m {isVolatile = true} : tensor<64x64x!tt.ptr<i32>, #b> -> <64x64xi32, #swizzled, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t2, %t3
  %w = ttg.async_wait %g0, %g1 {num = 0 : i32}
  %v0 = ttg.local_load %m0 token %w : !ttg.memdesc<64x64xi32, #plain, #smem, mutable> -> tensor<64x64xi32, #b>
  %v1 = ttg.local_load %m1 token %w : !ttg.memdesc<64x64xi32, #padded, #smem, mutable> -> tensor<64x64xi32, #b>
  %v2 = ttg.local_load %m2 token %w : !ttg.memdesc<64x64xi32, #swizzled, #smem, mutable> -> tensor<64x64xi32, #b>
  %v3 = ttg.local_load %m3 token %w : !ttg.memdesc<64x64xi32, #swizzled, #smem, mutable> -> tensor<64x64xi32, #b>
  %x7 = arith.select %m, %x, %number : tensor<64x64xi1, #b>, tensor<64x64xi32, #b>
  %x0 = arith.select %m, %x, %zero : tensor<64x64xi1, #b>, tensor<64x64xi32, #b>
  tt.call @check(%v0, %x) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @check(%v1, %x7) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @check(%v2, %x0) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @check(%v3, %x0) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @halves(%q) : (!tt.ptr<i16>) -> ()
  tt.return
}

tt.func private @check(%a: tensor<64x64xi32, #b>, %b: tensor<64x64xi32, #b>) {
  %ok = arith.cmpi eq, %a, %b : tensor<64x64xi32, #b>
  tt.assert %ok, "wrong word" : tensor<64x64xi1, #b>
  tt.return
}

// Warps, lanes and registers all move what belongs in a row: lanes exchange pointers.
tt.func private @halves(%q: !tt.ptr<i16> {tt.divisibility = 16 : i32}) {
  %n64 = arith.constant dense<64> : tensor<64x64xi32, #h>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #h}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #h}>> -> tensor<64x1xi32, #h>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #h> -> tensor<64x64xi32, #h>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #h}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #h}>> -> tensor<1x64xi32, #h>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #h> -> tensor<64x64xi32, #h>
  %rn = arith.muli %r, %n64 : tensor<64x64xi32, #h>
  %i = arith.addi %rn, %c : tensor<64x64xi32, #h>
  %x = arith.trunci %i : tensor<64x64xi32, #h> to tensor<64x64xi16, #h>
  %qs = tt.splat %q : !tt.ptr<i16> -> tensor<64x64x!tt.ptr<i16>, #h>
  %at = tt.addptr %qs, %i : tensor<64x64x!tt.ptr<i16>, #h>, tensor<64x64xi32, #h>
  tt.store %at, %x : tensor<64x64x!tt.ptr<i16>, #h>
  ttg.barrier all
  %limit = arith.constant dense<37> : tensor<64x64xi32, #h>
  %m = arith.cmpi slt, %r, %limit : tensor<64x64xi32, #h>
  %nine = arith.constant dense<9> : tensor<64x64xi16, #h>
  %other = arith.addi %x, %nine : tensor<64x64xi16, #h>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xi16, #turned, #smem, mutable>
  %one = arith.constant 1 : i32
  %m1 = ttg.memdesc_index %m0[%one] : !ttg.memdesc<2x64x64xi16, #turned, #smem, mutable> -> !ttg.memdesc<64x64xi16, #turned, #smem, mutable>
  %t = ttg.async_copy_global_to_local %at, %m1 mask %m other %other : tensor<64x64x!tt.ptr<i16>, #h> -> <64x64xi16, #turned, #smem, mutable>
  %g = ttg.async_commit_group tokens %t
  %w = ttg.async_wait %g {num = 0 : i32}
  %v = ttg.local_load %m1 token %w : !ttg.memdesc<64x64xi16, #turned, #smem, mutable> -> tensor<64x64xi16, #h>
  %wanted = arith.select %m, %x, %other : tensor<64x64xi1, #h>, tensor<64x64xi16, #h>
  %ok = arith.cmpi eq, %v, %wanted : tensor<64x64xi16, #h>
  tt.assert %ok, "wrong half" : tensor<64x64xi1, #h>
  tt.return
}
}
