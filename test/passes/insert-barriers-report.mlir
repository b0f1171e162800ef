// RUN: %ttopt %s -split-input-file -verify-diagnostics --tritongpu-insert-barriers=report=true

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 8192 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reasons(%v: tensor<32x64xf32, #a>) {
    // expected-note @+2 {{of which other threads may not have written all of 0 to 8192, this memory}}
    // expected-note @+1 {{of which other threads may not have read all of 0 to 8192, this memory}}
    %m = ttg.local_alloc %v {allocation.offset = 0 : i32} : (tensor<32x64xf32, #a>) -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // expected-remark @+1 {{barrier: ttg.local_load reads bytes 0 to 8192}}
    %0 = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> tensor<32x64xf32, #a>
    // expected-remark @+1 {{barrier: ttg.local_store writes bytes 0 to 8192}}
    ttg.local_store %v, %m : tensor<32x64xf32, #a> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    tt.return
  }
}

// -----

#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @not_allocated() {
    // expected-error @+1 {{has no shared memory: run --allocate-shared-memory-nv first}}
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    tt.return
  }
}
