// RUN: %ttopt %s --tritonamdgpu-update-async-wait-count | FileCheck %s

// Groups of copies and tensor operations: each kind has a counter of its own, and what is open counts where it is behind the group that is awaited.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @both
// CHECK:         ttg.async_commit_group
// CHECK:         ttg.async_commit_group
// CHECK:         %[[MOVED:.*]] = amdg.async_tdm_intrinsic_wait %{{[0-9]+}} {count = 2 : i32}
// CHECK-NEXT:    amdg.async_wait %[[MOVED]] {num_inst = 4 : i32}
// CHECK:         amdg.async_tdm_copy_local_to_global
// CHECK:         %[[DONE:.*]] = amdg.async_tdm_intrinsic_wait %{{[0-9]+}} {count = 1 : i32}
// CHECK-NEXT:    amdg.async_wait %[[DONE]] {num_inst = 0 : i32}
tt.func public @both(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %at: tensor<64x64x!tt.ptr<f16>, #b> {tt.contiguity = dense<[1, 64]> : tensor<2xi32>, tt.divisibility = dense<[16, 16]> : tensor<2xi32>}, %n: i32, %s: i64) {
  %s1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16, #rows>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %m1 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %t0 = amdg.async_tdm_copy_global_to_local %d into %m0 : !tt.tensordesc<64x64xf16, #rows> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %g0 = ttg.async_commit_group tokens %t0
  %t1 = amdg.async_tdm_copy_global_to_local %d into %m1 : !tt.tensordesc<64x64xf16, #rows> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %c1 = ttg.async_copy_global_to_local %at, %m1 : tensor<64x64x!tt.ptr<f16>, #b> -> <64x64xf16, #rows, #smem, mutable>
  %t2 = amdg.async_tdm_copy_global_to_local %d into %m0 : !tt.tensordesc<64x64xf16, #rows> -> !ttg.memdesc<64x64xf16, #rows, #smem, mutable>
  %g1 = ttg.async_commit_group tokens %t1, %c1, %t2
  %w0 = ttg.async_wait %g0 {num = 1 : i32}
  %t3 = amdg.async_tdm_copy_local_to_global %d from %m0 : !ttg.memdesc<64x64xf16, #rows, #smem, mutable> -> !tt.tensordesc<64x64xf16, #rows>
  %w1 = ttg.async_wait %g1 {num = 0 : i32}
  tt.return
}
}
