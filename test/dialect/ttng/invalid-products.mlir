// What the verifiers of dots refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.tc_gen5_commit
#b_2r = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b_2r, #smem, mutable>) {
  // expected-error @below {{'ttng.tc_gen5_commit' op the completion barrier must have CGALayout = [[1]], got [[0]]}}
  ttng.tc_gen5_commit %b : !ttg.memdesc<1xi64, #b_2r, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_commit
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %x: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.tc_gen5_commit' op expected at most 4 descriptors, got 5}}
  ttng.tc_gen5_commit %b descs %x, %x, %x, %x, %x : !ttg.memdesc<1xi64, #b, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#ts2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #ts2, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the left operand must have colStride = 1, got 2}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #ts2, #tmem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tp = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, fp4Padded = true>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #tp, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op only a scaled dot takes a left operand of padded fp4}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #tp, #tmem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #sw, #smem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the left operand must have an #ttg.nvmma_shared, #ttg.shared_linear or #ttng.tensor_memory_encoding layout, got #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #sw, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf16, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op an accumulator of 'f16' must have colStride = 2, got 1}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf16, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#tp = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, fp4Padded = true>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #tp, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the accumulator cannot be padded fp4}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #tp, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#n32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #n32, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the accumulator must have a #ttng.tensor_memory_encoding, got #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #n32, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xi8, #sc, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op dots of 'f16' and 'f16' are not accumulated in 'i8'}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op a pair of CTAs shares the right operand by columns: its CGALayout must begin with [0, 1], got []}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p {two_ctas} : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8s = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xi8, #n8, #smem, mutable>, %b_: !ttg.memdesc<128x64xf16, #n8s, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op no instruction takes both 'i8' (kind I8) and 'f16' (kind F16)}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x128xi8, #n8, #smem, mutable>, !ttg.memdesc<128x64xf16, #n8s, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op only an asynchronous dot (is_async) reports completion to barriers}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p, %b[%p]  : !ttg.memdesc<128x64xf16, #n16, #smem>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#n16_2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#t64_2t = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16_2, #smem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16_2, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t64_2t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op CTAs must have all rows (K) of the right operand, got CGALayout = [[1, 0]]}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16_2, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16_2, #smem, mutable>, !ttg.memdesc<128x64xf32, #t64_2t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#t_2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[1, 0]]>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n16_2a = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<256x64xf16, #t_2, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, %d: !ttg.memdesc<256x64xf32, #t_2, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the accumulator must have twoCTAs = true, as the dot has}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p {two_ctas} : !ttg.memdesc<256x64xf16, #t_2, #tmem, mutable>, !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, !ttg.memdesc<256x64xf32, #t_2, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#t_2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[1, 0]]>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n16_2a = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<256x64xf16, #t_2, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, %d: !ttg.memdesc<256x64xf32, #t_2, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op the result must be divided among CTAs as the operands: basis 0 is [128, 0], not [128, 32]}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<256x64xf16, #t_2, #tmem, mutable>, !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, !ttg.memdesc<256x64xf32, #t_2, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8u = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x16xi8, #n8u, #smem, mutable>, %b_: !ttg.memdesc<16x64xi8, #n8u, #smem, mutable>, %d: !ttg.memdesc<128x64xi32, #t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op a dot of 'i8' needs K of at least 32, got 16}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x16xi8, #n8u, #smem, mutable>, !ttg.memdesc<16x64xi8, #n8u, #smem, mutable>, !ttg.memdesc<128x64xi32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t512 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 512, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem, mutable>, %b_: !ttg.memdesc<64x512xf16, #n16, #smem, mutable>, %d: !ttg.memdesc<128x512xf32, #t512, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op an instruction computes at most 256 columns, got blocks of 512}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x512xf16, #n16, #smem, mutable>, !ttg.memdesc<128x512xf32, #t512, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #t64, #tmem, mutable>, %b_: !ttg.memdesc<64x64xf16, #n16, #smem>, %d: !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op left operand and accumulator cannot both have interleaved blocks of 64 rows}}
  ttng.tc_gen5_mma %a, %b_, %d, %p, %p  : !ttg.memdesc<128x64xf16, #t64, #tmem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem>, !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %p: i1, %c: !ttg.memdesc<1xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.tc_gen5_mma' op 1 barriers need as many predicates, got 0}}
  "ttng.tc_gen5_mma"(%a, %b, %d, %p, %p, %c) <{is_async, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1, 1, 1, 0>}> : (!ttg.memdesc<128x64xf16, #n16, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, i1, i1, !ttg.memdesc<1xi64, #b, #smem, mutable>) -> ()
  tt.return
}
}

// -----

