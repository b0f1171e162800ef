// RUN: %ttopt %s -split-input-file --tritongpu-pipeline=num-stages=3 | FileCheck %s

// What a ring holds is read as dots take it, not as it was loaded, and not converted. The ring is swizzled for that.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @converted
  // CHECK:         scf.for
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           ttg.local_load {{.*}} -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           tt.dot
  tt.func @converted(%base: !tt.ptr<f32>, %pitch: i32, %n: i32, %x: tensor<16x32xf32, #a>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %one = arith.constant dense<1.000000e+00> : tensor<32x64xf32, #rows>
    %step = arith.constant dense<2049> : tensor<32x64xi32, #rows>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<32x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<32x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<32x1xi32, #rows> -> tensor<32x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<32x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<32x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>) : i32 {
      %y = tt.load %at : tensor<32x64x!tt.ptr<f32>, #rows>
      %z = ttg.convert_layout %y : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #b>
      %next = tt.dot %x, %z, %acc, inputPrecision = tf32 : tensor<16x32xf32, #a> * tensor<32x64xf32, #b> -> tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
      scf.yield %next, %then : tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}

// -----

// So is what threads compute element by element from what they read, and from constants.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @computed
  // CHECK:         scf.for
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           ttg.local_load {{.*}} -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK:           arith.addf {{.*}} : tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           tt.dot
  tt.func @computed(%base: !tt.ptr<f32>, %pitch: i32, %n: i32, %x: tensor<16x32xf32, #a>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %one = arith.constant dense<1.000000e+00> : tensor<32x64xf32, #rows>
    %step = arith.constant dense<2049> : tensor<32x64xi32, #rows>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<32x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<32x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<32x1xi32, #rows> -> tensor<32x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<32x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<32x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>) : i32 {
      %y = tt.load %at : tensor<32x64x!tt.ptr<f32>, #rows>
      %more = arith.addf %y, %one : tensor<32x64xf32, #rows>
      %z = ttg.convert_layout %more : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #b>
      %next = tt.dot %x, %z, %acc, inputPrecision = tf32 : tensor<16x32xf32, #a> * tensor<32x64xf32, #b> -> tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
      scf.yield %next, %then : tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}

// -----

// A vector of scales, spread over the columns, is converted for it, from the layout that it was computed in.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @scaled
  // CHECK-SAME:    %[[SCALES:[^ ]*]]: tensor<64xf32, #blocked{{[0-9]*}}>)
  // CHECK:         scf.for
  // CHECK:           ttg.convert_layout %[[SCALES]] {{.*}} -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>}>>
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           ttg.local_load {{.*}} -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK:           arith.mulf {{.*}} : tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK-NOT:       ttg.convert_layout
  // CHECK:           tt.dot
  tt.func @scaled(%base: !tt.ptr<f32>, %pitch: i32, %n: i32, %x: tensor<16x32xf32, #a>, %s: tensor<64xf32, #line>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %step = arith.constant dense<2049> : tensor<32x64xi32, #rows>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<32x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<32x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<32x1xi32, #rows> -> tensor<32x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<32x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<32x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>) : i32 {
      %y = tt.load %at : tensor<32x64x!tt.ptr<f32>, #rows>
      %scale = ttg.convert_layout %s : tensor<64xf32, #line> -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #rows}>>
      %scale_row = tt.expand_dims %scale {axis = 0 : i32} : tensor<64xf32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xf32, #rows>
      %scales = tt.broadcast %scale_row : tensor<1x64xf32, #rows> -> tensor<32x64xf32, #rows>
      %more = arith.mulf %y, %scales : tensor<32x64xf32, #rows>
      %z = ttg.convert_layout %more : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #b>
      %next = tt.dot %x, %z, %acc, inputPrecision = tf32 : tensor<16x32xf32, #a> * tensor<32x64xf32, #b> -> tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
      scf.yield %next, %then : tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}

// -----

