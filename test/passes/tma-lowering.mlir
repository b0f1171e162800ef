// RUN: %ttopt %s --triton-nvidia-tma-lowering | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#trans = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#narrow = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#f32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Sizes from the contiguous dimension on; strides in bytes, of all dimensions but that one; rows of 512 bytes are
// boxes of 128 bytes. 7 is f32, 3 the widest swizzle, 1 NaN.
// CHECK-LABEL: @make(
// CHECK-SAME: %[[P:.*]]: !tt.ptr<f32>, %[[N:.*]]: i32, %[[M:.*]]: i32, %[[S:.*]]: i64)
// CHECK: %[[MAP:.*]] = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
// CHECK-DAG: %[[ROW:.*]] = arith.constant 32 : i32
// CHECK-DAG: %[[ROWS:.*]] = arith.constant 16 : i32
// CHECK-DAG: %[[BYTES:.*]] = arith.muli %[[S]], %{{.*}} : i64
// CHECK-DAG: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: ttng.tensormap_create %[[MAP]], %[[P]], [%[[ROW]], %[[ROWS]]], [%[[M]], %[[N]]], [%[[BYTES]]], [%[[ONE]], %[[ONE]]] {elem_type = 7 : i32, fill_mode = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32}
// CHECK-NEXT: ttng.tensormap_fenceproxy_acquire %[[MAP]]
// CHECK-NEXT: %[[D:.*]] = ttng.reinterpret_tensor_descriptor %[[MAP]] : !tt.ptr<i8> to !tt.tensordesc<16x128xf32, #{{.*}}>
// CHECK-NEXT: tt.call @use(%[[D]])
tt.func public @make(%p: !tt.ptr<f32>, %n: i32, %m: i32, %s: i64) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %m], [%s, %c1] {padding = 2 : i32} : <f32>, <16x128xf32, #f32>
  tt.call @use(%d) : (!tt.tensordesc<16x128xf32, #f32>) -> ()
  tt.return
}
tt.func private @use(%d: !tt.tensordesc<16x128xf32, #f32>) {
  tt.return
}

// Two loads wait at one barrier for all their bytes. It is made before the loop, which carries the parity of its
// phase; the dot reads what the copies wrote.
// CHECK-LABEL: @product(
// CHECK: %[[BAR:.*]] = ttg.local_alloc : () -> !ttg.memdesc<1xi64,
// CHECK-NEXT: ttng.init_barrier %[[BAR]], 1
// CHECK-NEXT: %[[R:.*]]:2 = scf.for {{.*}} iter_args(%[[C:.*]] = %{{.*}}, %[[PHASE:.*]] = %{{.*}}) -> (tensor<64x64xf32, #{{.*}}>, i32)
// CHECK-NEXT:   %[[A:.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[SHARED:.*]], #smem, mutable>
// CHECK-NEXT:   %[[B:.*]] = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #[[SHARED]], #smem, mutable>
// CHECK:        ttng.barrier_expect %[[BAR]], 16384, %true
// CHECK-NEXT:   ttng.async_tma_copy_global_to_local %{{.*}} %[[A]], %[[BAR]], %true
// CHECK-NEXT:   ttng.async_tma_copy_global_to_local %{{.*}} %[[B]], %[[BAR]], %true
// CHECK-NEXT:   ttng.wait_barrier %[[BAR]], %[[PHASE]] deps %[[A]], %[[B]]
// CHECK-NEXT:   %[[BT:.*]] = ttg.memdesc_trans %[[B]] {{.*}}, mutable> -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem, mutable>
// CHECK-NEXT:   %[[SUM:.*]] = ttng.warp_group_dot %[[A]], %[[BT]], %[[C]]
// CHECK:        %[[NEXT:.*]] = arith.xori %[[PHASE]], %{{.*}} : i32
// CHECK-NEXT:   scf.yield %[[SUM]], %[[NEXT]]
// CHECK:      ttng.inval_barrier %[[BAR]]
// CHECK-NEXT: tt.return
tt.func public @product(%a: !tt.tensordesc<64x64xf16, #shared>, %b: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %zero: tensor<64x64xf32, #mma>) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %r = scf.for %k = %c0 to %n step %c64 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
    %x = tt.descriptor_load %a[%c0, %k] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
    %xs = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %y = tt.descriptor_load %b[%c0, %k] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
    %ys = ttg.local_alloc %y : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    %yt = ttg.memdesc_trans %ys {order = array<i32: 1, 0>} : !ttg.memdesc<64x64xf16, #shared, #smem> -> !ttg.memdesc<64x64xf16, #trans, #smem>
    %d = ttng.warp_group_dot %xs, %yt, %c : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x64xf16, #trans, #smem> -> tensor<64x64xf32, #mma>
    scf.yield %d : tensor<64x64xf32, #mma>
  }
  tt.return
}

