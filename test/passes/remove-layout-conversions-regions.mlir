// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

// Regions that compute with each other without conversions move to the layout of a neighbour.

#plain = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [2, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>
#wide = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {

// All is computed as one of the two was loaded, with one conversion of the other, and stored as it is.
// CHECK-LABEL: @one_conversion
// CHECK: %[[X:.*]] = tt.load {{.*}} : tensor<64x32x!tt.ptr<bf16>, #[[ROWS:blocked[0-9]*]]>
// CHECK: %[[Y:.*]] = tt.load
// CHECK: %[[MOVED:.*]] = ttg.convert_layout %[[Y]] : {{.*}} -> tensor<64x32xbf16, #[[ROWS]]>
// CHECK-NOT: convert_layout
// CHECK: arith.addf %[[X]], %[[MOVED]]
// CHECK-NOT: convert_layout
// CHECK: arith.subf %[[MOVED]]
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @one_conversion(%a: !tt.ptr<bf16> {tt.divisibility = 4 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 4 : i32},
    %c: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %d: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %pr = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %pc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %prows = tt.expand_dims %pr {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<64x1xi32, #plain>
  %pcols = tt.expand_dims %pc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %ps = arith.constant dense<32> : tensor<64x1xi32, #plain>
  %pfar = arith.muli %prows, %ps : tensor<64x1xi32, #plain>
  %p0 = tt.broadcast %pfar : tensor<64x1xi32, #plain> -> tensor<64x32xi32, #plain>
  %p1 = tt.broadcast %pcols : tensor<1x32xi32, #plain> -> tensor<64x32xi32, #plain>
  %pat = arith.addi %p0, %p1 : tensor<64x32xi32, #plain>
  %pbase = tt.splat %a : !tt.ptr<bf16> -> tensor<64x32x!tt.ptr<bf16>, #plain>
  %p = tt.addptr %pbase, %pat : tensor<64x32x!tt.ptr<bf16>, #plain>, tensor<64x32xi32, #plain>
  %pp = ttg.convert_layout %p : tensor<64x32x!tt.ptr<bf16>, #plain> -> tensor<64x32x!tt.ptr<bf16>, #rows>
  %x = tt.load %pp : tensor<64x32x!tt.ptr<bf16>, #rows>
  %xx = ttg.convert_layout %x : tensor<64x32xbf16, #rows> -> tensor<64x32xbf16, #plain>
  %qr = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %qc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %qrows = tt.expand_dims %qr {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<64x1xi32, #plain>
  %qcols = tt.expand_dims %qc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %qs = arith.constant dense<64> : tensor<1x32xi32, #plain>
  %qfar = arith.muli %qcols, %qs : tensor<1x32xi32, #plain>
  %q0 = tt.broadcast %qrows : tensor<64x1xi32, #plain> -> tensor<64x32xi32, #plain>
  %q1 = tt.broadcast %qfar : tensor<1x32xi32, #plain> -> tensor<64x32xi32, #plain>
  %qat = arith.addi %q0, %q1 : tensor<64x32xi32, #plain>
  %qbase = tt.splat %b : !tt.ptr<bf16> -> tensor<64x32x!tt.ptr<bf16>, #plain>
  %q = tt.addptr %qbase, %qat : tensor<64x32x!tt.ptr<bf16>, #plain>, tensor<64x32xi32, #plain>
  %qq = ttg.convert_layout %q : tensor<64x32x!tt.ptr<bf16>, #plain> -> tensor<64x32x!tt.ptr<bf16>, #columns>
  %y = tt.load %qq : tensor<64x32x!tt.ptr<bf16>, #columns>
  %yy = ttg.convert_layout %y : tensor<64x32xbf16, #columns> -> tensor<64x32xbf16, #plain>
  %sum = arith.addf %xx, %yy : tensor<64x32xbf16, #plain>
  %more = arith.addf %xx, %sum : tensor<64x32xbf16, #plain>
  %less = arith.subf %yy, %sum : tensor<64x32xbf16, #plain>
  %or = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %oc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %orows = tt.expand_dims %or {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<64x1xi32, #plain>
  %ocols = tt.expand_dims %oc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %os = arith.constant dense<32> : tensor<64x1xi32, #plain>
  %ofar = arith.muli %orows, %os : tensor<64x1xi32, #plain>
  %o0 = tt.broadcast %ofar : tensor<64x1xi32, #plain> -> tensor<64x32xi32, #plain>
  %o1 = tt.broadcast %ocols : tensor<1x32xi32, #plain> -> tensor<64x32xi32, #plain>
  %oat = arith.addi %o0, %o1 : tensor<64x32xi32, #plain>
  %obase = tt.splat %c : !tt.ptr<bf16> -> tensor<64x32x!tt.ptr<bf16>, #plain>
  %o = tt.addptr %obase, %oat : tensor<64x32x!tt.ptr<bf16>, #plain>, tensor<64x32xi32, #plain>
  %oo = ttg.convert_layout %o : tensor<64x32x!tt.ptr<bf16>, #plain> -> tensor<64x32x!tt.ptr<bf16>, #wide>
  %mm = ttg.convert_layout %more : tensor<64x32xbf16, #plain> -> tensor<64x32xbf16, #wide>
  tt.store %oo, %mm : tensor<64x32x!tt.ptr<bf16>, #wide>
  %ur = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %uc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %urows = tt.expand_dims %ur {axis = 1 : i32} : tensor<64xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<64x1xi32, #plain>
  %ucols = tt.expand_dims %uc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %us = arith.constant dense<32> : tensor<64x1xi32, #plain>
  %ufar = arith.muli %urows, %us : tensor<64x1xi32, #plain>
  %u0 = tt.broadcast %ufar : tensor<64x1xi32, #plain> -> tensor<64x32xi32, #plain>
  %u1 = tt.broadcast %ucols : tensor<1x32xi32, #plain> -> tensor<64x32xi32, #plain>
  %uat = arith.addi %u0, %u1 : tensor<64x32xi32, #plain>
  %ubase = tt.splat %d : !tt.ptr<bf16> -> tensor<64x32x!tt.ptr<bf16>, #plain>
  %u = tt.addptr %ubase, %uat : tensor<64x32x!tt.ptr<bf16>, #plain>, tensor<64x32xi32, #plain>
  %uu = ttg.convert_layout %u : tensor<64x32x!tt.ptr<bf16>, #plain> -> tensor<64x32x!tt.ptr<bf16>, #wide>
  %ll = ttg.convert_layout %less : tensor<64x32xbf16, #plain> -> tensor<64x32xbf16, #wide>
  tt.store %uu, %ll : tensor<64x32x!tt.ptr<bf16>, #wide>
  tt.return
}
}

// -----

#plain = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 32], warpsPerCTA = [2, 1], order = [1, 0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [4, 16], warpsPerCTA = [1, 2], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// What is loaded two elements at a time may as well be loaded one by one, as it is stored. An exponential is not computed
// twice, but elsewhere.
// CHECK-LABEL: @load_moves
// CHECK: tt.load %{{.*}} : tensor<32x32x!tt.ptr<bf16>, #[[COLUMNS:blocked[0-9]*]]>
// CHECK-NOT: convert_layout
// CHECK: tt.store %{{.*}} : tensor<32x32x!tt.ptr<bf16>, #[[COLUMNS]]>
tt.func @load_moves(%a: !tt.ptr<bf16> {tt.divisibility = 4 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %pr = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %pc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %prows = tt.expand_dims %pr {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<32x1xi32, #plain>
  %pcols = tt.expand_dims %pc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %ps = arith.constant dense<32> : tensor<32x1xi32, #plain>
  %pfar = arith.muli %prows, %ps : tensor<32x1xi32, #plain>
  %p0 = tt.broadcast %pfar : tensor<32x1xi32, #plain> -> tensor<32x32xi32, #plain>
  %p1 = tt.broadcast %pcols : tensor<1x32xi32, #plain> -> tensor<32x32xi32, #plain>
  %pat = arith.addi %p0, %p1 : tensor<32x32xi32, #plain>
  %pbase = tt.splat %a : !tt.ptr<bf16> -> tensor<32x32x!tt.ptr<bf16>, #plain>
  %p = tt.addptr %pbase, %pat : tensor<32x32x!tt.ptr<bf16>, #plain>, tensor<32x32xi32, #plain>
  %pp = ttg.convert_layout %p : tensor<32x32x!tt.ptr<bf16>, #plain> -> tensor<32x32x!tt.ptr<bf16>, #rows>
  %x = tt.load %pp : tensor<32x32x!tt.ptr<bf16>, #rows>
  %xx = ttg.convert_layout %x : tensor<32x32xbf16, #rows> -> tensor<32x32xbf16, #plain>
  %y = math.exp %xx : tensor<32x32xbf16, #plain>
  %or = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #plain}>>
  %oc = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>>
  %orows = tt.expand_dims %or {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #plain}>> -> tensor<32x1xi32, #plain>
  %ocols = tt.expand_dims %oc {axis = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 0, parent = #plain}>> -> tensor<1x32xi32, #plain>
  %os = arith.constant dense<32> : tensor<1x32xi32, #plain>
  %ofar = arith.muli %ocols, %os : tensor<1x32xi32, #plain>
  %o0 = tt.broadcast %orows : tensor<32x1xi32, #plain> -> tensor<32x32xi32, #plain>
  %o1 = tt.broadcast %ofar : tensor<1x32xi32, #plain> -> tensor<32x32xi32, #plain>
  %oat = arith.addi %o0, %o1 : tensor<32x32xi32, #plain>
  %obase = tt.splat %b : !tt.ptr<bf16> -> tensor<32x32x!tt.ptr<bf16>, #plain>
  %o = tt.addptr %obase, %oat : tensor<32x32x!tt.ptr<bf16>, #plain>, tensor<32x32xi32, #plain>
  %oo = ttg.convert_layout %o : tensor<32x32x!tt.ptr<bf16>, #plain> -> tensor<32x32x!tt.ptr<bf16>, #columns>
  %yy = ttg.convert_layout %y : tensor<32x32xbf16, #plain> -> tensor<32x32xbf16, #columns>
  tt.store %oo, %yy : tensor<32x32x!tt.ptr<bf16>, #columns>
  tt.return
}
}
