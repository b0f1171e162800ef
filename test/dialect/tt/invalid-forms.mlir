// What is refused of the generic form and of odd custom forms.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// amdg.masked_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !llvm.ptr<1>, %v: f32, %m: i1) {
  // expected-error @below {{custom op 'amdg.masked_store' `cacheModifier` clause can appear at most once}}
  amdg.masked_store %p, %v, %m cacheModifier = cg cacheModifier = cg : !llvm.ptr<1>, f32, i1
  tt.return
}
}

// -----

// amdg.masked_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !llvm.ptr<1>, %v: f32, %m: i1) {
  // expected-error @below {{custom op 'amdg.masked_store' number of operands and types do not match: got 3 operands and 2 types}}
  amdg.masked_store %p, %v, %m : !llvm.ptr<1>, f32
  tt.return
}
}

// -----

// tt.atomic_cas
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x!tt.ptr<i32>>, %v: tensor<32xf32>) {
  // expected-error @below {{'tt.atomic_cas' op failed to verify that ptr type matches cmp type}}
  %0 = "tt.atomic_cas"(%p, %v, %v) <{sem = 1 : i32, scope = 1 : i32}> : (tensor<32x!tt.ptr<i32>>, tensor<32xf32>, tensor<32xf32>) -> tensor<32xf32>
  tt.return
}
}

// -----

// tt.broadcast
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#col = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<1x64xf32, #bl>) {
  // expected-error @below {{'tt.broadcast' op requires the same layout of source and result up to repeated registers, but got 'tensor<1x64xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' and 'tensor<32x64xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>'}}
  %0 = tt.broadcast %x : tensor<1x64xf32, #bl> -> tensor<32x64xf32, #col>
  tt.return
}
}

// -----

// tt.call
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'tt.call' op attribute 'callee' failed to satisfy constraint: flat symbol reference attribute}}
  "tt.call"() <{callee = "x"}> : () -> ()
  tt.return
}
}

// -----

// tt.call
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{custom op 'tt.call' expected function type}}
  tt.call @g() : i32
  tt.return
}
}

// -----

// tt.cat
#v = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<32xf32, #v>) {
  // expected-error @below {{'tt.cat' op requires encodings on all of its tensors or on none, but got 'tensor<32xf32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>' and 'tensor<64xf32>'}}
  %0 = tt.cat %x, %x : tensor<32xf32, #v> -> tensor<64xf32>
  tt.return
}
}

// -----

// tt.descriptor_gather
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%d: !tt.tensordesc<1x64xf32>, %x: tensor<32xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects as many columns as the descriptor, 64, but got 'tensor<32x32xf32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x64xf32>, tensor<32xi32>, i32) -> tensor<32x32xf32>
  tt.return
}
}

// -----

// tt.dot
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#mmb = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#dota = #ttg.dot_op<{opIdx = 0, parent = #mmb, kWidth = 2}>
#dotb = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<64x32xf16, #dota>, %b: tensor<32x64xf16, #dotb>, %c: tensor<64x64xf32, #mma>) {
  // expected-error @below {{'tt.dot' op requires the accumulator's encoding, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>, as the parent of the first operand's, but got #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>}}
  %0 = tt.dot %a, %b, %c : tensor<64x32xf16, #dota> * tensor<32x64xf16, #dotb> -> tensor<64x64xf32, #mma>
  tt.return
}
}

// -----

// tt.load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x!tt.ptr<f32>>) {
  // expected-error @below {{'tt.load' op operand group sizes are missing or malformed}}
  %0 = "tt.load"(%p) : (tensor<32x!tt.ptr<f32>>) -> tensor<32xf32>
  tt.return
}
}

// -----

// tt.load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x!tt.ptr<f32>>) {
  // expected-error @below {{'tt.load' op operand group 'ptr' requires exactly one value, but has 0}}
  %0 = "tt.load"(%p) <{operandSegmentSizes = array<i32: 0, 1, 0>}> : (tensor<32x!tt.ptr<f32>>) -> tensor<32xf32>
  tt.return
}
}

// -----

// tt.load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x!tt.ptr<f32>>, %m: tensor<32xi1>) {
  // expected-error @below {{'tt.load' op operand group starting at #1 requires 0 or 1 element, but found 2}}
  %0 = "tt.load"(%p, %m, %m) <{operandSegmentSizes = array<i32: 1, 2, 0>}> : (tensor<32x!tt.ptr<f32>>, tensor<32xi1>, tensor<32xi1>) -> tensor<32xf32>
  tt.return
}
}

// -----

// tt.make_tensor_descriptor
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: !tt.ptr<f32>, %i: i32) {
  // expected-error @below {{'tt.make_tensor_descriptor' op operand #2 must be variadic of 64-bit signless integer, but got 'i32'}}
  %0 = "tt.make_tensor_descriptor"(%p, %i, %i) <{padding = 1 : i32}> : (!tt.ptr<f32>, i32, i32) -> !tt.tensordesc<32xf32>
  tt.return
}
}

// -----

// tt.map_elementwise
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<32xf32>) {
  // expected-error @below {{'tt.map_elementwise' op the number of elements, 32, must be a multiple of pack, 64}}
  %0 = "tt.map_elementwise"(%x) <{pack = 64 : i32}> ({ ^bb0(%a: f32): tt.map_elementwise.return %a : f32 }) : (tensor<32xf32>) -> tensor<32xf32>
  tt.return
}
}

// -----

// tt.reduce
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<32xf32>) {
  // expected-error @below {{'tt.reduce' op requires 1 region(s), but found 0}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> : (tensor<32xf32>) -> f32
  tt.return
}
}

// -----

// tt.reduce
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: tensor<32xf32>) {
  // expected-error @below {{'tt.reduce' op expects the combining region to end with 'tt.reduce.return'}}
  %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({ ^bb0(%a: f32, %b: f32): ub.unreachable }) : (tensor<32xf32>) -> f32
  tt.return
}
}

// -----

// tt.splat
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'tt.splat' op requires 1 operand, but found 0}}
  %0 = "tt.splat"() : () -> tensor<4xf32>
  tt.return
}
}

// -----

// tt.store
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#col = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%p: tensor<32x64x!tt.ptr<f32>, #bl>, %v: tensor<32x64xf32, #col>) {
  // expected-error @below {{'tt.store' op requires the same encoding for all operands and results, but got 'tensor<32x64x!tt.ptr<f32>, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' and 'tensor<32x64xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>'}}
  "tt.store"(%p, %v) : (tensor<32x64x!tt.ptr<f32>, #bl>, tensor<32x64xf32, #col>) -> ()
  tt.return
}
}

// -----

// ttng.tensor_memory_encoding
// expected-error @below {{expected 'true' or 'false'}}
module attributes {x.y = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1, twoCTAs = 1>} {}

// -----

// ttng.wait_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b, #smem, mutable>, %i: i32) {
  // expected-error @below {{custom op 'ttng.wait_barrier' cannot infer the type of operand 'deps'}}
  ttng.wait_barrier %b, %i deps %b : !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}
}
