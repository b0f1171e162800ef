// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s
// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv '--tritongpu-insert-barriers=report=true' -o /dev/null 2>&1 | FileCheck %s --check-prefix=REPORT

// Global memory that a program stores and loads again: what other threads may have stored is loaded behind a barrier.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#more = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @other_threads
  // REPORT: barrier: tt.load accesses global memory
  // REPORT: that other threads may have written here
  tt.func @other_threads(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.store
    // CHECK: ttg.barrier all
    // CHECK-NEXT: tt.load
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %2 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.return
  }

  // A thread has the same positions of both.
  // CHECK-LABEL: @same_threads
  // CHECK-NOT: ttg.barrier
  tt.func @same_threads(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %2 = tt.load %0 : tensor<32x64x!tt.ptr<f32>, #a>
    tt.return
  }

  // Pointers of other arguments point to other data.
  // CHECK-LABEL: @other_argument
  // CHECK-NOT: ttg.barrier
  tt.func @other_argument(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %q : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %2 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.return
  }

  // All threads load a scalar, one stores it.
  // CHECK-LABEL: @scalar
  tt.func @scalar(%p: !tt.ptr<f32>, %v: f32) {
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    tt.store %p, %v : !tt.ptr<f32>
    %0 = tt.load %p : !tt.ptr<f32>
    tt.return
  }

  // The same where several threads have an element.
  // CHECK-LABEL: @replicated
  tt.func @replicated(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #more>) {
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #more>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #more>
    %2 = tt.load %0 : tensor<32x64x!tt.ptr<f32>, #more>
    tt.return
  }

  // The barrier of the program is enough, and so are those of an atomic operation that acquires.
  // CHECK-LABEL: @own_barriers
  tt.func @own_barriers(%p: !tt.ptr<f32>, %flag: !tt.ptr<i32>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.atomic_rmw
    // CHECK-NEXT: tt.load
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    %one = arith.constant 1 : i32
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    ttg.barrier all
    %2 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %3 = tt.atomic_rmw add, acq_rel, gpu, %flag, %one : (!tt.ptr<i32>, i32) -> i32
    %4 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.return
  }

  // What other threads may still load is stored behind a barrier.
  // CHECK-LABEL: @overwritten
  // REPORT: barrier: tt.store writes global memory
  // REPORT: that other threads may not have read yet here
  tt.func @overwritten(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    %2 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    tt.return
  }

  // All threads load a scalar, and one stores it.
  // CHECK-LABEL: @scalar_overwritten
  tt.func @scalar_overwritten(%p: !tt.ptr<f32>, %v: f32) {
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.return
    %0 = tt.load %p : !tt.ptr<f32>
    tt.store %p, %v : !tt.ptr<f32>
    // By the same thread.
    tt.store %p, %v : !tt.ptr<f32>
    tt.return
  }

  // A thread stores what it loaded itself.
  // CHECK-LABEL: @in_place
  // CHECK-NOT: ttg.barrier
  tt.func @in_place(%p: !tt.ptr<f32>) {
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.load %0 : tensor<32x64x!tt.ptr<f32>, #a>
    tt.store %0, %1 : tensor<32x64x!tt.ptr<f32>, #a>
    tt.return
  }

  // The last of two stores is by other threads, or by the same ones where replicas store once.
  // CHECK-LABEL: @stored_twice
  tt.func @stored_twice(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>, %w: tensor<32x64xf32, #more>) {
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: tt.return
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #more>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    tt.store %1, %w : tensor<32x64x!tt.ptr<f32>, #more>
    tt.store %1, %w : tensor<32x64x!tt.ptr<f32>, #more>
    tt.return
  }

  // Atomics whose results nobody compares come in any order.
  // CHECK-LABEL: @atomics
  tt.func @atomics(%p: !tt.ptr<i32>, %v: tensor<32x64xi32, #a>, %x: tensor<32x64xi32, #a>) {
    // CHECK: tt.atomic_store
    // CHECK-NEXT: tt.atomic_store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    %0 = tt.splat %p : !tt.ptr<i32> -> tensor<32x64x!tt.ptr<i32>, #a>
    %one = arith.constant 1 : i32
    tt.atomic_store relaxed, gpu, %0, %v : tensor<32x64x!tt.ptr<i32>, #a>
    tt.atomic_store relaxed, gpu, %p, %one : !tt.ptr<i32>
    tt.store %0, %x : tensor<32x64x!tt.ptr<i32>, #a>
    tt.return
  }

  // In the next iteration.
  // CHECK-LABEL: @loop
  tt.func @loop(%p: !tt.ptr<f32>, %n: i32, %v: tensor<32x64xf32, #a>) {
    // CHECK: scf.for
    // CHECK: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    scf.for %i = %zero to %n step %one : i32 {
      %2 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
      tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    }
    tt.return
  }
}

// -----

