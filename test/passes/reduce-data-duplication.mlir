// RUN: %ttopt %s -split-input-file --tritongpu-reduce-data-duplication | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // CHECK-LABEL: @operand
  // CHECK: %[[M:.*]] = ttg.local_alloc %{{.*}} -> !ttg.memdesc<64x64xf16, #shared, #smem>
  // CHECK: ttg.local_load %[[M]]
  // CHECK-NOT: ttg.convert_layout
  tt.func @operand(%x: tensor<64x64xf16, #a>) -> tensor<64x64xf16, #dot> {
    %y = ttg.convert_layout %x : tensor<64x64xf16, #a> -> tensor<64x64xf16, #dot>
    tt.return %y : tensor<64x64xf16, #dot>
  }

  // Registers of the same thread: nothing goes through memory.
  // CHECK-LABEL: @registers
  // CHECK-NEXT: ttg.convert_layout
  tt.func @registers(%x: tensor<64x64xf16, #mma>) -> tensor<64x64xf16, #dot> {
    %y = ttg.convert_layout %x : tensor<64x64xf16, #mma> -> tensor<64x64xf16, #dot>
    tt.return %y : tensor<64x64xf16, #dot>
  }

  // Elements of one bit have no place in shared memory.
  // CHECK-LABEL: @bits
  // CHECK-NEXT: ttg.convert_layout
  tt.func @bits(%x: tensor<64x64xi1, #a>) -> tensor<64x64xi1, #dot> {
    %y = ttg.convert_layout %x : tensor<64x64xi1, #a> -> tensor<64x64xi1, #dot>
    tt.return %y : tensor<64x64xi1, #dot>
  }

  // No operand of a dot.
  // CHECK-LABEL: @other
  // CHECK-NEXT: ttg.convert_layout
  tt.func @other(%x: tensor<64x64xf16, #a>) -> tensor<64x64xf16, #b> {
    %y = ttg.convert_layout %x : tensor<64x64xf16, #a> -> tensor<64x64xf16, #b>
    tt.return %y : tensor<64x64xf16, #b>
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#trans = #ttg.linear<{register = [[0, 1], [0, 8], [8, 0], [16, 0], [32, 0], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 0], [0, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // The operand and the transposed one are read from the same memory.
  // CHECK-LABEL: @both
  // CHECK-NEXT: %[[M:.*]] = ttg.local_alloc %arg0
  // CHECK-NEXT: ttg.local_load %[[M]] : {{.*}} -> tensor<64x64xf16, #linear>
  // CHECK-NEXT: ttg.local_load %[[M]] : {{.*}} -> tensor<64x64xf16, #ttg.dot_op
  tt.func @both(%x: tensor<64x64xf16, #a>) -> (tensor<64x64xf16, #trans>, tensor<64x64xf16, #dot>) {
    %t = ttg.convert_layout %x : tensor<64x64xf16, #a> -> tensor<64x64xf16, #trans>
    %y = ttg.convert_layout %x : tensor<64x64xf16, #a> -> tensor<64x64xf16, #dot>
    tt.return %t, %y : tensor<64x64xf16, #trans>, tensor<64x64xf16, #dot>
  }
}

// -----

// Only one warp: what stays in it is converted without memory of its own, but for what a loop loads, which a pipeline
// copies there itself.
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // CHECK-LABEL: @loaded
  // CHECK: ttg.convert_layout
  // CHECK: scf.for
  // CHECK: %[[M:.*]] = ttg.local_alloc %{{.*}} : (tensor<64x32xf16
  // CHECK: ttg.local_load %[[M]]
  // CHECK-NOT: ttg.convert_layout
  tt.func @loaded(%p: tensor<64x32x!tt.ptr<f16>, #a>, %first: tensor<64x32xf16, #a>, %n: i32) -> tensor<64x32xf16, #dot> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %y = ttg.convert_layout %first : tensor<64x32xf16, #a> -> tensor<64x32xf16, #dot>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %y) -> (tensor<64x32xf16, #dot>) : i32 {
      %x = tt.load %p : tensor<64x32x!tt.ptr<f16>, #a>
      %z = ttg.convert_layout %x : tensor<64x32xf16, #a> -> tensor<64x32xf16, #dot>
      %t = arith.addf %s, %z : tensor<64x32xf16, #dot>
      scf.yield %t : tensor<64x32xf16, #dot>
    }
    tt.return %r : tensor<64x32xf16, #dot>
  }
}

// -----

// Two dots read one tensor, by warps that are placed otherwise: the second reads what was written for the first.
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [2, 1], order = [1, 0]}>
#rows = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>
#columns = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#first = #ttg.dot_op<{opIdx = 0, parent = #rows, kWidth = 2}>
#second = #ttg.dot_op<{opIdx = 0, parent = #columns, kWidth = 2}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // CHECK-LABEL: @twice
  // CHECK: %[[M:.*]] = ttg.local_alloc
  // CHECK-NOT: ttg.local_alloc
  // CHECK: ttg.local_load %[[M]]
  // CHECK: ttg.local_load %[[M]]
  // CHECK-NOT: ttg.local_alloc
  // CHECK: tt.return
  tt.func @twice(%x: tensor<64x128xf16, #a>) -> (tensor<64x128xf16, #first>, tensor<64x128xf16, #second>) {
    %y = ttg.convert_layout %x : tensor<64x128xf16, #a> -> tensor<64x128xf16, #first>
    %z = ttg.convert_layout %x : tensor<64x128xf16, #a> -> tensor<64x128xf16, #second>
    tt.return %y, %z : tensor<64x128xf16, #first>, tensor<64x128xf16, #second>
  }
}
