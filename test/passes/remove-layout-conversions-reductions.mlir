// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: %ttopt %s --tritongpu-remove-layout-conversions --tritongpu-remove-layout-conversions | FileCheck %s

// A reduction may have another layout than what it reduces.

#wide = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Four warps would each reduce what they have of 128 rows, and exchange that; a row for each thread takes one conversion.
  // CHECK-LABEL: tt.func @rows_of_threads
  // CHECK: %[[LOADED:.*]] = tt.load {{.*}}#[[WIDE:[a-z0-9]+]]>
  // CHECK: %[[CONVERTED:.*]] = ttg.convert_layout %[[LOADED]] : tensor<128x128xf32, #[[WIDE]]> -> tensor<128x128xf32, #[[OTHER:[a-z0-9]+]]>
  // CHECK: "tt.reduce"(%[[CONVERTED]])
  // CHECK: -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #[[OTHER]]}>>
  tt.func @rows_of_threads(%from: tensor<128x128x!tt.ptr<f32>, #wide>, %to: tensor<128x!tt.ptr<f32>, #rows>) {
    %x = tt.load %from : tensor<128x128x!tt.ptr<f32>, #wide>
    %most = "tt.reduce"(%x) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %m = arith.maxnumf %a, %b : f32
      tt.reduce.return %m : f32
    }) : (tensor<128x128xf32, #wide>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
    %e = math.exp %most : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
    %s = ttg.convert_layout %e : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>> -> tensor<128xf32, #rows>
    tt.store %to, %s : tensor<128x!tt.ptr<f32>, #rows>
    tt.return
  }

  // What a loop adds up is exchanged between threads once, behind it.
  // CHECK-LABEL: tt.func @added_up
  // CHECK: scf.for
  // CHECK-NOT: ttg.convert_layout
  // CHECK: scf.yield
  tt.func @added_up(%from: tensor<128x128x!tt.ptr<f32>, #wide>, %to: tensor<128x!tt.ptr<f32>, #rows>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>) : i32 {
      %x = tt.load %from : tensor<128x128x!tt.ptr<f32>, #wide>
      %row = "tt.reduce"(%x) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %m = arith.addf %a, %b : f32
        tt.reduce.return %m : f32
      }) : (tensor<128x128xf32, #wide>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
      %next = arith.addf %acc, %row : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
      scf.yield %next : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>>
    }
    %s = ttg.convert_layout %sum : tensor<128xf32, #ttg.slice<{dim = 1, parent = #wide}>> -> tensor<128xf32, #rows>
    tt.store %to, %s : tensor<128x!tt.ptr<f32>, #rows>
    tt.return
  }
}
