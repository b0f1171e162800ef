// RUN: %ttopt %s -split-input-file --convert-triton-gpu-to-llvm | FileCheck %s

// Two blocks of 8 warps at once where that leaves enough registers: 80 of 128 are for data, 32 for others.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 65536 : i32} {
  // CHECK-LABEL: llvm.func @fits(
  // CHECK-SAME: nvvm.minctasm = 2 : i32
  tt.func public @fits(%p: tensor<128x128x!tt.ptr<f32>, #mma>, %x: tensor<128x32xf32, #mma>, %q: tensor<128x32x!tt.ptr<f32>, #mma>) {
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x128xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> * !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> tensor<128x128xf32, #mma>
    tt.store %p, %d : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.store %q, %x : tensor<128x32x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

// Few registers: they will fit anyway.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 65536 : i32} {
  // CHECK-LABEL: llvm.func @few(
  // CHECK-NOT: minctasm
  tt.func public @few(%p: tensor<128x128x!tt.ptr<f32>, #mma>) {
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x128xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> * !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> tensor<128x128xf32, #mma>
    tt.store %p, %d : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

// Their shared memory does not fit together.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 131072 : i32} {
  // CHECK-LABEL: llvm.func @memory(
  // CHECK-NOT: minctasm
  tt.func public @memory(%p: tensor<128x128x!tt.ptr<f32>, #mma>, %x: tensor<128x32xf32, #mma>, %q: tensor<128x32x!tt.ptr<f32>, #mma>) {
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x128xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> * !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> tensor<128x128xf32, #mma>
    tt.store %p, %d : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.store %q, %x : tensor<128x32x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

// Two products at once, of 64 registers each, leave too few.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 65536 : i32} {
  // CHECK-LABEL: llvm.func @registers(
  // CHECK-NOT: minctasm
  tt.func public @registers(%p: tensor<128x128x!tt.ptr<f32>, #mma>) {
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x128xf16, #shared, #smem, mutable>
    %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> * !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> tensor<128x128xf32, #mma>
    %e = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<128x128xf16, #shared, #smem, mutable> * !ttg.memdesc<128x128xf16, #shared, #smem, mutable> -> tensor<128x128xf32, #mma>
    %s = arith.addf %d, %e : tensor<128x128xf32, #mma>
    tt.store %p, %s : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}
