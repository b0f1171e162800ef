// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s

// Columns of a tile that a mask leaves out whatever the kernel is called with, as where their number is one: warps along
// them would have nothing to load, and the first of them all of it. Where the number of columns is not known, each of the
// warps reduces columns of its own, which takes no shared memory.

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #blocked}>
#columns = #ttg.slice<{dim = 0, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-DAG: #[[ALONG:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-DAG: #[[ACROSS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>

// CHECK-LABEL: @one_column
// CHECK: tt.load {{.*}} : tensor<512x4x!tt.ptr<f32>, #[[ALONG]]>
tt.func @one_column(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %stride: i32) -> tensor<4xf32, #columns> {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512x4xf32, #blocked>
  %c4 = arith.constant 4 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c4 : i32
  %base = tt.splat %first : i32 -> tensor<4xi32, #columns>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #columns>
  %column = arith.addi %base, %range : tensor<4xi32, #columns>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<4xi32, #columns> -> tensor<1x4xi32, #blocked>
  %one = arith.constant dense<1> : tensor<1x4xi32, #blocked>
  %in = arith.cmpi slt, %columns, %one : tensor<1x4xi32, #blocked>
  %mask = tt.broadcast %in : tensor<1x4xi1, #blocked> -> tensor<512x4xi1, #blocked>
  %range.0 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #rows>
  %rows = tt.expand_dims %range.0 {axis = 1 : i32} : tensor<512xi32, #rows> -> tensor<512x1xi32, #blocked>
  %ptr = tt.splat %p : !tt.ptr<f32> -> tensor<512x1x!tt.ptr<f32>, #blocked>
  %offset = tt.broadcast %columns : tensor<1x4xi32, #blocked> -> tensor<512x4xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<512x4xi32, #blocked>
  %offsets = arith.muli %offset, %strides : tensor<512x4xi32, #blocked>
  %sum = scf.for %i = %c0 to %n step %c512 iter_args(%acc = %zero) -> (tensor<512x4xf32, #blocked>) : i32 {
    %at = tt.splat %i : i32 -> tensor<512x1xi32, #blocked>
    %row = arith.addi %rows, %at : tensor<512x1xi32, #blocked>
    %start = tt.addptr %ptr, %row : tensor<512x1x!tt.ptr<f32>, #blocked>, tensor<512x1xi32, #blocked>
    %starts = tt.broadcast %start : tensor<512x1x!tt.ptr<f32>, #blocked> -> tensor<512x4x!tt.ptr<f32>, #blocked>
    %ptrs = tt.addptr %starts, %offsets : tensor<512x4x!tt.ptr<f32>, #blocked>, tensor<512x4xi32, #blocked>
    %x = tt.load %ptrs, %mask, %zero : tensor<512x4x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<512x4xf32, #blocked>
    scf.yield %next : tensor<512x4xf32, #blocked>
  }
  %total = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<512x4xf32, #blocked>) -> tensor<4xf32, #columns>
  tt.return %total : tensor<4xf32, #columns>
}

