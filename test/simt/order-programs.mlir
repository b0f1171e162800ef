// Whatever the numbers of tiles become, each tile is computed once: programs count where they have been. 40 and 41 of what counts fastest are
// numbered in groups of 8, 4, 2 and 1, as many as there are rows; 16 stay; so do those of a row that is not all there.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; [n.save('%t.%%d.npy' %% i, n.ones(i, 'i4')) for i in (16, 41, 304, 600, 697, 760)]"
// RUN: sed '/^tt.func public @\(parts\|wide\|tiles\)/,/^}/d' %s > %t.grid.mlir
// RUN: sed '/^tt.func public @\(grid\|wide\|tiles\)/,/^}/d' %s > %t.parts.mlir
// RUN: sed '/^tt.func public @\(grid\|parts\|tiles\)/,/^}/d' %s > %t.wide.mlir
// RUN: sed '/^tt.func public @\(grid\|parts\|wide\)/,/^}/d' %s > %t.tiles.mlir
// RUN: %ttsim %t.grid.mlir -q --grid 40,19,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[760] --arg 16 --arg 0 --compare v=%t.760.npy
// RUN: %ttsim %t.grid.mlir -q --grid 40,15,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[600] --arg 16 --arg 0 --compare v=%t.600.npy
// RUN: %ttsim %t.grid.mlir -q --grid 16,19,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[304] --arg 16 --arg 0 --compare v=%t.304.npy
// RUN: %ttsim %t.grid.mlir -q --grid 41,1,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[41] --arg 16 --arg 0 --compare v=%t.41.npy
// RUN: %ttsim %t.grid.mlir -q --grid 1,16,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[16] --arg 16 --arg 0 --compare v=%t.16.npy
// RUN: %ttsim %t.parts.mlir -q --grid 760,1,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[760] --arg 16 --arg 40 --compare v=%t.760.npy
// RUN: %ttsim %t.parts.mlir -q --grid 697,1,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[697] --arg 16 --arg 40 --compare v=%t.697.npy
// RUN: %ttsim %t.parts.mlir -q --grid 16,1,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[16] --arg 16 --arg 40 --compare v=%t.16.npy
// RUN: %ttsim %t.wide.mlir -q --grid 1,697,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[697] --arg 16 --arg 41 --compare v=%t.697.npy
// RUN: %ttsim %t.tiles.mlir -q --grid 7,1,1 --arg a=f16[656,16] --arg b=f16[656,16] --arg v=i32[697] --arg 16 --arg 41 --arg 697 --compare v=%t.697.npy

