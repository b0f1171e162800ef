// What the verifiers of accesses to tensor memory refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// ttng.tmem_alloc
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: tensor<128x64xf32, #row>) {
  // expected-error @below {{'ttng.tmem_alloc' op the source has the shape [128, 64], but the buffer has [128, 128]}}
  %r = ttng.tmem_alloc %s : (tensor<128x64xf32, #row>) -> !ttg.memdesc<128x128xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: tensor<128x64xf32, #row>) {
  // expected-error @below {{'ttng.tmem_alloc' op the source has elements of 'f32', but the buffer has 'i32'}}
  %r = ttng.tmem_alloc %s : (tensor<128x64xf32, #row>) -> !ttg.memdesc<128x64xi32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sc = #ttng.tensor_memory_scales_encoding<>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: tensor<128x64xi8, #bl>) {
  // expected-error @below {{'ttng.tmem_alloc' op the source has the layout #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>, which does not fit tensor memory with #ttng.tensor_memory_scales_encoding<>: warps 1 and 2 must hold rows 32 and 64 of tensor memory}}
  %r = ttng.tmem_alloc %s : (tensor<128x64xi8, #bl>) -> !ttg.memdesc<128x64xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
#L_r8 = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [1, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: tensor<128x64xf32, #L_r8>) {
  // expected-error @below {{'ttng.tmem_alloc' op the source has the layout #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [1, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]], block = []}>, which does not fit tensor memory with #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>: no instruction moves these lanes and registers}}
  %r = ttng.tmem_alloc %s : (tensor<128x64xf32, #L_r8>) -> !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#n32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.tmem_alloc' op the result must be in tensor memory, with a layout of it, got '!ttg.memdesc<128x64xf32, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>, #ttg.shared_memory, mutable>'}}
  %r = ttng.tmem_alloc  : () -> !ttg.memdesc<128x64xf32, #n32, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.tmem_alloc' op an allocation without a source must be mutable, got '!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory>'}}
  %r = ttng.tmem_alloc  : () -> !ttg.memdesc<128x64xf32, #t, #tmem>
  tt.return
}
}

// -----

// ttng.tmem_alloc
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.tmem_alloc' op the result must be a whole allocation: its shape [128, 64] is not that of the allocation, [128, 128]}}
  %r = ttng.tmem_alloc  : () -> !ttg.memdesc<128x64xf32, #t, #tmem, mutable, 128x128>
  tt.return
}
}

// -----

// ttng.tmem_copy
#n32 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf32, #n32, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #n32, #smem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the destination must be in tensor memory, with a layout of it, got '!ttg.memdesc<128x64xf32, #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 32}>, #ttg.shared_memory, mutable>'}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf32, #n32, #smem, mutable>, !ttg.memdesc<128x64xf32, #n32, #smem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#n32t = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf32, #n32t, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source must be neither transposed nor padded, got #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf32, #n32t, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#slin328 = #ttg.shared_linear<{offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]}, alignment = 8>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf32, #slin328, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source must be aligned to 16 bytes, its layout gives 8}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf32, #slin328, #smem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#t64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf32, #sw, #smem, mutable>, %d: !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the destination must have blocks of 128 rows, got blockM = 64}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf32, #sw, #smem, mutable>, !ttg.memdesc<128x64xf32, #t64, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#n16 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf16, #n16, #smem, mutable>, %d: !ttg.memdesc<128x64xf16, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op elements must have 32 bits, got 'f16'}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf16, #n16, #smem, mutable>, !ttg.memdesc<128x64xf16, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#sw = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<32x16xi8, #sw, #smem, mutable>, %d: !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source has the shape [32, 16], but the destination [128, 4]}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<32x16xi8, #sw, #smem, mutable>, !ttg.memdesc<128x4xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#n8 = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x128xi8, #n8, #smem, mutable>, %d: !ttg.memdesc<128x128xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source of scales must not be swizzled, got #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 8}>}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x128xi8, #n8, #smem, mutable>, !ttg.memdesc<128x128xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, %d: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source must be in shared memory, got '!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory, mutable>'}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x64xf32, #t, #tmem, mutable>, !ttg.memdesc<128x64xf32, #t, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#sc = #ttng.tensor_memory_scales_encoding<>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#n8u_2 = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 8, CGALayout = [[1, 0]]}>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x32xi8, #n8u_2, #smem, mutable>, %d: !ttg.memdesc<128x32xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op source and destination must be divided among CTAs alike, got [[1, 0]] and []}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x32xi8, #n8u_2, #smem, mutable>, !ttg.memdesc<128x32xi8, #sc, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#n32u = #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>
#t4 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 4, colStride = 1>
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x4xf32, #n32u, #smem, mutable>, %d: !ttg.memdesc<128x4xf32, #t4, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op the source must be swizzled, got #ttg.nvmma_shared<{swizzlingByteWidth = 0, transposed = false, elementBitWidth = 32}>}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x4xf32, #n32u, #smem, mutable>, !ttg.memdesc<128x4xf32, #t4, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_copy
#smem = #ttg.shared_memory
#tmem = #ttng.tensor_memory
#tx = #ttng.tensor_memory_encoding<blockM = 128, blockN = 2, colStride = 1>
#sx = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%s: !ttg.memdesc<128x2xf32, #sx, #smem, mutable>, %d: !ttg.memdesc<128x2xf32, #tx, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_copy' op a row of the destination must have at least 128 contiguous bits, got 64}}
  ttng.tmem_copy %s, %d : !ttg.memdesc<128x2xf32, #sx, #smem, mutable>, !ttg.memdesc<128x2xf32, #tx, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#ts2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xi8, #ts2, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op the result has the layout #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>, which does not fit tensor memory with #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>: elements of 8 bits are neither packed nor each in its own column}}
  %r = ttng.tmem_load %m : !ttg.memdesc<128x64xi8, #ts2, #tmem, mutable> -> tensor<128x64xi8, #row>
  tt.return
}
}

