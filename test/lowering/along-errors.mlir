// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @reduce(%x: tensor<128xf32, #line>) -> f32 {
  // expected-error @+1 {{has no shared memory: run --allocate-shared-memory-nv first}}
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<128xf32, #line>) -> f32
  tt.return %s : f32
}
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @cat(%a: tensor<32xf32, #line>, %b: tensor<32xf32, #line>) -> tensor<64xf32, #line> {
  // expected-error @+1 {{the threads that hold replicas of the result are not those that hold replicas of the operands}}
  %c = tt.cat %a, %b : tensor<32xf32, #line> -> tensor<64xf32, #line>
  tt.return %c : tensor<64xf32, #line>
}
}

// -----

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#other = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @histogram(%x: tensor<128xf32, #line>, %y: tensor<128xi32, #line>) -> tensor<32xi32, #other> {
  // expected-error @+1 {{has no shared memory: run --allocate-shared-memory-nv first}}
  %h = tt.histogram %y : tensor<128xi32, #line> -> tensor<32xi32, #other>
  tt.return %h : tensor<32xi32, #other>
}
}

// -----

#warps = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [1, 4], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.shared = 1024 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @gather(%x: tensor<64x1024xf32, #warps>, %i: tensor<64x1024xi32, #warps>) -> tensor<64x1024xf32, #warps> {
  // expected-error @+1 {{262144 bytes of shared memory are needed, 232448 are allowed}}
  %g = tt.gather %x[%i] {axis = 1 : i32, allocation.offset = 0 : i32} : (tensor<64x1024xf32, #warps>, tensor<64x1024xi32, #warps>) -> tensor<64x1024xf32, #warps>
  tt.return %g : tensor<64x1024xf32, #warps>
}
}
