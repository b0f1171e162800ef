// RUN: %ttc %s --emit cubin --explain -o /dev/null --metadata %t.json 2>&1 | FileCheck %s
// RUN: FileCheck %s --check-prefix=SHARED --input-file %t.json
// RUN: %ttc %s --emit ttgir -o - | FileCheck %s --check-prefix=TTGIR
// RUN: %ttopt %s --pass-pipeline='builtin.module(convert-triton-to-tritongpu{target=cuda:90},tritongpu-coalesce,tritongpu-remove-layout-conversions{mark-replicas=true})' | FileCheck %s --check-prefix=MARKED
// RUN: %ttopt %s --pass-pipeline='builtin.module(convert-triton-to-tritongpu{target=cuda:90},tritongpu-coalesce,tritongpu-remove-layout-conversions{few-replicas=true mark-replicas=true})' | FileCheck %s --check-prefix=FEW
// REQUIRES: ptxas

// Sixteen lanes load the same of a row, and a thread has sixteen rows, each with a mask of its own: the loads cost least in issue slots, but
// masks take all predicates, of which each exponential needs one. What costs more when it is there is known when it is assembled.
// CHECK: remark: choice of the stack of a thread: with what several threads load handed to them by one: 0 bytes |
// Both texts are launched with the shared memory that the second takes.
// SHARED: "shared": 2048

