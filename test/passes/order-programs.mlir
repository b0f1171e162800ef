// RUN: %ttopt %s --triton-order-programs=explain=true 2>%t.remarks | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK < %t.remarks
// RUN: %ttopt %s --triton-order-programs=num-ctas=2 | FileCheck %s --check-prefix=CLUSTER
// CLUSTER-NOT: math.ctlz
// That each tile still has one program is shown in simt/order-programs.mlir.

// REMARK: order-programs.mlir:[[#@LINE+11]]:8: remark: tiles of products are numbered in groups of 8 rows or columns
// CHECK-LABEL: @grid
// CHECK-DAG: %[[X:.*]] = tt.get_program_id x
// CHECK-DAG: %[[Y:.*]] = tt.get_program_id y
// CHECK-DAG: %[[ROWS:.*]] = tt.get_num_programs y
// CHECK: %[[BITS:.*]] = arith.xori %[[Y]], %[[ROWS]]
// CHECK: math.ctlz %[[BITS]]
// CHECK: %[[FAST:.*]] = arith.shrui
// CHECK: tt.descriptor_load %{{.*}}[%[[FAST]], %{{.*}}]
// CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}]
tt.func public @grid(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32) {
  %i = tt.get_program_id x : i32
  %j = tt.get_program_id y : i32
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.descriptor_store %c[%i, %j], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.return
}

// Other uses of the number see the new one.
// CHECK-LABEL: @parts
// CHECK: math.ctlz
// CHECK: %[[J:.*]] = arith.shrui
// CHECK: %[[BEFORE:.*]] = arith.muli %[[I:.*]], %arg4
// CHECK: %[[P:.*]] = arith.addi %[[BEFORE]], %[[J]]
// CHECK: tt.descriptor_load %{{.*}}[%[[I]], %{{.*}}]
// CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %[[J]]]
// CHECK: tt.descriptor_store %{{.*}}[%[[P]], %{{.*}}]
tt.func public @parts(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32, %n: i32) {
  %p = tt.get_program_id x : i32
  %i = arith.divsi %p, %n : i32
  %j = arith.remsi %p, %n : i32
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.descriptor_store %c[%p, %c0], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.return
}

// Programs that take tickets know who was first.
// CHECK-LABEL: @tickets
// CHECK-NOT: math.ctlz
tt.func public @tickets(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32, %tickets: !tt.ptr<i32>) {
  %i = tt.get_program_id x : i32
  %j = tt.get_program_id y : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c16 = arith.constant 16 : i32
  %true = arith.constant true
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  %ticket = tt.atomic_rmw add, acq_rel, gpu, %tickets, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
  tt.descriptor_store %c[%i, %ticket], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.return
}

// The kernel has an order of its own: both operands depend on both numbers.
// CHECK-LABEL: @own_order
// CHECK-NOT: math.ctlz
tt.func public @own_order(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32, %n: i32) {
  %p = tt.get_program_id x : i32
  %q = arith.divsi %p, %n : i32
  %r = arith.remsi %p, %n : i32
  %c0 = arith.constant 0 : i32
  %c4 = arith.constant 4 : i32
  %c16 = arith.constant 16 : i32
  %first = arith.muli %q, %c4 : i32
  %within = arith.remsi %r, %c4 : i32
  %i = arith.addi %first, %within : i32
  %j = arith.divsi %r, %c4 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.descriptor_store %c[%i, %j], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.return
}

// Some tiles take longer than others: the author may have begun with those.
// CHECK-LABEL: @triangle
// CHECK-NOT: math.ctlz
tt.func public @triangle(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>) {
  %i = tt.get_program_id x : i32
  %j = tt.get_program_id y : i32
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %s = scf.for %k = %c0 to %i step %c1 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
    %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
    %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %d : tensor<16x16xf32>
  }
  tt.descriptor_store %c[%i, %j], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  tt.return
}

// A loop over tiles that is all that a program does.
// CHECK-LABEL: @tiles
// CHECK: scf.for %[[TILE:.*]] = %{{.*}} to %[[ALL:arg5]] step
// CHECK-NEXT: arith.divsi %[[TILE]], %arg4
// CHECK: math.ctlz
tt.func public @tiles(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32, %n: i32, %all: i32) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  scf.for %p = %first to %all step %step : i32 {
    %i = arith.divsi %p, %n : i32
    %j = arith.remsi %p, %n : i32
    %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
      %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
      %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
      %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      scf.yield %d : tensor<16x16xf32>
    }
    tt.descriptor_store %c[%i, %j], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  }
  tt.return
}

// What comes behind the loop is for the tiles that the program had.
// CHECK-LABEL: @tiles_and_more
// CHECK-NOT: math.ctlz
tt.func public @tiles_and_more(%a: !tt.tensordesc<16x16xf16>, %b: !tt.tensordesc<16x16xf16>, %c: !tt.tensordesc<16x16xf32>, %K: i32, %n: i32, %all: i32) {
  %first = tt.get_program_id x : i32
  %step = tt.get_num_programs x : i32
  %c0 = arith.constant 0 : i32
  %c16 = arith.constant 16 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  scf.for %p = %first to %all step %step : i32 {
    %i = arith.divsi %p, %n : i32
    %j = arith.remsi %p, %n : i32
    %s = scf.for %k = %c0 to %K step %c16 iter_args(%s = %zero) -> (tensor<16x16xf32>) : i32 {
      %x = tt.descriptor_load %a[%i, %k] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
      %y = tt.descriptor_load %b[%k, %j] : !tt.tensordesc<16x16xf16> -> tensor<16x16xf16>
      %d = tt.dot %x, %y, %s : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
      scf.yield %d : tensor<16x16xf32>
    }
    tt.descriptor_store %c[%i, %j], %s : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  }
  scf.for %p = %first to %all step %step : i32 {
    %x = tt.descriptor_load %c[%p, %c0] : !tt.tensordesc<16x16xf32> -> tensor<16x16xf32>
    tt.descriptor_store %c[%c0, %p], %x : !tt.tensordesc<16x16xf32>, tensor<16x16xf32>
  }
  tt.return
}
