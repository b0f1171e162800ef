// RUN: %ttopt %s -split-input-file "--convert-triton-to-tritongpu=target=cuda:90 num-warps=1" --tritongpu-coalesce | FileCheck %s

// Numbers of 16 and of 32 bits, whose products are reduced in each of many iterations: with eight neighbours in each thread the
// accesses cost more than with four, but 16 lanes hold a row in place of 32, so that a shuffle less is needed for half of the rows.
// CHECK: [[WIDE:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [1, 1], order = [1, 0]}>
// CHECK-LABEL: @reduced
// CHECK-COUNT-2: tt.load {{.*}} : tensor<8x128x!tt.ptr<{{.*}}>, [[WIDE]]>
tt.func @reduced(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) -> tensor<8xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %row = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %size = arith.constant dense<128> : tensor<8x1xi32>
  %starts = arith.muli %rows, %size : tensor<8x1xi32>
  %a = tt.broadcast %starts : tensor<8x1xi32> -> tensor<8x128xi32>
  %b = tt.broadcast %columns : tensor<1x128xi32> -> tensor<8x128xi32>
  %at = arith.addi %a, %b : tensor<8x128xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<8x128x!tt.ptr<f32>>
  %pa = tt.addptr %ps, %at : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  %qa = tt.addptr %qs, %at : tensor<8x128x!tt.ptr<f32>>, tensor<8x128xi32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<8xf32>) : i32 {
    %x = tt.load %pa : tensor<8x128x!tt.ptr<f16>>
    %y = tt.load %qa : tensor<8x128x!tt.ptr<f32>>
    %w = arith.extf %x : tensor<8x128xf16> to tensor<8x128xf32>
    %z = arith.mulf %w, %y : tensor<8x128xf32>
    %s = "tt.reduce"(%z) <{axis = 1 : i32}> ({
    ^bb0(%l: f32, %m: f32):
      %t = arith.addf %l, %m : f32
      tt.reduce.return %t : f32
    }) : (tensor<8x128xf32>) -> tensor<8xf32>
    %next = arith.addf %sum, %s : tensor<8xf32>
    scf.yield %next : tensor<8xf32>
  }
  tt.return %r : tensor<8xf32>
}

// -----

// The same once: what the reduction would save is less than what accesses lose.
// CHECK: [[NARROW:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>
// CHECK-LABEL: @not_reduced
// CHECK-COUNT-2: tt.load {{.*}} : tensor<8x128x!tt.ptr<{{.*}}>, [[NARROW]]>
tt.func @not_reduced(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %row = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %row {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %size = arith.constant dense<128> : tensor<8x1xi32>
  %starts = arith.muli %rows, %size : tensor<8x1xi32>
  %a = tt.broadcast %starts : tensor<8x1xi32> -> tensor<8x128xi32>
  %b = tt.broadcast %columns : tensor<1x128xi32> -> tensor<8x128xi32>
  %at = arith.addi %a, %b : tensor<8x128xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<8x128x!tt.ptr<f32>>
  %pa = tt.addptr %ps, %at : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  %qa = tt.addptr %qs, %at : tensor<8x128x!tt.ptr<f32>>, tensor<8x128xi32>
  %x = tt.load %pa : tensor<8x128x!tt.ptr<f16>>
  %y = tt.load %qa : tensor<8x128x!tt.ptr<f32>>
  %w = arith.extf %x : tensor<8x128xf16> to tensor<8x128xf32>
  %z = arith.mulf %w, %y : tensor<8x128xf32>
  tt.store %qa, %z : tensor<8x128x!tt.ptr<f32>>
  tt.return
}
