// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=cuda:90 num-warps=4" | FileCheck %s
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=cuda:90 num-warps=4 num-ctas=4" | FileCheck %s --check-prefix=CTAS
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=hip:gfx942 num-warps=8 threads-per-warp=64" | FileCheck %s --check-prefix=HIP

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK: module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32}
// CHECK-LABEL: @elementwise
// CHECK-SAME: tensor<256xf32, #blocked>
// CHECK: arith.constant dense<1.000000e+00> : tensor<256xf32, #blocked>
// CHECK: arith.addf {{.*}} : tensor<256xf32, #blocked>
// CHECK-NOT: convert_layout
// CTAS: sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = {{\[\[}}1], [2]]
// CTAS: "ttg.num-ctas" = 4 : i32
// HIP: sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [8], order = [0]
// HIP: ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32
tt.func @elementwise(%x: tensor<256xf32>) -> tensor<256xf32> {
  %c = arith.constant dense<1.0> : tensor<256xf32>
  %0 = arith.addf %x, %c : tensor<256xf32>
  tt.return %0 : tensor<256xf32>
}

// -----

// Threads go along the last dimension first, what is left over along the first.
// CHECK: [[WIDE:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
// CHECK-LABEL: @expand_and_broadcast
// CHECK: [[RANGE:%.*]] = tt.make_range
// CHECK: [[SLICE:%.*]] = ttg.convert_layout [[RANGE]] : tensor<64xi32, #blocked{{[0-9]*}}> -> tensor<64xi32, #ttg.slice<{dim = 0, parent = [[WIDE]]}>>
// CHECK: [[LINE:%.*]] = tt.expand_dims [[SLICE]] {axis = 0 : i32} {{.*}} -> tensor<1x64xi32, [[WIDE]]>
// CHECK: tt.broadcast [[LINE]] : tensor<1x64xi32, [[WIDE]]> -> tensor<32x64xi32, [[WIDE]]>
tt.func @expand_and_broadcast(%p: tensor<32x64x!tt.ptr<i32>>) {
  %0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %2 = tt.broadcast %1 : tensor<1x64xi32> -> tensor<32x64xi32>
  tt.store %p, %2 : tensor<32x64x!tt.ptr<i32>>
  tt.return
}

// -----

// CHECK-LABEL: @reduce
// CHECK: [[SUM:%.*]] = "tt.reduce"
// CHECK: (tensor<32x64xf32, [[L:#blocked[0-9]*]]>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = [[L]]}>>
// The slice stays as long as nothing disagrees.
// CHECK-NEXT: arith.mulf [[SUM]], [[SUM]] : tensor<32xf32, #ttg.slice<{dim = 1, parent = [[L]]}>>
// CHECK: [[ALL:%.*]] = "tt.reduce"
// CHECK: (tensor<32xf32, #ttg.slice<{dim = 1, parent = [[L]]}>>) -> f32
// CHECK: ttg.convert_layout {{.*}} -> tensor<32xf32, #blocked{{[0-9]*}}>
// CHECK-NEXT: tt.return
tt.func @reduce(%x: tensor<32x64xf32>) -> (tensor<32xf32>, f32) {
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<32x64xf32>) -> tensor<32xf32>
  %1 = arith.mulf %0, %0 : tensor<32xf32>
  %2 = "tt.reduce"(%1) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<32xf32>) -> f32
  tt.return %1, %2 : tensor<32xf32>, f32
}

// -----

// CHECK-DAG: [[BOX:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @dot
// CHECK-DAG: -> tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = [[BOX]]}>>
// CHECK-DAG: -> tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = [[BOX]]}>>
// CHECK-DAG: -> tensor<64x64xf32, [[BOX]]>
// CHECK: tt.dot {{.*}} * {{.*}} -> tensor<64x64xf32, [[BOX]]>
tt.func @dot(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %0 = tt.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  tt.return %0 : tensor<64x64xf32>
}

// -----

