// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s

// What partitions capture and what warp specialization results in keeps its layout: another one is made where it is
// needed, not beside the partitions and not by one more capture or result.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [32, 1], warpsPerCTA = [1, 4], order = [0, 1]}>

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// CHECK-LABEL: tt.func @captures(
// CHECK-SAME: %[[P:[a-z0-9]+]]: tensor<128x128x!tt.ptr<f32>, #[[A:[a-z0-9]+]]>, %[[Q:[a-z0-9]+]]: tensor<128x128x!tt.ptr<f32>, #[[B:[a-z0-9]+]]>)
// CHECK: %[[X:.+]] = tt.load %[[P]]
// CHECK: %[[R:.+]] = ttg.warp_specialize(%[[X]], %[[Q]])
// CHECK: default
// CHECK: ttg.warp_yield %[[X]]
// CHECK: partition0(%[[Y:[a-z0-9]+]]: tensor<128x128xf32, #[[A]]>, %[[T:[a-z0-9]+]]: {{.*}}) num_warps(4)
// CHECK: %[[C:.+]] = ttg.convert_layout %[[Y]]
// CHECK: tt.store %[[T]], %[[C]]
// CHECK: } : {{.*}} -> tensor<128x128xf32, #[[A]]>
// CHECK: %[[D:.+]] = ttg.convert_layout %[[R]]
// CHECK: tt.store %[[Q]], %[[D]]
tt.func @captures(%p: tensor<128x128x!tt.ptr<f32>, #a>, %q: tensor<128x128x!tt.ptr<f32>, #b>) {
  %x = tt.load %p : tensor<128x128x!tt.ptr<f32>, #a>
  %r = ttg.warp_specialize(%x, %q)
  default {
    ttg.warp_yield %x : tensor<128x128xf32, #a>
  }
  partition0(%y: tensor<128x128xf32, #a>, %t: tensor<128x128x!tt.ptr<f32>, #b>) num_warps(4) {
    %c = ttg.convert_layout %y : tensor<128x128xf32, #a> -> tensor<128x128xf32, #b>
    tt.store %t, %c : tensor<128x128x!tt.ptr<f32>, #b>
    ttg.warp_return
  } : (tensor<128x128xf32, #a>, tensor<128x128x!tt.ptr<f32>, #b>) -> tensor<128x128xf32, #a>
  %d = ttg.convert_layout %r : tensor<128x128xf32, #a> -> tensor<128x128xf32, #b>
  tt.store %q, %d : tensor<128x128x!tt.ptr<f32>, #b>
  tt.return
}

}