// -----

// ttng.tmem_load
#bl = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#sc = #ttng.tensor_memory_scales_encoding<>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op scales cannot be loaded back, got #ttng.tensor_memory_scales_encoding<>}}
  %r = ttng.tmem_load %m : !ttg.memdesc<128x64xi8, #sc, #tmem, mutable> -> tensor<128x64xi8, #bl>
  tt.return
}
}

// -----

// ttng.tmem_load
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op the result must be a matrix, got 'tensor<1x128x64xf32>'}}
  %r = ttng.tmem_load %m  : !ttg.memdesc<128x64xf32, #t, #tmem, mutable> -> tensor<1x128x64xf32>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op abs needs redOp}}
  %r = ttng.tmem_load %m {abs = true} : !ttg.memdesc<128x64xf32, #t, #tmem, mutable> -> tensor<128x64xf32, #row>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op redOp needs a second result for the reduced rows}}
  %r = ttng.tmem_load %m {redOp = #ttng.redOp<max>} : !ttg.memdesc<128x64xf32, #t, #tmem, mutable> -> tensor<128x64xf32, #row>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op a second result needs redOp}}
  %r, %q = ttng.tmem_load %m  : !ttg.memdesc<128x64xf32, #t, #tmem, mutable> -> tensor<128x64xf32, #row>, tensor<128xf32>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<256x64xf32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op rows can only be reduced where a thread holds one, but #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}> gives it several}}
  %r, %q = ttng.tmem_load %m {redOp = #ttng.redOp<max>} : !ttg.memdesc<256x64xf32, #t, #tmem, mutable> -> tensor<256x64xf32, #row>, tensor<256xf32, #ttg.slice<{dim = 1, parent = #row}>>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xi32, #t, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op abs needs elements of 'f32', got 'i32'}}
  %r, %q = ttng.tmem_load %m {redOp = #ttng.redOp<min>, abs = true} : !ttg.memdesc<128x64xi32, #t, #tmem, mutable> -> tensor<128x64xi32, #row>, tensor<128xi32, #ttg.slice<{dim = 1, parent = #row}>>
  tt.return
}
}

// -----

// ttng.tmem_load
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#ts2 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 2>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf16, #ts2, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op rows can only be reduced where elements are packed (colStride = 1)}}
  %r, %q = ttng.tmem_load %m {redOp = #ttng.redOp<max>} : !ttg.memdesc<128x64xf16, #ts2, #tmem, mutable> -> tensor<128x64xf16, #row>, tensor<128xf16, #ttg.slice<{dim = 1, parent = #row}>>
  tt.return
}
}

// -----

// ttng.tmem_load
#row8 = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 2], order = [0, 1]}>
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 8 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op rows can only be reduced where a thread holds a whole one, but #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 2], order = [0, 1]}> divides them}}
  %r, %q = ttng.tmem_load %m {redOp = #ttng.redOp<max>} : !ttg.memdesc<128x128xf32, #t128, #tmem, mutable> -> tensor<128x128xf32, #row8>, tensor<128xf32, #ttg.slice<{dim = 1, parent = #row8}>>
  tt.return
}
}

// -----

// ttng.tmem_load
#t64 = #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
#copies = #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], warp = [[16, 0], [32, 0]], block = []}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<64x64xf32, #t64, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_load' op the result has the layout #ttg.linear<{register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]], warp = [[16, 0], [32, 0]], block = []}>, which does not fit tensor memory with #ttng.tensor_memory_encoding<blockM = 64, blockN = 64, colStride = 1>: lanes 16 to 31 hold replicas, which only scales in tensor memory can have}}
  %r = ttng.tmem_load %m : !ttg.memdesc<64x64xf32, #t64, #tmem, mutable> -> tensor<64x64xf32, #copies>
  tt.return
}
}

