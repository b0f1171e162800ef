// RUN: %ttc %s --target cuda:90 --num-warps 1 --emit llvmir --no-line-info -o - | FileCheck %s

// A number is tested three times. Where the first test fails the others do, and nothing of what is computed for them runs: its branch goes
// where the results are stored.
// CHECK-LABEL: define ptx_kernel void @tests_of_one_number(
// CHECK: %[[FIRST:.*]] = icmp sgt i32 %{{.*}}, 0
// CHECK: br i1 %[[FIRST]], label %{{.*}}, label %[[END:[^ ,]+]]
// CHECK: br i1 %{{.*}}, label %[[END]], label
// CHECK: [[END]]:
// CHECK: phi i32 {{.*}}, {{.*}}, {{.*}} ]
// CHECK: store
tt.func public @tests_of_one_number(%out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %r: i32) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %square = arith.muli %range, %range : tensor<32xi32>
  %cube = arith.muli %square, %range : tensor<32xi32>
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
    %sum = arith.xori %one, %cube : tensor<32xi32>
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
  tt.store %at, %three : tensor<32x!tt.ptr<i32>>
  tt.return
}
