// What the parsers and verifiers of encodings refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// blocked: rank
// expected-error @below {{sizePerThread = [1, 1] and order = [0] have different ranks}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>} {}

// -----

// blocked: powers of two
// expected-error @below {{sizePerThread must hold powers of two, got 3 in [3]}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [3], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>} {}

// -----

// blocked: order
// expected-error @below {{order must list 0 to 0 once each, got [1]}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [1]}>} {}

// -----

// blocked: a parameter is missing
// expected-error @below {{#ttg.blocked: parameter `order` is missing}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4]}>} {}

// -----

// blocked: a parameter too many
// expected-error @below {{#ttg.blocked: unknown parameter `color`}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], color = 3}>} {}

// -----

// blocked: not a number
// expected-error @below {{#ttg.blocked: `sizePerThread` must be a number of 32 bits, got -1 : i64}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [-1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>} {}

// -----

// blocked: not a list
// expected-error @below {{#ttg.blocked: `sizePerThread` must be a list, got 1 : i64}}
module attributes {x.y = #ttg.blocked<{sizePerThread = 1, threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>} {}

// -----

// not a dictionary
// expected-error @below {{expected `<{parameter = value, …}>` after #ttg.blocked}}
module attributes {x.y = #ttg.blocked<[1]>} {}

// -----

// CGA: gaps
// expected-error @below {{CGALayout = [[1], [4]] must reach every block of the tensor once: besides copies, bases are distinct powers of two, without gaps}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1], [4]]}>} {}

// -----

// CGA: rank
// expected-error @below {{#ttg.blocked: basis [1, 0] of `CGALayout` has 2 coordinates, not 1}}
module attributes {x.y = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1, 0]]}>} {}

// -----

// slice: parent of one dimension
// expected-error @below {{the parent must have at least 2 dimensions, it has 1}}
module attributes {x.y = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>}>} {}

// -----

// slice: dimension
// expected-error @below {{dim = 2 must be less than the rank 2 of the parent}}
module attributes {x.y = #ttg.slice<{dim = 2, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>}>} {}

// -----

// slice: parent of shared memory
// expected-error @below {{the parent must distribute a tensor over threads, #ttg.swizzled_shared does not}}
module attributes {x.y = #ttg.slice<{dim = 0, parent = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>} {}

// -----

// slice: parent is no encoding
// expected-error @below {{#ttg.slice: 3 : i64 is not a layout encoding}}
module attributes {x.y = #ttg.slice<{dim = 0, parent = 3}>} {}

// -----

// dot_op: opIdx
// expected-error @below {{opIdx must be 0 or 1, got 2}}
module attributes {x.y = #ttg.dot_op<{opIdx = 2, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>}>} {}

// -----

// dot_op: kWidth of blocked
// expected-error @below {{kWidth has no meaning under a #ttg.blocked parent, got 2}}
module attributes {x.y = #ttg.dot_op<{opIdx = 1, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>, kWidth = 2}>} {}

// -----

// dot_op: kWidth of mma
// expected-error @below {{kWidth is needed under an #ttg.nvidia_mma parent}}
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>}>} {}

// -----

// dot_op: right operand of wgmma
// expected-error @below {{opIdx must be 0 under a version 3 parent: wgmma takes only its left operand from registers}}
module attributes {x.y = #ttg.dot_op<{opIdx = 1, parent = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>, kWidth = 2}>} {}

// -----

// dot_op: kWidth of mfma
// expected-error @below {{kWidth is needed under an #ttg.amd_mfma parent}}
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>}>} {}

// -----

// dot_op: kWidth of wmma
// expected-error @below {{kWidth must be one of [8, 16] under an #ttg.amd_wmma parent of version 1, got 4}}
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>, kWidth = 4}>} {}

// -----

// dot_op: kWidth of wmma 3
// expected-error @below {{kWidth is needed under an #ttg.amd_wmma parent}}
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [16, 16, 32]}>}>} {}

