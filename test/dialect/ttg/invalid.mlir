// What the verifiers and parsers of operations and types refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// memdesc: rank of the allocation
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the allocation [32] must have at least the rank of the shape [32, 32]}}
module attributes {x.y = !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 32>} {}

// -----

// memdesc: smaller allocation
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the shape [32, 32] must not be empty, and within the allocation [16, 32]}}
module attributes {x.y = !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 16x32>} {}

// -----

// memdesc: empty
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the shape [0, 4] must not be empty, and within the allocation [0, 4]}}
module attributes {x.y = !ttg.memdesc<0x4xf32, #shared, #smem>} {}

// -----

// memdesc: rank of the layout
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the shape [32] must have the rank 2 of its layout, or one dimension more}}
module attributes {x.y = !ttg.memdesc<32xf32, #shared, #smem>} {}

// -----

// memdesc: no dimension
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{a memory descriptor must have at least one dimension}}
module attributes {x.y = !ttg.memdesc<f32, #shared, #smem>} {}

// -----

// memdesc: sizes
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the shape [32, 24] must have powers of two where it is laid out, got 24}}
module attributes {x.y = !ttg.memdesc<32x24xf32, #shared, #smem>} {}

// -----

// memdesc: sizes of the allocation
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{the allocation [33, 33] must have powers of two where it is laid out, got 33}}
module attributes {x.y = !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 33x33>} {}

// -----

// memdesc: layout of registers
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{#ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> does not lay out a buffer}}
module attributes {x.y = !ttg.memdesc<32x32xf32, #blocked, #smem>} {}

// -----

// memdesc: no layout
#smem = #ttg.shared_memory
// expected-error @below {{3 : i64 does not lay out a buffer}}
module attributes {x.y = !ttg.memdesc<32x32xf32, 3, #smem>} {}

// -----

// memdesc: space
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// expected-error @below {{a layout of shared memory needs the space #ttg.shared_memory, got 1 : i32}}
module attributes {x.y = !ttg.memdesc<32x32xf32, #shared, 1 : i32>} {}

// -----

// memdesc: bits
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{elements in shared memory must fill whole bytes, got 4 bits}}
module attributes {x.y = !ttg.memdesc<32x32xi4, #shared, #smem>} {}

// -----

// memdesc: elements
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
// expected-error @below {{elements must be numbers or pointers, got 'index'}}
module attributes {x.y = !ttg.memdesc<32x32xindex, #shared, #smem>} {}

// -----

// memdesc: swizzle wider than the rows
#nvmma = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
// expected-error @below {{dimension 1 of the allocation [64, 32] must have at least 64 elements in a block to swizzle 128 bytes}}
module attributes {x.y = !ttg.memdesc<64x32xf16, #nvmma, #smem>} {}

// -----

// memdesc: shape of a linear layout
#shared_linear = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]}, alignment = 16>
#smem = #ttg.shared_memory
// expected-error @below {{the allocation [16, 32] must have the shape [32, 32] of its layout}}
module attributes {x.y = !ttg.memdesc<16x32xf32, #shared_linear, #smem>} {}

// -----

// memdesc: space of tensor memory
#smem = #ttg.shared_memory
// expected-error @below {{a layout of tensor memory needs the space #ttng.tensor_memory, got #ttg.shared_memory}}
module attributes {x.y = !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #smem>} {}

// -----

// memdesc: rows of tensor memory
// expected-error @below {{the shape [64, 64] must have at least blockM = 128 rows, got 64}}
module attributes {x.y = !ttg.memdesc<64x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory>} {}

// -----

// memdesc: columns of tensor memory
// expected-error @below {{the shape [128, 64] must give each of 2 CTAs at least blockN = 64 columns, got 32}}
module attributes {x.y = !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, CGALayout = [[0, 1]]>, #ttng.tensor_memory>} {}

// -----

// memdesc: elements of tensor memory
// expected-error @below {{elements in tensor memory have from 8 bits to 32 / colStride = 32, got 64}}
module attributes {x.y = !ttg.memdesc<128x64xf64, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory>} {}

// -----

// memdesc: scales
// expected-error @below {{scales in tensor memory must have 8 bits, got 32}}
module attributes {x.y = !ttg.memdesc<128x4xf32, #ttng.tensor_memory_scales_encoding<>, #ttng.tensor_memory>} {}

// -----

// A layout whose threads hold more copies than any tensor has elements.
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#wide = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 1048576, 16]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<64x32xf32, #blocked>) {
  // expected-error @below {{a thread would hold 524288 elements, the most are 65536}}
  %0 = ttg.convert_layout %t : tensor<64x32xf32, #blocked> -> tensor<64x32xf32, #wide>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#warps8 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}> is for 8 warps, but here there are 4 (ttg.num-warps)}}
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #warps8>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#lanes64 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}> is for 64 threads per warp, but here there are 32 (ttg.threads-per-warp)}}
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #lanes64>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#ctas2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}> is for 2 CTAs, but here there are 1 (ttg.num-ctas)}}
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #ctas2>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op result #0: #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}> has 1 dimensions, but 'tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>' has 2}}
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1d>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op result #0: #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}> does not distribute a tensor over threads}}
  %0 = ttg.convert_layout %t : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #shared>
  tt.return
}
}

// -----

// tt.splat
#warps8 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.splat' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [8, 1], order = [1, 0]}> is for 8 warps, but here there are 4 (ttg.num-warps)}}
  %0 = tt.splat %i : i32 -> tensor<32x32xi32, #warps8>
  tt.return
}
}

// -----

// tt.splat
#lanes64 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.splat' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 8], warpsPerCTA = [4, 1], order = [1, 0]}> is for 64 threads per warp, but here there are 32 (ttg.threads-per-warp)}}
  %0 = tt.splat %i : i32 -> tensor<32x32xi32, #lanes64>
  tt.return
}
}

// -----

// tt.splat
#ctas2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.splat' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}> is for 2 CTAs, but here there are 1 (ttg.num-ctas)}}
  %0 = tt.splat %i : i32 -> tensor<32x32xi32, #ctas2>
  tt.return
}
}

// -----

// tt.splat
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.splat' op result #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> has 2 dimensions, but 'tensor<32x32x2xi32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' has 3}}
  %0 = tt.splat %i : i32 -> tensor<32x32x2xi32, #blocked>
  tt.return
}
}

