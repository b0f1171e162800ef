// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s

// Indices are read off the layout's columns: which bits of lane and warp go
// where, and registers as constant offsets.

#line = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#tile = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #tile}>
#cols = #ttg.slice<{dim = 0, parent = #tile}>
#wide = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [4, 8], warpsPerCTA = [2, 2], order = [1, 0]}>
#tall = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [2, 2], order = [0, 1]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// 512 elements over 256 places: index = 2 lane + 64 warp + {0, 1, 256, 257}.
// CHECK-LABEL: llvm.func @wraps_around(
// CHECK-SAME:    nvvm.kernel, nvvm.minctasm = 1 : i32, nvvm.reqntid = array<i32: 128>
// CHECK:         %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 128> : i32
// CHECK:         %[[LANE:.*]] = llvm.and %[[TID]], %{{.*}} : i32
// CHECK:         %[[FIVE:.*]] = llvm.mlir.constant(5 : i32)
// CHECK:         %[[WARP:.*]] = llvm.lshr %[[TID]], %[[FIVE]]
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK:         %[[LANE2:.*]] = llvm.shl %{{.*}}, %[[ONE]]
// CHECK:         %[[SIX:.*]] = llvm.mlir.constant(6 : i32)
// CHECK:         %[[WARP64:.*]] = llvm.shl %{{.*}}, %[[SIX]]
// CHECK:         %[[BASE:.*]] = llvm.or disjoint %[[LANE2]], %[[WARP64]]
// CHECK:         %[[R1:.*]] = llvm.or disjoint %[[BASE]], %[[ONE]]
// CHECK:         %[[C256:.*]] = llvm.mlir.constant(256 : i32)
// CHECK:         %[[R2:.*]] = llvm.or disjoint %[[BASE]], %[[C256]]
// CHECK:         %[[C257:.*]] = llvm.mlir.constant(257 : i32)
// CHECK:         %[[R3:.*]] = llvm.or disjoint %[[BASE]], %[[C257]]
// CHECK:         llvm.getelementptr %{{.*}}[%[[BASE]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i32
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[%[[R1]]]
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[%[[R2]]]
// CHECK-NEXT:    llvm.getelementptr %{{.*}}[%[[R3]]]
tt.func public @wraps_around(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #line>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #line>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<i32>, #line>, tensor<512xi32, #line>
  tt.store %p, %r : tensor<512x!tt.ptr<i32>, #line>
  tt.return
}

// What is added to an index is added once, and the constants that registers are apart after it.
// CHECK-LABEL: llvm.func @adds_once(
// CHECK:         %[[BASE:.*]] = llvm.or disjoint
// CHECK:         %[[SUM:.*]] = llvm.add %[[N:.*]], %[[BASE]] : i32
// CHECK:         %[[AGAIN:.*]] = llvm.add %[[SUM]], %[[N]] : i32
// CHECK:         llvm.add %[[AGAIN]], %{{.*}} : i32
// CHECK-NOT:     llvm.add
tt.func public @adds_once(%out: !tt.ptr<i32>, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %ns = tt.splat %n : i32 -> tensor<256xi32, #line>
  %once = arith.addi %ns, %r : tensor<256xi32, #line>
  %twice = arith.addi %once, %ns : tensor<256xi32, #line>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #line>
  %p = tt.addptr %s, %r : tensor<256x!tt.ptr<i32>, #line>, tensor<256xi32, #line>
  tt.store %p, %twice : tensor<256x!tt.ptr<i32>, #line>
  tt.return
}

// A start is added, since it may carry.
// CHECK-LABEL: llvm.func @starts_at_128(
// CHECK:         %[[BASE:.*]] = llvm.or disjoint
// CHECK:         %[[R1:.*]] = llvm.or disjoint %[[BASE]], %{{.*}} : i32
// CHECK:         %[[START:.*]] = llvm.mlir.constant(128 : i32)
// CHECK-NEXT:    llvm.add %[[BASE]], %[[START]] : i32
// CHECK-NEXT:    llvm.add %[[R1]], %[[START]] : i32
// CHECK-NOT:     llvm.add
tt.func public @starts_at_128(%out: !tt.ptr<i32>) {
  %r = tt.make_range {end = 384 : i32, start = 128 : i32} : tensor<256xi32, #line>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<256x!tt.ptr<i32>, #line>
  %p = tt.addptr %s, %r : tensor<256x!tt.ptr<i32>, #line>, tensor<256xi32, #line>
  tt.store %p, %r : tensor<256x!tt.ptr<i32>, #line>
  tt.return
}

// Extended to 64 bits a row stays a constant above the first one, so that LLVM sees the distances of addresses; comparing
// extended numbers compares the numbers.
// CHECK-LABEL: llvm.func @extended(
// CHECK:         %[[BASE:.*]] = llvm.or disjoint %{{.*}}, %{{.*}} : i32
// CHECK:         %[[R1:.*]] = llvm.or disjoint %[[BASE]], %{{.*}} : i32
// CHECK:         %[[WIDE:.*]] = llvm.sext %[[BASE]] : i32 to i64
// CHECK:         %[[ONE:.*]] = llvm.mlir.constant(1 : i64)
// CHECK:         %[[WIDE1:.*]] = llvm.or disjoint %[[WIDE]], %[[ONE]] : i64
// CHECK:         llvm.icmp "slt" %[[BASE]], %{{.*}} : i32
// CHECK:         llvm.icmp "slt" %[[R1]], %{{.*}} : i32
// CHECK:         llvm.getelementptr %{{.*}}[%[[WIDE1]]] : (!llvm.ptr<1>, i64)
tt.func public @extended(%out: !tt.ptr<i64>, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %wide = arith.extsi %r : tensor<256xi32, #line> to tensor<256xi64, #line>
  %end = arith.extsi %n : i32 to i64
  %ends = tt.splat %end : i64 -> tensor<256xi64, #line>
  %mask = arith.cmpi slt, %wide, %ends : tensor<256xi64, #line>
  %s = tt.splat %out : !tt.ptr<i64> -> tensor<256x!tt.ptr<i64>, #line>
  %p = tt.addptr %s, %wide : tensor<256x!tt.ptr<i64>, #line>, tensor<256xi64, #line>
  tt.store %p, %wide, %mask : tensor<256x!tt.ptr<i64>, #line>
  tt.return
}

