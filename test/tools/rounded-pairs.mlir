// REQUIRES: nvptx, amdgpu
// RUN: %ttc %s --target cuda:90 --emit ptx -o - | FileCheck %s
// RUN: %ttc %s --target hip:gfx942 --emit llvmir -o - | FileCheck %s --check-prefix=AMD

// Numbers that are split into two bf16 are rounded in pairs, though each one is also used by itself.

// CHECK-LABEL: split
// CHECK-NOT:     cvt.rn.bf16.f32
// CHECK-COUNT-4: cvt.rn.bf16x2.f32
// CHECK-NOT:     cvt.rn.bf16
// AMD-NOT: nvvm
tt.func public @split(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %high: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %low: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>>
  %px = tt.addptr %xs, %i : tensor<512x!tt.ptr<f32>>, tensor<512xi32>
  %v = tt.load %px : tensor<512x!tt.ptr<f32>>
  %h = arith.truncf %v : tensor<512xf32> to tensor<512xbf16>
  %back = arith.extf %h : tensor<512xbf16> to tensor<512xf32>
  %rest = arith.subf %v, %back : tensor<512xf32>
  %l = arith.truncf %rest : tensor<512xf32> to tensor<512xbf16>
  %hs = tt.splat %high : !tt.ptr<bf16> -> tensor<512x!tt.ptr<bf16>>
  %ph = tt.addptr %hs, %i : tensor<512x!tt.ptr<bf16>>, tensor<512xi32>
  tt.store %ph, %h : tensor<512x!tt.ptr<bf16>>
  %ls = tt.splat %low : !tt.ptr<bf16> -> tensor<512x!tt.ptr<bf16>>
  %pl = tt.addptr %ls, %i : tensor<512x!tt.ptr<bf16>>, tensor<512xi32>
  tt.store %pl, %l : tensor<512x!tt.ptr<bf16>>
  tt.return
}
