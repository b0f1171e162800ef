// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce --tritongpu-remove-layout-conversions | FileCheck %s
// A second time changes nothing.
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce --tritongpu-remove-layout-conversions > %t.once
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce --tritongpu-remove-layout-conversions --tritongpu-remove-layout-conversions > %t.twice
// RUN: cmp %t.once %t.twice

// Everything takes the layout of the accesses, from the ranges on.
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @copy
// CHECK: tt.make_range {{.*}} : tensor<1024xi32, #blocked>
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @copy(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %e = tt.addptr %d, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %e, %x : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Pointers and sums go around the loop in the layout of the load.
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @loop
// CHECK: scf.for {{.*}} -> (tensor<1024x!tt.ptr<f32>, #blocked>, tensor<1024xf32, #blocked>)
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @loop(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %step = arith.constant dense<1024> : tensor<1024xi32>
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %q, %acc = %zero) -> (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>) : i32 {
    %x = tt.load %at : tensor<1024x!tt.ptr<f32>>
    %sum = arith.addf %acc, %x : tensor<1024xf32>
    %next = tt.addptr %at, %step : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
    scf.yield %next, %sum : tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>
  }
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %e = tt.addptr %d, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %e, %l#1 : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// A row that is loaded for all others is loaded where it is needed.
// CHECK-LABEL: @row
// CHECK: tt.load {{.*}} : tensor<64x!tt.ptr<f32>, #ttg.slice<{dim = 0, parent = #blocked}>>
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @row(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %q : tensor<64x!tt.ptr<f32>>
  %0 = tt.expand_dims %x {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %1 = tt.broadcast %0 : tensor<1x64xf32> -> tensor<64x64xf32>
  %2 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %3 = arith.muli %2, %c64 : tensor<64x1xi32>
  %4 = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %5 = tt.broadcast %3 : tensor<64x1xi32> -> tensor<64x64xi32>
  %6 = tt.broadcast %4 : tensor<1x64xi32> -> tensor<64x64xi32>
  %7 = arith.addi %5, %6 : tensor<64x64xi32>
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %e = tt.addptr %d, %7 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %e, %1 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// Loads that may see other values a second time are not done again.
// CHECK-LABEL: @volatile
// CHECK-COUNT-1: tt.load {{.*}}isVolatile
// CHECK: ttg.convert_layout
tt.func @volatile(%p: tensor<64x!tt.ptr<f32>>, %o: tensor<64x64x!tt.ptr<f32>>) {
  %x = tt.load %p {isVolatile = true} : tensor<64x!tt.ptr<f32>>
  %0 = tt.expand_dims %x {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %1 = tt.broadcast %0 : tensor<64x1xf32> -> tensor<64x64xf32>
  tt.store %o, %1 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// Accesses that run along different dimensions: one conversion is left.
// CHECK-LABEL: @transpose
// CHECK-COUNT-1: ttg.convert_layout
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @transpose(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c64 = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %1 = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %2 = arith.muli %0, %c64 : tensor<64x1xi32>
  %3 = tt.broadcast %2 : tensor<64x1xi32> -> tensor<64x64xi32>
  %4 = tt.broadcast %1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %5 = arith.addi %3, %4 : tensor<64x64xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %q = tt.addptr %b, %5 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<f32>>
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %e = tt.addptr %d, %5 : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %e, %t : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// The layout of a reduction reaches the store of its broadcast without conversions.
// CHECK-LABEL: @normalize
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @normalize(%base: !tt.ptr<f32>) {
  %p = tt.splat %base : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %x = tt.load %p : tensor<64x64x!tt.ptr<f32>>
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %1 = tt.expand_dims %0 {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %2 = tt.broadcast %1 : tensor<64x1xf32> -> tensor<64x64xf32>
  %3 = arith.subf %x, %2 : tensor<64x64xf32>
  tt.store %p, %3 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// -----

// Branches agree on the layout of what they give.
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [4]
// CHECK-LABEL: @branch
// CHECK: scf.if {{.*}} -> (tensor<1024xf32, #blocked>)
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @branch(%c: i1, %p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %v = scf.if %c -> (tensor<1024xf32>) {
    %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
    scf.yield %x : tensor<1024xf32>
  } else {
    %z = arith.constant dense<0.0> : tensor<1024xf32>
    scf.yield %z : tensor<1024xf32>
  }
  tt.store %q, %v : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Elements that may be reordered stay in their registers, also where the sums of rows have copies in several lanes:
// a view with other copies would lose some of them.
// CHECK-LABEL: @sum_of_sums
// CHECK: tt.reshape %{{.*}} allow_reorder : tensor<4x8xi32, #ttg.slice<{dim = 2, parent = #blocked}>> -> tensor<32xi32, #linear>
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @sum_of_sums(%x: tensor<4x8x16xi32>, %o: !tt.ptr<i32>) {
  %0 = "tt.reduce"(%x) <{axis = 2 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.reduce.return %s : i32
  }) : (tensor<4x8x16xi32>) -> tensor<4x8xi32>
  %1 = tt.reshape %0 allow_reorder : tensor<4x8xi32> -> tensor<32xi32>
  %2 = "tt.reduce"(%1) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %s = arith.addi %a, %b : i32
    tt.reduce.return %s : i32
  }) : (tensor<32xi32>) -> i32
  tt.store %o, %2 : !tt.ptr<i32>
  tt.return
}
