// What the verifier of block-scaled dots refuses.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#t64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, %b_: !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op scaled dots have blocks of 128 rows, got blockM = 64}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e4m3 rhs = e4m3  : !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#sck = #ttng.tensor_memory_scales_encoding<blockRepOrder = kThenMn>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, %b_: !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, %d: !ttg.memdesc<128x128xf32, #t, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<128x4xi8, #sck, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op right scales must have blockRepOrder = mnThenK, got kThenMn}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e4m3 rhs = e4m3  : !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x128xf32, #t, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sck, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#t4 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 4, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, %b_: !ttg.memdesc<128x256xf8E4M3FN, #n8, #smem, mutable>, %d: !ttg.memdesc<128x256xf32, #t, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<256x8xi8, #t4, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op right scales must have a #ttng.tensor_memory_scales_encoding, got #ttng.tensor_memory_encoding<blockM = 128, blockN = 4, colStride = 1>}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e4m3 rhs = e4m3  : !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x256xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x256xf32, #t, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<256x8xi8, #t4, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xi8, #t, #tmem, mutable>, %b_: !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op a left operand of e2m1 must have fp4Padded = true: it is padded where the right one is fp8}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e2m1 rhs = e4m3  : !ttg.memdesc<128x64xi8, #t, #tmem, mutable>, !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf8E4M3FN, #t, #tmem, mutable>, %b_: !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op a left operand of e2m1 must be stored as 'i8', got 'f8E4M3FN'}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e2m1 rhs = e4m3  : !ttg.memdesc<128x64xf8E4M3FN, #t, #tmem, mutable>, !ttg.memdesc<128x64xf8E4M3FN, #n8s, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xi8, #t, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf8E4M3FN, #n8s, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op no scaled dot takes a left operand of 'i8' in tensor memory}}
  ttng.tc_gen5_mma_scaled %a, %b_, %d, %sa, %sb, %p, %p lhs = e4m3 rhs = e4m3  : !ttg.memdesc<128x64xi8, #t, #tmem, mutable>, !ttg.memdesc<64x64xf8E4M3FN, #n8s, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<64x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf8E4M3FN, #t128, #tmem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, %d: !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>, %sa: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %sb: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op a left operand of fp8 must have the format e4m3 or e5m2}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %sa, %sb, %p, %p lhs = bf16 rhs = e4m3 : !ttg.memdesc<128x128xf8E4M3FN, #t128, #tmem, mutable>, !ttg.memdesc<128x128xf8E4M3FN, #n8, #smem, mutable>, !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma_scaled
#n8t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x256xi8, #n8t, #smem, mutable>, %b: !ttg.memdesc<128x128xi8, #n8t, #smem, mutable>, %d: !ttg.memdesc<256x128xf32, #t128, #tmem, mutable>, %sa: !ttg.memdesc<256x16xf8E4M3FN, #sc, #tmem, mutable>, %sb: !ttg.memdesc<128x16xf8E4M3FN, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma_scaled' op a dot of e2m1 with scales of fp8 takes operands that are contiguous along K only}}
  ttng.tc_gen5_mma_scaled %a, %b, %d, %sa, %sb, %p, %p lhs = e2m1 rhs = e2m1 : !ttg.memdesc<128x256xi8, #n8t, #smem, mutable>, !ttg.memdesc<128x128xi8, #n8t, #smem, mutable>, !ttg.memdesc<256x128xf32, #t128, #tmem, mutable>, !ttg.memdesc<256x16xf8E4M3FN, #sc, #tmem, mutable>, !ttg.memdesc<128x16xf8E4M3FN, #sc, #tmem, mutable>
  tt.return
}
}
