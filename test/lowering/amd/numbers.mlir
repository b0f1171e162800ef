// RUN: sed s/TARGET/gfx942/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,FNUZ
// RUN: sed s/TARGET/gfx90a/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,NONE

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
#four = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:TARGET", "ttg.threads-per-warp" = 64 : i32} {

// Instructions convert the 8-bit floats that the target has. What is too large becomes the largest number; NaN stays.
// CHECK-LABEL: llvm.func internal @narrow(
// FNUZ:          llvm.call_intrinsic "llvm.amdgcn.fmed3"
// FNUZ:          llvm.fcmp "uno"
// FNUZ:          llvm.call_intrinsic "llvm.amdgcn.cvt.pk.fp8.f32"
// NONE-NOT:      llvm.amdgcn.cvt.pk.fp8
// CHECK:         llvm.return
tt.func private @narrow(%x: tensor<128xf32, #b>) -> tensor<128xf8E4M3FNUZ, #b> {
  %y = tt.fp_to_fp %x, rounding = rtne : tensor<128xf32, #b> -> tensor<128xf8E4M3FNUZ, #b>
  tt.return %y : tensor<128xf8E4M3FNUZ, #b>
}

// Those of the other flavour are f16 but for a factor.
// CHECK-LABEL: llvm.func internal @other_flavour(
// CHECK-NOT:     cvt.pk
// CHECK:         %[[SMALL:.*]] = llvm.bitcast %{{.*}} : i16 to f16
// CHECK:         %[[X:.*]] = llvm.fmul %[[SMALL]], %{{.*}} : f16
// CHECK:         llvm.select %{{.*}}, %{{.*}}, %[[X]] : i1, f16
tt.func private @other_flavour(%x: tensor<64xf8E4M3FN, #one>) -> tensor<64xf16, #one> {
  %y = tt.fp_to_fp %x : tensor<64xf8E4M3FN, #one> -> tensor<64xf16, #one>
  tt.return %y : tensor<64xf16, #one>
}

// Each of them is a bf16, so that the upper half of an f32 is: nothing is rounded.
// CHECK-LABEL: llvm.func internal @exactly(
// CHECK-NOT:     llvm.fptrunc
// CHECK:         %[[UPPER:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK-NOT:     llvm.fptrunc
// CHECK:         %[[HALF:.*]] = llvm.trunc %[[UPPER]] : i32 to i16
// CHECK:         llvm.bitcast %[[HALF]] : i16 to bf16
// CHECK:         llvm.return
tt.func private @exactly(%x: tensor<64xf8E4M3FN, #one>) -> tensor<64xbf16, #one> {
  %y = tt.fp_to_fp %x : tensor<64xf8E4M3FN, #one> -> tensor<64xbf16, #one>
  tt.return %y : tensor<64xbf16, #one>
}

// CHECK-LABEL: llvm.func internal @towards_zero(
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.cvt.pkrtz"
tt.func private @towards_zero(%x: tensor<64xf32, #one>) -> tensor<64xf16, #one> {
  %y = tt.fp_to_fp %x, rounding = rtz : tensor<64xf32, #one> -> tensor<64xf16, #one>
  tt.return %y : tensor<64xf16, #one>
}

// CHECK-LABEL: llvm.func internal @functions(
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.exp2"
// CHECK:         llvm.call @__ocml_sin_f32(
// CHECK:         llvm.call @__ocml_exp_f64(
tt.func private @functions(%x: tensor<64xf32, #one>, %y: tensor<64xf64, #one>) -> (tensor<64xf32, #one>, tensor<64xf64, #one>) {
  %a = math.exp2 %x : tensor<64xf32, #one>
  %b = math.sin %a : tensor<64xf32, #one>
  %c = math.exp %y : tensor<64xf64, #one>
  tt.return %b, %c : tensor<64xf32, #one>, tensor<64xf64, #one>
}

