// Functions that Triton's front end names for AMD GPUs and that are in no library, and those of libraries of other targets.
// RUN: %ttopt %s --split-input-file --verify-diagnostics --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
// CHECK-LABEL: llvm.func internal @floats(
// CHECK-DAG:     llvm.intr.fabs(%{{.*}}) : (f32) -> f32
// CHECK-DAG:     llvm.intr.rint(%{{.*}}) : (f32) -> f32
// CHECK-NOT:     llvm.call @
tt.func private @floats(%x: tensor<64xf32, #b>) -> (tensor<64xf32, #b>, tensor<64xf32, #b>) {
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fabs"} : (tensor<64xf32, #b>) -> tensor<64xf32, #b>
  %1 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_rint"} : (tensor<64xf32, #b>) -> tensor<64xf32, #b>
  tt.return %0, %1 : tensor<64xf32, #b>, tensor<64xf32, #b>
}
// CHECK-LABEL: llvm.func internal @integers(
// CHECK-DAG:     "llvm.intr.abs"(%{{.*}}) <{is_int_min_poison = false}> : (i64) -> i64
// CHECK-DAG:     %[[ROUNDED:.*]] = llvm.intr.rint(%{{.*}}) : (f64) -> f64
// CHECK-DAG:     llvm.fptosi %[[ROUNDED]] : f64 to i64
tt.func private @integers(%x: tensor<64xi64, #b>, %y: tensor<64xf64, #b>) -> (tensor<64xi64, #b>, tensor<64xi64, #b>) {
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_iabs"} : (tensor<64xi64, #b>) -> tensor<64xi64, #b>
  %1 = tt.extern_elementwise %y {libname = "", libpath = "", pure = true, symbol = "__triton_hip_llrint"} : (tensor<64xf64, #b>) -> tensor<64xi64, #b>
  tt.return %0, %1 : tensor<64xi64, #b>, tensor<64xi64, #b>
}
// CHECK-LABEL: llvm.func internal @fast(
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.exp2"
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.rcp"
// CHECK:         llvm.intr.copysign
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.exp2"
// CHECK:         %[[RCP:.*]] = llvm.call_intrinsic "llvm.amdgcn.rcp"
// CHECK:         llvm.fmul %{{.*}}, %[[RCP]] : f32
tt.func private @fast(%x: f32) -> f32 {
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_tanhf"} : (f32) -> f32
  %1 = tt.extern_elementwise %0 {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_expf"} : (f32) -> f32
  %2 = tt.extern_elementwise %1, %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_fdividef"} : (f32, f32) -> f32
  tt.return %2 : f32
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func private @other_vendor(%x: f32) -> f32 {
  // expected-error@+1 {{'__nv_sinf' is a function of NVIDIA's libdevice, which hip:gfx942 does not have}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (f32) -> f32
  tt.return %0 : f32
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
tt.func private @other_vendor(%x: f32) -> f32 {
  // expected-error@+1 {{'__ocml_sin_f32' is a function of AMD's device library, which cuda:90 does not have}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__ocml_sin_f32"} : (f32) -> f32
  tt.return %0 : f32
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func private @unknown(%x: f32) -> f32 {
  // expected-error@+1 {{there is no function '__triton_hip_fast_sinf'}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_sinf"} : (f32) -> f32
  tt.return %0 : f32
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func private @types(%x: f64) -> f64 {
  // expected-error@+1 {{'__triton_hip_fast_expf' of f64 is not supported}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_expf"} : (f64) -> f64
  tt.return %0 : f64
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func private @types(%x: f32) -> f32 {
  // expected-error@+1 {{'__triton_hip_fast_fdividef' takes 2 operands, not 1}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_fast_fdividef"} : (f32) -> f32
  tt.return %0 : f32
}
}

// -----

module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {
tt.func private @types(%x: f32) -> i32 {
  // expected-error@+1 {{'__triton_hip_rint' of f32 is f32, not i32}}
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__triton_hip_rint"} : (f32) -> i32
  tt.return %0 : i32
}
}
