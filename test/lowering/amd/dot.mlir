// RUN: %ttopt %s --split-input-file --convert-triton-gpu-to-llvm --cse | FileCheck %s

// v_mfma of each format that a target has, and v_wmma. Results are transposed: the right operand comes first.

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func internal @transposed(
// CHECK-SAME:    %[[A:[^:]*]]: f16
// CHECK:         %[[LEFT:.*]] = llvm.insertelement %{{.*}} : vector<4xf16>
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.mfma.f32.32x32x8f16"(%[[RIGHT:.*]], %[[FIRST:.*]], %{{.*}}) : (vector<4xf16>, vector<4xf16>, vector<16xf32>, i32, i32, i32) -> vector<16xf32>
tt.func private @transposed(%x: tensor<32x8xf16, #a>, %y: tensor<8x32xf16, #b>, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<32x8xf16, #a> * tensor<8x32xf16, #b> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
// CHECK-LABEL: llvm.func internal @bf16(
// CHECK:         "llvm.amdgcn.mfma.f32.32x32x8bf16.1k"({{.*}}) : (vector<4xi16>, vector<4xi16>, vector<16xf32>
tt.func private @bf16(%x: tensor<32x8xbf16, #a>, %y: tensor<8x32xbf16, #b>, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<32x8xbf16, #a> * tensor<8x32xbf16, #b> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
}

// -----

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [1, 1], instrShape = [16, 16, 32], isTransposed = false}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// Formats of operands may differ.
// CHECK-LABEL: llvm.func internal @fp8(
// CHECK:         "llvm.amdgcn.mfma.f32.16x16x32.fp8.bf8"({{.*}}) : (i64, i64, vector<4xf32>
tt.func private @fp8(%x: tensor<16x32xf8E4M3FNUZ, #a>, %y: tensor<32x16xf8E5M2FNUZ, #b>, %z: tensor<16x16xf32, #mma>) -> tensor<16x16xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<16x32xf8E4M3FNUZ, #a> * tensor<32x16xf8E5M2FNUZ, #b> -> tensor<16x16xf32, #mma>
  tt.return %d : tensor<16x16xf32, #mma>
}
}

// -----

#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [16, 16, 32], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func internal @long(
// CHECK:         "llvm.amdgcn.mfma.f32.16x16x32.f16"({{.*}}) : (vector<8xf16>, vector<8xf16>, vector<4xf32>
tt.func private @long(%x: tensor<16x32xf16, #a>, %y: tensor<32x16xf16, #b>, %z: tensor<16x16xf32, #mma>) -> tensor<16x16xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<16x32xf16, #a> * tensor<32x16xf16, #b> -> tensor<16x16xf32, #mma>
  tt.return %d : tensor<16x16xf32, #mma>
}
}

// -----

// Of 8-bit floats 32 in a lane, in two runs of 16, in a format for each side: the right operand, which comes first, is e5m2.
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [32, 32, 64], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func internal @narrow(
// CHECK-DAG:     %[[E5M2:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG:     %[[E4M3:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4"(%{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[E5M2]], %[[E4M3]], %[[E4M3]], %[[E4M3]], %[[E4M3]], %[[E4M3]]) : (vector<8xi32>, vector<8xi32>, vector<16xf32>, i32,
tt.func private @narrow(%x: tensor<32x64xf8E4M3FN, #a>, %y: tensor<64x32xf8E5M2, #b>, %z: tensor<32x32xf32, #mma>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<32x64xf8E4M3FN, #a> * tensor<64x32xf8E5M2, #b> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
}

// -----

// Pairs of 4-bit floats: four words in a lane, format 4.
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [32, 32, 64], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
#s = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = [], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func internal @pairs(
// CHECK:         %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK:         "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4"({{[^,]*}}, {{[^,]*}}, {{[^,]*}}, %[[FOUR]], %[[FOUR]], {{.*}}) : (vector<4xi32>, vector<4xi32>, vector<16xf32>, i32,
tt.func private @pairs(%x: tensor<32x32xi8, #a>, %y: tensor<32x32xi8, #b>, %z: tensor<32x32xf32, #mma>, %sx: tensor<32x2xi8, #s>, %sy: tensor<32x2xi8, #s>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot_scaled %x scale %sx, %y scale %sy, %z lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<32x32xi8, #a>, tensor<32x2xi8, #s> * tensor<32x32xi8, #b>, tensor<32x2xi8, #s> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
}

// -----

// With scales: that of the first operand, which is the right one, in the second byte.
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [1, 1], instrShape = [32, 32, 64], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
#s = #ttg.linear<{register = [], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1]], warp = [], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func internal @scaled(
// CHECK-SAME:    %[[SA:[^:]*]]: i8, %[[SB:[^:]*]]: i8)
// CHECK-DAG:     %[[RIGHT:.*]] = llvm.zext %[[SB]] : i8 to i32
// CHECK-DAG:     %[[LEFT:.*]] = llvm.zext %[[SA]] : i8 to i32
// CHECK:         %[[SHIFTED:.*]] = llvm.shl %[[RIGHT]], %{{.*}} : i32
// CHECK:         "llvm.amdgcn.mfma.scale.f32.32x32x64.f8f6f4"({{.*}}, %{{[^,]*}}, %[[SHIFTED]], %{{[^,]*}}, %[[LEFT]]) : (vector<8xi32>, vector<8xi32>, vector<16xf32>, i32,
tt.func private @scaled(%x: tensor<32x64xf8E4M3FN, #a>, %y: tensor<64x32xf8E5M2, #b>, %z: tensor<32x32xf32, #mma>, %sx: tensor<32x2xi8, #s>, %sy: tensor<32x2xi8, #s>) -> tensor<32x32xf32, #mma> {
  %d = tt.dot_scaled %x scale %sx, %y scale %sy, %z lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<32x64xf8E4M3FN, #a>, tensor<32x2xi8, #s> * tensor<64x32xf8E5M2, #b>, tensor<32x2xi8, #s> -> tensor<32x32xf32, #mma>
  tt.return %d : tensor<32x32xf32, #mma>
}
}

