// What MLIR's passes conclude from the memory effects of operations.
//
// RUN: %ttopt %s --cse --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Equal conversions are one.
// CHECK-LABEL: tt.func public @twice(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V1]], %[[V1]]
tt.func public @twice(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked1>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  %1 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  tt.return %0, %1 : tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked1>
}

// Buffers that nobody writes are values: equal ones are one. Others are not.
// CHECK-LABEL: tt.func public @buffers(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.local_alloc %[[ARG0]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.local_alloc %[[ARG0]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.local_alloc %[[ARG0]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: tt.return %[[V1]], %[[V1]], %[[V2]], %[[V3]]
tt.func public @buffers(%t: tensor<32x32xf32, #blocked>) -> (!ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  %0 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %1 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %2 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %3 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return %0, %1, %2, %3 : !ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
}

// Loads without a store between them are one.
// CHECK-LABEL: tt.func public @loads(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.local_load %[[ARG0]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
// CHECK-NEXT: ttg.local_store %[[V2]], %[[ARG0]] : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.local_load %[[ARG0]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
// CHECK-NEXT: tt.return %[[V2]], %[[V2]], %[[V3]]
tt.func public @loads(%m: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %p: !tt.ptr<f32>) -> (tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>) {
  %0 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  %1 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  ttg.local_store %0, %m : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %2 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  tt.return %0, %1, %2 : tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked>
}

// What has no effect goes where nobody uses it.
// CHECK-LABEL: tt.func public @unused(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]{{.*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.inline_asm "mov $0, $1;" {constraints = "=r,r", pure = false} %[[ARG2]] : (i32) -> i32
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: ttg.barrier local
// CHECK-NEXT: tt.return
tt.func public @unused(%t: tensor<32x32xf32, #blocked>, %m: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %i: i32) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  %1 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  %2 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %3 = ttg.inline_asm "mov $0, $1;" {constraints = "=r,r", pure = true} %i : (i32) -> i32
  %4 = ttg.inline_asm "mov $0, $1;" {constraints = "=r,r", pure = false} %i : (i32) -> i32
  %5 = ttg.warp_id
  %6 = ttg.predicate_stage %i, %i, %i maxStage 2 stage 0 : i32 -> i1
  ttg.barrier local
  ttg.barrier local
  tt.return
}

}
