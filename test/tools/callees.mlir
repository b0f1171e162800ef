// A function that returns in several places is none that MLIR puts into a loop of structured control flow: LLVM inlines it. One
// whose author asks for calls is called.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 | FileCheck %s

// CHECK-NOT:   .func {{.*}}early
// CHECK:       .func {{.*}}asked
// CHECK-LABEL: .entry callers(
// CHECK-NOT:   early
// CHECK:       call.uni {{.*}}asked
// CHECK-NOT:   early
// CHECK:       ret;
tt.func public @callers(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %at = tt.addptr %p, %i : !tt.ptr<f32>, i32
    %x = tt.load %at : !tt.ptr<f32>
    %y = tt.call @early(%x) : (f32) -> f32
    %z = tt.call @asked(%y) : (f32) -> f32
    tt.store %at, %z : !tt.ptr<f32>
  }
  tt.return
}

tt.func private @early(%x: f32) -> f32 attributes {noinline = false} {
  %zero = arith.constant 0.0 : f32
  %one = arith.constant 1.0 : f32
  %is = arith.cmpf olt, %x, %zero : f32
  cf.cond_br %is, ^negative, ^other
^negative:
  tt.return %one : f32
^other:
  %r = arith.mulf %x, %x : f32
  tt.return %r : f32
}

tt.func private @asked(%x: f32) -> f32 attributes {noinline = true} {
  %r = arith.addf %x, %x : f32
  tt.return %r : f32
}
