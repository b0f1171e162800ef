// Operations on integers, and on the bits of floats.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Bits.
// CHECK-LABEL: llvm.func internal @bits(
// CHECK:      llvm.and %arg0, %arg1 : i32
// CHECK-NEXT: llvm.xor %arg0, %arg1 : i32
// CHECK-NEXT: llvm.shl %arg0, %arg1 : i32
// CHECK-NEXT: llvm.ashr %arg0, %arg1 : i32
// CHECK-NEXT: llvm.lshr %arg0, %arg1 : i32
tt.func private @bits(%x: tensor<32xi32, #b>, %y: tensor<32xi32, #b>) -> (tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0 = arith.andi %x, %y : tensor<32xi32, #b>
  %1 = arith.xori %x, %y : tensor<32xi32, #b>
  %2 = arith.shli %x, %y : tensor<32xi32, #b>
  %3 = arith.shrsi %x, %y : tensor<32xi32, #b>
  %4 = arith.shrui %x, %y : tensor<32xi32, #b>
  tt.return %0, %1, %2, %3, %4 : tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>
}

// Quotients and remainders truncate.
// CHECK-LABEL: llvm.func internal @quotients(
// CHECK:      llvm.sdiv %arg0, %arg1 : i32
// CHECK-NEXT: llvm.udiv %arg0, %arg1 : i32
// CHECK-NEXT: llvm.srem %arg0, %arg1 : i32
// CHECK-NEXT: llvm.urem %arg0, %arg1 : i32
tt.func private @quotients(%x: tensor<32xi32, #b>, %y: tensor<32xi32, #b>) -> (tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0 = arith.divsi %x, %y : tensor<32xi32, #b>
  %1 = arith.divui %x, %y : tensor<32xi32, #b>
  %2 = arith.remsi %x, %y : tensor<32xi32, #b>
  %3 = arith.remui %x, %y : tensor<32xi32, #b>
  tt.return %0, %1, %2, %3 : tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>
}

// Minima.
// CHECK-LABEL: llvm.func internal @minima(
// CHECK:      llvm.intr.smin(%arg0, %arg1) : (i16, i16) -> i16
// CHECK-NEXT: llvm.intr.umin(%arg0, %arg1) : (i16, i16) -> i16
tt.func private @minima(%x: tensor<32xi16, #b>, %y: tensor<32xi16, #b>) -> (tensor<32xi16, #b>, tensor<32xi16, #b>) {
  %0 = arith.minsi %x, %y : tensor<32xi16, #b>
  %1 = arith.minui %x, %y : tensor<32xi16, #b>
  tt.return %0, %1 : tensor<32xi16, #b>, tensor<32xi16, #b>
}

// The smallest integer has no absolute value but itself.
// CHECK-LABEL: llvm.func internal @counts(
// CHECK:      "llvm.intr.abs"(%arg0) <{is_int_min_poison = false}>
// CHECK-NEXT: llvm.intr.ctpop(%arg0)
tt.func private @counts(%x: tensor<32xi32, #b>) -> (tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0 = math.absi %x : tensor<32xi32, #b>
  %1 = math.ctpop %x : tensor<32xi32, #b>
  tt.return %0, %1 : tensor<32xi32, #b>, tensor<32xi32, #b>
}

// The product of twice the width, in two halves.
// CHECK-LABEL: llvm.func internal @mului_extended(
// CHECK:      %[[X:.*]] = llvm.zext %arg0 : i32 to i64
// CHECK-NEXT: %[[Y:.*]] = llvm.zext %arg1 : i32 to i64
// CHECK-NEXT: %[[P:.*]] = llvm.mul %[[X]], %[[Y]] : i64
// CHECK-NEXT: llvm.trunc %[[P]] : i64 to i32
// CHECK:      %[[H:.*]] = llvm.lshr %[[P]], %{{.*}} : i64
// CHECK-NEXT: llvm.trunc %[[H]] : i64 to i32
tt.func private @mului_extended(%x: tensor<32xi32, #b>, %y: tensor<32xi32, #b>) -> (tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0, %1 = arith.mului_extended %x, %y : tensor<32xi32, #b>
  tt.return %0, %1 : tensor<32xi32, #b>, tensor<32xi32, #b>
}

