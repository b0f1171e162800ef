// Dots in blocked layouts are multiplied within threads, several products at once where the target has an instruction for that.
// RUN: sed 's/TARGET/gfx942/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,F16,FMA
// RUN: sed 's/TARGET/gfx950/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,F16,BF16
// RUN: sed 's/TARGET/gfx1100/; s/= 64 : i32/= 32 : i32/; s/\[16, 4\]/[8, 4]/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,F16,BF16
// RUN: sed 's/TARGET/gfx1250/; s/= 64 : i32/= 32 : i32/; s/\[16, 4\]/[8, 4]/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,WIDE,FMA

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 4], warpsPerCTA = [1, 1], order = [1, 0]}>
#fa = #ttg.dot_op<{opIdx = 0, parent = #blocked}>
#fb = #ttg.dot_op<{opIdx = 1, parent = #blocked}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:TARGET"} {

// CHECK-LABEL: llvm.func internal @f16(
// F16: llvm.call_intrinsic "llvm.amdgcn.fdot2"({{.*}}) : (vector<2xf16>, vector<2xf16>, f32, i1) -> f32
// F16-NOT: llvm.intr.fma
// WIDE: llvm.fpext
// WIDE-COUNT-4: llvm.intr.fma
tt.func private @f16(%a: tensor<16x4xf16, #fa>, %b: tensor<4x4xf16, #fb>, %c: tensor<16x4xf32, #blocked>) -> tensor<16x4xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<16x4xf16, #fa> * tensor<4x4xf16, #fb> -> tensor<16x4xf32, #blocked>
  tt.return %d : tensor<16x4xf32, #blocked>
}

// CHECK-LABEL: llvm.func internal @bf16(
// FMA-COUNT-4: llvm.intr.fma
// BF16-COUNT-2: llvm.call_intrinsic "llvm.amdgcn.fdot2.f32.bf16"({{.*}}) : (vector<2xbf16>, vector<2xbf16>, f32, i1) -> f32
tt.func private @bf16(%a: tensor<16x4xbf16, #fa>, %b: tensor<4x4xbf16, #fb>, %c: tensor<16x4xf32, #blocked>) -> tensor<16x4xf32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<16x4xbf16, #fa> * tensor<4x4xbf16, #fb> -> tensor<16x4xf32, #blocked>
  tt.return %d : tensor<16x4xf32, #blocked>
}

// CHECK-LABEL: llvm.func internal @i8(
// CHECK: llvm.call_intrinsic "llvm.amdgcn.sdot4"({{.*}}) : (i32, i32, i32, i1) -> i32
// CHECK-NOT: llvm.mul
tt.func private @i8(%a: tensor<16x4xi8, #fa>, %b: tensor<4x4xi8, #fb>, %c: tensor<16x4xi32, #blocked>) -> tensor<16x4xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<16x4xi8, #fa> * tensor<4x4xi8, #fb> -> tensor<16x4xi32, #blocked>
  tt.return %d : tensor<16x4xi32, #blocked>
}

// Too few along K for four at once, and sums of 16 bits, which no such instruction has.
// CHECK-LABEL: llvm.func internal @shorter(
// CHECK-COUNT-2: llvm.mul
// CHECK-NOT: sdot4
tt.func private @shorter(%a: tensor<16x2xi8, #fa>, %b: tensor<2x4xi8, #fb>, %c: tensor<16x4xi32, #blocked>) -> tensor<16x4xi32, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<16x2xi8, #fa> * tensor<2x4xi8, #fb> -> tensor<16x4xi32, #blocked>
  tt.return %d : tensor<16x4xi32, #blocked>
}

// CHECK-LABEL: llvm.func internal @sums_of_f16(
// CHECK-COUNT-4: llvm.intr.fma{{.*}} : (f16, f16, f16) -> f16
tt.func private @sums_of_f16(%a: tensor<16x4xf16, #fa>, %b: tensor<4x4xf16, #fb>, %c: tensor<16x4xf16, #blocked>) -> tensor<16x4xf16, #blocked> {
  %d = tt.dot %a, %b, %c : tensor<16x4xf16, #fa> * tensor<4x4xf16, #fb> -> tensor<16x4xf16, #blocked>
  tt.return %d : tensor<16x4xf16, #blocked>
}

}
