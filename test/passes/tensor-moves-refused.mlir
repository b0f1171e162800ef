// RUN: %ttopt %s --split-input-file --triton-rewrite-tensor-descriptor-to-pointer="target=hip:gfx1250 explain=true" -o %t.out 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=OUT < %t.out

// Which descriptors stay pointers on gfx1250, and why.

// CHECK: remark: {{.*}}an index may be negative, and a tensor operation that begins before the tensor moves nothing
// OUT-LABEL: @unknown
// OUT-NOT:   descriptor
// OUT:       tt.load
tt.func public @unknown(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32, %i: i32) {
  %c0 = arith.constant 0 : i32
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16>
  %v = tt.descriptor_load %d[%i, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %qs, %v : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// CHECK: remark: {{.*}}tensor operations fill what is outside of a tensor with zeros
tt.func public @nan(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] {padding = 2 : i32} : <f16>, <64x64xf16>
  %v = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %qs, %v : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// CHECK: remark: {{.*}}takes more of shared memory than rings leave
tt.func public @large(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f32>, <256x128xf32>
  %v = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<256x128xf32> -> tensor<256x128xf32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<256x128x!tt.ptr<f32>>
  tt.store %qs, %v : tensor<256x128x!tt.ptr<f32>>
  tt.return
}

// -----

// CHECK: remark: {{.*}}a launcher passes its parts
tt.func public @passed(%d: !tt.tensordesc<64x64xf16>, %q: !tt.ptr<f16>) {
  %c0 = arith.constant 0 : i32
  %v = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  tt.store %qs, %v : tensor<64x64x!tt.ptr<f16>>
  tt.return
}

// -----

// A store that is reduced goes through pointers.
// CHECK: remark: {{.*}}there are no reductions by tensor operations
tt.func public @reduced(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %v = arith.constant dense<1.0> : tensor<32x64xf32>
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f32>, <32x64xf32>
  tt.descriptor_reduce add, %d[%c0, %c0], %v : !tt.tensordesc<32x64xf32>, tensor<32x64xf32>
  tt.return
}
