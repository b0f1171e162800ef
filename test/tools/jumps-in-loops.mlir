// RUN: %ttc %s --target cuda:90 --num-warps 1 --emit llvmir --no-line-info -o - | FileCheck %s

// A body that tests a number twice stays as it is, though the kernel has such tests outside of the loop, too: with a second way through it
// ptxas would not have the loads of several iterations under way.
// CHECK-LABEL: define ptx_kernel void @tests_in_a_loop(
// CHECK: br i1 %{{.*}}, label %{{.*}}, label %[[END:.thread[^ ,]*]]
// CHECK: br i1 %{{.*}}, label %[[END]], label
// CHECK: [[END]]:
// CHECK-NOT: .thread{{[2-9]}}
// CHECK: ret void
tt.func public @tests_in_a_loop(%in: !tt.ptr<i32>, %out: !tt.ptr<i32>, %r: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %square = arith.muli %range, %range : tensor<32xi32>
  %pointers = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %at = tt.addptr %pointers, %range : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  %first = arith.cmpi sge, %r, %c1 : i32
  %one = scf.if %first -> (tensor<32xi32>) {
    %sum = arith.xori %range, %square : tensor<32xi32>
    scf.yield %sum : tensor<32xi32>
  } else {
    scf.yield %range : tensor<32xi32>
  }
  %second = arith.cmpi sge, %r, %c2 : i32
  %two = scf.if %second -> (tensor<32xi32>) {
    %sum = arith.addi %one, %square : tensor<32xi32>
    scf.yield %sum : tensor<32xi32>
  } else {
    scf.yield %one : tensor<32xi32>
  }
  %third = arith.cmpi sge, %r, %c3 : i32
  %three = scf.if %third -> (tensor<32xi32>) {
    %sum = arith.muli %two, %square : tensor<32xi32>
    scf.yield %sum : tensor<32xi32>
  } else {
    scf.yield %two : tensor<32xi32>
  }
  %all = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %three) -> (tensor<32xi32>) : i32 {
    %from = tt.addptr %in, %i : !tt.ptr<i32>, i32
    %x = tt.load %from : !tt.ptr<i32>
    %xs = tt.splat %x : i32 -> tensor<32xi32>
    %is_positive = arith.cmpi sge, %x, %c1 : i32
    %more = scf.if %is_positive -> (tensor<32xi32>) {
      %y = arith.xori %sum, %xs : tensor<32xi32>
      scf.yield %y : tensor<32xi32>
    } else {
      scf.yield %sum : tensor<32xi32>
    }
    %is_two = arith.cmpi sge, %x, %c2 : i32
    %most = scf.if %is_two -> (tensor<32xi32>) {
      %y = arith.muli %more, %square : tensor<32xi32>
      scf.yield %y : tensor<32xi32>
    } else {
      scf.yield %more : tensor<32xi32>
    }
    scf.yield %most : tensor<32xi32>
  }
  tt.store %at, %all : tensor<32x!tt.ptr<i32>>
  tt.return
}
