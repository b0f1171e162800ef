// RUN: %ttc %s --target cuda:90 --num-stages 4 --emit ttgir --explain -o /dev/null 2>&1 | FileCheck %s

// Two loops, one behind the other, each of which multiplies by a tile that waits in shared memory. The first one's tile is
// gone when the second loop runs: both are scheduled alike.
// CHECK: choice of the schedule of this loop{{.*}} each{{.*}}: [[CHOICE:[0-9] stages, .*]]
// CHECK: choice of the schedule of this loop{{.*}} each{{.*}}: [[CHOICE]]
module {
  tt.func public @two(%a: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
    %zero = arith.constant dense<0.0> : tensor<128x32xf32>
    %start = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %step = arith.constant 8192 : i32
    %tile = arith.constant 32768 : i32
    %r128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
    %r256 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
    %r32 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
    %pitch = arith.constant dense<256> : tensor<128x1xi32>
    %pitch_b = arith.constant dense<32> : tensor<256x1xi32>
    %pitch_c = arith.constant dense<32> : tensor<128x1xi32>
    %rows = tt.expand_dims %r128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %starts = arith.muli %rows, %pitch : tensor<128x1xi32>
    %columns = tt.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
    %0 = tt.broadcast %starts : tensor<128x1xi32> -> tensor<128x256xi32>
    %1 = tt.broadcast %columns : tensor<1x256xi32> -> tensor<128x256xi32>
    %at = arith.addi %0, %1 : tensor<128x256xi32>
    %rows_b = tt.expand_dims %r256 {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
    %starts_b = arith.muli %rows_b, %pitch_b : tensor<256x1xi32>
    %columns_b = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
    %2 = tt.broadcast %starts_b : tensor<256x1xi32> -> tensor<256x32xi32>
    %3 = tt.broadcast %columns_b : tensor<1x32xi32> -> tensor<256x32xi32>
    %at_b = arith.addi %2, %3 : tensor<256x32xi32>
    %as = tt.splat %a : !tt.ptr<f16> -> tensor<128x256x!tt.ptr<f16>>
    %aat = tt.addptr %as, %at : tensor<128x256x!tt.ptr<f16>>, tensor<128x256xi32>
    %av = tt.load %aat : tensor<128x256x!tt.ptr<f16>>
    %first = scf.for %i = %start to %n step %one iter_args(%acc = %zero) -> (tensor<128x32xf32>) : i32 {
      %offset = arith.muli %i, %step : i32
      %bp = tt.addptr %b, %offset : !tt.ptr<f16>, i32
      %bs = tt.splat %bp : !tt.ptr<f16> -> tensor<256x32x!tt.ptr<f16>>
      %bat = tt.addptr %bs, %at_b : tensor<256x32x!tt.ptr<f16>>, tensor<256x32xi32>
      %bv = tt.load %bat : tensor<256x32x!tt.ptr<f16>>
      %next = tt.dot %av, %bv, %acc, inputPrecision = tf32 : tensor<128x256xf16> * tensor<256x32xf16> -> tensor<128x32xf32>
      scf.yield %next : tensor<128x32xf32>
    }
    %other = tt.addptr %a, %tile : !tt.ptr<f16>, i32
    %os = tt.splat %other : !tt.ptr<f16> -> tensor<128x256x!tt.ptr<f16>>
    %oat = tt.addptr %os, %at : tensor<128x256x!tt.ptr<f16>>, tensor<128x256xi32>
    %ov = tt.load %oat : tensor<128x256x!tt.ptr<f16>>
    %second = scf.for %i = %start to %n step %one iter_args(%acc = %zero) -> (tensor<128x32xf32>) : i32 {
      %offset = arith.muli %i, %step : i32
      %bp = tt.addptr %c, %offset : !tt.ptr<f32>, i32
      %bq = tt.bitcast %bp : !tt.ptr<f32> -> !tt.ptr<f16>
      %bs = tt.splat %bq : !tt.ptr<f16> -> tensor<256x32x!tt.ptr<f16>>
      %bat = tt.addptr %bs, %at_b : tensor<256x32x!tt.ptr<f16>>, tensor<256x32xi32>
      %bv = tt.load %bat : tensor<256x32x!tt.ptr<f16>>
      %next = tt.dot %ov, %bv, %acc, inputPrecision = tf32 : tensor<128x256xf16> * tensor<256x32xf16> -> tensor<128x32xf32>
      scf.yield %next : tensor<128x32xf32>
    }
    %ci = arith.muli %rows, %pitch_c : tensor<128x1xi32>
    %cb = tt.broadcast %ci : tensor<128x1xi32> -> tensor<128x32xi32>
    %cj = tt.broadcast %columns_b : tensor<1x32xi32> -> tensor<128x32xi32>
    %ck = arith.addi %cb, %cj : tensor<128x32xi32>
    %cs = tt.splat %c : !tt.ptr<f32> -> tensor<128x32x!tt.ptr<f32>>
    %cat = tt.addptr %cs, %ck : tensor<128x32x!tt.ptr<f32>>, tensor<128x32xi32>
    %both = arith.mulf %first, %second : tensor<128x32xf32>
    tt.store %cat, %both : tensor<128x32x!tt.ptr<f32>>
    tt.return
  }
}
