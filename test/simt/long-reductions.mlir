// Reductions of 64-bit integers by instructions that combine 32 bits of all lanes of a warp: sums that carry from part to part, and
// minima and maxima of numbers most of which have the same upper half.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; r = n.random.default_rng(7); x = r.integers(-2**63, 2**63, (16, 256)); x[4:] = x[4:, :1] & -2**32 | r.integers(0, 2**32, (12, 256)); x[8, 1:] = -1; u = x.view('u8'); y = n.stack([x.sum(1), n.bitwise_and.reduce(x, 1), n.bitwise_or.reduce(x, 1), n.bitwise_xor.reduce(x, 1), x.min(1), x.max(1), u.min(1).view('i8'), u.max(1).view('i8')]); n.save('%t.x.npy', x); n.save('%t.y.npy', y)"
// RUN: %ttsim %s --target cuda:90 -q --arg x=%t.x.npy --arg y=i64[8,16] --compare y=%t.y.npy
// RUN: %ttsim %s --target cuda:80 --num-warps 1 -q --arg x=%t.x.npy --arg y=i64[8,16] --compare y=%t.y.npy
// RUN: %ttsim %s --target cuda:89 --num-warps 8 -q --arg x=%t.x.npy --arg y=i64[8,16] --compare y=%t.y.npy
// RUN: %ttsim %s --target hip:gfx942 -q --arg x=%t.x.npy --arg y=i64[8,16] --compare y=%t.y.npy
// RUN: %ttc %s --target cuda:90 --emit ptx -o - | FileCheck %s
// CHECK-NOT: shfl.sync.bfly.b32 {{.*}}, 16, 31
// CHECK:     redux.sync

tt.func public @k(%x: !tt.ptr<i64>, %y: !tt.ptr<i64>) {
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %j = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %columns = tt.expand_dims %j {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %width = arith.constant dense<256> : tensor<16x1xi32>
  %first = arith.muli %rows, %width : tensor<16x1xi32>
  %r = tt.broadcast %first : tensor<16x1xi32> -> tensor<16x256xi32>
  %c = tt.broadcast %columns : tensor<1x256xi32> -> tensor<16x256xi32>
  %o = arith.addi %r, %c : tensor<16x256xi32>
  %base = tt.splat %x : !tt.ptr<i64> -> tensor<16x256x!tt.ptr<i64>>
  %p = tt.addptr %base, %o : tensor<16x256x!tt.ptr<i64>>, tensor<16x256xi32>
  %v = tt.load %p : tensor<16x256x!tt.ptr<i64>>
  %sum = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.addi %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o0 = arith.constant 0 : i32
  %y0 = tt.addptr %y, %o0 : !tt.ptr<i64>, i32
  %to0 = tt.splat %y0 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q0 = tt.addptr %to0, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q0, %sum : tensor<16x!tt.ptr<i64>>
  %and = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.andi %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o1 = arith.constant 16 : i32
  %y1 = tt.addptr %y, %o1 : !tt.ptr<i64>, i32
  %to1 = tt.splat %y1 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q1 = tt.addptr %to1, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q1, %and : tensor<16x!tt.ptr<i64>>
  %or = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.ori %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o2 = arith.constant 32 : i32
  %y2 = tt.addptr %y, %o2 : !tt.ptr<i64>, i32
  %to2 = tt.splat %y2 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q2 = tt.addptr %to2, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q2, %or : tensor<16x!tt.ptr<i64>>
  %xor = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.xori %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o3 = arith.constant 48 : i32
  %y3 = tt.addptr %y, %o3 : !tt.ptr<i64>, i32
  %to3 = tt.splat %y3 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q3 = tt.addptr %to3, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q3, %xor : tensor<16x!tt.ptr<i64>>
  %smin = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.minsi %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o4 = arith.constant 64 : i32
  %y4 = tt.addptr %y, %o4 : !tt.ptr<i64>, i32
  %to4 = tt.splat %y4 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q4 = tt.addptr %to4, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q4, %smin : tensor<16x!tt.ptr<i64>>
  %smax = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.maxsi %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o5 = arith.constant 80 : i32
  %y5 = tt.addptr %y, %o5 : !tt.ptr<i64>, i32
  %to5 = tt.splat %y5 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q5 = tt.addptr %to5, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q5, %smax : tensor<16x!tt.ptr<i64>>
  %umin = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.minui %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o6 = arith.constant 96 : i32
  %y6 = tt.addptr %y, %o6 : !tt.ptr<i64>, i32
  %to6 = tt.splat %y6 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q6 = tt.addptr %to6, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q6, %umin : tensor<16x!tt.ptr<i64>>
  %umax = "tt.reduce"(%v) <{axis = 1 : i32}> ({
  ^bb0(%a: i64, %b: i64):
    %s = arith.maxui %a, %b : i64
    tt.reduce.return %s : i64
  }) : (tensor<16x256xi64>) -> tensor<16xi64>
  %o7 = arith.constant 112 : i32
  %y7 = tt.addptr %y, %o7 : !tt.ptr<i64>, i32
  %to7 = tt.splat %y7 : !tt.ptr<i64> -> tensor<16x!tt.ptr<i64>>
  %q7 = tt.addptr %to7, %i : tensor<16x!tt.ptr<i64>>, tensor<16xi32>
  tt.store %q7, %umax : tensor<16x!tt.ptr<i64>>
  tt.return
}
