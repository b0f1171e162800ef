// Barriers of a cluster, where warps are specialized: worker warps are sent to them, one work for all that are alike.
// RUN: split-file %s %t
// RUN: %ttopt %t/outside.mlir --tritongpu-allocate-warp-groups --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %t/outside.mlir
// RUN: %ttopt %t/inside.mlir -split-input-file -verify-diagnostics --tritongpu-allocate-warp-groups --allocate-shared-memory-nv --convert-triton-gpu-to-llvm

//--- outside.mlir
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func @outside(
// The default warps tell the number of the work, all warps of the CTA meet, and meet again afterwards.
// CHECK: llvm.icmp "eq"
// CHECK-NEXT: %[[NUMBER:.*]] = llvm.mlir.constant(1 : i32)
// CHECK: st.shared.b32 {{.*}} %[[NUMBER]],
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.count
// CHECK-NEXT: llvm.nvvm.barrier.cluster.arrive.relaxed.aligned
// CHECK-NEXT: llvm.nvvm.barrier.cluster.wait.aligned
// CHECK: llvm.nvvm.barrier.cta.sync.aligned.count
// The worker warps' side of it.
// CHECK: llvm.nvvm.barrier.cluster.arrive.relaxed.aligned
// CHECK-NEXT: llvm.nvvm.barrier.cluster.wait.aligned
// CHECK-NEXT: llvm.br
// Two that order memory are one work, the third: the second are the partitions.
// CHECK: llvm.icmp "eq"
// CHECK-NEXT: %[[THREE:.*]] = llvm.mlir.constant(3 : i32)
// CHECK: st.shared.b32 {{.*}} %[[THREE]],
// CHECK: llvm.nvvm.barrier.cluster.arrive.aligned
// CHECK: llvm.icmp "eq"
// CHECK-NEXT: %[[AGAIN:.*]] = llvm.mlir.constant(3 : i32)
// CHECK: st.shared.b32 {{.*}} %[[AGAIN]],
// CHECK: llvm.nvvm.barrier.cluster.arrive.aligned
// CHECK: llvm.return
// CHECK: llvm.nvvm.barrier.cluster.arrive.aligned
// CHECK-NOT: llvm.nvvm.barrier.cluster.arrive
tt.func public @outside() {
  ttng.cluster_barrier {relaxed = true}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  ttng.cluster_barrier
  ttng.cluster_barrier
  tt.return
}
}

//--- inside.mlir
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
#b = #ttg.linear<{register = [], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = [[1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @in_default_region(%v: tensor<256xi32, #a>) {
  ttg.warp_specialize()
  default {
    // expected-error @below {{'ttg.convert_layout' op needs a barrier of the cluster, which all warps of its CTAs would have to reach, where partitions of `ttg.warp_specialize` may be running: CTAs exchange data before or after it, or through mbarriers}}
    %0 = ttg.convert_layout %v : tensor<256xi32, #a> -> tensor<256xi32, #b>
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @in_partition() {
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    // expected-error @below {{'ttng.cluster_barrier' op needs a barrier of the cluster}}
    ttng.cluster_barrier
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
#b = #ttg.linear<{register = [], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = [[1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @callee(%v: tensor<256xi32, #a>) -> tensor<256xi32, #b> attributes {noinline = true} {
  // expected-error @below {{'ttg.convert_layout' op needs a barrier of the cluster}}
  %0 = ttg.convert_layout %v : tensor<256xi32, #a> -> tensor<256xi32, #b>
  tt.return %0 : tensor<256xi32, #b>
}
tt.func public @calls(%v: tensor<256xi32, #a>) {
  %0 = tt.call @callee(%v) : (tensor<256xi32, #a>) -> tensor<256xi32, #b>
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}
