// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s
// RUN: sed s/cuda:80/cuda:90/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #rows}>
#two = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
#two_row = #ttg.slice<{dim = 1, parent = #two}>
#wide = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#wide_row = #ttg.slice<{dim = 1, parent = #wide}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 64 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// Registers as a tree, then butterflies between the lanes along the axis: one here.
// CHECK-LABEL: llvm.func internal @within_a_warp(
// CHECK-SAME:    %[[A:.*]]: f32)
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         %[[OTHER:.*]] = llvm.call_intrinsic "llvm.nvvm.shfl.sync.bfly.i32"({{.*}}, %[[ONE]], %{{.*}})
// CHECK:         %[[B:.*]] = llvm.bitcast %[[OTHER]] : i32 to f32
// CHECK:         %[[SUM:.*]] = llvm.fadd %[[A]], %[[B]]
// CHECK-NOT:     shfl
// CHECK:         llvm.return %[[SUM]]
tt.func private @within_a_warp(%x: tensor<64x2xf32, #two>) -> tensor<64xf32, #two_row> {
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<64x2xf32, #two>) -> tensor<64xf32, #two_row>
  tt.return %s : tensor<64xf32, #two_row>
}

// CHECK-LABEL: llvm.func internal @tree(
// CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32, %[[C:[^:]*]]: f32, %[[D:[^:]*]]: f32)
// CHECK:         %[[AB:.*]] = llvm.intr.maxnum(%[[A]], %[[B]])
// CHECK:         %[[CD:.*]] = llvm.intr.maxnum(%[[C]], %[[D]])
// CHECK:         llvm.intr.maxnum(%[[AB]], %[[CD]])
// CHECK-COUNT-5: shfl.sync.bfly
tt.func private @tree(%x: tensor<4x128xf32, #rows>) -> tensor<4xf32, #row> {
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<4x128xf32, #rows>) -> tensor<4xf32, #row>
  tt.return %s : tensor<4xf32, #row>
}

// Products are added one after the other, which makes one instruction of each multiplication and addition but the first.
// CHECK-LABEL: llvm.func internal @products(
// CHECK:         %[[P0:.*]] = llvm.fmul
// CHECK-NEXT:    %[[P1:.*]] = llvm.fmul
// CHECK-NEXT:    %[[P2:.*]] = llvm.fmul
// CHECK-NEXT:    %[[P3:.*]] = llvm.fmul
// CHECK:         %[[S1:.*]] = llvm.fadd %[[P0]], %[[P1]]
// CHECK-NEXT:    %[[S2:.*]] = llvm.fadd %[[S1]], %[[P2]]
// CHECK-NEXT:    llvm.fadd %[[S2]], %[[P3]]
// CHECK-COUNT-5: shfl.sync.bfly
tt.func private @products(%x: tensor<4x128xf32, #rows>, %y: tensor<4x128xf32, #rows>) -> tensor<4xf32, #row> {
  %p = arith.mulf %x, %y : tensor<4x128xf32, #rows>
  %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<4x128xf32, #rows>) -> tensor<4xf32, #row>
  tt.return %s : tensor<4xf32, #row>
}

// Of 16 products there are two sums.
// CHECK-LABEL: llvm.func internal @two_chains(
// CHECK-COUNT-16: llvm.mul
// CHECK:         %[[E0:.*]] = llvm.add %[[Q0:.*]], %[[Q2:.*]] :
// CHECK-NEXT:    %[[O0:.*]] = llvm.add
// CHECK-NEXT:    %[[E1:.*]] = llvm.add %[[E0]]
// CHECK-NEXT:    %[[O1:.*]] = llvm.add %[[O0]]
tt.func private @two_chains(%x: tensor<4x512xi32, #wide>, %y: tensor<4x512xi32, #wide>) -> tensor<4xi32, #wide_row> {
  %p = arith.muli %x, %y : tensor<4x512xi32, #wide>
  %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x512xi32, #wide>) -> tensor<4xi32, #wide_row>
  tt.return %s : tensor<4xi32, #wide_row>
}

// Products that something else needs are made in any case.
// CHECK-LABEL: llvm.func internal @kept_products(
// CHECK:         %[[K0:.*]] = llvm.fmul
// CHECK-NEXT:    %[[K1:.*]] = llvm.fmul
// CHECK-NEXT:    %[[K2:.*]] = llvm.fmul
// CHECK-NEXT:    %[[K3:.*]] = llvm.fmul
// CHECK:         %[[T0:.*]] = llvm.fadd %[[K0]], %[[K1]]
// CHECK-NEXT:    %[[T1:.*]] = llvm.fadd %[[K2]], %[[K3]]
// CHECK-NEXT:    llvm.fadd %[[T0]], %[[T1]]
tt.func private @kept_products(%x: tensor<4x128xf32, #rows>) -> (tensor<4xf32, #row>, tensor<4x128xf32, #rows>) {
  %p = arith.mulf %x, %x : tensor<4x128xf32, #rows>
  %s = "tt.reduce"(%p) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<4x128xf32, #rows>) -> tensor<4xf32, #row>
  tt.return %s, %p : tensor<4xf32, #row>, tensor<4x128xf32, #rows>
}

