// What the verifiers of barriers, clusters and packed arithmetic refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.arrive_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op fromCTA must be from 0 to 0, one less than the number of CTAs, got 1}}
  ttng.arrive_barrier %b, 1 {fromCTA = 1 : i32} : !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttng.arrive_barrier
#b_2r = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b_2r, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op fromCTA needs a barrier with one element for each of 2 CTAs, and CGALayout = [[1]], got '!ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>, #ttg.shared_memory, mutable>'}}
  ttng.arrive_barrier %b, 1 {fromCTA = 0 : i32} : !ttg.memdesc<1xi64, #b_2r, #smem, mutable>
  tt.return
}
}

// -----

// ttng.arrive_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op an arrival at several CTAs needs a cluster of several (ttg.num-ctas > 1)}}
  ttng.arrive_barrier %b, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttng.arrive_barrier
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<2xi64, #b_2, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op multicastCTA = 2 exceeds 1, one less than the number of CTAs}}
  ttng.arrive_barrier %b, 1 {multicastCTA = 2 : i32} : !ttg.memdesc<2xi64, #b_2, #smem, mutable>
  tt.return
}
}

// -----

// ttng.arrive_barrier
#b_2r = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b_2r, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op the barrier of an arrival at several CTAs must have CGALayout = [[1]], got [[0]]}}
  ttng.arrive_barrier %b, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<1xi64, #b_2r, #smem, mutable>
  tt.return
}
}

// -----

// ttng.arrive_barrier
#b_4 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1], [2]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 4 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<4xi64, #b_4, #smem, mutable>) {
  // expected-error @below {{'ttng.arrive_barrier' op fromCTA = 0 cannot be combined with multicastCTA = 1}}
  ttng.arrive_barrier %b, 1 {fromCTA = 0 : i32, multicastCTA = 1 : i32} : !ttg.memdesc<4xi64, #b_4, #smem, mutable>
  tt.return
}
}

// -----

// ttng.async_shared_store
#bl_2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0], CGALayout = [[1, 0]]}>
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#swt_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1], CGALayout = [[1, 0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: tensor<32x64xf16, #bl_2>, %d: !ttg.memdesc<32x64xf16, #swt_2, #smem, mutable>, %b: !ttg.memdesc<2xi64, #b_2, #smem, mutable>) {
  // expected-error @below {{'ttng.async_shared_store' op stores must have at least 32 bits, but these layouts give 1 consecutive elements of 16 bits}}
  ttng.async_shared_store %s, %d, %b : tensor<32x64xf16, #bl_2> -> !ttg.memdesc<32x64xf16, #swt_2, #smem, mutable>, !ttg.memdesc<2xi64, #b_2, #smem, mutable>
  tt.return
}
}

// -----

// ttng.clc_is_canceled
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%x: i64) {
  // expected-error @below {{'ttng.clc_is_canceled' op operand #0 must be 128-bit signless integer, but got 'i64'}}
  %r = ttng.clc_is_canceled %x : i64 -> i1
  tt.return
}
}

// -----

// ttng.clc_load_result
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%r: !ttg.memdesc<2xi32, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.clc_load_result' op a response must have elements of 'i64', got 'i32'}}
  %x = ttng.clc_load_result %r : !ttg.memdesc<2xi32, #b, #smem, mutable> -> i128
  tt.return
}
}

// -----

// ttng.clc_load_result
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%r: !ttg.memdesc<4xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.clc_load_result' op a response must have the shape [2], got [4]}}
  %x = ttng.clc_load_result %r : !ttg.memdesc<4xi64, #b, #smem, mutable> -> i128
  tt.return
}
}

// -----

// ttng.clc_load_result
#b_2 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%r: !ttg.memdesc<2xi64, #b_2, #smem, mutable>) {
  // expected-error @below {{'ttng.clc_load_result' op a response must be the same in every CTA, got CGALayout = [[1]]}}
  %x = ttng.clc_load_result %r : !ttg.memdesc<2xi64, #b_2, #smem, mutable> -> i128
  tt.return
}
}

// -----

// ttng.clc_try_cancel_sync
#v1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.clc_try_cancel_sync' op the response must have the shape [2] and elements of 'i64', got 'tensor<2xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
  %r = ttng.clc_try_cancel_sync : tensor<2xi32, #v1>
  tt.return
}
}

// -----

// ttng.cluster_barrier
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.cluster_barrier' op needs a cluster of several CTAs (ttg.num-ctas > 1)}}
  ttng.cluster_barrier
  tt.return
}
}

// -----

// ttng.cluster_barrier
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @f() attributes {noinline = true} {
  // expected-error @below {{'ttng.cluster_barrier' op must be inside of a kernel or of a function that is inlined into one}}
  ttng.cluster_barrier
  tt.return
}
}

// -----

// ttng.cluster_barrier
// expected-error @below {{'ttng.cluster_barrier' op must be inside of a kernel}}
module attributes {"ttg.num-ctas" = 2 : i32} { ttng.cluster_barrier
 }

// -----

