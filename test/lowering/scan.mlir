// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s
// RUN: sed s/cuda:80/cuda:90/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s

#regs = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#lanes = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
#both = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#tiles = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#warps = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 2], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 1024 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @registers(
// CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32)
// CHECK:         %[[SUM:.*]] = llvm.fsub %[[A]], %[[B]]
// CHECK-NOT:     llvm.fsub
// CHECK:         llvm.insertvalue %[[A]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[SUM]], %{{.*}}[1]
tt.func private @registers(%x: tensor<128x2xf32, #regs>) -> tensor<128x2xf32, #regs> {
  %s = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    tt.scan.return %c : f32
  }) : (tensor<128x2xf32, #regs>) -> tensor<128x2xf32, #regs>
  tt.return %s : tensor<128x2xf32, #regs>
}

// What comes first in the direction of the scan is the left operand.
// CHECK-LABEL: llvm.func internal @reversed(
// CHECK-SAME:    %[[A:[^:]*]]: f32, %[[B:[^:]*]]: f32)
// CHECK:         %[[SUM:.*]] = llvm.fsub %[[B]], %[[A]]
// CHECK:         llvm.insertvalue %[[SUM]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[B]], %{{.*}}[1]
tt.func private @reversed(%x: tensor<128x2xf32, #regs>) -> tensor<128x2xf32, #regs> {
  %s = "tt.scan"(%x) <{axis = 1 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.subf %a, %b : f32
    tt.scan.return %c : f32
  }) : (tensor<128x2xf32, #regs>) -> tensor<128x2xf32, #regs>
  tt.return %s : tensor<128x2xf32, #regs>
}

// The odd lane takes the value of the even one.
// CHECK-LABEL: llvm.func internal @lanes(
// CHECK:         %[[THEIRS:.*]] = llvm.call_intrinsic "llvm.nvvm.shfl.sync.idx.i32"
// CHECK:         %[[SUM:.*]] = llvm.add %[[THEIRS]], %[[MINE:.*]] : i32
// CHECK:         llvm.select %{{.*}}, %[[SUM]], %[[MINE]]
tt.func private @lanes(%x: tensor<64x2xi32, #lanes>) -> tensor<64x2xi32, #lanes> {
  %s = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.scan.return %c : i32
  }) : (tensor<64x2xi32, #lanes>) -> tensor<64x2xi32, #lanes>
  tt.return %s : tensor<64x2xi32, #lanes>
}

// Registers one after the other, the totals of lanes, then every other register with the total of the lane before.
// CHECK-LABEL: llvm.func internal @registers_and_lanes(
// CHECK-COUNT-3: llvm.mul
// CHECK:         %[[MINUS_ONE:.*]] = llvm.mlir.constant(-1 : i32)
// CHECK-COUNT-5: llvm.mul
// CHECK:         %[[BEFORE:.*]] = llvm.add %{{.*}}, %[[MINUS_ONE]]
// CHECK:         shfl.sync.idx.i32"(%{{.*}}, %{{.*}}, %[[BEFORE]], %{{.*}})
// CHECK-COUNT-3: llvm.mul
// CHECK-NOT:     llvm.mul
tt.func private @registers_and_lanes(%x: tensor<4x128xi32, #both>) -> tensor<4x128xi32, #both> {
  %s = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.muli %a, %b : i32
    tt.scan.return %c : i32
  }) : (tensor<4x128xi32, #both>) -> tensor<4x128xi32, #both>
  tt.return %s : tensor<4x128xi32, #both>
}

// Each warp stores its totals and loads those of both; the second adds that of the first.
// CHECK-LABEL: llvm.func @warps(
// CHECK:         llvm.store %[[MINE:.*]], %{{.*}} : i32, !llvm.ptr<3>
// CHECK-NEXT:    nvvm.barrier0
// CHECK:         llvm.load %{{.*}} : !llvm.ptr<3> -> vector<2xi32>
// CHECK:         %[[SUM:.*]] = llvm.add %{{.*}}, %[[MINE]]
// CHECK-NEXT:    llvm.select %{{.*}}, %[[SUM]], %[[MINE]]
// CHECK-NOT:     nvvm.barrier0
tt.func public @warps(%p: tensor<64x2x!tt.ptr<i32>, #warps>) {
  %x = tt.load %p : tensor<64x2x!tt.ptr<i32>, #warps>
  %s = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.scan.return %c : i32
  }) {allocation.offset = 0 : i32} : (tensor<64x2xi32, #warps>) -> tensor<64x2xi32, #warps>
  tt.store %p, %s : tensor<64x2x!tt.ptr<i32>, #warps>
  tt.return
}

// Four warps and two tiles of registers above them: eight totals, one barrier.
// CHECK-LABEL: llvm.func @warps_and_registers(
// CHECK:         nvvm.barrier0
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT:     nvvm.barrier0
// CHECK:         llvm.return
tt.func public @warps_and_registers(%p: tensor<256x!tt.ptr<i32>, #tiles>) {
  %x = tt.load %p : tensor<256x!tt.ptr<i32>, #tiles>
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.scan.return %c : i32
  }) {allocation.offset = 0 : i32} : (tensor<256xi32, #tiles>) -> tensor<256xi32, #tiles>
  tt.store %p, %s : tensor<256x!tt.ptr<i32>, #tiles>
  tt.return
}
}
