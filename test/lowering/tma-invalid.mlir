// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @old() {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  // expected-error @below {{the target cuda:80 has no bulk tensor copies}}
  ttng.init_barrier %bar, 1 : !ttg.memdesc<1xi64, #word, #smem, mutable>
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#rows = #ttg.linear<{register = [[1], [2], [16]], lane = [[0], [0], [0], [0], [0]], warp = [[4], [8]], block = []}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @rows(%d: !tt.tensordesc<1x32xf16, #shared>, %r: tensor<32xi32, #rows>) {
  %c0 = arith.constant 0 : i32
  %buf = ttg.local_alloc : () -> !ttg.memdesc<32x32xf16, #shared, #smem, mutable>
  // expected-error @below {{copies to shared memory begin at multiples of 128 bytes, not of 64}}
  ttng.async_tma_scatter %d[%r, %c0] %buf : !tt.tensordesc<1x32xf16, #shared>, tensor<32xi32, #rows>, i32, !ttg.memdesc<32x32xf16, #shared, #smem, mutable>
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @shape(%d: !tt.tensordesc<64x64xf16, #shared>) {
  %c0 = arith.constant 0 : i32
  %buf = ttg.local_alloc : () -> !ttg.memdesc<32x128xf16, #shared, #smem, mutable>
  // expected-error @below {{blocks of [64, 64] in a buffer of [32, 128] are not supported yet}}
  ttng.async_tma_copy_local_to_global %d[%c0, %c0] %buf : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<32x128xf16, #shared, #smem, mutable>
  tt.return
}
}

// -----

#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @part(%d: !tt.tensordesc<32x64xf16, #shared>) {
  %c0 = arith.constant 0 : i32
  %buf = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %part = ttg.memdesc_subslice %buf[32, 0] : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 64x64>
  // expected-error @below {{is a part of a buffer, whose bytes do not lie together}}
  ttng.async_tma_copy_local_to_global %d[%c0, %c0] %part : !tt.tensordesc<32x64xf16, #shared>, !ttg.memdesc<32x64xf16, #shared, #smem, mutable, 64x64>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @scratch() {
  // expected-error @below {{has no global scratch memory: run --tritongpu-global-scratch-memory-allocation first}}
  %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = [[0, 1]]}>
#rows = #ttg.slice<{dim = 0, parent = #blocked}>
#split = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @few(%d: !tt.tensordesc<1x128xf16, #split>, %r: tensor<8xi32, #rows>) {
  %c0 = arith.constant 0 : i32
  %buf = ttg.local_alloc : () -> !ttg.memdesc<8x128xf16, #split, #smem, mutable>
  // expected-error @below {{rows of a warp do not begin at a place of their own}}
  ttng.async_tma_scatter %d[%r, %c0] %buf : !tt.tensordesc<1x128xf16, #split>, tensor<8xi32, #rows>, i32, !ttg.memdesc<8x128xf16, #split, #smem, mutable>
  tt.return
}
}

// -----

#word = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @shared() {
  %bar = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #word, #smem, mutable>
  // expected-error @below {{copies of several blocks that complete at one barrier are not supported yet}}
  ttng.async_copy_mbarrier_arrive %bar : !ttg.memdesc<1xi64, #word, #smem, mutable>
  tt.return
}
}
