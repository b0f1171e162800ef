// RUN: %ttopt %s --tritongpu-last-use | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
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
