// TTGIR that names no target, as people write it for Triton, is for the target that the caller names, or the default.
// REQUIRES: nvptx, amdgpu
// RUN: %ttc %s --target cuda:80 --emit ptx | FileCheck %s --check-prefix=SM80
// RUN: %ttc %s --emit ptx | FileCheck %s --check-prefix=SM90
// RUN: not %ttc %s --target hip:gfx942 --emit amdgcn 2>&1 | FileCheck %s --check-prefix=WAVES
// SM80: .target sm_80
// SM80: st.global
// SM90: .target sm_90a
// SM90: st.global
// WAVES: error: {{.*}}module has 32 threads per warp, the target hip:gfx942 has 64
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#wide = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%x: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
    %at = tt.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #blocked>
    %converted = ttg.convert_layout %at : tensor<512xi32, #blocked> -> tensor<512xi32, #wide>
    %base = tt.splat %x : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>, #wide>
    %pointers = tt.addptr %base, %converted : tensor<512x!tt.ptr<i32>, #wide>, tensor<512xi32, #wide>
    tt.store %pointers, %converted : tensor<512x!tt.ptr<i32>, #wide>
    tt.return
  }
}
