// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM

// Copies through tensor descriptors by gfx1250's tensor data mover. Each of four waves moves 16 rows: its descriptor says where these begin and
// how much of the tensor is left from there on. Barriers wait for none of them, their own counter does.

#b = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#padded = #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [64, 64]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-DAG:   #[[COPIES:.*]] = #llvm.alias_scope<id = "ttopt.copies"
// CHECK-LABEL: llvm.func amdgpu_kernelcc @moves(
// Two bytes an element, and four words left out after every 32: 1 << 16 | 1 << 20 | 4 << 22 | 3 << 25.
// CHECK:         llvm.mlir.constant(118554624 : i32)
// CHECK:         rocdl.tensor.load.to.lds.d2 {alias_scopes = [#[[COPIES]]]} %{{[0-9]+}}, %{{[0-9]+}} cachepolicy 0 : vector<4xi32>, vector<8xi32>
// CHECK:         rocdl.s.wait.tensorcnt 0
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.s.barrier"
// A store takes padding for eight elements more of each row, which are outside: of 72 in 16 rows at most 64 are written.
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.s.barrier"
// CHECK:         llvm.intr.smin
// CHECK:         llvm.mlir.constant(65536 : i32)
// CHECK:         llvm.mlir.constant(4718592 : i32)
// CHECK:         rocdl.tensor.store.from.lds.d2 {alias_scopes = [#[[COPIES]]]} %{{[0-9]+}}, %{{[0-9]+}} cachepolicy 0 : vector<4xi32>, vector<8xi32>
// CHECK:         rocdl.s.wait.tensorcnt 0
// ASM-LABEL: moves:
// ASM-NOT:   s_wait_tensorcnt
// ASM:       tensor_load_to_lds s[{{.*}}], s[{{[0-9:]*}}]{{$}}
// ASM:       s_wait_tensorcnt 0x0
// ASM:       s_barrier_wait
// ASM:       ds_load_b128
// ASM:       tensor_store_from_lds s[{{.*}}], s[{{[0-9:]*}}]{{$}}
// ASM:       s_wait_tensorcnt 0x0
tt.func public @moves(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32, %k: i32) {
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %k : i32 to i64
  %from = tt.make_tensor_descriptor %p, [%n, %k], [%s, %s1] : <f16>, <64x64xf16, #padded>
  %to = tt.make_tensor_descriptor %q, [%n, %k], [%s, %s1] : <f16>, <64x64xf16, #padded>
  %x = tt.get_program_id x : i32
  %d0 = amdg.update_tensor_descriptor %from add_offsets = [%x, %x] {clamp_bounds} : !tt.tensordesc<64x64xf16, #padded>
  %m0 = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
  %t0 = amdg.async_tdm_copy_global_to_local %d0 into %m0 : !tt.tensordesc<64x64xf16, #padded> -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
  %w0 = amdg.async_tdm_wait %t0 {num = 0 : i32}
  %v = ttg.local_load %m0 token %w0 : !ttg.memdesc<64x64xf16, #padded, #smem, mutable> -> tensor<64x64xf16, #b>
  %v2 = arith.addf %v, %v : tensor<64x64xf16, #b>
  %m1 = ttg.local_alloc %v2 : (tensor<64x64xf16, #b>) -> !ttg.memdesc<64x64xf16, #padded, #smem, mutable>
  %d1 = amdg.update_tensor_descriptor %to add_offsets = [%x, %x] {clamp_bounds} : !tt.tensordesc<64x64xf16, #padded>
  %t1 = amdg.async_tdm_copy_local_to_global %d1 from %m1 : !ttg.memdesc<64x64xf16, #padded, #smem, mutable> -> !tt.tensordesc<64x64xf16, #padded>
  %w1 = amdg.async_tdm_wait %t1 {num = 0 : i32}
  tt.return
}
}
