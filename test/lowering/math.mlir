// Functions of floats: an intrinsic of LLVM, an instruction, or a function of libdevice.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Rounding and signs.
// CHECK-LABEL: llvm.func internal @rounding(
// CHECK:      llvm.intr.fabs(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ceil.ftz.f"(%arg0)
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.floor.ftz.f"(%arg0)
// CHECK-NEXT: llvm.intr.trunc(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.intr.round(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.intr.roundeven(%arg0) : (f32) -> f32
tt.func private @rounding(%x: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.absf %x : tensor<32xf32, #b>
  %1 = math.ceil %x : tensor<32xf32, #b>
  %2 = math.floor %x : tensor<32xf32, #b>
  %3 = math.trunc %x : tensor<32xf32, #b>
  %4 = math.round %x : tensor<32xf32, #b>
  %5 = math.roundeven %x : tensor<32xf32, #b>
  tt.return %0, %1, %2, %3, %4, %5 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Two operands, and three.
// CHECK-LABEL: llvm.func internal @several(
// CHECK:      llvm.intr.copysign(%arg0, %arg1)
// CHECK-NEXT: llvm.intr.fma(%arg0, %arg1, %arg2)
tt.func private @several(%x: tensor<32xf32, #b>, %y: tensor<32xf32, #b>, %z: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.copysign %x, %y : tensor<32xf32, #b>
  %1 = math.fma %x, %y, %z : tensor<32xf32, #b>
  tt.return %0, %1 : tensor<32xf32, #b>, tensor<32xf32, #b>
}

// With and without NaN.
// CHECK-LABEL: llvm.func internal @extrema(
// CHECK:      llvm.intr.maximum(%arg0, %arg1)
// CHECK-NEXT: llvm.intr.minimum(%arg0, %arg1)
// CHECK-NEXT: %[[A:.*]] = llvm.intr.maxnum(%arg0, %arg1)
// CHECK-NEXT: llvm.intr.minnum(%[[A]], %arg2)
// CHECK-NEXT: %[[B:.*]] = llvm.intr.maximum(%arg0, %arg1)
// CHECK-NEXT: llvm.intr.minimum(%[[B]], %arg2)
tt.func private @extrema(%x: tensor<32xf32, #b>, %y: tensor<32xf32, #b>, %z: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = arith.maximumf %x, %y : tensor<32xf32, #b>
  %1 = arith.minimumf %x, %y : tensor<32xf32, #b>
  %2 = tt.clampf %x, %y, %z, propagateNan = none : tensor<32xf32, #b>
  %3 = tt.clampf %x, %y, %z, propagateNan = all : tensor<32xf32, #b>
  tt.return %0, %1, %2, %3 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Approximations of the hardware, and what is rounded right.
// CHECK-LABEL: llvm.func internal @instructions(
// CHECK:      %[[LOG2E:.*]] = llvm.mlir.constant(1.44269502 : f32)
// CHECK-NEXT: %[[P:.*]] = llvm.fmul %arg0, %[[LOG2E]]
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.ex2.approx"(%[[P]])
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.ftz.f"(%arg0)
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.div.approx.f"(%arg0, %arg1)
// CHECK-NEXT: llvm.intr.sqrt(%arg0)
// CHECK-NEXT: llvm.fdiv %arg0, %arg1
tt.func private @instructions(%x: tensor<32xf32, #b>, %y: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.exp %x : tensor<32xf32, #b>
  %1 = math.rsqrt %x : tensor<32xf32, #b>
  %2 = tt.approx_divf %x, %y : tensor<32xf32, #b>
  %3 = tt.precise_sqrt %x : tensor<32xf32, #b>
  %4 = tt.precise_divf %x, %y : tensor<32xf32, #b>
  tt.return %0, %1, %2, %3, %4 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Singles.
// CHECK-LABEL: llvm.func internal @singles(
// CHECK:      llvm.call @__nv_acosf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_acoshf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_asinf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_asinhf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_atanf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_cbrtf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_coshf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_erff(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_expm1f(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_logf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_log10f(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_log1pf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_log2f(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_sinhf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_tanf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_tanhf(%arg0) : (f32) -> f32
// CHECK-NEXT: llvm.call @__nv_cosf(%arg0) : (f32) -> f32
tt.func private @singles(%x: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.acos %x : tensor<32xf32, #b>
  %1 = math.acosh %x : tensor<32xf32, #b>
  %2 = math.asin %x : tensor<32xf32, #b>
  %3 = math.asinh %x : tensor<32xf32, #b>
  %4 = math.atan %x : tensor<32xf32, #b>
  %5 = math.cbrt %x : tensor<32xf32, #b>
  %6 = math.cosh %x : tensor<32xf32, #b>
  %7 = math.erf %x : tensor<32xf32, #b>
  %8 = math.expm1 %x : tensor<32xf32, #b>
  %9 = math.log %x : tensor<32xf32, #b>
  %10 = math.log10 %x : tensor<32xf32, #b>
  %11 = math.log1p %x : tensor<32xf32, #b>
  %12 = math.log2 %x : tensor<32xf32, #b>
  %13 = math.sinh %x : tensor<32xf32, #b>
  %14 = math.tan %x : tensor<32xf32, #b>
  %15 = math.tanh %x : tensor<32xf32, #b>
  %16 = math.cos %x : tensor<32xf32, #b>
  tt.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16 : tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Doubles.
// CHECK-LABEL: llvm.func internal @doubles(
// CHECK:      llvm.call @__nv_acos(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_acosh(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_asin(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_asinh(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_atan(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_cbrt(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_cosh(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_erf(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_expm1(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_log(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_log10(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_log1p(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_log2(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_sinh(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_tan(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_tanh(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_cos(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_exp(%arg0) : (f64) -> f64
// CHECK-NEXT: llvm.call @__nv_rsqrt(%arg0) : (f64) -> f64
tt.func private @doubles(%x: tensor<32xf64, #b>) -> (tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>) {
  %0 = math.acos %x : tensor<32xf64, #b>
  %1 = math.acosh %x : tensor<32xf64, #b>
  %2 = math.asin %x : tensor<32xf64, #b>
  %3 = math.asinh %x : tensor<32xf64, #b>
  %4 = math.atan %x : tensor<32xf64, #b>
  %5 = math.cbrt %x : tensor<32xf64, #b>
  %6 = math.cosh %x : tensor<32xf64, #b>
  %7 = math.erf %x : tensor<32xf64, #b>
  %8 = math.expm1 %x : tensor<32xf64, #b>
  %9 = math.log %x : tensor<32xf64, #b>
  %10 = math.log10 %x : tensor<32xf64, #b>
  %11 = math.log1p %x : tensor<32xf64, #b>
  %12 = math.log2 %x : tensor<32xf64, #b>
  %13 = math.sinh %x : tensor<32xf64, #b>
  %14 = math.tan %x : tensor<32xf64, #b>
  %15 = math.tanh %x : tensor<32xf64, #b>
  %16 = math.cos %x : tensor<32xf64, #b>
  %17 = math.exp %x : tensor<32xf64, #b>
  %18 = math.rsqrt %x : tensor<32xf64, #b>
  tt.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18 : tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>, tensor<32xf64, #b>
}

// Of two operands.
// CHECK-LABEL: llvm.func internal @binary(
// CHECK:      llvm.call @__nv_atan2f(%arg0, %arg1)
// CHECK-NEXT: llvm.call @__nv_powf(%arg0, %arg1)
tt.func private @binary(%x: tensor<32xf32, #b>, %y: tensor<32xf32, #b>) -> (tensor<32xf32, #b>, tensor<32xf32, #b>) {
  %0 = math.atan2 %x, %y : tensor<32xf32, #b>
  %1 = math.powf %x, %y : tensor<32xf32, #b>
  tt.return %0, %1 : tensor<32xf32, #b>, tensor<32xf32, #b>
}

// Widening is exact.
// CHECK-LABEL: llvm.func internal @widening(
// CHECK:      llvm.fpext %arg0 : f16 to f32
tt.func private @widening(%x: tensor<32xf16, #b>, %y: tensor<32xbf16, #b>) -> (tensor<32xf32, #b>) {
  %0 = arith.extf %x : tensor<32xf16, #b> to tensor<32xf32, #b>
  tt.return %0 : tensor<32xf32, #b>
}

// Undefined values stay undefined.
// CHECK-LABEL: llvm.func internal @undefined(
// CHECK: llvm.mlir.poison : f32
tt.func private @undefined() -> tensor<32xf32, #b> {
  %0 = ub.poison : tensor<32xf32, #b>
  tt.return %0 : tensor<32xf32, #b>
}
}
