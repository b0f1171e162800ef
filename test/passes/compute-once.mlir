// RUN: %ttopt %s --convert-triton-to-tritongpu="target=cuda:90 num-warps=4" --tritongpu-coalesce --tritongpu-remove-layout-conversions | FileCheck %s

// Each thread has a column of 32 rows, which all have a division by a number that is not known: each row is divided once, and
// what comes of it converted. A sum costs less than that.

// CHECK-DAG: #[[ONCE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @divided
// CHECK: scf.for
// CHECK:   %[[DIVIDED:.*]] = arith.divsi {{.*}} : tensor<64xi32, #[[ONCE]]>
// CHECK:   ttg.convert_layout %[[DIVIDED]]
// CHECK:   tt.load
// CHECK-LABEL: @added
// CHECK: scf.for
// CHECK-NOT: ttg.convert_layout
// CHECK:   tt.load
tt.func @divided(%x: !tt.ptr<i32>, %n: i32, %by: i32, %pitch: i32) -> tensor<64x64xi32> {
  %c0 = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0> : tensor<64x64xi32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %pointer = tt.splat %x : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
  %divisor = tt.splat %by : i32 -> tensor<64xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<64x1xi32>
  %all = scf.for %k = %c0 to %n step %step iter_args(%sum = %none) -> (tensor<64x64xi32>) : i32 {
    %at = tt.splat %k : i32 -> tensor<64xi32>
    %rows = arith.addi %at, %range : tensor<64xi32>
    %row = arith.divsi %rows, %divisor : tensor<64xi32>
    %down = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %begin = arith.muli %down, %pitches : tensor<64x1xi32>
    %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x64xi32>
    %offset = arith.addi %begins, %across : tensor<64x64xi32>
    %places = tt.addptr %pointer, %offset : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %value = tt.load %places : tensor<64x64x!tt.ptr<i32>>
    %next = arith.addi %sum, %value : tensor<64x64xi32>
    scf.yield %next : tensor<64x64xi32>
  }
  tt.return %all : tensor<64x64xi32>
}

tt.func @added(%x: !tt.ptr<i32>, %n: i32, %by: i32, %pitch: i32) -> tensor<64x64xi32> {
  %c0 = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0> : tensor<64x64xi32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %columns = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %across = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %pointer = tt.splat %x : !tt.ptr<i32> -> tensor<64x64x!tt.ptr<i32>>
  %divisor = tt.splat %by : i32 -> tensor<64xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<64x1xi32>
  %all = scf.for %k = %c0 to %n step %step iter_args(%sum = %none) -> (tensor<64x64xi32>) : i32 {
    %at = tt.splat %k : i32 -> tensor<64xi32>
    %rows = arith.addi %at, %range : tensor<64xi32>
    %row = arith.addi %rows, %divisor : tensor<64xi32>
    %down = tt.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %begin = arith.muli %down, %pitches : tensor<64x1xi32>
    %begins = tt.broadcast %begin : tensor<64x1xi32> -> tensor<64x64xi32>
    %offset = arith.addi %begins, %across : tensor<64x64xi32>
    %places = tt.addptr %pointer, %offset : tensor<64x64x!tt.ptr<i32>>, tensor<64x64xi32>
    %value = tt.load %places : tensor<64x64x!tt.ptr<i32>>
    %next = arith.addi %sum, %value : tensor<64x64xi32>
    scf.yield %next : tensor<64x64xi32>
  }
  tt.return %all : tensor<64x64xi32>
}
