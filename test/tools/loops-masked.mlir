// ptxas unrolls no loop with masked loads: those of several iterations stand side by side.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --num-warps 4 | FileCheck %s

// CHECK-LABEL: .entry masked(
// CHECK:       [[LOOP:\$L__BB.*]]:
// CHECK:       @%p{{[0-9]+}} ld.global
// CHECK-NOT:   bra
// CHECK:       @%p{{[0-9]+}} ld.global
// CHECK:       @%p{{.*}} bra [[LOOP]];
tt.func public @masked(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %end = arith.constant 131072 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %p = tt.splat %from : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %pid = tt.get_program_id x : i32
  %in = arith.cmpi slt, %pid, %n : i32
  %mask = tt.splat %in : i1 -> tensor<128xi1>
  %sum = scf.for %k = %c0 to %end step %c128 iter_args(%acc = %zero) -> (tensor<128xf32>) : i32 {
    %ks = tt.splat %k : i32 -> tensor<128xi32>
    %at = arith.addi %ks, %range : tensor<128xi32>
    %a = tt.addptr %p, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %x = tt.load %a, %mask, %zero : tensor<128x!tt.ptr<f32>>
    %next = arith.addf %acc, %x : tensor<128xf32>
    scf.yield %next : tensor<128xf32>
  }
  %q = tt.splat %to : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %b = tt.addptr %q, %range : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %b, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
