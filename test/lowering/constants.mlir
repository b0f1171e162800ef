// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#c = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Elements that differ are looked up in global memory, where equal tables are one; bits of floats are words.
// CHECK-DAG: llvm.mlir.global internal constant @[[INTS:__ttopt_table_[0-9]+]](dense<[1, 2, 3, 5]> : tensor<4xi32>) {addr_space = 1 : i32} : !llvm.array<4 x i32>
// CHECK-DAG: llvm.mlir.global internal constant @[[HALVES:__ttopt_table_[0-9]+]](dense<[0, 15360, 16384, 31744]> : tensor<4xi16>) {addr_space = 1 : i32} : !llvm.array<4 x i16>
// CHECK-DAG: llvm.mlir.global internal constant @[[FLAGS:__ttopt_table_[0-9]+]](dense<[1, 0, 0, 1]> : tensor<4xi8>) {addr_space = 1 : i32} : !llvm.array<4 x i8>
// CHECK-NOT: __ttopt_table
// CHECK-LABEL: llvm.func @tables(
// CHECK:         %[[TABLE:.*]] = llvm.mlir.addressof @[[INTS]]
// CHECK:         llvm.getelementptr %[[TABLE]][%{{.*}}] {{.*}} -> !llvm.ptr<1>, i32
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK:         llvm.mlir.addressof @[[INTS]]
// CHECK:         llvm.mlir.addressof @[[HALVES]]
// CHECK:         %[[HALF:.*]] = llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK:         llvm.bitcast %[[HALF]] : i16 to f16
// CHECK:         llvm.mlir.addressof @[[FLAGS]]
// CHECK:         %[[FLAG:.*]] = llvm.load %{{.*}} {alignment = 1 : i64} : !llvm.ptr<1> -> i8
// CHECK:         llvm.icmp "ne" %[[FLAG]], %{{.*}} : i8
tt.func @tables() {
  %0 = arith.constant dense<[1, 2, 3, 5]> : tensor<4xi32, #b>
  %1 = arith.constant dense<[[1, 2], [3, 5]]> : tensor<2x2xi32, #c>
  %2 = arith.constant dense<[0.0, 1.0, 2.0, 0x7C00]> : tensor<4xf16, #b>
  %3 = arith.constant dense<[true, false, false, true]> : tensor<4xi1, #b>
  tt.return
}
}