// A buffer that is stored to be read in another layout is a conversion like others, and one use may follow another.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#shared = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @by_a_buffer
  // CHECK:         scf.for
  // CHECK-NOT:       {{ttg.local_alloc|ttg.convert_layout}}
  // CHECK:           ttg.local_load {{.*}} -> tensor<32x64xf32, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>>
  // CHECK-NOT:       {{ttg.local_alloc|ttg.convert_layout}}
  // CHECK:           tt.dot
  tt.func @by_a_buffer(%base: !tt.ptr<f32>, %pitch: i32, %n: i32, %x: tensor<16x32xf32, #a>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %one = arith.constant dense<1.000000e+00> : tensor<32x64xf32, #rows>
    %other = arith.constant dense<2.000000e+00> : tensor<32x64xf32, #b>
    %step = arith.constant dense<2049> : tensor<32x64xi32, #rows>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<32x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<32x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<32x1xi32, #rows> -> tensor<32x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<32x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<32x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>) : i32 {
      %y = tt.load %at : tensor<32x64x!tt.ptr<f32>, #rows>
      %m = ttg.local_alloc %y : (tensor<32x64xf32, #rows>) -> !ttg.memdesc<32x64xf32, #shared, #smem>
      %l = ttg.local_load %m : !ttg.memdesc<32x64xf32, #shared, #smem> -> tensor<32x64xf32, #b>
      %more = arith.addf %l, %other : tensor<32x64xf32, #b>
      %turned = ttg.convert_layout %more : tensor<32x64xf32, #b> -> tensor<32x64xf32, #rows>
      %again = arith.mulf %turned, %one : tensor<32x64xf32, #rows>
      %z = ttg.convert_layout %again : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #b>
      %next = tt.dot %x, %z, %acc, inputPrecision = tf32 : tensor<16x32xf32, #a> * tensor<32x64xf32, #b> -> tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
      scf.yield %next, %then : tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}

// -----

// What is used as it was loaded, too, is read as it was and converted.

#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @used_twice
  // CHECK:         scf.for
  // CHECK:           ttg.local_load {{.*}} -> tensor<32x64xf32, #blocked>
  // CHECK:           ttg.convert_layout
  // CHECK:           tt.dot
  tt.func @used_twice(%base: !tt.ptr<f32>, %pitch: i32, %n: i32, %x: tensor<16x32xf32, #a>) -> tensor<16x64xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.000000e+00> : tensor<16x64xf32, #mma>
    %one = arith.constant dense<1.000000e+00> : tensor<32x64xf32, #rows>
    %step = arith.constant dense<2049> : tensor<32x64xi32, #rows>
    %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<32x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<32x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<32x1xi32, #rows> -> tensor<32x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<32x64xi32, #rows>
    %offsets = arith.addi %starts, %places : tensor<32x64xi32, #rows>
    %bases = tt.splat %base : !tt.ptr<f32> -> tensor<32x64x!tt.ptr<f32>, #rows>
    %first = tt.addptr %bases, %offsets : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
    %sum, %last = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero, %at = %first) -> (tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>) : i32 {
      %y = tt.load %at : tensor<32x64x!tt.ptr<f32>, #rows>
      %z = ttg.convert_layout %y : tensor<32x64xf32, #rows> -> tensor<32x64xf32, #b>
      %any = "tt.reduce"(%y) <{axis = 1 : i32}> ({
      ^bb0(%l: f32, %m: f32):
        %s = arith.addf %l, %m : f32
        tt.reduce.return %s : f32
      }) : (tensor<32x64xf32, #rows>) -> tensor<32xf32, #ttg.slice<{dim = 1, parent = #rows}>>
      %whole = "tt.reduce"(%any) <{axis = 0 : i32}> ({
      ^bb0(%l: f32, %m: f32):
        %s = arith.addf %l, %m : f32
        tt.reduce.return %s : f32
      }) : (tensor<32xf32, #ttg.slice<{dim = 1, parent = #rows}>>) -> f32
      %next = tt.dot %x, %z, %acc, inputPrecision = tf32 : tensor<16x32xf32, #a> * tensor<32x64xf32, #b> -> tensor<16x64xf32, #mma>
      %w = tt.splat %whole : f32 -> tensor<16x64xf32, #mma>
      %both = arith.addf %next, %w : tensor<16x64xf32, #mma>
      %then = tt.addptr %at, %step : tensor<32x64x!tt.ptr<f32>, #rows>, tensor<32x64xi32, #rows>
      scf.yield %both, %then : tensor<16x64xf32, #mma>, tensor<32x64x!tt.ptr<f32>, #rows>
    }
    tt.return %sum : tensor<16x64xf32, #mma>
  }
}
