// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce | FileCheck %s

// Rows of numbers of four bits, two in a byte: a thread has both that are in a byte, and loads it once.
// CHECK: [[PAIRS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @nibbles
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<i8>, [[PAIRS]]>
tt.func @nibbles(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) -> tensor<64x64xi8> {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %two = arith.constant dense<2> : tensor<64xi32>
  %byte = arith.divui %r, %two : tensor<64xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %pitch = tt.splat %k : i32 -> tensor<64x1xi32>
  %starts = arith.muli %rows, %pitch : tensor<64x1xi32>
  %columns = tt.expand_dims %byte {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %a = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %b = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %a, %b : tensor<64x64xi32>
  %base = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
  %q = tt.addptr %base, %at : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<i8>>
  tt.return %x : tensor<64x64xi8>
}

// -----

// A scale for 32 numbers: nothing is packed, and neighbouring lanes have neighbouring numbers.
// CHECK-LABEL: @scales
// CHECK-NOT: sizePerThread = [1, 2]
// CHECK: tt.return
tt.func @scales(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) -> tensor<64x64xi8> {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %group = arith.constant dense<32> : tensor<64xi32>
  %scale = arith.divui %r, %group : tensor<64xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %pitch = tt.splat %k : i32 -> tensor<64x1xi32>
  %starts = arith.muli %rows, %pitch : tensor<64x1xi32>
  %columns = tt.expand_dims %scale {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %a = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %b = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %a, %b : tensor<64x64xi32>
  %base = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
  %q = tt.addptr %base, %at : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<i8>>
  tt.return %x : tensor<64x64xi8>
}
