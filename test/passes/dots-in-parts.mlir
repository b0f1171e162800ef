// RUN: %ttopt %s --tritongpu-dots-in-parts=explain=true -split-input-file 2>%t.said | FileCheck %s
// RUN: FileCheck %s --check-prefix=SAID < %t.said

#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 128, 32]}>
#a = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#b = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 8}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A thread holds 128 sums and 128 products. What runs beside the dot runs beside its first part.
  // SAID: remark: is multiplied and passed on in 2 parts of its rows: a thread would need {{[0-9]+}} registers and has 255
  // CHECK-LABEL: @rows
  // CHECK:         %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<64x128xf32, #mma>
  // CHECK:         %[[A0:.*]] = ttg.memdesc_subslice %[[A:.*]][0, 0] : {{.*}} -> !ttg.memdesc<64x128xf8E4M3FN, #{{.*}}, #smem, mutable, 128x128>
  // CHECK-NEXT:    %[[D0:.*]] = ttng.warp_group_dot %[[A0]], %[[B:.*]], %[[ZERO]] {isAsync = true
  // CHECK-NEXT:    tt.addptr
  // CHECK-NEXT:    %[[W0:.*]] = ttng.warp_group_dot_wait %[[D0]] {pendings = 0 : i32}
  // CHECK-NEXT:    %[[A1:.*]] = ttg.memdesc_subslice %[[A]][64, 0]
  // CHECK-NEXT:    %[[D1:.*]] = ttng.warp_group_dot %[[A1]], %[[B]], %[[ZERO]] {isAsync = true
  // CHECK-NEXT:    %[[W1:.*]] = ttng.warp_group_dot_wait %[[D1]] {pendings = 0 : i32}
  // CHECK-NEXT:    %[[ALL:.*]] = amdg.concat %[[W0]], %[[W1]]
  // CHECK-NEXT:    arith.mulf %[[ALL]]
  tt.func @rows(%a: !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable>, %scale: tensor<128x128xf32, #mma>, %n: i32, %p: !tt.ptr<f32>) -> tensor<128x128xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
    %half = arith.constant dense<5.000000e-01> : tensor<128x128xf32, #mma>
    %sum:2 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %q = %p) -> (tensor<128x128xf32, #mma>, !tt.ptr<f32>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true, maxNumImpreciseAcc = 128 : i32} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable> * !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable> -> tensor<128x128xf32, #mma>
      %next = tt.addptr %q, %c1 : !tt.ptr<f32>, i32
      %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<128x128xf32, #mma>
      %m = arith.mulf %w, %half : tensor<128x128xf32, #mma>
      %t = arith.addf %s, %m : tensor<128x128xf32, #mma>
      scf.yield %t, %next : tensor<128x128xf32, #mma>, !tt.ptr<f32>
    }
    tt.return %sum#0 : tensor<128x128xf32, #mma>
  }

  // The next iteration's dot adds to what this one gives: there is nothing to pass on.
  // CHECK-LABEL: @adds
  // CHECK:         ttng.warp_group_dot {{.*}} -> tensor<128x128xf32
  // CHECK-NOT:     ttng.warp_group_dot {{.*}} -> tensor<64x128xf32
  tt.func @adds(%a: !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable>, %other: tensor<128x128xf32, #mma>, %n: i32) -> (tensor<128x128xf32, #mma>, tensor<128x128xf32, #mma>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<128x128xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %s {maxNumImpreciseAcc = 128 : i32} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable> * !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable> -> tensor<128x128xf32, #mma>
      scf.yield %d : tensor<128x128xf32, #mma>
    }
    tt.return %sum, %other : tensor<128x128xf32, #mma>, tensor<128x128xf32, #mma>
  }

  // Rows are reduced, for which all columns are needed, and other sums wait: all of the result is there at once in any case.
  // CHECK-LABEL: @reduces
  // CHECK-NOT:     ttng.warp_group_dot {{.*}} -> tensor<64x128xf32
  // CHECK:         tt.return
  tt.func @reduces(%a: !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable>, %sums: tensor<128x128xf32, #mma>) -> (tensor<128x128xf32, #mma>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
    %d = ttng.warp_group_dot %a, %b, %zero {maxNumImpreciseAcc = 128 : i32} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable> * !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable> -> tensor<128x128xf32, #mma>
    %max = "tt.reduce"(%d) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tt.reduce.return %z : f32
    }) : (tensor<128x128xf32, #mma>) -> tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>
    %t = arith.addf %sums, %d : tensor<128x128xf32, #mma>
    tt.return %t, %max : tensor<128x128xf32, #mma>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #mma}>>
  }

  // Another dot has begun before the first one is awaited.
  // CHECK-LABEL: @two
  // CHECK-NOT:     ttng.warp_group_dot {{.*}} -> tensor<64x128xf32
  // CHECK:         tt.return
  tt.func @two(%a: !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable>, %b: !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable>, %sums: tensor<128x128xf32, #mma>) -> (tensor<128x128xf32, #mma>, tensor<128x128xf32, #mma>) {
    %zero = arith.constant dense<0.000000e+00> : tensor<128x128xf32, #mma>
    %half = arith.constant dense<5.000000e-01> : tensor<128x128xf32, #mma>
    %d = ttng.warp_group_dot %a, %b, %zero {isAsync = true, maxNumImpreciseAcc = 128 : i32} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable> * !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable> -> tensor<128x128xf32, #mma>
    %e = ttng.warp_group_dot %a, %b, %sums {isAsync = true, maxNumImpreciseAcc = 128 : i32} : !ttg.memdesc<128x128xf8E4M3FN, #a, #smem, mutable> * !ttg.memdesc<128x128xf8E4M3FN, #b, #smem, mutable> -> tensor<128x128xf32, #mma>
    %w = ttng.warp_group_dot_wait %d {pendings = 0 : i32} : tensor<128x128xf32, #mma>
    %v = ttng.warp_group_dot_wait %e {pendings = 0 : i32} : tensor<128x128xf32, #mma>
    %m = arith.mulf %w, %half : tensor<128x128xf32, #mma>
    tt.return %m, %v : tensor<128x128xf32, #mma>, tensor<128x128xf32, #mma>
  }
}

