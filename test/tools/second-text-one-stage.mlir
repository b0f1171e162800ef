// RUN: %ttc %s --num-warps 2 --emit cubin --explain -o /dev/null 2>&1 | FileCheck %s
// RUN: %ttc %s --num-warps 2 --emit ttgir -o - | FileCheck %s --check-prefix=TTGIR
// RUN: sed 's/^  }$/  } {tt.num_stages = 3 : i32}/' %s | %ttc - --num-warps 2 --emit cubin --explain -o /dev/null 2>&1 | FileCheck %s --check-prefix=OWN
// REQUIRES: ptxas

// Tiles that are too large for two warps: what the loop copies for later iterations makes it load from the stack what it does not have to
// with one stage. Both texts are assembled.
// CHECK: remark: has a software pipeline of {{2|3}} stages
// CHECK: remark: choice of the stack of a thread: with one stage: {{.*}}as it was bounded

// TTGIR-NOT: ttg.copies_ahead

// A loop that says itself how many stages it wants has as many in any text.
// OWN: remark: has a software pipeline of 3 stages
// OWN-NOT: {{with one stage|without loads that wait in registers}}
tt.func public @scaled_rows(%a: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %g: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %h: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %c: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %wide = arith.constant dense<128> : tensor<64x1xi32>
  %m = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %n = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %m {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.expand_dims %n {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %ks = tt.splat %k : i32 -> tensor<64x1xi32>
  %a_row = arith.muli %rows, %ks : tensor<64x1xi32>
  %a_rows = tt.broadcast %a_row : tensor<64x1xi32> -> tensor<64x64xi32>
  %b_columns = tt.broadcast %columns : tensor<1x128xi32> -> tensor<64x128xi32>
  %pa = tt.splat %a : !tt.ptr<bf16> -> tensor<64x64x!tt.ptr<bf16>>
  %pb = tt.splat %b : !tt.ptr<bf16> -> tensor<64x128x!tt.ptr<bf16>>
  %pg = tt.splat %g : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %mp = tt.addptr %pg, %m : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %mean = tt.load %mp : tensor<64x!tt.ptr<f32>>
  %mean_col = tt.expand_dims %mean {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %means = tt.broadcast %mean_col : tensor<64x1xf32> -> tensor<64x64xf32>
  %ph = tt.splat %h : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
  %sp = tt.addptr %ph, %m : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
  %spread = tt.load %sp : tensor<64x!tt.ptr<f32>>
  %spread_col = tt.expand_dims %spread {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %spreads = tt.broadcast %spread_col : tensor<64x1xf32> -> tensor<64x64xf32>
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x128xf32>) : i32 {
    %i_s = tt.splat %i : i32 -> tensor<64xi32>
    %kk = arith.addi %m, %i_s : tensor<64xi32>
    %k_row = tt.expand_dims %kk {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %k_col = tt.expand_dims %kk {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %a_k = tt.broadcast %k_row : tensor<1x64xi32> -> tensor<64x64xi32>
    %ao = arith.addi %a_rows, %a_k : tensor<64x64xi32>
    %ap = tt.addptr %pa, %ao : tensor<64x64x!tt.ptr<bf16>>, tensor<64x64xi32>
    %x = tt.load %ap : tensor<64x64x!tt.ptr<bf16>>
    %gp = tt.addptr %pg, %kk : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %gain = tt.load %gp : tensor<64x!tt.ptr<f32>>
    %gain_row = tt.expand_dims %gain {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %gains = tt.broadcast %gain_row : tensor<1x64xf32> -> tensor<64x64xf32>
    %hp = tt.addptr %ph, %kk : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %shift = tt.load %hp : tensor<64x!tt.ptr<f32>>
    %shift_row = tt.expand_dims %shift {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %shifts = tt.broadcast %shift_row : tensor<1x64xf32> -> tensor<64x64xf32>
    %x32 = arith.extf %x : tensor<64x64xbf16> to tensor<64x64xf32>
    %centered = arith.subf %x32, %means : tensor<64x64xf32>
    %unit = arith.mulf %centered, %spreads : tensor<64x64xf32>
    %gained = arith.mulf %unit, %gains : tensor<64x64xf32>
    %scaled = arith.addf %gained, %shifts : tensor<64x64xf32>
    %y = arith.truncf %scaled : tensor<64x64xf32> to tensor<64x64xbf16>
    %b_row = arith.muli %k_col, %wide : tensor<64x1xi32>
    %b_rows = tt.broadcast %b_row : tensor<64x1xi32> -> tensor<64x128xi32>
    %bo = arith.addi %b_rows, %b_columns : tensor<64x128xi32>
    %bp = tt.addptr %pb, %bo : tensor<64x128x!tt.ptr<bf16>>, tensor<64x128xi32>
    %w = tt.load %bp : tensor<64x128x!tt.ptr<bf16>>
    %d = tt.dot %y, %w, %acc : tensor<64x64xbf16> * tensor<64x128xbf16> -> tensor<64x128xf32>
    scf.yield %d : tensor<64x128xf32>
  }
  %c_row = arith.muli %rows, %wide : tensor<64x1xi32>
  %c_rows = tt.broadcast %c_row : tensor<64x1xi32> -> tensor<64x128xi32>
  %co = arith.addi %c_rows, %b_columns : tensor<64x128xi32>
  %pc = tt.splat %c : !tt.ptr<bf16> -> tensor<64x128x!tt.ptr<bf16>>
  %cp = tt.addptr %pc, %co : tensor<64x128x!tt.ptr<bf16>>, tensor<64x128xi32>
  %out = arith.truncf %sum : tensor<64x128xf32> to tensor<64x128xbf16>
  tt.store %cp, %out : tensor<64x128x!tt.ptr<bf16>>
  tt.return
}
