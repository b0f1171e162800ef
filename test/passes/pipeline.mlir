// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=3 | FileCheck %s
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=1 | FileCheck %s --check-prefix=ONE
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=3 --triton-nvidia-gpu-fence-insertion | FileCheck %s --check-prefix=FENCED
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline="num-stages=3 explain=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=EXPLAIN

// ONE-NOT: ttg.async
// ONE-NOT: ttng.warp_group_dot_wait

// Copies run two iterations ahead of what is read, to slots of rings; one barrier an iteration orders what is read and what is copied.
// Operands of the first half of a dot are read an iteration ahead.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // Loops without a schedule are named first.
  // EXPLAIN: has no software pipeline: nothing can run ahead
  // EXPLAIN-COUNT-3: has no software pipeline: what is in it writes memory, or waits
  // EXPLAIN: has no software pipeline: nothing is multiplied in it, it is no recurrence, and it does not ask for stages
  // EXPLAIN: remark: has a software pipeline of 4 stages, of which one reads operands ahead:
  // EXPLAIN: | | | *  tt.dot
  // EXPLAIN: await copies [0, 1] of the next iteration, 1 groups pending
  // EXPLAIN: | | *    ttg.local_load
  // EXPLAIN: *        copy to ring 0
  // EXPLAIN: | | | *  tt.dot
  // EXPLAIN: ring 0: 3 slots of 2048 bytes
  // CHECK-LABEL: @copies
  // CHECK: %[[RA:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf16
  // CHECK: %[[RB:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x32xf16
  // The first iteration exists if the loop runs at all, the second if the distance is more than a step.
  // CHECK: %[[FIRST:.*]] = arith.cmpi slt, %c0_i32, %{{.*}} : i32
  // CHECK: tt.splat %[[FIRST]]
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_commit_group
  // CHECK: arith.cmpi ugt
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_commit_group
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_commit_group
  // What the first iteration multiplies first is read when all copies of the prologue are under way.
  // CHECK-NEXT: ttg.async_wait {num = 2 : i32}
  // CHECK-NEXT: %[[FIRSTA:.*]] = ttg.local_load
  // CHECK-NEXT: %[[FIRSTB:.*]] = ttg.local_load
  // CHECK: scf.for {{.*}} iter_args(%[[A0:.*]] = %[[FIRSTA]], %[[B0:.*]] = %[[FIRSTB]], %[[SUM:.*]] = %cst, %[[SLOT:.*]] = %c0_i32{{.*}}, %[[NEXT:.*]] = %c1_i32{{[_0-9]*}})
  // CHECK-NEXT: %[[D0:.*]] = tt.dot %[[A0]], %[[B0]], %[[SUM]] :
  // CHECK: ttg.memdesc_subslice {{.*}}[0, 16]
  // CHECK-NEXT: %[[A1:.*]] = ttg.local_load
  // CHECK: ttg.memdesc_subslice {{.*}}[16, 0]
  // CHECK-NEXT: %[[B1:.*]] = ttg.local_load
  // The wait, and with it the barrier, come before the last part of the dot.
  // CHECK-NEXT: ttg.async_wait {num = 1 : i32}
  // CHECK-NEXT: ttg.memdesc_index {{.*}}[%[[NEXT]]]
  // CHECK-NEXT: ttg.memdesc_subslice {{.*}}[0, 0]
  // CHECK-NEXT: %[[NEXTA:.*]] = ttg.local_load
  // CHECK: %[[NEXTB:.*]] = ttg.local_load
  // Copies go to the slot that this iteration has read.
  // CHECK: ttg.memdesc_index {{.*}}[%[[SLOT]]]
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_copy_global_to_local {{.*}} mask
  // CHECK: ttg.async_commit_group
  // CHECK-NEXT: tt.dot %[[A1]], %[[B1]], %[[D0]] :
  // CHECK: scf.yield %[[NEXTA]], %[[NEXTB]],
  // CHECK: ttg.async_wait {num = 0 : i32}
  // CHECK-NEXT: ttg.local_dealloc %[[RA]]
  // CHECK-NEXT: ttg.local_dealloc %[[RB]]
  tt.func @copies(%pa: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pb: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<32x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %pa : tensor<32x32x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %y = tt.load %pb : tensor<32x32x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #a>
      %yb = ttg.local_load %ys : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %xa, %yb, %c : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
      scf.yield %d : tensor<32x32xf32, #mma>
    }
    tt.return %r : tensor<32x32xf32, #mma>
  }

  // A load does not move over a store, which may write what it reads (triton#8259), a barrier, an assertion or output.
  // CHECK-LABEL: @effects
  // CHECK-NOT: ttg.async
  tt.func @effects(%p: tensor<32x32x!tt.ptr<f32>, #mma>, %n: i32, %ok: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #mma>
      tt.store %p, %x : tensor<32x32x!tt.ptr<f32>, #mma>
    } {tt.num_stages = 3 : i32}
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #mma>
      ttg.barrier local
      scf.yield %i : i32
    } {tt.num_stages = 3 : i32}
    %1 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #mma>
      tt.assert %ok, "in range" : i1
      scf.yield %i : i32
    } {tt.num_stages = 3 : i32}
    %2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %c0) -> (i32) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #mma>
      tt.print "x" {hex = false, isSigned = array<i32: 0>} : %x : tensor<32x32xf32, #mma>
      scf.yield %i : i32
    } {tt.num_stages = 3 : i32}
    tt.return
  }

  // Loads wait in registers where copies cannot move elements one by one: one iteration ahead, where they are many.
  // Outer loops stay as they are; so do loops that multiply nothing and ask for nothing.
  // CHECK-LABEL: @registers
  // CHECK: scf.for
  // CHECK:   tt.load %{{.*}}, %{{.*}} : tensor<32x32x!tt.ptr<f16>, #mma>
  // CHECK:   scf.for
  // CHECK:     tt.load %{{.*}}, %{{.*}} : tensor<32x32x!tt.ptr<f16>, #mma>
  // CHECK:     arith.addf
  // CHECK: scf.for
  // CHECK-NEXT: tt.load %{{[a-z0-9]*}} : tensor
  tt.func @registers(%p: tensor<32x32x!tt.ptr<f16>, #mma>, %n: i32, %first: tensor<32x32xf16, #mma>) -> (tensor<32x32xf16, #mma>, tensor<32x32xf16, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %first) -> (tensor<32x32xf16, #mma>) : i32 {
      %in = scf.for %j = %c0 to %n step %c1 iter_args(%t = %s) -> (tensor<32x32xf16, #mma>) : i32 {
        %x = tt.load %p : tensor<32x32x!tt.ptr<f16>, #mma>
        %y = arith.addf %t, %x : tensor<32x32xf16, #mma>
        scf.yield %y : tensor<32x32xf16, #mma>
      } {tt.num_stages = 4 : i32}
      scf.yield %in : tensor<32x32xf16, #mma>
    }
    %1 = scf.for %j = %c0 to %n step %c1 iter_args(%t = %first) -> (tensor<32x32xf16, #mma>) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f16>, #mma>
      %y = arith.addf %t, %x : tensor<32x32xf16, #mma>
      scf.yield %y : tensor<32x32xf16, #mma>
    }
    tt.return %0, %1 : tensor<32x32xf16, #mma>, tensor<32x32xf16, #mma>
  }

  // Triton's own attributes: how far a load runs ahead. What divides runs ahead before the loop with a divisor that is not zero, but a
  // multiple of what the divisor is a multiple of: what is at quotients and remainders stays together. In the loop an iteration has
  // divided by the same, if it is the same.
  // CHECK-LABEL: @asked
  // CHECK: %[[HARMLESS:.*]] = arith.select %{{.*}}, %arg2, %c16_i32{{.*}} : i32
  // CHECK: arith.divsi %{{.*}}, %[[HARMLESS]] : i32
  // CHECK-COUNT-4: tt.load %{{.*}}, %{{.*}} : !tt.ptr<f32>
  // CHECK: scf.for
  // CHECK-NOT: arith.select
  // CHECK: arith.divsi %{{.*}}, %arg2 : i32
  // CHECK: tt.load %{{.*}}, %{{.*}} : !tt.ptr<f32>
  // CHECK: arith.addf
  tt.func @asked(%p: !tt.ptr<f32>, %n: i32, %by: i32 {tt.divisibility = 16 : i32}) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      %at = arith.divsi %i, %by : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %x = tt.load %q {tt.latency = 4 : i32} : !tt.ptr<f32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    } {tt.num_stages = 2 : i32}
    tt.return %0 : f32
  }

  // A divisor that changes may be zero where there is no iteration.
  // CHECK-LABEL: @divisors
  // CHECK: scf.for
  // CHECK: %[[SAFE:.*]] = arith.select %{{.*}}, %{{.*}}, %{{.*}} : i32
  // CHECK: arith.divsi %{{.*}}, %[[SAFE]] : i32
  tt.func @divisors(%p: !tt.ptr<f32>, %n: i32, %by: i32) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant 0.0 : f32
    %0 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (f32) : i32 {
      %d = arith.subi %by, %i : i32
      %at = arith.divsi %by, %d : i32
      %q = tt.addptr %p, %at : !tt.ptr<f32>, i32
      %x = tt.load %q {tt.latency = 4 : i32} : !tt.ptr<f32>
      %y = arith.addf %s, %x : f32
      scf.yield %y : f32
    } {tt.num_stages = 2 : i32}
    tt.return %0 : f32
  }
}

