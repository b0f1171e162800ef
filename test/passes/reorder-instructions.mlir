// RUN: %ttopt %s -split-input-file --tritongpu-reorder-instructions | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // Down to the first use.
  // CHECK-LABEL: @down
  // CHECK: tt.load
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: tt.store
  // CHECK-NEXT: ttg.convert_layout
  // CHECK-NEXT: tt.store
  tt.func @down(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    %z = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    tt.store %p, %z : tensor<32x32x!tt.ptr<f32>, #a>
    tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    tt.return
  }

  // Loads of what is not written again, too.
  // CHECK-LABEL: @load_down
  // CHECK: ttg.local_alloc
  // CHECK-NEXT: tt.store %arg0, %arg2
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: tt.store
  tt.func @load_down(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>, %x: tensor<32x32xf32, #a>) {
    %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
    %y = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
    tt.store %p, %x : tensor<32x32x!tt.ptr<f32>, #a>
    tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    tt.return
  }

  // What writes an iter_arg to memory that is read behind other things is at the start of the iteration, behind its loads.
  // CHECK-LABEL: @iter_arg
  // CHECK: scf.for
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: ttg.local_alloc %[[STATE:.*]] : (tensor<32x32xf32, #[[A:.*]]>) ->
  // CHECK-NEXT: ttg.convert_layout %[[STATE]]
  // CHECK-NEXT: tt.store
  // CHECK-NEXT: ttg.local_load
  tt.func @iter_arg(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>, %x: tensor<32x32xf32, #a>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<32x32xf32, #a>) : i32 {
      %l = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
      %y = ttg.convert_layout %s : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
      tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
      %m = ttg.local_alloc %s : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
      %z = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
      tt.store %q, %z : tensor<32x32x!tt.ptr<f32>, #b>
      scf.yield %l : tensor<32x32xf32, #a>
    }
    tt.return
  }

  // Never into a loop.
  // CHECK-LABEL: @loop
  // CHECK: ttg.convert_layout
  // CHECK-NEXT: scf.for
  tt.func @loop(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>, %n: i32) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    %y = ttg.convert_layout %x : tensor<32x32xf32, #a> -> tensor<32x32xf32, #b>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1  : i32 {
      tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    }
    tt.return
  }

  // Behind all loads: the second is under way when the first is waited for.
  // CHECK-LABEL: @behind
  // CHECK: tt.load
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: ttg.local_alloc
  // CHECK-NEXT: ttg.local_alloc
  // CHECK-NEXT: tt.store
  tt.func @behind(%p: tensor<32x32x!tt.ptr<f32>, #a>, %k: tensor<32x32xf32, #a>) -> (!ttg.memdesc<32x32xf32, #s, #smem>, !ttg.memdesc<32x32xf32, #s, #smem>) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    %y = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    tt.store %p, %k : tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
    %n = ttg.local_alloc %y : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
    tt.return %m, %n : !ttg.memdesc<32x32xf32, #s, #smem>, !ttg.memdesc<32x32xf32, #s, #smem>
  }

  // To shared memory as soon as the data is there.
  // CHECK-LABEL: @up
  // CHECK: tt.load
  // CHECK-NEXT: ttg.local_alloc
  // CHECK-NEXT: tt.store
  tt.func @up(%p: tensor<32x32x!tt.ptr<f32>, #a>, %k: tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem> {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    tt.store %p, %k : tensor<32x32x!tt.ptr<f32>, #a>
    %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
    tt.return %m : !ttg.memdesc<32x32xf32, #s, #smem>
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#c = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // Sum and operands take 288 registers: the left operand is read in each iteration, and the load waits for
  // the first dot.
  // CHECK-LABEL: @short_of_registers
  // CHECK: %[[M:.*]] = ttg.local_alloc
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: ttg.local_load %[[M]]
  // CHECK-NEXT: tt.dot
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: tt.dot
  // CHECK-NEXT: arith.addf
  tt.func @short_of_registers(%x: tensor<128x64xf16, #c>, %y: tensor<64x128xf16, #b>, %p: tensor<128x128x!tt.ptr<f32>, #mma>, %n: i32) -> tensor<128x128xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %m = ttg.local_alloc %x : (tensor<128x64xf16, #c>) -> !ttg.memdesc<128x64xf16, #s, #smem>
    %l = ttg.local_load %m : !ttg.memdesc<128x64xf16, #s, #smem> -> tensor<128x64xf16, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32, #mma>)  : i32 {
      %late = tt.load %p : tensor<128x128x!tt.ptr<f32>, #mma>
      %d = tt.dot %l, %y, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      %e = tt.dot %l, %y, %d : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      %f = arith.addf %e, %late : tensor<128x128xf32, #mma>
      scf.yield %f : tensor<128x128xf32, #mma>
    }
    tt.return %r : tensor<128x128xf32, #mma>
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#c = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // All buffers together take 112 KB, which is more than half of the memory; but never more than 48 are occupied at once.
  // CHECK-LABEL: @one_buffer_after_the_other
  // CHECK: scf.for
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: tt.dot
  tt.func @one_buffer_after_the_other(%x: tensor<128x64xf16, #c>, %y: tensor<64x128xf16, #b>, %w: tensor<128x128xf16, #c>, %p: tensor<128x128x!tt.ptr<f16>, #mma>, %n: i32) -> tensor<128x128xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x128xf32, #mma>
    %m = ttg.local_alloc %x : (tensor<128x64xf16, #c>) -> !ttg.memdesc<128x64xf16, #s, #smem>
    %l = ttg.local_load %m : !ttg.memdesc<128x64xf16, #s, #smem> -> tensor<128x64xf16, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x128xf32, #mma>)  : i32 {
      %d = tt.dot %l, %y, %sum : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      %e = tt.dot %l, %y, %d : tensor<128x64xf16, #a> * tensor<64x128xf16, #b> -> tensor<128x128xf32, #mma>
      scf.yield %e : tensor<128x128xf32, #mma>
    }
    %m1 = ttg.local_alloc %w : (tensor<128x128xf16, #c>) -> !ttg.memdesc<128x128xf16, #s, #smem>
    %l1 = ttg.local_load %m1 : !ttg.memdesc<128x128xf16, #s, #smem> -> tensor<128x128xf16, #mma>
    tt.store %p, %l1 : tensor<128x128x!tt.ptr<f16>, #mma>
    %m2 = ttg.local_alloc %w : (tensor<128x128xf16, #c>) -> !ttg.memdesc<128x128xf16, #s, #smem>
    %l2 = ttg.local_load %m2 : !ttg.memdesc<128x128xf16, #s, #smem> -> tensor<128x128xf16, #mma>
    tt.store %p, %l2 : tensor<128x128x!tt.ptr<f16>, #mma>
    %m3 = ttg.local_alloc %w : (tensor<128x128xf16, #c>) -> !ttg.memdesc<128x128xf16, #s, #smem>
    %l3 = ttg.local_load %m3 : !ttg.memdesc<128x128xf16, #s, #smem> -> tensor<128x128xf16, #mma>
    tt.store %p, %l3 : tensor<128x128x!tt.ptr<f16>, #mma>
    tt.return %r : tensor<128x128xf32, #mma>
  }
}

// -----

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#c = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:80"} {
  // CHECK-LABEL: @enough_registers
  // CHECK: ttg.local_load
  // CHECK-NEXT: scf.for
  // CHECK-NEXT: tt.load
  // CHECK-NEXT: tt.dot
  // CHECK-NEXT: tt.dot
  tt.func @enough_registers(%x: tensor<128x64xf16, #c>, %y: tensor<64x32xf16, #b>, %p: tensor<128x32x!tt.ptr<f32>, #mma>, %n: i32) -> tensor<128x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<128x32xf32, #mma>
    %m = ttg.local_alloc %x : (tensor<128x64xf16, #c>) -> !ttg.memdesc<128x64xf16, #s, #smem>
    %l = ttg.local_load %m : !ttg.memdesc<128x64xf16, #s, #smem> -> tensor<128x64xf16, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<128x32xf32, #mma>)  : i32 {
      %late = tt.load %p : tensor<128x32x!tt.ptr<f32>, #mma>
      %d = tt.dot %l, %y, %sum : tensor<128x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<128x32xf32, #mma>
      %e = tt.dot %l, %y, %d : tensor<128x64xf16, #a> * tensor<64x32xf16, #b> -> tensor<128x32xf32, #mma>
      %f = arith.addf %e, %late : tensor<128x32xf32, #mma>
      scf.yield %f : tensor<128x32xf32, #mma>
    }
    tt.return %r : tensor<128x32xf32, #mma>
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#line = #ttg.slice<{dim = 1, parent = #row}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // The sum and two tiles of 128 registers each: rows are finished one after the other.
  // CHECK-LABEL: @norm_short_of_registers
  // CHECK: tt.reduce
  // CHECK: }) {ttg.line_by_line} : (tensor<64x128xf32
  tt.func @norm_short_of_registers(%p: tensor<64x128x!tt.ptr<f32>, #row>, %q: tensor<64x!tt.ptr<f32>, #line>, %n: i32) -> tensor<64x128xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #row>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x128xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<64x128x!tt.ptr<f32>, #row>
      %y = arith.mulf %x, %x : tensor<64x128xf32, #row>
      %m = "tt.reduce"(%y) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        tt.reduce.return %s : f32
      }) : (tensor<64x128xf32, #row>) -> tensor<64xf32, #line>
      %e = tt.expand_dims %m {axis = 1 : i32} : tensor<64xf32, #line> -> tensor<64x1xf32, #row>
      %f = tt.broadcast %e : tensor<64x1xf32, #row> -> tensor<64x128xf32, #row>
      %g = arith.mulf %y, %f : tensor<64x128xf32, #row>
      tt.store %p, %g : tensor<64x128x!tt.ptr<f32>, #row>
      %next = arith.addf %sum, %x : tensor<64x128xf32, #row>
      scf.yield %next : tensor<64x128xf32, #row>
    }
    tt.return %r : tensor<64x128xf32, #row>
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#line = #ttg.slice<{dim = 1, parent = #row}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // With tiles of 32 registers lanes share the rows among them.
  // CHECK-LABEL: @norm_with_registers
  // CHECK: tt.reduce
  // CHECK: }) : (tensor<16x128xf32
  tt.func @norm_with_registers(%p: tensor<16x128x!tt.ptr<f32>, #row>, %q: tensor<16x!tt.ptr<f32>, #line>, %n: i32) -> tensor<16x128xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<16x128xf32, #row>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<16x128xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<16x128x!tt.ptr<f32>, #row>
      %y = arith.mulf %x, %x : tensor<16x128xf32, #row>
      %m = "tt.reduce"(%y) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        tt.reduce.return %s : f32
      }) : (tensor<16x128xf32, #row>) -> tensor<16xf32, #line>
      %e = tt.expand_dims %m {axis = 1 : i32} : tensor<16xf32, #line> -> tensor<16x1xf32, #row>
      %f = tt.broadcast %e : tensor<16x1xf32, #row> -> tensor<16x128xf32, #row>
      %g = arith.mulf %y, %f : tensor<16x128xf32, #row>
      tt.store %p, %g : tensor<16x128x!tt.ptr<f32>, #row>
      %next = arith.addf %sum, %x : tensor<16x128xf32, #row>
      scf.yield %next : tensor<16x128xf32, #row>
    }
    tt.return %r : tensor<16x128xf32, #row>
  }
}

