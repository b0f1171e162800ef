// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

// expected-error @below {{has no "ttg.target": run --convert-triton-to-tritongpu first}}
module {
}

// -----

// expected-error @below {{has no "ttg.num-warps": run --convert-triton-to-tritongpu first}}
module attributes {ttg.target = "cuda:90"} {
}

// -----

// expected-error @below {{module has 32 threads per warp, the target hip:gfx942 has 64}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 32 : i32} {
}

// -----

// expected-error @below {{32 warps of 64 threads: a block of hip:gfx942 has at most 1024 threads}}
module attributes {"ttg.num-warps" = 32 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
}

// -----

// expected-error @below {{programs of 2 blocks: a cluster of hip:gfx942 has at most 1}}
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
}

// -----

// expected-error @below {{unknown target `cuda:ninety`; known are cuda:80}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:ninety", "ttg.threads-per-warp" = 32 : i32} {
}

// -----

// expected-error @below {{module has 64 threads per warp, the target cuda:90 has 32}}
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 64 : i32} {
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @no_layout(%out: !tt.ptr<i32>) {
    // expected-error @below {{tensor<128xi32> has no layout: run --convert-triton-to-tritongpu first}}
    %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @reduction(%x: tensor<128xf32, #blocked>, %out: !tt.ptr<f32>) {
    // expected-error @below {{'tt.reduce' op has no shared memory: run --allocate-shared-memory-nv first}}
    %0 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
    ^bb0(%a: f32, %b: f32):
      %s = arith.addf %a, %b : f32
      tt.reduce.return %s : f32
    }) : (tensor<128xf32, #blocked>) -> f32
    tt.store %out, %0 : !tt.ptr<f32>
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @scratch() {
    %c0 = arith.constant 0 : i32
    // expected-error @below {{'ttg.predicate_stage' op cannot be lowered to LLVM yet}}
    %0 = ttg.predicate_stage %c0, %c0, %c0 maxStage 1 stage 0 : i32 -> i1
    tt.return
  }
}

// -----

#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#columns = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @conversion(%x: tensor<32x32xf32, #rows>) {
    // expected-error @below {{has no shared memory: run --allocate-shared-memory-nv first}}
    %0 = ttg.convert_layout %x : tensor<32x32xf32, #rows> -> tensor<32x32xf32, #columns>
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @dependent_launch() {
    // expected-error @below {{programmatic dependent launch needs sm_90, the target is sm_80}}
    tt.grid_dependency_wait
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{a kernel returns nothing}}
  tt.func public @returns(%x: i32) -> i32 {
    tt.return %x : i32
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{is not known outside of the module}}
  tt.func private @elsewhere(tensor<4xi32, #blocked>) -> i32
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{cannot be lowered at module level}}
  func.func @host() {
    return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @remainder(%x: f8E5M2, %y: f8E5M2) {
    // expected-error @below {{no instruction computes with f8E5M2: convert it to f16 or f32}}
    %0 = arith.remf %x, %y : f8E5M2
    tt.return
  }
}

// -----

// An 8-bit float has as many bits as an i8: its bits are no result.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @to_int(%x: f8E4M3FN) -> i8 {
    // expected-error @below {{no instruction computes with f8E4M3FN}}
    %0 = arith.fptosi %x : f8E4M3FN to i8
    tt.return %0 : i8
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @sum(%x: f8E4M3FN) -> f8E4M3FN {
    // expected-error @below {{no instruction computes with f8E4M3FN}}
    %0 = arith.addf %x, %x : f8E4M3FN
    tt.return %0 : f8E4M3FN
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @atomic(%p: !tt.ptr<f8E5M2>, %x: f8E5M2) {
    %true = arith.constant true
    // expected-error @below {{no instruction computes with f8E5M2}}
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x, %true : (!tt.ptr<f8E5M2>, f8E5M2, i1) -> f8E5M2
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @product(%a: tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>, %b: tensor<32x16xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>>, %c: tensor<64x16xf8E5M2, #mma>) {
    // expected-error @below {{no instruction computes with f8E5M2}}
    %0 = tt.dot %a, %b, %c : tensor<64x32xf8E5M2, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> * tensor<32x16xf8E5M2, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>> -> tensor<64x16xf8E5M2, #mma>
    tt.return
  }
}

// -----

// expected-error @below {{64 warps of 32 threads: a block of cuda:90 has at most 1024 threads}}
module attributes {"ttg.num-warps" = 64 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
}

// -----

// expected-error @below {{programs of 2 blocks: a cluster of cuda:80 has at most 1}}
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
}

// -----

// expected-error @below {{"ttg.total-num-warps" is 2, fewer than the 4 of "ttg.num-warps"}}
module attributes {"ttg.num-warps" = 4 : i32, "ttg.total-num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
}
