// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// CHECK: ttg.shared = 16384 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A buffer that lives across an operation does not share its bytes; scratch
  // memory of operations one after the other does.
  // CHECK-LABEL: @scratch_and_buffer
  tt.func @scratch_and_buffer(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 0 : i32}
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    // CHECK: ttg.convert_layout %{{.*}} {allocation.offset = 8192 : i32, allocation.size = 8192 : i32}
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    // CHECK: ttg.convert_layout %{{.*}} {allocation.offset = 8192 : i32, allocation.size = 8192 : i32}
    %1 = ttg.convert_layout %0 : tensor<32x64xf32, #b> -> tensor<32x64xf32, #a>
    %2 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// CHECK: ttg.shared = 8192 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @one_after_the_other
  tt.func @one_after_the_other(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 0 : i32}
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 0 : i32}
    %n = ttg.local_alloc %0 : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %1 = ttg.local_load %n : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// CHECK: ttg.shared = 24576 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // What a loop carries lives as long as the loop: both buffers that the
  // argument may be, while the loop makes a third.
  // CHECK-LABEL: @carried
  tt.func @carried(%v: tensor<32x64xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    // CHECK: ttg.local_alloc {allocation.offset = 0 : i32}
    %x = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: ttg.local_alloc {allocation.offset = 8192 : i32}
    %y = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%p = %x, %q = %y) -> (!ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>) : i32 {
      %0 = ttg.local_load %p : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
      // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 16384 : i32}
      %z = ttg.local_alloc %0 : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
      %1 = ttg.local_load %z : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
      ttg.local_store %1, %q : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
      scf.yield %q, %p : !ttg.memdesc<32x64xf32, #shared, #smem, mutable>, !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    }
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// CHECK: ttg.shared = 8192 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Only one branch runs.
  // CHECK-LABEL: @branches
  tt.func @branches(%v: tensor<32x64xf32, #a>, %c: i1) {
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 0 : i32}
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    cf.br ^bb3
  ^bb2:
    // CHECK: ttg.local_alloc %{{.*}} {allocation.offset = 0 : i32}
    %n = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    %1 = ttg.local_load %n : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #a>
    cf.br ^bb3
  ^bb3:
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#padded = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [32, 64]}>
#smem = #ttg.shared_memory
// CHECK: ttg.shared = 41464 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func private @callee
  // CHECK-SAME: allocation.size = 8192 : i32
  tt.func private @callee(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    // CHECK: ttg.convert_layout %{{.*}} {allocation.offset = 0 : i32, allocation.size = 8192 : i32}
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  // A callee's memory is that of the call. Swizzles of 128 bytes start at
  // multiples of 1024; the last row of a padded buffer has no padding.
  // CHECK-LABEL: @kernel
  tt.func @kernel(%v: tensor<32x64xf32, #a>) {
    // CHECK: ttg.local_alloc {allocation.offset = 41456 : i32} : () -> !ttg.memdesc<1xi64
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>
    // CHECK: ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<3x64x64xf16
    %n = ttg.local_alloc : () -> !ttg.memdesc<3x64x64xf16, #nvmma, #smem, mutable>
    // CHECK: ttg.local_alloc {allocation.offset = 24576 : i32} : () -> !ttg.memdesc<32x64xf32
    %p = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #padded, #smem, mutable>
    // CHECK: tt.call @callee(%{{.*}}) {allocation.offset = 33264 : i32, allocation.size = 8192 : i32}
    %0 = tt.call @callee(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    ttg.local_dealloc %bar : !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>
    ttg.local_dealloc %n : !ttg.memdesc<3x64x64xf16, #nvmma, #smem, mutable>
    ttg.local_dealloc %p : !ttg.memdesc<32x64xf32, #padded, #smem, mutable>
    tt.return
  }
}
