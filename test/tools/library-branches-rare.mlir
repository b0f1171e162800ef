// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit llvmir --no-line-info -o - | FileCheck %s

// An exponent is found otherwise of denormal numbers, which few warps have: their branch stays.
// CHECK-LABEL: define ptx_kernel void @exponents(
// CHECK: br i1
// CHECK: ret void
tt.func public @exponents(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %all = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %at = tt.addptr %all, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %x = tt.load %at : tensor<128x!tt.ptr<f32>>
  %y = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_ilogbf"} : (tensor<128xf32>) -> tensor<128xi32>
  %q_all = tt.splat %q : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %q_at = tt.addptr %q_all, %range : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %q_at, %y : tensor<128x!tt.ptr<i32>>
  tt.return
}
