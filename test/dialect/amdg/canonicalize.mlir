// RUN: %ttopt %s --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
!part = tensor<32x32xf32, #blocked>
!rows = tensor<64x32xf32, #blocked>
!whole = tensor<64x64xf32, #blocked>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// The whole is no part, and one part is the whole.
// CHECK-LABEL: tt.func public @whole(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: tt.return %[[ARG0]], %[[ARG0]]
tt.func public @whole(%a: !part) -> (!part, !part) {
  %0 = amdg.extract_slice %a [0, 0] : !part to !part
  %1 = amdg.concat %a : !part -> !part
  tt.return %0, %1 : !part, !part
}

// Parts of what was put together, in row-major order.
// CHECK-LABEL: tt.func public @parts(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]
// CHECK-NEXT: tt.return %[[ARG3]], %[[ARG2]], %[[ARG1]], %[[ARG0]]
tt.func public @parts(%a: !part, %b: !part, %c: !part, %d: !part) -> (!part, !part, !part, !part) {
  %0 = amdg.concat %a, %b, %c, %d : !part, !part, !part, !part -> !whole
  %1 = amdg.extract_slice %0 [0, 0] : !whole to !part
  %2 = amdg.extract_slice %0 [0, 32] : !whole to !part
  %3 = amdg.extract_slice %0 [32, 0] : !whole to !part
  %4 = amdg.extract_slice %0 [32, 32] : !whole to !part
  tt.return %4, %3, %2, %1 : !part, !part, !part, !part
}

// A part of several of them stays.
// CHECK-LABEL: tt.func public @several(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = amdg.concat %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG3]] : tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked> -> tensor<64x64xf32, #blocked>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = amdg.extract_slice %[[V0]] [0, 32] : tensor<64x64xf32, #blocked> to tensor<64x32xf32, #blocked>
// CHECK-NEXT: tt.return %[[V1]]
tt.func public @several(%a: !part, %b: !part, %c: !part, %d: !part) -> !rows {
  %0 = amdg.concat %a, %b, %c, %d : !part, !part, !part, !part -> !whole
  %1 = amdg.extract_slice %0 [0, 32] : !whole to !rows
  tt.return %1 : !rows
}

}
