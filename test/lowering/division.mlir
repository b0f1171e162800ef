// RUN: %ttopt %s --split-input-file --verify-diagnostics --convert-triton-gpu-to-llvm | FileCheck %s

// Quotients round towards zero; those that round otherwise correct them by the remainder.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @floor(
// CHECK-SAME:    %[[A:.*]]: i32, %[[B:.*]]: i32)
// CHECK:         %[[Q:.*]] = llvm.sdiv %[[A]], %[[B]]
// CHECK:         %[[R:.*]] = llvm.srem %[[A]], %[[B]]
// CHECK:         %[[ANY:.*]] = llvm.icmp "ne" %[[R]]
// CHECK:         %[[SIGNS:.*]] = llvm.xor %[[R]], %[[B]]
// CHECK:         %[[DIFFER:.*]] = llvm.icmp "slt" %[[SIGNS]]
// CHECK:         %[[DOWN:.*]] = llvm.and %[[ANY]], %[[DIFFER]]
// CHECK:         %[[ONE:.*]] = llvm.zext %[[DOWN]] : i1 to i32
// CHECK:         llvm.sub %[[Q]], %[[ONE]]
tt.func private @floor(%a: i32, %b: i32) -> i32 {
  %0 = arith.floordivsi %a, %b : i32
  tt.return %0 : i32
}

// CHECK-LABEL: llvm.func internal @ceil(
// CHECK:         llvm.icmp "sge"
// CHECK:         llvm.add
tt.func private @ceil(%a: i64, %b: i64) -> i64 {
  %0 = arith.ceildivsi %a, %b : i64
  tt.return %0 : i64
}

// CHECK-LABEL: llvm.func internal @ceil_unsigned(
// CHECK:         %[[Q:.*]] = llvm.udiv
// CHECK:         llvm.urem
// CHECK:         %[[ANY:.*]] = llvm.icmp "ne"
// CHECK-NEXT:    %[[ONE:.*]] = llvm.zext %[[ANY]]
// CHECK-NEXT:    llvm.add %[[Q]], %[[ONE]]
tt.func private @ceil_unsigned(%a: i32, %b: i32) -> i32 {
  %0 = arith.ceildivui %a, %b : i32
  tt.return %0 : i32
}

// CHECK-LABEL: llvm.func internal @zeros(
// CHECK:         "llvm.intr.ctlz"(%{{.*}}) <{is_zero_poison = false}>
// CHECK:         "llvm.intr.cttz"(%{{.*}}) <{is_zero_poison = false}>
tt.func private @zeros(%a: i32) -> (i32, i32) {
  %0 = math.ctlz %a : i32
  %1 = math.cttz %a : i32
  tt.return %0, %1 : i32, i32
}

// CHECK-LABEL: llvm.func internal @library(
// CHECK:         llvm.call @__nv_atanhf
// CHECK:         llvm.call @__nv_erfc(
tt.func private @library(%a: f32, %b: f64) -> (f32, f64) {
  %0 = math.atanh %a : f32
  %1 = math.erfc %b : f64
  tt.return %0, %1 : f32, f64
}

// Rounding modes of narrowing are obeyed.
// CHECK-LABEL: llvm.func internal @rounding(
// CHECK:         cvt.rz.f16.f32
// CHECK:         llvm.fptrunc
tt.func private @rounding(%a: f32) -> (f16, f16) {
  %0 = arith.truncf %a toward_zero : f32 to f16
  %1 = arith.truncf %a to_nearest_even : f32 to f16
  tt.return %0, %1 : f16, f16
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @upward(%a: f32) -> f16 {
  // expected-error@+1 {{rounds neither to the nearest even nor toward zero}}
  %0 = arith.truncf %a upward : f32 to f16
  tt.return %0 : f16
}
}
