// A tensor of 256 KiB, more than the shared memory of a block, is converted in parts.
// RUN: %ttsim %s --quiet
// RUN: %ttopt %s --allocate-shared-memory-nv | FileCheck %s
// CHECK: ttg.shared = 131072 : i32

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [16, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 16], order = [0, 1]}>
#arow = #ttg.slice<{dim = 1, parent = #a}>
#acol = #ttg.slice<{dim = 0, parent = #a}>
#crow = #ttg.slice<{dim = 1, parent = #c}>
#ccol = #ttg.slice<{dim = 0, parent = #c}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 16 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @kernel() {
  %an = arith.constant dense<256> : tensor<256x1xi32, #a>
  %ar1 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #arow>
  %ar2 = tt.expand_dims %ar1 {axis = 1 : i32} : tensor<256xi32, #arow> -> tensor<256x1xi32, #a>
  %ar3 = arith.muli %ar2, %an : tensor<256x1xi32, #a>
  %ar = tt.broadcast %ar3 : tensor<256x1xi32, #a> -> tensor<256x256xi32, #a>
  %ac1 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #acol>
  %ac2 = tt.expand_dims %ac1 {axis = 0 : i32} : tensor<256xi32, #acol> -> tensor<1x256xi32, #a>
  %ac = tt.broadcast %ac2 : tensor<1x256xi32, #a> -> tensor<256x256xi32, #a>
  %av = arith.addi %ar, %ac : tensor<256x256xi32, #a>
  %x = ttg.convert_layout %av : tensor<256x256xi32, #a> -> tensor<256x256xi32, #c>
  %cn = arith.constant dense<256> : tensor<256x1xi32, #c>
  %cr1 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #crow>
  %cr2 = tt.expand_dims %cr1 {axis = 1 : i32} : tensor<256xi32, #crow> -> tensor<256x1xi32, #c>
  %cr3 = arith.muli %cr2, %cn : tensor<256x1xi32, #c>
  %cr = tt.broadcast %cr3 : tensor<256x1xi32, #c> -> tensor<256x256xi32, #c>
  %cc1 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #ccol>
  %cc2 = tt.expand_dims %cc1 {axis = 0 : i32} : tensor<256xi32, #ccol> -> tensor<1x256xi32, #c>
  %cc = tt.broadcast %cc2 : tensor<1x256xi32, #c> -> tensor<256x256xi32, #c>
  %cv = arith.addi %cr, %cc : tensor<256x256xi32, #c>
  %ok = arith.cmpi eq, %x, %cv : tensor<256x256xi32, #c>
  tt.assert %ok, "wrong element" : tensor<256x256xi1, #c>
  tt.return
}
}
