// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90 explain=true})' -split-input-file -verify-diagnostics
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90})' -split-input-file | FileCheck %s
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:80})' -split-input-file | FileCheck %s --check-prefix=OLD
// RUN: %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:90 num-ctas=2})' -split-input-file | FileCheck %s --check-prefix=CLUSTER
// RUN: not %ttopt %s --pass-pipeline='builtin.module(triton-rewrite-tensor-descriptor-to-pointer{target=cuda:9})' -split-input-file 2>&1 | FileCheck %s --check-prefix=TARGET

// Descriptors that copies know stay on sm_90.
// OLD-NOT: tensordesc
// TARGET: error: {{.*}}unknown target `cuda:9`; known are cuda:80

// CHECK-LABEL: @stays(
// CHECK-SAME: !tt.tensordesc<64x64xf16>
// CHECK: %[[D:.*]] = tt.make_tensor_descriptor
// CHECK: tt.descriptor_load %{{.*}} -> tensor<64x64xf16>
// CHECK: tt.descriptor_store %[[D]]
// CHECK: tt.descriptor_reduce add, %[[D]]
tt.func public @stays(%a: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] {padding = 2 : i32} : <f16>, <64x64xf16>
  %0 = tt.descriptor_load %a[%c0, %n] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.descriptor_store %d[%c0, %n], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.descriptor_reduce add, %d[%c0, %n], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}

// -----

// What moves is the block of the descriptor; the tensor has it in another shape.
// CHECK-LABEL: @other_shape(
// CHECK: %[[X:.*]] = tt.descriptor_load %{{.*}} -> tensor<8x1x32xi32>
// CHECK: %[[Y:.*]] = tt.reshape %[[X]] : tensor<8x1x32xi32> -> tensor<8x32xi32>
// CHECK: %[[Z:.*]] = tt.reshape %[[Y]] : tensor<8x32xi32> -> tensor<8x1x32xi32>
// CHECK: tt.descriptor_store %{{.*}}, %[[Z]]
tt.func public @other_shape(%a: !tt.tensordesc<8x1x32xi32>) {
  %c0 = arith.constant 0 : i32
  %0 = tt.descriptor_load %a[%c0, %c0, %c0] : !tt.tensordesc<8x1x32xi32> -> tensor<8x32xi32>
  tt.descriptor_store %a[%c0, %c0, %c0], %0 : !tt.tensordesc<8x1x32xi32>, tensor<8x32xi32>
  tt.return
}

// Leading dimensions of one element may be missing, but not all, and not where the CTAs of a cluster divide the block.
// CHECK-LABEL: @fewer_dimensions(
// CHECK: %[[X:.*]] = tt.descriptor_load %{{.*}} -> tensor<8x32xi32>
// CHECK: tt.descriptor_store %{{.*}}, %[[X]] : !tt.tensordesc<1x8x32xi32>, tensor<8x32xi32>
// CHECK: tt.descriptor_load %{{.*}} -> tensor<1x32xi32>
// CLUSTER-LABEL: @fewer_dimensions(
// CLUSTER: tt.descriptor_load %{{.*}} -> tensor<1x8x32xi32>
// CLUSTER: tt.descriptor_store %{{.*}} : !tt.tensordesc<1x8x32xi32>, tensor<1x8x32xi32>
tt.func public @fewer_dimensions(%a: !tt.tensordesc<1x8x32xi32>, %b: !tt.tensordesc<1x32xi32>, %q: tensor<32x!tt.ptr<i32>>) {
  %c0 = arith.constant 0 : i32
  %0 = tt.descriptor_load %a[%c0, %c0, %c0] : !tt.tensordesc<1x8x32xi32> -> tensor<8x32xi32>
  tt.descriptor_store %a[%c0, %c0, %c0], %0 : !tt.tensordesc<1x8x32xi32>, tensor<8x32xi32>
  %1 = tt.descriptor_load %b[%c0, %c0] : !tt.tensordesc<1x32xi32> -> tensor<32xi32>
  tt.store %q, %1 : tensor<32x!tt.ptr<i32>>
  tt.return
}

// -----

