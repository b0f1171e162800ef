// RUN: %ttopt %s -split-input-file -verify-diagnostics --convert-triton-gpu-to-llvm

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @not_allocated(%v: tensor<32x64xf32, #a>) {
    // expected-error @+1 {{has no shared memory: run --allocate-shared-memory-nv first}}
    %m = ttg.local_alloc %v : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @part_as_other_type() {
    %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %p = ttg.memdesc_subslice %m[0, 32] : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 32x64>
    // expected-error @+1 {{is a part of a buffer, whose bytes do not lie together}}
    %r = ttg.memdesc_reinterpret %p : !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 32x64> -> !ttg.memdesc<32x32xi32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#padded = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [32, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @copy_to_padded(%p: tensor<32x64x!tt.ptr<f32>, #a>) {
    %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<32x64xf32, #padded, #smem, mutable>
    // expected-error @+1 {{copies beside the program know no padding}}
    %t = ttg.async_copy_global_to_local %p, %m : tensor<32x64x!tt.ptr<f32>, #a> -> <32x64xf32, #padded, #smem, mutable>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @too_narrow(%p: tensor<32x64x!tt.ptr<f16>, #a>) {
    %m = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<32x64xf16, #shared, #smem, mutable>
    // expected-error @+1 {{16 consecutive bits are too few to copy without registers}}
    %t = ttg.async_copy_global_to_local %p, %m : tensor<32x64x!tt.ptr<f16>, #a> -> <32x64xf16, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[0, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @half(%v: tensor<64x64xf16, #a>) {
    // expected-error @+1 {{in another way than the buffer}}
    %m = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<64x64xf16, #a>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    tt.return
  }
}
