// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#bar = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Written, then read; then overwritten. Reads need no barrier between them.
  // CHECK-LABEL: @one_buffer
  tt.func @one_buffer(%v: tensor<32x64xf32, #a>) {
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: tt.return
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    %1 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #b>
    ttg.local_store %v, %m : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    tt.return
  }

  // One barrier serves both.
  // CHECK-LABEL: @two_buffers
  tt.func @two_buffers(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.return
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %n = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    %1 = ttg.local_load %n : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    tt.return
  }

  // A conversion waits inside: what was written before it needs no barrier
  // after it. Its memory, which others may still read, does.
  // CHECK-LABEL: @conversions
  tt.func @conversions(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.convert_layout
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.convert_layout
    // CHECK-NEXT: tt.return
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    %1 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    %2 = ttg.convert_layout %0 : tensor<32x64xf32, #b> -> tensor<32x64xf32, #a>
    tt.return
  }

  // The store of one iteration meets the load of the one before.
  // CHECK-LABEL: @around_a_loop
  tt.func @around_a_loop(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: }
    scf.for %i = %c0 to %n step %c1 : i32 {
      ttg.local_store %v, %m : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    }
    tt.return
  }

  // The barrier of one branch is none for the other.
  // CHECK-LABEL: @after_branches
  tt.func @after_branches(%v: tensor<32x64xf32, #a>, %c: i1) {
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    // CHECK: scf.if
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: }
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    scf.if %c {
      %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    }
    %1 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #b>
    tt.return
  }

  // A barrier that is there is taken; one for global memory is none.
  // CHECK-LABEL: @given
  tt.func @given(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier global_read|global_write
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_store
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    ttg.barrier all
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    ttg.barrier global_read|global_write
    ttg.local_store %v, %m : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    tt.return
  }

  // A barrier before the wait would order nothing.
  // CHECK-LABEL: @asynchronous_copy
  tt.func @asynchronous_copy(%p: tensor<32x64x!tt.ptr<f32>, #a>) {
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: ttg.async_wait
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.async_copy_global_to_local
    %t = ttg.async_copy_global_to_local %p, %m : tensor<32x64x!tt.ptr<f32>, #a> -> <32x64xf32, #shared, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    ttg.barrier local
    %w = ttg.async_wait %g {num = 0 : i32}
    %0 = ttg.local_load %m token %w : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    %u = ttg.async_copy_global_to_local %p, %m : tensor<32x64x!tt.ptr<f32>, #a> -> <32x64xf32, #shared, #smem, mutable>
    tt.return
  }

  // The bytes of one buffer become those of another.
  // CHECK-LABEL: @reuse
  tt.func @reuse(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    %n = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %1 = ttg.local_load %n : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    tt.return
  }

  // One thread arrives for all: what others read must be read, and what they wrote must be written, before whoever waits
  // goes on. A second arrival has nothing to wait for.
  // CHECK-LABEL: @arrive
  tt.func @arrive() {
    // CHECK: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttng.arrive_barrier
    // CHECK-NEXT: ttng.arrive_barrier
    // CHECK-NEXT: tt.return
    %n = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %b = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #bar, #smem, mutable>
    %0 = ttg.local_load %n : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    ttng.arrive_barrier %b, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    ttng.arrive_barrier %b, 1 : !ttg.memdesc<1xi64, #bar, #smem, mutable>
    tt.return
  }

  // Where one half of the warps runs a barrier behind the other, one is right behind each wait for copies, needed or not.
  // CHECK-LABEL: @apart
  tt.func @apart(%late: i1) {
    // CHECK: ttg.async_wait
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: rocdl.sched.barrier
    // CHECK: amdg.async_wait
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: tt.return
    amdg.cond_barrier %late
    %0 = ttg.async_wait {num = 1 : i32}
    rocdl.sched.barrier 0
    %1 = amdg.async_wait {num_inst = 1 : i32}
    ttg.barrier local
    tt.return
  }
}
