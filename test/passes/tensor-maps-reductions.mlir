// RUN: %ttopt %s --triton-rewrite-tensor-descriptor-to-pointer='target=cuda:90 num-ctas=2' | FileCheck %s

// Each CTA of a cluster would make the tensor map of a descriptor that is used once, so that pointers are faster; but
// minima and maxima of floats through pointers are loops of comparing exchanges.
module {
  // CHECK-LABEL: @maximum
  // CHECK: tt.descriptor_reduce max
  // CHECK-NOT: tt.atomic_rmw
  tt.func public @maximum(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i32
    %s = arith.constant 64 : i64
    %v = arith.constant dense<1.0> : tensor<32x64xf16>
    %d = tt.make_tensor_descriptor %x, [%m, %c64], [%s, %c1] : <f16>, <32x64xf16>
    tt.descriptor_reduce max, %d[%c0, %c0], %v : !tt.tensordesc<32x64xf16>, tensor<32x64xf16>
    tt.return
  }

  // CHECK-LABEL: @sum
  // CHECK-NOT: tt.descriptor_reduce
  // CHECK: tt.atomic_rmw fadd
  tt.func public @sum(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %m: i32 {tt.divisibility = 16 : i32}) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i64
    %c64 = arith.constant 64 : i32
    %s = arith.constant 64 : i64
    %v = arith.constant dense<1.0> : tensor<32x64xf16>
    %d = tt.make_tensor_descriptor %x, [%m, %c64], [%s, %c1] : <f16>, <32x64xf16>
    tt.descriptor_reduce add, %d[%c0, %c0], %v : !tt.tensordesc<32x64xf16>, tensor<32x64xf16>
    tt.return
  }
}
