// RUN: %ttopt %s --test-print-axis-info -split-input-file -verify-diagnostics -o /dev/null

tt.func @range_and_splat(%n: i32 {tt.divisibility = 16 : i32}) {
  // expected-remark@+1 {{contiguity = [128], divisibility = [4611686018427387904], constancy = [1], not negative}}
  %0 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  // expected-remark@+1 {{contiguity = [64], divisibility = [4], constancy = [1], not negative}}
  %1 = tt.make_range {start = 4 : i32, end = 68 : i32} : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [128]}}
  %2 = tt.splat %n : i32 -> tensor<128xi32>
  // expected-remark@+1 {{contiguity = [128], divisibility = [16], constancy = [1]}}
  %3 = arith.addi %0, %2 : tensor<128xi32>
  // A mask is uniform between multiples of what both sides start at.
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [16]}}
  %4 = arith.cmpi slt, %3, %2 : tensor<128xi32>
  tt.return
}

// -----

tt.func @quotient_and_remainder(%a: i32 {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32> // expected-remark {{contiguity = [128]}}
  %c8 = arith.constant dense<8> : tensor<128xi32> // expected-remark {{constant = 8}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8], not negative}}
  %0 = arith.divsi %range, %c8 : tensor<128xi32>
  // expected-remark@+1 {{contiguity = [8], divisibility = [8], constancy = [1], not negative}}
  %1 = arith.remsi %range, %c8 : tensor<128xi32>
  %splat = tt.splat %a : i32 -> tensor<128xi32> // expected-remark {{constancy = [128]}}
  // The sum may be negative, and quotients are rounded towards zero.
  %sum = arith.addi %range, %splat : tensor<128xi32> // expected-remark {{contiguity = [128], divisibility = [16]}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %2 = arith.divsi %sum, %c8 : tensor<128xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [8]}}
  %3 = arith.divui %sum, %c8 : tensor<128xi32>
  tt.return
}

// -----

// Sizes that a kernel divides by are taken not to be negative.
tt.func @wrapped_offsets(%m: i32 {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32> // expected-remark {{contiguity = [64]}}
  %pid = tt.get_program_id x : i32 // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  %c64 = arith.constant 64 : i32 // expected-remark {{constant = 64}}
  %tiles = arith.divsi %m, %c64 : i32 // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  %tile = arith.remsi %pid, %tiles : i32 // expected-remark {{not negative}}
  %start = arith.muli %tile, %c64 : i32 // expected-remark {{divisibility = [64], constancy = [1], not negative}}
  %starts = tt.splat %start : i32 -> tensor<64xi32> // expected-remark {{divisibility = [64], constancy = [64]}}
  %offsets = arith.addi %starts, %range : tensor<64xi32> // expected-remark {{contiguity = [64], divisibility = [64]}}
  %sizes = tt.splat %m : i32 -> tensor<64xi32> // expected-remark {{divisibility = [16], constancy = [64]}}
  // expected-remark@+1 {{contiguity = [16], divisibility = [16], constancy = [1], not negative}}
  %0 = arith.remsi %offsets, %sizes : tensor<64xi32>
  tt.return
}

// -----

// What is divided by a size that is not known is a position along it, wherever it comes from.
tt.func @positions(%m: i32 {tt.divisibility = 16 : i32}, %tile: i32) {
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32> // expected-remark {{contiguity = [64]}}
  %c64 = arith.constant 64 : i32 // expected-remark {{constant = 64}}
  %start = arith.muli %tile, %c64 : i32 // expected-remark {{divisibility = [64], constancy = [1]}}
  %starts = tt.splat %start : i32 -> tensor<64xi32> // expected-remark {{divisibility = [64], constancy = [64]}}
  %offsets = arith.addi %starts, %range : tensor<64xi32> // expected-remark {{contiguity = [64], divisibility = [64], constancy = [1], not negative}}
  %sizes = tt.splat %m : i32 -> tensor<64xi32> // expected-remark {{divisibility = [16], constancy = [64]}}
  // expected-remark@+1 {{contiguity = [16], divisibility = [16], constancy = [1], not negative}}
  %0 = arith.remsi %offsets, %sizes : tensor<64xi32>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [16], not negative}}
  %1 = arith.divsi %offsets, %sizes : tensor<64xi32>
  tt.return
}

