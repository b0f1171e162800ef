// Encodings of the results of shape operations, as told to those who expect others.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// trans of blocked
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.trans' op inferred type(s) 'tensor<32x64xf32, #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>>' are incompatible with return type(s) of operation 'tensor<32x64xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>'}}
tt.func @f(%a: tensor<64x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) { %0 = tt.trans %a {order = array<i32: 1, 0>} : tensor<64x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<32x64xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>
 tt.return }
}

// -----

// trans of mma
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.trans' op inferred type(s) 'tensor<32x32xf32, #ttg.linear<{register = [[1, 0], [0, 8], [16, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[8, 0], [0, 16]], block = []}>>' are incompatible with return type(s) of operation 'tensor<32x32xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>'}}
tt.func @f(%a: tensor<32x32xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>>) { %0 = tt.trans %a {order = array<i32: 1, 0>} : tensor<32x32xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>> -> tensor<32x32xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>
 tt.return }
}

// -----

// reduce
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.reduce' op inferred type(s) 'tensor<64xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>>' are incompatible with return type(s) of operation 'tensor<64xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
tt.func @f(%a: tensor<64x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) { %0 = "tt.reduce"(%a) <{axis = 1 : i32}> ({ ^bb0(%x: f32, %y: f32): 
 tt.reduce.return %x : f32 }) : (tensor<64x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<64xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
 tt.return }
}

// -----

// expand_dims of a slice
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.expand_dims' op inferred type(s) 'tensor<32x1xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>' are incompatible with return type(s) of operation 'tensor<32x1xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>'}}
tt.func @f(%a: tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>>) { %0 = tt.expand_dims %a {axis = 1 : i32} : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>> -> tensor<32x1xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>
 tt.return }
}

// -----

// expand_dims where nothing was sliced
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.expand_dims' op operand of expand_dims must have a #ttg.slice encoding, got #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}}
tt.func @f(%a: tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) { %0 = tt.expand_dims %a {axis = 1 : i32} : tensor<32x32xf32, #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<32x1x32xf32, #ttg.blocked<{sizePerThread = [16, 16, 16], threadsPerWarp = [1, 1, 32], warpsPerCTA = [4, 1, 1], order = [0, 1, 2]}>>
 tt.return }
}

// -----

// expand_dims of another dimension
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.expand_dims' op axis 0 is not the dimension that #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}> leaves out}}
tt.func @f(%a: tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>>) { %0 = tt.expand_dims %a {axis = 0 : i32} : tensor<32xf32, #ttg.slice<{dim = 1, parent = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>}>> -> tensor<1x32xf32, #ttg.blocked<{sizePerThread = [16, 16], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [0, 1]}>>
 tt.return }
}

// -----

// split of blocked
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.split' op inferred type(s) 'tensor<64xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', 'tensor<64xf32, #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>' are incompatible with return type(s) of operation 'tensor<64xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', 'tensor<64xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
tt.func @f(%a: tensor<64x2xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>>) { %0, %1 = tt.split %a : tensor<64x2xf32, #ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<64xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
 tt.return }
}

// -----

// split of bases
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.split' op inferred type(s) 'tensor<32xf32, #ttg.linear<{register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[0], [16]], block = []}>>', 'tensor<32xf32, #ttg.linear<{register = [[8]], lane = [[0], [0], [1], [2], [4]], warp = [[0], [16]], block = []}>>' are incompatible with return type(s) of operation 'tensor<32xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>', 'tensor<32xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>'}}
tt.func @f(%a: tensor<32x2xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>>) { %0, %1 = tt.split %a : tensor<32x2xf32, #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>> -> tensor<32xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
 tt.return }
}

// -----

// split of what is in different threads
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{'tt.split' op both halves must be in each thread: a register must move along the last dimension alone}}
tt.func @f(%a: tensor<32x2xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>>) { %0, %1 = tt.split %a : tensor<32x2xf32, #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<32xf32, #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>>
 tt.return }
}
