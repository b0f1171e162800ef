// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers | FileCheck %s
// RUN: %ttopt %s -split-input-file --allocate-shared-memory-nv --tritongpu-insert-barriers=report=true 2>&1 >/dev/null | FileCheck %s --check-prefix=WHY

// Rows of any length begin within sectors of 32 bytes. What warps store of one sector comes together behind a barrier: one before the first
// of stores that follow each other.
// WHY: remark: barrier: warps store parts of the same sectors, which are written once where they do so together
// WHY-NOT: remark

#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @anywhere
  // CHECK:         tt.load
  // CHECK-NEXT:    ttg.barrier local
  // CHECK-NEXT:    tt.store
  // CHECK-NEXT:    tt.store
  // CHECK-NEXT:    tt.return
  tt.func public @anywhere(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32, %n: i32) {
    %row = tt.get_program_id x : i32
    %start = arith.muli %row, %pitch : i32
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #one>
    %s = tt.splat %start : i32 -> tensor<256xi32, #one>
    %at = arith.addi %s, %r : tensor<256xi32, #one>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %p = tt.addptr %f, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %q = tt.addptr %t, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %v = tt.load %p : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.return
  }

  // Rows that begin with a sector have no such parts.
  // CHECK-LABEL: @aligned
  // CHECK-NOT:     ttg.barrier
  // CHECK:         tt.return
  tt.func public @aligned(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %row = tt.get_program_id x : i32
    %start = arith.muli %row, %pitch : i32
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #one>
    %s = tt.splat %start : i32 -> tensor<256xi32, #one>
    %at = arith.addi %s, %r : tensor<256xi32, #one>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %p = tt.addptr %f, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %q = tt.addptr %t, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %v = tt.load %p : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.return
  }

  // Iterations stay as they are.
  // CHECK-LABEL: @in_a_loop
  // CHECK-NOT:     ttg.barrier
  // CHECK:         tt.return
  tt.func public @in_a_loop(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32, %n: i32) {
    %row = tt.get_program_id x : i32
    %start = arith.muli %row, %pitch : i32
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #one>
    %s = tt.splat %start : i32 -> tensor<256xi32, #one>
    %at = arith.addi %s, %r : tensor<256xi32, #one>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %p = tt.addptr %f, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %q = tt.addptr %t, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %v = tt.load %p : tensor<256x!tt.ptr<f32>, #one>
      tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    }
    tt.return
  }
}

// -----

// One warp needs no barrier.
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @one_warp
  // CHECK-NOT:     ttg.barrier
  // CHECK:         tt.return
  tt.func public @one_warp(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32, %n: i32) {
    %row = tt.get_program_id x : i32
    %start = arith.muli %row, %pitch : i32
    %r = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32, #one>
    %s = tt.splat %start : i32 -> tensor<256xi32, #one>
    %at = arith.addi %s, %r : tensor<256xi32, #one>
    %f = tt.splat %from : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<256x!tt.ptr<f32>, #one>
    %p = tt.addptr %f, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %q = tt.addptr %t, %at : tensor<256x!tt.ptr<f32>, #one>, tensor<256xi32, #one>
    %v = tt.load %p : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<256x!tt.ptr<f32>, #one>
    tt.return
  }
}

// -----

// Each warp has rows of its own.
#rows = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // CHECK-LABEL: @own_rows
  // CHECK-NOT:     ttg.barrier
  // CHECK:         tt.return
  tt.func public @own_rows(%to: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %pitch: i32, %v: tensor<4x64xf32, #rows>) {
    %r = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %c = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>>
    %row = tt.expand_dims %r {axis = 1 : i32} : tensor<4xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<4x1xi32, #rows>
    %column = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x64xi32, #rows>
    %p = tt.splat %pitch : i32 -> tensor<4x1xi32, #rows>
    %start = arith.muli %row, %p : tensor<4x1xi32, #rows>
    %starts = tt.broadcast %start : tensor<4x1xi32, #rows> -> tensor<4x64xi32, #rows>
    %places = tt.broadcast %column : tensor<1x64xi32, #rows> -> tensor<4x64xi32, #rows>
    %at = arith.addi %starts, %places : tensor<4x64xi32, #rows>
    %t = tt.splat %to : !tt.ptr<f32> -> tensor<4x64x!tt.ptr<f32>, #rows>
    %from = tt.addptr %t, %at : tensor<4x64x!tt.ptr<f32>, #rows>, tensor<4x64xi32, #rows>
    %w = tt.load %from : tensor<4x64x!tt.ptr<f32>, #rows>
    tt.store %from, %v : tensor<4x64x!tt.ptr<f32>, #rows>
    tt.return
  }
}
