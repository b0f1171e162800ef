// RUN: %ttopt %s --triton-licm | FileCheck %s

// The loop may not run: loads are masked by whether it does, and by their own mask.
// CHECK-LABEL: tt.func @loads
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %c0_i32, %arg3 : i32
// CHECK: %[[MASK:.*]] = tt.splat %[[RUNS]] : i1 -> tensor<64xi1>
// CHECK: %[[X:.*]] = tt.load %arg0, %[[MASK]] : tensor<64x!tt.ptr<f32>>
// CHECK: %[[MASK2:.*]] = tt.splat %[[RUNS]]
// CHECK: %[[BOTH:.*]] = arith.andi %[[MASK2]], %arg2
// CHECK: %[[Y:.*]] = tt.load %arg1, %[[BOTH]], %arg4 {cachePolicy
// CHECK: %[[SUM:.*]] = arith.addf %[[X]], %[[Y]]
// CHECK: scf.for
// CHECK-NEXT: arith.addf %{{.*}}, %[[SUM]]
tt.func @loads(%p: tensor<64x!tt.ptr<f32>>, %q: tensor<64x!tt.ptr<f32>>, %m: tensor<64xi1>, %n: i32, %o: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %o) -> (tensor<64xf32>) : i32 {
    %x = tt.load %p : tensor<64x!tt.ptr<f32>>
    %y = tt.load %q, %m, %o {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>} : tensor<64x!tt.ptr<f32>>
    %s = arith.addf %x, %y : tensor<64xf32>
    %t = arith.addf %acc, %s : tensor<64xf32>
    scf.yield %t : tensor<64xf32>
  }
  tt.return %r : tensor<64xf32>
}

// Unsigned bounds are compared as such; a scalar's mask is the comparison.
// CHECK-LABEL: tt.func @scalar
// CHECK: %[[RUNS:.*]] = arith.cmpi ult, %arg1, %arg2 : i32
// CHECK: tt.load %arg0, %[[RUNS]] : !tt.ptr<f32>
// CHECK: scf.for unsigned
tt.func @scalar(%p: !tt.ptr<f32>, %from: i32, %to: i32, %o: f32) -> f32 {
  %c1 = arith.constant 1 : i32
  %r = scf.for unsigned %i = %from to %to step %c1 iter_args(%acc = %o) -> (f32) : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %acc, %x : f32
    scf.yield %t : f32
  }
  tt.return %r : f32
}

// A loop known to run needs no mask, one known not to keeps its load.
// CHECK-LABEL: tt.func @known
// CHECK: tt.load %arg0 : !tt.ptr<f32>
// CHECK-NEXT: scf.for
// CHECK: scf.for
// CHECK-NEXT: tt.load
tt.func @known(%p: !tt.ptr<f32>, %o: f32) -> (f32, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%acc = %o) -> (f32) : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %acc, %x : f32
    scf.yield %t : f32
  }
  %s = scf.for %i = %c9 to %c0 step %c1 iter_args(%acc = %o) -> (f32) : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    %t = arith.addf %acc, %x : f32
    scf.yield %t : f32
  }
  tt.return %r, %s : f32, f32
}

// Where memory is written, calls are made or a load is volatile, loads stay.
// CHECK-LABEL: tt.func @writes
// CHECK: scf.for
// CHECK-NEXT: tt.load
// CHECK: scf.for
// CHECK-NEXT: tt.load
// CHECK: scf.for
// CHECK-NEXT: tt.load
// CHECK-NEXT: tt.load
tt.func @writes(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %n: i32, %b: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    scf.if %b {
      tt.store %q, %x : !tt.ptr<f32>
    }
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p : !tt.ptr<f32>
    tt.call @callee(%x) : (f32) -> ()
  }
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tt.load %p {isVolatile = true} : !tt.ptr<f32>
    %y = tt.load %q : !tt.ptr<f32>
    %z = arith.addf %x, %y : f32
  }
  tt.return
}
tt.func private @callee(%x: f32) attributes {noinline = true} {
  tt.return
}

