// RUN: %ttopt %s -split-input-file --tritongpu-insert-barriers -verify-diagnostics
// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s

// Calls whose callees use shared memory, before and after allocation.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @converts(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    // expected-error @+1 {{has no shared memory: run --allocate-shared-memory-nv first}}
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  // The memory of the first call is that of the second one, and that of the buffer, which is dead by then.
  // CHECK-LABEL: tt.func @calls
  tt.func @calls(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.local_load
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: tt.call
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: tt.call
    // CHECK-NEXT: tt.return
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %w = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    %0 = tt.call @converts(%w) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    %1 = tt.call @converts(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    tt.return
  }
}

// -----

// A callee that was allocated, called by one that was not.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @converts(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    %0 = ttg.convert_layout %v {allocation.offset = 0 : i32, allocation.size = 8192 : i32} : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  tt.func @calls(%v: tensor<32x64xf32, #a>) {
    // expected-error @+1 {{has no shared memory, of which @converts uses 8192 bytes: run --allocate-shared-memory-nv first}}
    %0 = tt.call @converts(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    tt.return
  }
}

// -----

// One whose callee has grown since; the call is in a function that is called itself.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @converts(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    %0 = ttg.convert_layout %v {allocation.offset = 0 : i32, allocation.size = 8192 : i32} : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  tt.func private @passes_on(%v: tensor<32x64xf32, #a>) attributes {noinline = true} {
    // expected-error @+1 {{has 4096 bytes of shared memory, of which @converts uses 8192: run --allocate-shared-memory-nv again}}
    %0 = tt.call @converts(%v) {allocation.offset = 0 : i32, allocation.size = 4096 : i32} : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    tt.return
  }
  tt.func @calls(%v: tensor<32x64xf32, #a>) {
    tt.call @passes_on(%v) {allocation.offset = 0 : i32, allocation.size = 4096 : i32} : (tensor<32x64xf32, #a>) -> ()
    tt.return
  }
}

// -----

// Global memory: what a callee stored may be what its caller loads, and the other way round.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @stores(%p: tensor<32x64x!tt.ptr<f32>, #a>, %v: tensor<32x64xf32, #a>) attributes {noinline = true} {
    tt.store %p, %v : tensor<32x64x!tt.ptr<f32>, #a>
    tt.return
  }
  tt.func private @stores_by_another(%p: tensor<32x64x!tt.ptr<f32>, #a>, %v: tensor<32x64xf32, #a>) attributes {noinline = true} {
    tt.call @stores(%p, %v) : (tensor<32x64x!tt.ptr<f32>, #a>, tensor<32x64xf32, #a>) -> ()
    tt.return
  }
  tt.func private @loads(%p: tensor<32x64x!tt.ptr<f32>, #a>) -> tensor<32x64xf32, #a> attributes {noinline = true} {
    %0 = tt.load %p : tensor<32x64x!tt.ptr<f32>, #a>
    tt.return %0 : tensor<32x64xf32, #a>
  }
  tt.func private @computes(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #a> attributes {noinline = true} {
    %0 = arith.addf %v, %v : tensor<32x64xf32, #a>
    tt.return %0 : tensor<32x64xf32, #a>
  }
  // CHECK-LABEL: tt.func @global
  tt.func @global(%p: tensor<32x64x!tt.ptr<f32>, #a>, %q: tensor<32x64x!tt.ptr<f32>, #a>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.call @stores_by_another
    // CHECK-NEXT: tt.call @computes
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.call @loads
    // CHECK-NEXT: tt.call @loads
    // CHECK-NEXT: tt.return
    tt.call @stores_by_another(%p, %v) : (tensor<32x64x!tt.ptr<f32>, #a>, tensor<32x64xf32, #a>) -> ()
    %c = tt.call @computes(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #a>
    %0 = tt.load %q : tensor<32x64x!tt.ptr<f32>, #a>
    tt.store %q, %v : tensor<32x64x!tt.ptr<f32>, #a>
    %1 = tt.call @loads(%p) : (tensor<32x64x!tt.ptr<f32>, #a>) -> tensor<32x64xf32, #a>
    %2 = tt.call @loads(%q) : (tensor<32x64x!tt.ptr<f32>, #a>) -> tensor<32x64xf32, #a>
    tt.return
  }
}
