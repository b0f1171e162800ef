// RUN: %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce | FileCheck %s

// A table is probed at places that nobody knows. The L2 swaps one sector after the other, and neighbours of the tensor may
// be neighbours in memory: lanes hold one key each, though four could be loaded at once.
// CHECK: [[ONE:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @probe(
// CHECK: tt.load {{.*}} : tensor<512x!tt.ptr<i32>, [[ONE]]>
// CHECK: tt.atomic_cas {{.*}} : (tensor<512x!tt.ptr<i32>, [[ONE]]>
tt.func @probe(%keys: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %table: !tt.ptr<i32> {tt.divisibility = 16 : i32}) -> tensor<512xi32> {
  %empty = arith.constant dense<-1> : tensor<512xi32>
  %size = arith.constant dense<4096> : tensor<512xi32>
  %at = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %k = tt.splat %keys : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %from = tt.addptr %k, %at : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %key = tt.load %from : tensor<512x!tt.ptr<i32>>
  %slot = arith.remui %key, %size : tensor<512xi32>
  %t = tt.splat %table : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %to = tt.addptr %t, %slot : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %old = tt.atomic_cas acq_rel, gpu, %to, %empty, %key : (tensor<512x!tt.ptr<i32>>, tensor<512xi32>, tensor<512xi32>) -> tensor<512xi32>
  tt.return %old : tensor<512xi32>
}
