// What is refused of the generic form and of odd custom forms.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// memdesc
// expected-error @below {{elements must be numbers, got 'index'}}
module attributes {x.y = !ttg.memdesc<128x64xindex, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory>} {}

// -----

// memdesc
// expected-error @below {{scales in tensor memory must have 2 dimensions, got [2, 128, 4]}}
module attributes {x.y = !ttg.memdesc<2x128x4xi8, #ttng.tensor_memory_scales_encoding<>, #ttng.tensor_memory>} {}

// -----

// ttg.async_copy_global_to_local
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x64x!tt.ptr<f32>, #bl>, %m: !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, %k: tensor<32x32xi1, #bl>) {
  // expected-error @below {{'ttg.async_copy_global_to_local' op failed to verify that infer mask type from src type}}
  %0 = "ttg.async_copy_global_to_local"(%p, %m, %k) <{operandSegmentSizes = array<i32: 1, 1, 1, 0>}> : (tensor<32x64x!tt.ptr<f32>, #bl>, !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, tensor<32x32xi1, #bl>) -> !ttg.async.token
  tt.return
}
}

// -----

// ttg.async_copy_global_to_local
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x64x!tt.ptr<f32>, #bl>, %m: !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, %k: tensor<32x32xf32, #bl>) {
  // expected-error @below {{'ttg.async_copy_global_to_local' op failed to verify that infer other type from src type}}
  %0 = "ttg.async_copy_global_to_local"(%p, %m, %k) <{operandSegmentSizes = array<i32: 1, 1, 0, 1>}> : (tensor<32x64x!tt.ptr<f32>, #bl>, !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, tensor<32x32xf32, #bl>) -> !ttg.async.token
  tt.return
}
}

// -----

// ttg.inline_asm
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttg.inline_asm' op attribute 'asm_string' failed to satisfy constraint: string attribute}}
  "ttg.inline_asm"() <{asm_string = 1 : i32, constraints = "", pure = true}> : () -> ()
  tt.return
}
}

// -----

// ttg.inline_asm
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tuple<i32>) {
  // expected-error @below {{'ttg.inline_asm' op operand #0 must be variadic of floating-point, integer, ptr or a ranked tensor of them, or memory descriptor, but got 'tuple<i32>'}}
  %0 = ttg.inline_asm "" {constraints = "=r,r", pure = true} %x : (tuple<i32>) -> i32
  tt.return
}
}

// -----

// ttg.local_atomic_scatter_rmw
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, %v: tensor<32x64xf32, #bl>, %i: tensor<32x64xi32, #bl>, %k: tensor<32x32xi1, #bl>) {
  // expected-error @below {{'ttg.local_atomic_scatter_rmw' op failed to verify that mask type matches values type}}
  %0 = "ttg.local_atomic_scatter_rmw"(%m, %v, %i, %k) <{atomic_rmw_op = 5 : i32, axis = 0 : i32}> : (!ttg.memdesc<32x64xf32, #sw, #smem, mutable>, tensor<32x64xf32, #bl>, tensor<32x64xi32, #bl>, tensor<32x32xi1, #bl>) -> tensor<32x64xf32, #bl>
  tt.return
}
}

// -----

// ttg.local_gather
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, %i: tensor<32x128xi32, #bl>) {
  // expected-error @below {{'ttg.local_gather' op dimension 1 of the indices has 128 elements, but the buffer has 64}}
  %0 = ttg.local_gather %m[%i] {axis = 0 : i32} : !ttg.memdesc<32x64xf32, #sw, #smem, mutable>, tensor<32x128xi32, #bl> -> tensor<32x128xf32, #bl>
  tt.return
}
}

// -----

