// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce | FileCheck %s

// Four floats of 128 bits in each thread.
// CHECK: [[V4:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @aligned
// CHECK: [[P:%.*]] = ttg.convert_layout {{.*}} -> tensor<1024x!tt.ptr<f32>, [[V4]]>
// CHECK: [[X:%.*]] = tt.load [[P]] : tensor<1024x!tt.ptr<f32>, [[V4]]>
// CHECK: ttg.convert_layout [[X]] : tensor<1024xf32, [[V4]]> -> tensor<1024xf32, #blocked>
tt.func @aligned(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> tensor<1024xf32> {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
  tt.return %x : tensor<1024xf32>
}

// -----

// Nothing is known about the pointer: one element per thread, which is the
// layout it has.
// CHECK-LABEL: @unaligned
// CHECK-NOT: convert_layout
tt.func @unaligned(%p: !tt.ptr<f32>) -> tensor<1024xf32> {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f32>>
  tt.return %x : tensor<1024xf32>
}

// -----

// A mask that may change at any element leaves neighbouring lanes neighbouring elements.
// CHECK-LABEL: @masked
// CHECK-NOT: convert_layout
tt.func @masked(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) -> tensor<1024xf32> {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %s = tt.splat %n : i32 -> tensor<1024xi32>
  %m = arith.cmpi slt, %r, %s : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %q, %m : tensor<1024x!tt.ptr<f32>>
  tt.return %x : tensor<1024xf32>
}

// -----

// Pointers run down the columns: the first dimension is the fast one.
// CHECK: [[COLUMNS:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
// CHECK-LABEL: @transposed
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<f16>, [[COLUMNS]]>
tt.func @transposed(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %s: i32 {tt.divisibility = 16 : i32}) -> tensor<64x64xf16> {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %1 = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %2 = tt.splat %s : i32 -> tensor<1x64xi32>
  %3 = arith.muli %1, %2 : tensor<1x64xi32>
  %4 = tt.broadcast %0 : tensor<64x1xi32> -> tensor<64x64xi32>
  %5 = tt.broadcast %3 : tensor<1x64xi32> -> tensor<64x64xi32>
  %6 = arith.addi %4, %5 : tensor<64x64xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<64x64x!tt.ptr<f16>>
  %q = tt.addptr %b, %6 : tensor<64x64x!tt.ptr<f16>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<f16>>
  tt.return %x : tensor<64x64xf16>
}

// -----

// Rows of two bytes one after the other: vectors of eight rows (paper, Table 2).
// CHECK: [[ROWS:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [8, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @narrow
// CHECK: tt.load {{.*}} : tensor<512x2x!tt.ptr<i8>, [[ROWS]]>
tt.func @narrow(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}) -> tensor<512x2xi8> {
  %r = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %c = tt.make_range {start = 0 : i32, end = 2 : i32} : tensor<2xi32>
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<512xi32> -> tensor<512x1xi32>
  %two = arith.constant dense<2> : tensor<512x1xi32>
  %1 = arith.muli %0, %two : tensor<512x1xi32>
  %2 = tt.expand_dims %c {axis = 0 : i32} : tensor<2xi32> -> tensor<1x2xi32>
  %3 = tt.broadcast %1 : tensor<512x1xi32> -> tensor<512x2xi32>
  %4 = tt.broadcast %2 : tensor<1x2xi32> -> tensor<512x2xi32>
  %5 = arith.addi %3, %4 : tensor<512x2xi32>
  %b = tt.splat %p : !tt.ptr<i8> -> tensor<512x2x!tt.ptr<i8>>
  %q = tt.addptr %b, %5 : tensor<512x2x!tt.ptr<i8>>, tensor<512x2xi32>
  %x = tt.load %q : tensor<512x2x!tt.ptr<i8>>
  tt.return %x : tensor<512x2xi8>
}

// -----

