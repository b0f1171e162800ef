// What only the first iteration does goes before the loop: a branch in it would keep ptxas from unrolling.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --num-warps 4 | FileCheck %s

// CHECK-LABEL: .entry first_is_different(
// CHECK-NOT:   bra
// CHECK:       ld.global
// CHECK-NOT:   bra
// CHECK:       [[LOOP:\$L__BB.*]]:
// CHECK:       div
// CHECK-NOT:   bra
// CHECK:       @%p{{.*}} bra [[LOOP]];
// CHECK-NOT:   bra
// CHECK:       ret;
tt.func public @first_is_different(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %p = tt.splat %from : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %end = arith.constant 131072 : i32
  %mean:2 = scf.for %k = %c0 to %end step %c128 iter_args(%acc = %zero, %count = %zero) -> (tensor<128xf32>, tensor<128xf32>) : i32 {
    %ks = tt.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %ks, %range : tensor<128xi32>
    %a = tt.addptr %p, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %x = tt.load %a : tensor<128x!tt.ptr<f32>>
    %first = arith.cmpi eq, %k, %c0 : i32
    %next:2 = scf.if %first -> (tensor<128xf32>, tensor<128xf32>) {
      scf.yield %x, %one : tensor<128xf32>, tensor<128xf32>
    } else {
      %more = arith.addf %count, %one : tensor<128xf32>
      %delta = arith.subf %x, %acc : tensor<128xf32>
      %part = arith.divf %delta, %more : tensor<128xf32>
      %new = arith.addf %acc, %part : tensor<128xf32>
      scf.yield %new, %more : tensor<128xf32>, tensor<128xf32>
    }
    scf.yield %next#0, %next#1 : tensor<128xf32>, tensor<128xf32>
  }
  %q = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %b = tt.addptr %q, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %b, %mean#0 : tensor<128x!tt.ptr<f32>>
  tt.return
}
