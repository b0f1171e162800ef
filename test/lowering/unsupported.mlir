// What has no lowering is said where it stands.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @warp_specialize() {
  // expected-error @below {{'ttg.warp_specialize' op has no warps for partitions: run --tritongpu-allocate-warp-groups first}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.total-num-warps" = 5 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func @warp_specialize() {
  // expected-error @below {{'ttg.warp_specialize' op the target hip:gfx942 has no warp specialization}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

// A warp group is four warps from one whose number is a multiple of four.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, "ttg.total-num-warps" = 6 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @dot_of_half_groups() {
  %a = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<64x64xf16, #shared, #smem, mutable>
  ttg.warp_specialize(%a) attributes {ttg.runs_once, warpGroupStartIds = array<i32: 2>}
  default {
    ttg.warp_yield
  }
  partition0(%b: !ttg.memdesc<64x64xf16, #shared, #smem, mutable>) num_warps(4) {
    %c = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    // expected-error @below {{'ttng.warp_group_dot' op runs on warps 2 to 5, which are no warp groups: those begin at multiples of 4}}
    %d = ttng.warp_group_dot %b, %b, %c {inputPrecision = 0 : i32} : !ttg.memdesc<64x64xf16, #shared, #smem, mutable> * !ttg.memdesc<64x64xf16, #shared, #smem, mutable> -> tensor<64x64xf32, #mma>
    ttg.warp_return
  } : (!ttg.memdesc<64x64xf16, #shared, #smem, mutable>) -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @mask(%p: i1, %a: i32) -> i32 {
  // expected-error @below {{'ttg.mask' op cannot be lowered to LLVM yet}}
  %0 = "ttg.mask"(%p) ({
    ttg.mask.return %a : i32
  }) : (i1) -> i32
  tt.return %0 : i32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @cluster_launch_control() {
  // expected-error @below {{'ttng.clc_try_cancel_sync' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_try_cancel_sync : tensor<2xi64, #b>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @canceled(%r: i128) -> i1 {
  // expected-error @below {{'ttng.clc_is_canceled' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_is_canceled %r : i128 -> i1
  tt.return %0 : i1
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @program_of_canceled(%r: i128) -> i32 {
  // expected-error @below {{'ttng.clc_get_program_id' op cannot be lowered to LLVM yet}}
  %0 = ttng.clc_get_program_id %r, x : i128 -> i32
  tt.return %0 : i32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @packed(%x: tensor<32x64xf16, #b>) {
  // expected-error @below {{'ttng.packed_arith' op cannot be lowered to LLVM yet}}
  %0 = ttng.packed_arith add %x, %x : (tensor<32x64xf16, #b>, tensor<32x64xf16, #b>) -> tensor<32x64xf16, #b>
  tt.return
}
}

// -----

#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func @tensor_memory() {
  // expected-error @below {{'ttng.tmem_alloc' op cannot be lowered to LLVM yet}}
  %0 = ttng.tmem_alloc : () -> !ttg.memdesc<128x64xf32, #t, #ttng.tensor_memory, mutable>
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @packed(%x: i32) -> i32 {
  // expected-error @below {{inline assembly of 2147483647 elements at a time, the most is 1024}}
  %0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,r", packed_element = 2147483647 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

// Registers that a GPU does not have, of PTX's assembly on one of AMD's.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: f32) -> f32 {
  // expected-error @below {{'f' in the constraint '=f' of inline assembly is no register of hip:gfx942: it has 'v' for vector registers, 's' for scalar ones and 'a' for accumulators; other letters are for PTX}}
  %0 = tt.elementwise_inline_asm "tanh.approx.f32 $0, $1;" {constraints = "=f,f", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.return %0 : f32
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: i32) -> i32 {
  // expected-error @below {{'h' in the constraint 'h' of inline assembly is no register of hip:gfx942}}
  %0 = tt.elementwise_inline_asm "mov.b32 $0, {$1, 0};" {constraints = "=&v,h", packed_element = 1 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: tensor<256xi32, #b>) -> tensor<256xi32, #b> {
  // expected-error @below {{'r' in the constraint 'r' of inline assembly is a register that all lanes share on hip:gfx942, the operand is a tensor}}
  %0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=v,r", packed_element = 1 : i32, pure = true} %x : tensor<256xi32, #b> -> tensor<256xi32, #b>
  tt.return %0 : tensor<256xi32, #b>
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @asm(%x: i32) -> i32 {
  // expected-error @below {{'v' in the constraint '=v' of inline assembly is no register of cuda:90}}
  %0 = tt.elementwise_inline_asm "v_mov_b32 $0, $1" {constraints = "=v,v", packed_element = 1 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

// LLVM would end the process: a place in memory for a number, other numbers of operands, an output that there is not.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: i32) -> i32 {
  // expected-error @below {{'m' in the constraint 'm' of inline assembly is no register of hip:gfx942}}
  %0 = tt.elementwise_inline_asm "v_mov_b32 $0, $1" {constraints = "=v,m", packed_element = 1 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: i32) -> i32 {
  // expected-error @below {{inline assembly has 1 results and 1 operands in registers, its constraints 'v,v,~{vcc}' are for 0 and 2}}
  %0 = tt.elementwise_inline_asm "v_mov_b32 $0, $1" {constraints = "v,v,~{vcc}", packed_element = 1 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @asm(%x: i32) -> i32 {
  // expected-error @below {{'1' in the constraint '1' of inline assembly is no register of cuda:90}}
  %0 = tt.elementwise_inline_asm "mov.b32 $0, $1;" {constraints = "=r,1", packed_element = 1 : i32, pure = true} %x : i32 -> i32
  tt.return %0 : i32
}
}

// -----

// Registers of AMD's are given 16 bits or more.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func private @asm(%x: f32) -> i8 {
  // expected-error @below {{'=v' of inline assembly is for 8 bits, registers of hip:gfx942 are given 16 or more}}
  %0 = tt.elementwise_inline_asm "v_mov_b32 $0, $1" {constraints = "=v,v", packed_element = 1 : i32, pure = true} %x : f32 -> i8
  tt.return %0 : i8
}
}