// -----

// dot_op: parent
// expected-error @below {{#ttg.slice cannot be the parent of an operand}}
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #ttg.slice<{dim = 0, parent = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>}>}>} {}

// -----

// nvidia_mma: version
// expected-error @below {{versionMajor must be 2 (mma) or 3 (wgmma), got 1}}
module attributes {x.y = #ttg.nvidia_mma<{versionMajor = 1, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>} {}

// -----

// amd_mfma: version
// expected-error @below {{version must be 0 to 4, got 5}}
module attributes {x.y = #ttg.amd_mfma<{version = 5, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>} {}

// -----

// amd_mfma: instruction
// expected-error @below {{no instruction has instrShape = [8, 8, 8]}}
module attributes {x.y = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [8, 8, 8], isTransposed = true}>} {}

// -----

// amd_mfma: element width
// expected-error @below {{elementBitWidth must be 32 or 64, got 16}}
module attributes {x.y = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, elementBitWidth = 16}>} {}

// -----

// amd_mfma: not a boolean
// expected-error @below {{#ttg.amd_mfma: `isTransposed` must be true or false, got 1 : i64}}
module attributes {x.y = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = 1}>} {}

// -----

// amd_wmma: version
// expected-error @below {{version must be 1 to 3, got 4}}
module attributes {x.y = #ttg.amd_wmma<{version = 4, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}}>} {}

// -----

// amd_wmma: instruction
// expected-error @below {{no instruction of version 1 has instrShape = [16, 16, 32]}}
module attributes {x.y = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [16, 16, 32]}>} {}

// -----

// amd_wmma: tiles with a gap
// expected-error @below {{ctaLayout: the layout reaches 2^1 of the 2^2 output points; it must reach all of them}}
module attributes {x.y = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = [[0, 2]]}}>} {}

// -----

// amd_wmma: ctaLayout
// expected-error @below {{#ttg.amd_wmma: `ctaLayout` must be `{warp = …}`, got [[1]]}}
module attributes {x.y = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = [[1]]}>} {}

// -----

