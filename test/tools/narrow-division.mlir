// What is divided has 64 bits, but 32 suffice for what is known of it: the quotient of the program and a number of tiles takes
// the instructions of 32 bits. Where nothing is known, it takes those of 64.
// REQUIRES: nvptx
// RUN: split-file %s %t
// RUN: %ttc %t/known.ttir --target cuda:90 --emit ptx | FileCheck %t/known.ttir
// RUN: %ttc %t/unknown.ttir --target cuda:90 --emit ptx | FileCheck %t/unknown.ttir

//--- known.ttir
// CHECK:     .entry known(
// CHECK-NOT: {{div|rem}}.{{[su]}}64
// CHECK:     div.{{[su]}}32
// CHECK-NOT: {{div|rem}}.{{[su]}}64
tt.func public @known(%out: !tt.ptr<i32>, %n: i32) {
  %p = tt.get_program_id x : i32
  %wide = arith.extsi %p : i32 to i64
  %by = arith.extsi %n : i32 to i64
  %row = arith.divsi %wide, %by : i64
  %column = arith.remsi %wide, %by : i64
  %a = arith.trunci %row : i64 to i32
  %b = arith.trunci %column : i64 to i32
  %at = tt.addptr %out, %a : !tt.ptr<i32>, i32
  tt.store %at, %b : !tt.ptr<i32>
  tt.return
}

//--- unknown.ttir
// CHECK: .entry unknown(
// CHECK: div.s64
tt.func public @unknown(%out: !tt.ptr<i64>, %a: i64, %b: i64) {
  %q = arith.divsi %a, %b : i64
  tt.store %out, %q : !tt.ptr<i64>
  tt.return
}
