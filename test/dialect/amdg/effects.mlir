// What MLIR's passes conclude from the memory effects of operations.
//
// RUN: %ttopt %s --cse --canonicalize | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#blocked2 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
#dot = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared1 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
!part = tensor<32x32xf32, #blocked>
!rows = tensor<64x32xf32, #blocked>
!f = tensor<256xf32, #blocked1>
!o = tensor<256xi32, #blocked1>
!bar = !ttg.memdesc<1xi64, #shared, #smem, mutable>
!buf = !ttg.memdesc<256xf32, #shared, #smem, mutable>
!packed = !ttg.memdesc<64x128xi8, #shared1, #smem, mutable>
!a = tensor<128x64xi8, #dot>
!q = tensor<256x16xf8E5M2, #blocked2>
!h = tensor<256x16xbf16, #blocked2>
!desc = !tt.tensordesc<64x64xf16>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {

// Equal pure operations are one.
// CHECK-LABEL: tt.func public @pure(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]{{[^%]*}}%[[ARG4:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = amdg.concat %[[ARG0]], %[[ARG0]] : tensor<32x32xf32, #blocked>, tensor<32x32xf32, #blocked> -> tensor<64x32xf32, #blocked>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = arith.addf %[[V0]], %[[V0]] : tensor<64x32xf32, #blocked>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = amdg.extract_slice %[[V1]] [32, 0] : tensor<64x32xf32, #blocked> to tensor<32x32xf32, #blocked>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = amdg.scaled_upcast_fp8 %[[ARG1]] scale %[[ARG2]] : tensor<256x16xf8E5M2, #blocked1>, tensor<256x16xbf16, #blocked1> -> tensor<256x16xbf16, #blocked1>
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = amdg.update_tensor_descriptor %[[ARG3]] add_offsets = [%[[ARG4]], %[[ARG4]]] : !tt.tensordesc<64x64xf16>
// CHECK-NEXT: tt.return %[[V0]], %[[V0]], %[[V2]], %[[V2]], %[[V3]], %[[V3]], %[[V4]], %[[V4]]
tt.func public @pure(%a: !part, %q: !q, %h: !h, %desc: !desc, %i: i32) -> (!rows, !rows, !part, !part, !h, !h, !desc, !desc) {
  %0 = amdg.concat %a, %a : !part, !part -> !rows
  %1 = amdg.concat %a, %a : !part, !part -> !rows
  %2 = arith.addf %0, %1 : !rows
  %3 = amdg.extract_slice %2 [32, 0] : !rows to !part
  %4 = amdg.extract_slice %2 [32, 0] : !rows to !part
  %5 = amdg.scaled_upcast_fp8 %q scale %h : !q, !h -> !h
  %6 = amdg.scaled_upcast_fp8 %q scale %h : !q, !h -> !h
  %7 = amdg.update_tensor_descriptor %desc add_offsets = [%i, %i] : !desc
  %8 = amdg.update_tensor_descriptor %desc add_offsets = [%i, %i] : !desc
  tt.return %0, %1, %3, %4, %5, %6, %7, %8 : !rows, !rows, !part, !part, !h, !h, !desc, !desc
}

// Loads without a store between them are one.
// CHECK-LABEL: tt.func public @loads(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = amdg.buffer_load %[[ARG0]][%[[ARG1]]] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
// CHECK-NEXT: amdg.buffer_store %[[ARG2]], %[[ARG0]][%[[ARG1]]] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = amdg.buffer_load %[[ARG0]][%[[ARG1]]] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
// CHECK-NEXT: tt.return %[[V0]], %[[V0]], %[[V1]]
tt.func public @loads(%p: !tt.ptr<f32>, %o: !o, %f: !f) -> (!f, !f, !f) {
  %0 = amdg.buffer_load %p[%o] : !tt.ptr<f32> -> !f
  %1 = amdg.buffer_load %p[%o] : !tt.ptr<f32> -> !f
  amdg.buffer_store %f, %p[%o] : !tt.ptr<f32> -> !f
  %2 = amdg.buffer_load %p[%o] : !tt.ptr<f32> -> !f
  tt.return %0, %1, %2 : !f, !f, !f
}

// What has no effect goes where nobody uses it.
// CHECK-LABEL: tt.func public @unused(
// CHECK-NEXT: tt.return
tt.func public @unused(%a: !part, %p: !tt.ptr<f32>, %o: !o, %s: !packed, %desc: !desc, %i: i32) {
  %0 = amdg.concat %a, %a : !part, !part -> !rows
  %1 = amdg.buffer_load %p[%o] : !tt.ptr<f32> -> !f
  %2 = amdg.local_load_packed_transposed %s : !packed -> !a
  %3 = amdg.update_tensor_descriptor %desc pred = %i : !desc
  tt.return
}

// What has effects stays, however often.
// CHECK-LABEL: tt.func public @effects(
// CHECK-SAME: %[[ARG0:[a-z0-9_]+]]{{[^%]*}}%[[ARG1:[a-z0-9_]+]]{{[^%]*}}%[[ARG2:[a-z0-9_]+]]{{[^%]*}}%[[ARG3:[a-z0-9_]+]]{{[^%]*}}%[[ARG4:[a-z0-9_]+]]{{[^%]*}}%[[ARG5:[a-z0-9_]+]]{{[^%]*}}%[[ARG6:[a-z0-9_]+]]{{[^%]*}}%[[ARG7:[a-z0-9_]+]]{{[^%]*}}%[[ARG8:[a-z0-9_]+]]{{[^%]*}}%[[ARG9:[a-z0-9_]+]]
// CHECK-NEXT: %[[V0:[a-z0-9_]+]] = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %[[ARG2]], %[[ARG0]][%[[ARG1]]] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
// CHECK-NEXT: %[[V1:[a-z0-9_]+]] = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %[[ARG2]], %[[ARG0]][%[[ARG1]]] : !tt.ptr<f32> -> tensor<256xf32, #blocked2>
// CHECK-NEXT: %[[V2:[a-z0-9_]+]] = amdg.buffer_load_to_local %[[ARG0]][%[[ARG1]]] into %[[ARG4]] : !tt.ptr<f32>[tensor<256xi32, #blocked2>]  -> <256xf32, #shared1, #smem, mutable>
// CHECK-NEXT: %[[V3:[a-z0-9_]+]] = amdg.async_wait {num_inst = 0 : i32}
// CHECK-NEXT: %[[V4:[a-z0-9_]+]] = amdg.masked_load %[[ARG7]], %[[ARG6]], %[[ARG8]] : (!llvm.ptr<1>, i1, f32) -> f32
// CHECK-NEXT: amdg.masked_store %[[ARG7]], %[[ARG8]], %[[ARG6]] : !llvm.ptr<1>, f32, i1
// CHECK-NEXT: amdg.cond_barrier %[[ARG6]]
// CHECK-NEXT: amdg.cond_barrier %[[ARG6]]
// CHECK-NEXT: amdg.init_barrier %[[ARG3]], 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: amdg.wait_barrier %[[ARG3]], %[[ARG5]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: %[[V5:[a-z0-9_]+]] = amdg.arrive_barrier %[[ARG3]], 1 : !ttg.memdesc<1xi64, #shared1, #smem, mutable> -> i32
// CHECK-NEXT: amdg.async_copy_mbarrier_arrive %[[ARG3]] : !ttg.memdesc<1xi64, #shared1, #smem, mutable>
// CHECK-NEXT: amdg.tdm_prefetch %[[ARG9]][%[[ARG5]], %[[ARG5]]], %[[ARG6]], speculative = true : !tt.tensordesc<64x64xf16>
// CHECK-NEXT: tt.return
tt.func public @effects(%p: !tt.ptr<f32>, %o: !o, %f: !f, %b: !bar, %buf: !buf, %i: i32, %c: i1, %raw: !llvm.ptr<1>, %v: f32, %desc: !desc) {
  %0 = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %f, %p[%o] : !tt.ptr<f32> -> !f
  %1 = amdg.buffer_atomic_rmw fadd, acq_rel, gpu, %f, %p[%o] : !tt.ptr<f32> -> !f
  %2 = amdg.buffer_load_to_local %p[%o] into %buf : !tt.ptr<f32>[!o] -> !buf
  %3 = amdg.async_wait {num_inst = 0 : i32}
  %4 = amdg.masked_load %raw, %c, %v : (!llvm.ptr<1>, i1, f32) -> f32
  amdg.masked_store %raw, %v, %c : !llvm.ptr<1>, f32, i1
  amdg.cond_barrier %c
  amdg.cond_barrier %c
  amdg.init_barrier %b, 1 : !bar
  amdg.wait_barrier %b, %i : !bar
  %5 = amdg.arrive_barrier %b, 1 : !bar -> i32
  amdg.async_copy_mbarrier_arrive %b : !bar
  amdg.tdm_prefetch %desc[%i, %i], %c, speculative = true : !desc
  tt.return
}

}
