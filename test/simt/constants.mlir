// Constants whose elements differ, from TTIR.
// RUN: %ttsim %s --quiet
// RUN: sed 's/7, 11, 13/7, 11, 14/' %s > %t.mlir
// RUN: not %ttsim %t.mlir --quiet 2>&1 | FileCheck %s
// CHECK: wrong element

tt.func public @k() {
  %primes = arith.constant dense<[2, 3, 5, 7, 11, 13, 17, 19]> : tensor<8xi32>
  %signs = arith.constant dense<[1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0, -1.0]> : tensor<8xf32>
  %odd = arith.constant dense<[[false, true, false, true], [false, true, false, true]]> : tensor<2x4xi1>
  %i = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  // sum of p(i) times i + 1: 2 + 6 + 15 + 28 + 55 + 78 + 119 + 152
  %one = arith.constant dense<1> : tensor<8xi32>
  %n = arith.addi %i, %one : tensor<8xi32>
  %weighted = arith.muli %primes, %n : tensor<8xi32>
  %sum = "tt.reduce"(%weighted) <{axis = 0 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tt.reduce.return %c : i32
  }) : (tensor<8xi32>) -> i32
  %want = arith.constant 455 : i32
  %ok = arith.cmpi eq, %sum, %want : i32
  tt.assert %ok, "wrong element" : i1
  %bit = arith.andi %i, %one : tensor<8xi32>
  %is_odd = arith.cmpi eq, %bit, %one : tensor<8xi32>
  %zero = arith.constant dense<0.0> : tensor<8xf32>
  %negative = arith.cmpf olt, %signs, %zero : tensor<8xf32>
  %flat = tt.reshape %odd : tensor<2x4xi1> -> tensor<8xi1>
  %same = arith.cmpi eq, %negative, %is_odd : tensor<8xi1>
  tt.assert %same, "wrong element" : tensor<8xi1>
  %also = arith.cmpi eq, %flat, %is_odd : tensor<8xi1>
  tt.assert %also, "wrong element" : tensor<8xi1>
  tt.return
}
