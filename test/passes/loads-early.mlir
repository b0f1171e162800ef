// RUN: %ttopt %s --tritongpu-reorder-instructions | FileCheck %s

// A load of few registers that waits for nothing comes before a conversion through shared memory, with what its address is computed from:
// behind it, it would be one more round trip to memory.

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#line = #ttg.slice<{dim = 0, parent = #columns}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @few
  // CHECK: tt.load %arg0
  // CHECK: tt.addptr
  // CHECK: tt.load
  // CHECK: ttg.convert_layout
  tt.func @few(%tile: tensor<32x32x!tt.ptr<f32>, #rows>, %scale: tensor<32x!tt.ptr<f32>, #line>, %at: tensor<32xi32, #line>) -> tensor<32x32xf32, #columns> {
    %x = tt.load %tile : tensor<32x32x!tt.ptr<f32>, #rows>
    %c = ttg.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    %y = arith.mulf %c, %c : tensor<32x32xf32, #columns>
    %places = tt.addptr %scale, %at : tensor<32x!tt.ptr<f32>, #line>, tensor<32xi32, #line>
    %s = tt.load %places : tensor<32x!tt.ptr<f32>, #line>
    %e = tt.expand_dims %s {axis = 0 : i32} : tensor<32xf32, #line> -> tensor<1x32xf32, #columns>
    %b = tt.broadcast %e : tensor<1x32xf32, #columns> -> tensor<32x32xf32, #columns>
    %z = arith.mulf %y, %b : tensor<32x32xf32, #columns>
    tt.return %z : tensor<32x32xf32, #columns>
  }

  // Behind a store it may load what was stored.
  // CHECK-LABEL: @stored
  // CHECK: ttg.convert_layout
  // CHECK: tt.store
  // CHECK: tt.load
  tt.func @stored(%tile: tensor<32x32x!tt.ptr<f32>, #rows>, %out: tensor<32x32x!tt.ptr<f32>, #columns>, %scale: !tt.ptr<f32>) -> f32 {
    %x = tt.load %tile : tensor<32x32x!tt.ptr<f32>, #rows>
    %y = ttg.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    tt.store %out, %y : tensor<32x32x!tt.ptr<f32>, #columns>
    %s = tt.load %scale : !tt.ptr<f32>
    tt.return %s : f32
  }

  // What is loaded from where the conversion says stays, and a scalar that waits for nothing does not.
  // CHECK-LABEL: @needed
  // CHECK: tt.load %arg2 : !tt.ptr<f32>
  // CHECK: ttg.convert_layout
  // CHECK: tt.load {{.*}} : tensor<32x32x!tt.ptr<f32>
  tt.func @needed(%at: tensor<32x32xi32, #rows>, %from: tensor<32x32x!tt.ptr<f32>, #columns>, %scale: !tt.ptr<f32>) -> (tensor<32x32xf32, #columns>, f32) {
    %i = ttg.convert_layout %at : tensor<32x32xi32, #rows> -> tensor<32x32xi32, #columns>
    %places = tt.addptr %from, %i : tensor<32x32x!tt.ptr<f32>, #columns>, tensor<32x32xi32, #columns>
    %x = tt.load %places : tensor<32x32x!tt.ptr<f32>, #columns>
    %s = tt.load %scale : !tt.ptr<f32>
    tt.return %x, %s : tensor<32x32xf32, #columns>, f32
  }

  // Where a load of many registers stays behind it, others save no round trip.
  // CHECK-LABEL: @many
  // CHECK: ttg.convert_layout
  // CHECK: tt.load %arg1
  // CHECK: tt.load %arg2
  tt.func @many(%x: tensor<32x32xf32, #rows>, %scale: !tt.ptr<f32>, %from: tensor<64x64x!tt.ptr<f32>, #columns>) -> (tensor<32x32xf32, #columns>, f32, tensor<64x64xf32, #columns>) {
    %c = ttg.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    %y = arith.mulf %c, %c : tensor<32x32xf32, #columns>
    %s = tt.load %scale : !tt.ptr<f32>
    %z = tt.load %from : tensor<64x64x!tt.ptr<f32>, #columns>
    tt.return %y, %s, %z : tensor<32x32xf32, #columns>, f32, tensor<64x64xf32, #columns>
  }
}
