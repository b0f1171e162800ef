// RUN: %ttopt %s -split-input-file --triton-combine | FileCheck %s

// CHECK-LABEL: @sum_of_product
// CHECK: tt.dot %arg0, %arg0, %arg1
// CHECK-NOT: arith.addf
tt.func @sum_of_product(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %e = arith.addf %d, %c : tensor<16x16xf32>
  tt.return %e : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @sum_of_integer_product
// CHECK: tt.dot %arg0, %arg0, %arg1
// CHECK-NOT: arith.addi
tt.func @sum_of_integer_product(%a: tensor<16x16xi8>, %c: tensor<16x16xi32>) -> tensor<16x16xi32> {
  %zero = arith.constant dense<0> : tensor<16x16xi32>
  %d = tt.dot %a, %a, %zero : tensor<16x16xi8> * tensor<16x16xi8> -> tensor<16x16xi32>
  %e = arith.addi %c, %d : tensor<16x16xi32>
  tt.return %e : tensor<16x16xi32>
}

// -----

// CHECK-LABEL: @accumulator_in_use
// CHECK: arith.addf
tt.func @accumulator_in_use(%a: tensor<16x16xf16>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %d = tt.dot %a, %a, %b : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %e = arith.addf %d, %c : tensor<16x16xf32>
  tt.return %e : tensor<16x16xf32>
}

// -----

// CHECK-LABEL: @wide_offsets
// CHECK: %[[SUM:.+]] = arith.addi %arg1, %arg2 : i64
// CHECK: tt.addptr %arg0, %[[SUM]]
tt.func @wide_offsets(%p: !tt.ptr<f32>, %i: i64, %j: i64) -> !tt.ptr<f32> {
  %q = tt.addptr %p, %i : !tt.ptr<f32>, i64
  %r = tt.addptr %q, %j : !tt.ptr<f32>, i64
  tt.return %r : !tt.ptr<f32>
}

// -----

// CHECK-LABEL: @constant_offsets
// CHECK: %[[SUM:.+]] = arith.constant 12 : i32
// CHECK: tt.addptr %arg0, %[[SUM]] : !tt.ptr<f32>, i32
tt.func @constant_offsets(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %four = arith.constant 4 : i32
  %eight = arith.constant 8 : i32
  %q = tt.addptr %p, %four : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %eight : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}

// -----

// The sum of two offsets of 32 bits may not fit 32 bits.
// CHECK-LABEL: @narrow_offsets
// CHECK-COUNT-2: tt.addptr
// CHECK-LABEL: @large_constants
// CHECK-COUNT-2: tt.addptr
tt.func @narrow_offsets(%p: !tt.ptr<f32>, %i: i32, %j: i32) -> !tt.ptr<f32> {
  %q = tt.addptr %p, %i : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %j : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}
tt.func @large_constants(%p: !tt.ptr<f32>) -> !tt.ptr<f32> {
  %most = arith.constant 2147483647 : i32
  %one = arith.constant 1 : i32
  %q = tt.addptr %p, %most : !tt.ptr<f32>, i32
  %r = tt.addptr %q, %one : !tt.ptr<f32>, i32
  tt.return %r : !tt.ptr<f32>
}

// -----

// CHECK-LABEL: @select_of_load
// CHECK: %[[X:.+]] = tt.load %arg0, %arg1, %arg2
// CHECK-NEXT: tt.return %[[X]]
tt.func @select_of_load(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %m, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}

// -----

// By a scalar that all elements are masked with.
// CHECK-LABEL: @select_by_scalar
// CHECK: tt.load %arg0, %{{.+}}, %arg2
// CHECK-NOT: arith.select
tt.func @select_by_scalar(%p: tensor<64x!tt.ptr<f32>>, %c: i1, %other: tensor<64xf32>) -> tensor<64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %m = tt.splat %c : i1 -> tensor<64xi1>
  %x = tt.load %p, %m, %zero : tensor<64x!tt.ptr<f32>>
  %y = arith.select %c, %x, %other : tensor<64xf32>
  tt.return %y : tensor<64xf32>
}

// -----