// -----

// ttg.convert_layout
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.convert_layout' op force_warp_shuffle asks for a conversion that stays within each warp}}
  %0 = ttg.convert_layout %t {force_warp_shuffle} : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
  tt.return
}
}

// -----

// ttg.local_alloc
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.local_alloc' op a buffer that is not filled when it is made must be mutable}}
  %0 = ttg.local_alloc  : () -> !ttg.memdesc<32x32xf32, #shared, #smem>
  tt.return
}
}

// -----

// ttg.local_alloc
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_alloc' op source has elements of 'f32', but the buffer has 'f16'}}
  %0 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.local_alloc
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_alloc' op source has the shape [32, 32], but the buffer has [16, 32]}}
  %0 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.local_alloc
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_alloc' op result must be a whole allocation: its shape [32, 32] is not that of the allocation, [64, 32]}}
  %0 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 64x32>
  tt.return
}
}

// -----

// ttg.local_alloc
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared_ctas2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_alloc' op result #0: #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0], CGALayout = [[1, 0]]}> is for 2 CTAs, but here there are 1 (ttg.num-ctas)}}
  %0 = ttg.local_alloc %t : (tensor<32x32xf32, #blocked>) -> !ttg.memdesc<32x32xf32, #shared_ctas2, #smem>
  tt.return
}
}

// -----

// ttg.local_alloc
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.local_alloc' op the buffer must be in shared memory, but is in #ttng.tensor_memory}}
  %0 = ttg.local_alloc  : () -> !ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory, mutable>
  tt.return
}
}

