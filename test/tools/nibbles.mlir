// RUN: %ttc %s --emit llvmir --no-line-info -o - | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Both nibbles of 4-bit integers, with their signs: two words of bytes, of which each becomes two words of nibbles.
// CHECK-LABEL: define ptx_kernel void @signed_nibbles(
// CHECK-NOT:   i8 %
// CHECK:       and i32 %{{.*}}, 252645135
// CHECK-NOT:   sitofp
// CHECK:       ret void
tt.func public @signed_nibbles(%from: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %low: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %high: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %four = arith.constant dense<4> : tensor<1024xi8, #b>
  %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %from_all = tt.splat %from : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>, #b>
  %from_at = tt.addptr %from_all, %range : tensor<1024x!tt.ptr<i8>, #b>, tensor<1024xi32, #b>
  %bytes = tt.load %from_at : tensor<1024x!tt.ptr<i8>, #b>
  %up = arith.shli %bytes, %four : tensor<1024xi8, #b>
  %lower = arith.shrsi %up, %four : tensor<1024xi8, #b>
  %upper = arith.shrsi %bytes, %four : tensor<1024xi8, #b>
  %lower_f = arith.sitofp %lower : tensor<1024xi8, #b> to tensor<1024xf16, #b>
  %upper_f = arith.sitofp %upper : tensor<1024xi8, #b> to tensor<1024xf16, #b>
  %low_all = tt.splat %low : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #b>
  %low_at = tt.addptr %low_all, %range : tensor<1024x!tt.ptr<f16>, #b>, tensor<1024xi32, #b>
  tt.store %low_at, %lower_f : tensor<1024x!tt.ptr<f16>, #b>
  %high_all = tt.splat %high : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #b>
  %high_at = tt.addptr %high_all, %range : tensor<1024x!tt.ptr<f16>, #b>, tensor<1024xi32, #b>
  tt.store %high_at, %upper_f : tensor<1024x!tt.ptr<f16>, #b>
  tt.return
}
}