// One loop carries a descriptor of each form.
// CHECK-LABEL: @both(
// CHECK: %{{.*}}:{{[0-9]+}} = scf.for {{.*}} -> (!tt.tensordesc<64x64xf16>, !tt.ptr<f16>, i64, i64, i64, i64, i1, i1)
// CHECK:   tt.descriptor_load
// CHECK:   tt.store
// CHECK:   scf.yield {{.*}} : !tt.tensordesc<64x64xf16>, !tt.ptr<f16>, i64, i64, i64, i64, i1, i1
tt.func public @both(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  %a = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  // expected-remark @below {{becomes pointers: its last stride is not the constant 1}}
  %b = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f16>, <64x64xf16>
  %r:2 = scf.for %i = %c0 to %n step %one iter_args(%x = %a, %y = %b) -> (!tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16>) : i32 {
    %0 = tt.descriptor_load %x[%c0, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    tt.descriptor_store %y[%c0, %i], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
    scf.yield %x, %y : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16>
  }
  tt.return
}

// -----

// What is chosen between is of one form.
// CHECK-LABEL: @web(
// CHECK-NOT: tt.make_tensor_descriptor
tt.func public @web(%p: !tt.ptr<f16>, %n: i32, %s: i64, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  // expected-remark @below {{becomes pointers: a stride of 4 elements is no positive multiple of 16 bytes}}
  %a = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %four = arith.constant 4 : i64
  // expected-remark @below {{becomes pointers: a stride of 4 elements is no positive multiple of 16 bytes}}
  %b = tt.make_tensor_descriptor %p, [%n, %n], [%four, %c1] : <f16>, <64x64xf16>
  %d = arith.select %c, %a, %b : !tt.tensordesc<64x64xf16>
  %0 = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.descriptor_store %d[%c0, %c0], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}

// -----

// CHECK-LABEL: @reasons(
// CHECK-NOT: tt.make_tensor_descriptor
tt.func public @reasons(%p: !tt.ptr<f16>, %q: !tt.ptr<i1>, %r: !tt.ptr<i32>, %w: !tt.ptr<f32>, %z: !tt.ptr<f64>, %n: i32, %s: i64, %x: tensor<8x32xf32>, %y: tensor<8xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %minus = arith.constant -64 : i64
  // expected-remark @below {{becomes pointers: TMA copies rows of multiples of 16 bytes, a row of 4 elements of 16 bits has 8}}
  %narrow = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x4xf16>
  // expected-remark @below {{becomes pointers: TMA copies rows of multiples of 16 bytes, a row of 1 elements of 16 bits has 2}}
  %single = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x1xf16>
  // expected-remark @below {{becomes pointers: TMA copies no elements of type i1}}
  %bits = tt.make_tensor_descriptor %q, [%n, %n], [%s, %c1] : <i1>, <64x64xi1>
  // expected-remark @below {{becomes pointers: TMA copies blocks of 1 to 5 dimensions, not 6}}
  %six = tt.make_tensor_descriptor %p, [%n, %n, %n, %n, %n, %n], [%s, %s, %s, %s, %s, %c1] : <f16>, <1x1x1x1x2x64xf16>
  // expected-remark @below {{becomes pointers: elements of type i32 outside of the tensor cannot be NaN}}
  %nan = tt.make_tensor_descriptor %r, [%n, %n], [%s, %c1] {padding = 2 : i32} : <i32>, <8x32xi32>
  // expected-remark @below {{becomes pointers: elements of type f64 outside of the tensor cannot be NaN}}
  %nan64 = tt.make_tensor_descriptor %z, [%n, %n], [%s, %c1] {padding = 2 : i32} : <f64>, <8x32xf64>
  // expected-remark @below {{becomes pointers: a stride of -64 elements is no positive multiple of 16 bytes}}
  %backwards = tt.make_tensor_descriptor %p, [%n, %n], [%minus, %c1] : <f16>, <64x64xf16>
  // expected-remark @below {{becomes pointers: a tensor map has no dimension of 0 elements}}
  %empty = tt.make_tensor_descriptor %p, [%c0, %n], [%s, %c1] : <f16>, <64x64xf16>
  // expected-remark @below {{becomes pointers: copies to shared memory begin at multiples of 128 bytes, not of 64}}
  %rows = tt.make_tensor_descriptor %w, [%n, %n], [%s, %c1] : <f32>, <1x16xf32>
  %0 = tt.descriptor_gather %rows[%y, %c0] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.descriptor_scatter %rows[%y, %c0], %0 : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// A copy begins at a multiple of 16 bytes, and one to a tensor not before its start.
// CHECK-LABEL: @begin(
// CHECK: tt.make_tensor_descriptor
// CHECK-NOT: tt.make_tensor_descriptor
tt.func public @begin(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %c1 = arith.constant 1 : i64
  %four = arith.constant 4 : i32
  %minus = arith.constant -8 : i32
  %a = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  // expected-remark @below {{becomes pointers: the index 4 along its last dimension is no multiple of 16 bytes}}
  %b = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  // expected-remark @below {{becomes pointers: TMA writes no tensor from the index -8 on}}
  %c = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %0 = tt.descriptor_load %a[%four, %minus] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.descriptor_store %b[%n, %four], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.descriptor_reduce add, %c[%minus, %n], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}

// -----

// The next iteration would find its own map in the one place there is.
// CHECK-LABEL: @carried(
// CHECK-NOT: tt.make_tensor_descriptor
tt.func public @carried(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %one = arith.constant 1 : i32
  // expected-remark @below {{becomes pointers: a loop makes it and carries it on, while there is one place for a tensor map}}
  %a = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %r = scf.for %i = %c0 to %n step %one iter_args(%x = %a) -> (!tt.tensordesc<64x64xf16>) : i32 {
    %0 = tt.descriptor_load %x[%c0, %i] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    tt.descriptor_store %x[%c0, %c0], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
    // expected-remark @below {{becomes pointers: a loop makes it and carries it on}}
    %b = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
    scf.yield %b : !tt.tensordesc<64x64xf16>
  }
  tt.return
}

// -----

// Launchers pass tensor maps for all descriptors or for none.
// CHECK-LABEL: tt.func public @arguments(
// CHECK-NOT: tensordesc
// expected-remark @below {{argument 0 becomes pointers: another descriptor among the kernel's arguments has none}}
// expected-remark @below {{argument 1 becomes pointers: TMA has no 'min' of 'si16'}}
tt.func public @arguments(%a: !tt.tensordesc<64x64xi32>, %b: !tt.tensordesc<64x64xsi16>, %x: tensor<64x64xi16>) {
  %c0 = arith.constant 0 : i32
  tt.descriptor_reduce min, %b[%c0, %c0], %x : !tt.tensordesc<64x64xsi16>, tensor<64x64xi16>
  tt.return
}

// -----

// A function may get a map, and none is returned.
// CHECK: tt.func private @gets(%{{.*}}: !tt.tensordesc<64x64xf16>)
tt.func private @gets(%d: !tt.tensordesc<64x64xf16>) attributes {noinline = true} {
  %c0 = arith.constant 0 : i32
  %0 = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.descriptor_store %d[%c0, %c0], %0 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}
// CHECK: tt.func private @returns({{.*}}) -> (!tt.ptr<f16>, i64, i64, i64, i64, i1, i1)
tt.func private @returns(%p: !tt.ptr<f16>, %n: i32, %s: i64) -> !tt.tensordesc<64x64xf16> attributes {noinline = true} {
  %c1 = arith.constant 1 : i64
  // expected-remark @below {{becomes pointers: a function returns it}}
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  tt.return %d : !tt.tensordesc<64x64xf16>
}
// CHECK-LABEL: tt.func public @calls(
// CHECK: tt.call @gets(%{{.*}}) : (!tt.tensordesc<64x64xf16>) -> ()
// CHECK: tt.call @returns({{.*}}) -> (!tt.ptr<f16>, i64, i64, i64, i64, i1, i1)
tt.func public @calls(%d: !tt.tensordesc<64x64xf16>, %p: !tt.ptr<f16>, %n: i32, %s: i64) {
  tt.call @gets(%d) : (!tt.tensordesc<64x64xf16>) -> ()
  %e = tt.call @returns(%p, %n, %s) : (!tt.ptr<f16>, i32, i64) -> !tt.tensordesc<64x64xf16>
  tt.return
}

// -----

// In clusters each block makes its own map, which a copy outside of loops is not worth.
// CLUSTER-LABEL: @few(
// CLUSTER: tt.load
// CLUSTER: scf.for
// CLUSTER: tt.descriptor_load
// CHECK-LABEL: @few(
// CHECK: tt.descriptor_load
// CHECK: tt.descriptor_load
tt.func public @few(%p: !tt.ptr<f16>, %n: i32, %s: i64, %q: tensor<64x64x!tt.ptr<f16>>) {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c1 = arith.constant 1 : i64
  %once = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %often = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %0 = tt.descriptor_load %once[%c0, %n] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  tt.store %q, %0 : tensor<64x64x!tt.ptr<f16>>
  scf.for %i = %c0 to %n step %one : i32 {
    %1 = tt.descriptor_load %often[%i, %n] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
    tt.store %q, %1 : tensor<64x64x!tt.ptr<f16>>
  }
  tt.return
}
