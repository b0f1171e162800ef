// Functions of singles take denormal numbers for zero, as Triton's do unless `enable_reflect_ftz` is off.
// RUN: %ttopt %s -split-input-file --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-LABEL: llvm.func internal @flushed(
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.ceil.ftz.f"
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.sqrt.approx.ftz.f"
// CHECK-DAG: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @flushed(%x: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.ceil %x : tensor<32xf32, #b>
  %1 = math.sqrt %x : tensor<32xf32, #b>
  %2 = math.rsqrt %x : tensor<32xf32, #b>
  tt.return %0, %1, %2 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-LABEL: llvm.func internal @kept(
// CHECK: llvm.intr.ceil
// CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"
// CHECK: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"
// CHECK: llvm.intr.ceil(%{{.*}}) : (f16) -> f16
module attributes {ttg.flush_denormals = false, "ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @kept(%x: tensor<32xf32, #b>, %h: tensor<32xf16, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf16, #b>) {
  %0 = math.ceil %x : tensor<32xf32, #b>
  %1 = math.sqrt %x : tensor<32xf32, #b>
  %2 = math.rsqrt %x : tensor<32xf32, #b>
  %3 = math.ceil %h : tensor<32xf16, #b>
  tt.return %0, %1, %2, %3 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf16, #b>
}
}