// CHECK-LABEL: @any_columns
// CHECK: tt.load {{.*}} : tensor<512x4x!tt.ptr<f32>, #[[ACROSS]]>
tt.func @any_columns(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %stride: i32, %number: i32) -> tensor<4xf32, #columns> {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512x4xf32, #blocked>
  %c4 = arith.constant 4 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c4 : i32
  %base = tt.splat %first : i32 -> tensor<4xi32, #columns>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #columns>
  %column = arith.addi %base, %range : tensor<4xi32, #columns>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<4xi32, #columns> -> tensor<1x4xi32, #blocked>
  %one = tt.splat %number : i32 -> tensor<1x4xi32, #blocked>
  %in = arith.cmpi slt, %columns, %one : tensor<1x4xi32, #blocked>
  %mask = tt.broadcast %in : tensor<1x4xi1, #blocked> -> tensor<512x4xi1, #blocked>
  %range.0 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #rows>
  %rows = tt.expand_dims %range.0 {axis = 1 : i32} : tensor<512xi32, #rows> -> tensor<512x1xi32, #blocked>
  %ptr = tt.splat %p : !tt.ptr<f32> -> tensor<512x1x!tt.ptr<f32>, #blocked>
  %offset = tt.broadcast %columns : tensor<1x4xi32, #blocked> -> tensor<512x4xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<512x4xi32, #blocked>
  %offsets = arith.muli %offset, %strides : tensor<512x4xi32, #blocked>
  %sum = scf.for %i = %c0 to %n step %c512 iter_args(%acc = %zero) -> (tensor<512x4xf32, #blocked>) : i32 {
    %at = tt.splat %i : i32 -> tensor<512x1xi32, #blocked>
    %row = arith.addi %rows, %at : tensor<512x1xi32, #blocked>
    %start = tt.addptr %ptr, %row : tensor<512x1x!tt.ptr<f32>, #blocked>, tensor<512x1xi32, #blocked>
    %starts = tt.broadcast %start : tensor<512x1x!tt.ptr<f32>, #blocked> -> tensor<512x4x!tt.ptr<f32>, #blocked>
    %ptrs = tt.addptr %starts, %offsets : tensor<512x4x!tt.ptr<f32>, #blocked>, tensor<512x4xi32, #blocked>
    %x = tt.load %ptrs, %mask, %zero : tensor<512x4x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<512x4xf32, #blocked>
    scf.yield %next : tensor<512x4xf32, #blocked>
  }
  %total = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<512x4xf32, #blocked>) -> tensor<4xf32, #columns>
  tt.return %total : tensor<4xf32, #columns>
}

// CHECK-LABEL: @all_columns
// CHECK: tt.load {{.*}} : tensor<512x4x!tt.ptr<f32>, #[[ACROSS]]>
tt.func @all_columns(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %stride: i32) -> tensor<4xf32, #columns> {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512x4xf32, #blocked>
  %c4 = arith.constant 4 : i32
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c4 : i32
  %base = tt.splat %first : i32 -> tensor<4xi32, #columns>
  %range = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #columns>
  %column = arith.addi %base, %range : tensor<4xi32, #columns>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<4xi32, #columns> -> tensor<1x4xi32, #blocked>
  %one = arith.constant dense<4> : tensor<1x4xi32, #blocked>
  %in = arith.cmpi slt, %columns, %one : tensor<1x4xi32, #blocked>
  %mask = tt.broadcast %in : tensor<1x4xi1, #blocked> -> tensor<512x4xi1, #blocked>
  %range.0 = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #rows>
  %rows = tt.expand_dims %range.0 {axis = 1 : i32} : tensor<512xi32, #rows> -> tensor<512x1xi32, #blocked>
  %ptr = tt.splat %p : !tt.ptr<f32> -> tensor<512x1x!tt.ptr<f32>, #blocked>
  %offset = tt.broadcast %columns : tensor<1x4xi32, #blocked> -> tensor<512x4xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<512x4xi32, #blocked>
  %offsets = arith.muli %offset, %strides : tensor<512x4xi32, #blocked>
  %sum = scf.for %i = %c0 to %n step %c512 iter_args(%acc = %zero) -> (tensor<512x4xf32, #blocked>) : i32 {
    %at = tt.splat %i : i32 -> tensor<512x1xi32, #blocked>
    %row = arith.addi %rows, %at : tensor<512x1xi32, #blocked>
    %start = tt.addptr %ptr, %row : tensor<512x1x!tt.ptr<f32>, #blocked>, tensor<512x1xi32, #blocked>
    %starts = tt.broadcast %start : tensor<512x1x!tt.ptr<f32>, #blocked> -> tensor<512x4x!tt.ptr<f32>, #blocked>
    %ptrs = tt.addptr %starts, %offsets : tensor<512x4x!tt.ptr<f32>, #blocked>, tensor<512x4xi32, #blocked>
    %x = tt.load %ptrs, %mask, %zero : tensor<512x4x!tt.ptr<f32>, #blocked>
    %next = arith.addf %acc, %x : tensor<512x4xf32, #blocked>
    scf.yield %next : tensor<512x4xf32, #blocked>
  }
  %total = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<512x4xf32, #blocked>) -> tensor<4xf32, #columns>
  tt.return %total : tensor<4xf32, #columns>
}
}
