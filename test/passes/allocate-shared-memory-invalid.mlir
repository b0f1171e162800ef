// RUN: %ttopt %s -split-input-file -verify-diagnostics --allocate-shared-memory-nv

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @+1 {{'tt.func' op needs 196608 bytes of shared memory, cuda:80 has 166912 in a block}}
  tt.func @too_much() {
    // expected-note @+1 {{ttg.local_alloc needs 131072 bytes, at 0}}
    %x = ttg.local_alloc : () -> !ttg.memdesc<128x256xf32, #shared, #smem, mutable>
    // expected-note @+1 {{ttg.local_alloc needs 65536 bytes, at 131072}}
    %y = ttg.local_alloc : () -> !ttg.memdesc<128x128xf32, #shared, #smem, mutable>
    ttg.local_dealloc %x : !ttg.memdesc<128x256xf32, #shared, #smem, mutable>
    ttg.local_dealloc %y : !ttg.memdesc<128x128xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @recursive() attributes {noinline = true} {
    // expected-error @+1 {{calls a function that is being called: recursion needs shared memory without bound}}
    tt.call @recursive() : () -> ()
    tt.return
  }
}

// -----

// expected-error @+1 {{has no "ttg.target"}}
module {
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @odd_alignment() {
    // expected-error @+1 {{the alignment 24 is no power of two}}
    %x = ttg.local_alloc {alignment = 24 : i32} : () -> !ttg.memdesc<16x16xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @callee(%x: !ttg.memdesc<16x16xf32, #shared, #smem, mutable>) attributes {noinline = true} {
    tt.return
  }
  tt.func @kernel() {
    %x = ttg.local_alloc : () -> !ttg.memdesc<16x16xf32, #shared, #smem, mutable>
    // expected-error @+1 {{passes a buffer between functions, which cannot be}}
    tt.call @callee(%x) : (!ttg.memdesc<16x16xf32, #shared, #smem, mutable>) -> ()
    tt.return
  }
}

// -----

// Whose bytes are a multiple of 2^64.
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @immense() {
  // expected-error-re @below {{the allocation of !ttg.memdesc<4611686018427387904x16x16xf32, {{.*}} is larger than any memory}}
  %0 = ttg.local_alloc : () -> !ttg.memdesc<4611686018427387904x16x16xf32, #shared, #ttg.shared_memory, mutable>
  tt.return
}
}