// -----

// ttg.local_load
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.local_load' op result has elements of 'f16', but the buffer has 'f32'}}
  %0 = ttg.local_load %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<32x32xf16, #blocked>
  tt.return
}
}

// -----

// ttg.local_load
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.local_load' op result has the shape [16, 32], but the buffer has [32, 32]}}
  %0 = ttg.local_load %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> tensor<16x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_store
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%mdi: !ttg.memdesc<32x32xf32, #shared, #smem>, %t: tensor<32x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_store' op cannot store to the immutable buffer '!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory>'}}
  ttg.local_store %t, %mdi : tensor<32x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem>
  tt.return
}
}

// -----

// ttg.local_store
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t16: tensor<32x32xf16, #blocked>) {
  // expected-error @below {{'ttg.local_store' op source has elements of 'f16', but the buffer has 'f32'}}
  ttg.local_store %t16, %md : tensor<32x32xf16, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.local_store
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %ts: tensor<16x32xf32, #blocked>) {
  // expected-error @below {{'ttg.local_store' op source has the shape [16, 32], but the buffer has [32, 32]}}
  ttg.local_store %ts, %md : tensor<16x32xf32, #blocked> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.async_copy_global_to_local
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%mdi: !ttg.memdesc<32x32xf32, #shared, #smem>, %p: tensor<32x32x!tt.ptr<f32>, #blocked>) {
  // expected-error @below {{'ttg.async_copy_global_to_local' op cannot store to the immutable buffer '!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory>'}}
  %0 = ttg.async_copy_global_to_local %p, %mdi : tensor<32x32x!tt.ptr<f32>, #blocked> -> <32x32xf32, #shared, #smem>
  tt.return
}
}

// -----

