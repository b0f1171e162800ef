// What was chosen, at one line each: the choice first, then what else could have been, each with what it costs.
// RUN: split-file %s %t
// RUN: %ttopt %t/vectors.mlir --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce=explain=true -o /dev/null 2>&1 | FileCheck %t/vectors.mlir
// RUN: %ttopt %t/vectors.mlir --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce -o /dev/null 2>&1 | FileCheck %t/silent.check --allow-empty
// RUN: %ttopt %t/engine.mlir --tritongpu-remove-layout-conversions=explain=true -o /dev/null 2>&1 | FileCheck %t/engine.mlir
// RUN: %ttopt %t/engine.mlir --tritongpu-remove-layout-conversions -o /dev/null 2>&1 | FileCheck %t/silent.check --allow-empty
// RUN: %ttopt %t/left.mlir --tritongpu-explain-layouts -o /dev/null 2>&1 | FileCheck %t/left.mlir
// RUN: %ttopt %t/dots.mlir --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-accelerate-matmul=explain=true -o /dev/null 2>&1 | FileCheck %t/dots.mlir
// RUN: %ttopt %t/dots.mlir --convert-triton-to-tritongpu=target=cuda:80 --tritongpu-accelerate-matmul=explain=true -o /dev/null 2>&1 | FileCheck %t/dots.mlir --check-prefix=SM80

//--- silent.check
CHECK-NOT: choice of

