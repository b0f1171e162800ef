// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s

// A window moves over rows by one column and one row: neighbours are side by side, but not aligned, and each is loaded alone. Where threads hold
// four, these have one address; of single ones, as it takes the fewest lines, a thread would compute 16 in each iteration.

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK-DAG: #[[FOUR:.*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK-DAG: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK-DAG: #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 2], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @stencil(
// CHECK: tt.load %{{.*}} : tensor<64x64x!tt.ptr<f32>, #[[FOUR]]>
tt.func @stencil(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %width: i32, %n: i32) -> tensor<64x64xf32, #blocked> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #blocked>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32, #blocked>
  %limit = tt.splat %width : i32 -> tensor<1x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #blocked>) : i32 {
    %ts = tt.splat %t : i32 -> tensor<64x1xi32, #blocked>
    %row = arith.addi %rows, %ts : tensor<64x1xi32, #blocked>
    %starts = arith.muli %row, %strides : tensor<64x1xi32, #blocked>
    %to = tt.splat %t : i32 -> tensor<1x64xi32, #blocked>
    %column = arith.addi %columns, %to : tensor<1x64xi32, #blocked>
    %inside = arith.cmpi slt, %column, %limit : tensor<1x64xi32, #blocked>
    %mask = tt.broadcast %inside : tensor<1x64xi1, #blocked> -> tensor<64x64xi1, #blocked>
    %starts_all = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %columns_all = tt.broadcast %column : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32, #blocked>
    %at = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
    %x = tt.load %at, %mask, %zero : tensor<64x64x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<64x64xf32, #blocked>
    scf.yield %next : tensor<64x64xf32, #blocked>
  }
  tt.return %sum : tensor<64x64xf32, #blocked>
}

// Rows that stay: their addresses are kept.
// CHECK-LABEL: tt.func @columns(
// CHECK: tt.load %{{.*}} : tensor<64x64x!tt.ptr<f32>, #[[ONE]]>
tt.func @columns(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %width: i32, %n: i32) -> tensor<64x64xf32, #blocked> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #blocked>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32, #blocked>
  %limit = tt.splat %width : i32 -> tensor<1x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
  %starts = arith.muli %rows, %strides : tensor<64x1xi32, #blocked>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #blocked>) : i32 {
    %to = tt.splat %t : i32 -> tensor<1x64xi32, #blocked>
    %column = arith.addi %columns, %to : tensor<1x64xi32, #blocked>
    %inside = arith.cmpi slt, %column, %limit : tensor<1x64xi32, #blocked>
    %mask = tt.broadcast %inside : tensor<1x64xi1, #blocked> -> tensor<64x64xi1, #blocked>
    %starts_all = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %columns_all = tt.broadcast %column : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32, #blocked>
    %at = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
    %x = tt.load %at, %mask, %zero : tensor<64x64x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<64x64xf32, #blocked>
    scf.yield %next : tensor<64x64xf32, #blocked>
  }
  tt.return %sum : tensor<64x64xf32, #blocked>
}

// Rows that were looked up are not in the L1 yet.
// CHECK-LABEL: tt.func @gathered(
// CHECK: tt.load %{{.*}} : tensor<64x64x!tt.ptr<f32>, #[[ROWS]]>
tt.func @gathered(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %width: i32, %n: i32, %list: tensor<64x1x!tt.ptr<i32>, #blocked>) -> tensor<64x64xf32, #blocked> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #blocked>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32, #blocked>
  %limit = tt.splat %width : i32 -> tensor<1x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #blocked>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32, #blocked>) : i32 {
    %ts = tt.splat %t : i32 -> tensor<64x1xi32, #blocked>
    %where = tt.addptr %list, %ts : tensor<64x1x!tt.ptr<i32>, #blocked>, tensor<64x1xi32, #blocked>
    %row = tt.load %where : tensor<64x1x!tt.ptr<i32>, #blocked>
    %starts = arith.muli %row, %strides : tensor<64x1xi32, #blocked>
    %to = tt.splat %t : i32 -> tensor<1x64xi32, #blocked>
    %column = arith.addi %columns, %to : tensor<1x64xi32, #blocked>
    %inside = arith.cmpi slt, %column, %limit : tensor<1x64xi32, #blocked>
    %mask = tt.broadcast %inside : tensor<1x64xi1, #blocked> -> tensor<64x64xi1, #blocked>
    %starts_all = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %columns_all = tt.broadcast %column : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32, #blocked>
    %at = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f32>, #blocked>, tensor<64x64xi32, #blocked>
    %x = tt.load %at, %mask, %zero : tensor<64x64x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<64x64xf32, #blocked>
    scf.yield %next : tensor<64x64xf32, #blocked>
  }
  tt.return %sum : tensor<64x64xf32, #blocked>
}
}