// -----

// A dot that runs beside the program: the one before it must be done before its operands are copied over.
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @warp_groups
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<4x64x64xf16
  // CHECK: scf.for
  // CHECK: ttg.async_wait {num = 1 : i32}
  // CHECK-NEXT: ttng.fence_async_shared
  // CHECK: %[[DOT:.*]] = ttng.warp_group_dot {{.*}}isAsync = true
  // CHECK-NEXT: %[[DONE:.*]] = ttng.warp_group_dot_wait %[[DOT]] {pendings = 1 : i32}
  // CHECK: scf.yield %[[DONE]]
  // CHECK: ttng.warp_group_dot_wait {{.*}} {pendings = 0 : i32}
  tt.func @warp_groups(%pa: tensor<64x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tt.load %pa : tensor<64x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %xs, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.return %r : tensor<64x64xf32, #mma>
  }

  // What is computed for a dot goes to a ring of its own: the next iteration stores while the dot of this one reads. Few
  // registers are needed, so six CTAs share the memory, and copies wait for the dot that read their slot.
  // CHECK-LABEL: @computed
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16
  // CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16
  // The fence that follows the store, before the barrier, orders the copies, too.
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK-NOT: ttng.fence_async_shared
  // CHECK: %[[READ:.*]] = ttg.local_load
  // CHECK: %[[TWICE:.*]] = arith.addf %[[READ]], %[[READ]]
  // CHECK: ttg.local_store %[[TWICE]]
  // CHECK-NOT: ttng.fence_async_shared
  // CHECK: ttng.warp_group_dot {{.*}}isAsync = true
  // FENCED-LABEL: @computed
  // FENCED: scf.for
  // FENCED: ttg.local_store
  // FENCED-NEXT: ttng.fence_async_shared
  // FENCED-NEXT: ttng.warp_group_dot
  tt.func @computed(%pa: tensor<64x64x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
      %x = tt.load %pa : tensor<64x64x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %y = arith.addf %x, %x : tensor<64x64xf16, #blocked>
      %ys = ttg.local_alloc %y : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
      %d = ttng.warp_group_dot %xs, %ys, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
      scf.yield %d : tensor<64x64xf32, #mma>
    }
    tt.return %r : tensor<64x64xf32, #mma>
  }
}

