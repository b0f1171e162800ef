// Types, attributes, and every keyword of every enum.
//
// RUN: %ttopt %s > %t.once
// RUN: FileCheck %s --input-file %t.once
// RUN: %ttopt %t.once | diff %t.once -
// RUN: %ttopt --mlir-print-op-generic %s | %ttopt | diff %t.once -

// CHECK-LABEL: tt.func private @pointers(
// CHECK-SAME: !tt.ptr<f32>, !tt.ptr<i1>, !tt.ptr<f8E4M3FN>, !tt.ptr<si8>, tensor<4x!tt.ptr<bf16>>, !tt.ptr<f32>, !tt.ptr<f32, "constant">, !tt.ptr<i8, "descriptor">)
tt.func private @pointers(!tt.ptr<f32>, !tt.ptr<i1>, !tt.ptr<f8E4M3FN>, !tt.ptr<si8>, tensor<4x!tt.ptr<bf16>>, !tt.ptr<f32, "global">, !tt.ptr<f32, "constant">, !tt.ptr<i8, "descriptor">)

// CHECK-LABEL: tt.func private @descriptors(
// CHECK-SAME: !tt.tensordesc<4x8xf32>, !tt.tensordesc<16xui8>, !tt.tensordesc<1x2x4xsi16>, !tt.tensordesc<f32>, !tt.tensordesc<8x32xf16, #shared>)
tt.func private @descriptors(!tt.tensordesc<4x8xf32>, !tt.tensordesc<16xui8>, !tt.tensordesc<1x2x4xsi16>, !tt.tensordesc<f32>, !tt.tensordesc<8x32xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>>)

// CHECK-LABEL: tt.func @load_policies(
tt.func @load_policies(%p: !tt.ptr<f32>) {
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_normal>} : !tt.ptr<f32>
  %0 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_normal>} : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : !tt.ptr<f32>
  %1 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>} : !tt.ptr<f32>
  %2 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_last>} : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>} : !tt.ptr<f32>
  %3 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>} : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = cv, eviction_policy = evict_normal>} : !tt.ptr<f32>
  %4 = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cv, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: tt.func @store_policies(
tt.func @store_policies(%p: !tt.ptr<f32>, %x: f32) {
  // CHECK: tt.store %{{.*}}, %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = wb, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.store %p, %x {cachePolicy = #tt.cache_policy<cache_modifier = wb, eviction_policy = evict_normal>} : !tt.ptr<f32>
  // CHECK: tt.store %{{.*}}, %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.store %p, %x {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// CHECK-LABEL: tt.func @atomics(
tt.func @atomics(%p: !tt.ptr<i32>, %x: i32) {
  // CHECK: tt.atomic_rmw and, relaxed, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %0 = tt.atomic_rmw and, relaxed, gpu, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw or, acquire, cta, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %1 = tt.atomic_rmw or, acquire, cta, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw xor, release, sys, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %2 = tt.atomic_rmw xor, release, sys, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw add, acq_rel, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %3 = tt.atomic_rmw add, acq_rel, gpu, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw fadd, relaxed, cta, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %4 = tt.atomic_rmw fadd, relaxed, cta, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw max, acquire, sys, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %5 = tt.atomic_rmw max, acquire, sys, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw min, release, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %6 = tt.atomic_rmw min, release, gpu, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw umax, acq_rel, cta, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %7 = tt.atomic_rmw umax, acq_rel, cta, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw umin, relaxed, sys, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %8 = tt.atomic_rmw umin, relaxed, sys, %p, %x : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw exch, acquire, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %9 = tt.atomic_rmw exch, acquire, gpu, %p, %x : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// CHECK-LABEL: tt.func @reductions(
tt.func @reductions(%d: !tt.tensordesc<4xi32>, %x: tensor<4xi32>, %i: i32) {
  // CHECK: tt.descriptor_reduce add, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce add, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce min, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce min, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce max, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce max, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce inc, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce inc, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce dec, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce dec, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce and, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce and, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce or, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce or, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  // CHECK: tt.descriptor_reduce xor, %{{.*}}[%{{.*}}], %{{.*}} : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.descriptor_reduce xor, %d[%i], %x : !tt.tensordesc<4xi32>, tensor<4xi32>
  tt.return
}

// CHECK-LABEL: tt.func @programs(
tt.func @programs() {
  // CHECK: tt.get_program_id x : i32
  %0 = tt.get_program_id x : i32
  // CHECK: tt.get_program_id y : i32
  %1 = tt.get_program_id y : i32
  // CHECK: tt.get_program_id z : i32
  %2 = tt.get_program_id z : i32
  tt.return
}

// CHECK-LABEL: tt.func @precisions(
tt.func @precisions(%a: tensor<16x16xf32>) {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %0 = tt.dot %a, %a, %a, inputPrecision = tf32 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = tt.dot %a, %a, %a, inputPrecision = tf32x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %2 = tt.dot %a, %a, %a : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = bf16x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %3 = tt.dot %a, %a, %a, inputPrecision = bf16x3 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = bf16x6 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %4 = tt.dot %a, %a, %a, inputPrecision = bf16x6 : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return
}

// CHECK-LABEL: tt.func @element_types(
tt.func @element_types(%a: tensor<32x32xi8>, %c: tensor<32x32xf32>) {
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %0 = tt.dot_scaled %a, %a, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %1 = tt.dot_scaled %a, %a, %c lhs = e5m2 rhs = e5m2 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e2m3 rhs = e2m3 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %2 = tt.dot_scaled %a, %a, %c lhs = e2m3 rhs = e2m3 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e3m2 rhs = e3m2 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %3 = tt.dot_scaled %a, %a, %c lhs = e3m2 rhs = e3m2 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %4 = tt.dot_scaled %a, %a, %c lhs = e2m1 rhs = e2m1 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = bf16 rhs = bf16 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %5 = tt.dot_scaled %a, %a, %c lhs = bf16 rhs = bf16 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = fp16 rhs = fp16 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  %6 = tt.dot_scaled %a, %a, %c lhs = fp16 rhs = fp16 {fastMath = false} : tensor<32x32xi8> * tensor<32x32xi8> -> tensor<32x32xf32>
  tt.return
}

