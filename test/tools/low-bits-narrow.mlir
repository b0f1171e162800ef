// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --emit ptx -o - | FileCheck %s

// Numbers of 8 bits are paired after their bits were seen to come from words.
// CHECK-LABEL: .entry pairs
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global
tt.func public @pairs(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %from = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %at = tt.addptr %from, %r : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %word = tt.load %at : tensor<512x!tt.ptr<i32>>
  %other_from = tt.splat %q : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %other_at = tt.addptr %other_from, %r : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %other_word = tt.load %other_at : tensor<512x!tt.ptr<i32>>
  %one = arith.constant dense<1> : tensor<512xi32>
  %factor = arith.constant dense<56> : tensor<512xi32>
  %bit = arith.andi %word, %one : tensor<512xi32>
  %product = arith.muli %bit, %factor : tensor<512xi32>
  %byte = arith.trunci %product : tensor<512xi32> to tensor<512xi8>
  %other_bit = arith.andi %other_word, %one : tensor<512xi32>
  %other_product = arith.muli %other_bit, %factor : tensor<512xi32>
  %other_byte = arith.trunci %other_product : tensor<512xi32> to tensor<512xi8>
  %both = tt.join %byte, %other_byte : tensor<512xi8> -> tensor<512x2xi8>
  %bytes = tt.reshape %both : tensor<512x2xi8> -> tensor<1024xi8>
  %three = arith.constant dense<3> : tensor<1024xi8>
  %sum = arith.addi %bytes, %three : tensor<1024xi8>
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %to = tt.splat %o : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %there = tt.addptr %to, %i : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  tt.store %there, %sum : tensor<1024x!tt.ptr<i8>>
  tt.return
}
