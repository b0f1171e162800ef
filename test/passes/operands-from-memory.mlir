// RUN: %ttc %s --target cuda:90 --num-warps 4 --num-stages 1 --emit ttgir -o /dev/null --explain 2>&1 | FileCheck %s

// A thread would load 512 numbers of the left operand for its rows of a dot without matrix instructions. They find no registers at once, and
// loads that wait for registers wait for themselves: the operand is converted, and the dot reads it from shared memory in steps.
// CHECK: how to have tt.load in operand 0 of blocked 4x4 lanes 2x16 warps 4x1: convert it:
tt.func public @rows_named_by_numbers(%x_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %rows_ptr: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %w_ptr: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c128 = arith.constant 128 : i32
  %c2048 = arith.constant 2048 : i32
  %c32 = arith.constant dense<32> : tensor<128x1xi32>
  %c64 = arith.constant dense<64> : tensor<32x1xi32>
  %c64_out = arith.constant dense<64> : tensor<128x1xi32>
  %zero = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
  %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %k = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %k_column = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %k_row = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %j_row = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %i_column = tt.expand_dims %i {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %k_x = tt.broadcast %k_row : tensor<1x32xi32> -> tensor<128x32xi32>
  %w_starts = arith.muli %k_column, %c64 : tensor<32x1xi32>
  %w_starts_all = tt.broadcast %w_starts : tensor<32x1xi32> -> tensor<32x64xi32>
  %j_w = tt.broadcast %j_row : tensor<1x64xi32> -> tensor<32x64xi32>
  %w_offsets = arith.addi %w_starts_all, %j_w : tensor<32x64xi32>
  %rows_all = tt.splat %rows_ptr : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %x_all = tt.splat %x_ptr : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x64xf32>) : i32 {
    %first = arith.muli %t, %c128 : i32
    %first_all = tt.splat %first : i32 -> tensor<128xi32>
    %places = arith.addi %first_all, %i : tensor<128xi32>
    %rows_at = tt.addptr %rows_all, %places : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
    %rows = tt.load %rows_at : tensor<128x!tt.ptr<i32>>
    %rows_column = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %x_starts = arith.muli %rows_column, %c32 : tensor<128x1xi32>
    %x_starts_all = tt.broadcast %x_starts : tensor<128x1xi32> -> tensor<128x32xi32>
    %x_offsets = arith.addi %x_starts_all, %k_x : tensor<128x32xi32>
    %x_at = tt.addptr %x_all, %x_offsets : tensor<128x32x!tt.ptr<f32>>, tensor<128x32xi32>
    %x = tt.load %x_at : tensor<128x32x!tt.ptr<f32>>
    %w_first = arith.muli %t, %c2048 : i32
    %w_t = tt.addptr %w_ptr, %w_first : !tt.ptr<f32>, i32
    %w_all = tt.splat %w_t : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>>
    %w_at = tt.addptr %w_all, %w_offsets : tensor<32x64x!tt.ptr<f32>>, tensor<32x64xi32>
    %w = tt.load %w_at : tensor<32x64x!tt.ptr<f32>>
    %next = tt.dot %x, %w, %acc : tensor<128x32xf32> * tensor<32x64xf32> -> tensor<128x64xf32>
    scf.yield %next : tensor<128x64xf32>
  }
  %out_starts = arith.muli %i_column, %c64_out : tensor<128x1xi32>
  %out_starts_all = tt.broadcast %out_starts : tensor<128x1xi32> -> tensor<128x64xi32>
  %j_out = tt.broadcast %j_row : tensor<1x64xi32> -> tensor<128x64xi32>
  %out_offsets = arith.addi %out_starts_all, %j_out : tensor<128x64xi32>
  %out_all = tt.splat %out : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
  %out_at = tt.addptr %out_all, %out_offsets : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
  tt.store %out_at, %sum : tensor<128x64x!tt.ptr<f32>>
  tt.return
}
