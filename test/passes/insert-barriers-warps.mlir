// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers -verify-diagnostics

// Some warps come to where all would have to wait for each other: not a barrier that is never passed, but an error.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @conversion(%v: tensor<32x64xf32, #a>) {
    %c0 = arith.constant 0 : i32
    %warp = ttg.warp_id
    %first = arith.cmpi eq, %warp, %c0 : i32
    scf.if %first {
      // expected-error @+1 {{all warps must wait for each other here, and the number of a warp decides which of them come here}}
      %w = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    }
    tt.return
  }
}

// -----

// A barrier for what one thread stores and all threads load.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @stores(%p: !tt.ptr<f32>, %v: f32) -> f32 attributes {noinline = true} {
    tt.store %p, %v : !tt.ptr<f32>
    // expected-error @+1 {{all warps must wait for each other here}}
    %0 = tt.load %p : !tt.ptr<f32>
    tt.return %0 : f32
  }
  tt.func @calls(%p: !tt.ptr<f32>, %v: f32) {
    %c0 = arith.constant 0 : i32
    %warp = ttg.warp_id
    %first = arith.cmpi eq, %warp, %c0 : i32
    scf.if %first {
      %0 = tt.call @stores(%p, %v) : (!tt.ptr<f32>, f32) -> f32
    }
    tt.return
  }
}

// -----

// The number of the warp is an argument, and decides in the callee, which calls what waits.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @waits() attributes {noinline = true} {
    // expected-error @+1 {{all warps must wait for each other here}}
    ttg.barrier local
    tt.return
  }
  tt.func private @decides(%warp: i32) attributes {noinline = true} {
    %c0 = arith.constant 0 : i32
    %first = arith.cmpi eq, %warp, %c0 : i32
    scf.if %first {
      tt.call @waits() : () -> ()
    }
    tt.return
  }
  tt.func @calls() {
    %warp = ttg.warp_id
    tt.call @decides(%warp) : (i32) -> ()
    tt.return
  }
}

// -----

// Nobody waits: one warp stores, and all wait behind the branch.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @alone(%p: !tt.ptr<f32>, %v: f32) -> f32 {
    %c0 = arith.constant 0 : i32
    %warp = ttg.warp_id
    %first = arith.cmpi eq, %warp, %c0 : i32
    scf.if %first {
      tt.store %p, %v : !tt.ptr<f32>
    }
    %0 = tt.load %p : !tt.ptr<f32>
    tt.return %0 : f32
  }
}