// The load takes the layout of the store that it feeds, whose lanes write
// without gaps.
// CHECK: [[SHARED:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @widen
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, [[SHARED]]>
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<f32>, [[SHARED]]>
tt.func @widen(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f16>>
  %y = arith.extf %x : tensor<1024xf16> to tensor<1024xf32>
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %e = tt.addptr %d, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %e, %y : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Stores cost the sectors that they touch: threads that hold eight floats would fill half of each at once, which costs more than
// wider loads of narrow elements gain.
// CHECK: [[FOUR:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @mostly_narrow
// CHECK-COUNT-5: tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, [[FOUR]]>
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<f16>, [[FOUR]]>
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<f32>, [[FOUR]]>
tt.func @mostly_narrow(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %c = arith.constant dense<4096> : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q0 = tt.addptr %b, %r : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %q1 = tt.addptr %q0, %c : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %q2 = tt.addptr %q1, %c : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %q3 = tt.addptr %q2, %c : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %q4 = tt.addptr %q3, %c : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %x0 = tt.load %q0 : tensor<1024x!tt.ptr<f16>>
  %x1 = tt.load %q1 : tensor<1024x!tt.ptr<f16>>
  %x2 = tt.load %q2 : tensor<1024x!tt.ptr<f16>>
  %x3 = tt.load %q3 : tensor<1024x!tt.ptr<f16>>
  %x4 = tt.load %q4 : tensor<1024x!tt.ptr<f16>>
  %s0 = arith.addf %x0, %x1 : tensor<1024xf16>
  %s1 = arith.addf %s0, %x2 : tensor<1024xf16>
  %s2 = arith.addf %s1, %x3 : tensor<1024xf16>
  %s3 = arith.addf %s2, %x4 : tensor<1024xf16>
  %s4 = arith.mulf %s3, %s3 : tensor<1024xf16>
  tt.store %q0, %s4 : tensor<1024x!tt.ptr<f16>>
  tt.store %q1, %s3 : tensor<1024x!tt.ptr<f16>>
  tt.store %q2, %s2 : tensor<1024x!tt.ptr<f16>>
  tt.store %q3, %s1 : tensor<1024x!tt.ptr<f16>>
  %y = arith.extf %s0 : tensor<1024xf16> to tensor<1024xf32>
  %d = tt.splat %o : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %e = tt.addptr %d, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %e, %y : tensor<1024x!tt.ptr<f32>>
  tt.return
}

// -----

// Lanes of an atomic operation are neighbours.
// CHECK-LABEL: @atomic(
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @atomic(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %x: tensor<1024xi32>) {
  %t = arith.constant dense<true> : tensor<1024xi1>
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  %0 = tt.atomic_rmw add, relaxed, gpu, %q, %x, %t : (tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>, tensor<1024xi1>) -> tensor<1024xi32>
  tt.return
}

// -----

// Sums of floats that nobody asks the old value of go in vectors of 128 bits on sm_90.
// CHECK: #[[VECTOR:.*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @atomic_sums(
// CHECK: tt.atomic_rmw fadd, {{.*}} -> tensor<1024xf32, #[[VECTOR]]>
tt.func @atomic_sums(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: tensor<1024xf32>) {
  %t = arith.constant dense<true> : tensor<1024xi1>
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %0 = tt.atomic_rmw fadd, relaxed, gpu, %q, %x, %t : (tensor<1024x!tt.ptr<f32>>, tensor<1024xf32>, tensor<1024xi1>) -> tensor<1024xf32>
  tt.return
}

// -----

// Rows that are reduced stay in one warp each: accesses are as dense with the warps along the other dimension.
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @reduced
// CHECK: tt.load {{.*}} : tensor<16x256x!tt.ptr<f32>, #[[ROWS]]>
tt.func @reduced(%p: tensor<16x256x!tt.ptr<f32>>) -> tensor<16xf32> {
  %x = tt.load %p : tensor<16x256x!tt.ptr<f32>>
  %0 = "tt.reduce"(%x) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.maxnumf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<16x256xf32>) -> tensor<16xf32>
  tt.return %0 : tensor<16xf32>
}

// -----

// The same for what is scanned.
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @scanned
// CHECK: tt.load {{.*}} : tensor<16x256x!tt.ptr<f32>, #[[ROWS]]>
tt.func @scanned(%p: tensor<16x256x!tt.ptr<f32>>) -> tensor<16x256xf32> {
  %x = tt.load %p : tensor<16x256x!tt.ptr<f32>>
  %0 = "tt.scan"(%x) <{axis = 1 : i32, reverse = false}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.scan.return %s : f32
  }) : (tensor<16x256xf32>) -> tensor<16x256xf32>
  tt.return %0 : tensor<16x256xf32>
}

// -----

// And for what is gathered from, where threads of one warp then exchange what they need.
// CHECK: #[[ROWS:.*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @gathered
// CHECK: tt.load {{.*}} : tensor<16x64x!tt.ptr<f32>, #[[ROWS]]>
tt.func @gathered(%p: tensor<16x64x!tt.ptr<f32>>, %i: tensor<16x64xi32>) -> tensor<16x64xf32> {
  %x = tt.load %p : tensor<16x64x!tt.ptr<f32>>
  %0 = tt.gather %x[%i] {axis = 1 : i32} : (tensor<16x64xf32>, tensor<16x64xi32>) -> tensor<16x64xf32>
  tt.return %0 : tensor<16x64xf32>
}

// -----

// Without anything along a dimension, warps follow the order.
// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
// CHECK-LABEL: @copied
// CHECK: tt.load {{.*}} : tensor<16x256x!tt.ptr<f32>, #blocked>
tt.func @copied(%p: tensor<16x256x!tt.ptr<f32>>) -> tensor<16x256xf32> {
  %x = tt.load %p : tensor<16x256x!tt.ptr<f32>>
  tt.return %x : tensor<16x256xf32>
}

// -----

