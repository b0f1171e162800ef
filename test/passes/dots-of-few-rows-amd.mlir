// RUN: %ttopt %s --convert-triton-to-tritongpu='target=hip:gfx1100 num-warps=4 threads-per-warp=32' --tritongpu-accelerate-matmul=explain=true --split-input-file 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID --input-file %t.said
// RUN: %ttopt %s --convert-triton-to-tritongpu='target=hip:gfx942 num-warps=4 threads-per-warp=64' --tritongpu-accelerate-matmul --split-input-file | FileCheck %s --check-prefix=MATRIX

// Of a dot of one or two rows or columns a matrix instruction multiplies mostly zeros. On gfx1100 `v_dot2` and `v_dot4` take fewer cycles; where
// matrix units are faster they do not.

// SAID:        remark: multiplied within threads in 128 cycles, in place of 256 by v_wmma_16x16x16
// CHECK-LABEL: @one_row(
// CHECK:       tt.dot {{.*}} : tensor<1x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked{{.*}}}>> * {{.*}} -> tensor<1x64xf32, #blocked
// MATRIX-LABEL: @one_row(
// MATRIX:      tt.dot {{.*}} -> tensor<1x64xf32, #mma
tt.func @one_row(%a: tensor<1x64xf16>, %b: tensor<64x64xf16>, %c: tensor<1x64xf32>) -> tensor<1x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<1x64xf16> * tensor<64x64xf16> -> tensor<1x64xf32>
  tt.return %d : tensor<1x64xf32>
}

// -----

// SAID:        remark: multiplied within threads in 64 cycles, in place of 256 by v_wmma_16x16x16
// CHECK-LABEL: @two_columns_of_bytes(
// CHECK:       tt.dot {{.*}} : tensor<64x64xi8, #ttg.dot_op<{opIdx = 0, parent = #blocked{{.*}}}>> * {{.*}} -> tensor<64x2xi32, #blocked
// MATRIX-LABEL: @two_columns_of_bytes(
// MATRIX:      tt.dot {{.*}} -> tensor<64x2xi32, #mma
tt.func @two_columns_of_bytes(%a: tensor<64x64xi8>, %b: tensor<64x2xi8>, %c: tensor<64x2xi32>) -> tensor<64x2xi32> {
  %d = tt.dot %a, %b, %c : tensor<64x64xi8> * tensor<64x2xi8> -> tensor<64x2xi32>
  tt.return %d : tensor<64x2xi32>
}

// -----

// CHECK-LABEL: @four_rows(
// CHECK:       tt.dot {{.*}} -> tensor<4x64xf32, #mma
tt.func @four_rows(%a: tensor<4x64xf16>, %b: tensor<64x64xf16>, %c: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<4x64xf16> * tensor<64x64xf16> -> tensor<4x64xf32>
  tt.return %d : tensor<4x64xf32>
}
