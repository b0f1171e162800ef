// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s

// Of the threads that hold the same element one stores it.

#lanes = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#four = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #b2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// 64 elements fill two warps, the other two hold replicas: warp bit 1 is masked.
// CHECK-LABEL: llvm.func @warps(
// CHECK:         %[[WARP:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         %[[COPY:.*]] = llvm.and %[[WARP]], %[[TWO]]
// CHECK:         %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         %[[MINE:.*]] = llvm.icmp "eq" %[[COPY]], %[[ZERO]]
// CHECK:         llvm.inline_asm {{.*}}"@$2 st.global.b32 [ $0 ], $1;"{{.*}}, %[[MINE]] :
tt.func public @warps(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #lanes>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #lanes>
  %p = tt.addptr %s, %r : tensor<64x!tt.ptr<i32>, #lanes>, tensor<64xi32, #lanes>
  tt.store %p, %r : tensor<64x!tt.ptr<i32>, #lanes>
  tt.return
}

// 8 elements: lane bits 3 and 4 and all of the warp.
// CHECK-LABEL: llvm.func @lanes(
// CHECK:         %[[WARP:.*]] = llvm.lshr %{{.*}}, %{{.*}} : i32
// CHECK:         %[[C24:.*]] = llvm.mlir.constant(24 : i32)
// CHECK:         %[[L:.*]] = llvm.and %[[LANE:.*]], %[[C24]]
// CHECK:         %[[THREE:.*]] = llvm.mlir.constant(3 : i32)
// CHECK:         %[[W:.*]] = llvm.and %[[WARP]], %[[THREE]]
// CHECK:         %[[COPY:.*]] = llvm.or %[[L]], %[[W]]
// CHECK:         %[[MINE:.*]] = llvm.icmp "eq" %[[COPY]], %{{.*}} : i32
// CHECK:         llvm.inline_asm {{.*}}"@$2 st.global.b32 [ $0 ], $1;"{{.*}}, %[[MINE]] :
tt.func public @lanes(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #lanes>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #lanes>
  %p = tt.addptr %s, %r : tensor<8x!tt.ptr<i32>, #lanes>, tensor<8xi32, #lanes>
  tt.store %p, %r : tensor<8x!tt.ptr<i32>, #lanes>
  tt.return
}

// A slice holds a row in all lanes and warps along the sliced dimension; the
// kernel's own mask and that of the copies are one predicate.
// CHECK-LABEL: llvm.func @slice(
// CHECK:         %[[LIVE:.*]] = llvm.icmp "slt" %{{.*}}, %arg1 : i32
// CHECK:         %[[SEVEN:.*]] = llvm.mlir.constant(7 : i32)
// CHECK:         %[[L:.*]] = llvm.and %{{.*}}, %[[SEVEN]]
// CHECK:         %[[COPY:.*]] = llvm.or %[[L]], %{{.*}} : i32
// CHECK:         %[[MINE:.*]] = llvm.icmp "eq" %[[COPY]], %{{.*}} : i32
// CHECK:         %[[BOTH:.*]] = llvm.and %[[LIVE]], %[[MINE]] : i1
// CHECK:         llvm.inline_asm {{.*}}"@$2 st.global.b32 [ $0 ], $1;"{{.*}}, %[[BOTH]] :
tt.func public @slice(%out: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #row>
  %ns = tt.splat %n : i32 -> tensor<8xi32, #row>
  %m = arith.cmpi slt, %r, %ns : tensor<8xi32, #row>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<8x!tt.ptr<i32>, #row>
  %p = tt.addptr %s, %r : tensor<8x!tt.ptr<i32>, #row>, tensor<8xi32, #row>
  tt.store %p, %r, %m : tensor<8x!tt.ptr<i32>, #row>
  tt.return
}

// A scalar is stored by the first thread.
// CHECK-LABEL: llvm.func @scalar(
// CHECK:         %[[MINE:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK:         llvm.inline_asm {{.*}}"@$2 st.global.b32 [ $0 ], $1;", "l,r,b" %arg0, %{{.*}}, %[[MINE]] :
tt.func public @scalar(%out: !tt.ptr<f32>, %x: f32) {
  tt.store %out, %x : !tt.ptr<f32>
  tt.return
}

// Without copies there is no predicate.
// CHECK-LABEL: llvm.func @full(
// CHECK-NOT:     llvm.icmp
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
// CHECK-NEXT:    llvm.return
tt.func public @full(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #lanes>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #lanes>
  %p = tt.addptr %s, %r : tensor<128x!tt.ptr<i32>, #lanes>, tensor<128xi32, #lanes>
  tt.store %p, %r : tensor<128x!tt.ptr<i32>, #lanes>
  tt.return
}

// Registers that hold the same element store it once.
// CHECK-LABEL: llvm.func @registers(
// CHECK-COUNT-1: st.global.b32
// CHECK-NOT:     st.global
// CHECK:         llvm.return
tt.func public @registers(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 1 : i32, start = 0 : i32} : tensor<1xi32, #four>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<1x!tt.ptr<i32>, #four>
  %p = tt.addptr %s, %r : tensor<1x!tt.ptr<i32>, #four>, tensor<1xi32, #four>
  tt.store %p, %r : tensor<1x!tt.ptr<i32>, #four>
  tt.return
}

// Four elements below a bound that is a multiple of four are compared once.
// CHECK-LABEL: llvm.func @equal(
// CHECK-COUNT-1: llvm.icmp
// CHECK-NOT:     llvm.icmp
// CHECK-COUNT-4: llvm.select
// CHECK:         llvm.return
tt.func public @equal(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #four>
  %b = tt.splat %n : i32 -> tensor<512xi32, #four>
  %m = arith.cmpi slt, %r, %b : tensor<512xi32, #four>
  %v = arith.select %m, %r, %b : tensor<512xi1, #four>, tensor<512xi32, #four>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #four>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<i32>, #four>, tensor<512xi32, #four>
  tt.store %p, %v : tensor<512x!tt.ptr<i32>, #four>
  tt.return
}
}