// A quotient by a size is not negative, so that rows that wrap around at a multiple of 16 are contiguous by 16.
// CHECK: [[EIGHT:#blocked[0-9]+]] = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @grouped
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<f16>, [[EIGHT]]>
tt.func @grouped(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %tiles: i32, %n: i32 {tt.divisibility = 16 : i32}) -> tensor<1024xf16> {
  %c8 = arith.constant 8 : i32
  %c1024 = arith.constant 1024 : i32
  %pid = tt.get_program_id x : i32
  %left = arith.subi %tiles, %pid : i32
  %height = arith.minsi %left, %c8 : i32
  %tile = arith.divsi %pid, %height : i32
  %first = arith.muli %tile, %c1024 : i32
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %f = tt.splat %first : i32 -> tensor<1024xi32>
  %at = arith.addi %f, %r : tensor<1024xi32>
  %ns = tt.splat %n : i32 -> tensor<1024xi32>
  %wrapped = arith.remsi %at, %ns : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>>
  %q = tt.addptr %b, %wrapped : tensor<1024x!tt.ptr<f16>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<f16>>
  tt.return %x : tensor<1024xf16>
}

// -----

// Elements that are stored 16 bytes apart: lanes that hold neighbours share sectors, threads that hold several do not.
// CHECK: [[ONE:#blocked]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
// CHECK-LABEL: @strided_store
// CHECK: tt.load {{.*}} : tensor<1024x!tt.ptr<i8>, [[ONE]]>
// CHECK: tt.store {{.*}} : tensor<1024x!tt.ptr<i8>, [[ONE]]>
tt.func @strided_store(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %c16 = arith.constant dense<16> : tensor<1024xi32>
  %r = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tt.splat %p : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %q = tt.addptr %b, %r : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  %x = tt.load %q : tensor<1024x!tt.ptr<i8>>
  %s = arith.muli %r, %c16 : tensor<1024xi32>
  %d = tt.splat %o : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %e = tt.addptr %d, %s : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  tt.store %e, %x : tensor<1024x!tt.ptr<i8>>
  tt.return
}

// -----

// What is reduced both halves of the threads would compute alike: eight bytes at once are enough.
// CHECK: [[NARROW:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @narrow_and_reduced
// CHECK: tt.load {{.*}} : tensor<128x8x!tt.ptr<i8>, [[NARROW]]>
tt.func @narrow_and_reduced(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}) -> tensor<128xi32> {
  %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %0 = tt.expand_dims %r {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %eight = arith.constant dense<8> : tensor<128x1xi32>
  %1 = arith.muli %0, %eight : tensor<128x1xi32>
  %2 = tt.expand_dims %c {axis = 0 : i32} : tensor<8xi32> -> tensor<1x8xi32>
  %3 = tt.broadcast %1 : tensor<128x1xi32> -> tensor<128x8xi32>
  %4 = tt.broadcast %2 : tensor<1x8xi32> -> tensor<128x8xi32>
  %5 = arith.addi %3, %4 : tensor<128x8xi32>
  %b = tt.splat %p : !tt.ptr<i8> -> tensor<128x8x!tt.ptr<i8>>
  %q = tt.addptr %b, %5 : tensor<128x8x!tt.ptr<i8>>, tensor<128x8xi32>
  %x = tt.load %q : tensor<128x8x!tt.ptr<i8>>
  %y = arith.extsi %x : tensor<128x8xi8> to tensor<128x8xi32>
  %z = "tt.reduce"(%y) <{axis = 1 : i32}> ({
  ^bb0(%m: i32, %n: i32):
    %s = arith.addi %m, %n : i32
    tt.reduce.return %s : i32
  }) : (tensor<128x8xi32>) -> tensor<128xi32>
  tt.return %z : tensor<128xi32>
}

// -----

// Of weights of six bits, four in three bytes, neighbours mostly are in the next byte: lanes run along them, and not along rows.
// CHECK: [[SIX:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], {{.*}}order = [0, 1]}>
// CHECK-LABEL: @six_bits
// CHECK: tt.load {{.*}} : tensor<64x64x!tt.ptr<i8>, [[SIX]]>
tt.func @six_bits(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %stride: i32) -> tensor<64x64xi8> {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %six = arith.constant dense<6> : tensor<64xi32>
  %eight = arith.constant dense<8> : tensor<64xi32>
  %bit = arith.muli %r, %six : tensor<64xi32>
  %byte = arith.divsi %bit, %eight : tensor<64xi32>
  %0 = tt.expand_dims %byte {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %1 = tt.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %s = tt.splat %stride : i32 -> tensor<1x64xi32>
  %row = arith.muli %1, %s : tensor<1x64xi32>
  %2 = tt.broadcast %0 : tensor<64x1xi32> -> tensor<64x64xi32>
  %3 = tt.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %4 = arith.addi %2, %3 : tensor<64x64xi32>
  %b = tt.splat %p : !tt.ptr<i8> -> tensor<64x64x!tt.ptr<i8>>
  %q = tt.addptr %b, %4 : tensor<64x64x!tt.ptr<i8>>, tensor<64x64xi32>
  %x = tt.load %q : tensor<64x64x!tt.ptr<i8>>
  tt.return %x : tensor<64x64xi8>
}
