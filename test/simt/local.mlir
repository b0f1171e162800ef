// Buffers in shared memory, indexed by element and seen through views: each function asserts what it finds.
// RUN: %ttsim %s --quiet
// The asserts see what is wrong:
// RUN: sed 's/tt.call @scatter()/tt.call @wrong()/' %s > %t.mlir
// RUN: not %ttsim %t.mlir --quiet 2>&1 | FileCheck %s
// CHECK: wrong element

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#c = #ttg.blocked<{sizePerThread = [2, 2], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
#row = #ttg.slice<{dim = 1, parent = #b}>
#col = #ttg.slice<{dim = 0, parent = #b}>
#swizzled = #ttg.swizzled_shared<{vec = 4, perPhase = 1, maxPhase = 8, order = [1, 0]}>
#padded = #ttg.padded_shared<[32:+4] {order = [1, 0], shape = [64, 32]}>
#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#plain3 = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [2, 1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// 32 r + c
tt.func private @numbers() -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) {
  %n = arith.constant dense<32> : tensor<64x32xi32, #b>
  %r1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #row>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<64xi32, #row> -> tensor<64x1xi32, #b>
  %r = tt.broadcast %r2 : tensor<64x1xi32, #b> -> tensor<64x32xi32, #b>
  %c1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #col>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<32xi32, #col> -> tensor<1x32xi32, #b>
  %c = tt.broadcast %c2 : tensor<1x32xi32, #b> -> tensor<64x32xi32, #b>
  %rn = arith.muli %r, %n : tensor<64x32xi32, #b>
  %v = arith.addi %rn, %c : tensor<64x32xi32, #b>
  tt.return %v, %r, %c : tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>
}

tt.func private @check(%a: tensor<64x32xi32, #b>, %b: tensor<64x32xi32, #b>) {
  %ok = arith.cmpi eq, %a, %b : tensor<64x32xi32, #b>
  tt.assert %ok, "wrong element" : tensor<64x32xi1, #b>
  tt.return
}

