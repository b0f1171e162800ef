// Registers seem to suffice for six CTAs of a product of 64x64, as many as four slots of each ring leave room for. Code of it needs 64 a thread or
// fewer, so that rings of three slots, which are as good by all else that is known, leave room for two more (`tools/src/compile/room.rs`).
// RUN: %ttc %s --target cuda:90 --num-warps 4 --num-stages 3 --emit ttgir --explain -o - 2>&1 | FileCheck %s
// CHECK: ring 0: 4 slots
// CHECK: remark: rings of fewer slots leave shared memory for {{[789]}} CTAs
// CHECK: ring 0: 3 slots
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x32xf16
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf16
// CHECK-NOT: ttg.could_leave_room

module {
  tt.func public @product(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %depth: i32 {tt.divisibility = 16 : i32}) {
    %zero = arith.constant 0 : i32
    %step = arith.constant 32 : i32
    %size = arith.constant 64 : i32
    %none = arith.constant dense<0.0> : tensor<64x64xf32>
    %pitch_k = arith.constant dense<2048> : tensor<32x1xi32>
    %pitch_m = arith.constant dense<2048> : tensor<64x1xi32>
    %x = tt.get_program_id x : i32
    %y = tt.get_program_id y : i32
    %row = arith.muli %x, %size : i32
    %column = arith.muli %y, %size : i32
    %k = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %rows = tt.splat %row : i32 -> tensor<64xi32>
    %columns = tt.splat %column : i32 -> tensor<64xi32>
    %m = arith.addi %rows, %r : tensor<64xi32>
    %n = arith.addi %columns, %r : tensor<64xi32>
    %m1 = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %n1 = tt.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %ka = tt.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %kb = tt.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
    %depths = tt.splat %depth : i32 -> tensor<64x1xi32>
    %ma = arith.muli %m1, %depths : tensor<64x1xi32>
    %kn = arith.muli %kb, %pitch_k : tensor<32x1xi32>
    %ma2 = tt.broadcast %ma : tensor<64x1xi32> -> tensor<64x32xi32>
    %ka2 = tt.broadcast %ka : tensor<1x32xi32> -> tensor<64x32xi32>
    %kn2 = tt.broadcast %kn : tensor<32x1xi32> -> tensor<32x64xi32>
    %nb2 = tt.broadcast %n1 : tensor<1x64xi32> -> tensor<32x64xi32>
    %ia = arith.addi %ma2, %ka2 : tensor<64x32xi32>
    %ib = arith.addi %kn2, %nb2 : tensor<32x64xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
    %bs = tt.splat %b : !tt.ptr<f16> -> tensor<32x64x!tt.ptr<f16>>
    %pa = tt.addptr %as, %ia : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %pb = tt.addptr %bs, %ib : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
    %by_a = arith.constant dense<32> : tensor<64x32xi32>
    %by_b = arith.constant dense<65536> : tensor<32x64xi32>
    %all:3 = scf.for %i = %zero to %depth step %step iter_args(%acc = %none, %qa = %pa, %qb = %pb) -> (tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>) : i32 {
      %u = tt.load %qa : tensor<64x32x!tt.ptr<f16>>
      %v = tt.load %qb : tensor<32x64x!tt.ptr<f16>>
      %d = tt.dot %u, %v, %acc : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
      %na = tt.addptr %qa, %by_a : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
      %nb = tt.addptr %qb, %by_b : tensor<32x64x!tt.ptr<f16>>, tensor<32x64xi32>
      scf.yield %d, %na, %nb : tensor<64x64xf32>, tensor<64x32x!tt.ptr<f16>>, tensor<32x64x!tt.ptr<f16>>
    }
    %mc = arith.muli %m1, %pitch_m : tensor<64x1xi32>
    %mc2 = tt.broadcast %mc : tensor<64x1xi32> -> tensor<64x64xi32>
    %nc2 = tt.broadcast %n1 : tensor<1x64xi32> -> tensor<64x64xi32>
    %ic = arith.addi %mc2, %nc2 : tensor<64x64xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
    %pc = tt.addptr %cs, %ic : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
    tt.store %pc, %all#0 : tensor<64x64x!tt.ptr<f32>>
    tt.return
  }
}
