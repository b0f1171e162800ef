// A product that is added to the next one, whose operand is loaded under a mask: a branch lies between. LLVM moved `v_wmma` to where its result is used,
// with all operands of all products waiting in registers, though the intrinsic says that nothing else may decide which lanes execute it.
// REQUIRES: amdgpu
// RUN: %ttc %s --target hip:gfx1100 --num-warps 1 --num-stages 1 --emit amdgcn | FileCheck %s

// CHECK-LABEL: two_products:
// CHECK:         global_load
// CHECK:         v_wmma
// CHECK:         global_store
// CHECK:         global_load
// CHECK:         v_wmma
// CHECK:         s_endpgm
tt.func public @two_products(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %first: i64, %n: i64) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant dense<0.0> : tensor<16x16xf16>
  %none = arith.constant dense<0.0> : tensor<16x16xf32>
  %sixteen = arith.constant dense<16> : tensor<16x1xi64>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %wide = arith.extsi %r : tensor<16xi32> to tensor<16xi64>
  %i = tt.expand_dims %wide {axis = 1 : i32} : tensor<16xi64> -> tensor<16x1xi64>
  %j = tt.expand_dims %wide {axis = 0 : i32} : tensor<16xi64> -> tensor<1x16xi64>
  %start = tt.splat %first : i64 -> tensor<16x1xi64>
  %row = arith.xori %i, %start : tensor<16x1xi64>
  %all = tt.splat %n : i64 -> tensor<16x1xi64>
  %inside = arith.cmpi slt, %row, %all : tensor<16x1xi64>
  %mask = tt.broadcast %inside : tensor<16x1xi1> -> tensor<16x16xi1>
  %begin = arith.muli %row, %sixteen : tensor<16x1xi64>
  %begins = tt.broadcast %begin : tensor<16x1xi64> -> tensor<16x16xi64>
  %columns = tt.broadcast %j : tensor<1x16xi64> -> tensor<16x16xi64>
  %at = arith.addi %begins, %columns : tensor<16x16xi64>
  %pp = tt.splat %p : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %pa = tt.addptr %pp, %at : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi64>
  %qp = tt.splat %q : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %qa = tt.addptr %qp, %at : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi64>
  %a = tt.load %pa, %mask, %zero : tensor<16x16x!tt.ptr<f16>>
  %x = tt.dot %a, %a, %none : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.store %out, %one : !tt.ptr<f32>
  %b = tt.load %qa, %mask, %zero : tensor<16x16x!tt.ptr<f16>>
  %y = tt.dot %b, %b, %x : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %small = arith.trunci %wide : tensor<16xi64> to tensor<16xi32>
  %si = tt.expand_dims %small {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %op = tt.splat %out : !tt.ptr<f32> -> tensor<16x1x!tt.ptr<f32>>
  %oa = tt.addptr %op, %si : tensor<16x1x!tt.ptr<f32>>, tensor<16x1xi32>
  %sum = "tt.reduce"(%y) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %rr: f32):
    %s = arith.addf %l, %rr : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %v = tt.expand_dims %sum {axis = 1 : i32} : tensor<16xf32> -> tensor<16x1xf32>
  tt.store %oa, %v : tensor<16x1x!tt.ptr<f32>>
  tt.return
}
