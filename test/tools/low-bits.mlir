// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:90 --emit ptx -o - | FileCheck %s

// The lowest bit of each word of a vector: LLVM loads it as a vector of bits, of which its code generator loads bytes.
// CHECK-LABEL: .entry lowest
// CHECK-COUNT-2: ld.global.v4.b32
// CHECK-NOT: ld.global
// CHECK: st.global.v4.b32
tt.func public @lowest(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %from = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %at = tt.addptr %from, %r : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  %word = tt.load %at : tensor<1024x!tt.ptr<i32>>
  %one = arith.constant dense<1> : tensor<1024xi32>
  %bit = arith.andi %word, %one : tensor<1024xi32>
  %factor = arith.constant dense<56> : tensor<1024xi32>
  %product = arith.muli %bit, %factor : tensor<1024xi32>
  %to = tt.splat %o : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %there = tt.addptr %to, %r : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  tt.store %there, %product : tensor<1024x!tt.ptr<i32>>
  tt.return
}
