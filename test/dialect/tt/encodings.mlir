// Operations on tensors with layouts: types are inferred where the syntax
// leaves them out, equal layouts may be spelled differently where Triton says
// so, and canonicalization keeps the layout of every result.
//
// RUN: %ttopt %s > %t.once
// RUN: FileCheck %s --input-file %t.once
// RUN: %ttopt %t.once | diff %t.once -
// RUN: %ttopt --mlir-print-op-generic %s | %ttopt | diff %t.once -
// RUN: %ttopt %s --canonicalize | FileCheck %s --check-prefix CANON

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#t = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
#j = #ttg.blocked<{sizePerThread = [1, 4, 2], threadsPerWarp = [8, 4, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
#split = #ttg.linear<{register = [[0, 1, 0], [0, 2, 0], [0, 0, 1]], lane = [[0, 4, 0], [0, 8, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0]], warp = [[8, 0, 0], [16, 0, 0]], block = []}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#c = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-DAG: [[B:#.*]] = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
  // CHECK-DAG: [[T:#.*]] = #ttg.blocked<{sizePerThread = [4, 1],
  // CHECK-DAG: [[J:#.*]] = #ttg.blocked<{sizePerThread = [1, 4, 2],
  // CHECK-DAG: [[L:#.*]] = #ttg.linear<

  // CHECK-LABEL: tt.func @shapes(
  tt.func @shapes(%x: tensor<32x16xf32, #b>, %row: tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>>, %y: tensor<32x16x2xf32, #j>) {
    // CHECK: tt.expand_dims %{{.*}} {axis = 0 : i32} : tensor<16xf32, #ttg.slice<{dim = 0, parent = [[B]]}>> -> tensor<1x16xf32, [[B]]>
    %0 = tt.expand_dims %row {axis = 0 : i32} : tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x16xf32, #b>
    // CHECK: tt.broadcast %{{.*}} : tensor<1x16xf32, [[B]]> -> tensor<32x16xf32, [[L]]>
    %1 = tt.broadcast %0 : tensor<1x16xf32, #b> -> tensor<32x16xf32, #l>
    // CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<32x16xf32, [[B]]> -> tensor<16x32xf32, [[T]]>
    %2 = tt.trans %x {order = array<i32: 1, 0>} : tensor<32x16xf32, #b> -> tensor<16x32xf32, #t>
    // CHECK: tt.reshape %{{.*}} : tensor<32x16xf32, [[B]]> -> tensor<32x16xf32, [[L]]>
    %3 = tt.reshape %x : tensor<32x16xf32, #b> -> tensor<32x16xf32, #l>
    // CHECK: tt.reshape %{{.*}} allow_reorder : tensor<32x16xf32, [[B]]> -> tensor<16x32xf32, [[T]]>
    %4 = tt.reshape %x allow_reorder : tensor<32x16xf32, #b> -> tensor<16x32xf32, #t>
    // CHECK: tt.join %{{.*}}, %{{.*}} : tensor<32x16xf32, [[B]]> -> tensor<32x16x2xf32, [[J]]>
    %5 = tt.join %x, %x : tensor<32x16xf32, #b> -> tensor<32x16x2xf32, #j>
    // The pair may be in any register.
    // CHECK: tt.join %{{.*}}, %{{.*}} : tensor<32x16xf32, [[L]]> -> tensor<32x16x2xf32, #{{.*}}>
    %far = tt.join %1, %1 : tensor<32x16xf32, #l> -> tensor<32x16x2xf32, #split>
    // CHECK: %outLHS, %outRHS = tt.split %{{.*}} : tensor<32x16x2xf32, [[J]]> -> tensor<32x16xf32, [[L]]>
    %6, %7 = tt.split %y : tensor<32x16x2xf32, #j> -> tensor<32x16xf32, #l>
    // CHECK: (tensor<32x16xf32, [[B]]>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = [[B]]}>>
    %8 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      tt.reduce.return %a : f32
    }) : (tensor<32x16xf32, #b>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #b}>>
    tt.return
  }

  // CHECK-LABEL: tt.func @memory(
  tt.func @memory(%p: tensor<32x16x!tt.ptr<f32>, #b>, %m: tensor<32x16xi1, #b>, %d: !tt.tensordesc<32x16xf8E5M2, #shared>, %i: i32) {
    // CHECK: tt.load %{{.*}}, %{{.*}} : tensor<32x16x!tt.ptr<f32>, [[B]]>
    %0 = tt.load %p, %m : tensor<32x16x!tt.ptr<f32>, #b>
    // CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x16x!tt.ptr<f32>, [[B]]>
    tt.store %p, %0, %m : tensor<32x16x!tt.ptr<f32>, #b>
    // CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tt.tensordesc<32x16xf8E5M2, #shared> -> tensor<32x16xf8E5M2, [[B]]>
    %1 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<32x16xf8E5M2, #shared> -> tensor<32x16xf8E5M2, #b>
    tt.return
  }

  // CHECK-LABEL: tt.func @dot(
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x16xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<16x32xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x32xf32, #mma>
  tt.func @dot(%x: tensor<64x16xf16, #a>, %y: tensor<16x32xf16, #c>, %z: tensor<64x32xf32, #mma>) {
    %0 = tt.dot %x, %y, %z : tensor<64x16xf16, #a> * tensor<16x32xf16, #c> -> tensor<64x32xf32, #mma>
    tt.return
  }

  // CANON-LABEL: tt.func @canonicalize(
  // CANON-SAME: [[X:%arg0]]: f32, [[R:%arg1]]: tensor<1x16xf32
  // CANON-DAG: [[C:%.*]] = arith.constant dense<1.000000e+00> : tensor<16x32xf32, [[T:#.*]]>
  // CANON-DAG: [[S:%.*]] = tt.splat [[X]] : f32 -> tensor<1x16xf32, [[B:#.*]]>
  // CANON-DAG: [[E:%.*]] = tt.broadcast [[R]] : tensor<1x16xf32, [[B]]> -> tensor<32x16xf32, [[L:#.*]]>
  // CANON: tt.return [[C]], [[S]], [[E]]
  tt.func @canonicalize(%x: f32, %row: tensor<1x16xf32, #b>) -> (tensor<16x32xf32, #t>, tensor<1x16xf32, #b>, tensor<32x16xf32, #l>) {
    %one = arith.constant dense<1.0> : tensor<32x16xf32, #b>
    %0 = tt.trans %one {order = array<i32: 1, 0>} : tensor<32x16xf32, #b> -> tensor<16x32xf32, #t>
    %1 = tt.splat %x : f32 -> tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>>
    %2 = tt.expand_dims %1 {axis = 0 : i32} : tensor<16xf32, #ttg.slice<{dim = 0, parent = #b}>> -> tensor<1x16xf32, #b>
    %3 = tt.broadcast %row : tensor<1x16xf32, #b> -> tensor<32x16xf32, #b>
    %4 = tt.broadcast %3 : tensor<32x16xf32, #b> -> tensor<32x16xf32, #l>
    tt.return %0, %2, %4 : tensor<16x32xf32, #t>, tensor<1x16xf32, #b>, tensor<32x16xf32, #l>
  }
}
