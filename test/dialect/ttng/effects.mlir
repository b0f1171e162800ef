// What MLIR's passes conclude from the memory effects of operations.
//
// RUN: %ttopt %s --cse --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #b, #smem, mutable>
!a = !ttg.memdesc<128x64xf16, #nvmma, #smem, mutable>
!m = !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
!d = !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
!v = !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
!h = !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
!t = tensor<128x64xf32, #rows>
!f = tensor<32x64xf16, #blocked>
!c = tensor<128x64xf32, #mma>
!desc = !tt.tensordesc<64x64xf16, #nvmma>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// Equal pure operations are one.
// CHECK-LABEL: tt.func public @pure(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.packed_arith add %[[ARG0]], %[[ARG0]] : (tensor<32x64xf16, #blocked>, tensor<32x64xf16, #blocked>) -> tensor<32x64xf16, #blocked>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.clc_is_canceled %[[ARG1]] : i128 -> i1
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttng.clc_get_program_id %[[ARG1]], x : i128 -> i32
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttng.clc_get_program_id %[[ARG1]], y : i128 -> i32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = ttng.tmem_subslice %[[ARG2]] {offset = 32 : i32} : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> !ttg.memdesc<128x32xf32, #tmem, #ttng.tensor_memory, mutable, 128x64>
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = ttng.reinterpret_tensor_descriptor %[[ARG3]] : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared>
// CHECK-NEXT: tt.return %[[V0]], %[[V0]], %[[V1]], %[[V1]], %[[V2]], %[[V2]], %[[V3]], %[[V4]], %[[V4]], %[[V5]], %[[V5]]
tt.func public @pure(%f: !f, %r: i128, %d: !d, %p: !tt.ptr<i8>) -> (!f, !f, i1, i1, i32, i32, i32, !h, !h, !desc, !desc) {
  %0 = ttng.packed_arith add %f, %f : (!f, !f) -> !f
  %1 = ttng.packed_arith add %f, %f : (!f, !f) -> !f
  %2 = ttng.clc_is_canceled %r : i128 -> i1
  %3 = ttng.clc_is_canceled %r : i128 -> i1
  %4 = ttng.clc_get_program_id %r, x : i128 -> i32
  %5 = ttng.clc_get_program_id %r, x : i128 -> i32
  %6 = ttng.clc_get_program_id %r, y : i128 -> i32
  %7 = ttng.tmem_subslice %d {offset = 32 : i32} : !d -> !h
  %8 = ttng.tmem_subslice %d {offset = 32 : i32} : !d -> !h
  %9 = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !desc
  %10 = ttng.reinterpret_tensor_descriptor %p : !tt.ptr<i8> to !desc
  tt.return %0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10 : !f, !f, i1, i1, i32, i32, i32, !h, !h, !desc, !desc
}

// Tensor memory that nobody writes is a value: equal ones are one. Others are not.
// CHECK-LABEL: tt.func public @allocations(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.tmem_alloc %[[ARG0]] : (tensor<128x64xf32, #blocked1>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.tmem_alloc %[[ARG0]] : (tensor<128x64xf32, #blocked1>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttng.tmem_alloc %[[ARG0]] : (tensor<128x64xf32, #blocked1>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: tt.return %[[V0]], %[[V0]], %[[V1]], %[[V2]]
tt.func public @allocations(%t: !t) -> (!v, !v, !d, !d) {
  %0 = ttng.tmem_alloc %t : (!t) -> !v
  %1 = ttng.tmem_alloc %t : (!t) -> !v
  %2 = ttng.tmem_alloc %t : (!t) -> !d
  %3 = ttng.tmem_alloc %t : (!t) -> !d
  tt.return %0, %1, %2, %3 : !v, !v, !d, !d
}

// Nor is one that has its address.
// CHECK-LABEL: tt.func public @allocated(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.tmem_alloc %[[ARG0]] {tensor_memory_col_offset = 0 : i32, tensor_memory_row_offset = 0 : i32} : (tensor<128x64xf32, #blocked1>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.tmem_alloc %[[ARG0]] {tensor_memory_col_offset = 0 : i32, tensor_memory_row_offset = 0 : i32} : (tensor<128x64xf32, #blocked1>) -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory>
// CHECK-NEXT: tt.return %[[V0]], %[[V1]]
tt.func public @allocated(%t: !t) -> (!v, !v) {
  %0 = ttng.tmem_alloc %t {tensor_memory_col_offset = 0 : i32, tensor_memory_row_offset = 0 : i32} : (!t) -> !v
  %1 = ttng.tmem_alloc %t {tensor_memory_col_offset = 0 : i32, tensor_memory_row_offset = 0 : i32} : (!t) -> !v
  tt.return %0, %1 : !v, !v
}

// Loads without a store between them are one; what writes shared memory is none of theirs.
// CHECK-LABEL: tt.func public @loads(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.tmem_load %[[ARG0]] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked1>
// CHECK-NEXT: ttng.tmem_store %[[ARG1]], %[[ARG0]], %[[ARG2]] : tensor<128x64xf32, #blocked1> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.tmem_load %[[ARG0]] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V0]], %[[V0]], %[[V1]]
tt.func public @loads(%d: !d, %t: !t, %p: i1, %b: !bar) -> (!t, !t, !t) {
  %0 = ttng.tmem_load %d : !d -> !t
  %1 = ttng.tmem_load %d : !d -> !t
  ttng.tmem_store %t, %d, %p : !t -> !d
  %2 = ttng.tmem_load %d : !d -> !t
  tt.return %0, %1, %2 : !t, !t, !t
}