// -----

tt.func @pointers(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %stride: i32 {tt.divisibility = 8 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32> // expected-remark {{contiguity = [32]}}
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32> // expected-remark {{contiguity = [32, 1]}}
  %columns = tt.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32> // expected-remark {{contiguity = [1, 32]}}
  %strides = tt.splat %stride : i32 -> tensor<32x1xi32> // expected-remark {{divisibility = [8, 8], constancy = [32, 1]}}
  %scaled = arith.muli %rows, %strides : tensor<32x1xi32> // expected-remark {{divisibility = [8, 8], constancy = [1, 1]}}
  %base = tt.splat %p : !tt.ptr<f16> -> tensor<32x1x!tt.ptr<f16>> // expected-remark {{divisibility = [16, 16]}}
  %row = tt.addptr %base, %scaled : tensor<32x1x!tt.ptr<f16>>, tensor<32x1xi32> // expected-remark {{divisibility = [16, 16]}}
  %wide = tt.broadcast %row : tensor<32x1x!tt.ptr<f16>> -> tensor<32x32x!tt.ptr<f16>> // expected-remark {{constancy = [1, 32]}}
  %offsets = tt.broadcast %columns : tensor<1x32xi32> -> tensor<32x32xi32> // expected-remark {{contiguity = [1, 32]}}
  // expected-remark@+1 {{contiguity = [1, 32], divisibility = [2, 16], constancy = [1, 1]}}
  %all = tt.addptr %wide, %offsets : tensor<32x32x!tt.ptr<f16>>, tensor<32x32xi32>
  tt.return
}

// -----

// Strides that are known tell where rows continue.
tt.func @strided(%p: !tt.ptr<i8> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32> // expected-remark {{contiguity = [64]}}
  %c2 = arith.constant dense<2> : tensor<64xi32> // expected-remark {{constant = 2}}
  %twice = arith.muli %r, %c2 : tensor<64xi32> // expected-remark {{contiguity = [1], divisibility = [2], constancy = [1], stride[0] = 2 over 64}}
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [2, 2], constancy = [1, 1], stride[0] = 4 over 32, stride[1] = 2 over 2}}
  %0 = tt.reshape %twice : tensor<64xi32> -> tensor<32x2xi32>
  // expected-remark@+1 {{stride[0] = 2 over 2, stride[1] = 4 over 32}}
  %1 = tt.trans %0 {order = array<i32: 1, 0>} : tensor<32x2xi32> -> tensor<2x32xi32>
  tt.return
}

// -----

// What goes around a loop loses what the loop does not keep.
tt.func @loops(%n: i32, %p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32 // expected-remark {{constant = 0}}
  %c4 = arith.constant 4 : i32 // expected-remark {{constant = 4}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [16], constancy = [1]}}
  %last = scf.for %i = %c0 to %n step %c4 iter_args(%q = %p) -> (!tt.ptr<f32>) : i32 {
    %next = tt.addptr %q, %c4 : !tt.ptr<f32>, i32 // expected-remark {{divisibility = [16]}}
    %at = tt.addptr %q, %i : !tt.ptr<f32>, i32 // expected-remark {{divisibility = [16]}}
    scf.yield %next : !tt.ptr<f32>
  }
  %cond = arith.cmpi slt, %n, %c4 : i32 // expected-remark {{constancy = [1]}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [4], constancy = [1], not negative}}
  %either = scf.if %cond -> i32 {
    %c12 = arith.constant 12 : i32 // expected-remark {{constant = 12}}
    scf.yield %c12 : i32
  } else {
    scf.yield %c4 : i32
  }
  // expected-remark@+1 {{contiguity = [1], divisibility = [4], constancy = [1]}}
  %w = scf.while (%x = %c4) : (i32) -> i32 {
    scf.condition(%cond) %x : i32
  } do {
  ^bb0(%y: i32):
    %z = arith.muli %y, %c4 : i32 // expected-remark {{divisibility = [16]}}
    scf.yield %z : i32
  }
  tt.return
}

// -----

