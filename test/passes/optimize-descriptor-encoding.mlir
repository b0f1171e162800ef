// RUN: %ttopt %s --triton-nvidia-optimize-descriptor-encoding -split-input-file -verify-diagnostics | FileCheck %s

// The layout follows from the block: the widest swizzle that its rows fill; none for fewer than eight rows.
// CHECK-DAG: #[[WIDE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[NARROW:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 32, transposed = false, elementBitWidth = 32}>
// CHECK-DAG: #[[FLAT:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 16}>
// CHECK-DAG: #[[CUBE:.*]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, rank = 3}>
// CHECK: tt.func public @all(%{{.*}}: !tt.tensordesc<64x64xf16, #[[WIDE]]>, %{{.*}}: !tt.tensordesc<16x8xf32, #[[NARROW]]>, %{{.*}}: !tt.tensordesc<4x64xf16, #[[FLAT]]>, %{{.*}}: !tt.tensordesc<2x4x128xui8, #[[CUBE]]>
// CHECK: tt.make_tensor_descriptor {{.*}} : <f16>, <64x64xf16, #[[WIDE]]>
// CHECK: scf.for {{.*}} -> (!tt.tensordesc<64x64xf16, #[[WIDE]]>)
// CHECK: tt.call @callee({{.*}}) : (!tt.tensordesc<64x64xf16, #[[WIDE]]>) -> ()
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @all(%a: !tt.tensordesc<64x64xf16>, %b: !tt.tensordesc<16x8xf32>, %c: !tt.tensordesc<4x64xf16>, %e: !tt.tensordesc<2x4x128xui8>, %p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f16>, <64x64xf16>
  %r = scf.for %i = %c0 to %n step %one iter_args(%x = %d) -> (!tt.tensordesc<64x64xf16>) : i32 {
    scf.yield %x : !tt.tensordesc<64x64xf16>
  }
  tt.call @callee(%r) : (!tt.tensordesc<64x64xf16>) -> ()
  tt.return
}
// CHECK: tt.func private @callee(%{{.*}}: !tt.tensordesc<64x64xf16, #[[WIDE]]>)
tt.func private @callee(%d: !tt.tensordesc<64x64xf16>) {
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{!tt.tensordesc<64x4xf16> has no layout in shared memory: TMA copies rows of multiples of 16 bytes}}
tt.func public @narrow(%a: !tt.tensordesc<64x4xf16>) {
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{!tt.tensordesc<64x64xf16> has no layout in shared memory: the target cuda:80 has no bulk tensor copies}}
tt.func public @old(%a: !tt.tensordesc<64x64xf16>) {
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{returns a tensor descriptor: run --triton-rewrite-tensor-descriptor-to-pointer first}}
tt.func private @returns(%a: !tt.tensordesc<64x64xf16>) -> !tt.tensordesc<64x64xf16> {
  tt.return %a : !tt.tensordesc<64x64xf16>
}
}