// A dot in tensor memory writes its accumulator, one of warp groups only reads.
// CHECK-LABEL: tt.func public @products(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]{{[^%]*}}%[[ARG4:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.tmem_load %[[ARG2]] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked1>
// CHECK-NEXT: ttng.tc_gen5_mma %[[ARG0]], %[[ARG1]], %[[ARG2]], %[[ARG4]], %[[ARG4]] : !ttg.memdesc<128x64xf16, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.tmem_load %[[ARG2]] : !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable> -> tensor<128x64xf32, #blocked1>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttng.warp_group_dot %[[ARG0]], %[[ARG1]], %[[ARG3]] : !ttg.memdesc<128x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<128x64xf32, #mma>
// CHECK-NEXT: tt.return %[[V0]], %[[V1]], %[[V2]], %[[V2]]
tt.func public @products(%a: !a, %m: !m, %d: !d, %c: !c, %p: i1) -> (!t, !t, !c, !c) {
  %0 = ttng.tmem_load %d : !d -> !t
  ttng.tc_gen5_mma %a, %m, %d, %p, %p : !a, !m, !d
  %1 = ttng.tmem_load %d : !d -> !t
  %2 = ttng.warp_group_dot %a, %m, %c : !a * !m -> !c
  %3 = ttng.warp_group_dot %a, %m, %c : !a * !m -> !c
  tt.return %0, %1, %2, %3 : !t, !t, !c, !c
}

// What has no effect goes where nobody uses it.
// CHECK-LABEL: tt.func public @unused(
// CHECK-NEXT: tt.return
tt.func public @unused(%f: !f, %d: !d, %t: !t, %r: !ttg.memdesc<2xi64, #b, #smem, mutable>, %a: !a, %m: !m, %c: !c) {
  %0 = ttng.packed_arith add %f, %f : (!f, !f) -> !f
  %1 = ttng.tmem_load %d : !d -> !t
  %2 = ttng.tmem_alloc %t : (!t) -> !v
  %3 = ttng.tmem_alloc : () -> !d
  %4 = ttng.clc_load_result %r : !ttg.memdesc<2xi64, #b, #smem, mutable> -> i128
  %5 = ttng.warp_group_dot %a, %m, %c : !a * !m -> !c
  tt.return
}

// What has effects stays, however often.
// CHECK-LABEL: tt.func public @effects(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]{{[^%]*}}%[[ARG4:[a-z0-9_]+]]{{[^%]*}}%[[ARG5:[a-z0-9_]+]]{{[^%]*}}%[[ARG6:[a-z0-9_]+]]{{[^%]*}}%[[ARG7:[a-z0-9_]+]]{{[^%]*}}%[[ARG8:[a-z0-9_]+]]
// CHECK-NEXT: ttng.init_barrier %[[ARG0]], 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.init_barrier %[[ARG0]], 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.barrier_expect %[[ARG0]], 16, %[[ARG2]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.async_tma_copy_global_to_local %[[ARG4]][%[[ARG1]], %[[ARG1]]] %[[ARG5]], %[[ARG0]], %[[ARG2]] : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: ttng.wait_barrier %[[ARG0]], %[[ARG1]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.wait_barrier %[[ARG0]], %[[ARG1]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.async_copy_mbarrier_arrive %[[ARG0]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %[[ARG4]][%[[ARG1]], %[[ARG1]]] %[[ARG5]] : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: ttng.async_tma_reduce add, %[[ARG4]][%[[ARG1]], %[[ARG1]]] %[[ARG5]] : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = ttng.warp_group_dot_wait %[[ARG3]] {pendings = 0 : i32} : tensor<128x64xf32, #mma>
// CHECK-NEXT: ttng.tmem_copy %[[ARG7]], %[[ARG8]] : !ttg.memdesc<128x64xf32, #shared2, #smem>, !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: ttng.tmem_wait load
// CHECK-NEXT: ttng.tc_gen5_commit %[[ARG0]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %[[ARG6]] : !tt.ptr<i8>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.clc_try_cancel_sync : tensor<2xi64>
// CHECK-NEXT: ttng.inval_barrier %[[ARG0]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @effects(%b: !bar, %i: i32, %p: i1, %c: !c, %desc: !desc, %m: !m, %raw: !tt.ptr<i8>, %n: !ttg.memdesc<128x64xf32, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>, #smem>, %d: !d) {
  ttng.init_barrier %b, 1 : !bar
  ttng.init_barrier %b, 1 : !bar
  ttng.fence_async_shared {bCluster = false}
  ttng.fence_async_shared {bCluster = false}
  ttng.barrier_expect %b, 16, %p : !bar
  ttng.async_tma_copy_global_to_local %desc[%i, %i] %m, %b, %p : !desc, !bar -> !m
  ttng.wait_barrier %b, %i : !bar
  ttng.wait_barrier %b, %i : !bar
  ttng.arrive_barrier %b, 1 : !bar
  ttng.async_copy_mbarrier_arrive %b : !bar
  ttng.async_tma_copy_local_to_global %desc[%i, %i] %m : !desc, !m
  ttng.async_tma_reduce add, %desc[%i, %i] %m : !desc, !m
  ttng.async_tma_store_wait {pendings = 0 : i32}
  %0 = ttng.warp_group_dot_wait %c {pendings = 0 : i32} : !c
  ttng.tmem_copy %n, %d : !ttg.memdesc<128x64xf32, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>, #smem>, !d
  ttng.tmem_wait load
  ttng.tc_gen5_commit %b : !bar
  ttng.tensormap_fenceproxy_acquire %raw : !tt.ptr<i8>
  %1 = ttng.clc_try_cancel_sync : tensor<2xi64>
  ttng.inval_barrier %b : !bar
  tt.return
}

}
