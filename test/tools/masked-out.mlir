// A tile of four columns of which one is there: the others' accesses have masks that are never true, and are left out with all that follows
// from them. What is loaded is what the load gives where its mask is false: here columns beyond add 2 to the sum.

// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s
// RUN: %ttc %s --target cuda:80 --num-warps 4 --emit ptx | FileCheck %s

// CHECK-LABEL: .entry columns(
// CHECK-COUNT-1: ld.global
// CHECK-NOT: ld.global
// CHECK: st.global
// CHECK-NOT: {{st.global|mov.pred}}
// CHECK: ret;
tt.func public @columns(%in: !tt.ptr<f32>, %out: !tt.ptr<f32>, %n: i32) {
  %one = arith.constant dense<1> : tensor<1x4xi32>
  %two = arith.constant dense<2.0> : tensor<128x4xf32>
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %c = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %ns = tt.splat %n : i32 -> tensor<128x1xi32>
  %is_row = arith.cmpi slt, %rows, %ns : tensor<128x1xi32>
  %is_column = arith.cmpi slt, %columns, %one : tensor<1x4xi32>
  %m0 = tt.broadcast %is_row : tensor<128x1xi1> -> tensor<128x4xi1>
  %m1 = tt.broadcast %is_column : tensor<1x4xi1> -> tensor<128x4xi1>
  %mask = arith.andi %m0, %m1 : tensor<128x4xi1>
  %rb = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x4xi32>
  %cb = tt.broadcast %columns : tensor<1x4xi32> -> tensor<128x4xi32>
  %offsets = arith.addi %rb, %cb : tensor<128x4xi32>
  %ps = tt.splat %in : !tt.ptr<f32> -> tensor<128x4x!tt.ptr<f32>>
  %p = tt.addptr %ps, %offsets : tensor<128x4x!tt.ptr<f32>>, tensor<128x4xi32>
  %x = tt.load %p, %mask, %two : tensor<128x4x!tt.ptr<f32>>
  %sum = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %t = arith.addf %a, %b : f32
    tt.reduce.return %t : f32
  }) : (tensor<128x4xf32>) -> tensor<128xf32>
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %op = tt.addptr %os, %r : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %op, %sum : tensor<128x!tt.ptr<f32>>
  tt.return
}
