// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

// Matrices of bytes, transposed between shared memory and registers (sm_100).
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
#rows = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#columns = #ttg.swizzled_shared<{vec = 16, perPhase = 2, maxPhase = 4, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 8192 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func @load(
// CHECK-COUNT-8: llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m16n16.x2.trans.b8.p3"
// CHECK-NOT:     ldmatrix
tt.func public @load(%p: tensor<64x64x!tt.ptr<i8>, #right>) {
  %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x64xi8, #rows, #smem, mutable>
  %v = ttg.local_load %m : !ttg.memdesc<64x64xi8, #rows, #smem, mutable> -> tensor<64x64xi8, #right>
  tt.store %p, %v : tensor<64x64x!tt.ptr<i8>, #right>
  tt.return
}

// CHECK-LABEL: llvm.func @store(
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.stmatrix.sync.aligned.m16n8.x4.trans.b8.p3"
// CHECK-NOT:     stmatrix
tt.func public @store(%v: tensor<64x64x!tt.ptr<i8>, #mma>) {
  %x = tt.load %v : tensor<64x64x!tt.ptr<i8>, #mma>
  %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x64xi8, #columns, #smem, mutable>
  ttg.local_store %x, %m : tensor<64x64xi8, #mma> -> !ttg.memdesc<64x64xi8, #columns, #smem, mutable>
  tt.return
}
}
