// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-insert-barriers --triton-nvidia-gpu-proxy-fence-insertion | FileCheck %s
// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-insert-barriers --triton-nvidia-gpu-proxy-fence-insertion --triton-nvidia-gpu-proxy-fence-insertion | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#other = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Bytes that threads exchanged values through are filled by a copy: a fence before the barrier that parts them.
// CHECK-LABEL: @reused(
// CHECK:      ttg.convert_layout
// CHECK-NOT:  ttng.fence_async_shared
// CHECK:      ttng.barrier_expect
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttng.async_tma_copy_global_to_local
// CHECK-NOT:  ttng.fence_async_shared
// CHECK:      tt.return
tt.func public @reused(%d: !tt.tensordesc<64x64xf16, #shared>, %x: tensor<64x64xf16, #blocked>, %p: tensor<64x64x!tt.ptr<f16>, #other>) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  %y = ttg.convert_layout %x : tensor<64x64xf16, #blocked> -> tensor<64x64xf16, #other>
  tt.store %p, %y : tensor<64x64x!tt.ptr<f16>, #other>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.barrier_expect %bar, 8192, %true : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %buf, %bar, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.wait_barrier %bar, %c0 deps %buf : !ttg.memdesc<1xi64, #word, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %z = ttg.local_load %buf : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #other>
  tt.store %p, %z : tensor<64x64x!tt.ptr<f16>, #other>
  tt.return
}

// Threads read in one iteration what the next fills.
// CHECK-LABEL: @loop(
// CHECK:      scf.for
// CHECK:        ttng.fence_async_shared
// CHECK-NEXT:   ttg.barrier local
// CHECK-NEXT:   ttng.barrier_expect
// CHECK-NEXT:   ttng.async_tma_copy_global_to_local
// CHECK:        ttg.local_load
tt.func public @loop(%d: !tt.tensordesc<64x64xf16, #shared>, %p: tensor<64x64x!tt.ptr<f16>, #other>, %n: i32) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%phase = %c0) -> (i32) : i32 {
    %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.barrier_expect %bar, 8192, %true : !ttg.memdesc<1xi64, #word, #smem, mutable>
    ttng.async_tma_copy_global_to_local %d[%i, %c0] %buf, %bar, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    ttng.wait_barrier %bar, %phase deps %buf : !ttg.memdesc<1xi64, #word, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
    %z = ttg.local_load %buf : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf16, #other>
    tt.store %p, %z : tensor<64x64x!tt.ptr<f16>, #other>
    %next = arith.xori %phase, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// What only copies touch needs none, and barriers in memory bring their own.
// CHECK-LABEL: @copies_only(
// CHECK-NOT: ttng.fence_async_shared
// CHECK: tt.return
tt.func public @copies_only(%d: !tt.tensordesc<64x64xf16, #shared>) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.barrier_expect %bar, 8192, %true : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %buf, %bar, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.wait_barrier %bar, %c0 deps %buf : !ttg.memdesc<1xi64, #word, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%c0, %c0] %buf : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.async_tma_store_wait {pendings = 0 : i32}
  tt.return
}

// Nobody knows what callers did to the memory that they lend.
// CHECK-LABEL: @callee(
// CHECK:      ttng.fence_async_shared
// CHECK-NEXT: ttg.barrier local
// CHECK:      ttng.async_tma_copy_global_to_local
tt.func private @callee(%d: !tt.tensordesc<64x64xf16, #shared>) {
  %true = arith.constant true
  %c0 = arith.constant 0 : i32
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.barrier_expect %bar, 8192, %true : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%c0, %c0] %buf, %bar, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.wait_barrier %bar, %c0 deps %buf : !ttg.memdesc<1xi64, #word, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  tt.return
}
}
