// What is reduced moves with its reduction where that takes less than to convert it, or what the reduction gives: places of a table, of four rows
// of which the least number is wanted, which lanes along rows would find by two shuffles each. In loops it stays: what is loaded there for later
// iterations waits in registers, which nothing counts.
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu='target=cuda:90 num-warps=4' --tritongpu-coalesce --tritongpu-remove-layout-conversions | FileCheck %s

// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-LABEL: @least_of_four
// CHECK: tt.load %{{.*}} : tensor<256x4x!tt.ptr<i32>, #[[ROWS]]>
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @least_of_four(%keys: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %apart = arith.constant dense<1013904242> : tensor<1x4xi32>
  %sixteen = arith.constant dense<16> : tensor<256x4xi32>
  %odd = arith.constant dense<2146121005> : tensor<256x4xi32>
  %width = arith.constant dense<50021> : tensor<256x4xi32>
  %pitch = arith.constant dense<50021> : tensor<1x4xi32>
  %at = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %row = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %ns = tt.splat %n : i32 -> tensor<256xi32>
  %ks = tt.splat %keys : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %mask = arith.cmpi slt, %at, %ns : tensor<256xi32>
  %ka = tt.addptr %ks, %at : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %key = tt.load %ka, %mask : tensor<256x!tt.ptr<i32>>
  %key1 = tt.expand_dims %key {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %row1 = tt.expand_dims %row {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %seed = arith.muli %row1, %apart : tensor<1x4xi32>
  %keys4 = tt.broadcast %key1 : tensor<256x1xi32> -> tensor<256x4xi32>
  %seeds = tt.broadcast %seed : tensor<1x4xi32> -> tensor<256x4xi32>
  %h0 = arith.xori %keys4, %seeds : tensor<256x4xi32>
  %h1 = arith.shrui %h0, %sixteen : tensor<256x4xi32>
  %h2 = arith.xori %h0, %h1 : tensor<256x4xi32>
  %h3 = arith.muli %h2, %odd : tensor<256x4xi32>
  %h4 = arith.shrui %h3, %sixteen : tensor<256x4xi32>
  %hash = arith.xori %h3, %h4 : tensor<256x4xi32>
  %place = arith.remui %hash, %width : tensor<256x4xi32>
  %start = arith.muli %row1, %pitch : tensor<1x4xi32>
  %ts = tt.splat %table : !tt.ptr<i32> -> tensor<1x4x!tt.ptr<i32>>
  %tr = tt.addptr %ts, %start : tensor<1x4x!tt.ptr<i32>>, tensor<1x4xi32>
  %t4 = tt.broadcast %tr : tensor<1x4x!tt.ptr<i32>> -> tensor<256x4x!tt.ptr<i32>>
  %ta = tt.addptr %t4, %place : tensor<256x4x!tt.ptr<i32>>, tensor<256x4xi32>
  %count = tt.load %ta : tensor<256x4x!tt.ptr<i32>>
  %least = "tt.reduce"(%count) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %m = arith.minsi %a, %b : i32
    tt.reduce.return %m : i32
  }) : (tensor<256x4xi32>) -> tensor<256xi32>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %oa = tt.addptr %os, %at : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  tt.store %oa, %least, %mask : tensor<256x!tt.ptr<i32>>
  tt.return
}

// -----

// CHECK: #[[LANES:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @least_of_four_in_a_loop
// CHECK: tt.load %{{.*}} : tensor<256x4x!tt.ptr<i32>, #[[LANES]]>
tt.func @least_of_four_in_a_loop(%keys: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 256 : i32
  %apart = arith.constant dense<1013904242> : tensor<1x4xi32>
  %sixteen = arith.constant dense<16> : tensor<256x4xi32>
  %odd = arith.constant dense<2146121005> : tensor<256x4xi32>
  %width = arith.constant dense<50021> : tensor<256x4xi32>
  %pitch = arith.constant dense<50021> : tensor<1x4xi32>
  %range = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %row = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %ns = tt.splat %n : i32 -> tensor<256xi32>
  %ks = tt.splat %keys : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %row1 = tt.expand_dims %row {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %seed = arith.muli %row1, %apart : tensor<1x4xi32>
  %seeds = tt.broadcast %seed : tensor<1x4xi32> -> tensor<256x4xi32>
  %start = arith.muli %row1, %pitch : tensor<1x4xi32>
  %ts = tt.splat %table : !tt.ptr<i32> -> tensor<1x4x!tt.ptr<i32>>
  %tr = tt.addptr %ts, %start : tensor<1x4x!tt.ptr<i32>>, tensor<1x4xi32>
  %t4 = tt.broadcast %tr : tensor<1x4x!tt.ptr<i32>> -> tensor<256x4x!tt.ptr<i32>>
  scf.for %i = %zero to %n step %step : i32 {
    %is = tt.splat %i : i32 -> tensor<256xi32>
    %at = arith.addi %is, %range : tensor<256xi32>
    %mask = arith.cmpi slt, %at, %ns : tensor<256xi32>
    %ka = tt.addptr %ks, %at : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    %key = tt.load %ka, %mask : tensor<256x!tt.ptr<i32>>
    %key1 = tt.expand_dims %key {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
    %keys4 = tt.broadcast %key1 : tensor<256x1xi32> -> tensor<256x4xi32>
    %h0 = arith.xori %keys4, %seeds : tensor<256x4xi32>
    %h1 = arith.shrui %h0, %sixteen : tensor<256x4xi32>
    %h2 = arith.xori %h0, %h1 : tensor<256x4xi32>
    %h3 = arith.muli %h2, %odd : tensor<256x4xi32>
    %h4 = arith.shrui %h3, %sixteen : tensor<256x4xi32>
    %hash = arith.xori %h3, %h4 : tensor<256x4xi32>
    %place = arith.remui %hash, %width : tensor<256x4xi32>
    %ta = tt.addptr %t4, %place : tensor<256x4x!tt.ptr<i32>>, tensor<256x4xi32>
    %count = tt.load %ta : tensor<256x4x!tt.ptr<i32>>
    %least = "tt.reduce"(%count) <{axis = 1 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.minsi %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<256x4xi32>) -> tensor<256xi32>
    %oa = tt.addptr %os, %at : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
    tt.store %oa, %least, %mask : tensor<256x!tt.ptr<i32>>
  }
  tt.return
}
