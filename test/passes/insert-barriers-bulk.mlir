// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s

// Global memory that threads and bulk copies access.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#tma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // What threads stored is copied in bulk behind their fences; a barrier that is there anyway comes before those.
  // CHECK-LABEL: @stored_then_copied
  tt.func @stored_then_copied(%p: !tt.ptr<i8>, %v: tensor<32x32xf32, #a>, %i: i32) {
    // CHECK: tt.store
    // CHECK: ttg.barrier local
    // CHECK: ttng.barrier_expect
    // CHECK-NEXT: ttng.fence_async_shared {{.*}}ttg.all_memory
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    %true = arith.constant true
    %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x32xf32, #tma, #smem, mutable>
    %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #one, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #one, #smem, mutable>
    tt.store %ptrs, %v : tensor<32x32x!tt.ptr<f32>, #a>
    ttg.barrier local
    ttng.barrier_expect %bar, 4096, %true : !ttg.memdesc<1xi64, #one, #smem, mutable>
    ttng.async_tma_copy_global_to_local %desc[%i, %i] %m, %bar, %true : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<1xi64, #one, #smem, mutable> -> !ttg.memdesc<32x32xf32, #tma, #smem, mutable>
    tt.return
  }

  // What was stored in bulk is loaded behind a barrier, and waited for before, if nobody has.
  // CHECK-LABEL: @copied_then_loaded
  tt.func @copied_then_loaded(%p: !tt.ptr<i8>, %v: tensor<32x32xf32, #a>, %i: i32) -> tensor<32x32xf32, #a> {
    // CHECK: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 1 : i32}
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    // CHECK-NEXT: arith.addf
    %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %v : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %m : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %0 = tt.load %ptrs : tensor<32x32x!tt.ptr<f32>, #a>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %m : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_store_wait {pendings = 1 : i32}
    ttg.barrier local
    %1 = tt.load %ptrs : tensor<32x32x!tt.ptr<f32>, #a>
    %2 = arith.addf %0, %1 : tensor<32x32xf32, #a>
    tt.return %2 : tensor<32x32xf32, #a>
  }

  // A wait that is for the buffer alone does not say that anything is in global memory.
  // CHECK-LABEL: @only_read
  tt.func @only_read(%p: !tt.ptr<i8>, %v: tensor<32x32xf32, #a>, %i: i32) -> tensor<32x32xf32, #a> {
    // CHECK: ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    // CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: tt.load
    %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %v : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %m : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
    %0 = tt.load %ptrs : tensor<32x32x!tt.ptr<f32>, #a>
    tt.return %0 : tensor<32x32xf32, #a>
  }

  // What threads may still load is stored in bulk behind a barrier: here the one for the buffer.
  // CHECK-LABEL: @loaded_then_copied
  tt.func @loaded_then_copied(%p: !tt.ptr<i8>, %buffer: !ttg.memdesc<32x32xf32, #tma, #smem>, %i: i32) -> tensor<32x32xf32, #a> {
    // CHECK: tt.load
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_store_wait
    // CHECK-NEXT: ttng.async_tma_copy_local_to_global
    // CHECK-NEXT: ttng.async_tma_store_wait
    // CHECK-NEXT: tt.return
    %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    %0 = tt.load %ptrs : tensor<32x32x!tt.ptr<f32>, #a>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %buffer : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    // By the thread that issued the first one.
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %buffer : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    tt.return %0 : tensor<32x32xf32, #a>
  }

  // Other arguments are other data.
  // CHECK-LABEL: @others
  // CHECK-NOT: ttg.barrier
  // CHECK-NOT: fence_async
  // CHECK: tt.return
  tt.func @others(%desc: !tt.tensordesc<32x32xf32, #tma>, %q: !tt.ptr<f32>, %buffer: !ttg.memdesc<32x32xf32, #tma, #smem>, %v: tensor<32x32xf32, #a>, %i: i32) {
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    ttng.async_tma_copy_local_to_global %desc[%i, %i] %buffer : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<32x32xf32, #tma, #smem>
    tt.store %ptrs, %v : tensor<32x32x!tt.ptr<f32>, #a>
    tt.return
  }

  // In the next iteration, by a callee.
  tt.func private @stores(%ptrs: tensor<32x32x!tt.ptr<f32>, #a>, %v: tensor<32x32xf32, #a>) attributes {noinline = true} {
    tt.store %ptrs, %v : tensor<32x32x!tt.ptr<f32>, #a>
    tt.return
  }
  // CHECK-LABEL: tt.func @loop
  tt.func @loop(%p: !tt.ptr<i8>, %bar: !ttg.memdesc<1xi64, #one, #smem, mutable>, %m: !ttg.memdesc<32x32xf32, #tma, #smem, mutable>, %v: tensor<32x32xf32, #a>, %i: i32, %n: i32) {
    // CHECK: scf.for
    // CHECK-NEXT: ttng.fence_async_shared {{.*}}ttg.all_memory
    // CHECK-NEXT: ttg.barrier all
    // CHECK-NEXT: ttng.async_tma_copy_global_to_local
    // CHECK-NEXT: tt.call
    %true = arith.constant true
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %desc = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %q = tt.bitcast %p : !tt.ptr<i8> -> !tt.ptr<f32>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    scf.for %k = %c0 to %n step %c1 : i32 {
      ttng.async_tma_copy_global_to_local %desc[%i, %k] %m, %bar, %true : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<1xi64, #one, #smem, mutable> -> !ttg.memdesc<32x32xf32, #tma, #smem, mutable>
      tt.call @stores(%ptrs, %v) : (tensor<32x32x!tt.ptr<f32>, #a>, tensor<32x32xf32, #a>) -> ()
    }
    tt.return
  }
}
