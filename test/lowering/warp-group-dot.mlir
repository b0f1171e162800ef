// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 16]}>
#mma8 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 16, 32]}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#rows = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#columns = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 16}>
#bytes = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
#bytes_t = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Two instructions of sixteen summands: the left operand contiguous along K, the right one along N, which is
// the last flag. The second starts 32 bytes, and 16 rows of 32 bytes, later: 2 and 32 units of 16 bytes. Both are one
// statement.
// CHECK-LABEL: llvm.func @both_in_memory(
// CHECK:         %[[A:.*]] = llvm.or disjoint %{{.*}} : i64
// CHECK:         %[[B:.*]] = llvm.or disjoint %{{.*}} : i64
// CHECK:         %[[YES:.*]] = llvm.mlir.constant(true) : i1
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i64) : i64
// CHECK:         %[[A1:.*]] = llvm.add %[[A]], %[[TWO]] : i64
// CHECK:         %[[ROWS:.*]] = llvm.mlir.constant(32 : i64) : i64
// CHECK:         %[[B1:.*]] = llvm.add %[[B]], %[[ROWS]] : i64
// CHECK:         llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;\0A\09wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, $16, $17, $18, 1, 1, 0, 1;\0A\09wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, $19, $20, $21, 1, 1, 0, 1;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,l,l,b,l,l,b" {{.*}}, %[[A]], %[[B]], %[[YES]], %[[A1]], %[[B1]], %{{.*}} :
// CHECK-NOT:     wgmma.mma_async
// CHECK:         llvm.call_intrinsic "llvm.nvvm.wgmma.commit_group.sync.aligned"()
// CHECK-NEXT:    llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 0;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7"
tt.func public @both_in_memory(%x: f32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #rows, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32x16xf16, #columns, #smem, mutable>
  %c = tt.splat %x : f32 -> tensor<64x16xf32, #mma>
  %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32} : !ttg.memdesc<64x32xf16, #rows, #smem, mutable> * !ttg.memdesc<32x16xf16, #columns, #smem, mutable> -> tensor<64x16xf32, #mma>
  tt.return
}

// Tiles of 64 rows whose operands are both in memory are one statement, too: ptxas counts what follows a fence by itself, so that a wait
// that leaves this dot under way would wait for the first of two tiles that have a fence each.
// CHECK-LABEL: llvm.func @two_tiles(
// CHECK:         "wgmma.fence.sync.aligned;{{.*}} {$0, $1, $2, $3, $4, $5, $6, $7}, {{.*}} {$0, $1, $2, $3, $4, $5, $6, $7}, {{.*}} {$8, $9, $10, $11, $12, $13, $14, $15}, {{.*}} {$8, $9, $10, $11, $12, $13, $14, $15}, {{[^{]*}};",
// CHECK-NOT:     wgmma.fence
// CHECK:         llvm.call_intrinsic "llvm.nvvm.wgmma.commit_group.sync.aligned"()
tt.func public @two_tiles(%x: f32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<128x32xf16, #rows, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32x16xf16, #columns, #smem, mutable>
  %c = tt.splat %x : f32 -> tensor<128x16xf32, #mma>
  %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true} : !ttg.memdesc<128x32xf16, #rows, #smem, mutable> * !ttg.memdesc<32x16xf16, #columns, #smem, mutable> -> tensor<128x16xf32, #mma>
  %e = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<128x16xf32, #mma>
  tt.return
}

// An asynchronous dot is not waited for; its sums pass through the wait that the program has.
// CHECK-LABEL: llvm.func @left_in_registers(
// CHECK:         llvm.inline_asm has_side_effects "wgmma.fence.sync.aligned;\0A\09wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$16, $17, $18, $19}, $20, $21, 1, 1, 1;", "=f,=f,=f,=f,=f,=f,=f,=f,0,1,2,3,4,5,6,7,r,r,r,r,l,b"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.wgmma.commit_group.sync.aligned"()
// CHECK-NOT:     wait_group
// CHECK:         llvm.inline_asm has_side_effects "fence.proxy.async.shared::cta;", ""
// CHECK:         llvm.inline_asm has_side_effects "wgmma.wait_group.sync.aligned 1;"
tt.func public @left_in_registers(%x: f32, %y: f16) {
  %a = tt.splat %y : f16 -> tensor<64x16xf16, #dot>
  %b = ttg.local_alloc : () -> !ttg.memdesc<16x16xf16, #columns, #smem, mutable>
  %c = tt.splat %x : f32 -> tensor<64x16xf32, #mma>
  %d = ttng.warp_group_dot %a, %b, %c {inputPrecision = 0 : i32, isAsync = true} : tensor<64x16xf16, #dot> * !ttg.memdesc<16x16xf16, #columns, #smem, mutable> -> tensor<64x16xf32, #mma>
  ttng.fence_async_shared {bCluster = false}
  %e:2 = ttng.warp_group_dot_wait %d, %b {pendings = 1 : i32} : tensor<64x16xf32, #mma>, !ttg.memdesc<16x16xf16, #columns, #smem, mutable>
  tt.return
}

