// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

// Stores take the layout of what they store where that costs less than a conversion.

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#narrow = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Four lanes write sixteen bytes each of two sectors: in half as many lines they would cost less, but not by a conversion.
// CHECK-LABEL: @whole_sectors
// CHECK-SAME: %arg1: tensor<64x64xf32, #[[GIVEN:blocked[0-9]*]]>
// CHECK-NOT: convert_layout
// CHECK: tt.store %{{.*}}, %arg1 : tensor<64x64x!tt.ptr<f32>, #[[GIVEN]]>
tt.func @whole_sectors(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: tensor<64x64xf32, #narrow>) {
  %row = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %stride = arith.constant dense<64> : tensor<64x1xi32, #blocked>
  %starts = arith.muli %rows, %stride : tensor<64x1xi32, #blocked>
  %0 = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %1 = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %offsets = arith.addi %0, %1 : tensor<64x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
  %at = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
  %d = ttg.convert_layout %c : tensor<64x64xf32, #narrow> -> tensor<64x64xf32, #blocked>
  tt.store %at, %d : tensor<64x64x!tt.ptr<f32>, #blocked>
  tt.return
}

// Of f16 they would write half a sector: the conversion stays.
// CHECK-LABEL: @half_sectors
// CHECK: %[[NARROW:.*]] = arith.truncf
// CHECK: %[[MOVED:.*]] = ttg.convert_layout %[[NARROW]]
// CHECK: tt.store %{{.*}}, %[[MOVED]] : tensor<64x64x!tt.ptr<f16>, #blocked{{[0-9]*}}>
tt.func @half_sectors(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32},
    %a: tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>,
    %b: tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
  %c = tt.dot %a, %b, %zero : tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
  %narrow = arith.truncf %c : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
  %row = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %column = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %stride = arith.constant dense<64> : tensor<64x1xi32, #blocked>
  %starts = arith.muli %rows, %stride : tensor<64x1xi32, #blocked>
  %0 = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %1 = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %offsets = arith.addi %0, %1 : tensor<64x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked>
  %at = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
  %d = ttg.convert_layout %narrow : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #blocked>
  tt.store %at, %d : tensor<64x64x!tt.ptr<f16>, #blocked>
  tt.return
}
}
