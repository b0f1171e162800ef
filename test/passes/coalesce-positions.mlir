// Where neighbours are of one row of a picture, they have its number, what is computed of it and its part of the mask alike: a thread
// computes these once for all of them that it holds. That counts beside accesses: what is loaded from places that nobody knows has fewer
// sectors with single elements, but two neighbours take less arithmetic.
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu='target=cuda:90 num-warps=4' --tritongpu-coalesce=explain 2>&1 | FileCheck %s

// CHECK: 2 neighbours in each thread: 421 cycles (issue 48, lines and sectors 333, positions 40) | 1 neighbour in each thread: 445
// CHECK: #[[TWO:.*]] = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @rows_of_sixteen
// CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f32>, #[[TWO]]>
tt.func @rows_of_sixteen(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %width: i32 {tt.divisibility = 16 : i32}, %height: i32, %pitch: i32, %top: i32, %left: i32) {
  %zero = arith.constant dense<0> : tensor<1024xi32>
  %none = arith.constant dense<0.0> : tensor<1024xf32>
  %at = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %widths = tt.splat %width : i32 -> tensor<1024xi32>
  %heights = tt.splat %height : i32 -> tensor<1024xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<1024xi32>
  %tops = tt.splat %top : i32 -> tensor<1024xi32>
  %lefts = tt.splat %left : i32 -> tensor<1024xi32>
  %row = arith.divsi %at, %widths : tensor<1024xi32>
  %column = arith.remsi %at, %widths : tensor<1024xi32>
  %y = arith.addi %row, %tops : tensor<1024xi32>
  %x = arith.addi %column, %lefts : tensor<1024xi32>
  %m0 = arith.cmpi sge, %y, %zero : tensor<1024xi32>
  %m1 = arith.cmpi slt, %y, %heights : tensor<1024xi32>
  %m2 = arith.cmpi sge, %x, %zero : tensor<1024xi32>
  %m3 = arith.cmpi slt, %x, %widths : tensor<1024xi32>
  %m4 = arith.andi %m0, %m1 : tensor<1024xi1>
  %m5 = arith.andi %m4, %m2 : tensor<1024xi1>
  %mask = arith.andi %m5, %m3 : tensor<1024xi1>
  %start = arith.muli %y, %pitches : tensor<1024xi32>
  %place = arith.addi %start, %x : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %from = tt.addptr %ps, %place : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %value = tt.load %from, %mask, %none : tensor<1024x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %to = tt.addptr %qs, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %to, %value : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Rows of any width end anywhere.
// CHECK: #[[ONE:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @rows_of_any_width
// CHECK: tt.load %{{.*}} : tensor<1024x!tt.ptr<f32>, #[[ONE]]>
tt.func @rows_of_any_width(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %width: i32, %height: i32, %pitch: i32, %top: i32, %left: i32) {
  %zero = arith.constant dense<0> : tensor<1024xi32>
  %none = arith.constant dense<0.0> : tensor<1024xf32>
  %at = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %widths = tt.splat %width : i32 -> tensor<1024xi32>
  %heights = tt.splat %height : i32 -> tensor<1024xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<1024xi32>
  %tops = tt.splat %top : i32 -> tensor<1024xi32>
  %lefts = tt.splat %left : i32 -> tensor<1024xi32>
  %row = arith.divsi %at, %widths : tensor<1024xi32>
  %column = arith.remsi %at, %widths : tensor<1024xi32>
  %y = arith.addi %row, %tops : tensor<1024xi32>
  %x = arith.addi %column, %lefts : tensor<1024xi32>
  %m0 = arith.cmpi sge, %y, %zero : tensor<1024xi32>
  %m1 = arith.cmpi slt, %y, %heights : tensor<1024xi32>
  %m2 = arith.cmpi sge, %x, %zero : tensor<1024xi32>
  %m3 = arith.cmpi slt, %x, %widths : tensor<1024xi32>
  %m4 = arith.andi %m0, %m1 : tensor<1024xi1>
  %m5 = arith.andi %m4, %m2 : tensor<1024xi1>
  %mask = arith.andi %m5, %m3 : tensor<1024xi1>
  %start = arith.muli %y, %pitches : tensor<1024xi32>
  %place = arith.addi %start, %x : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %from = tt.addptr %ps, %place : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %value = tt.load %from, %mask, %none : tensor<1024x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %to = tt.addptr %qs, %at : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %to, %value : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Places that a scan gives, as in a sort by digits: nobody knows them, and neighbours are as likely neighbours in memory as not, where lanes
// that hold neighbours write whole sectors. Threads with eight neighbours each would save shuffles, and write each sector eight times.
// CHECK: #[[LANES:.*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @places_by_scan
// CHECK: tt.store %{{.*}} : tensor<1024x!tt.ptr<i32>, #[[LANES]]>
tt.func @places_by_scan(%keys: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %one = arith.constant dense<1> : tensor<1024xi32>
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ks = tt.splat %keys : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %ka = tt.addptr %ks, %range : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  %key = tt.load %ka : tensor<1024x!tt.ptr<i32>>
  %bit = arith.andi %key, %one : tensor<1024xi32>
  %place = "tt.scan"(%bit) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%a: i32, %b: i32):
    %sum = arith.addi %a, %b : i32
    tt.scan.return %sum : i32
  }) : (tensor<1024xi32>) -> tensor<1024xi32>
  %os = tt.splat %out : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %oa = tt.addptr %os, %place : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  tt.store %oa, %key : tensor<1024x!tt.ptr<i32>>
  tt.return
}
