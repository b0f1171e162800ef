// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=2 | FileCheck %s

// A ring in the order of memory is swizzled where threads read columns of it: four rows of 64 words lie in the same banks.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK:       #[[RING:.*]] = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
  // CHECK-LABEL: @columns
  // CHECK:         ttg.local_alloc : () -> !ttg.memdesc<{{.*}}16x64xf32, #[[RING]]
  // CHECK:         scf.for
  // CHECK:           ttg.local_load %{{.*}} : !ttg.memdesc<{{.*}}x64xf32, #[[RING]]
  tt.func @columns(%base: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %x: tensor<16x16xf32, #a>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %width = arith.constant dense<64> : tensor<16x1xi32, #b>
    %step = arith.constant dense<1024> : tensor<16x64xi32, #b>
    %rows = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>>
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<16x1xi32, #b>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x64xi32, #b>
    %start = arith.muli %row, %width : tensor<16x1xi32, #b>
    %starts = tt.broadcast %start : tensor<16x1xi32, #b> -> tensor<16x64xi32, #b>
    %places = tt.broadcast %column : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
    %offsets = arith.addi %starts, %places : tensor<16x64xi32, #b>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #b>
    %first = tt.addptr %bases, %offsets : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<16x64x!tt.ptr<f32>, #b>) : i32 {
      %y = tt.load %at : tensor<16x64x!tt.ptr<f32>, #b>
      %next = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<16x16xf32, #a> * tensor<16x64xf32, #b> -> tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
      scf.yield %next, %then : tensor<16x64xf32, #mma>, tensor<16x64x!tt.ptr<f32>, #b>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}

// -----

// Rows that threads read as they lie are not.

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK:       #[[RING:.*]] = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
  // CHECK-LABEL: @rows
  // CHECK:         ttg.local_alloc : () -> !ttg.memdesc<{{.*}}64x64xf32, #[[RING]]
  tt.func @rows(%base: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %x: tensor<16x16xf32, #a>, %y: tensor<16x64xf32, #b>) -> (tensor<16x64xf32, #mma>, tensor<64x64xf32, #rows>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %none = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #rows>
    %width = arith.constant dense<64> : tensor<64x1xi32, #rows>
    %step = arith.constant dense<4096> : tensor<64x64xi32, #rows>
    %rows = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<64x1xi32, #rows>
    %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %start = arith.muli %row, %width : tensor<64x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<64x1xi32, #rows> -> tensor<64x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<64x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<64x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<64x64x!tt.ptr<f32>, #rows>, tensor<64x64xi32, #rows>
    %sum, %all, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %added = %none, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<64x64xf32, #rows>, tensor<64x64x!tt.ptr<f32>, #rows>) : i32 {
      %z = tt.load %at : tensor<64x64x!tt.ptr<f32>, #rows>
      %next = tt.dot %x, %y, %acc, inputPrecision = tf32 : tensor<16x16xf32, #a> * tensor<16x64xf32, #b> -> tensor<16x64xf32, #mma>
      %more = arith.addf %added, %z : tensor<64x64xf32, #rows>
      %then = tt.addptr %at, %step : tensor<64x64x!tt.ptr<f32>, #rows>, tensor<64x64xi32, #rows>
      scf.yield %next, %more, %then : tensor<16x64xf32, #mma>, tensor<64x64xf32, #rows>, tensor<64x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum, %all : tensor<16x64xf32, #mma>, tensor<64x64xf32, #rows>
  }
}
