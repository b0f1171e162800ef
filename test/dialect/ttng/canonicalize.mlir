// RUN: %ttopt %s --canonicalize | FileCheck %s

#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#rows = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#indices = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#tmem = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
!bar = !ttg.memdesc<1xi64, #b, #smem, mutable>
!m = !ttg.memdesc<64x64xf16, #nvmma, #smem, mutable>
!d = !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
!desc = !tt.tensordesc<64x64xf16, #nvmma>
!row = !tt.tensordesc<1x64xf16, #nvmma>
!t = tensor<128x64xf32, #rows>
!x = tensor<64xi32, #indices>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// Arrivals that never happen.
// CHECK-LABEL: tt.func public @arrivals(
// CHECK-NEXT: tt.return
tt.func public @arrivals(%b: !bar) {
  %false = arith.constant false
  ttng.barrier_expect %b, 16, %false : !bar
  ttng.arrive_barrier %b, 1, %false : !bar
  ttng.tc_gen5_commit %b, %false : !bar
  tt.return
}

// Waits that never happen; accesses to dependencies stay behind the one that has them.
// CHECK-LABEL: tt.func public @waits(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = arith.constant false
// CHECK-NEXT: ttng.wait_barrier %[[ARG0]], %[[ARG1]], %[[V0]] deps %[[ARG2]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>, !ttg.memdesc<64x64xf16, #shared1, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @waits(%b: !bar, %i: i32, %m: !m) {
  %false = arith.constant false
  ttng.wait_barrier %b, %i, %false : !bar
  ttng.wait_barrier %b, %i, %false deps %m : !bar, !m
  tt.return
}

// Copies that never happen.
// CHECK-LABEL: tt.func public @copies(
// CHECK-NEXT: tt.return
tt.func public @copies(%b: !bar, %i: i32, %m: !m, %desc: !desc, %row: !row, %x: !x) {
  %false = arith.constant false
  ttng.async_tma_copy_global_to_local %desc[%i, %i] %m, %b, %false : !desc, !bar -> !m
  ttng.async_tma_gather %row[%x, %i] %m, %b, %false : !row, !x, i32, !bar, !m, i1
  tt.return
}

// A store that never happens, except where its token orders others.
// CHECK-LABEL: tt.func public @stores(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = arith.constant false
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = ttng.tmem_store %[[ARG0]], %[[ARG1]][%[[ARG2]]], %[[V0]] : tensor<128x64xf32, #blocked1> -> !ttg.memdesc<128x64xf32, #tmem, #ttng.tensor_memory, mutable>
// CHECK-NEXT: tt.return %[[V1]]
tt.func public @stores(%t: !t, %d: !d, %k: !ttg.async.token) -> !ttg.async.token {
  %false = arith.constant false
  ttng.tmem_store %t, %d, %false : !t -> !d
  %0 = ttng.tmem_store %t, %d[%k], %false : !t -> !d
  tt.return %0 : !ttg.async.token
}

// What always happens, or may, stays.
// CHECK-LABEL: tt.func public @happens(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = arith.constant true
// CHECK-NEXT: ttng.barrier_expect %[[ARG0]], 16, %[[V0]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.wait_barrier %[[ARG0]], %[[ARG1]], %[[ARG2]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1, %[[V0]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.tc_gen5_commit %[[ARG0]], %[[ARG2]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @happens(%b: !bar, %i: i32, %p: i1) {
  %true = arith.constant true
  ttng.barrier_expect %b, 16, %true : !bar
  ttng.wait_barrier %b, %i, %p : !bar
  ttng.arrive_barrier %b, 1, %true : !bar
  ttng.arrive_barrier %b, 1 : !bar
  ttng.tc_gen5_commit %b, %p : !bar
  tt.return
}

// The only CTA arrives for itself anyhow.
// CHECK-LABEL: tt.func public @from_itself(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]
// CHECK-NEXT: ttng.barrier_expect %[[ARG0]], 16, %[[ARG1]] : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: ttng.arrive_barrier %[[ARG0]], 1 : !ttg.memdesc<1xi64, #shared, #smem, mutable>
// CHECK-NEXT: tt.return
tt.func public @from_itself(%b: !bar, %p: i1) {
  ttng.barrier_expect %b, 16 {fromCTA = 0 : i32}, %p : !bar
  ttng.arrive_barrier %b, 1 {fromCTA = 0 : i32} : !bar
  tt.return
}

}
