// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// Weights of four bits, two to a byte: assembly makes two numbers of each, which are joined and multiplied. Where both
// results are wanted in the layout of the dot's operand, the assembly gives them so, and the bytes are what is converted.
// The pair of a join is in the registers that its use wants it in.

#blocked = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#pair = #ttg.blocked<{sizePerThread = [1, 16, 2], threadsPerWarp = [2, 16, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
#fours = #ttg.blocked<{sizePerThread = [1, 2, 8, 2], threadsPerWarp = [2, 16, 1, 1], warpsPerCTA = [4, 1, 1, 1], order = [3, 2, 1, 0]}>
#turned = #ttg.blocked<{sizePerThread = [1, 2, 2, 8], threadsPerWarp = [2, 16, 1, 1], warpsPerCTA = [4, 1, 1, 1], order = [2, 3, 1, 0]}>
#wide = #ttg.linear<{register = [[0, 8], [0, 1], [0, 2], [0, 4], [0, 16], [8, 0], [16, 0], [32, 0]], lane = [[0, 32], [0, 64], [0, 128], [0, 256], [1, 0]], warp = [[2, 0], [4, 0]], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @assembly
// CHECK:       %[[BYTES:.*]] = tt.load
// CHECK-NEXT:  %[[MOVED:.*]] = ttg.convert_layout %[[BYTES]]
// CHECK-NEXT:  %[[HALVES:.*]]:2 = tt.elementwise_inline_asm {{.*}} %[[MOVED]] : tensor<64x256xi8, #[[HALF:.*]]> -> tensor<64x256xbf16, #[[HALF]]>, tensor<64x256xbf16, #[[HALF]]>
// CHECK-NEXT:  %[[JOINED:.*]] = tt.join %[[HALVES]]#0, %[[HALVES]]#1
// CHECK-NEXT:  %[[FOURS:.*]] = tt.reshape %[[JOINED]]
// CHECK-NEXT:  %[[TURNED:.*]] = tt.trans %[[FOURS]]
// CHECK-NEXT:  %[[OPERAND:.*]] = tt.reshape %[[TURNED]] : {{.*}} -> tensor<64x512xbf16, #ttg.dot_op<{opIdx = 0
// CHECK:       tt.dot %[[OPERAND]]
tt.func @assembly(%p: tensor<64x256x!tt.ptr<i8>, #blocked> {tt.divisibility = dense<16> : tensor<2xi32>, tt.contiguity = dense<[1, 16]> : tensor<2xi32>}, %other: tensor<512x64xbf16, #b>) -> tensor<64x64xf32, #mma> {
  %bytes = tt.load %p : tensor<64x256x!tt.ptr<i8>, #blocked>
  %halves:2 = tt.elementwise_inline_asm "unpack $0, $1, $2, $3, $4;" {constraints = "=r,=r,=r,=r,r", packed_element = 4 : i32, pure = true} %bytes : tensor<64x256xi8, #blocked> -> tensor<64x256xbf16, #blocked>, tensor<64x256xbf16, #blocked>
  %joined = tt.join %halves#0, %halves#1 : tensor<64x256xbf16, #blocked> -> tensor<64x256x2xbf16, #pair>
  %fours = tt.reshape %joined : tensor<64x256x2xbf16, #pair> -> tensor<64x32x8x2xbf16, #fours>
  %turned = tt.trans %fours {order = array<i32: 0, 1, 3, 2>} : tensor<64x32x8x2xbf16, #fours> -> tensor<64x32x2x8xbf16, #turned>
  %flat = tt.reshape %turned : tensor<64x32x2x8xbf16, #turned> -> tensor<64x512xbf16, #wide>
  %operand = ttg.convert_layout %flat : tensor<64x512xbf16, #wide> -> tensor<64x512xbf16, #a>
  %zero = arith.constant dense<0.000000e+00> : tensor<64x64xf32, #mma>
  %dot = tt.dot %operand, %other, %zero : tensor<64x512xbf16, #a> * tensor<512x64xbf16, #b> -> tensor<64x64xf32, #mma>
  tt.return %dot : tensor<64x64xf32, #mma>
}
}
