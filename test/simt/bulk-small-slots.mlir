// Slots of a ring that bulk copies fill begin at multiples of 128 bytes: of 16 bytes there is no ring, as in triton#10474, where
// the second slot began 16 bytes behind the first one; of 128 bytes there is.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; x = n.arange(96, dtype='f4'); n.save('%t.x.npy', x); n.save('%t.y4.npy', x.reshape(-1, 4).sum(0)); n.save('%t.y32.npy', x.reshape(-1, 32).sum(0))"
// RUN: %ttsim %s --target cuda:90 -q --arg x=%t.x.npy --arg y=f32[4] --arg n=96 --compare y=%t.y4.npy
// RUN: %ttc %s --target cuda:90 --emit ttgir --explain -o - 2>&1 | FileCheck %s --check-prefix=SMALL
// SMALL:     has no software pipeline: what a bulk copy writes is no multiple of 128 bytes
// SMALL-NOT: memdesc<3x4xf32
// RUN: sed 's/<4x/<32x/g; s/4 : i32/32 : i32/' %s > %t.mlir
// RUN: %ttsim %t.mlir --target cuda:90 -q --arg x=%t.x.npy --arg y=f32[32] --arg n=96 --compare y=%t.y32.npy
// RUN: %ttc %t.mlir --target cuda:90 --emit ttgir -o - | FileCheck %s --check-prefix=RING
// RING: local_alloc : () -> !ttg.memdesc<3x32xf32

tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant dense<0.000000e+00> : tensor<4xf32>
  %block = arith.constant 4 : i32
  %c0 = arith.constant 0 : i32
  %stride = arith.constant 1 : i64
  %described = tt.make_tensor_descriptor %x, [%n], [%stride] : <f32>, <tensor<4xf32>>
  %sum = scf.for %i = %c0 to %n step %block iter_args(%sum = %zero) -> (tensor<4xf32>)  : i32 {
    %v = tt.descriptor_load %described[%i] : !tt.tensordesc<tensor<4xf32>> -> tensor<4xf32>
    %next = arith.addf %sum, %v : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  } {tt.num_stages = 3 : i32}
  %at = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %base = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %p = tt.addptr %base, %at : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %p, %sum : tensor<4x!tt.ptr<f32>>
  tt.return
}