// Sums of floats have an instruction where memory is the GPU's own, which LLVM is told.
// CHECK-LABEL: llvm.func internal @atomics(
// CHECK:         llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") acq_rel {alignment = 4 : i64, {{.*}}rocdl.no_fine_grained_memory
// CHECK:         llvm.cmpxchg %{{.*}}, %{{.*}}, %{{.*}} syncscope("workgroup") acquire acquire
tt.func private @atomics(%p: tensor<64x!tt.ptr<f32>, #one>, %x: tensor<64xf32, #one>, %q: tensor<64x!tt.ptr<i32>, #one>, %i: tensor<64xi32, #one>) -> (tensor<64xf32, #one>, tensor<64xi32, #one>) {
  %true = arith.constant dense<true> : tensor<64xi1, #one>
  %a = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %true : (tensor<64x!tt.ptr<f32>, #one>, tensor<64xf32, #one>, tensor<64xi1, #one>) -> tensor<64xf32, #one>
  %b = tt.atomic_cas acquire, cta, %q, %i, %i : (tensor<64x!tt.ptr<i32>, #one>, tensor<64xi32, #one>, tensor<64xi32, #one>) -> tensor<64xi32, #one>
  tt.return %a, %b : tensor<64xf32, #one>, tensor<64xi32, #one>
}

// Two fences order the accesses of a thread to several elements: none waits for the one before it.
// CHECK-LABEL: llvm.func amdgpu_kernelcc @several(
// CHECK:         llvm.fence syncscope("agent") release
// CHECK-COUNT-4: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic
// CHECK:         llvm.fence syncscope("agent") acq_rel
// CHECK:         llvm.store
// Nobody sees what is acquired last.
// CHECK:         llvm.fence syncscope("agent") release
// CHECK-COUNT-4: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic
// CHECK-NOT:     fence
// CHECK:         llvm.return
tt.func public @several(%p: tensor<256x!tt.ptr<f32>, #four>, %x: tensor<256xf32, #four>, %q: tensor<256x!tt.ptr<f32>, #four>) {
  %true = arith.constant dense<true> : tensor<256xi1, #four>
  %a = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %true : (tensor<256x!tt.ptr<f32>, #four>, tensor<256xf32, #four>, tensor<256xi1, #four>) -> tensor<256xf32, #four>
  tt.store %q, %x : tensor<256x!tt.ptr<f32>, #four>
  %b = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %true : (tensor<256x!tt.ptr<f32>, #four>, tensor<256xf32, #four>, tensor<256xi1, #four>) -> tensor<256xf32, #four>
  tt.return
}

// One bf16 is added by the instruction for two, with -0 for its neighbour, or by LLVM's loop where there is no such instruction.
// CHECK-LABEL: llvm.func internal @half(
// FNUZ:          %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// FNUZ:          %[[BEFORE:.*]] = llvm.and %{{.*}}, %[[TWO]] : i64
// FNUZ:          %[[BITS:.*]] = llvm.mlir.constant(-32768 : i16)
// FNUZ:          %[[NOTHING:.*]] = llvm.bitcast %[[BITS]] : i16 to bf16
// FNUZ:          llvm.select %{{.*}}, %{{.*}}, %[[NOTHING]] : i1, bf16
// FNUZ:          llvm.select %{{.*}}, %[[NOTHING]], %{{.*}} : i1, bf16
// FNUZ:          llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic {alignment = 4 : i64, {{.*}} : !llvm.ptr<1>, vector<2xbf16>
// NONE:          llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("agent") monotonic {alignment = 2 : i64, {{.*}} : !llvm.ptr<1>, bf16
tt.func private @half(%p: tensor<64x!tt.ptr<bf16>, #one>, %x: tensor<64xbf16, #one>) -> tensor<64xbf16, #one> {
  %a = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (tensor<64x!tt.ptr<bf16>, #one>, tensor<64xbf16, #one>) -> tensor<64xbf16, #one>
  tt.return %a : tensor<64xbf16, #one>
}

// Messages go to the host, an assertion stops the program.
// CHECK-LABEL: llvm.func internal @messages(
// CHECK:         llvm.call @__ockl_printf_begin(
// CHECK:         llvm.call @__ockl_printf_append_string_n(
// CHECK:         llvm.call @__ockl_printf_append_args(
// CHECK:         llvm.call @__ockl_fprintf_stderr_begin(
// CHECK:         llvm.intr.trap
tt.func private @messages(%x: i32, %holds: tensor<64xi1, #one>) {
  tt.print "x" {hex = false, isSigned = array<i32: 1>} : %x : i32
  tt.assert %holds, "holds" : tensor<64xi1, #one>
  tt.return
}
}
