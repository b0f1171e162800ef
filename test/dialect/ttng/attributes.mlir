// Attributes and types print as they are read.
//
// RUN: %ttopt %s | %ttopt | FileCheck %s
// RUN: %ttopt %s --mlir-print-op-generic | %ttopt | FileCheck %s

// CHECK-DAG: #[[M:.+]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
// CHECK-DAG: #[[STRIDE:.+]] = #ttng.tensor_memory_encoding<blockM = 64, blockN = 512, colStride = 2>
// CHECK-DAG: #[[PAIR:.+]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = {{\[\[}}1, 0], [0, 1]], twoCTAs = true>
// CHECK-DAG: #[[PADDED:.+]] = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, fp4Padded = true>
// CHECK-DAG: #[[SCALES:.+]] = #ttng.tensor_memory_scales_encoding<>
// CHECK-DAG: #[[KMN:.+]] = #ttng.tensor_memory_scales_encoding<CGALayout = {{\[\[}}1, 0]], blockRepOrder = kThenMn>
// CHECK: module attributes
module attributes {
  // CHECK-SAME: t.a = #[[M]]
  // CHECK-SAME: t.b = #[[STRIDE]]
  // CHECK-SAME: t.c = #[[PAIR]]
  // CHECK-SAME: t.d = #[[PADDED]]
  // CHECK-SAME: t.e = #[[M]]
  t.a = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>,
  t.b = #ttng.tensor_memory_encoding<blockM = 64, blockN = 512, colStride = 2>,
  t.c = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[1, 0], [0, 1]], twoCTAs = true>,
  t.d = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, fp4Padded = true>,
  // In any order, with defaults.
  t.e = #ttng.tensor_memory_encoding<twoCTAs = false, colStride = 1, blockN = 64, blockM = 128>,
  // CHECK-SAME: t.f = #[[SCALES]]
  // CHECK-SAME: t.g = #[[SCALES]]
  // CHECK-SAME: t.h = #[[KMN]]
  t.f = #ttng.tensor_memory_scales_encoding<>,
  t.g = #ttng.tensor_memory_scales_encoding<blockRepOrder = mnThenK>,
  t.h = #ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn, CGALayout = [[1, 0]]>,
  // CHECK-SAME: t.i = #ttng.tensor_memory, t.j = #ttng.redOp<min>, t.k = #ttng.redOp<max>, t.l = #ttng.blockRepOrder<mnThenK>, t.m = #ttng.blockRepOrder<kThenMn>
  t.i = #ttng.tensor_memory, t.j = #ttng.redOp<min>, t.k = #ttng.redOp<max>,
  t.l = #ttng.blockRepOrder<mnThenK>, t.m = #ttng.blockRepOrder<kThenMn>,
  // CHECK-SAME: t.n = #ttng.cache_policy<>, t.o = #ttng.cache_policy<>
  // CHECK-SAME: t.p = #ttng.cache_policy<cache_modifier = cg, l2_prefetch_size = 128 : i32>
  // CHECK-SAME: t.q = #ttng.cache_policy<l1 = evict_last, l2_primary = evict_first, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>
  // CHECK-SAME: t.r = #ttng.cache_policy<l1 = no_allocate>
  t.n = #ttng.cache_policy<>, t.o = #ttng.cache_policy<cache_modifier = none>,
  t.p = #ttng.cache_policy<cache_modifier = cg, l2_prefetch_size = 128 : i32>,
  t.q = #ttng.cache_policy<l1 = evict_last, l2_primary = evict_first, l2_secondary = evict_unchanged, l2_fraction = 5.000000e-01 : f32>,
  t.r = #ttng.cache_policy<l1 = no_allocate>,
  // CHECK-SAME: t.s = !ttng.tensordesc_im2col<64x64xf16>
  // CHECK-SAME: t.t = !ttng.tensordesc_im2col<64x64xf16, #shared>
  t.s = !ttng.tensordesc_im2col<64x64xf16>,
  t.t = !ttng.tensordesc_im2col<64x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>>
} {}
