// RUN: %ttopt %s --tritongpu-allocate-warp-groups -split-input-file -verify-diagnostics | FileCheck %s

// Larger partitions come first; the only operation of a kernel that reaches it once needs no dispatch.
// CHECK: "ttg.total-num-warps" = 11 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @numbers
// CHECK: attributes {ttg.runs_once, warpGroupStartIds = array<i32: 10, 4, 8>}
tt.func @numbers() {
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  }
  partition1() num_warps(4) {
    ttg.warp_return
  }
  partition2() num_warps(2) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

// Registers: 65536 / (12 * 32) = 170, so 168 at the start. A producer of one warp has a warp group of its own, with what
// the partition asks for, and the default warps get what is left: (3 * 168 - 40 - 216) / 1 = 248.
// CHECK: ttg.maxnreg = 168 : i32
// CHECK-SAME: "ttg.total-num-warps" = 12 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @registers
// CHECK: attributes {actualRegisters = array<i32: 248, 40, 216>, requestedRegisters = array<i32: 33, 216>, ttg.runs_once, warpGroupStartIds = array<i32: 8, 4>}
tt.func @registers() {
  ttg.warp_specialize() attributes {requestedRegisters = array<i32: 33, 216>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  }
  partition1() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

// In a loop worker warps have to be told; so do those of two operations. Given numbers stay.
// CHECK: "ttg.total-num-warps" = 9 : i32
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
// CHECK-LABEL: @in_a_loop
// CHECK-NOT: ttg.runs_once
// CHECK: attributes {warpGroupStartIds = array<i32: 4>}
// CHECK: attributes {warpGroupStartIds = array<i32: 8>}
tt.func @in_a_loop(%n: i32) {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  scf.for %i = %zero to %n step %one : i32 {
    ttg.warp_specialize(%i)
    default {
      ttg.warp_yield
    }
    partition0(%j: i32) num_warps(4) {
      ttg.warp_return
    } : (i32) -> ()
  }
  ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 8>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @callee() {
  // expected-error @below {{is in a function that is called: warps specialize in kernels only}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @callee() {
  tt.return
}
tt.func @call() {
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1) {
    // expected-error @below {{functions that are not inlined are compiled for the warps of the kernel, not for those of a partition}}
    tt.call @callee() : () -> ()
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

#b = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @captures_a_tensor() {
  %t = arith.constant dense<1> : tensor<128xi32, #b>
  // expected-error @below {{a partition captures tensor<128xi32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>, whose elements only the default warps hold: pass it through shared memory}}
  ttg.warp_specialize(%t)
  default {
    ttg.warp_yield
  }
  partition0(%u: tensor<128xi32, #b>) num_warps(4) {
    ttg.warp_return
  } : (tensor<128xi32, #b>) -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @taken() {
  // expected-error @below {{partition 1 begins at warp 6, which is not free: warps up to 8 have other work}}
  ttg.warp_specialize() attributes {warpGroupStartIds = array<i32: 4, 6>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  }
  partition1() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @greedy() {
  // expected-error @below {{its partitions ask for so many registers that 0 are left for each thread of the default warps}}
  ttg.warp_specialize() attributes {requestedRegisters = array<i32: 240, 240, 240>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  }
  partition1() num_warps(4) {
    ttg.warp_return
  }
  partition2() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @negative() {
  // expected-error @below {{`requestedRegisters` has the number -1}}
  ttg.warp_specialize() attributes {requestedRegisters = array<i32: -1>}
  default {
    ttg.warp_yield
  }
  partition0() num_warps(4) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}

// -----

// Numbers of warps that add up to 2^32, and four.
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func @immense() {
  // expected-error @below {{needs 4294967295 warps, of which a CTA has at most 1024}}
  ttg.warp_specialize()
  default {
    ttg.warp_yield
  }
  partition0() num_warps(1073741824) {
    ttg.warp_return
  }
  partition1() num_warps(1073741824) {
    ttg.warp_return
  }
  partition2() num_warps(1073741824) {
    ttg.warp_return
  }
  partition3() num_warps(1073741824) {
    ttg.warp_return
  } : () -> ()
  tt.return
}
}