// -----

#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // A load passes a store through a pointer of another argument. Through one of unknown origin it does not.
  // These loops ask for stages themselves.
  // ONE: @passes_stores
  // CHECK-LABEL: @passes_stores
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK:   ttg.async_copy_global_to_local
  // CHECK:   tt.store
  // CHECK: scf.for
  // CHECK-NOT: ttg.async
  // CHECK: tt.return
  tt.func @passes_stores(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %address: i64, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #line>
    %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
    %from = tt.addptr %ps, %r : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
    %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
    %to = tt.addptr %qs, %r : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %from : tensor<1024x!tt.ptr<f32>, #line>
      tt.store %to, %x : tensor<1024x!tt.ptr<f32>, #line>
    } {tt.num_stages = 3 : i32}
    %u = tt.int_to_ptr %address : i64 -> !tt.ptr<f32>
    %us = tt.splat %u : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #line>
    %unknown = tt.addptr %us, %r : tensor<1024x!tt.ptr<f32>, #line>, tensor<1024xi32, #line>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %x = tt.load %from : tensor<1024x!tt.ptr<f32>, #line>
      tt.store %unknown, %x : tensor<1024x!tt.ptr<f32>, #line>
    } {tt.num_stages = 3 : i32}
    tt.return
  }
}

// -----

