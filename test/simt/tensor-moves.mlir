// Tensor operations on gfx1250, of somebody else's TTGIR: a kernel asserts what it finds in the LDS, and what is left of its argument.
// RUN: %ttsim %s --quiet --arg p=i32[4096] --arg q=i32[4096] --arg h=i16[4096]
// The asserts see what is wrong: another bound, another predicate.
// RUN: sed 's/arith.constant 50/arith.constant 51/' %s > %t.bound.mlir
// RUN: not %ttsim %t.bound.mlir --quiet --arg p=i32[4096] --arg q=i32[4096] --arg h=i16[4096] 2>&1 | FileCheck %s --check-prefix=WRONG
// RUN: sed 's/pred = %none/pred = %one/' %s > %t.pred.mlir
// RUN: not %ttsim %t.pred.mlir --quiet --arg p=i32[4096] --arg q=i32[4096] --arg h=i16[4096] 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: wrong word
// Without the wait for the second load, it is read too early; without the one for the store, what is stored is not there.
// RUN: sed 's/\(async_tdm_wait .t1 {num = \)0/\11/' %s > %t.early.mlir
// RUN: not %ttsim %t.early.mlir --quiet --arg p=i32[4096] --arg q=i32[4096] --arg h=i16[4096] 2>&1 | FileCheck %s --check-prefix=EARLY
// EARLY: async-hazard: shared memory is read while an asynchronous copy
// RUN: sed '/last wait/d' %s > %t.end.mlir
// RUN: not %ttsim %t.end.mlir --quiet --arg p=i32[4096] --arg q=i32[4096] --arg h=i16[4096] 2>&1 | FileCheck %s --check-prefix=END
// END: async-hazard: the program ends before a tensor operation out of its shared memory is waited for

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#d = #ttg.blocked<{sizePerThread = [1, 1, 4], threadsPerWarp = [1, 2, 16], warpsPerCTA = [1, 4, 1], order = [2, 1, 0]}>
#rows = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
#several = #ttg.padded_shared<[128:+4] {order = [1, 0], shape = [64, 64]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#plain3 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {

