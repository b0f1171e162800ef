// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s

// Both halves of a wave want halves of words that one of them has: a lane picks the bytes of its own and of the other word that
// are its words', one instruction each, in the place of two selects and what puts halves together.

#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = []}}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.shared = 0 : i32, ttg.target = "hip:gfx1100", "ttg.threads-per-warp" = 32 : i32} {

// The 8 words of a lane are of 4 of its own and of 4 of the other half.
// CHECK-LABEL: llvm.func internal @operand(
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.amdgcn.permlanex16"
// CHECK-NOT:     permlanex16
// Bytes 0, 1 and 4, 5, of the lower halves, or in the other half of the wave 4, 5 and 0, 1.
// CHECK-DAG:     %[[LOW:.*]] = llvm.mlir.constant(84148480 : i32)
// CHECK-DAG:     %[[SWAPPED:.*]] = llvm.mlir.constant(16778500 : i32)
// CHECK:         %[[PLACES:.*]] = llvm.select %{{.*}}, %[[SWAPPED]], %[[LOW]] : i1, i32
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.perm"(%{{.*}}, %{{.*}}, %[[PLACES]])
// CHECK-COUNT-7: llvm.call_intrinsic "llvm.amdgcn.perm"
// CHECK-NOT:     llvm.amdgcn.perm
// CHECK:         llvm.return
tt.func private @operand(%x: tensor<16x16xf16, #mma>) -> tensor<16x16xf16, #dot> {
  %y = ttg.convert_layout %x : tensor<16x16xf16, #mma> -> tensor<16x16xf16, #dot>
  tt.return %y : tensor<16x16xf16, #dot>
}
}
