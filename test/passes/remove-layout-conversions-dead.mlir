// RUN: %ttopt %s --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: %ttopt %s --tritongpu-remove-layout-conversions -o %t.once
// RUN: %ttopt %t.once --tritongpu-remove-layout-conversions -o %t.twice
// RUN: diff %t.once %t.twice

// What control flow carries for nobody goes, with what only computes its next value.

#a = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
tt.func private @use(tensor<512xf32, #b>)

// CHECK-LABEL: @for
// CHECK-SAME: (%[[X:.*]]: tensor<512xf32, {{.*}}, %[[N:.*]]: i32)
// CHECK-NOT: arith.addi
// CHECK: %[[R:.*]] = scf.for {{.*}} iter_args(%[[T:.*]] = %[[X]]) -> (tensor<512xf32, #{{.*}}>)
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-NEXT: scf.yield %[[M]] : tensor
// CHECK: tt.return %[[R]]
tt.func @for(%x: tensor<512xf32, #a>, %n: i32) -> tensor<512xf32, #a> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %start = arith.addi %n, %n : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%d = %start, %t = %x) -> (i32, tensor<512xf32, #a>)  : i32 {
    %e = arith.muli %d, %n : i32
    %m = arith.mulf %t, %t : tensor<512xf32, #a>
    scf.yield %e, %m : i32, tensor<512xf32, #a>
  }
  tt.return %r#1 : tensor<512xf32, #a>
}

// Two that are computed from one another.
// CHECK-LABEL: @exchange
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (i32)
// CHECK-NEXT: arith.addi
// CHECK-NEXT: scf.yield %{{.*}} : i32
tt.func @exchange(%n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%d = %c0, %s = %n, %e = %c1) -> (i32, i32, i32)  : i32 {
    %f = arith.muli %d, %n : i32
    %t = arith.addi %s, %i : i32
    scf.yield %e, %t, %f : i32, i32, i32
  }
  tt.return %r#1 : i32
}