tt.func public @moves(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %h: !tt.ptr<i16> {tt.divisibility = 16 : i32}) {
  %n64 = arith.constant dense<64> : tensor<64x64xi32, #b>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64x1xi32, #b>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #b> -> tensor<64x64xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x64xi32, #b> -> tensor<64x64xi32, #b>
  %rn = arith.muli %r, %n64 : tensor<64x64xi32, #b>
  %x = arith.addi %rn, %c : tensor<64x64xi32, #b>
  %zero = arith.constant dense<0> : tensor<64x64xi32, #b>
  %nine = arith.constant dense<9> : tensor<64x64xi32, #b>
  %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>, #b>
  %at = tt.addptr %ps, %x : tensor<64x64x!tt.ptr<i32>, #b>, tensor<64x64xi32, #b>
  tt.store %at, %x : tensor<64x64x!tt.ptr<i32>, #b>
  %qs = tt.splat %q : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>, #b>
  %to = tt.addptr %qs, %x : tensor<64x64x!tt.ptr<i32>, #b>, tensor<64x64xi32, #b>
  tt.store %to, %nine : tensor<64x64x!tt.ptr<i32>, #b>
  ttg.barrier all
  %i0 = arith.constant 0 : i32
  %i3 = arith.constant 3 : i32
  %i7 = arith.constant 7 : i32
  %i40 = arith.constant 40 : i32
  %i50 = arith.constant 50 : i32
  %i64 = arith.constant 64 : i32
  %before = arith.constant -1 : i32
  %none = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %s64 = arith.constant 64 : i64
  %s1 = arith.constant 1 : i64
  // 50 rows of 40 elements, of which the block begins at row 7 and column 3.
  %desc = tt.make_tensor_descriptor %p, [%i50, %i40], [%s64, %s1] : <i32>, <64x64xi32, #rows>
  %d0 = amdg.update_tensor_descriptor %desc add_offsets = [%i7, %i3] {clamp_bounds} : !tt.tensordesc<64x64xi32, #rows>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %t0 = amdg.async_tdm_copy_global_to_local %d0 into %m0 : !tt.tensordesc<64x64xi32, #rows> -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  // The same with padding after two rows, and bounds that are set: those of the block; into the second of two buffers.
  %wide = tt.make_tensor_descriptor %p, [%i64, %i64], [%s64, %s1] : <i32>, <64x64xi32, #several>
  %d1 = amdg.update_tensor_descriptor %wide set_bounds = [%i7, %i40] : !tt.tensordesc<64x64xi32, #several>
  %ring = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xi32, #several, #smem, mutable>
  %m1 = ttg.memdesc_index %ring[%one] : !ttg.memdesc<2x64x64xi32, #several, #smem, mutable> -> !ttg.memdesc<64x64xi32, #several, #smem, mutable>
  %t1 = amdg.async_tdm_copy_global_to_local %d1 into %m1 : !tt.tensordesc<64x64xi32, #several> -> !ttg.memdesc<64x64xi32, #several, #smem, mutable>
  %w0 = amdg.async_tdm_wait %t0 {num = 1 : i32}
  %v0 = ttg.local_load %m0 token %w0 : !ttg.memdesc<64x64xi32, #rows, #smem, mutable> -> tensor<64x64xi32, #b>
  %w1 = amdg.async_tdm_wait %t1 {num = 0 : i32}
  %v1 = ttg.local_load %m1 token %w1 : !ttg.memdesc<64x64xi32, #several, #smem, mutable> -> tensor<64x64xi32, #b>
  %n43 = arith.constant dense<43> : tensor<64x64xi32, #b>
  %n37 = arith.constant dense<37> : tensor<64x64xi32, #b>
  %n7 = arith.constant dense<7> : tensor<64x64xi32, #b>
  %n40 = arith.constant dense<40> : tensor<64x64xi32, #b>
  %moved = arith.constant dense<451> : tensor<64x64xi32, #b>
  %a0 = arith.cmpi slt, %r, %n43 : tensor<64x64xi32, #b>
  %a1 = arith.cmpi slt, %c, %n37 : tensor<64x64xi32, #b>
  %a2 = arith.andi %a0, %a1 : tensor<64x64xi1, #b>
  %xm = arith.addi %x, %moved : tensor<64x64xi32, #b>
  %x0 = arith.select %a2, %xm, %zero : tensor<64x64xi1, #b>, tensor<64x64xi32, #b>
  tt.call @check(%v0, %x0) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  %b0 = arith.cmpi slt, %r, %n7 : tensor<64x64xi32, #b>
  %b1 = arith.cmpi slt, %c, %n40 : tensor<64x64xi32, #b>
  %b2 = arith.andi %b0, %b1 : tensor<64x64xi1, #b>
  %x1 = arith.select %b2, %x, %zero : tensor<64x64xi1, #b>, tensor<64x64xi32, #b>
  tt.call @check(%v1, %x1) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()

  // Without its predicate a copy moves nothing, and is counted; of a block that begins before the tensor nothing is inside.
  %d2 = amdg.update_tensor_descriptor %desc pred = %none : !tt.tensordesc<64x64xi32, #rows>
  %m2 = ttg.local_alloc %nine : (tensor<64x64xi32, #b>) -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %t2 = amdg.async_tdm_copy_global_to_local %d2 into %m2 : !tt.tensordesc<64x64xi32, #rows> -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %d3 = amdg.update_tensor_descriptor %desc add_offsets = [%before, %i0] {clamp_bounds} : !tt.tensordesc<64x64xi32, #rows>
  %m3 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %t3 = amdg.async_tdm_copy_global_to_local %d3 into %m3 : !tt.tensordesc<64x64xi32, #rows> -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %w3 = amdg.async_tdm_intrinsic_wait %t2, %t3 {count = 0 : i32}
  %v2 = ttg.local_load %m2 token %w3 : !ttg.memdesc<64x64xi32, #rows, #smem, mutable> -> tensor<64x64xi32, #b>
  %v3 = ttg.local_load %m3 token %w3 : !ttg.memdesc<64x64xi32, #rows, #smem, mutable> -> tensor<64x64xi32, #b>
  tt.call @check(%v2, %nine) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @check(%v3, %zero) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()

  // Stores write what is inside, and skip padding.
  %out = tt.make_tensor_descriptor %q, [%i50, %i40], [%s64, %s1] : <i32>, <64x64xi32, #rows>
  %m4 = ttg.local_alloc %xm : (tensor<64x64xi32, #b>) -> !ttg.memdesc<64x64xi32, #rows, #smem, mutable>
  %t4 = amdg.async_tdm_copy_local_to_global %out from %m4 : !ttg.memdesc<64x64xi32, #rows, #smem, mutable> -> !tt.tensordesc<64x64xi32, #rows>
  %w4 = amdg.async_tdm_wait %t4 {num = 0 : i32}
  ttg.barrier all
  %left = tt.load %to : tensor<64x64x!tt.ptr<i32>, #b>
  %n50 = arith.constant dense<50> : tensor<64x64xi32, #b>
  %e0 = arith.cmpi slt, %r, %n50 : tensor<64x64xi32, #b>
  %e2 = arith.andi %e0, %b1 : tensor<64x64xi1, #b>
  %x4 = arith.select %e2, %xm, %nine : tensor<64x64xi1, #b>, tensor<64x64xi32, #b>
  tt.call @check(%left, %x4) : (tensor<64x64xi32, #b>, tensor<64x64xi32, #b>) -> ()
  tt.call @three(%p) : (!tt.ptr<i32>) -> ()
  tt.call @halves(%h, %x) : (!tt.ptr<i16>, tensor<64x64xi32, #b>) -> ()
  tt.return
}

tt.func private @check(%a: tensor<64x64xi32, #b>, %b: tensor<64x64xi32, #b>) {
  %ok = arith.cmpi eq, %a, %b : tensor<64x64xi32, #b>
  tt.assert %ok, "wrong word" : tensor<64x64xi1, #b>
  tt.return
}

// Three dimensions: four groups of words.
tt.func private @three(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %i1 = arith.constant 1 : i32
  %i0 = arith.constant 0 : i32
  %i2 = arith.constant 2 : i32
  %i3 = arith.constant 3 : i32
  %i5 = arith.constant 5 : i32
  %i40 = arith.constant 40 : i32
  %s1024 = arith.constant 1024 : i64
  %s64 = arith.constant 64 : i64
  %s1 = arith.constant 1 : i64
  %desc = tt.make_tensor_descriptor %p, [%i3, %i5, %i40], [%s1024, %s64, %s1] : <i32>, <4x8x64xi32, #plain3>
  %d0 = amdg.update_tensor_descriptor %desc add_offsets = [%i1, %i2, %i0] {clamp_bounds} : !tt.tensordesc<4x8x64xi32, #plain3>
  %m = ttg.local_alloc : () -> !ttg.memdesc<4x8x64xi32, #plain3, #smem, mutable>
  %t = amdg.async_tdm_copy_global_to_local %d0 into %m : !tt.tensordesc<4x8x64xi32, #plain3> -> !ttg.memdesc<4x8x64xi32, #plain3, #smem, mutable>
  %w = amdg.async_tdm_wait %t {num = 0 : i32}
  %v = ttg.local_load %m token %w : !ttg.memdesc<4x8x64xi32, #plain3, #smem, mutable> -> tensor<4x8x64xi32, #d>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #d}>}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #d}>}>> -> tensor<1x64xi32, #ttg.slice<{dim = 1, parent = #d}>>
  %c3 = tt.expand_dims %c2 {axis = 1 : i32} : tensor<1x64xi32, #ttg.slice<{dim = 1, parent = #d}>> -> tensor<1x1x64xi32, #d>
  %c = tt.broadcast %c3 : tensor<1x1x64xi32, #d> -> tensor<4x8x64xi32, #d>
  %r1 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 2, parent = #d}>}>>
  %r2 = tt.expand_dims %r1 {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 2, parent = #d}>}>> -> tensor<1x8xi32, #ttg.slice<{dim = 2, parent = #d}>>
  %r3 = tt.expand_dims %r2 {axis = 2 : i32} : tensor<1x8xi32, #ttg.slice<{dim = 2, parent = #d}>> -> tensor<1x8x1xi32, #d>
  %r = tt.broadcast %r3 : tensor<1x8x1xi32, #d> -> tensor<4x8x64xi32, #d>
  %z1 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #d}>}>>
  %z2 = tt.expand_dims %z1 {axis = 1 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #d}>}>> -> tensor<4x1xi32, #ttg.slice<{dim = 2, parent = #d}>>
  %z3 = tt.expand_dims %z2 {axis = 2 : i32} : tensor<4x1xi32, #ttg.slice<{dim = 2, parent = #d}>> -> tensor<4x1x1xi32, #d>
  %z = tt.broadcast %z3 : tensor<4x1x1xi32, #d> -> tensor<4x8x64xi32, #d>
  %n1024 = arith.constant dense<1024> : tensor<4x8x64xi32, #d>
  %n64 = arith.constant dense<64> : tensor<4x8x64xi32, #d>
  %moved = arith.constant dense<1152> : tensor<4x8x64xi32, #d>
  %zero = arith.constant dense<0> : tensor<4x8x64xi32, #d>
  %n2 = arith.constant dense<2> : tensor<4x8x64xi32, #d>
  %n3 = arith.constant dense<3> : tensor<4x8x64xi32, #d>
  %n40 = arith.constant dense<40> : tensor<4x8x64xi32, #d>
  %e0 = arith.muli %z, %n1024 : tensor<4x8x64xi32, #d>
  %e1 = arith.muli %r, %n64 : tensor<4x8x64xi32, #d>
  %e2 = arith.addi %e0, %e1 : tensor<4x8x64xi32, #d>
  %e3 = arith.addi %e2, %c : tensor<4x8x64xi32, #d>
  %e = arith.addi %e3, %moved : tensor<4x8x64xi32, #d>
  %b0 = arith.cmpi slt, %z, %n2 : tensor<4x8x64xi32, #d>
  %b1 = arith.cmpi slt, %r, %n3 : tensor<4x8x64xi32, #d>
  %b2 = arith.cmpi slt, %c, %n40 : tensor<4x8x64xi32, #d>
  %b3 = arith.andi %b0, %b1 : tensor<4x8x64xi1, #d>
  %b = arith.andi %b3, %b2 : tensor<4x8x64xi1, #d>
  %x = arith.select %b, %e, %zero : tensor<4x8x64xi1, #d>, tensor<4x8x64xi32, #d>
  %ok = arith.cmpi eq, %v, %x : tensor<4x8x64xi32, #d>
  tt.assert %ok, "wrong word" : tensor<4x8x64xi1, #d>
  tt.return
}

// Elements of 16 bits, stored and loaded again; the last wait is for a store that nobody reads.
tt.func private @halves(%h: !tt.ptr<i16> {tt.divisibility = 16 : i32}, %x: tensor<64x64xi32, #b>) {
  %v = arith.trunci %x : tensor<64x64xi32, #b> to tensor<64x64xi16, #b>
  %i64 = arith.constant 64 : i32
  %s64 = arith.constant 64 : i64
  %s1 = arith.constant 1 : i64
  %desc = tt.make_tensor_descriptor %h, [%i64, %i64], [%s64, %s1] : <i16>, <64x64xi16, #plain>
  %m = ttg.local_alloc %v : (tensor<64x64xi16, #b>) -> !ttg.memdesc<64x64xi16, #plain, #smem, mutable>
  %t = amdg.async_tdm_copy_local_to_global %desc from %m : !ttg.memdesc<64x64xi16, #plain, #smem, mutable> -> !tt.tensordesc<64x64xi16, #plain>
  %w = amdg.async_tdm_wait %t {num = 0 : i32}
  ttg.barrier all
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xi16, #plain, #smem, mutable>
  %t1 = amdg.async_tdm_copy_global_to_local %desc into %m1 : !tt.tensordesc<64x64xi16, #plain> -> !ttg.memdesc<64x64xi16, #plain, #smem, mutable>
  %w1 = amdg.async_tdm_wait %t1 {num = 0 : i32}
  %v1 = ttg.local_load %m1 token %w1 : !ttg.memdesc<64x64xi16, #plain, #smem, mutable> -> tensor<64x64xi16, #b>
  %ok = arith.cmpi eq, %v, %v1 : tensor<64x64xi16, #b>
  tt.assert %ok, "wrong half" : tensor<64x64xi1, #b>
  %t2 = amdg.async_tdm_copy_local_to_global %desc from %m1 : !ttg.memdesc<64x64xi16, #plain, #smem, mutable> -> !tt.tensordesc<64x64xi16, #plain>
  %w2 = amdg.async_tdm_wait %t2 {num = 0 : i32} loc("last wait")
  tt.return
}
}
