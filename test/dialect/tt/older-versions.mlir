// What Triton 3.4 to 3.8 print otherwise than 3.9 is read, and printed as 3.9 prints it.

// RUN: %ttc %s --emit ttir | FileCheck %s
// RUN: %ttc %s --emit ttir | %ttc - --emit ttir | FileCheck %s
// RUN: %ttc %s --emit ptx --target cuda:90 | FileCheck %s --check-prefix=PTX
// RUN: %ttopt %s --convert-triton-to-tritongpu='target=cuda:90 num-warps=4' | FileCheck %s --check-prefix=TTGIR
// RUN: not %ttc %S/Inputs/older-versions-twice.mlir --emit ttir 2>&1 | FileCheck %s --check-prefix=TWICE

// CHECK-LABEL: tt.func public @kernel(
// CHECK-SAME: %{{.*}}: !tt.tensordesc<8x32xf32>,
// PTX-LABEL: .visible .entry kernel(
tt.func public @kernel(%desc: !tt.tensordesc<tensor<8x32xf32>>, %m: i32, %n: i32, %s: i64, %one: i64, %p: !tt.ptr<f32>, %q: !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %zero = arith.constant dense<0.000000e+00> : tensor<128xf32>
  %mask = arith.constant dense<true> : tensor<128xi1>
  %i = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %pi = tt.addptr %ps, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
  %qi = tt.addptr %qs, %i : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
  // CHECK: tt.load %{{[^,]*}}, %{{.*}}, %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : tensor<128x!tt.ptr<f32>>
  %a = tt.load %pi, %mask, %zero cacheModifier = ca evictionPolicy = evict_first : tensor<128x!tt.ptr<f32>>
  // CHECK: tt.load %{{[^,]*}} {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>, isVolatile = true} : tensor<128x!tt.ptr<f32>>
  %b = tt.load %pi evictionPolicy = evict_last {isVolatile = true} : tensor<128x!tt.ptr<f32>>
  // CHECK: ttg.barrier all
  // CHECK-NOT: gpu.barrier
  // PTX: bar.sync
  // TTGIR: ttg.barrier all
  // TTGIR-NOT: gpu.barrier
  gpu.barrier
  // CHECK: tt.store %{{.*}}, %{{[^,]*}} {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : tensor<128x!tt.ptr<f32>>
  // PTX: st.global.wt
  tt.store %qi, %a cacheModifier = wt : tensor<128x!tt.ptr<f32>>
  // CHECK: tt.store %{{.*}}, %{{.*}}, %{{[^,]*}} {cachePolicy = #tt.cache_policy<cache_modifier = cs, eviction_policy = evict_normal>} : tensor<128x!tt.ptr<f32>>
  tt.store %qi, %b, %mask cacheModifier = cs : tensor<128x!tt.ptr<f32>>
  // CHECK: tt.make_tensor_descriptor {{.*}} : <f32>, <8x32xf32>
  %e = tt.make_tensor_descriptor %p, [%m, %n], [%s, %c1] : <f32>, <tensor<8x32xf32>>
  // CHECK: tt.descriptor_load %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_last>} : !tt.tensordesc<8x32xf32> -> tensor<8x32xf32>
  %t = tt.descriptor_load %desc[%c0, %c0] evictionPolicy = evict_last : !tt.tensordesc<tensor<8x32xf32>> -> tensor<8x32xf32>
  // CHECK: tt.descriptor_store %{{.*}} : !tt.tensordesc<8x32xf32>, tensor<8x32xf32>
  tt.descriptor_store %e[%c0, %c0], %t : !tt.tensordesc<tensor<8x32xf32>>, tensor<8x32xf32>
  tt.return
}
// TWICE: error: expected ':'
