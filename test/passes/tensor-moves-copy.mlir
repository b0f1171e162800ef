// RUN: %ttc %s --target hip:gfx1250 --emit ttgir | FileCheck %s
// RUN: %ttc %s --target hip:gfx1250 --emit amdgcn | FileCheck %s --check-prefix=ASM

// A block that threads compute with is read 16 bytes at once, whatever is known of its descriptor, and written so.

// CHECK: #[[B:[a-z0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK: ttg.local_load {{.*}} -> tensor<64x64xf16, #[[B]]>
// CHECK: ttg.local_alloc {{.*}} : (tensor<64x64xf16, #[[B]]>)
// ASM:         tensor_load_to_lds
// ASM-COUNT-4: ds_load_b128
// ASM-COUNT-4: ds_store_b128
// ASM:         tensor_store_from_lds
tt.func public @twice(%p: !tt.ptr<f16>, %q: !tt.ptr<f16>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %s1 = arith.constant 1 : i64
  %s = arith.extsi %n : i32 to i64
  %from = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16>
  %to = tt.make_tensor_descriptor %q, [%n, %n], [%s, %s1] : <f16>, <64x64xf16>
  %v = tt.descriptor_load %from[%c0, %c0] : !tt.tensordesc<64x64xf16> -> tensor<64x64xf16>
  %v2 = arith.addf %v, %v : tensor<64x64xf16>
  tt.descriptor_store %to[%c0, %c0], %v2 : !tt.tensordesc<64x64xf16>, tensor<64x64xf16>
  tt.return
}