// ttg.memdesc_index
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{'ttg.memdesc_index' op result must have the shape [32, 32], but has [16, 32]}}
  %0 = ttg.memdesc_index %md3[%i] : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<16x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_index
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{'ttg.memdesc_index' op result has elements of 'f16', but the source has 'f32'}}
  %0 = ttg.memdesc_index %md3[%i] : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf16, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_index
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#transposed = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{'ttg.memdesc_index' op result must have the layout #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}> of the source, but has #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>}}
  %0 = ttg.memdesc_index %md3[%i] : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #transposed, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_index
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>, %i: i32) {
  // expected-error @below {{'ttg.memdesc_index' op result must be of the allocation [32, 32], but is of [64, 32]}}
  %0 = ttg.memdesc_index %md3[%i] : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 64x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op result must be of the allocation [32, 32], but is of [32, 16]}}
  %0 = ttg.memdesc_subslice %md[0, 16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op offset 8 of dimension 1 must be a multiple of its size 16}}
  %0 = ttg.memdesc_subslice %md[0, 8] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op elements 32 to 48 of dimension 1 are outside of its 32}}
  %0 = ttg.memdesc_subslice %md[0, 32] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op elements -16 to 0 of dimension 1 are outside of its 32}}
  %0 = ttg.memdesc_subslice %md[0, -16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op offsets [0] and result shape [32, 16] must have the rank 2 of the source}}
  %0 = ttg.memdesc_subslice %md[0] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op result has elements of 'f16', but the source has 'f32'}}
  %0 = ttg.memdesc_subslice %md[0, 16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf16, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#transposed = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op result must have the layout #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}> of the source, but has #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>}}
  %0 = ttg.memdesc_subslice %md[0, 16] : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #transposed, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%sz: !ttg.memdesc<32x32xf32, #swizzled, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op dimension 0 is cut to 2 elements, inside of the pattern by which #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}> is swizzled}}
  %0 = ttg.memdesc_subslice %sz[2, 0] : !ttg.memdesc<32x32xf32, #swizzled, #smem, mutable> -> !ttg.memdesc<2x32xf32, #swizzled, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#shared1d = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reshape' op source has the shape [32, 32], whose number of elements is not that of [512]}}
  %0 = ttg.memdesc_reshape %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<512xf32, #shared1d, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#shared1d = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reshape' op source and result must both be mutable, or neither}}
  %0 = ttg.memdesc_reshape %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<1024xf32, #shared1d, #smem>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#shared1d = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reshape' op result has elements of 'f16', but the source has 'f32'}}
  %0 = ttg.memdesc_reshape %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<1024xf16, #shared1d, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#shared1d = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#swizzled = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 4, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%sz: !ttg.memdesc<32x32xf32, #swizzled, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reshape' op result must have a layout equivalent to #ttg.shared_linear<{offset = [[1], [2], [4], [8], [16], [40], [80], [128], [256], [512]]}, alignment = 16>, but has #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>}}
  %0 = ttg.memdesc_reshape %sz : !ttg.memdesc<32x32xf32, #swizzled, #smem, mutable> -> !ttg.memdesc<1024xf32, #shared1d, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#shared1d = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reshape' op the size of dimension 0 of the shape is 3, which is not a power of two}}
  %0 = ttg.memdesc_reshape %md3 : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<3x1024xf32, #shared1d, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op result has 8192 bytes, but the source has only 4096}}
  %0 = ttg.memdesc_reinterpret %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op source and result must both be mutable, or neither}}
  %0 = ttg.memdesc_reinterpret %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op result must not be a part of an allocation, but is of [32, 32]}}
  %0 = ttg.memdesc_reinterpret %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x32>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op result is in #ttng.tensor_memory, but the source is in #ttg.shared_memory}}
  %0 = ttg.memdesc_reinterpret %md : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<128x8xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 8, colStride = 1>, #ttng.tensor_memory, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#padded = #ttg.padded_shared<[4:+2] {order = [1, 0], shape = [32, 32]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%pd: !ttg.memdesc<32x32xf32, #padded, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op source and result must both have a padded layout, or neither}}
  %0 = ttg.memdesc_reinterpret %pd : !ttg.memdesc<32x32xf32, #padded, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_trans
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_trans' op inferred type(s) '!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>, #ttg.shared_memory, mutable>' are incompatible with return type(s) of operation '!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory, mutable>'}}
  %0 = ttg.memdesc_trans %md {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_trans
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_trans' op order [1, 1] must be a permutation of the 2 dimension(s)}}
  %0 = ttg.memdesc_trans %md {order = array<i32: 1, 1>} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_trans
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#transposed = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_trans' op order [0, 2, 1] does not permute the 2 dimensions of #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}}
  %0 = ttg.memdesc_trans %md3 {order = array<i32: 0, 2, 1>} : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<3x32x32xf32, #transposed, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_trans
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#transposed = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md3: !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{the shape [32, 32, 3] must have powers of two where it is laid out, got 3}}
  %0 = ttg.memdesc_trans %md3 {order = array<i32: 2, 1, 0>} : !ttg.memdesc<3x32x32xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32x3xf32, #transposed, #smem, mutable>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_gather' op axis 2 is out of range for the 2 dimensions of the buffer}}
  %0 = ttg.local_gather %md[%x] {axis = 2 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_gather' op axis -1 is out of range for the 2 dimensions of the buffer}}
  %0 = ttg.local_gather %md[%x] {axis = -1 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_gather' op values and indices must have the same encoding}}
  %0 = ttg.local_gather %md[%x] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf32, #blocked1>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_gather' op the tensor of values has elements of 'f16', but the buffer has 'f32'}}
  %0 = ttg.local_gather %md[%x] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<32x32xf16, #blocked>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked1d = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x1: tensor<32xi32, #blocked1d>) {
  // expected-error @below {{'ttg.local_gather' op indices have 1 dimensions, but the buffer has 2}}
  %0 = ttg.local_gather %md[%x1] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32xi32, #blocked1d> -> tensor<32xf32, #blocked1d>
  tt.return
}
}

// -----

// ttg.local_gather
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_gather' op values have the shape [16, 32], but indices have [32, 32]}}
  %0 = ttg.local_gather %md[%x] {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked> -> tensor<16x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_scatter
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t2: tensor<32x32xf32, #blocked1>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_scatter' op values and indices must have the same encoding}}
  ttg.local_scatter %md[%x], %t2 {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked1>
  tt.return
}
}

// -----

// ttg.local_scatter
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %x: tensor<32x32xi32, #blocked>, %t16: tensor<32x32xf16, #blocked>) {
  // expected-error @below {{'ttg.local_scatter' op the tensor of values has elements of 'f16', but the buffer has 'f32'}}
  ttg.local_scatter %md[%x], %t16 {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf16, #blocked>
  tt.return
}
}

