// Numbers that a loop does not change are divided by through their reciprocal, which is computed before the loop: ptxas leaves conversions
// and a reciprocal in each iteration. Quotient and remainder of one division share it. What changes in the loop stays a division, and so
// does what is in no loop.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --num-warps 1 --emit ptx | FileCheck %s

// CHECK-LABEL: .entry divided(
// CHECK:     cvt.rn.f32.u32
// CHECK:     rcp.approx.ftz.f32
// CHECK:     cvt.rzi.u32.f32
// CHECK-NOT: rcp
// CHECK:     $L__BB0_2:
// CHECK-NOT: {{div|rem|rcp}}
// CHECK:     mul.hi.u32
// CHECK-NOT: {{div|rem|rcp|mul.hi}}
// CHECK:     rem.s32
// CHECK-NOT: {{div|rem|rcp|mul.hi}}
// CHECK:     bra
// CHECK:     div.s32
tt.func public @divided(%out: !tt.ptr<i32>, %n: i32, %by: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<32xi32>
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %bys = tt.splat %by : i32 -> tensor<32xi32>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%all = %zero) -> (tensor<32xi32>) : i32 {
    %is = tt.splat %i : i32 -> tensor<32xi32>
    %x = arith.xori %all, %r : tensor<32xi32>
    %q = arith.divsi %x, %bys : tensor<32xi32>
    %m = arith.remsi %x, %bys : tensor<32xi32>
    %o = arith.ori %is, %r : tensor<32xi32>
    %k = arith.remsi %q, %o : tensor<32xi32>
    %a = arith.addi %k, %m : tensor<32xi32>
    %next = arith.addi %all, %a : tensor<32xi32>
    scf.yield %next : tensor<32xi32>
  }
  %last = arith.divsi %sum, %bys : tensor<32xi32>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %op = tt.addptr %os, %r : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  tt.store %op, %last : tensor<32x!tt.ptr<i32>>
  tt.return
}
