// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:100/ %s | %ttopt --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s --check-prefix=FOUR

// Each of two warps has eight rows in registers, every fourth of which the other does not; two warps have none of
// their own. Rows of 256 bytes are two copies of 128 bytes, 16 rows apart.
#rows = #ttg.linear<{register = [[1], [2], [8]], lane = [[0], [0], [0], [0], [0]], warp = [[4], [0]], block = []}>
#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func @gather(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {{{[^}]*}}}, %[[R0:[a-z0-9]+]]: i32, %[[R1:[a-z0-9]+]]: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %{{.*}}: i32, %[[Y:[a-z0-9]+]]: i32, %[[C:[a-z0-9]+]]: i1
// The second warp's rows are 512 bytes further on; the upper two warps issue nothing.
// CHECK:      %[[WARP:.*]] = llvm.lshr %{{.*}} : i32
// CHECK:      %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-NEXT: %[[MINE:.*]] = llvm.and %[[WARP]], %[[ONE]]
// CHECK:      %[[NINE:.*]] = llvm.mlir.constant(9 : i32)
// CHECK-NEXT: %[[MOVED:.*]] = llvm.shl %[[MINE]], %[[NINE]]
// CHECK:      elect.sync
// CHECK:      %[[LOWER:.*]] = llvm.icmp "eq" %{{.*}} : i32
// CHECK:      llvm.and %{{.*}}, %[[LOWER]] : i1
// CHECK-NEXT: %[[ON:.*]] = llvm.and %{{.*}}, %[[C]] : i1
// CHECK:      llvm.getelementptr %{{.*}}[%[[MOVED]]]
// CHECK:      "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4} ], [ $5 ];", "b,r,l,r,r,r,~{memory}" %[[ON]], %{{.*}}, %[[MAP]], %[[Y]], %[[R0]], %
// CHECK:      llvm.mlir.constant(128 : i32)
// CHECK:      cp.async.bulk.tensor.2d.shared::cluster{{.*}} %[[MAP]], %[[Y]], %[[R1]], %
// CHECK-COUNT-6: cp.async.bulk.tensor.2d.shared::cluster
// CHECK:      %[[C64:.*]] = llvm.mlir.constant(64 : i32)
// CHECK-NEXT: %[[NEXT:.*]] = llvm.add %[[Y]], %[[C64]]
// CHECK:      llvm.mlir.constant(2048 : i32)
// CHECK:      cp.async.bulk.tensor.2d.shared::cluster{{.*}} %[[MAP]], %[[NEXT]], %[[R0]], %
// CHECK-COUNT-7: cp.async.bulk.tensor.2d.shared::cluster
// CHECK-NOT:  cp.async.bulk.tensor

// FOUR-LABEL: llvm.func @gather(
// FOUR-COUNT-4: "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile::gather4.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4, $5, $6, $7} ], [ $8 ];", "b,r,l,r,r,r,r,r,r,~{memory}"
// FOUR-NOT: cp.async.bulk.tensor
tt.func public @gather(%d: !tt.tensordesc<1x128xf16, #wide>, %r: tensor<16xi32, #rows>, %y: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_gather %d[%r, %y] %buf, %bar, %c : !tt.tensordesc<1x128xf16, #wide>, tensor<16xi32, #rows>, i32, !ttg.memdesc<1xi64, #word, #smem, mutable>, !ttg.memdesc<16x128xf16, #wide, #smem, mutable>, i1
  tt.return
}

// Rows before the tensor are left out: copies that begin there trap.
// CHECK-LABEL: llvm.func @scatter(
// CHECK:      %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:      %[[IN:.*]] = llvm.icmp "sge" %[[R0:.*]], %{{.*}} : i32
// CHECK-NEXT: %[[ON:.*]] = llvm.and %{{.*}}, %[[IN]]
// CHECK:      "@$0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [ $2, {$3, $4} ], [ $1 ];", "b,r,l,r,r,~{memory}" %[[ON]], %{{.*}}, %{{.*}}, %{{.*}}, %[[R0]]
// CHECK-COUNT-15: cp.async.bulk.tensor.2d.global
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.commit.group"

// FOUR-LABEL: llvm.func @scatter(
// FOUR:      %[[BEHIND:.*]] = llvm.mlir.constant(2147483647 : i32)
// FOUR-COUNT-4: llvm.select %{{.*}}, %{{.*}}, %[[BEHIND]]
// FOUR:      tile::scatter4
// FOUR-COUNT-3: "@$0 cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group [ $2, {$3, $4, $5, $6, $7} ], [ $1 ];", "b,r,l,r,r,r,r,r,~{memory}"
// FOUR-NEXT: llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.commit.group"
tt.func public @scatter(%d: !tt.tensordesc<1x128xf16, #wide>, %r: tensor<16xi32, #rows>, %y: i32) {
  %buf = ttg.local_alloc : () -> !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_scatter %d[%r, %y] %buf : !tt.tensordesc<1x128xf16, #wide>, tensor<16xi32, #rows>, i32, !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  tt.return
}

// All warps issue copies of rows: they wait for the one that has acquired the map.
// CHECK-LABEL: llvm.func @acquire(
// CHECK: fence.proxy.tensormap::generic.acquire.gpu
// CHECK: nvvm.barrier0
tt.func public @acquire(%p: !tt.ptr<i8>) {
  ttng.tensormap_fenceproxy_acquire %p : !tt.ptr<i8>
  tt.return
}
}
