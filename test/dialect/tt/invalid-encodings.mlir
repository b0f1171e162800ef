// What the verifiers refuse of layouts.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// bitcast b->b2
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.bitcast' op requires the same encoding for all operands and results, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.bitcast %a : tensor<32x16xf32, #b> -> tensor<32x16xi32, #b2>
    tt.return
  }
}

// -----

// addptr l
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16x!tt.ptr<f32>, #b>, %o: tensor<32x16xi32, #l>) {
    // expected-error @below {{'tt.addptr' op requires the same encoding for all operands and results, but got 'tensor<32x16x!tt.ptr<f32>, #ttg.blocked}}
    %0 = tt.addptr %a, %o : tensor<32x16x!tt.ptr<f32>, #b>, tensor<32x16xi32, #l>
    tt.return
  }
}

// -----

// load mask enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16x!tt.ptr<f32>, #b>, %o: tensor<32x16xi1, #b2>) {
    // expected-error @below {{'tt.load' op requires the same encoding for all operands and results, but got 'tensor<32x16x!tt.ptr<f32>, #ttg.blocked}}
    %0 = "tt.load"(%a, %o) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<32x16x!tt.ptr<f32>, #b>, tensor<32x16xi1, #b2>) -> tensor<32x16xf32, #b>
    tt.return
  }
}

// -----

// atomic_rmw result equiv
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16x!tt.ptr<f32>, #b>, %o: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.atomic_rmw' op requires the same encoding for all operands and results, but got 'tensor<32x16x!tt.ptr<f32>, #ttg.blocked}}
    %0 = tt.atomic_rmw fadd, relaxed, gpu, %a, %o : (tensor<32x16x!tt.ptr<f32>, #b>, tensor<32x16xf32, #b>) -> tensor<32x16xf32, #l>
    tt.return
  }
}

// -----

// expand wrong
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s0 = #ttg.slice<{dim = 0, parent = #b}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16xf32, #s0>) {
    // expected-error @below {{'tt.expand_dims' op inferred type(s) 'tensor<1x16xf32, #ttg.blocked}}
    %0 = tt.expand_dims %a {axis = 0 : i32} : tensor<16xf32, #s0> -> tensor<1x16xf32, #b2>
    tt.return
  }
}

// -----

// expand wrong axis
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s0 = #ttg.slice<{dim = 0, parent = #b}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16xf32, #s0>) {
    // expected-error @below {{'tt.expand_dims' op axis 1 is not the dimension that #ttg.slice}}
    %0 = tt.expand_dims %a {axis = 1 : i32} : tensor<16xf32, #s0> -> tensor<16x1xf32, #b>
    tt.return
  }
}

// -----

// expand not slice
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16xf32, #b1>) {
    // expected-error @below {{'tt.expand_dims' op operand of expand_dims must have a #ttg.slice encoding, got #ttg.blocked}}
    %0 = tt.expand_dims %a {axis = 0 : i32} : tensor<16xf32, #b1> -> tensor<1x16xf32, #b>
    tt.return
  }
}

// -----

// reduce wrong enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.reduce' op inferred type(s) 'tensor<32xf32, #ttg.slice}}
    %0 = "tt.reduce"(%a) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32):
      tt.reduce.return %x : f32
    }) : (tensor<32x16xf32, #b>) -> tensor<32xf32, #b1>
    tt.return
  }
}

// -----

// reduce operand encs
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#s1 = #ttg.slice<{dim = 1, parent = #b}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>, %b: tensor<32x16xf32, #b2>) {
    // expected-error @below {{'tt.reduce' op requires the same encoding for all operands, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0:2 = "tt.reduce"(%a, %b) <{axis = 1 : i32}> ({
    ^bb0(%x: f32, %y: f32, %z: f32, %w: f32):
      tt.reduce.return %x, %x : f32, f32
    }) : (tensor<32x16xf32, #b>, tensor<32x16xf32, #b2>) -> (tensor<32xf32, #s1>, tensor<32xf32, #s1>)
    tt.return
  }
}

// -----

// scan result enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.scan' op requires the same encoding for all operands and results, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = "tt.scan"(%a) <{axis = 1 : i32, reverse = false}> ({
    ^bb0(%x: f32, %y: f32):
      tt.scan.return %x : f32
    }) : (tensor<32x16xf32, #b>) -> tensor<32x16xf32, #l>
    tt.return
  }
}

// -----

// trans wrong
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.trans' op inferred type(s) 'tensor<16x32xf32, #ttg.blocked}}
    %0 = tt.trans %a {order = array<i32: 1, 0>} : tensor<32x16xf32, #b> -> tensor<16x32xf32, #b>
    tt.return
  }
}

// -----

// reshape none
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.reshape' op requires encodings on all of its tensors or on none, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.reshape %a : tensor<32x16xf32, #b> -> tensor<512xf32>
    tt.return
  }
}

// -----

