// RUN: %ttopt %s --tritonamdgpu-update-async-wait-count --split-input-file -verify-diagnostics | FileCheck %s

// Waits for groups of copies become waits for the loads that they are made of.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// Two loads of a warp for 64 rows of 128 bytes.
// CHECK-LABEL: @straight(
// CHECK:         amdg.async_wait %{{.*}} {num_inst = 4 : i32}
// CHECK:         amdg.async_wait %{{.*}} {num_inst = 2 : i32}
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
// CHECK-NOT:     ttg.async_wait
// CHECK:         tt.return
tt.func @straight(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>) {
  %t0 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %t2 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g2 = ttg.async_commit_group tokens %t2
  %w0 = ttg.async_wait %g0 {num = 2 : i32}
  %w1 = ttg.async_wait %g1 {num = 1 : i32}
  %w2 = ttg.async_wait {num = 0 : i32}
  tt.return
}

// A group of nothing, and one that is not there, leave nothing under way.
// CHECK-LABEL: @empty(
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
// CHECK:         amdg.async_wait {num_inst = 2 : i32}
tt.func @empty(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>) {
  %t0 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %g1 = ttg.async_commit_group
  %w0 = ttg.async_wait {num = 1 : i32}
  %w1 = ttg.async_wait {num = 7 : i32}
  tt.return
}

// Where warps may branch around a copy, since masked elements are not zero, it counts as none, and where control flow meets the
// fewest count.
// CHECK-LABEL: @masked(
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
tt.func @masked(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %c: i1) {
  %mask = tt.splat %c : i1 -> tensor<64x64xi1, #b>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #b>
  %t0 = ttg.async_copy_global_to_local %p, %m mask %mask other %one : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %w0 = ttg.async_wait {num = 1 : i32}
  scf.if %c {
    %t1 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  }
  %g1 = ttg.async_commit_group
  %w1 = ttg.async_wait {num = 1 : i32}
  tt.return
}

// What is masked loads zeros from somewhere else: the load is always there.
// CHECK-LABEL: @zeros(
// CHECK:         amdg.async_wait {num_inst = 2 : i32}
tt.func @zeros(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %c: i1) {
  %mask = tt.splat %c : i1 -> tensor<64x64xi1, #b>
  %t0 = ttg.async_copy_global_to_local %p, %m mask %mask : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %w0 = ttg.async_wait {num = 1 : i32}
  tt.return
}

// In a buffer masked lanes load from beyond it: the load is always there. Not where they write something else than zero.
// CHECK-LABEL: @buffer(
// CHECK:         amdg.async_wait {num_inst = 2 : i32}
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
tt.func @buffer(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %c: i1) {
  %mask = tt.splat %c : i1 -> tensor<64x64xi1, #b>
  %zero = arith.constant dense<0.0> : tensor<64x64xf16, #b>
  %one = arith.constant dense<1.0> : tensor<64x64xf16, #b>
  %t0 = ttg.async_copy_global_to_local %p, %m mask %mask other %zero {ttg.buffer} : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %w0 = ttg.async_wait {num = 1 : i32}
  %t1 = ttg.async_copy_global_to_local %p, %m mask %mask other %one {ttg.buffer} : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1
  %w1 = ttg.async_wait {num = 1 : i32}
  tt.return
}

// A loop whose groups are those of the iteration before.
// CHECK-LABEL: @loop(
// CHECK:         scf.for
// CHECK:           amdg.async_wait {num_inst = 2 : i32}
tt.func @loop(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %t0 = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  scf.for %i = %zero to %n step %one : i32 {
    %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %w = ttg.async_wait {num = 1 : i32}
  }
  tt.return
}

// Instructions that somebody else counted are others.
// CHECK-LABEL: @counted(
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
tt.func @counted() {
  %w = amdg.async_wait {num_inst = 3 : i32}
  tt.return
}

// What is loaded to registers behind the copies, and stored an iteration later, stays under way: two loads of 16 bytes. It does not where LLVM may
// move it, or leave a part of it out.
// CHECK-LABEL: @to_registers(
// CHECK:         amdg.async_wait {num_inst = 2 : i32}
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
// CHECK:         amdg.async_wait {num_inst = 0 : i32}
tt.func @to_registers(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %x: tensor<64x64xf16, #b>, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = scf.for %i = %c0 to %n step %c1 iter_args(%before = %x) -> (tensor<64x64xf16, #b>) : i32 {
    ttg.local_store %before, %m : tensor<64x64xf16, #b> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %v = tt.load %p {ttg.buffer, ttg.pinned} : tensor<64x64x!tt.ptr<f16>, #b>
    %w = ttg.async_wait {num = 0 : i32}
    scf.yield %v : tensor<64x64xf16, #b>
  }
  %b = scf.for %i = %c0 to %n step %c1 iter_args(%before = %x) -> (tensor<64x64xf16, #b>) : i32 {
    ttg.local_store %before, %m : tensor<64x64xf16, #b> -> !ttg.memdesc<64x64xf16, #s, #smem, mutable>
    %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %v = tt.load %p {ttg.buffer} : tensor<64x64x!tt.ptr<f16>, #b>
    %w = ttg.async_wait {num = 0 : i32}
    scf.yield %v : tensor<64x64xf16, #b>
  }
  %c = scf.for %i = %c0 to %n step %c1 iter_args(%before = %x) -> (tensor<64x64xf16, #b>) : i32 {
    %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %v = tt.load %p {ttg.buffer, ttg.pinned} : tensor<64x64x!tt.ptr<f16>, #b>
    %w = ttg.async_wait {num = 0 : i32}
    scf.yield %v : tensor<64x64xf16, #b>
  }
  tt.return
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func @columns(%p: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>) {
  // expected-error @below {{16 consecutive bits are too few to copy without registers}}
  %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %g = ttg.async_commit_group tokens %t
  %w = ttg.async_wait {num = 0 : i32}
  tt.return
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1201", "ttg.threads-per-warp" = 32 : i32} {
tt.func @other_target(%p: tensor<64x64x!tt.ptr<f16>, #b>, %m: !ttg.memdesc<64x64xf16, #s, #smem, mutable>) {
  // expected-error @below {{hip:gfx1201 has no loads to shared memory past the registers}}
  %t = ttg.async_copy_global_to_local %p, %m : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #s, #smem, mutable>
  %w = ttg.async_wait {num = 0 : i32}
  tt.return
}
}
