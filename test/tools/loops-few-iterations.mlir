// Few iterations, of a number that is known, become straight-line code.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --num-warps 4 | FileCheck %s

// CHECK-LABEL: .entry two_iterations(
// CHECK:       ld.global
// CHECK-NOT:   bra
// CHECK:       ld.global
// CHECK-NOT:   bra
// CHECK:       ret;
tt.func public @two_iterations(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %c256 = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %p = tt.splat %from : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %sum = scf.for %k = %c0 to %c256 step %c128 iter_args(%acc = %zero) -> (tensor<128xf32>) : i32 {
    %ks = tt.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %ks, %range : tensor<128xi32>
    %a = tt.addptr %p, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %x = tt.load %a : tensor<128x!tt.ptr<f32>>
    %next = arith.addf %acc, %x : tensor<128xf32>
    scf.yield %next : tensor<128xf32>
  }
  %q = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %b = tt.addptr %q, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %b, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