// TTGIR-NOT: ttg.has_replicas
// TTGIR-NOT: ttg.convert_layout
// MARKED: module attributes {{{.*}}ttg.has_replicas
// MARKED-NOT: ttg.convert_layout
// FEW-NOT: ttg.has_replicas
// FEW: ttg.convert_layout
tt.func public @exponentials(%w: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %t: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32, %len: i32 {tt.divisibility = 16 : i32}) {
  %c128 = arith.constant 128 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %terms = arith.constant dense<8> : tensor<128xi32>
  %pid = tt.get_program_id x : i32
  %first = arith.muli %pid, %c128 : i32
  %first_s = tt.splat %first : i32 -> tensor<128xi32>
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = arith.addi %first_s, %r : tensor<128xi32>
  %n_s = tt.splat %n : i32 -> tensor<128xi32>
  %mask = arith.cmpi slt, %rows, %n_s : tensor<128xi32>
  %base = arith.muli %rows, %terms : tensor<128xi32>
  %w_s = tt.splat %w : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %p_s = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %cols = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %t_s = tt.splat %t : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %tp = tt.addptr %t_s, %cols : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %times = tt.load %tp : tensor<64x!tt.ptr<f32>>
  %t_row = tt.expand_dims %times {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %t_b = tt.broadcast %t_row : tensor<1x64xf32> -> tensor<128x64xf32>
  %sum0 = arith.constant dense<0.0> : tensor<128x64xf32>
  %k0 = arith.constant dense<0> : tensor<128xi32>
  %o0 = arith.addi %base, %k0 : tensor<128xi32>
  %wp0 = tt.addptr %w_s, %o0 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w0 = tt.load %wp0, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp0 = tt.addptr %p_s, %o0 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p0 = tt.load %pp0, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc0 = tt.expand_dims %p0 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb0 = tt.broadcast %pc0 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x0 = arith.mulf %pb0, %t_b : tensor<128x64xf32>
  %e0 = math.exp %x0 : tensor<128x64xf32>
  %wc0 = tt.expand_dims %w0 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb0 = tt.broadcast %wc0 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y0 = arith.mulf %wb0, %e0 : tensor<128x64xf32>
  %sum1 = arith.addf %sum0, %y0 : tensor<128x64xf32>
  %k1 = arith.constant dense<1> : tensor<128xi32>
  %o1 = arith.addi %base, %k1 : tensor<128xi32>
  %wp1 = tt.addptr %w_s, %o1 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w1 = tt.load %wp1, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp1 = tt.addptr %p_s, %o1 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p1 = tt.load %pp1, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc1 = tt.expand_dims %p1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb1 = tt.broadcast %pc1 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x1 = arith.mulf %pb1, %t_b : tensor<128x64xf32>
  %e1 = math.exp %x1 : tensor<128x64xf32>
  %wc1 = tt.expand_dims %w1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb1 = tt.broadcast %wc1 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y1 = arith.mulf %wb1, %e1 : tensor<128x64xf32>
  %sum2 = arith.addf %sum1, %y1 : tensor<128x64xf32>
  %k2 = arith.constant dense<2> : tensor<128xi32>
  %o2 = arith.addi %base, %k2 : tensor<128xi32>
  %wp2 = tt.addptr %w_s, %o2 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w2 = tt.load %wp2, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp2 = tt.addptr %p_s, %o2 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p2 = tt.load %pp2, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc2 = tt.expand_dims %p2 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb2 = tt.broadcast %pc2 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x2 = arith.mulf %pb2, %t_b : tensor<128x64xf32>
  %e2 = math.exp %x2 : tensor<128x64xf32>
  %wc2 = tt.expand_dims %w2 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb2 = tt.broadcast %wc2 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y2 = arith.mulf %wb2, %e2 : tensor<128x64xf32>
  %sum3 = arith.addf %sum2, %y2 : tensor<128x64xf32>
  %k3 = arith.constant dense<3> : tensor<128xi32>
  %o3 = arith.addi %base, %k3 : tensor<128xi32>
  %wp3 = tt.addptr %w_s, %o3 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w3 = tt.load %wp3, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp3 = tt.addptr %p_s, %o3 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p3 = tt.load %pp3, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc3 = tt.expand_dims %p3 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb3 = tt.broadcast %pc3 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x3 = arith.mulf %pb3, %t_b : tensor<128x64xf32>
  %e3 = math.exp %x3 : tensor<128x64xf32>
  %wc3 = tt.expand_dims %w3 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb3 = tt.broadcast %wc3 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y3 = arith.mulf %wb3, %e3 : tensor<128x64xf32>
  %sum4 = arith.addf %sum3, %y3 : tensor<128x64xf32>
  %k4 = arith.constant dense<4> : tensor<128xi32>
  %o4 = arith.addi %base, %k4 : tensor<128xi32>
  %wp4 = tt.addptr %w_s, %o4 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w4 = tt.load %wp4, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp4 = tt.addptr %p_s, %o4 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p4 = tt.load %pp4, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc4 = tt.expand_dims %p4 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb4 = tt.broadcast %pc4 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x4 = arith.mulf %pb4, %t_b : tensor<128x64xf32>
  %e4 = math.exp %x4 : tensor<128x64xf32>
  %wc4 = tt.expand_dims %w4 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb4 = tt.broadcast %wc4 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y4 = arith.mulf %wb4, %e4 : tensor<128x64xf32>
  %sum5 = arith.addf %sum4, %y4 : tensor<128x64xf32>
  %k5 = arith.constant dense<5> : tensor<128xi32>
  %o5 = arith.addi %base, %k5 : tensor<128xi32>
  %wp5 = tt.addptr %w_s, %o5 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w5 = tt.load %wp5, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp5 = tt.addptr %p_s, %o5 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p5 = tt.load %pp5, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc5 = tt.expand_dims %p5 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb5 = tt.broadcast %pc5 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x5 = arith.mulf %pb5, %t_b : tensor<128x64xf32>
  %e5 = math.exp %x5 : tensor<128x64xf32>
  %wc5 = tt.expand_dims %w5 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb5 = tt.broadcast %wc5 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y5 = arith.mulf %wb5, %e5 : tensor<128x64xf32>
  %sum6 = arith.addf %sum5, %y5 : tensor<128x64xf32>
  %k6 = arith.constant dense<6> : tensor<128xi32>
  %o6 = arith.addi %base, %k6 : tensor<128xi32>
  %wp6 = tt.addptr %w_s, %o6 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w6 = tt.load %wp6, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp6 = tt.addptr %p_s, %o6 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p6 = tt.load %pp6, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc6 = tt.expand_dims %p6 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb6 = tt.broadcast %pc6 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x6 = arith.mulf %pb6, %t_b : tensor<128x64xf32>
  %e6 = math.exp %x6 : tensor<128x64xf32>
  %wc6 = tt.expand_dims %w6 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb6 = tt.broadcast %wc6 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y6 = arith.mulf %wb6, %e6 : tensor<128x64xf32>
  %sum7 = arith.addf %sum6, %y6 : tensor<128x64xf32>
  %k7 = arith.constant dense<7> : tensor<128xi32>
  %o7 = arith.addi %base, %k7 : tensor<128xi32>
  %wp7 = tt.addptr %w_s, %o7 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %w7 = tt.load %wp7, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pp7 = tt.addptr %p_s, %o7 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %p7 = tt.load %pp7, %mask, %zero : tensor<128x!tt.ptr<f32>>
  %pc7 = tt.expand_dims %p7 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %pb7 = tt.broadcast %pc7 : tensor<128x1xf32> -> tensor<128x64xf32>
  %x7 = arith.mulf %pb7, %t_b : tensor<128x64xf32>
  %e7 = math.exp %x7 : tensor<128x64xf32>
  %wc7 = tt.expand_dims %w7 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %wb7 = tt.broadcast %wc7 : tensor<128x1xf32> -> tensor<128x64xf32>
  %y7 = arith.mulf %wb7, %e7 : tensor<128x64xf32>
  %sum8 = arith.addf %sum7, %y7 : tensor<128x64xf32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %len_s = tt.splat %len : i32 -> tensor<128x1xi32>
  %row_o = arith.muli %row, %len_s : tensor<128x1xi32>
  %row_b = tt.broadcast %row_o : tensor<128x1xi32> -> tensor<128x64xi32>
  %col = tt.expand_dims %cols {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %col_b = tt.broadcast %col : tensor<1x64xi32> -> tensor<128x64xi32>
  %at = arith.addi %row_b, %col_b : tensor<128x64xi32>
  %out_s = tt.splat %out : !tt.ptr<f32> -> tensor<128x64x!tt.ptr<f32>>
  %op = tt.addptr %out_s, %at : tensor<128x64x!tt.ptr<f32>>, tensor<128x64xi32>
  %mc = tt.expand_dims %mask {axis = 1 : i32} : tensor<128xi1> -> tensor<128x1xi1>
  %mb = tt.broadcast %mc : tensor<128x1xi1> -> tensor<128x64xi1>
  tt.store %op, %sum8, %mb : tensor<128x64x!tt.ptr<f32>>
  tt.return
}
