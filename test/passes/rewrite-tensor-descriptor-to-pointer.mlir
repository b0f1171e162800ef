// RUN: %ttopt %s --triton-rewrite-tensor-descriptor-to-pointer --cse | FileCheck %s

// A descriptor among the arguments becomes base, shape, strides, and the two flags. Launchers pass an aligned base and aligned
// rows, as a tensor map needs them; rows are contiguous, whatever their last stride says.
// CHECK-LABEL: tt.func public @argument(
// CHECK-SAME: %[[BASE:.*]]: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %[[D0:[a-z0-9]+]]: i64, %[[D1:[a-z0-9]+]]: i64, %[[S0:[a-z0-9]+]]: i64 {tt.divisibility = 4 : i32}, %[[S1:[a-z0-9]+]]: i64, %[[NAN:[a-z0-9]+]]: i1, %[[ROUND:[a-z0-9]+]]: i1, %[[I:.*]]: i32)
// CHECK-DAG: %[[COLUMNS:.*]] = tt.make_range {end = 64 : i32, start = 0 : i32}
// CHECK-DAG: %[[FIRST:.*]] = tt.splat %[[I]] : i32 -> tensor<64xi32>
// CHECK: %[[SUM:.*]] = arith.addi %[[FIRST]], %[[COLUMNS]]
// CHECK: %[[ROW:.*]] = tt.expand_dims %[[SUM]] {axis = 0 : i32}
// CHECK: %[[WIDE:.*]] = arith.extsi %[[ROW]]
// CHECK: %[[BOUND:.*]] = tt.splat %[[D1]]
// CHECK: arith.cmpi sge, %[[WIDE]]
// CHECK: %[[BELOW:.*]] = arith.cmpi slt, %[[WIDE]], %[[BOUND]]
// What shares 16 bytes with an element of the tensor is loaded with it.
// CHECK: %[[FOUR:.*]] = arith.constant -4 : i64
// CHECK: %[[ROUNDING:.*]] = tt.splat %[[FOUR]]
// CHECK: %[[START:.*]] = arith.andi %[[WIDE]], %[[ROUNDING]]
// CHECK: arith.cmpi slt, %[[START]], %[[BOUND]]
// CHECK-NOT: arith.muli
// CHECK-NOT: tt.splat %[[S1]]
// CHECK: tt.broadcast %[[WIDE]]
// CHECK-NOT: arith.muli
// CHECK: %[[INSIDE:.*]] = tt.broadcast %[[BELOW]]
// CHECK: %[[OTHER:.*]] = arith.select %[[NAN]]
// CHECK: %[[CHUNKS:.*]] = tt.load %{{.*}}, %{{.*}}, %[[OTHER]]
// CHECK: %[[LOADED:.*]] = arith.select %[[INSIDE]], %[[CHUNKS]], %[[OTHER]]
// Rounding to tf32 keeps infinities and NaN.
// CHECK: %[[BITS:.*]] = tt.bitcast %[[LOADED]]
// CHECK: %[[KEPT:.*]] = arith.select %{{.*}}, %[[BITS]], %{{.*}}
// CHECK: %[[FLOAT:.*]] = tt.bitcast %[[KEPT]]
// CHECK: %[[RESULT:.*]] = arith.select %[[ROUND]], %[[FLOAT]], %[[LOADED]]
// Only what is inside is stored.
// CHECK: arith.andi %{{.*}}, %[[BELOW]] :
// CHECK-NOT: arith.constant -4
// CHECK: tt.store %{{.*}}, %[[RESULT]], %{{.*}}
// CHECK-NOT: tensordesc
tt.func public @argument(%d: !tt.tensordesc<32x64xf32>, %i: i32) {
  %c0 = arith.constant 0 : i32
  %0 = tt.descriptor_load %d[%c0, %i] : !tt.tensordesc<32x64xf32> -> tensor<32x64xf32>
  tt.descriptor_store %d[%c0, %i], %0 : !tt.tensordesc<32x64xf32>, tensor<32x64xf32>
  tt.return
}

// Made here: shapes stay 32 bits wide, the padding is known, nothing is rounded.
// CHECK-LABEL: tt.func public @made
// CHECK-NOT: arith.select
// CHECK: arith.cmpi slt, %{{.*}} : tensor<8x1xi32>
// CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<8x32xf32>
// CHECK: tt.load %{{.*}}, %{{.*}}, %[[ZERO]]
// Nobody promises an alignment.
// CHECK-NOT: arith.select
// CHECK: tt.store
tt.func public @made(%p: !tt.ptr<f32>, %n: i32, %s: i64) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] : <f32>, <8x32xf32>
  %0 = tt.descriptor_load %d[%c0, %c0] : !tt.tensordesc<8x32xf32> -> tensor<8x32xf32>
  tt.descriptor_store %d[%c0, %c0], %0 : !tt.tensordesc<8x32xf32>, tensor<8x32xf32>
  tt.return
}

