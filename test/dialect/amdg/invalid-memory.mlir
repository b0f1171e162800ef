// What the verifiers of accesses to memory refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// amdg.async_copy_local_to_global
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%l: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %d: tensor<256x!tt.ptr<f32>, #qv>) {
  // expected-error @below {{'amdg.async_copy_local_to_global' op the source must be in shared memory, got '!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory, mutable>'}}
  %r = amdg.async_copy_local_to_global %l, %d  : !ttg.memdesc<128x64xf32, #t, #tmem, mutable> -> tensor<256x!tt.ptr<f32>, #qv>
  tt.return
}
}

// -----

// amdg.async_copy_local_to_global
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !ttg.memdesc<256xf32, #b, #smem, mutable>, %a1: tensor<256x!tt.ptr<f32>>, %a2: tensor<128xi1>) {
  // expected-error @below {{'amdg.async_copy_local_to_global' op failed to verify that infer mask type from dst type}}
  %r = "amdg.async_copy_local_to_global"(%a0, %a1, %a2) : (!ttg.memdesc<256xf32, #b, #smem, mutable>, tensor<256x!tt.ptr<f32>>, tensor<128xi1>) -> !ttg.async.token
  tt.return
}
}

// -----

// amdg.buffer_atomic_cas
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<256xi32>, %a2: tensor<256xf32>, %a3: tensor<256xf16>) {
  // expected-error @below {{'amdg.buffer_atomic_cas' op failed to verify that result element type matches the val type}}
  %r = "amdg.buffer_atomic_cas"(%a0, %a1, %a2, %a3) <{sem = 4 : i32, scope = 1 : i32}> : (!tt.ptr<f32>, tensor<256xi32>, tensor<256xf32>, tensor<256xf16>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_atomic_cas
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<256xi32>, %a2: tensor<256xf16>, %a3: tensor<256xf32>) {
  // expected-error @below {{'amdg.buffer_atomic_cas' op failed to verify that result element type matches the cmp type}}
  %r = "amdg.buffer_atomic_cas"(%a0, %a1, %a2, %a3) <{sem = 4 : i32, scope = 1 : i32}> : (!tt.ptr<f32>, tensor<256xi32>, tensor<256xf16>, tensor<256xf32>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_atomic_rmw
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<256xi32>, %a2: tensor<256xf16>) {
  // expected-error @below {{'amdg.buffer_atomic_rmw' op failed to verify that result element type matches the value type}}
  %r = "amdg.buffer_atomic_rmw"(%a0, %a1, %a2) <{atomic_rmw_op = 5 : i32, sem = 4 : i32, scope = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (!tt.ptr<f32>, tensor<256xi32>, tensor<256xf16>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_load
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: !tt.ptr<f16>, %o: tensor<256xi32, #qv>) {
  // expected-error @below {{'amdg.buffer_load' op the result has elements of 'f32', but the base is a '!tt.ptr<f16>'}}
  %r = amdg.buffer_load %p[%o]  : !tt.ptr<f16> -> tensor<256xf32, #qv>
  tt.return
}
}

// -----

// amdg.buffer_load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<128xi32>) {
  // expected-error @below {{'amdg.buffer_load' op failed to verify that result and offsets have the same shape}}
  %r = "amdg.buffer_load"(%a0, %a1) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 0>}> : (!tt.ptr<f32>, tensor<128xi32>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<256xi32>, %a2: tensor<128xi1>) {
  // expected-error @below {{'amdg.buffer_load' op failed to verify that result and mask have the same shape}}
  %r = "amdg.buffer_load"(%a0, %a1, %a2) <{operandSegmentSizes = array<i32: 1, 1, 0, 1, 0>}> : (!tt.ptr<f32>, tensor<256xi32>, tensor<128xi1>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !tt.ptr<f32>, %a1: tensor<256xi32>, %a2: tensor<256xf16>) {
  // expected-error @below {{'amdg.buffer_load' op failed to verify that result and other have the same type}}
  %r = "amdg.buffer_load"(%a0, %a1, %a2) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>}> : (!tt.ptr<f32>, tensor<256xi32>, tensor<256xf16>) -> tensor<256xf32>
  tt.return
}
}

// -----

// amdg.buffer_load_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: !tt.ptr<f32>, %o: tensor<256xi32, #qv>, %l: !ttg.memdesc<256xf32, #b, #smem, mutable>) {
  // expected-error @below {{'amdg.buffer_load_to_local' op needs loads from buffers into shared memory, which gfx942 and gfx950 have, but the module is for cuda:90}}
  %r = amdg.buffer_load_to_local %p[%o] into %l  : !tt.ptr<f32>[tensor<256xi32, #qv>]  -> !ttg.memdesc<256xf32, #b, #smem, mutable>
  tt.return
}
}

