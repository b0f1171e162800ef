// Arithmetic on elements of 16 bits is done two at a time, as they lie in registers.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --emit ptx | FileCheck %s --implicit-check-not='{{ (add|sub|mul|min|max|fma)[a-z.]*\.b?f16 }}'
// RUN: %ttc %s --target cuda:80 --emit ptx | FileCheck %s --check-prefix=SM80

// CHECK-DAG: add.f16x2
// CHECK-DAG: fma.rn.f16x2
// CHECK-DAG: add.bf16x2
// CHECK-DAG: max.bf16x2
// CHECK-DAG: min.f16x2
// SM80-DAG: fma.rn.f16x2
// SM80-DAG: max.bf16x2
tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %p0 = tt.splat %x : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %p = tt.addptr %p0, %i : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %a = tt.load %p : tensor<1024x!tt.ptr<f16>>
  %three = arith.constant dense<3.0> : tensor<1024xf16>
  %s = arith.addf %a, %three : tensor<1024xf16>
  %m = arith.mulf %s, %s : tensor<1024xf16>
  %f = arith.addf %m, %a : tensor<1024xf16>
  %n = arith.minnumf %f, %s : tensor<1024xf16>
  tt.store %p, %n : tensor<1024x!tt.ptr<f16>>
  %q0 = tt.splat %y : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>
  %q = tt.addptr %q0, %i : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>
  %b = tt.load %q : tensor<1024x!tt.ptr<bf16>>
  %five = arith.constant dense<5.0> : tensor<1024xbf16>
  %d = arith.subf %b, %five : tensor<1024xbf16>
  %e = arith.maxnumf %d, %b : tensor<1024xbf16>
  tt.store %q, %e : tensor<1024x!tt.ptr<bf16>>
  tt.return
}
