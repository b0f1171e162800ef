// RUN: %ttopt %s -split-input-file --triton-reorder-broadcast | FileCheck %s

// CHECK-LABEL: @splats
// CHECK: %[[SUM:.+]] = arith.addi %arg0, %arg1 : i32
// CHECK: %[[RESULT:.+]] = tt.splat %[[SUM]] : i32 -> tensor<64xi32>
// CHECK: tt.return %[[RESULT]]
tt.func @splats(%x: i32, %y: i32) -> tensor<64xi32> {
  %a = tt.splat %x : i32 -> tensor<64xi32>
  %b = tt.splat %y : i32 -> tensor<64xi32>
  %c = arith.addi %a, %b : tensor<64xi32>
  tt.return %c : tensor<64xi32>
}

// -----

// Constants and scalars that the operation takes, as select does; results of another type.
// CHECK-LABEL: @with_constant
// CHECK: %[[IS:.+]] = arith.cmpi slt, %arg0, %c8_i32 : i32
// CHECK: %[[X:.+]] = arith.select %[[IS]], %arg0, %c8_i32 : i32
// CHECK: tt.splat %[[X]]
tt.func @with_constant(%x: i32) -> tensor<64xi32> {
  %eight = arith.constant dense<8> : tensor<64xi32>
  %a = tt.splat %x : i32 -> tensor<64xi32>
  %is = arith.cmpi slt, %a, %eight : tensor<64xi32>
  %c = arith.select %is, %a, %eight : tensor<64xi1>, tensor<64xi32>
  tt.return %c : tensor<64xi32>
}

// -----

// CHECK-LABEL: @broadcast
// CHECK: %[[SPLAT:.+]] = tt.splat %arg1 : i32 -> tensor<64x1xi32>
// CHECK: %[[IS:.+]] = arith.cmpi slt, %arg0, %[[SPLAT]] : tensor<64x1xi32>
// CHECK: tt.broadcast %[[IS]] : tensor<64x1xi1> -> tensor<64x32xi1>
tt.func @broadcast(%x: tensor<64x1xi32>, %n: i32) -> tensor<64x32xi1> {
  %a = tt.broadcast %x : tensor<64x1xi32> -> tensor<64x32xi32>
  %b = tt.splat %n : i32 -> tensor<64x32xi32>
  %c = arith.cmpi slt, %a, %b : tensor<64x32xi32>
  tt.return %c : tensor<64x32xi1>
}

// -----

// Along different dimensions; of something that is not repeated; constants alone, which fold.
// CHECK-LABEL: @stays
// CHECK-NOT: arith.addi {{.*}} : tensor<64x1xi32>
// CHECK-COUNT-2: arith.addi {{.*}} : tensor<64x32xi32>
tt.func @stays(%x: tensor<64x1xi32>, %y: tensor<1x32xi32>, %z: tensor<64x32xi32>) -> tensor<64x32xi32> {
  %a = tt.broadcast %x : tensor<64x1xi32> -> tensor<64x32xi32>
  %b = tt.broadcast %y : tensor<1x32xi32> -> tensor<64x32xi32>
  %c = arith.addi %a, %b : tensor<64x32xi32>
  %d = arith.addi %c, %z : tensor<64x32xi32>
  tt.return %d : tensor<64x32xi32>
}

// -----

// A hint is on the elements of the tensor.
// CHECK-LABEL: @hinted
// CHECK: arith.addi {{.*}} {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<64xi32>
tt.func @hinted(%x: i32) -> tensor<64xi32> {
  %a = tt.splat %x : i32 -> tensor<64xi32>
  %c = arith.addi %a, %a {tt.divisibility = dense<16> : tensor<1xi32>} : tensor<64xi32>
  tt.return %c : tensor<64xi32>
}