// An inner loop and a branch carry what the outer loop carries.
// CHECK-LABEL: @nested
// CHECK: scf.for %[[I:.*]] = {{.*}}  : i32 {
// CHECK-NEXT: scf.for {{.*}}  : i32 {
// CHECK-NEXT: tt.call @use
// CHECK-NEXT: }
// CHECK-NEXT: scf.if
// CHECK-NEXT: tt.call @use
// CHECK-NOT: scf.yield
// CHECK: tt.return
tt.func @nested(%x: tensor<512xf32, #b>, %n: i32, %c: i1) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%d = %c0) -> (i32)  : i32 {
    %s = scf.for %j = %c0 to %n step %c1 iter_args(%e = %d) -> (i32)  : i32 {
      tt.call @use(%x) : (tensor<512xf32, #b>) -> ()
      %f = arith.muli %e, %n : i32
      scf.yield %f : i32
    }
    %t = scf.if %c -> (i32) {
      tt.call @use(%x) : (tensor<512xf32, #b>) -> ()
      scf.yield %s : i32
    } else {
      scf.yield %n : i32
    }
    scf.yield %t : i32
  }
  tt.return
}

// CHECK-LABEL: @while
// CHECK: %[[R:.*]] = scf.while (%[[P:.*]] = %{{.*}}) : (i32) -> i32
// CHECK-NEXT: arith.cmpi slt, %[[P]]
// CHECK-NEXT: scf.condition(%{{.*}}) %[[P]] : i32
// CHECK: ^bb0(%[[Q:.*]]: i32):
// CHECK-NEXT: %[[S:.*]] = arith.addi %[[Q]]
// CHECK-NEXT: scf.yield %[[S]] : i32
// CHECK: tt.return %[[R]]
tt.func @while(%n: i32) -> i32 {
  %c1 = arith.constant 1 : i32
  %w:2 = scf.while (%d = %n, %p = %c1) : (i32, i32) -> (i32, i32) {
    %c = arith.cmpi slt, %p, %n : i32
    %e = arith.muli %d, %n : i32
    scf.condition(%c) %e, %p : i32, i32
  } do {
  ^bb0(%f: i32, %q: i32):
    %s = arith.addi %q, %c1 : i32
    scf.yield %f, %s : i32, i32
  }
  tt.return %w#1 : i32
}

// The condition needs what the loop passes on to itself, though nobody needs the result.
// CHECK-LABEL: @condition
// CHECK: scf.while (%[[P:.*]] = %{{.*}}) : (i32) -> i32
// CHECK: arith.cmpi slt, %[[P]]
// CHECK: scf.condition(%{{.*}}) %[[P]] : i32
tt.func @condition(%x: tensor<512xf32, #b>, %n: i32) {
  %c1 = arith.constant 1 : i32
  %w = scf.while (%p = %c1) : (i32) -> i32 {
    %c = arith.cmpi slt, %p, %n : i32
    scf.condition(%c) %p : i32
  } do {
  ^bb0(%q: i32):
    tt.call @use(%x) : (tensor<512xf32, #b>) -> ()
    %s = arith.addi %q, %c1 : i32
    scf.yield %s : i32
  }
  tt.return
}

// Of blocks' arguments, those of one branch are told apart from those of the other.
// CHECK-LABEL: @blocks
// CHECK-SAME: (%[[X:.*]]: tensor<512xf32, {{.*}}, %[[N:.*]]: i32, %[[C:.*]]: i1)
// CHECK: cf.br ^bb1(%[[X]] : tensor<512xf32, #{{.*}}>)
// CHECK: ^bb1(%[[T:.*]]: tensor<512xf32, #{{.*}}>):
// CHECK-NEXT: %[[M:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK-NEXT: tt.call @use(%[[T]])
// CHECK-NEXT: cf.cond_br %[[C]], ^bb1(%[[M]] : tensor<512xf32, #{{.*}}>), ^bb2(%[[N]] : i32)
// CHECK: ^bb2(%[[E:.*]]: i32):
// CHECK-NEXT: tt.return %[[E]]
tt.func @blocks(%x: tensor<512xf32, #b>, %n: i32, %c: i1) -> i32 {
  cf.br ^bb1(%n, %x : i32, tensor<512xf32, #b>)
^bb1(%d: i32, %t: tensor<512xf32, #b>):
  %m = arith.mulf %t, %t : tensor<512xf32, #b>
  tt.call @use(%t) : (tensor<512xf32, #b>) -> ()
  %e = arith.muli %d, %n : i32
  cf.cond_br %c, ^bb1(%e, %m : i32, tensor<512xf32, #b>), ^bb2(%m, %n : tensor<512xf32, #b>, i32)
^bb2(%u: tensor<512xf32, #b>, %r: i32):
  tt.return %r : i32
}

// A branch that goes to one block either way, and one that is not known, pass on what they pass.
// CHECK-LABEL: @unknown
// CHECK: cf.cond_br %{{.*}}, ^bb1(%{{.*}} : i32), ^bb1(%{{.*}} : i32)
// CHECK: cf.switch
// CHECK-NEXT: default: ^bb2(%{{.*}} : i32),
// CHECK-NEXT: 1: ^bb2(%{{.*}} : i32)
tt.func @unknown(%n: i32, %c: i1) {
  cf.cond_br %c, ^bb1(%n : i32), ^bb1(%n : i32)
^bb1(%d: i32):
  cf.switch %n : i32, [
    default: ^bb2(%d : i32),
    1: ^bb2(%n : i32)
  ]
^bb2(%e: i32):
  tt.return
}

// What effects in the body need stays: a store's address, and what a load that may not go is computed from.
// CHECK-LABEL: @effects
// CHECK: scf.for {{.*}} iter_args(%[[P:.*]] = %{{.*}}, %[[Q:.*]] = %{{.*}}) -> (!tt.ptr<f32>, !tt.ptr<f32>)
// CHECK: tt.store %[[P]]
// CHECK: tt.load %[[Q]] {isVolatile = true}
// CHECK: %[[P2:.*]] = tt.addptr %[[P]]
// CHECK: %[[Q2:.*]] = tt.addptr %[[Q]]
// CHECK: scf.yield %[[P2]], %[[Q2]]
tt.func @effects(%p: !tt.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %one = arith.constant 1.0 : f32
  %r:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %p, %v = %p, %l = %p) -> (!tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>)  : i32 {
    tt.store %s, %one : !tt.ptr<f32>
    %u = tt.load %v {isVolatile = true} : !tt.ptr<f32>
    %w = tt.load %l : !tt.ptr<f32>
    %k = arith.fptosi %w : f32 to i32
    %s2 = tt.addptr %s, %c1 : !tt.ptr<f32>, i32
    %v2 = tt.addptr %v, %c1 : !tt.ptr<f32>, i32
    %l2 = tt.addptr %l, %k : !tt.ptr<f32>, i32
    scf.yield %s2, %v2, %l2 : !tt.ptr<f32>, !tt.ptr<f32>, !tt.ptr<f32>
  }
  tt.return
}

// What a loop carries is wanted in another layout, in which it is carried from then on, and in the old one no longer.
// CHECK-LABEL: @again
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}) -> (tensor<512xf32, #[[LAYOUT:.*]]>)
// CHECK-NEXT: tt.call @use
// CHECK-NEXT: arith.addf {{.*}} : tensor<512xf32, #[[LAYOUT]]>
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @again(%p: tensor<512x!tt.ptr<f32>, #a>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %x = tt.load %p : tensor<512x!tt.ptr<f32>, #a>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%t = %x) -> (tensor<512xf32, #a>)  : i32 {
    %s = ttg.convert_layout %t : tensor<512xf32, #a> -> tensor<512xf32, #b>
    tt.call @use(%s) : (tensor<512xf32, #b>) -> ()
    %u = arith.addf %t, %t : tensor<512xf32, #a>
    scf.yield %u : tensor<512xf32, #a>
  }
  tt.return
}
}
