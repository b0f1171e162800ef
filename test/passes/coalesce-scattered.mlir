// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s

// Halves whose alignment is not known are loaded one by one, each to a register of its own. Where those of a loop take a quarter of a
// thread's, each thread holds the two that share a register: a warp reads whole lines still.

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[TWO:.*]] = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @many(
// CHECK: tt.load %{{.*}} : tensor<256x64x!tt.ptr<f16>, #[[TWO]]>
tt.func @many(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %from: i32, %to: i32) -> tensor<256x64xf16, #blocked> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<256x64xf16, #blocked>
  %stride = arith.constant dense<1024> : tensor<256x1xi32, #blocked>
  %i = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<256xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<256x1xi32, #blocked>
  %starts = arith.muli %rows, %stride : tensor<256x1xi32, #blocked>
  %starts_all = tt.broadcast %starts : tensor<256x1xi32, #blocked> -> tensor<256x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<256x64x!tt.ptr<f16>, #blocked>
  %sum = scf.for %t = %from to %to step %c64 iter_args(%acc = %zero) -> (tensor<256x64xf16, #blocked>) : i32 {
    %at = tt.splat %t : i32 -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %k = arith.addi %at, %j : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %columns = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %columns_all = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<256x64xi32, #blocked>
    %offsets = arith.addi %starts_all, %columns_all : tensor<256x64xi32, #blocked>
    %pointers = tt.addptr %base, %offsets : tensor<256x64x!tt.ptr<f16>, #blocked>, tensor<256x64xi32, #blocked>
    %x = tt.load %pointers : tensor<256x64x!tt.ptr<f16>, #blocked>
    %next = arith.addf %acc, %x : tensor<256x64xf16, #blocked>
    scf.yield %next : tensor<256x64xf16, #blocked>
  }
  tt.return %sum : tensor<256x64xf16, #blocked>
}

// CHECK-LABEL: tt.func @few(
// CHECK: tt.load %{{.*}} : tensor<64x64x!tt.ptr<f16>, #[[ONE]]>
tt.func @few(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %from: i32, %to: i32) -> tensor<64x64xf16, #blocked> {
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf16, #blocked>
  %stride = arith.constant dense<1024> : tensor<64x1xi32, #blocked>
  %i = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi32, #blocked>
  %starts = arith.muli %rows, %stride : tensor<64x1xi32, #blocked>
  %starts_all = tt.broadcast %starts : tensor<64x1xi32, #blocked> -> tensor<64x64xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>, #blocked>
  %sum = scf.for %t = %from to %to step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf16, #blocked>) : i32 {
    %at = tt.splat %t : i32 -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %k = arith.addi %at, %j : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %columns = tt.expand_dims %k {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x64xi32, #blocked>
    %columns_all = tt.broadcast %columns : tensor<1x64xi32, #blocked> -> tensor<64x64xi32, #blocked>
    %offsets = arith.addi %starts_all, %columns_all : tensor<64x64xi32, #blocked>
    %pointers = tt.addptr %base, %offsets : tensor<64x64x!tt.ptr<f16>, #blocked>, tensor<64x64xi32, #blocked>
    %x = tt.load %pointers : tensor<64x64x!tt.ptr<f16>, #blocked>
    %next = arith.addf %acc, %x : tensor<64x64xf16, #blocked>
    scf.yield %next : tensor<64x64xf16, #blocked>
  }
  tt.return %sum : tensor<64x64xf16, #blocked>
}
}