// -----

// ttng.tmem_store
#row = #ttg.blocked<{sizePerThread = [1, 64], threadsPerWarp = [32, 1], warpsPerCTA = [4, 1], order = [0, 1]}>
#t = #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x64xf32, #t, #tmem>, %s: tensor<128x64xf32, #row>, %p: i1) {
  // expected-error @below {{'ttng.tmem_store' op cannot store to the immutable buffer '!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 64, colStride = 1>, #ttng.tensor_memory>'}}
  ttng.tmem_store %s, %m, %p : tensor<128x64xf32, #row> -> !ttg.memdesc<128x64xf32, #t, #tmem>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op source and result must have the same shape of the allocation, got '!ttg.memdesc<128x128xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>, #ttng.tensor_memory, mutable>' and '!ttg.memdesc<128x64xf32, #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>, #ttng.tensor_memory>'}}
  %r = ttng.tmem_subslice %m {offset = 64 : i32} : !ttg.memdesc<128x128xf32, #t128, #tmem, mutable> -> !ttg.memdesc<128x64xf32, #t128, #tmem>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op 1 elements from offset -1 on do not fit 128 elements}}
  %r = ttng.tmem_subslice %m {offset = -1 : i32} : !ttg.memdesc<128x128xf32, #t128, #tmem, mutable> -> !ttg.memdesc<128x1xf32, #t128, #tmem, mutable, 128x128>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<4x128x128xf32, #t128, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op dim = 3 must be one of 3 dimensions}}
  %r = ttng.tmem_subslice %m {offset = 0 : i32, dim = 3 : i32} : !ttg.memdesc<4x128x128xf32, #t128, #tmem, mutable> -> !ttg.memdesc<1x128x128xf32, #t128, #tmem, mutable, 4x128x128>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#sc = #ttng.tensor_memory_scales_encoding<>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x16xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op only dimension 0 is sliced, but dimension 1 has 1 instead of 16 elements}}
  %r = ttng.tmem_subslice %m {offset = 0 : i32, dim = 0 : i32} : !ttg.memdesc<128x16xi8, #sc, #tmem, mutable> -> !ttg.memdesc<128x1xi8, #sc, #tmem, mutable, 128x16>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#sc = #ttng.tensor_memory_scales_encoding<>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x16xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op offset 1 is not at a whole column of 32 bits}}
  %r = ttng.tmem_subslice %m {offset = 1 : i32, dim = 1 : i32} : !ttg.memdesc<128x16xi8, #sc, #tmem, mutable> -> !ttg.memdesc<128x1xi8, #sc, #tmem, mutable, 128x16>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#tmem = #ttng.tensor_memory
#t128_2m = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1, CGALayout = [[1, 0]]>
module attributes {"ttg.num-ctas" = 2 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<512x128xf32, #t128_2m, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op a slice cannot be of some CTAs only}}
  %r = ttng.tmem_subslice %m {offset = 0 : i32, dim = 0 : i32} : !ttg.memdesc<512x128xf32, #t128_2m, #tmem, mutable> -> !ttg.memdesc<256x128xf32, #t128_2m, #tmem, mutable, 512x128>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#sc = #ttng.tensor_memory_scales_encoding<>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<128x16xi8, #sc, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op 16 elements from offset 1 on do not lie as those from offset 0 on do}}
  %r = ttng.tmem_subslice %m {offset = 1 : i32, dim = 0 : i32} : !ttg.memdesc<128x16xi8, #sc, #tmem, mutable> -> !ttg.memdesc<16x16xi8, #sc, #tmem, mutable, 128x16>
  tt.return
}
}

// -----

// ttng.tmem_subslice
#t128 = #ttng.tensor_memory_encoding<blockM = 128, blockN = 128, colStride = 1>
#tmem = #ttng.tensor_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:100", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f(%m: !ttg.memdesc<2x128x128xf32, #t128, #tmem, mutable>) {
  // expected-error @below {{'ttng.tmem_subslice' op source and result must have the same shape of the allocation}}
  %r = ttng.tmem_subslice %m {offset = 0 : i32, dim = 0 : i32} : !ttg.memdesc<2x128x128xf32, #t128, #tmem, mutable> -> !ttg.memdesc<128x128xf32, #t128, #tmem, mutable>
  tt.return
}
}

// -----

// ttng.tmem_wait
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:x", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @f() {
  // expected-error @below {{'ttng.tmem_wait' op needs tensor memory (tcgen05), which cuda:x does not have}}
  ttng.tmem_wait load
  tt.return
}
}