// Another mask; a value that is not there yet; a load with other uses.
// CHECK-LABEL: @other_mask
// CHECK: arith.select
// CHECK-LABEL: @value_from_later
// CHECK: arith.select
// CHECK-LABEL: @other_uses
// CHECK: arith.select
tt.func @other_mask(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %n: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %n, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}
tt.func @value_from_later(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> tensor<64xf32> {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %later = arith.addf %other, %other : tensor<64xf32>
  %y = arith.select %m, %x, %later : tensor<64xi1>, tensor<64xf32>
  tt.return %y : tensor<64xf32>
}
tt.func @other_uses(%p: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %other: tensor<64xf32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %x = tt.load %p, %m : tensor<64x!tt.ptr<f32>>
  %y = arith.select %m, %x, %other : tensor<64xi1>, tensor<64xf32>
  tt.return %x, %y : tensor<64xf32>, tensor<64xf32>
}

// -----

// Reversing both halves of rows, and then the rows, exchanges the halves: one exchange along an axis of two is left of five.
// CHECK-LABEL: @reversed_twice
// CHECK-NOT:   tt.reduce
// CHECK:       "tt.reduce"({{.*}}) <{axis = 1 : i32}>
// CHECK-NOT:   "tt.reduce"
// CHECK:       tt.return
tt.func public @reversed_twice(%x: tensor<4x8xi16>) -> tensor<4x8xi16> {
  %0 = tt.reshape %x : tensor<4x8xi16> -> tensor<4x2x2x2xi16>
  %1 = "tt.reduce"(%0) <{axis = 2 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x2x2x2xi16>) -> tensor<4x2x2xi16>
  %2 = tt.expand_dims %1 {axis = 2 : i32} : tensor<4x2x2xi16> -> tensor<4x2x1x2xi16>
  %3 = tt.broadcast %2 : tensor<4x2x1x2xi16> -> tensor<4x2x2x2xi16>
  %4 = arith.xori %0, %3 : tensor<4x2x2x2xi16>
  %5 = "tt.reduce"(%4) <{axis = 3 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x2x2x2xi16>) -> tensor<4x2x2xi16>
  %6 = tt.expand_dims %5 {axis = 3 : i32} : tensor<4x2x2xi16> -> tensor<4x2x2x1xi16>
  %7 = tt.broadcast %6 : tensor<4x2x2x1xi16> -> tensor<4x2x2x2xi16>
  %8 = arith.xori %4, %7 : tensor<4x2x2x2xi16>
  %9 = tt.reshape %8 : tensor<4x2x2x2xi16> -> tensor<4x8xi16>
  %10 = tt.bitcast %9 : tensor<4x8xi16> -> tensor<4x8xbf16>
  %11 = tt.bitcast %10 : tensor<4x8xbf16> -> tensor<4x8xi16>
  %12 = tt.reshape %11 : tensor<4x8xi16> -> tensor<4x2x2x2xi16>
  %13 = "tt.reduce"(%12) <{axis = 1 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x2x2x2xi16>) -> tensor<4x2x2xi16>
  %14 = tt.expand_dims %13 {axis = 1 : i32} : tensor<4x2x2xi16> -> tensor<4x1x2x2xi16>
  %15 = tt.broadcast %14 : tensor<4x1x2x2xi16> -> tensor<4x2x2x2xi16>
  %16 = arith.xori %12, %15 : tensor<4x2x2x2xi16>
  %17 = "tt.reduce"(%16) <{axis = 2 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x2x2x2xi16>) -> tensor<4x2x2xi16>
  %18 = tt.expand_dims %17 {axis = 2 : i32} : tensor<4x2x2xi16> -> tensor<4x2x1x2xi16>
  %19 = tt.broadcast %18 : tensor<4x2x1x2xi16> -> tensor<4x2x2x2xi16>
  %20 = arith.xori %16, %19 : tensor<4x2x2x2xi16>
  %21 = "tt.reduce"(%20) <{axis = 3 : i32}> ({
  ^bb0(%a: i16, %b: i16):
    %c = arith.xori %a, %b : i16
    tt.reduce.return %c : i16
  }) : (tensor<4x2x2x2xi16>) -> tensor<4x2x2xi16>
  %22 = tt.expand_dims %21 {axis = 3 : i32} : tensor<4x2x2xi16> -> tensor<4x2x2x1xi16>
  %23 = tt.broadcast %22 : tensor<4x2x2x1xi16> -> tensor<4x2x2x2xi16>
  %24 = arith.xori %20, %23 : tensor<4x2x2x2xi16>
  %25 = tt.reshape %24 : tensor<4x2x2x2xi16> -> tensor<4x8xi16>
  tt.return %25 : tensor<4x8xi16>
}

// -----

// What is between two exchanges is used otherwise, or is not one: all of it stays.
// CHECK-LABEL: @reversed_once
// CHECK-COUNT-4: "tt.reduce"
// CHECK:       tt.return
tt.func public @reversed_once(%x: tensor<4x2xi32>) -> (tensor<4x2xi32>, tensor<4x2xi32>, tensor<4x2xi32>) {
  %1 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  %2 = tt.expand_dims %1 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %3 = tt.broadcast %2 : tensor<4x1xi32> -> tensor<4x2xi32>
  %4 = arith.xori %x, %3 : tensor<4x2xi32>
  %5 = "tt.reduce"(%4) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  %6 = tt.expand_dims %5 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %7 = tt.broadcast %6 : tensor<4x1xi32> -> tensor<4x2xi32>
  %8 = arith.xori %4, %7 : tensor<4x2xi32>
  %9 = "tt.reduce"(%8) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  %10 = tt.expand_dims %9 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %11 = tt.broadcast %10 : tensor<4x1xi32> -> tensor<4x2xi32>
  %12 = arith.xori %8, %11 : tensor<4x2xi32>
  %13 = "tt.reduce"(%12) <{axis = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.xori %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<4x2xi32>) -> tensor<4xi32>
  %14 = tt.expand_dims %13 {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %15 = tt.broadcast %14 : tensor<4x1xi32> -> tensor<4x2xi32>
  %16 = arith.xori %12, %15 : tensor<4x2xi32>
  tt.return %4, %8, %16 : tensor<4x2xi32>, tensor<4x2xi32>, tensor<4x2xi32>
}

// -----

// Every other element: one load of both, a last dimension of two.
// CHECK-LABEL: @every_other_element
// CHECK:       %[[P:.*]] = tt.addptr %{{.*}} : tensor<128x2x!tt.ptr<bf16>>, tensor<128x2xi32>
// CHECK:       %[[M:.*]] = tt.broadcast %{{.*}} : tensor<128x1xi1> -> tensor<128x2xi1>
// CHECK:       %[[X:.*]] = tt.load %[[P]], %[[M]] : tensor<128x2x!tt.ptr<bf16>>
// CHECK:       %[[EVEN:.*]], %[[ODD:.*]] = tt.split %[[X]]
// CHECK:       arith.subf %[[ODD]], %[[EVEN]]
// CHECK-NOT:   tt.store
// CHECK:       %[[Y:.*]] = tt.join %[[EVEN]], %{{.*}} : tensor<128xbf16> -> tensor<128x2xbf16>
// CHECK-NEXT:  tt.store %{{.*}}, %[[Y]] : tensor<128x2x!tt.ptr<bf16>>
// CHECK-NOT:   tt.store
// CHECK:       tt.return
tt.func public @every_other_element(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %n: i32) {
  %two = arith.constant dense<2> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %size = tt.splat %n : i32 -> tensor<128xi32>
  %inside = arith.cmpi slt, %range, %size : tensor<128xi32>
  %even = arith.muli %range, %two : tensor<128xi32>
  %odd = arith.addi %even, %one : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<bf16> -> tensor<128x!tt.ptr<bf16>>
  %p0 = tt.addptr %ps, %even : tensor<128x!tt.ptr<bf16>>, tensor<128xi32>
  %p1 = tt.addptr %ps, %odd : tensor<128x!tt.ptr<bf16>>, tensor<128xi32>
  %a = tt.load %p0, %inside : tensor<128x!tt.ptr<bf16>>
  %b = tt.load %p1, %inside : tensor<128x!tt.ptr<bf16>>
  %c = arith.subf %b, %a : tensor<128xbf16>
  %qs = tt.splat %q : !tt.ptr<bf16> -> tensor<128x!tt.ptr<bf16>>
  %q0 = tt.addptr %qs, %even : tensor<128x!tt.ptr<bf16>>, tensor<128xi32>
  %q1 = tt.addptr %qs, %odd : tensor<128x!tt.ptr<bf16>>, tensor<128xi32>
  tt.store %q1, %c : tensor<128x!tt.ptr<bf16>>
  tt.store %q0, %a : tensor<128x!tt.ptr<bf16>>
  tt.return
}

// -----

// The next elements of the same pointers, four of them: one load of all, two last dimensions of two.
// CHECK-LABEL: @four_neighbours
// CHECK:       %[[P:.*]] = tt.addptr %{{.*}} : tensor<128x2x2x!tt.ptr<f32>>, tensor<128x2x2xi32>
// CHECK:       %[[X:.*]] = tt.load %[[P]], %{{.*}} : tensor<128x2x2x!tt.ptr<f32>>
// CHECK:       %[[LOW:.*]], %[[HIGH:.*]] = tt.split %[[X]]
// CHECK-DAG:   %[[A:.*]], %[[B:.*]] = tt.split %[[LOW]]
// CHECK-DAG:   %[[C:.*]], %[[D:.*]] = tt.split %[[HIGH]]
// CHECK-NOT:   tt.load
// CHECK-DAG:   %[[BA:.*]] = tt.join %[[B]], %[[A]]
// CHECK-DAG:   %[[DC:.*]] = tt.join %[[D]], %[[C]]
// CHECK:       %[[Y:.*]] = tt.join %[[BA]], %[[DC]] : tensor<128x2xf32> -> tensor<128x2x2xf32>
// CHECK:       tt.store %{{.*}}, %[[Y]] : tensor<128x2x2x!tt.ptr<f32>>
// CHECK-NOT:   tt.store
// CHECK:       tt.return
tt.func public @four_neighbours(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %four = arith.constant dense<4> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi64>
  %three = arith.constant dense<3> : tensor<128xi32>
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %size = tt.splat %n : i32 -> tensor<128xi32>
  %inside = arith.cmpi slt, %range, %size : tensor<128xi32>
  %at = arith.muli %range, %four : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p0 = tt.addptr %ps, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p1 = tt.addptr %p0, %one : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p2 = tt.addptr %p0, %two : tensor<128x!tt.ptr<f32>>, tensor<128xi64>
  %p3 = tt.addptr %p0, %three : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %a = tt.load %p0, %inside : tensor<128x!tt.ptr<f32>>
  %b = tt.load %p1, %inside : tensor<128x!tt.ptr<f32>>
  %c = tt.load %p2, %inside : tensor<128x!tt.ptr<f32>>
  %d = tt.load %p3, %inside : tensor<128x!tt.ptr<f32>>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %q0 = tt.addptr %qs, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %q1 = tt.addptr %q0, %one : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %q2 = tt.addptr %q0, %two : tensor<128x!tt.ptr<f32>>, tensor<128xi64>
  %q3 = tt.addptr %q0, %three : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  tt.store %q0, %b : tensor<128x!tt.ptr<f32>>
  tt.store %q1, %a : tensor<128x!tt.ptr<f32>>
  tt.store %q2, %d : tensor<128x!tt.ptr<f32>>
  tt.store %q3, %c : tensor<128x!tt.ptr<f32>>
  tt.return
}

// -----

// Offsets of 32 bits that are added before: from a multiple of four to the next three numbers none overflows.
// CHECK-LABEL: @four_offsets
// CHECK:       tt.load %{{.*}} : tensor<128x2x2x!tt.ptr<f32>>
// CHECK-NOT:   tt.load
// CHECK:       tt.return
tt.func public @four_offsets(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> (tensor<128xf32>, tensor<128xf32>) {
  %four = arith.constant dense<4> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %three = arith.constant dense<3> : tensor<128xi32>
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %at = arith.muli %range, %four : tensor<128xi32>
  %at1 = arith.addi %at, %one : tensor<128xi32>
  %at2 = arith.addi %at, %two : tensor<128xi32>
  %at3 = arith.addi %at, %three : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p0 = tt.addptr %ps, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p1 = tt.addptr %ps, %at1 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p2 = tt.addptr %ps, %at2 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p3 = tt.addptr %ps, %at3 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %a = tt.load %p0 : tensor<128x!tt.ptr<f32>>
  %b = tt.load %p1 : tensor<128x!tt.ptr<f32>>
  %c = tt.load %p2 : tensor<128x!tt.ptr<f32>>
  %d = tt.load %p3 : tensor<128x!tt.ptr<f32>>
  %x = arith.addf %a, %b : tensor<128xf32>
  %y = arith.addf %c, %d : tensor<128xf32>
  tt.return %x, %y : tensor<128xf32>, tensor<128xf32>
}

// -----

// Pointers that are multiples of two elements only: what lies between two pairs may belong to the next group.
// CHECK-LABEL: @pairs_of_pairs_that_overlap
// CHECK:       tt.load %{{.*}} : tensor<128x2x!tt.ptr<f32>>
// CHECK:       tt.load %{{.*}} : tensor<128x2x!tt.ptr<f32>>
// CHECK-NOT:   x2x2x
// CHECK:       tt.return
tt.func public @pairs_of_pairs_that_overlap(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> (tensor<128xf32>, tensor<128xf32>) {
  %two = arith.constant dense<2> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %three = arith.constant dense<3> : tensor<128xi32>
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %at = arith.muli %range, %two : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p0 = tt.addptr %ps, %at : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p1 = tt.addptr %p0, %one : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p2 = tt.addptr %p0, %two : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p3 = tt.addptr %p0, %three : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %a = tt.load %p0 : tensor<128x!tt.ptr<f32>>
  %b = tt.load %p1 : tensor<128x!tt.ptr<f32>>
  %c = tt.load %p2 : tensor<128x!tt.ptr<f32>>
  %d = tt.load %p3 : tensor<128x!tt.ptr<f32>>
  %x = arith.addf %a, %b : tensor<128xf32>
  %y = arith.addf %c, %d : tensor<128xf32>
  tt.return %x, %y : tensor<128xf32>, tensor<128xf32>
}

// -----

// Few elements, and what would wait while others are summed up, are stored as they are.
// CHECK-LABEL: @stored_as_they_are
// CHECK-NOT:   tt.join
// CHECK:       tt.return
tt.func public @stored_as_they_are(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: tensor<64xf32>, %y: tensor<64xf32>, %u: tensor<128x8xf32>, %v: tensor<128x8xf32>) {
  %two = arith.constant dense<2> : tensor<64xi32>
  %one = arith.constant dense<1> : tensor<64xi32>
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %at = arith.muli %range, %two : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %p0 = tt.addptr %ps, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %p1 = tt.addptr %p0, %one : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  tt.store %p0, %x : tensor<64x!tt.ptr<f32>>
  tt.store %p1, %y : tensor<64x!tt.ptr<f32>>
  %ltwo = arith.constant dense<2> : tensor<128xi32>
  %lone = arith.constant dense<1> : tensor<128xi32>
  %lrange = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %lat = arith.muli %lrange, %ltwo : tensor<128xi32>
  %lps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %lp0 = tt.addptr %lps, %lat : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %lp1 = tt.addptr %lp0, %lone : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %a = "tt.reduce"(%u) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tt.reduce.return %s : f32
  }) : (tensor<128x8xf32>) -> tensor<128xf32>
  tt.store %lp0, %a : tensor<128x!tt.ptr<f32>>
  %b = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tt.reduce.return %s : f32
  }) : (tensor<128x8xf32>) -> tensor<128xf32>
  tt.store %lp1, %b : tensor<128x!tt.ptr<f32>>
  tt.return
}