// -----

#row = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#line = #ttg.slice<{dim = 1, parent = #row}>
module attributes {"ttg.num-warps" = 2 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // The sums go elsewhere: no element waits for them.
  // CHECK-LABEL: @sums_short_of_registers
  // CHECK: tt.reduce
  // CHECK: }) : (tensor<64x128xf32
  tt.func @sums_short_of_registers(%p: tensor<64x128x!tt.ptr<f32>, #row>, %q: tensor<64x!tt.ptr<f32>, #line>, %n: i32) -> tensor<64x128xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x128xf32, #row>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64x128xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<64x128x!tt.ptr<f32>, #row>
      %y = arith.mulf %x, %x : tensor<64x128xf32, #row>
      %m = "tt.reduce"(%y) <{axis = 1 : i32}> ({
      ^bb0(%a: f32, %b: f32):
        %s = arith.addf %a, %b : f32
        tt.reduce.return %s : f32
      }) : (tensor<64x128xf32, #row>) -> tensor<64xf32, #line>
      tt.store %q, %m : tensor<64x!tt.ptr<f32>, #line>
      %next = arith.addf %sum, %x : tensor<64x128xf32, #row>
      scf.yield %next : tensor<64x128xf32, #row>
    }
    tt.return %r : tensor<64x128xf32, #row>
  }
}

