// A loop that loads at its counter and 64 places behind it: LLVM makes one counter of both, which begins at 64, and ends the loop by that
// less 63. ptxas unrolls no such loop, so what it ends by is a counter of its own, from zero.

// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s

// CHECK-LABEL: .entry experts(
// CHECK: mov.b32 [[COUNTER:%r[0-9]+]], 0;
// CHECK: $L__BB0_2:
// CHECK: add.s32 [[COUNTER]], [[COUNTER]], 1;
// CHECK-NEXT: setp.lt.s32 [[AGAIN:%p[0-9]+]], [[COUNTER]],
// CHECK-NEXT: @[[AGAIN]] bra $L__BB0_2;
tt.func public @experts(%map: !tt.ptr<i32>, %in: !tt.ptr<f32>, %shares: !tt.ptr<f32>, %out: !tt.ptr<f32>, %stride: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %ins = tt.splat %in : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %count = tt.addptr %map, %c128 : !tt.ptr<i32>, i32
  %n = tt.load %count : !tt.ptr<i32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128xf32>) : i32 {
    %rp = tt.addptr %map, %i : !tt.ptr<i32>, i32
    %row = tt.load %rp : !tt.ptr<i32>
    %e = arith.addi %i, %c64 : i32
    %ep = tt.addptr %map, %e : !tt.ptr<i32>, i32
    %expert = tt.load %ep : !tt.ptr<i32>
    %at = arith.muli %row, %stride : i32
    %ats = tt.splat %at : i32 -> tensor<128xi32>
    %offsets = arith.addi %ats, %r : tensor<128xi32>
    %p = tt.addptr %ins, %offsets : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %x = tt.load %p : tensor<128x!tt.ptr<f32>>
    %sp = tt.addptr %shares, %expert : !tt.ptr<f32>, i32
    %share = tt.load %sp : !tt.ptr<f32>
    %by = tt.splat %share : f32 -> tensor<128xf32>
    %y = arith.mulf %x, %by : tensor<128xf32>
    %t = arith.addf %s, %y : tensor<128xf32>
    scf.yield %t : tensor<128xf32>
  }
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %op = tt.addptr %os, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %op, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