tt.func private @wrong() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  tt.call @check(%v, %r) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// Row (5 r + 3 c + 1) mod 64 of each column, from a swizzled buffer.
tt.func private @gather_rows() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %one = arith.constant dense<1> : tensor<64x32xi32, #b>
  %three = arith.constant dense<3> : tensor<64x32xi32, #b>
  %five = arith.constant dense<5> : tensor<64x32xi32, #b>
  %mask = arith.constant dense<63> : tensor<64x32xi32, #b>
  %n = arith.constant dense<32> : tensor<64x32xi32, #b>
  %m = ttg.local_alloc %v : (tensor<64x32xi32, #b>) -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
  %r5 = arith.muli %r, %five : tensor<64x32xi32, #b>
  %c3 = arith.muli %c, %three : tensor<64x32xi32, #b>
  %s = arith.addi %r5, %c3 : tensor<64x32xi32, #b>
  %s1 = arith.addi %s, %one : tensor<64x32xi32, #b>
  %i = arith.andi %s1, %mask : tensor<64x32xi32, #b>
  %got = ttg.local_gather %m[%i] {axis = 0 : i32} : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>, tensor<64x32xi32, #b> -> tensor<64x32xi32, #b>
  %in = arith.muli %i, %n : tensor<64x32xi32, #b>
  %want = arith.addi %in, %c : tensor<64x32xi32, #b>
  tt.call @check(%got, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// Column (7 r + c) mod 32 of each row, from a padded buffer.
tt.func private @gather_columns() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %seven = arith.constant dense<7> : tensor<64x32xi32, #b>
  %mask = arith.constant dense<31> : tensor<64x32xi32, #b>
  %n = arith.constant dense<32> : tensor<64x32xi32, #b>
  %m = ttg.local_alloc %v : (tensor<64x32xi32, #b>) -> !ttg.memdesc<64x32xi32, #padded, #smem, mutable>
  %r7 = arith.muli %r, %seven : tensor<64x32xi32, #b>
  %s = arith.addi %r7, %c : tensor<64x32xi32, #b>
  %i = arith.andi %s, %mask : tensor<64x32xi32, #b>
  %i16 = arith.trunci %i : tensor<64x32xi32, #b> to tensor<64x32xi16, #b>
  %got = ttg.local_gather %m[%i16] {axis = 1 : i32} : !ttg.memdesc<64x32xi32, #padded, #smem, mutable>, tensor<64x32xi16, #b> -> tensor<64x32xi32, #b>
  %rn = arith.muli %r, %n : tensor<64x32xi32, #b>
  %want = arith.addi %rn, %i : tensor<64x32xi32, #b>
  tt.call @check(%got, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// Row r of column c goes to row (r + c) mod 64.
tt.func private @scatter() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %mask = arith.constant dense<63> : tensor<64x32xi32, #b>
  %n = arith.constant dense<32> : tensor<64x32xi32, #b>
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
  %s = arith.addi %r, %c : tensor<64x32xi32, #b>
  %i = arith.andi %s, %mask : tensor<64x32xi32, #b>
  ttg.local_scatter %m[%i], %v {axis = 0 : i32} : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>
  %got = ttg.local_load %m : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable> -> tensor<64x32xi32, #b>
  %d = arith.subi %r, %c : tensor<64x32xi32, #b>
  %from = arith.andi %d, %mask : tensor<64x32xi32, #b>
  %fn = arith.muli %from, %n : tensor<64x32xi32, #b>
  %want = arith.addi %fn, %c : tensor<64x32xi32, #b>
  tt.call @check(%got, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// The upper half of a buffer of 128 rows, with replicas of every element in two warps.
tt.func private @scatter_part() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %mask = arith.constant dense<31> : tensor<64x32xi32, #b>
  %zero = arith.constant dense<0> : tensor<128x32xi32, #b>
  %all = ttg.local_alloc %zero : (tensor<128x32xi32, #b>) -> !ttg.memdesc<128x32xi32, #swizzled, #smem, mutable>
  %m = ttg.memdesc_subslice %all[64, 0] : !ttg.memdesc<128x32xi32, #swizzled, #smem, mutable> -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable, 128x32>
  %i = arith.xori %c, %mask : tensor<64x32xi32, #b>
  ttg.local_scatter %m[%i], %v {axis = 1 : i32} : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable, 128x32>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>
  %got = ttg.local_load %m : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable, 128x32> -> tensor<64x32xi32, #b>
  %want = arith.xori %v, %mask : tensor<64x32xi32, #b>
  tt.call @check(%got, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  %lower = ttg.memdesc_subslice %all[0, 0] : !ttg.memdesc<128x32xi32, #swizzled, #smem, mutable> -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable, 128x32>
  %rest = ttg.local_load %lower : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable, 128x32> -> tensor<64x32xi32, #b>
  %nothing = arith.constant dense<0> : tensor<64x32xi32, #b>
  tt.call @check(%rest, %nothing) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// 64x32 elements, and the same in the same order as 8x8x32 and 64x32 again.
tt.func private @reshape() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %n = arith.constant dense<64> : tensor<32x64xi32, #c>
  %m = ttg.local_alloc %v : (tensor<64x32xi32, #b>) -> !ttg.memdesc<64x32xi32, #plain, #smem, mutable>
  %w = ttg.memdesc_reshape %m : !ttg.memdesc<64x32xi32, #plain, #smem, mutable> -> !ttg.memdesc<32x64xi32, #plain, #smem, mutable>
  %got = ttg.local_load %w : !ttg.memdesc<32x64xi32, #plain, #smem, mutable> -> tensor<32x64xi32, #c>
  %r1 = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #c}>>
  %r2 = tt.expand_dims %r1 {axis = 1 : i32} : tensor<32xi32, #ttg.slice<{dim = 1, parent = #c}>> -> tensor<32x1xi32, #c>
  %r3 = tt.broadcast %r2 : tensor<32x1xi32, #c> -> tensor<32x64xi32, #c>
  %c1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #c}>>
  %c2 = tt.expand_dims %c1 {axis = 0 : i32} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #c}>> -> tensor<1x64xi32, #c>
  %c3 = tt.broadcast %c2 : tensor<1x64xi32, #c> -> tensor<32x64xi32, #c>
  %rn = arith.muli %r3, %n : tensor<32x64xi32, #c>
  %want = arith.addi %rn, %c3 : tensor<32x64xi32, #c>
  %ok = arith.cmpi eq, %got, %want : tensor<32x64xi32, #c>
  tt.assert %ok, "wrong element" : tensor<32x64xi1, #c>
  tt.return
}

// Three buffers in turn: what was stored two iterations ago is loaded.
tt.func private @ring() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %c10 = arith.constant 10 : i32
  %k1000 = arith.constant 1000 : i32
  %m = ttg.local_alloc : () -> !ttg.memdesc<3x64x32xi32, #swizzled, #smem, mutable>
  scf.for %i = %c0 to %c10 step %c1 : i32 {
    %slot = arith.remui %i, %c3 : i32
    %w = ttg.memdesc_index %m[%slot] : !ttg.memdesc<3x64x32xi32, #swizzled, #smem, mutable> -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
    %k = arith.muli %i, %k1000 : i32
    %s = tt.splat %k : i32 -> tensor<64x32xi32, #b>
    %x = arith.addi %v, %s : tensor<64x32xi32, #b>
    ttg.local_store %x, %w : tensor<64x32xi32, #b> -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
    %old = arith.subi %i, %c2 : i32
    %there = arith.cmpi sge, %old, %c0 : i32
    scf.if %there {
      %slot2 = arith.remui %old, %c3 : i32
      %w2 = ttg.memdesc_index %m[%slot2] : !ttg.memdesc<3x64x32xi32, #swizzled, #smem, mutable> -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
      // In another layout, so that threads read what others wrote.
      %y = ttg.local_load %w2 : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable> -> tensor<64x32xi32, #c>
      %k2 = arith.muli %old, %k1000 : i32
      %s2 = tt.splat %k2 : i32 -> tensor<64x32xi32, #b>
      %want = arith.addi %v, %s2 : tensor<64x32xi32, #b>
      %z = ttg.convert_layout %y : tensor<64x32xi32, #c> -> tensor<64x32xi32, #b>
      tt.call @check(%z, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
    }
  }
  tt.return
}

// All row numbers of a column are added up in row c mod 4.
tt.func private @atomic_scatter() {
  %v, %r, %c = tt.call @numbers() : () -> (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>)
  %zero = arith.constant dense<0> : tensor<64x32xi32, #b>
  %one = arith.constant dense<1> : tensor<64x32xi32, #b>
  %three = arith.constant dense<3> : tensor<64x32xi32, #b>
  %m = ttg.local_alloc %zero : (tensor<64x32xi32, #b>) -> !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>
  %i = arith.andi %c, %three : tensor<64x32xi32, #b>
  %0 = ttg.local_atomic_scatter_rmw add, %m[%i], %r {axis = 0 : i32} : (!ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> tensor<64x32xi32, #b>
  // Rows 4 to 63 exchange their zeros for their numbers, but for the odd columns.
  %odd = arith.andi %c, %one : tensor<64x32xi32, #b>
  %even = arith.cmpi eq, %odd, %zero : tensor<64x32xi32, #b>
  %far = arith.cmpi sgt, %r, %three : tensor<64x32xi32, #b>
  %k = arith.andi %even, %far : tensor<64x32xi1, #b>
  %old = ttg.local_atomic_scatter_rmw exch, %m[%r], %v, %k {axis = 0 : i32} : (!ttg.memdesc<64x32xi32, #swizzled, #smem, mutable>, tensor<64x32xi32, #b>, tensor<64x32xi32, #b>, tensor<64x32xi1, #b>) -> tensor<64x32xi32, #b>
  %was = arith.select %k, %old, %zero : tensor<64x32xi1, #b>, tensor<64x32xi32, #b>
  tt.call @check(%was, %zero) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  %got = ttg.local_load %m : !ttg.memdesc<64x32xi32, #swizzled, #smem, mutable> -> tensor<64x32xi32, #b>
  %sum = arith.constant dense<2016> : tensor<64x32xi32, #b>
  %hit = arith.cmpi eq, %r, %i : tensor<64x32xi32, #b>
  %near = arith.select %hit, %sum, %zero : tensor<64x32xi1, #b>, tensor<64x32xi32, #b>
  %want = arith.select %k, %v, %near : tensor<64x32xi1, #b>, tensor<64x32xi32, #b>
  tt.call @check(%got, %want) : (tensor<64x32xi32, #b>, tensor<64x32xi32, #b>) -> ()
  tt.return
}

// Every element is held by two warps: it is added once, and both get what was there.
tt.func private @atomic_scatter_copies() {
  %x1 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #row>
  %e = tt.expand_dims %x1 {axis = 1 : i32} : tensor<64xi32, #row> -> tensor<64x1xi32, #b>
  %zero = arith.constant dense<0> : tensor<64x1xi32, #b>
  %five = arith.constant dense<5> : tensor<64x1xi32, #b>
  %m = ttg.local_alloc %e : (tensor<64x1xi32, #b>) -> !ttg.memdesc<64x1xi32, #plain, #smem, mutable>
  %old = ttg.local_atomic_scatter_rmw add, %m[%zero], %five {axis = 1 : i32} : (!ttg.memdesc<64x1xi32, #plain, #smem, mutable>, tensor<64x1xi32, #b>, tensor<64x1xi32, #b>) -> tensor<64x1xi32, #b>
  %same = arith.cmpi eq, %old, %e : tensor<64x1xi32, #b>
  tt.assert %same, "wrong element" : tensor<64x1xi1, #b>
  %got = ttg.local_load %m : !ttg.memdesc<64x1xi32, #plain, #smem, mutable> -> tensor<64x1xi32, #b>
  %want = arith.addi %e, %five : tensor<64x1xi32, #b>
  %ok = arith.cmpi eq, %got, %want : tensor<64x1xi32, #b>
  tt.assert %ok, "wrong element" : tensor<64x1xi1, #b>
  tt.return
}

tt.func public @all() {
  tt.call @atomic_scatter() : () -> ()
  tt.call @atomic_scatter_copies() : () -> ()
  tt.call @gather_rows() : () -> ()
  tt.call @gather_columns() : () -> ()
  tt.call @scatter() : () -> ()
  tt.call @scatter_part() : () -> ()
  tt.call @reshape() : () -> ()
  tt.call @ring() : () -> ()
  tt.return
}
}