// Threads copy what lies together, whatever they compute with. The pointers are computed so, not converted.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#columns = #ttg.slice<{dim = 0, parent = #b}>
#rows = #ttg.slice<{dim = 1, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: #[[ROW:blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 4]
  // CHECK-LABEL: @copies_rows
  // CHECK: scf.for
  // CHECK-NOT: ttg.convert_layout
  // CHECK: ttg.local_load {{.*}} -> tensor<64x128xi32, #ttg.dot_op
  // CHECK-NOT: ttg.convert_layout
  // CHECK: ttg.async_copy_global_to_local {{.*}} : tensor<64x128x!tt.ptr<i32>, #[[ROW]]>
  tt.func @copies_rows(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %x: tensor<16x64xf16, #a>, %n: i32) -> tensor<16x128xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x128xf32, #mma>
    %pitch = arith.constant dense<128> : tensor<64x1xi32, #b>
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #rows>
    %m = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
    %me = tt.expand_dims %m {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #b>
    %mb = tt.broadcast %me : tensor<1x128xi32, #b> -> tensor<64x128xi32, #b>
    %ps = tt.splat %p : !tt.ptr<i32> -> tensor<64x128x!tt.ptr<i32>, #b>
    %r = scf.for %i = %c0 to %n step %c64 iter_args(%c = %zero) -> (tensor<16x128xf32, #mma>) : i32 {
      %is = tt.splat %i : i32 -> tensor<64xi32, #rows>
      %at = arith.addi %is, %k : tensor<64xi32, #rows>
      %ke = tt.expand_dims %at {axis = 1 : i32} : tensor<64xi32, #rows> -> tensor<64x1xi32, #b>
      %kp = arith.muli %ke, %pitch : tensor<64x1xi32, #b>
      %kb = tt.broadcast %kp : tensor<64x1xi32, #b> -> tensor<64x128xi32, #b>
      %o = arith.addi %kb, %mb : tensor<64x128xi32, #b>
      %q = tt.addptr %ps, %o : tensor<64x128x!tt.ptr<i32>, #b>, tensor<64x128xi32, #b>
      %v = tt.load %q : tensor<64x128x!tt.ptr<i32>, #b>
      %f = arith.sitofp %v : tensor<64x128xi32, #b> to tensor<64x128xf16, #b>
      %d = tt.dot %x, %f, %c : tensor<16x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<16x128xf32, #mma>
      scf.yield %d : tensor<16x128xf32, #mma>
    }
    tt.return %r : tensor<16x128xf32, #mma>
  }
}

// -----