// ttng.tc_gen5_mma
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n16_2a = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16, CGALayout = [[0, 1]]}>
#t64_2t = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1, CGALayout = [[1, 0]], twoCTAs = true>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16_2a, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t64_2t, #tmem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.tc_gen5_mma' op CTAs must have all columns (K) of the left operand, got CGALayout = [[0, 1]]}}
  ttng.tc_gen5_mma %a, %b, %d, %p, %p {two_ctas} : !ttg.memdesc<128x64xf16, #n16_2a, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16_2a, #smem, mutable>, !ttg.memdesc<128x64xf32, #t64_2t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<128x64xf16>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op the left operand must have an #ttg.nvmma_shared, #ttg.shared_linear or #ttg.dot_op layout, got 'tensor<128x64xf16>'}}
  %d = ttng.warp_group_dot %a, %b, %c  : tensor<128x64xf16> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#da1 = #ttg.dot_op<{opIdx = 0, parent = #mma3, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<128x64xf16, #da1>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op a left operand in registers must have kWidth = 2, got 1}}
  %d = ttng.warp_group_dot %a, %b, %c  : tensor<128x64xf16, #da1> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// expected-error @below {{opIdx must be 0 under a version 3 parent: wgmma takes only its left operand from registers}}
#db = #ttg.dot_op<{opIdx = 1, parent = #mma3, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<128x64xf16, #db>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32, #mma3>) {
  %d = ttng.warp_group_dot %a, %b, %c  : tensor<128x64xf16, #db> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<1x128x64xf16, #n16, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op operands of a dot must be matrices, got '!ttg.memdesc<1x128x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, #ttg.shared_memory, mutable>'}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<1x128x64xf16, #n16, #smem, mutable> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op expects as many columns of the first operand as rows of the second, but got 64 and 32}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x64xf16, #n16, #smem> * !ttg.memdesc<32x64xf16, #n16, #smem, mutable> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op the right operand must have an #ttg.nvmma_shared or #ttg.shared_linear layout, got #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x64xf16, #n16, #smem> * !ttg.memdesc<64x64xf16, #sw, #smem, mutable> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32>) {
  // expected-error @below {{'ttng.warp_group_dot' op the result must have an #ttg.nvidia_mma layout of version 3, got 'tensor<128x64xf32>'}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x64xf16, #n16, #smem> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<64x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op expects an accumulator of 128x64, but got 64x64}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x64xf16, #n16, #smem> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<64x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf8E5M2, #n8, #smem>, %b: !ttg.memdesc<128x128xf8E5M2, #n8, #smem>, %c: tensor<128x128xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op products of fp8 are summed with less than f32's precision over at least 32 elements, but maxNumImpreciseAcc = 0}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x128xf8E5M2, #n8, #smem> * !ttg.memdesc<128x128xf8E5M2, #n8, #smem> -> tensor<128x128xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n64 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 64}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x128xf64, #n64, #smem>, %b: !ttg.memdesc<128x128xf64, #n64, #smem>, %c: tensor<128x128xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op no instruction takes a left operand of 'f64'}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x128xf64, #n64, #smem> * !ttg.memdesc<128x128xf64, #n64, #smem> -> tensor<128x128xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>, %b: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %c: tensor<32x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op each CTA's part of the result must have a multiple of 64 rows and of 8 columns, got 32x64}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<32x64xf16, #n16, #smem, mutable> * !ttg.memdesc<64x64xf16, #n16, #smem, mutable> -> tensor<32x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3w2 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: !ttg.memdesc<128x64xf16, #n16, #smem>, %b: !ttg.memdesc<64x64xf16, #n16, #smem>, %c: tensor<128x64xf32, #mma3w2>) {
  // expected-error @below {{'ttng.warp_group_dot' op warp groups have 4 warps, but here there are 2}}
  %d = ttng.warp_group_dot %a, %b, %c  : !ttg.memdesc<128x64xf16, #n16, #smem> * !ttg.memdesc<64x64xf16, #n16, #smem> -> tensor<128x64xf32, #mma3w2>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#mmax = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dx = #ttg.dot_op<{opIdx = 0, parent = #mmax, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<128x64xf16, #dx>, %b: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op the left operand must be laid out as #ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>, kWidth = 2}>, got 'tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>, kWidth = 2}>>'}}
  %r = ttng.warp_group_dot %a, %b, %c : tensor<128x64xf16, #dx> * !ttg.memdesc<64x64xf16, #n16, #smem, mutable> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: f16, %b: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %c: tensor<128x64xf32, #mma3>) {
  // expected-error @below {{'ttng.warp_group_dot' op operand #0 must be a tensor or a memory descriptor, but got 'f16'}}
  %r = ttng.warp_group_dot %a, %b, %c : f16 * !ttg.memdesc<64x64xf16, #n16, #smem, mutable> -> tensor<128x64xf32, #mma3>
  tt.return
}
}

// -----

// ttng.warp_group_dot_wait
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
#mma3 = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.warp_group_dot_wait' op must wait for at least one value}}
  ttng.warp_group_dot_wait  {pendings = 0 : i32} : 
  tt.return
}
}
