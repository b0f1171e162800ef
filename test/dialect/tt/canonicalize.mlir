// Canonicalization patterns.
//
// RUN: %ttopt %s -split-input-file --canonicalize | FileCheck %s

// CHECK-LABEL: tt.func @expand_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<1x4xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<1x4xf32>
tt.func @expand_splat(%x: f32) -> tensor<1x4xf32> {
  %s = tt.splat %x : f32 -> tensor<4xf32>
  %0 = tt.expand_dims %s {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
  tt.return %0 : tensor<1x4xf32>
}

// CHECK-LABEL: tt.func @expand_broadcast(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.expand_dims [[ARG0]] {axis = 1 : i32} : tensor<1x4xf32> -> tensor<1x1x4xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.broadcast [[V1]] : tensor<1x1x4xf32> -> tensor<8x1x4xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<8x1x4xf32>
tt.func @expand_broadcast(%x: tensor<1x4xf32>) -> tensor<8x1x4xf32> {
  %s = tt.broadcast %x : tensor<1x4xf32> -> tensor<8x4xf32>
  %0 = tt.expand_dims %s {axis = 1 : i32} : tensor<8x4xf32> -> tensor<8x1x4xf32>
  tt.return %0 : tensor<8x1x4xf32>
}

// CHECK-LABEL: tt.func @expand_reshape(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] : tensor<8xf32> -> tensor<2x4xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.expand_dims [[V1]] {axis = 1 : i32} : tensor<2x4xf32> -> tensor<2x1x4xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<2x1x4xf32>
tt.func @expand_reshape(%x: tensor<8xf32>) -> tensor<2x1x4xf32> {
  %s = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.expand_dims %s {axis = 1 : i32} : tensor<2x4xf32> -> tensor<2x1x4xf32>
  tt.return %0 : tensor<2x1x4xf32>
}

// CHECK-LABEL: tt.func @reshape_reshape(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_reshape(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @reshape_reshape_back(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<8xf32>
tt.func @reshape_reshape_back(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s : tensor<2x4xf32> -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: tt.func @reshape_reorder_reshape(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_reorder_reshape(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @reshape_reshape_reorder(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_reshape_reorder(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s allow_reorder : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @reshape_both_reorder(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_both_reorder(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s allow_reorder : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @reshape_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_splat(%x: f32) -> tensor<4x2xf32> {
  %s = tt.splat %x : f32 -> tensor<8xf32>
  %0 = tt.reshape %s : tensor<8xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @reshape_like_expand(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] : tensor<8xf32> -> tensor<1x8xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<1x8xf32>
tt.func @reshape_like_expand(%x: tensor<8xf32>) -> tensor<1x8xf32> {
  %0 = tt.reshape %x : tensor<8xf32> -> tensor<1x8xf32>
  tt.return %0 : tensor<1x8xf32>
}

// CHECK-LABEL: tt.func @reshape_of_expand(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : tensor<8xf32>
tt.func @reshape_of_expand(%x: tensor<8xf32>) -> tensor<8xf32> {
  %s = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %0 = tt.reshape %s : tensor<1x8xf32> -> tensor<8xf32>
  tt.return %0 : tensor<8xf32>
}

// CHECK-LABEL: tt.func @reshape_of_expand_2(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @reshape_of_expand_2(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %0 = tt.reshape %s : tensor<1x8xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @broadcast_broadcast(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.broadcast [[ARG0]] : tensor<1x1xf32> -> tensor<4x8xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x8xf32>
tt.func @broadcast_broadcast(%x: tensor<1x1xf32>) -> tensor<4x8xf32> {
  %s = tt.broadcast %x : tensor<1x1xf32> -> tensor<4x1xf32>
  %0 = tt.broadcast %s : tensor<4x1xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @broadcast_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<4x8xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x8xf32>
tt.func @broadcast_splat(%x: f32) -> tensor<4x8xf32> {
  %s = tt.splat %x : f32 -> tensor<4x1xf32>
  %0 = tt.broadcast %s : tensor<4x1xf32> -> tensor<4x8xf32>
  tt.return %0 : tensor<4x8xf32>
}

// CHECK-LABEL: tt.func @trans_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<8x4xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<8x4xf32>
tt.func @trans_splat(%x: f32) -> tensor<8x4xf32> {
  %s = tt.splat %x : f32 -> tensor<4x8xf32>
  %0 = tt.trans %s {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: tt.func @addptr_addptr(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = tt.addptr [[ARG0]], [[ARG1]] : !tt.ptr<f32>, i32
// CHECK-NEXT: [[V3:%.*]] = tt.addptr [[V2]], [[ARG1]] : !tt.ptr<f32>, i32
// CHECK-NEXT: tt.return [[V3]] : !tt.ptr<f32>
tt.func @addptr_addptr(%p: !tt.ptr<f32>, %a: i32) -> !tt.ptr<f32> {
  %q = tt.addptr %p, %a : !tt.ptr<f32>, i32
  %0 = tt.addptr %q, %a : !tt.ptr<f32>, i32
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @int_to_ptr_ptr_to_int(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: tt.return [[ARG0]] : !tt.ptr<f32>
tt.func @int_to_ptr_ptr_to_int(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %0 = tt.int_to_ptr %1 : i64 -> !tt.ptr<f32>
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @int_to_ptr_ptr_to_int_other(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.bitcast [[ARG0]] : !tt.ptr<f32> -> !tt.ptr<i8>
// CHECK-NEXT: tt.return [[V1]] : !tt.ptr<i8>
tt.func @int_to_ptr_ptr_to_int_other(%p: !tt.ptr<f32>) -> !tt.ptr<i8> {
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %0 = tt.int_to_ptr %1 : i64 -> !tt.ptr<i8>
  tt.return %0 : !tt.ptr<i8>
}

// CHECK-LABEL: tt.func @int_to_ptr_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : i64 -> tensor<4xi64>
// CHECK-NEXT: [[V2:%.*]] = tt.int_to_ptr [[V1]] : tensor<4xi64> -> tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return [[V2]] : tensor<4x!tt.ptr<f32>>
tt.func @int_to_ptr_splat(%p: i64) -> tensor<4x!tt.ptr<f32>> {
  %1 = tt.splat %p : i64 -> tensor<4xi64>
  %0 = tt.int_to_ptr %1 : tensor<4xi64> -> tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4x!tt.ptr<f32>>
}

// CHECK-LABEL: tt.func @join_splats(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @join_splats(%x: f32) -> tensor<4x2xf32> {
  %s = tt.splat %x : f32 -> tensor<4xf32>
  %0 = tt.join %s, %s : tensor<4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @split_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<4xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4xf32>
tt.func @split_splat(%x: f32) -> tensor<4xf32> {
  %s = tt.splat %x : f32 -> tensor<4x2xf32>
  %0, %1 = tt.split %s : tensor<4x2xf32> -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_true_false(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.load [[ARG0]] {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return [[V1]] : tensor<4xf32>
tt.func @load_true_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<true> : tensor<4xi1>
  %0 = tt.load %p, %m {isVolatile = false, cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_true_true(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.load [[ARG0]] {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return [[V1]] : tensor<4xf32>
tt.func @load_true_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<true> : tensor<4xi1>
  %0 = tt.load %p, %m, %o {isVolatile = false, cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_scalar_true(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.load [[ARG0]] : !tt.ptr<f32>
// CHECK-NEXT: tt.return [[V1]] : f32
tt.func @load_scalar_true(%p: !tt.ptr<f32>, %o: f32) -> f32 {
  %m = arith.constant true
  %0 = tt.load %p, %m, %o : !tt.ptr<f32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @load_volatile_true(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.load [[ARG0]] {isVolatile = true} : !tt.ptr<f32>
// CHECK-NEXT: tt.return [[V1]] : f32
tt.func @load_volatile_true(%p: !tt.ptr<f32>, %o: f32) -> f32 {
  %m = arith.constant true
  %0 = tt.load %p, %m, %o {isVolatile = true} : !tt.ptr<f32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @store_true(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: tt.store [[ARG0]], [[ARG1]] {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func @store_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  %m = arith.constant dense<true> : tensor<4xi1>
  tt.store %p, %o, %m {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func @atomic_store_true(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = arith.constant dense<true> : tensor<4xi1>
// CHECK-NEXT: tt.atomic_store release, gpu, [[ARG0]], [[ARG1]], [[V2]] : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return
tt.func @atomic_store_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  %m = arith.constant dense<true> : tensor<4xi1>
  tt.atomic_store release, gpu, %p, %o, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func @atomic_load_true(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant dense<true> : tensor<4xi1>
// CHECK-NEXT: [[V2:%.*]] = tt.atomic_load acquire, gpu, [[ARG0]], [[V1]] : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<4xf32>
tt.func @atomic_load_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<true> : tensor<4xi1>
  %0 = tt.atomic_load acquire, gpu, %p, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @atomic_rmw_true(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = arith.constant dense<true> : tensor<4xi1>
// CHECK-NEXT: [[V3:%.*]] = tt.atomic_rmw fadd, acq_rel, gpu, [[ARG0]], [[ARG1]], [[V2]] : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
// CHECK-NEXT: tt.return [[V3]] : tensor<4xf32>
tt.func @atomic_rmw_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<true> : tensor<4xi1>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %p, %o, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_splat_mask_true(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.load [[ARG0]] : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return [[V1]] : tensor<4xf32>
tt.func @load_splat_mask_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant true
  %m = tt.splat %c : i1 -> tensor<4xi1>
  %0 = tt.load %p, %m, %o : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @assert_true(
// CHECK: [[V0:%.*]] = arith.constant true
// CHECK-NEXT: tt.assert [[V0]], "x" : i1
// CHECK-NEXT: tt.return
tt.func @assert_true() {
  %c = arith.constant true
  tt.assert %c, "x" : i1
  tt.return
}

// CHECK-LABEL: tt.func @load_false_false(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant dense<false> : tensor<4xi1>
// CHECK-NEXT: [[V2:%.*]] = tt.load [[ARG0]], [[V1]] {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
// CHECK-NEXT: tt.return [[V2]] : tensor<4xf32>
tt.func @load_false_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.load %p, %m {isVolatile = false, cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_false_true(
// CHECK-SAME: [[ARG1:%arg1]]
// CHECK: tt.return [[ARG1]] : tensor<4xf32>
tt.func @load_false_true(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.load %p, %m, %o {isVolatile = false, cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_scalar_false(
// CHECK-SAME: [[ARG1:%arg1]]
// CHECK: tt.return [[ARG1]] : f32
tt.func @load_scalar_false(%p: !tt.ptr<f32>, %o: f32) -> f32 {
  %m = arith.constant false
  %0 = tt.load %p, %m, %o : !tt.ptr<f32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @load_volatile_false(
// CHECK-SAME: [[ARG1:%arg1]]
// CHECK: tt.return [[ARG1]] : f32
tt.func @load_volatile_false(%p: !tt.ptr<f32>, %o: f32) -> f32 {
  %m = arith.constant false
  %0 = tt.load %p, %m, %o {isVolatile = true} : !tt.ptr<f32>
  tt.return %0 : f32
}

// CHECK-LABEL: tt.func @store_false(
// CHECK: tt.return
tt.func @store_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  %m = arith.constant dense<false> : tensor<4xi1>
  tt.store %p, %o, %m {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func @atomic_store_false(
// CHECK: tt.return
tt.func @atomic_store_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) {
  %m = arith.constant dense<false> : tensor<4xi1>
  tt.atomic_store release, gpu, %p, %o, %m : tensor<4x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: tt.func @atomic_load_false(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant dense<false> : tensor<4xi1>
// CHECK-NEXT: [[V2:%.*]] = tt.atomic_load acquire, gpu, [[ARG0]], [[V1]] : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<4xf32>
tt.func @atomic_load_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.atomic_load acquire, gpu, %p, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xi1>) -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @atomic_rmw_false(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = arith.constant dense<false> : tensor<4xi1>
// CHECK-NEXT: [[V3:%.*]] = tt.atomic_rmw fadd, acq_rel, gpu, [[ARG0]], [[ARG1]], [[V2]] : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
// CHECK-NEXT: tt.return [[V3]] : tensor<4xf32>
tt.func @atomic_rmw_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %m = arith.constant dense<false> : tensor<4xi1>
  %0 = tt.atomic_rmw fadd, acq_rel, gpu, %p, %o, %m : (tensor<4x!tt.ptr<f32>>, tensor<4xf32>, tensor<4xi1>) -> tensor<4xf32>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @load_splat_mask_false(
// CHECK-SAME: [[ARG1:%arg1]]
// CHECK: tt.return [[ARG1]] : tensor<4xf32>
tt.func @load_splat_mask_false(%p: tensor<4x!tt.ptr<f32>>, %o: tensor<4xf32>) -> tensor<4xf32> {
  %c = arith.constant false
  %m = tt.splat %c : i1 -> tensor<4xi1>
  %0 = tt.load %p, %m, %o : tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4xf32>
}

// CHECK-LABEL: tt.func @assert_false(
// CHECK: [[V0:%.*]] = arith.constant false
// CHECK-NEXT: tt.assert [[V0]], "x" : i1
// CHECK-NEXT: tt.return
tt.func @assert_false() {
  %c = arith.constant false
  tt.assert %c, "x" : i1
  tt.return
}

// CHECK-LABEL: tt.func @dot_zero_add(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = tt.dot [[ARG0]], [[ARG0]], [[ARG1]] : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<16x16xf32>
tt.func @dot_zero_add(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %a, %z : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %0 = arith.addf %d, %c : tensor<16x16xf32>
  tt.return %0 : tensor<16x16xf32>
}

// CHECK-LABEL: tt.func @expand_expand(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.expand_dims [[ARG0]] {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.expand_dims [[V1]] {axis = 2 : i32} : tensor<1x4xf32> -> tensor<1x4x1xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<1x4x1xf32>
tt.func @expand_expand(%x: tensor<4xf32>) -> tensor<1x4x1xf32> {
  %1 = tt.expand_dims %x {axis = 0 : i32} : tensor<4xf32> -> tensor<1x4xf32>
  %0 = tt.expand_dims %1 {axis = 2 : i32} : tensor<1x4xf32> -> tensor<1x4x1xf32>
  tt.return %0 : tensor<1x4x1xf32>
}

// CHECK-LABEL: tt.func @eff_inner(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V1]] : tensor<4x2xf32>
tt.func @eff_inner(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x allow_reorder efficient_layout : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @eff_outer(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.reshape [[V1]] efficient_layout : tensor<2x4xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<4x2xf32>
tt.func @eff_outer(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x allow_reorder : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s efficient_layout : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @eff_outer2(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.reshape [[ARG0]] : tensor<8xf32> -> tensor<2x4xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.reshape [[V1]] allow_reorder efficient_layout : tensor<2x4xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<4x2xf32>
tt.func @eff_outer2(%x: tensor<8xf32>) -> tensor<4x2xf32> {
  %s = tt.reshape %x : tensor<8xf32> -> tensor<2x4xf32>
  %0 = tt.reshape %s allow_reorder efficient_layout : tensor<2x4xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @eff_splat(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = tt.splat [[ARG0]] : f32 -> tensor<8xf32>
// CHECK-NEXT: [[V2:%.*]] = tt.reshape [[V1]] allow_reorder efficient_layout : tensor<8xf32> -> tensor<4x2xf32>
// CHECK-NEXT: tt.return [[V2]] : tensor<4x2xf32>
tt.func @eff_splat(%x: f32) -> tensor<4x2xf32> {
  %s = tt.splat %x : f32 -> tensor<8xf32>
  %0 = tt.reshape %s allow_reorder efficient_layout : tensor<8xf32> -> tensor<4x2xf32>
  tt.return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: tt.func @int_to_ptr_var(
// CHECK-SAME: [[ARG0:%arg0]]{{.*}}[[ARG1:%arg1]]
// CHECK: [[V2:%.*]] = tt.ptr_to_int [[ARG0]] : !tt.ptr<f32> -> i64
// CHECK-NEXT: [[V3:%.*]] = arith.addi [[V2]], [[ARG1]] : i64
// CHECK-NEXT: [[V4:%.*]] = tt.int_to_ptr [[V3]] : i64 -> !tt.ptr<f32>
// CHECK-NEXT: tt.return [[V4]] : !tt.ptr<f32>
tt.func @int_to_ptr_var(%p: !tt.ptr<f32>, %c: i64) -> !tt.ptr<f32> {
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %2 = arith.addi %1, %c : i64
  %0 = tt.int_to_ptr %2 : i64 -> !tt.ptr<f32>
  tt.return %0 : !tt.ptr<f32>
}

// CHECK-LABEL: tt.func @int_to_ptr_other_type(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant 8 : i64
// CHECK-NEXT: [[V2:%.*]] = tt.bitcast [[ARG0]] : !tt.ptr<f32> -> !tt.ptr<i8>
// CHECK-NEXT: [[V3:%.*]] = tt.addptr [[V2]], [[V1]] : !tt.ptr<i8>, i64
// CHECK-NEXT: tt.return [[V3]] : !tt.ptr<i8>
tt.func @int_to_ptr_other_type(%p: !tt.ptr<f32>) -> !tt.ptr<i8> {
  %c = arith.constant 8 : i64
  %1 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  %2 = arith.addi %1, %c : i64
  %0 = tt.int_to_ptr %2 : i64 -> !tt.ptr<i8>
  tt.return %0 : !tt.ptr<i8>
}

// CHECK-LABEL: tt.func @int_to_ptr_neg(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant -8 : i64
// CHECK-NEXT: [[V2:%.*]] = tt.addptr [[ARG0]], [[V1]] : !tt.ptr<i8>, i64
// CHECK-NEXT: tt.return [[V2]] : !tt.ptr<i8>
tt.func @int_to_ptr_neg(%p: !tt.ptr<i8>) -> !tt.ptr<i8> {
  %c = arith.constant -8 : i64
  %1 = tt.ptr_to_int %p : !tt.ptr<i8> -> i64
  %2 = arith.addi %1, %c : i64
  %0 = tt.int_to_ptr %2 : i64 -> !tt.ptr<i8>
  tt.return %0 : !tt.ptr<i8>
}

// CHECK-LABEL: tt.func @int_to_ptr_tensor(
// CHECK-SAME: [[ARG0:%arg0]]
// CHECK: [[V1:%.*]] = arith.constant dense<2> : tensor<4xi64>
// CHECK-NEXT: [[V2:%.*]] = tt.addptr [[ARG0]], [[V1]] : tensor<4x!tt.ptr<f32>>, tensor<4xi64>
// CHECK-NEXT: tt.return [[V2]] : tensor<4x!tt.ptr<f32>>
tt.func @int_to_ptr_tensor(%p: tensor<4x!tt.ptr<f32>>) -> tensor<4x!tt.ptr<f32>> {
  %c = arith.constant dense<8> : tensor<4xi64>
  %1 = tt.ptr_to_int %p : tensor<4x!tt.ptr<f32>> -> tensor<4xi64>
  %2 = arith.addi %1, %c : tensor<4xi64>
  %0 = tt.int_to_ptr %2 : tensor<4xi64> -> tensor<4x!tt.ptr<f32>>
  tt.return %0 : tensor<4x!tt.ptr<f32>>
}
