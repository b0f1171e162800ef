// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

// Threads hold several elements along the dimension of a scan where that costs less: here half of a row of what a dot gave, so that
// each warp has the rows that it had and exchanges them among its own lanes.
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [2, 2], order = [1, 0]}>
#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[1, 0], [2, 0]]}, instrShape = [16, 16, 16]}>
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [16, 2], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  // CHECK-LABEL: @scan_of_products
  // CHECK: ttg.convert_layout %arg0 : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #[[ROWS]]>
  // CHECK: }) : (tensor<64x64xf32, #[[ROWS]]>) -> tensor<64x64xf32, #[[ROWS]]>
  tt.func @scan_of_products(%x: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %0 = ttg.convert_layout %x : tensor<64x64xf32, #mma> -> tensor<64x64xf32, #blocked>
    %1 = "tt.scan"(%0) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.scan.return %s : f32
    }) : (tensor<64x64xf32, #blocked>) -> tensor<64x64xf32, #blocked>
    %2 = ttg.convert_layout %1 : tensor<64x64xf32, #blocked> -> tensor<64x64xf32, #mma>
    tt.return %2 : tensor<64x64xf32, #mma>
  }
}

// -----

// So where several operands are scanned together: what is loaded and computed moves with all of them.
#plain = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [8, 1], order = [1, 0]}>
#blocked = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 4], order = [0, 1]}>
// CHECK: #[[HELD:.*]] = #ttg.blocked<{sizePerThread = [16, 1], threadsPerWarp = [32, 1], warpsPerCTA = [2, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: @largest_and_where
  // CHECK: }) : (tensor<1024x4xf32, #[[HELD]]>, tensor<1024x4xi32, #[[HELD]]>, tensor<1024x4xi32, #[[HELD]]>) -> (tensor<1024x4xf32, #[[HELD]]>, tensor<1024x4xi32, #[[HELD]]>, tensor<1024x4xi32, #[[HELD]]>)
  tt.func @largest_and_where(%f16: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %i8: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %f32: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %i16: !tt.ptr<i16> {tt.divisibility = 16 : i32}) {
    %range = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #ttg.slice<{dim = 1, parent = #blocked}>>
    %rows = tt.expand_dims %range {axis = 1 : i32} : tensor<1024xi32, #ttg.slice<{dim = 1, parent = #blocked}>> -> tensor<1024x1xi32, #blocked>
    %at = tt.broadcast %rows : tensor<1024x1xi32, #blocked> -> tensor<1024x4xi32, #blocked>
    %sequences = tt.make_range {end = 4 : i32, start = 0 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #blocked}>>
    %columns = tt.expand_dims %sequences {axis = 0 : i32} : tensor<4xi32, #ttg.slice<{dim = 0, parent = #blocked}>> -> tensor<1x4xi32, #blocked>
    %size = arith.constant dense<1024> : tensor<1x4xi32, #blocked>
    %first = arith.muli %columns, %size : tensor<1x4xi32, #blocked>
    %begin = tt.broadcast %first : tensor<1x4xi32, #blocked> -> tensor<1024x4xi32, #blocked>
    %offset = arith.addi %begin, %at : tensor<1024x4xi32, #blocked>
    %ps = tt.splat %f16 : !tt.ptr<f16> -> tensor<1024x4x!tt.ptr<f16>, #blocked>
    %p = tt.addptr %ps, %offset : tensor<1024x4x!tt.ptr<f16>, #blocked>, tensor<1024x4xi32, #blocked>
    %qs = tt.splat %i8 : !tt.ptr<i8> -> tensor<1024x4x!tt.ptr<i8>, #blocked>
    %q = tt.addptr %qs, %offset : tensor<1024x4x!tt.ptr<i8>, #blocked>, tensor<1024x4xi32, #blocked>
    %rs = tt.splat %f32 : !tt.ptr<f32> -> tensor<1024x4x!tt.ptr<f32>, #blocked>
    %r = tt.addptr %rs, %offset : tensor<1024x4x!tt.ptr<f32>, #blocked>, tensor<1024x4xi32, #blocked>
    %ts = tt.splat %i16 : !tt.ptr<i16> -> tensor<1024x4x!tt.ptr<i16>, #blocked>
    %t = tt.addptr %ts, %offset : tensor<1024x4x!tt.ptr<i16>, #blocked>, tensor<1024x4xi32, #blocked>
    %half = tt.load %p : tensor<1024x4x!tt.ptr<f16>, #blocked>
    %x = arith.extf %half : tensor<1024x4xf16, #blocked> to tensor<1024x4xf32, #blocked>
    %byte = tt.load %q : tensor<1024x4x!tt.ptr<i8>, #blocked>
    %begins = arith.extui %byte : tensor<1024x4xi8, #blocked> to tensor<1024x4xi32, #blocked>
    %x_plain = ttg.convert_layout %x : tensor<1024x4xf32, #blocked> -> tensor<1024x4xf32, #plain>
    %at_plain = ttg.convert_layout %at : tensor<1024x4xi32, #blocked> -> tensor<1024x4xi32, #plain>
    %begins_plain = ttg.convert_layout %begins : tensor<1024x4xi32, #blocked> -> tensor<1024x4xi32, #plain>
    %1:3 = "tt.scan"(%x_plain, %at_plain, %begins_plain) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%a: f32, %i: i32, %f: i32, %b: f32, %j: i32, %g: i32):
      %zero = arith.constant 0 : i32
      %new = arith.cmpi ne, %g, %zero : i32
      %larger = arith.cmpf ogt, %b, %a : f32
      %more = arith.ori %new, %larger : i1
      %s = arith.select %more, %b, %a : f32
      %k = arith.select %more, %j, %i : i32
      %h = arith.ori %f, %g : i32
      tt.scan.return %s, %k, %h : f32, i32, i32
    }) : (tensor<1024x4xf32, #plain>, tensor<1024x4xi32, #plain>, tensor<1024x4xi32, #plain>) -> (tensor<1024x4xf32, #plain>, tensor<1024x4xi32, #plain>, tensor<1024x4xi32, #plain>)
    %largest = ttg.convert_layout %1#0 : tensor<1024x4xf32, #plain> -> tensor<1024x4xf32, #blocked>
    %where = ttg.convert_layout %1#1 : tensor<1024x4xi32, #plain> -> tensor<1024x4xi32, #blocked>
    tt.store %r, %largest : tensor<1024x4x!tt.ptr<f32>, #blocked>
    %narrow = arith.trunci %where : tensor<1024x4xi32, #blocked> to tensor<1024x4xi16, #blocked>
    tt.store %t, %narrow : tensor<1024x4x!tt.ptr<i16>, #blocked>
    tt.return
  }
}
