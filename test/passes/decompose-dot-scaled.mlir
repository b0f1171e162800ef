// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:80 --tritongpu-accelerate-matmul | FileCheck %s

// Exponents become bf16, each at the place of its elements: moved, then
// repeated. All bits set are NaN, and the least exponent has no leading one.
// CHECK-LABEL: @mxfp8
// CHECK: %[[A:.+]] = tt.fp_to_fp %arg0 : tensor<64x64xf8E4M3FN, #[[L:.+]]> -> tensor<64x64xbf16, #[[L]]>
// CHECK: %[[S:.+]] = ttg.convert_layout %arg1 : tensor<64x2xi8, {{.*}}> -> tensor<64x2xi8, #ttg.slice<{dim = 2
// CHECK: %[[WIDE:.+]] = arith.extui %[[S]]
// CHECK: %[[SHIFTED:.+]] = arith.shli %[[WIDE]]
// CHECK: %[[ZERO:.+]] = arith.constant dense<0>
// CHECK: %[[LEAST:.+]] = arith.cmpi eq, %[[S]], %[[ZERO]]
// CHECK: %[[HALF:.+]] = arith.constant dense<64>
// CHECK: %[[FINITE:.+]] = arith.select %[[LEAST]], %[[HALF]], %[[SHIFTED]]
// CHECK: %[[ONES:.+]] = arith.constant dense<-1>
// CHECK: %[[IS_NAN:.+]] = arith.cmpi eq, %[[S]], %[[ONES]]
// CHECK: %[[NAN:.+]] = arith.constant dense<32767>
// CHECK: %[[BITS:.+]] = arith.select %[[IS_NAN]], %[[NAN]], %[[FINITE]]
// CHECK: %[[SCALE:.+]] = tt.bitcast %[[BITS]] : {{.*}} -> tensor<64x2xbf16
// CHECK: %[[EXPANDED:.+]] = tt.expand_dims %[[SCALE]] {axis = 2 : i32} : {{.*}} -> tensor<64x2x1xbf16
// CHECK: %[[REPEATED:.+]] = tt.broadcast %[[EXPANDED]] : {{.*}} -> tensor<64x2x32xbf16
// CHECK: %[[FLAT:.+]] = tt.reshape %[[REPEATED]] : {{.*}} -> tensor<64x64xbf16, #[[L]]>
// CHECK: arith.mulf %[[A]], %[[FLAT]]
// The right operand's scales have K last too.
// CHECK: tt.trans %arg3 {order = array<i32: 1, 0>} : tensor<64x2xi8, {{.*}}> -> tensor<2x64xi8
// CHECK: tt.expand_dims {{.*}} {axis = 1 : i32} : {{.*}} -> tensor<2x1x64xbf16
// CHECK: tt.broadcast {{.*}} -> tensor<2x32x64xbf16
// CHECK: tt.reshape {{.*}} -> tensor<64x64xbf16
// CHECK: tt.dot {{.*}} : tensor<64x64xbf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<64x64xbf16
tt.func @mxfp8(%a: tensor<64x64xf8E4M3FN>, %sa: tensor<64x2xi8>, %b: tensor<64x64xf8E5M2>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e5m2 {fastMath = false} : tensor<64x64xf8E4M3FN>, tensor<64x2xi8> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Pairs of fp4 are unpacked; an operand without scales stays as it is; fast
// math does without NaN.
// CHECK-LABEL: @mxfp4
// CHECK: ttg.fp4_to_fp %arg1 {axis = 0 : i32} : tensor<32x64xi8, {{.*}}> -> tensor<64x64xbf16
// CHECK-NOT: 32767
// CHECK: arith.mulf
// CHECK-NOT: arith.mulf
// CHECK: tt.dot {{.*}} : tensor<64x64xbf16
tt.func @mxfp4(%a: tensor<64x64xbf16>, %b: tensor<32x64xi8>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a, %b scale %sb, %c lhs = bf16 rhs = e2m1 {fastMath = true} : tensor<64x64xbf16> * tensor<32x64xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Packed along M and N.
// CHECK-LABEL: @other_packing
// CHECK: ttg.fp4_to_fp %arg0 {axis = 0 : i32} : tensor<32x64xi8, {{.*}}> -> tensor<64x64xbf16
// CHECK: ttg.fp4_to_fp %arg2 {axis = 1 : i32} : tensor<64x32xi8, {{.*}}> -> tensor<64x64xbf16
tt.func @other_packing(%a: tensor<32x64xi8>, %sa: tensor<64x2xi8>, %b: tensor<64x32xi8>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e2m1 {fastMath = false, lhs_k_pack = false, rhs_k_pack = false} : tensor<32x64xi8>, tensor<64x2xi8> * tensor<64x32xi8>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// f16 has not the range of the scales: multiplied as f32.
// CHECK-LABEL: @half
// CHECK: arith.mulf {{.*}} : tensor<64x64xf32
// CHECK: arith.truncf {{.*}} to tensor<64x64xf16
// CHECK: tt.dot {{.*}} : tensor<64x64xf16
tt.func @half(%a: tensor<64x64xf16>, %b: tensor<64x64xf8E5M2>, %sb: tensor<64x2xi8>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a, %b scale %sb, %c lhs = fp16 rhs = e5m2 {fastMath = false} : tensor<64x64xf16> * tensor<64x64xf8E5M2>, tensor<64x2xi8> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// One scale of fp8 for 16 elements.
// CHECK-LABEL: @nvfp4
// CHECK: tt.fp_to_fp {{.*}} : tensor<64x4xf8E4M3FN, {{.*}}> -> tensor<64x4xbf16
// CHECK: tt.broadcast {{.*}} -> tensor<64x4x16xbf16
tt.func @nvfp4(%a: tensor<64x32xi8>, %sa: tensor<64x4xf8E4M3FN>, %b: tensor<32x64xi8>, %sb: tensor<64x4xf8E4M3FN>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<64x32xi8>, tensor<64x4xf8E4M3FN> * tensor<32x64xi8>, tensor<64x4xf8E4M3FN> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}
