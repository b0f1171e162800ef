// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-global-scratch-memory-allocation --convert-triton-gpu-to-llvm | FileCheck %s

#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#cube = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8, rank = 3}>
#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// One lane of the first warp makes the barrier, copies must find it made; all threads wait.
// CHECK-LABEL: llvm.func @barriers(
// CHECK:      %[[LANE:.*]] = llvm.extractvalue %{{.*}}[1] : !llvm.struct<(i32, i1)>
// CHECK:      %[[WARP:.*]] = llvm.icmp "eq" %{{.*}} : i32
// CHECK-NEXT: %[[FIRST:.*]] = llvm.and %[[WARP]], %[[LANE]] : i1
// CHECK:      llvm.inline_asm has_side_effects "@$1 mbarrier.init.shared::cta.b64 [ $0 ], 3;", "r,b,~{memory}" %{{.*}}, %[[FIRST]]
// CHECK-NEXT: llvm.inline_asm has_side_effects "fence.proxy.async.shared::cta;"
// CHECK:      "@$1 mbarrier.arrive.expect_tx.shared::cta.b64 _, [ $0 ], 640;"
// CHECK:      "@$1 mbarrier.arrive.shared::cta.b64 _, [ $0 ], 2;"
// CHECK:      "{\0A\09.reg .pred complete;\0A\09wait:\0A\09mbarrier.try_wait.parity.shared::cta.b64 complete, [ $0 ], $1;\0A\09@!complete bra.uni wait;\0A\09done:\0A}", "r,r,~{memory}" %{{.*}}, %[[PHASE:.*]] : (i32, i32)
// CHECK:      "{\0A\09.reg .pred complete;\0A\09@!$2 bra.uni done;\0A\09wait:{{.*}}", "r,r,b,~{memory}"
// CHECK:      "@$1 mbarrier.inval.shared::cta.b64 [ $0 ];"
// CHECK-NEXT: "fence.proxy.async.shared::cta;"
tt.func public @barriers(%phase: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.init_barrier %bar, 3 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.barrier_expect %bar, 640, %c : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.arrive_barrier %bar, 2 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.wait_barrier %bar, %phase : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.wait_barrier %bar, %phase, %c : !ttg.memdesc<1xi64, #word, #smem, mutable>
  ttng.inval_barrier %bar : !ttg.memdesc<1xi64, #word, #smem, mutable>
  tt.return
}

// An argument is the map itself. Rows of 256 bytes are two boxes, 64 elements and 16 rows of 128 bytes apart.
// CHECK-LABEL: llvm.func @copies(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %[[I:[a-z0-9]+]]: i32, %[[J:[a-z0-9]+]]: i32
// CHECK:      "@$0 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4} ], [ $5 ];", "b,r,l,r,r,r,~{memory}" %{{.*}}, %{{.*}}, %[[MAP]], %[[J]], %[[I]], %{{.*}}
// CHECK:      %[[C64:.*]] = llvm.mlir.constant(64 : i32)
// CHECK-NEXT: %[[NEXT:.*]] = llvm.add %[[J]], %[[C64]]
// CHECK-NEXT: %[[C2048:.*]] = llvm.mlir.constant(2048 : i32)
// CHECK:      cp.async.bulk.tensor.2d.shared::cluster{{.*}} %[[MAP]], %[[NEXT]], %[[I]], %{{.*}}
// CHECK:      "@$0 cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [ $2, {$3, $4} ], [ $1 ];", "b,r,l,r,r,~{memory}" %{{.*}}, %{{.*}}, %[[MAP]], %[[J]], %[[I]]
// CHECK:      cp.async.bulk.tensor.2d.global{{.*}} %[[MAP]], %{{.*}}, %[[I]]
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.commit.group"()
// CHECK:      "@$0 cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [ $2, {$3, $4} ], [ $1 ];"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.commit.group"()
// CHECK:      llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.wait.group.read"
// CHECK:      %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-NEXT: llvm.call_intrinsic "llvm.nvvm.cp.async.bulk.wait.group"(%[[ONE]])
tt.func public @copies(%d: !tt.tensordesc<16x128xf16, #wide>, %i: i32, %j: i32, %c: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%i, %j] %buf, %bar, %c : !tt.tensordesc<16x128xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%i, %j] %buf : !tt.tensordesc<16x128xf16, #wide>, !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_reduce add, %d[%i, %j] %buf : !tt.tensordesc<16x128xf16, #wide>, !ttg.memdesc<16x128xf16, #wide, #smem, mutable>
  ttng.async_tma_store_wait {pendings = 0 : i32, read_only}
  ttng.async_tma_store_wait {pendings = 1 : i32}
  tt.return
}

// Coordinates are given from the contiguous dimension on.
// CHECK-LABEL: llvm.func @three(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {{{.*}}}, %[[X:[a-z0-9]+]]: i32, %[[Y:[a-z0-9]+]]: i32, %[[Z:[a-z0-9]+]]: i32
// CHECK: cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group [ $2, {$3, $4, $5} ], [ $1 ];", "b,r,l,r,r,r,~{memory}" %{{.*}}, %{{.*}}, %[[MAP]], %[[Z]], %[[Y]], %[[X]]
tt.func public @three(%d: !tt.tensordesc<2x4x32xi8, #cube>, %x: i32, %y: i32, %z: i32) {
  %buf = ttg.local_alloc : () -> !ttg.memdesc<2x4x32xi8, #cube, #smem, mutable>
  ttng.async_tma_copy_local_to_global %d[%x, %y, %z] %buf : !tt.tensordesc<2x4x32xi8, #cube>, !ttg.memdesc<2x4x32xi8, #cube, #smem, mutable>
  tt.return
}

