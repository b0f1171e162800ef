// RUN: %ttopt %s --allow-unregistered-dialect --triton-known-comparisons --cse | FileCheck %s

// Columns of tiles that fit exactly: the mask goes, and what stands in for masked elements.
// CHECK-LABEL: @columns
// CHECK-NOT: arith.cmpi
// CHECK: tt.load %{{[^,]*}} : tensor<64x!tt.ptr<f32>>
// CHECK-NOT: arith.cmpi
// CHECK: tt.store %{{[^,]*}}, %{{[^,]*}} : tensor<64x!tt.ptr<f32>>
tt.func public @columns(%p: !tt.ptr<f32>) {
  %c2 = arith.constant 2 : i32
  %c64 = arith.constant 64 : i32
  %all = arith.constant dense<128> : tensor<64xi32>
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %pid = tt.get_program_id x : i32
  %half = arith.remsi %pid, %c2 : i32
  %first = arith.muli %half, %c64 : i32
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %firsts = tt.splat %first : i32 -> tensor<64xi32>
  %at = arith.addi %firsts, %r : tensor<64xi32>
  %mask = arith.cmpi slt, %at, %all : tensor<64xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %q = tt.addptr %ps, %at : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %x = tt.load %q, %mask, %zero : tensor<64x!tt.ptr<f32>>
  tt.store %q, %x, %mask : tensor<64x!tt.ptr<f32>>
  tt.return
}

// Elements of a loop whose bounds are constants, of one that begins at zero, and what an iter_arg counts.
// CHECK-LABEL: @loops
// CHECK: scf.for
// CHECK-NOT: arith.cmpi
// CHECK: "fits"(%true
// CHECK-NEXT: "natural"(%true
// CHECK-NEXT: "counted"(%true
// One more would not.
// CHECK: %[[LAST:.*]] = arith.cmpi slt, %{{.*}}, %c127
// CHECK: "may"(%[[LAST]])
tt.func public @loops(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c63 = arith.constant 63 : i32
  %c64 = arith.constant 64 : i32
  %c127 = arith.constant 127 : i32
  %c128 = arith.constant 128 : i32
  scf.for %j = %c0 to %n step %c1 : i32 {
    %last = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %c63) -> (i32) : i32 {
      %first = arith.muli %i, %c64 : i32
      %at = arith.addi %first, %c63 : i32
      %fits = arith.cmpi slt, %at, %c128 : i32
      "fits"(%fits) : (i1) -> ()
      %natural = arith.cmpi sge, %j, %c0 : i32
      "natural"(%natural) : (i1) -> ()
      %counted = arith.cmpi ule, %sum, %c127 : i32
      "counted"(%counted) : (i1) -> ()
      %may = arith.cmpi slt, %at, %c127 : i32
      "may"(%may) : (i1) -> ()
      %next = arith.addi %sum, %c64 : i32
      scf.yield %next : i32
    }
    scf.yield
  }
  tt.return
}

// What wraps around, is unknown, or is true of some numbers alone stays.
// CHECK-LABEL: @unknown
// CHECK-COUNT-6: arith.cmpi
// CHECK: tt.return
tt.func public @unknown(%n: i32, %m: i64) {
  %c0 = arith.constant 0 : i32
  %c7 = arith.constant 7 : i32
  %c64 = arith.constant 64 : i32
  %c0_i64 = arith.constant 0 : i64
  %pid = tt.get_program_id x : i32
  %scaled = arith.muli %pid, %c64 : i32
  %wraps = arith.cmpi sge, %scaled, %c0 : i32
  %rest = arith.remsi %n, %c7 : i32
  %negative = arith.cmpi sge, %rest, %c0 : i32
  %unsigned = arith.cmpi ult, %rest, %c7 : i32
  %argument = arith.cmpi slt, %n, %c64 : i32
  %wide = arith.cmpi sge, %m, %c0_i64 : i64
  "uses"(%wraps, %negative, %unsigned, %argument, %wide) : (i1, i1, i1, i1, i1) -> ()
  // Numbers that are counted as unsigned may be read as negative.
  scf.for unsigned %i = %c0 to %n step %c7 : i32 {
    %signed = arith.cmpi sge, %i, %c0 : i32
    "uses"(%signed) : (i1) -> ()
  }
  tt.return
}

// CHECK-LABEL: @arithmetic
// CHECK-NOT: arith.cmpi
// CHECK: "uses"(%true, %true, %true, %false, %true, %true, %false, %true)
tt.func public @arithmetic(%n: i32) {
  %c0 = arith.constant 0 : i32
  %c3 = arith.constant 3 : i32
  %c4 = arith.constant 4 : i32
  %c7 = arith.constant 7 : i32
  %c8 = arith.constant 8 : i32
  %c-7 = arith.constant -7 : i32
  %c100 = arith.constant 100 : i32
  %true = arith.constant true
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %rest = arith.remsi %n, %c8 : i32
  %above = arith.cmpi sge, %rest, %c-7 : i32
  %bits = arith.andi %n, %c7 : i32
  %low = arith.cmpi slt, %bits, %c8 : i32
  %part = arith.divsi %bits, %c3 : i32
  %third = arith.cmpi sle, %part, %c3 : i32
  %difference = arith.subi %bits, %c8 : i32
  %never = arith.cmpi sge, %difference, %c0 : i32
  %shifted = arith.shli %bits, %c3 : i32
  %small = arith.cmpi slt, %shifted, %c100 : i32
  %least = arith.minsi %n, %c7 : i32
  %bounded = arith.cmpi slt, %least, %c8 : i32
  %most = arith.maxsi %pid, %c8 : i32
  %equal = arith.cmpi eq, %most, %c4 : i32
  %some = arith.cmpi ne, %programs, %c0 : i32
  "uses"(%above, %low, %third, %never, %small, %bounded, %equal, %some) : (i1, i1, i1, i1, i1, i1, i1, i1) -> ()
  tt.return
}

// Wider integers of narrow ones that nothing is known of.
// CHECK-LABEL: @wider
// CHECK: %[[MAY:.*]] = arith.cmpi slt, %{{.*}}, %c255
// CHECK-NOT: arith.cmpi
// CHECK: "uses"(%true, %true, %false, %true, %[[MAY]])
tt.func public @wider(%b: i8) {
  %c-128 = arith.constant -128 : i32
  %c0 = arith.constant 0 : i32
  %c127 = arith.constant 127 : i32
  %c255 = arith.constant 255 : i32
  %c256 = arith.constant 256 : i32
  %natural = arith.extui %b : i8 to i32
  %signed = arith.extsi %b : i8 to i32
  %below = arith.cmpi slt, %natural, %c256 : i32
  %not_negative = arith.cmpi sge, %natural, %c0 : i32
  %above = arith.cmpi sgt, %signed, %c127 : i32
  %least = arith.cmpi sge, %signed, %c-128 : i32
  %may = arith.cmpi slt, %natural, %c255 : i32
  "uses"(%below, %not_negative, %above, %least, %may) : (i1, i1, i1, i1, i1) -> ()
  tt.return
}
