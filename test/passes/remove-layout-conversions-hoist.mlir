// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions > %t.once
// RUN: %ttopt %t.once -split-input-file --tritongpu-remove-layout-conversions > %t.twice
// RUN: cmp %t.once %t.twice

// Before a cast to more bits: half of the bytes move.
// CHECK-LABEL: @widen
// CHECK: ttg.convert_layout {{.*}} : tensor<64x64xf16
// CHECK: arith.extf
// CHECK-NOT: ttg.convert_layout
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @widen(%p: tensor<64x64x!tt.ptr<f16>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f16>, #a>
    %y = arith.extf %x : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
    %z = ttg.convert_layout %y : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  }
}

// -----

// After a cast to fewer bits.
// CHECK-LABEL: @narrow
// CHECK: arith.truncf
// CHECK: ttg.convert_layout {{.*}} : tensor<64x64xf16
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @narrow(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f16>, #b>) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    %z = arith.truncf %y : tensor<64x64xf32, #b> to tensor<64x64xf16, #b>
    tt.store %q, %z : tensor<64x64x!tt.ptr<f16>, #b>
    tt.return
  }
}

// -----

// Out of a loop: what does not change in it is converted once.
// CHECK-LABEL: @invariant
// CHECK: ttg.convert_layout
// CHECK: scf.for
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.store
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @invariant(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %n: i32, %s: f32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    scf.for %i = %c0 to %n step %c1  : i32 {
      %k = tt.splat %s : f32 -> tensor<64x64xf32, #a>
      %y = arith.mulf %x, %k : tensor<64x64xf32, #a>
      %z = ttg.convert_layout %y : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
      tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
    }
    tt.return
  }
}

// -----

// Into the branch that alone needs it.
// CHECK-LABEL: @branch
// CHECK: tt.load
// CHECK-NOT: ttg.convert_layout
// CHECK: scf.if
// CHECK-NEXT: ttg.convert_layout
// CHECK-NEXT: tt.store
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @branch(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %c: i1) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    %z = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    scf.if %c {
      tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
    }
    tt.return
  }
}

// -----

// The same with blocks; the block of a loop does not get it.
// CHECK-LABEL: @blocks
// CHECK: tt.load
// CHECK-NOT: ttg.convert_layout
// CHECK: ^bb1:
// CHECK-NEXT: ttg.convert_layout
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @blocks(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %c: i1) {
    %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
    %z = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    cf.cond_br %c, ^bb1, ^bb2
  ^bb1:
    tt.store %q, %z : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  ^bb2:
    tt.return
  }
}

// -----

// Indices that a loop carries and two layouts want are carried twice: nothing is converted in the loop.
// CHECK-LABEL: @carried
// CHECK: scf.for {{.*}} -> (tensor<64x64xi32, #{{.*}}>, tensor<64x64xi32, #{{.*}}>)
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
#a = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [8, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  tt.func @carried(%p: tensor<64x64x!tt.ptr<i32>, #a>, %q: tensor<64x64x!tt.ptr<i32>, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %start = arith.constant dense<0> : tensor<64x64xi32, #a>
    %step = arith.constant dense<3> : tensor<64x64xi32, #a>
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%x = %start) -> (tensor<64x64xi32, #a>)  : i32 {
      tt.store %p, %x : tensor<64x64x!tt.ptr<i32>, #a>
      %z = ttg.convert_layout %x : tensor<64x64xi32, #a> -> tensor<64x64xi32, #b>
      tt.store %q, %z : tensor<64x64x!tt.ptr<i32>, #b>
      %next = arith.addi %x, %step : tensor<64x64xi32, #a>
      scf.yield %next : tensor<64x64xi32, #a>
    }
    tt.return
  }
}
