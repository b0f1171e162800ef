// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx --no-line-info -o - | FileCheck %s

// Integers become singles first, of which one instruction rounds two to halves: bits of words by the thousand are converted so. What is
// too large for a single is infinite as a half.
// CHECK-LABEL: .entry nibbles_of_words(
// CHECK-NOT: cvt.rn.f16.u32
// CHECK: cvt.rn.f32.u32
// CHECK: cvt.rn.f16{{(x2)?}}.f32
// CHECK: ret;
tt.func public @nibbles_of_words(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %mask = arith.constant dense<15> : tensor<1024xi32>
  %half = arith.constant dense<5.000000e-01> : tensor<1024xf16>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32>
  %all = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %at = tt.addptr %all, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  %x = tt.load %at : tensor<1024x!tt.ptr<i32>>
  %low = arith.andi %x, %mask : tensor<1024xi32>
  %y = arith.uitofp %low : tensor<1024xi32> to tensor<1024xf16>
  %z = arith.mulf %y, %half : tensor<1024xf16>
  %q_all = tt.splat %q : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q_at = tt.addptr %q_all, %range : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  tt.store %q_at, %z : tensor<1024x!tt.ptr<f16>>
  tt.return
}
