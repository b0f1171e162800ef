// What the verifiers of the tensor data mover refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
#padb = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16, #padb>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op copies go by the layout of the descriptor, #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64]}>, which does not describe the buffer, #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<64x64xf16, #padb> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<65536x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op dimension 0 of the block has 65536 elements, more than 65535}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<65536x64xf16> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw8 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #sw8, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op copies cannot swizzle, but the buffer does: #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #sw8, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#padt = #ttg.padded_shared<[2:+1] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #padt, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op padding must be at least 2 dwords apart, but comes every 2 elements of 16 bits}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #padt, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pads = #ttg.padded_shared<[64:+1] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pads, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op padding must be at least 1 dword, but is 1 elements of 16 bits}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #pads, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#rot = #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #rot, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op the buffer must be padded, swizzled or partitioned, got #ttg.amd_rotating_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l  : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #rot, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op a hint must name a warp}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 0 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op hint 0x6 names 2 warps whose numbers differ in 2 bits instead of 1}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 6 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op hint 0x7 names 3 warps, which is no power of two}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 7 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op hint 0x10 names warps beyond the 4 that there are}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 16 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #pad, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#part = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #sw}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #part, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op hint 0x1 names 1 warps for a buffer of 4 pieces}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 1 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #part, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#sw8 = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
#parts = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #sw8}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #parts, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op partitions must be padded, or swizzled with one phase, got #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>}>}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #parts, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_global_to_local
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 32 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_global_to_local' op hints are for a power of two of warps, less than 32, got 32}}
  %t = amdg.async_tdm_copy_global_to_local %d into %l {warp_used_hint = 1 : i32} : !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #sw, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad2 = #ttg.padded_shared<[64:+4, 128:+8] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #pad2, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_local_to_global' op stores can skip padding of one kind, got #ttg.padded_shared<[64:+4, 128:+8] {order = [1, 0], shape = [64, 64]}>}}
  %t = amdg.async_tdm_copy_local_to_global %d from %l  : !ttg.memdesc<64x64xf16, #pad2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#padt = #ttg.padded_shared<[2:+1] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #padt, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_local_to_global' op stores can skip padding after rows, of 64 elements, but it comes every 2}}
  %t = amdg.async_tdm_copy_local_to_global %d from %l  : !ttg.memdesc<64x64xf16, #padt, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#part = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #sw}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #part, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_copy_local_to_global' op the buffer must be padded or swizzled, got #ttg.partitioned_shared<{numPartitions = 2, numGroups = 2, partitionDim = 0, partitionLayout = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>}}
  %t = amdg.async_tdm_copy_local_to_global %d from %l  : !ttg.memdesc<64x64xf16, #part, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_fused_copy_global_to_local
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'amdg.async_tdm_fused_copy_global_to_local' op 2 to 4 copies can be fused, got 0}}
  %t = amdg.async_tdm_fused_copy_global_to_local  into  {warp_used_hints = array<i32>} :  -> 
  tt.return
}
}

// -----

// amdg.async_tdm_fused_copy_global_to_local
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_fused_copy_global_to_local' op each copy needs a descriptor, a buffer and a hint, got 2, 2 and 3}}
  %t = amdg.async_tdm_fused_copy_global_to_local %d, %d into %l, %l {warp_used_hints = array<i32: 1, 2, 4>} : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #sw, #smem, mutable>, !ttg.memdesc<64x64xf16, #sw, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_fused_copy_global_to_local
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %l: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_fused_copy_global_to_local' op hint 0x1 names warps that another copy uses (0x1)}}
  %t = amdg.async_tdm_fused_copy_global_to_local %d, %d into %l, %l {warp_used_hints = array<i32: 1, 1>} : !tt.tensordesc<64x64xf16>, !tt.tensordesc<64x64xf16> -> !ttg.memdesc<64x64xf16, #sw, #smem, mutable>, !ttg.memdesc<64x64xf16, #sw, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_fused_copy_global_to_local
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %e: !tt.tensordesc<1x64x64xf16>, %l: !ttg.memdesc<64x64xf16, #sw, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_fused_copy_global_to_local' op all descriptors must have as many dimensions}}
  %t = amdg.async_tdm_fused_copy_global_to_local %d, %e into %l, %l {warp_used_hints = array<i32: 1, 2>} : !tt.tensordesc<64x64xf16>, !tt.tensordesc<1x64x64xf16> -> !ttg.memdesc<64x64xf16, #sw, #smem, mutable>, !ttg.memdesc<64x64xf16, #sw, #smem, mutable>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
