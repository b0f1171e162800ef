// A clamp to a constant and what is as far below zero is one instruction from sm_86 on (PTX ISA, `min` with .xorsign.abs); others are two bounds.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,ONE
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,TWO
// RUN: sed s/cuda:90/hip:gfx942/ %s | sed 's/threads-per-warp" = 32/threads-per-warp" = 64/; s/\[32\]/[64]/; s/tensor<32/tensor<64/g' | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,TWO

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @symmetric(
// ONE:      %[[B:.*]] = llvm.mlir.constant(4.480000e+02 : f32)
// ONE-NEXT: %[[X:.*]] = llvm.call_intrinsic "llvm.nvvm.fmin.ftz.xorsign.abs.f"(%arg0, %[[B]])
// ONE-NEXT: llvm.return %[[X]]
// TWO:      llvm.intr.maxnum(%arg0
// TWO-NEXT: llvm.intr.minnum
tt.func private @symmetric(%x: tensor<32xf32, #b>) -> tensor<32xf32, #b> {
  %low = arith.constant dense<-448.0> : tensor<32xf32, #b>
  %high = arith.constant dense<448.0> : tensor<32xf32, #b>
  %0 = tt.clampf %x, %low, %high, propagateNan = none : tensor<32xf32, #b>
  tt.return %0 : tensor<32xf32, #b>
}

// NaN stays NaN where it is asked for, scalars are as elements.
// CHECK-LABEL: llvm.func internal @propagated(
// ONE: llvm.call_intrinsic "llvm.nvvm.fmin.ftz.nan.xorsign.abs.f"(%arg0, %{{.*}})
// TWO: llvm.intr.minimum
tt.func private @propagated(%x: f32) -> f32 {
  %low = arith.constant -1.5 : f32
  %high = arith.constant 1.5 : f32
  %0 = tt.clampf %x, %low, %high, propagateNan = all : f32
  tt.return %0 : f32
}

// Bounds that are not opposite, or not above zero.
// CHECK-LABEL: llvm.func internal @others(
// CHECK-NOT: xorsign
// CHECK: llvm.return
tt.func private @others(%x: tensor<32xf32, #b>, %bound: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %low = arith.constant dense<-1.0> : tensor<32xf32, #b>
  %high = arith.constant dense<2.0> : tensor<32xf32, #b>
  %zero = arith.constant dense<0.0> : tensor<32xf32, #b>
  %0 = tt.clampf %x, %low, %high, propagateNan = none : tensor<32xf32, #b>
  %1 = tt.clampf %x, %zero, %zero, propagateNan = none : tensor<32xf32, #b>
  %2 = tt.clampf %x, %low, %bound, propagateNan = none : tensor<32xf32, #b>
  tt.return %0, %1, %2 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Numbers of 64 bits have no such instruction.
// CHECK-LABEL: llvm.func internal @double(
// CHECK-NOT: xorsign
// CHECK: llvm.return
tt.func private @double(%x: f64) -> f64 {
  %low = arith.constant -1.0 : f64
  %high = arith.constant 1.0 : f64
  %0 = tt.clampf %x, %low, %high, propagateNan = none : f64
  tt.return %0 : f64
}
}
