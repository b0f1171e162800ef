// What has no lowering is said where it stands.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @warp_specialize() {
  // expected-error @below {{'ttg.warp_specialize' op cannot be lowered to LLVM yet}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @mask(%p: i1, %a: i32) -> i32 {
  // expected-error @below {{'ttg.mask' op cannot be lowered to LLVM yet}}
  %0 = "ttg.mask"(%p) ({
    ttg.mask.return %a : i32
  }) : (i1) -> i32
  tt.return %0 : i32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @cluster_launch_control() {
  // expected-error @below {{'ttng.clc_try_cancel_sync' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_try_cancel_sync : tensor<2xi64, #b>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @canceled(%r: i128) -> i1 {
  // expected-error @below {{'ttng.clc_is_canceled' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_is_canceled %r : i128 -> i1
  tt.return %0 : i1
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @program_of_canceled(%r: i128) -> i32 {
  // expected-error @below {{'ttng.clc_get_program_id' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_get_program_id %r, x : i128 -> i32
  tt.return %0 : i32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @packed(%x: tensor<32x64xf16, #b>) {
  // expected-error @below {{'ttng.packed_arith' op cannot be lowered to LLVM yet}}
  %0 = ttng.packed_arith add %x, %x : (tensor<32x64xf16, #b>, tensor<32x64xf16, #b>) -> tensor<32x64xf16, #b>
  tt.return
}
}

// -----

#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @tensor_memory() {
  // expected-error @below {{'ttng.tmem_alloc' op cannot be lowered to LLVM yet}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #t, #ttng.tensor_memory, mutable>
  tt.return
}
}
