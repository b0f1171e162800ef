// RUN: %ttopt %s -split-input-file -verify-diagnostics --tritongpu-accelerate-matmul

// expected-error @below {{needs the module attribute ttg.target with a known GPU, as in "cuda:90"}}
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
}

// -----

// expected-error @below {{needs the module attribute ttg.num-warps: run convert-triton-to-tritongpu first}}
module attributes {ttg.target = "cuda:90"} {
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @no_layout(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
    // expected-error @below {{'tt.dot' op has no layout: run convert-triton-to-tritongpu first}}
    %d = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    tt.return %d : tensor<16x16xf32>
  }
}

// -----

// A float and an integer have no type to be multiplied as.
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @no_common_type(%a: tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>>, %b: tensor<16x16xi32, #ttg.dot_op<{opIdx = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>>, %c: tensor<16x16xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>>) {
    // expected-error @below {{cannot multiply 'i32' as 'f32'}}
    %d = tt.dot %a, %b, %c : tensor<16x16xf32, #ttg.dot_op<{opIdx = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>> * tensor<16x16xi32, #ttg.dot_op<{opIdx = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>}>> -> tensor<16x16xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>>
    tt.return
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @six_bits(%a: tensor<64x64xi8, #blocked>, %s: tensor<64x2xi8, #blocked>, %c: tensor<64x64xf32, #blocked>) {
    // expected-error @below {{'tt.dot_scaled' op operands of format e2m3 are not supported}}
    %d = tt.dot_scaled %a scale %s, %a scale %s, %c lhs = e2m3 rhs = e2m3 {fastMath = false} : tensor<64x64xi8, #blocked>, tensor<64x2xi8, #blocked> * tensor<64x64xi8, #blocked>, tensor<64x2xi8, #blocked> -> tensor<64x64xf32, #blocked>
    tt.return
  }
}
