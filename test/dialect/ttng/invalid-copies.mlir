// What the verifiers of copies through descriptors refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !ttng.tensordesc_im2col<64x64xf16>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op an im2col descriptor needs 3 to 5 coordinates, got 2}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p  : !ttng.tensordesc_im2col<64x64xf16>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op multicast needs a layout that gives several CTAs copies, got #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p {multicast} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op copies through descriptors cannot be volatile}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p {isVolatile = true} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !ttng.tensordesc_im2col<64x64xf16, #n16>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op an im2col descriptor with 3 coordinates needs 1 offsets, got 0}}
  ttng.async_tma_copy_global_to_local %d[%i, %i, %i] %m, %b, %p  : !ttng.tensordesc_im2col<64x64xf16, #n16>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %j: i16, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op only im2col descriptors take offsets, got 1}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] offsets = [%j] %m, %b, %p  : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: i64, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op operand #0 must be a tensor descriptor, tiled or im2col, but got 'i64'}}
  ttng.async_tma_copy_global_to_local %d[%i, %i] %m, %b, %p : i64, !ttg.memdesc<1xi64, #b, #smem, mutable> -> !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_copy_global_to_local' op operand #3 must be variadic of 16-bit signless integer, but got 'i32'}}
  "ttng.async_tma_copy_global_to_local"(%d, %i, %i, %i, %b, %m, %p) <{operandSegmentSizes = array<i32: 1, 2, 1, 1, 1, 1>}> : (!tt.tensordesc<64x64xf16, #n16>, i32, i32, i32, !ttg.memdesc<1xi64, #b, #smem, mutable>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>, i1) -> ()
  tt.return
}
}

// -----

// ttng.async_tma_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_copy_local_to_global' op copies through descriptors have no cache modifiers, got #ttng.cache_policy<cache_modifier = cg>}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %m {cachePolicy = #ttng.cache_policy<cache_modifier = cg>} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_copy_local_to_global' op copies through descriptors do not go through L1: l1 has no meaning in #ttng.cache_policy<l1 = evict_first>}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %m {cachePolicy = #ttng.cache_policy<l1 = evict_first>} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_copy_local_to_global' op copies through descriptors cannot prefetch: l2_prefetch_size in #ttng.cache_policy<l2_prefetch_size = 128 : i32>}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %m {cachePolicy = #ttng.cache_policy<l2_prefetch_size = 128 : i32>} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_copy_local_to_global' op cachePolicy must be a #tt.cache_policy or #ttng.cache_policy, got 3 : i32}}
  ttng.async_tma_copy_local_to_global %d[%i, %i] %m {cachePolicy = 3 : i32} : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_gather
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8p = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x128xi8, #n8p>, %x: tensor<32xi32, #xo>, %i: i32, %b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %m: !ttg.memdesc<32x128xi8, #n8p, #smem, mutable>, %p: i1) {
  // expected-error @below {{'ttng.async_tma_gather' op rows of padded fp4 cannot be gathered}}
  ttng.async_tma_gather %d[%x, %i] %m, %b, %p  : !tt.tensordesc<1x128xi8, #n8p>, tensor<32xi32, #xo>, i32, !ttg.memdesc<1xi64, #b, #smem, mutable>, !ttg.memdesc<32x128xi8, #n8p, #smem, mutable>, i1
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the layout of the descriptor must be that of the buffer, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>, got none}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x64xf16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x32xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the block [64, 32] and the buffer [64, 64] must have the same number of elements}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x32xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xui16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the block has elements of 'i16', but the buffer has 'f16'}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x64xui16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<1x64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the buffer has 3 dimensions, but its layout #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}> has 2}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<1x64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #sw>, %i: i32, %m: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the buffer must have an #ttg.nvmma_shared layout, got #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x64xf16, #sw>, !ttg.memdesc<64x64xf16, #sw, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16>, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op expected 2 coordinates, one for each dimension of the block, got 0}}
  ttng.async_tma_reduce add, %d[] %m : !tt.tensordesc<64x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #n16t>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16t, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op the layout must not be transposed, got #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x64xf16, #n16t>, !ttg.memdesc<64x64xf16, #n16t, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x1x1x1x1x64xf16, #n16>, %i: i32, %m: !ttg.memdesc<64x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op expected 1 to 5 coordinates, got 6}}
  ttng.async_tma_reduce add, %d[%i, %i, %i, %i, %i, %i] %m : !tt.tensordesc<1x1x1x1x1x64xf16, #n16>, !ttg.memdesc<64x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8p = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x128xi8, #n8p>, %i: i32, %m: !ttg.memdesc<64x128xi8, #n8p, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op padded fp4 can be loaded but not stored}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x128xi8, #n8p>, !ttg.memdesc<64x128xi8, #n8p, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_reduce
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x128xsi8, #n8>, %i: i32, %m: !ttg.memdesc<64x128xi8, #n8, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_reduce' op there is no add of elements of 'si8'}}
  ttng.async_tma_reduce add, %d[%i, %i] %m : !tt.tensordesc<64x128xsi8, #n8>, !ttg.memdesc<64x128xi8, #n8, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<2x64xf16, #n16>, %x: tensor<32xi32, #xo>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op the block of the descriptor must be one row, got [2, 64]}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<2x64xf16, #n16>, tensor<32xi32, #xo>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32xi32, #xo>, %i: i32, %m: !ttg.memdesc<32x128xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op the buffer must have the 64 columns of the block, got 128}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<32xi32, #xo>, i32, !ttg.memdesc<32x128xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#v = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32xi32, #v>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op all threads of a warp must hold the same x offsets}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<32xi32, #v>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#v1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32xi32, #v1>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op each thread must hold 4 consecutive x offsets: an instruction takes as many}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<32xi32, #v1>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32xi64, #xo>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op operand #1 must be ranked tensor of 32-bit signless integer values, but got 'tensor<32xi64, #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>>'}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<32xi64, #xo>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32x1xi32, #bl>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op x offsets must be a vector, got 'tensor<32x1xi32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<32x1xi32, #bl>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<4xi32, #xo>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op the buffer must have one row for each of 4 x offsets, got 32}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<4xi32, #xo>, i32, !ttg.memdesc<32x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<4xi32, #xo>, %i: i32, %m: !ttg.memdesc<4x64xf16, #n16, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op the buffer must have at least 8 rows, got 4}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16>, tensor<4xi32, #xo>, i32, !ttg.memdesc<4x64xf16, #n16, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n8u = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x16xi8, #n8u>, %x: tensor<32xi32, #xo>, %i: i32, %m: !ttg.memdesc<32x16xi8, #n8u, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op rows of 'i8' must have at least 32 columns, got 16}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x16xi8, #n8u>, tensor<32xi32, #xo>, i32, !ttg.memdesc<32x16xi8, #n8u, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#n64 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 64}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x16xf64, #n64>, %x: tensor<32xi32, #xo>, %i: i32, %m: !ttg.memdesc<32x16xf64, #n64, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op rows can be moved of elements of up to 32 bits, got 'f64'}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x16xf64, #n64>, tensor<32xi32, #xo>, i32, !ttg.memdesc<32x16xf64, #n64, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo_2c = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = [[0, 0]]}>}>
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#n16_2 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16_2>, %x: tensor<32xi32, #xo_2c>, %i: i32, %m: !ttg.memdesc<32x64xf16, #n16_2, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op x offsets must be divided among CTAs as the rows, [[1]], got [[0]]}}
  ttng.async_tma_scatter %d[%x, %i] %m  : !tt.tensordesc<1x64xf16, #n16_2>, tensor<32xi32, #xo_2c>, i32, !ttg.memdesc<32x64xf16, #n16_2, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_tma_scatter