// The product of twice the width, in two halves.
// CHECK-LABEL: llvm.func internal @mulsi_extended(
// CHECK:      %[[X:.*]] = llvm.sext %arg0 : i32 to i64
// CHECK-NEXT: %[[Y:.*]] = llvm.sext %arg1 : i32 to i64
// CHECK-NEXT: %[[P:.*]] = llvm.mul %[[X]], %[[Y]] : i64
// CHECK-NEXT: llvm.trunc %[[P]] : i64 to i32
// CHECK:      %[[H:.*]] = llvm.lshr %[[P]], %{{.*}} : i64
// CHECK-NEXT: llvm.trunc %[[H]] : i64 to i32
tt.func private @mulsi_extended(%x: tensor<32xi32, #b>, %y: tensor<32xi32, #b>) -> (tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0, %1 = arith.mulsi_extended %x, %y : tensor<32xi32, #b>
  tt.return %0, %1 : tensor<32xi32, #b>, tensor<32xi32, #b>
}

// The upper half alone.
// CHECK-LABEL: llvm.func internal @mulhiui(
// CHECK:      %[[X:.*]] = llvm.zext %arg0 : i32 to i64
// CHECK-NEXT: %[[Y:.*]] = llvm.zext %arg1 : i32 to i64
// CHECK-NEXT: %[[P:.*]] = llvm.mul %[[X]], %[[Y]] : i64
// CHECK:      %[[H:.*]] = llvm.lshr %[[P]], %{{.*}} : i64
// CHECK-NEXT: %[[R:.*]] = llvm.trunc %[[H]] : i64 to i32
// CHECK-NEXT: llvm.return %[[R]]
tt.func private @mulhiui(%x: tensor<32xi32, #b>, %y: tensor<32xi32, #b>) -> (tensor<32xi32, #b>) {
  %0 = tt.mulhiui %x, %y : tensor<32xi32, #b>
  tt.return %0 : tensor<32xi32, #b>
}

// To and from floats, truncating.
// CHECK-LABEL: llvm.func internal @of_floats(
// CHECK:      llvm.fptosi %arg0 : f32 to i32
// CHECK-NEXT: llvm.fptoui %arg0 : f32 to i64
// CHECK-NEXT: llvm.bitcast %arg0 : f32 to i32
// CHECK-NEXT: llvm.bitcast %arg0 : f32 to i32
tt.func private @of_floats(%x: tensor<32xf32, #b>) -> (tensor<32xi32, #b>, tensor<32xi64, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>) {
  %0 = arith.fptosi %x : tensor<32xf32, #b> to tensor<32xi32, #b>
  %1 = arith.fptoui %x : tensor<32xf32, #b> to tensor<32xi64, #b>
  %2 = arith.bitcast %x : tensor<32xf32, #b> to tensor<32xi32, #b>
  %3 = tt.bitcast %x : tensor<32xf32, #b> -> tensor<32xi32, #b>
  tt.return %0, %1, %2, %3 : tensor<32xi32, #b>, tensor<32xi64, #b>, tensor<32xi32, #b>, tensor<32xi32, #b>
}

// Indices have 64 bits.
// CHECK-LABEL: llvm.func internal @indices(
// CHECK:      llvm.sext %arg0 : i32 to i64
// CHECK-NEXT: llvm.zext %arg0 : i32 to i64
tt.func private @indices(%x: tensor<32xi32, #b>) -> (tensor<32xindex, #b>, tensor<32xindex, #b>) {
  %0 = arith.index_cast %x : tensor<32xi32, #b> to tensor<32xindex, #b>
  %1 = arith.index_castui %x : tensor<32xi32, #b> to tensor<32xindex, #b>
  tt.return %0, %1 : tensor<32xindex, #b>, tensor<32xindex, #b>
}

// Pointers to other types are the same pointers.
// CHECK-LABEL: llvm.func internal @pointers(
// CHECK:      llvm.br ^[[B:.*]]
// CHECK-NEXT: ^[[B]]:
// CHECK-NEXT: llvm.return %arg0 : !llvm.ptr<1>
tt.func private @pointers(%p: tensor<32x!tt.ptr<i1>, #b>) -> (tensor<32x!tt.ptr<i8>, #b>) {
  %0 = tt.bitcast %p : tensor<32x!tt.ptr<i1>, #b> -> tensor<32x!tt.ptr<i8>, #b>
  tt.return %0 : tensor<32x!tt.ptr<i8>, #b>
}
}
