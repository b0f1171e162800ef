// RUN: %ttopt %s --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --allocate-shared-memory-nv --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// All registers of a thread are operands of one piece of assembly, and so are its results.
// CHECK-LABEL: llvm.func internal @registers(
// CHECK-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32, %[[S:[^:]*]]: f32)
// CHECK:         %[[R:.*]] = llvm.inline_asm "swap", "=f,=f,=r,f,f,f" %[[X0]], %[[X1]], %[[S]] : (f32, f32, f32) -> !llvm.struct<(f32, f32, i32)>
// CHECK-DAG:     llvm.extractvalue %[[R]][0]
// CHECK-DAG:     llvm.extractvalue %[[R]][1]
// CHECK-DAG:     llvm.extractvalue %[[R]][2]
tt.func private @registers(%x: tensor<64xf32, #b>, %s: f32) -> (tensor<64xf32, #b>, i32) {
  %0:2 = ttg.inline_asm "swap" {constraints = "=f,=f,=r,f,f,f", pure = true} %x, %s : (tensor<64xf32, #b>, f32) -> (tensor<64xf32, #b>, i32)
  tt.return %0#0, %0#1 : tensor<64xf32, #b>, i32
}

// Constraints may have spaces between them.
// CHECK-LABEL: llvm.func internal @spaces(
// CHECK:         llvm.inline_asm "ex2.approx.ftz.f32 $0, $1;", "=r, r "
tt.func private @spaces(%x: tensor<64xf32, #b>) -> tensor<64xf32, #b> {
  %0 = tt.elementwise_inline_asm "ex2.approx.ftz.f32 $0, $1;" {constraints = "=r, r ", packed_element = 1 : i32, pure = true} %x : tensor<64xf32, #b> -> tensor<64xf32, #b>
  tt.return %0 : tensor<64xf32, #b>
}

// A buffer is its address. What has no result stays.
// CHECK-LABEL: llvm.func internal @buffer(
// CHECK:         %[[A:.*]] = llvm.ptrtoint %{{.*}} : !llvm.ptr<3> to i32
// CHECK:         llvm.inline_asm has_side_effects "st.shared.b32 [$0], 0;", "r" %[[A]] : (i32) -> ()
// CHECK:         llvm.inline_asm has_side_effects "membar.gl;", "" : () -> ()
tt.func private @buffer() {
  %0 = ttg.local_alloc : () -> !ttg.memdesc<64xi32, #shared, #smem, mutable>
  ttg.inline_asm "st.shared.b32 [$0], 0;" {constraints = "r", pure = false} %0 : (!ttg.memdesc<64xi32, #shared, #smem, mutable>) -> ()
  ttg.inline_asm "membar.gl;" {constraints = "", pure = false} : () -> ()
  tt.return
}
}
