// RUN: %ttopt %s --split-input-file --allow-unregistered-dialect --triton-counted-loops | FileCheck %s

// Up: what goes along with the counter is a sum of it, what is read behind the loop is carried.
// CHECK-LABEL: @up
// CHECK: %[[APART:.+]] = arith.subi %arg2, %arg1
// CHECK: %[[R:.+]]:2 = scf.for %[[I:.+]] = %arg1 to %arg0 step %c32_i32 iter_args(%{{.+}} = %arg1, %[[ACC:.+]] = %{{.+}}) -> (i32, f32)
// CHECK: %[[ALONG:.+]] = arith.addi %[[I]], %[[APART]]
// CHECK: %[[X:.+]] = arith.sitofp %[[ALONG]]
// CHECK: %[[SUM:.+]] = arith.addf %[[ACC]], %[[X]]
// CHECK: %[[NEXT:.+]] = arith.addi %[[I]], %c32_i32
// CHECK: scf.yield %[[NEXT]], %[[SUM]]
// CHECK: tt.return %[[R]]#1, %[[R]]#0
tt.func @up(%n: i32, %begin: i32, %other: i32) -> (f32, i32) {
  %zero = arith.constant 0.0 : f32
  %c32 = arith.constant 32 : i32
  %r:3 = scf.while (%k = %begin, %acc = %zero, %along = %other) : (i32, f32, i32) -> (f32, i32, i32) {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %acc, %k, %along : f32, i32, i32
  } do {
  ^bb0(%acc: f32, %k: i32, %along: i32):
    %x = arith.sitofp %along : i32 to f32
    %sum = arith.addf %acc, %x : f32
    %next = arith.addi %k, %c32 : i32
    %beyond = arith.addi %along, %c32 : i32
    scf.yield %next, %sum, %beyond : i32, f32, i32
  }
  tt.return %r#0, %r#1 : f32, i32
}

// -----

// Down: the loop counts what has been taken away; a number that goes up by as much is that count.
// CHECK-LABEL: @down
// CHECK: scf.for %[[I:.+]] = %{{.+}} to %arg0 step %{{.+}} : i32 {
// CHECK: %[[LEFT:.+]] = arith.subi %arg0, %[[I]]
// CHECK: "use"(%[[I]], %[[LEFT]])
// CHECK-NOT: scf.while
tt.func @down(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %r:2 = scf.while (%k = %c0, %left = %n) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi sgt, %left, %c0 : i32
    scf.condition(%more) %k, %left : i32, i32
  } do {
  ^bb0(%k: i32, %left: i32):
    "use"(%k, %left) : (i32, i32) -> ()
    %next = arith.addi %k, %c32 : i32
    %less = arith.subi %left, %c32 : i32
    scf.yield %next, %less : i32, i32
  }
  tt.return
}

// -----

// At least a constant is more than the one below it, and the bound comes out of the condition.
// CHECK-LABEL: @down_to
// CHECK: %[[MOST:.+]] = arith.maxsi %arg0, %[[ABOVE:.+]] : i32
// CHECK: %[[TO:.+]] = arith.subi %[[MOST]], %[[ABOVE]]
// CHECK: scf.for %{{.+}} = %{{.+}} to %[[TO]] step
tt.func @down_to(%n: i32) {
  %c1 = arith.constant 1 : i32
  %r = scf.while (%left = %n) : (i32) -> i32 {
    %c8 = arith.constant 8 : i32
    %more = arith.cmpi sle, %c8, %left : i32
    scf.condition(%more) %left : i32
  } do {
  ^bb0(%left: i32):
    "use"(%left) : (i32) -> ()
    %less = arith.subi %left, %c1 : i32
    scf.yield %less : i32
  }
  tt.return
}

// -----

