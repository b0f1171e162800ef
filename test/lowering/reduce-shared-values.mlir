// 32 rows in the registers of each thread, 32 lanes along the axis: a lane sends half of its values to the first other lane, then
// half of what is left. 16 + 8 + 4 + 2 + 1 exchanges, in place of 32 five times.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s --implicit-check-not=shfl.sync.bfly

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32, ttg.shared = 256 : i32} {
// CHECK-LABEL: llvm.func internal @rows(
// CHECK-COUNT-31: shfl.sync.bfly
tt.func private @rows(%x: tensor<32x32xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>> {
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    tt.reduce.return %sum : f32
  }) {allocation.offset = 0 : i32} : (tensor<32x32xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return %0 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
}

// Line by line: each row goes through all five exchanges.
// CHECK-LABEL: llvm.func internal @one_by_one(
// CHECK-COUNT-160: shfl.sync.bfly
tt.func private @one_by_one(%x: tensor<32x32xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>> {
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %sum = arith.addf %a, %b : f32
    tt.reduce.return %sum : f32
  }) {ttg.line_by_line} : (tensor<32x32xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
  tt.return %0 : tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
}
}
