// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --convert-triton-gpu-to-llvm -verify-diagnostics | FileCheck %s

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// Coordinates and offsets are given from the contiguous dimension on; 128 channels are two copies.
// CHECK-LABEL: llvm.func @image(
// CHECK-SAME: %[[MAP:[a-z0-9]+]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}, %[[N:[a-z0-9]+]]: i32, %[[H:[a-z0-9]+]]: i32, %[[W:[a-z0-9]+]]: i32, %[[C:[a-z0-9]+]]: i32, %[[OH:[a-z0-9]+]]: i16, %[[OW:[a-z0-9]+]]: i16
// CHECK:      "@$0 cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [ $1 ], [ $2, {$3, $4, $5, $6} ], [ $7 ], {$8, $9};", "b,r,l,r,r,r,r,r,h,h,~{memory}" %{{.*}}, %{{.*}}, %[[MAP]], %[[C]], %[[W]], %[[H]], %[[N]], %{{.*}}, %[[OW]], %[[OH]]
// CHECK:      %[[NEXT:.*]] = llvm.add %[[C]], %{{.*}}
// CHECK:      cp.async.bulk.tensor.4d{{.*}} %[[MAP]], %[[NEXT]], %[[W]], %[[H]], %[[N]], %{{.*}}, %[[OW]], %[[OH]]
tt.func public @image(%d: !ttng.tensordesc_im2col<64x128xf16, #wide>, %n: i32, %h: i32, %w: i32, %c: i32, %oh: i16, %ow: i16, %p: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x128xf16, #wide, #smem, mutable>
  ttng.async_tma_copy_global_to_local %d[%n, %h, %w, %c] offsets = [%oh, %ow] %buf, %bar, %p : !ttng.tensordesc_im2col<64x128xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x128xf16, #wide, #smem, mutable>
  tt.return
}
}

// -----

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#wide = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @long(%d: !ttng.tensordesc_im2col<512x64xf16, #wide>, %n: i32, %o: i16, %p: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<512x64xf16, #wide, #smem, mutable>
  // expected-error @below {{an im2col copy in several boxes of pixels: 2 × 256×64 elements of 16 bits}}
  ttng.async_tma_copy_global_to_local %d[%n, %n, %n] offsets = [%o] %buf, %bar, %p : !ttng.tensordesc_im2col<512x64xf16, #wide>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<512x64xf16, #wide, #smem, mutable>
  tt.return
}
}

// -----

// Elements of four bits that are padded to eight need tensor maps of sm_100.
#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#fp4 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @padded(%d: !tt.tensordesc<64x64xi8, #fp4>, %n: i32, %p: i1) {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xi8, #fp4, #smem, mutable>
  // expected-error @below {{TMA pads elements of four bits from sm_100 on}}
  ttng.async_tma_copy_global_to_local %d[%n, %n] %buf, %bar, %p : !tt.tensordesc<64x64xi8, #fp4>, !ttg.memdesc<1xi64, #word, #smem, mutable> -> !ttg.memdesc<64x64xi8, #fp4, #smem, mutable>
  tt.return
}
}
