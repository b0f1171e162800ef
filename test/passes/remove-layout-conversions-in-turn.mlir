// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: %ttopt %s --tritongpu-remove-layout-conversions --tritongpu-remove-layout-conversions | FileCheck %s

// A tensor that is reduced along many of its dimensions in turn, as sorts exchange pairs. A thread of one warp holds eight of 256
// elements: so it holds those whose numbers differ in the bits that are reduced most often, here the second, the third and the
// fifth; bits that are never reduced are in lanes. No access has that layout. (Once is not worth two conversions to a warp that is a CTA by
// itself: others fill what it waits for.)

#line = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#flat = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#pairs = #ttg.blocked<{sizePerThread = [1, 1, 1, 1, 1, 1, 1, 1], threadsPerWarp = [1, 1, 1, 2, 2, 2, 2, 2], warpsPerCTA = [1, 1, 1, 1, 1, 1, 1, 1], order = [7, 6, 5, 4, 3, 2, 1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-DAG: #[[HELD:.*]] = #ttg.linear<{register = {{\[\[}}0, 0, 0, 0, 0, 0, 1, 0], [0, 0, 0, 0, 0, 1, 0, 0], [0, 0, 0, 1, 0, 0, 0, 0]], lane = {{\[\[}}0, 0, 0, 0, 0, 0, 0, 1],
  // CHECK-LABEL: tt.func @exchanged
  // CHECK: tt.load {{.*}}#[[LINE:[a-z0-9]+]]>
  // CHECK: ttg.convert_layout
  // CHECK-NOT: ttg.convert_layout
  // CHECK: "tt.reduce"
  // CHECK: (tensor<2x2x2x2x2x2x2x2xi32, #[[HELD]]>)
  // CHECK-NOT: ttg.convert_layout
  // CHECK: ttg.convert_layout {{.*}}#[[HELD]]> ->
  // CHECK-NEXT: tt.reshape {{.*}} -> tensor<256xi32, #[[LINE]]>
  // CHECK-NEXT: tt.store
  tt.func @exchanged(%from: tensor<256x!tt.ptr<i32>, #line>, %to: tensor<256x!tt.ptr<i32>, #line>) {
    %x = tt.load %from : tensor<256x!tt.ptr<i32>, #line>
    %f = ttg.convert_layout %x : tensor<256xi32, #line> -> tensor<256xi32, #flat>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c4 = arith.constant 4 : i32
    %first = tt.reshape %f : tensor<256xi32, #flat> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %last = scf.for %i = %c0 to %c4 step %c1 iter_args(%h0 = %first) -> (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) : i32 {
    %r0 = "tt.reduce"(%h0) <{axis = 6 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>>
    %e0 = tt.expand_dims %r0 {axis = 6 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>> -> tensor<2x2x2x2x2x2x1x2xi32, #pairs>
    %b0 = tt.broadcast %e0 : tensor<2x2x2x2x2x2x1x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o0 = arith.xori %h0, %b0 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h1 = arith.maxsi %h0, %o0 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r1 = "tt.reduce"(%h1) <{axis = 5 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>>
    %e1 = tt.expand_dims %r1 {axis = 5 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>> -> tensor<2x2x2x2x2x1x2x2xi32, #pairs>
    %b1 = tt.broadcast %e1 : tensor<2x2x2x2x2x1x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o1 = arith.xori %h1, %b1 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h2 = arith.maxsi %h1, %o1 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r2 = "tt.reduce"(%h2) <{axis = 3 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>>
    %e2 = tt.expand_dims %r2 {axis = 3 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>> -> tensor<2x2x2x1x2x2x2x2xi32, #pairs>
    %b2 = tt.broadcast %e2 : tensor<2x2x2x1x2x2x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o2 = arith.xori %h2, %b2 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h3 = arith.maxsi %h2, %o2 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r3 = "tt.reduce"(%h3) <{axis = 6 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>>
    %e3 = tt.expand_dims %r3 {axis = 6 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>> -> tensor<2x2x2x2x2x2x1x2xi32, #pairs>
    %b3 = tt.broadcast %e3 : tensor<2x2x2x2x2x2x1x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o3 = arith.xori %h3, %b3 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h4 = arith.maxsi %h3, %o3 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r4 = "tt.reduce"(%h4) <{axis = 5 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>>
    %e4 = tt.expand_dims %r4 {axis = 5 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>> -> tensor<2x2x2x2x2x1x2x2xi32, #pairs>
    %b4 = tt.broadcast %e4 : tensor<2x2x2x2x2x1x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o4 = arith.xori %h4, %b4 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h5 = arith.maxsi %h4, %o4 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r5 = "tt.reduce"(%h5) <{axis = 7 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 7, parent = #pairs}>>
    %e5 = tt.expand_dims %r5 {axis = 7 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 7, parent = #pairs}>> -> tensor<2x2x2x2x2x2x2x1xi32, #pairs>
    %b5 = tt.broadcast %e5 : tensor<2x2x2x2x2x2x2x1xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o5 = arith.xori %h5, %b5 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h6 = arith.maxsi %h5, %o5 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r6 = "tt.reduce"(%h6) <{axis = 3 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>>
    %e6 = tt.expand_dims %r6 {axis = 3 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>> -> tensor<2x2x2x1x2x2x2x2xi32, #pairs>
    %b6 = tt.broadcast %e6 : tensor<2x2x2x1x2x2x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o6 = arith.xori %h6, %b6 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h7 = arith.maxsi %h6, %o6 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r7 = "tt.reduce"(%h7) <{axis = 6 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>>
    %e7 = tt.expand_dims %r7 {axis = 6 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>> -> tensor<2x2x2x2x2x2x1x2xi32, #pairs>
    %b7 = tt.broadcast %e7 : tensor<2x2x2x2x2x2x1x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o7 = arith.xori %h7, %b7 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h8 = arith.maxsi %h7, %o7 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r8 = "tt.reduce"(%h8) <{axis = 5 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>>
    %e8 = tt.expand_dims %r8 {axis = 5 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 5, parent = #pairs}>> -> tensor<2x2x2x2x2x1x2x2xi32, #pairs>
    %b8 = tt.broadcast %e8 : tensor<2x2x2x2x2x1x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o8 = arith.xori %h8, %b8 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h9 = arith.maxsi %h8, %o8 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r9 = "tt.reduce"(%h9) <{axis = 3 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>>
    %e9 = tt.expand_dims %r9 {axis = 3 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 3, parent = #pairs}>> -> tensor<2x2x2x1x2x2x2x2xi32, #pairs>
    %b9 = tt.broadcast %e9 : tensor<2x2x2x1x2x2x2x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o9 = arith.xori %h9, %b9 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h10 = arith.maxsi %h9, %o9 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %r10 = "tt.reduce"(%h10) <{axis = 6 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %m = arith.xori %a, %b : i32
      tt.reduce.return %m : i32
    }) : (tensor<2x2x2x2x2x2x2x2xi32, #pairs>) -> tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>>
    %e10 = tt.expand_dims %r10 {axis = 6 : i32} : tensor<2x2x2x2x2x2x2xi32, #ttg.slice<{dim = 6, parent = #pairs}>> -> tensor<2x2x2x2x2x2x1x2xi32, #pairs>
    %b10 = tt.broadcast %e10 : tensor<2x2x2x2x2x2x1x2xi32, #pairs> -> tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %o10 = arith.xori %h10, %b10 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    %h11 = arith.maxsi %h10, %o10 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    scf.yield %h11 : tensor<2x2x2x2x2x2x2x2xi32, #pairs>
    }
    %y = tt.reshape %last : tensor<2x2x2x2x2x2x2x2xi32, #pairs> -> tensor<256xi32, #flat>
    %z = ttg.convert_layout %y : tensor<256xi32, #flat> -> tensor<256xi32, #line>
    tt.store %to, %z : tensor<256x!tt.ptr<i32>, #line>
    tt.return
  }
}
