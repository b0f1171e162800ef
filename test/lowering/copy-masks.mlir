// Copies with masks of their own take these as predicates, where the kernel has registers for what they are computed from; those
// that share a mask share a number of bytes to read.
// RUN: %ttopt %s --tritongpu-kernel-decisions --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#full = #ttg.blocked<{sizePerThread = [1, 128], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#plain = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: llvm.func @rows
  // CHECK-COUNT-2: cp.async.cg.shared.global [ $0 ], [ $1 ], 16, !$2;", "r,l,b"
  tt.func public @rows(%p: tensor<64x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %n: i32) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #plain, #smem, mutable>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %c = tt.splat %n : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %m = arith.cmpi slt, %r, %c : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %e = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi1, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi1, #blocked>
    %k = tt.broadcast %e : tensor<64x1xi1, #blocked> -> tensor<64x32xi1, #blocked>
    %t = ttg.async_copy_global_to_local %p, %b mask %k : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #plain, #smem, mutable>
    tt.return
  }

  // CHECK-LABEL: llvm.func @columns
  // CHECK-COUNT-2: cp.async.cg.shared.global [ $0 ], [ $1 ], 16, $2;", "r,l,r"
  tt.func public @columns(%p: tensor<64x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %n: i32 {tt.divisibility = 16 : i32}, %on: i1) {
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #plain, #smem, mutable>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %c = tt.splat %n : i32 -> tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %m = arith.cmpi slt, %r, %c : tensor<32xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %e = tt.expand_dims %m {axis = 0 : i32} : tensor<32xi1, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x32xi1, #blocked>
    %l = tt.broadcast %e : tensor<1x32xi1, #blocked> -> tensor<64x32xi1, #blocked>
    %s = tt.splat %on : i1 -> tensor<64x32xi1, #blocked>
    %k = arith.andi %s, %l : tensor<64x32xi1, #blocked>
    %t = ttg.async_copy_global_to_local %p, %b mask %k : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #plain, #smem, mutable>
    tt.return
  }

  // Tensors of 256 registers are held over the copy.
  // CHECK-LABEL: llvm.func @full
  // CHECK-COUNT-2: cp.async.cg.shared.global [ $0 ], [ $1 ], 16, $2;", "r,l,r"
  tt.func public @full(%p: tensor<64x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 32]> : tensor<2xi32>}, %n: i32, %held: tensor<128x256x!tt.ptr<f32>, #full>) {
    %x = tt.load %held : tensor<128x256x!tt.ptr<f32>, #full>
    %b = ttg.local_alloc : () -> !ttg.memdesc<64x32xf16, #plain, #smem, mutable>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %c = tt.splat %n : i32 -> tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %m = arith.cmpi slt, %r, %c : tensor<64xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %e = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi1, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<64x1xi1, #blocked>
    %k = tt.broadcast %e : tensor<64x1xi1, #blocked> -> tensor<64x32xi1, #blocked>
    %t = ttg.async_copy_global_to_local %p, %b mask %k : tensor<64x32x!tt.ptr<f16>, #blocked> -> <64x32xf16, #plain, #smem, mutable>
    tt.store %held, %x : tensor<128x256x!tt.ptr<f32>, #full>
    tt.return
  }
}
