// RUN: %ttopt %s --tritonamdgpu-buffer-accesses --cse | FileCheck %s

// Arguments of tensors of less than two gibibytes: all that is added to them is an offset of 32 bits, in loops, too.

#b = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #b}>
#column = #ttg.slice<{dim = 0, parent = #b}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// A stride that is not known, and pointers that a loop carries.
// CHECK-LABEL: tt.func public @carried(
// CHECK-SAME:    %[[P:[a-z0-9]+]]: !tt.ptr<f32> {tt.pointer_range = 32 : i32}
// CHECK:         %[[START:.*]] = arith.addi %{{.*}}, %{{.*}} : tensor<16x64xi32, #{{[a-z]+}}>
// CHECK:         scf.for {{.*}} iter_args(%[[SUM:.*]] = %{{.*}}, %[[AT:.*]] = %[[START]]) -> (tensor<16x64xf32, #{{[a-z]+}}>, tensor<16x64xi32, #{{[a-z]+}}>)
// CHECK-DAG:       %[[BASES:.*]] = tt.splat %[[P]]
// CHECK:           %[[POINTERS:.*]] = tt.addptr %[[BASES]], %[[AT]]
// CHECK:           tt.load %[[POINTERS]] {ttg.buffer}
// CHECK:           %[[STEP:.*]] = arith.trunci %{{.*}} : tensor<16x64xi64, #{{[a-z]+}}> to tensor<16x64xi32, #{{[a-z]+}}>
// CHECK:           %[[NEXT:.*]] = arith.addi %[[AT]], %[[STEP]]
// CHECK:           scf.yield %{{.*}}, %[[NEXT]]
tt.func public @carried(%p: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %stride: i32, %n: i32, %step: tensor<16x64xi64, #b>) -> tensor<16x64xf32, #b> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32, #b>
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #b>
  %strides = tt.splat %stride : i32 -> tensor<16x1xi32, #b>
  %down = arith.muli %rows, %strides : tensor<16x1xi32, #b>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
  %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #b>
  %across = tt.broadcast %columns : tensor<1x64xi32, #b> -> tensor<16x64xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x1x!tt.ptr<f32>, #b>
  %q = tt.addptr %ps, %down : tensor<16x1x!tt.ptr<f32>, #b>, tensor<16x1xi32, #b>
  %qs = tt.broadcast %q : tensor<16x1x!tt.ptr<f32>, #b> -> tensor<16x64x!tt.ptr<f32>, #b>
  %first = tt.addptr %qs, %across : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
  %x:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %first, %sum = %zero) -> (tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xf32, #b>) : i32 {
    %v = tt.load %at : tensor<16x64x!tt.ptr<f32>, #b>
    %more = arith.addf %sum, %v : tensor<16x64xf32, #b>
    %next = tt.addptr %at, %step : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi64, #b>
    scf.yield %next, %more : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xf32, #b>
  }
  tt.return %x#1 : tensor<16x64xf32, #b>
}

// A scalar pointer that a loop carries from the argument itself, and what is used after the loop.
// CHECK-LABEL: tt.func public @scalar(
// CHECK:         scf.for {{.*}} iter_args({{.*}}%[[AT:[a-z0-9_]+]] = %{{[a-z0-9_]+}}) -> (!tt.ptr<f32>, {{.*}}i32)
// CHECK:           %[[ALL:.*]] = tt.splat %[[AT]] : i32
// CHECK:           %[[SUM:.*]] = arith.addi %[[ALL]], %{{.*}}
// CHECK:           %[[POINTERS:.*]] = tt.addptr %{{.*}}, %[[SUM]]
// CHECK:           tt.load %[[POINTERS]] {ttg.buffer}
tt.func public @scalar(%p: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %offsets: tensor<16x64xi32, #b>, %n: i32) -> (tensor<16x64xf32, #b>, !tt.ptr<f32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x64xf32, #b>
  %x:2 = scf.for %i = %c0 to %n step %c1 iter_args(%at = %p, %sum = %zero) -> (!tt.ptr<f32>, tensor<16x64xf32, #b>) : i32 {
    %ps = tt.splat %at : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #b>
    %q = tt.addptr %ps, %offsets : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
    %v = tt.load %q : tensor<16x64x!tt.ptr<f32>, #b>
    %more = arith.addf %sum, %v : tensor<16x64xf32, #b>
    %next = tt.addptr %at, %n : !tt.ptr<f32>, i32
    scf.yield %next, %more : !tt.ptr<f32>, tensor<16x64xf32, #b>
  }
  tt.return %x#1, %x#0 : tensor<16x64xf32, #b>, !tt.ptr<f32>
}

// Not marked, of a larger range, or not only added to: no buffer.
// CHECK-LABEL: tt.func public @others(
// CHECK-NOT:     ttg.buffer
tt.func public @others(%p: !tt.ptr<f32>, %w: !tt.ptr<f32> {tt.pointer_range = 64 : i32}, %s: !tt.ptr<f32> {tt.pointer_range = 32 : i32}, %offsets: tensor<16x64xi32, #b>, %c: i1, %n: i32) -> (tensor<16x64xf32, #b>, tensor<16x64xf32, #b>, tensor<16x64xf32, #b>) {
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #b>
  %pq = tt.addptr %ps, %offsets : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
  %x = tt.load %pq : tensor<16x64x!tt.ptr<f32>, #b>
  %ws = tt.splat %w : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #b>
  %wq = tt.addptr %ws, %offsets : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
  %y = tt.load %wq : tensor<16x64x!tt.ptr<f32>, #b>
  %either = arith.select %c, %s, %p : !tt.ptr<f32>
  %es = tt.splat %either : !tt.ptr<f32> -> tensor<16x64x!tt.ptr<f32>, #b>
  %eq = tt.addptr %es, %offsets : tensor<16x64x!tt.ptr<f32>, #b>, tensor<16x64xi32, #b>
  %z = tt.load %eq : tensor<16x64x!tt.ptr<f32>, #b>
  tt.return %x, %y, %z : tensor<16x64xf32, #b>, tensor<16x64xf32, #b>, tensor<16x64xf32, #b>
}
}