// ttng.init_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<2xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.init_barrier' op a barrier must be a descriptor of Nxi64 with N at most 1, the number of CTAs, got '!ttg.memdesc<2xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable>'}}
  ttng.init_barrier %b, 1 : !ttg.memdesc<2xi64, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttng.init_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b, #smem, mutable>) {
  // expected-error @below {{'ttng.init_barrier' op count must be at least 1, got 0}}
  ttng.init_barrier %b, 0 : !ttg.memdesc<1xi64, #b, #smem, mutable>
  tt.return
}
}

// -----

// ttng.init_barrier
#b_2r = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[0]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%b: !ttg.memdesc<1xi64, #b_2r, #smem, mutable>) {
  ttg.warp_specialize()
  // expected-error @below {{'ttng.init_barrier' op a barrier that CTAs share cannot be initialized inside `ttg.warp_specialize`}}
  default { ttng.init_barrier %b, 1 : !ttg.memdesc<1xi64, #b_2r, #smem, mutable>
  ttg.warp_yield }
  partition0() num_warps(4) { ttg.warp_return } : () -> ()
  tt.return
}
}

// -----

// ttng.inval_barrier
#b = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%r: !ttg.memdesc<1xi64, #b, #smem, mutable, 2>) {
  // expected-error @below {{'ttng.inval_barrier' op a barrier must be a whole buffer, got '!ttg.memdesc<1xi64, #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>, #ttg.shared_memory, mutable, 2>'}}
  ttng.inval_barrier %r : !ttg.memdesc<1xi64, #b, #smem, mutable, 2>
  tt.return
}
}

// -----

// ttng.inval_barrier
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%r: !ttg.memdesc<1xi64, #ttg.padded_shared<[2:+2] {order = [0], shape = [1]}>, #smem, mutable>) {
  // expected-error @below {{'ttng.inval_barrier' op a barrier must be contiguous, with a #ttg.swizzled_shared layout that does not swizzle (vec, perPhase and maxPhase 1), got #ttg.padded_shared<[2:+2] {order = [0], shape = [1]}>}}
  ttng.inval_barrier %r : !ttg.memdesc<1xi64, #ttg.padded_shared<[2:+2] {order = [0], shape = [1]}>, #smem, mutable>
  tt.return
}
}

// -----

// ttng.packed_arith
#pl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf32, #pl>, %b: tensor<32x64xf16, #pl>) {
  // expected-error @below {{'ttng.packed_arith' op there is no add of (f32x2, f16x2) to f32x2}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x64xf32, #pl>, tensor<32x64xf16, #pl>) -> tensor<32x64xf32, #pl>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf16, #bl>, %b: tensor<32x64xf16, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op the result must be distributed over threads, got 'tensor<32x64xf16>'}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x64xf16, #bl>, tensor<32x64xf16, #bl>) -> tensor<32x64xf16>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf16, #bl>, %b: tensor<32x64xf16, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op operand 0 must have the result's shape [32, 32], got [32, 64]}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x64xf16, #bl>, tensor<32x64xf16, #bl>) -> tensor<32x32xf16, #bl>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#col = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf16, #bl>, %b: tensor<32x64xf16, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op operand 0 must have a layout equivalent to the result's, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x64xf16, #bl>, tensor<32x64xf16, #bl>) -> tensor<32x64xf16, #col>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf16, #bl>, %b: tensor<32x64xf16, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op result #0 must be ranked tensor of packed arithmetic result element values, but got 'tensor<32x64xf64, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x64xf16, #bl>, tensor<32x64xf16, #bl>) -> tensor<32x64xf64, #bl>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.packed_arith' op add takes 2 operands, got 0}}
  %r = ttng.packed_arith add  : () -> tensor<32x64xf16, #bl>
  tt.return
}
}

// -----

// ttng.packed_arith
#pl1 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<16x8xf16, #pl1>, %b: tensor<16x8xf16, #pl1>) {
  // expected-error @below {{'ttng.packed_arith' op each thread must hold a multiple of 2 different elements of the result, but holds 1}}
  %r = ttng.packed_arith add %a, %b : (tensor<16x8xf16, #pl1>, tensor<16x8xf16, #pl1>) -> tensor<16x8xf16, #pl1>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x32xi8, #bl>, %b: tensor<32x64xf8E5M2, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op fp4 operand 0 must have a layout that unpacks to the result's, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}}
  %r = ttng.packed_arith add %a, %b : (tensor<32x32xi8, #bl>, tensor<32x64xf8E5M2, #bl>) -> tensor<32x64xf8E5M2, #bl>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<64xi8>, %b: tensor<32x64xf8E5M2, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op fp4 operand 0 must have the result's shape [32, 64] with one dimension halved, the same for all, got [64]}}
  %r = ttng.packed_arith add %a, %b : (tensor<64xi8>, tensor<32x64xf8E5M2, #bl>) -> tensor<32x64xf8E5M2, #bl>
  tt.return
}
}

// -----

// ttng.packed_arith
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%a: tensor<32x64xf64, #bl>) {
  // expected-error @below {{'ttng.packed_arith' op operand #0 must be variadic of ranked tensor of packed arithmetic operand element values, but got 'tensor<32x64xf64, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>'}}
  %r = ttng.packed_arith add %a, %a : (tensor<32x64xf64, #bl>, tensor<32x64xf64, #bl>) -> tensor<32x64xf32, #bl>
  tt.return
}
}