#gx = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64xf16>, %i: tensor<64xi32, #gx>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op rows are those of a matrix, but the block has 1 dimensions}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32, #gx>, !ttg.memdesc<64x64xf16, #pad, #smem, mutable> -> !tt.tensordesc<64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#v = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<64xi32, #v>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op all lanes of a warp must hold the same indices: a warp gathers as one}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32, #v>, !ttg.memdesc<64x64xf16, #pad, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<8x8xi32, #bl>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op indices must be a vector, got 'tensor<8x8xi32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<8x8xi32, #bl>, !ttg.memdesc<64x64xf16, #pad, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<48xi32>, %l: !ttg.memdesc<64x64xf16, #pad, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op there must be a power of two of indices, got 48}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<48xi32>, !ttg.memdesc<64x64xf16, #pad, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pado = #ttg.padded_shared<[64:+4] {order = [0, 1], shape = [64, 64]}>
#gx = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<64xi32, #gx>, %l: !ttg.memdesc<64x64xf16, #pado, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op rows must be contiguous, got #ttg.padded_shared<[64:+4] {order = [0, 1], shape = [64, 64]}>}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32, #gx>, !ttg.memdesc<64x64xf16, #pado, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#pad2 = #ttg.padded_shared<[64:+4, 128:+8] {order = [1, 0], shape = [64, 64]}>
#gx = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0]}>}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<64xi32, #gx>, %l: !ttg.memdesc<64x64xf16, #pad2, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op rows can have padding of one kind, got #ttg.padded_shared<[64:+4, 128:+8] {order = [1, 0], shape = [64, 64]}>}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32, #gx>, !ttg.memdesc<64x64xf16, #pad2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#xo_2r = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [1, 0], CGALayout = [[0, 1]]}>}>
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#padc_2 = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 64], CGALayout = [[0, 1]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<64xi32, #xo_2r>, %l: !ttg.memdesc<64x64xf16, #padc_2, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op indices must be divided among CTAs as the rows, [0], got [32]}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32, #xo_2r>, !ttg.memdesc<64x64xf16, #padc_2, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.async_tdm_gather
#smem = #ttg.shared_memory
#pad128 = #ttg.padded_shared<[128:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: tensor<64xi32>, %l: !ttg.memdesc<64x64xf16, #pad128, #smem, mutable>) {
  // expected-error @below {{'amdg.async_tdm_gather' op padding must come after a divisor of 64 elements, those of a row, but comes every 128}}
  %t = amdg.async_tdm_gather %d[%i] to %l : tensor<64xi32>, !ttg.memdesc<64x64xf16, #pad128, #smem, mutable> -> !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.tdm_prefetch
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<256xf32>, %i: i32, %p: i1) {
  // expected-error @below {{'amdg.tdm_prefetch' op there is no result without `returnOffsets`, got 'tensor<64x1xi64>'}}
  %r = amdg.tdm_prefetch %d[%i], %p, speculative = true  : !tt.tensordesc<256xf32> -> tensor<64x1xi64>
  tt.return
}
}

// -----

// amdg.tdm_prefetch
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<256xf32>, %i: i32, %p: i1) {
  // expected-error @below {{'amdg.tdm_prefetch' op `returnOffsets` needs a result of 'tensor<4xi64, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
  amdg.tdm_prefetch %d[%i], %p, speculative = true returnOffsets : !tt.tensordesc<256xf32>
  tt.return
}
}

// -----

// amdg.tdm_prefetch
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<256xf32>, %i: i32, %p: i1) {
  // expected-error @below {{'amdg.tdm_prefetch' op the result must be a 'tensor<4xi64, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', got 'tensor<64x1xi64>'}}
  %r = amdg.tdm_prefetch %d[%i], %p, speculative = true returnOffsets : !tt.tensordesc<256xf32> -> tensor<64x1xi64>
  tt.return
}
}

// -----

// amdg.tdm_prefetch
module {
tt.func @f(%d: !tt.tensordesc<64x64xf16>, %i: i32, %p: i1) {
  // expected-error @below {{'amdg.tdm_prefetch' op the module must say how many warps and threads there are}}
  %r = amdg.tdm_prefetch %d[%i, %i], %p, speculative = true returnOffsets : !tt.tensordesc<64x64xf16> -> tensor<64x1xi64>
  tt.return
}
}

// -----

// amdg.update_tensor_descriptor
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>) {
  // expected-error @below {{'amdg.update_tensor_descriptor' op nothing is updated: there are no offsets, no bounds and no predicate}}
  %r = amdg.update_tensor_descriptor %d   : !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.update_tensor_descriptor
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: i32) {
  // expected-error @below {{'amdg.update_tensor_descriptor' op a descriptor of 2 dimensions has as many bounds, got 1}}
  %r = amdg.update_tensor_descriptor %d set_bounds = [%i]  : !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.update_tensor_descriptor
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: i32) {
  // expected-error @below {{'amdg.update_tensor_descriptor' op `clamp_bounds` shrinks bounds by the offsets that are added, but there are none}}
  %r = amdg.update_tensor_descriptor %d pred = %i {clamp_bounds} : !tt.tensordesc<64x64xf16>
  tt.return
}
}

// -----

// amdg.update_tensor_descriptor
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<64x64xf16>, %i: i32) {
  // expected-error @below {{'amdg.update_tensor_descriptor' op bounds can be clamped or set, not both}}
  %r = amdg.update_tensor_descriptor %d add_offsets = [%i, %i] set_bounds = [%i, %i] pred = %i {clamp_bounds} : !tt.tensordesc<64x64xf16>
  tt.return
}
}
