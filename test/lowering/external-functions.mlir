// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

// Functions that another module defines are declared, once, and called.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-DAG: llvm.func @__nv_cosf(f32) -> f32
// CHECK-DAG: llvm.func @nothing(!llvm.ptr<1>)
tt.func private @__nv_cosf(f32) -> f32
tt.func private @nothing(!tt.ptr<f32>)
// CHECK-LABEL: llvm.func @kernel(
// CHECK:         %[[COS:.*]] = llvm.call @__nv_cosf(%{{.*}}) : (f32) -> f32
// CHECK:         llvm.call @nothing(%{{.*}}) : (!llvm.ptr<1>) -> ()
tt.func public @kernel(%p: !tt.ptr<f32>, %x: f32) {
  %y = tt.call @__nv_cosf(%x) : (f32) -> f32
  tt.call @nothing(%p) : (!tt.ptr<f32>) -> ()
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}
// A call for each element, of a function that the kernel's own declaration does not name.
// CHECK-LABEL: llvm.func internal @elements(
// CHECK-COUNT-2: llvm.call @__nv_sinf(%{{.*}}) : (f32) -> f32
// CHECK-NOT:     llvm.call
tt.func private @elements(%x: tensor<256xf32, #b>) -> tensor<256xf32, #b> {
  %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<256xf32, #b>) -> tensor<256xf32, #b>
  tt.return %0 : tensor<256xf32, #b>
}
}
