// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ttgir | FileCheck %s --check-prefix=LAYOUT
// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s --check-prefix=PTX

// Lanes that reduce many lines share these among them. What is computed from the sums alone has the layout in which each lane is left
// with its own, so that none of them has to be brought to others, and nothing goes through shared memory.

// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ttgir --explain -o %t 2>&1 | FileCheck %s --check-prefix=SAID

// LAYOUT: scf.for
// LAYOUT: %[[SUM:.*]] = "tt.reduce"
// LAYOUT: %[[THERE:.*]] = ttg.convert_layout %[[SUM]] {{.*}} -> tensor<16x8xf32, #linear{{[0-9]*}}>
// LAYOUT-NEXT: math.exp %[[THERE]]

// SAID: move 5 operations behind reductions to linear
// SAID: done by the reduction; {{.*}} tt.reduce at {{.*}} gives its result there, in {{[0-9]+}} cycles; wanted by math.exp

// PTX-NOT: {{ld|st}}.shared
// PTX: st.global
tt.func public @weights(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %n = arith.constant 64 : i32
  %none = arith.constant dense<0.0> : tensor<16xf32>
  %c1024 = arith.constant dense<1024> : tensor<16x1xi32>
  %c128 = arith.constant dense<128> : tensor<1x8xi32>
  %rows = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %parts = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %d = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %r0 = tt.expand_dims %rows {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %r1 = arith.muli %r0, %c1024 : tensor<16x1xi32>
  %p0 = tt.expand_dims %parts {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %p1 = arith.muli %p0, %c128 : tensor<1x8xi32>
  %r2 = tt.broadcast %r1 : tensor<16x1xi32> -> tensor<16x8xi32>
  %p2 = tt.broadcast %p1 : tensor<1x8xi32> -> tensor<16x8xi32>
  %o = arith.addi %r2, %p2 : tensor<16x8xi32>
  %o3 = tt.expand_dims %o {axis = 2 : i32} : tensor<16x8xi32> -> tensor<16x8x1xi32>
  %d2 = tt.expand_dims %d {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %d3 = tt.expand_dims %d2 {axis = 0 : i32} : tensor<1x128xi32> -> tensor<1x1x128xi32>
  %ob = tt.broadcast %o3 : tensor<16x8x1xi32> -> tensor<16x8x128xi32>
  %db = tt.broadcast %d3 : tensor<1x1x128xi32> -> tensor<16x8x128xi32>
  %at = arith.addi %ob, %db : tensor<16x8x128xi32>
  %sum = scf.for %i = %zero to %n step %one iter_args(%acc = %none) -> (tensor<16xf32>) : i32 {
    %c = arith.constant 128 : i32
    %qo = arith.muli %i, %c : i32
    %qi = tt.addptr %q, %qo : !tt.ptr<f32>, i32
    %qs = tt.splat %qi : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %qp = tt.addptr %qs, %d : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %step = arith.constant 16384 : i32
    %xo = arith.muli %i, %step : i32
    %xi = tt.addptr %x, %xo : !tt.ptr<f32>, i32
    %xs = tt.splat %xi : !tt.ptr<f32> -> tensor<16x8x128x!tt.ptr<f32>>
    %xp = tt.addptr %xs, %at : tensor<16x8x128x!tt.ptr<f32>>, tensor<16x8x128xi32>
    %v = tt.load %xp : tensor<16x8x128x!tt.ptr<f32>>
    %w = tt.load %qp : tensor<128x!tt.ptr<f32>>
    %w1 = tt.expand_dims %w {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
    %w2 = tt.expand_dims %w1 {axis = 0 : i32} : tensor<1x128xf32> -> tensor<1x1x128xf32>
    %wb = tt.broadcast %w2 : tensor<1x1x128xf32> -> tensor<16x8x128xf32>
    %m = arith.mulf %v, %wb : tensor<16x8x128xf32>
    %s = "tt.reduce"(%m) <{axis = 2 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %z = arith.addf %a, %b : f32
      tt.reduce.return %z : f32
    }) : (tensor<16x8x128xf32>) -> tensor<16x8xf32>
    %e = math.exp %s : tensor<16x8xf32>
    %t = "tt.reduce"(%e) <{axis = 1 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %z = arith.addf %a, %b : f32
      tt.reduce.return %z : f32
    }) : (tensor<16x8xf32>) -> tensor<16xf32>
    %next = arith.addf %acc, %t : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<16x!tt.ptr<f32>>
  %yp = tt.addptr %ys, %rows : tensor<16x!tt.ptr<f32>>, tensor<16xi32>
  tt.store %yp, %sum : tensor<16x!tt.ptr<f32>>
  tt.return
}
