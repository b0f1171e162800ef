// Numbers of 64 bits that are known to be small are divided by constants as numbers of 32 bits.
// RUN: %ttc %s --emit llvmir -o - | FileCheck %s

// CHECK: sdiv i64 %{{.*}}, 86400000000
// CHECK-NOT: sdiv i64
// CHECK: {{[su]}}div{{.*}} i32 %{{.*}}, 7
tt.func public @days(%in: !tt.ptr<i64>, %out: !tt.ptr<i64>) {
  %microseconds = arith.constant 86400000000 : i64
  %c3 = arith.constant 3 : i64
  %c7 = arith.constant 7 : i64
  %us = tt.load %in : !tt.ptr<i64>
  %days = arith.divsi %us, %microseconds : i64
  %thursday = arith.addi %days, %c3 : i64
  %weeks = arith.divsi %thursday, %c7 : i64
  tt.store %out, %weeks : !tt.ptr<i64>
  tt.return
}
