// What dots multiply, and memory has contiguous along the other dimension than the one that they sum along: threads hold
// neighbours of both where no access to shared memory transposes, so that what they store is one vector of a fragment.
// RUN: %ttopt %s --tritongpu-coalesce | FileCheck %s
// RUN: sed s/hip:gfx942/hip:gfx950/ %s | %ttopt - --tritongpu-coalesce | FileCheck %s --check-prefix=ROWS
// RUN: sed -e s/hip:gfx942/cuda:80/ -e 's/warp" = 64/warp" = 32/' -e 's/\[1, 64\], warpsPerCTA/[1, 32], warpsPerCTA/' %s | %ttopt - --tritongpu-coalesce | FileCheck %s --check-prefix=WARPS

// The right operand is contiguous along columns: eight of them in each of four rows. The left one is along the sum.
// CHECK-DAG: #[[RIGHT:.*]] = #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [2, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK-DAG: #[[LEFT:.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
// ROWS-DAG: #[[RIGHT:.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// WARPS-DAG: #[[RIGHT:.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [8, 1], order = [1, 0]}>
// CHECK-LABEL: @halves
// CHECK: tt.load %{{.*}} : tensor<128x64x!tt.ptr<f16>, #[[LEFT]]>
// CHECK: tt.load %{{.*}} : tensor<64x256x!tt.ptr<f16>, #[[RIGHT]]>
// ROWS-LABEL: @halves
// ROWS: tt.load %{{.*}} : tensor<64x256x!tt.ptr<f16>, #[[RIGHT]]>
// WARPS-LABEL: @halves
// WARPS: tt.load %{{.*}} : tensor<64x256x!tt.ptr<f16>, #[[RIGHT]]>
#any = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [8, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #any}>
#columns = #ttg.slice<{dim = 0, parent = #any}>
#left = #ttg.dot_op<{opIdx = 0, parent = #any}>
#right = #ttg.dot_op<{opIdx = 1, parent = #any}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func @halves(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %pitch: i32 {tt.divisibility = 16 : i32}) -> tensor<128x256xf32, #any> {
  %zero = arith.constant dense<0.0> : tensor<128x256xf32, #any>
  %m = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #rows>
  %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32, #rows> -> tensor<128x1xi32, #any>
  %mp = tt.splat %pitch : i32 -> tensor<128x1xi32, #any>
  %mo = arith.muli %m1, %mp : tensor<128x1xi32, #any>
  %ka = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
  %ka1 = tt.expand_dims %ka {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #any>
  %mb = tt.broadcast %mo : tensor<128x1xi32, #any> -> tensor<128x64xi32, #any>
  %kab = tt.broadcast %ka1 : tensor<1x64xi32, #any> -> tensor<128x64xi32, #any>
  %ao = arith.addi %mb, %kab : tensor<128x64xi32, #any>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>, #any>
  %ap = tt.addptr %as, %ao : tensor<128x64x!tt.ptr<f16>, #any>, tensor<128x64xi32, #any>
  %av = tt.load %ap : tensor<128x64x!tt.ptr<f16>, #any>
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #rows>
  %k1 = tt.expand_dims %k {axis = 1 : i32} : tensor<64xi32, #rows> -> tensor<64x1xi32, #any>
  %kp = tt.splat %pitch : i32 -> tensor<64x1xi32, #any>
  %ko = arith.muli %k1, %kp : tensor<64x1xi32, #any>
  %n = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #columns>
  %n1 = tt.expand_dims %n {axis = 0 : i32} : tensor<256xi32, #columns> -> tensor<1x256xi32, #any>
  %kb = tt.broadcast %ko : tensor<64x1xi32, #any> -> tensor<64x256xi32, #any>
  %nb = tt.broadcast %n1 : tensor<1x256xi32, #any> -> tensor<64x256xi32, #any>
  %bo = arith.addi %kb, %nb : tensor<64x256xi32, #any>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<64x256x!tt.ptr<f16>, #any>
  %bp = tt.addptr %bs, %bo : tensor<64x256x!tt.ptr<f16>, #any>, tensor<64x256xi32, #any>
  %bv = tt.load %bp : tensor<64x256x!tt.ptr<f16>, #any>
  %l = ttg.convert_layout %av : tensor<128x64xf16, #any> -> tensor<128x64xf16, #left>
  %r = ttg.convert_layout %bv : tensor<64x256xf16, #any> -> tensor<64x256xf16, #right>
  %d = tt.dot %l, %r, %zero : tensor<128x64xf16, #left> * tensor<64x256xf16, #right> -> tensor<128x256xf32, #any>
  tt.return %d : tensor<128x256xf32, #any>
}
}