// One instruction for the whole warp; narrow integers are extended.
// CHECK-LABEL: llvm.func internal @redux(
// CHECK:         %[[WIDE:.*]] = llvm.sext %{{.*}} : i16 to i32
// CHECK:         %[[ALL:.*]] = llvm.call_intrinsic "llvm.nvvm.redux.sync.max"(%[[WIDE]], %{{.*}})
// CHECK:         llvm.trunc %[[ALL]] : i32 to i16
// CHECK-NOT:     shfl
tt.func private @redux(%x: tensor<4x128xi16, #rows>) -> tensor<4xi16, #row> {
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.maxsi %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x128xi16, #rows>) -> tensor<4xi16, #row>
  tt.return %s : tensor<4xi16, #row>
}

// Of 64 bits the upper halves, and the lower ones of the lanes that have the largest upper one; sums in three parts.
// CHECK-LABEL: llvm.func internal @long(
// CHECK-NOT:     shfl
// CHECK:         %[[UPPER:.*]] = llvm.call_intrinsic "llvm.nvvm.redux.sync.max"(%[[HIGH:.*]], %{{.*}})
// CHECK:         %[[SAME:.*]] = llvm.icmp "eq" %[[HIGH]], %[[UPPER]] : i32
// CHECK:         %[[LOW:.*]] = llvm.select %[[SAME]], %{{.*}}, %{{.*}} : i1, i32
// CHECK:         llvm.call_intrinsic "llvm.nvvm.redux.sync.umax"(%[[LOW]], %{{.*}})
// CHECK-NOT:     shfl
// CHECK-COUNT-3: redux.sync.add
// CHECK-NOT:     shfl
tt.func private @long(%x: tensor<1x128xi64, #rows>) -> (tensor<1xi64, #row>, tensor<1xi64, #row>) {
  %m = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %c = arith.maxsi %a, %b : i64
    tt.reduce.return %c : i64
  }) : (tensor<1x128xi64, #rows>) -> tensor<1xi64, #row>
  %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %c = arith.addi %a, %b : i64
    tt.reduce.return %c : i64
  }) : (tensor<1x128xi64, #rows>) -> tensor<1xi64, #row>
  tt.return %m, %s : tensor<1xi64, #row>, tensor<1xi64, #row>
}

// Lanes 16 apart hold the same: adding them would count them twice, the maximum is the same.
// CHECK-LABEL: llvm.func internal @copies(
// CHECK-COUNT-4: shfl.sync.bfly
// CHECK-NOT:     shfl
// CHECK:         redux.sync.umax
tt.func private @copies(%x: tensor<16xi32, #line>) -> (i32, i32) {
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32, #line>) -> i32
  %m = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.maxui %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<16xi32, #line>) -> i32
  tt.return %s, %m : i32, i32
}

// 64 bits travel in two shuffles, i1 in one.
// CHECK-LABEL: llvm.func internal @words(
// CHECK:         llvm.bitcast %{{.*}} : f64 to i64
// CHECK-COUNT-2: shfl.sync.bfly
// CHECK:         llvm.zext %{{.*}} : i1 to i8
// CHECK:         shfl.sync.bfly
// CHECK-NOT:     shfl
tt.func private @words(%x: tensor<64x2xf64, #two>, %y: tensor<64x2xi1, #two>) -> tensor<64xf64, #two_row> {
  %s:2 = "tt.reduce"(%x, %y) <{axis = 1 : i32}> ({
  ^bb0(%a: f64, %p: i1, %b: f64, %q: i1):
    %c = arith.select %q, %b, %a : f64
    %r = arith.ori %p, %q : i1
    tt.reduce.return %c, %r : f64, i1
  }) : (tensor<64x2xf64, #two>, tensor<64x2xi1, #two>) -> (tensor<64xf64, #two_row>, tensor<64xi1, #two_row>)
  tt.return %s#0 : tensor<64xf64, #two_row>
}

// Four warps: one lane of each stores, all load four partial results at once.
// CHECK-LABEL: llvm.func @across_warps(
// CHECK:         st.shared.b32
// CHECK-NOT:     st.shared
// CHECK:         nvvm.barrier0
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK-NOT:     nvvm.barrier0
tt.func public @across_warps(%p: !tt.ptr<f32>) {
  %x = arith.constant dense<1.0> : tensor<128xf32, #line>
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) {allocation.offset = 16 : i32} : (tensor<128xf32, #line>) -> f32
  tt.store %p, %s : !tt.ptr<f32>
  tt.return
}
}
