// RUN: %ttopt %s -split-input-file --tritongpu-optimize-dot-operands | FileCheck %s

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#turned = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#other = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // The buffer is filled as the operand came, and seen transposed.
  // CHECK-DAG: #[[ROWS:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
  // CHECK-DAG: #[[COLUMNS:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
  // CHECK-LABEL: @transposed
  // CHECK: %[[BUFFER:.+]] = ttg.local_alloc %arg0 : (tensor<128x64xf16, #blocked>) -> !ttg.memdesc<128x64xf16, #[[ROWS]], #smem>
  // CHECK: %[[VIEW:.+]] = ttg.memdesc_trans %[[BUFFER]] {order = array<i32: 1, 0>} : !ttg.memdesc<128x64xf16, #[[ROWS]], #smem> -> !ttg.memdesc<64x128xf16, #[[COLUMNS]], #smem>
  // CHECK: tt.return %[[VIEW]]
  tt.func @transposed(%x: tensor<128x64xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem> {
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #blocked> -> tensor<64x128xf16, #turned>
    %b = ttg.local_alloc %t : (tensor<64x128xf16, #turned>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
    tt.return %b : !ttg.memdesc<64x128xf16, #shared, #smem>
  }

  // Also through a conversion, which the buffer does without.
  // CHECK-LABEL: @converted
  // CHECK-NEXT: ttg.local_alloc %arg0
  // CHECK-NEXT: ttg.memdesc_trans
  tt.func @converted(%x: tensor<128x64xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem> {
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #blocked> -> tensor<64x128xf16, #turned>
    %c = ttg.convert_layout %t : tensor<64x128xf16, #turned> -> tensor<64x128xf16, #other>
    %b = ttg.local_alloc %c : (tensor<64x128xf16, #other>) -> !ttg.memdesc<64x128xf16, #shared, #smem>
    tt.return %b : !ttg.memdesc<64x128xf16, #shared, #smem>
  }

  // A buffer that may be written is no view.
  // CHECK-LABEL: @mutable
  // CHECK: tt.trans
  // CHECK: ttg.local_alloc
  // CHECK-NOT: memdesc_trans
  tt.func @mutable(%x: tensor<128x64xf16, #blocked>) -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable> {
    %t = tt.trans %x {order = array<i32: 1, 0>} : tensor<128x64xf16, #blocked> -> tensor<64x128xf16, #turned>
    %b = ttg.local_alloc %t : (tensor<64x128xf16, #turned>) -> !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
    tt.return %b : !ttg.memdesc<64x128xf16, #shared, #smem, mutable>
  }
}
