// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s

// An access of several elements needs an address that is a multiple of its size, beside elements that are neighbours:
// rows of 64 elements that begin at every `pitch` allow only as much as the pitch is a multiple of. One function for
// each width, and the rows that share all elements but one.

#rows = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #rows}>
#column = #ttg.slice<{dim = 0, parent = #rows}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // CHECK-LABEL: llvm.func {{.*}}@copy_1(
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  // CHECK: llvm.return
  tt.func @copy_1(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<1> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = tt.load %q : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.store %q, %x : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@copy_65(
  // CHECK-COUNT-8: llvm.load %{{.*}} {alignment = 2 : i64} : !llvm.ptr<1> -> i16
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-8: llvm.store %{{.*}} {alignment = 2 : i64} : i16, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  // CHECK: llvm.return
  tt.func @copy_65(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = tt.load %q : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.store %q, %x : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@copy_66(
  // CHECK-COUNT-4: llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  // CHECK: llvm.return
  tt.func @copy_66(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = tt.load %q : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.store %q, %x : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@copy_68(
  // CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 8 : i64} : !llvm.ptr<1> -> vector<2xi32>
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 8 : i64} : vector<2xi32>, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  // CHECK: llvm.return
  tt.func @copy_68(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<68> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = tt.load %q : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.store %q, %x : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@copy_72(
  // CHECK-COUNT-1: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
  // CHECK-NOT: llvm.load
  // CHECK-COUNT-1: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
  // CHECK-NOT: llvm.store
  // CHECK: llvm.return
  tt.func @copy_72(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<72> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = tt.load %q : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.store %q, %x : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_1(
  // CHECK-COUNT-8: red.global.gpu.relaxed.add.noftz.f16 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f16_1(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<1> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_65(
  // CHECK-COUNT-8: red.global.gpu.relaxed.add.noftz.f16 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f16_65(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_66(
  // CHECK-COUNT-4: red.global.gpu.relaxed.add.noftz.f16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f16_66(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_68(
  // CHECK-COUNT-2: red.global.gpu.relaxed.add.noftz.v2.f16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f16_68(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<68> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_72(
  // CHECK-COUNT-1: red.global.gpu.relaxed.add.noftz.v4.f16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f16_72(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<72> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_65_old(
  // CHECK-COUNT-8: atom.global.gpu.relaxed.add.noftz.f16 $0, [ $1 ]
  // CHECK-NOT: atom.
  // CHECK: llvm.return
  tt.func @sum_f16_65_old(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.store %q, %old : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f16_66_old(
  // CHECK-COUNT-4: atom.global.gpu.relaxed.add.noftz.f16x2 $0, [ $1 ]
  // CHECK-NOT: atom.
  // CHECK: llvm.return
  tt.func @sum_f16_66_old(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xf16, #rows>) -> tensor<16x64xf16, #rows>
    tt.store %q, %old : tensor<16x64x!tt.ptr<f16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_1(
  // CHECK-COUNT-8: red.global.gpu.relaxed.add.noftz.bf16 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_bf16_1(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<1> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_65(
  // CHECK-COUNT-8: red.global.gpu.relaxed.add.noftz.bf16 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_bf16_65(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_66(
  // CHECK-COUNT-4: red.global.gpu.relaxed.add.noftz.bf16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_bf16_66(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_68(
  // CHECK-COUNT-2: red.global.gpu.relaxed.add.noftz.v2.bf16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_bf16_68(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<68> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_72(
  // CHECK-COUNT-1: red.global.gpu.relaxed.add.noftz.v4.bf16x2 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_bf16_72(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<72> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_65_old(
  // CHECK-COUNT-8: atom.global.gpu.relaxed.add.noftz.bf16 $0, [ $1 ]
  // CHECK-NOT: atom.
  // CHECK: llvm.return
  tt.func @sum_bf16_65_old(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.store %q, %old : tensor<16x64x!tt.ptr<bf16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_bf16_66_old(
  // CHECK-COUNT-4: atom.global.gpu.relaxed.add.noftz.bf16x2 $0, [ $1 ]
  // CHECK-NOT: atom.
  // CHECK: llvm.return
  tt.func @sum_bf16_66_old(%p: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<bf16> -> tensor<16x64x!tt.ptr<bf16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xbf16, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<bf16>, #rows>, tensor<16x64xbf16, #rows>) -> tensor<16x64xbf16, #rows>
    tt.store %q, %old : tensor<16x64x!tt.ptr<bf16>, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f32_65(
  // CHECK-COUNT-8: red.global.gpu.relaxed.add.f32 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f32_65(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<65> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf32, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xf32, #rows>) -> tensor<16x64xf32, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f32_66(
  // CHECK-COUNT-4: red.global.gpu.relaxed.add.v2.f32 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f32_66(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf32, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xf32, #rows>) -> tensor<16x64xf32, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@sum_f32_68(
  // CHECK-COUNT-2: red.global.gpu.relaxed.add.v4.f32 [ $0 ]
  // CHECK-NOT: red.
  // CHECK: llvm.return
  tt.func @sum_f32_68(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<68> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xi32, #rows>
    %x = arith.constant dense<1.0> : tensor<16x64xf32, #rows>
    %old = tt.atomic_rmw fadd, relaxed, gpu, %q, %x : (tensor<16x64x!tt.ptr<f32>, #rows>, tensor<16x64xf32, #rows>) -> tensor<16x64xf32, #rows>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@async_66(
  // CHECK-COUNT-4: cp.async.{{c[ag]}}.shared.global [ $0 ], [ $1 ], 4;
  // CHECK-NOT: cp.async.c
  // CHECK: llvm.return
  tt.func @async_66(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<66> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %q, %b : tensor<16x64x!tt.ptr<f16>, #rows> -> <16x64xf16, #shared, #smem, mutable>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@async_68(
  // CHECK-COUNT-2: cp.async.{{c[ag]}}.shared.global [ $0 ], [ $1 ], 8;
  // CHECK-NOT: cp.async.c
  // CHECK: llvm.return
  tt.func @async_68(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<68> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %q, %b : tensor<16x64x!tt.ptr<f16>, #rows> -> <16x64xf16, #shared, #smem, mutable>
    tt.return
  }
  // CHECK-LABEL: llvm.func {{.*}}@async_72(
  // CHECK-COUNT-1: cp.async.{{c[ag]}}.shared.global [ $0 ], [ $1 ], 16;
  // CHECK-NOT: cp.async.c
  // CHECK: llvm.return
  tt.func @async_72(%p: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
    %j = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
    %pitch = arith.constant dense<72> : tensor<16xi32, #row>
    %at = arith.muli %i, %pitch : tensor<16xi32, #row>
    %ie = tt.expand_dims %at {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #rows>
    %je = tt.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #rows>
    %ib = tt.broadcast %ie : tensor<16x1xi32, #rows> -> tensor<16x64xi32, #rows>
    %jb = tt.broadcast %je : tensor<1x64xi32, #rows> -> tensor<16x64xi32, #rows>
    %o = arith.addi %ib, %jb : tensor<16x64xi32, #rows>
    %s = tt.splat %p : !tt.ptr<f16> -> tensor<16x64x!tt.ptr<f16>, #rows>
    %q = tt.addptr %s, %o : tensor<16x64x!tt.ptr<f16>, #rows>, tensor<16x64xi32, #rows>
    %b = ttg.local_alloc {allocation.offset = 0 : i32} : () -> !ttg.memdesc<16x64xf16, #shared, #smem, mutable>
    %t = ttg.async_copy_global_to_local %q, %b : tensor<16x64x!tt.ptr<f16>, #rows> -> <16x64xf16, #shared, #smem, mutable>
    tt.return
  }
}
