// RUN: %ttopt %s --triton-nvidia-delay-store-waits | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The store of a tile goes on while the next one is computed, until that writes to the buffer. The last one ends behind the loop.
// CHECK-LABEL: @tiles(
// CHECK: scf.for
// CHECK-NEXT: arith.addf
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: %[[BUFFER:.*]] = ttg.local_alloc
// CHECK-NEXT: ttng.fence_async_shared
// CHECK-NEXT: ttng.async_tma_copy_local_to_global %{{.*}} %[[BUFFER]]
// CHECK-NEXT: }
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: tt.return
tt.func public @tiles(%c: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %t: tensor<64x64xf32, #mma>) {
  %pid = tt.get_program_id x : i32
  %all = tt.get_num_programs x : i32
  scf.for %i = %pid to %n step %all : i32 {
    %s = arith.addf %t, %t : tensor<64x64xf32, #mma>
    %h = arith.truncf %s : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
    %b = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %i] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}

// Two stores of an iteration do not wait for each other where they are a block apart.
// CHECK-LABEL: @halves(
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NOT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: }
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
tt.func public @halves(%c: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %h: tensor<64x64xf16, #mma>) {
  %pid = tt.get_program_id x : i32
  %all = tt.get_num_programs x : i32
  %c64 = arith.constant 64 : i32
  scf.for %i = %pid to %n step %all : i32 {
    %b = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %pid] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %d = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    %right = arith.addi %pid, %c64 : i32
    ttng.async_tma_copy_local_to_global %c[%i, %right] %d : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}

// They wait where they may be to the same elements: here they are in the first iteration.
// CHECK-LABEL: @meet(
// CHECK: scf.for
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: ttg.local_alloc
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: }
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
tt.func public @meet(%c: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %h: tensor<64x64xf16, #mma>) {
  %pid = tt.get_program_id x : i32
  %all = tt.get_num_programs x : i32
  scf.for %i = %pid to %n step %all : i32 {
    %b = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %pid] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %d = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%pid, %i] %d : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}

// Half a block apart is not enough.
// CHECK-LABEL: @overlap(
// CHECK: scf.for
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: }
tt.func public @overlap(%c: !tt.tensordesc<64x64xf16, #shared>, %n: i32, %h: tensor<64x64xf16, #mma>) {
  %pid = tt.get_program_id x : i32
  %all = tt.get_num_programs x : i32
  %c64 = arith.constant 32 : i32
  scf.for %i = %pid to %n step %all : i32 {
    %b = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %pid] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %d = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    %right = arith.addi %pid, %c64 : i32
    ttng.async_tma_copy_local_to_global %c[%i, %right] %d : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}

// What the loop loads may be what it stored.
// CHECK-LABEL: @reads_it_back(
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @reads_it_back(%p: !tt.ptr<f16>, %n: i32, %size: i64, %h: tensor<64x64xf16, #mma>) {
  %c1 = arith.constant 1 : i32
  %place = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  ttng.tensormap_create %place, %p, [%n, %n], [%n, %n], [%size], [%c1, %c1] {elem_type = 6 : i32, fill_mode = 0 : i32, interleave_layout = 0 : i32, swizzle_mode = 3 : i32} : (!tt.ptr<i8>, !tt.ptr<f16>, i32, i32, i32, i32, i64, i32, i32) -> ()
  ttng.tensormap_fenceproxy_acquire %place : !tt.ptr<i8>
  %c = ttng.reinterpret_tensor_descriptor %place : !tt.ptr<i8> to !tt.tensordesc<64x64xf16, #shared>
  scf.for %i = %c1 to %n step %c1 : i32 {
    %q = tt.addptr %p, %i : !tt.ptr<f16>, i32
    %x = tt.load %q : !tt.ptr<f16>
    %xs = tt.splat %x : f16 -> tensor<64x64xf16, #mma>
    %s = arith.addf %h, %xs : tensor<64x64xf16, #mma>
    %b = ttg.local_alloc %s : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %i] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}

// An atomic operation may tell others that the tile is there.
// CHECK-LABEL: @tells_others(
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: tt.atomic_rmw
tt.func public @tells_others(%c: !tt.tensordesc<64x64xf16, #shared>, %flag: !tt.ptr<i32>, %n: i32, %h: tensor<64x64xf16, #mma>) {
  %c1 = arith.constant 1 : i32
  %true = arith.constant true
  scf.for %i = %c1 to %n step %c1 : i32 {
    %b = ttg.local_alloc %h : (tensor<64x64xf16, #mma>) -> !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %i] %b : !tt.tensordesc<64x64xf16, #shared>, !ttg.memdesc<64x64xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
    %old = tt.atomic_rmw add, acq_rel, gpu, %flag, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  }
  tt.return
}

// The buffer of the store and that of the loop took turns in 64 KiB, of which three CTAs fit; of both together two.
// CHECK-LABEL: @crowded(
// CHECK: ttng.async_tma_copy_local_to_global
// CHECK-NEXT: ttng.async_tma_store_wait {pendings = 0 : i32}
// CHECK-NEXT: }
// CHECK-NEXT: tt.return
tt.func public @crowded(%c: !tt.tensordesc<128x128xf16, #shared>, %n: i32, %x: tensor<256x128xf16, #blocked>, %h: tensor<128x128xf16, #mma>) {
  %c1 = arith.constant 1 : i32
  scf.for %i = %c1 to %n step %c1 : i32 {
    %a = ttg.local_alloc %x : (tensor<256x128xf16, #blocked>) -> !ttg.memdesc<256x128xf16, #shared, #smem>
    %y = ttg.local_load %a : !ttg.memdesc<256x128xf16, #shared, #smem> -> tensor<256x128xf16, #blocked>
    %b = ttg.local_alloc %h : (tensor<128x128xf16, #mma>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    ttng.fence_async_shared {bCluster = false}
    ttng.async_tma_copy_local_to_global %c[%i, %i] %b : !tt.tensordesc<128x128xf16, #shared>, !ttg.memdesc<128x128xf16, #shared, #smem>
    ttng.async_tma_store_wait {pendings = 0 : i32}
  }
  tt.return
}
}
