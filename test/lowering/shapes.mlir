// Operations on shapes rename registers: no instruction is left of them.
// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#p = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [1, 1], order = [1, 0]}>
#two = #ttg.linear<{register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [], block = []}>
#far = #ttg.linear<{register = [[32, 0], [0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [], block = []}>
#sl = #ttg.slice<{dim = 1, parent = #p}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#flat = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @join(
// CHECK-SAME:    %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32) -> !llvm.struct<(f32, f32)>
// CHECK:         %[[S:.*]] = llvm.mlir.undef
// CHECK-NEXT:    %[[T:.*]] = llvm.insertvalue %[[X]], %[[S]][0]
// CHECK-NEXT:    %[[U:.*]] = llvm.insertvalue %[[Y]], %[[T]][1]
// CHECK-NEXT:    llvm.return %[[U]]
tt.func private @join(%x: tensor<32xf32, #sl>, %y: tensor<32xf32, #sl>) -> tensor<32x2xf32, #p> {
  %0 = tt.join %x, %y : tensor<32xf32, #sl> -> tensor<32x2xf32, #p>
  tt.return %0 : tensor<32x2xf32, #p>
}

// The pair in the second register: the halves follow each other.
// CHECK-LABEL: llvm.func internal @join_far(
// CHECK-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32, %[[Y0:[^:]*]]: f32, %[[Y1:[^:]*]]: f32)
// CHECK:         %[[S:.*]] = llvm.mlir.undef
// CHECK-NEXT:    %[[T:.*]] = llvm.insertvalue %[[X0]], %[[S]][0]
// CHECK-NEXT:    %[[U:.*]] = llvm.insertvalue %[[X1]], %[[T]][1]
// CHECK-NEXT:    %[[V:.*]] = llvm.insertvalue %[[Y0]], %[[U]][2]
// CHECK-NEXT:    %[[W:.*]] = llvm.insertvalue %[[Y1]], %[[V]][3]
// CHECK-NEXT:    llvm.return %[[W]]
tt.func private @join_far(%x: tensor<64xf32, #two>, %y: tensor<64xf32, #two>) -> tensor<64x2xf32, #far> {
  %0 = tt.join %x, %y : tensor<64xf32, #two> -> tensor<64x2xf32, #far>
  tt.return %0 : tensor<64x2xf32, #far>
}

// CHECK-LABEL: llvm.func internal @split(
// CHECK-SAME:    %[[X:[^:]*]]: f32, %[[Y:[^:]*]]: f32) -> f32
// CHECK:         llvm.fsub %[[Y]], %[[X]]
tt.func private @split(%x: tensor<32x2xf32, #p>) -> tensor<32xf32, #sl> {
  %0, %1 = tt.split %x : tensor<32x2xf32, #p> -> tensor<32xf32, #sl>
  %2 = arith.subf %1, %0 : tensor<32xf32, #sl>
  tt.return %2 : tensor<32xf32, #sl>
}

// CHECK-LABEL: llvm.func internal @unsplat(
// CHECK-SAME:    %[[X:[^:]*]]: f32) -> f32
// CHECK-NOT:     %{{.*}} =
// CHECK:         llvm.return %[[X]] : f32
tt.func private @unsplat(%x: tensor<1xf32, #b>) -> f32 {
  %0 = tt.unsplat %x : tensor<1xf32, #b>
  tt.return %0 : f32
}

// A buffer of another shape begins at the same address; its end has no instruction.
// CHECK-LABEL: llvm.func internal @buffers(
// CHECK:         llvm.store %{{.*}} : vector<2xi32>, !llvm.ptr<3>
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x2.b16.p3"
// CHECK-NOT:     llvm.{{store|call}}
// CHECK:         llvm.return
tt.func private @buffers(%x: tensor<32x2xi32, #p>) -> tensor<64xi32, #b> {
  %0 = ttg.local_alloc : () -> !ttg.memdesc<32x2xi32, #shared, #smem, mutable>
  ttg.local_store %x, %0 : tensor<32x2xi32, #p> -> !ttg.memdesc<32x2xi32, #shared, #smem, mutable>
  %1 = ttg.memdesc_reshape %0 : !ttg.memdesc<32x2xi32, #shared, #smem, mutable> -> !ttg.memdesc<64xi32, #flat, #smem, mutable>
  %2 = ttg.local_load %1 : !ttg.memdesc<64xi32, #flat, #smem, mutable> -> tensor<64xi32, #b>
  ttg.local_dealloc %0 : !ttg.memdesc<32x2xi32, #shared, #smem, mutable>
  tt.return %2 : tensor<64xi32, #b>
}

// The number of the warp, from the thread's: there is one here.
// CHECK-LABEL: llvm.func internal @warp_id(
// CHECK:         %[[W:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         llvm.return %[[W]]
tt.func private @warp_id() -> i32 {
  %0 = ttg.warp_id
  tt.return %0 : i32
}
}
