// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx --no-line-info -o - | FileCheck %s

// As bf16 large integers would be rounded twice: they are converted as they are.
// CHECK-LABEL: .entry integers_as_bf16(
// CHECK-NOT: cvt.rn.f32.s32
// CHECK: cvt.rn.bf16.s32
tt.func public @integers_as_bf16(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %half = arith.constant dense<5.000000e-01> : tensor<1024xbf16>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %all = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %at = tt.addptr %all, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  %x = tt.load %at : tensor<1024x!tt.ptr<i32>>
  %y = arith.sitofp %x : tensor<1024xi32> to tensor<1024xbf16>
  %z = arith.mulf %y, %half : tensor<1024xbf16>
  %q_all = tt.splat %q : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>
  %q_at = tt.addptr %q_all, %range : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>
  tt.store %q_at, %z : tensor<1024x!tt.ptr<bf16>>
  tt.return
}
