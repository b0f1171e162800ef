// As ops.mlir, of clusters of two CTAs.
//
// RUN: %ttopt %s -o %t.1 && %ttopt %t.1 -o %t.2 && diff %t.1 %t.2
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-debuginfo | %ttopt | FileCheck %s


module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @cluster(
tt.func @cluster() {
  // CHECK: amdg.cluster_barrier_arrive
  amdg.cluster_barrier_arrive
  // CHECK: amdg.cluster_barrier_wait
  amdg.cluster_barrier_wait
  tt.return
}

}