// Zeros in front of numbers that are negative are another order: those comparisons stay as they are.
// CHECK-LABEL: llvm.func @extended_by_zeros(
// CHECK:         llvm.zext
// CHECK:         llvm.icmp "slt" %{{.*}}, %{{.*}} : i64
tt.func public @extended_by_zeros(%out: !tt.ptr<i64>, %n: i32) {
  %r = tt.make_range {end = 256 : i32, start = 0 : i32} : tensor<256xi32, #line>
  %wide = arith.extui %r : tensor<256xi32, #line> to tensor<256xi64, #line>
  %end = arith.extui %n : i32 to i64
  %ends = tt.splat %end : i64 -> tensor<256xi64, #line>
  %mask = arith.cmpi slt, %wide, %ends : tensor<256xi64, #line>
  %s = tt.splat %out : !tt.ptr<i64> -> tensor<256x!tt.ptr<i64>, #line>
  %p = tt.addptr %s, %wide : tensor<256x!tt.ptr<i64>, #line>, tensor<256xi64, #line>
  tt.store %p, %wide, %mask : tensor<256x!tt.ptr<i64>, #line>
  tt.return
}

// Rows come from lane bits 3-4 and warp bit 1, columns from the others; what
// is broadcast is computed once: one multiplication for four elements.
// CHECK-LABEL: llvm.func @rows_and_columns(
// CHECK:         %[[C24:.*]] = llvm.mlir.constant(24 : i32)
// CHECK:         %[[ROWLANES:.*]] = llvm.and %[[LANE:.*]], %[[C24]]
// CHECK:         %[[LOWROW:.*]] = llvm.lshr %[[ROWLANES]], %{{.*}} : i32
// CHECK:         %[[TWO:.*]] = llvm.mlir.constant(2 : i32)
// CHECK:         %[[ROWWARP:.*]] = llvm.and %[[WARP:.*]], %[[TWO]]
// CHECK:         %[[HIGHROW:.*]] = llvm.shl %[[ROWWARP]], %{{.*}} : i32
// CHECK:         %[[ROW:.*]] = llvm.or disjoint %[[LOWROW]], %[[HIGHROW]]
// CHECK:         %[[SEVEN:.*]] = llvm.mlir.constant(7 : i32)
// CHECK:         llvm.and %[[LANE]], %[[SEVEN]]
// CHECK:         %[[COL:.*]] = llvm.or disjoint
// CHECK:         %[[C64:.*]] = llvm.mlir.constant(64 : i32)
// CHECK-COUNT-1: llvm.mul %[[ROW]], %[[C64]]
// CHECK-NOT:     llvm.mul
// CHECK-COUNT-4: llvm.add
// CHECK-COUNT-4: llvm.store
// CHECK:         llvm.return
tt.func public @rows_and_columns(%out: !tt.ptr<i32>) {
  %c64 = arith.constant dense<64> : tensor<8x1xi32, #tile>
  %r = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32, #rows>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #cols>
  %re = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32, #rows> -> tensor<8x1xi32, #tile>
  %ce = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #cols> -> tensor<1x64xi32, #tile>
  %rs = arith.muli %re, %c64 : tensor<8x1xi32, #tile>
  %rb = tt.broadcast %rs : tensor<8x1xi32, #tile> -> tensor<8x64xi32, #tile>
  %cb = tt.broadcast %ce : tensor<1x64xi32, #tile> -> tensor<8x64xi32, #tile>
  %i = arith.addi %rb, %cb : tensor<8x64xi32, #tile>
  %s = tt.splat %out : !tt.ptr<i32> -> tensor<8x64x!tt.ptr<i32>, #tile>
  %p = tt.addptr %s, %i : tensor<8x64x!tt.ptr<i32>, #tile>, tensor<8x64xi32, #tile>
  tt.store %p, %i : tensor<8x64x!tt.ptr<i32>, #tile>
  tt.return
}

// Registers are renamed, not moved: transposing twice is nothing.
// CHECK-LABEL: llvm.func internal @transposed(
// CHECK-SAME:    %[[A:[^:]*]]: i32, %[[B:[^:]*]]: i32, %[[C:[^:]*]]: i32, %[[D:[^:]*]]: i32)
// CHECK:         %[[S0:.*]] = llvm.insertvalue %[[A]], %{{.*}}[0]
// CHECK:         %[[S1:.*]] = llvm.insertvalue %[[B]], %[[S0]][1]
// CHECK:         %[[S2:.*]] = llvm.insertvalue %[[C]], %[[S1]][2]
// CHECK:         llvm.insertvalue %[[D]], %[[S2]][3]
tt.func private @transposed(%x: tensor<16x32xi32, #wide>) -> tensor<32x16xi32, #tall> {
  %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<16x32xi32, #wide> -> tensor<32x16xi32, #tall>
  tt.return %t : tensor<32x16xi32, #tall>
}
}
