// A loop that asks for one stage and of which many programs share a multiprocessor has none: torch's products of blocks of 16 took 1.4 times
// as long with two. One that asks for two has them, and reads no operands ahead.
// RUN: %ttc %s --num-stages 1 --explain --emit ttgir -o /dev/null 2>&1 | FileCheck %s --check-prefix=ONE
// ONE: has no software pipeline: it asks for one stage, and the programs that fit hide each other's waits
// RUN: %ttc %s --num-stages 2 --explain --emit ttgir -o /dev/null 2>&1 | FileCheck %s --check-prefix=TWO
// TWO: reads no operands an iteration ahead: of the programs that fit one multiplies while another one waits
// TWO: has a software pipeline of
// Where there is no wgmma, operands are read ahead.
// RUN: %ttc %s --target cuda:80 --num-stages 3 --explain --emit ttgir -o /dev/null 2>&1 | FileCheck %s --check-prefix=AMPERE
// AMPERE: has a software pipeline of 4 stages, of which one reads operands ahead

tt.func public @blocks(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %size = arith.constant dense<32> : tensor<32x1xi32>
  %next = arith.constant dense<1024> : tensor<32x32xi32>
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %at = arith.muli %rows, %size : tensor<32x1xi32>
  %at2 = tt.broadcast %at : tensor<32x1xi32> -> tensor<32x32xi32>
  %columns2 = tt.broadcast %columns : tensor<1x32xi32> -> tensor<32x32xi32>
  %offsets = arith.addi %at2, %columns2 : tensor<32x32xi32>
  %as = tt.splat %a : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
  %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
  %pa = tt.addptr %as, %offsets : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
  %pb = tt.addptr %bs, %offsets : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
  %sum:3 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %qa = %pa, %qb = %pb) -> (tensor<32x32xf32>, tensor<32x32x!tt.ptr<f16>>, tensor<32x32x!tt.ptr<f16>>) : i32 {
    %x = tt.load %qa : tensor<32x32x!tt.ptr<f16>>
    %y = tt.load %qb : tensor<32x32x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %c : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
    %na = tt.addptr %qa, %next : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %nb = tt.addptr %qb, %next : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    scf.yield %d, %na, %nb : tensor<32x32xf32>, tensor<32x32x!tt.ptr<f16>>, tensor<32x32x!tt.ptr<f16>>
  }
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<32x32x!tt.ptr<f32>>
  %po = tt.addptr %os, %offsets : tensor<32x32x!tt.ptr<f32>>, tensor<32x32xi32>
  tt.store %po, %sum#0 : tensor<32x32x!tt.ptr<f32>>
  tt.return
}
