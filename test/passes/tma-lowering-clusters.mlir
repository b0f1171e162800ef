// RUN: %ttopt %s -split-input-file --pass-pipeline='builtin.module(triton-nvidia-optimize-descriptor-encoding,triton-nvidia-tma-lowering)' | FileCheck %s
// RUN: %ttopt %s -split-input-file --pass-pipeline='builtin.module(triton-nvidia-optimize-descriptor-encoding,triton-nvidia-tma-lowering,canonicalize)' | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#columns = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory
// CHECK-DAG: #[[HALF:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = {{\[\[}}1, 0]]}>
// CHECK-DAG: #[[BOTH:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = {{\[\[}}0, 0]]}>
// CHECK-DAG: #[[WORD:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = {{\[\[}}1]]}>
// CHECK-DAG: #[[OWN:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0], CGALayout = {{\[\[}}1, 0]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// A barrier for each block, which waits for the bytes of its part. Descriptors are divided as most of the tensors
// that are copied; others are exchanged after each block has read its own memory.
// CHECK-LABEL: @most(
// CHECK: %[[BAR:.*]] = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #[[WORD]], #smem, mutable>
// CHECK: ttng.barrier_expect %[[BAR]], 4096, %true
// CHECK: ttng.async_tma_copy_global_to_local {{.*}} : !tt.tensordesc<64x64xf16, #[[HALF]]>
// CHECK: ttg.local_load %{{.*}} -> tensor<64x64xf16, #[[ROWS:.*]]>
// CHECK: %[[X:.*]] = ttg.local_load %{{.*}} -> tensor<64x64xf16, #[[OWN]]>
// CHECK: ttg.convert_layout %[[X]]
tt.func public @most(%a: !tt.tensordesc<64x64xf16>, %p: tensor<64x64x!tt.ptr<f16>, #rows>, %q: tensor<64x64x!tt.ptr<f16>, #columns>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16, #rows>
  tt.store %p, %x : tensor<64x64x!tt.ptr<f16>, #rows>
  tt.descriptor_store %a[%c0, %c0], %x : !tt.tensordesc<64x64xf16>, tensor<64x64xf16, #rows>
  %y = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16, #columns>
  tt.store %q, %y : tensor<64x64x!tt.ptr<f16>, #columns>
  tt.return
}

// The operand that both blocks read in full.
// CHECK-LABEL: @operand(
// CHECK: ttng.barrier_expect %{{.*}}, 4096, %true
// CHECK: ttng.async_tma_copy_global_to_local {{.*}} : !tt.tensordesc<32x64xf16, #[[BOTH]]>
// CHECK-NOT: ttg.local_load
tt.func public @operand(%a: !tt.tensordesc<32x64xf16>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<32x64xf16> -> tensor<32x64xf16, #rows>
  %xs = ttg.local_alloc %x : (tensor<32x64xf16, #rows>) -> !ttg.memdesc<32x64xf16, #shared, #smem>
  ttg.local_dealloc %xs : !ttg.memdesc<32x64xf16, #shared, #smem>
  tt.return
}
}

// -----

#columns = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[0, 1]]}>
#vector = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// Half a row would be 64 bytes, which copies of rows cannot have.
// CHECK-LABEL: @rows(
// CHECK: ttng.barrier_expect %{{.*}}, 2048, %true
// CHECK: ttng.async_tma_gather {{.*}} : !tt.tensordesc<1x64xf16, #[[ALL:.*]]>,
// CHECK: ttg.local_load %{{.*}} -> tensor<16x64xf16, #[[WHOLE:.*]]>
tt.func public @rows(%d: !tt.tensordesc<1x64xf16>, %r: tensor<16xi32, #vector>, %p: tensor<16x64x!tt.ptr<f16>, #columns>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_gather %d[%r, %c0] : (!tt.tensordesc<1x64xf16>, tensor<16xi32, #vector>, i32) -> tensor<16x64xf16, #columns>
  tt.store %p, %x : tensor<16x64x!tt.ptr<f16>, #columns>
  tt.return
}
}
