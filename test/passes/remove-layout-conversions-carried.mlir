// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: %ttopt %s --tritongpu-remove-layout-conversions -o %t.once
// RUN: %ttopt %t.once --tritongpu-remove-layout-conversions -o %t.twice
// RUN: diff %t.once %t.twice

// Layouts of what loops carry, by cost.

#a = #ttg.blocked<{sizePerThread = [1, 1, 1, 1], threadsPerWarp = [1, 1, 8, 4], warpsPerCTA = [1, 4, 1, 1], order = [3, 2, 1, 0]}>
#b = #ttg.blocked<{sizePerThread = [2, 2, 1, 1], threadsPerWarp = [1, 4, 8, 1], warpsPerCTA = [1, 1, 1, 4], order = [0, 1, 2, 3]}>
#c = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 4, 8], warpsPerCTA = [2, 2, 1], order = [2, 1, 0]}>
#d = #ttg.blocked<{sizePerThread = [1, 1, 1], threadsPerWarp = [1, 8, 4], warpsPerCTA = [1, 1, 4], order = [1, 2, 0]}>
#e = #ttg.blocked<{sizePerThread = [1, 1, 1, 1], threadsPerWarp = [1, 1, 4, 8], warpsPerCTA = [1, 2, 2, 1], order = [3, 2, 1, 0]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The loop carries what is loaded to its one use. In the layout that is wanted there the load costs little more than in
// its own, where nobody needs it then.

tt.func private @use(tensor<2x8x8x4xi32, #b>)

// CHECK-LABEL: @loaded_for_the_next
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @loaded_for_the_next(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32},
                             %n: i32, %m: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %first = tt.splat %n : i32 -> tensor<2x8x8x4xi32, #a>
  %r = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>}>>
  %r2 = tt.expand_dims %r {axis = 0 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>}>> -> tensor<1x4xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>>
  %r3 = tt.expand_dims %r2 {axis = 1 : i32} : tensor<1x4xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>> -> tensor<1x1x4xi32, #ttg.slice<{dim = 2, parent = #a}>>
  %r4 = tt.expand_dims %r3 {axis = 2 : i32} : tensor<1x1x4xi32, #ttg.slice<{dim = 2, parent = #a}>> -> tensor<1x1x1x4xi32, #a>
  %base = tt.splat %p : !tt.ptr<i32> -> tensor<1x1x1x4x!tt.ptr<i32>, #a>
  %any = tt.splat %m : i32 -> tensor<1x1x1x4xi32, #a>
  %at = arith.xori %r4, %any : tensor<1x1x1x4xi32, #a>
  %limit = tt.splat %n : i32 -> tensor<1x1x1x4xi32, #a>
  %is_in = arith.cmpi slt, %r4, %limit : tensor<1x1x1x4xi32, #a>
  %mask = tt.broadcast %is_in : tensor<1x1x1x4xi1, #a> -> tensor<2x8x8x4xi1, #a>
  %near = tt.addptr %base, %at : tensor<1x1x1x4x!tt.ptr<i32>, #a>, tensor<1x1x1x4xi32, #a>
  %from = tt.broadcast %near : tensor<1x1x1x4x!tt.ptr<i32>, #a> -> tensor<2x8x8x4x!tt.ptr<i32>, #a>
  %last = scf.for %i = %c0 to %n step %c1 iter_args(%x = %first) -> (tensor<2x8x8x4xi32, #a>)  : i32 {
    %y = ttg.convert_layout %x : tensor<2x8x8x4xi32, #a> -> tensor<2x8x8x4xi32, #b>
    tt.call @use(%y) : (tensor<2x8x8x4xi32, #b>) -> ()
    %loaded = tt.load %from, %mask : tensor<2x8x8x4x!tt.ptr<i32>, #a>
    scf.yield %loaded : tensor<2x8x8x4xi32, #a>
  }
  tt.return
}

// Nothing says what layout the sum has but the store behind the loop, and a conversion inside would cost more than the
// one outside: the sum has the layout of the reduction, and is converted once.

// CHECK-LABEL: @stored_behind_the_loop
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.for
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.yield {{.*}} : tensor<1x8x8xi32, #ttg.slice<{dim = 1, parent = #{{.*}}}>>
// CHECK: ttg.convert_layout
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @stored_behind_the_loop(%to: tensor<1x8x8x!tt.ptr<i32>, #d>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0> : tensor<1x8x8xi32, #c>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>}>>
  %r2 = tt.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #ttg.slice<{dim = 0, parent = #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>}>> -> tensor<1x8xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>>
  %r3 = tt.expand_dims %r2 {axis = 1 : i32} : tensor<1x8xi32, #ttg.slice<{dim = 1, parent = #ttg.slice<{dim = 2, parent = #a}>}>> -> tensor<1x1x8xi32, #ttg.slice<{dim = 2, parent = #a}>>
  %r4 = tt.expand_dims %r3 {axis = 2 : i32} : tensor<1x1x8xi32, #ttg.slice<{dim = 2, parent = #a}>> -> tensor<1x1x1x8xi32, #a>
  %here = ttg.convert_layout %r4 : tensor<1x1x1x8xi32, #a> -> tensor<1x1x1x8xi32, #e>
  %x = tt.broadcast %here : tensor<1x1x1x8xi32, #e> -> tensor<1x4x8x8xi32, #e>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<1x8x8xi32, #c>)  : i32 {
    %part = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%p: i32, %q: i32):
      %o = arith.addi %p, %q : i32
      tt.reduce.return %o : i32
    }) : (tensor<1x4x8x8xi32, #e>) -> tensor<1x8x8xi32, #ttg.slice<{dim = 1, parent = #e}>>
    %same = ttg.convert_layout %part : tensor<1x8x8xi32, #ttg.slice<{dim = 1, parent = #e}>> -> tensor<1x8x8xi32, #c>
    %t = arith.addi %s, %same : tensor<1x8x8xi32, #c>
    scf.yield %t : tensor<1x8x8xi32, #c>
  }
  %there = ttg.convert_layout %sum : tensor<1x8x8xi32, #c> -> tensor<1x8x8xi32, #d>
  tt.store %to, %there : tensor<1x8x8x!tt.ptr<i32>, #d>
  tt.return
}
}
