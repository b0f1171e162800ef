// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// A slice joined with a slice has the parent's layout, from which none follows for the operands: both have the one
// that it came from.

#blocked = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#flat = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#pair = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: @join
// CHECK: tt.join %{{.*}}, %{{.*}} : tensor<1024xi32, #ttg.slice<{dim = 1, parent = #[[PARENT:.*]]}>> -> tensor<1024x2xi32, #[[PARENT]]>
// CHECK-NOT: convert_layout
tt.func @join(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: tensor<1024x!tt.ptr<i32>, #flat>) {
  %one = arith.constant dense<1> : tensor<1024xi32, #flat>
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #flat>
  %j = tt.join %i, %one : tensor<1024xi32, #flat> -> tensor<1024x2xi32, #pair>
  %s = ttg.convert_layout %i : tensor<1024xi32, #flat> -> tensor<1024xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
  %e = tt.expand_dims %s {axis = 1 : i32} : tensor<1024xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<1024x1xi32, #blocked>
  %offsets = tt.broadcast %e : tensor<1024x1xi32, #blocked> -> tensor<1024x2xi32, #blocked>
  %base = tt.splat %p : !tt.ptr<i32> -> tensor<1024x2x!tt.ptr<i32>, #blocked>
  %at = tt.addptr %base, %offsets : tensor<1024x2x!tt.ptr<i32>, #blocked>, tensor<1024x2xi32, #blocked>
  %k = ttg.convert_layout %j : tensor<1024x2xi32, #pair> -> tensor<1024x2xi32, #blocked>
  tt.store %at, %k : tensor<1024x2x!tt.ptr<i32>, #blocked>
  tt.store %q, %one : tensor<1024x!tt.ptr<i32>, #flat>
  tt.return
}
}
