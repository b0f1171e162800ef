// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx -o - | FileCheck %s
// REQUIRES: libdevice

// `erf` branches in each of its calls. What is used behind them is loaded before them, and on its way meanwhile.
// CHECK-LABEL: .entry gated
// CHECK-NOT: bra
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: bra
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
tt.func public @gated(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %as = tt.splat %a : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %pa = tt.addptr %as, %r : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %pb = tt.addptr %bs, %r : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %po = tt.addptr %os, %r : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %x = tt.load %pa : tensor<512x!tt.ptr<f32>>
  %y = tt.load %pb : tensor<512x!tt.ptr<f32>>
  %t = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "__nv_erff"} : (tensor<512xf32>) -> tensor<512xf32>
  %z = arith.mulf %t, %y : tensor<512xf32>
  tt.store %po, %z : tensor<512x!tt.ptr<f32>>
  tt.return
}
