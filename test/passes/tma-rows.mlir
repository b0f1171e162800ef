// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90 explain=true})' -split-input-file -verify-diagnostics
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90})' -split-input-file | FileCheck %s
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90 all-tensor-maps=true})' -split-input-file | FileCheck %s --check-prefix=ALL
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:100})' -split-input-file | FileCheck %s --check-prefix=ALL

// Long rows for threads to compute with, and rows of 128 bytes for a dot, are copied.
// ALL-NOT: tt.load
// CHECK-LABEL: @stays(
// CHECK: tt.descriptor_gather {{.*}} -> tensor<8x256xf16>
// CHECK: tt.descriptor_gather {{.*}} -> tensor<64x64xf16>
// CHECK: tt.dot
tt.func public @stays(%p: !tt.ptr<f16>, %n: i32, %s: i64, %x: tensor<8xi32>, %y: tensor<64xi32>, %q: tensor<8x256x!tt.ptr<f16>>, %acc: tensor<64x64xf32>, %b: tensor<64x64xf16>) -> tensor<64x64xf32> {
  %c1 = arith.constant 1 : i64
  %long = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x256xf16>
  %short = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x64xf16>
  %0 = tt.descriptor_gather %long[%x, %n] : (!tt.tensordesc<1x256xf16>, tensor<8xi32>, i32) -> tensor<8x256xf16>
  tt.store %q, %0 : tensor<8x256x!tt.ptr<f16>>
  %1 = tt.descriptor_gather %short[%y, %n] : (!tt.tensordesc<1x64xf16>, tensor<64xi32>, i32) -> tensor<64x64xf16>
  %2 = tt.dot %1, %b, %acc, inputPrecision = tf32 : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %2 : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: @pointers(
// CHECK-NOT: tt.make_tensor_descriptor
// ALL-LABEL: @pointers(
// ALL-COUNT-4: tt.make_tensor_descriptor
tt.func public @pointers(%p: !tt.ptr<f16>, %n: i32, %s: i64, %x: tensor<64xi32>, %q: tensor<64x128x!tt.ptr<f16>>, %acc: tensor<64x64xf32>, %b: tensor<128x64xf16>) -> tensor<64x64xf32> {
  %c1 = arith.constant 1 : i64
  // expected-remark @below {{becomes pointers: threads load rows faster than copies of 256 bytes do; those of 512 are faster}}
  %short = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x128xf16>
  // expected-remark @below {{becomes pointers: threads load rows of 256 bytes for a dot faster than copies do; rows of 128 bytes are copied}}
  %long = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x128xf16>
  // expected-remark @below {{becomes pointers: threads load rows that are stored again faster than copies do}}
  %again = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x256xf16>
  // expected-remark @below {{becomes pointers: threads scatter rows faster than copies do}}
  %to = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <1x256xf16>
  %0 = tt.descriptor_gather %short[%x, %n] : (!tt.tensordesc<1x128xf16>, tensor<64xi32>, i32) -> tensor<64x128xf16>
  tt.store %q, %0 : tensor<64x128x!tt.ptr<f16>>
  %1 = tt.descriptor_gather %long[%x, %n] : (!tt.tensordesc<1x128xf16>, tensor<64xi32>, i32) -> tensor<64x128xf16>
  %2 = tt.dot %1, %b, %acc, inputPrecision = tf32 : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
  %3 = tt.descriptor_gather %again[%x, %n] : (!tt.tensordesc<1x256xf16>, tensor<64xi32>, i32) -> tensor<64x256xf16>
  tt.descriptor_scatter %to[%x, %n], %3 : !tt.tensordesc<1x256xf16>, tensor<64xi32>, i32, tensor<64x256xf16>
  tt.return %2 : tensor<64x64xf32>
}
