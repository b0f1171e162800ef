// RUN: %ttopt %s --triton-nvidia-gpu-fence-insertion | FileCheck %s
// RUN: %ttopt %s --triton-nvidia-gpu-fence-insertion --triton-nvidia-gpu-fence-insertion | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// One fence is enough for dots between which nothing is written.
// CHECK-LABEL: @once(
// CHECK:         ttg.local_alloc
// CHECK-NEXT:    ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT:    ttng.warp_group_dot
// CHECK-NEXT:    ttng.warp_group_dot
// CHECK-NEXT:    tt.return
tt.func public @once(%x: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #mma>) {
  %a = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
  %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
  %e = ttng.warp_group_dot %a, %a, %d : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
  tt.return
}

// What is filled once for dots in a loop is fenced where it is filled.
// CHECK-LABEL: @before_loop(
// CHECK:         ttg.local_alloc
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-NEXT:    scf.for
// CHECK-NEXT:    ttng.warp_group_dot
tt.func public @before_loop(%x: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #mma>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #mma>) : i32 {
    %d = ttng.warp_group_dot %a, %a, %acc : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return
}

// A write between them needs another one.
// CHECK-LABEL: @twice(
// CHECK:         ttg.local_store
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-NEXT:    ttng.warp_group_dot
// CHECK-NEXT:    ttg.local_store
// CHECK-NEXT:    ttng.fence_async_shared
// CHECK-NEXT:    ttng.warp_group_dot
tt.func public @twice(%x: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #mma>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
  ttg.local_store %x, %a : tensor<64x64xf16, #blocked> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %e = ttng.warp_group_dot %a, %a, %d : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
  tt.return
}

// A reduction between them writes nothing that they read.
// CHECK-LABEL: @reduced_between(
// CHECK:         ttng.fence_async_shared
// CHECK-NEXT:    ttng.warp_group_dot
// CHECK:         tt.reduce
// CHECK-NOT:     ttng.fence_async_shared
// CHECK:         tt.return
tt.func public @reduced_between(%x: tensor<64x64xf16, #blocked>, %c: tensor<64x64xf32, #mma>) {
  %a = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
  %d = ttng.warp_group_dot %a, %a, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
  %m = "tt.reduce"(%d) <{axis = 1 : i32}> ({
  ^bb0(%p: f32, %q: f32):
    %most = arith.maxnumf %p, %q : f32
    tt.reduce.return %most : f32
  }) : (tensor<64x64xf32, #mma>) -> tensor<64xf32, #ttg.slice<{dim = 1, parent = #mma}>>
  %e = ttng.warp_group_dot %a, %a, %d : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #shared, #smem> -> tensor<64x64xf32, #mma>
  tt.return
}

// Bulk copies write through the proxy that the dot reads through.
// CHECK-LABEL: @filled_by_bulk_copies(
// CHECK-NOT:     fence_async_shared
// CHECK:         tt.return
tt.func public @filled_by_bulk_copies(%desc: !tt.tensordesc<64x64xf16, #shared>, %bar: !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable>, %i: i32, %true: i1, %c: tensor<64x64xf32, #mma>) {
  %a = ttg.local_alloc : () -> !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable>
  %b = ttg.memdesc_index %a[%i] : !ttg.memdesc<2x64x64xf16, #shared, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttng.async_tma_copy_global_to_local %desc[%i, %i] %b, %bar, %true : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #smem, mutable> -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  %d = ttng.warp_group_dot %b, %b, %c : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
  tt.return
}
}
