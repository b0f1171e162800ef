// Every operation prints as it is read, also through the generic form and with locations.
//
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#blocked3 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#shared2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @layouts(
tt.func @layouts(%v0: tensor<32x32xf32, #blocked>, %v1: tensor<32x32xi8, #blocked1>) {
  // CHECK: %{{[a-z0-9_]+}} = ttg.convert_layout %{{[a-z0-9_]+}} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %v2 = ttg.convert_layout %v0 : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  // CHECK: %{{[a-z0-9_]+}} = ttg.convert_layout %{{[a-z0-9_]+}} {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked3>
  %v3 = ttg.convert_layout %v0 {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked3>
  // CHECK: %{{[a-z0-9_]+}} = ttg.inline_asm "mov $0, $1;" {constraints = "=r,r", pure = true} %{{[a-z0-9_]+}} : (tensor<32x32xf32, #blocked>) -> tensor<32x32xf32, #blocked>
  %v4 = ttg.inline_asm "mov $0, $1;" {constraints = "=r,r", pure = true} %v0 : (tensor<32x32xf32, #blocked>) -> tensor<32x32xf32, #blocked>
  // CHECK: ttg.inline_asm "bar;" {constraints = "", pure = false} : () -> ()
  ttg.inline_asm "bar;" {constraints = "", pure = false} : () -> ()
  // CHECK: %{{[a-z0-9_]+}} = ttg.fp4_to_fp %{{[a-z0-9_]+}} {axis = 1 : i32} : tensor<32x32xi8, #blocked1> -> tensor<32x64xf16, #blocked>
  %v5 = ttg.fp4_to_fp %v1 {axis = 1 : i32} : tensor<32x32xi8, #blocked1> -> tensor<32x64xf16, #blocked>
  tt.return
}

// CHECK-LABEL: tt.func @async_copies(
tt.func @async_copies(%v0: tensor<32x32x!tt.ptr<f32>, #blocked>, %v1: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %v2: tensor<32x32xi1, #blocked>, %v3: tensor<32x32xf32, #blocked>) {
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_wait {num = 2 : i32}
  %v4 = ttg.async_wait {num = 2 : i32}
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_copy_global_to_local %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<32x32x!tt.ptr<f32>, #blocked> -> <32x32xf32, #shared, #smem, mutable>
  %v5 = ttg.async_copy_global_to_local %v0, %v1 : tensor<32x32x!tt.ptr<f32>, #blocked> -> <32x32xf32, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_copy_global_to_local %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} mask %{{[a-z0-9_]+}} other %{{[a-z0-9_]+}} {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, contiguity = 4 : i32, isVolatile = true} : tensor<32x32x!tt.ptr<f32>, #blocked> -> <32x32xf32, #shared, #smem, mutable>
  %v6 = ttg.async_copy_global_to_local %v0, %v1 mask %v2 other %v3 {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_first>, contiguity = 4 : i32, isVolatile = true} : tensor<32x32x!tt.ptr<f32>, #blocked> -> <32x32xf32, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_commit_group tokens %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}
  %v7 = ttg.async_commit_group tokens %v5, %v6
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_commit_group
  %v8 = ttg.async_commit_group
  // CHECK: %{{[a-z0-9_]+}} = ttg.async_wait %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {num = 0 : i32}
  %v9 = ttg.async_wait %v7, %v8 {num = 0 : i32}
  tt.return
}

// CHECK-LABEL: tt.func @buffers(
tt.func @buffers(%v0: tensor<32x32xf32, #blocked>, %v1: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %v2: !ttg.async.token, %v3: tensor<32x32xi32, #blocked>, %v4: tensor<32x32xi1, #blocked>) {
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
  %v5 = ttg.local_alloc : () -> !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_alloc %{{[a-z0-9_]+}} : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %v6 = ttg.local_alloc %v0 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_alloc %{{[a-z0-9_]+}} {alignment = 128 : i32} : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %v7 = ttg.local_alloc %v0 {alignment = 128 : i32} : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_load %{{[a-z0-9_]+}} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  %v8 = ttg.local_load %v1 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_load %{{[a-z0-9_]+}} token %{{[a-z0-9_]+}} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  %v9 = ttg.local_load %v1 token %v2 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  // CHECK: ttg.local_store %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  ttg.local_store %v8, %v1 : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_gather %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  %v10 = ttg.local_gather %v1[%v3] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_gather %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] token %{{[a-z0-9_]+}} {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  %v11 = ttg.local_gather %v1[%v3] token %v2 {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  // CHECK: ttg.local_scatter %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} {axis = 1 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  ttg.local_scatter %v1[%v3], %v0 {axis = 1 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  // CHECK: ttg.local_scatter %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} token %{{[a-z0-9_]+}} {axis = 1 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  ttg.local_scatter %v1[%v3], %v0 token %v2 {axis = 1 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_atomic_scatter_rmw fadd, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}} {axis = 1 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf32, #blocked>
  %v12 = ttg.local_atomic_scatter_rmw fadd, %v1[%v3], %v0 {axis = 1 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = ttg.local_atomic_scatter_rmw fadd, %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}], %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} {axis = 1 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>, tensor<32x32xi1, #blocked>) -> tensor<32x32xf32, #blocked>
  %v13 = ttg.local_atomic_scatter_rmw fadd, %v1[%v3], %v0, %v4 {axis = 1 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>, tensor<32x32xi1, #blocked>) -> tensor<32x32xf32, #blocked>
  // CHECK: %{{[a-z0-9_]+}} = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  %v14 = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  // CHECK: %{{[a-z0-9_]+}} = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 128 : i32, shared_cluster_state, third_party_allocation} : !tt.ptr<i8>
  %v15 = ttg.global_scratch_alloc {alignment = 8 : i32, nbytes = 128 : i32, shared_cluster_state, third_party_allocation} : !tt.ptr<i8>
  // CHECK: ttg.local_dealloc %{{[a-z0-9_]+}} : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
  ttg.local_dealloc %v5 : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>
  tt.return
}

// CHECK-LABEL: tt.func @views(
tt.func @views(%v0: !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable>, %v1: i32) {
  // CHECK: %{{[a-z0-9_]+}} = ttg.memdesc_index %{{[a-z0-9_]+}}[%{{[a-z0-9_]+}}] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %v2 = ttg.memdesc_index %v0[%v1] : !ttg.memdesc<2x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.memdesc_subslice %{{[a-z0-9_]+}}[0, 16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  %v3 = ttg.memdesc_subslice %v2[0, 16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  // CHECK: %{{[a-z0-9_]+}} = ttg.memdesc_trans %{{[a-z0-9_]+}} {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared1, #smem, mutable>
  %v4 = ttg.memdesc_trans %v2 {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared1, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.memdesc_reshape %{{[a-z0-9_]+}} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<1024xf32, #shared2, #smem, mutable>
  %v5 = ttg.memdesc_reshape %v2 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<1024xf32, #shared2, #smem, mutable>
  // CHECK: %{{[a-z0-9_]+}} = ttg.memdesc_reinterpret %{{[a-z0-9_]+}} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xi32, #shared, #smem, mutable>
  %v6 = ttg.memdesc_reinterpret %v2 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xi32, #shared, #smem, mutable>
  tt.return
}

// CHECK-LABEL: tt.func @program(
tt.func @program(%v0: i32) {
  // CHECK: %{{[a-z0-9_]+}} = ttg.predicate_stage %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}}, %{{[a-z0-9_]+}} maxStage 3 stage 1 : i32 -> i1
  %v1 = ttg.predicate_stage %v0, %v0, %v0 maxStage 3 stage 1 : i32 -> i1
  // CHECK: ttg.barrier all
  ttg.barrier all
  // CHECK: ttg.barrier local
  ttg.barrier local
  // CHECK: ttg.barrier none
  ttg.barrier none
  // CHECK: ttg.barrier local|global_read
  ttg.barrier local|global_read
  // CHECK: ttg.barrier all
  ttg.barrier all
  // CHECK: %{{[a-z0-9_]+}} = ttg.warp_id
  %v2 = ttg.warp_id
  // CHECK: %{{[a-z0-9_]+}} = ttg.warp_id {omitUniformHint}
  %v3 = ttg.warp_id {omitUniformHint}
  tt.return
}

// Regions have the syntax of MLIR where the dialect has no own.
// CHECK-LABEL: tt.func @mask(
tt.func @mask(%pred: i1, %a: i32) -> i32 {
  // CHECK: %{{[0-9]+}} = "ttg.mask"(%{{[a-z0-9]+}}) ({
  // CHECK-NEXT: ttg.mask.return %{{[a-z0-9]+}} : i32
  // CHECK-NEXT: }) : (i1) -> i32
  %0 = "ttg.mask"(%pred) ({
    ttg.mask.return %a : i32
  }) : (i1) -> i32
  tt.return %0 : i32
}

// CHECK-LABEL: tt.func @warp_specialize(
// CHECK-SAME: %[[A:[a-z0-9]+]]: i32, %[[B:[a-z0-9]+]]: i32)
tt.func @warp_specialize(%a: i32, %b: i32) -> i32 {
  // CHECK: %[[R:.+]] = ttg.warp_specialize(%[[A]], %[[B]]) attributes {requestedRegisters = array<i32: 24, 32>}
  // CHECK-NEXT: default {
  // CHECK-NEXT: ttg.warp_yield %[[A]] : i32
  // CHECK-NEXT: }
  // CHECK-NEXT: partition0(%[[X:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32) num_warps(8) {
  // CHECK-NEXT: arith.addi %[[X]], %[[X]] : i32
  // CHECK-NEXT: ttg.warp_return
  // CHECK-NEXT: }
  // CHECK-NEXT: partition1(%{{[a-z0-9]+}}: i32, %{{[a-z0-9]+}}: i32) num_warps(1) {
  // CHECK-NEXT: ttg.warp_return
  // CHECK-NEXT: } : (i32, i32) -> i32
  %0 = ttg.warp_specialize(%a, %b) attributes {requestedRegisters = array<i32: 24, 32>}
  default {
    ttg.warp_yield %a : i32
  }
  partition0(%x: i32, %y: i32) num_warps(8) {
    %1 = arith.addi %x, %x : i32
    ttg.warp_return
  }
  partition1(%x: i32, %y: i32) num_warps(1) {
    ttg.warp_return
  } : (i32, i32) -> i32
  // CHECK: ttg.warp_specialize()
  // CHECK-NEXT: default {
  // CHECK-NEXT: ttg.warp_yield
  // CHECK-NEXT: } : () -> ()
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  } : () -> ()
  tt.return %0 : i32
}

}
