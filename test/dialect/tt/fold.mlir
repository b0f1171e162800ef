// Folders: constants, and operations that give a value that exists already.
//
// RUN: %ttopt %s -split-input-file --canonicalize | FileCheck %s

// CHECK-LABEL: tt.func @splat_const(
// CHECK: [[V0:%.*]] = arith.constant dense<2.000000e+00> : tensor<4xf32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xf32>
tt.func @splat_const() -> tensor<4xf32> {
  %c = arith.constant 2.0 : f32
  %0 = tt.splat %c : f32 -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @splat_bf16_const(
// CHECK: [[V0:%.*]] = arith.constant dense<2.000000e+00> : tensor<4xbf16>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xbf16>
tt.func @splat_bf16_const() -> tensor<4xbf16> {
  %c = arith.constant 2.0 : bf16
  %0 = tt.splat %c : bf16 -> tensor<4xbf16>
  tt.return %0 : tensor<4xbf16>
}

// CHECK-LABEL: tt.func @expand_const(
// CHECK: [[V0:%.*]] = arith.constant dense<3> : tensor<1x4xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<1x4xi32>
tt.func @expand_const() -> tensor<1x4xi32> {
  %s = arith.constant dense<3> : tensor<4xi32>
  %0 = tt.expand_dims %s {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  tt.return %0 : tensor<1x4xi32>
}

// CHECK-LABEL: tt.func @expand_nonsplat_const(
// CHECK: [[V0:%.*]] = arith.constant dense<{{\[\[}}1, 2, 3, 4]]> : tensor<1x4xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<1x4xi32>
tt.func @expand_nonsplat_const() -> tensor<1x4xi32> {
  %s = arith.constant dense<[1,2,3,4]> : tensor<4xi32>
  %0 = tt.expand_dims %s {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  tt.return %0 : tensor<1x4xi32>
}

// CHECK-LABEL: tt.func @reshape_identity(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<8xf32>
tt.func @reshape_identity(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tt.reshape %x : tensor<8xf32> -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: tt.func @reshape_identity_reorder(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<8xf32>
tt.func @reshape_identity_reorder(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: tt.func @reshape_identity_reorder_effi(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder efficient_layout : tensor<8xf32> -> tensor<8xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<8xf32>
tt.func @reshape_identity_reorder_effi(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = tt.reshape %x allow_reorder efficient_layout : tensor<8xf32> -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: tt.func @reshape_const(
// CHECK: [[V0:%.*]] = arith.constant dense<1> : tensor<4x2xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4x2xi32>
tt.func @reshape_const() -> tensor<4x2xi32> {
  %s = arith.constant dense<1> : tensor<8xi32>
  %0 = tt.reshape %s : tensor<8xi32> -> tensor<4x2xi32>
  tt.return %0 : tensor<4x2xi32>
}

// CHECK-LABEL: tt.func @reshape_const_nonsplat(
// CHECK: [[V0:%.*]] = arith.constant dense<{{\[\[}}1, 2], [3, 4]]> : tensor<2x2xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<2x2xi32>
tt.func @reshape_const_nonsplat() -> tensor<2x2xi32> {
  %s = arith.constant dense<[1,2,3,4]> : tensor<4xi32>
  %0 = tt.reshape %s : tensor<4xi32> -> tensor<2x2xi32>
  tt.return %0 : tensor<2x2xi32>
}

// CHECK-LABEL: tt.func @broadcast_const(
// CHECK: [[V0:%.*]] = arith.constant dense<1.000000e+00> : tensor<4x8xf32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4x8xf32>
tt.func @broadcast_const() -> tensor<4x8xf32> {
  %s = arith.constant dense<1.0> : tensor<4x1xf32>
  %0 = tt.broadcast %s : tensor<4x1xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @broadcast_const_nonsplat(
// CHECK: [[V0:%.*]] = arith.constant dense<{{\[\[}}1], [2]]> : tensor<2x1xi32>
// CHECK-NEXT: [[V1:%.*]] = tt.broadcast [[V0]] : tensor<2x1xi32> -> tensor<2x2xi32>
// CHECK-NEXT: tt.return [[V1]] : tensor<2x2xi32>
tt.func @broadcast_const_nonsplat() -> tensor<2x2xi32> {
  %s = arith.constant dense<[[1],[2]]> : tensor<2x1xi32>
  %0 = tt.broadcast %s : tensor<2x1xi32> -> tensor<2x2xi32>
  tt.return %0 : tensor<2x2xi32>
}

// CHECK-LABEL: tt.func @broadcast_identity(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<4x8xf32>
tt.func @broadcast_identity(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tt.broadcast %x : tensor<4x8xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @trans_identity(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<4x8xf32>
tt.func @trans_identity(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %0 = tt.trans %x {order = array<i32: 0, 1>} : tensor<4x8xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @trans_trans_id(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<4x8xf32>
tt.func @trans_trans_id(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  %s = tt.trans %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %0 = tt.trans %s {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @trans_trans(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.trans [[ARG0]] {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<8x2x4xf32>
tt.func @trans_trans(%x: tensor<2x4x8xf32>) -> tensor<8x2x4xf32> {
  %s = tt.trans %x {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %0 = tt.trans %s {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  tt.return %0 : tensor<8x2x4xf32>
}

// CHECK-LABEL: tt.func @trans_const(
// CHECK: [[V0:%.*]] = arith.constant dense<1.000000e+00> : tensor<8x4xf32>
// CHECK-NEXT: tt.return [[V0]] : tensor<8x4xf32>
tt.func @trans_const() -> tensor<8x4xf32> {
  %s = arith.constant dense<1.0> : tensor<4x8xf32>
  %0 = tt.trans %s {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: tt.func @addptr_0(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : !tt.ptr<f32>
tt.func @addptr_0(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %c = arith.constant 0 : i32
  %0 = tt.addptr %p, %c : !tt.ptr<f32>, i32
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @addptr_0_tensor(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<4x!tt.ptr<f32>>
tt.func @addptr_0_tensor(%p: tensor<4x!tt.ptr<f32>>) -> tensor<4x!tt.ptr<f32>> {
  %c = arith.constant dense<0> : tensor<4xi32>
  %0 = tt.addptr %p, %c : tensor<4x!tt.ptr<f32>>, tensor<4xi32>
  tt.return %0 : tensor<4x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func @bitcast_same(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : !tt.ptr<f32>
tt.func @bitcast_same(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %0 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<f32>
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @bitcast_bitcast(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.bitcast [[ARG0]] : i32 -> f32
// CHECK-NEXT: tt.return [[V1]] : f32
tt.func @bitcast_bitcast(%p: i32) -> f32 {
  %1 = tt.bitcast %p : i32 -> f32
  %2 = tt.bitcast %1 : f32 -> i32
  %0 = tt.bitcast %2 : i32 -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @bitcast_bitcast_back(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : i32
tt.func @bitcast_bitcast_back(%p: i32) -> i32 {
  %1 = tt.bitcast %p : i32 -> f32
  %0 = tt.bitcast %1 : f32 -> i32
  tt.return %0 : i32
}

// CHECK-LABEL: tt.func @bitcast_const(
// CHECK: [[V0:%.*]] = arith.constant 1065353216 : i32
// CHECK-NEXT: tt.return [[V0]] : i32
tt.func @bitcast_const() -> i32 {
  %1 = arith.constant 1.0 : f32
  %0 = tt.bitcast %1 : f32 -> i32
  tt.return %0 : i32
}

// CHECK-LABEL: tt.func @bitcast_const_tensor(
// CHECK: [[V0:%.*]] = arith.constant dense<1065353216> : tensor<4xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xi32>
tt.func @bitcast_const_tensor() -> tensor<4xi32> {
  %1 = arith.constant dense<1.0> : tensor<4xf32>
  %0 = tt.bitcast %1 : tensor<4xf32> -> tensor<4xi32>
  tt.return %0 : tensor<4xi32>
}

// CHECK-LABEL: tt.func @ptr_to_int_int_to_ptr(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : i64
tt.func @ptr_to_int_int_to_ptr(%p: i64) -> i64 {
  %1 = tt.int_to_ptr %p : i64 -> !tt.ptr<f32>
  %0 = tt.ptr_to_int %1 : !tt.ptr<f32> -> i64
  tt.return %0 : i64
}

// CHECK-LABEL: tt.func @int_to_ptr_ptr_to_int_const(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant 2 : i64
// CHECK-NEXT: [[V2:%.*]] = tt.addptr [[ARG0]], [[V1]] : !tt.ptr<f32>, i64
// CHECK-NEXT: tt.return [[V2]] : !tt.ptr<f32>
tt.func @int_to_ptr_ptr_to_int_const(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %c = arith.constant 8 : i64
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %2 = arith.addi %1, %c : i64
  %0 = tt.int_to_ptr %2 : i64 -> !tt.ptr<f32>
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e5m2_rtne_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.250000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f32_f8e5m2_rtne_1_3() -> f8E5M2 {
  %c = arith.constant 1.3 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e5m2_rtne_1_0e10(
// CHECK: [[V0:%.*]] = arith.constant 1.000000e+10 : f32
// CHECK-NEXT: [[V1:%.*]] = tt.fp_to_fp [[V0]], rounding = rtne : f32 -> f8E5M2
// CHECK-NEXT: tt.return [[V1]] : f8E5M2
tt.func @fp_to_fp_f32_f8e5m2_rtne_1_0e10() -> f8E5M2 {
  %c = arith.constant 1.0e10 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e5m2_rtne_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f32_f8e5m2_rtne_minus_zero() -> f8E5M2 {
  %c = arith.constant -0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e5m2_rtne_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f32_f8e5m2_rtne_0_0() -> f8E5M2 {
  %c = arith.constant 0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e4m3fn_rtz_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.250000e+00 : f8E4M3FN
// CHECK-NEXT: tt.return [[V0]] : f8E4M3FN
tt.func @fp_to_fp_f32_f8e4m3fn_rtz_1_3() -> f8E4M3FN {
  %c = arith.constant 1.3 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> f8E4M3FN
  tt.return %0 : f8E4M3FN
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e4m3fn_rtz_1_0e10(
// CHECK: [[V0:%.*]] = arith.constant 1.000000e+10 : f32
// CHECK-NEXT: [[V1:%.*]] = tt.fp_to_fp [[V0]], rounding = rtz : f32 -> f8E4M3FN
// CHECK-NEXT: tt.return [[V1]] : f8E4M3FN
tt.func @fp_to_fp_f32_f8e4m3fn_rtz_1_0e10() -> f8E4M3FN {
  %c = arith.constant 1.0e10 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> f8E4M3FN
  tt.return %0 : f8E4M3FN
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e4m3fn_rtz_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : f8E4M3FN
// CHECK-NEXT: tt.return [[V0]] : f8E4M3FN
tt.func @fp_to_fp_f32_f8e4m3fn_rtz_minus_zero() -> f8E4M3FN {
  %c = arith.constant -0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> f8E4M3FN
  tt.return %0 : f8E4M3FN
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f8e4m3fn_rtz_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : f8E4M3FN
// CHECK-NEXT: tt.return [[V0]] : f8E4M3FN
tt.func @fp_to_fp_f32_f8e4m3fn_rtz_0_0() -> f8E4M3FN {
  %c = arith.constant 0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> f8E4M3FN
  tt.return %0 : f8E4M3FN
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f16_rtne_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.299800e+00 : f16
// CHECK-NEXT: tt.return [[V0]] : f16
tt.func @fp_to_fp_f32_f16_rtne_1_3() -> f16 {
  %c = arith.constant 1.3 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f16
  tt.return %0 : f16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f16_rtne_1_0e10(
// CHECK: [[V0:%.*]] = arith.constant 1.000000e+10 : f32
// CHECK-NEXT: [[V1:%.*]] = tt.fp_to_fp [[V0]], rounding = rtne : f32 -> f16
// CHECK-NEXT: tt.return [[V1]] : f16
tt.func @fp_to_fp_f32_f16_rtne_1_0e10() -> f16 {
  %c = arith.constant 1.0e10 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f16
  tt.return %0 : f16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f16_rtne_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : f16
// CHECK-NEXT: tt.return [[V0]] : f16
tt.func @fp_to_fp_f32_f16_rtne_minus_zero() -> f16 {
  %c = arith.constant -0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f16
  tt.return %0 : f16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_f16_rtne_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : f16
// CHECK-NEXT: tt.return [[V0]] : f16
tt.func @fp_to_fp_f32_f16_rtne_0_0() -> f16 {
  %c = arith.constant 0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtne : f32 -> f16
  tt.return %0 : f16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_bf16_rtz_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.296880e+00 : bf16
// CHECK-NEXT: tt.return [[V0]] : bf16
tt.func @fp_to_fp_f32_bf16_rtz_1_3() -> bf16 {
  %c = arith.constant 1.3 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> bf16
  tt.return %0 : bf16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_bf16_rtz_1_0e10(
// CHECK: [[V0:%.*]] = arith.constant 9.999220e+09 : bf16
// CHECK-NEXT: tt.return [[V0]] : bf16
tt.func @fp_to_fp_f32_bf16_rtz_1_0e10() -> bf16 {
  %c = arith.constant 1.0e10 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> bf16
  tt.return %0 : bf16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_bf16_rtz_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : bf16
// CHECK-NEXT: tt.return [[V0]] : bf16
tt.func @fp_to_fp_f32_bf16_rtz_minus_zero() -> bf16 {
  %c = arith.constant -0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> bf16
  tt.return %0 : bf16
}

// CHECK-LABEL: tt.func @fp_to_fp_f32_bf16_rtz_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : bf16
// CHECK-NEXT: tt.return [[V0]] : bf16
tt.func @fp_to_fp_f32_bf16_rtz_0_0() -> bf16 {
  %c = arith.constant 0.0 : f32
  %0 = tt.fp_to_fp %c, rounding = rtz : f32 -> bf16
  tt.return %0 : bf16
}

// CHECK-LABEL: tt.func @fp_to_fp_f8e5m2_f32_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.250000e+00 : f32
// CHECK-NEXT: tt.return [[V0]] : f32
tt.func @fp_to_fp_f8e5m2_f32_1_3() -> f32 {
  %c = arith.constant 1.3 : f8E5M2
  %0 = tt.fp_to_fp %c : f8E5M2 -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @fp_to_fp_f8e5m2_f32_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : f32
// CHECK-NEXT: tt.return [[V0]] : f32
tt.func @fp_to_fp_f8e5m2_f32_minus_zero() -> f32 {
  %c = arith.constant -0.0 : f8E5M2
  %0 = tt.fp_to_fp %c : f8E5M2 -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @fp_to_fp_f8e5m2_f32_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : f32
// CHECK-NEXT: tt.return [[V0]] : f32
tt.func @fp_to_fp_f8e5m2_f32_0_0() -> f32 {
  %c = arith.constant 0.0 : f8E5M2
  %0 = tt.fp_to_fp %c : f8E5M2 -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @fp_to_fp_f16_f8e5m2_rtz_1_3(
// CHECK: [[V0:%.*]] = arith.constant 1.250000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f16_f8e5m2_rtz_1_3() -> f8E5M2 {
  %c = arith.constant 1.3 : f16
  %0 = tt.fp_to_fp %c, rounding = rtz : f16 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f16_f8e5m2_rtz_1_0e10(
// CHECK: [[V0:%.*]] = arith.constant 0x7C00 : f16
// CHECK-NEXT: [[V1:%.*]] = tt.fp_to_fp [[V0]], rounding = rtz : f16 -> f8E5M2
// CHECK-NEXT: tt.return [[V1]] : f8E5M2
tt.func @fp_to_fp_f16_f8e5m2_rtz_1_0e10() -> f8E5M2 {
  %c = arith.constant 1.0e10 : f16
  %0 = tt.fp_to_fp %c, rounding = rtz : f16 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f16_f8e5m2_rtz_minus_zero(
// CHECK: [[V0:%.*]] = arith.constant -0.000000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f16_f8e5m2_rtz_minus_zero() -> f8E5M2 {
  %c = arith.constant -0.0 : f16
  %0 = tt.fp_to_fp %c, rounding = rtz : f16 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_f16_f8e5m2_rtz_0_0(
// CHECK: [[V0:%.*]] = arith.constant 0.000000e+00 : f8E5M2
// CHECK-NEXT: tt.return [[V0]] : f8E5M2
tt.func @fp_to_fp_f16_f8e5m2_rtz_0_0() -> f8E5M2 {
  %c = arith.constant 0.0 : f16
  %0 = tt.fp_to_fp %c, rounding = rtz : f16 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @fp_to_fp_same(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : f32
tt.func @fp_to_fp_same(%x: f32) -> f32 {
  %0 = tt.fp_to_fp %x : f32 -> f32
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @fp_to_fp_tensor(
// CHECK: [[V0:%.*]] = arith.constant dense<1.500000e+00> : tensor<4xf8E5M2>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xf8E5M2>
tt.func @fp_to_fp_tensor() -> tensor<4xf8E5M2> {
  %c = arith.constant dense<1.5> : tensor<4xf32>
  %0 = tt.fp_to_fp %c, rounding = rtne : tensor<4xf32> -> tensor<4xf8E5M2>
  tt.return %0 : tensor<4xf8E5M2>
}

// CHECK-LABEL: tt.func @fp_to_fp_up_down(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.fp_to_fp [[ARG0]] : f8E5M2 -> f32
// CHECK-NEXT: [[V2:%.*]] = tt.fp_to_fp [[V1]], rounding = rtne : f32 -> f8E5M2
// CHECK-NEXT: tt.return [[V2]] : f8E5M2
tt.func @fp_to_fp_up_down(%x: f8E5M2) -> f8E5M2 {
  %1 = tt.fp_to_fp %x : f8E5M2 -> f32
  %0 = tt.fp_to_fp %1, rounding = rtne : f32 -> f8E5M2
  tt.return %0 : f8E5M2
}

// CHECK-LABEL: tt.func @join_split(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<4x2xf32>
tt.func @join_split(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %1, %2 = tt.split %x : tensor<4x2xf32> -> tensor<4xf32>
  %0 = tt.join %1, %2 : tensor<4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @join_split_swapped(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]], [[V2:%.*]] = tt.split [[ARG0]] : tensor<4x2xf32> -> tensor<4xf32>
// CHECK-NEXT: [[V3:%.*]] = tt.join [[V2]], [[V1]] : tensor<4xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V3]] : tensor<4x2xf32>
tt.func @join_split_swapped(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  %1, %2 = tt.split %x : tensor<4x2xf32> -> tensor<4xf32>
  %0 = tt.join %2, %1 : tensor<4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @split_join(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: tt.return [[ARG1]], [[ARG0]] : tensor<4xf32>, tensor<4xf32>
tt.func @split_join(%x: tensor<4xf32>, %y: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %j = tt.join %x, %y : tensor<4xf32> -> tensor<4x2xf32>
  %1, %2 = tt.split %j : tensor<4x2xf32> -> tensor<4xf32>
  tt.return %2, %1 : tensor<4xf32>, tensor<4xf32>
}

// CHECK-LABEL: tt.func @join_consts(
// CHECK: [[V0:%.*]] = arith.constant dense<1.000000e+00> : tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4x2xf32>
tt.func @join_consts() -> tensor<4x2xf32> {
  %s = arith.constant dense<1.0> : tensor<4xf32>
  %0 = tt.join %s, %s : tensor<4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @split_const(
// CHECK: [[V0:%.*]] = arith.constant dense<1.000000e+00> : tensor<4xf32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xf32>
tt.func @split_const() -> tensor<4xf32> {
  %s = arith.constant dense<1.0> : tensor<4x2xf32>
  %0, %1 = tt.split %s : tensor<4x2xf32> -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @make_range_1(
// CHECK: [[V0:%.*]] = arith.constant dense<3> : tensor<1xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<1xi32>
tt.func @make_range_1() -> tensor<1xi32> {
  %0 = tt.make_range {start = 3 : i32, end = 4 : i32} : tensor<1xi32>
  tt.return %0 : tensor<1xi32>
}

// CHECK-LABEL: tt.func @make_range_1_from_0(
// CHECK: [[V0:%.*]] = arith.constant dense<0> : tensor<1xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<1xi32>
tt.func @make_range_1_from_0() -> tensor<1xi32> {
  %0 = tt.make_range {start = 0 : i32, end = 1 : i32} : tensor<1xi32>
  tt.return %0 : tensor<1xi32>
}

// CHECK-LABEL: tt.func @make_range_4(
// CHECK: [[V0:%.*]] = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32>
// CHECK-NEXT: tt.return [[V0]] : tensor<4xi32>
tt.func @make_range_4() -> tensor<4xi32> {
  %0 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  tt.return %0 : tensor<4xi32>
}

// CHECK-LABEL: tt.func @mulhiui_const(
// CHECK: [[V0:%.*]] = arith.constant 3 : i32
// CHECK-NEXT: tt.return [[V0]] : i32
tt.func @mulhiui_const() -> i32 {
  %a = arith.constant -1 : i32
  %b = arith.constant 4 : i32
  %0 = tt.mulhiui %a, %b : i32
  tt.return %0 : i32
}

// CHECK-LABEL: tt.func @unsplat_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : f32
tt.func @unsplat_splat(%x: f32) -> f32 {
  %s = tt.splat %x : f32 -> tensor<1xf32>
  %0 = tt.unsplat %s : tensor<1xf32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @unsplat_const(
// CHECK: [[V0:%.*]] = arith.constant 1.000000e+00 : f32
// CHECK-NEXT: tt.return [[V0]] : f32
tt.func @unsplat_const() -> f32 {
  %s = arith.constant dense<1.0> : tensor<1xf32>
  %0 = tt.unsplat %s : tensor<1xf32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @int_to_ptr_const_not_divisible(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant 6 : i64
// CHECK-NEXT: [[V2:%.*]] = tt.ptr_to_int [[ARG0]] : !tt.ptr<f32> -> i64
// CHECK-NEXT: [[V3:%.*]] = arith.addi [[V2]], [[V1]] : i64
// CHECK-NEXT: [[V4:%.*]] = tt.int_to_ptr [[V3]] : i64 -> !tt.ptr<f32>
// CHECK-NEXT: tt.return [[V4]] : !tt.ptr<f32>
tt.func @int_to_ptr_const_not_divisible(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %c = arith.constant 6 : i64
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %2 = arith.addi %1, %c : i64
  %0 = tt.int_to_ptr %2 : i64 -> !tt.ptr<f32>
  tt.return %0 : !tt.ptr<f32>
}
