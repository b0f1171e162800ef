// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-global-scratch-memory-allocation --convert-triton-gpu-to-llvm | FileCheck %s

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// Each block has a barrier of its own. `fromCTA = 0` lets the first arrive for both, a lane for each; with
// `multicastCTA` each arrives at both.
// CHECK-LABEL: llvm.func @own(
// CHECK:      "@$1 mbarrier.init.shared::cta.b64 [ $0 ], 3;"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.fence.mbarrier_init.release.cluster"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive.relaxed.aligned"
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.barrier.cluster.wait.aligned"
// CHECK:      "@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [ $0 ], 640;"
// CHECK:      %[[NUMBER:.*]] = llvm.xor %[[BLOCK:.*]], %{{.*}} : i32
// CHECK:      %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:      llvm.icmp "ult" %{{.*}}, %[[TWO]]
// CHECK:      %[[FAR:.*]] = llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"(%{{.*}}, %[[NUMBER]])
// CHECK:      "@$1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [ $0 ], 640;"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"
// CHECK:      "@$1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [ $0 ], 2;"
// CHECK:      mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.mbarrier.arrive.shared"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.mbarrier.arrive.noinc.shared"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.barrier.cluster.arrive.aligned"
tt.func public @own(%c: i1, %phase: i32) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 3 : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.fence_mbarrier_init_release_cluster
  ttng.cluster_barrier {relaxed = true}
  ttng.barrier_expect %bar, 640, %c : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.barrier_expect %bar, 640 {fromCTA = 0 : i32}, %c : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.arrive_barrier %bar, 2 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.wait_barrier %bar, %phase : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.async_copy_mbarrier_arrive %bar : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.async_copy_mbarrier_arrive %bar {noIncrement} : !ttg.memdesc<2xi64, #word, #smem, mutable>
  ttng.cluster_barrier
  tt.return
}
}

// -----

#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// A barrier that both share is the first block's: it counts the arrivals of both, and alone waits.
// CHECK-LABEL: llvm.func @shared(
// CHECK:      "@$1 mbarrier.init.shared::cta.b64 [ $0 ], 6;"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.mapa.shared.cluster"
// CHECK-NOT:  shared::cta
// CHECK:      "@$1 mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [ $0 ], 640;"
// CHECK:      "@$1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [ $0 ], 2;"
// CHECK:      %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}} : i32
// CHECK:      "{\0A\09.reg .pred complete;\0A\09@!$2 bra.uni done;{{.*}}", "r,r,b,~{memory}" %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK:      "@$1 mbarrier.inval.shared::cta.b64 [ $0 ];"
tt.func public @shared(%c: i1, %phase: i32) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.init_barrier %bar, 3 : !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.barrier_expect %bar, 640, %c : !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.arrive_barrier %bar, 2 : !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #one, #smem, mutable>
  ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #one, #smem, mutable>
  tt.return
}
}

// -----

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#split = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#both = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// Each block copies its half, 32 rows further on in the second.
// CHECK-LABEL: llvm.func @halves(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {{{.*}}}, %[[I:[a-z0-9]+]]: i32, %[[J:[a-z0-9]+]]: i32
// CHECK:      %[[BLOCK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:      %[[BIT:.*]] = llvm.and %[[BLOCK]], %{{.*}} : i32
// CHECK:      %[[FIVE:.*]] = llvm.mlir.constant(5 : i32)
// CHECK:      %[[START:.*]] = llvm.shl %[[BIT]], %[[FIVE]]
// CHECK:      %[[ROW:.*]] = llvm.add %[[I]], %[[START]]
// CHECK:      "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4} ], [ $5 ];", "b,r,l,r,r,r,~{memory}" %{{.*}}, %{{.*}}, %[[MAP]], %[[J]], %[[ROW]]
tt.func public @halves(%d: !tt.tensordesc<64x64xf16, #split>, %i: i32, %j: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #split, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %c : !tt.tensordesc<64x64xf16, #split>, !ttg.memdesc<2xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #split, #smem, mutable>
  tt.return
}

// What both have is loaded by each, or by the first for both; one stores it.
// CHECK-LABEL: llvm.func @copies(
// CHECK:      cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4} ], [ $5 ];"
// CHECK:      %[[ISSUES:.*]] = llvm.and %arg3, %{{.*}} : i1
// CHECK:      %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}} : i32
// CHECK-NEXT: %[[ON:.*]] = llvm.and %[[ISSUES]], %[[FIRST]]
// CHECK:      %[[BOTH:.*]] = llvm.mlir.constant(3 : i32)
// CHECK-NEXT: %[[WORD:.*]] = llvm.shl %[[BOTH]], %{{.*}}
// CHECK-NEXT: %[[MASK:.*]] = llvm.trunc %[[WORD]] : i32 to i16
// CHECK:      "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [ $1 ], [ $2, {$3, $4} ], [ $5 ], $6;", "b,r,l,r,r,r,h,~{memory}" %[[ON]], %{{.*}}, %[[MASK]]
// CHECK:      %[[ONE:.*]] = llvm.icmp "eq" %{{.*}} : i32
// CHECK:      elect.sync
// CHECK:      %[[STORES:.*]] = llvm.and %[[ONE]], %{{.*}}
// CHECK:      cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [ $2, {$3, $4} ], [ $1 ];", "b,r,l,r,r,~{memory}" %[[STORES]]
tt.func public @copies(%d: !tt.tensordesc<64x64xf16, #both>, %i: i32, %j: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #both, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %c : !tt.tensordesc<64x64xf16, #both>, !ttg.memdesc<2xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #both, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %c {multicast} : !tt.tensordesc<64x64xf16, #both>, !ttg.memdesc<2xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xf16, #both, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%i, %j] %buf : !tt.tensordesc<64x64xf16, #both>, !ttg.memdesc<64x64xf16, #both, #smem, mutable>
  ttng.async_tma_store_wait {pendings = 0 : i32}
  tt.return
}

// Each block of a program has global scratch memory of its own.
// CHECK-LABEL: llvm.func @scratch(
// CHECK:      %[[BLOCK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK:      %[[WIDE:.*]] = llvm.zext %[[BLOCK]] : i32 to i64
// CHECK:      %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// CHECK-NEXT: %[[FIRST:.*]] = llvm.mul %{{.*}}, %[[TWO]]
// CHECK-NEXT: %[[NUMBER:.*]] = llvm.add %[[FIRST]], %[[WIDE]]
// CHECK:      llvm.mul %[[NUMBER]], %{{.*}} : i64
tt.func public @scratch() {
  %c0 = arith.constant 0 : i8
  %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  tt.store %p, %c0 : !tt.ptr<i8>
  tt.return
}
}
