// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

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

// -----

// Both operands of a dot are converted: stored, waited for once, and loaded. By itself the right one would cost less as it is multiplied.

#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK: #[[B:.*]] = #ttg.blocked<{sizePerThread = [1, 2]
// CHECK-LABEL: @one_wait
// CHECK: scf.for
// CHECK: %[[X:.*]] = tt.load %{{.*}} : tensor<16x16x!tt.ptr<bf16>, #[[B]]>
// CHECK: %[[Y:.*]] = tt.load %{{.*}} : tensor<16x16x!tt.ptr<bf16>, #[[B]]>
// CHECK-DAG: %[[L:.*]] = ttg.convert_layout %[[X]]
// CHECK-DAG: %[[R:.*]] = ttg.convert_layout %[[Y]]
// CHECK: tt.dot %[[L]], %[[R]]
tt.func @one_wait(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %at: !tt.ptr<i64>, %n: i32 {tt.divisibility = 16 : i32}, %count: i64) -> tensor<16x16xf32, #mma> {
  %c0 = arith.constant 0 : i64
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32, #mma>
  %rows = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>>
  %columns = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #b}>>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<16x1xi32, #b>
  %stride = tt.splat %n : i32 -> tensor<16x1xi32, #b>
  %first = arith.muli %row, %stride : tensor<16x1xi32, #b>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x16xi32, #b>
  %offsets = tt.broadcast %column : tensor<1x16xi32, #b> -> tensor<16x16xi32, #b>
  %left_base = tt.splat %p : !tt.ptr<bf16> -> tensor<16x1x!tt.ptr<bf16>, #b>
  %left_begin = tt.addptr %left_base, %first : tensor<16x1x!tt.ptr<bf16>, #b>, tensor<16x1xi32, #b>
  %left_rows = tt.broadcast %left_begin : tensor<16x1x!tt.ptr<bf16>, #b> -> tensor<16x16x!tt.ptr<bf16>, #b>
  %left = tt.addptr %left_rows, %offsets : tensor<16x16x!tt.ptr<bf16>, #b>, tensor<16x16xi32, #b>
  %right_base = tt.splat %q : !tt.ptr<bf16> -> tensor<16x1x!tt.ptr<bf16>, #b>
  %right_begin = tt.addptr %right_base, %first : tensor<16x1x!tt.ptr<bf16>, #b>, tensor<16x1xi32, #b>
  %right_rows = tt.broadcast %right_begin : tensor<16x1x!tt.ptr<bf16>, #b> -> tensor<16x16x!tt.ptr<bf16>, #b>
  %right = tt.addptr %right_rows, %offsets : tensor<16x16x!tt.ptr<bf16>, #b>, tensor<16x16xi32, #b>
  %sum:3 = scf.for %i = %c0 to %count step %c1 iter_args(%ps = %left, %index = %at, %acc = %zero) -> (tensor<16x16x!tt.ptr<bf16>, #b>, !tt.ptr<i64>, tensor<16x16xf32, #mma>) : i64 {
    %x = tt.load %ps : tensor<16x16x!tt.ptr<bf16>, #b>
    %block = tt.load %index : !tt.ptr<i64>
    %shift = tt.splat %block : i64 -> tensor<16x16xi64, #b>
    %qs = tt.addptr %right, %shift : tensor<16x16x!tt.ptr<bf16>, #b>, tensor<16x16xi64, #b>
    %y = tt.load %qs : tensor<16x16x!tt.ptr<bf16>, #b>
    %a = ttg.convert_layout %x : tensor<16x16xbf16, #b> -> tensor<16x16xbf16, #left>
    %b = ttg.convert_layout %y : tensor<16x16xbf16, #b> -> tensor<16x16xbf16, #right>
    %d = tt.dot %a, %b, %acc : tensor<16x16xbf16, #left> * tensor<16x16xbf16, #right> -> tensor<16x16xf32, #mma>
    %step = tt.splat %n : i32 -> tensor<16x16xi32, #b>
    %next = tt.addptr %ps, %step : tensor<16x16x!tt.ptr<bf16>, #b>, tensor<16x16xi32, #b>
    %follows = tt.addptr %index, %one : !tt.ptr<i64>, i32
    scf.yield %next, %follows, %d : tensor<16x16x!tt.ptr<bf16>, #b>, !tt.ptr<i64>, tensor<16x16xf32, #mma>
  }
  tt.return %sum#2 : tensor<16x16xf32, #mma>
}
}
