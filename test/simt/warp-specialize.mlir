// Partitions of `ttg.warp_specialize` run on warps of their own and pass data through shared memory. The kernel asserts
// what it finds, and the simulator looks for races.
// RUN: %ttsim %s --quiet
// Nobody waits for the producer:
// RUN: sed '/ttng.wait_barrier/d' %s > %t.nowait.mlir
// RUN: not %ttsim %t.nowait.mlir --quiet 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: race
// The asserts see what is wrong:
// RUN: sed 's/thousand = arith.constant 1000/thousand = arith.constant 1001/' %s > %t.wrong.mlir
// RUN: not %ttsim %t.wrong.mlir --quiet 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: another element

#b4 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0]}>
#b1 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

tt.func public @specialized() {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %five = arith.constant 5 : i32
  %ten = arith.constant 10 : i32
  %buffer = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #s, #smem, mutable>
  %full = ttg.local_alloc : () -> !ttg.memdesc<1xi64, #s, #smem, mutable>
  ttng.init_barrier %full, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
  %sum = scf.for %i = %zero to %five step %one iter_args(%sum = %zero) -> (i32) : i32 {
    %k = arith.muli %i, %ten : i32
    %half = arith.constant 0.5 : f32
    %f0 = arith.sitofp %k : i32 to f32
    %f = arith.addf %f0, %half : f32
    %h = arith.truncf %f : f32 to f16
    %wide = arith.extsi %k : i32 to i64
    %odd = arith.trunci %i : i32 to i1
    %phase = arith.andi %i, %one : i32
    %next = ttg.warp_specialize(%buffer, %full, %k, %f, %h, %wide, %odd)
    default {
      %thousand = arith.constant 1000 : i32
      ttng.wait_barrier %full, %phase : !ttg.memdesc<1xi64, #s, #smem, mutable>
      %found = ttg.local_load %buffer : !ttg.memdesc<128xi32, #s, #smem, mutable> -> tensor<128xi32, #b4>
      %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b4>
      // 1000 r + k + int(f) + int(h) + wide + odd
      %four = arith.constant 4 : i32
      %k4 = arith.muli %k, %four : i32
      %o = arith.extui %odd : i1 to i32
      %k5 = arith.addi %k4, %o : i32
      %m = tt.splat %thousand : i32 -> tensor<128xi32, #b4>
      %rm = arith.muli %r, %m : tensor<128xi32, #b4>
      %ks = tt.splat %k5 : i32 -> tensor<128xi32, #b4>
      %expected = arith.addi %rm, %ks : tensor<128xi32, #b4>
      %ok = arith.cmpi eq, %found, %expected : tensor<128xi32, #b4>
      tt.assert %ok, "another element" : tensor<128xi1, #b4>
      %more = arith.addi %sum, %k : i32
      ttg.warp_yield %more : i32
    }
    partition0(%b: !ttg.memdesc<128xi32, #s, #smem, mutable>, %bar: !ttg.memdesc<1xi64, #s, #smem, mutable>, %n: i32, %g: f32, %x: f16, %w: i64, %flag: i1) num_warps(2) {
      %c = arith.constant 1000 : i32
      %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b2>
      %m = tt.splat %c : i32 -> tensor<128xi32, #b2>
      %rm = arith.muli %r, %m : tensor<128xi32, #b2>
      %gi = arith.fptosi %g : f32 to i32
      %xi = arith.fptosi %x : f16 to i32
      %wi = arith.trunci %w : i64 to i32
      %oi = arith.extui %flag : i1 to i32
      %s0 = arith.addi %n, %gi : i32
      %s1 = arith.addi %s0, %xi : i32
      %s2 = arith.addi %s1, %wi : i32
      %s3 = arith.addi %s2, %oi : i32
      %ss = tt.splat %s3 : i32 -> tensor<128xi32, #b2>
      %v = arith.addi %rm, %ss : tensor<128xi32, #b2>
      ttg.local_store %v, %b : tensor<128xi32, #b2> -> !ttg.memdesc<128xi32, #s, #smem, mutable>
      ttng.arrive_barrier %bar, 1 : !ttg.memdesc<1xi64, #s, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<128xi32, #s, #smem, mutable>, !ttg.memdesc<1xi64, #s, #smem, mutable>, i32, f32, f16, i64, i1) -> i32
    // Another one, not in each iteration; partitions of different sizes, one with control flow.
    scf.if %odd {
      %other = ttg.local_alloc : () -> !ttg.memdesc<128xi32, #s, #smem, mutable>
      ttg.warp_specialize(%buffer, %other, %k)
      default {
        ttg.warp_yield
      }
      partition0(%b: !ttg.memdesc<128xi32, #s, #smem, mutable>, %o: !ttg.memdesc<128xi32, #s, #smem, mutable>, %n: i32) num_warps(1) {
        %ns = tt.splat %n : i32 -> tensor<128xi32, #b1>
        ttg.local_store %ns, %b : tensor<128xi32, #b1> -> !ttg.memdesc<128xi32, #s, #smem, mutable>
        ttg.warp_return
      }
      partition1(%b: !ttg.memdesc<128xi32, #s, #smem, mutable>, %o: !ttg.memdesc<128xi32, #s, #smem, mutable>, %n: i32) num_warps(4) {
        %lo = arith.constant 0 : i32
        %hi = arith.constant 3 : i32
        %st = arith.constant 1 : i32
        %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b4>
        %t = scf.for %j = %lo to %hi step %st iter_args(%t = %r) -> (tensor<128xi32, #b4>) : i32 {
          %js = tt.splat %j : i32 -> tensor<128xi32, #b4>
          %u = arith.addi %t, %js : tensor<128xi32, #b4>
          scf.yield %u : tensor<128xi32, #b4>
        }
        ttg.local_store %t, %o : tensor<128xi32, #b4> -> !ttg.memdesc<128xi32, #s, #smem, mutable>
        ttg.warp_return
      } : (!ttg.memdesc<128xi32, #s, #smem, mutable>, !ttg.memdesc<128xi32, #s, #smem, mutable>, i32) -> ()
      %kk = ttg.local_load %buffer : !ttg.memdesc<128xi32, #s, #smem, mutable> -> tensor<128xi32, #b4>
      %ks = tt.splat %k : i32 -> tensor<128xi32, #b4>
      %ok = arith.cmpi eq, %kk, %ks : tensor<128xi32, #b4>
      tt.assert %ok, "not written by partition 0" : tensor<128xi1, #b4>
      %oo = ttg.local_load %other : !ttg.memdesc<128xi32, #s, #smem, mutable> -> tensor<128xi32, #b4>
      %r = tt.make_range {start = 3 : i32, end = 131 : i32} : tensor<128xi32, #b4>
      %ok1 = arith.cmpi eq, %oo, %r : tensor<128xi32, #b4>
      tt.assert %ok1, "not written by partition 1" : tensor<128xi1, #b4>
    }
    scf.yield %next : i32
  }
  %hundred = arith.constant 100 : i32
  %right = arith.cmpi eq, %sum, %hundred : i32
  tt.assert %right, "a wrong sum" : i1
  ttng.inval_barrier %full : !ttg.memdesc<1xi64, #s, #smem, mutable>
  tt.return
}

}
