// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: %ttc %s --emit amdgcn | FileCheck %s --check-prefix=ASM
// Without a lane's bit where the instruction has it, elements are read one by one:
// RUN: sed 's/lane = \[\[0, 1\], \[0, 2\], \[0, 4\]/lane = [[0, 2], [0, 1], [0, 4]/' %s > %t.other.mlir
// RUN: %ttc %t.other.mlir --emit llvm | FileCheck %s --check-prefix=OTHER
// OTHER-NOT: ds.load.tr

// Reads of the LDS that transpose, on gfx1250: squares of eight lanes of 16-bit elements, squares of sixteen lanes of bytes. Each gives what eight
// reads of an element give without it.

#half = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], warp = [], block = []}>
#byte = #ttg.linear<{register = [[1, 0], [2, 0], [4, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [8, 0]], warp = [], block = []}>
#rows = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: llvm.func amdgpu_kernelcc @reads(
// CHECK-COUNT-2: rocdl.ds.load.tr16.b128 %{{.*}} : !llvm.ptr<3> -> vector<8xi16>
// CHECK-COUNT-2: rocdl.ds.load.tr8.b64 %{{.*}} : !llvm.ptr<3> -> vector<2xi32>
// CHECK-NOT:     rocdl.ds.load
// CHECK:         llvm.return
// ASM-LABEL: reads:
// ASM-DAG:       ds_load_tr16_b128
// ASM-DAG:       ds_load_tr8_b64
// ASM-DAG:       s_wait_dscnt
// ASM:           s_endpgm
tt.func public @reads(%p: !tt.ptr<i16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %m = ttg.local_alloc : () -> !ttg.memdesc<32x16xi16, #rows, #smem, mutable>
  %v = ttg.local_load %m : !ttg.memdesc<32x16xi16, #rows, #smem, mutable> -> tensor<32x16xi16, #half>
  %n = ttg.local_alloc : () -> !ttg.memdesc<32x16xi8, #rows, #smem, mutable>
  %w = ttg.local_load %n : !ttg.memdesc<32x16xi8, #rows, #smem, mutable> -> tensor<32x16xi8, #byte>
  %ps = tt.splat %p : !tt.ptr<i16> -> tensor<32x16x!tt.ptr<i16>, #half>
  tt.store %ps, %v : tensor<32x16x!tt.ptr<i16>, #half>
  %qs = tt.splat %q : !tt.ptr<i8> -> tensor<32x16x!tt.ptr<i8>, #byte>
  tt.store %qs, %w : tensor<32x16x!tt.ptr<i8>, #byte>
  tt.return
}
}