// reshape wrong
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.reshape' op would move elements: the source's layout, reshaped, is not the result's layout #ttg.blocked}}
    %0 = tt.reshape %a : tensor<32x16xf32, #b> -> tensor<512xf32, #b1>
    tt.return
  }
}

// -----

// broadcast wrong
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#t = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [4, 8], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x1xf32, #b>) {
    // expected-error @below {{'tt.broadcast' op requires the same layout of source and result up to repeated registers, but got 'tensor<32x1xf32, #ttg.blocked}}
    %0 = tt.broadcast %a : tensor<32x1xf32, #b> -> tensor<32x16xf32, #t>
    tt.return
  }
}

// -----

// cat none
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.cat' op requires encodings on all of its tensors or on none, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.cat %a, %a : tensor<32x16xf32, #b> -> tensor<64x16xf32>
    tt.return
  }
}

// -----

// join, the pair in a lane
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
#p = #ttg.linear<{register = [[0, 1, 0], [0, 2, 0], [4, 0, 0]], lane = [[0, 4, 0], [0, 8, 0], [1, 0, 0], [2, 0, 0], [0, 0, 1]], warp = [[8, 0, 0], [16, 0, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #l>) {
    // expected-error @below {{'tt.join' op inferred type(s) 'tensor<32x16x2xf32, #ttg.linear}}
    %0 = tt.join %a, %a : tensor<32x16xf32, #l> -> tensor<32x16x2xf32, #p>
    tt.return
  }
}

// -----

// join, other halves
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
#p = #ttg.linear<{register = [[0, 2, 0], [0, 1, 0], [0, 0, 1]], lane = [[0, 4, 0], [0, 8, 0], [1, 0, 0], [2, 0, 0], [4, 0, 0]], warp = [[8, 0, 0], [16, 0, 0]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #l>) {
    // expected-error @below {{'tt.join' op inferred type(s) 'tensor<32x16x2xf32, #ttg.linear}}
    %0 = tt.join %a, %a : tensor<32x16xf32, #l> -> tensor<32x16x2xf32, #p>
    tt.return
  }
}

// -----

// join none
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.join' op inferred type(s) 'tensor<32x16x2xf32, #ttg.blocked}}
    %0 = tt.join %a, %a : tensor<32x16xf32, #b> -> tensor<32x16x2xf32>
    tt.return
  }
}

// -----

// split wrong
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#j3 = #ttg.blocked<{sizePerThread = [1, 4, 2], threadsPerWarp = [8, 4, 1], warpsPerCTA = [4, 1, 1], order = [2, 1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16x2xf32, #j3>) {
    // expected-error @below {{'tt.split' op inferred type(s) 'tensor<32x16xf32, #ttg.blocked}}
    %0, %1 = tt.split %a : tensor<32x16x2xf32, #j3> -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// gather res enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>, %i: tensor<32x16xi32, #b2>) {
    // expected-error @below {{'tt.gather' op inferred type(s) 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.gather %a[%i] {axis = 1 : i32} : (tensor<32x16xf32, #b>, tensor<32x16xi32, #b2>) -> tensor<32x16xf32, #b>
    tt.return
  }
}

// -----

// dot plain
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16, #b>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #b>) {
    // expected-error @below {{'tt.dot' op requires a #ttg.dot_op encoding of the first operand, but got #ttg.blocked}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #b> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #b>
    tt.return
  }
}

// -----

// dot swapped
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16, #d1>, %b: tensor<16x16xf16, #d0>, %c: tensor<16x16xf32, #mma>) {
    // expected-error @below {{'tt.dot' op requires opIdx = 0 of the first operand, but got #ttg.dot_op}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #d1> * tensor<16x16xf16, #d0> -> tensor<16x16xf32, #mma>
    tt.return
  }
}

// -----

// dot parents
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#mma1 = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#e0 = #ttg.dot_op<{opIdx = 0, parent = #mma1, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16, #e0>, %b: tensor<16x16xf16, #d1>, %c: tensor<16x16xf32, #mma>) {
    // expected-error @below {{'tt.dot' op requires the accumulator's encoding, #ttg.nvidia_mma}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #e0> * tensor<16x16xf16, #d1> -> tensor<16x16xf32, #mma>
    tt.return
  }
}

// -----

// dot kwidth
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1k4 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 4}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16, #d0>, %b: tensor<16x16xf16, #d1k4>, %c: tensor<16x16xf32, #mma>) {
    // expected-error @below {{'tt.dot' op requires the same kWidth of both operands, but got 2 and 4}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #d0> * tensor<16x16xf16, #d1k4> -> tensor<16x16xf32, #mma>
    tt.return
  }
}

// -----

// dot a none
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf16, #d1>, %c: tensor<16x16xf32, #mma>) {
    // expected-error @below {{'tt.dot' op requires encodings on all of its tensors or on none, but got 'tensor<16x16xf16>' and 'tensor<16x16xf16, #ttg.dot_op}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf16, #d1> -> tensor<16x16xf32, #mma>
    tt.return
  }
}

