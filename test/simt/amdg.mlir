// Operations of the dialect amdg, as Triton's own TTGIR has them: a kernel asserts what it finds.
// RUN: %ttsim %s --quiet --arg p=i32[256]
// RUN: sed 's/gfx942/gfx950/' %s > %t.950.mlir
// RUN: %ttsim %t.950.mlir --quiet --arg p=i32[256]
// The asserts see what is wrong:
// RUN: sed 's/eq, %old, .three/eq, %old, %i/' %s > %t.old.mlir
// RUN: not %ttsim %t.old.mlir --quiet --arg p=i32[256] 2>&1 | FileCheck %s --check-prefix=OLD
// OLD: other values before
// RUN: sed 's/arith.addi %rn, %c/arith.addi %rn, %r/' %s > %t.moved.mlir
// RUN: not %ttsim %t.moved.mlir --quiet --arg p=i32[256] 2>&1 | FileCheck %s --check-prefix=MOVED
// MOVED: elements moved

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#x = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#t = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @accesses(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #b>
  %n = arith.constant dense<200> : tensor<256xi32, #b>
  %k3 = arith.constant dense<3> : tensor<256xi32, #b>
  %seven = arith.constant dense<7> : tensor<256xi32, #b>
  %m = arith.cmpi slt, %i, %n : tensor<256xi32, #b>
  %three = arith.muli %i, %k3 : tensor<256xi32, #b>
  // i everywhere, then 3 i below 200.
  amdg.buffer_store %i, %p[%i] {contiguity = 1 : i32} : !tt.ptr<i32> -> tensor<256xi32, #b>
  amdg.buffer_store %three, %p[%i], %m : !tt.ptr<i32> -> tensor<256xi32, #b>
  %all = amdg.buffer_load %p[%i] : !tt.ptr<i32> -> tensor<256xi32, #b>
  %some = amdg.buffer_load %p[%i], %m, %seven : !tt.ptr<i32> -> tensor<256xi32, #b>
  %wanted = arith.select %m, %three, %i : tensor<256xi1, #b>, tensor<256xi32, #b>
  %wanted7 = arith.select %m, %three, %seven : tensor<256xi1, #b>, tensor<256xi32, #b>
  %same = arith.cmpi eq, %all, %wanted : tensor<256xi32, #b>
  tt.assert %same, "other values" : tensor<256xi1, #b>
  %same7 = arith.cmpi eq, %some, %wanted7 : tensor<256xi32, #b>
  tt.assert %same7, "other values behind a mask" : tensor<256xi1, #b>
  // 4 i below 200.
  %old = amdg.buffer_atomic_rmw add, acq_rel, gpu, %i, %p[%i], %m : !tt.ptr<i32> -> tensor<256xi32, #b>
  %fits = arith.cmpi eq, %old, %three : tensor<256xi32, #b>
  %yes = arith.constant dense<true> : tensor<256xi1, #b>
  %fits_or_off = arith.select %m, %fits, %yes : tensor<256xi1, #b>, tensor<256xi1, #b>
  tt.assert %fits_or_off, "other values before" : tensor<256xi1, #b>
  // Seven where there is i: from 200 on, and at 0.
  %was = amdg.buffer_atomic_cas acq_rel, gpu, %i, %seven, %p[%i] : !tt.ptr<i32> -> tensor<256xi32, #b>
  %four = arith.addi %three, %i : tensor<256xi32, #b>
  %wanted_was = arith.select %m, %four, %i : tensor<256xi1, #b>, tensor<256xi32, #b>
  %was_fits = arith.cmpi eq, %was, %wanted_was : tensor<256xi32, #b>
  tt.assert %was_fits, "other values compared" : tensor<256xi1, #b>
  %end = amdg.buffer_load %p[%i] : !tt.ptr<i32> -> tensor<256xi32, #b>
  %untouched = arith.cmpi ne, %wanted_was, %i : tensor<256xi32, #b>
  %wanted_end = arith.select %untouched, %four, %seven : tensor<256xi1, #b>, tensor<256xi32, #b>
  %end_fits = arith.cmpi eq, %end, %wanted_end : tensor<256xi32, #b>
  tt.assert %end_fits, "other values in the end" : tensor<256xi1, #b>
  tt.call @transposed() : () -> ()
  tt.return
}

tt.func private @transposed() {
  %n = arith.constant dense<128> : tensor<64x128xi32, #x>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #x}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #x}>> -> tensor<64x1xi32, #x>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #x> -> tensor<64x128xi32, #x>
  %c1 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #x}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #x}>> -> tensor<1x128xi32, #x>
  %c = tt.broadcast %c2 : tensor<1x128xi32, #x> -> tensor<64x128xi32, #x>
  %rn = arith.muli %r, %n : tensor<64x128xi32, #x>
  %v = arith.addi %rn, %c : tensor<64x128xi32, #x>
  %y = amdg.in_thread_transpose %v : tensor<64x128xi32, #x> -> tensor<64x128xi32, #t>
  %tn = arith.constant dense<128> : tensor<64x128xi32, #t>
  %tr1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #t}>>
  %tr2 = tt.expand_dims %tr1 {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #t}>> -> tensor<64x1xi32, #t>
  %tr = tt.broadcast %tr2 : tensor<64x1xi32, #t> -> tensor<64x128xi32, #t>
  %tc1 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #t}>>
  %tc2 = tt.expand_dims %tc1 {axis = 0 : i32} : tensor<128xi32, #ttg.slice<{dim = 0, parent = #t}>> -> tensor<1x128xi32, #t>
  %tc = tt.broadcast %tc2 : tensor<1x128xi32, #t> -> tensor<64x128xi32, #t>
  %trn = arith.muli %tr, %tn : tensor<64x128xi32, #t>
  %wanted = arith.addi %trn, %tc : tensor<64x128xi32, #t>
  %same = arith.cmpi eq, %y, %wanted : tensor<64x128xi32, #t>
  tt.assert %same, "elements moved" : tensor<64x128xi1, #t>
  tt.return
}
}
