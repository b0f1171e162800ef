// Three tensors of 65,536 halves are reduced together: a thread of 256 loads 384 registers, and what it converts them to would be 768. Each is
// converted where it is added up, so nothing is spilled; and the register allocator of LLVM, which took a minute for what was, takes none.
// REQUIRES: amdgpu
// RUN: %ttc %s --target hip:gfx942 --num-warps 4 --emit amdgcn -o - | FileCheck %s
// RUN: %ttc %s --target hip:gfx90a --num-warps 4 --emit amdgcn -o - | FileCheck %s
// CHECK: .vgpr_spill_count: 0

tt.func public @variance(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32>, %n: i32 {tt.divisibility = 16 : i32}) {
  %one = arith.constant 1.0 : f32
  %zero = arith.constant dense<0.0> : tensor<65536xbf16>
  %i = tt.make_range {start = 0 : i32, end = 65536 : i32} : tensor<65536xi32>
  %ns = tt.splat %n : i32 -> tensor<65536xi32>
  %m = arith.cmpi slt, %i, %ns : tensor<65536xi32>
  %as = tt.splat %a : !tt.ptr<bf16> -> tensor<65536x!tt.ptr<bf16>>
  %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<65536x!tt.ptr<bf16>>
  %cs = tt.splat %c : !tt.ptr<bf16> -> tensor<65536x!tt.ptr<bf16>>
  %pa = tt.addptr %as, %i : tensor<65536x!tt.ptr<bf16>>, tensor<65536xi32>
  %pb = tt.addptr %bs, %i : tensor<65536x!tt.ptr<bf16>>, tensor<65536xi32>
  %pc = tt.addptr %cs, %i : tensor<65536x!tt.ptr<bf16>>, tensor<65536xi32>
  %xa = tt.load %pa, %m, %zero : tensor<65536x!tt.ptr<bf16>>
  %xb = tt.load %pb, %m, %zero : tensor<65536x!tt.ptr<bf16>>
  %xc = tt.load %pc, %m, %zero : tensor<65536x!tt.ptr<bf16>>
  %fa = arith.extf %xa : tensor<65536xbf16> to tensor<65536xf32>
  %fb = arith.extf %xb : tensor<65536xbf16> to tensor<65536xf32>
  %fc = arith.extf %xc : tensor<65536xbf16> to tensor<65536xf32>
  %r:3 = "tt.reduce"(%fa, %fb, %fc) <{axis = 0 : i32}> ({
  ^bb0(%mean: f32, %count: f32, %square: f32, %mean2: f32, %count2: f32, %square2: f32):
    %counts = arith.addf %count, %count2 : f32
    %some = arith.maxnumf %counts, %one : f32
    %sum = arith.mulf %mean, %count : f32
    %sum2 = arith.mulf %mean2, %count2 : f32
    %sums = arith.addf %sum, %sum2 : f32
    %new = arith.divf %sums, %some : f32
    %ss = arith.mulf %sum, %mean : f32
    %ss2 = arith.mulf %sum2, %mean2 : f32
    %s0 = arith.addf %square, %square2 : f32
    %s1 = arith.addf %s0, %ss : f32
    %s2 = arith.addf %s1, %ss2 : f32
    %s30 = arith.mulf %counts, %new : f32
    %s3 = arith.mulf %s30, %new : f32
    %s4 = arith.subf %s2, %s3 : f32
    tt.reduce.return %new, %counts, %s4 : f32, f32, f32
  }) : (tensor<65536xf32>, tensor<65536xf32>, tensor<65536xf32>) -> (f32, f32, f32)
  tt.store %out, %r#0 : !tt.ptr<f32>
  %c1 = arith.constant 1 : i32
  %next = tt.addptr %out, %c1 : !tt.ptr<f32>, i32
  tt.store %next, %r#2 : !tt.ptr<f32>
  tt.return
}