// The first warp clears 128 bytes, one lane sets the fields, all lanes publish the map. A program's scratch memory
// follows that of the program before, x fastest.
// CHECK-LABEL: llvm.func @make(
// CHECK-SAME: %[[P:[a-z0-9]+]]: !llvm.ptr<1>, %[[N:[a-z0-9]+]]: i32, %[[M:[a-z0-9]+]]: i32, %[[S:[a-z0-9]+]]: i64, %[[ALL:[a-z0-9]+]]: !llvm.ptr<1>
// CHECK:      %[[Z:.*]] = nvvm.read.ptx.sreg.ctaid.z
// CHECK:      nvvm.read.ptx.sreg.ctaid.y
// CHECK:      nvvm.read.ptx.sreg.nctaid.y
// CHECK:      nvvm.read.ptx.sreg.ctaid.x
// CHECK:      nvvm.read.ptx.sreg.nctaid.x
// CHECK:      %[[SIZE:.*]] = llvm.mlir.constant(256 : i64)
// CHECK-NEXT: %[[AT:.*]] = llvm.mul %{{.*}}, %[[SIZE]]
// CHECK-NEXT: %[[MINE:.*]] = llvm.getelementptr %[[ALL]][%[[AT]]]
// CHECK:      llvm.cond_br
// CHECK:      llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK:      llvm.nvvm.bar.warp.sync
// CHECK:      llvm.cond_br
// CHECK:      "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [ $0 ], $1;", "r,l,~{memory}" %{{.*}}, %[[P]]
// CHECK-NEXT: "tensormap.replace.tile.rank.shared::cta.b1024.b32 [ $0 ], 1;"
// CHECK-NEXT: "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [ $0 ], 0, $1;"
// CHECK-NEXT: "tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [ $0 ], 1, $1;"
// CHECK-NEXT: "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [ $0 ], 0, $1;", "r,r,~{memory}" %{{.*}}, %[[M]]
// CHECK-NEXT: "tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [ $0 ], 1, $1;", "r,r,~{memory}" %{{.*}}, %[[N]]
// CHECK-NEXT: "tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [ $0 ], 0, $1;", "r,l,~{memory}" %{{.*}}, %[[S]]
// CHECK-NEXT: "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [ $0 ], 0, $1;"
// CHECK-NEXT: "tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [ $0 ], 1, $1;"
// CHECK-NEXT: "tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [ $0 ], 6;"
// CHECK-NEXT: "tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [ $0 ], 0;"
// CHECK-NEXT: "tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [ $0 ], 3;"
// CHECK-NEXT: "tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [ $0 ], 1;"
// CHECK-NEXT: llvm.br
// CHECK:      llvm.nvvm.bar.warp.sync
// CHECK:      "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [ $0 ], [ $1 ], 128;", "l,r,~{memory}" %[[MINE]], %{{.*}}
// CHECK-NEXT: "fence.proxy.async.shared::cta;"
// CHECK:      "fence.proxy.tensormap::generic.acquire.gpu [ $0 ], 128;", "l,~{memory}" %[[MINE]]
// CHECK:      %[[D:.*]] = llvm.addrspacecast %[[MINE]] : !llvm.ptr<1> to !llvm.ptr
// CHECK:      %[[PART:.*]] = llvm.getelementptr %[[MINE]][%{{.*}}]
// CHECK-NEXT: llvm.call @callee(%[[D]], %[[PART]]) : (!llvm.ptr, !llvm.ptr<1>) -> ()
tt.func public @make(%p: !tt.ptr<f16>, %n: i32, %m: i32, %s: i64) {
  %c64 = arith.constant 64 : i32
  %c1 = arith.constant 1 : i32
  %map = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  ttng.tensormap_create %map, %p, [%c64, %c64], [%m, %n], [%s], [%c1, %c1] {elem_type = 6 : i32, fill_mode = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
  ttng.tensormap_fenceproxy_acquire %map : !tt.ptr<i8>
  %d = ttng.reinterpret_tensor_descriptor %map : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #wide>
  tt.call @callee(%d) : (!tt.tensordesc<64x64xf16, #wide>) -> ()
  tt.return
}

// A function that is called gets its part from the caller.
// CHECK-LABEL: llvm.func internal @callee(
// CHECK-SAME: %{{.*}}: !llvm.ptr, %[[MINE:[a-z0-9]+]]: !llvm.ptr<1>)
// CHECK: llvm.inline_asm {{.*}}st.global.b8{{.*}} %[[MINE]],
tt.func private @callee(%d: !tt.tensordesc<64x64xf16, #wide>) {
  %c0 = arith.constant 0 : i8
  %p = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  tt.store %p, %c0 : !tt.ptr<i8>
  tt.return
}
}
