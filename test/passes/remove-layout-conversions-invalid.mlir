// RUN: ttopt %s --tritongpu-remove-layout-conversions -split-input-file -verify-diagnostics

// Where no plan converts and nothing else gives a value its layout, the operation that wants it is told.

#wide = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#tall = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 64 : i32} {
  tt.func @no_plan(%x: tensor<64x64xf32, #wide>, %p: tensor<64x64x!tt.ptr<f32>, #tall>) {
    %y = ttg.convert_layout %x : tensor<64x64xf32, #wide> -> tensor<64x64xf32, #tall>
    // expected-error @+1 {{no conversion gives it that: the layout has 64 lanes, the target cuda:90 has 32}}
    tt.store %p, %y : tensor<64x64x!tt.ptr<f32>, #tall>
    tt.return
  }
}
