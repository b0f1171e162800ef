// RUN: %ttopt %s -split-input-file --tritongpu-fit-shared-memory | FileCheck %s

// Two buffers of 32 KiB that wait together with a third do not fit in 64 KiB.

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // One write moves to where its first read is; no read becomes a conversion.
  // CHECK-LABEL: @sinks
  // CHECK:         %[[X:.*]] = ttg.local_alloc %arg0
  // CHECK-NEXT:    %[[Z:.*]] = ttg.local_alloc %arg2
  // CHECK-NEXT:    ttg.local_load %[[X]]
  // CHECK-NEXT:    %[[Y:.*]] = ttg.local_alloc %arg1
  // CHECK-NEXT:    ttg.local_load %[[Y]]
  // CHECK-NEXT:    ttg.local_load %[[Z]]
  // CHECK-NOT:     convert_layout
  tt.func @sinks(%x: tensor<128x128xf16, #blocked>, %y: tensor<128x128xf16, #blocked>, %z: tensor<128x128xf16, #blocked>) -> (tensor<128x128xf16, #a>, tensor<128x128xf16, #a>, tensor<128x128xf16, #a>) {
    %0 = ttg.local_alloc %x : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %1 = ttg.local_alloc %y : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %2 = ttg.local_alloc %z : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %3 = ttg.local_load %0 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
    %4 = ttg.local_load %1 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
    %5 = ttg.local_load %2 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
    tt.return %3, %4, %5 : tensor<128x128xf16, #a>, tensor<128x128xf16, #a>, tensor<128x128xf16, #a>
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [16, 16, 16], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // The loop reads all three. A conversion needs 32 KiB while it runs, so two are converted in each iteration.
  // CHECK-LABEL: @converts
  // CHECK:         ttg.local_alloc %arg
  // CHECK-NOT:     ttg.local_alloc
  // CHECK:         scf.for
  // CHECK-COUNT-2:   ttg.convert_layout %arg{{[0-2]}} : tensor<128x128xf16, #blocked> -> tensor<128x128xf16, #ttg.dot_op
  tt.func @converts(%x: tensor<128x128xf16, #blocked>, %y: tensor<128x128xf16, #blocked>, %z: tensor<128x128xf16, #blocked>, %n: i32) -> tensor<128x128xf16, #a> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf16, #a>
    %0 = ttg.local_alloc %x : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %1 = ttg.local_alloc %y : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %2 = ttg.local_alloc %z : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %3 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<128x128xf16, #a>) : i32 {
      %4 = ttg.local_load %0 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
      %5 = arith.addf %acc, %4 : tensor<128x128xf16, #a>
      %6 = ttg.local_load %1 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
      %7 = arith.addf %5, %6 : tensor<128x128xf16, #a>
      %8 = ttg.local_load %2 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #a>
      %9 = arith.addf %7, %8 : tensor<128x128xf16, #a>
      scf.yield %9 : tensor<128x128xf16, #a>
    }
    tt.return %3 : tensor<128x128xf16, #a>
  }
}

// -----

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
  // What fits stays as it is.
  // CHECK-LABEL: @fits
  // CHECK:         ttg.local_alloc %arg0
  // CHECK-NEXT:    ttg.local_alloc %arg1
  // CHECK-NOT:     convert_layout
  tt.func @fits(%x: tensor<128x128xf16, #blocked>, %y: tensor<128x128xf16, #blocked>) -> (tensor<128x128xf16, #blocked>, tensor<128x128xf16, #blocked>) {
    %0 = ttg.local_alloc %x : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %1 = ttg.local_alloc %y : (tensor<128x128xf16, #blocked>) -> !ttg.memdesc<128x128xf16, #shared, #smem>
    %2 = ttg.local_load %0 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #blocked>
    %3 = ttg.local_load %1 : !ttg.memdesc<128x128xf16, #shared, #smem> -> tensor<128x128xf16, #blocked>
    tt.return %2, %3 : tensor<128x128xf16, #blocked>, tensor<128x128xf16, #blocked>
  }
}
