// Products of a dot that threads compute themselves stay together: behind the masks of the rows that they are stored to, each row's would be in a block of its
// own, with both operands of all of them in registers until then (256, and 141 spilled).
// REQUIRES: amdgpu
// RUN: %ttc %s --target hip:gfx1100 --num-warps 4 --emit amdgcn | FileCheck %s

// CHECK: .vgpr_count: {{1[0-9][0-9]$}}
// CHECK: .vgpr_spill_count: 0
module {
  tt.func public @small_k_no_loop(%a_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32, %sam: i32 {tt.divisibility = 16 : i32}, %sbk: i32, %scm: i32) {
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %b = arith.constant dense<0.000000e+00> : tensor<32x64xf32>
    %a = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %c64_i32 = arith.constant 64 : i32
    %0 = tt.get_program_id x : i32
    %1 = arith.muli %0, %c64_i32 : i32
    %2 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %3 = tt.splat %1 : i32 -> tensor<64xi32>
    %4 = arith.addi %3, %2 : tensor<64xi32>
    %5 = tt.get_program_id y : i32
    %6 = arith.muli %5, %c64_i32 : i32
    %7 = tt.splat %6 : i32 -> tensor<64xi32>
    %8 = arith.addi %7, %2 : tensor<64xi32>
    %9 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %a_0 = tt.expand_dims %4 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %a_1 = tt.splat %M : i32 -> tensor<64x1xi32>
    %a_2 = arith.cmpi slt, %a_0, %a_1 : tensor<64x1xi32>
    %a_3 = tt.splat %sam : i32 -> tensor<64x1xi32>
    %a_4 = arith.muli %a_0, %a_3 : tensor<64x1xi32>
    %a_5 = tt.splat %a_ptr : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %a_6 = tt.addptr %a_5, %a_4 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %a_7 = tt.expand_dims %9 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %a_8 = tt.broadcast %a_6 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %a_9 = tt.broadcast %a_7 : tensor<1x32xi32> -> tensor<64x32xi32>
    %a_10 = tt.addptr %a_8, %a_9 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %a_11 = tt.broadcast %a_2 : tensor<64x1xi1> -> tensor<64x32xi1>
    %a_12 = tt.load %a_10, %a_11, %a : tensor<64x32x!tt.ptr<f32>>
    %b_13 = tt.expand_dims %8 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %b_14 = tt.splat %N : i32 -> tensor<1x64xi32>
    %b_15 = arith.cmpi slt, %b_13, %b_14 : tensor<1x64xi32>
    %b_16 = tt.expand_dims %9 {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %b_17 = tt.splat %sbk : i32 -> tensor<32x1xi32>
    %b_18 = arith.muli %b_16, %b_17 : tensor<32x1xi32>
    %b_19 = tt.splat %b_ptr : !tt.ptr<f32> -> tensor<32x1x!tt.ptr<f32>>
    %b_20 = tt.addptr %b_19, %b_18 : tensor<32x1x!tt.ptr<f32>>, tensor<32x1xi32>
    %b_21 = tt.broadcast %b_20 : tensor<32x1x!tt.ptr<f32>> -> tensor<32x64x!tt.ptr<f32>>
    %b_22 = tt.broadcast %b_13 : tensor<1x64xi32> -> tensor<32x64xi32>
    %b_23 = tt.addptr %b_21, %b_22 : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %b_24 = tt.broadcast %b_15 : tensor<1x64xi1> -> tensor<32x64xi1>
    %b_25 = tt.load %b_23, %b_24, %b : tensor<32x64x!tt.ptr<f32>>
    %10 = tt.broadcast %a_2 : tensor<64x1xi1> -> tensor<64x64xi1>
    %11 = tt.broadcast %b_15 : tensor<1x64xi1> -> tensor<64x64xi1>
    %12 = arith.andi %10, %11 : tensor<64x64xi1>
    %13 = tt.splat %scm : i32 -> tensor<64x1xi32>
    %14 = arith.muli %a_0, %13 : tensor<64x1xi32>
    %15 = tt.splat %c_ptr : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %16 = tt.addptr %15, %14 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %17 = tt.broadcast %16 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x64x!tt.ptr<f32>>
    %18 = tt.broadcast %b_13 : tensor<1x64xi32> -> tensor<64x64xi32>
    %19 = tt.addptr %17, %18 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %20 = tt.dot %a_12, %b_25, %cst, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
    tt.store %19, %20, %12 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
