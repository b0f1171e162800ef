// What the verifiers of operations refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// amdg.concat
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<32x32xf32>, %b: tensor<32x32xf32>) {
  // expected-error @below {{'amdg.concat' op the source must have a layout, got 'tensor<32x32xf32>'}}
  %r = amdg.concat %a, %b : tensor<32x32xf32>, tensor<32x32xf32> -> tensor<64x32xf32>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f() {
  // expected-error @below {{'amdg.concat' op there must be a source}}
  %r = amdg.concat  :  -> tensor<32x32xf32, #q>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<32x32xf32, #q>) {
  // expected-error @below {{'amdg.concat' op 1 sources of [32, 32] make [32, 32], got 2}}
  %r = amdg.concat %s, %s : tensor<32x32xf32, #q>, tensor<32x32xf32, #q> -> tensor<32x32xf32, #q>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<32x32xf32, #q>) {
  // expected-error @below {{'amdg.concat' op dimension 0 of the result, 16, is no multiple of the sources', 32}}
  %r = amdg.concat %s : tensor<32x32xf32, #q> -> tensor<16x32xf32, #q>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<32x32xf32, #q>) {
  // expected-error @below {{'amdg.concat' op the sources have 2 dimensions, but the result 1}}
  %r = amdg.concat %s, %s, %s, %s : tensor<32x32xf32, #q>, tensor<32x32xf32, #q>, tensor<32x32xf32, #q>, tensor<32x32xf32, #q> -> tensor<4096xf32, #qv>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<32x32xf32, #q>, %b: tensor<32x64xf32, #q>) {
  // expected-error @below {{'amdg.concat' op all sources must have one type, got 'tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' and 'tensor<32x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.concat %a, %b : tensor<32x32xf32, #q>, tensor<32x64xf32, #q> -> tensor<64x32xf32, #q>
  tt.return
}
}

// -----

// amdg.concat
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<32x32xf32, #q>, %b: tensor<32x32xf32, #q>) {
  // expected-error @below {{'amdg.concat' op the sources have elements of 'f32', but the result of 'f16'}}
  %r = amdg.concat %a, %b : tensor<32x32xf32, #q>, tensor<32x32xf32, #q> -> tensor<64x32xf16, #q>
  tt.return
}
}

// -----

// amdg.extract_slice
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<128x64xf16, #q>) {
  // expected-error @below {{'amdg.extract_slice' op the source has elements of 'f16', but the result of 'f32'}}
  %r = amdg.extract_slice %s [0, 0] : tensor<128x64xf16, #q> to tensor<32x32xf32, #q>
  tt.return
}
}

// -----

// amdg.extract_slice
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<4096xf32, #qv>) {
  // expected-error @below {{'amdg.extract_slice' op warps must hold the same in the source and the result, but move along [[256], [512]] and [[256], [0]]}}
  %r = amdg.extract_slice %s [0] : tensor<4096xf32, #qv> to tensor<512xf32, #qv>
  tt.return
}
}

// -----

// amdg.extract_slice
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<4096xf32, #qv>) {
  // expected-error @below {{'amdg.extract_slice' op dimension 0 of the source has 4096 elements, which do not include 1024 from 4096}}
  %r = amdg.extract_slice %s [4096] : tensor<4096xf32, #qv> to tensor<1024xf32, #qv>
  tt.return
}
}

// -----

// amdg.extract_slice
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<128x64xf32, #q>) {
  // expected-error @below {{'amdg.extract_slice' op source, result and offsets must have as many dimensions, got 2, 2 and 1}}
  %r = amdg.extract_slice %s [0] : tensor<128x64xf32, #q> to tensor<32x32xf32, #q>
  tt.return
}
}

// -----

// amdg.extract_slice
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<4096xf32, #qv>) {
  // expected-error @below {{'amdg.extract_slice' op element [0] of the result is [512] of the source, which no register of the same thread holds}}
  %r = amdg.extract_slice %s [512] : tensor<4096xf32, #qv> to tensor<1024xf32, #qv>
  tt.return
}
}

// -----

// amdg.extract_slice
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: f32) {
  // expected-error @below {{'amdg.extract_slice' op operand #0 must be ranked tensor of any type values, but got 'f32'}}
  %r = "amdg.extract_slice"(%a0) <{static_offsets = array<i64: 0>}> : (f32) -> tensor<4xf32>
  tt.return
}
}

// -----

// amdg.in_thread_transpose
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#tt44 = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<4096xf16, #qv>) {
  // expected-error @below {{'amdg.in_thread_transpose' op source and result must have the same shape and elements, got 'tensor<4096xf16, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>' and 'tensor<128x32xf16, #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>>'}}
  %r = amdg.in_thread_transpose %s : tensor<4096xf16, #qv> -> tensor<128x32xf16, #tt44>
  tt.return
}
}

// -----