// -----

// Neighbours that overlap, masks that differ, pointers of unknown alignment, and what is stored between: all stays.
// CHECK-LABEL: @not_every_other_element
// CHECK-NOT:   tt.split
// CHECK-NOT:   tt.join
// CHECK:       tt.return
tt.func public @not_every_other_element(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %u: !tt.ptr<bf16>, %n: i32) {
  %two = arith.constant dense<2> : tensor<64xi32>
  %one = arith.constant dense<1> : tensor<64xi32>
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %size = tt.splat %n : i32 -> tensor<64xi32>
  %inside = arith.cmpi slt, %range, %size : tensor<64xi32>
  %other = arith.cmpi ult, %range, %size : tensor<64xi32>
  %even = arith.muli %range, %two : tensor<64xi32>
  %odd = arith.addi %even, %one : tensor<64xi32>
  %next = arith.addi %range, %one : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %us = tt.splat %u : !tt.ptr<bf16> -> tensor<64x!tt.ptr<bf16>>
  %o0 = tt.addptr %ps, %range : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %o1 = tt.addptr %ps, %next : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %p0 = tt.addptr %ps, %even : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %p1 = tt.addptr %ps, %odd : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %u0 = tt.addptr %us, %even : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %u1 = tt.addptr %us, %odd : tensor<64x!tt.ptr<bf16>>, tensor<64xi32>
  %a0 = tt.load %o0 : tensor<64x!tt.ptr<bf16>>
  %a1 = tt.load %o1 : tensor<64x!tt.ptr<bf16>>
  %b0 = tt.load %u0 : tensor<64x!tt.ptr<bf16>>
  %b1 = tt.load %u1 : tensor<64x!tt.ptr<bf16>>
  %c0 = tt.load %p0, %inside : tensor<64x!tt.ptr<bf16>>
  %c1 = tt.load %p1, %other : tensor<64x!tt.ptr<bf16>>
  %d0 = tt.load %p0 : tensor<64x!tt.ptr<bf16>>
  tt.store %p1, %a0 : tensor<64x!tt.ptr<bf16>>
  %d1 = tt.load %p1 : tensor<64x!tt.ptr<bf16>>
  tt.store %p0, %a1 : tensor<64x!tt.ptr<bf16>>
  %sum = arith.addf %b0, %b1 : tensor<64xbf16>
  %sum1 = arith.addf %c0, %c1 : tensor<64xbf16>
  %sum2 = arith.addf %d0, %d1 : tensor<64xbf16>
  tt.store %u0, %sum : tensor<64x!tt.ptr<bf16>>
  tt.store %u0, %sum1 : tensor<64x!tt.ptr<bf16>>
  tt.store %u0, %sum2 : tensor<64x!tt.ptr<bf16>>
  tt.return
}
