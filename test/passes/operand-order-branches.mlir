// RUN: %ttopt %s --convert-triton-to-tritongpu="target=cuda:90 num-warps=4" --tritongpu-coalesce --tritongpu-remove-layout-conversions --tritongpu-accelerate-matmul | FileCheck %s

// The right operand of a dot, which branches load: its summands are neighbours in memory, so they are in shared memory, too, and threads
// store the vectors that they load as they are.

// CHECK-DAG: #[[ALONG:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: @keys
// CHECK: scf.if
// CHECK: ttg.local_alloc {{.*}} -> !ttg.memdesc<64x64xf16, #[[ALONG]], #smem>
// CHECK: ttng.warp_group_dot
tt.func @keys(%q: tensor<64x64xf16>, %k: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %whole: i1, %limit: i32) -> tensor<64x64xf32> {
  %none = arith.constant dense<0.0> : tensor<64x64xf32>
  %zero = arith.constant dense<0.0> : tensor<64x64xf16>
  %pitch = arith.constant dense<64> : tensor<1x64xi32>
  %range = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
  %depth = tt.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %token = tt.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %row = arith.muli %token, %pitch : tensor<1x64xi32>
  %rows = tt.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %along = tt.broadcast %depth : tensor<64x1xi32> -> tensor<64x64xi32>
  %offset = arith.addi %rows, %along : tensor<64x64xi32>
  %pointer = tt.splat %k : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %places = tt.addptr %pointer, %offset : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %keys = scf.if %whole -> (tensor<64x64xf16>) {
    %all = tt.load %places : tensor<64x64x!tt.ptr<f16>>
    scf.yield %all : tensor<64x64xf16>
  } else {
    %most = tt.splat %limit : i32 -> tensor<1x64xi32>
    %there = arith.cmpi slt, %token, %most : tensor<1x64xi32>
    %mask = tt.broadcast %there : tensor<1x64xi1> -> tensor<64x64xi1>
    %some = tt.load %places, %mask, %zero : tensor<64x64x!tt.ptr<f16>>
    scf.yield %some : tensor<64x64xf16>
  }
  %scores = tt.dot %q, %keys, %none : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %scores : tensor<64x64xf32>
}