// Outside of loops the barrier ends with the wait. What needs a value is loaded; a store in between parts loads.
// CHECK-LABEL: @apart(
// CHECK:     ttng.init_barrier %[[FIRST:.*]], 1
// CHECK:     ttng.barrier_expect %[[FIRST]], 8192
// CHECK:     ttng.wait_barrier %[[FIRST]], %{{.*}} deps %[[X:.*]] :
// CHECK:     ttng.inval_barrier %[[FIRST]]
// CHECK:     %[[V:.*]] = ttg.local_load %[[X]]
// CHECK:     tt.store %{{.*}}, %[[V]]
// CHECK:     ttng.init_barrier %[[SECOND:.*]], 1
// CHECK:     ttng.barrier_expect %[[SECOND]], 8192
// CHECK:     %[[W:.*]] = ttg.local_load
// CHECK:     tt.store %{{.*}}, %[[W]]
tt.func public @apart(%a: !tt.tensordesc<64x64xf16, #shared>, %p: tensor<64x64x!tt.ptr<f16>, #blocked>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
  tt.store %p, %x : tensor<64x64x!tt.ptr<f16>, #blocked>
  %y = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
  tt.store %p, %y : tensor<64x64x!tt.ptr<f16>, #blocked>
  tt.return
}

// A buffer of another layout gets its own copy.
// CHECK-LABEL: @other_layout(
// CHECK: %[[X:.*]] = ttg.local_load
// CHECK: ttg.local_alloc %[[X]] : (tensor<64x64xf16, #{{.*}}>) -> !ttg.memdesc<64x64xf16, #{{.*}}, #smem>
tt.func public @other_layout(%a: !tt.tensordesc<64x64xf16, #shared>, %c: tensor<64x64xf32, #mma>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
  %xs = ttg.local_alloc %x : (tensor<64x64xf16, #blocked>) -> !ttg.memdesc<64x64xf16, #narrow, #smem>
  %d = ttng.warp_group_dot %xs, %xs, %c : !ttg.memdesc<64x64xf16, #narrow, #smem> * !ttg.memdesc<64x64xf16, #narrow, #smem> -> tensor<64x64xf32, #mma>
  tt.return
}

// In a branch of a loop it is not known how many phases were completed.
// CHECK-LABEL: @in_branch(
// CHECK: scf.for
// CHECK:   scf.if
// CHECK:     ttng.init_barrier
// CHECK:     ttng.wait_barrier
// CHECK:     ttng.inval_barrier
tt.func public @in_branch(%a: !tt.tensordesc<64x64xf16, #shared>, %p: tensor<64x64x!tt.ptr<f16>, #blocked>, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    scf.if %c {
      %x = tt.descriptor_load %a[%c0, %i] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
      tt.store %p, %x : tensor<64x64x!tt.ptr<f16>, #blocked>
    }
  }
  tt.return
}

// What was computed goes through shared memory, ordered by a fence; what was loaded lies there.
// CHECK-LABEL: @store(
// CHECK:      %[[S:.*]] = ttg.local_alloc %{{.*}} : (tensor<64x64xf16, #{{.*}}>)
// CHECK-NEXT: ttng.fence_async_shared {bCluster = false}
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %{{.*}} %[[S]]
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK:      ttng.async_tma_reduce max, %{{.*}}
// CHECK:      ttng.wait_barrier %{{.*}} deps %[[L:[0-9]+]]
// CHECK-NOT:  ttg.local_load
// CHECK-NOT:  ttng.fence_async_shared
// CHECK:      ttng.async_tma_copy_local_to_global %{{.*}} %[[L]]
// CHECK-NEXT: ttng.async_tma_store_wait
// CHECK-NEXT: tt.return
tt.func public @store(%a: !tt.tensordesc<64x64xf16, #shared>, %x: tensor<64x64xf16, #blocked>) {
  %c0 = arith.constant 0 : i32
  tt.descriptor_store %a[%c0, %c0], %x : !tt.tensordesc<64x64xf16, #shared>, tensor<64x64xf16, #blocked>
  tt.descriptor_reduce max, %a[%c0, %c0], %x : !tt.tensordesc<64x64xf16, #shared>, tensor<64x64xf16, #blocked>
  %y = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
  tt.descriptor_store %a[%c0, %c0], %y : !tt.tensordesc<64x64xf16, #shared>, tensor<64x64xf16, #blocked>
  tt.return
}

// Nobody needs it.
// CHECK-LABEL: @unused(
// CHECK-NEXT: arith.constant
// CHECK-NEXT: tt.return
tt.func public @unused(%a: !tt.tensordesc<64x64xf16, #shared>) {
  %c0 = arith.constant 0 : i32
  %x = tt.descriptor_load %a[%c0, %c0] : !tt.tensordesc<64x64xf16, #shared> -> tensor<64x64xf16, #blocked>
  tt.return
}
}
