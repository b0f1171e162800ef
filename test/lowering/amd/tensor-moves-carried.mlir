// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM

// Three dimensions have four groups of words; a loop carries a descriptor as its parts.
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func amdgpu_kernelcc @carried(
// CHECK:         rocdl.tensor.load.to.lds {{.*}} %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}}, %{{[0-9]+}} cachepolicy 0
// ASM-LABEL: carried:
// ASM:       tensor_load_to_lds s[{{[0-9:]*}}], s[{{[0-9:]*}}], s[{{[0-9:]*}}], s[{{[0-9:]*}}]{{$}}
// ASM:       s_wait_tensorcnt 0x1
tt.func public @carried(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %desc = tt.make_tensor_descriptor %p, [%n, %n, %n], [%s, %s, %s1] : <f32>, <4x8x64xf32, #plain>
  %ring = ttg.local_alloc : () -> !ttg.memdesc<2x4x8x64xf32, #plain, #smem, mutable>
  %end = scf.for %i = %c0 to %n step %c1 iter_args(%d = %desc) -> (!tt.tensordesc<4x8x64xf32, #plain>) : i32 {
    %m = ttg.memdesc_index %ring[%c0] : !ttg.memdesc<2x4x8x64xf32, #plain, #smem, mutable> -> !ttg.memdesc<4x8x64xf32, #plain, #smem, mutable>
    %t = amdg.async_tdm_copy_global_to_local %d into %m : !tt.tensordesc<4x8x64xf32, #plain> -> !ttg.memdesc<4x8x64xf32, #plain, #smem, mutable>
    %w = amdg.async_tdm_wait %t {num = 1 : i32}
    %next = amdg.update_tensor_descriptor %d add_offsets = [%c0, %c1, %c0] {clamp_bounds} : !tt.tensordesc<4x8x64xf32, #plain>
    scf.yield %next : !tt.tensordesc<4x8x64xf32, #plain>
  }
  tt.return
}
}
