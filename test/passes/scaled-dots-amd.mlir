// RUN: %ttopt %s --convert-triton-to-tritongpu='target=hip:gfx950 num-warps=4 threads-per-warp=64' --tritongpu-accelerate-matmul --canonicalize --split-input-file | FileCheck %s
// RUN: %ttopt %s --convert-triton-to-tritongpu='target=hip:gfx942 num-warps=4 threads-per-warp=64' --tritongpu-accelerate-matmul --canonicalize --split-input-file | FileCheck %s --check-prefix=CDNA3
// RUN: %ttopt %s --convert-triton-to-tritongpu='target=hip:gfx1250 num-warps=4 threads-per-warp=32' --tritongpu-accelerate-matmul --canonicalize --split-input-file | FileCheck %s --check-prefix=GFX1250

// 8-bit floats with scales for 32 elements each are multiplied as they are where an instruction does it, scales in the lanes of
// their rows and columns.

// CHECK-DAG:   #[[MMA:.+]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 64], isTransposed = true}>
// CHECK-DAG:   #[[SA:.+]] = #ttg.linear<{register = {{.*}}, lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = {{\[}}[0, 0], [32, 0]], block = []}>
// CHECK-DAG:   #[[SB:.+]] = #ttg.linear<{register = {{.*}}, lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = {{\[}}[32, 0], [0, 0]], block = []}>
// CHECK-LABEL: @mxfp8(
// CHECK:       tt.dot_scaled %{{.*}} scale %{{.*}}, %{{.*}} scale %{{.*}}, %{{.*}} lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x64xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #[[MMA]], kWidth = 16}>>, tensor<64x2xi8, #[[SA]]> * tensor<64x64xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #[[MMA]], kWidth = 16}>>, tensor<64x2xi8, #[[SB]]> -> tensor<64x64xf32, #[[MMA]]>
// On gfx1250 scales of four blocks are in registers of the lanes of their rows and columns; half of what the instruction multiplies is zero.
// GFX1250-DAG:   #[[MMA:.+]] = #ttg.amd_wmma<{version = 3, {{.*}}instrShape = [16, 16, 128]}>
// GFX1250-DAG:   #[[SA:.+]] = #ttg.linear<{register = {{\[}}[0, 1], {{.*}}lane = {{\[}}[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]],
// GFX1250-LABEL: @mxfp8(
// GFX1250:       tt.dot_scaled {{.*}} lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x64xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #[[MMA]], kWidth = 8}>>, tensor<64x2xi8, #
// CDNA3-LABEL: @mxfp8(
// CDNA3-NOT:   tt.dot_scaled
// CDNA3:       tt.dot {{.*}} : tensor<64x64xbf16,
tt.func @mxfp8(%a: tensor<64x64xf8E4M3FN>, %sa: tensor<64x2xi8>, %b: tensor<64x64xf8E5M2>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// One side without scales; the other formats, and K that is too short, are converted first.
// CHECK-LABEL: @one_side(
// CHECK:       tt.dot_scaled %{{[^ ]*}} scale %{{[^ ]*}}, %{{[^ ]*}}, %{{[^ ]*}} lhs
tt.func @one_side(%a: tensor<64x64xf8E4M3FN>, %sa: tensor<64x2xi8>, %b: tensor<64x64xf8E5M2>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// CHECK-LABEL: @mixed(
// CHECK-NOT:   tt.dot_scaled
// CHECK:       tt.dot {{.*}} : tensor<64x64xbf16,
tt.func @mixed(%a: tensor<64x64xbf16>, %b: tensor<64x64xf8E5M2>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a, %b scale %sb, %c lhs = bf16 rhs = e5m2 {fastMath = false} : tensor<64x64xbf16> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// GFX1250-LABEL: @short(
// GFX1250-NOT:   tt.dot_scaled
// GFX1250:       tt.dot {{.*}} : tensor<64x32xbf16,
// CHECK-LABEL: @short(
// CHECK-NOT:   tt.dot_scaled
// CHECK:       tt.dot {{.*}} : tensor<64x32xbf16,
tt.func @short(%a: tensor<64x32xf8E4M3FN>, %sa: tensor<64x1xi8>, %b: tensor<32x64xf8E5M2>, %sb: tensor<64x1xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x32xf8E4M3FN>, tensor<64x1xi8> * tensor<32x64xf8E5M2>, tensor<64x1xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// Those of 4 bits become such of 8 where the other side has 8.
// CHECK-LABEL: @four_bits_and_eight(
// CHECK:       ttg.fp4_to_fp {{.*}} -> tensor<64x64xf8E4M3FN,
// CHECK:       tt.dot_scaled {{.*}} lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<64x64xf8E4M3FN, {{.*}}, tensor<64x2xi8, {{.*}} * tensor<64x64xf8E4M3FN,
// GFX1250-LABEL: @four_bits_and_eight(
// GFX1250:       tt.dot_scaled {{.*}} lhs = e4m3 rhs = e4m3 {fastMath = false}
// CDNA3-LABEL: @four_bits_and_eight(
// CDNA3-NOT:   tt.dot_scaled
// CDNA3:       tt.dot {{.*}} : tensor<64x64xbf16,
tt.func @four_bits_and_eight(%a: tensor<64x64xf8E4M3FN>, %sa: tensor<64x2xi8>, %b: tensor<32x64xi8>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e2m1 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<32x64xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// Pairs along N are no summands that follow each other: both sides become such of 8 bits.
// CHECK-LABEL: @four_bits_along_n(
// CHECK-COUNT-2: ttg.fp4_to_fp {{.*}} -> tensor<64x64xf8E4M3FN,
// CHECK:       tt.dot_scaled {{.*}} lhs = e4m3 rhs = e4m3 {fastMath = false}
tt.func @four_bits_along_n(%a: tensor<64x32xi8>, %sa: tensor<64x2xi8>, %b: tensor<64x32xi8>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e2m1 {fastMath = false, rhs_k_pack = false} : tensor<64x32xi8>, tensor<64x2xi8> * tensor<64x32xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Of 4 bits two in a byte, a scale for 16 of those.
// CHECK-DAG:   #[[MMA:.+]] = #ttg.amd_mfma<{version = 4, warpsPerCTA = [2, 2], instrShape = [32, 32, 64], isTransposed = true}>
// CHECK-LABEL: @four_bits(
// CHECK:       tt.dot_scaled %{{.*}} scale %{{.*}}, %{{.*}} scale %{{.*}}, %{{.*}} lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #[[MMA]], kWidth = 16}>>, tensor<64x2xi8, {{.*}}> * tensor<32x64xi8, #ttg.dot_op<{opIdx = 1, parent = #[[MMA]], kWidth = 16}>>, tensor<64x2xi8, {{.*}}> -> tensor<64x64xf32, #[[MMA]]>
// GFX1250-LABEL: @four_bits(
// GFX1250:       tt.dot_scaled {{.*}} lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<64x32xi8, #ttg.dot_op<{opIdx = 0, parent = #{{.*}}, kWidth = 16}>>,
// CDNA3-LABEL: @four_bits(
// CDNA3-NOT:   tt.dot_scaled
tt.func @four_bits(%a: tensor<64x32xi8>, %sa: tensor<64x2xi8>, %b: tensor<32x64xi8>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<64x32xi8>, tensor<64x2xi8> * tensor<32x64xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Of 6 bits nothing says how they lie in bytes.
// RUN: not %ttopt %S/Inputs/six-bits.mlir --convert-triton-to-tritongpu='target=hip:gfx950 num-warps=4 threads-per-warp=64' --tritongpu-accelerate-matmul 2>&1 | FileCheck %s --check-prefix=SIX
// SIX: six-bits.mlir:2:{{[0-9]+}}: error: {{.*}}operands of format e2m3 are not supported
