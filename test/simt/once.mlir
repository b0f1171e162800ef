// All threads must go the same way where they wait for each other: a flag that one thread stores is loaded by that thread alone,
// which tells the others, by a load, by a callee, and by assembly of two results.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; x = n.arange(1024, dtype='i4'); n.save('%t.x.npy', x); n.save('%t.zero.npy', n.zeros(3, 'i4')); n.save('%t.ones.npy', n.array([1, 1, 0], 'i4')); n.save('%t.y.npy', n.full(3, x.sum(), 'i4'))"
// RUN: %ttsim %s --target cuda:90 -q --arg f=%t.zero.npy --arg x=%t.x.npy --arg y=i32[3] --compare f=%t.ones.npy --compare y=%t.y.npy
// RUN: %ttsim %s --target cuda:80 --num-ctas 1 --num-warps 8 -q --arg f=%t.zero.npy --arg x=%t.x.npy --arg y=i32[3] --compare f=%t.ones.npy --compare y=%t.y.npy

tt.func private @flag(%f: !tt.ptr<i32>) -> i32 attributes {noinline = true} {
  %0 = tt.load %f {isVolatile = true} : !tt.ptr<i32>
  tt.return %0 : i32
}

tt.func public @k(%f: !tt.ptr<i32>, %x: !tt.ptr<i32>, %y: !tt.ptr<i32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %base = tt.splat %x : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %p = tt.addptr %base, %i : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  // A load.
  %n = tt.load %f : !tt.ptr<i32>
  %first = arith.cmpi eq, %n, %c0 : i32
  scf.if %first {
    tt.store %f, %c1 : !tt.ptr<i32>
    %v = tt.load %p : tensor<1024x!tt.ptr<i32>>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<1024xi32>) -> i32
    tt.store %y, %s : !tt.ptr<i32>
  }
  // A callee.
  %f1 = tt.addptr %f, %c1 : !tt.ptr<i32>, i32
  %y1 = tt.addptr %y, %c1 : !tt.ptr<i32>, i32
  %m = tt.call @flag(%f1) : (!tt.ptr<i32>) -> i32
  %second = arith.cmpi eq, %m, %c0 : i32
  scf.if %second {
    tt.store %f1, %c1 : !tt.ptr<i32>
    %v = tt.load %p : tensor<1024x!tt.ptr<i32>>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<1024xi32>) -> i32
    tt.store %y1, %s : !tt.ptr<i32>
  }
  // Assembly that says something else in each warp.
  %y2 = tt.addptr %y, %c2 : !tt.ptr<i32>, i32
  %w:2 = tt.elementwise_inline_asm "{ .reg .u32 t; mov.u32 t, %tid.x; shr.u32 $0, t, 5; mul.lo.u32 $1, t, $2; }" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = false} %c1 : i32 -> i32, i32
  %sum = arith.addi %w#0, %w#1 : i32
  %third = arith.cmpi eq, %sum, %c0 : i32
  scf.if %third {
    %v = tt.load %p : tensor<1024x!tt.ptr<i32>>
    %s = "tt.reduce"(%v) <{axis = 0 : i32}> ({
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tt.reduce.return %c : i32
    }) : (tensor<1024xi32>) -> i32
    tt.store %y2, %s : !tt.ptr<i32>
  }
  tt.return
}
