// RUN: %ttopt %s --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#blocked3 = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#blocked4 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// A conversion to the same layout is nothing.
// CHECK-LABEL: tt.func public @same(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: tt.return %[[ARG0]]
tt.func public @same(%t: tensor<32x32xf32, #blocked>) -> tensor<32x32xf32, #blocked> {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked>
  tt.return %0 : tensor<32x32xf32, #blocked>
}

// A conversion of a conversion is one conversion.
// CHECK-LABEL: tt.func public @cc(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V1]], %[[ARG0]]
tt.func public @cc(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked2> -> tensor<32x32xf32, #blocked1>
  %2 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked2> -> tensor<32x32xf32, #blocked>
  tt.return %1, %2 : tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked>
}

// What is the same everywhere is made in the wanted layout.
// CHECK-LABEL: tt.func public @splat(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = tt.splat %[[ARG0]] : f32 -> tensor<32x32xf32, #blocked>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = tt.splat %[[ARG0]] : f32 -> tensor<32x32xf32, #blocked2>
// CHECK-NEXT: tt.return %[[V2]], %[[V1]]
tt.func public @splat(%x: f32) -> (tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked>) {
  %0 = tt.splat %x : f32 -> tensor<32x32xf32, #blocked>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  tt.return %1, %0 : tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked>
}

// A constant of one value is made in the wanted layout, others are not.
// CHECK-LABEL: tt.func public @const(
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32, #blocked4>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.constant dense<1.000000e+00> : tensor<32x32xf32, #blocked2>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.convert_layout %[[V0]] : tensor<4xi32, #blocked4> -> tensor<4xi32, #blocked3>
// CHECK-NEXT: tt.return %[[V1]], %[[V2]]
tt.func public @const() -> (tensor<32x32xf32, #blocked2>, tensor<4xi32, #blocked3>) {
  %0 = arith.constant dense<1.0> : tensor<32x32xf32, #blocked>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %c = arith.constant dense<[1, 2, 3, 4]> : tensor<4xi32, #blocked4>
  %d = ttg.convert_layout %c : tensor<4xi32, #blocked4> -> tensor<4xi32, #blocked3>
  tt.return %1, %d : tensor<32x32xf32, #blocked2>, tensor<4xi32, #blocked3>
}

// A range is made in the wanted layout.
// CHECK-LABEL: tt.func public @range(
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked4>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked3>
// CHECK-NEXT: tt.return %[[V0]], %[[V1]]
tt.func public @range() -> (tensor<128xi32, #blocked4>, tensor<128xi32, #blocked3>) {
  %0 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #blocked4>
  %1 = ttg.convert_layout %0 : tensor<128xi32, #blocked4> -> tensor<128xi32, #blocked3>
  tt.return %0, %1 : tensor<128xi32, #blocked4>, tensor<128xi32, #blocked3>
}

// A load is made in the wanted layout, where it was: the buffer is written after it.
// CHECK-LABEL: tt.func public @load(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.local_load %[[ARG0]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked2>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.local_load %[[ARG0]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
// CHECK-NEXT: ttg.local_store %[[ARG1]], %[[ARG0]] : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: tt.return %[[V2]], %[[V3]]
tt.func public @load(%m: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked>) {
  %0 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  ttg.local_store %t, %m : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  tt.return %1, %0 : tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked>
}

// From the result of one dot to an operand of the next: left for the passes that look for it.
// CHECK-LABEL: tt.func public @mmadot(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #mma>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.convert_layout %[[V1]] : tensor<32x32xf32, #mma> -> tensor<32x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: tt.return %[[V2]]
tt.func public @mmadot(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #dot>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #mma>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #mma> -> tensor<32x32xf32, #dot>
  tt.return %1 : tensor<32x32xf32, #dot>
}

// The operand of a dot is converted from as far back as possible.
// CHECK-LABEL: tt.func public @dotdst(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>>
// CHECK-NEXT: tt.return %[[V1]]
tt.func public @dotdst(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #dot>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked2> -> tensor<32x32xf32, #dot>
  tt.return %1 : tensor<32x32xf32, #dot>
}

