// What dots read is the buffer that a copy through a descriptor fills. Rows of 128 elements in four warps are as long as
// what a thread each holds: registers then hold neighbours along columns, which says nothing about memory. The blocks of
// the left operand have one more dimension, of one element.
// RUN: %ttc %s --target cuda:90 --num-warps 4 --num-stages 2 --emit ttgir | FileCheck %s
// In a cluster, too, there is no copy for the right operand.
// RUN: %ttc %s --target cuda:90 --num-warps 4 --num-stages 2 --num-ctas 2 --emit ttgir | FileCheck %s --check-prefix=CTAS

// CHECK-DAG: #[[A:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[BLOCK:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK-LABEL: @product
// CHECK: scf.for
// CHECK-NOT: ttg.local_load
// CHECK-NOT: ttg.local_store
// CHECK: ttng.warp_group_dot {{.*}} : !ttg.memdesc<128x64xbf16, #[[A]], #smem, mutable> * !ttg.memdesc<64x128xbf16, #[[A]], #smem, mutable>
// CHECK: ttng.async_tma_copy_global_to_local {{.*}} : !tt.tensordesc<1x128x64xbf16, #[[BLOCK]]>, {{.*}} -> !ttg.memdesc<128x64xbf16, #[[A]], #smem, mutable>
// CHECK: scf.yield
// CHECK: ttng.async_tma_copy_local_to_global {{.*}} : !tt.tensordesc<1x128x128xbf16, #[[BLOCK]]>, !ttg.memdesc<128x128xbf16, #[[A]], #smem>
// CTAS-LABEL: @product
// CTAS: scf.for
// CTAS-NOT: ttg.local_store
// CTAS: scf.yield
module {
tt.func public @product(%a: !tt.tensordesc<1x128x64xbf16>, %b: !tt.tensordesc<64x128xbf16>, %c: !tt.tensordesc<1x128x128xbf16>, %n: i32) {
  %zero = arith.constant 0 : i32
  %step = arith.constant 64 : i32
  %none = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %batch = tt.get_program_id x : i32
  %sum = scf.for %k = %zero to %n step %step iter_args(%s = %none) -> (tensor<128x128xf32>) : i32 {
    %x = tt.descriptor_load %a[%batch, %zero, %k] : !tt.tensordesc<1x128x64xbf16> -> tensor<128x64xbf16>
    %y = tt.descriptor_load %b[%k, %zero] : !tt.tensordesc<64x128xbf16> -> tensor<64x128xbf16>
    %d = tt.dot %x, %y, %s : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
    scf.yield %d : tensor<128x128xf32>
  }
  %r = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xbf16>
  tt.descriptor_store %c[%batch, %zero, %zero], %r : !tt.tensordesc<1x128x128xbf16>, tensor<128x128xbf16>
  tt.return
}
}
