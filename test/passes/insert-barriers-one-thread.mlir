// RUN: %ttopt %s --tritongpu-insert-barriers | FileCheck %s
// RUN: %ttopt %s --allocate-shared-memory-nv --tritongpu-insert-barriers --convert-triton-gpu-to-llvm | FileCheck %s --check-prefix LLVM

// Scalars of which nothing comes but what one thread stores: no barrier stands between, for what others load does not matter.
// All load, since ptxas branches around what one thread does.
#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @running_sum
// CHECK-NOT:   barrier
// CHECK:       tt.load {{.*}}ttg.alone
// CHECK-NOT:   barrier
// CHECK:       tt.return
// LLVM-LABEL: llvm.func @running_sum
// LLVM:       "{{[^@]*}}ld.weak.global.b32 $0, [ $1 ]
tt.func public @running_sum(%p: !tt.ptr<i32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c0) -> (i32) : i32 {
    %at = tt.addptr %p, %i : !tt.ptr<i32>, i32
    %x = tt.load %at : !tt.ptr<i32>
    %next = arith.addi %acc, %x : i32
    tt.store %at, %next : !tt.ptr<i32>
    scf.yield %next : i32
  }
  tt.return
}

// All threads need what decides how often a loop runs, what is in a tensor, what is an address, and what is divided by.
// CHECK-LABEL: @needed_by_all
// CHECK-NOT:   ttg.alone
// CHECK:       barrier
// CHECK-NOT:   ttg.alone
// CHECK:       tt.return
tt.func public @needed_by_all(%p: !tt.ptr<i32>, %q: tensor<128x!tt.ptr<i32>, #b>, %a: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %n = tt.load %p : !tt.ptr<i32>
  tt.store %p, %n : !tt.ptr<i32>
  scf.for %i = %c0 to %n step %c1 : i32 {
    tt.store %p, %i : !tt.ptr<i32>
  }
  %x = tt.load %p : !tt.ptr<i32>
  tt.store %p, %x : !tt.ptr<i32>
  %s = tt.splat %x : i32 -> tensor<128xi32, #b>
  tt.store %q, %s : tensor<128x!tt.ptr<i32>, #b>
  %y = tt.load %p : !tt.ptr<i32>
  %at = tt.addptr %p, %y : !tt.ptr<i32>, i32
  %z = tt.load %at : !tt.ptr<i32>
  %d = arith.divsi %a, %z : i32
  tt.store %p, %d : !tt.ptr<i32>
  tt.return
}

// A tensor is stored by all threads: what they store, one loads behind a barrier.
// CHECK-LABEL: @behind_a_tensor
// CHECK:       tt.store
// CHECK:       barrier
// CHECK:       tt.load {{.*}}ttg.alone
tt.func public @behind_a_tensor(%p: !tt.ptr<i32>, %v: tensor<128xi32, #b>) {
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
  %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #b>
  %at = tt.addptr %ps, %range : tensor<128x!tt.ptr<i32>, #b>, tensor<128xi32, #b>
  tt.store %at, %v : tensor<128x!tt.ptr<i32>, #b>
  %x = tt.load %p : !tt.ptr<i32>
  %y = arith.addi %x, %x : i32
  tt.store %p, %y : !tt.ptr<i32>
  tt.return
}
}
