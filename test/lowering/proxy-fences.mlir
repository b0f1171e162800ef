// RUN: %ttopt %s --tritongpu-insert-barriers --triton-nvidia-gpu-proxy-fence-insertion --convert-triton-gpu-to-llvm | FileCheck %s

// A fence for what is loaded in bulk is one for all memory; one for buffers is for shared memory.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#tma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 4104 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: llvm.func @stored_then_copied
  // CHECK: llvm.store
  // CHECK: "fence.proxy.async;"
  // CHECK: nvvm.barrier0
  // CHECK: cp.async.bulk.tensor
  // CHECK: "fence.proxy.async.shared::cta;"
  tt.func @stored_then_copied(%desc: !tt.ptr<i8>, %q: !tt.ptr<f32>, %v: tensor<32x32xf32, #a>, %i: i32) {
    %true = arith.constant true
    %map = ttng.reinterpret_tensor_descriptor %desc : !tt.ptr<i8> to !tt.tensordesc<32x32xf32, #tma>
    %ptrs = tt.splat %q : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<32x32xf32, #tma, #smem, mutable>
    %bar = ttg.local_alloc {allocation.offset = 4096 : i32} : () -> !ttg.memdesc<1xi64, #one, #smem, mutable>
    ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #one, #smem, mutable>
    tt.store %ptrs, %v : tensor<32x32x!tt.ptr<f32>, #a>
    ttng.barrier_expect %bar, 4096, %true : !ttg.memdesc<1xi64, #one, #smem, mutable>
    ttng.async_tma_copy_global_to_local %map[%i, %i] %m, %bar, %true : !tt.tensordesc<32x32xf32, #tma>, !ttg.memdesc<1xi64, #one, #smem, mutable> -> !ttg.memdesc<32x32xf32, #tma, #smem, mutable>
    ttng.fence_async_shared {bCluster = false}
    tt.return
  }
}
