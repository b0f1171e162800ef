// Products of warp groups, compared with products by fused multiply-adds: each function asserts that they are equal.
// RUN: %ttsim %s --quiet
// RUN: sed 's/tt.call @use_c()/tt.call @wrong()/' %s > %t.mlir
// RUN: not %ttsim %t.mlir --quiet 2>&1 | FileCheck %s
// CHECK: wrong element

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 16]}>
#mma8 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 32, 32]}>
#b = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#ba = #ttg.dot_op<{opIdx = 0, parent = #b}>
#bb = #ttg.dot_op<{opIdx = 1, parent = #b}>
#row = #ttg.slice<{dim = 1, parent = #b}>
#col = #ttg.slice<{dim = 0, parent = #b}>
#k_fast = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#n_fast = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
#k_fast8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#k_fast8_t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// ((5 r + 3 k) mod 7) - 3
tt.func private @left() -> tensor<64x128xf32, #b> {
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #row>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #row> -> tensor<64x1xi32, #b>
  %k1 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #col>
  %k2 = tt.expand_dims %k1 {axis = 0 : i32} : tensor<128xi32, #col> -> tensor<1x128xi32, #b>
  %c5 = arith.constant dense<5> : tensor<64x1xi32, #b>
  %c3 = arith.constant dense<3> : tensor<1x128xi32, #b>
  %c7 = arith.constant dense<7> : tensor<64x128xi32, #b>
  %three = arith.constant dense<3> : tensor<64x128xi32, #b>
  %r5 = arith.muli %r2, %c5 : tensor<64x1xi32, #b>
  %k3 = arith.muli %k2, %c3 : tensor<1x128xi32, #b>
  %r = tt.broadcast %r5 : tensor<64x1xi32, #b> -> tensor<64x128xi32, #b>
  %k = tt.broadcast %k3 : tensor<1x128xi32, #b> -> tensor<64x128xi32, #b>
  %s = arith.addi %r, %k : tensor<64x128xi32, #b>
  %m = arith.remui %s, %c7 : tensor<64x128xi32, #b>
  %v = arith.subi %m, %three : tensor<64x128xi32, #b>
  %f = arith.sitofp %v : tensor<64x128xi32, #b> to tensor<64x128xf32, #b>
  tt.return %f : tensor<64x128xf32, #b>
}

// ((2 k + n) mod 5) - 2
tt.func private @right() -> tensor<128x32xf32, #b> {
  %k1 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #row>
  %k2 = tt.expand_dims %k1 {axis = 1 : i32} : tensor<128xi32, #row> -> tensor<128x1xi32, #b>
  %n1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #col>
  %n2 = tt.expand_dims %n1 {axis = 0 : i32} : tensor<32xi32, #col> -> tensor<1x32xi32, #b>
  %c2 = arith.constant dense<2> : tensor<128x1xi32, #b>
  %c5 = arith.constant dense<5> : tensor<128x32xi32, #b>
  %two = arith.constant dense<2> : tensor<128x32xi32, #b>
  %k22 = arith.muli %k2, %c2 : tensor<128x1xi32, #b>
  %k = tt.broadcast %k22 : tensor<128x1xi32, #b> -> tensor<128x32xi32, #b>
  %n = tt.broadcast %n2 : tensor<1x32xi32, #b> -> tensor<128x32xi32, #b>
  %s = arith.addi %k, %n : tensor<128x32xi32, #b>
  %m = arith.remui %s, %c5 : tensor<128x32xi32, #b>
  %v = arith.subi %m, %two : tensor<128x32xi32, #b>
  %f = arith.sitofp %v : tensor<128x32xi32, #b> to tensor<128x32xf32, #b>
  tt.return %f : tensor<128x32xf32, #b>
}

// Asserts that `got` is `times` dots, and `more` besides.
tt.func private @check(%got: tensor<64x32xf32, #b>, %times: f32, %more: f32) {
  %a = tt.call @left() : () -> tensor<64x128xf32, #b>
  %b = tt.call @right() : () -> tensor<128x32xf32, #b>
  %da = ttg.convert_layout %a : tensor<64x128xf32, #b> -> tensor<64x128xf32, #ba>
  %db = ttg.convert_layout %b : tensor<128x32xf32, #b> -> tensor<128x32xf32, #bb>
  %zero = arith.constant dense<0.0> : tensor<64x32xf32, #b>
  %p = tt.dot %da, %db, %zero : tensor<64x128xf32, #ba> * tensor<128x32xf32, #bb> -> tensor<64x32xf32, #b>
  %t = tt.splat %times : f32 -> tensor<64x32xf32, #b>
  %m = tt.splat %more : f32 -> tensor<64x32xf32, #b>
  %tp = arith.mulf %p, %t : tensor<64x32xf32, #b>
  %want = arith.addf %tp, %m : tensor<64x32xf32, #b>
  %ok = arith.cmpf oeq, %got, %want : tensor<64x32xf32, #b>
  tt.assert %ok, "wrong element" : tensor<64x32xi1, #b>
  tt.return
}