// Arguments of private functions are what all callers pass.
tt.func private @callee(%a: i32, %b: i32) -> i32 attributes {noinline = true} {
  %0 = arith.addi %a, %b : i32 // expected-remark {{divisibility = [8]}}
  tt.return %0 : i32
}
tt.func public @caller(%p: i32 {tt.divisibility = 16 : i32}) {
  %c8 = arith.constant 8 : i32 // expected-remark {{constant = 8}}
  %c24 = arith.constant 24 : i32 // expected-remark {{constant = 24}}
  %0 = tt.call @callee(%c8, %p) : (i32, i32) -> i32 // expected-remark {{divisibility = [8]}}
  %1 = tt.call @callee(%c24, %p) : (i32, i32) -> i32 // expected-remark {{divisibility = [8]}}
  tt.return
}

// -----

// A recursive call ends.
tt.func private @again(%a: i32) -> i32 attributes {noinline = true} {
  %c2 = arith.constant 2 : i32 // expected-remark {{constant = 2}}
  %half = arith.divsi %a, %c2 : i32 // expected-remark {{divisibility = [1]}}
  %stop = arith.cmpi sle, %a, %c2 : i32 // expected-remark {{constancy = [1]}}
  cf.cond_br %stop, ^bb1, ^bb2
^bb1:
  tt.return %a : i32
^bb2:
  %0 = tt.call @again(%half) : (i32) -> i32 // expected-remark {{divisibility = [1]}}
  tt.return %0 : i32
}
tt.func public @start() {
  %c = arith.constant 1024 : i32 // expected-remark {{constant = 1024}}
  %0 = tt.call @again(%c) : (i32) -> i32 // expected-remark {{divisibility = [1]}}
  tt.return
}

// -----

tt.func @branches(%c: i1, %n: i32) {
  %c32 = arith.constant 32 : i32 // expected-remark {{constant = 32}}
  %c48 = arith.constant 48 : i32 // expected-remark {{constant = 48}}
  cf.cond_br %c, ^bb1(%c32 : i32), ^bb2(%n : i32)
^bb1(%x: i32):
  %0 = arith.addi %x, %c32 : i32 // expected-remark {{divisibility = [16]}}
  cf.cond_br %c, ^bb1(%c48 : i32), ^bb2(%0 : i32)
^bb2(%y: i32):
  %1 = arith.addi %y, %c32 : i32 // expected-remark {{divisibility = [1]}}
  tt.return
}

// -----

// Hints of the author are facts.
tt.func @hints(%p: !tt.ptr<i32>, %n: i32) {
  %c16 = arith.constant 16 : i32 // expected-remark {{constant = 16}}
  %c0 = arith.constant 0 : i32 // expected-remark {{constant = 0}}
  %rem = arith.remsi %n, %c16 : i32 // expected-remark {{divisibility = [16]}}
  %zero = arith.cmpi eq, %rem, %c0 : i32 // expected-remark {{divisibility = [1]}}
  llvm.intr.assume %zero : i1
  %even = arith.addi %n, %c16 : i32 // expected-remark {{divisibility = [16]}}
  // expected-remark@+1 {{divisibility = [16], constancy = [1]}}
  %i = tt.load %p {tt.divisibility = dense<16> : tensor<1xi32>} : !tt.ptr<i32>
  %r = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32> // expected-remark {{contiguity = [64]}}
  %s = tt.splat %even : i32 -> tensor<64xi32> // expected-remark {{divisibility = [16]}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [32]}}
  %0 = arith.divsi %r, %s {tt.constancy = dense<32> : tensor<1xi32>} : tensor<64xi32>
  %2 = arith.constant dense<1> : tensor<4x16xi32> // expected-remark {{constant = 1}}
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [1, 16]}}
  %1 = "tt.gather"(%2, %2) <{axis = 0 : i32}> {tt.contiguity = dense<[1, 16]> : tensor<2xi32>, tt.divisibility = dense<[1, 16]> : tensor<2xi32>} : (tensor<4x16xi32>, tensor<4x16xi32>) -> tensor<4x16xi32>
  tt.return
}

// -----

