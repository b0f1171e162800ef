// What all lanes of a wave load alike is loaded by scalar instructions, where nothing is written before: rows' numbers, of which each
// wave has four. Where the mask is false the address is that of zeros.
// RUN: %ttopt %s --tritonamdgpu-buffer-accesses | FileCheck %s
// RUN: sed "/^.. Not behind a store/,$ d" %s > %t.mlir && echo "}" >> %t.mlir
// RUN: %ttc %t.mlir --emit amdgcn | FileCheck %s --check-prefix=ASM

#b = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 64], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #b}>
#columns = #ttg.slice<{dim = 0, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32, ttg.target = "hip:gfx942"} {

// CHECK-LABEL: tt.func public @rows(
// CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} {ttg.scalar} : tensor<16x!tt.ptr<i32>
// CHECK: tt.store {{.*}} {ttg.buffer}
// ASM-LABEL: rows:
// ASM-NOT: buffer_load
// ASM-COUNT-4: s_load_dword s{{[0-9]+}}, s
// ASM-NOT: buffer_load
// ASM: s_endpgm
tt.func public @rows(%ids: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #rows>
  %limit = tt.splat %n : i32 -> tensor<16xi32, #rows>
  %mask = arith.cmpi slt, %i, %limit : tensor<16xi32, #rows>
  %none = arith.constant dense<-1> : tensor<16xi32, #rows>
  %base = tt.splat %ids : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #rows>
  %p = tt.addptr %base, %i : tensor<16x!tt.ptr<i32>, #rows>, tensor<16xi32, #rows>
  %x = tt.load %p, %mask, %none : tensor<16x!tt.ptr<i32>, #rows>
  %x1 = tt.expand_dims %x {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #b>
  %x2 = tt.broadcast %x1 : tensor<16x1xi32, #b> -> tensor<16x64xi32, #b>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #columns>
  %c1 = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #b>
  %c2 = tt.broadcast %c1 : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
  %v = arith.addi %x2, %c2 : tensor<16x64xi32, #b>
  %k = arith.constant dense<64> : tensor<16xi32, #rows>
  %r = arith.muli %i, %k : tensor<16xi32, #rows>
  %r1 = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #rows> -> tensor<16x1xi32, #b>
  %r2 = tt.broadcast %r1 : tensor<16x1xi32, #b> -> tensor<16x64xi32, #b>
  %at = arith.addi %r2, %c2 : tensor<16x64xi32, #b>
  %outs = tt.splat %out : !tt.ptr<i32> -> tensor<16x64x!tt.ptr<i32>, #b>
  %to = tt.addptr %outs, %at : tensor<16x64x!tt.ptr<i32>, #b>, tensor<16x64xi32, #b>
  tt.store %to, %v : tensor<16x64x!tt.ptr<i32>, #b>
  tt.return
}

// Not behind a store, nor in a loop that stores: the other argument may be the same memory.
// CHECK-LABEL: tt.func public @written_before(
// CHECK-NOT: ttg.scalar
// CHECK: tt.return
tt.func public @written_before(%ids: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #rows>
  %base = tt.splat %ids : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #rows>
  %p = tt.addptr %base, %i : tensor<16x!tt.ptr<i32>, #rows>, tensor<16xi32, #rows>
  %outs = tt.splat %out : !tt.ptr<i32> -> tensor<16x!tt.ptr<i32>, #rows>
  %to = tt.addptr %outs, %i : tensor<16x!tt.ptr<i32>, #rows>, tensor<16xi32, #rows>
  scf.for %t = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : tensor<16x!tt.ptr<i32>, #rows>
    tt.store %to, %x : tensor<16x!tt.ptr<i32>, #rows>
  }
  %y = tt.load %p : tensor<16x!tt.ptr<i32>, #rows>
  tt.store %to, %y : tensor<16x!tt.ptr<i32>, #rows>
  tt.return
}

// Lanes that differ, numbers of 16 bits, which scalar instructions do not load, and addresses that were loaded.
// CHECK-LABEL: tt.func public @no_scalars(
// CHECK-NOT: ttg.scalar
// CHECK: tt.return
tt.func public @no_scalars(%ids: !tt.ptr<i32>, %halves: !tt.ptr<f16>, %out: !tt.ptr<f16>, %sums: !tt.ptr<i32>) {
  %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #rows>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #columns>
  %h = tt.splat %halves : !tt.ptr<f16> -> tensor<16x!tt.ptr<f16>, #rows>
  %hp = tt.addptr %h, %i : tensor<16x!tt.ptr<f16>, #rows>, tensor<16xi32, #rows>
  %x = tt.load %hp : tensor<16x!tt.ptr<f16>, #rows>
  %w = tt.splat %ids : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #columns>
  %wp = tt.addptr %w, %c : tensor<64x!tt.ptr<i32>, #columns>, tensor<64xi32, #columns>
  %y = tt.load %wp : tensor<64x!tt.ptr<i32>, #columns>
  %yp = tt.addptr %w, %y : tensor<64x!tt.ptr<i32>, #columns>, tensor<64xi32, #columns>
  %z = tt.load %yp : tensor<64x!tt.ptr<i32>, #columns>
  %o = tt.splat %out : !tt.ptr<f16> -> tensor<16x!tt.ptr<f16>, #rows>
  %op = tt.addptr %o, %i : tensor<16x!tt.ptr<f16>, #rows>, tensor<16xi32, #rows>
  tt.store %op, %x : tensor<16x!tt.ptr<f16>, #rows>
  %s = tt.splat %sums : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>, #columns>
  %sp = tt.addptr %s, %c : tensor<64x!tt.ptr<i32>, #columns>, tensor<64xi32, #columns>
  tt.store %sp, %z : tensor<64x!tt.ptr<i32>, #columns>
  tt.return
}

}