// An asynchronous dot takes a left operand in registers in two parts, so that the second may be computed while the first is
// multiplied; both are of one group.
// CHECK-LABEL: llvm.func internal @left_in_parts(
// CHECK-COUNT-2: "wgmma.fence.sync.aligned;\0A\09wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16
// CHECK-NOT:     wgmma.fence
// CHECK:         llvm.call_intrinsic "llvm.nvvm.wgmma.commit_group.sync.aligned"()
tt.func private @left_in_parts(%x: f16) -> tensor<64x16xf32, #mma> {
  %a = tt.splat %x : f16 -> tensor<64x32xf16, #dot>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32x16xf16, #columns, #smem, mutable>
  %zero = arith.constant dense<0.0> : tensor<64x16xf32, #mma>
  %d = ttng.warp_group_dot %a, %b, %zero {inputPrecision = 0 : i32, isAsync = true} : tensor<64x32xf16, #dot> * !ttg.memdesc<32x16xf16, #columns, #smem, mutable> -> tensor<64x16xf32, #mma>
  %e = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<64x16xf32, #mma>
  tt.return %e : tensor<64x16xf32, #mma>
}

// What a loop with branches does not change is moved to other registers in each iteration, since ptxas 12.8 would give its
// own to others behind the dot. Without branches it stays.
// CHECK-LABEL: llvm.func @left_of_a_loop(
// CHECK-COUNT-4: "llvm.nvvm.shfl.sync.idx.i32"
// CHECK:         wgmma.mma_async
// CHECK-NOT:     "llvm.nvvm.shfl.sync.idx.i32"
// CHECK:         wgmma.mma_async
tt.func public @left_of_a_loop(%x: f32, %y: f16, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %b = ttg.local_alloc : () -> !ttg.memdesc<16x16xf16, #columns, #smem, mutable>
  %a = tt.splat %y : f16 -> tensor<64x16xf16, #dot>
  %c = tt.splat %x : f32 -> tensor<64x16xf32, #mma>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x16xf32, #mma>) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : tensor<64x16xf16, #dot> * !ttg.memdesc<16x16xf16, #columns, #smem, mutable> -> tensor<64x16xf32, #mma>
    %e = tt.precise_divf %d, %c : tensor<64x16xf32, #mma>
    scf.yield %e : tensor<64x16xf32, #mma>
  }
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %r) -> (tensor<64x16xf32, #mma>) : i32 {
    %d = ttng.warp_group_dot %a, %b, %acc {inputPrecision = 0 : i32} : tensor<64x16xf16, #dot> * !ttg.memdesc<16x16xf16, #columns, #smem, mutable> -> tensor<64x16xf32, #mma>
    scf.yield %d : tensor<64x16xf32, #mma>
  }
  tt.return
}

// Sums of 16 bits, two in a register; a flag says whether the accumulators count.
// CHECK-LABEL: llvm.func @sums_of_f16(
// CHECK-SAME:    %[[USE:.*]]: i1,
// CHECK:         llvm.inline_asm has_side_effects "{{.*}}wgmma.mma_async.sync.aligned.m64n16k16.f16.f16.f16 {$0, $1, $2, $3}, $8, $9, $10, 1, 1, 0, 1;{{.*}}", "=r,=r,=r,=r,0,1,2,3,l,l,b,l,l,b" {{.*}}, %[[USE]], %{{[0-9]+}}, %{{[0-9]+}}, %[[YES:[0-9]+]] :
// CHECK:         "wgmma.wait_group.sync.aligned 0;", "=r,=r,=r,=r,0,1,2,3"
tt.func public @sums_of_f16(%use: i1, %x: f16) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #rows, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<32x16xf16, #columns, #smem, mutable>
  %c = tt.splat %x : f16 -> tensor<64x16xf16, #mma>
  %d = ttng.warp_group_dot %a, %b, %c, %use {inputPrecision = 0 : i32} : !ttg.memdesc<64x32xf16, #rows, #smem, mutable> * !ttg.memdesc<32x16xf16, #columns, #smem, mutable> -> tensor<64x16xf16, #mma>
  tt.return
}

// Integers have no flags. Accumulators that are zero need not be made: they are not read.
// CHECK-LABEL: llvm.func @integers(
// CHECK:         %[[NO:.*]] = llvm.mlir.constant(false) : i1
// CHECK:         llvm.inline_asm has_side_effects "{{.*}}wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {$0, $1, $2, $3, $4, $5, $6, $7}, $16, $17, $18;{{.*}}", "=r,{{.*}}" {{.*}}, %[[NO]], %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} :
tt.func public @integers() {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #bytes, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<64x16xi8, #bytes_t, #smem, mutable>
  %c = arith.constant dense<0> : tensor<64x16xi32, #mma8>
  %d = ttng.warp_group_dot %a, %b, %c : !ttg.memdesc<64x64xi8, #bytes, #smem, mutable> * !ttg.memdesc<64x16xi8, #bytes_t, #smem, mutable> -> tensor<64x16xi32, #mma8>
  tt.return
}

// Sums of 8-bit floats are added up after every 32 summands, as asked for.
// CHECK-LABEL: llvm.func @promoted(
// CHECK:         wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2
// CHECK:         commit_group
// CHECK:         wait_group.sync.aligned 0
// CHECK-COUNT-8: llvm.fadd
// CHECK:         wgmma.fence
// CHECK:         wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e5m2
// CHECK:         wait_group.sync.aligned 0
// CHECK-COUNT-8: llvm.fadd
tt.func public @promoted(%x: f32) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf8E4M3FN, #bytes, #smem, mutable>
  %b = ttg.local_alloc : () -> !ttg.memdesc<64x16xf8E5M2, #bytes_t, #smem, mutable>
  %c = tt.splat %x : f32 -> tensor<64x16xf32, #mma8>
  %d = ttng.warp_group_dot %a, %b, %c {maxNumImpreciseAcc = 32 : i32} : !ttg.memdesc<64x64xf8E4M3FN, #bytes, #smem, mutable> * !ttg.memdesc<64x16xf8E5M2, #bytes_t, #smem, mutable> -> tensor<64x16xf32, #mma8>
  tt.return
}
}
