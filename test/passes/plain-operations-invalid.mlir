// RUN: %ttopt %s --tritonamdgpu-plain-operations -verify-diagnostics

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
tt.func @exponents(%x: tensor<128x64xf8E4M3FN, #a>, %s: tensor<128x64xi8, #a>) -> tensor<128x64xbf16, #a> {
  // expected-error @+1 {{has scales that are no bf16, which is not supported}}
  %y = amdg.scaled_upcast_fp8 %x scale %s : tensor<128x64xf8E4M3FN, #a>, tensor<128x64xi8, #a> -> tensor<128x64xbf16, #a>
  tt.return %y : tensor<128x64xbf16, #a>
}
}
