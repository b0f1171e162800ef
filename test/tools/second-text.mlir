// RUN: %ttc %s --emit cubin --explain -o /dev/null 2>&1 | FileCheck %s
// RUN: %ttc %s --emit ttgir -o - | FileCheck %s --check-prefix=TTGIR
// REQUIRES: ptxas

// Rows that start anywhere are loaded element by element, which copies cannot do: what runs ahead waits in registers. Whether
// more CTAs do better is known when registers are allocated: both texts are assembled.
// CHECK: remark: has a software pipeline of 3 stages
// CHECK: remark: choice of the stack of a thread: as it was bounded: 0 bytes | {{.*}}without loads that wait in registers: 0

// That there was something to compare is no matter of the IR.
// TTGIR-NOT: ttg.ahead_in_registers
tt.func public @rows_that_start_anywhere(%a: !tt.ptr<f16>, %b: !tt.ptr<f16>, %c: !tt.ptr<f32>, %n: i32, %lda: i32, %ldb: i32) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %n0 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %m_col = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %m_row = tt.expand_dims %n0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %lda_s = tt.splat %lda : i32 -> tensor<64x1xi32>
  %ldb_s = tt.splat %ldb : i32 -> tensor<64x1xi32>
  %a_rows = arith.muli %m_col, %lda_s : tensor<64x1xi32>
  %a_b = tt.broadcast %a_rows : tensor<64x1xi32> -> tensor<64x64xi32>
  %pa = tt.splat %a : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %pb = tt.splat %b : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %b_cols = tt.broadcast %m_row : tensor<1x64xi32> -> tensor<64x64xi32>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %i_s = tt.splat %i : i32 -> tensor<64xi32>
    %ki = arith.addi %k, %i_s : tensor<64xi32>
    %k_row = tt.expand_dims %ki {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %k_col = tt.expand_dims %ki {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %k_b = tt.broadcast %k_row : tensor<1x64xi32> -> tensor<64x64xi32>
    %ao = arith.addi %a_b, %k_b : tensor<64x64xi32>
    %ap = tt.addptr %pa, %ao : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %x = tt.load %ap : tensor<64x64x!tt.ptr<f16>>
    %b_rows = arith.muli %k_col, %ldb_s : tensor<64x1xi32>
    %b_b = tt.broadcast %b_rows : tensor<64x1xi32> -> tensor<64x64xi32>
    %bo = arith.addi %b_b, %b_cols : tensor<64x64xi32>
    %bp = tt.addptr %pb, %bo : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %y = tt.load %bp : tensor<64x64x!tt.ptr<f16>>
    %d = tt.dot %x, %y, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %c128 = arith.constant dense<128> : tensor<64x1xi32>
  %c_rows = arith.muli %m_col, %c128 : tensor<64x1xi32>
  %c_b = tt.broadcast %c_rows : tensor<64x1xi32> -> tensor<64x64xi32>
  %c_cols = tt.broadcast %m_row : tensor<1x64xi32> -> tensor<64x64xi32>
  %co = arith.addi %c_b, %c_cols : tensor<64x64xi32>
  %pc = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %cp = tt.addptr %pc, %co : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  tt.store %cp, %sum : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
