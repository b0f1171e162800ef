// A loop whose counter is also an offset of 64 bits ends by a counter of 32 bits: ptxas unrolls no loop that compares the lower
// half of another one. A dot beside a loop leaves the loop to LLVM's passes, as if there were none; one in it does not.

// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s

// CHECK-LABEL: .entry counted(
// CHECK: $L__BB0_2:
// CHECK: add.s32 [[COUNTER:%r[0-9]+]], [[COUNTER]], 1;
// CHECK: setp.lt.s32 [[AGAIN:%p[0-9]+]], [[COUNTER]],
// CHECK-NEXT: @[[AGAIN]] bra $L__BB0_2;
tt.func public @counted(%text: !tt.ptr<i8>, %table: !tt.ptr<i8>, %out: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<128xi32>
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %rows = tt.splat %n : i32 -> tensor<128xi32>
  %row = arith.muli %r, %rows : tensor<128xi32>
  %found:2 = scf.for %i = %c0 to %n step %c1 iter_args(%state = %zero, %first = %zero) -> (tensor<128xi32>, tensor<128xi32>) : i32 {
    %is = tt.splat %i : i32 -> tensor<128xi32>
    %at = arith.addi %row, %is : tensor<128xi32>
    %ts = tt.splat %text : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>>
    %tp = tt.addptr %ts, %at : tensor<128x!tt.ptr<i8>>, tensor<128xi32>
    %c = tt.load %tp : tensor<128x!tt.ptr<i8>>
    %ci = arith.extui %c : tensor<128xi8> to tensor<128xi32>
    %sum = arith.addi %state, %ci : tensor<128xi32>
    %as = tt.splat %table : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>>
    %ap = tt.addptr %as, %sum : tensor<128x!tt.ptr<i8>>, tensor<128xi32>
    %next = tt.load %ap : tensor<128x!tt.ptr<i8>>
    %ni = arith.extui %next : tensor<128xi8> to tensor<128xi32>
    %hit = arith.cmpi ne, %ni, %zero : tensor<128xi32>
    %f = arith.select %hit, %is, %first : tensor<128xi1>, tensor<128xi32>
    scf.yield %ni, %f : tensor<128xi32>, tensor<128xi32>
  }
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %op = tt.addptr %os, %r : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  tt.store %op, %found#1 : tensor<128x!tt.ptr<i32>>
  tt.return
}