// -----

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // Two regions copy one tensor: it is copied once, where it is made.
  // CHECK-LABEL: @copied_in_regions
  // CHECK: tt.load
  // CHECK-NEXT: %[[M:.*]] = ttg.local_alloc
  // CHECK-NOT: ttg.local_alloc
  // CHECK: scf.if
  // CHECK: ttg.local_load %[[M]]
  // CHECK: scf.if
  // CHECK: ttg.local_load %[[M]]
  // CHECK-NOT: ttg.local_alloc
  tt.func @copied_in_regions(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>, %c: i1, %d: i1) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    scf.if %c {
      %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
      %y = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
      tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    }
    scf.if %d {
      %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
      %y = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
      tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    }
    tt.return
  }

  // Of the branches of one only one runs, and what is copied in one region stays there.
  // CHECK-LABEL: @copied_in_branches
  // CHECK: scf.if
  // CHECK: ttg.local_alloc
  // CHECK: else
  // CHECK: ttg.local_alloc
  tt.func @copied_in_branches(%p: tensor<32x32x!tt.ptr<f32>, #a>, %q: tensor<32x32x!tt.ptr<f32>, #b>, %c: i1) {
    %x = tt.load %p : tensor<32x32x!tt.ptr<f32>, #a>
    scf.if %c {
      %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
      %y = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
      tt.store %q, %y : tensor<32x32x!tt.ptr<f32>, #b>
    } else {
      %m = ttg.local_alloc %x : (tensor<32x32xf32, #a>) -> !ttg.memdesc<32x32xf32, #s, #smem>
      %y = ttg.local_load %m : !ttg.memdesc<32x32xf32, #s, #smem> -> tensor<32x32xf32, #b>
      %z = arith.addf %y, %y : tensor<32x32xf32, #b>
      tt.store %q, %z : tensor<32x32x!tt.ptr<f32>, #b>
    }
    tt.return
  }
}

