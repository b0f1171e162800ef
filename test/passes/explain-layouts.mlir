// RUN: %ttopt %s -split-input-file --tritongpu-explain-layouts -verify-diagnostics -o /dev/null
// RUN: %ttopt %s -split-input-file --tritongpu-explain-layouts=table=true -o /dev/null 2>&1 | FileCheck %s

// CHECK: {{^}}what {{ *}}| where {{ *}}| tensor {{ *}}| layout {{ *}}| plan {{ *}}| cycles {{ *}}| times {{ *}}| why
// CHECK: tt.load {{.*}} | 64x64xf32 | L0 {{.*}} | chosen for this access to memory
// CHECK: ttg.convert_layout {{.*}} | L0 -> L1 | shared memory, {{[0-9]+}} bytes | {{[0-9.]+}} {{ *}}| 1
// CHECK: conversions: 1, weighted cycles:
// CHECK: L0 = #ttg.blocked<{sizePerThread = [1, 4]
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [16, 2], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // expected-remark @below {{takes 37336 cycles of a CTA by the objective, which counts no dots: stores 29619, loads 7296, conversions 421}}
  tt.func @transpose(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>) {
    // expected-remark @below {{choice of the layout of a region: stay in blocked 1x4 lanes 2x16 warps 4x1: 0 cycles | move 1 operation to}}
    // expected-remark @below {{layout fixed: tt.load of tensor<64x64xf32> has #ttg.blocked<{sizePerThread = [1, 4]}}
    %x = tt.load %p : tensor<64x64x!tt.ptr<f32>, #a>
    // expected-remark @below {{choice of how to have tt.load in blocked 4x1 lanes 16x2 warps 1x4: convert it: 421 cycles | rematerialize it: 693}}
    // expected-remark @below {{cycles, 1 times; it stayed because doing tt.load at}}
    %y = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
    // expected-remark @below {{choice of the layout of this store: as its addresses ask, blocked 4x1 lanes 16x2 warps 1x4: 30040 cycles (access 29619, conversion 421) | as its value is, blocked 1x4}}
    // expected-remark @below {{choice of the layout of a region: stay in blocked 4x1}}
    // expected-remark @below {{layout fixed: tt.store of tensor<64x64x!tt.ptr<f32>>}}
    tt.store %q, %y : tensor<64x64x!tt.ptr<f32>, #b>
    tt.return
  }
}

// -----

// Iterations of loops count, and what cannot be done again is named.
// CHECK: ttg.convert_layout {{.*}} | 16 {{ *}}| tt.atomic_rmw at {{.*}} must happen once; wanted by tt.store at {{.*}}, which would take {{[0-9]+}} cycles as the value is, and takes {{[0-9]+}}
#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // expected-remark @below {{takes 120221 cycles of a CTA by the objective}}
  tt.func @loop(%p: tensor<512x!tt.ptr<i32>, #a>, %v: tensor<512xi32, #a>, %m: tensor<512xi1, #a>, %q: tensor<512x!tt.ptr<i32>, #b>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1  : i32 {
      // expected-remark @below {{layout fixed}}
      %x = tt.atomic_rmw add, acq_rel, gpu, %p, %v, %m : (tensor<512x!tt.ptr<i32>, #a>, tensor<512xi32, #a>, tensor<512xi1, #a>) -> tensor<512xi32, #a>
      // expected-remark @below {{16 times}}
      %y = ttg.convert_layout %x : tensor<512xi32, #a> -> tensor<512xi32, #b>
      // expected-remark @below {{choice of the layout of this store}}
      // expected-remark @below {{choice of the layout of a region: stay in blocked 4 lanes 32 warps 4: 0 cycles | move 1 operation to blocked 1 lanes 32 warps 4: -1593}}
      // expected-remark @below {{layout fixed}}
      tt.store %q, %y : tensor<512x!tt.ptr<i32>, #b>
    }
    tt.return
  }
}
