// RUN: %ttopt %s --triton-rewrite-tensor-descriptor-to-pointer -split-input-file -verify-diagnostics

tt.func public @minimum(%d: !tt.tensordesc<32x64xf8E5M2>, %x: tensor<32x64xf8E5M2>) {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'min' of 'f8E5M2' cannot be done through pointers}}
  tt.descriptor_reduce min, %d[%c0, %c0], %x : !tt.tensordesc<32x64xf8E5M2>, tensor<32x64xf8E5M2>
  tt.return
}

// -----

tt.func public @count(%d: !tt.tensordesc<32x64xi32>, %x: tensor<32x64xi32>) {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'inc' of 'i32' cannot be done through pointers}}
  tt.descriptor_reduce inc, %d[%c0, %c0], %x : !tt.tensordesc<32x64xi32>, tensor<32x64xi32>
  tt.return
}

// -----

tt.func public @opaque(%d: !tt.tensordesc<32x64xf32>) {
  // expected-error @below {{'builtin.unrealized_conversion_cast' of tensor descriptors cannot become one of pointers}}
  %0 = builtin.unrealized_conversion_cast %d : !tt.tensordesc<32x64xf32> to !tt.ptr<f32>
  tt.return
}

// -----

tt.func public @unknown() {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{'builtin.unrealized_conversion_cast' of tensor descriptors cannot become one of pointers}}
  %d = builtin.unrealized_conversion_cast to !tt.tensordesc<32x64xf32>
  %0 = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<32x64xf32> -> tensor<32x64xf32>
  tt.return
}
