// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// Threads hold several elements along the dimension of a scan where that costs less: here half of a row of what a dot gave, so that
// each warp has the rows that it had and exchanges them among its own lanes.
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[1, 0], [2, 0]]}, instrShape = [16, 16, 16]}>
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  // CHECK-LABEL: @scan_of_products
  // CHECK: ttg.convert_layout %arg0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #[[ROWS]]>
  // CHECK: }) : (tensor<64x64xf32, #[[ROWS]]>) -> tensor<64x64xf32, #[[ROWS]]>
  tt.func @scan_of_products(%x: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %0 = ttg.convert_layout %x : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    %1 = "tt.scan"(%0) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.scan.return %s : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked>
    %2 = ttg.convert_layout %1 : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
    tt.return %2 : tensor<64x64xf32, #mma>
  }
}