// A multiple of the counter is less than the bound as long as the counter is less than the quotient, rounded up.
// CHECK-LABEL: @times
// CHECK: %[[DOWN:.+]] = arith.divsi %arg0, %[[BY:.+]] : i32
// CHECK: %[[PRODUCT:.+]] = arith.muli %[[DOWN]], %[[BY]]
// CHECK: %[[LESS:.+]] = arith.cmpi slt, %[[PRODUCT]], %arg0
// CHECK: %[[MORE:.+]] = arith.extui %[[LESS]]
// CHECK: %[[TO:.+]] = arith.addi %[[DOWN]], %[[MORE]]
// CHECK: scf.for %{{.+}} = %c0_i32 to %[[TO]] step %c1_i32
tt.func @times(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.while (%page = %c0) : (i32) -> i32 {
    %at = arith.muli %page, %c32 : i32
    %more = arith.cmpi slt, %at, %n : i32
    scf.condition(%more) %page : i32
  } do {
  ^bb0(%page: i32):
    "use"(%page) : (i32) -> ()
    %next = arith.addi %page, %c1 : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// Whole blocks: the last one ends at the bound, or before it.
// CHECK-LABEL: @plus
// CHECK: %[[BEHIND:.+]] = arith.addi %arg0, %{{.+}} : i64
// CHECK: %[[MOST:.+]] = arith.maxsi %[[BEHIND]], %[[BY:.+]] : i64
// CHECK: %[[TO:.+]] = arith.subi %[[MOST]], %[[BY]]
// CHECK: scf.for %{{.+}} = %c64_i64 to %[[TO]] step %c64_i64
tt.func @plus(%n: i64) {
  %c64 = arith.constant 64 : i64
  %r = scf.while (%start = %c64) : (i64) -> i64 {
    %end = arith.addi %start, %c64 : i64
    %more = arith.cmpi sge, %n, %end : i64
    scf.condition(%more) %start : i64
  } do {
  ^bb0(%start: i64):
    "use"(%start) : (i64) -> ()
    %next = arith.addi %start, %c64 : i64
    scf.yield %next : i64
  }
  tt.return
}

// -----

// Programs take turns; numbers are unsigned.
// CHECK-LABEL: @turns
// CHECK: %[[FIRST:.+]] = tt.get_program_id x
// CHECK: %[[BY:.+]] = tt.get_num_programs x
// CHECK: scf.for unsigned %{{.+}} = %[[FIRST]] to %arg0 step %[[BY]]
tt.func @turns(%n: i32) {
  %first = tt.get_program_id x : i32
  %by = tt.get_num_programs x : i32
  %r = scf.while (%tile = %first) : (i32) -> i32 {
    %more = arith.cmpi ult, %tile, %n : i32
    scf.condition(%more) %tile : i32
  } do {
  ^bb0(%tile: i32):
    "use"(%tile) : (i32) -> ()
    %next = arith.addi %by, %tile : i32
    scf.yield %next : i32
  }
  tt.return
}

// -----

// These stay: the bound is carried, a number goes away from its bound, or down to a negative or unknown one, what is added changes, a
// multiple of a number that may be negative, and of which a condition is one of two.
// CHECK-LABEL: @others
// CHECK-COUNT-7: scf.while
// CHECK-NOT: scf.for
tt.func @others(%n: i32, %p: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %below = arith.constant -1 : i32
  %a:2 = scf.while (%k = %c0, %to = %n) : (i32, i32) -> (i32, i32) {
    %more = arith.cmpi slt, %k, %to : i32
    scf.condition(%more) %k, %to : i32, i32
  } do {
  ^bb0(%k: i32, %to: i32):
    %next = arith.addi %k, %c1 : i32
    %less = arith.subi %to, %c1 : i32
    scf.yield %next, %less : i32, i32
  }
  %b = scf.while (%k = %n) : (i32) -> i32 {
    %more = arith.cmpi sgt, %k, %c0 : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %c = scf.while (%k = %n) : (i32) -> i32 {
    %more = arith.cmpi sgt, %k, %below : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.subi %k, %c1 : i32
    scf.yield %next : i32
  }
  %d = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %k, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %by = tt.load %p : !tt.ptr<i32>
    %next = arith.addi %k, %by : i32
    scf.yield %next : i32
  }
  %e = scf.while (%k = %n) : (i32) -> i32 {
    %twice = arith.muli %k, %c2 : i32
    %more = arith.cmpi slt, %twice, %n : i32
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %f = scf.while (%k = %c0) : (i32) -> i32 {
    %less = arith.cmpi slt, %k, %n : i32
    %x = tt.load %p : !tt.ptr<i32>
    %goes = arith.cmpi ne, %x, %c0 : i32
    %more = arith.andi %less, %goes : i1
    scf.condition(%more) %k : i32
  } do {
  ^bb0(%k: i32):
    %next = arith.addi %k, %c1 : i32
    scf.yield %next : i32
  }
  %g = scf.while (%k = %c0) : (i32) -> i32 {
    %more = arith.cmpi slt, %k, %n : i32
    %next = arith.addi %k, %c1 : i32
    scf.condition(%more) %next : i32
  } do {
  ^bb0(%k: i32):
    scf.yield %k : i32
  }
  tt.return
}
