// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s --check-prefixes=CHECK,SM80

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#trans = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK: llvm.mlir.global external @global_smem() {addr_space = 3 : i32, alignment = 1024 : i64}

  // Swizzled stores of 16 bytes, and loads of matrices.
  // CHECK-LABEL: llvm.func @store_load
  tt.func @store_load(%v: tensor<64x32xf16, #a>) {
    // CHECK-COUNT-2: llvm.store %{{.*}} : vector<4xi32>, !llvm.ptr<3>
    // CHECK-COUNT-4: "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"
    // CHECK-NOT: ldmatrix
    // CHECK: llvm.return
    %m = ttg.local_alloc %v : (tensor<64x32xf16, #a>) -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %0 = ttg.local_load %m : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> tensor<64x32xf16, #dot>
    tt.return
  }

  // Buffer 1 begins 4096 bytes after buffer 0; a transposed view is the same memory.
  // CHECK-LABEL: llvm.func @views
  tt.func @views(%v: tensor<32x64xf16, #a>, %i: i32) {
    // CHECK: %[[BASE:.*]] = llvm.mlir.addressof @global_smem
    // CHECK: %[[STRIDE:.*]] = llvm.mlir.constant(4096 : i32)
    // CHECK: %[[BYTES:.*]] = llvm.mul %{{.*}}, %[[STRIDE]] : i32
    // CHECK: llvm.getelementptr %[[BASE]][%[[BYTES]]]
    %m = ttg.local_alloc : () -> !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable>
    %n = ttg.memdesc_index %m[%i] : !ttg.memdesc<2x64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %t = ttg.memdesc_trans %n {order = array<i32: 1, 0>} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #trans, #smem, mutable>
    // SM90: "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
    // SM80: llvm.store %{{.*}} : i16, !llvm.ptr<3>
    ttg.local_store %v, %t : tensor<32x64xf16, #a> -> !ttg.memdesc<32x64xf16, #trans, #smem, mutable>
    tt.return
  }

  // Where a part begins, after 32 rows of 32 elements, is in the offset of each access.
  // CHECK-LABEL: llvm.func @part
  tt.func @part() {
    // CHECK: %[[THREAD:.*]] = llvm.getelementptr
    // CHECK-NEXT: %[[PART:.*]] = llvm.mlir.constant(2048 : i32)
    // CHECK-NEXT: %[[AT:.*]] = llvm.getelementptr %[[THREAD]][%[[PART]]]
    // CHECK-NEXT: llvm.load %[[AT]] {{.*}}: !llvm.ptr<3> -> vector<4xi32>
    %m = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    %p = ttg.memdesc_subslice %m[32, 0] : !ttg.memdesc<64x32xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf16, #shared, #smem, mutable, 64x32>
    %0 = ttg.local_load %p : !ttg.memdesc<32x32xf16, #shared, #smem, mutable, 64x32> -> tensor<32x32xf16, #a>
    tt.return
  }

  // Zeros where the mask is false; 16 bytes at a time.
  // CHECK-LABEL: llvm.func @async_copy
  tt.func @async_copy(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: i1) {
    %m = ttg.local_alloc : () -> !ttg.memdesc<4x256xf16, #plain, #smem, mutable>
    %n = ttg.memdesc_subslice %m[0, 0] : !ttg.memdesc<4x256xf16, #plain, #smem, mutable> -> !ttg.memdesc<4x256xf16, #plain, #smem, mutable>
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #a}>>
    %e = tt.expand_dims %r {axis = 0 : i32} : tensor<256xi32, #ttg.slice<{dim = 0, parent = #a}>> -> tensor<1x256xi32, #a>
    %b = tt.broadcast %e : tensor<1x256xi32, #a> -> tensor<4x256xi32, #a>
    %q = tt.splat %p : !tt.ptr<f16> -> tensor<4x256x!tt.ptr<f16>, #a>
    %s = tt.addptr %q, %b : tensor<4x256x!tt.ptr<f16>, #a>, tensor<4x256xi32, #a>
    %k = tt.splat %c : i1 -> tensor<4x256xi1, #a>
    // What a mask leaves out is written as zeros: no bytes are read.
    // CHECK: %[[SIZE:.*]] = llvm.select
    // CHECK: llvm.inline_asm has_side_effects {{.*}}"{{.*}}cp.async.cg.shared.global [ $0 ], [ $1 ], 16, $2;", "r,l,r,b"
    // CHECK: nvvm.cp.async.commit.group
    // CHECK: nvvm.cp.async.wait.group 1
    %t = ttg.async_copy_global_to_local %s, %n mask %k : tensor<4x256x!tt.ptr<f16>, #a> -> <4x256xf16, #plain, #smem, mutable>
    %g = ttg.async_commit_group tokens %t
    %w = ttg.async_wait %g {num = 1 : i32}
    tt.return
  }

  // The index chooses the row; the column is the element's own.
  // CHECK-LABEL: llvm.func @gather_scatter
  tt.func @gather_scatter(%i: tensor<64x32xi32, #a>) {
    %m = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #shared, #smem, mutable>
    // CHECK-COUNT-16: llvm.load %{{.*}} : !llvm.ptr<3> -> i16
    %0 = ttg.local_gather %m[%i] {axis = 0 : i32} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, tensor<64x32xi32, #a> -> tensor<64x32xf16, #a>
    // CHECK-COUNT-16: llvm.store %{{.*}} : i16, !llvm.ptr<3>
    ttg.local_scatter %m[%i], %0 {axis = 0 : i32} : !ttg.memdesc<64x32xf16, #shared, #smem, mutable>, tensor<64x32xi32, #a>, tensor<64x32xf16, #a>
    tt.return
  }
}
