// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce | FileCheck %s

// Pixels of images of unknown width: nothing can be relied on, but most neighbours along dimension 0 lie next to each other,
// and those along dimension 1, channels, an unknown pitch apart. Lanes lie along dimension 0.
// CHECK: [[ROWS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-LABEL: @wraps
// CHECK: tt.load {{.*}} : tensor<128x32x!tt.ptr<f16>, [[ROWS]]>
tt.func @wraps(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %width: i32, %height: i32, %pitch: i32) -> tensor<128x32xf16> {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %w = tt.splat %width : i32 -> tensor<128xi32>
  %h = tt.splat %height : i32 -> tensor<128xi32>
  %s = tt.splat %pitch : i32 -> tensor<32xi32>
  %y = arith.divsi %r, %w : tensor<128xi32>
  %x = arith.remsi %r, %w : tensor<128xi32>
  %top = arith.muli %y, %h : tensor<128xi32>
  %row = arith.addi %top, %x : tensor<128xi32>
  %channel = arith.muli %c, %s : tensor<32xi32>
  %row2 = tt.expand_dims %row {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %channel2 = tt.expand_dims %channel {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %row3 = tt.broadcast %row2 : tensor<128x1xi32> -> tensor<128x32xi32>
  %channel3 = tt.broadcast %channel2 : tensor<1x32xi32> -> tensor<128x32xi32>
  %at = arith.addi %row3, %channel3 : tensor<128x32xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<128x32x!tt.ptr<f16>>
  %q = tt.addptr %b, %at : tensor<128x32x!tt.ptr<f16>>, tensor<128x32xi32>
  %v = tt.load %q : tensor<128x32x!tt.ptr<f16>>
  tt.return %v : tensor<128x32xf16>
}

// -----

// Two accesses have an index and a mask in common, which are computed from positions: each takes the widest vector.
// CHECK-DAG: [[V8:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-DAG: [[V4:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @share_an_index
// CHECK: tt.load {{.*}} : tensor<4096x!tt.ptr<f16>, [[V8]]>
// CHECK: tt.load {{.*}} : tensor<4096x!tt.ptr<f32>, [[V4]]>
tt.func @share_an_index(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) -> (tensor<4096xf16>, tensor<4096xf32>) {
  %r = tt.make_range {start = 0 : i32, end = 4096 : i32} : tensor<4096xi32>
  %s = tt.splat %n : i32 -> tensor<4096xi32>
  %m = arith.cmpi slt, %r, %s : tensor<4096xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<4096x!tt.ptr<f16>>
  %q = tt.addptr %b, %r : tensor<4096x!tt.ptr<f16>>, tensor<4096xi32>
  %x = tt.load %q, %m : tensor<4096x!tt.ptr<f16>>
  %c = tt.splat %o : !tt.ptr<f32> -> tensor<4096x!tt.ptr<f32>>
  %d = tt.addptr %c, %r : tensor<4096x!tt.ptr<f32>>, tensor<4096xi32>
  %y = tt.load %d, %m : tensor<4096x!tt.ptr<f32>>
  tt.return %x, %y : tensor<4096xf16>, tensor<4096xf32>
}

// -----

// What is loaded as bytes is stored for a dot as 16-bit numbers: sixteen of them are two accesses that meet in the banks.
// CHECK: [[V8:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @widened
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<i8>, [[V8]]>
tt.func @widened(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %a: tensor<64x64xf16>, %sum: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %pitch = arith.constant dense<64> : tensor<64x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %tops = arith.muli %rows, %pitch : tensor<64x1xi32>
  %tops2 = tt.broadcast %tops : tensor<64x1xi32> -> tensor<64x64xi32>
  %columns2 = tt.broadcast %columns : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %tops2, %columns2 : tensor<64x64xi32>
  %base = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
  %q = tt.addptr %base, %at : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<i8>>
  %b = arith.sitofp %x : tensor<64x64xi8> to tensor<64x64xf16>
  %d = tt.dot %a, %b, %sum : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Windows that overlap, clamped at the ends: neighbours along both dimensions usually lie next to each other. What is sorted
// or reduced along dimension 1, here after a reshape, as sorts do, stays in the registers of a thread.
// CHECK: [[WINDOWS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-LABEL: @windows
// CHECK: tt.load {{.*}} : tensor<128x4x!tt.ptr<f32>, [[WINDOWS]]>
tt.func @windows(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %last: i32) -> tensor<128x2xf32> {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %r2 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %r3 = tt.broadcast %r2 : tensor<128x1xi32> -> tensor<128x4xi32>
  %c3 = tt.broadcast %c2 : tensor<1x4xi32> -> tensor<128x4xi32>
  %sum = arith.addi %r3, %c3 : tensor<128x4xi32>
  %end = tt.splat %last : i32 -> tensor<128x4xi32>
  %at = arith.minsi %sum, %end : tensor<128x4xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x4x!tt.ptr<f32>>
  %q = tt.addptr %b, %at : tensor<128x4x!tt.ptr<f32>>, tensor<128x4xi32>
  %v = tt.load %q : tensor<128x4x!tt.ptr<f32>>
  %pairs = tt.reshape %v : tensor<128x4xf32> -> tensor<128x2x2xf32>
  %m = "tt.reduce"(%pairs) <{axis = 2 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.maxnumf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<128x2x2xf32>) -> tensor<128x2xf32>
  tt.return %m : tensor<128x2xf32>
}

// -----

// Without anything along a dimension lanes lie along the last one.
// CHECK: [[COLUMNS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @windows_alone
// CHECK: tt.load {{.*}} : tensor<128x4x!tt.ptr<f32>, [[COLUMNS]]>
tt.func @windows_alone(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %last: i32) -> tensor<128x4xf32> {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %r2 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %c2 = tt.expand_dims %c {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %r3 = tt.broadcast %r2 : tensor<128x1xi32> -> tensor<128x4xi32>
  %c3 = tt.broadcast %c2 : tensor<1x4xi32> -> tensor<128x4xi32>
  %sum = arith.addi %r3, %c3 : tensor<128x4xi32>
  %end = tt.splat %last : i32 -> tensor<128x4xi32>
  %at = arith.minsi %sum, %end : tensor<128x4xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x4x!tt.ptr<f32>>
  %q = tt.addptr %b, %at : tensor<128x4x!tt.ptr<f32>>, tensor<128x4xi32>
  %v = tt.load %q : tensor<128x4x!tt.ptr<f32>>
  tt.return %v : tensor<128x4xf32>
}

// -----

// Windows of three by three, two apart: taps are three neighbours each, and then the next row of a size that is not known. Lanes lie along
// the windows, eight bytes apart, where a sector has what four of them read, not along the taps, where it has three.
// CHECK: [[ACROSS:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-LABEL: @taps
// CHECK: tt.load {{.*}} : tensor<128x16x!tt.ptr<f32>, [[ACROSS]]>
tt.func @taps(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %width: i32) -> tensor<128x16xf32> {
  %window = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %tap = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %two = arith.constant dense<2> : tensor<128xi32>
  %three = arith.constant dense<3> : tensor<16xi32>
  %start = arith.muli %window, %two : tensor<128xi32>
  %y = arith.divsi %tap, %three : tensor<16xi32>
  %x = arith.remsi %tap, %three : tensor<16xi32>
  %w = tt.splat %width : i32 -> tensor<16xi32>
  %row = arith.muli %y, %w : tensor<16xi32>
  %place = arith.addi %row, %x : tensor<16xi32>
  %s2 = tt.expand_dims %start {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %p2 = tt.expand_dims %place {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %s3 = tt.broadcast %s2 : tensor<128x1xi32> -> tensor<128x16xi32>
  %p3 = tt.broadcast %p2 : tensor<1x16xi32> -> tensor<128x16xi32>
  %at = arith.addi %s3, %p3 : tensor<128x16xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<128x16x!tt.ptr<f32>>
  %q = tt.addptr %b, %at : tensor<128x16x!tt.ptr<f32>>, tensor<128x16xi32>
  %v = tt.load %q : tensor<128x16x!tt.ptr<f32>>
  tt.return %v : tensor<128x16xf32>
}
