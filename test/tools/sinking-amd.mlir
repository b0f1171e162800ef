// LLVM does not move what is done with the result of a function that branches (`copysign` of `erf`) behind all the other calls,
// where the argument and what it is computed from would all be waiting: it stays where the call ends. Without passes of ours
// all four `v_bfi_b32` come behind the last `v_exp_f32`.
// REQUIRES: amdgpu, ocml
// RUN: %ttc %s --target hip:gfx942 --num-warps 1 --emit amdgcn | FileCheck %s
// RUN: %ttc %s --target hip:gfx1100 --num-warps 1 --emit amdgcn | FileCheck %s

// CHECK-LABEL: errors:
// CHECK:     v_exp_f32
// CHECK-NOT: v_exp_f32
// CHECK:     v_bfi_b32
// CHECK:     v_exp_f32
// CHECK-NOT: v_exp_f32
// CHECK:     v_bfi_b32
// CHECK:     v_exp_f32
// CHECK-NOT: v_exp_f32
// CHECK:     v_bfi_b32
tt.func public @errors(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %0 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %1 = tt.splat %x : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %2 = tt.addptr %1, %0 : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %3 = tt.load %2 : tensor<256x!tt.ptr<f32>>
  %4 = math.erf %3 : tensor<256xf32>
  tt.store %2, %4 : tensor<256x!tt.ptr<f32>>
  tt.return
}
