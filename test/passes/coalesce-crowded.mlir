// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s

// Bytes whose masks differ are loaded one by one. Where a loop has so many of them that the addresses of all places would not fit in
// registers, threads hold neighbours, which have one address; else they hold one, and a warp reads whole sectors.

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[CROWDED:.*]] = #ttg.blocked<{sizePerThread = [1, {{8|16}}], threadsPerWarp = [{{.*}}], warpsPerCTA = [{{.*}}], order = [1, 0]}>
// CHECK-DAG: #[[ALONE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @crowded(
// CHECK-COUNT-2: tt.load %{{.*}} : tensor<256x64x!tt.ptr<i8>, #[[CROWDED]]>
tt.func @crowded(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %k: i32, %n: i32) -> tensor<256x64xi8, #blocked> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<256x64xi8, #blocked>
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<256xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<256x1xi32, #blocked>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<256x1xi32, #blocked>
  %starts = arith.muli %rows, %strides : tensor<256x1xi32, #blocked>
  %starts_all = tt.broadcast %starts : tensor<256x1xi32, #blocked> -> tensor<256x64xi32, #blocked>
  %columns_all = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<256x64xi32, #blocked>
  %offsets = arith.addi %starts_all, %columns_all : tensor<256x64xi32, #blocked>
  %most = tt.splat %k : i32 -> tensor<256x64xi32, #blocked>
  %mask = arith.cmpi slt, %columns_all, %most : tensor<256x64xi32, #blocked>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<256x64xi8, #blocked>) : i32 {
    %p_all = tt.splat %p : !tt.ptr<i8> -> tensor<256x64x!tt.ptr<i8>, #blocked>
    %q_all = tt.splat %q : !tt.ptr<i8> -> tensor<256x64x!tt.ptr<i8>, #blocked>
    %p_at = tt.addptr %p_all, %offsets : tensor<256x64x!tt.ptr<i8>, #blocked>, tensor<256x64xi32, #blocked>
    %q_at = tt.addptr %q_all, %offsets : tensor<256x64x!tt.ptr<i8>, #blocked>, tensor<256x64xi32, #blocked>
    %x = tt.load %p_at, %mask, %zero : tensor<256x64x!tt.ptr<i8>, #blocked>
    %y = tt.load %q_at, %mask, %zero : tensor<256x64x!tt.ptr<i8>, #blocked>
    %xy = arith.xori %x, %y : tensor<256x64xi8, #blocked>
    %next = arith.addi %acc, %xy : tensor<256x64xi8, #blocked>
    scf.yield %next : tensor<256x64xi8, #blocked>
  }
  tt.return %sum : tensor<256x64xi8, #blocked>
}

// CHECK-LABEL: tt.func @alone(
// CHECK: tt.load %{{.*}} : tensor<64x64x!tt.ptr<i8>, #[[ALONE]]>
tt.func @alone(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %k: i32, %n: i32) -> tensor<64x64xi8, #blocked> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<64x64xi8, #blocked>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
  %strides = tt.splat %stride : i32 -> tensor<64x1xi32, #blocked>
  %starts = arith.muli %rows, %strides : tensor<64x1xi32, #blocked>
  %starts_all = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %columns_all = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32, #blocked>
  %most = tt.splat %k : i32 -> tensor<64x64xi32, #blocked>
  %mask = arith.cmpi slt, %columns_all, %most : tensor<64x64xi32, #blocked>
  %sum = scf.for %t = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xi8, #blocked>) : i32 {
    %p_all = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>, #blocked>
    %p_at = tt.addptr %p_all, %offsets : tensor<64x64x!tt.ptr<i8>, #blocked>, tensor<64x64xi32, #blocked>
    %x = tt.load %p_at, %mask, %zero : tensor<64x64x!tt.ptr<i8>, #blocked>
    %next = arith.addi %acc, %x : tensor<64x64xi8, #blocked>
    scf.yield %next : tensor<64x64xi8, #blocked>
  }
  tt.return %sum : tensor<64x64xi8, #blocked>
}
}
