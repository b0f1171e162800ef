// RUN: %ttopt %s --tritongpu-pipeline=num-stages=3 | FileCheck %s
// RUN: sed 's/stride: i32,/stride: i32 {tt.divisibility = 16 : i32},/' %s | %ttopt - --tritongpu-pipeline=num-stages=3 | FileCheck %s --check-prefix=WHOLE

// Doubles of rows that begin anywhere are copied one by one, in whatever layout. Threads that read them for a dot have four of each of
// eight rows, which are two sectors of 32 bytes each time a row begins within one: copies have the layout that follows rows.
// CHECK: #[[$ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
// CHECK: scf.for
// CHECK: ttg.async_copy_global_to_local {{.*}} : tensor<16x16x!tt.ptr<f64>, #[[$ROWS]]>
// CHECK: tt.return
// Where all rows begin at multiples of 16 bytes, two are copied at once.
// WHOLE: #[[$ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], order = [1, 0]}>
// WHOLE: scf.for
// WHOLE: ttg.async_copy_global_to_local {{.*}} : tensor<16x16x!tt.ptr<f64>, #[[$ROWS]]>
// WHOLE: tt.return
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [8, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
#row = #ttg.slice<{dim = 0, parent = #a}>
#column = #ttg.slice<{dim = 1, parent = #a}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @doubles(%p: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %stride: i32, %y: tensor<16x16xf64, #b>, %n: i32, %zero: tensor<16x16xf64, #mma>) -> tensor<16x16xf64, #mma> {
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    %m = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #column>
    %ms = tt.expand_dims %m {axis = 1 : i32} : tensor<16xi32, #column> -> tensor<16x1xi32, #a>
    %strides = tt.splat %stride : i32 -> tensor<16x1xi32, #a>
    %starts = arith.muli %ms, %strides : tensor<16x1xi32, #a>
    %places = tt.broadcast %starts : tensor<16x1xi32, #a> -> tensor<16x16xi32, #a>
    %pointers = tt.splat %p : !tt.ptr<f64> -> tensor<16x16x!tt.ptr<f64>, #a>
    %rows = tt.addptr %pointers, %places : tensor<16x16x!tt.ptr<f64>, #a>, tensor<16x16xi32, #a>
    %range = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #row>
    %r = scf.for %k = %c0 to %n step %c16 iter_args(%sum = %zero) -> (tensor<16x16xf64, #mma>) : i32 {
      %first = tt.splat %k : i32 -> tensor<16xi32, #row>
      %ks = arith.addi %first, %range : tensor<16xi32, #row>
      %k1 = tt.expand_dims %ks {axis = 0 : i32} : tensor<16xi32, #row> -> tensor<1x16xi32, #a>
      %all = tt.broadcast %k1 : tensor<1x16xi32, #a> -> tensor<16x16xi32, #a>
      %q = tt.addptr %rows, %all : tensor<16x16x!tt.ptr<f64>, #a>, tensor<16x16xi32, #a>
      %x = tt.load %q : tensor<16x16x!tt.ptr<f64>, #a>
      %d = tt.dot %x, %y, %sum : tensor<16x16xf64, #a> * tensor<16x16xf64, #b> -> tensor<16x16xf64, #mma>
      scf.yield %d : tensor<16x16xf64, #mma>
    }
    tt.return %r : tensor<16x16xf64, #mma>
  }
}
