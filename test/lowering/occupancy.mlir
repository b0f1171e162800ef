// RUN: %ttopt %s -split-input-file --tritongpu-kernel-decisions --convert-triton-gpu-to-llvm | FileCheck %s

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

// Where there are few, too: told of one CTA, ptxas would take what two need.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 65536 : i32} {
  // CHECK-LABEL: llvm.func @few(
  // CHECK-SAME: nvvm.minctasm = 2 : i32
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
  // CHECK-SAME: nvvm.minctasm = 1 : i32
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

// Two dots at once, of 64 registers each, leave too few.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [8, 1], instrShape = [16, 128, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 65536 : i32} {
  // CHECK-LABEL: llvm.func @registers(
  // CHECK-SAME: nvvm.minctasm = 1 : i32
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

// -----

// Operands in shared memory are read as they are multiplied: 64 registers for the sum, 8 and 16 for what a step multiplies.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 32768 : i32} {
  // CHECK-LABEL: llvm.func @steps(
  // CHECK-SAME: nvvm.minctasm = 2 : i32
  tt.func public @steps(%p: tensor<128x128x!tt.ptr<f32>, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %x = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
    %y = ttg.local_alloc {allocation.offset = 16384 : i32} : () -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> (tensor<128x128xf32, #mma>)  : i32 {
      %a = ttg.local_load %x : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> tensor<128x64xf16, #a>
      %b = ttg.local_load %y : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf16, #b>
      %d = tt.dot %a, %b, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      scf.yield %d : tensor<128x128xf32, #mma>
    }
    tt.store %p, %r : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

// A loop around the loop takes registers, too.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 32768 : i32} {
  // CHECK-LABEL: llvm.func @nested(
  // CHECK-SAME: nvvm.minctasm = 1 : i32
  tt.func public @nested(%p: tensor<128x128x!tt.ptr<f32>, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %x = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<128x64xf16, #shared, #smem, mutable>
    %y = ttg.local_alloc {allocation.offset = 16384 : i32} : () -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
    scf.for %tile = %c0 to %n step %c1  : i32 {
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c) -> (tensor<128x128xf32, #mma>)  : i32 {
        %a = ttg.local_load %x : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> -> tensor<128x64xf16, #a>
        %b = ttg.local_load %y : !ttg.memdesc<64x128xf16, #shared, #smem, mutable> -> tensor<64x128xf16, #b>
        %d = tt.dot %a, %b, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
        scf.yield %d : tensor<128x128xf32, #mma>
      }
      tt.store %p, %r : tensor<128x128x!tt.ptr<f32>, #mma>
    }
    tt.return
  }
}
