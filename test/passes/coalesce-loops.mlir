// Accesses count as often as they run: loads of a loop take whole 16 bytes a thread, although the wide sums that are stored
// behind it then take two accesses with gaps. Without a loop the gaps cost more.
// RUN: %ttopt %s --tritongpu-coalesce -split-input-file | FileCheck %s
#any = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
// CHECK: #[[EIGHT:.*]] = #ttg.blocked<{sizePerThread = [8]
// CHECK-LABEL: @looped
// CHECK-COUNT-3: tt.load %{{.*}} : tensor<8192x!tt.ptr<bf16>, #[[EIGHT]]>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func @looped(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %shift: i32 {tt.divisibility = 16 : i32}, %rows: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<8192xf32, #any>
  %at = tt.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32, #any>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<8192x!tt.ptr<bf16>, #any>
  %xp = tt.addptr %xs, %at : tensor<8192x!tt.ptr<bf16>, #any>, tensor<8192xi32, #any>
  %shifts = tt.splat %shift : i32 -> tensor<8192xi32, #any>
  %step = arith.constant dense<8192> : tensor<8192xi32, #any>
  %sum:2 = scf.for %i = %c0 to %rows step %c1 iter_args(%s = %zero, %p = %xp) -> (tensor<8192xf32, #any>, tensor<8192x!tt.ptr<bf16>, #any>) : i32 {
    %v0 = tt.load %p : tensor<8192x!tt.ptr<bf16>, #any>
    %p1 = tt.addptr %p, %shifts : tensor<8192x!tt.ptr<bf16>, #any>, tensor<8192xi32, #any>
    %v1 = tt.load %p1 : tensor<8192x!tt.ptr<bf16>, #any>
    %p2 = tt.addptr %p1, %shifts : tensor<8192x!tt.ptr<bf16>, #any>, tensor<8192xi32, #any>
    %v2 = tt.load %p2 : tensor<8192x!tt.ptr<bf16>, #any>
    %v01 = arith.mulf %v0, %v1 : tensor<8192xbf16, #any>
    %v = arith.mulf %v01, %v2 : tensor<8192xbf16, #any>
    %w = arith.extf %v : tensor<8192xbf16, #any> to tensor<8192xf32, #any>
    %n = arith.addf %s, %w : tensor<8192xf32, #any>
    %q = tt.addptr %p, %step : tensor<8192x!tt.ptr<bf16>, #any>, tensor<8192xi32, #any>
    scf.yield %n, %q : tensor<8192xf32, #any>, tensor<8192x!tt.ptr<bf16>, #any>
  }
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #any>
  %yp = tt.addptr %ys, %at : tensor<8192x!tt.ptr<f32>, #any>, tensor<8192xi32, #any>
  tt.store %yp, %sum#0 : tensor<8192x!tt.ptr<f32>, #any>
  tt.return
}
}
// -----
#any = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
// CHECK: #[[FOUR:.*]] = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @once
// CHECK: tt.load %{{.*}} : tensor<8192x!tt.ptr<bf16>, #[[FOUR]]>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func @once(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %at = tt.make_range {start = 0 : i32, end = 8192 : i32} : tensor<8192xi32, #any>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<8192x!tt.ptr<bf16>, #any>
  %xp = tt.addptr %xs, %at : tensor<8192x!tt.ptr<bf16>, #any>, tensor<8192xi32, #any>
  %v = tt.load %xp : tensor<8192x!tt.ptr<bf16>, #any>
  %w = arith.extf %v : tensor<8192xbf16, #any> to tensor<8192xf32, #any>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<8192x!tt.ptr<f32>, #any>
  %yp = tt.addptr %ys, %at : tensor<8192x!tt.ptr<f32>, #any>, tensor<8192xi32, #any>
  tt.store %yp, %w : tensor<8192x!tt.ptr<f32>, #any>
  tt.return
}
}