// amdg.in_thread_transpose
#tt44 = #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<128x32xf16>) {
  // expected-error @below {{'amdg.in_thread_transpose' op the source must have a #ttg.blocked layout, got 'tensor<128x32xf16>'}}
  %r = amdg.in_thread_transpose %s : tensor<128x32xf16> -> tensor<128x32xf16, #tt44>
  tt.return
}
}

// -----

// amdg.in_thread_transpose
#q44 = #ttg.blocked<{sizePerThread = [4, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<128x32xf16, #q44>) {
  // expected-error @below {{'amdg.in_thread_transpose' op the result must have the source's layout transposed in each thread, {register: [[1, 0], [2, 0], [0, 1], [0, 2]], lane: [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp: [[32, 0], [64, 0]], block: []} -> [dim0: 128, dim1: 32], but has {register: [[0, 1], [0, 2], [1, 0], [2, 0]], lane: [[0, 4], [0, 8], [0, 16], [4, 0], [8, 0], [16, 0]], warp: [[32, 0], [64, 0]], block: []} -> [dim0: 128, dim1: 32]}}
  %r = amdg.in_thread_transpose %s : tensor<128x32xf16, #q44> -> tensor<128x32xf16, #q44>
  tt.return
}
}

// -----

// amdg.in_thread_transpose
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: tensor<4096xf16, #qv>) {
  // expected-error @below {{'amdg.in_thread_transpose' op the source must be a matrix, got 'tensor<4096xf16, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>'}}
  %r = amdg.in_thread_transpose %s : tensor<4096xf16, #qv> -> tensor<4096xf16, #qv>
  tt.return
}
}

// -----

// amdg.local_load_packed_transposed
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#mf = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
#df0 = #ttg.dot_op<{opIdx = 0, parent = #mf, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: !ttg.memdesc<64x128xi8, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.local_load_packed_transposed' op the buffer of operand 0 must have the order [0, 1], got [1, 0]}}
  %r = amdg.local_load_packed_transposed %s : !ttg.memdesc<64x128xi8, #sw, #smem, mutable> -> tensor<128x64xi8, #df0>
  tt.return
}
}

// -----

// amdg.local_load_packed_transposed
#swt = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
#mf = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
#df0 = #ttg.dot_op<{opIdx = 0, parent = #mf, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: !ttg.memdesc<1x64x128xi8, #swt, #smem, mutable>) {
  // expected-error @below {{'amdg.local_load_packed_transposed' op source and result must be matrices, got '!ttg.memdesc<1x64x128xi8, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>, #ttg.shared_memory, mutable>' and 'tensor<128x64xi8, #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>, kWidth = 16}>>'}}
  %r = amdg.local_load_packed_transposed %s : !ttg.memdesc<1x64x128xi8, #swt, #smem, mutable> -> tensor<128x64xi8, #df0>
  tt.return
}
}

// -----

// amdg.local_load_packed_transposed
#swt = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: !ttg.memdesc<64x128xi8, #swt, #smem, mutable>) {
  // expected-error @below {{'amdg.local_load_packed_transposed' op the result must have a #ttg.dot_op layout, got 'tensor<128x64xi8>'}}
  %r = amdg.local_load_packed_transposed %s : !ttg.memdesc<64x128xi8, #swt, #smem, mutable> -> tensor<128x64xi8>
  tt.return
}
}

// -----