// linear: a basis along two dimensions
// expected-error @below {{the bases that are not zero must be distinct, each a power of two along one dimension}}
module attributes {x.y = #ttg.linear<{register = [[0, 1], [8, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [], block = []}>} {}

// -----

// linear: a gap
// expected-error @below {{#ttg.linear: the layout reaches 2^7 of the 2^8 output points; it must reach all of them}}
module attributes {x.y = #ttg.linear<{register = [[0, 1]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]], block = []}>} {}

// -----

// linear: missing dimension
// expected-error @below {{#ttg.linear: parameter `block` is missing}}
module attributes {x.y = #ttg.linear<{register = [[0, 1]], lane = [[1, 0]], warp = []}>} {}

// -----

// linear: no basis
// expected-error @below {{#ttg.linear: without a basis the number of dimensions is not known}}
module attributes {x.y = #ttg.linear<{register = [], lane = [], warp = [], block = []}>} {}

// -----

// linear: rank of a basis
// expected-error @below {{#ttg.linear: basis [1] of `lane` has 1 coordinates, not 2}}
module attributes {x.y = #ttg.linear<{register = [[0, 1]], lane = [[1]], warp = [], block = []}>} {}

// -----

// generic_linear: a register along two dimensions
// expected-error @below {{basis [1, 1] of `register` moves along more than one dimension}}
module attributes {x.y = #ttg.generic_linear<{register = [[0, 1], [1, 1]], lane = [], warp = [], block = []}>} {}

// -----

// swizzled_shared: order
// expected-error @below {{order must list 0 to 1 once each, got [1, 1]}}
module attributes {x.y = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 1]}>} {}

// -----

// nvmma_shared: width
// expected-error @below {{swizzlingByteWidth must be 0, 32, 64 or 128, got 16}}
module attributes {x.y = #ttg.nvmma_shared<{swizzlingByteWidth = 16, transposed = false, elementBitWidth = 16}>} {}

// -----

// nvmma_shared: element width
// expected-error @below {{elementBitWidth must not be zero}}
module attributes {x.y = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 0}>} {}

// -----

// padded_shared: none
// expected-error @below {{expected at least one `interval:+padding`}}
module attributes {x.y = #ttg.padded_shared<[] {order = [1, 0], shape = [16, 32]}>} {}

// -----

// padded_shared: twice
// expected-error @below {{interval 2 is given twice}}
module attributes {x.y = #ttg.padded_shared<[2:+2, 2:+1] {order = [1, 0], shape = [16, 32]}>} {}

// -----

// padded_shared: interval
// expected-error @below {{interval and padding must be powers of two, got 3:+2}}
module attributes {x.y = #ttg.padded_shared<[3:+2] {order = [1, 0], shape = [16, 32]}>} {}

// -----

// padded_shared: negative
// expected-error @below {{#ttg.padded_shared: `-2` is negative}}
module attributes {x.y = #ttg.padded_shared<[-2:+2] {order = [1, 0], shape = [16, 32]}>} {}

// -----

// padded_shared: syntax
// expected-error @below {{expected '+'}}
module attributes {x.y = #ttg.padded_shared<[2:2] {order = [1, 0], shape = [16, 32]}>} {}

// -----

// padded_shared: copies
// expected-error @below {{a basis of `offset` is zero: two offsets would hold one element}}
module attributes {x.y = #ttg.padded_shared<[2:+2] {offset = [[1, 0], [0, 0], [0, 1]], block = []}>} {}

// -----

// padded_shared: a basis along two dimensions
// expected-error @below {{basis [1, 1] of `offset` moves along more than one dimension}}
module attributes {x.y = #ttg.padded_shared<[2:+2] {offset = [[1, 1], [0, 1]], block = []}>} {}

// -----

// padded_shared: shape
// expected-error @below {{#ttg.padded_shared: at byte 0: shape [16] does not go with order [1, 0]}}
module attributes {x.y = #ttg.padded_shared<[2:+2] {order = [1, 0], shape = [16]}>} {}

// -----

// partitioned_shared: partitions
// expected-error @below {{numPartitions must be a power of two from 2 up, got 3}}
module attributes {x.y = #ttg.partitioned_shared<{numPartitions = 3, numGroups = 4, partitionDim = 0, partitionLayout = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>} {}

// -----

// partitioned_shared: groups
// expected-error @below {{numGroups must be a power of two, got 3}}
module attributes {x.y = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 3, partitionDim = 0, partitionLayout = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>} {}

// -----

// partitioned_shared: dimension
// expected-error @below {{partitionDim = 2 must be less than the rank 2 of partitionLayout}}
module attributes {x.y = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 2, partitionLayout = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>}>} {}

// -----

// partitioned_shared: layout
// expected-error @below {{partitionLayout must lay out shared memory, #ttg.blocked does not}}
module attributes {x.y = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>}>} {}

// -----

// shared_linear: alignment
// expected-error @below {{alignment must be a power of two, got 3}}
module attributes {x.y = #ttg.shared_linear<{offset = [[0, 1], [1, 0]]}, alignment = 3>} {}

// -----

// shared_linear: alignment missing
// expected-error @below {{expected ','}}
module attributes {x.y = #ttg.shared_linear<{offset = [[0, 1], [1, 0]]}>} {}

// -----

// shared_linear: two places
// expected-error @below {{3 bases that are not zero reach only 2 bits of the tensor: some element has two places}}
module attributes {x.y = #ttg.shared_linear<{offset = [[0, 1], [0, 1], [1, 0]]}, alignment = 16>} {}

// -----

// nvmma_shared: Triton makes something of what was in memory
// expected-error @below {{#ttg.nvmma_shared: parameter `elementBitWidth` is missing}}
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false}>
module attributes {x.y = #shared} {
}
