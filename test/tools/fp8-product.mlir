// Dots of 8-bit floats that are too small for wgmma: sm_89 has an instruction, which LLVM has from PTX 8.4 on. For sm_90 ptxas would
// make 16-bit floats of them, and add what these give to the sums apart.
// REQUIRES: nvptx
// RUN: %ttc %s --target cuda:89 --num-warps 4 --emit ptx | FileCheck %s
// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s --check-prefix=HALVES

// CHECK: mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32
// HALVES-DAG: cvt.rn.f16x2.e4m3x2
// HALVES-DAG: cvt.rn.f16x2.e5m2x2
// HALVES: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
tt.func public @k(%x: !tt.ptr<f8E4M3FN>, %y: !tt.ptr<f8E5M2>, %o: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %j = tt.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %px = tt.splat %x : !tt.ptr<f8E4M3FN> -> tensor<16x32x!tt.ptr<f8E4M3FN>>
  %py = tt.splat %y : !tt.ptr<f8E5M2> -> tensor<32x16x!tt.ptr<f8E5M2>>
  %po = tt.splat %o : !tt.ptr<f32> -> tensor<16x16x!tt.ptr<f32>>
  %ie = tt.expand_dims %i {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %je = tt.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ox = tt.broadcast %ie : tensor<16x1xi32> -> tensor<16x32xi32>
  %jx = tt.broadcast %je : tensor<1x32xi32> -> tensor<16x32xi32>
  %jt = tt.trans %je {order = array<i32: 1, 0>} : tensor<1x32xi32> -> tensor<32x1xi32>
  %oy = tt.broadcast %jt : tensor<32x1xi32> -> tensor<32x16xi32>
  %oo = tt.broadcast %ie : tensor<16x1xi32> -> tensor<16x16xi32>
  %qx = tt.addptr %px, %jx : tensor<16x32x!tt.ptr<f8E4M3FN>>, tensor<16x32xi32>
  %qy = tt.addptr %py, %oy : tensor<32x16x!tt.ptr<f8E5M2>>, tensor<32x16xi32>
  %qo = tt.addptr %po, %oo : tensor<16x16x!tt.ptr<f32>>, tensor<16x16xi32>
  %a = tt.load %qx : tensor<16x32x!tt.ptr<f8E4M3FN>>
  %b = tt.load %qy : tensor<32x16x!tt.ptr<f8E5M2>>
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tt.dot %a, %b, %c : tensor<16x32xf8E4M3FN> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  tt.store %qo, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
