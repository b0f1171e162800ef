// Every encoding prints as it is read, under the aliases Triton gives.
//
// RUN: %ttopt %s -split-input-file | FileCheck %s

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = {{\[\[}}1], [2]]}>
// CHECK-NEXT: module attributes {x.y = #blocked} {
#blocked = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0], CGALayout = [[1], [2]]}>
module attributes {x.y = #blocked} {
}

// -----

// CHECK: #linear = #ttg.linear<{register = {{\[\[}}0, 1], [8, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}16, 0], [32, 0]], block = []}>
// CHECK-NEXT: module attributes {x.y = #linear} {
#linear = #ttg.linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []}>
module attributes {x.y = #linear} {
}

// -----

// CHECK: #generic_linear = #ttg.generic_linear<{register = {{\[\[}}0, 1], [8, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}16, 0], [32, 0]], block = []}>
// CHECK-NEXT: module attributes {x.y = #generic_linear} {
#generic_linear = #ttg.generic_linear<{register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]], block = []}>
module attributes {x.y = #generic_linear} {
}

// -----

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: module attributes {x.y = #ttg.slice<{dim = 0, parent = #blocked}>} {
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {x.y = #ttg.slice<{dim = 0, parent = #blocked}>} {
}

// -----

// CHECK: #blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
// CHECK-NEXT: module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #blocked}>} {
#blocked = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #blocked}>} {
}

// -----

// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// CHECK-NEXT: module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>} {
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>} {
}

// -----

// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// CHECK-NEXT: module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>} {
#mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
module attributes {x.y = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>} {
}

// -----

// CHECK: #mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, tilesPerWarp = [2, 1]}>
// CHECK-NEXT: module attributes {x.y = #mma} {
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, tilesPerWarp = [2, 1]}>
module attributes {x.y = #mma} {
}

// -----

// CHECK: #mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, elementBitWidth = 64}>
// CHECK-NEXT: module attributes {x.y = #mma} {
#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true, elementBitWidth = 64}>
module attributes {x.y = #mma} {
}

// -----

// CHECK: #mma = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {register = {{\[\[}}2, 0]], warp = {{\[\[}}2, 1], [1, 0]]}}>
// CHECK-NEXT: module attributes {x.y = #mma} {
#mma = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {register = [[2, 0]], warp = [[2, 1], [1, 0]]}}>
module attributes {x.y = #mma} {
}

// -----

// CHECK: #mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = {{\[\[}}0, 1], [1, 0]]}, instrShape = [32, 16, 128]}>
// CHECK-NEXT: module attributes {x.y = #mma} {
#mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = [[0, 1], [1, 0]]}, instrShape = [32, 16, 128]}>
module attributes {x.y = #mma} {
}

// -----

// CHECK: #shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.amd_rotating_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.amd_rotating_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8, fp4Padded = true}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16, rank = 3}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.padded_shared<[2:+2, 4:+1] {order = [1, 0], shape = [16, 32]}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.padded_shared<[2:+2, 4:+1] {order = [1, 0], shape = [16, 32]}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.padded_shared<[4:+4] {offset = {{\[\[}}0, 1], [0, 2], [2, 0], [1, 0]], block = []}>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.padded_shared<[4:+4] {offset = [[0, 1], [0, 2], [2, 0], [1, 0]], block = []}>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
// CHECK-NEXT: #shared1 = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #shared}>
// CHECK-NEXT: module attributes {x.y = #shared1} {
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#shared1 = #ttg.partitioned_shared<{numPartitions = 2, numGroups = 4, partitionDim = 0, partitionLayout = #shared}>
module attributes {x.y = #shared1} {
}

// -----

// CHECK: #shared = #ttg.shared_linear<{offset = {{\[\[}}0, 1], [1, 0]], block = {{\[\[}}2, 0]]}, alignment = 16>
// CHECK-NEXT: module attributes {x.y = #shared} {
#shared = #ttg.shared_linear<{offset = [[0, 1], [1, 0]], block = [[2, 0]]}, alignment = 16>
module attributes {x.y = #shared} {
}

// -----

// CHECK: #smem = #ttg.shared_memory
// CHECK-NEXT: module attributes {x.y = #smem} {
#smem = #ttg.shared_memory
module attributes {x.y = #smem} {
}

// -----

// What Triton's parser lets one leave out is printed.
// CHECK: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// CHECK-NEXT: #mma1 = #ttg.amd_mfma<{version = 0, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = false}>
// CHECK-NEXT: #mma2 = #ttg.amd_wmma<{version = 1, isTranspose = false, ctaLayout = {warp = {{\[\[}}1, 0], [2, 0]]}}>
// CHECK-NEXT: #shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// CHECK-NEXT: module attributes {a.a = #mma, a.b = #mma1, a.c = #mma2, a.d = #shared} {
#mma = #ttg.nvidia_mma<{versionMajor = 2, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#mma1 = #ttg.amd_mfma<{warpsPerCTA = [4, 1], instrShape = [32, 32, 8]}>
#mma2 = #ttg.amd_wmma<{version = 1, ctaLayout = {warp = [[1, 0], [2, 0]]}}>
#shared = #ttg.nvmma_shared<{swizzlingByteWidth = 128, elementBitWidth = 16}>
module attributes {a.a = #mma, a.b = #mma1, a.c = #mma2, a.d = #shared} {
}
