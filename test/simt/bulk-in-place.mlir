// What threads store is loaded through a tensor map, and what is stored through one is loaded by threads: the simulator finds no
// race and no missing fence, and everybody sees what is new. It finds both where the fence or the barriers are taken out.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; x = n.arange(64 * 64, dtype='f4').reshape(64, 64); n.save('%t.x.npy', x); n.save('%t.want.npy', x * 4); n.save('%t.next.npy', (x * 4).T.copy())"
// RUN: %ttsim %s --target cuda:90 -q --arg x=%t.x.npy --arg y=f32[64,64] --compare x=%t.want.npy --compare y=%t.next.npy
// RUN: %ttc %s --target cuda:90 --emit llvmir -o %t.ll
// RUN: sed 's/"fence.proxy.async;"/""/' %t.ll > %t.unfenced.ll
// RUN: not %ttsim %t.unfenced.ll --target cuda:90 -q --arg x=%t.x.npy --arg y=f32[64,64] 2>&1 | FileCheck %s --check-prefix=FENCE
// FENCE: missing-fence{{.*}}device memory that {{.*}} wrote{{.*}} is copied in bulk without fence.proxy.async

tt.func public @k(%x: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %y: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %stride = arith.constant 64 : i64
  %one = arith.constant 1 : i64
  %two = arith.constant dense<2.0> : tensor<64x64xf32>
  %desc = tt.make_tensor_descriptor %x, [%c64, %c64], [%stride, %one] : !tt.ptr<f32>, !tt.tensordesc<64x64xf32>
  %i = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %rows = tt.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %cols = tt.expand_dims %i {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %starts = arith.muli %rows, %width : tensor<64x1xi32>
  %r = tt.broadcast %starts : tensor<64x1xi32> -> tensor<64x64xi32>
  %c = tt.broadcast %cols : tensor<1x64xi32> -> tensor<64x64xi32>
  %at = arith.addi %r, %c : tensor<64x64xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %p = tt.addptr %xs, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %turned = tt.trans %at {order = array<i32: 1, 0>} : tensor<64x64xi32> -> tensor<64x64xi32>
  %q = tt.addptr %xs, %turned : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>>
  %out = tt.addptr %ys, %at : tensor<64x64x!tt.ptr<f32>>, tensor<64x64xi32>
  // By threads.
  %0 = tt.load %p : tensor<64x64x!tt.ptr<f32>>
  %1 = arith.mulf %0, %two : tensor<64x64xf32>
  tt.store %p, %1 : tensor<64x64x!tt.ptr<f32>>
  // In bulk.
  %2 = tt.descriptor_load %desc[%c0, %c0] : !tt.tensordesc<64x64xf32> -> tensor<64x64xf32>
  %3 = arith.mulf %2, %two : tensor<64x64xf32>
  tt.descriptor_store %desc[%c0, %c0], %3 : !tt.tensordesc<64x64xf32>, tensor<64x64xf32>
  // By other threads.
  %4 = tt.load %q : tensor<64x64x!tt.ptr<f32>>
  tt.store %out, %4 : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
