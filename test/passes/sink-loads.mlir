// RUN: %ttopt %s --tritongpu-reorder-instructions | FileCheck %s

// Tiles of 128 registers a thread each. The second one waits for the first to change its layout, in registers that there are not; it
// is loaded where it is wanted.
#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @waits(
  // CHECK: %[[X:.*]] = tt.load %arg0
  // CHECK-NEXT: ttg.convert_layout %[[X]]
  // CHECK-NEXT: tt.store %arg2
  // CHECK-NEXT: %[[Y:.*]] = tt.load %arg1
  // CHECK-NEXT: ttg.convert_layout %[[Y]]
  tt.func @waits(%a: tensor<128x128x!tt.ptr<f32>, #row>, %b: tensor<128x128x!tt.ptr<f32>, #row>, %c: tensor<128x128x!tt.ptr<f32>, #column>, %d: tensor<128x128x!tt.ptr<f32>, #column>) {
    %y = tt.load %b : tensor<128x128x!tt.ptr<f32>, #row>
    %x = tt.load %a : tensor<128x128x!tt.ptr<f32>, #row>
    %z = ttg.convert_layout %x : tensor<128x128xf32, #row> -> tensor<128x128xf32, #column>
    tt.store %c, %z : tensor<128x128x!tt.ptr<f32>, #column>
    %w = ttg.convert_layout %y : tensor<128x128xf32, #row> -> tensor<128x128xf32, #column>
    tt.store %d, %w : tensor<128x128x!tt.ptr<f32>, #column>
    tt.return
  }

  // What is stored may be what is loaded afterwards.
  // CHECK-LABEL: @may_be_written(
  // CHECK-NEXT: tt.load %arg1
  // CHECK-NEXT: tt.load %arg0
  tt.func @may_be_written(%a: tensor<128x128x!tt.ptr<f32>, #row>, %b: tensor<128x128x!tt.ptr<f32>, #row>, %d: tensor<128x128x!tt.ptr<f32>, #column>) {
    %c = ttg.convert_layout %b : tensor<128x128x!tt.ptr<f32>, #row> -> tensor<128x128x!tt.ptr<f32>, #column>
    %y = tt.load %b : tensor<128x128x!tt.ptr<f32>, #row>
    %x = tt.load %a : tensor<128x128x!tt.ptr<f32>, #row>
    %z = ttg.convert_layout %x : tensor<128x128xf32, #row> -> tensor<128x128xf32, #column>
    tt.store %c, %z : tensor<128x128x!tt.ptr<f32>, #column>
    %w = ttg.convert_layout %y : tensor<128x128xf32, #row> -> tensor<128x128xf32, #column>
    tt.store %d, %w : tensor<128x128x!tt.ptr<f32>, #column>
    tt.return
  }

  // Where registers suffice loads are all under way at once.
  // CHECK-LABEL: @enough(
  // CHECK-NEXT: tt.load %arg1
  // CHECK-NEXT: tt.load %arg0
  tt.func @enough(%a: tensor<64x64x!tt.ptr<f32>, #row>, %b: tensor<64x64x!tt.ptr<f32>, #row>, %c: tensor<64x64x!tt.ptr<f32>, #column>, %d: tensor<64x64x!tt.ptr<f32>, #column>) {
    %y = tt.load %b : tensor<64x64x!tt.ptr<f32>, #row>
    %x = tt.load %a : tensor<64x64x!tt.ptr<f32>, #row>
    %z = ttg.convert_layout %x : tensor<64x64xf32, #row> -> tensor<64x64xf32, #column>
    tt.store %c, %z : tensor<64x64x!tt.ptr<f32>, #column>
    %w = ttg.convert_layout %y : tensor<64x64xf32, #row> -> tensor<64x64xf32, #column>
    tt.store %d, %w : tensor<64x64x!tt.ptr<f32>, #column>
    tt.return
  }
}
