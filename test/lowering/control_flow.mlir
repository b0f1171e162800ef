// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// A tensor that a loop carries is one block argument for each register.
// CHECK-LABEL: llvm.func internal @for(
// CHECK-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32, %[[N:[^:]*]]: i32)
// CHECK:         llvm.br ^[[HEAD:.*]](%[[C0:.*]], %[[X0]], %[[X1]] : i32, f32, f32)
// CHECK:       ^[[HEAD]](%[[I:.*]]: i32, %[[A0:.*]]: f32, %[[A1:.*]]: f32):
// CHECK-NEXT:    %[[MORE:.*]] = llvm.icmp "slt" %[[I]], %[[N]] : i32
// CHECK-NEXT:    llvm.cond_br %[[MORE]], ^[[BODY:.*]], ^[[EXIT:.*]]
// CHECK:       ^[[BODY]]:
// CHECK-NEXT:    %[[S0:.*]] = llvm.fadd %[[A0]], %[[A0]]
// CHECK-NEXT:    %[[S1:.*]] = llvm.fadd %[[A1]], %[[A1]]
// CHECK-NEXT:    %[[NEXT:.*]] = llvm.add %[[I]], %{{.*}} : i32
// CHECK-NEXT:    llvm.br ^[[HEAD]](%[[NEXT]], %[[S0]], %[[S1]] : i32, f32, f32)
// CHECK:       ^[[EXIT]]:
// CHECK:         llvm.insertvalue %[[A0]], %{{.*}}[0]
// CHECK:         llvm.insertvalue %[[A1]], %{{.*}}[1]
tt.func private @for(%x: tensor<64xf32, #b>, %n: i32) -> tensor<64xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> (tensor<64xf32, #b>) : i32 {
    %s = arith.addf %a, %a : tensor<64xf32, #b>
    scf.yield %s : tensor<64xf32, #b>
  }
  tt.return %r : tensor<64xf32, #b>
}

// Elements of 16 and 8 bits are carried in words.
// CHECK-LABEL: llvm.func internal @for_narrow(
// CHECK:         llvm.br ^[[HEAD:.*]](%{{.*}} : i32, vector<2xf16>, i8, i8)
// CHECK:       ^[[HEAD]](%{{.*}}: i32, %[[W:.*]]: vector<2xf16>, %[[B0:.*]]: i8, %[[B1:.*]]: i8):
// CHECK:         llvm.extractelement %[[W]]
// CHECK-NEXT:    llvm.mlir.constant(1
// CHECK-NEXT:    llvm.extractelement %[[W]]
// CHECK:         llvm.fadd
// CHECK:         llvm.insertelement
// CHECK:         llvm.br ^[[HEAD]](%{{.*}} : i32, vector<2xf16>, i8, i8)
tt.func private @for_narrow(%x: tensor<64xf16, #b>, %y: tensor<64xi8, #b>, %n: i32) -> tensor<64xf16, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r, %q = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (tensor<64xf16, #b>, tensor<64xi8, #b>) : i32 {
    %s = arith.addf %a, %a : tensor<64xf16, #b>
    scf.yield %s, %b : tensor<64xf16, #b>, tensor<64xi8, #b>
  }
  tt.return %r : tensor<64xf16, #b>
}

// Carried values change places at once; unsigned loops compare unsigned.
// CHECK-LABEL: llvm.func internal @swap(
// CHECK:       ^[[HEAD:.*]](%[[I:.*]]: i64, %[[A:.*]]: f32, %[[B:.*]]: f32):
// CHECK-NEXT:    llvm.icmp "ult" %[[I]], %{{.*}} : i64
// CHECK:         llvm.br ^[[HEAD]](%{{.*}}, %[[B]], %[[A]] : i64, f32, f32)
tt.func private @swap(%x: f32, %y: f32, %n: index) -> (f32, f32) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %r:2 = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%a = %x, %b = %y) -> (f32, f32) {
    scf.yield %b, %a : f32, f32
  }
  tt.return %r#0, %r#1 : f32, f32
}

