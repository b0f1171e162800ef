// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx -o - | FileCheck %s --check-prefixes=PTX
// RUN: sed 's/extui %codes/extsi %codes/' %s | %ttc - --target cuda:90 --num-warps 4 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// RUN: sed 's/tensor<64x32xi8>/tensor<64x32xi16>/g; s/<i8>/<i16>/g' %s | %ttc - --target cuda:90 --num-warps 4 --emit ptx -o - | FileCheck %s --check-prefix=LARGE

// Eight weights are an entry of a table of 256, which a byte says: 4 KiB that all threads look up again and again, and that stay in the
// L1. The rows of what they are multiplied by are read once, past it. A table of 65,536 entries would not stay.
// PTX-DAG: cp.async.ca.shared.global [{{.*}}], [{{.*}}], 16
// PTX-DAG: cp.async.cg.shared.global
// LARGE-NOT: cp.async.ca.shared.global [{{.*}}], [{{.*}}], 16
tt.func public @codes(%x: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %code: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %table: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x32xf32>
  %eight = arith.constant dense<8> : tensor<64x1xi32>
  %eights = arith.constant dense<8> : tensor<64x32xi32>
  %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r32 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tt.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %n = tt.expand_dims %r32 {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %pitch = tt.splat %k : i32 -> tensor<64x1xi32>
  %pitches = tt.splat %k : i32 -> tensor<1x32xi32>
  %rows = arith.muli %m, %pitch : tensor<64x1xi32>
  %columns = arith.muli %n, %pitches : tensor<1x32xi32>
  %rowsb = tt.broadcast %rows : tensor<64x1xi32> -> tensor<64x64xi32>
  %columnsb = tt.broadcast %columns : tensor<1x32xi32> -> tensor<64x32xi32>
  %entry = arith.divsi %m, %eight : tensor<64x1xi32>
  %part = arith.remsi %m, %eight : tensor<64x1xi32>
  %partb = tt.broadcast %part : tensor<64x1xi32> -> tensor<64x32xi32>
  %xs = tt.splat %x : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %cs = tt.splat %code : !tt.ptr<i8> -> tensor<64x32x!tt.ptr<i8>>
  %ts = tt.splat %table : !tt.ptr<f16> -> tensor<64x32x!tt.ptr<f16>>
  %sum = scf.for %i = %c0 to %k step %c64 iter_args(%acc = %zero) -> (tensor<64x32xf32>) : i32 {
    %is = tt.splat %i : i32 -> tensor<1x64xi32>
    %along = arith.addi %row, %is : tensor<1x64xi32>
    %alongb = tt.broadcast %along : tensor<1x64xi32> -> tensor<64x64xi32>
    %at = arith.addi %rowsb, %alongb : tensor<64x64xi32>
    %px = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
    %a = tt.load %px : tensor<64x64x!tt.ptr<f16>>
    %js = tt.splat %i : i32 -> tensor<64x1xi32>
    %j = arith.addi %entry, %js : tensor<64x1xi32>
    %jb = tt.broadcast %j : tensor<64x1xi32> -> tensor<64x32xi32>
    %ct = arith.addi %jb, %columnsb : tensor<64x32xi32>
    %pc = tt.addptr %cs, %ct : tensor<64x32x!tt.ptr<i8>>, tensor<64x32xi32>
    %codes = tt.load %pc : tensor<64x32x!tt.ptr<i8>>
    %numbers = arith.extui %codes : tensor<64x32xi8> to tensor<64x32xi32>
    %first = arith.muli %numbers, %eights : tensor<64x32xi32>
    %tt = arith.addi %first, %partb : tensor<64x32xi32>
    %pt = tt.addptr %ts, %tt : tensor<64x32x!tt.ptr<f16>>, tensor<64x32xi32>
    %b = tt.load %pt : tensor<64x32x!tt.ptr<f16>>
    %d = tt.dot %a, %b, %acc : tensor<64x64xf16> * tensor<64x32xf16> -> tensor<64x32xf32>
    scf.yield %d : tensor<64x32xf32>
  }
  %m32 = arith.constant dense<32> : tensor<64x1xi32>
  %out = arith.muli %m, %m32 : tensor<64x1xi32>
  %outb = tt.broadcast %out : tensor<64x1xi32> -> tensor<64x32xi32>
  %nb = tt.broadcast %n : tensor<1x32xi32> -> tensor<64x32xi32>
  %ot = arith.addi %outb, %nb : tensor<64x32xi32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x32x!tt.ptr<f32>>
  %py = tt.addptr %ys, %ot : tensor<64x32x!tt.ptr<f32>>, tensor<64x32xi32>
  tt.store %py, %sum : tensor<64x32x!tt.ptr<f32>>
  tt.return
}