// -----

// dot c none
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#d0 = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#d1 = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16x16xf16, #d0>, %b: tensor<16x16xf16, #d1>, %c: tensor<16x16xf32>) {
    // expected-error @below {{'tt.dot' op requires an encoding of the accumulator, but got 'tensor<16x16xf32>'}}
    %0 = tt.dot %a, %b, %c : tensor<16x16xf16, #d0> * tensor<16x16xf16, #d1> -> tensor<16x16xf32>
    tt.return
  }
}

// -----

// dot_scaled mixed
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x32xi8, #b>, %b: tensor<32x32xi8>, %c: tensor<32x32xf32, #b>) {
    // expected-error @below {{'tt.dot_scaled' op requires encodings on all of its tensors or on none, but got 'tensor<32x32xi8, #ttg.blocked}}
    %0 = tt.dot_scaled %a, %b, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x32xi8, #b> * tensor<32x32xi8> -> tensor<32x32xf32, #b>
    tt.return
  }
}

// -----

// make_range enc2d
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f() {
    // expected-error @below {{'tt.make_range' op result #0: #ttg.blocked}}
    %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #b>
    tt.return
  }
}

// -----

// make_range shared
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f() {
    // expected-error @below {{'tt.make_range' op result #0: #ttg.swizzled_shared}}
    %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #shared>
    tt.return
  }
}

// -----

// map enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.map_elementwise' op requires the same encoding for all operands and results, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
    ^bb0(%x: f32):
      tt.map_elementwise.return %x : f32
    }) : (tensor<32x16xf32, #b>) -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// asm enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.elementwise_inline_asm' op requires the same encoding for all operands and results, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a : tensor<32x16xf32, #b> -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// extern enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.extern_elementwise' op requires the same encoding for all operands and results, but got 'tensor<32x16xf32, #ttg.blocked}}
    %0 = tt.extern_elementwise %a {libname = "", libpath = "", pure = true, symbol = "s"} : (tensor<32x16xf32, #b>) -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// precise_sqrt enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.precise_sqrt' op requires the same encoding for all operands and results}}
    %0 = "tt.precise_sqrt"(%a) : (tensor<32x16xf32, #b>) -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// bitcast equiv none module attrs
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.precise_sqrt' op failed to verify that result type matches operand type}}
    %0 = "tt.precise_sqrt"(%a) : (tensor<32x16xf32, #b>) -> tensor<32x16xf32>
    tt.return
  }
}

// -----

// expand equivalent src
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b1 = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#s0 = #ttg.slice<{dim = 0, parent = #b}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<16xf32, #b1>) {
    // expected-error @below {{'tt.reshape' op would move elements: the source's layout, reshaped, is not the result's layout #ttg.slice}}
    %0 = tt.reshape %a : tensor<16xf32, #b1> -> tensor<16xf32, #s0>
    tt.return
  }
}

// -----

// expand of linear
#l = #ttg.linear<{register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]], block = []}>
#s1l = #ttg.linear<{register = [], lane = [[0], [0], [1], [2], [4]], warp = [[8], [16]], block = []}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32xf32, #s1l>) {
    // expected-error @below {{'tt.expand_dims' op operand of expand_dims must have a #ttg.slice encoding, got #ttg.linear}}
    %0 = tt.expand_dims %a {axis = 1 : i32} : tensor<32xf32, #s1l> -> tensor<32x1xf32, #l>
    tt.return
  }
}

// -----

// reshape equiv2
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16xf32, #b>) {
    // expected-error @below {{'tt.reshape' op would move elements: the source's layout, reshaped, is not the result's layout #ttg.blocked}}
    %0 = tt.reshape %a : tensor<32x16xf32, #b> -> tensor<32x16xf32, #b2>
    tt.return
  }
}

// -----

// atomic_cas enc
#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.num-ctas" = 1 : i32, "ttg.threads-per-warp" = 32 : i32} {
  tt.func @f(%a: tensor<32x16x!tt.ptr<i32>, #b>, %o: tensor<32x16xi32, #b>) {
    // expected-error @below {{'tt.atomic_cas' op failed to verify that result type matches value type}}
    %0 = tt.atomic_cas relaxed, gpu, %a, %o, %o : (tensor<32x16x!tt.ptr<i32>, #b>, tensor<32x16xi32, #b>, tensor<32x16xi32, #b>) -> tensor<32x16xi32>
    tt.return
  }
}

// -----

// Elements may be reordered, but not lost: as many registers, with replicas in other lanes.
#many = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @f(%x: tensor<16xi32, #ttg.slice<{dim = 1, parent = #many}>>) {
    // expected-error @below {{'tt.reshape' op would move elements: the source's layout, reshaped, is not the result's layout #ttg.blocked}}
    %r = tt.reshape %x allow_reorder : tensor<16xi32, #ttg.slice<{dim = 1, parent = #many}>> -> tensor<16xi32, #line>
    tt.return
  }
}