// -----

// ttg.local_scatter
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t: tensor<32x32xf32, #blocked>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_scatter' op axis 2 is out of range for the 2 dimensions of the buffer}}
  ttg.local_scatter %md[%x], %t {axis = 2 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_scatter
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t: tensor<32x32xf32, #blocked>, %xs: tensor<16x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_scatter' op values have the shape [32, 32], but indices have [16, 32]}}
  ttg.local_scatter %md[%xs], %t {axis = 0 : i32} : !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<16x32xi32, #blocked>, tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_atomic_scatter_rmw
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%mdi: !ttg.memdesc<32x32xf32, #shared, #smem>, %t: tensor<32x32xf32, #blocked>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_atomic_scatter_rmw' op cannot store to the immutable buffer '!ttg.memdesc<32x32xf32, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>, #ttg.shared_memory>'}}
  %0 = ttg.local_atomic_scatter_rmw fadd, %mdi[%x], %t {axis = 0 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_atomic_scatter_rmw
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t: tensor<32x32xf32, #blocked>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_atomic_scatter_rmw' op axis 2 is out of range for the 2 dimensions of the buffer}}
  %0 = ttg.local_atomic_scatter_rmw fadd, %md[%x], %t {axis = 2 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf32, #blocked>
  tt.return
}
}

// -----

// ttg.local_atomic_scatter_rmw
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t2: tensor<32x32xf32, #blocked1>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_atomic_scatter_rmw' op values and indices must have the same encoding}}
  %0 = ttg.local_atomic_scatter_rmw fadd, %md[%x], %t2 {axis = 0 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked1>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf32, #blocked1>
  tt.return
}
}

// -----

// ttg.local_atomic_scatter_rmw
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>, %t: tensor<32x32xf32, #blocked>, %x: tensor<32x32xi32, #blocked>) {
  // expected-error @below {{'ttg.local_atomic_scatter_rmw' op failed to verify that result type matches values type}}
  %0 = ttg.local_atomic_scatter_rmw fadd, %md[%x], %t {axis = 0 : i32} : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>, tensor<32x32xf32, #blocked>, tensor<32x32xi32, #blocked>) -> tensor<32x32xf16, #blocked>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op result must have an encoding equivalent to #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>, but has #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}}
  %0 = ttg.fp4_to_fp %i8 {axis = 1 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xf16, #blocked>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op dimension 0 of the result must have 64 elements, but has 32}}
  %0 = ttg.fp4_to_fp %i8 {axis = 0 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xf16, #blocked>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op axis 2 is out of range for 2 dimensions}}
  %0 = ttg.fp4_to_fp %i8 {axis = 2 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xf16, #blocked>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op source and result must both have an encoding, or neither}}
  %0 = ttg.fp4_to_fp %i8 {axis = 1 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xf16>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op result #0 must be ranked tensor of floating-point values, but got 'tensor<32x64xi16, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %0 = ttg.fp4_to_fp %i8 {axis = 1 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xi16, #blocked>
  tt.return
}
}

// -----

// ttg.fp4_to_fp
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i8: tensor<32x32xi8, #blocked>) {
  // expected-error @below {{'ttg.fp4_to_fp' op result must have elements of f16 or bf16, but has 'f32'}}
  %0 = ttg.fp4_to_fp %i8 {axis = 1 : i32} : tensor<32x32xi8, #blocked> -> tensor<32x64xf32, #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>
  tt.return
}
}