// amdg.local_load_packed_transposed
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#mf = #ttg.amd_mfma<{version = 4, warpsPerCTA = [4, 1], instrShape = [32, 32, 16], isTransposed = true}>
#df1 = #ttg.dot_op<{opIdx = 1, parent = #mf, kWidth = 16}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xi8, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.local_load_packed_transposed' op the result [128, 64], packed along dimension 1 instead of 0, needs a buffer of [256, 32], got [128, 64]}}
  %r = amdg.local_load_packed_transposed %s : !ttg.memdesc<128x64xi8, #sw, #smem, mutable> -> tensor<128x64xi8, #df1>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xf16, #e32>, %s: tensor<256x32xi8, #e32>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op scales must be compact, one for 8 or more elements along dimension 1, got one for each}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xf16, #e32>, tensor<256x32xi8, #e32> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e8 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xf16, #e32>, %s: tensor<256x8xi8, #e8>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op each scale must cover a multiple of 8 elements along dimension 1, got 4}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xf16, #e32>, tensor<256x8xi8, #e8> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xf16, #e32>, %s: tensor<256x32xbf16, #e32>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op operand #1 must be ranked tensor of 8-bit signless integer values, but got 'tensor<256x32xbf16, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xf16, #e32>, tensor<256x32xbf16, #e32> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xf64, #e32>, %s: tensor<256x32xi8, #e32>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op operand #0 must be ranked tensor of 16-bit float or bfloat16 type or 32-bit float values, but got 'tensor<256x32xf64, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xf64, #e32>, tensor<256x32xi8, #e32> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xbf16, #e32>, %s: tensor<256x1xi8, #e1>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op axis 2 is out of range for 2 dimensions}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 2 : i32} : tensor<256x32xbf16, #e32>, tensor<256x1xi8, #e1> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xbf16, #e32>, %s: tensor<256x1xi8>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op 'tensor<256x1xi8>' and 'tensor<256x32xf8E5M2, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>' must both have a layout, or neither}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xbf16, #e32>, tensor<256x1xi8> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xbf16, #e32>, %s: tensor<1024xi8, #qv>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op the scales have 1 dimensions, but the output 2}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xbf16, #e32>, tensor<1024xi8, #qv> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xbf16, #e32>, %s: tensor<256x1xi8, #q>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op each thread must hold the scales of its elements, but 'tensor<256x1xi8, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' is not laid out as {register: [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]], lane: [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]], warp: [[64, 0], [128, 0]], block: []} -> [dim0: 256, dim1: 1]}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xbf16, #e32>, tensor<256x1xi8, #q> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_downcast_fp8
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x32xbf16>, %s: tensor<256x1xi8, #e1>) {
  // expected-error @below {{'amdg.scaled_downcast_fp8' op input and output must have the same shape and layout, got 'tensor<256x32xbf16>' and 'tensor<256x32xf8E5M2, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_downcast_fp8 %a scale %s {axis = 1 : i32} : tensor<256x32xbf16>, tensor<256x1xi8, #e1> -> tensor<256x32xf8E5M2, #e32>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8, #e16>, %s: tensor<256x16xi8, #e16>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op 8 consecutive registers of a thread hold elements that are converted at once: they must share one scale, which covers 2 along dimension 1}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<256x16xi8, #e16>, tensor<256x16xi8, #e16> -> tensor<256x32xf16, #e32>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8, #e16>, %s: tensor<256x32xi8, #e32>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op result #0 must be ranked tensor of 16-bit float or bfloat16 type values, but got 'tensor<256x32xf32, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<256x16xi8, #e16>, tensor<256x32xi8, #e32> -> tensor<256x32xf32, #e32>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
#e32 = #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8, #e16>, %s: tensor<256x1xi8, #e1>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op axis 0 holds pairs in 'tensor<256x16xi8, #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>': dimension 0 of 'tensor<256x32xbf16, #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>' does not fit}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 0 : i32} : tensor<256x16xi8, #e16>, tensor<256x1xi8, #e1> -> tensor<256x32xbf16, #e32>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
#q = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
#e1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8, #e16>, %s: tensor<256x1xi8, #e1>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op 'tensor<256x32xbf16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' must have a layout equivalent to #ttg.blocked<{sizePerThread = [1, 32], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<256x16xi8, #e16>, tensor<256x1xi8, #e1> -> tensor<256x32xbf16, #q>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8>, %s: tensor<256x3xi8>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op dimension 1 of the output, 32, is no multiple of the scales', 3}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<256x16xi8>, tensor<256x3xi8> -> tensor<256x32xbf16>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8>, %s: tensor<128x1xi8>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op the scales have 128 elements along dimension 0, but the output 256}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<256x16xi8>, tensor<128x1xi8> -> tensor<256x32xbf16>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp4
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<4096xi8>, %s: tensor<256x32xi8>) {
  // expected-error @below {{'amdg.scaled_upcast_fp4' op 'tensor<4096xi8>' and 'tensor<256x32xbf16>' must have as many dimensions}}
  %r = amdg.scaled_upcast_fp4 %a scale %s {axis = 1 : i32} : tensor<4096xi8>, tensor<256x32xi8> -> tensor<256x32xbf16>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp8
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xf8E5M2, #e16>, %s: tensor<256x16xbf16, #e16>) {
  // expected-error @below {{'amdg.scaled_upcast_fp8' op gfx1250 takes scales of 'i8', the exponent alone, got 'bf16'}}
  %r = amdg.scaled_upcast_fp8 %a scale %s : tensor<256x16xf8E5M2, #e16>, tensor<256x16xbf16, #e16> -> tensor<256x16xbf16, #e16>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp8
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xi8, #e16>, %s: tensor<256x16xi8, #e16>) {
  // expected-error @below {{'amdg.scaled_upcast_fp8' op operand #0 must be ranked tensor of f8E4M3FN type or f8E5M2 type values, but got 'tensor<256x16xi8, #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_upcast_fp8 %a scale %s : tensor<256x16xi8, #e16>, tensor<256x16xi8, #e16> -> tensor<256x16xbf16, #e16>
  tt.return
}
}

// -----

// amdg.scaled_upcast_fp8
#e16 = #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a: tensor<256x16xf8E5M2, #e16>, %s: tensor<256x16xf16, #e16>) {
  // expected-error @below {{'amdg.scaled_upcast_fp8' op operand #1 must be ranked tensor of bfloat16 type or 8-bit signless integer values, but got 'tensor<256x16xf16, #ttg.blocked<{sizePerThread = [1, 16], threadsPerWarp = [64, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = amdg.scaled_upcast_fp8 %a scale %s : tensor<256x16xf8E5M2, #e16>, tensor<256x16xf16, #e16> -> tensor<256x16xbf16, #e16>
  tt.return
}
}
