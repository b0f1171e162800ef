// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

// Parts of tensors stay with the threads that hold them: registers are picked.

#b = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [16, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// 64×32: four times 64×8 in a thread's eight registers.
// CHECK-LABEL: llvm.func internal @slice(
// CHECK-SAME:    %[[A0:[^:]*]]: i32, %[[A1:[^:]*]]: i32, %[[A2:[^:]*]]: i32, %[[A3:[^:]*]]: i32, %[[A4:[^:]*]]: i32, %[[A5:[^:]*]]: i32, %[[A6:[^:]*]]: i32, %[[A7:[^:]*]]: i32)
// CHECK:         llvm.insertvalue %[[A4]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[A5]], %{{.*}}[1]
// CHECK:         llvm.insertvalue %[[A6]], %{{.*}}[2]
// CHECK:         llvm.insertvalue %[[A7]], %{{.*}}[3]
tt.func private @slice(%x: tensor<64x32xi32, #b>) -> tensor<64x16xi32, #b> {
  %y = amdg.extract_slice %x [0, 16] : tensor<64x32xi32, #b> to tensor<64x16xi32, #b>
  tt.return %y : tensor<64x16xi32, #b>
}

// Row by row: the second source is right of the first.
// CHECK-LABEL: llvm.func internal @concat(
// CHECK-SAME:    %[[A0:[^:]*]]: i32, %[[A1:[^:]*]]: i32, %[[B0:[^:]*]]: i32, %[[B1:[^:]*]]: i32, %[[C0:[^:]*]]: i32, %[[C1:[^:]*]]: i32, %[[D0:[^:]*]]: i32, %[[D1:[^:]*]]: i32)
// CHECK:         llvm.insertvalue %[[A0]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[A1]], %{{.*}}[1]
// CHECK:         llvm.insertvalue %[[B0]], %{{.*}}[2]
// CHECK:         llvm.insertvalue %[[B1]], %{{.*}}[3]
// CHECK:         llvm.insertvalue %[[C0]], %{{.*}}[4]
// CHECK:         llvm.insertvalue %[[C1]], %{{.*}}[5]
// CHECK:         llvm.insertvalue %[[D0]], %{{.*}}[6]
// CHECK:         llvm.insertvalue %[[D1]], %{{.*}}[7]
tt.func private @concat(%a: tensor<64x8xi32, #b>, %b: tensor<64x8xi32, #b>, %c: tensor<64x8xi32, #b>, %d: tensor<64x8xi32, #b>) -> tensor<128x16xi32, #b> {
  %y = amdg.concat %a, %b, %c, %d : tensor<64x8xi32, #b>, tensor<64x8xi32, #b>, tensor<64x8xi32, #b>, tensor<64x8xi32, #b> -> tensor<128x16xi32, #b>
  tt.return %y : tensor<128x16xi32, #b>
}
}
