// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// Operands of dots are loaded as they are multiplied where that costs less than to convert them: what lanes read
// together counts by the lines of memory that it lies in.

#v4 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#half = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#one = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#line = #ttg.dot_op<{opIdx = 0, parent = #one, kWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @use_half(tensor<64x64xf16, #half>)
tt.func private @use_line(tensor<64x64xf16, #line>)

// Of eight lines, a sector each, and every warp reads all of them.
// CHECK: #[[V4:.*]] = #ttg.blocked<{sizePerThread = [1, 8]
// CHECK-LABEL: @sectors
// CHECK: %[[X:.*]] = tt.load %{{.*}} : tensor<64x64x!tt.ptr<f16>, #[[V4]]>
// CHECK: ttg.convert_layout %[[X]]
// CHECK: tt.return
tt.func @sectors(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #v4}>>
  %columns = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #v4}>>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #v4}>> -> tensor<64x1xi32, #v4>
  %stride = tt.splat %n : i32 -> tensor<64x1xi32, #v4>
  %first = arith.muli %row, %stride : tensor<64x1xi32, #v4>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #v4>
  %begin = tt.addptr %base, %first : tensor<64x1x!tt.ptr<f16>, #v4>, tensor<64x1xi32, #v4>
  %begins = tt.broadcast %begin : tensor<64x1x!tt.ptr<f16>, #v4> -> tensor<64x64x!tt.ptr<f16>, #v4>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #v4}>> -> tensor<1x64xi32, #v4>
  %offsets = tt.broadcast %column : tensor<1x64xi32, #v4> -> tensor<64x64xi32, #v4>
  %ptrs = tt.addptr %begins, %offsets : tensor<64x64x!tt.ptr<f16>, #v4>, tensor<64x64xi32, #v4>
  %x = tt.load %ptrs : tensor<64x64x!tt.ptr<f16>, #v4>
  %y = ttg.convert_layout %x : tensor<64x64xf16, #v4> -> tensor<64x64xf16, #half>
  tt.call @use_half(%y) : (tensor<64x64xf16, #half>) -> ()
  tt.return
}

// Of eight lines, two sectors each, and no warp reads what another does.
// CHECK-LABEL: @half_lines
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @half_lines(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %rows = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #v4}>>
  %columns = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #v4}>>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #v4}>> -> tensor<64x1xi32, #v4>
  %stride = tt.splat %n : i32 -> tensor<64x1xi32, #v4>
  %first = arith.muli %row, %stride : tensor<64x1xi32, #v4>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<64x1x!tt.ptr<f16>, #v4>
  %begin = tt.addptr %base, %first : tensor<64x1x!tt.ptr<f16>, #v4>, tensor<64x1xi32, #v4>
  %begins = tt.broadcast %begin : tensor<64x1x!tt.ptr<f16>, #v4> -> tensor<64x64x!tt.ptr<f16>, #v4>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #v4}>> -> tensor<1x64xi32, #v4>
  %offsets = tt.broadcast %column : tensor<1x64xi32, #v4> -> tensor<64x64xi32, #v4>
  %ptrs = tt.addptr %begins, %offsets : tensor<64x64x!tt.ptr<f16>, #v4>, tensor<64x64xi32, #v4>
  %x = tt.load %ptrs : tensor<64x64x!tt.ptr<f16>, #v4>
  %y = ttg.convert_layout %x : tensor<64x64xf16, #v4> -> tensor<64x64xf16, #line>
  tt.call @use_line(%y) : (tensor<64x64xf16, #line>) -> ()
  tt.return
}
}
