// RUN: %ttopt %s -split-input-file --tritongpu-F32DotTC=emu-tf32=true | FileCheck %s
// RUN: %ttopt %s -split-input-file --tritongpu-F32DotTC | FileCheck %s --check-prefix=PLAIN

// The nearest TF32 of each operand, and what is left; the small products first,
// zero where infinite operands make them NaN.
// CHECK-LABEL: @tf32x3
// CHECK-SAME: (%[[A:.+]]: tensor<16x16xf32>, %[[B:.+]]: tensor<16x16xf32>, %[[C:.+]]: tensor<16x16xf32>)
// CHECK: %[[BITS:.+]] = tt.bitcast %[[A]] : tensor<16x16xf32> -> tensor<16x16xi32>
// CHECK-DAG: %[[HALF:.+]] = arith.constant dense<4096>
// CHECK-DAG: %[[MASK:.+]] = arith.constant dense<-8192>
// CHECK: %[[UP:.+]] = arith.addi %[[BITS]], %[[HALF]]
// CHECK: %[[CUT:.+]] = arith.andi %[[UP]], %[[MASK]]
// CHECK: %[[ROUNDED:.+]] = tt.bitcast %[[CUT]]
// CHECK: %[[NAN:.+]] = arith.cmpf uno, %[[A]], %[[A]]
// CHECK: %[[A0:.+]] = arith.select %[[NAN]], %[[A]], %[[ROUNDED]]
// CHECK: %[[A1:.+]] = arith.subf %[[A]], %[[A0]]
// CHECK: tt.bitcast %[[B]]
// CHECK: %[[B0:.+]] = arith.select
// CHECK: %[[B1:.+]] = arith.subf %[[B]], %[[B0]]
// CHECK: %[[ZERO:.+]] = arith.constant dense<0.000000e+00>
// CHECK: %[[X:.+]] = tt.dot %[[A0]], %[[B1]], %[[ZERO]], inputPrecision = tf32
// CHECK: %[[Y:.+]] = tt.dot %[[A1]], %[[B0]], %[[X]], inputPrecision = tf32
// CHECK: %[[BAD:.+]] = arith.cmpf uno, %[[Y]], %[[Y]]
// CHECK: %[[SMALL:.+]] = arith.select %[[BAD]], %[[ZERO]], %[[Y]]
// CHECK: %[[Z:.+]] = tt.dot %[[A0]], %[[B0]], %[[SMALL]], inputPrecision = tf32
// CHECK: %[[D:.+]] = arith.addf %[[Z]], %[[C]]
// CHECK: tt.return %[[D]]

// Without TF32 in the target the product stays.
// PLAIN-LABEL: @tf32x3
// PLAIN-NEXT: tt.dot {{.*}}, inputPrecision = tf32x3
tt.func @tf32x3(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @bf16x3
// PLAIN-LABEL: @bf16x3
// PLAIN: %[[A0:.+]] = arith.truncf %arg0 : tensor<16x16xf32> to tensor<16x16xbf16>
// PLAIN: %[[BACK:.+]] = arith.extf %[[A0]]
// PLAIN: %[[REST:.+]] = arith.subf %arg0, %[[BACK]]
// PLAIN: %[[A1:.+]] = arith.truncf %[[REST]]
// PLAIN-COUNT-3: tt.dot {{.*}} : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
// PLAIN-NOT: tt.dot
tt.func @bf16x3(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @bf16x6
// CHECK-COUNT-6: tt.dot {{.*}} : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
// CHECK-NOT: tt.dot
// PLAIN-LABEL: @bf16x6
tt.func @bf16x6(%a: tensor<16x16xf32>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = bf16x6 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return %d : tensor<16x16xf32>
}

// -----

// One product is enough for TF32, for f32 as it is, and for narrower operands.
// CHECK-LABEL: @others
// CHECK-COUNT-3: tt.dot
// CHECK-NOT: tt.dot
// PLAIN-LABEL: @others
tt.func @others(%a: tensor<16x16xf32>, %h: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %a, %c, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %e = tt.dot %a, %a, %d : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %f = tt.dot %h, %h, %e, inputPrecision = tf32x3 : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return %f : tensor<16x16xf32>
}