// -----

// On gfx1250 scales of four blocks along K are the bytes of one register, of lanes of either half: here the upper half has those of rows that
// are 16 further, as in Triton 3.9's TTGIR. The right operand comes first.
#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 128]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
#sa = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [], block = []}>
#sb = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], warp = [], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func internal @scaled_halves(
// CHECK-DAG:     %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK-DAG:     %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         "llvm.amdgcn.wmma.scale.f32.16x16x128.f8f6f4"(%[[ONE]], %{{[^,]*}}, %[[ZERO]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[ZERO]], %[[ZERO]], %[[SB:[^,]*]], %[[ZERO]], %[[ZERO]], %[[SA:[^,]*]], %{{[^,]*}}, %{{[^,]*}}) : (i32, vector<16xi32>, i32, vector<16xi32>, i16, vector<8xf32>, i32, i32, i32, i32, i32, i32, i1, i1) -> vector<8xf32>
// CHECK:         "llvm.amdgcn.wmma.scale.f32.16x16x128.f8f6f4"(%[[ONE]], %{{[^,]*}}, %[[ZERO]], %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}}, %[[ZERO]], %[[ZERO]], %[[SB]], %[[ONE]], %[[ZERO]], %[[SA]], %{{[^,]*}}, %{{[^,]*}}) : (i32,
tt.func private @scaled_halves(%x: tensor<32x128xf8E4M3FN, #a>, %y: tensor<128x16xf8E5M2, #b>, %z: tensor<32x16xf32, #mma>, %sx: tensor<32x4xi8, #sa>, %sy: tensor<16x4xi8, #sb>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot_scaled %x scale %sx, %y scale %sy, %z lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<32x128xf8E4M3FN, #a>, tensor<32x4xi8, #sa> * tensor<128x16xf8E5M2, #b>, tensor<16x4xi8, #sb> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}
}

// -----

#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1100", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func internal @wmma(
// CHECK:         "llvm.amdgcn.wmma.i32.16x16x16.iu8"({{.*}}) : (i1, vector<4xi32>, i1, vector<4xi32>, vector<8xi32>, i1) -> vector<8xi32>
tt.func private @wmma(%x: tensor<16x16xi8, #a>, %y: tensor<16x16xi8, #b>, %z: tensor<16x16xi32, #mma>) -> tensor<16x16xi32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<16x16xi8, #a> * tensor<16x16xi8, #b> -> tensor<16x16xi32, #mma>
  tt.return %d : tensor<16x16xi32, #mma>
}
}

// -----

