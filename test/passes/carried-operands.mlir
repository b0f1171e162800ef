// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ttgir --no-line-info -o - | FileCheck %s

// What a loop carries to a dot without matrix instructions is converted in front of the dot, which reads it in steps: as an operand of such a
// dot each thread would hold 512 numbers of a tile of 64 by 64, and spill them.
// CHECK: scf.condition({{.*}} : f32, tensor<64x64xf32, #blocked{{[0-9]*}}>
// CHECK: %[[A:.*]] = {{.*}} -> tensor<64x64xf32, #ttg.dot_op<{opIdx = 0, parent = #{{.*}}}>>
// CHECK: tt.dot %[[A]],
tt.func public @powers(%e_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %least: f32) {
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
  %one = arith.constant 1.000000e+00 : f32
  %half = arith.constant 5.000000e-01 : f32
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %starts = arith.muli %rows, %c64 : tensor<64x1xi32>
  %starts_all = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns_all = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32>
  %e_all = tt.splat %e_ptr : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %e_at = tt.addptr %e_all, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %e = tt.load %e_at : tensor<64x64x!tt.ptr<f32>>
  %last:2 = scf.while (%power = %e, %k = %one) : (tensor<64x64xf32>, f32) -> (tensor<64x64xf32>, f32) {
    %more = arith.cmpf ogt, %k, %least : f32
    scf.condition(%more) %power, %k : tensor<64x64xf32>, f32
  } do {
  ^bb0(%power: tensor<64x64xf32>, %k: f32):
    %next = tt.dot %power, %e, %zero : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
    %sum = arith.mulf %k, %half : f32
    scf.yield %next, %sum : tensor<64x64xf32>, f32
  }
  %out_all = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %out_at = tt.addptr %out_all, %offsets : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %out_at, %last#0 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
