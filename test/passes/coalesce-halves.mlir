// RUN: %ttopt %s "--convert-triton-to-tritongpu=target=hip:gfx942 num-warps=4 threads-per-warp=64" --tritongpu-coalesce | FileCheck %s
// RUN: %ttopt %s "--convert-triton-to-tritongpu=target=hip:gfx1100 num-warps=4 threads-per-warp=32" --tritongpu-coalesce | FileCheck %s --check-prefix=WAVE32

// Sums of 16-bit floats are instructions for two neighbours at once (gfx942), or loops that exchange a word of 32 bits (gfx1100): lanes hold
// pairs, though single ones touch fewer sectors at once.
// CHECK:        [[PAIRS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL:  @sum(
// CHECK:        tt.atomic_rmw fadd, {{.*}} : (tensor<1024x!tt.ptr<bf16>, [[PAIRS]]>
// WAVE32:       [[PAIRS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// WAVE32-LABEL: @sum(
// WAVE32:       tt.atomic_rmw fadd, {{.*}} : (tensor<1024x!tt.ptr<bf16>, [[PAIRS]]>
tt.func @sum(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %x: f32) {
  %at = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %base = tt.splat %p : !tt.ptr<bf16> -> tensor<1024x!tt.ptr<bf16>>
  %to = tt.addptr %base, %at : tensor<1024x!tt.ptr<bf16>>, tensor<1024xi32>
  %number = arith.sitofp %at : tensor<1024xi32> to tensor<1024xf32>
  %all = tt.splat %x : f32 -> tensor<1024xf32>
  %product = arith.mulf %number, %all : tensor<1024xf32>
  %half = arith.truncf %product : tensor<1024xf32> to tensor<1024xbf16>
  %old = tt.atomic_rmw fadd, relaxed, gpu, %to, %half : (tensor<1024x!tt.ptr<bf16>>, tensor<1024xbf16>) -> tensor<1024xbf16>
  tt.return
}