// gfx1250 multiplies 32 summands of 16 bits: nothing is negated, no operand used again.
#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 32]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func internal @halves(
// CHECK-DAG:     %[[NO:.*]] = llvm.mlir.constant(false)
// CHECK-DAG:     %[[ASIS:.*]] = llvm.mlir.constant(0 : i16)
// CHECK:         "llvm.amdgcn.wmma.f32.16x16x32.bf16"(%[[NO]], %{{.*}}, %[[NO]], %{{.*}}, %[[ASIS]], %{{.*}}, %[[NO]], %[[NO]]) : (i1, vector<16xbf16>, i1, vector<16xbf16>, i16, vector<8xf32>, i1, i1) -> vector<8xf32>
// CHECK-NOT:     wmma
tt.func private @halves(%x: tensor<16x32xbf16, #a>, %y: tensor<32x16xbf16, #b>, %z: tensor<16x16xf32, #mma>) -> tensor<16x16xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<16x32xbf16, #a> * tensor<32x16xbf16, #b> -> tensor<16x16xf32, #mma>
  tt.return %d : tensor<16x16xf32, #mma>
}
}

// -----

#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 4]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func internal @singles(
// CHECK-COUNT-2: "llvm.amdgcn.wmma.f32.16x16x4.f32"({{.*}}) : (i1, vector<2xf32>, i1, vector<2xf32>, i16, vector<8xf32>, i1, i1) -> vector<8xf32>
// CHECK-NOT:     wmma
tt.func private @singles(%x: tensor<16x8xf32, #a>, %y: tensor<8x16xf32, #b>, %z: tensor<16x16xf32, #mma>) -> tensor<16x16xf32, #mma> {
  %d = tt.dot %x, %y, %z : tensor<16x8xf32, #a> * tensor<8x16xf32, #b> -> tensor<16x16xf32, #mma>
  tt.return %d : tensor<16x16xf32, #mma>
}
}

// -----

// Bytes: both are signed, and sums wrap. The layouts are also those of the longer dot of 8-bit floats, whose formats may differ.
#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 64]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 8}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 8}>
#long = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = []}, instrShape = [16, 16, 128]}>
#c = #ttg.dot_op<{opIdx = 0, parent = #long, kWidth = 8}>
#d = #ttg.dot_op<{opIdx = 1, parent = #long, kWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func internal @bytes(
// CHECK-DAG:     %[[YES:.*]] = llvm.mlir.constant(true)
// CHECK-DAG:     %[[NO:.*]] = llvm.mlir.constant(false)
// CHECK:         "llvm.amdgcn.wmma.i32.16x16x64.iu8"(%[[YES]], %{{.*}}, %[[YES]], %{{.*}}, %{{.*}}, %[[NO]], %[[NO]], %[[NO]]) : (i1, vector<8xi32>, i1, vector<8xi32>, vector<8xi32>, i1, i1, i1) -> vector<8xi32>
// CHECK-NOT:     wmma
tt.func private @bytes(%x: tensor<16x64xi8, #a>, %y: tensor<64x16xi8, #b>, %z: tensor<16x16xi32, #mma>) -> tensor<16x16xi32, #mma> {
  %r = tt.dot %x, %y, %z : tensor<16x64xi8, #a> * tensor<64x16xi8, #b> -> tensor<16x16xi32, #mma>
  tt.return %r : tensor<16x16xi32, #mma>
}
// CHECK-LABEL: llvm.func internal @fp8_short(
// CHECK:         "llvm.amdgcn.wmma.f32.16x16x64.bf8.fp8"({{.*}}) : (vector<8xi32>, vector<8xi32>, i16, vector<8xf32>, i1, i1) -> vector<8xf32>
tt.func private @fp8_short(%x: tensor<16x64xf8E4M3FN, #a>, %y: tensor<64x16xf8E5M2, #b>, %z: tensor<16x16xf32, #mma>) -> tensor<16x16xf32, #mma> {
  %r = tt.dot %x, %y, %z : tensor<16x64xf8E4M3FN, #a> * tensor<64x16xf8E5M2, #b> -> tensor<16x16xf32, #mma>
  tt.return %r : tensor<16x16xf32, #mma>
}
// CHECK-LABEL: llvm.func internal @fp8_long(
// CHECK:         "llvm.amdgcn.wmma.f32.16x16x128.fp8.fp8"({{.*}}) : (vector<16xi32>, vector<16xi32>, i16, vector<8xf32>, i1, i1) -> vector<8xf32>
// CHECK-NOT:     wmma
tt.func private @fp8_long(%x: tensor<16x128xf8E4M3FN, #c>, %y: tensor<128x16xf8E4M3FN, #d>, %z: tensor<16x16xf32, #long>) -> tensor<16x16xf32, #long> {
  %r = tt.dot %x, %y, %z : tensor<16x128xf8E4M3FN, #c> * tensor<128x16xf8E4M3FN, #d> -> tensor<16x16xf32, #long>
  tt.return %r : tensor<16x16xf32, #long>
}
}