// -----

// ttg.barrier
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{custom op 'ttg.barrier' unknown address space 'foo': expected none, local, global_read, global_write, tensor_read, tensor_write or all}}
  ttg.barrier foo
  tt.return
}
}

// -----

// ttg.barrier
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{custom op 'ttg.barrier' 'none' cannot be combined with other address spaces}}
  ttg.barrier none|local
  tt.return
}
}

// -----

// ttg.barrier
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.barrier' op attribute 'addrSpace' failed to satisfy constraint: a set of address spaces: a 32-bit integer from 0 to 31}}
  "ttg.barrier"() <{addrSpace = 64 : i32}> : () -> ()
  tt.return
}
}

// -----

// ttg.warp_yield
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.warp_yield' op must be the last operation in the parent block}}
  ttg.warp_yield
  tt.return
}
}

// -----

// ttg.warp_return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.warp_return' op must be the last operation in the parent block}}
  ttg.warp_return
  tt.return
}
}

// -----

// ttg.mask.return
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.mask.return' op expects parent op 'ttg.mask'}}
  ttg.mask.return %i : i32
  tt.return
}
}

// -----

// ttg.mask
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.mask' op operand #0 must be 1-bit signless integer, but got 'i32'}}
  %0 = "ttg.mask"(%i) ({
   ttg.mask.return %i : i32 }) : (i32) -> i32
  tt.return
}
}

// -----

// ttg.inline_asm
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%md: !ttg.memdesc<32x32xf32, #shared, #smem, mutable>) {
  // expected-error @below {{'ttg.inline_asm' op assembly that is given memory descriptors cannot be pure}}
  %0 = ttg.inline_asm "x" {constraints = "=r,r", pure = true} %md : (!ttg.memdesc<32x32xf32, #shared, #smem, mutable>) -> i32
  tt.return
}
}

// -----

// ttg.inline_asm
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%n: tensor<32x32xf32>) {
  // expected-error @below {{'ttg.inline_asm' op tensors must have an encoding, but 'tensor<32x32xf32>' has none}}
  %0 = ttg.inline_asm "x" {constraints = "=r,r", pure = true} %n : (tensor<32x32xf32>) -> i32
  tt.return
}
}

// -----

// ttg.global_scratch_alloc
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.global_scratch_alloc' op requires attribute 'alignment'}}
  %0 = ttg.global_scratch_alloc {nbytes = 128 : i32} : !tt.ptr<i8>
  tt.return
}
}

// -----

