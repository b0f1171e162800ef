// RUN: %ttopt %s --tritongpu-fuse-reduce-conversions | FileCheck %s

// A reduction whose results are all converted to one layout gives them in that layout, where that takes fewer cycles.

#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [1, 4], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #tile}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-DAG: #[[LINE:.*]] = #ttg.blocked<{sizePerThread = [1],
  // CHECK-LABEL: @across_warps
  // CHECK: %[[SUM:.*]] = "tt.reduce"
  // CHECK: }) {ttg.result_layout = #[[LINE]]} : (tensor<128x256xf32, #{{.*}}>) -> tensor<128xf32, #[[LINE]]>
  // CHECK-NEXT: tt.return %[[SUM]]
  tt.func @across_warps(%x: tensor<128x256xf32, #tile>) -> tensor<128xf32, #line> {
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128x256xf32, #tile>) -> tensor<128xf32, #rows>
    %t = ttg.convert_layout %s : tensor<128xf32, #rows> -> tensor<128xf32, #line>
    tt.return %t : tensor<128xf32, #line>
  }

  // Both results, one of them unused.
  // CHECK-LABEL: @of_two
  // CHECK: %[[MOST:.*]]:2 = "tt.reduce"
  // CHECK: ttg.result_layout = #[[LINE]]
  // CHECK-SAME: -> (tensor<128xf32, #[[LINE]]>, tensor<128xi32, #[[LINE]]>)
  // CHECK-NEXT: tt.return %[[MOST]]#1
  tt.func @of_two(%x: tensor<128x256xf32, #tile>, %i: tensor<128x256xi32, #tile>) -> tensor<128xi32, #line> {
    %s:2 = "tt.reduce"(%x, %i) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %n: i32, %b: f32, %m: i32):
      %more = arith.cmpf ogt, %a, %b : f32
      %c = arith.select %more, %a, %b : f32
      %k = arith.select %more, %n, %m : i32
      tt.reduce.return %c, %k : f32, i32
    }) : (tensor<128x256xf32, #tile>, tensor<128x256xi32, #tile>) -> (tensor<128xf32, #rows>, tensor<128xi32, #rows>)
    %t = ttg.convert_layout %s#1 : tensor<128xi32, #rows> -> tensor<128xi32, #line>
    tt.return %t : tensor<128xi32, #line>
  }

  // What something else wants where it is stays there.
  // CHECK-LABEL: @used_twice
  // CHECK-NOT: ttg.result_layout
  // CHECK: ttg.convert_layout
  tt.func @used_twice(%x: tensor<128x256xf32, #tile>) -> (tensor<128xf32, #line>, tensor<128xf32, #rows>) {
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128x256xf32, #tile>) -> tensor<128xf32, #rows>
    %t = ttg.convert_layout %s : tensor<128xf32, #rows> -> tensor<128xf32, #line>
    tt.return %t, %s : tensor<128xf32, #line>, tensor<128xf32, #rows>
  }

  // Within a thread there is nothing to bring together.
  // CHECK-LABEL: @in_a_thread
  // CHECK-NOT: ttg.result_layout
  // CHECK: ttg.convert_layout
  tt.func @in_a_thread(%x: tensor<128x4xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<128xf32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>> {
    %s = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tt.reduce.return %c : f32
    }) : (tensor<128x4xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>}>>
    %t = ttg.convert_layout %s : tensor<128xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>}>> -> tensor<128xf32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
    tt.return %t : tensor<128xf32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
  }
}
