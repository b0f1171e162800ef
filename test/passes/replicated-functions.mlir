// A remainder of a row is computed once for each element, and the result handed to the threads that hold rows of a tile: by the
// objective it takes as long as two dozen additions. Those are computed wherever they are needed.
// RUN: sed s/arith.OP/arith.remsi/ %s | %ttc - --target cuda:90 --num-warps 2 --emit ttgir | FileCheck %s
// RUN: sed s/arith.OP/arith.addi/ %s | %ttc - --target cuda:90 --num-warps 2 --emit ttgir | FileCheck %s --check-prefix=SUM
// CHECK: #[[TILE:.*]] = #ttg.blocked<{sizePerThread = [1, 8]
// CHECK: arith.remsi %{{.*}} : tensor<64xi32, #blocked
// CHECK: ttg.convert_layout {{.*}} -> tensor<64xf32, #ttg.slice<{dim = 0, parent = #[[TILE]]}>>
// CHECK-NOT: ttg.convert_layout
// SUM: #[[TILE:.*]] = #ttg.blocked<{sizePerThread = [1, 8]
// SUM: arith.addi %{{.*}} : tensor<64xi32, #ttg.slice<{dim = 0, parent = #[[TILE]]}>>
// SUM-NOT: ttg.convert_layout
tt.func public @kernel(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %numbers: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32, %out: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %stride = arith.constant dense<64> : tensor<8x1xi32>
  %columns = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %rows = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %number_base = tt.splat %numbers : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %number_at = tt.addptr %number_base, %columns : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %number = tt.load %number_at : tensor<64x!tt.ptr<i32>>
  %by = tt.splat %n : i32 -> tensor<64xi32>
  %rest = arith.OP %number, %by : tensor<64xi32>
  %factor = arith.sitofp %rest : tensor<64xi32> to tensor<64xf32>
  %row = tt.expand_dims %rows {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %begin = arith.muli %row, %stride : tensor<8x1xi32>
  %column = tt.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %begins = tt.broadcast %begin : tensor<8x1xi32> -> tensor<8x64xi32>
  %all = tt.broadcast %column : tensor<1x64xi32> -> tensor<8x64xi32>
  %at = arith.addi %begins, %all : tensor<8x64xi32>
  %base = tt.splat %x : !tt.ptr<bf16> -> tensor<8x64x!tt.ptr<bf16>>
  %from = tt.addptr %base, %at : tensor<8x64x!tt.ptr<bf16>>, tensor<8x64xi32>
  %half = tt.load %from : tensor<8x64x!tt.ptr<bf16>>
  %value = arith.extf %half : tensor<8x64xbf16> to tensor<8x64xf32>
  %factor_row = tt.expand_dims %factor {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %factors = tt.broadcast %factor_row : tensor<1x64xf32> -> tensor<8x64xf32>
  %product = arith.mulf %value, %factors : tensor<8x64xf32>
  %rounded = arith.truncf %product : tensor<8x64xf32> to tensor<8x64xbf16>
  %out_base = tt.splat %out : !tt.ptr<bf16> -> tensor<8x64x!tt.ptr<bf16>>
  %to = tt.addptr %out_base, %at : tensor<8x64x!tt.ptr<bf16>>, tensor<8x64xi32>
  tt.store %to, %rounded : tensor<8x64x!tt.ptr<bf16>>
  tt.return
}
