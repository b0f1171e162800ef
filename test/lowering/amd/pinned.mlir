// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s

// A load that runs ahead is issued where it stands: behind writes to the LDS, before matrix instructions. The hardware
// gives zeros to lanes that are masked off, so nothing selects them.

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: llvm.func internal @pinned(
// CHECK:         %[[BEHIND:.*]] = llvm.mlir.constant(257 : i32)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.sched.barrier"(%[[BEHIND]])
// CHECK:         %[[X:.*]] = llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.load"
// CHECK-NOT:     llvm.select
// CHECK:         %[[BEFORE:.*]] = llvm.mlir.constant(1158 : i32)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.sched.barrier"(%[[BEFORE]])
// CHECK:         llvm.return
tt.func private @pinned(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) -> tensor<1024xf32, #b> {
  %zero = arith.constant dense<0.0> : tensor<1024xf32, #b>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %limit = tt.splat %n : i32 -> tensor<1024xi32, #b>
  %m = arith.cmpi slt, %i, %limit : tensor<1024xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %pointers = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %pointers, %m, %zero {ttg.buffer, ttg.pinned} : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %x : tensor<1024xf32, #b>
}

// Minus zero is not what the hardware gives.
// CHECK-LABEL: llvm.func internal @minus(
// CHECK-NOT:     sched.barrier
// CHECK:         %[[X:.*]] = llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.load"
// CHECK:         llvm.select %{{.*}}, %[[X]]
tt.func private @minus(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) -> tensor<1024xf32, #b> {
  %zero = arith.constant dense<-0.0> : tensor<1024xf32, #b>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %limit = tt.splat %n : i32 -> tensor<1024xi32, #b>
  %m = arith.cmpi slt, %i, %limit : tensor<1024xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %pointers = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %pointers, %m, %zero {ttg.buffer} : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %x : tensor<1024xf32, #b>
}
}
