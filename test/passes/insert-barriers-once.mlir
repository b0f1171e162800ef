// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s

// Loads that may give warps different values, where these decide how warps come to places at which they wait for each other.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#window = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // A spin, and a conversion in it: one thread loads for all.
  // CHECK-LABEL: tt.func @spin
  tt.func @spin(%flag: !tt.ptr<i32>, %v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> {
    // CHECK: tt.load {{.*}}isVolatile = true, ttg.once}
    // CHECK: scf.while
    // CHECK: ttg.convert_layout
    // CHECK: tt.load {{.*}}isVolatile = true, ttg.once}
    %c0 = arith.constant 0 : i32
    %w0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    %once = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    %r:2 = scf.while (%f = %once, %w = %w0) : (i32, tensor<32x64xf32, #b>) -> (i32, tensor<32x64xf32, #b>) {
      %empty = arith.cmpi eq, %f, %c0 : i32
      scf.condition(%empty) %f, %w : i32, tensor<32x64xf32, #b>
    } do {
    ^bb0(%f: i32, %w: tensor<32x64xf32, #b>):
      %x = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
      %y = arith.addf %w, %x : tensor<32x64xf32, #b>
      %again = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
      scf.yield %again, %y : i32, tensor<32x64xf32, #b>
    }
    tt.return %r#1 : tensor<32x64xf32, #b>
  }

  // Where nobody waits for anybody each thread loads for itself.
  // CHECK-LABEL: tt.func @alone
  // CHECK-NOT: ttg.once
  // CHECK: tt.return
  tt.func @alone(%flag: !tt.ptr<i32>) -> i32 {
    %c0 = arith.constant 0 : i32
    %once = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    %r = scf.while (%f = %once) : (i32) -> i32 {
      %empty = arith.cmpi eq, %f, %c0 : i32
      scf.condition(%empty) %f : i32
    } do {
    ^bb0(%f: i32):
      %again = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
      scf.yield %again : i32
    }
    tt.return %r : i32
  }

  // A lock: the thread that stores it does not run ahead of others that are still to load it. The load is by that thread, so that no
  // barrier is needed for the store, and what is in the branch is in order.
  // CHECK-LABEL: tt.func @lock
  tt.func @lock(%count: !tt.ptr<i32>, %sums: tensor<32x64x!tt.ptr<f32>, #b>, %v: tensor<32x64xf32, #a>) {
    // CHECK: tt.load {{.*}}ttg.once}
    // CHECK-NEXT: arith.cmpi
    // CHECK-NEXT: scf.if
    // CHECK-NEXT: tt.store
    // CHECK-NEXT: } else {
    // CHECK-NEXT: ttg.barrier local
    // CHECK-NEXT: ttg.convert_layout
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %n = tt.load %count : !tt.ptr<i32>
    %first = arith.cmpi eq, %n, %c0 : i32
    scf.if %first {
      tt.store %count, %c1 : !tt.ptr<i32>
    } else {
      %w = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
      tt.store %sums, %w : tensor<32x64x!tt.ptr<f32>, #b>
    }
    tt.return
  }

  // Bounds that nobody stores are the same for all.
  // CHECK-LABEL: tt.func @bounds
  // CHECK-NOT: ttg.once
  // CHECK: tt.return
  tt.func @bounds(%lengths: !tt.ptr<i32>, %out: !tt.ptr<f32>, %v: tensor<32x64xf32, #a>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %outs = tt.splat %out : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #b>
    %n = tt.load %lengths : !tt.ptr<i32>
    scf.for %i = %c0 to %n step %c1 : i32 {
      %w = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
      tt.store %outs, %w : tensor<32x64x!tt.ptr<f32>, #b>
    }
    tt.return
  }

  // Replicas of a window, of which each warp finds a minimum, and the branch around it, to which warps must come together then.
  // CHECK-LABEL: tt.func @window
  tt.func @window(%go: !tt.ptr<i32>, %flags: tensor<32x!tt.ptr<i32>, #window>, %v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> {
    // CHECK: tt.load {{.*}}isVolatile = true, ttg.once} : !tt.ptr<i32>
    // CHECK: scf.if
    // CHECK: scf.while
    // CHECK: tt.load {{.*}}isVolatile = true, ttg.once} : tensor<32x!tt.ptr<i32>
    %c0 = arith.constant 0 : i32
    %w0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    %goes = tt.load %go {isVolatile = true} : !tt.ptr<i32>
    %yes = arith.cmpi eq, %goes, %c0 : i32
    %r = scf.if %yes -> tensor<32x64xf32, #b> {
      %u = scf.while (%w = %w0) : (tensor<32x64xf32, #b>) -> tensor<32x64xf32, #b> {
        %f = tt.load %flags {isVolatile = true} : tensor<32x!tt.ptr<i32>, #window>
        %least = "tt.reduce"(%f) <{axis = 0 : i32}> ({
        ^bb0(%x: i32, %y: i32):
          %m = arith.minsi %x, %y : i32
          tt.reduce.return %m : i32
        }) : (tensor<32xi32, #window>) -> i32
        %empty = arith.cmpi eq, %least, %c0 : i32
        scf.condition(%empty) %w : tensor<32x64xf32, #b>
      } do {
      ^bb0(%w: tensor<32x64xf32, #b>):
        %x = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
        scf.yield %x : tensor<32x64xf32, #b>
      }
      scf.yield %u : tensor<32x64xf32, #b>
    } else {
      scf.yield %w0 : tensor<32x64xf32, #b>
    }
    tt.return %r : tensor<32x64xf32, #b>
  }
}

// -----

// The same through calls: what waits is in a callee, or what is loaded, or what it decides about.

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @converts(%v: tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b> attributes {noinline = true} {
    %0 = ttg.convert_layout %v : tensor<32x64xf32, #a> -> tensor<32x64xf32, #b>
    tt.return %0 : tensor<32x64xf32, #b>
  }
  // CHECK-LABEL: tt.func private @flag
  // CHECK: ttg.once
  tt.func private @flag(%flag: !tt.ptr<i32>) -> i32 attributes {noinline = true} {
    %0 = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    tt.return %0 : i32
  }
  // CHECK-LABEL: tt.func private @unneeded
  // CHECK-NOT: ttg.once
  // CHECK: tt.return
  tt.func private @unneeded(%flag: !tt.ptr<i32>) -> i32 attributes {noinline = true} {
    %0 = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    tt.return %0 : i32
  }
  tt.func private @converts_if(%n: i32, %v: tensor<32x64xf32, #a>) attributes {noinline = true} {
    %c0 = arith.constant 0 : i32
    %some = arith.cmpi sgt, %n, %c0 : i32
    scf.if %some {
      %0 = tt.call @converts(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    }
    tt.return
  }
  // CHECK-LABEL: tt.func @calls
  // CHECK: tt.load {{.*}}isVolatile = true, ttg.once}
  tt.func @calls(%flag: !tt.ptr<i32>, %other: !tt.ptr<i32>, %v: tensor<32x64xf32, #a>) -> i32 {
    %c0 = arith.constant 0 : i32
    %f = tt.call @flag(%flag) : (!tt.ptr<i32>) -> i32
    %set = arith.cmpi ne, %f, %c0 : i32
    scf.if %set {
      %0 = tt.call @converts(%v) : (tensor<32x64xf32, #a>) -> tensor<32x64xf32, #b>
    }
    %n = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    tt.call @converts_if(%n, %v) : (i32, tensor<32x64xf32, #a>) -> ()
    %unneeded = tt.call @unneeded(%other) : (!tt.ptr<i32>) -> i32
    tt.return %unneeded : i32
  }
}

// -----

// A callee to which threads may not come equally often has no barriers for global memory, and neither has what it calls; one that all
// come to has.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: tt.func private @inner
  // CHECK-NOT: ttg.barrier
  tt.func private @inner(%p: !tt.ptr<i32>, %v: i32) -> i32 attributes {noinline = true} {
    tt.store %p, %v : !tt.ptr<i32>
    %0 = tt.load %p : !tt.ptr<i32>
    tt.return %0 : i32
  }
  // CHECK-LABEL: tt.func private @outer
  // CHECK-NOT: ttg.barrier
  tt.func private @outer(%p: !tt.ptr<i32>, %v: i32) -> i32 attributes {noinline = true} {
    tt.store %p, %v : !tt.ptr<i32>
    %0 = tt.call @inner(%p, %v) : (!tt.ptr<i32>, i32) -> i32
    tt.return %0 : i32
  }
  // What it is given decides.
  // CHECK-LABEL: tt.func private @decides
  // CHECK: scf.if
  // CHECK-NOT: ttg.barrier
  // CHECK: tt.return
  tt.func private @decides(%p: !tt.ptr<i32>, %v: i32) attributes {noinline = true} {
    %c0 = arith.constant 0 : i32
    %some = arith.cmpi sgt, %v, %c0 : i32
    scf.if %some {
      tt.store %p, %v : !tt.ptr<i32>
      %0 = tt.load %p : !tt.ptr<i32>
    }
    tt.return
  }
  // CHECK-LABEL: tt.func private @together
  // CHECK: tt.store
  // CHECK-NEXT: ttg.barrier all
  // CHECK-NEXT: tt.load
  tt.func private @together(%p: !tt.ptr<i32>, %v: i32) -> i32 attributes {noinline = true} {
    tt.store %p, %v : !tt.ptr<i32>
    %0 = tt.load %p : !tt.ptr<i32>
    tt.return %0 : i32
  }
  tt.func @calls(%flag: !tt.ptr<i32>, %p: !tt.ptr<i32>, %v: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %f = tt.load %flag {isVolatile = true} : !tt.ptr<i32>
    %set = arith.cmpi ne, %f, %c0 : i32
    scf.if %set {
      %0 = tt.call @outer(%p, %v) : (!tt.ptr<i32>, i32) -> i32
    }
    tt.call @decides(%p, %f) : (!tt.ptr<i32>, i32) -> ()
    %1 = tt.call @together(%p, %v) : (!tt.ptr<i32>, i32) -> i32
    tt.return %1 : i32
  }
}
