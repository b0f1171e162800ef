// Functions of the columns of a tile are computed by each warp that holds these columns: where they cost more than what warps along
// rows save, warps go to columns, though what is reduced along rows goes through shared memory then.
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu='target=cuda:90 num-warps=4' --tritongpu-coalesce | FileCheck %s

// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @weighted
// CHECK: tt.load %{{.*}} : tensor<4x128x!tt.ptr<f32>, #[[ROWS]]>
tt.func @weighted(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %pitch: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<4xf32>
  %row = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<4x1xi32>
  %starts = arith.muli %rows, %pitches : tensor<4x1xi32>
  %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %0 = tt.broadcast %starts : tensor<4x1xi32> -> tensor<4x128xi32>
  %1 = tt.broadcast %columns : tensor<1x128xi32> -> tensor<4x128xi32>
  %at = arith.addi %0, %1 : tensor<4x128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<4x128x!tt.ptr<f32>>
  %xat = tt.addptr %xs, %at : tensor<4x128x!tt.ptr<f32>>, tensor<4x128xi32>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %wat = tt.addptr %ws, %column : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %none) -> (tensor<4xf32>) : i32 {
    %a = tt.load %xat : tensor<4x128x!tt.ptr<f32>>
    %b = tt.load %wat : tensor<128x!tt.ptr<f32>>
    %b1 = tt.expand_dims %b {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
    %bs = tt.broadcast %b1 : tensor<1x128xf32> -> tensor<4x128xf32>
    %product = arith.mulf %a, %bs : tensor<4x128xf32>
    %r = "tt.reduce"(%product) <{axis = 1 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tt.reduce.return %s : f32
    }) : (tensor<4x128xf32>) -> tensor<4xf32>
    %next = arith.addf %sum, %r : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %yat = tt.addptr %ys, %row : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %yat, %all : tensor<4x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK: #[[COLUMNS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-LABEL: @of_functions
// CHECK: tt.load %{{.*}} : tensor<4x128x!tt.ptr<f32>, #[[COLUMNS]]>
tt.func @of_functions(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %pitch: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %none = arith.constant dense<0.0> : tensor<4xf32>
  %row = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<4x1xi32>
  %starts = arith.muli %rows, %pitches : tensor<4x1xi32>
  %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %0 = tt.broadcast %starts : tensor<4x1xi32> -> tensor<4x128xi32>
  %1 = tt.broadcast %columns : tensor<1x128xi32> -> tensor<4x128xi32>
  %at = arith.addi %0, %1 : tensor<4x128xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<4x128x!tt.ptr<f32>>
  %xat = tt.addptr %xs, %at : tensor<4x128x!tt.ptr<f32>>, tensor<4x128xi32>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %wat = tt.addptr %ws, %column : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %none) -> (tensor<4xf32>) : i32 {
    %a = tt.load %xat : tensor<4x128x!tt.ptr<f32>>
    %b = tt.load %wat : tensor<128x!tt.ptr<f32>>
    %log = math.log %b : tensor<128xf32>
    %gamma = tt.extern_elementwise %b {libname = "", libpath = "", pure = true, symbol = "__nv_lgammaf"} : (tensor<128xf32>) -> tensor<128xf32>
    %both = arith.addf %log, %gamma : tensor<128xf32>
    %b1 = tt.expand_dims %both {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
    %bs = tt.broadcast %b1 : tensor<1x128xf32> -> tensor<4x128xf32>
    %product = arith.mulf %a, %bs : tensor<4x128xf32>
    %r = "tt.reduce"(%product) <{axis = 1 : i32}> ({
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tt.reduce.return %s : f32
    }) : (tensor<4x128xf32>) -> tensor<4xf32>
    %next = arith.addf %sum, %r : tensor<4xf32>
    scf.yield %next : tensor<4xf32>
  }
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<4x!tt.ptr<f32>>
  %yat = tt.addptr %ys, %row : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.store %yat, %all : tensor<4x!tt.ptr<f32>>
  tt.return
}
