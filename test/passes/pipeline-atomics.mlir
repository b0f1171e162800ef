// Loads run ahead of atomic operations of which nobody uses a result, as of stores: such an operation acquires nothing, and a
// release holds back no later load. Where a result is used, or the operation is through pointers of what is loaded, none do.
// RUN: %ttopt %s --tritongpu-pipeline="num-stages=3 explain=true" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=EXPLAIN < %t

// EXPLAIN: has no software pipeline: what is in it writes memory, or waits
// EXPLAIN: has no software pipeline: nothing can run ahead
// EXPLAIN: has a software pipeline of 4 stages, of which one reads operands ahead
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @ahead
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: tt.dot
  // CHECK: tt.atomic_rmw
  tt.func public @ahead(%pa: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %pc: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
    %step = arith.constant dense<1024> : tensor<32x32xi32, #blocked>
    %i0 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %i1 = tt.expand_dims %i0 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
    %i = tt.broadcast %i1 : tensor<1x32xi32, #blocked> -> tensor<32x32xi32, #blocked>
    %a0 = tt.splat %pa : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>, #blocked>
    %a = tt.addptr %a0, %i : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
    %to = tt.splat %pc : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #mma>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %sum = %zero) -> (tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #a>
      %xb = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %xa, %xb, %zero : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
      %old = tt.atomic_rmw fadd, acq_rel, gpu, %to, %d : (tensor<32x32x!tt.ptr<f32>, #mma>, tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma>
      %next = tt.addptr %p, %step : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
      %more = arith.addf %sum, %d : tensor<32x32xf32, #mma>
      scf.yield %next, %more : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>
    }
    tt.return
  }
  // CHECK-LABEL: @used
  // CHECK-NOT: ttg.async
  tt.func public @used(%pa: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %pc: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
    %step = arith.constant dense<1024> : tensor<32x32xi32, #blocked>
    %i0 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %i1 = tt.expand_dims %i0 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
    %i = tt.broadcast %i1 : tensor<1x32xi32, #blocked> -> tensor<32x32xi32, #blocked>
    %a0 = tt.splat %pa : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>, #blocked>
    %a = tt.addptr %a0, %i : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
    %to = tt.splat %pc : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #mma>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %sum = %zero) -> (tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #a>
      %xb = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %xa, %xb, %zero : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
      %old = tt.atomic_rmw fadd, acq_rel, gpu, %to, %d : (tensor<32x32x!tt.ptr<f32>, #mma>, tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma>
      %next = tt.addptr %p, %step : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
      %more = arith.addf %sum, %old : tensor<32x32xf32, #mma>
      scf.yield %next, %more : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>
    }
    tt.return
  }
  // CHECK-LABEL: @same
  // CHECK-NOT: ttg.async
  tt.func public @same(%pa: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %pc: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<32x32xf32, #mma>
    %step = arith.constant dense<1024> : tensor<32x32xi32, #blocked>
    %i0 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %i1 = tt.expand_dims %i0 {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi32, #blocked>
    %i = tt.broadcast %i1 : tensor<1x32xi32, #blocked> -> tensor<32x32xi32, #blocked>
    %a0 = tt.splat %pa : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>, #blocked>
    %a = tt.addptr %a0, %i : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
    %pb = tt.bitcast %pa : !tt.ptr<f16> -> !tt.ptr<f32>
    %to = tt.splat %pb : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #mma>
    %r:2 = scf.for %k = %c0 to %n step %c1 iter_args(%p = %a, %sum = %zero) -> (tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<32x32x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #a>
      %xb = ttg.local_load %xs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %xa, %xb, %zero : tensor<32x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<32x32xf32, #mma>
      %old = tt.atomic_rmw fadd, acq_rel, gpu, %to, %d : (tensor<32x32x!tt.ptr<f32>, #mma>, tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma>
      %next = tt.addptr %p, %step : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xi32, #blocked>
      %more = arith.addf %sum, %d : tensor<32x32xf32, #mma>
      scf.yield %next, %more : tensor<32x32x!tt.ptr<f16>, #blocked>, tensor<32x32xf32, #mma>
    }
    tt.return
  }
}