// A product of 16 rows from the one and 16 columns from the other.
tt.func private @product(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %i: i32, %j: i32, %K: i32) -> tensor<16x16xf32> {
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %k16 = arith.constant dense<16> : tensor<16xi32>
  %i0 = arith.muli %i, %c16 : i32
  %is = tt.splat %i0 : i32 -> tensor<16xi32>
  %rows = arith.addi %is, %r : tensor<16xi32>
  %ra = arith.muli %rows, %k16 : tensor<16xi32>
  %ra1 = tt.expand_dims %ra {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %ra2 = tt.broadcast %ra1 : tensor<16x1xi32> -> tensor<16x16xi32>
  %j0 = arith.muli %j, %c16 : i32
  %js = tt.splat %j0 : i32 -> tensor<16xi32>
  %columns = arith.addi %js, %r : tensor<16xi32>
  %rb = arith.muli %columns, %k16 : tensor<16xi32>
  %rb1 = tt.expand_dims %rb {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %rb2 = tt.broadcast %rb1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %along1 = tt.expand_dims %r {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %along = tt.broadcast %along1 : tensor<1x16xi32> -> tensor<16x16xi32>
  %down1 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %down = tt.broadcast %down1 : tensor<16x1xi32> -> tensor<16x16xi32>
  %oa = arith.addi %ra2, %along : tensor<16x16xi32>
  %ob = arith.addi %rb2, %down : tensor<16x16xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<16x16x!tt.ptr<f16>>
  %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %k1 = tt.splat %k : i32 -> tensor<16x16xi32>
    %pa0 = tt.addptr %as, %oa : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %pa = tt.addptr %pa0, %k1 : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %pb0 = tt.addptr %bs, %ob : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %pb = tt.addptr %pb0, %k1 : tensor<16x16x!tt.ptr<f16>>, tensor<16x16xi32>
    %x = tt.load %pa : tensor<16x16x!tt.ptr<f16>>
    %y = tt.load %pb : tensor<16x16x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.return %s : tensor<16x16xf32>
}

// Counts a visit of a tile, whose product is zero.
tt.func private @visit(%v: !tt.ptr<i32>, %at: i32, %product: tensor<16x16xf32>) {
  %one = arith.constant 1 : i32
  %true = arith.constant true
  %sum = "tt.reduce"(%product) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<16x16xf32>) -> tensor<16xf32>
  %all = "tt.reduce"(%sum) <{axis = 0 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<16xf32>) -> f32
  %n = arith.fptosi %all : f32 to i32
  %count = arith.addi %one, %n : i32
  %p = tt.addptr %v, %at : !tt.ptr<i32>, i32
  %old = tt.atomic_rmw add, relaxed, gpu, %p, %count, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.return
}

tt.func public @grid(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %v: !tt.ptr<i32>, %K: i32, %unused: i32) {
  %x = tt.get_program_id x : i32
  %y = tt.get_program_id y : i32
  %n = tt.get_num_programs x : i32
  %d = tt.call @product(%a, %b, %x, %y, %K) : (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32) -> tensor<16x16xf32>
  %row = arith.muli %y, %n : i32
  %at = arith.addi %row, %x : i32
  tt.call @visit(%v, %at, %d) : (!tt.ptr<i32>, i32, tensor<16x16xf32>) -> ()
  tt.return
}

tt.func public @parts(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %v: !tt.ptr<i32>, %K: i32, %n: i32) {
  %p = tt.get_program_id x : i32
  %i = arith.divsi %p, %n : i32
  %j = arith.remsi %p, %n : i32
  %d = tt.call @product(%a, %b, %j, %i, %K) : (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32) -> tensor<16x16xf32>
  tt.call @visit(%v, %p, %d) : (!tt.ptr<i32>, i32, tensor<16x16xf32>) -> ()
  tt.return
}

tt.func public @wide(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %v: !tt.ptr<i32>, %K: i32, %n32: i32) {
  %p32 = tt.get_program_id y : i32
  %p = arith.extsi %p32 : i32 to i64
  %n = arith.extsi %n32 : i32 to i64
  %j64 = arith.remsi %p, %n : i64
  %i64 = arith.divsi %p, %n : i64
  %i = arith.trunci %i64 : i64 to i32
  %j = arith.trunci %j64 : i64 to i32
  %d = tt.call @product(%a, %b, %i, %j, %K) : (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32) -> tensor<16x16xf32>
  %row = arith.muli %i, %n32 : i32
  %at = arith.addi %row, %j : i32
  tt.call @visit(%v, %at, %d) : (!tt.ptr<i32>, i32, tensor<16x16xf32>) -> ()
  tt.return
}

tt.func public @tiles(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %v: !tt.ptr<i32>, %K: i32, %n: i32, %all: i32) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  scf.for %p = %first to %all step %step : i32 {
    %i = arith.divsi %p, %n : i32
    %j = arith.remsi %p, %n : i32
    %d = tt.call @product(%a, %b, %i, %j, %K) : (!tt.ptr<f16>, !tt.ptr<f16>, i32, i32, i32) -> tensor<16x16xf32>
    tt.call @visit(%v, %p, %d) : (!tt.ptr<i32>, i32, tensor<16x16xf32>) -> ()
  }
  tt.return
}
