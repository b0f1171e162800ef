// RUN: %ttopt %s --tritongpu-last-use | FileCheck %s

// A program comes back to what it read.
// CHECK: module attributes {ttg.comes_back,

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#rows = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#one = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// The second loop over a row, which is the program's own, is the last.
// CHECK-LABEL: tt.func @two_loops
// CHECK:         scf.for
// CHECK:           tt.load %{{.*}} : tensor<512x!tt.ptr<f32>, #{{.*}}>
// CHECK-NOT:       last_use
// CHECK:         scf.for
// CHECK:           tt.load %{{.*}} {ttg.last_use}
tt.func @two_loops(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) -> tensor<512xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #b>
  %pid = tt.get_program_id x : i32
  %row = arith.muli %pid, %stride : i32
  %base = tt.addptr %x, %row : !tt.ptr<f32>, i32
  %p = tt.splat %base : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b>
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b>
  %a = scf.for %i = %c0 to %n step %c512 iter_args(%sum = %zero) -> (tensor<512xf32, #b>) : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #b>
    %o = arith.addi %s, %r : tensor<512xi32, #b>
    %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #b>, tensor<512xi32, #b>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #b>
    %t = arith.addf %sum, %v : tensor<512xf32, #b>
    scf.yield %t : tensor<512xf32, #b>
  }
  %c = scf.for %i = %c0 to %n step %c512 iter_args(%sum = %a) -> (tensor<512xf32, #b>) : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #b>
    %o = arith.addi %s, %r : tensor<512xi32, #b>
    %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #b>, tensor<512xi32, #b>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #b>
    %t = arith.mulf %sum, %v : tensor<512xf32, #b>
    scf.yield %t : tensor<512xf32, #b>
  }
  tt.return %c : tensor<512xf32, #b>
}

// Groups of channels: 16 neighbours are 64 bytes, and the programs beside this one read the rest of their sectors.
// CHECK-LABEL: tt.func @short_runs
// CHECK-NOT:     last_use
// CHECK:         tt.return
tt.func @short_runs(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 16 : i32}, %n: i32) -> tensor<32x16xf32, #rows> {
  %c0 = arith.constant 0 : i32
  %c32 = arith.constant 32 : i32
  %zero = arith.constant dense<0.0> : tensor<32x16xf32, #rows>
  %pid = tt.get_program_id x : i32
  %c16 = arith.constant 16 : i32
  %first = arith.muli %pid, %c16 : i32
  %base = tt.addptr %x, %first : !tt.ptr<f32>, i32
  %p = tt.splat %base : !tt.ptr<f32> -> tensor<32x16x!tt.ptr<f32>, #rows>
  %r = tt.make_range {end = 32 : i32, start = 0 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
  %k = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #rows}>>
  %k1 = tt.expand_dims %k {axis = 0 : i32} : tensor<16xi32, #ttg.slice<{dim = 0, parent = #rows}>> -> tensor<1x16xi32, #rows>
  %k2 = tt.broadcast %k1 : tensor<1x16xi32, #rows> -> tensor<32x16xi32, #rows>
  %pitch = tt.splat %stride : i32 -> tensor<32x1xi32, #rows>
  %a = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %zero) -> (tensor<32x16xf32, #rows>) : i32 {
    %s = tt.splat %i : i32 -> tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %o = arith.addi %s, %r : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %o1 = tt.expand_dims %o {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %o2 = arith.muli %o1, %pitch : tensor<32x1xi32, #rows>
    %o3 = tt.broadcast %o2 : tensor<32x1xi32, #rows> -> tensor<32x16xi32, #rows>
    %at = arith.addi %o3, %k2 : tensor<32x16xi32, #rows>
    %q = tt.addptr %p, %at : tensor<32x16x!tt.ptr<f32>, #rows>, tensor<32x16xi32, #rows>
    %v = tt.load %q : tensor<32x16x!tt.ptr<f32>, #rows>
    %t = arith.addf %sum, %v : tensor<32x16xf32, #rows>
    scf.yield %t : tensor<32x16xf32, #rows>
  }
  %c = scf.for %i = %c0 to %n step %c32 iter_args(%sum = %a) -> (tensor<32x16xf32, #rows>) : i32 {
    %s = tt.splat %i : i32 -> tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %o = arith.addi %s, %r : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>>
    %o1 = tt.expand_dims %o {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #rows}>> -> tensor<32x1xi32, #rows>
    %o2 = arith.muli %o1, %pitch : tensor<32x1xi32, #rows>
    %o3 = tt.broadcast %o2 : tensor<32x1xi32, #rows> -> tensor<32x16xi32, #rows>
    %at = arith.addi %o3, %k2 : tensor<32x16xi32, #rows>
    %q = tt.addptr %p, %at : tensor<32x16x!tt.ptr<f32>, #rows>, tensor<32x16xi32, #rows>
    %v = tt.load %q : tensor<32x16x!tt.ptr<f32>, #rows>
    %t = arith.mulf %sum, %v : tensor<32x16xf32, #rows>
    scf.yield %t : tensor<32x16xf32, #rows>
  }
  tt.return %c : tensor<32x16xf32, #rows>
}

// All programs read these.
// CHECK-LABEL: tt.func @shared_by_programs
// CHECK-NOT:     last_use
// CHECK:         tt.return
tt.func @shared_by_programs(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) -> tensor<512xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %zero = arith.constant dense<0.0> : tensor<512xf32, #b>
  %p = tt.splat %x : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b>
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b>
  %a = scf.for %i = %c0 to %n step %c512 iter_args(%sum = %zero) -> (tensor<512xf32, #b>) : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #b>
    %o = arith.addi %s, %r : tensor<512xi32, #b>
    %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #b>, tensor<512xi32, #b>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #b>
    scf.yield %v : tensor<512xf32, #b>
  }
  %c = scf.for %i = %c0 to %n step %c512 iter_args(%sum = %a) -> (tensor<512xf32, #b>) : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #b>
    %o = arith.addi %s, %r : tensor<512xi32, #b>
    %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #b>, tensor<512xi32, #b>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #b>
    scf.yield %v : tensor<512xf32, #b>
  }
  tt.return %c : tensor<512xf32, #b>
}

