// RUN: not %ttopt %s --convert-triton-to-tritongpu 2>&1 | FileCheck %s --check-prefix=NOTARGET
// RUN: not %ttopt %s --convert-triton-to-tritongpu=target=cuda:10 2>&1 | FileCheck %s --check-prefix=TARGET
// RUN: not %ttopt %s --convert-triton-to-tritongpu="target=cuda:90 num-warps=3" 2>&1 | FileCheck %s --check-prefix=WARPS
// RUN: not %ttopt %s --convert-triton-to-tritongpu="target=hip:gfx942" 2>&1 | FileCheck %s --check-prefix=LANES
// RUN: not %ttopt %s --tritongpu-coalesce 2>&1 | FileCheck %s --check-prefix=MODULE
// RUN: not %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 2>&1 | FileCheck %s --check-prefix=OP

// NOTARGET: error: 'builtin.module' op option target is required, as in target=cuda:90
// TARGET: error: 'builtin.module' op unknown target `cuda:10`; known are cuda:80
// WARPS: error: 'builtin.module' op option num-warps must be a power of two up to 1024, but is 3
// LANES: error: 'builtin.module' op hip:gfx942 has 64 threads per warp, but option threads-per-warp is 32
// MODULE: error: 'builtin.module' op needs the module attribute ttg.num-warps: run convert-triton-to-tritongpu first
// OP: error: 'tensor.collapse_shape' op on tensors cannot be converted to TritonGPU
tt.func @f(%x: tensor<4x4xf32>) {
  %0 = tensor.collapse_shape %x [[0, 1]] : tensor<4x4xf32> into tensor<16xf32>
  tt.return
}