// Results of shape operations follow from their operands.
// CHECK-LABEL: @shapes
// CHECK: tt.trans {{.*}} tensor<16x64xf32, #blocked{{[0-9]*}}> -> tensor<64x16xf32, #blocked{{[0-9]*}}>
// CHECK: [[PAIR:%.*]] = tt.join {{.*}} -> tensor<64x16x2xf32, #blocked{{[0-9]*}}>
// CHECK-NEXT: tt.split [[PAIR]]
// CHECK: tt.reshape {{.*}} -> tensor<1024xf32
// CHECK: tt.cat {{.*}} -> tensor<2048xf32, #linear
// CHECK: tt.gather
tt.func @shapes(%x: tensor<16x64xf32>, %i: tensor<64x8xi32>) -> tensor<64x8xf32> {
  %0 = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x64xf32> -> tensor<64x16xf32>
  %1 = tt.join %0, %0 : tensor<64x16xf32> -> tensor<64x16x2xf32>
  %2, %3 = tt.split %1 : tensor<64x16x2xf32> -> tensor<64x16xf32>
  %4 = tt.reshape %2 : tensor<64x16xf32> -> tensor<1024xf32>
  %5 = tt.cat %4, %4 : tensor<1024xf32> -> tensor<2048xf32>
  %6 = tt.gather %3[%i] {axis = 1 : i32} : (tensor<64x16xf32>, tensor<64x8xi32>) -> tensor<64x8xf32>
  tt.return %6 : tensor<64x8xf32>
}

// -----

// Pairs must be in one thread to be split: the operand moves.
// CHECK-DAG: [[PAIRS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @split
// CHECK: ttg.convert_layout {{.*}} -> tensor<128x2xf32, [[PAIRS]]>
// CHECK-NEXT: tt.split
tt.func @split(%x: tensor<128x2xf32>) -> tensor<128xf32> {
  %0, %1 = tt.split %x : tensor<128x2xf32> -> tensor<128xf32>
  tt.return %0 : tensor<128xf32>
}

// -----

// CHECK-LABEL: @control_flow
// CHECK: scf.for {{.*}} -> (tensor<64xf32, #blocked>)
// CHECK: scf.while {{.*}} : (tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked>
// CHECK: cf.br ^bb1({{.*}} : tensor<64xf32, #blocked>)
// CHECK: tt.call @callee({{.*}}) : (tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked>
tt.func @control_flow(%n: i32, %c: i1, %x: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<64xf32>) : i32 {
    %2 = arith.addf %a, %x : tensor<64xf32>
    scf.yield %2 : tensor<64xf32>
  }
  %1 = scf.while (%a = %0) : (tensor<64xf32>) -> tensor<64xf32> {
    scf.condition(%c) %a : tensor<64xf32>
  } do {
  ^bb0(%b: tensor<64xf32>):
    scf.yield %b : tensor<64xf32>
  }
  cf.br ^bb1(%1 : tensor<64xf32>)
^bb1(%y: tensor<64xf32>):
  %z = tt.call @callee(%y) : (tensor<64xf32>) -> tensor<64xf32>
  tt.return %z : tensor<64xf32>
}
// CHECK: tt.func private @callee({{.*}}: tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked>
tt.func private @callee(%x: tensor<64xf32>) -> tensor<64xf32> attributes {noinline = true} {
  tt.return %x : tensor<64xf32>
}

// -----

// CHECK-LABEL: @other
// CHECK: tt.elementwise_inline_asm {{.*}} -> tensor<64xi32, #blocked>
// CHECK: tt.extern_elementwise {{.*}} -> tensor<64xf32, #blocked>
// CHECK: tt.histogram {{.*}} -> tensor<16xi32, #blocked>
// CHECK: tt.atomic_rmw {{.*}} -> tensor<64xi32, #blocked>
// CHECK: tt.print {{.*}} tensor<64xi32, #blocked>
tt.func @other(%x: tensor<64xi32>, %y: tensor<64xf32>, %p: tensor<64x!tt.ptr<i32>>, %m: tensor<64xi1>) {
  %0 = tt.elementwise_inline_asm "mov $0, $1;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<64xi32> -> tensor<64xi32>
  %1 = tt.extern_elementwise %y {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<64xf32>) -> tensor<64xf32>
  %2 = tt.histogram %0 : tensor<64xi32> -> tensor<16xi32>
  %3 = tt.atomic_rmw add, acq_rel, gpu, %p, %x, %m : (tensor<64x!tt.ptr<i32>>, tensor<64xi32>, tensor<64xi1>) -> tensor<64xi32>
  tt.print "x" {hex = false, isSigned = array<i32: 1>} : %3 : tensor<64xi32>
  tt.return
}