// ttg.memdesc_reinterpret
#smem = #ttg.shared_memory
#padx = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<32x64xf32, #padx, #smem, mutable, 64x64>) {
  // expected-error @below {{'ttg.memdesc_reinterpret' op a part of a padded buffer cannot be reinterpreted}}
  %0 = ttg.memdesc_reinterpret %m : !ttg.memdesc<32x64xf32, #padx, #smem, mutable, 64x64> -> !ttg.memdesc<64x64xf16, #padx, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_reshape
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<16x64xf32, #sw, #smem, mutable, 32x64>) {
  // expected-error @below {{'ttg.memdesc_reshape' op source must be a whole allocation, but is [16, 64] of [32, 64]}}
  %0 = ttg.memdesc_reshape %m : !ttg.memdesc<16x64xf32, #sw, #smem, mutable, 32x64> -> !ttg.memdesc<1024xf32, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<32x64xf32, #sw, #smem, mutable>) {
  // expected-error @below {{custom op 'ttg.memdesc_subslice' offsets must be integers of 32 bits}}
  %0 = ttg.memdesc_subslice %m[0, 4294967296] : !ttg.memdesc<32x64xf32, #sw, #smem, mutable> -> !ttg.memdesc<32x64xf32, #sw, #smem, mutable>
  tt.return
}
}

// -----

// ttg.memdesc_subslice
#smem = #ttg.shared_memory
#padx = #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<4x64x64xf32, #padx, #smem, mutable>) {
  // expected-error @below {{'ttg.memdesc_subslice' op a buffer of buffers with the layout #ttg.padded_shared<[64:+4] {order = [1, 0], shape = [64, 64]}> cannot be cut inside}}
  %0 = ttg.memdesc_subslice %m[0, 16, 0] : !ttg.memdesc<4x64x64xf32, #padx, #smem, mutable> -> !ttg.memdesc<4x16x64xf32, #padx, #smem, mutable, 4x64x64>
  tt.return
}
}

// -----

// ttg.predicate_stage
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: f32) {
  // expected-error @below {{'ttg.predicate_stage' op operand #0 must be signless integer or index, but got 'f32'}}
  %0 = ttg.predicate_stage %x, %x, %x maxStage 2 stage 0 : f32 -> i1
  tt.return
}
}

// -----

// ttg.predicate_stage
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: i32, %y: i64) {
  // expected-error @below {{'ttg.predicate_stage' op failed to verify that all of {iv, ub, step} have same type}}
  %0 = "ttg.predicate_stage"(%x, %y, %x) <{maxStage = 2 : i32, stage = 0 : i32}> : (i32, i64, i32) -> i1
  tt.return
}
}

// -----

// ttg.slice
// expected-error @below {{#ttg.slice: `shared_memory` is no encoding}}
module attributes {x.y = #ttg.slice<{dim = 0, parent = #ttg.shared_memory}>} {}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  ttg.warp_specialize()
  default { ttg.warp_yield }
  // expected-error @below {{custom op 'ttg.warp_specialize' 4294967296 warps are more than 32 bits hold}}
  partition0() num_warps(4294967296) { ttg.warp_return } : () -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{custom op 'ttg.warp_specialize' expected the types of captures and results, as of a function}}
  ttg.warp_specialize()
  default { ttg.warp_yield }
  partition0() num_warps(4) { ttg.warp_return } : i32
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttg.warp_specialize' op expected `ttg.warp_specialize.partitions` in its second region}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4>}> ({ ttg.warp_yield }, { ttg.warp_return }) : () -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttg.warp_specialize' op has 1 partitions, but `partitionNumWarps` has 2 entries}}
  "ttg.warp_specialize"() <{partitionNumWarps = array<i32: 4, 4>}> ({ ttg.warp_yield }, { "ttg.warp_specialize.partitions"() ({ ttg.warp_return }) : () -> () }) : () -> ()
  tt.return
}
}

// -----

// ttg.warp_specialize.partitions
#row8 = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 2], order = [0, 1]}>
#col = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<32x64xf32, #col>) {
  // expected-error @below {{'ttg.warp_specialize.partitions' op block argument #0: #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 2], order = [0, 1]}> is for 8 warps, but here there are 4 (ttg.num-warps)}}
  ttg.warp_specialize(%x)
  default { ttg.warp_yield }
  partition0(%y: tensor<32x64xf32, #row8>) num_warps(4) { ttg.warp_return } : (tensor<32x64xf32, #col>) -> ()
  tt.return
}
}
