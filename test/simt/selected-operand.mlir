// What is selected for the left operand of a dot, in registers, is written before the dot's fence: a select and the change of type
// behind it are one instruction to LLVM, which stands where the type changes.
// RUN: %ttsim %s --target cuda:90 --grid 1 --num-warps 4 --num-stages 1 -q --arg 'f32[64,32]' --arg 'f32[64,32]' --arg 'f32[64,32]' --arg 'f32[64,32]' --arg 48
module {
  tt.func public @e(%X: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %Z: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %V: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %OUT: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}) attributes {noinline = false} {
    %acc = arith.constant dense<0.000000e+00> : tensor<64x32xf32>
    %cst = arith.constant dense<0.000000e+00> : tensor<64x64xf32>
    %cst_0 = arith.constant dense<32> : tensor<64x1xi32>
    %0 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %1 = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
    %x = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %x_1 = arith.muli %x, %cst_0 : tensor<64x1xi32>
    %x_2 = tt.splat %X : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %x_3 = tt.addptr %x_2, %x_1 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %x_4 = tt.expand_dims %1 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %x_5 = tt.broadcast %x_3 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %x_6 = tt.broadcast %x_4 : tensor<1x32xi32> -> tensor<64x32xi32>
    %x_7 = tt.addptr %x_5, %x_6 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %x_8 = tt.load %x_7 : tensor<64x32x!tt.ptr<f32>>
    %z = tt.splat %Z : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %z_9 = tt.addptr %z, %x_1 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %z_10 = tt.broadcast %z_9 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %z_11 = tt.addptr %z_10, %x_6 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %z_12 = tt.load %z_11 : tensor<64x32x!tt.ptr<f32>>
    %w = tt.splat %N : i32 -> tensor<64xi32>
    %w_13 = arith.cmpi slt, %0, %w : tensor<64xi32>
    %w_14 = tt.expand_dims %w_13 {axis = 0 : i32} : tensor<64xi1> -> tensor<1x64xi1>
    %w_15 = tt.trans %z_12 {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
    %w_16 = tt.dot %x_8, %w_15, %cst, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
    %w_17 = tt.broadcast %w_14 : tensor<1x64xi1> -> tensor<64x64xi1>
    %w_18 = arith.select %w_17, %w_16, %cst : tensor<64x64xi1>, tensor<64x64xf32>
    %acc_19 = tt.splat %V : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %acc_20 = tt.addptr %acc_19, %x_1 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %acc_21 = tt.broadcast %acc_20 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %acc_22 = tt.addptr %acc_21, %x_6 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    %acc_23 = tt.load %acc_22 : tensor<64x32x!tt.ptr<f32>>
    %acc_24 = tt.dot %w_18, %acc_23, %acc, inputPrecision = tf32 : tensor<64x64xf32> * tensor<64x32xf32> -> tensor<64x32xf32>
    %2 = tt.splat %OUT : !tt.ptr<f32> -> tensor<64x1x!tt.ptr<f32>>
    %3 = tt.addptr %2, %x_1 : tensor<64x1x!tt.ptr<f32>>, tensor<64x1xi32>
    %4 = tt.broadcast %3 : tensor<64x1x!tt.ptr<f32>> -> tensor<64x32x!tt.ptr<f32>>
    %5 = tt.addptr %4, %x_6 : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
    tt.store %5, %acc_24 : tensor<64x32x!tt.ptr<f32>>
    tt.return
  }
}
