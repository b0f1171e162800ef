// RUN: %ttopt %s -split-input-file --tritongpu-reorder-instructions | FileCheck %s

// Threads of RDNA have 256 registers: two tiles of 128 wait in registers that there are not.
#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1100", "ttg.threads-per-warp" = 32 : i32} {
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
}

// -----

// Those of CDNA have 512, accumulators among them, as long as a SIMD has one wave: both are loaded at once.
#row = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>
#column = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [64, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // CHECK-LABEL: @fit(
  // CHECK-NEXT: tt.load %arg1
  // CHECK-NEXT: tt.load %arg0
  tt.func @fit(%a: tensor<128x256x!tt.ptr<f32>, #row>, %b: tensor<128x256x!tt.ptr<f32>, #row>, %c: tensor<128x256x!tt.ptr<f32>, #column>, %d: tensor<128x256x!tt.ptr<f32>, #column>) {
    %y = tt.load %b : tensor<128x256x!tt.ptr<f32>, #row>
    %x = tt.load %a : tensor<128x256x!tt.ptr<f32>, #row>
    %z = ttg.convert_layout %x : tensor<128x256xf32, #row> -> tensor<128x256xf32, #column>
    tt.store %c, %z : tensor<128x256x!tt.ptr<f32>, #column>
    %w = ttg.convert_layout %y : tensor<128x256xf32, #row> -> tensor<128x256xf32, #column>
    tt.store %d, %w : tensor<128x256x!tt.ptr<f32>, #column>
    tt.return
  }
}