// -----

#w = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // The right operand is read behind the write of the left one, at which all wait: its 128 registers are short until then.
  // CHECK-LABEL: @read_late
  // CHECK: ttg.local_store
  // CHECK-NEXT: ttg.local_alloc %arg1
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.local_load {{.*}}opIdx = 1
  // CHECK-NEXT: tt.dot
  tt.func @read_late(%k: tensor<128x128xbf16, #right>, %p: tensor<32x128xbf16, #mma>, %acc: tensor<32x128xf32, #mma>, %t: tensor<128x128xbf16, #w>) -> tensor<32x128xf32, #mma> {
    %v = ttg.local_alloc : () -> !ttg.memdesc<128x128xbf16, #s, #smem, mutable>
    ttg.local_store %t, %v : tensor<128x128xbf16, #w> -> !ttg.memdesc<128x128xbf16, #s, #smem, mutable>
    %y = ttg.local_load %v : !ttg.memdesc<128x128xbf16, #s, #smem, mutable> -> tensor<128x128xbf16, #right>
    %s = ttg.local_alloc %p : (tensor<32x128xbf16, #mma>) -> !ttg.memdesc<32x128xbf16, #s, #smem>
    %x = ttg.local_load %s : !ttg.memdesc<32x128xbf16, #s, #smem> -> tensor<32x128xbf16, #left>
    %d = tt.dot %x, %y, %acc : tensor<32x128xbf16, #left> * tensor<128x128xbf16, #right> -> tensor<32x128xf32, #mma>
    %e = tt.dot %x, %k, %d : tensor<32x128xbf16, #left> * tensor<128x128xbf16, #right> -> tensor<32x128xf32, #mma>
    tt.return %e : tensor<32x128xf32, #mma>
  }

  // What is written again is read before that.
  // CHECK-LABEL: @read_before_a_write
  // CHECK: ttg.local_store
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.local_store
  tt.func @read_before_a_write(%k: tensor<128x128xbf16, #right>, %p: tensor<32x128xbf16, #left>, %acc: tensor<32x128xf32, #mma>, %t: tensor<128x128xbf16, #w>) -> tensor<32x128xf32, #mma> {
    %v = ttg.local_alloc : () -> !ttg.memdesc<128x128xbf16, #s, #smem, mutable>
    ttg.local_store %t, %v : tensor<128x128xbf16, #w> -> !ttg.memdesc<128x128xbf16, #s, #smem, mutable>
    %y = ttg.local_load %v : !ttg.memdesc<128x128xbf16, #s, #smem, mutable> -> tensor<128x128xbf16, #right>
    ttg.local_store %t, %v : tensor<128x128xbf16, #w> -> !ttg.memdesc<128x128xbf16, #s, #smem, mutable>
    %d = tt.dot %p, %y, %acc : tensor<32x128xbf16, #left> * tensor<128x128xbf16, #right> -> tensor<32x128xf32, #mma>
    %e = tt.dot %p, %k, %d : tensor<32x128xbf16, #left> * tensor<128x128xbf16, #right> -> tensor<32x128xf32, #mma>
    tt.return %e : tensor<32x128xf32, #mma>
  }
}

