// RUN: %ttc %s --target cuda:90 --num-warps 1 --emit llvmir --no-line-info -o - | FileCheck %s

// Lanes exchange values between tests of one number. Two ways there would be two instructions, in which the lanes of a warp do not meet, so
// there is one.
// CHECK-LABEL: define ptx_kernel void @exchange_between_tests(
// CHECK-COUNT-1: shfl.sync.bfly.b32
// CHECK-NOT: shfl.sync.bfly.b32
// CHECK: ret void
tt.func public @exchange_between_tests(%out: !tt.ptr<i32>, %places: !tt.ptr<i32>, %r: i32) {
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %range = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32>
  %pointers = tt.splat %out : !tt.ptr<i32> -> tensor<32x!tt.ptr<i32>>
  %at = tt.addptr %pointers, %range : tensor<32x!tt.ptr<i32>>, tensor<32xi32>
  %first = arith.cmpi sge, %r, %c1 : i32
  scf.if %first {
    tt.store %places, %r : !tt.ptr<i32>
  }
  %other = tt.elementwise_inline_asm "shfl.sync.bfly.b32 $0, $1, 1, 31, -1;" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %range : tensor<32xi32> -> tensor<32xi32>
  %second = arith.cmpi sge, %r, %c2 : i32
  scf.if %second {
    tt.store %places, %c2 : !tt.ptr<i32>
  }
  tt.store %at, %other : tensor<32x!tt.ptr<i32>>
  tt.return
}
