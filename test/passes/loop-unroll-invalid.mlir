// RUN: %ttopt %s --split-input-file --verify-diagnostics --triton-loop-unroll

tt.func @too_often(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error@+1 {{cannot be unrolled 100000 times, the most is 1024}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = 100000 : i32}
  tt.return
}

// -----

tt.func @no_number(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  // expected-error@+1 {{expects an integer as "tt.loop_unroll_factor"}}
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  } {tt.loop_unroll_factor = "twice"}
  tt.return
}