// -----

// One instruction has 64 rows for four warps, so the columns are cut.
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // SAID: remark: is multiplied and passed on in 2 parts of its columns
  // CHECK-LABEL: @columns
  // CHECK:         ttg.memdesc_subslice %{{.*}}[0, 0] : {{.*}} -> !ttg.memdesc<64x128xf16, #{{.*}}, #smem, 64x256>
  // CHECK:         ttng.warp_group_dot {{.*}} -> tensor<64x128xf32
  // CHECK:         ttg.memdesc_subslice %{{.*}}[0, 128]
  // CHECK:         ttng.warp_group_dot {{.*}} -> tensor<64x128xf32
  // CHECK:         amdg.concat {{.*}} -> tensor<64x256xf32
  tt.func @columns(%a: !ttg.memdesc<64x64xf16, #shared, #smem>, %b: !ttg.memdesc<64x256xf16, #shared, #smem>, %n: i32) -> tensor<64x256xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<64x256xf32, #mma>
    %half = arith.constant dense<5.000000e-01> : tensor<64x256xf32, #mma>
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<64x256xf32, #mma>) : i32 {
      %d = ttng.warp_group_dot %a, %b, %zero : !ttg.memdesc<64x64xf16, #shared, #smem> * !ttg.memdesc<64x256xf16, #shared, #smem> -> tensor<64x256xf32, #mma>
      %m = arith.mulf %d, %half : tensor<64x256xf32, #mma>
      %t = arith.addf %s, %m : tensor<64x256xf32, #mma>
      scf.yield %t : tensor<64x256xf32, #mma>
    }
    tt.return %sum : tensor<64x256xf32, #mma>
  }
}
