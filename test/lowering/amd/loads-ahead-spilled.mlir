// RUN: %ttc %s --target hip:gfx942 --num-warps 8 --num-stages 3 --emit amdgcn --explain -o - 2>&1 | FileCheck %s
// RUN: %ttc %s --target hip:gfx942 --num-warps 8 --num-stages 3 --emit hsaco --dump %t -o %t.hsaco
// RUN: FileCheck %s --check-prefix=DUMPED --input-file %t/single_bytes.ttgir
// RUN: sed 's/128x/64x/g; s/x128/x64/g; s/\b128\b/64/g' %s | %ttc - --target hip:gfx942 --num-warps 1 --num-stages 3 --emit amdgcn --explain -o %t.one 2>&1 | FileCheck %s --check-prefix=ONE

// Rows of bytes at any address are loaded one by one, and wait for the next iteration in a register each: more than there are. What is taken has
// no loads ahead, in all stages that are written.
// CHECK: remark: choice of what a thread spills: without: {{[0-9]}} registers | with loads that wait in registers: {{[0-9][0-9]+}}
// CHECK: .vgpr_spill_count: {{[0-9]$}}
// A single warp likewise.
// ONE: remark: choice of what a thread spills: without: {{[0-9]+}} registers | with loads that wait in registers: {{[0-9]+}}
// DUMPED: scf.for
// DUMPED-NEXT: tt.load
tt.func public @single_bytes(%a: !tt.ptr<f8E4M3FN>, %b: !tt.ptr<f8E4M3FN>, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %step = arith.constant dense<128> : tensor<128x128xi32>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %pitches = tt.splat %pitch : i32 -> tensor<128x1xi32>
  %begins = arith.muli %rows, %pitches : tensor<128x1xi32>
  %rb = tt.broadcast %begins : tensor<128x1xi32> -> tensor<128x128xi32>
  %cb = tt.broadcast %columns : tensor<1x128xi32> -> tensor<128x128xi32>
  %at = arith.addi %rb, %cb : tensor<128x128xi32>
  %pitchesb = tt.splat %pitch : i32 -> tensor<1x128xi32>
  %beginsb = arith.muli %columns, %pitchesb : tensor<1x128xi32>
  %cbb = tt.broadcast %beginsb : tensor<1x128xi32> -> tensor<128x128xi32>
  %rbb = tt.broadcast %rows : tensor<128x1xi32> -> tensor<128x128xi32>
  %bt = arith.addi %cbb, %rbb : tensor<128x128xi32>
  %as = tt.splat %a : !tt.ptr<f8E4M3FN> -> tensor<128x128x!tt.ptr<f8E4M3FN>>
  %bs = tt.splat %b : !tt.ptr<f8E4M3FN> -> tensor<128x128x!tt.ptr<f8E4M3FN>>
  %pa0 = tt.addptr %as, %at : tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xi32>
  %pb0 = tt.addptr %bs, %bt : tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xi32>
  %s:3 = scf.for %k = %c0 to %n step %c128 iter_args(%pa = %pa0, %pb = %pb0, %sum = %zero) -> (tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xf32>) : i32 {
    %x = tt.load %pa : tensor<128x128x!tt.ptr<f8E4M3FN>>
    %y = tt.load %pb : tensor<128x128x!tt.ptr<f8E4M3FN>>
    %d = tt.dot %x, %y, %sum, inputPrecision = tf32 : tensor<128x128xf8E4M3FN> * tensor<128x128xf8E4M3FN> -> tensor<128x128xf32>
    %na = tt.addptr %pa, %step : tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xi32>
    %nb = tt.addptr %pb, %step : tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xi32>
    scf.yield %na, %nb, %d : tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128x!tt.ptr<f8E4M3FN>>, tensor<128x128xf32>
  }
  %os = tt.splat %o : !tt.ptr<f32> -> tensor<128x128x!tt.ptr<f32>>
  %op = tt.addptr %os, %at : tensor<128x128x!tt.ptr<f32>>, tensor<128x128xi32>
  tt.store %op, %s#2 : tensor<128x128x!tt.ptr<f32>>
  tt.return
}