// What partitions capture is what they get, and what the default region yields is the result.
module attributes {"ttg.num-warps" = 4 : i32} {
tt.func @partitions(%n: i32 {tt.divisibility = 16 : i32}, %m: i32) {
  %c32 = arith.constant 32 : i32 // expected-remark {{constant = 32}}
  // expected-remark@+1 {{divisibility = [32]}}
  %r = ttg.warp_specialize(%n, %m)
  default {
    ttg.warp_yield %c32 : i32
  }
  partition0(%a: i32, %b: i32) num_warps(4) {
    %c16 = arith.constant 16 : i32 // expected-remark {{constant = 16}}
    %0 = arith.addi %a, %c16 : i32 // expected-remark {{divisibility = [16]}}
    %1 = arith.addi %b, %c16 : i32 // expected-remark {{divisibility = [1]}}
    ttg.warp_return
  } : (i32, i32) -> i32
  tt.return
}
}

// -----

// What is loaded from one address is equal, where the mask and what is given instead are, too. A volatile load may
// find something new each time.
tt.func @loads(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 4 : i32}) {
  %range = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32> // expected-remark {{contiguity = [128]}}
  %c32 = arith.constant dense<32> : tensor<128xi32> // expected-remark {{constant = 32}}
  %row = arith.divsi %range, %c32 : tensor<128xi32> // expected-remark {{constancy = [32]}}
  %splat = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>> // expected-remark {{constancy = [128]}}
  %at = tt.addptr %splat, %row : tensor<128x!tt.ptr<i32>>, tensor<128xi32> // expected-remark {{constancy = [32]}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [32]}}
  %0 = tt.load %at : tensor<128x!tt.ptr<i32>>
  %ns = tt.splat %n : i32 -> tensor<128xi32> // expected-remark {{constancy = [128]}}
  %mask = arith.cmpi slt, %range, %ns : tensor<128xi32> // expected-remark {{constancy = [4]}}
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [4]}}
  %1 = tt.load %at, %mask, %c32 : tensor<128x!tt.ptr<i32>>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %2 = tt.load %at, %mask, %range : tensor<128x!tt.ptr<i32>>
  // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [1]}}
  %3 = tt.load %at {isVolatile = true} : tensor<128x!tt.ptr<i32>>
  tt.return
}

// -----

// Hints that cannot be right say nothing, and a wrong one does not move the others to dimensions that they are not about.
tt.func @odd_hints(%p: !tt.ptr<i32>) {
  // expected-remark@+1 {{divisibility = [1]}}
  %i = tt.load %p {tt.divisibility = dense<16> : tensor<9223372036854775807xi32>} : !tt.ptr<i32>
  %2 = arith.constant dense<1> : tensor<16x16xi32> // expected-remark {{constant = 1}}
  // expected-remark@+1 {{contiguity = [1, 16], divisibility = [1, 1]}}
  %1 = "tt.gather"(%2, %2) <{axis = 0 : i32}> {tt.contiguity = dense<[-4, 16]> : tensor<2xi32>} : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
  // expected-remark@+1 {{contiguity = [1, 1], divisibility = [1, 1]}}
  %3 = "tt.gather"(%2, %2) <{axis = 0 : i32}> {tt.contiguity = dense<[[1, 16]]> : tensor<1x2xi32>} : (tensor<16x16xi32>, tensor<16x16xi32>) -> tensor<16x16xi32>
  tt.return
}

// -----

