// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// The result of a loop is wanted in another layout, so the loop carries it once more; it begins with what the loop
// around it carries, which takes that result in turn.

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @use(tensor<512xf32, #b>)

// CHECK-LABEL: @nested
// CHECK: %[[X:.*]] = ttg.convert_layout
// CHECK: scf.while ({{.*}} = %[[X]]
// CHECK-NOT: convert_layout
// CHECK: %[[R:.*]]:{{[0-9]+}} = scf.for
// CHECK-NOT: convert_layout
// CHECK: tt.call @use(%[[R]]#
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @nested(%x: tensor<512xf32, #a>, %n: i32, %c: i1) -> tensor<512xf32, #a> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<512xf32, #a>
  %w = scf.while (%p = %x) : (tensor<512xf32, #a>) -> tensor<512xf32, #a> {
    scf.condition(%c) %p : tensor<512xf32, #a>
  } do {
  ^bb0(%q: tensor<512xf32, #a>):
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %q) -> (tensor<512xf32, #a>)  : i32 {
      scf.yield %one : tensor<512xf32, #a>
    }
    %s = ttg.convert_layout %r : tensor<512xf32, #a> -> tensor<512xf32, #b>
    tt.call @use(%s) : (tensor<512xf32, #b>) -> ()
    scf.yield %r : tensor<512xf32, #a>
  }
  tt.return %w : tensor<512xf32, #a>
}
// The inner loop is made anew for what it carries once more before its operands are looked at: those are converted, too.
// CHECK-LABEL: @grown
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (tensor<512xf32, #blocked1>, tensor<512xf32, #blocked>)
// CHECK: tt.call @use
// CHECK: scf.for
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @grown(%x: tensor<512xf32, #a>, %p: tensor<512x!tt.ptr<f32>, #b>, %n: i32) -> tensor<512xf32, #a> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant dense<1.0> : tensor<512xf32, #a>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%o = %x) -> (tensor<512xf32, #a>)  : i32 {
    %s = ttg.convert_layout %o : tensor<512xf32, #a> -> tensor<512xf32, #b>
    tt.call @use(%s) : (tensor<512xf32, #b>) -> ()
    %t:2 = scf.for %j = %c0 to %n step %c1 iter_args(%u = %s, %v = %one) -> (tensor<512xf32, #b>, tensor<512xf32, #a>)  : i32 {
      %l = tt.load %p {isVolatile = true} : tensor<512x!tt.ptr<f32>, #b>
      %m = arith.addf %u, %l : tensor<512xf32, #b>
      scf.yield %m, %one : tensor<512xf32, #b>, tensor<512xf32, #a>
    }
    tt.call @use(%t#0) : (tensor<512xf32, #b>) -> ()
    scf.yield %t#1 : tensor<512xf32, #a>
  }
  tt.return %r : tensor<512xf32, #a>
}
}
