// What a back end would stop at, or would get wrong in silence, is refused where it stands.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @operand(%x: i32) {
    // expected-error @below {{operand $9 of 2 in the text of inline assembly: 'mov.b32 $0, $9;'}}
    %0 = tt.elementwise_inline_asm "mov.b32 $0, $9;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @brace(%x: i32) {
    // expected-error @below {{'${' without '}' in the text of inline assembly: 'v_mov_b32 $0, ${1:'}}
    %0 = tt.elementwise_inline_asm "v_mov_b32 $0, ${1:" {constraints = "=v,v", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @variants(%x: i32) {
    // expected-error @below {{'$(' within '$(' in the text of inline assembly}}
    %0 = tt.elementwise_inline_asm "mov.b32 $0, $($($1$)$);" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @no_number(%x: i32) {
    // expected-error @below {{'$' without the number of an operand}}
    %0 = tt.elementwise_inline_asm "mov.b32 $0, $x;" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @modifier(%x: i32) {
    // expected-error @below {{':abc' behind an operand, where a colon and one letter may be, in the text}}
    %0 = tt.elementwise_inline_asm "mov.b32 $0, ${1:abc};" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

// A dollar, variants, braces and a number of the text's own are fine.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @fine(%x: i32) {
    %0 = tt.elementwise_inline_asm "{ .reg .b32 a$$b${:uid}; $(mov.b32 $0, ${1}$|nop$); }" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : i32 -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @symbol(%x: i32) {
    // expected-error @below {{'a b' is no identifier of PTX}}
    %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "a b"} : (i32) -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @symbol(%x: i32) {
    // expected-error @below {{'a\u{0}' is no symbol of an object file}}
    %0 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "a\00"} : (i32) -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // expected-error @below {{'f@1' is no symbol of an object file}}
  tt.func public @"f@1"(%x: i32) {
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'WARP_SZ' is no identifier of PTX}}
  tt.func public @WARP_SZ(%x: i32) {
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{a launcher passes no numbers of 7 bits to a kernel}}
  tt.func public @odd(%x: i7) {
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @sum_of_integers(%p: !tt.ptr<i32>, %x: i32, %mask: i1) {
    // expected-error @below {{'fadd' is for floating-point numbers, not for i32}}
    %0 = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %mask : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  tt.func public @sum_of_bits(%p: !tt.ptr<f32>, %x: f32, %mask: i1) {
    // expected-error @below {{'max' is for integers, not for f32}}
    %0 = tt.atomic_rmw max, acq_rel, gpu, %p, %x, %mask : (!tt.ptr<f32>, f32, i1) -> f32
    tt.return
  }
}

// -----

#one = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @arrivals() {
    %bar = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<1xi64, #one, #ttg.shared_memory, mutable>
    // expected-error @below {{a barrier for 1048576 arrivals of each of 1 blocks, the most is 1048575 of all}}
    ttng.init_barrier %bar, 1048576 : !ttg.memdesc<1xi64, #one, #ttg.shared_memory, mutable>
    tt.return
  }
}
