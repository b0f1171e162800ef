// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // What would be decided is there already: it stays where it is.
  // CHECK-LABEL: @stays
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: tt.print
  // CHECK-NEXT: ttg.convert_layout
  // CHECK-NEXT: tt.store
  tt.func @stays(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    tt.print "n" {hex = false, isSigned = array<i32: 1>} : %n : i32
    %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // One conversion is enough.
  // CHECK-LABEL: @twice
  // CHECK: %[[Y:.*]] = ttg.convert_layout
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.store %{{.*}}, %[[Y]]
  // CHECK: tt.store %{{.*}}, %[[Y]]
  tt.func @twice(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    %z = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  }

  // Out of the loop it runs once.
  // CHECK-LABEL: @loop
  // CHECK: ttg.convert_layout
  // CHECK: scf.for
  // CHECK-NOT: ttg.convert_layout
  // CHECK: tt.return
  tt.func @loop(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
      tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    }
    tt.return
  }
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#p = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.slice<{dim = 1, parent = #p}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // As many uses want the one layout as the other: their order does not decide.
  // CHECK-LABEL: @slice_first
  // CHECK: scf.for {{.*}} -> (tensor<64xi32, #ttg.slice<{dim = 1, parent = #[[P:.*]]}>>,
  tt.func @slice_first(%p: tensor<64x!tt.ptr<i32>, #s>, %q: tensor<64x!tt.ptr<i32>, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1> : tensor<64xi32, #b>
    %x = scf.for %i = %c0 to %n step %c1 iter_args(%y = %one) -> (tensor<64xi32, #b>) : i32 {
      %z = arith.addi %y, %y : tensor<64xi32, #b>
      scf.yield %z : tensor<64xi32, #b>
    }
    %s = ttg.convert_layout %x : tensor<64xi32, #b> -> tensor<64xi32, #s>
    tt.store %p, %s : tensor<64x!tt.ptr<i32>, #s>
    tt.store %q, %x : tensor<64x!tt.ptr<i32>, #b>
    tt.return
  }

  // CHECK-LABEL: @slice_last
  // CHECK: scf.for {{.*}} -> (tensor<64xi32, #ttg.slice<{dim = 1, parent = #[[P]]}>>,
  tt.func @slice_last(%p: tensor<64x!tt.ptr<i32>, #s>, %q: tensor<64x!tt.ptr<i32>, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %one = arith.constant dense<1> : tensor<64xi32, #b>
    %x = scf.for %i = %c0 to %n step %c1 iter_args(%y = %one) -> (tensor<64xi32, #b>) : i32 {
      %z = arith.addi %y, %y : tensor<64xi32, #b>
      scf.yield %z : tensor<64xi32, #b>
    }
    tt.store %q, %x : tensor<64x!tt.ptr<i32>, #b>
    %s = ttg.convert_layout %x : tensor<64xi32, #b> -> tensor<64xi32, #s>
    tt.store %p, %s : tensor<64x!tt.ptr<i32>, #s>
    tt.return
  }
}
