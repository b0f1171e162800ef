// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file | FileCheck %s

#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // A relaxed sum whose result nobody uses is a reduction, and orders nothing.
  // CHECK-LABEL: llvm.func {{.*}}@sum
  // CHECK-NOT: barrier
  // CHECK: @$2 red.global.gpu.relaxed.add.f32 [ $0 ], $1;
  // CHECK-NOT: barrier
  // CHECK: llvm.return
  tt.func private @sum(%p: tensor<128x!tt.ptr<f32>, #one>, %x: tensor<128xf32, #one>, %m: tensor<128xi1, #one>) {
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x, %m : (tensor<128x!tt.ptr<f32>, #one>, tensor<128xf32, #one>, tensor<128xi1, #one>) -> tensor<128xf32, #one>
    tt.return
  }

  // What acquires and releases stands between barriers, also when nobody uses the result.
  // CHECK-LABEL: llvm.func {{.*}}@ordered
  // CHECK: nvvm.barrier0
  // CHECK: @$3 atom.global.sys.acq_rel.max.s32 $0, [ $1 ], $2;
  // CHECK: nvvm.barrier0
  tt.func private @ordered(%p: tensor<128x!tt.ptr<i32>, #one>, %x: tensor<128xi32, #one>, %m: tensor<128xi1, #one>) {
    %0 = tt.atomic_rmw max, acq_rel, sys, %p, %x, %m : (tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>, tensor<128xi1, #one>) -> tensor<128xi32, #one>
    tt.return
  }

  // Nothing follows in a kernel: nobody waits for what is acquired, and what only releases is a reduction.
  // CHECK-LABEL: llvm.func {{.*}}@last
  // CHECK: nvvm.barrier0
  // CHECK: @$2 red.global.sys.release.max.s32 [ $0 ], $1;
  // CHECK-NOT: barrier
  // CHECK: llvm.return
  tt.func @last(%p: !tt.ptr<i32>, %x: i32) {
    %one = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>, #one>
    %x_one = tt.splat %x : i32 -> tensor<128xi32, #one>
    %m = arith.constant dense<true> : tensor<128xi1, #one>
    %0 = tt.atomic_rmw max, acq_rel, sys, %one, %x_one, %m : (tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>, tensor<128xi1, #one>) -> tensor<128xi32, #one>
    tt.return
  }

  // Nor does anything follow a branch at the end of a kernel; what a loop does comes again.
  // CHECK-LABEL: llvm.func {{.*}}@last_of_branches
  // CHECK: red.global.gpu.release.add.u32
  // CHECK-NOT: barrier
  tt.func @last_of_branches(%p: !tt.ptr<i32>, %x: i32, %a: i1, %b: i1) {
    scf.if %a {
      scf.if %b {
        %0 = tt.atomic_rmw add, acq_rel, gpu, %p, %x, %b : (!tt.ptr<i32>, i32, i1) -> i32
      }
    }
    tt.return
  }
  // Another block may follow.
  // CHECK-LABEL: llvm.func {{.*}}@last_of_block
  // CHECK: nvvm.barrier0
  // CHECK: atom.global.gpu.acq_rel.add.u32
  // CHECK: nvvm.barrier0
  // CHECK: llvm.load
  tt.func @last_of_block(%p: !tt.ptr<i32>, %x: i32, %a: i1, %q: !tt.ptr<i32>) {
    %0 = tt.atomic_rmw add, acq_rel, gpu, %p, %x, %a : (!tt.ptr<i32>, i32, i1) -> i32
    cf.cond_br %a, ^bb1, ^bb2
  ^bb1:
    tt.return
  ^bb2:
    %v = tt.load %q : !tt.ptr<i32>
    %1 = arith.addi %v, %x : i32
    tt.store %q, %1 : !tt.ptr<i32>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@last_of_loop
  // CHECK: nvvm.barrier0
  // CHECK: atom.global.gpu.acq_rel.add.u32
  // CHECK: nvvm.barrier0
  tt.func @last_of_loop(%p: !tt.ptr<i32>, %x: i32, %a: i1) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %x step %c1 : i32 {
      %0 = tt.atomic_rmw add, acq_rel, gpu, %p, %i, %a : (!tt.ptr<i32>, i32, i1) -> i32
    }
    tt.return
  }

  // What is computed between two atomics orders nothing: one barrier stands between them.
  // CHECK-LABEL: llvm.func {{.*}}@two
  // CHECK: nvvm.barrier0
  // CHECK: atom.global.sys.acq_rel
  // CHECK: nvvm.barrier0
  // CHECK-NOT: barrier
  // CHECK: llvm.mul
  // CHECK-NOT: barrier
  // CHECK: atom.global.sys.acq_rel
  // CHECK: nvvm.barrier0
  // CHECK: llvm.return
  tt.func private @two(%p: tensor<128x!tt.ptr<i32>, #one>, %x: tensor<128xi32, #one>, %m: tensor<128xi1, #one>) {
    %0 = tt.atomic_rmw max, acq_rel, sys, %p, %x, %m : (tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>, tensor<128xi1, #one>) -> tensor<128xi32, #one>
    %1 = arith.muli %x, %x : tensor<128xi32, #one>
    %2 = tt.atomic_rmw max, acq_rel, sys, %p, %1, %m : (tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one>, tensor<128xi1, #one>) -> tensor<128xi32, #one>
    tt.return
  }

  // CHECK-LABEL: llvm.func {{.*}}@exchange
  // CHECK: atom.global.cta.relaxed.cas.b64 $0, [ $1 ], $2, $3;
  tt.func private @exchange(%p: tensor<128x!tt.ptr<i64>, #one>, %x: tensor<128xi64, #one>) -> tensor<128xi64, #one> {
    %0 = tt.atomic_cas relaxed, cta, %p, %x, %x : (tensor<128x!tt.ptr<i64>, #one>, tensor<128xi64, #one>, tensor<128xi64, #one>) -> tensor<128xi64, #one>
    tt.return %0 : tensor<128xi64, #one>
  }

  // One thread acts for all that hold the scalar; the others read its result in shared memory.
  // CHECK-LABEL: llvm.func {{.*}}@scalar
  // CHECK: %[[ME:.*]] = llvm.icmp "eq"
  // CHECK: %[[ACT:.*]] = llvm.and %{{.*}}, %[[ME]]
  // CHECK: llvm.inline_asm {{.*}}atom.global.gpu.relaxed.add.u32{{.*}}, %[[ACT]]
  tt.func private @scalar(%p: !tt.ptr<i32>, %x: i32, %m: i1) -> i32 {
    %0 = tt.atomic_rmw add, relaxed, gpu, %p, %x, %m {allocation.offset = 0 : i32} : (!tt.ptr<i32>, i32, i1) -> i32
    tt.return %0 : i32
  }

  // CHECK-LABEL: llvm.func {{.*}}@flag
  // CHECK: nvvm.barrier0
  // CHECK: st.release.sys.global.b32 [ $0 ], $1;
  // CHECK: ld.acquire.gpu.global.b8 $0, [ $1 ];
  // CHECK: nvvm.barrier0
  tt.func private @flag(%p: tensor<128x!tt.ptr<i32>, #one>, %x: tensor<128xi32, #one>, %b: tensor<128x!tt.ptr<i8>, #one>) -> tensor<128xi8, #one> {
    tt.atomic_store release, sys, %p, %x : tensor<128x!tt.ptr<i32>, #one>
    %0 = tt.atomic_load acquire, gpu, %b : (tensor<128x!tt.ptr<i8>, #one>) -> tensor<128xi8, #one>
    tt.return %0 : tensor<128xi8, #one>
  }

  // The clock is read before the first load; the load is repeated until the value is there or time is up.
  // CHECK-LABEL: llvm.func {{.*}}@poll
  // CHECK: %[[BEGIN:.*]] = llvm.call_intrinsic "llvm.nvvm.read.ptx.sreg.globaltimer"
  // CHECK: llvm.br ^[[AGAIN:bb.*]]
  // CHECK: ^[[AGAIN]]:
  // CHECK: ld.relaxed.gpu.global.b32
  // CHECK: llvm.cond_br %{{.*}}, ^[[DONE:bb[0-9]+]](%{{.*}} : i1), ^[[LATE:bb[0-9]+]]
  // CHECK: ^[[LATE]]:
  // CHECK: llvm.sub %{{.*}}, %[[BEGIN]]
  // CHECK: llvm.cond_br %{{.*}}, ^[[AGAIN]], ^[[DONE]]
  // CHECK: ^[[DONE]]
  // CHECK: nvvm.barrier0
  tt.func private @poll(%p: tensor<128x!tt.ptr<i32>, #one>, %x: tensor<128xi32, #one>, %t: i64) -> tensor<128xi1, #one> {
    %0 = tt.atomic_poll relaxed, gpu, %p, %x timeout %t : tensor<128x!tt.ptr<i32>, #one>, tensor<128xi32, #one> -> tensor<128xi1, #one>
    tt.return %0 : tensor<128xi1, #one>
  }
}

// -----

#four = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // Neighbours in one thread go together: PTX has vectors of floats from sm_90 on.
  // CHECK-LABEL: llvm.func {{.*}}@together
  // CHECK: red.global.gpu.relaxed.add.v4.f32 [ $0 ], { $1, $2, $3, $4 };
  // CHECK: red.global.gpu.relaxed.add.noftz.v2.f16x2 [ $0 ], { $1, $2 };
  tt.func private @together(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %x: tensor<128xf32, #four>, %y: tensor<128xf16, #four>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four>
    %true = arith.constant dense<true> : tensor<128xi1, #four>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #four>
    %p1 = tt.addptr %p0, %r : tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %p1, %x, %true : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>, tensor<128xi1, #four>) -> tensor<128xf32, #four>
    %q0 = tt.splat %q : !tt.ptr<f16> -> tensor<128x!tt.ptr<f16>, #four>
    %q1 = tt.addptr %q0, %r : tensor<128x!tt.ptr<f16>, #four>, tensor<128xi32, #four>
    %1 = tt.atomic_rmw fadd, relaxed, gpu, %q1, %y, %true : (tensor<128x!tt.ptr<f16>, #four>, tensor<128xf16, #four>, tensor<128xi1, #four>) -> tensor<128xf16, #four>
    tt.return
  }

  // Elements of a tensor are not ordered among themselves: a thread that accesses several orders them by two fences, if it
  // accesses any, and none of the accesses waits. The second one does, since nobody waits for what reductions give.
  // CHECK-LABEL: llvm.func {{.*}}@several
  // CHECK: %[[TWO:.*]] = llvm.or %[[FIRST:.*]], %[[SECOND:.*]] : i1
  // CHECK: %[[THREE:.*]] = llvm.or %[[TWO]], %[[THIRD:.*]] : i1
  // CHECK: %[[ANY:.*]] = llvm.or %[[THREE]], %[[FOURTH:.*]] : i1
  // CHECK: llvm.nvvm.bar.warp.sync
  // CHECK: llvm.cond_br %[[ANY]], ^[[FENCE:bb[0-9]+]], ^[[ACCESS:bb[0-9]+]]
  // CHECK: ^[[FENCE]]:
  // CHECK-NEXT: llvm.fence syncscope("device") release
  // CHECK: ^[[ACCESS]]:
  // CHECK: red.global.gpu.relaxed.add.f32 {{.*}}, %[[FIRST]] :
  // CHECK: red.global.gpu.relaxed.add.f32 {{.*}}, %[[SECOND]] :
  // CHECK: red.global.gpu.relaxed.add.f32 {{.*}}, %[[THIRD]] :
  // CHECK: red.global.gpu.relaxed.add.f32 {{.*}}, %[[FOURTH]] :
  // CHECK: llvm.cond_br %[[ANY]]
  // CHECK: llvm.fence syncscope("device") acq_rel
  // CHECK: llvm.nvvm.bar.warp.sync
  tt.func private @several(%p: tensor<128x!tt.ptr<f32>, #four>, %x: tensor<128xf32, #four>, %m: tensor<128xi1, #four>) {
    %0 = tt.atomic_rmw fadd, acq_rel, gpu, %p, %x, %m : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>, tensor<128xi1, #four>) -> tensor<128xf32, #four>
    tt.return
  }
  // What only acquires or releases has one fence; old values that somebody uses are given by relaxed accesses, too.
  // CHECK-LABEL: llvm.func {{.*}}@several_acquire
  // CHECK-NOT: fence
  // CHECK-COUNT-4: atom.global.sys.relaxed.cas.b32
  // CHECK-NEXT: llvm.fence syncscope("") acquire
  // CHECK: llvm.nvvm.bar.warp.sync
  tt.func private @several_acquire(%p: tensor<128x!tt.ptr<i32>, #four>, %x: tensor<128xi32, #four>) -> tensor<128xi32, #four> {
    %0 = tt.atomic_cas acquire, sys, %p, %x, %x : (tensor<128x!tt.ptr<i32>, #four>, tensor<128xi32, #four>, tensor<128xi32, #four>) -> tensor<128xi32, #four>
    tt.return %0 : tensor<128xi32, #four>
  }
  // CHECK-LABEL: llvm.func {{.*}}@several_release
  // CHECK: llvm.nvvm.bar.warp.sync
  // CHECK-NEXT: llvm.fence syncscope("block") release
  // CHECK-COUNT-4: st.relaxed.cta.global.b32
  // CHECK-NOT: fence
  // CHECK: llvm.return
  tt.func private @several_release(%p: tensor<128x!tt.ptr<i32>, #four>, %x: tensor<128xi32, #four>) {
    tt.atomic_store release, cta, %p, %x : tensor<128x!tt.ptr<i32>, #four>
    tt.return
  }

  // What acquires has results, though nobody uses them: as many as operands.
  // CHECK-LABEL: llvm.func {{.*}}@acquiring
  // CHECK: atom.global.gpu.acq_rel.add.v4.f32 { $0, $1, $2, $3 }, [ $4 ], { $5, $6, $7, $8 };", "=&r,=&r,=&r,=&r,l,r,r,r,r,~{memory}"
  tt.func private @acquiring(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %x: tensor<128xf32, #four>) {
    %r = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four>
    %p0 = tt.splat %p : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>, #four>
    %p1 = tt.addptr %p0, %r : tensor<128x!tt.ptr<f32>, #four>, tensor<128xi32, #four>
    %0 = tt.atomic_rmw fadd, acq_rel, gpu, %p1, %x : (tensor<128x!tt.ptr<f32>, #four>, tensor<128xf32, #four>) -> tensor<128xf32, #four>
    tt.return
  }
}

// -----

#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-warps" = 1 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // sm_80 has no sum of bf16: LLVM makes a loop of comparisons.
  // CHECK-LABEL: llvm.func {{.*}}@loop
  // CHECK: llvm.cond_br %{{.*}}, ^[[ACT:bb[0-9]+]], ^[[DONE:bb[0-9]+]]
  // CHECK: ^[[ACT]]:
  // CHECK: llvm.atomicrmw fadd %{{.*}} syncscope("device") monotonic : !llvm.ptr<1>, bf16
  // CHECK: llvm.br ^[[DONE]]
  tt.func private @loop(%p: tensor<32x!tt.ptr<bf16>, #one>, %x: tensor<32xbf16, #one>, %m: tensor<32xi1, #one>) {
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x, %m : (tensor<32x!tt.ptr<bf16>, #one>, tensor<32xbf16, #one>, tensor<32xi1, #one>) -> tensor<32xbf16, #one>
    tt.return
  }
}