// Thread indices are computed in the entry block, which dominates every use.
// CHECK-LABEL: llvm.func internal @if(
// CHECK-SAME:    %[[C:[^:]*]]: i1, %[[X:[^:]*]]: f32, %[[P:[^:]*]]: !llvm.ptr<1>)
// CHECK-NEXT:    %{{.*}} = nvvm.read.ptx.sreg.tid.x
// CHECK:         llvm.cond_br %[[C]], ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK:       ^[[THEN]]:
// CHECK-NEXT:    %[[NEG:.*]] = llvm.fneg %[[X]]
// CHECK-NEXT:    llvm.br ^[[JOIN:.*]](%[[NEG]] : f32)
// CHECK:       ^[[ELSE]]:
// CHECK-NEXT:    llvm.br ^[[JOIN]](%[[X]] : f32)
// CHECK:       ^[[JOIN]](%[[R:.*]]: f32):
// CHECK-NEXT:    llvm.cond_br %[[C]], ^[[STORE:.*]], ^[[SKIP:.*]]
// CHECK:       ^[[STORE]]:
// CHECK:         st.global.b32
// CHECK:         llvm.br ^[[END:.*]]
// CHECK:       ^[[SKIP]]:
// CHECK-NEXT:    llvm.br ^[[END]]
// CHECK:       ^[[END]]:
// CHECK-NEXT:    llvm.return %[[R]] : f32
tt.func private @if(%c: i1, %x: f32, %p: !tt.ptr<f32>) -> f32 {
  %r = scf.if %c -> f32 {
    %y = arith.negf %x : f32
    scf.yield %y : f32
  } else {
    scf.yield %x : f32
  }
  scf.if %c {
    tt.store %p, %r : !tt.ptr<f32>
  }
  tt.return %r : f32
}

// What the condition passes on, of another type than what is carried.
// CHECK-LABEL: llvm.func internal @while(
// CHECK:       ^[[HEAD:.*]](%[[A:.*]]: i32):
// CHECK-NEXT:    %[[GO:.*]] = llvm.icmp "sgt" %[[A]], %{{.*}} : i32
// CHECK-NEXT:    %[[W:.*]] = llvm.sext %[[A]] : i32 to i64
// CHECK-NEXT:    llvm.cond_br %[[GO]], ^[[BODY:.*]], ^[[EXIT:.*]]
// CHECK:       ^[[BODY]]:
// CHECK-NEXT:    %[[T:.*]] = llvm.trunc %[[W]] : i64 to i32
// CHECK-NEXT:    %[[D:.*]] = llvm.sub %[[T]], %{{.*}} : i32
// CHECK-NEXT:    llvm.br ^[[HEAD]](%[[D]] : i32)
// CHECK:       ^[[EXIT]]:
// CHECK-NEXT:    llvm.return %[[W]] : i64
tt.func private @while(%x: i32) -> i64 {
  %c1 = arith.constant 1 : i32
  %c0 = arith.constant 0 : i32
  %r = scf.while (%a = %x) : (i32) -> i64 {
    %m = arith.cmpi sgt, %a, %c0 : i32
    %w = arith.extsi %a : i32 to i64
    scf.condition(%m) %w : i64
  } do {
  ^bb0(%w: i64):
    %t = arith.trunci %w : i64 to i32
    %d = arith.subi %t, %c1 : i32
    scf.yield %d : i32
  }
  tt.return %r : i64
}

