// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:80/cuda:90/ %s | %ttopt --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefix=SM90

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @integers(
// CHECK-COUNT-2: llvm.trunc %{{.*}} : i32 to i8
// CHECK-COUNT-2: llvm.zext %{{.*}} : i32 to i64
// CHECK-COUNT-2: llvm.sext %{{.*}} : i32 to i64
// CHECK-COUNT-2: llvm.uitofp %{{.*}} : i32 to f32
// CHECK-COUNT-2: llvm.sitofp %{{.*}} : i32 to f16
tt.func private @integers(%i: tensor<64xi32, #b>) -> (tensor<64xi8, #b>, tensor<64xi64, #b>, tensor<64xi64, #b>, tensor<64xf32, #b>, tensor<64xf16, #b>) {
  %0 = arith.trunci %i : tensor<64xi32, #b> to tensor<64xi8, #b>
  %1 = arith.extui %i : tensor<64xi32, #b> to tensor<64xi64, #b>
  %2 = arith.extsi %i : tensor<64xi32, #b> to tensor<64xi64, #b>
  %3 = arith.uitofp %i : tensor<64xi32, #b> to tensor<64xf32, #b>
  %4 = arith.sitofp %i : tensor<64xi32, #b> to tensor<64xf16, #b>
  tt.return %0, %1, %2, %3, %4 : tensor<64xi8, #b>, tensor<64xi64, #b>, tensor<64xi64, #b>, tensor<64xf32, #b>, tensor<64xf16, #b>
}

// Rounding to the nearest even is LLVM's; rounding towards zero is asked for.
// CHECK-LABEL: llvm.func internal @floats(
// CHECK:         llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK:         llvm.inline_asm "cvt.rz.f16.f32 $0, $1;", "=h,f" %{{.*}} : (f32) -> i16
// CHECK:         llvm.call_intrinsic "llvm.nvvm.f2bf16.rz"(%{{.*}}) : (f32) -> bf16
// CHECK:         llvm.fptrunc %{{.*}} : f64 to f16
// CHECK:         llvm.call_intrinsic "llvm.nvvm.d2f.rz"(%{{.*}}) : (f64) -> f32
tt.func private @floats(%f: tensor<64xf32, #b>, %d: tensor<64xf64, #b>) -> (tensor<64xbf16, #b>, tensor<64xf16, #b>, tensor<64xbf16, #b>, tensor<64xf16, #b>, tensor<64xf32, #b>) {
  %0 = arith.truncf %f : tensor<64xf32, #b> to tensor<64xbf16, #b>
  %1 = tt.fp_to_fp %f, rounding = rtz : tensor<64xf32, #b> -> tensor<64xf16, #b>
  %2 = tt.fp_to_fp %f, rounding = rtz : tensor<64xf32, #b> -> tensor<64xbf16, #b>
  %3 = arith.truncf %d : tensor<64xf64, #b> to tensor<64xf16, #b>
  %4 = tt.fp_to_fp %d, rounding = rtz : tensor<64xf64, #b> -> tensor<64xf32, #b>
  tt.return %0, %1, %2, %3, %4 : tensor<64xbf16, #b>, tensor<64xf16, #b>, tensor<64xbf16, #b>, tensor<64xf16, #b>, tensor<64xf32, #b>
}

// Between the two halves through single precision, which holds both.
// CHECK-LABEL: llvm.func internal @halves(
// CHECK-SAME:    %[[H0:[^:]*]]: bf16
// CHECK:         %[[WIDE:.*]] = llvm.fpext %[[H0]] : bf16 to f32
// CHECK:         llvm.fptrunc %[[WIDE]] : f32 to f16
tt.func private @halves(%h: tensor<64xbf16, #b>) -> tensor<64xf16, #b> {
  %0 = tt.fp_to_fp %h, rounding = rtne : tensor<64xbf16, #b> -> tensor<64xf16, #b>
  tt.return %0 : tensor<64xf16, #b>
}

// sm_80 has no conversions to 8 bits: integer arithmetic. sm_90 converts pairs,
// the first operand to the upper byte.
// CHECK-LABEL: llvm.func internal @to_fp8(
// CHECK-NOT:     llvm.nvvm
// CHECK:         %[[LARGEST:.*]] = llvm.mlir.constant(126 : i32)
// CHECK:         llvm.intr.umin(%{{.*}}, %[[LARGEST]])
// CHECK:         llvm.trunc %{{.*}} : i32 to i8
// CHECK:         llvm.return
// SM90-LABEL: llvm.func internal @to_fp8(
// SM90-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32)
// SM90:         %[[MADE:.*]] = llvm.inline_asm "cvt.rn.satfinite.e4m3x2.f32 $1, $3, $2; cvt.u32.u16 $0, $1;", "=r,=h,f,f" %[[X0]], %[[X1]] :
// SM90:         %[[WORD:.*]] = llvm.extractvalue %[[MADE]][0]
// SM90:         %[[BYTES:.*]] = llvm.bitcast %[[WORD]] : i32 to vector<4xi8>
// SM90:         %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// SM90:         llvm.extractelement %[[BYTES]][%[[ZERO]] : i32]
// SM90-NOT:     llvm.inline_asm
// SM90:         llvm.return
tt.func private @to_fp8(%f: tensor<64xf32, #b>) -> tensor<64xf8E4M3FN, #b> {
  %0 = tt.fp_to_fp %f, rounding = rtne : tensor<64xf32, #b> -> tensor<64xf8E4M3FN, #b>
  tt.return %0 : tensor<64xf8E4M3FN, #b>
}

// The halves that the conversions make have one use, the register that holds both: ptxas 12.8 forgets uses of a half that
// stand before `mov.b32 r, {half, _}`, and LLVM packs bytes that way.
// SM90-LABEL: llvm.func internal @four_to_fp8(
// SM90-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32, %[[X2:[^:]*]]: f32, %[[X3:[^:]*]]: f32)
// SM90:         llvm.inline_asm "cvt.rn.satfinite.e5m2x2.f32 $1, $4, $3; cvt.rn.satfinite.e5m2x2.f32 $2, $6, $5; mov.b32 $0, {$1, $2};", "=r,=h,=h,f,f,f,f" %[[X0]], %[[X1]], %[[X2]], %[[X3]] :
// SM90-NOT:     llvm.inline_asm
// SM90:         llvm.return
tt.func private @four_to_fp8(%f: tensor<128xf32, #b>) -> tensor<128xf8E5M2, #b> {
  %0 = tt.fp_to_fp %f, rounding = rtne : tensor<128xf32, #b> -> tensor<128xf8E5M2, #b>
  tt.return %0 : tensor<128xf8E5M2, #b>
}

// CHECK-LABEL: llvm.func internal @from_fp8(
// CHECK-NOT:     llvm.nvvm
// CHECK:         llvm.zext %{{.*}} : i8 to i32
// CHECK:         llvm.fptrunc %{{.*}} : f32 to f16
// SM90-LABEL: llvm.func internal @from_fp8(
// SM90:         llvm.call_intrinsic "llvm.nvvm.e5m2x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
// SM90-NOT:     llvm.call_intrinsic
// SM90:         llvm.return
tt.func private @from_fp8(%q: tensor<64xf8E5M2, #b>) -> tensor<64xf16, #b> {
  %0 = tt.fp_to_fp %q : tensor<64xf8E5M2, #b> -> tensor<64xf16, #b>
  tt.return %0 : tensor<64xf16, #b>
}

// A double is rounded to odd first, so that rounding twice is rounding once.
// CHECK-LABEL: llvm.func internal @double_to_fp8(
// CHECK:         %[[RZ:.*]] = llvm.call_intrinsic "llvm.nvvm.d2f.rz"(%[[D:.*]]) : (f64) -> f32
// CHECK:         %[[BACK:.*]] = llvm.fpext %[[RZ]] : f32 to f64
// CHECK:         %[[LOST:.*]] = llvm.fcmp "one" %[[BACK]], %[[D]] : f64
// CHECK:         %[[STICKY:.*]] = llvm.zext %[[LOST]] : i1 to i32
// CHECK:         llvm.or %{{.*}}, %[[STICKY]] : i32
tt.func private @double_to_fp8(%d: tensor<64xf64, #b>) -> tensor<64xf8E5M2, #b> {
  %0 = tt.fp_to_fp %d, rounding = rtne : tensor<64xf64, #b> -> tensor<64xf8E5M2, #b>
  tt.return %0 : tensor<64xf8E5M2, #b>
}

// Bytes become mantissas. As halves two share a register, and what is too much is taken off both; as bf16 each is the
// mantissa of a single first. A byte without another one is converted.
// CHECK-LABEL: llvm.func internal @bytes(
// CHECK:         %[[BOTH:.*]] = llvm.or disjoint %{{.*}}, %{{.*}} : i32
// CHECK:         llvm.xor %[[BOTH]], %{{.*}} : i32
// CHECK:         llvm.fsub %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK-COUNT-2: llvm.fptrunc %{{.*}} : f32 to bf16
// CHECK:         llvm.sitofp %{{.*}} : i8 to f16
tt.func private @bytes(%i: tensor<64xi8, #b>, %one: i8) -> (tensor<64xf16, #b>, tensor<64xbf16, #b>, f16) {
  %0 = arith.sitofp %i : tensor<64xi8, #b> to tensor<64xf16, #b>
  %1 = arith.uitofp %i : tensor<64xi8, #b> to tensor<64xbf16, #b>
  %2 = arith.sitofp %one : i8 to f16
  tt.return %0, %1, %2 : tensor<64xf16, #b>, tensor<64xbf16, #b>, f16
}
}
