// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=3 | FileCheck %s
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=1 | FileCheck %s --check-prefix=ONE

// A loop with a schedule of Triton's asks for stages, also where nothing is multiplied; how many there are at most still is what the loop
// says, or else the option (triton#11014: one stage is no pipeline, whatever the schedule says).

// CHECK-LABEL: @scheduled
// CHECK: tt.load
// CHECK: scf.for
// CHECK-LABEL: @one_stage
// CHECK-NOT: tt.load
// CHECK: scf.for
// CHECK: tt.load
// ONE-LABEL: @scheduled
// ONE-NOT: tt.load
// ONE: scf.for
// ONE: tt.load
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func @scheduled(%p: !tt.ptr<f32>, %low: i32, %high: i32, %step: i32, %first: f32) -> f32 {
    %r = scf.for %i = %low to %high step %step iter_args(%s = %first) -> (f32) : i32 {
      %q = tt.addptr %p, %i {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<f32>, i32
      %x = tt.load %q {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<f32>
      %y = arith.addf %x, %s {loop.cluster = 0 : i32, loop.stage = 1 : i32} : f32
      scf.yield %y : f32
    } {tt.scheduled_max_stage = 1 : i32}
    tt.return %r : f32
  }

  tt.func @one_stage(%p: !tt.ptr<f32>, %low: i32, %high: i32, %step: i32, %first: f32) -> f32 {
    %r = scf.for %i = %low to %high step %step iter_args(%s = %first) -> (f32) : i32 {
      %q = tt.addptr %p, %i {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<f32>, i32
      %x = tt.load %q {loop.cluster = 1 : i32, loop.stage = 0 : i32} : !tt.ptr<f32>
      %y = arith.addf %x, %s {loop.cluster = 0 : i32, loop.stage = 1 : i32} : f32
      scf.yield %y : f32
    } {tt.num_stages = 1 : i32, tt.scheduled_max_stage = 1 : i32}
    tt.return %r : f32
  }
}
