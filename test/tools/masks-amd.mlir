// A loop over columns with a mask for each of 64 rows, which all lanes have alike: 128 scalar registers, and there are about a hundred.
// With a bound in the place of each mask, all columns or none, they have room; 47 of them were spilled before.
// REQUIRES: amdgpu
// RUN: %ttc %s --target hip:gfx942 --num-warps 1 --num-stages 1 --emit amdgcn | FileCheck %s

// CHECK-LABEL:    masked_rows:
// CHECK-COUNT-64: v_cmp_gt_i32_e{{32|64}} {{.*}}, s{{[0-9]+}}, v{{[0-9]+}}
// CHECK:          .sgpr_spill_count: 0
tt.func public @masked_rows(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32},
                            %rows: i32, %columns: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %row = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %all = tt.splat %rows : i32 -> tensor<64x1xi32>
  %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %width = tt.splat %columns : i32 -> tensor<64x1xi32>
  %start = arith.muli %r, %width : tensor<64x1xi32>
  %inside = arith.cmpi slt, %start, %all : tensor<64x1xi32>
  %wide = tt.broadcast %inside : tensor<64x1xi1> -> tensor<64x64xi1>
  %starts = tt.broadcast %start : tensor<64x1xi32> -> tensor<64x64xi32>
  %base = tt.splat %x : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %sum = scf.for %k = %c0 to %columns step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = tt.splat %k : i32 -> tensor<64xi32>
    %at = arith.addi %first, %column : tensor<64xi32>
    %c = tt.expand_dims %at {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %limit = tt.splat %columns : i32 -> tensor<1x64xi32>
    %some = arith.cmpi slt, %c, %limit : tensor<1x64xi32>
    %tall = tt.broadcast %some : tensor<1x64xi1> -> tensor<64x64xi1>
    %mask = arith.andi %wide, %tall : tensor<64x64xi1>
    %offset = tt.broadcast %c : tensor<1x64xi32> -> tensor<64x64xi32>
    %where = arith.addi %starts, %offset : tensor<64x64xi32>
    %pointer = tt.addptr %base, %where : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    %value = tt.load %pointer, %mask, %zero : tensor<64x64x!tt.ptr<f32>>
    %next = arith.addf %acc, %value : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %to = tt.splat %out : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %i = tt.broadcast %r : tensor<64x1xi32> -> tensor<64x64xi32>
  %target = tt.addptr %to, %i : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %target, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
