// RUN: %ttopt %s --triton-nvidia-tma-lowering -split-input-file -verify-diagnostics

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @no_layout(%a: !tt.tensordesc<64x64xf16>, %x: tensor<64x64xf16, #blocked>) {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{the descriptor !tt.tensordesc<64x64xf16> has no layout: run --triton-nvidia-optimize-descriptor-encoding first}}
  tt.descriptor_store %a[%c0, %c0], %x : !tt.tensordesc<64x64xf16>, tensor<64x64xf16, #blocked>
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #blocked}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @rows(%a: !tt.tensordesc<1x32xf16, #shared>, %r: tensor<32xi32, #rows>, %x: tensor<32x32xf16, #blocked>) {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{copies to shared memory begin at multiples of 128 bytes, not of 64}}
  tt.descriptor_scatter %a[%r, %c0], %x : !tt.tensordesc<1x32xf16, #shared>, tensor<32xi32, #rows>, i32, tensor<32x32xf16, #blocked>
  tt.return
}
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @layout(%a: !tt.tensordesc<64x64xf16, #shared>, %x: tensor<64x64xf16, #blocked>) {
  %c0 = arith.constant 0 : i32
  // expected-error @below {{bulk tensor copies need an #ttg.nvmma_shared layout, not #ttg.swizzled_shared}}
  tt.descriptor_store %a[%c0, %c0], %x : !tt.tensordesc<64x64xf16, #shared>, tensor<64x64xf16, #blocked>
  tt.return
}
}
