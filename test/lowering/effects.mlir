// What has an effect, but no result that is used.
// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: llvm.func internal @assumption(
// CHECK:      llvm.intr.assume %arg0 : i1
tt.func private @assumption(%x: i1) {
  llvm.intr.assume %x : i1
  tt.return
}

// CHECK-LABEL: llvm.func internal @dependent_launch(
// CHECK:      llvm.call_intrinsic "llvm.nvvm.griddepcontrol.wait"
// CHECK:      llvm.call_intrinsic "llvm.nvvm.griddepcontrol.launch.dependents"
tt.func private @dependent_launch() {
  tt.grid_dependency_wait
  tt.grid_dependency_launch_dependents
  tt.return
}

// CHECK-LABEL: llvm.func internal @barrier(
// CHECK:      llvm.nvvm.bar.warp.sync
tt.func private @barrier() {
  ttg.barrier local
  tt.return
}

// Each thread adds to the element that its index names.
// CHECK-LABEL: llvm.func internal @scattered_sums(
// CHECK:      llvm.getelementptr %{{.*}}[%{{.*}}]
// CHECK:      llvm.atomicrmw fadd {{.*}} syncscope("block") {{.*}} : !llvm.ptr<3>, f32
tt.func private @scattered_sums(%i: tensor<32xi32, #b>, %x: tensor<32xf32, #b>) -> tensor<32xf32, #b> {
  %m = ttg.local_alloc : () -> !ttg.memdesc<32xf32, #shared, #smem, mutable>
  %old = ttg.local_atomic_scatter_rmw fadd, %m[%i], %x {axis = 0 : i32} : (!ttg.memdesc<32xf32, #shared, #smem, mutable>, tensor<32xf32, #b>, tensor<32xi32, #b>) -> tensor<32xf32, #b>
  tt.return %old : tensor<32xf32, #b>
}
}