// -----

// amdg.buffer_load_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: !tt.ptr<f32>, %o: i32, %l: !ttg.memdesc<256xf32, #b, #smem, mutable>) {
  // expected-error @below {{'amdg.buffer_load_to_local' op operand #2 must be tensor of 32-bit signless integer values, but got 'i32'}}
  %r = amdg.buffer_load_to_local %p[%o] into %l  : !tt.ptr<f32>[i32]  -> !ttg.memdesc<256xf32, #b, #smem, mutable>
  tt.return
}
}

// -----

// amdg.buffer_load_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: !tt.ptr<f32>, %o: tensor<256xi32, #qv>, %v: tensor<256xf32>, %l: !ttg.memdesc<256xf32, #b, #smem, mutable>) {
  // expected-error @below {{'amdg.buffer_load_to_local' op `other` must have the shape and layout of the offsets, 'tensor<256xi32, #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>>', and elements that '!tt.ptr<f32>' points to, but is a 'tensor<256xf32>'}}
  %r = amdg.buffer_load_to_local %p[%o] other = %v into %l  : !tt.ptr<f32>[tensor<256xi32, #qv>] tensor<256xf32> -> !ttg.memdesc<256xf32, #b, #smem, mutable>
  tt.return
}
}

// -----

// amdg.buffer_load_to_local
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: !ttg.memdesc<256xf32, #b, #smem, mutable>, %a1: !tt.ptr<f32>, %a2: tensor<256xi32>, %a3: tensor<128xi1>) {
  // expected-error @below {{'amdg.buffer_load_to_local' op failed to verify that infer mask shape from offsets}}
  %r = "amdg.buffer_load_to_local"(%a0, %a1, %a2, %a3) <{operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0>}> : (!ttg.memdesc<256xf32, #b, #smem, mutable>, !tt.ptr<f32>, tensor<256xi32>, tensor<128xi1>) -> !ttg.async.token
  tt.return
}
}

// -----

// amdg.buffer_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: tensor<256xf32>, %a1: !tt.ptr<f32>, %a2: tensor<128xi32>) {
  // expected-error @below {{'amdg.buffer_store' op failed to verify that value and offsets have the same shape}}
  "amdg.buffer_store"(%a0, %a1, %a2) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 0>}> : (tensor<256xf32>, !tt.ptr<f32>, tensor<128xi32>) -> ()
  tt.return
}
}

// -----

// amdg.buffer_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%a0: tensor<256xf32>, %a1: !tt.ptr<f32>, %a2: tensor<256xi32>, %a3: tensor<128xi1>) {
  // expected-error @below {{'amdg.buffer_store' op failed to verify that value and mask have the same shape}}
  "amdg.buffer_store"(%a0, %a1, %a2, %a3) <{operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>}> : (tensor<256xf32>, !tt.ptr<f32>, tensor<256xi32>, tensor<128xi1>) -> ()
  tt.return
}
}

// -----

// amdg.buffer_store
#qv = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%v: tensor<256xf32, #qv>, %p: !tt.ptr<f32, "constant">, %o: tensor<256xi32, #qv>) {
  // expected-error @below {{'amdg.buffer_store' op only global memory can be written, but the base is a '!tt.ptr<f32, "constant">'}}
  amdg.buffer_store %v, %p[%o] : !tt.ptr<f32, "constant"> -> tensor<256xf32, #qv>
  tt.return
}
}

// -----

// amdg.masked_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: i64, %m: i1, %v: f32) {
  // expected-error @below {{'amdg.masked_store' op operand #0 must be LLVM pointer type, but got 'i64'}}
  amdg.masked_store %p, %v, %m : i64, f32, i1
  tt.return
}
}

// -----

// amdg.masked_store
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @f(%p: !llvm.ptr<1>, %m: i1, %v: si32) {
  // expected-error @below {{'amdg.masked_store' op operand #1 must be LLVM dialect-compatible type, but got 'si32'}}
  amdg.masked_store %p, %v, %m : !llvm.ptr<1>, si32, i1
  tt.return
}
}