//--- vectors.mlir
// An access of 16 bits: more neighbours in a thread are fewer instructions for the same lines.
// CHECK: remark: choice of vector of 2 accesses that exchange values: 8 neighbours in each thread: {{[0-9.]+}} cycles (issue {{[0-9.]+}}, lines and sectors {{[0-9.]+}}) | 4 neighbours in each thread: {{[0-9.]+}} (issue {{[0-9.]+}}, lines and sectors {{[0-9.]+}}) | 2 neighbours in each thread: {{.*}} | 1 neighbour in each thread: {{[^|]*$}}
// What is added up along the fast dimension should not cross warps.
// CHECK: remark: choice of warps for what is done with these values: warps [{{[0-9]+, [0-9]+}}]: {{[0-9]+}} cycles | warps [{{[0-9]+, [0-9]+}}]: {{[0-9]+}}{{$}}
tt.func public @vectors(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: tensor<256x!tt.ptr<f32>>) {
  %r = tt.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<2048x!tt.ptr<f16>>
  %a = tt.addptr %b, %r : tensor<2048x!tt.ptr<f16>>, tensor<2048xi32>
  %x = tt.load %a : tensor<2048x!tt.ptr<f16>>
  tt.store %a, %x : tensor<2048x!tt.ptr<f16>>
  %r0 = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r1 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %e0 = tt.expand_dims %r0 {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %e1 = tt.expand_dims %r1 {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %c256 = arith.constant dense<256> : tensor<16x1xi32>
  %rows = arith.muli %e0, %c256 : tensor<16x1xi32>
  %b0 = tt.broadcast %rows : tensor<16x1xi32> -> tensor<16x256xi32>
  %b1 = tt.broadcast %e1 : tensor<1x256xi32> -> tensor<16x256xi32>
  %i = arith.addi %b0, %b1 : tensor<16x256xi32>
  %s = tt.splat %q : !tt.ptr<f32> -> tensor<16x256x!tt.ptr<f32>>
  %t = tt.addptr %s, %i : tensor<16x256x!tt.ptr<f32>>, tensor<16x256xi32>
  %y = tt.load %t : tensor<16x256x!tt.ptr<f32>>
  %sum = "tt.reduce"(%y) <{axis = 0 : i32}> ({
  ^bb0(%u: f32, %v: f32):
    %w = arith.addf %u, %v : f32
    tt.reduce.return %w : f32
  }) : (tensor<16x256xf32>) -> tensor<256xf32>
  tt.store %o, %sum : tensor<256x!tt.ptr<f32>>
  tt.return
}

//--- engine.mlir
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // A region moves, accesses and all, for it saves a conversion through shared memory.
  // CHECK: remark: choice of the layouts of this function: as chosen: {{[0-9]+}} cycles ({{.*}}) | as they were: {{[0-9]+}} ({{.*}}conversions {{.*}})
  // CHECK: remark: choice of the layout of this store: as its addresses ask, blocked 4x1 lanes 16x2 warps 1x4: {{[0-9]+}} cycles ({{.*}}) | as its value is, blocked 1x4 lanes 2x16 warps 4x1: {{[0-9]+}}
  // CHECK: remark: choice of the layout of a region: move {{[0-9]+}} operations to blocked 4x1 lanes 16x2 warps 1x4: -{{[0-9]+}} cycles | {{.*}}stay in blocked 1x4 lanes 2x16 warps 4x1: 0
  tt.func @region(%at: !tt.ptr<f32>, %q: tensor<64x64x!tt.ptr<f32>, #b> {tt.contiguity = dense<[4, 1]> : tensor<2xi32>, tt.divisibility = 16 : i32}) {
    %s = tt.splat %at : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
    %l = tt.load %s : tensor<64x64x!tt.ptr<f32>, #a>
    %e = math.exp %l : tensor<64x64xf32, #a>
    %0 = ttg.convert_layout %e : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %0 : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  }

  // A range is made once more.
  // CHECK: remark: choice of how to have tt.make_range in blocked 4x1 lanes 16x2 warps 1x4 without dim 1: rematerialize it: 0 cycles | convert it: {{[0-9.]+}}
  tt.func @range(%q: tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #b}>>, %p: tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 0, parent = #a}>>) {
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>>
    tt.store %q, %r : tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #b}>>
    %0 = ttg.convert_layout %r : tensor<64xi32, #ttg.slice<{dim = 1, parent = #b}>> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = #a}>>
    tt.store %p, %0 : tensor<64x!tt.ptr<i32>, #ttg.slice<{dim = 0, parent = #a}>>
    tt.return
  }
}

//--- left.mlir
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // What is left as it is, and what else it would cost.
  // CHECK-DAG: remark: choice of how to have tt.load in blocked 4x1 lanes 16x2 warps 1x4: convert it: {{[0-9]+}} cycles | rematerialize it: {{[0-9]+}}
  // CHECK-DAG: remark: choice of the layout of this store: as its addresses ask, blocked 4x1 lanes 16x2 warps 1x4: {{[0-9]+}} cycles (access {{[0-9]+}}, conversion {{[0-9]+}}) | as its value is, blocked 1x4 lanes 2x16 warps 4x1, without addresses: {{[0-9]+}}
  // CHECK-DAG: remark: choice of the layout of a region: stay in blocked 1x4 lanes 2x16 warps 4x1: 0 cycles | {{.*}}move {{[0-9]+}} operations to blocked 4x1 lanes 16x2 warps 1x4: +{{[0-9]+}} (work +{{[0-9]+}}, conversions {{[-+0-9]+}})
  // CHECK-DAG: remark: choice of the layout of tt.reduce: in blocked 1x4 lanes 2x16 warps 4x1: {{[0-9]+}} cycles | in blocked 1x1 lanes {{.*}}: {{[0-9]+}} (itself {{[0-9]+}}, conversions {{[0-9]+}})
  // CHECK-DAG: remark: takes {{[0-9]+}} cycles of a CTA by the objective, which counts no dots: {{.*}}conversions {{[0-9]+}}
  tt.func @transpose(%p: tensor<64x64x!tt.ptr<f32>, #a> {tt.contiguity = dense<[1, 4]> : tensor<2xi32>, tt.divisibility = 16 : i32}, %q: tensor<64x64x!tt.ptr<f32>, #b> {tt.contiguity = dense<[4, 1]> : tensor<2xi32>, tt.divisibility = 16 : i32}, %o: tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #a}>>) {
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
    %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%u: f32, %v: f32):
      %w = arith.addf %u, %v : f32
      tt.reduce.return %w : f32
    }) : (tensor<64x64xf32, #a>) -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #a}>>
    tt.store %o, %s : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #a}>>
    tt.return
  }
}

//--- dots.mlir
// CHECK: remark: choice of instruction, by the time of the matrix units: wgmma.m64n256k16 of F16: {{[0-9]+}} cycles | mma.m16n8k16 of F16: {{[0-9]+$}}
// CHECK: remark: choice of place of the left operand: registers, as its layout is converted: {{[0-9]+}} cycles | shared memory, as it is stored there: {{[0-9]+}}
// SM80: remark: choice of warps along rows and columns of this dot: 2x2 warps: {{[0-9]+}} cycles (matrix units {{[0-9]+}}, reading operands {{[0-9]+}}) | {{[14]}}x{{[14]}} warps: {{[0-9]+}} ({{.*}}) | {{[14]}}x{{[14]}} warps: {{[0-9]+}}
tt.func public @dots(%a: tensor<128x64xf16>, %b: tensor<64x128xf16>, %c: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %n = arith.mulf %a, %a : tensor<128x64xf16>
  %d = tt.dot %n, %b, %c : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
  tt.return %d : tensor<128x128xf32>
}
