// RUN: %ttc %s --target cuda:90 --emit ttgir -o - | FileCheck %s
// RUN: sed 's/scf.if %last/scf.if %always/' %s | %ttc - --target cuda:90 --emit ttgir -o - | FileCheck %s --check-prefix=EACH

// A flat loop over tiles stores what it added up where a tile ends. Programs of that kind are launched once for each multiprocessor, so
// that no other CTA hides what one waits for: copies are issued beside the dot, to one slot more.
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x128x32xf16
// CHECK: scf.for
// CHECK: ttng.warp_group_dot %
// CHECK-NOT: ttng.warp_group_dot_wait
// CHECK: ttg.async_copy_global_to_local
// CHECK: ttg.async_commit_group
// CHECK: ttng.warp_group_dot_wait {{.*}}pendings = 0
// CHECK: scf.if
// CHECK: tt.store

// What stores in each iteration is no such loop.
// EACH: ttg.local_alloc : () -> !ttg.memdesc<2x128x32xf16
// EACH: scf.for
// EACH: ttng.warp_group_dot %
// EACH-NOT: ttg.async_copy_global_to_local
// EACH: ttng.warp_group_dot_wait {{.*}}pendings = 0
// EACH: ttg.async_copy_global_to_local
tt.func public @flat(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}, %steps: i32, %all: i32) {
  %always = arith.constant true
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128x32xf32>
  %pid = tt.get_program_id x : i32
  %programs = tt.get_num_programs x : i32
  %m = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %n = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %row = tt.expand_dims %m {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %col = tt.expand_dims %n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %krow = tt.expand_dims %n {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %ks = tt.splat %k : i32 -> tensor<128x1xi32>
  %a_rows = arith.muli %row, %ks : tensor<128x1xi32>
  %a_b = tt.broadcast %a_rows : tensor<128x1xi32> -> tensor<128x32xi32>
  %col_b = tt.broadcast %col : tensor<1x32xi32> -> tensor<128x32xi32>
  %a_at = arith.addi %a_b, %col_b : tensor<128x32xi32>
  %c32s = arith.constant dense<32> : tensor<32x1xi32>
  %b_rows = arith.muli %krow, %c32s : tensor<32x1xi32>
  %b_b = tt.broadcast %b_rows : tensor<32x1xi32> -> tensor<32x32xi32>
  %b_c = tt.broadcast %col : tensor<1x32xi32> -> tensor<32x32xi32>
  %b_at = arith.addi %b_b, %b_c : tensor<32x32xi32>
  %pa = tt.splat %a : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %pb = tt.splat %b : !tt.ptr<f16> -> tensor<32x32x!tt.ptr<f16>>
  %pc = tt.splat %c : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %c32r = arith.constant dense<32> : tensor<128x1xi32>
  %last_step = arith.subi %steps, %c1 : i32
  %tile_size = arith.muli %k, %c128 : i32
  %r:3 = scf.for %i = %c0 to %all step %c1 iter_args(%step = %c0, %tile = %pid, %acc = %zero) -> (i32, i32, tensor<128x32xf32>) : i32 {
    %k_at = arith.muli %step, %c32 : i32
    %first = arith.muli %tile, %tile_size : i32
    %a_off = arith.addi %first, %k_at : i32
    %a_s = tt.splat %a_off : i32 -> tensor<128x32xi32>
    %ao = arith.addi %a_at, %a_s : tensor<128x32xi32>
    %ap = tt.addptr %pa, %ao : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
    %x = tt.load %ap : tensor<128x32x!tt.ptr<f16>>
    %b_off = arith.muli %k_at, %c32 : i32
    %b_s = tt.splat %b_off : i32 -> tensor<32x32xi32>
    %bo = arith.addi %b_at, %b_s : tensor<32x32xi32>
    %bp = tt.addptr %pb, %bo : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
    %y = tt.load %bp : tensor<32x32x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %acc : tensor<128x32xf16> * tensor<32x32xf16> -> tensor<128x32xf32>
    %last = arith.cmpi eq, %step, %last_step : i32
    %kept = arith.select %last, %zero, %d : tensor<128x32xf32>
    scf.if %last {
      %t_at = arith.muli %tile, %c128 : i32
      %t_s = tt.splat %t_at : i32 -> tensor<128x1xi32>
      %rows = arith.addi %row, %t_s : tensor<128x1xi32>
      %o_rows = arith.muli %rows, %c32r : tensor<128x1xi32>
      %o_b = tt.broadcast %o_rows : tensor<128x1xi32> -> tensor<128x32xi32>
      %o_at = arith.addi %o_b, %col_b : tensor<128x32xi32>
      %op = tt.addptr %pc, %o_at : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
      %h = arith.truncf %d : tensor<128x32xf32> to tensor<128x32xf16>
      tt.store %op, %h : tensor<128x32x!tt.ptr<f16>>
    }
    %next_step = arith.addi %step, %c1 : i32
    %s1 = arith.select %last, %c0, %next_step : i32
    %next_tile = arith.addi %tile, %programs : i32
    %t1 = arith.select %last, %next_tile, %tile : i32
    scf.yield %s1, %t1, %kept : i32, i32, tensor<128x32xf32>
  }
  tt.return
}
