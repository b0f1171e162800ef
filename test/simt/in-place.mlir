// A scalar that all threads load is overwritten by one of them, and a tensor by other threads than those that loaded it: the
// simulator finds no race, and nobody sees what is new.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; n.save('%t.want.npy', n.full(256, 7, 'i4')); n.save('%t.x.npy', n.full(1, 7, 'i4')); n.save('%t.next.npy', n.full(1, 8, 'i4'))"
// RUN: %ttsim %s --target cuda:90 -q --arg x=%t.x.npy --arg y=i32[256] --compare x=%t.next.npy --compare y=%t.want.npy
// RUN: %ttsim %s --target hip:gfx942 -q --arg x=%t.x.npy --arg y=i32[256] --compare x=%t.next.npy --compare y=%t.want.npy

tt.func public @k(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  %one = arith.constant 1 : i32
  %old = tt.load %x : !tt.ptr<i32>
  %next = arith.addi %old, %one : i32
  tt.store %x, %next : !tt.ptr<i32>
  %i = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %base = tt.splat %y : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>>
  %p = tt.addptr %base, %i : tensor<256x!tt.ptr<i32>>, tensor<256xi32>
  %v = tt.splat %old : i32 -> tensor<256xi32>
  tt.store %p, %v : tensor<256x!tt.ptr<i32>>
  tt.return
}
