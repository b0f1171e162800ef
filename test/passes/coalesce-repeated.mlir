// What is loaded for the columns of a tile is repeated along its rows: warps go to columns, so that each thread loads it for few.
// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s

// Rows are contiguous but not aligned: neighbours in two lanes, 64 rows a warp. Along rows four warps would leave each thread
// eight columns, and eight loads of %w; along columns it has four rows more, and two.
// CHECK: #[[TILE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 8], order = [0, 1]}>
// CHECK-LABEL: @columns
// CHECK: tt.load %{{.*}} : tensor<256x16x!tt.ptr<bf16>, #[[TILE]]>
#tile = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
#columns = #ttg.slice<{dim = 0, parent = #tile}>
#rows = #ttg.slice<{dim = 1, parent = #tile}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @columns(%x: !tt.ptr<bf16>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %pitch: i32) {
  %row = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #rows>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<256xi32, #rows> -> tensor<256x1xi32, #tile>
  %column = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #columns>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<16xi32, #columns> -> tensor<1x16xi32, #tile>
  %pitches = tt.splat %pitch : i32 -> tensor<1x16xi32, #tile>
  %starts = arith.muli %columns, %pitches : tensor<1x16xi32, #tile>
  %0 = tt.broadcast %rows : tensor<256x1xi32, #tile> -> tensor<256x16xi32, #tile>
  %1 = tt.broadcast %starts : tensor<1x16xi32, #tile> -> tensor<256x16xi32, #tile>
  %at = arith.addi %0, %1 : tensor<256x16xi32, #tile>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<256x16x!tt.ptr<bf16>, #tile>
  %xat = tt.addptr %xs, %at : tensor<256x16x!tt.ptr<bf16>, #tile>, tensor<256x16xi32, #tile>
  %a = tt.load %xat : tensor<256x16x!tt.ptr<bf16>, #tile>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>, #columns>
  %wat = tt.addptr %ws, %column : tensor<16x!tt.ptr<f32>, #columns>, tensor<16xi32, #columns>
  %b = tt.load %wat : tensor<16x!tt.ptr<f32>, #columns>
  %wide = arith.extf %a : tensor<256x16xbf16, #tile> to tensor<256x16xf32, #tile>
  %b1 = tt.expand_dims %b {axis = 0 : i32} : tensor<16xf32, #columns> -> tensor<1x16xf32, #tile>
  %bs = tt.broadcast %b1 : tensor<1x16xf32, #tile> -> tensor<256x16xf32, #tile>
  %product = arith.mulf %wide, %bs : tensor<256x16xf32, #tile>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<256x16x!tt.ptr<f32>, #tile>
  %yat = tt.addptr %ys, %at : tensor<256x16x!tt.ptr<f32>, #tile>, tensor<256x16xi32, #tile>
  tt.store %yat, %product : tensor<256x16x!tt.ptr<f32>, #tile>
  tt.return
}
}
