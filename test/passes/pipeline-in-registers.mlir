// RUN: %ttopt %s --tritongpu-pipeline | FileCheck %s
// RUN: %ttopt %s --tritongpu-pipeline="ahead-in-registers=false explain=true" 2>&1 | FileCheck %s --check-prefix=WITHOUT
// RUN: sed 's/num-warps" = 4/num-warps" = 2/; s/\[4, 1\]/[2, 1]/' %s | %ttopt - --tritongpu-pipeline | FileCheck %s --check-prefix=FEW

// Elements of 16 bits one by one are nothing that copies move: loads that run ahead wait in registers. The module says so, where CTAs
// have a warp for each part of a multiprocessor; the second text of a kernel is made without.
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// CHECK: module attributes {{.*}}ttg.ahead_in_registers
// CHECK-LABEL: @nobody_asked
// CHECK: tt.load
// CHECK: scf.for {{.*}}iter_args({{.*}}, {{.*}})
// FEW-NOT: ttg.ahead_in_registers
// FEW-LABEL: @nobody_asked
// FEW: scf.for {{.*}}iter_args({{.*}}, {{.*}})
// WITHOUT: :[[#@LINE+9]]:{{[0-9]+}}: remark: has no software pipeline: what would run ahead would only wait in registers
// WITHOUT-NOT: ttg.ahead_in_registers
// WITHOUT-LABEL: @nobody_asked
// WITHOUT: scf.for
// WITHOUT-NEXT: tt.load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @nobody_asked(%p: tensor<64x64x!tt.ptr<f16>, #left>, %y: tensor<64x32xf16, #right>, %n: i32, %first: tensor<64x32xf32, #mma>) -> tensor<64x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %first) -> (tensor<64x32xf32, #mma>) : i32 {
      %x = tt.load %p : tensor<64x64x!tt.ptr<f16>, #left>
      %d = tt.dot %x, %y, %c : tensor<64x64xf16, #left> * tensor<64x32xf16, #right> -> tensor<64x32xf32, #mma>
      scf.yield %d : tensor<64x32xf32, #mma>
    }
    tt.return %r : tensor<64x32xf32, #mma>
  }
}