// -----

#w = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.amd_wmma<{version = 1, isTranspose = true, ctaLayout = {warp = [[0, 1], [0, 2]]}, instrShape = [16, 16, 16]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 16}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 16}>
#s = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "hip:gfx1100"} {
  // All threads wait twice as the right operand is converted through shared memory; the left one, whose rows every warp needs, takes
  // 256 registers and is read behind that.
  // CHECK-LABEL: @read_behind_a_conversion
  // CHECK: ttg.local_alloc
  // CHECK-NEXT: ttg.convert_layout %arg1
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: tt.dot
  tt.func @read_behind_a_conversion(%t: tensor<64x128xbf16, #w>, %r: tensor<128x64xbf16, #w>, %acc: tensor<64x64xf32, #mma>) -> tensor<64x64xf32, #mma> {
    %v = ttg.local_alloc %t : (tensor<64x128xbf16, #w>) -> !ttg.memdesc<64x128xbf16, #s, #smem>
    %x = ttg.local_load %v : !ttg.memdesc<64x128xbf16, #s, #smem> -> tensor<64x128xbf16, #left>
    %y = ttg.convert_layout %r : tensor<128x64xbf16, #w> -> tensor<128x64xbf16, #right>
    %d = tt.dot %x, %y, %acc : tensor<64x128xbf16, #left> * tensor<128x64xbf16, #right> -> tensor<64x64xf32, #mma>
    tt.return %d : tensor<64x64xf32, #mma>
  }

  // Enough registers: the read stays, and its latency passes during the conversion.
  // CHECK-LABEL: @read_before_a_conversion
  // CHECK: ttg.local_alloc
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.convert_layout %arg1
  // CHECK-NEXT: tt.dot
  tt.func @read_before_a_conversion(%t: tensor<16x64xbf16, #w>, %r: tensor<64x64xbf16, #w>, %acc: tensor<16x64xf32, #mma>) -> tensor<16x64xf32, #mma> {
    %v = ttg.local_alloc %t : (tensor<16x64xbf16, #w>) -> !ttg.memdesc<16x64xbf16, #s, #smem>
    %x = ttg.local_load %v : !ttg.memdesc<16x64xbf16, #s, #smem> -> tensor<16x64xbf16, #left>
    %y = ttg.convert_layout %r : tensor<64x64xbf16, #w> -> tensor<64x64xbf16, #right>
    %d = tt.dot %x, %y, %acc : tensor<16x64xbf16, #left> * tensor<64x64xbf16, #right> -> tensor<16x64xf32, #mma>
    tt.return %d : tensor<16x64xf32, #mma>
  }
}
