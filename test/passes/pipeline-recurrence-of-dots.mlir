// A recurrence that multiplies: there are as few programs as sequences, which the number of CTAs for registers is chosen by.
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=2 | FileCheck %s

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// CHECK: module attributes {{.*}}ttg.few_programs
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @states(%x: tensor<16x16x!tt.ptr<f16>, #a>, %y: tensor<16x16x!tt.ptr<f32>, #mma>, %w: tensor<16x16xf16, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #mma>
    %c256 = arith.constant 256 : i32
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32, #mma>) : i32 {
      %j = arith.muli %i, %c256 : i32
      %at = tt.splat %j : i32 -> tensor<16x16xi32, #a>
      %p = tt.addptr %x, %at : tensor<16x16x!tt.ptr<f16>, #a>, tensor<16x16xi32, #a>
      %v = tt.load %p : tensor<16x16x!tt.ptr<f16>, #a>
      %d = tt.dot %v, %w, %s : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
      %to = tt.splat %i : i32 -> tensor<16x16xi32, #mma>
      %q = tt.addptr %y, %to : tensor<16x16x!tt.ptr<f32>, #mma>, tensor<16x16xi32, #mma>
      tt.store %q, %d : tensor<16x16x!tt.ptr<f32>, #mma>
      scf.yield %d : tensor<16x16xf32, #mma>
    }
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// A product, which stores behind its loop.
// CHECK-NOT: ttg.few_programs
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @product(%x: tensor<16x16x!tt.ptr<f16>, #a>, %y: tensor<16x16x!tt.ptr<f32>, #mma>, %w: tensor<16x16xf16, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #mma>
    %c256 = arith.constant 256 : i32
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32, #mma>) : i32 {
      %j = arith.muli %i, %c256 : i32
      %at = tt.splat %j : i32 -> tensor<16x16xi32, #a>
      %p = tt.addptr %x, %at : tensor<16x16x!tt.ptr<f16>, #a>, tensor<16x16xi32, #a>
      %v = tt.load %p : tensor<16x16x!tt.ptr<f16>, #a>
      %d = tt.dot %v, %w, %s : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
      scf.yield %d : tensor<16x16xf32, #mma>
    }
    tt.store %y, %s : tensor<16x16x!tt.ptr<f32>, #mma>
    tt.return
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
// Tiles one after the other in one loop, which stores at the end of each.
// CHECK-NOT: ttg.few_programs
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @tiles(%x: tensor<16x16x!tt.ptr<f16>, #a>, %y: tensor<16x16x!tt.ptr<f32>, #mma>, %w: tensor<16x16xf16, #b>, %n: i32, %steps: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x16xf32, #mma>
    %c256 = arith.constant 256 : i32
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32, #mma>) : i32 {
      %j = arith.muli %i, %c256 : i32
      %at = tt.splat %j : i32 -> tensor<16x16xi32, #a>
      %p = tt.addptr %x, %at : tensor<16x16x!tt.ptr<f16>, #a>, tensor<16x16xi32, #a>
      %v = tt.load %p : tensor<16x16x!tt.ptr<f16>, #a>
      %d = tt.dot %v, %w, %s : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #mma>
      %step = arith.remsi %i, %steps : i32
      %last = arith.cmpi eq, %step, %c0 : i32
      scf.if %last {
        %to = tt.splat %i : i32 -> tensor<16x16xi32, #mma>
        %q = tt.addptr %y, %to : tensor<16x16x!tt.ptr<f32>, #mma>, tensor<16x16xi32, #mma>
        tt.store %q, %d : tensor<16x16x!tt.ptr<f32>, #mma>
      }
      %next = arith.select %last, %zero, %d : tensor<16x16xf32, #mma>
      scf.yield %next : tensor<16x16xf32, #mma>
    }
    tt.return
  }
}