tt.func private @wrong() {
  %x = arith.constant dense<1.0> : tensor<64x32xf32, #b>
  %one = arith.constant 1.0 : f32
  tt.call @check(%x, %one, %one) : (tensor<64x32xf32, #b>, f32, f32) -> ()
  tt.return
}

// In the first of three iterations what the accumulators hold does not count, then it does.
tt.func private @use_c() {
  %a32 = tt.call @left() : () -> tensor<64x128xf32, #b>
  %b32 = tt.call @right() : () -> tensor<128x32xf32, #b>
  %a16 = arith.truncf %a32 : tensor<64x128xf32, #b> to tensor<64x128xf16, #b>
  %b16 = arith.truncf %b32 : tensor<128x32xf32, #b> to tensor<128x32xf16, #b>
  %a = ttg.local_alloc %a16 : (tensor<64x128xf16, #b>) -> !ttg.memdesc<64x128xf16, #k_fast, #smem>
  %b = ttg.local_alloc %b16 : (tensor<128x32xf16, #b>) -> !ttg.memdesc<128x32xf16, #n_fast, #smem>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c3 = arith.constant 3 : i32
  %rubbish = arith.constant dense<1000.0> : tensor<64x32xf32, #mma>
  ttng.fence_async_shared {bCluster = false}
  %d = scf.for %i = %c0 to %c3 step %c1 iter_args(%acc = %rubbish) -> (tensor<64x32xf32, #mma>) : i32 {
    %use = arith.cmpi ne, %i, %c0 : i32
    %e = ttng.warp_group_dot %a, %b, %acc, %use {inputPrecision = 0 : i32} : !ttg.memdesc<64x128xf16, #k_fast, #smem> * !ttg.memdesc<128x32xf16, #n_fast, #smem> -> tensor<64x32xf32, #mma>
    scf.yield %e : tensor<64x32xf32, #mma>
  }
  %three = arith.constant 3.0 : f32
  %zero = arith.constant 0.0 : f32
  %got = ttg.convert_layout %d : tensor<64x32xf32, #mma> -> tensor<64x32xf32, #b>
  tt.call @check(%got, %three, %zero) : (tensor<64x32xf32, #b>, f32, f32) -> ()
  tt.return
}

// Sums of 8-bit floats, added to the accumulators after every 32 and every 64 summands.
tt.func private @promoted() {
  %a32 = tt.call @left() : () -> tensor<64x128xf32, #b>
  %b32 = tt.call @right() : () -> tensor<128x32xf32, #b>
  %a8 = tt.fp_to_fp %a32, rounding = rtne : tensor<64x128xf32, #b> -> tensor<64x128xf8E4M3FN, #b>
  %b8 = tt.fp_to_fp %b32, rounding = rtne : tensor<128x32xf32, #b> -> tensor<128x32xf8E4M3FN, #b>
  %a = ttg.local_alloc %a8 : (tensor<64x128xf8E4M3FN, #b>) -> !ttg.memdesc<64x128xf8E4M3FN, #k_fast8, #smem>
  %b = ttg.local_alloc %b8 : (tensor<128x32xf8E4M3FN, #b>) -> !ttg.memdesc<128x32xf8E4M3FN, #k_fast8_t, #smem>
  ttng.fence_async_shared {bCluster = false}
  %start = arith.constant dense<7.0> : tensor<64x32xf32, #mma8>
  %d = ttng.warp_group_dot %a, %b, %start {inputPrecision = 0 : i32, maxNumImpreciseAcc = 32 : i32} : !ttg.memdesc<64x128xf8E4M3FN, #k_fast8, #smem> * !ttg.memdesc<128x32xf8E4M3FN, #k_fast8_t, #smem> -> tensor<64x32xf32, #mma8>
  %e = ttng.warp_group_dot %a, %b, %d {inputPrecision = 0 : i32, maxNumImpreciseAcc = 64 : i32} : !ttg.memdesc<64x128xf8E4M3FN, #k_fast8, #smem> * !ttg.memdesc<128x32xf8E4M3FN, #k_fast8_t, #smem> -> tensor<64x32xf32, #mma8>
  %two = arith.constant 2.0 : f32
  %seven = arith.constant 7.0 : f32
  %got = ttg.convert_layout %e : tensor<64x32xf32, #mma8> -> tensor<64x32xf32, #b>
  tt.call @check(%got, %two, %seven) : (tensor<64x32xf32, #b>, f32, f32) -> ()
  tt.return
}

tt.func public @all() {
  tt.call @use_c() : () -> ()
  tt.call @promoted() : () -> ()
  tt.return
}
}
