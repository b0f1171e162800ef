// TTGIR that Triton 3.4 and 3.5 print otherwise than 3.9 is read, and printed as 3.9 prints it.

// RUN: split-file %s %t
// RUN: %ttc %t/good.mlir --emit ttgir --target cuda:90 | FileCheck %t/good.mlir
// RUN: %ttc %t/good.mlir --emit ttgir --target cuda:90 | %ttc - --emit ttgir --target cuda:90 | FileCheck %t/good.mlir
// RUN: %ttc %t/good.mlir --emit llvmir --target cuda:90 | FileCheck %t/good.mlir --check-prefix=LLVM
// RUN: not %ttc %t/rank.mlir --emit ttgir 2>&1 | FileCheck %t/rank.mlir
// RUN: not %ttc %t/dynamic.mlir --emit ttgir 2>&1 | FileCheck %t/dynamic.mlir
// RUN: not %ttc %t/type.mlir --emit ttgir 2>&1 | FileCheck %t/type.mlir
// RUN: not %ttc %t/part.mlir --emit ttgir 2>&1 | FileCheck %t/part.mlir

//--- good.mlir
#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // LLVM: @callee(
  tt.func private @callee(%p: tensor<32x64x!tt.ptr<f32>, #blocked>, %i: i32) -> tensor<32x64xf32, #blocked> attributes {noinline = true} {
    %c0 = arith.constant 0 : i32
    %c16 = arith.constant 16 : i32
    // CHECK: %[[BUFFERS:.*]] = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    %buffers = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // 3.4: the offsets of a view, of which the first is the buffer's number; 3.5: the number.
    // CHECK: %[[OLD:.*]] = ttg.memdesc_index %[[BUFFERS]][%{{.*}}] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %old = ttg.memdesc_subview %buffers[%i, %c0, %c0] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64>
    // CHECK: %[[NEW:.*]] = ttg.memdesc_index %[[BUFFERS]][%{{.*}}] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    %new = ttg.memdesc_index %buffers[%i] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64>
    // Parts of one, and of one of several.
    // CHECK: ttg.memdesc_subslice %[[OLD]][0, 16] : {{.*}} -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 32x64>
    %part = ttg.memdesc_subview %old[%c0, %c16] : !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64> -> !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 3x32x64>
    // CHECK: %[[WHOLE:.*]] = ttg.memdesc_index %[[BUFFERS]]
    // CHECK: ttg.memdesc_subslice %[[WHOLE]][16, 0] : {{.*}} -> !ttg.memdesc<16x64xf32, #shared, #smem, mutable, 32x64>
    %both = ttg.memdesc_subview %buffers[%i, %c16, %c0] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<16x64xf32, #shared, #smem, mutable, 3x32x64>
    // LLVM: cp.async
    // CHECK: %[[COPY:.*]] = ttg.async_copy_global_to_local
    %copy = ttg.async_copy_global_to_local %p, %old : tensor<32x64x!tt.ptr<f32>, #blocked> -> <32x64xf32, #shared, #smem, mutable, 3x32x64>
    // CHECK: %[[GROUP:.*]] = ttg.async_commit_group tokens %[[COPY]]
    %group = ttg.async_commit_group %copy
    // CHECK: %[[NONE:.*]] = ttg.async_commit_group{{$}}
    %none = ttg.async_commit_group
    // CHECK: ttg.async_wait %[[GROUP]], %[[NONE]] {num = 0 : i32}
    %wait = ttg.async_wait %group, %none {num = 0 : i32}
    %value = ttg.local_load %new token %wait : !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64> -> tensor<32x64xf32, #blocked>
    tt.return %value : tensor<32x64xf32, #blocked>
  }
  tt.func public @kernel(%i: i32) {
    %p = arith.constant dense<0> : tensor<32x64xi64, #blocked>
    %q = tt.int_to_ptr %p : tensor<32x64xi64, #blocked> -> tensor<32x64x!tt.ptr<f32>, #blocked>
    %v = tt.call @callee(%q, %i) : (tensor<32x64x!tt.ptr<f32>, #blocked>, i32) -> tensor<32x64xf32, #blocked>
    tt.store %q, %v : tensor<32x64x!tt.ptr<f32>, #blocked>
    tt.return
  }
}

//--- rank.mlir
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%i: i32) {
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // CHECK: rank.mlir:7:10: error: 'ttg.memdesc_subview' op must have an offset for each dimension of the source, and drop the first one or none
    %v = ttg.memdesc_subview %m[%i, %i] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64>
    tt.return
  }
}

//--- dynamic.mlir
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%i: i32) {
    %c0 = arith.constant 0 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // CHECK: dynamic.mlir:8:10: error: 'ttg.memdesc_subview' op offsets within a buffer must be constants of 32 bits
    %v = ttg.memdesc_subview %m[%c0, %i, %c0] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable, 3x32x64>
    tt.return
  }
}

//--- type.mlir
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel(%i: i32) {
    %c0 = arith.constant 0 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable>
    // CHECK: type.mlir:8:10: error: 'ttg.memdesc_subview' op gives a !ttg.memdesc<32x64xf32, {{.*}}>, but must give a !ttg.memdesc<32x64xf32, {{.*}}, mutable>
    %v = ttg.memdesc_subview %m[%c0, %c0, %c0] : !ttg.memdesc<3x32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x64xf32, #shared, #smem>
    tt.return
  }
}

//--- part.mlir
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @kernel() {
    %c0 = arith.constant 0 : i32
    %c48 = arith.constant 48 : i32
    %m = ttg.local_alloc : () -> !ttg.memdesc<32x64xf32, #shared, #smem, mutable>
    // CHECK: part.mlir:10:10: error: 'ttg.memdesc_subslice' op
    // CHECK: part.mlir:10:10: error: 'ttg.memdesc_subview' op is no view of its buffer
    %v = ttg.memdesc_subview %m[%c0, %c48] : !ttg.memdesc<32x64xf32, #shared, #smem, mutable> -> !ttg.memdesc<32x32xf32, #shared, #smem, mutable, 32x64>
    tt.return
  }
}