// Barriers for shared memory order all memory on NVIDIA's GPUs.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @by_shared_memory
  tt.func @by_shared_memory(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.store
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: tt.load
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %2 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #b>
    %3 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.return
  }
}

// -----

// On AMD's they order the LDS only; where both are needed at one place, one barrier is for both.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
  // CHECK-LABEL: @by_shared_memory
  tt.func @by_shared_memory(%p: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.store
    // CHECK: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    %0 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.splat %p : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    tt.store %0, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %2 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #b>
    %3 = tt.load %1 : tensor<32x64x!tt.ptr<f32>, #b>
    tt.return
  }
}

// -----

// A look-back: each thread loads for itself what other programs store, so one thread may leave the loops an iteration earlier
// than another. No barrier is there, nor where such a value decides about a branch; behind them threads meet again.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @look_back
  tt.func @look_back(%flags: !tt.ptr<i32>, %out: !tt.ptr<i32>, %sum: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %me = tt.get_program_id x : i32
    %own = tt.addptr %flags, %me : !tt.ptr<i32>, i32
    // CHECK: tt.store
    tt.store %own, %sum : !tt.ptr<i32>
    %first = arith.subi %me, %c1 : i32
    // CHECK: scf.while
    // CHECK-NOT: ttg.barrier
    // CHECK: scf.if
    // CHECK-NOT: ttg.barrier
    // CHECK: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.return
    %prefix:2 = scf.while (%total = %c0, %at = %first) : (i32, i32) -> (i32, i32) {
      %more = arith.cmpi sge, %at, %c0 : i32
      scf.condition(%more) %total, %at : i32, i32
    } do {
    ^bb0(%total: i32, %at: i32):
      %flag = tt.addptr %flags, %at : !tt.ptr<i32>, i32
      %once = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
      %value = scf.while (%v = %once) : (i32) -> i32 {
        %empty = arith.cmpi eq, %v, %c0 : i32
        scf.condition(%empty) %v : i32
      } do {
      ^bb0(%v: i32):
        %again = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
        scf.yield %again : i32
      }
      %next = arith.addi %total, %value : i32
      %odd = arith.andi %value, %c1 : i32
      %go = arith.cmpi eq, %odd, %c1 : i32
      %before = arith.subi %at, %c1 : i32
      %to = arith.select %go, %before, %c0 : i32
      scf.yield %next, %to : i32, i32
    }
    %some = arith.cmpi sgt, %prefix#0, %c0 : i32
    scf.if %some {
      %unordered = tt.load %own : !tt.ptr<i32>
      tt.store %out, %unordered : !tt.ptr<i32>
    }
    %again = tt.load %own : !tt.ptr<i32>
    tt.store %out, %again : !tt.ptr<i32>
    tt.return %again : i32
  }

  // The number of iterations is the same for all threads where nobody stores what it is loaded from.
  // CHECK-LABEL: @counted
  tt.func @counted(%p: !tt.ptr<f32>, %count: !tt.ptr<i32>, %v: f32) -> f32 {
    // CHECK: scf.for
    // CHECK: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = tt.load %count : !tt.ptr<i32>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %v) -> f32 : i32 {
      tt.store %p, %s : !tt.ptr<f32>
      %1 = tt.load %p : !tt.ptr<f32>
      scf.yield %1 : f32
    }
    tt.return %sum : f32
  }

  // No barrier before stores there either; behind the branch threads meet again.
  // CHECK-LABEL: @overwrites_in_branch
  tt.func @overwrites_in_branch(%p: !tt.ptr<i32>, %out: !tt.ptr<i32>, %v: i32) {
    // CHECK: scf.if
    // CHECK-NOT: ttg.barrier
    // CHECK: {{^ +[}]$}}
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.store
    %c0 = arith.constant 0 : i32
    %once = tt.load %p {isVolatile = true} : !tt.ptr<i32>
    %some = arith.cmpi sgt, %once, %c0 : i32
    scf.if %some {
      %old = tt.load %out : !tt.ptr<i32>
      %new = arith.addi %old, %v : i32
      tt.store %out, %new : !tt.ptr<i32>
      %newer = tt.load %out : !tt.ptr<i32>
    }
    tt.store %out, %v : !tt.ptr<i32>
    tt.return
  }

  // Jumps between blocks.
  // CHECK-LABEL: @jumps
  tt.func @jumps(%p: !tt.ptr<i32>, %v: i32) {
    // CHECK: tt.store
    // CHECK-NOT: ttg.barrier
    // CHECK: tt.return
    %c0 = arith.constant 0 : i32
    tt.store %p, %v : !tt.ptr<i32>
    cf.br ^wait
  ^wait:
    %1 = tt.load %p {isVolatile = true} : !tt.ptr<i32>
    %2 = arith.cmpi eq, %1, %c0 : i32
    cf.cond_br %2, ^wait, ^done
  ^done:
    tt.return
  }
}
