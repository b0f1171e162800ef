// Partitions in a cluster. A barrier of the cluster counts all threads of its CTAs, so worker warps take part in those
// that tensors cross CTAs by; partitions of different CTAs reach each other through mbarriers. The kernel asserts what it
// finds, and the simulator looks for races and for threads that wait for ever.
// REQUIRES: nvptx
// RUN: %ttsim %s --num-ctas 2 --num-warps 4 --quiet
// Nobody waits for the other CTA's partition:
// RUN: sed '/ttng.wait_barrier %%both/d' %s > %t.nowait.mlir
// RUN: not %ttsim %t.nowait.mlir --num-ctas 2 --num-warps 4 --quiet 2>&1 | FileCheck %s --check-prefix=RACE
// RACE: race
// The asserts see what is wrong:
// RUN: sed 's/seven = arith.constant 7/seven = arith.constant 8/' %s > %t.wrong.mlir
// RUN: not %ttsim %t.wrong.mlir --num-ctas 2 --num-warps 4 --quiet 2>&1 | FileCheck %s --check-prefix=WRONG
// WRONG: another element

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1]]}>
#b = #ttg.linear<{register = [], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]], block = [[1]]}>
#w = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [2], order = [0], CGALayout = [[1]]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0], CGALayout = [[1]]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

tt.func public @specialized() {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %three = arith.constant 3 : i32
  %buffer = ttg.local_alloc : () -> !ttg.memdesc<256xi32, #s, #smem, mutable>
  %both = ttg.local_alloc : () -> !ttg.memdesc<2xi64, #s, #smem, mutable>
  ttng.init_barrier %both, 2 : !ttg.memdesc<2xi64, #s, #smem, mutable>
  ttng.fence_mbarrier_init_release_cluster
  ttng.cluster_barrier {relaxed = true}
  scf.for %i = %zero to %three step %one : i32 {
    %phase = arith.andi %i, %one : i32
    // Across the CTAs and back, while worker warps have nothing to do.
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #a>
    %is = tt.splat %i : i32 -> tensor<256xi32, #a>
    %v = arith.addi %r, %is : tensor<256xi32, #a>
    %crossed = ttg.convert_layout %v : tensor<256xi32, #a> -> tensor<256xi32, #b>
    %rb = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #b>
    %ib = tt.splat %i : i32 -> tensor<256xi32, #b>
    %expected = arith.addi %rb, %ib : tensor<256xi32, #b>
    %right = arith.cmpi eq, %crossed, %expected : tensor<256xi32, #b>
    tt.assert %right, "lost between CTAs" : tensor<256xi1, #b>
    ttg.warp_specialize(%buffer, %both, %i)
    default {
      // Both partitions have written: this CTA's, and the other's.
      ttng.wait_barrier %both, %phase : !ttg.memdesc<2xi64, #s, #smem, mutable>
      %found = ttg.local_load %buffer : !ttg.memdesc<256xi32, #s, #smem, mutable> -> tensor<256xi32, #a>
      %seven = arith.constant 7 : i32
      %sevens = tt.splat %seven : i32 -> tensor<256xi32, #a>
      %much = arith.muli %r, %sevens : tensor<256xi32, #a>
      %want = arith.addi %much, %is : tensor<256xi32, #a>
      %ok = arith.cmpi eq, %found, %want : tensor<256xi32, #a>
      tt.assert %ok, "another element" : tensor<256xi1, #a>
      ttg.warp_yield
    }
    partition0(%buf: !ttg.memdesc<256xi32, #s, #smem, mutable>, %bar: !ttg.memdesc<2xi64, #s, #smem, mutable>, %n: i32) num_warps(2) {
      %numbers = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #w>
      %times = arith.constant 7 : i32
      %timess = tt.splat %times : i32 -> tensor<256xi32, #w>
      %ns = tt.splat %n : i32 -> tensor<256xi32, #w>
      %product = arith.muli %numbers, %timess : tensor<256xi32, #w>
      %sum = arith.addi %product, %ns : tensor<256xi32, #w>
      ttg.local_store %sum, %buf : tensor<256xi32, #w> -> !ttg.memdesc<256xi32, #s, #smem, mutable>
      ttng.arrive_barrier %bar, 1 {multicastCTA = 1 : i32} : !ttg.memdesc<2xi64, #s, #smem, mutable>
      ttg.warp_return
    } : (!ttg.memdesc<256xi32, #s, #smem, mutable>, !ttg.memdesc<2xi64, #s, #smem, mutable>, i32) -> ()
  }
  ttng.cluster_barrier
  ttng.inval_barrier %both : !ttg.memdesc<2xi64, #s, #smem, mutable>
  tt.return
}

}
