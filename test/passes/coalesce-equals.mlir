// RUN: %ttopt %s "--convert-triton-to-tritongpu=target=cuda:90 num-warps=8" --tritongpu-coalesce | FileCheck %s

// What is reduced along the last dimension costs the same with warps along the middle one and along the first. They are along the
// first: what is left is reduced along the middle, within a warp then.
// CHECK: [[FIRST:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1, 8], threadsPerWarp = [1, 2, 16], warpsPerCTA = [8, 1, 1], order = [2, 1, 0]}>
// CHECK-LABEL: @rows_of_blocks
// CHECK: tt.load {{.*}} : tensor<16x8x128x!tt.ptr<f16>, [[FIRST]]>
tt.func @rows_of_blocks(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) -> tensor<16xf32> {
  %block = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %row = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %column = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %b1 = tt.expand_dims %block {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %b2 = tt.expand_dims %b1 {axis = 2 : i32} : tensor<16x1xi32> -> tensor<16x1x1xi32>
  %r1 = tt.expand_dims %row {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %r2 = tt.expand_dims %r1 {axis = 2 : i32} : tensor<1x8xi32> -> tensor<1x8x1xi32>
  %c1 = tt.expand_dims %column {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %c2 = tt.expand_dims %c1 {axis = 1 : i32} : tensor<1x128xi32> -> tensor<1x1x128xi32>
  %apart = arith.constant dense<512> : tensor<16x1x1xi32>
  %long = arith.constant dense<128> : tensor<1x8x1xi32>
  %b3 = arith.muli %b2, %apart : tensor<16x1x1xi32>
  %r3 = arith.muli %r2, %long : tensor<1x8x1xi32>
  %b4 = tt.broadcast %b3 : tensor<16x1x1xi32> -> tensor<16x8x128xi32>
  %r4 = tt.broadcast %r3 : tensor<1x8x1xi32> -> tensor<16x8x128xi32>
  %c3 = tt.broadcast %c2 : tensor<1x1x128xi32> -> tensor<16x8x128xi32>
  %br = arith.addi %b4, %r4 : tensor<16x8x128xi32>
  %at = arith.addi %br, %c3 : tensor<16x8x128xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<16x8x128x!tt.ptr<f16>>
  %pa = tt.addptr %ps, %at : tensor<16x8x128x!tt.ptr<f16>>, tensor<16x8x128xi32>
  %x = tt.load %pa : tensor<16x8x128x!tt.ptr<f16>>
  %w = arith.extf %x : tensor<16x8x128xf16> to tensor<16x8x128xf32>
  %s = "tt.reduce"(%w) <{axis = 2 : i32}> ({
  ^bb0(%l: f32, %m: f32):
    %t = arith.addf %l, %m : f32
    tt.reduce.return %t : f32
  }) : (tensor<16x8x128xf32>) -> tensor<16x8xf32>
  %e = math.exp %s : tensor<16x8xf32>
  %o = "tt.reduce"(%e) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %m: f32):
    %t = arith.addf %l, %m : f32
    tt.reduce.return %t : f32
  }) : (tensor<16x8xf32>) -> tensor<16xf32>
  tt.return %o : tensor<16xf32>
}
