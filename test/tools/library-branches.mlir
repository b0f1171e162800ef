// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit llvmir --no-line-info -o - | FileCheck %s

// The hyperbolic tangent of libdevice has a polynomial for small numbers and an exponential for others. Lanes of a warp have both, so
// all of them compute both and choose.
// CHECK-LABEL: define ptx_kernel void @tangents(
// CHECK-NOT: br i1
// CHECK: llvm.nvvm.ex2.approx
// CHECK: select i1
// CHECK-NOT: br i1
// CHECK: ret void
tt.func public @tangents(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
  %all = tt.splat %p : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %at = tt.addptr %all, %range : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %x = tt.load %at : tensor<512x!tt.ptr<f32>>
  %y = math.tanh %x : tensor<512xf32>
  tt.store %at, %y : tensor<512x!tt.ptr<f32>>
  tt.return
}