// The second loop reads the same in all iterations of the loop around it.
// CHECK-LABEL: tt.func @again
// CHECK-NOT:     last_use
// CHECK:         tt.return
tt.func @again(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %pid = tt.get_program_id x : i32
  %base = tt.addptr %x, %pid : !tt.ptr<f32>, i32
  %p = tt.splat %base : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
  scf.for %i = %c0 to %n step %c512 : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #one>
    %o = arith.addi %s, %r : tensor<512xi32, #one>
    %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<512x!tt.ptr<f32>, #one>
  }
  scf.for %j = %c0 to %n step %c512 : i32 {
    scf.for %i = %c0 to %n step %c512 : i32 {
      %s = tt.splat %i : i32 -> tensor<512xi32, #one>
      %o = arith.addi %s, %r : tensor<512xi32, #one>
      %q = tt.addptr %p, %o : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
      %v = tt.load %q : tensor<512x!tt.ptr<f32>, #one>
      tt.store %q, %v : tensor<512x!tt.ptr<f32>, #one>
    }
  }
  tt.return
}

// Every other element: half of each sector would be lost.
// CHECK-LABEL: tt.func @parts_of_sectors
// CHECK-NOT:     last_use
// CHECK:         tt.return
tt.func @parts_of_sectors(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c512 = arith.constant 512 : i32
  %two = arith.constant dense<2> : tensor<512xi32, #one>
  %pid = tt.get_program_id x : i32
  %base = tt.addptr %x, %pid : !tt.ptr<f32>, i32
  %p = tt.splat %base : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #one>
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #one>
  scf.for %i = %c0 to %n step %c512 : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #one>
    %o = arith.addi %s, %r : tensor<512xi32, #one>
    %d = arith.muli %o, %two : tensor<512xi32, #one>
    %q = tt.addptr %p, %d : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<512x!tt.ptr<f32>, #one>
  }
  scf.for %i = %c0 to %n step %c512 : i32 {
    %s = tt.splat %i : i32 -> tensor<512xi32, #one>
    %o = arith.addi %s, %r : tensor<512xi32, #one>
    %d = arith.muli %o, %two : tensor<512xi32, #one>
    %q = tt.addptr %p, %d : tensor<512x!tt.ptr<f32>, #one>, tensor<512xi32, #one>
    %v = tt.load %q : tensor<512x!tt.ptr<f32>, #one>
    tt.store %q, %v : tensor<512x!tt.ptr<f32>, #one>
  }
  tt.return
}
}