// ttg.async_wait
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  // expected-error @below {{'ttg.async_wait' op requires attribute 'num'}}
  %0 = ttg.async_wait
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.warp_specialize' op partition #0 must have a power of two of warps, but has 3}}
  ttg.warp_specialize(%i)
   default {
   ttg.warp_yield
   }
   partition0(%a: i32) num_warps(3) {
    ttg.warp_return
   } : (i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.warp_specialize.partitions' op partition #0 has 0 arguments, but 1 values are captured}}
  ttg.warp_specialize(%i)
   default {
   ttg.warp_yield
   }
   partition0() num_warps(4) {
    ttg.warp_return
   } : (i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.warp_specialize.partitions' op argument #0 of partition #0 has the type 'i1', but what is captured has 'i32'}}
  ttg.warp_specialize(%i)
   default {
   ttg.warp_yield
   }
   partition0(%a: i1) num_warps(4) {
    ttg.warp_return
   } : (i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{'ttg.warp_specialize' op `warpGroupStartIds` has 2 entries for 1 partitions}}
  ttg.warp_specialize(%i) attributes {warpGroupStartIds = array<i32: 4, 4>}
   default {
   ttg.warp_yield
   }
   partition0(%a: i32) num_warps(4) {
    ttg.warp_return
   } : (i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
#blocked = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#blocked1 = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  ttg.warp_specialize()
   default {
   ttg.warp_yield
   }
   partition0() num_warps(8) {
   %q = arith.constant dense<0.0> : tensor<32x32xf32, #blocked>
  // expected-error @below {{'ttg.convert_layout' op operand #0: #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}> is for 4 warps, but here there are 8 (ttg.num-warps)}}
  %r = ttg.convert_layout %q : tensor<32x32xf32, #blocked> -> tensor<32x32xf32, #blocked1>
   ttg.warp_return
   } : () -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  // expected-error @below {{custom op 'ttg.warp_specialize' 1 captures cannot have the 2 types given for them}}
  ttg.warp_specialize(%i)
   default {
   ttg.warp_yield
   }
   partition0(%a: i32) num_warps(4) {
    ttg.warp_return
   } : (i32, i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32, %b: i1) {
  %0 = ttg.warp_specialize(%i)
   default {
   // expected-error @below {{'ttg.warp_yield' op operand #0 has the type 'i1', but the result has 'i32'}}
   ttg.warp_yield %b : i1
   }
   partition0(%a: i32) num_warps(4) {
   ttg.warp_return
   } : (i32) -> i32
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  %0 = ttg.warp_specialize(%i)
   default {
   // expected-error @below {{'ttg.warp_yield' op has 0 operands, but there are 1 results}}
   ttg.warp_yield
   }
   partition0(%a: i32) num_warps(4) {
   ttg.warp_return
   } : (i32) -> i32
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f(%i: i32) {
  ttg.warp_specialize(%i)
   default {
   // expected-error @below {{'ttg.warp_specialize' op cannot be inside of another `ttg.warp_specialize`}}
   ttg.warp_specialize()
   default {
   ttg.warp_yield
  } : () -> ()
   ttg.warp_yield
   }
   partition0(%a: i32) num_warps(4) {
   ttg.warp_return
   } : (i32) -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func @f() {
  ttg.warp_specialize()
   default {
   ttg.warp_yield
   // expected-error @below {{expected ':'}}
   }
   partition1() num_warps(4) {
   ttg.warp_return
   } : () -> ()
  tt.return
}
}

// -----

// module attribute "ttg.num-warps"
// expected-error @below {{'builtin.module' op attribute 'ttg.num-warps' must be a power of two, got 3}}
module attributes {"ttg.num-warps" = 3 : i32} {}

// -----

// function attribute "ttg.num-warps"
// expected-error @below {{'tt.func' op attribute 'ttg.num-warps' must be a power of two, got 3}}
module { tt.func @f() attributes {"ttg.num-warps" = 3 : i32} { tt.return } }

// -----

// attribute of an operation "ttg.num-warps"
// expected-error @below {{'arith.constant' op attribute 'ttg.num-warps' is only for modules and functions}}
module { tt.func @f() { %0 = arith.constant {"ttg.num-warps" = 3 : i32} 0 : i32
 tt.return } }

// -----

// module attribute "ttg.num-warps"
// expected-error @below {{'builtin.module' op attribute 'ttg.num-warps' must be a power of two, got -4}}
module attributes {"ttg.num-warps" = -4 : i32} {}

// -----

// function attribute "ttg.num-warps"
// expected-error @below {{'tt.func' op attribute 'ttg.num-warps' must be a power of two, got -4}}
module { tt.func @f() attributes {"ttg.num-warps" = -4 : i32} { tt.return } }

// -----

// module attribute "ttg.num-warps"
// expected-error @below {{'builtin.module' op attribute 'ttg.num-warps' must be a 32-bit integer, got 4 : i64}}
module attributes {"ttg.num-warps" = 4 : i64} {}

// -----

// function attribute "ttg.num-warps"
// expected-error @below {{'tt.func' op attribute 'ttg.num-warps' must be a 32-bit integer, got 4 : i64}}
module { tt.func @f() attributes {"ttg.num-warps" = 4 : i64} { tt.return } }

// -----

// module attribute "ttg.num-warps"
// expected-error @below {{'builtin.module' op attribute 'ttg.num-warps' must be a 32-bit integer, got "x"}}
module attributes {"ttg.num-warps" = "x"} {}

// -----

// function attribute "ttg.num-warps"
// expected-error @below {{'tt.func' op attribute 'ttg.num-warps' must be a 32-bit integer, got "x"}}
module { tt.func @f() attributes {"ttg.num-warps" = "x"} { tt.return } }

// -----

// function attribute "ttg.num-ctas"
// expected-error @below {{'tt.func' op attribute 'ttg.num-ctas' is only for modules}}
module { tt.func @f() attributes {"ttg.num-ctas" = 3 : i32} { tt.return } }

// -----

// attribute of an operation "ttg.num-ctas"
// expected-error @below {{'arith.constant' op attribute 'ttg.num-ctas' is only for modules}}
module { tt.func @f() { %0 = arith.constant {"ttg.num-ctas" = 3 : i32} 0 : i32
 tt.return } }

// -----

// module attribute ttg.target
// expected-error @below {{'builtin.module' op attribute 'ttg.target' must be a string, got 3 : i32}}
module attributes {ttg.target = 3 : i32} {}

// -----

// module attribute "ttg.maxnreg"
// expected-error @below {{'builtin.module' op attribute 'ttg.maxnreg' must be an integer from 1 to 2147483647, got "x"}}
module attributes {"ttg.maxnreg" = "x"} {}

// -----

// module attribute "ttg.maxnreg"
// expected-error @below {{'builtin.module' op attribute 'ttg.maxnreg' must be an integer from 1 to 2147483647, got 0 : i32}}
module attributes {"ttg.maxnreg" = 0 : i32} {}

// -----

// module attribute "ttg.total-num-warps"
// expected-error @below {{'builtin.module' op attribute 'ttg.total-num-warps' must be an integer from 1 to 2147483647, got -5 : i32}}
module attributes {"ttg.total-num-warps" = -5 : i32} {}

// -----

// module attribute "ttg.waves_per_eu"
// expected-error @below {{'builtin.module' op attribute 'ttg.waves_per_eu' must be an integer from 0 to 2147483647, got -1 : i32}}
module attributes {"ttg.waves_per_eu" = -1 : i32} {}

// -----

// module attribute "ttg.shared"
// expected-error @below {{'builtin.module' op attribute 'ttg.shared' must be an integer from 0 to 2147483647, got -1 : i32}}
module attributes {"ttg.shared" = -1 : i32} {}

// -----

// module attribute "ttg.shared"
// expected-error @below {{'builtin.module' op attribute 'ttg.shared' must be an integer from 0 to 2147483647, got 4294967296 : i64}}
module attributes {"ttg.shared" = 4294967296 : i64} {}

// -----

// module attribute "ttg.global_scratch_memory_size"
// expected-error @below {{'builtin.module' op attribute 'ttg.global_scratch_memory_size' must be an integer from 0 to 2147483647, got "x"}}
module attributes {"ttg.global_scratch_memory_size" = "x"} {}

// -----

// module attribute "ttg.tensor_memory_size"
// expected-error @below {{'builtin.module' op attribute 'ttg.tensor_memory_size' must be an integer from 0 to 2147483647, got unit}}
module attributes {"ttg.tensor_memory_size" = unit} {}

// -----

// module attribute "ttg.profile_scratch_memory_alignment"
// expected-error @below {{'builtin.module' op attribute 'ttg.profile_scratch_memory_alignment' must be an integer from 0 to 2147483647, got -8 : i32}}
module attributes {"ttg.profile_scratch_memory_alignment" = -8 : i32} {}
