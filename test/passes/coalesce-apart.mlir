// RUN: %ttopt %s --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-coalesce | FileCheck %s

// Each stored element has a sector of its own. Lanes next to each other have their sectors in lines of four, so a thread holds one
// element, though eight could be loaded at once.
// CHECK-DAG: [[ONE:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 1], threadsPerWarp = [1, 32], warpsPerCTA = [{{.*}}], order = [1, 0]}>
// CHECK-DAG: [[EIGHT:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [2, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
// CHECK-LABEL: @apart(
// CHECK: tt.load {{.*}} : tensor<8x128x!tt.ptr<f16>, [[ONE]]>
// CHECK: tt.store {{.*}} : tensor<8x128x!tt.ptr<f16>, [[ONE]]>
tt.func @apart(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %sixteen = arith.constant dense<16> : tensor<8x128xi32>
  %pitch = arith.constant dense<128> : tensor<8x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %starts = arith.muli %rows, %pitch : tensor<8x1xi32>
  %0 = tt.broadcast %starts : tensor<8x1xi32> -> tensor<8x128xi32>
  %1 = tt.broadcast %columns : tensor<1x128xi32> -> tensor<8x128xi32>
  %at = arith.addi %0, %1 : tensor<8x128xi32>
  %2 = tt.splat %from : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %3 = tt.addptr %2, %at : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  %x = tt.load %3 : tensor<8x128x!tt.ptr<f16>>
  %far = arith.muli %at, %sixteen : tensor<8x128xi32>
  %4 = tt.splat %to : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %5 = tt.addptr %4, %far : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  tt.store %5, %x : tensor<8x128x!tt.ptr<f16>>
  tt.return
}

// Stores to lines of their own wherever lanes are: as many elements as can be loaded at once.
// CHECK-LABEL: @far(
// CHECK: tt.load {{.*}} : tensor<8x128x!tt.ptr<f16>, [[EIGHT]]>
// CHECK: tt.store {{.*}} : tensor<8x128x!tt.ptr<f16>, [[EIGHT]]>
tt.func @far(%from: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f16> {tt.divisibility = 16 : i32}) {
  %far = arith.constant dense<128> : tensor<8x128xi32>
  %pitch = arith.constant dense<128> : tensor<8x1xi32>
  %r = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %c = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %starts = arith.muli %rows, %pitch : tensor<8x1xi32>
  %0 = tt.broadcast %starts : tensor<8x1xi32> -> tensor<8x128xi32>
  %1 = tt.broadcast %columns : tensor<1x128xi32> -> tensor<8x128xi32>
  %at = arith.addi %0, %1 : tensor<8x128xi32>
  %2 = tt.splat %from : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %3 = tt.addptr %2, %at : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  %x = tt.load %3 : tensor<8x128x!tt.ptr<f16>>
  %out = arith.muli %at, %far : tensor<8x128xi32>
  %4 = tt.splat %to : !tt.ptr<f16> -> tensor<8x128x!tt.ptr<f16>>
  %5 = tt.addptr %4, %out : tensor<8x128x!tt.ptr<f16>>, tensor<8x128xi32>
  tt.store %5, %x : tensor<8x128x!tt.ptr<f16>>
  tt.return
}