// The block has a dimension more than the tensor.
// CHECK-LABEL: tt.func public @fewer_dims
// CHECK: %[[V:.*]] = tt.load %{{.*}} : tensor<1x8x32x!tt.ptr<i32>>
// CHECK: %[[IN:.*]] = arith.select %{{.*}}, %[[V]], %{{.*}} : tensor<1x8x32xi1>, tensor<1x8x32xi32>
// CHECK: tt.reshape %[[IN]] : tensor<1x8x32xi32> -> tensor<8x32xi32>
tt.func public @fewer_dims(%d: !tt.tensordesc<1x8x32xi32>, %q: tensor<8x32x!tt.ptr<i32>>) {
  %c0 = arith.constant 0 : i32
  %0 = tt.descriptor_load %d[%c0, %c0, %c0] : !tt.tensordesc<1x8x32xi32> -> tensor<8x32xi32>
  tt.store %q, %0 : tensor<8x32x!tt.ptr<i32>>
  tt.return
}

// What is carried by loops, branches and calls is carried part by part.
// CHECK-LABEL: tt.func private @callee(%{{.*}}: !tt.ptr<i32>, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i1, %{{.*}}: i1) -> (!tt.ptr<i32>, i64, i64, i1, i1)
tt.func private @callee(%d: !tt.tensordesc<16xui32>) -> !tt.tensordesc<16xui32> attributes {noinline = true} {
  tt.return %d : !tt.tensordesc<16xui32>
}
// CHECK-LABEL: tt.func public @carried
// CHECK: cf.cond_br %{{.*}}, ^bb1(%{{.*}} : !tt.ptr<i32>, i64, i64, i1, i1), ^bb1(%{{.*}} : !tt.ptr<i32>, i64, i64, i1, i1)
// CHECK: ^bb1(%{{.*}}: !tt.ptr<i32>, %{{.*}}: i64, %{{.*}}: i64, %{{.*}}: i1, %{{.*}}: i1):
// CHECK: scf.for {{.*}} iter_args({{.*}}) -> (!tt.ptr<i32>, i64, i64, i1, i1)
// CHECK: tt.atomic_rmw umax, relaxed, gpu
// CHECK: tt.call @callee
// CHECK: scf.yield %{{.*}} : !tt.ptr<i32>, i64, i64, i1, i1
tt.func public @carried(%a: !tt.tensordesc<16xui32>, %b: !tt.tensordesc<16xui32>, %c: i1, %n: i32, %x: tensor<16xi32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  cf.cond_br %c, ^bb1(%a : !tt.tensordesc<16xui32>), ^bb1(%b : !tt.tensordesc<16xui32>)
^bb1(%d: !tt.tensordesc<16xui32>):
  %0 = scf.for %i = %c0 to %n step %c1 iter_args(%e = %d) -> (!tt.tensordesc<16xui32>) : i32 {
    tt.descriptor_reduce max, %e[%i], %x : !tt.tensordesc<16xui32>, tensor<16xi32>
    %f = tt.call @callee(%e) : (!tt.tensordesc<16xui32>) -> !tt.tensordesc<16xui32>
    scf.yield %f : !tt.tensordesc<16xui32>
  }
  tt.descriptor_store %0[%c0], %x : !tt.tensordesc<16xui32>, tensor<16xi32>
  tt.return
}

// Minima of floats are those of integers: signed where the sign is clear, unsigned maxima where it is set. NaN is left out.
// CHECK-LABEL: tt.func public @minimum
// CHECK: %[[P:.*]] = tt.bitcast %{{.*}} : tensor<16x!tt.ptr<f16>> -> tensor<16x!tt.ptr<i16>>
// CHECK: %[[X:.*]] = tt.bitcast %{{.*}} : tensor<16xf16> -> tensor<16xi16>
// CHECK: %[[NUMBER:.*]] = arith.cmpf ord
// CHECK: %[[INSIDE:.*]] = arith.andi %{{.*}}, %[[NUMBER]]
// CHECK: %[[CLEAR:.*]] = arith.cmpi sge, %[[X]]
// CHECK: %[[FIRST:.*]] = arith.andi %[[INSIDE]], %[[CLEAR]]
// CHECK: tt.atomic_rmw min, relaxed, gpu, %[[P]], %[[X]], %[[FIRST]]
// CHECK: %[[SET:.*]] = arith.cmpi slt, %[[X]]
// CHECK: %[[SECOND:.*]] = arith.andi %[[INSIDE]], %[[SET]]
// CHECK: tt.atomic_rmw umax, relaxed, gpu, %[[P]], %[[X]], %[[SECOND]]
tt.func public @minimum(%d: !tt.tensordesc<16xf16>, %x: tensor<16xf16>, %i: i32) {
  tt.descriptor_reduce min, %d[%i], %x : !tt.tensordesc<16xf16>, tensor<16xf16>
  tt.return
}

// Rows, each at its own index.
// CHECK-LABEL: tt.func public @rows
// CHECK: %[[INDEX:.*]] = tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
// CHECK: arith.cmpi slt, %[[INDEX]]
// CHECK: tt.load %{{.*}} : tensor<16x32x!tt.ptr<bf16>>
// CHECK: tt.store %{{.*}} : tensor<16x32x!tt.ptr<bf16>>
tt.func public @rows(%p: !tt.ptr<bf16>, %n: i32, %s: i64, %x: tensor<16xi32>, %y: i32) {
  %c1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %c1] {padding = 2 : i32} : <bf16>, <1x32xbf16>
  %v = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x32xbf16>, tensor<16xi32>, i32) -> tensor<16x32xbf16>
  tt.descriptor_scatter %d[%x, %y], %v : !tt.tensordesc<1x32xbf16>, tensor<16xi32>, i32, tensor<16x32xbf16>
  tt.return
}
