// RUN: %ttc %s --emit llvm | FileCheck %s
// RUN: sed 's/barrier none/barrier fish/' %s > %t.mlir
// RUN: not %ttc %t.mlir 2>&1 | FileCheck %s --check-prefix=FISH
// RUN: sed 's/rocdl.s.setprio 1/rocdl.s.sleep 1/' %s > %t.sleep.mlir
// RUN: not %ttc %t.sleep.mlir 2>&1 | FileCheck %s --check-prefix=SLEEP

// Hints of Triton's own TTGIR are passed on. Kinds of instructions may have names, as newer versions of MLIR print them.

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {
// CHECK-LABEL: llvm.func amdgpu_kernelcc @hints(
// CHECK-DAG:     %[[ONE:.*]] = llvm.mlir.constant(1 : i16)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.s.setprio"(%[[ONE]]) : (i16) -> ()
// CHECK:         %[[NONE:.*]] = llvm.mlir.constant(0 : i32)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.sched.barrier"(%[[NONE]]) : (i32) -> ()
// CHECK:         %[[SOME:.*]] = llvm.mlir.constant(6 : i32)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.sched.barrier"(%[[SOME]]) : (i32) -> ()
// CHECK:         %[[MATRIX:.*]] = llvm.mlir.constant(8 : i32)
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.sched.group.barrier"(%[[MATRIX]], %{{.*}}, %{{.*}}) : (i32, i32, i32) -> ()
// A barrier without fences, and one of half of the waves, which branch on a scalar.
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.s.barrier"
// CHECK:         %[[ID:.*]] = llvm.call_intrinsic "llvm.amdgcn.workitem.id.x"
// CHECK:         %[[FIRST:.*]] = llvm.call_intrinsic "llvm.amdgcn.readfirstlane"(%{{.*}}) : (i32) -> i32
// CHECK:         %[[WAITS:.*]] = llvm.icmp "ne" %[[FIRST]], %{{.*}} : i32
// CHECK:         llvm.cond_br %[[WAITS]], ^[[WAIT:.*]], ^[[ON:bb[0-9]*]]
// CHECK:       ^[[WAIT]]:
// CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.s.barrier"
// CHECK-NEXT:    llvm.br ^[[ON]]
// FISH:  {{.*}}:34:22: error: expected attribute value
// SLEEP: 'rocdl.s.sleep' op cannot be lowered to LLVM yet
tt.func public @hints() {


  rocdl.s.setprio 1
  rocdl.sched.barrier none
  rocdl.sched.barrier valu|salu
  rocdl.sched.group.barrier mfma_wmma, 1, 0
  rocdl.s.barrier
  %id = rocdl.workitem.id.x : i32
  %half = arith.constant 128 : i32
  %late = arith.cmpi sge, %id, %half : i32
  amdg.cond_barrier %late
  tt.return
}
}
