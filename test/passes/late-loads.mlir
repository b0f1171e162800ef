// RUN: %ttc %s --target cuda:90 --emit ttgir -o - | FileCheck %s

// Of an operand of a dot that no matrix instruction does each of four warps' threads has 128 numbers. They have room for a quarter of them
// beside what uses them: the operand is loaded once, and waits in shared memory.
// CHECK-NOT:  tt.load {{.*}}#ttg.dot_op
// CHECK:      tt.load {{.*}} : tensor<32x32x!tt.ptr<f32>, #blocked
// CHECK-NOT:  tt.load {{.*}}#ttg.dot_op
// CHECK:      tt.dot
tt.func public @corner(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %rows = arith.constant dense<32> : tensor<32x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %col = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %row = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %first = arith.muli %col, %rows : tensor<32x1xi32>
  %x0 = tt.broadcast %first : tensor<32x1xi32> -> tensor<32x32xi32>
  %x1 = tt.broadcast %row : tensor<1x32xi32> -> tensor<32x32xi32>
  %at = arith.addi %x0, %x1 : tensor<32x32xi32>
  %bs = tt.splat %b : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %cs = tt.splat %c : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %bp = tt.addptr %bs, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %cp = tt.addptr %cs, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %y = tt.load %bp : tensor<32x32x!tt.ptr<f32>>
  %as = tt.splat %a : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %ap = tt.addptr %as, %at : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  %x = tt.load %ap : tensor<32x32x!tt.ptr<f32>>
  %e = math.exp %y : tensor<32x32xf32>
  %sum = tt.dot %x, %e, %zero, inputPrecision = ieee : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  tt.store %cp, %sum : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
