// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,SM80

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a1 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#a4 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#b4 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#mma64 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [8, 8]}>
#a64 = #ttg.dot_op<{opIdx = 0, parent = #mma64, kWidth = 1}>
#b64 = #ttg.dot_op<{opIdx = 1, parent = #mma64, kWidth = 1}>
#batched = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>
#ba = #ttg.dot_op<{opIdx = 0, parent = #batched, kWidth = 2}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #batched, kWidth = 2}>
#blocked = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [1, 0]}>
#fa = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#fb = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Neighbours along K are one register; the second dot adds to the sums of the first.
// CHECK-LABEL: llvm.func internal @f16(
// CHECK-SAME:    %[[A0:[^:]*]]: f16, %[[A1:[^:]*]]: f16,
// CHECK-SAME:    %[[C0:arg24]]: f32
// CHECK:         %[[LOW:.*]] = llvm.insertelement %[[A0]], %{{.*}} : vector<2xf16>
// CHECK:         %[[PAIR:.*]] = llvm.insertelement %[[A1]], %[[LOW]][%{{.*}} : i32] : vector<2xf16>
// CHECK:         %[[FIRST:.*]] = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"(%[[PAIR]], {{.*}}, %[[C0]], %arg25, %arg26, %arg27) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK:         %[[S0:.*]] = llvm.extractvalue %[[FIRST]][0]
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"({{.*}}, %[[S0]], %{{.*}}, %{{.*}}, %{{.*}})
// CHECK-NOT:     call_intrinsic
// CHECK:         llvm.return
tt.func private @f16(%a: tensor<32x32xf16, #a>, %b: tensor<32x16xf16, #b>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<32x32xf16, #a> * tensor<32x16xf16, #b> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// Sums of 16 bits are pairs too.
// CHECK-LABEL: llvm.func internal @sums_of_f16(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f16.f16"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
// CHECK-COUNT-4: llvm.extractelement {{.*}} : vector<2xf16>
tt.func private @sums_of_f16(%a: tensor<32x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<32x16xf16, #mma>) -> tensor<32x16xf16, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<32x16xf16, #mma>
  tt.return %d : tensor<32x16xf16, #mma>
}

// CHECK-LABEL: llvm.func internal @bf16(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32)
tt.func private @bf16(%a: tensor<32x16xbf16, #a>, %b: tensor<16x16xbf16, #b>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x16xbf16, #a> * tensor<16x16xbf16, #b> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// CHECK-LABEL: llvm.func internal @tf32(
// CHECK:         llvm.bitcast %arg0 : f32 to i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.tf32"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32)
tt.func private @tf32(%a: tensor<32x8xf32, #a1>, %b: tensor<8x16xf32, #b1>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<32x8xf32, #a1> * tensor<8x16xf32, #b1> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// CHECK-LABEL: llvm.func internal @i8(
// CHECK:         llvm.bitcast %{{.*}} : vector<4xi8> to i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.s8"({{.*}}) : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32)
tt.func private @i8(%a: tensor<32x32xi8, #a4>, %b: tensor<32x16xi8, #b4>, %c: tensor<32x16xi32, #mma>) -> tensor<32x16xi32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x32xi8, #a4> * tensor<32x16xi8, #b4> -> tensor<32x16xi32, #mma>
  tt.return %d : tensor<32x16xi32, #mma>
}

// Formats of 8-bit floats may differ.
// CHECK-LABEL: llvm.func internal @f8(
// SM90:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k32.row.col.f32.e4m3.e5m2.f32"
// SM80-COUNT-2:  llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
tt.func private @f8(%a: tensor<32x32xf8E4M3FN, #a4>, %b: tensor<32x16xf8E5M2, #b4>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf8E4M3FN, #a4> * tensor<32x16xf8E5M2, #b4> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// Formats that the hardware does not multiply are multiplied as 16-bit floats.
// CHECK-LABEL: llvm.func internal @f8_fnuz(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
tt.func private @f8_fnuz(%a: tensor<32x32xf8E4M3FNUZ, #a4>, %b: tensor<32x16xf8E4M3FNUZ, #b4>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x32xf8E4M3FNUZ, #a4> * tensor<32x16xf8E4M3FNUZ, #b4> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// CHECK-LABEL: llvm.func internal @f64(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m8n8k4.row.col.f64"(%arg0, %arg1, %arg2, %arg3) : (f64, f64, f64, f64) -> !llvm.struct<(f64, f64)>
tt.func private @f64(%a: tensor<16x4xf64, #a64>, %b: tensor<4x16xf64, #b64>, %c: tensor<16x16xf64, #mma64>) -> tensor<16x16xf64, #mma64> {
  %d = tt.dot %a, %b, %c : tensor<16x4xf64, #a64> * tensor<4x16xf64, #b64> -> tensor<16x16xf64, #mma64>
  tt.return %d : tensor<16x16xf64, #mma64>
}

// Where a warp has two tiles of 8 rows, an instruction of sm_90 multiplies both, and as many summands as there are: rows 8 apart first in
// the left operand.
// CHECK-LABEL: llvm.func internal @f64_16_rows(
// SM90:          llvm.call_intrinsic "llvm.nvvm.mma.m16n8k8.row.col.f64"(%arg0, %arg2, %arg1, %arg3, %arg4, %arg5, %arg6, %arg7, %arg8, %arg9) : (f64, f64, f64, f64, f64, f64, f64, f64, f64, f64) -> !llvm.struct<(f64, f64, f64, f64)>
// SM90-NOT:      nvvm.mma
// SM80-COUNT-4:  llvm.call_intrinsic "llvm.nvvm.mma.m8n8k4.row.col.f64"
// SM80-NOT:      nvvm.mma
// CHECK:         llvm.return
tt.func private @f64_16_rows(%a: tensor<32x8xf64, #a64>, %b: tensor<8x16xf64, #b64>, %c: tensor<32x16xf64, #mma64>) -> tensor<32x16xf64, #mma64> {
  %d = tt.dot %a, %b, %c : tensor<32x8xf64, #a64> * tensor<8x16xf64, #b64> -> tensor<32x16xf64, #mma64>
  tt.return %d : tensor<32x16xf64, #mma64>
}

// Lanes that hold replicas of summands take zeros, for both operands: lanes with bit 1 set.
// CHECK-LABEL: llvm.func internal @four_summands(
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i32) : i32
// CHECK-NEXT:    %[[BIT:.*]] = llvm.and %{{.*}}, %[[TWO]] : i32
// CHECK:         %[[FIRST:.*]] = llvm.icmp "eq" %[[BIT]]
// CHECK:         %[[A:.*]] = llvm.select %[[FIRST]], {{.*}} : i1, vector<2xf16>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"(%[[A]],
tt.func private @four_summands(%a: tensor<32x4xf16, #a>, %b: tensor<4x16xf16, #b>, %c: tensor<32x16xf32, #mma>) -> tensor<32x16xf32, #mma> {
  %d = tt.dot %a, %b, %c : tensor<32x4xf16, #a> * tensor<4x16xf16, #b> -> tensor<32x16xf32, #mma>
  tt.return %d : tensor<32x16xf32, #mma>
}

// Each warp has matrices of its own: two of 16x8 here, one tile each.
// CHECK-LABEL: llvm.func internal @batches(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"
// CHECK-NOT:     call_intrinsic
// CHECK:         llvm.return
tt.func private @batches(%a: tensor<8x16x16xf16, #ba>, %b: tensor<8x16x8xf16, #bb>, %c: tensor<8x16x8xf32, #batched>) -> tensor<8x16x8xf32, #batched> {
  %d = tt.dot %a, %b, %c : tensor<8x16x16xf16, #ba> * tensor<8x16x8xf16, #bb> -> tensor<8x16x8xf32, #batched>
  tt.return %d : tensor<8x16x8xf32, #batched>
}

// Without a matrix instruction: in the order of the summands.
// CHECK-LABEL: llvm.func internal @f32(
// CHECK:         %[[S:.*]] = llvm.intr.fma(%arg0, %arg4, %arg8) : (f32, f32, f32) -> f32
// CHECK-COUNT-3: llvm.intr.fma(
// CHECK:         llvm.intr.fma(%{{.*}}, %{{.*}}, %[[S]])
// CHECK-COUNT-3: llvm.intr.fma(
// CHECK-NOT:     llvm.intr.fma(
tt.func private @f32(%a: tensor<32x2xf32, #fa>, %b: tensor<2x16xf32, #fb>, %c: tensor<32x16xf32, #blocked>) -> tensor<32x16xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<32x2xf32, #fa> * tensor<2x16xf32, #fb> -> tensor<32x16xf32, #blocked>
  tt.return %d : tensor<32x16xf32, #blocked>
}

// Operands are widened to the type of the sums.
// CHECK-LABEL: llvm.func internal @i8_in_threads(
// CHECK:         %[[A:.*]] = llvm.sext %arg0 : i8 to i32
// CHECK:         %[[P:.*]] = llvm.mul %[[A]], %{{.*}} : i32
// CHECK:         llvm.add %arg8, %[[P]] : i32
tt.func private @i8_in_threads(%a: tensor<32x2xi8, #fa>, %b: tensor<2x16xi8, #fb>, %c: tensor<32x16xi32, #blocked>) -> tensor<32x16xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<32x2xi8, #fa> * tensor<2x16xi8, #fb> -> tensor<32x16xi32, #blocked>
  tt.return %d : tensor<32x16xi32, #blocked>
}
}
