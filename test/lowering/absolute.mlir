// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

// Floats of 8 bits are their bits: the sign goes, and what formats with one zero have as NaN stays.
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: llvm.func {{.*}}@with_two_zeros(
  // CHECK: %[[MASK:.*]] = llvm.mlir.constant(127 : i8)
  // CHECK: llvm.and %arg0, %[[MASK]]
  // CHECK-NOT: select
  // CHECK: llvm.return
  tt.func private @with_two_zeros(%x: tensor<128xf8E4M3FN, #one>) -> tensor<128xf8E4M3FN, #one> {
    %0 = math.absf %x : tensor<128xf8E4M3FN, #one>
    tt.return %0 : tensor<128xf8E4M3FN, #one>
  }

  // CHECK-LABEL: llvm.func {{.*}}@with_one_zero(
  // CHECK: %[[REST:.*]] = llvm.and %arg0
  // CHECK: %[[NAN:.*]] = llvm.mlir.constant(-128 : i8)
  // CHECK: %[[IS:.*]] = llvm.icmp "eq" %arg0, %[[NAN]]
  // CHECK: llvm.select %[[IS]], %[[NAN]], %[[REST]]
  tt.func private @with_one_zero(%x: tensor<128xf8E5M2FNUZ, #one>) -> tensor<128xf8E5M2FNUZ, #one> {
    %0 = math.absf %x : tensor<128xf8E5M2FNUZ, #one>
    tt.return %0 : tensor<128xf8E5M2FNUZ, #one>
  }

  // CHECK-LABEL: llvm.func {{.*}}@half(
  // CHECK: llvm.intr.fabs(%arg0)
  tt.func private @half(%x: tensor<128xf16, #one>) -> tensor<128xf16, #one> {
    %0 = math.absf %x : tensor<128xf16, #one>
    tt.return %0 : tensor<128xf16, #one>
  }
}
