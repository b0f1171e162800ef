// A product that is rounded to 16 bits is rounded before it is added to anything, although LLVM computes both in 16 bits; what
// is computed in 16 bits from the start, or in 32 bits without a rounding between, may become one operation.
// REQUIRES: nvptx, amdgpu
// RUN: %ttc %s --target cuda:90 --emit ptx | FileCheck %s --implicit-check-not='fma.rn.f16'
// RUN: %ttc %s --target hip:gfx950 --emit amdgcn | FileCheck %s --check-prefix=AMD --implicit-check-not='{{v_(pk_)?fm[a-z]*_f16}}'

// CHECK: mul.rn.f16
// CHECK: mul.rn.f16
// CHECK: sub.rn.f16
// CHECK-DAG: fma.rn.bf16
// CHECK-DAG: fma.rn.f32
// AMD: v_{{(pk_)?}}mul_f16
// AMD: v_{{(pk_)?}}mul_f16
// AMD: v_{{(pk_)?}}sub_f16
// AMD: v_{{(pk_)?(fma|fmac|fma_mix)}}_f32
tt.func public @k(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<bf16> {tt.divisibility = 16 : i32},
                  %z: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %p0 = tt.splat %x : !tt.ptr<f16> -> tensor<256x!tt.ptr<f16>>
  %p = tt.addptr %p0, %i : tensor<256x!tt.ptr<f16>>, tensor<256xi32>
  %q0 = tt.splat %y : !tt.ptr<bf16> -> tensor<256x!tt.ptr<bf16>>
  %q = tt.addptr %q0, %i : tensor<256x!tt.ptr<bf16>>, tensor<256xi32>
  %o0 = tt.splat %z : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>>
  %o = tt.addptr %o0, %i : tensor<256x!tt.ptr<f32>>, tensor<256xi32>
  %three = arith.constant dense<3.0> : tensor<256xf16>
  // Rounded.
  %a = tt.load %p : tensor<256x!tt.ptr<f16>>
  %b = arith.maxnumf %a, %three : tensor<256xf16>
  %wa = arith.extf %a : tensor<256xf16> to tensor<256xf32>
  %wb = arith.extf %b : tensor<256xf16> to tensor<256xf32>
  %m = arith.mulf %wa, %wb : tensor<256xf32>
  %rm = arith.truncf %m : tensor<256xf32> to tensor<256xf16>
  %n = arith.mulf %wb, %wb : tensor<256xf32>
  %rn = arith.truncf %n : tensor<256xf32> to tensor<256xf16>
  %wm = arith.extf %rm : tensor<256xf16> to tensor<256xf32>
  %wn = arith.extf %rn : tensor<256xf16> to tensor<256xf32>
  %d = arith.subf %wm, %wn : tensor<256xf32>
  %r = arith.truncf %d : tensor<256xf32> to tensor<256xf16>
  tt.store %p, %r : tensor<256x!tt.ptr<f16>>
  // Of 16 bits from the start.
  %c = tt.load %q : tensor<256x!tt.ptr<bf16>>
  %cc = arith.mulf %c, %c : tensor<256xbf16>
  %s = arith.addf %cc, %c : tensor<256xbf16>
  tt.store %q, %s : tensor<256x!tt.ptr<bf16>>
  // Of 32 bits.
  %w = arith.mulf %wa, %wa : tensor<256xf32>
  %v = arith.addf %w, %wb : tensor<256xf32>
  tt.store %o, %v : tensor<256x!tt.ptr<f32>>
  tt.return
}