// A branch says that what it leads to is computed only where one number is not less than another.
tt.func @guarded_differences(%n: i32, %p: !tt.ptr<i32>) {
  %pid = tt.get_program_id x : i32 // expected-remark {{not negative}}
  %c8 = arith.constant 8 : i32 // expected-remark {{constant = 8}}
  %eight = arith.constant 8 : i32 // expected-remark {{constant = 8}}
  // expected-remark-re@+1 {{{{constancy = \[1\]$}}}}
  %before = arith.subi %pid, %n : i32
  %less = arith.cmpi slt, %pid, %n : i32 // expected-remark {{not negative}}
  %few = arith.cmpi slt, %pid, %c8 : i32 // expected-remark {{not negative}}
  scf.if %less {
    // expected-remark-re@+1 {{{{constancy = \[1\]$}}}}
    %0 = arith.subi %pid, %n : i32
    // expected-remark@+1 {{divisibility = [1], constancy = [1], not negative}}
    %1 = arith.subi %n, %pid : i32
    tt.store %p, %0 : !tt.ptr<i32>
    tt.store %p, %1 : !tt.ptr<i32>
  } else {
    // expected-remark@+1 {{divisibility = [1], constancy = [1], not negative}}
    %0 = arith.subi %pid, %n : i32
    tt.store %p, %0 : !tt.ptr<i32>
    scf.if %few {
      // expected-remark-re@+1 {{{{constancy = \[1\]$}}}}
      %1 = arith.subi %pid, %eight : i32
      tt.store %p, %1 : !tt.ptr<i32>
    }
  }
  tt.store %p, %before : !tt.ptr<i32>
  cf.cond_br %few, ^less, ^more
^more:
  // expected-remark@+1 {{divisibility = [1], constancy = [1], not negative}}
  %2 = arith.subi %pid, %eight : i32
  tt.store %p, %2 : !tt.ptr<i32>
  cf.br ^less
^less:
  // expected-remark-re@+1 {{{{constancy = \[1\]$}}}}
  %3 = arith.subi %pid, %eight : i32
  tt.store %p, %3 : !tt.ptr<i32>
  tt.return
}

// -----

// Where a loop over positions ends, and what positions are compared with, is a size. What data are compared with is none, nor what
// ends a loop that begins anywhere.
tt.func @bounds_are_sizes(%n: i32 {tt.divisibility = 16 : i32}, %m: i32, %k: i32, %least: i32, %data: tensor<64xi32>) {
  %c0 = arith.constant 0 : i32 // expected-remark {{constancy = [1], constant = 0}}
  %c64 = arith.constant 64 : i32 // expected-remark {{divisibility = [64], constancy = [1], constant = 64}}
  %c63 = arith.constant 63 : i32 // expected-remark {{divisibility = [1], constancy = [1], constant = 63}}
  %c96 = arith.constant dense<96> : tensor<64xi32> // expected-remark {{divisibility = [32], constancy = [64], constant = 96}}
  %pid = tt.get_program_id x : i32 // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32> // expected-remark {{constancy = [1], not negative}}
  %some = arith.addi %m, %c63 : i32 // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  %tiles = arith.divsi %some, %c64 : i32 // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  // expected-remark@+1 {{divisibility = [64], constancy = [1], not negative}}
  %rows = arith.muli %m, %c64 : i32
  scf.for %j = %c0 to %tiles step %c64 : i32 {
  }
  %row = arith.muli %pid, %n : i32 // expected-remark {{divisibility = [16], constancy = [1], not negative}}
  scf.for %i = %c0 to %n step %c64 : i32 {
    %first = arith.addi %row, %i : i32 // expected-remark {{divisibility = [16], constancy = [1], not negative}}
    %starts = tt.splat %first : i32 -> tensor<64xi32> // expected-remark {{divisibility = [16], constancy = [64], not negative}}
    %at = arith.addi %starts, %range : tensor<64xi32> // expected-remark {{divisibility = [16], constancy = [1], not negative}}
    // expected-remark@+1 {{contiguity = [1], divisibility = [1], constancy = [16], not negative}}
    %quotient = arith.divsi %at, %c96 : tensor<64xi32>
    // expected-remark@+1 {{contiguity = [16], divisibility = [16], constancy = [1], not negative}}
    %remainder = arith.remsi %at, %c96 : tensor<64xi32>
  }
  %bound = tt.splat %least : i32 -> tensor<64xi32> // expected-remark {{divisibility = [1], constancy = [64]}}
  %less = arith.cmpi slt, %data, %bound : tensor<64xi32> // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  // expected-remark-re@+1 {{divisibility = [64], constancy = [1]{{$}}}}
  %other = arith.muli %least, %c64 : i32
  %ks = tt.splat %k : i32 -> tensor<64xi32> // expected-remark {{divisibility = [1], constancy = [64], not negative}}
  %inside = arith.cmpi slt, %range, %ks : tensor<64xi32> // expected-remark {{divisibility = [1], constancy = [1], not negative}}
  // expected-remark@+1 {{divisibility = [64], constancy = [1], not negative}}
  %columns = arith.muli %k, %c64 : i32
  scf.for %i = %least to %m step %c64 : i32 {
  }
  tt.return
}