// CHECK-LABEL: llvm.func internal @branches(
// CHECK-SAME:    %[[C:[^:]*]]: i1, %[[X0:[^:]*]]: i32, %[[X1:[^:]*]]: i32, %[[Y0:[^:]*]]: i32, %[[Y1:[^:]*]]: i32)
// CHECK:         llvm.cond_br %[[C]], ^[[ONE:.*]], ^[[TWO:.*]](%[[X0]], %[[X1]] : i32, i32)
// CHECK:       ^[[ONE]]:
// CHECK-NEXT:    llvm.br ^[[TWO]](%[[Y0]], %[[Y1]] : i32, i32)
// CHECK:       ^[[TWO]](%{{.*}}: i32, %{{.*}}: i32):
tt.func private @branches(%c: i1, %x: tensor<64xi32, #b>, %y: tensor<64xi32, #b>) -> tensor<64xi32, #b> {
  cf.cond_br %c, ^bb1, ^bb2(%x : tensor<64xi32, #b>)
^bb1:
  cf.br ^bb2(%y : tensor<64xi32, #b>)
^bb2(%z: tensor<64xi32, #b>):
  tt.return %z : tensor<64xi32, #b>
}

// Blocks may come in any order, and some are never reached.
// CHECK-LABEL: llvm.func internal @order(
// CHECK:         %[[Y:.*]] = llvm.add
// CHECK:         %[[Z:.*]] = llvm.mul %[[Y]], %[[Y]]
// CHECK-NEXT:    llvm.return %[[Z]] : i32
// CHECK-NOT:     llvm.sub
tt.func private @order(%x: i32) -> i32 {
  cf.br ^bb2
^bb1:
  %z = arith.muli %y, %y : i32
  tt.return %z : i32
^bb2:
  %y = arith.addi %x, %x : i32
  cf.br ^bb1
^bb3:
  %w = arith.subi %x, %x : i32
  cf.br ^bb3
}

// A call passes registers one by one and gets them back in a structure.
// CHECK-LABEL: llvm.func internal @call(
// CHECK-SAME:    %[[X:[^:]*]]: f32, %[[Y0:[^:]*]]: i32, %[[Y1:[^:]*]]: i32) -> !llvm.struct<(i32, i32, f32)>
// CHECK:         %[[R:.*]] = llvm.call @callee(%[[X]], %[[Y0]], %[[Y1]]) : (f32, i32, i32) -> !llvm.struct<(f32, i32, i32)>
// CHECK:         %[[R0:.*]] = llvm.extractvalue %[[R]][0]
// CHECK:         %[[R1:.*]] = llvm.extractvalue %[[R]][1]
// CHECK:         %[[R2:.*]] = llvm.extractvalue %[[R]][2]
// CHECK:         %[[S0:.*]] = llvm.insertvalue %[[R1]], %{{.*}}[0]
// CHECK:         %[[S1:.*]] = llvm.insertvalue %[[R2]], %[[S0]][1]
// CHECK:         llvm.insertvalue %[[R0]], %[[S1]][2]
tt.func private @call(%x: f32, %y: tensor<64xi32, #b>) -> (tensor<64xi32, #b>, f32) {
  %r:2 = tt.call @callee(%x, %y) : (f32, tensor<64xi32, #b>) -> (f32, tensor<64xi32, #b>)
  tt.return %r#1, %r#0 : tensor<64xi32, #b>, f32
}
// CHECK-LABEL: llvm.func internal @callee(
// CHECK-SAME:    passthrough = ["noinline"]
tt.func private @callee(%x: f32, %y: tensor<64xi32, #b>) -> (f32, tensor<64xi32, #b>) attributes {noinline = true} {
  tt.return %x, %y : f32, tensor<64xi32, #b>
}

// CHECK-LABEL: llvm.func internal @nothing_back(
// CHECK:         llvm.call @stores(%{{.*}}, %{{.*}}) : (!llvm.ptr<1>, i32) -> ()
tt.func private @nothing_back(%p: !tt.ptr<i32>, %x: i32) {
  tt.call @stores(%p, %x) : (!tt.ptr<i32>, i32) -> ()
  tt.return
}
tt.func private @stores(%p: !tt.ptr<i32>, %x: i32) attributes {noinline = true} {
  tt.store %p, %x : !tt.ptr<i32>
  tt.return
}

// An assertion of a tensor: all registers at once.
// CHECK-LABEL: llvm.func internal @assert(
// CHECK-SAME:    %[[A:[^:]*]]: i1, %[[B:[^:]*]]: i1)
// CHECK:         %[[ALL:.*]] = llvm.and %[[A]], %[[B]] : i1
// CHECK-NEXT:    llvm.cond_br %[[ALL]], ^[[GO:.*]], ^[[FAIL:.*]]
// CHECK:       ^[[FAIL]]:
// CHECK-NEXT:    llvm.mlir.addressof @[[TEXT:__ttopt_string_[0-9]+]]
// CHECK:         llvm.call @__assertfail(
// CHECK:         llvm.br ^[[GO]]
// CHECK:       ^[[GO]]:
// CHECK-NEXT:    llvm.return
tt.func private @assert(%x: tensor<64xi1, #b>) {
  tt.assert %x, "out of range" : tensor<64xi1, #b>
  tt.return
}

// Elements of 16 bits are passed on two to a register, by branches and by loops of unknown length.
// CHECK-LABEL: llvm.func internal @halves(
// CHECK:         llvm.cond_br %{{.*}}, ^[[THEN:.*]], ^[[ELSE:.*]]
// CHECK:       ^[[THEN]]:
// CHECK:         llvm.br ^[[JOIN:.*]](%{{.*}} : vector<2xf16>)
// CHECK:       ^[[ELSE]]:
// CHECK:         llvm.br ^[[JOIN]](%{{.*}} : vector<2xf16>)
// CHECK:       ^[[JOIN]](%[[ONE:.*]]: vector<2xf16>):
// CHECK:         llvm.extractelement %[[ONE]]
// CHECK:         llvm.br ^[[HEAD:.*]](%{{.*}} : vector<2xf16>)
// CHECK:       ^[[HEAD]](%[[TWO:.*]]: vector<2xf16>):
// CHECK:         llvm.extractelement %[[TWO]]
// CHECK:         llvm.br ^[[HEAD]](%{{.*}} : vector<2xf16>)
tt.func private @halves(%x: tensor<64xf16, #b>, %y: tensor<64xf16, #b>, %c: i1) -> tensor<64xf16, #b> {
  %r = scf.if %c -> (tensor<64xf16, #b>) {
    %s = arith.addf %x, %y : tensor<64xf16, #b>
    scf.yield %s : tensor<64xf16, #b>
  } else {
    scf.yield %x : tensor<64xf16, #b>
  }
  %w = scf.while (%a = %r) : (tensor<64xf16, #b>) -> tensor<64xf16, #b> {
    scf.condition(%c) %a : tensor<64xf16, #b>
  } do {
  ^bb0(%b: tensor<64xf16, #b>):
    %t = arith.mulf %b, %y : tensor<64xf16, #b>
    scf.yield %t : tensor<64xf16, #b>
  }
  tt.return %w : tensor<64xf16, #b>
}
}
