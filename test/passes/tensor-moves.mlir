// RUN: %ttopt %s --triton-rewrite-tensor-descriptor-to-pointer="target=hip:gfx1250 explain=true" -o /dev/null 2>&1 | FileCheck %s --check-prefix=WHY --allow-empty
// RUN: %ttc %s --target hip:gfx1250 --num-stages 3 --emit amdgcn | FileCheck %s --check-prefix=ASM
// RUN: %ttc %s --target hip:gfx1250 --emit ttgir --num-stages 3 | FileCheck %s
// RUN: %ttc %s --target hip:gfx950 --emit ttgir | FileCheck %s --check-prefix=OTHER

// Descriptors of TTIR are tensor operations on gfx1250: loads that a dot multiplies have rings of padded rows, a store is moved from a buffer and
// waited for. Elsewhere they are pointers.
// WHY-NOT: remark
// CHECK-DAG:   #[[A:[a-z0-9]*]] = #ttg.padded_shared<[64:+8] {order = [1, 0], shape = [128, 64]}>
// CHECK-DAG:   #[[C:[a-z0-9]*]] = #ttg.padded_shared<[128:+8] {order = [1, 0], shape = [128, 128]}>
// CHECK-LABEL: @matmul
// CHECK-NOT:     tt.load
// CHECK-COUNT-2: ttg.local_alloc : () -> !ttg.memdesc<3x128x64xf16, #[[A]], #smem, mutable>
// CHECK:         amdg.update_tensor_descriptor {{.*}} pred = %{{[a-z0-9_]*}} {clamp_bounds}
// CHECK-COUNT-4: amdg.async_tdm_copy_global_to_local
// CHECK:         scf.for
// CHECK:           ttg.async_wait {num = 1 : i32}
// CHECK-COUNT-2:   amdg.async_tdm_copy_global_to_local
// CHECK-COUNT-2:   ttg.local_load
// CHECK:           tt.dot
// CHECK:         ttg.local_alloc %{{.*}} -> !ttg.memdesc<128x128xf16, #[[C]], #smem>
// CHECK:         amdg.async_tdm_copy_local_to_global
// CHECK-NEXT:    amdg.async_tdm_wait %{{.*}} {num = 0 : i32}
// Of three iterations two are under way at a wait: the copies of one, a copy of each operand.
// ASM-LABEL: matmul:
// ASM-COUNT-4: tensor_load_to_lds
// ASM:         s_wait_tensorcnt 0x2
// ASM-COUNT-2: tensor_load_to_lds
// ASM:         v_wmma
// ASM:         tensor_store_from_lds
// ASM-NEXT:    s_wait_tensorcnt 0x0
// OTHER-LABEL: @matmul
// OTHER-NOT:     descriptor
// OTHER:         tt.store
tt.func public @matmul(%a_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %b_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %c_ptr: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %M: i32 {tt.divisibility = 16 : i32}, %N: i32 {tt.divisibility = 16 : i32}, %K: i32 {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
  %c64 = arith.constant 64 : i32
  %c0 = arith.constant 0 : i32
  %c128 = arith.constant 128 : i32
  %one = arith.constant 1 : i64
  %k64 = arith.extsi %K : i32 to i64
  %a_desc = tt.make_tensor_descriptor %a_ptr, [%M, %K], [%k64, %one] : <f16>, <128x64xf16>
  %b_desc = tt.make_tensor_descriptor %b_ptr, [%N, %K], [%k64, %one] : <f16>, <128x64xf16>
  %n64 = arith.extsi %N : i32 to i64
  %c_desc = tt.make_tensor_descriptor %c_ptr, [%M, %N], [%n64, %one] : <f16>, <128x128xf16>
  %x = tt.get_program_id x : i32
  %m0 = arith.muli %x, %c128 : i32
  %y = tt.get_program_id y : i32
  %n0 = arith.muli %y, %c128 : i32
  %sum = scf.for %k = %c0 to %K step %c64 iter_args(%acc = %zero) -> (tensor<128x128xf32>) : i32 {
    %a = tt.descriptor_load %a_desc[%m0, %k] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
    %b = tt.descriptor_load %b_desc[%n0, %k] : !tt.tensordesc<128x64xf16> -> tensor<128x64xf16>
    %bt = tt.trans %b {order = array<i32: 1, 0>} : tensor<128x64xf16> -> tensor<64x128xf16>
    %next = tt.dot %a, %bt, %acc, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
    scf.yield %next : tensor<128x128xf32>
  }
  %c = arith.truncf %sum : tensor<128x128xf32> to tensor<128x128xf16>
  tt.descriptor_store %c_desc[%m0, %n0], %c : !tt.tensordesc<128x128xf16>, tensor<128x128xf16>
  tt.return
}