#xo = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#n16r3 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf16, #n16>, %x: tensor<32xi32, #xo>, %i: i32, %m: !ttg.memdesc<1x32x64xf16, #n16r3, #smem, mutable>) {
  // expected-error @below {{'ttng.async_tma_scatter' op the buffer must be a matrix, got '!ttg.memdesc<1x32x64xf16, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>, #ttg.shared_memory, mutable>'}}
  ttng.async_tma_scatter %d[%x, %i] %m : !tt.tensordesc<1x64xf16, #n16>, tensor<32xi32, #xo>, i32, !ttg.memdesc<1x32x64xf16, #n16r3, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>, %i: i32, %l: i64) {
  // expected-error @below {{'ttng.tensormap_create' op a box of 1 dimensions needs 0 global strides, got 1}}
  ttng.tensormap_create %p, %p, [%i], [%i], [%l], [%i] {elem_type = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i64, i32) -> ()
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>) {
  // expected-error @below {{'ttng.tensormap_create' op a box must have at least one dimension}}
  ttng.tensormap_create %p, %p, [], [], [], [] {elem_type = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>) -> ()
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>, %i: i32) {
  // expected-error @below {{'ttng.tensormap_create' op attribute 'elem_type' failed to satisfy constraint: 32-bit signless integer attribute whose value is 0 to 15}}
  ttng.tensormap_create %p, %p, [%i], [%i], [], [%i] {elem_type = 16 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>, %i: i32) {
  // expected-error @below {{'ttng.tensormap_create' op attribute 'interleave_layout' failed to satisfy constraint: 32-bit signless integer attribute whose value is 0 to 2}}
  ttng.tensormap_create %p, %p, [%i], [%i], [], [%i] {elem_type = 1 : i32, interleave_layout = 3 : i32, swizzle_mode = 2 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>, %i: i32) {
  // expected-error @below {{'ttng.tensormap_create' op attribute 'swizzle_mode' failed to satisfy constraint: 32-bit signless integer attribute whose value is 0 to 3}}
  ttng.tensormap_create %p, %p, [%i], [%i], [], [%i] {elem_type = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 4 : i32, fill_mode = 0 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()
  tt.return
}
}

// -----

// ttng.tensormap_create
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<i8>, %i: i32) {
  // expected-error @below {{'ttng.tensormap_create' op attribute 'fill_mode' failed to satisfy constraint: 32-bit signless integer attribute whose value is 0 or 1}}
  ttng.tensormap_create %p, %p, [%i], [%i], [], [%i] {elem_type = 1 : i32, interleave_layout = 0 : i32, swizzle_mode = 2 : i32, fill_mode = 2 : i32} : (!tt.ptr<i8>, !tt.ptr<i8>, i32, i32, i32) -> ()
  tt.return
}
}