// Conversions that are to stay within warps keep their source.
// CHECK-LABEL: tt.func public @force(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V1]], %[[V2]]
tt.func public @force(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked1>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %1 = ttg.convert_layout %0 : tensor<32x32xf32, #blocked2> -> tensor<32x32xf32, #blocked>
  %2 = ttg.convert_layout %1 {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  %3 = ttg.convert_layout %t {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  %4 = ttg.convert_layout %3 : tensor<32x32xf32, #blocked1> -> tensor<32x32xf32, #blocked2>
  %5 = ttg.convert_layout %4 : tensor<32x32xf32, #blocked2> -> tensor<32x32xf32, #blocked1>
  tt.return %2, %5 : tensor<32x32xf32, #blocked1>, tensor<32x32xf32, #blocked1>
}

// A conversion need not stay within warps because one before it did.
// CHECK-LABEL: tt.func public @force2(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.convert_layout %[[ARG0]] {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
// CHECK-NEXT: tt.return %[[V1]], %[[V2]]
tt.func public @force2(%t: tensor<32x32xf32, #blocked>) -> (tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked1>) {
  %3 = ttg.convert_layout %t {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  %4 = ttg.convert_layout %3 : tensor<32x32xf32, #blocked1> -> tensor<32x32xf32, #blocked2>
  %5 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked>
  %6 = ttg.convert_layout %5 {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  tt.return %4, %6 : tensor<32x32xf32, #blocked2>, tensor<32x32xf32, #blocked1>
}

// A buffer is filled from any layout.
// CHECK-LABEL: tt.func public @alloc(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.local_alloc %[[ARG0]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.local_alloc %[[ARG0]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: ttg.local_store %[[ARG0]], %[[V2]] : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
// CHECK-NEXT: tt.return %[[V1]], %[[V2]]
tt.func public @alloc(%t: tensor<32x32xf32, #blocked>) -> (!ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked2>
  %1 = ttg.local_alloc %0 : (tensor<32x32xf32, #blocked2>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %2 = ttg.local_alloc %0 : (tensor<32x32xf32, #blocked2>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  ttg.local_store %0, %2 : tensor<32x32xf32, #blocked2> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return %1, %2 : !ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
}

// A copy of a buffer that nobody writes is the buffer.
// CHECK-LABEL: tt.func public @allocload(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.local_load %[[ARG1]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.local_alloc %[[V2]] : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
// CHECK-NEXT: tt.return %[[ARG0]], %[[V3]]
tt.func public @allocload(%m: !ttg.memdesc<32x32xf32, #shared, #smem>, %n: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) -> (!ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem>) {
  %0 = ttg.local_load %m : !ttg.memdesc<32x32xf32, #shared, #smem> -> tensor<32x32xf32, #blocked>
  %1 = ttg.local_alloc %0 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  %2 = ttg.local_load %n : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf32, #blocked>
  %3 = ttg.local_alloc %2 : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem>
  tt.return %1, %3 : !ttg.memdesc<32x32xf32, #shared, #smem>, !ttg.memdesc<32x32xf32, #shared, #smem>
}

// Views of views.
// CHECK-LABEL: tt.func public @views(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttg.memdesc_subslice %[[ARG0]][16, 8] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<16x8xf32, #shared, #smem, mutable, 32x32>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = ttg.memdesc_reinterpret %[[ARG0]] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xi32, #shared, #smem, mutable>
// CHECK-NEXT: tt.return %[[ARG0]], %[[V1]], %[[V2]], %[[ARG0]], %[[ARG0]]
tt.func public @views(%m: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) -> (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<16x8xf32, #shared, #smem, mutable, 32x32>, !ttg.memdesc<32x32xi32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  %0 = ttg.memdesc_trans %m {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared1, #smem, mutable>
  %1 = ttg.memdesc_trans %0 {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared1, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %2 = ttg.memdesc_subslice %m[16, 0] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable, 32x32>
  %3 = ttg.memdesc_subslice %2[0, 8] : !ttg.memdesc<16x32xf32, #shared, #smem, mutable, 32x32> -> !ttg.memdesc<16x8xf32, #shared, #smem, mutable, 32x32>
  %4 = ttg.memdesc_reinterpret %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
  %5 = ttg.memdesc_reinterpret %4 : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x32xi32, #shared, #smem, mutable>
  %6 = ttg.memdesc_reinterpret %m : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  %7 = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return %1, %3, %5, %6, %7 : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<16x8xf32, #shared, #smem, mutable, 32x32>, !ttg.memdesc<32x32xi32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
}

// A histogram takes and gives any layout.
// CHECK-LABEL: tt.func public @hist(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = tt.histogram %[[ARG0]] : tensor<128xi32, #blocked4> -> tensor<32xi32, #blocked3>
// CHECK-NEXT: tt.return %[[V1]]
tt.func public @hist(%t: tensor<128xi32, #blocked4>) -> (tensor<32xi32, #blocked3>) {
  %c = ttg.convert_layout %t : tensor<128xi32, #blocked4> -> tensor<128xi32, #blocked3>
  %0 = tt.histogram %c : tensor<128xi32, #blocked3> -> tensor<32xi32, #blocked4>
  %1 = ttg.convert_layout %0 : tensor<32xi32, #blocked4> -> tensor<32xi32, #blocked3>
  tt.return %1 : tensor<32xi32, #blocked3>
}

// A gather takes any layout of its source.
// CHECK-LABEL: tt.func public @gather(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = tt.gather %[[ARG0]][%[[ARG1]]] {axis = 0 : i32} : (tensor<128xi32, #blocked4>, tensor<128xi32, #blocked4>) -> tensor<128xi32, #blocked4>
// CHECK-NEXT: tt.return %[[V2]]
tt.func public @gather(%t: tensor<128xi32, #blocked4>, %i: tensor<128xi32, #blocked4>) -> (tensor<128xi32, #blocked4>) {
  %c = ttg.convert_layout %t : tensor<128xi32, #blocked4> -> tensor<128xi32, #blocked3>
  %0 = tt.gather %c[%i] {axis = 0 : i32} : (tensor<128xi32, #blocked3>, tensor<128xi32, #blocked4>) -> tensor<128xi32, #blocked4>
  tt.return %0 : tensor<128xi32, #blocked4>
}

// A reshape that may reorder elements takes and gives any layout that moves nothing.
// CHECK-LABEL: tt.func public @reshape(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = tt.reshape %[[ARG0]] allow_reorder : tensor<32x32xi32, #blocked> -> tensor<1024xi32, #blocked4>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = tt.reshape %[[ARG0]] allow_reorder : tensor<32x32xi32, #blocked> -> tensor<1024xi32, #blocked4>
// CHECK-NEXT: tt.return %[[V1]], %[[V2]]
tt.func public @reshape(%t: tensor<32x32xi32, #blocked>) -> (tensor<1024xi32, #blocked4>, tensor<1024xi32, #blocked4>) {
  %c = ttg.convert_layout %t : tensor<32x32xi32, #blocked> -> tensor<32x32xi32, #blocked2>
  %0 = tt.reshape %c allow_reorder : tensor<32x32xi32, #blocked2> -> tensor<1024xi32, #blocked4>
  %1 = tt.reshape %t allow_reorder : tensor<32x32xi32, #blocked> -> tensor<1024xi32, #blocked3>
  %2 = ttg.convert_layout %1 : tensor<1024xi32, #blocked3> -> tensor<1024xi32, #blocked4>
  tt.return %0, %2 : tensor<1024xi32, #blocked4>, tensor<1024xi32, #blocked4>
}

// A concatenation gives any layout in which each thread has what it has of both operands.
// CHECK-LABEL: tt.func public @cat(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = tt.cat %[[ARG0]], %[[ARG0]] : tensor<128xi32, #blocked4> -> tensor<256xi32, #blocked3>
// CHECK-NEXT: tt.return %[[V1]]
tt.func public @cat(%t: tensor<128xi32, #blocked4>) -> (tensor<256xi32, #blocked3>) {
  %0 = tt.cat %t, %t : tensor<128xi32, #blocked4> -> tensor<256xi32, #blocked4>
  %2 = ttg.convert_layout %0 : tensor<256xi32, #blocked4> -> tensor<256xi32, #blocked3>
  tt.return %2 : tensor<256xi32, #blocked3>
}

// Results that nobody uses go, and captures that nobody uses or that are captured already.
// CHECK-LABEL: tt.func public @ws(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]{{.*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = ttg.warp_specialize(%[[ARG0]], %[[ARG2]]) attributes {requestedRegisters = array<i32: 24>}
// CHECK-NEXT: default {
// CHECK-NEXT: ttg.warp_yield %[[ARG1]] : i32
// CHECK-NEXT: }
// CHECK-NEXT: partition0(%[[ARG3:[a-z0-9_]+]]: i32, %[[ARG4:[a-z0-9_]+]]: !tt.ptr<i32>) num_warps(4) {
// CHECK-NEXT: %[[V6:[a-z0-9_]+]] = arith.addi %[[ARG3]], %[[ARG3]] : i32
// CHECK-NEXT: tt.store %[[ARG4]], %[[V6]] : !tt.ptr<i32>
// CHECK-NEXT: ttg.warp_return
// CHECK-NEXT: } : (i32, !tt.ptr<i32>) -> i32
// CHECK-NEXT: tt.return %[[V3]]
tt.func public @ws(%a: i32, %b: i32, %p: !tt.ptr<i32>) -> i32 {
  %0:2 = ttg.warp_specialize(%a, %a, %b, %p) attributes {requestedRegisters = array<i32: 24>}
  default {
    ttg.warp_yield %a, %b : i32, i32
}
  partition0(%x: i32, %y: i32, %z: i32, %q: !tt.ptr<i32>) num_warps(4) {
    %s = arith.addi %x, %y : i32
    tt.store %q, %s : !tt.ptr<i32>
    ttg.warp_return
} : (i32, i32, i32, !tt.ptr<i32>) -> (i32, i32)
  tt.return %0#1 : i32
}

// Masks are left to the pass that makes them.
// CHECK-LABEL: tt.func public @mask(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{.*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = arith.constant true
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = "ttg.mask"(%[[V2]]) ({
// CHECK-NEXT: ttg.mask.return %[[ARG0]] : i32
// CHECK-NEXT: }) : (i1) -> i32
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = ttg.predicate_stage %[[ARG0]], %[[ARG0]], %[[ARG0]] maxStage 2 stage 0 : i32 -> i1
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = arith.select %[[V4]], %[[V3]], %[[ARG0]] : i32
// CHECK-NEXT: tt.return %[[V5]]
tt.func public @mask(%a: i32, %t: i1) -> i32 {
  %true = arith.constant true
  %0 = "ttg.mask"(%true) ({
    ttg.mask.return %a : i32
}) : (i1) -> i32
  %p = ttg.predicate_stage %a, %a, %a maxStage 2 stage 0 : i32 -> i1
  %1 = arith.select %p, %0, %a : i32
  tt.return %1 : i32
}

}
