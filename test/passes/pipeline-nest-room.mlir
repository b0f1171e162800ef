// A loop over tiles whose last product of each has masks, and is stored. What a tile loads ahead for the next one waits beside that: beside the
// operands of the last product, and then beside what the result goes through to be stored in whole lines. One comes after the other, so
// that three slots of each ring fit beside them (147,456 and 65,536 bytes).
// RUN: %ttc %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir --explain -o - 2>&1 | FileCheck %s
// CHECK: loads for the next tile before this one ends
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x256xbf16
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x64x128xbf16

module {
  tt.func public @tiles(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %depth: i32, %tiles: i32) {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %step = arith.constant 64 : i32
    %wide = arith.constant 256 : i32
    %narrow = arith.constant 128 : i32
    %none = arith.constant dense<0.0> : tensor<256x128xf32>
    %no_a = arith.constant dense<0.0> : tensor<64x256xbf16>
    %no_b = arith.constant dense<0.0> : tensor<64x128xbf16>
    %pitch_a = arith.constant dense<1024> : tensor<64x1xi32>
    %pitch_b = arith.constant dense<2048> : tensor<64x1xi32>
    %pitch_c = arith.constant dense<2048> : tensor<256x1xi32>
    %id = tt.get_program_id x : i32
    %count = tt.get_num_programs x : i32
    %k = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %m = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %n = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %as = tt.splat %a : !tt.ptr<bf16> -> tensor<64x256x!tt.ptr<bf16>>
    %bs = tt.splat %b : !tt.ptr<bf16> -> tensor<64x128x!tt.ptr<bf16>>
    %cs = tt.splat %c : !tt.ptr<bf16> -> tensor<256x128x!tt.ptr<bf16>>
    scf.for %tile = %id to %tiles step %count : i32 {
      %row = arith.muli %tile, %wide : i32
      %column = arith.muli %tile, %narrow : i32
      %rows = tt.splat %row : i32 -> tensor<256xi32>
      %columns = tt.splat %column : i32 -> tensor<128xi32>
      %ms = arith.addi %rows, %m : tensor<256xi32>
      %ns = arith.addi %columns, %n : tensor<128xi32>
      %ma = tt.expand_dims %ms {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
      %na = tt.expand_dims %ns {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
      %mb = tt.broadcast %ma : tensor<1x256xi32> -> tensor<64x256xi32>
      %nb = tt.broadcast %na : tensor<1x128xi32> -> tensor<64x128xi32>
      %last = arith.subi %depth, %step : i32
      %sum:2 = scf.for %i = %zero to %last step %step iter_args(%acc = %none, %ks = %k) -> (tensor<256x128xf32>, tensor<64xi32>) : i32 {
        %k1 = tt.expand_dims %ks {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
        %ka = arith.muli %k1, %pitch_a : tensor<64x1xi32>
        %kb = arith.muli %k1, %pitch_b : tensor<64x1xi32>
        %ka2 = tt.broadcast %ka : tensor<64x1xi32> -> tensor<64x256xi32>
        %kb2 = tt.broadcast %kb : tensor<64x1xi32> -> tensor<64x128xi32>
        %ia = arith.addi %mb, %ka2 : tensor<64x256xi32>
        %ib = arith.addi %nb, %kb2 : tensor<64x128xi32>
        %pa = tt.addptr %as, %ia : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
        %pb = tt.addptr %bs, %ib : tensor<64x128x!tt.ptr<bf16>>, tensor<64x128xi32>
        %x = tt.load %pa : tensor<64x256x!tt.ptr<bf16>>
        %y = tt.load %pb : tensor<64x128x!tt.ptr<bf16>>
        %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x256xbf16> -> tensor<256x64xbf16>
        %d = tt.dot %t, %y, %acc : tensor<256x64xbf16> * tensor<64x128xbf16> -> tensor<256x128xf32>
        %by = tt.splat %step : i32 -> tensor<64xi32>
        %next = arith.addi %ks, %by : tensor<64xi32>
        scf.yield %d, %next : tensor<256x128xf32>, tensor<64xi32>
      }
      %start = tt.splat %last : i32 -> tensor<64xi32>
      %ke = arith.addi %start, %k : tensor<64xi32>
      %end = tt.splat %depth : i32 -> tensor<64xi32>
      %in = arith.cmpi slt, %ke, %end : tensor<64xi32>
      %in1 = tt.expand_dims %in {axis = 1 : i32} : tensor<64xi1> -> tensor<64x1xi1>
      %mask_a = tt.broadcast %in1 : tensor<64x1xi1> -> tensor<64x256xi1>
      %mask_b = tt.broadcast %in1 : tensor<64x1xi1> -> tensor<64x128xi1>
      %k1 = tt.expand_dims %ke {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %ka = arith.muli %k1, %pitch_a : tensor<64x1xi32>
      %kb = arith.muli %k1, %pitch_b : tensor<64x1xi32>
      %ka2 = tt.broadcast %ka : tensor<64x1xi32> -> tensor<64x256xi32>
      %kb2 = tt.broadcast %kb : tensor<64x1xi32> -> tensor<64x128xi32>
      %ia = arith.addi %mb, %ka2 : tensor<64x256xi32>
      %ib = arith.addi %nb, %kb2 : tensor<64x128xi32>
      %pa = tt.addptr %as, %ia : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
      %pb = tt.addptr %bs, %ib : tensor<64x128x!tt.ptr<bf16>>, tensor<64x128xi32>
      %x = tt.load %pa, %mask_a, %no_a : tensor<64x256x!tt.ptr<bf16>>
      %y = tt.load %pb, %mask_b, %no_b : tensor<64x128x!tt.ptr<bf16>>
      %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<64x256xbf16> -> tensor<256x64xbf16>
      %d = tt.dot %t, %y, %sum#0 : tensor<256x64xbf16> * tensor<64x128xbf16> -> tensor<256x128xf32>
      %out = arith.truncf %d : tensor<256x128xf32> to tensor<256x128xbf16>
      %m1 = tt.expand_dims %ms {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
      %mc = arith.muli %m1, %pitch_c : tensor<256x1xi32>
      %mc2 = tt.broadcast %mc : tensor<256x1xi32> -> tensor<256x128xi32>
      %nc2 = tt.broadcast %na : tensor<1x128xi32> -> tensor<256x128xi32>
      %ic = arith.addi %mc2, %nc2 : tensor<256x128xi32>
      %pc = tt.addptr %cs, %ic : tensor<256x128x!tt.ptr<bf16>>, tensor<256x128xi32>
      tt.store %pc, %out : tensor<256x128x!tt.ptr<bf16>>
    }
    tt.return
  }
}
