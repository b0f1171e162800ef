// Before dots have matrix instructions, the layouts of their operands are there for a while only: nothing moves to them. So the
// layout engine may run before accelerate-matmul, as in Triton's order.
// RUN: %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce --tritongpu-remove-layout-conversions | FileCheck %s --check-prefixes=CHECK,BEFORE
// RUN: %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce --tritongpu-remove-layout-conversions --tritongpu-remove-layout-conversions --tritongpu-optimize-thread-locality --tritongpu-accelerate-matmul --tritongpu-remove-layout-conversions | FileCheck %s --check-prefixes=CHECK,AFTER

// CHECK-DAG: [[A:#.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-DAG: [[B:#.*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @product
// BEFORE: [[X:%.*]] = tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>, [[A]]>
// BEFORE-NEXT: ttg.convert_layout [[X]] : {{.*}} -> tensor<128x64xf16, #ttg.dot_op<{opIdx = 0, parent = #blocked
// BEFORE-NEXT: [[Y:%.*]] = tt.load {{.*}} : tensor<64x128x!tt.ptr<f16>, [[B]]>
// BEFORE-NEXT: ttg.convert_layout [[Y]] : {{.*}} -> tensor<64x128xf16, #ttg.dot_op<{opIdx = 1, parent = #blocked
// AFTER: [[X:%.*]] = tt.load {{.*}} : tensor<128x64x!tt.ptr<f16>, [[A]]>
// AFTER-NEXT: [[Y:%.*]] = tt.load {{.*}} : tensor<64x128x!tt.ptr<f16>, [[B]]>
// AFTER-NEXT: ttg.local_alloc [[X]]
// AFTER-NEXT: ttg.local_alloc [[Y]]
// AFTER-NEXT: ttng.warp_group_dot
// The store keeps the layout that coalescing chose for it.
// CHECK: tt.store {{.*}} : tensor<128x128x!tt.ptr<f16>, [[B]]>
tt.func public @product(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %o: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %c64 = arith.constant dense<64> : tensor<128x1xi32>
  %c128 = arith.constant dense<128> : tensor<64x1xi32>
  %c128b = arith.constant dense<128> : tensor<128x1xi32>
  %row128 = tt.expand_dims %r128 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %row64 = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %col64 = tt.expand_dims %r64 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %col128 = tt.expand_dims %r128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %sa = arith.muli %row128, %c64 : tensor<128x1xi32>
  %sb = arith.muli %row64, %c128 : tensor<64x1xi32>
  %so = arith.muli %row128, %c128b : tensor<128x1xi32>
  %a0 = tt.broadcast %sa : tensor<128x1xi32> -> tensor<128x64xi32>
  %a1 = tt.broadcast %col64 : tensor<1x64xi32> -> tensor<128x64xi32>
  %ai = arith.addi %a0, %a1 : tensor<128x64xi32>
  %b0 = tt.broadcast %sb : tensor<64x1xi32> -> tensor<64x128xi32>
  %b1 = tt.broadcast %col128 : tensor<1x128xi32> -> tensor<64x128xi32>
  %bi = arith.addi %b0, %b1 : tensor<64x128xi32>
  %o0 = tt.broadcast %so : tensor<128x1xi32> -> tensor<128x128xi32>
  %o1 = tt.broadcast %col128 : tensor<1x128xi32> -> tensor<128x128xi32>
  %oi = arith.addi %o0, %o1 : tensor<128x128xi32>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<128x64x!tt.ptr<f16>>
  %qs = tt.splat %q : !tt.ptr<f16> -> tensor<64x128x!tt.ptr<f16>>
  %os = tt.splat %o : !tt.ptr<f16> -> tensor<128x128x!tt.ptr<f16>>
  %pa = tt.addptr %ps, %ai : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
  %pb = tt.addptr %qs, %bi : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
  %po = tt.addptr %os, %oi : tensor<128x128x!tt.ptr<f16>>, tensor<128x128xi32>
  %x = tt.load %pa : tensor<128x64x!tt.ptr<f16>>
  %y = tt.load %pb : tensor<64x128x!tt.ptr<f16>>
  %d = tt.dot %x, %y, %zero : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
  %t = arith.truncf %d : tensor<128x128xf32> to tensor<128x128xf16>
  tt.store %po, %t : tensor<128x128x!tt.ptr<f16>>
  tt.return
}
