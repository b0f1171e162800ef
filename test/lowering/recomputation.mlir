// RUN: %ttopt %s -split-input-file --tritongpu-kernel-decisions --convert-triton-gpu-to-llvm | FileCheck %s

// The sum of the dots and their operands take all registers: the pointers used behind the loop are computed there,
// of a lane that nobody knows to be the same.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#row = #ttg.slice<{dim = 0, parent = #mma}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: llvm.func @full(
  // CHECK-NOT: laneid
  // CHECK: "llvm.nvvm.mma.m16n8k16
  // CHECK: %[[LANE:.*]] = nvvm.read.ptx.sreg.laneid range <i32, 0, 32>
  // CHECK: llvm.and %[[LANE]]
  // CHECK: llvm.getelementptr
  // CHECK: llvm.return
  tt.func public @full(%x: tensor<128x64xf16, #a>, %y: tensor<64x128xf16, #b>, %p: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<128xi32, #row> -> tensor<1x128xi32, #mma>
    %offsets = tt.broadcast %columns : tensor<1x128xi32, #mma> -> tensor<128x128xi32, #mma>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>, #mma>
    %pointers = tt.addptr %base, %offsets : tensor<128x128x!tt.ptr<f32>, #mma>, tensor<128x128xi32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32, #mma>)  : i32 {
      %d = tt.dot %x, %y, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      scf.yield %d : tensor<128x128xf32, #mma>
    }
    tt.store %pointers, %r : tensor<128x128x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

// Enough registers: nothing is computed twice.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#row = #ttg.slice<{dim = 0, parent = #mma}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: llvm.func @enough(
  // CHECK: "llvm.nvvm.mma.m16n8k16
  // CHECK-NOT: laneid
  tt.func public @enough(%x: tensor<128x64xf16, #a>, %y: tensor<64x32xf16, #b>, %p: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #mma>
    %range = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #row>
    %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<32xi32, #row> -> tensor<1x32xi32, #mma>
    %offsets = tt.broadcast %columns : tensor<1x32xi32, #mma> -> tensor<128x32xi32, #mma>
    %base = tt.splat %p : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>, #mma>
    %pointers = tt.addptr %base, %offsets : tensor<128x32x!tt.ptr<f32>, #mma>, tensor<128x32xi32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #mma>)  : i32 {
      %d = tt.dot %x, %y, %sum : tensor<128x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<128x32xf32, #mma>
      scf.yield %d : tensor<128x32xf32, #mma>
    }
    tt.store %pointers, %r : tensor<128x32x!tt.ptr<f32>, #mma>
    tt.return
  }
}
