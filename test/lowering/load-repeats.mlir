// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

#b4 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The row of 64 elements that a thread's four are in is loaded once, and the elements of that row together.
// CHECK-LABEL: llvm.func @gather_rows(
// CHECK-COUNT-1: llvm.load {{.*}} : !llvm.ptr<1> -> i32
// CHECK-NOT:     -> i32{{$}}
// CHECK:         llvm.load {{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     llvm.load
// CHECK:         llvm.return
tt.func public @gather_rows(%index: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %c64 = arith.constant dense<64> : tensor<512xi32, #b4>
  %row = arith.divsi %r, %c64 : tensor<512xi32, #b4>
  %column = arith.remsi %r, %c64 : tensor<512xi32, #b4>
  %s = tt.splat %index : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #b4>
  %p = tt.addptr %s, %row : tensor<512x!tt.ptr<i32>, #b4>, tensor<512xi32, #b4>
  %i = tt.load %p : tensor<512x!tt.ptr<i32>, #b4>
  %start = arith.muli %i, %c64 : tensor<512xi32, #b4>
  %offset = arith.addi %start, %column : tensor<512xi32, #b4>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b4>
  %a = tt.addptr %f, %offset : tensor<512x!tt.ptr<f32>, #b4>, tensor<512xi32, #b4>
  %x = tt.load %a : tensor<512x!tt.ptr<f32>, #b4>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b4>
  %q = tt.addptr %t, %r : tensor<512x!tt.ptr<f32>, #b4>, tensor<512xi32, #b4>
  tt.store %q, %x : tensor<512x!tt.ptr<f32>, #b4>
  tt.return
}

// Where each element may be replaced by another number, each is loaded by itself. Atomics and stores leave none out.
// CHECK-LABEL: llvm.func @different_others(
// CHECK-COUNT-4: ld.global.b32
// CHECK-COUNT-4: red
// CHECK:         llvm.return
tt.func public @different_others(%index: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %c64 = arith.constant dense<64> : tensor<512xi32, #b4>
  %row = arith.divsi %r, %c64 : tensor<512xi32, #b4>
  %s = tt.splat %index : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #b4>
  %p = tt.addptr %s, %row : tensor<512x!tt.ptr<i32>, #b4>, tensor<512xi32, #b4>
  %ns = tt.splat %n : i32 -> tensor<512xi32, #b4>
  %m = arith.cmpi slt, %row, %ns : tensor<512xi32, #b4>
  %i = tt.load %p, %m, %r : tensor<512x!tt.ptr<i32>, #b4>
  %old = tt.atomic_rmw add, acq_rel, gpu, %p, %i, %m : (tensor<512x!tt.ptr<i32>, #b4>, tensor<512xi32, #b4>, tensor<512xi1, #b4>) -> tensor<512xi32, #b4>
  tt.return
}
}
