// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s
// RUN: sed s/cuda:80/cuda:90/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s

#lanes = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#warps = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#vectors = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 4096 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// A line lies in 16 lanes: the index replaces the lower four bits of the lane.
// CHECK-LABEL: llvm.func internal @shuffle(
// CHECK-SAME:    %[[X:[^:]*]]: f32, %[[I:[^:]*]]: i32)
// CHECK:         %[[LOW:.*]] = llvm.mlir.constant(15 : i32)
// CHECK:         %[[AT:.*]] = llvm.and %[[I]], %[[LOW]]
// CHECK:         %[[HIGH:.*]] = llvm.mlir.constant(-16 : i32)
// CHECK:         %[[KEPT:.*]] = llvm.and %{{.*}}, %[[HIGH]]
// CHECK:         %[[LANE:.*]] = llvm.or disjoint %[[KEPT]], %[[AT]]
// CHECK:         llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32"(%{{.*}}, %{{.*}}, %[[LANE]], %{{.*}})
tt.func private @shuffle(%x: tensor<8x16xf32, #lanes>, %i: tensor<8x16xi32, #lanes>) -> tensor<8x16xf32, #lanes> {
  %g = tt.gather %x[%i] {axis = 1 : i32} : (tensor<8x16xf32, #lanes>, tensor<8x16xi32, #lanes>) -> tensor<8x16xf32, #lanes>
  tt.return %g : tensor<8x16xf32, #lanes>
}

// Lines of 128 elements of 16 bits lie in all banks.
// CHECK-LABEL: llvm.func @shared(
// CHECK-COUNT-4: llvm.store %{{.*}}, %{{.*}} : i16, !llvm.ptr<3>
// CHECK-NOT:     !llvm.ptr<3>
// CHECK:         nvvm.barrier0
// CHECK:         %[[BITS:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CHECK:         %[[BYTES:.*]] = llvm.shl %[[BITS]], %{{.*}} : i32
// CHECK:         %[[AT:.*]] = llvm.xor %{{.*}}, %[[BYTES]] : i32
// CHECK:         %[[P:.*]] = llvm.getelementptr %{{.*}}[%[[AT]]]
// CHECK:         llvm.load %[[P]] {{.*}} : !llvm.ptr<3> -> i16
// CHECK-NOT:     nvvm.barrier0
tt.func public @shared(%p: tensor<4x128x!tt.ptr<f16>, #warps>, %q: tensor<4x128x!tt.ptr<i32>, #warps>) {
  %x = tt.load %p : tensor<4x128x!tt.ptr<f16>, #warps>
  %i = tt.load %q : tensor<4x128x!tt.ptr<i32>, #warps>
  %g = tt.gather %x[%i] {axis = 1 : i32, allocation.offset = 0 : i32} : (tensor<4x128xf16, #warps>, tensor<4x128xi32, #warps>) -> tensor<4x128xf16, #warps>
  tt.store %p, %g : tensor<4x128x!tt.ptr<f16>, #warps>
  tt.return
}

// Whole rows: four elements of a thread have one index, and lie side by side.
// CHECK-LABEL: llvm.func @rows(
// CHECK:         nvvm.barrier0
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT:     !llvm.ptr<3>
// CHECK:         llvm.return
tt.func public @rows(%p: tensor<32x32x!tt.ptr<f32>, #vectors>, %q: tensor<32x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #vectors}>>) {
  %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #vectors>
  %row = tt.load %q : tensor<32x!tt.ptr<i32>, #ttg.slice<{dim = 1, parent = #vectors}>>
  %column = tt.expand_dims %row {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #vectors}>> -> tensor<32x1xi32, #vectors>
  %i = tt.broadcast %column : tensor<32x1xi32, #vectors> -> tensor<32x32xi32, #vectors>
  %g = tt.gather %x[%i] {axis = 0 : i32, allocation.offset = 0 : i32} : (tensor<32x32xf32, #vectors>, tensor<32x32xi32, #vectors>) -> tensor<32x32xf32, #vectors>
  tt.store %p, %g : tensor<32x32x!tt.ptr<f32>, #vectors>
  tt.return
}

// Clear, count what is a bin and not masked, read. Warps 2 and 3 hold replicas and do not count.
// CHECK-LABEL: llvm.func @histogram(
// CHECK:         st.shared.b32
// CHECK:         nvvm.barrier0
// CHECK:         %[[BINS:.*]] = llvm.mlir.constant(32 : i32)
// CHECK:         %[[BIN:.*]] = llvm.icmp "ult" %{{.*}}, %[[BINS]] : i32
// CHECK:         %[[MINE:.*]] = llvm.and %{{.*}}, %[[BIN]]
// CHECK:         "@$1 red.relaxed.cta.shared.add.u32 [ $0 ], 1;", "r,b,~{memory}" %{{.*}}, %[[MINE]]
// CHECK:         nvvm.barrier0
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3>
tt.func public @histogram(%p: tensor<64x!tt.ptr<i32>, #line>, %q: tensor<32x!tt.ptr<i32>, #line>, %m: tensor<64xi1, #line>) {
  %x = tt.load %p : tensor<64x!tt.ptr<i32>, #line>
  %h = tt.histogram %x, %m {allocation.offset = 0 : i32} : tensor<64xi32, #line> -> tensor<32xi32, #line>
  tt.store %q, %h : tensor<32x!tt.ptr<i32>, #line>
  tt.return
}

// CHECK-LABEL: llvm.func internal @cat(
// CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32)
// CHECK:         llvm.insertvalue %[[A]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[B]], %{{.*}}[1]
tt.func private @cat(%a: tensor<128xf32, #line>, %b: tensor<128xf32, #line>) -> tensor<256xf32, #line> {
  %c = tt.cat %a, %b : tensor<128xf32, #line> -> tensor<256xf32, #line>
  tt.return %c : tensor<256xf32, #line>
}
}
