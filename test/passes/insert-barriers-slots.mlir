// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s

// Buffers of one allocation are told apart by their numbers.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Buffer 1 is written while buffer 0 is read.
  // CHECK-LABEL: @constants
  tt.func @constants(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_store
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.local_store
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.return
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable>
    %m0 = ttg.memdesc_index %m[%c0] : !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %m1 = ttg.memdesc_index %m[%c1] : !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    ttg.local_store %v, %m0 : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %0 = ttg.local_load %m0 : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    ttg.local_store %v, %m1 : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %1 = ttg.local_load %m1 : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    tt.return
  }

  // Buffers (i + 2) mod 3 and i mod 3: one barrier an iteration, for what the iteration before wrote and read.
  // CHECK-LABEL: @by_induction_variable
  tt.func @by_induction_variable(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-COUNT-1: ttg.barrier local
    // CHECK: ttg.local_load
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.local_store
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.return
    scf.for %i = %c0 to %n step %c1 : i32 {
      %r = arith.remui %i, %c3 : i32
      %from = ttg.memdesc_index %m[%r] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      %0 = ttg.local_load %from : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      %j = arith.addi %i, %c2 : i32
      %w = arith.remui %j, %c3 : i32
      %to = ttg.memdesc_index %m[%w] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    }
    tt.return
  }

  // Two counters that go round, two apart.
  // CHECK-LABEL: @by_counters
  tt.func @by_counters(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-COUNT-1: ttg.barrier local
    // CHECK: ttg.local_load
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.local_store
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.return
    %end:2 = scf.for %i = %c0 to %n step %c1 iter_args(%r = %c0, %w = %c2) -> (i32, i32) : i32 {
      %from = ttg.memdesc_index %m[%r] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      %0 = ttg.local_load %from : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      %to = ttg.memdesc_index %m[%w] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      %r1 = arith.addi %r, %c1 : i32
      %rc = arith.cmpi slt, %r1, %c3 : i32
      %r2 = arith.select %rc, %r1, %c0 : i32
      %w1 = arith.addi %w, %c1 : i32
      %wc = arith.cmpi sge, %w1, %c3 : i32
      %w2 = arith.select %wc, %c0, %w1 : i32
      scf.yield %r2, %w2 : i32, i32
    }
    tt.return
  }

  // Counters three apart are the same; and nothing is known of two that the caller gives.
  // CHECK-LABEL: @the_same
  tt.func @the_same(%v: tensor<32x64xf32, #a>, %i: i32, %k: i32) {
    // CHECK: ttg.local_load
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_store
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK: tt.return
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    %r = arith.remui %i, %c3 : i32
    %from = ttg.memdesc_index %m[%r] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %0 = ttg.local_load %from : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    %j = arith.addi %i, %c3 : i32
    %w = arith.remui %j, %c3 : i32
    %to = ttg.memdesc_index %m[%w] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %other = ttg.memdesc_index %m[%k] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %1 = ttg.local_load %other : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    tt.return
  }

  // A buffer that the loop carries has the number of the iteration before: it may be the one that is written.
  // CHECK-LABEL: @carried
  tt.func @carried(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_index %m[%c0] : !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_store
    // CHECK: tt.return
    %end = scf.for %i = %c0 to %n step %c1 iter_args(%last = %first) -> (!ttg.memdesc<32x64xf32, #shared, #smem, mutable>) : i32 {
      %0 = ttg.local_load %last : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      %w = arith.remui %i, %c2 : i32
      %to = ttg.memdesc_index %m[%w] : !ttg.memdesc<2x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      scf.yield %to : !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    }
    tt.return
  }

  // The loop carries the buffers: what is written is read two iterations later.
  // CHECK-LABEL: @carried_in_turn
  tt.func @carried_in_turn(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_index %m[%c0] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %second = ttg.memdesc_index %m[%c1] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK-COUNT-1: ttg.barrier local
    // CHECK: ttg.local_load
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.local_store
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.return
    %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%from = %first, %then = %second, %last = %c1) -> (!ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, i32) : i32 {
      %1 = ttg.local_load %from : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      %plus = arith.addi %last, %c1 : i32
      %less = arith.cmpi slt, %plus, %c3 : i32
      %next = arith.select %less, %plus, %c0 : i32
      %to = ttg.memdesc_index %m[%next] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      scf.yield %then, %to, %next : !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, i32
    }
    tt.return
  }

  // Buffer 2 is read first, and written meanwhile.
  // CHECK-LABEL: @carried_otherwise
  tt.func @carried_otherwise(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %c3 = arith.constant 3 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    %first = ttg.memdesc_index %m[%c2] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %second = ttg.memdesc_index %m[%c1] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: scf.for
    // CHECK: ttg.local_load
    // CHECK: ttg.barrier local
    // CHECK: ttg.local_store
    // CHECK: tt.return
    %0:3 = scf.for %i = %c0 to %n step %c1 iter_args(%from = %first, %then = %second, %last = %c1) -> (!ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, i32) : i32 {
      %1 = ttg.local_load %from : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      %plus = arith.addi %last, %c1 : i32
      %less = arith.cmpi slt, %plus, %c3 : i32
      %next = arith.select %less, %plus, %c0 : i32
      %to = ttg.memdesc_index %m[%next] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      ttg.local_store %v, %to : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      scf.yield %then, %to, %next : !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, i32
    }
    tt.return
  }
}
