// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @exact(%a: tensor<32x8xf32, #a>, %b: tensor<8x16xf32, #b>, %c: tensor<32x16xf32, #mma>) {
  // expected-error @+1 {{no instruction of cuda:80 multiplies F32 exactly and sums in F32 in these layouts}}
  %d = tt.dot %a, %b, %c : tensor<32x8xf32, #a> * tensor<8x16xf32, #b> -> tensor<32x16xf32, #mma>
  tt.return
}
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @no_warp_groups(%c: tensor<64x32xf32, #mma>) {
  // expected-error @+1 {{the target cuda:80 has no instructions of warp groups}}
  %d = ttng.warp_group_dot_wait %c {pendings = 0 : i32} : tensor<64x32xf32, #mma>
  tt.return
}
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @too_many(%c: tensor<64x32xf32, #mma>) {
  // expected-error @+1 {{at most 7 dots may be pending}}
  %d = ttng.warp_group_dot_wait %c {pendings = 8 : i32} : tensor<64x32xf32, #mma>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @no_asynchronous_reads() {
  // expected-error @+1 {{asynchronous accesses to shared memory need sm_90, the target is sm_80}}
  ttng.fence_async_shared {bCluster = false}
  tt.return
}
}
