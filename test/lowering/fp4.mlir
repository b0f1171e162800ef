// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#out = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// Both numbers of a byte at once: the higher one 16 bits up, exponents where a 16-bit float has them, then scaled by
// the difference of biases.
// CHECK-LABEL: llvm.func internal @bf16(
// CHECK:         %[[BYTE:.*]] = llvm.zext %arg0 : i8 to i32
// CHECK:         llvm.mlir.constant(458759 : i32)
// CHECK:         %[[BITS:.*]] = llvm.or disjoint
// CHECK:         %[[SMALL:.*]] = llvm.bitcast %{{.*}} : i32 to vector<2xbf16>
// CHECK:         llvm.mlir.constant(8.507050e+37 : bf16)
// CHECK:         %[[BOTH:.*]] = llvm.fmul %[[SMALL]], %{{.*}} : vector<2xbf16>
// CHECK:         llvm.extractelement %[[BOTH]]
// CHECK:         llvm.extractelement %[[BOTH]]
tt.func private @bf16(%x: tensor<4x32xi8, #blocked>) -> tensor<4x64xbf16, #out> {
  %y = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<4x32xi8, #blocked> -> tensor<4x64xbf16, #out>
  tt.return %y : tensor<4x64xbf16, #out>
}
// CHECK-LABEL: llvm.func internal @f16(
// CHECK:         llvm.mlir.constant(1.638400e+04 : f16)
tt.func private @f16(%x: tensor<4x32xi8, #blocked>) -> tensor<4x64xf16, #out> {
  %y = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<4x32xi8, #blocked> -> tensor<4x64xf16, #out>
  tt.return %y : tensor<4x64xf16, #out>
}
}