// A recurrence: what is stored depends on what earlier iterations loaded. Its iterations are shorter than memory takes to answer, so
// loads run seven of them ahead. One of the loop is eight of the program, each of which loads to registers of its own; what is left
// comes in a loop of its own behind, where one iteration hands on to the next what was loaded.
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // EXPLAIN: has no software pipeline: nothing is multiplied in it, it is no recurrence, and it does not ask for stages
  // EXPLAIN: remark: has a software pipeline of 8 stages, unrolled 8 times, so that each iteration loads to registers of its own:
  // EXPLAIN: *                tt.load
  // EXPLAIN: | | | | | | | *  tt.store
  // CHECK-LABEL: @recurrence
  // CHECK: %[[FIRST:.*]] = tt.load
  // CHECK-COUNT-5: tt.load
  // CHECK: %[[SEVENTH:.*]] = tt.load
  // CHECK: %[[LEFT:.*]] = arith.remui {{.*}}, %c8_i32
  // CHECK: scf.for {{.*}} step %c8_i32{{.*}} iter_args(%[[STATE:[^ ]*]] = {{.*}}, %[[LAST:[^ ]*]] = %[[SEVENTH]], {{.*}}, %[[NOW:[^ ]*]] = %[[FIRST]],
  // CHECK: %[[EIGHTH:.*]] = tt.load
  // CHECK: arith.addf %[[STATE]], %[[NOW]]
  // CHECK: tt.store
  // CHECK-COUNT-6: tt.load
  // CHECK: %[[NEXT:.*]] = tt.load
  // CHECK: arith.addf {{.*}}, %[[EIGHTH]]
  // CHECK: tt.store
  // CHECK: scf.yield {{.*}}, %[[NEXT]],
  // CHECK: scf.for {{.*}} step %c1_i32
  // CHECK: tt.load
  // CHECK: tt.store
  // CHECK: scf.yield
  tt.func @recurrence(%x: tensor<128x!tt.ptr<f32>, #row>, %y: !tt.ptr<f32>, %a: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128xf32, #row>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #row>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128xf32, #row>) : i32 {
      %is = tt.splat %i : i32 -> tensor<128xi32, #row>
      %at = arith.addi %r, %is : tensor<128xi32, #row>
      %p = tt.addptr %as, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      %v = tt.load %p : tensor<128x!tt.ptr<f32>, #row>
      %t = arith.addf %s, %v : tensor<128xf32, #row>
      %q = tt.addptr %ys, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      tt.store %q, %t : tensor<128x!tt.ptr<f32>, #row>
      scf.yield %t : tensor<128xf32, #row>
    }
    // Each iteration for itself.
    scf.for %i = %c0 to %n step %c1 : i32 {
      %is = tt.splat %i : i32 -> tensor<128xi32, #row>
      %at = arith.addi %r, %is : tensor<128xi32, #row>
      %p = tt.addptr %as, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      %v = tt.load %p : tensor<128x!tt.ptr<f32>, #row>
      %q = tt.addptr %ys, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      tt.store %q, %v : tensor<128x!tt.ptr<f32>, #row>
    }
    tt.store %x, %sum : tensor<128x!tt.ptr<f32>, #row>
    tt.return
  }
}

// -----

// A volatile load gives what is there when it comes to it: it stays in its iteration.
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // EXPLAIN: has no software pipeline: what is in it writes memory, or waits
  // CHECK-LABEL: @volatile
  // CHECK-NOT: tt.load
  // CHECK: scf.for
  // CHECK: tt.load {{.*}}isVolatile = true
  // CHECK: tt.store
  // CHECK: scf.yield
  tt.func @volatile(%y: !tt.ptr<f32>, %a: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128xf32, #row>
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #row>
    %as = tt.splat %a : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %ys = tt.splat %y : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #row>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128xf32, #row>) : i32 {
      %is = tt.splat %i : i32 -> tensor<128xi32, #row>
      %at = arith.addi %r, %is : tensor<128xi32, #row>
      %p = tt.addptr %as, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      %v = tt.load %p {isVolatile = true} : tensor<128x!tt.ptr<f32>, #row>
      %t = arith.addf %s, %v : tensor<128xf32, #row>
      %q = tt.addptr %ys, %at : tensor<128x!tt.ptr<f32>, #row>, tensor<128xi32, #row>
      tt.store %q, %t : tensor<128x!tt.ptr<f32>, #row>
      scf.yield %t : tensor<128xf32, #row>
    }
    tt.return
  }
}