// A load that some iterations skip stays, as does a division that may trap,
// and one in a loop without a bound.
// CHECK-LABEL: tt.func @conditional
// CHECK: arith.muli %arg1, %arg1
// CHECK: scf.while
// CHECK: tt.load
// CHECK: arith.divsi
// CHECK: scf.for
// CHECK: scf.if
// CHECK-NEXT: tt.load
tt.func @conditional(%p: !tt.ptr<i32>, %n: i32, %o: i32) -> (i32, i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %w = scf.while (%a = %n) : (i32) -> i32 {
    %c = arith.cmpi sgt, %a, %c1 : i32
    scf.condition(%c) %a : i32
  } do {
  ^bb0(%a: i32):
    %x = tt.load %p : !tt.ptr<i32>
    %k = arith.muli %n, %n : i32
    %d = arith.divsi %n, %k : i32
    %e = arith.addi %d, %x : i32
    %t = arith.subi %a, %e : i32
    scf.yield %t : i32
  }
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %o) -> (i32) : i32 {
    %b = arith.cmpi eq, %i, %c1 : i32
    %x = scf.if %b -> i32 {
      %y = tt.load %p : !tt.ptr<i32>
      scf.yield %y : i32
    } else {
      scf.yield %i : i32
    }
    scf.yield %x : i32
  }
  tt.return %w, %r : i32, i32
}

// Out of both loops, with what is nested; layouts stay.
// CHECK-LABEL: tt.func @two_loops
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %{{.*}}, %arg1
// CHECK: tt.splat %[[RUNS]] : i1 -> tensor<128xi1, #{{.*}}>
// CHECK: tt.load
// CHECK: "tt.reduce"
// CHECK: scf.for
// CHECK-NEXT: scf.for
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @two_loops(%p: tensor<128x!tt.ptr<i32>, #blocked>, %n: i32, %o: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2 = arith.constant 2 : i32
    %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%a = %o) -> (i32) : i32 {
      %s = scf.for %j = %c0 to %n step %c1 iter_args(%b = %a) -> (i32) : i32 {
        %x = tt.load %p : tensor<128x!tt.ptr<i32>, #blocked>
        %sum = "tt.reduce"(%x) <{axis = 0 : i32}> ({
        ^bb0(%u: i32, %v: i32):
          %w = arith.addi %u, %v : i32
          tt.reduce.return %w : i32
        }) : (tensor<128xi32, #blocked>) -> i32
        %t = arith.addi %b, %sum : i32
        scf.yield %t : i32
      }
      scf.yield %s : i32
    }
    tt.return %r : i32
  }
}

// A buffer that is filled once holds the same in every iteration; one that is written again does not.
// CHECK-LABEL: tt.func @buffers
// CHECK: ttg.local_alloc %arg0 : {{.*}}#smem>
// CHECK-NEXT: scf.for
// CHECK-NEXT: ttg.local_alloc %arg0 : {{.*}}mutable>
#tile = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#unswizzled = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @buffers(%x: tensor<64x64xf16, #tile>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %a = ttg.local_alloc %x : (tensor<64x64xf16, #tile>) -> !ttg.memdesc<64x64xf16, #unswizzled, #smem>
      %b = ttg.local_alloc %x : (tensor<64x64xf16, #tile>) -> !ttg.memdesc<64x64xf16, #unswizzled, #smem, mutable>
      %y = ttg.local_load %a : !ttg.memdesc<64x64xf16, #unswizzled, #smem> -> tensor<64x64xf16, #tile>
      ttg.local_store %y, %b : tensor<64x64xf16, #tile> -> !ttg.memdesc<64x64xf16, #unswizzled, #smem, mutable>
    }
    tt.return
  }
}

// Numbers are divided once: by one where the loop does not run. Tensors' divisors say more than a choice of two would.
// CHECK-LABEL: tt.func @divisions
// CHECK: %[[RUNS:.*]] = arith.cmpi slt, %c0_i32, %arg2 : i32
// CHECK: %[[BY:.*]] = arith.select %[[RUNS]], %arg1, %c1_i32{{.*}} : i32
// CHECK: %[[Q:.*]] = arith.divsi %arg0, %[[BY]] : i32
// CHECK: scf.for
// CHECK-NEXT: tt.store %arg3, %[[Q]]
// CHECK-NEXT: arith.divsi %arg4, %arg5 : tensor<64xi32>
tt.func @divisions(%x: i32, %by: i32, %n: i32, %p: !tt.ptr<i32>, %y: tensor<64xi32>, %z: tensor<64xi32>, %q: tensor<64x!tt.ptr<i32>>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %d = arith.divsi %x, %by : i32
    tt.store %p, %d : !tt.ptr<i32>
    %e = arith.divsi %y, %z : tensor<64xi32>
    tt.store %q, %e : tensor<64x!tt.ptr<i32>>
  }
  tt.return
}
