// What the verifiers and parsers of the dialect refuse.
//
// RUN: %ttopt %s -split-input-file -verify-diagnostics

// bitcast width
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.bitcast' op cannot cast 'f32', which has 32 bits, to 'i16', which has 16 bits}}
  %0 = tt.bitcast %a : f32 -> i16
  tt.return
}

// -----

// bitcast ptr to float
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.bitcast' op cannot cast between '!tt.ptr<f32>' and 'f64': one is a pointer and the other is not}}
  %0 = tt.bitcast %a : !tt.ptr<f32> -> f64
  tt.return
}

// -----

// bitcast ptr to i64
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.bitcast' op cannot cast between '!tt.ptr<f32>' and 'i64': one is a pointer and the other is not}}
  %0 = tt.bitcast %a : !tt.ptr<f32> -> i64
  tt.return
}

// -----

// bitcast i64 to ptr
tt.func @f(%a: i64) {
  // expected-error @below {{'tt.bitcast' op cannot cast between 'i64' and '!tt.ptr<f32>': one is a pointer and the other is not}}
  %0 = tt.bitcast %a : i64 -> !tt.ptr<f32>
  tt.return
}

// -----

// bitcast shape
tt.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'tt.bitcast' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.bitcast %a : tensor<4xf32> -> tensor<8xi32>
  tt.return
}

// -----

// bitcast scalar tensor
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.bitcast' op if a result is non-scalar, then at least one operand must be non-scalar}}
  %0 = tt.bitcast %a : f32 -> tensor<8xi32>
  tt.return
}

// -----

// fp_to_fp down no rounding
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.fp_to_fp' op requires a rounding mode to cast 'f32' to the narrower 'f8E5M2'}}
  %0 = tt.fp_to_fp %a : f32 -> f8E5M2
  tt.return
}

// -----

// fp_to_fp bad kw
tt.func @f(%a: f16) {
  // expected-error @below {{custom op 'tt.fp_to_fp' expected string or keyword containing one of the following enum values for attribute 'rounding' [rtz, rtne]}}
  %0 = tt.fp_to_fp %a, rounding = up : f16 -> f32
  tt.return
}

// -----

// clampf int
tt.func @f(%a: i32) {
  // expected-error @below {{'tt.clampf' op operand #0 must be floating-point or ranked tensor of floating-point values, but got 'i32'}}
  %0 = tt.clampf %a, %a, %a, propagateNan = none : i32
  tt.return
}

// -----

// clampf bad nan
tt.func @f(%a: f32) {
  // expected-error @below {{custom op 'tt.clampf' expected string or keyword containing one of the following enum values for attribute 'propagateNan' [none, all]}}
  %0 = tt.clampf %a, %a, %a, propagateNan = some : f32
  tt.return
}

// -----

// approx_divf f16
tt.func @f(%a: f16) {
  // expected-error @below {{'tt.approx_divf' op operand #0 must be 32-bit float or ranked tensor of 32-bit float values, but got 'f16'}}
  %0 = tt.approx_divf %a, %a : f16
  tt.return
}

// -----

// mulhiui float
tt.func @f(%a: f16) {
  // expected-error @below {{'tt.mulhiui' op operand #0 must be integer or ranked tensor of integer values, but got 'f16'}}
  %0 = tt.mulhiui %a, %a : f16
  tt.return
}

// -----

// addptr int
tt.func @f(%a: i32) {
  // expected-error @below {{'tt.addptr' op operand #0 must be ptr or ranked tensor of ptr values, but got 'i32'}}
  %0 = tt.addptr %a, %a : i32, i32
  tt.return
}

// -----

// addptr shapes
tt.func @f(%a: tensor<4x!tt.ptr<f32>>, %o: tensor<8xi32>) {
  // expected-error @below {{'tt.addptr' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.addptr %a, %o : tensor<4x!tt.ptr<f32>>, tensor<8xi32>
  tt.return
}

// -----

// addptr scalar off
tt.func @f(%a: tensor<4x!tt.ptr<f32>>, %o: i32) {
  // expected-error @below {{'tt.addptr' op requires the same shape for all operands and results}}
  %0 = tt.addptr %a, %o : tensor<4x!tt.ptr<f32>>, i32
  tt.return
}

// -----

// addptr result
tt.func @f(%a: !tt.ptr<f32>, %o: i32) {
  // expected-error @below {{'tt.addptr' op failed to verify that result type matches ptr type}}
  %0 = "tt.addptr"(%a, %o) : (!tt.ptr<f32>, i32) -> !tt.ptr<f16>
  tt.return
}

// -----

// load other without mask
tt.func @f(%a: !tt.ptr<f32>, %o: f32) {
  // expected-error @below {{'tt.load' op expects a mask together with the value where it is false}}
  %0 = "tt.load"(%a, %o) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tt.ptr<f32>, f32) -> f32
  tt.return
}

// -----

// load mask type
tt.func @f(%a: tensor<4x!tt.ptr<f32>>, %o: i1) {
  // expected-error @below {{'tt.load' op requires the same shape for all operands and results, but got 'tensor<4x!tt.ptr<f32>>' and 'i1'}}
  %0 = "tt.load"(%a, %o) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x!tt.ptr<f32>>, i1) -> tensor<4xf32>
  tt.return
}

// -----

// load mask shape
tt.func @f(%a: tensor<4x!tt.ptr<f32>>, %o: tensor<8xi1>) {
  // expected-error @below {{'tt.load' op requires the same shape for all operands and results, but got 'tensor<4x!tt.ptr<f32>>' and 'tensor<8xi1>'}}
  %0 = "tt.load"(%a, %o) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x!tt.ptr<f32>>, tensor<8xi1>) -> tensor<4xf32>
  tt.return
}

// -----

// load other type
tt.func @f(%a: !tt.ptr<f32>, %c: i1, %o: i32) {
  // expected-error @below {{'tt.load' op failed to verify that other matches ptr type}}
  %0 = "tt.load"(%a, %c, %o) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tt.ptr<f32>, i1, i32) -> f32
  tt.return
}

// -----

// load result type
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.load' op failed to verify that result matches ptr type}}
  %0 = "tt.load"(%a) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (!tt.ptr<f32>) -> f16
  tt.return
}

// -----

// load cache policy attr
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.load' op unsupported cache policy attribute 1 : i32}}
  %0 = tt.load %a {cachePolicy = 1 : i32} : !tt.ptr<f32>
  tt.return
}

// -----

// load volatile attr
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.load' op attribute 'isVolatile' failed to satisfy constraint: bool attribute}}
  %0 = tt.load %a {isVolatile = 1 : i32} : !tt.ptr<f32>
  tt.return
}

// -----

// load cache wb
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.load' op invalid cache policy: cache modifier 'wb' is not supported for loads, which take one of: none, ca, cg, cs, cv}}
  %0 = tt.load %a {cachePolicy = #tt.cache_policy<cache_modifier = wb, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// -----

// load cache wt
tt.func @f(%a: !tt.ptr<f32>) {
  // expected-error @below {{'tt.load' op invalid cache policy: cache modifier 'wt' is not supported for loads, which take one of: none, ca, cg, cs, cv}}
  %0 = tt.load %a {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// -----

// load si8
tt.func @f(%a: !tt.ptr<si8>) {
  // expected-error @below {{'tt.load' op result #0 must be floating-point or ranked tensor of floating-point values or integer or ranked tensor of integer values or ptr or ranked tensor of ptr values, but got 'si8'}}
  %0 = tt.load %a : !tt.ptr<si8>
  tt.return
}

// -----

// store value
tt.func @f(%a: !tt.ptr<f32>, %v: f16) {
  // expected-error @below {{'tt.store' op failed to verify that value type matches ptr type}}
  "tt.store"(%a, %v) : (!tt.ptr<f32>, f16) -> ()
  tt.return
}

// -----

// store mask
tt.func @f(%a: !tt.ptr<f32>, %v: f32, %m: tensor<4xi1>) {
  // expected-error @below {{'tt.store' op requires the same shape for all operands and results, but got '!tt.ptr<f32>' and 'tensor<4xi1>'}}
  "tt.store"(%a, %v, %m) : (!tt.ptr<f32>, f32, tensor<4xi1>) -> ()
  tt.return
}

// -----

// store cache ca
tt.func @f(%a: !tt.ptr<f32>, %v: f32) {
  // expected-error @below {{'tt.store' op invalid cache policy: cache modifier 'ca' is not supported for stores, which take one of: none, wb, cg, cs, wt}}
  tt.store %a, %v {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// -----

// store cache cv
tt.func @f(%a: !tt.ptr<f32>, %v: f32) {
  // expected-error @below {{'tt.store' op invalid cache policy: cache modifier 'cv' is not supported for stores, which take one of: none, wb, cg, cs, wt}}
  tt.store %a, %v {cachePolicy = #tt.cache_policy<cache_modifier = cv, eviction_policy = evict_normal>} : !tt.ptr<f32>
  tt.return
}

// -----

// store cache attr
tt.func @f(%a: !tt.ptr<f32>, %v: f32) {
  // expected-error @below {{'tt.store' op unsupported cache policy attribute "x"}}
  tt.store %a, %v {cachePolicy = "x"} : !tt.ptr<f32>
  tt.return
}

// -----

// store shape
tt.func @f(%a: tensor<4x!tt.ptr<f32>>, %v: tensor<8xf32>) {
  // expected-error @below {{'tt.store' op requires the same shape for all operands and results, but got 'tensor<4x!tt.ptr<f32>>' and 'tensor<8xf32>'}}
  "tt.store"(%a, %v) : (tensor<4x!tt.ptr<f32>>, tensor<8xf32>) -> ()
  tt.return
}

// -----

// atomic_store acquire gpu
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_store' op supports only relaxed and release semantics, but got acquire}}
  tt.atomic_store acquire, gpu, %a, %v : !tt.ptr<i32>
  tt.return
}

// -----

// atomic_load release gpu
tt.func @f(%a: !tt.ptr<i32>) {
  // expected-error @below {{'tt.atomic_load' op supports only relaxed and acquire semantics, but got release}}
  %0 = tt.atomic_load release, gpu, %a : (!tt.ptr<i32>) -> i32
  tt.return
}

// -----

// atomic_poll release gpu
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_poll' op supports only relaxed and acquire semantics, but got release}}
  %0 = tt.atomic_poll release, gpu, %a, %v : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

// atomic_load acq_rel gpu
tt.func @f(%a: !tt.ptr<i32>) {
  // expected-error @below {{'tt.atomic_load' op supports only relaxed and acquire semantics, but got acq_rel}}
  %0 = tt.atomic_load acq_rel, gpu, %a : (!tt.ptr<i32>) -> i32
  tt.return
}

// -----

// atomic_store acq_rel gpu
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_store' op supports only relaxed and release semantics, but got acq_rel}}
  tt.atomic_store acq_rel, gpu, %a, %v : !tt.ptr<i32>
  tt.return
}

// -----

// atomic_poll acq_rel gpu
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_poll' op supports only relaxed and acquire semantics, but got acq_rel}}
  %0 = tt.atomic_poll acq_rel, gpu, %a, %v : !tt.ptr<i32>, i32 -> i1
  tt.return
}

// -----

// atomic_load i1
tt.func @f(%a: !tt.ptr<i1>) {
  // expected-error @below {{'tt.atomic_load' op does not support elements of less than a byte, but got 'i1'}}
  %0 = tt.atomic_load relaxed, gpu, %a : (!tt.ptr<i1>) -> i1
  tt.return
}

// -----

// atomic_store i1
tt.func @f(%a: !tt.ptr<i1>, %v: i1) {
  // expected-error @below {{'tt.atomic_store' op does not support elements of less than a byte, but got 'i1'}}
  tt.atomic_store relaxed, gpu, %a, %v : !tt.ptr<i1>
  tt.return
}

// -----

// atomic_poll i1
tt.func @f(%a: !tt.ptr<i1>, %v: i1) {
  // expected-error @below {{'tt.atomic_poll' op supports only integers of 16, 32 or 64 bits, but got 'i1'}}
  %0 = tt.atomic_poll relaxed, gpu, %a, %v : !tt.ptr<i1>, i1 -> i1
  tt.return
}

// -----

// atomic_poll f16
tt.func @f(%a: !tt.ptr<f16>, %v: f16) {
  // expected-error @below {{'tt.atomic_poll' op operand #1 must be integer or ranked tensor of integer values, but got 'f16'}}
  %0 = tt.atomic_poll relaxed, gpu, %a, %v : !tt.ptr<f16>, f16 -> i1
  tt.return
}

// -----

// atomic_rmw types
tt.func @f(%a: !tt.ptr<i32>, %v: i64) {
  // expected-error @below {{'tt.atomic_rmw' op failed to verify that ptr type matches value type}}
  %0 = tt.atomic_rmw add, relaxed, gpu, %a, %v : (!tt.ptr<i32>, i64) -> i64
  tt.return
}

// -----

// atomic_rmw result
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_rmw' op failed to verify that result type matches value type}}
  %0 = tt.atomic_rmw add, relaxed, gpu, %a, %v : (!tt.ptr<i32>, i32) -> i64
  tt.return
}

// -----

// atomic_cas result
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{'tt.atomic_cas' op failed to verify that result type matches value type}}
  %0 = tt.atomic_cas relaxed, gpu, %a, %v, %v : (!tt.ptr<i32>, i32, i32) -> i64
  tt.return
}

// -----

// atomic_poll shape
tt.func @f(%a: tensor<4x!tt.ptr<i32>>, %v: tensor<4xi32>) {
  // expected-error @below {{'tt.atomic_poll' op failed to verify that result type matches expected shape}}
  %0 = tt.atomic_poll relaxed, gpu, %a, %v : tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> i1
  tt.return
}

// -----

// atomic op kw
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{custom op 'tt.atomic_rmw' expected string or keyword containing one of the following enum values for attribute 'atomic_rmw_op' [and, or, xor, add, fadd, max, min, umax, umin, exch]}}
  %0 = tt.atomic_rmw addd, relaxed, gpu, %a, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

// atomic sem kw
tt.func @f(%a: !tt.ptr<i32>, %v: i32) {
  // expected-error @below {{custom op 'tt.atomic_rmw' expected string or keyword containing one of the following enum values for attribute 'sem' [relaxed, acquire, release, acq_rel]}}
  %0 = tt.atomic_rmw add, seq_cst, gpu, %a, %v : (!tt.ptr<i32>, i32) -> i32
  tt.return
}

// -----

// splat elem
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.splat' op requires the same element type for all operands and results}}
  %0 = tt.splat %a : f32 -> tensor<4xf16>
  tt.return
}

// -----

// splat tensor
tt.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{'tt.splat' op expects a scalar operand, but got 'tensor<1xf32>'}}
  %0 = tt.splat %a : tensor<1xf32> -> tensor<4xf32>
  tt.return
}

// -----

// splat scalar res
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.splat' op result #0 must be ranked tensor of floating-point or integer or ptr values, but got 'f32'}}
  %0 = tt.splat %a : f32 -> f32
  tt.return
}

// -----

// size npot
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.splat' op result #0 must have a power of two of elements, but has 3: 'tensor<3xf32>'}}
  %0 = tt.splat %a : f32 -> tensor<3xf32>
  tt.return
}

// -----

// size too big
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.splat' op result #0 must have at most 1048576 elements, but has 2097152: 'tensor<2097152xf32>'}}
  %0 = tt.splat %a : f32 -> tensor<2097152xf32>
  tt.return
}

// -----

// size dyn
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.splat' op result #0 must have at most 1048576 elements, but has more or an unknown number: 'tensor<?xf32>'}}
  %0 = tt.splat %a : f32 -> tensor<?xf32>
  tt.return
}

// -----

// size operand
tt.func @f(%a: tensor<3xf32>) {
  // expected-error @below {{'tt.bitcast' op operand #0 must have a power of two of elements, but has 3: 'tensor<3xf32>'}}
  %0 = tt.bitcast %a : tensor<3xf32> -> tensor<3xi32>
  tt.return
}

// -----

// unsplat
tt.func @f(%a: tensor<2xf32>) {
  // expected-error @below {{'tt.unsplat' op source must have exactly one element, but 'tensor<2xf32>' has 2}}
  %0 = tt.unsplat %a : tensor<2xf32>
  tt.return
}

// -----

// unsplat result
tt.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{'tt.unsplat' op inferred type(s) 'f32' are incompatible with return type(s) of operation 'f16'}}
  %0 = "tt.unsplat"(%a) : (tensor<1xf32>) -> f16
  tt.return
}

// -----

// expand_dims axis
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.expand_dims' op axis 3 is out of range: the result has 3 dimension(s)}}
  %0 = tt.expand_dims %a {axis = 3 : i32} : tensor<4x8xf32> -> tensor<4x8x1xf32>
  tt.return
}

// -----

// expand_dims neg axis
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.expand_dims' op axis -1 is out of range: the result has 3 dimension(s)}}
  %0 = tt.expand_dims %a {axis = -1 : i32} : tensor<4x8xf32> -> tensor<4x8x1xf32>
  tt.return
}

// -----

// expand_dims result
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.expand_dims' op inferred type(s) 'tensor<1x4x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8x1xf32>'}}
  %0 = tt.expand_dims %a {axis = 0 : i32} : tensor<4x8xf32> -> tensor<4x8x1xf32>
  tt.return
}

// -----

// expand_dims no axis
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.expand_dims' op requires attribute 'axis'}}
  %0 = tt.expand_dims %a : tensor<4x8xf32> -> tensor<4x8x1xf32>
  tt.return
}

// -----

// reshape count
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.reshape' op source and result must have the same number of elements, but have 32 and 16}}
  %0 = tt.reshape %a : tensor<4x8xf32> -> tensor<16xf32>
  tt.return
}

// -----

// reshape elem
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.reshape' op requires the same element type for all operands and results}}
  %0 = tt.reshape %a : tensor<4x8xf32> -> tensor<32xi32>
  tt.return
}

// -----

// broadcast rank
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.broadcast' op source and result must have the same rank, but have 2 and 3}}
  %0 = tt.broadcast %a : tensor<4x8xf32> -> tensor<4x8x2xf32>
  tt.return
}

// -----

// broadcast dim
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.broadcast' op cannot change dimension 1 from 8 to 16: only a size of 1 grows}}
  %0 = tt.broadcast %a : tensor<4x8xf32> -> tensor<4x16xf32>
  tt.return
}

// -----

// broadcast elem
tt.func @f(%a: tensor<1xf32>) {
  // expected-error @below {{'tt.broadcast' op requires the same element type for all operands and results}}
  %0 = tt.broadcast %a : tensor<1xf32> -> tensor<4xi32>
  tt.return
}

// -----

// cat shape
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.cat' op result must have as many elements as both operands, 64, but has 32}}
  %0 = tt.cat %a, %a : tensor<4x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

// cat elem
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.cat' op requires the same element type for all operands and results}}
  %0 = tt.cat %a, %a : tensor<4x8xf32> -> tensor<8x8xi32>
  tt.return
}

// -----

// join result
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.join' op inferred type(s) 'tensor<4x8x2xf32>' are incompatible with return type(s) of operation 'tensor<2x4x8xf32>'}}
  %0 = tt.join %a, %a : tensor<4x8xf32> -> tensor<2x4x8xf32>
  tt.return
}

// -----

// join lhs rhs
tt.func @f(%a: tensor<4x8xf32>, %b: tensor<8x4xf32>) {
  // expected-error @below {{'tt.join' op requires all operands to have the same type}}
  %0 = "tt.join"(%a, %b) : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x8x2xf32>
  tt.return
}

// -----

// split last
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.split' op last dimension of the operand must have size 2, but has size 8}}
  %0, %1 = tt.split %a : tensor<4x8xf32> -> tensor<4xf32>
  tt.return
}

// -----

// split result
tt.func @f(%a: tensor<4x2xf32>) {
  // expected-error @below {{'tt.split' op inferred type(s) 'tensor<4xf32>', 'tensor<4xf32>' are incompatible with return type(s) of operation 'tensor<8xf32>', 'tensor<8xf32>'}}
  %0, %1 = tt.split %a : tensor<4x2xf32> -> tensor<8xf32>
  tt.return
}

// -----

// split results differ
tt.func @f(%a: tensor<4x2xf32>) {
  // expected-error @below {{'tt.split' op requires the same type for all results, but got 'tensor<4xf32>' and 'tensor<8xf32>'}}
  %0, %1 = "tt.split"(%a) : (tensor<4x2xf32>) -> (tensor<4xf32>, tensor<8xf32>)
  tt.return
}

// -----

// split rank0
tt.func @f(%a: tensor<f32>) {
  // expected-error @below {{'tt.split' op operand must have a last dimension of size 2, but has none}}
  %0, %1 = tt.split %a : tensor<f32> -> tensor<f32>
  tt.return
}

// -----

// trans order size
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.trans' op order [1] must be a permutation of the 2 dimension(s) of its operand}}
  %0 = tt.trans %a {order = array<i32: 1>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return
}

// -----

// trans order dup
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.trans' op order [1, 1] must be a permutation of the 2 dimension(s) of its operand}}
  %0 = tt.trans %a {order = array<i32: 1, 1>} : tensor<4x8xf32> -> tensor<8x4xf32>
  tt.return
}

// -----

// trans result
tt.func @f(%a: tensor<4x8xf32>) {
  // expected-error @below {{'tt.trans' op inferred type(s) 'tensor<8x4xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf32>'}}
  %0 = tt.trans %a {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

// make_range size
tt.func @f() {
  // expected-error @below {{'tt.make_range' op result must have as many elements as the range [0, 8), 8, but has 4}}
  %0 = tt.make_range {start = 0 : i32, end = 8 : i32} : tensor<4xi32>
  tt.return
}

// -----

// make_range neg
tt.func @f() {
  // expected-error @below {{'tt.make_range' op start, 8, must be less than end, 4}}
  %0 = tt.make_range {start = 8 : i32, end = 4 : i32} : tensor<4xi32>
  tt.return
}

// -----

// make_range rank
tt.func @f() {
  // expected-error @below {{'tt.make_range' op result must have one dimension, but has 2: 'tensor<2x2xi32>'}}
  %0 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<2x2xi32>
  tt.return
}

// -----

// make_range i64
tt.func @f() {
  // expected-error @below {{'tt.make_range' op result must have i32 elements, but has 'i64'}}
  %0 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi64>
  tt.return
}

// -----

// make_range f32
tt.func @f() {
  // expected-error @below {{'tt.make_range' op result #0 must be ranked tensor of integer values, but got 'tensor<4xf32>'}}
  %0 = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xf32>
  tt.return
}

// -----

// histogram mask
tt.func @f(%a: tensor<8xi32>, %m: tensor<4xi1>) {
  // expected-error @below {{'tt.histogram' op failed to verify that mask type matches src type}}
  %0 = "tt.histogram"(%a, %m) : (tensor<8xi32>, tensor<4xi1>) -> tensor<8xi32>
  tt.return
}

// -----

// gather axis
tt.func @f(%a: tensor<4x8xf32>, %i: tensor<4x8xi32>) {
  // expected-error @below {{'tt.gather' op axis 2 is out of range: the source has 2 dimension(s)}}
  %0 = tt.gather %a[%i] {axis = 2 : i32} : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// gather neg axis
tt.func @f(%a: tensor<4x8xf32>, %i: tensor<4x8xi32>) {
  // expected-error @below {{'tt.gather' op axis -1 is out of range: the source has 2 dimension(s)}}
  %0 = tt.gather %a[%i] {axis = -1 : i32} : (tensor<4x8xf32>, tensor<4x8xi32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// gather rank
tt.func @f(%a: tensor<4x8xf32>, %i: tensor<4xi32>) {
  // expected-error @below {{'tt.gather' op source and indices must have the same rank, but have 2 and 1}}
  %0 = tt.gather %a[%i] {axis = 0 : i32} : (tensor<4x8xf32>, tensor<4xi32>) -> tensor<4xf32>
  tt.return
}

// -----

// gather shape
tt.func @f(%a: tensor<4x8xf32>, %i: tensor<8x8xi32>) {
  // expected-error @below {{'tt.gather' op dimension 0 of source and indices must have the same size, but have 4 and 8}}
  %0 = tt.gather %a[%i] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<8x8xi32>) -> tensor<8x8xf32>
  tt.return
}

// -----

// gather result
tt.func @f(%a: tensor<4x8xf32>, %i: tensor<4x16xi32>) {
  // expected-error @below {{'tt.gather' op inferred type(s) 'tensor<4x16xf32>' are incompatible with return type(s) of operation 'tensor<4x8xf32>'}}
  %0 = tt.gather %a[%i] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x16xi32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// dot k
tt.func @f(%a: tensor<16x32xf16>, %b: tensor<16x32xf16>, %c: tensor<16x32xf32>) {
  // expected-error @below {{'tt.dot' op expects as many columns of the first operand as rows of the second, but got 32 and 16}}
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x32xf16> -> tensor<16x32xf32>
  tt.return
}

// -----

// dot m
tt.func @f(%a: tensor<16x32xf16>, %b: tensor<32x16xf16>, %c: tensor<32x16xf32>) {
  // expected-error @below {{'tt.dot' op expects an accumulator of 16x16, but got 32x16}}
  %0 = tt.dot %a, %b, %c : tensor<16x32xf16> * tensor<32x16xf16> -> tensor<32x16xf32>
  tt.return
}

// -----

// dot rank1
tt.func @f(%a: tensor<16xf16>, %b: tensor<16xf16>, %c: tensor<16xf32>) {
  // expected-error @below {{'tt.dot' op expects operands of 2 or 3 dimensions, but they have 1}}
  %0 = tt.dot %a, %b, %c : tensor<16xf16> * tensor<16xf16> -> tensor<16xf32>
  tt.return
}

// -----

// dot rank mix
tt.func @f(%a: tensor<16x16xf16>, %b: tensor<1x16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tt.dot' op expects all operands to have the same rank, but they have [2, 3, 2]}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<1x16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

// dot batch
tt.func @f(%a: tensor<2x16x16xf16>, %b: tensor<4x16x16xf16>, %c: tensor<2x16x16xf32>) {
  // expected-error @below {{'tt.dot' op expects the same number of matrices in all operands, but got 2, 4 and 2}}
  %0 = tt.dot %a, %b, %c : tensor<2x16x16xf16> * tensor<4x16x16xf16> -> tensor<2x16x16xf32>
  tt.return
}

// -----

// dot bits
tt.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf32>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tt.dot' op requires elements of the same width of both operands, but got 'f16' and 'f32'}}
  %0 = tt.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xf32> -> tensor<16x16xf32>
  tt.return
}

// -----

// dot precision
tt.func @f(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{custom op 'tt.dot' expected string or keyword containing one of the following enum values for attribute 'inputPrecision' [tf32, tf32x3, ieee, bf16x3, bf16x6]}}
  %0 = tt.dot %a, %b, %c, inputPrecision = half : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  tt.return
}

// -----

// dot result
tt.func @f(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{'tt.dot' op failed to verify that result's type matches accumulator's type}}
  %0 = "tt.dot"(%a, %a, %c) : (tensor<16x16xf16>, tensor<16x16xf16>, tensor<16x16xf32>) -> tensor<16x16xf16>
  tt.return
}

// -----

// dot_scaled scale k
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>, %sa: tensor<32x4xi8>, %sb: tensor<32x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op requires as many elements for each scale of both operands, but got 16 and 32}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x4xi8> * tensor<64x32xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

// dot_scaled scale m
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>, %sa: tensor<16x2xi8>, %sb: tensor<32x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op scales of the first operand must have as many rows as M, 32, but have 16}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<16x2xi8> * tensor<64x32xi8>, tensor<32x2xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

// dot_scaled scale n
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>, %sa: tensor<32x2xi8>, %sb: tensor<16x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op scales of the second operand must have as many rows as N, 32, but have 16}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<64x32xi8>, tensor<16x2xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

// dot_scaled scale weird
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>, %sa: tensor<32x1xi8>, %sb: tensor<32x1xi8>) {
  // expected-error @below {{'tt.dot_scaled' op each scale of the first operand must be for 16 or 32 elements, but there are 1 for 64}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x1xi8> * tensor<64x32xi8>, tensor<32x1xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

// dot_scaled scale rank
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x32xf32>, %sa: tensor<64xi8>, %sb: tensor<64xi8>) {
  // expected-error @below {{'tt.dot_scaled' op scales of the first operand must have its rank, 2, but have 1}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<64xi8> * tensor<64x32xi8>, tensor<64xi8> -> tensor<32x32xf32>
  tt.return
}

// -----

// dot_scaled k
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<32x64xi8>, %c: tensor<32x64xf32>, %sa: tensor<32x2xi8>, %sb: tensor<32x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op expects as many columns of the first operand as rows of the second, but got 64 and 32}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<32x64xi8>, tensor<32x2xi8> -> tensor<32x64xf32>
  tt.return
}

// -----

// dot_scaled output
tt.func @f(%a: tensor<32x64xi8>, %b: tensor<64x32xi8>, %c: tensor<32x64xf32>, %sa: tensor<32x2xi8>, %sb: tensor<32x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op expects an accumulator of 32x32, but got 32x64}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8>, tensor<32x2xi8> * tensor<64x32xi8>, tensor<32x2xi8> -> tensor<32x64xf32>
  tt.return
}

// -----

// dot_scaled rank1
tt.func @f(%a: tensor<64xi8>, %b: tensor<64xi8>, %c: tensor<64xf32>, %sa: tensor<2xi8>, %sb: tensor<2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op expects operands of 2 or 3 dimensions, but they have 1}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<64xi8>, tensor<2xi8> * tensor<64xi8>, tensor<2xi8> -> tensor<64xf32>
  tt.return
}

// -----

// dot_scaled batch bad
tt.func @f(%a: tensor<2x32x64xi8>, %b: tensor<4x64x32xi8>, %c: tensor<2x32x32xf32>, %sa: tensor<2x32x2xi8>, %sb: tensor<2x32x2xi8>) {
  // expected-error @below {{'tt.dot_scaled' op expects the same number of matrices in all operands, but got 2, 4 and 2}}
  %0 = tt.dot_scaled %a scale %sa, %b scale %sb, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<2x32x64xi8>, tensor<2x32x2xi8> * tensor<4x64x32xi8>, tensor<2x32x2xi8> -> tensor<2x32x32xf32>
  tt.return
}

// -----

// reduce axis
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.reduce' op axis 2 is out of range: the operand has 2 dimension(s)}}
  %0 = "tt.reduce"(%s0) <{axis = 2 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// reduce axis neg
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.reduce' op axis -1 is out of range: the operand has 2 dimension(s)}}
  %0 = "tt.reduce"(%s0) <{axis = -1 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// reduce result
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.reduce' op inferred type(s) 'tensor<8xf32>' are incompatible with return type(s) of operation 'tensor<4xf32>'}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

// reduce rank1 result
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op inferred type(s) 'f32' are incompatible with return type(s) of operation 'tensor<1xf32>'}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<8xf32>) -> tensor<1xf32>
  tt.return
}

// -----

// reduce args number
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op arguments of the combining region: expects 2 value(s), but there are 1}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce args type
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op arguments of the combining region: expects value #1 to be 'f32', but it is 'f64'}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f64):
    tt.reduce.return %x0 : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce ret number
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op results of the combining region: expects 1 value(s), but there are 2}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0, %x1 : f32, f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce ret type
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op results of the combining region: expects value #0 to be 'f32', but it is 'i32'}}
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    %k = arith.constant 1 : i32
    tt.reduce.return %k : i32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce wrong terminator
tt.func @f(%s0: tensor<8xf32>) {
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    // expected-error @below {{'tt.scan.return' op expects parent op 'tt.scan'}}
    tt.scan.return %x0 : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce no terminator
tt.func @f(%s0: tensor<8xf32>) {
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    // expected-error @below {{block with no terminator, has %1 = "arith.constant"() <{value = 1 : i32}> : () -> i32}}
    %k = arith.constant 1 : i32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce yield
tt.func @f(%s0: tensor<8xf32>) {
  %0 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    // expected-error @below {{'scf.yield' op expects parent op to be one of 'scf.execute_region, scf.for, scf.if, scf.index_switch, scf.while'}}
    scf.yield %x0 : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce shapes
tt.func @f(%s0: tensor<8xf32>, %s1: tensor<4xi32>) {
  // expected-error @below {{'tt.reduce' op requires the same shape for all operands}}
  %0:2 = "tt.reduce"(%s0, %s1) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: i32, %x2: f32, %x3: i32):
    tt.reduce.return %x0, %x1 : f32, i32
  }) : (tensor<8xf32>, tensor<4xi32>) -> (f32, i32)
  tt.return
}

// -----

// reduce order of args
tt.func @f(%s0: tensor<8xf32>, %s1: tensor<8xi32>) {
  // expected-error @below {{'tt.reduce' op arguments of the combining region: expects value #1 to be 'i32', but it is 'f32'}}
  %0:2 = "tt.reduce"(%s0, %s1) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32, %x2: i32, %x3: i32):
    tt.reduce.return %x0, %x2 : f32, i32
  }) : (tensor<8xf32>, tensor<8xi32>) -> (f32, i32)
  tt.return
}

// -----

// reduce results number
tt.func @f(%s0: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op inferred type(s) 'f32' are incompatible with return type(s) of operation 'f32', 'f32'}}
  %0:2 = "tt.reduce"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.reduce.return %x0 : f32
  }) : (tensor<8xf32>) -> (f32, f32)
  tt.return
}

// -----

// reduce empty
tt.func @f() {
  // expected-error @below {{'tt.reduce' op expected 1 or more operands, but found 0}}
  "tt.reduce"() <{axis = 0 : i32}> ({
  ^bb0:
    "tt.reduce.return"() : () -> ()
  }) : () -> ()
  tt.return
}

// -----

// reduce no block
tt.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op region #0 ('combineOp') failed to verify constraint: region with 1 blocks}}
  %0 = "tt.reduce"(%a) <{axis = 0 : i32}> ({
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce no axis
tt.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{'tt.reduce' op requires attribute 'axis'}}
  %0 = "tt.reduce"(%a) ({
  ^bb0(%x: f32, %y: f32):
    tt.reduce.return %x : f32
  }) : (tensor<8xf32>) -> f32
  tt.return
}

// -----

// reduce.return outside
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.reduce.return' op expects parent op 'tt.reduce'}}
  tt.reduce.return %a : f32
  tt.return
}

// -----

// map.return outside
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.map_elementwise.return' op expects parent op 'tt.map_elementwise'}}
  tt.map_elementwise.return %a : f32
  tt.return
}

// -----

// scan axis
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op axis 2 is out of range: the operand has 2 dimension(s)}}
  %0 = "tt.scan"(%s0) <{axis = 2 : i32, reverse = false}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// scan axis neg
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op axis -1 is out of range: the operand has 2 dimension(s)}}
  %0 = "tt.scan"(%s0) <{axis = -1 : i32, reverse = false}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// scan result
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op requires the same shape for all operands and results}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<8x4xf32>
  tt.return
}

// -----

// scan result elem
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op inferred type(s) 'tensor<4x8xf32>' are incompatible with return type(s) of operation 'tensor<4x8xi32>'}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xi32>
  tt.return
}

// -----

// scan args
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op arguments of the combining region: expects 2 value(s), but there are 1}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x0: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// scan args ty
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op arguments of the combining region: expects value #0 to be 'f32', but it is 'i32'}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x0: i32, %x1: i32):
    tt.scan.return %x0 : i32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// scan ret
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op results of the combining region: expects 1 value(s), but there are 2}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0, %x0 : f32, f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// scan no reverse
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.scan' op requires attribute 'reverse'}}
  %0 = "tt.scan"(%s0) <{axis = 0 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.scan.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise pack 0
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op pack must be a power of two, but is 0}}
  %0 = "tt.map_elementwise"(%s0) <{pack = 0 : i32}> ({
  ^bb0(%x0: f32):
    tt.map_elementwise.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise pack -1
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op pack must be a power of two, but is -1}}
  %0 = "tt.map_elementwise"(%s0) <{pack = -1 : i32}> ({
  ^bb0(%x0: f32):
    tt.map_elementwise.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise args
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op arguments of the region: expects 1 value(s), but there are 2}}
  %0 = "tt.map_elementwise"(%s0) <{pack = 1 : i32}> ({
  ^bb0(%x0: f32, %x1: f32):
    tt.map_elementwise.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise args ty
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op arguments of the region: expects value #0 to be 'f32', but it is 'i32'}}
  %0 = "tt.map_elementwise"(%s0) <{pack = 1 : i32}> ({
  ^bb0(%x0: i32):
    tt.map_elementwise.return %x0 : i32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise ret
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op results of the region: expects 1 value(s), but there are 2}}
  %0 = "tt.map_elementwise"(%s0) <{pack = 1 : i32}> ({
  ^bb0(%x0: f32):
    tt.map_elementwise.return %x0, %x0 : f32, f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  tt.return
}

// -----

// map_elementwise ret ty
tt.func @f(%s0: tensor<4x8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op results of the region: expects value #0 to be 'i32', but it is 'f32'}}
  %0 = "tt.map_elementwise"(%s0) <{pack = 1 : i32}> ({
  ^bb0(%x0: f32):
    tt.map_elementwise.return %x0 : f32
  }) : (tensor<4x8xf32>) -> tensor<4x8xi32>
  tt.return
}

// -----

// map store inside
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.store' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    tt.store %p, %x : !tt.ptr<f32>
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map no results
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op expected 1 or more results}}
  "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    tt.store %p, %x : !tt.ptr<f32>
    tt.map_elementwise.return
  }) : (tensor<8xf32>) -> ()
  tt.return
}

// -----

// map empty region
tt.func @f(%a: tensor<8xf32>) {
  // expected-error @below {{'tt.map_elementwise' op expects a region with at least one block}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// extern scalar result
tt.func @f(%a: tensor<4xf32>, %b: f32) {
  // expected-error @below {{'tt.extern_elementwise' op if an operand is non-scalar, then there must be at least one non-scalar result}}
  %0 = tt.extern_elementwise %a, %b {libname = "", libpath = "", pure = true, symbol = "s"} : (tensor<4xf32>, f32) -> f32
  tt.return
}

// -----

// extern shapes
tt.func @f(%a: tensor<4xf32>, %b: tensor<8xf32>) {
  // expected-error @below {{'tt.extern_elementwise' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.extern_elementwise %a, %b {libname = "", libpath = "", pure = true, symbol = "s"} : (tensor<4xf32>, tensor<8xf32>) -> tensor<4xf32>
  tt.return
}

// -----

// extern missing attr
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.extern_elementwise' op requires attribute 'symbol'}}
  %0 = tt.extern_elementwise %a {libname = "", libpath = "", pure = true} : (f32) -> f32
  tt.return
}

// -----

// asm packed 0
tt.func @f(%a0: f32) {
  // expected-error @below {{'tt.elementwise_inline_asm' op packed_element must be positive, but is 0}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 0 : i32, pure = true} %a0 : f32 -> f32
  tt.return
}

// -----

// asm packed neg
tt.func @f(%a0: f32) {
  // expected-error @below {{'tt.elementwise_inline_asm' op packed_element must be positive, but is -1}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = -1 : i32, pure = true} %a0 : f32 -> f32
  tt.return
}

// -----

// asm packed 3
tt.func @f(%a0: tensor<8xf32>) {
  // expected-error @below {{'tt.elementwise_inline_asm' op the number of elements, 8, must be a multiple of packed_element, 3}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 3 : i32, pure = true} %a0 : tensor<8xf32> -> tensor<8xf32>
  tt.return
}

// -----

// asm shape
tt.func @f(%a0: tensor<8xf32>) {
  // expected-error @below {{'tt.elementwise_inline_asm' op all non-scalar operands/results must have the same shape and base type}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a0 : tensor<8xf32> -> tensor<4xf32>
  tt.return
}

// -----

// asm no args tensor
tt.func @f() {
  // expected-error @below {{'tt.elementwise_inline_asm' op if a result is non-scalar, then at least one operand must be non-scalar}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true}  -> tensor<8xf32>
  tt.return
}

// -----

// asm scalar result
tt.func @f(%a0: tensor<8xf32>) {
  // expected-error @below {{'tt.elementwise_inline_asm' op if an operand is non-scalar, then there must be at least one non-scalar result}}
  %0 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a0 : tensor<8xf32> -> f32
  tt.return
}

// -----

// asm mixed results
tt.func @f(%a0: tensor<8xf32>) {
  // expected-error @below {{'tt.elementwise_inline_asm' op if an operand is non-scalar, then all results must be non-scalar}}
  %0:2 = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %a0 : tensor<8xf32> -> tensor<8xf32>, f32
  tt.return
}

// -----

// asm no results
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.elementwise_inline_asm' op expects at least one result}}
  tt.elementwise_inline_asm "x" {constraints = "r", packed_element = 1 : i32, pure = true} %a : f32 ->
  tt.return
}

// -----

// print missing
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.print' op requires attribute 'hex'}}
  tt.print "x" : %a : f32
  tt.return
}

// -----

// assert f32
tt.func @f(%a: f32) {
  // expected-error @below {{'tt.assert' op operand #0 must be 1-bit signless integer or ranked tensor of 1-bit signless integer values, but got 'f32'}}
  tt.assert %a, "m" : f32
  tt.return
}

// -----

// make_desc shape/strides
tt.func @f(%p: !tt.ptr<f32>, %i: i32, %s: i64) {
  // expected-error @below {{'tt.make_tensor_descriptor' op operand count (4) does not match the sizes of its 3 groups}}
  %0 = tt.make_tensor_descriptor %p, [%i], [%s, %s] : <f32>, <4xf32>
  tt.return
}

// -----

// make_desc rank
tt.func @f(%p: !tt.ptr<f32>, %i: i32, %s: i64) {
  // expected-error @below {{'tt.make_tensor_descriptor' op has 2 size(s) and stride(s), but the descriptor '!tt.tensordesc<4xf32>' has 1}}
  %0 = tt.make_tensor_descriptor %p, [%i, %i], [%s, %s] : <f32>, <4xf32>
  tt.return
}

// -----

// make_desc padding
tt.func @f(%p: !tt.ptr<f32>, %i: i32, %s: i64) {
  // expected-error @below {{'tt.make_tensor_descriptor' op attribute 'padding' failed to satisfy constraint: allowed 32-bit signless integer cases: 1, 2}}
  %0 = tt.make_tensor_descriptor %p, [%i], [%s] {padding = 3 : i32} : <f32>, <4xf32>
  tt.return
}

// -----

// desc_load elem
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32) {
  // expected-error @below {{'tt.descriptor_load' op descriptor and tensor must have the same element type, but have 'f32' and 'f16'}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<4x8xf32> -> tensor<4x8xf16>
  tt.return
}

// -----

// desc_load shape
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32) {
  // expected-error @below {{'tt.descriptor_load' op descriptor and tensor must have the same number of elements, but got '!tt.tensordesc<4x8xf32>' and 'tensor<8x8xf32>'}}
  %0 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<4x8xf32> -> tensor<8x8xf32>
  tt.return
}

// -----

// desc_load indices
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32) {
  // expected-error @below {{'tt.descriptor_load' op has 1 index(es), but the descriptor '!tt.tensordesc<4x8xf32>' has 2}}
  %0 = tt.descriptor_load %d[%i] : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

// desc_load cache
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32) {
  // expected-error @below {{'tt.descriptor_load' op unsupported cache policy attribute 1 : i32}}
  %0 = tt.descriptor_load %d[%i, %i] {cachePolicy = 1 : i32} : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  tt.return
}

// -----

// desc_store elem
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32, %t: tensor<4x8xf16>) {
  // expected-error @below {{'tt.descriptor_store' op descriptor and tensor must have the same element type, but have 'f32' and 'f16'}}
  tt.descriptor_store %d[%i, %i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf16>
  tt.return
}

// -----

// desc_store indices
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32, %t: tensor<4x8xf32>) {
  // expected-error @below {{'tt.descriptor_store' op has 1 index(es), but the descriptor '!tt.tensordesc<4x8xf32>' has 2}}
  tt.descriptor_store %d[%i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  tt.return
}

// -----

// desc_reduce elem
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32, %t: tensor<4x8xf16>) {
  // expected-error @below {{'tt.descriptor_reduce' op descriptor and tensor must have the same element type, but have 'f32' and 'f16'}}
  tt.descriptor_reduce add, %d[%i, %i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf16>
  tt.return
}

// -----

// desc_reduce kind
tt.func @f(%d: !tt.tensordesc<4x8xf32>, %i: i32, %t: tensor<4x8xf32>) {
  // expected-error @below {{custom op 'tt.descriptor_reduce' expected string or keyword containing one of the following enum values for attribute 'kind' [add, min, max, inc, dec, and, or, xor]}}
  tt.descriptor_reduce sub, %d[%i, %i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  tt.return
}

// -----

// desc_gather rank3
tt.func @f(%d: !tt.tensordesc<1x1x16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects a descriptor of 2 dimensions, but got '!tt.tensordesc<1x1x16xf32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

// desc_scatter rank3
tt.func @f(%d: !tt.tensordesc<1x1x16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects a descriptor of 2 dimensions, but got '!tt.tensordesc<1x1x16xf32>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// desc_gather rank1
tt.func @f(%d: !tt.tensordesc<16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects a descriptor of 2 dimensions, but got '!tt.tensordesc<16xf32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

// desc_scatter rank1
tt.func @f(%d: !tt.tensordesc<16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects a descriptor of 2 dimensions, but got '!tt.tensordesc<16xf32>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// desc_gather rows
tt.func @f(%d: !tt.tensordesc<2x16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects a descriptor of one row, but '!tt.tensordesc<2x16xf32>' has 2}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<2x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

// desc_scatter rows
tt.func @f(%d: !tt.tensordesc<2x16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects a descriptor of one row, but '!tt.tensordesc<2x16xf32>' has 2}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<2x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// desc_gather x rank
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8x1xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects row offsets of one dimension, but got 'tensor<8x1xi32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<8x1xi32>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

// desc_scatter x rank
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8x1xi32>, %y: i32, %t: tensor<8x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects row offsets of one dimension, but got 'tensor<8x1xi32>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<8x1xi32>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// desc_gather x few
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<4xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects at least 8 rows, but got 4}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<4xi32>, i32) -> tensor<4x16xf32>
  tt.return
}

// -----

// desc_scatter x few
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<4xi32>, %y: i32, %t: tensor<4x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects at least 8 rows, but got 4}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<4xi32>, i32, tensor<4x16xf32>
  tt.return
}

// -----

// desc_gather x i64
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi64>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op operand #1 must be ranked tensor of 16-bit signless integer or 32-bit signless integer values, but got 'tensor<8xi64>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<8xi64>, i32) -> tensor<8x16xf32>
  tt.return
}

// -----

// desc_scatter x i64
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi64>, %y: i32, %t: tensor<8x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op operand #1 must be ranked tensor of 16-bit signless integer or 32-bit signless integer values, but got 'tensor<8xi64>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<8xi64>, i32, tensor<8x16xf32>
  tt.return
}

// -----

// desc_gather res rank
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects a tensor of 2 dimensions, but got 'tensor<8x1x16xf32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x1x16xf32>
  tt.return
}

// -----

// desc_scatter res rank
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x1x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects a tensor of 2 dimensions, but got 'tensor<8x1x16xf32>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x1x16xf32>
  tt.return
}

// -----

// desc_gather res rows
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects as many rows as offsets, 8, but got 'tensor<16x16xf32>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<16x16xf32>
  tt.return
}

// -----

// desc_scatter res rows
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<16x16xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects as many rows as offsets, 8, but got 'tensor<16x16xf32>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<16x16xf32>
  tt.return
}

// -----

// desc_gather res elem
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects the descriptor's element type, 'f32', but got 'tensor<8x16xf16>'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf16>
  tt.return
}

// -----

// desc_scatter res elem
tt.func @f(%d: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x16xf16>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects the descriptor's element type, 'f32', but got 'tensor<8x16xf16>'}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf16>
  tt.return
}

// -----

// desc_gather cols few
tt.func @f(%d: !tt.tensordesc<1x4xf32>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects at least 8 columns of 'f32', but got 4}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x4xf32>, tensor<8xi32>, i32) -> tensor<8x4xf32>
  tt.return
}

// -----

// desc_scatter cols few
tt.func @f(%d: !tt.tensordesc<1x4xf32>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x4xf32>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects at least 8 columns of 'f32', but got 4}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x4xf32>, tensor<8xi32>, i32, tensor<8x4xf32>
  tt.return
}

// -----

// desc_gather cols i8 16
tt.func @f(%d: !tt.tensordesc<1x16xui8>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op expects at least 32 columns of 'i8', but got 16}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x16xui8>, tensor<8xi32>, i32) -> tensor<8x16xi8>
  tt.return
}

// -----

// desc_scatter cols i8 16
tt.func @f(%d: !tt.tensordesc<1x16xui8>, %x: tensor<8xi32>, %y: i32, %t: tensor<8x16xi8>) {
  // expected-error @below {{'tt.descriptor_scatter' op expects at least 32 columns of 'i8', but got 16}}
  tt.descriptor_scatter %d[%x, %y], %t : !tt.tensordesc<1x16xui8>, tensor<8xi32>, i32, tensor<8x16xi8>
  tt.return
}

// -----

tt.func @f(%a: i32) -> i32 {
  // expected-error @below {{'tt.return' op has 0 operand(s), but function @f returns 1}}
  tt.return
}

// -----

tt.func @f(%a: i32) -> i64 {
  // expected-error @below {{'tt.return' op has operand #0 of type 'i32', but function @f returns 'i64'}}
  tt.return %a : i32
}

// -----

tt.func @f() {
  // expected-error @below {{'tt.call' op 'g' does not name a function}}
  tt.call @g() : () -> ()
  tt.return
}

// -----

tt.func private @g(i32)
tt.func @f() {
  // expected-error @below {{'tt.call' op has 0 operand(s), but function @g has 1}}
  tt.call @g() : () -> ()
  tt.return
}

// -----

tt.func private @g(i32) -> i32
tt.func @f(%i: i64) {
  // expected-error @below {{'tt.call' op has operand #0 of type 'i64', but function @g has 'i32'}}
  %0 = tt.call @g(%i) : (i64) -> i32
  tt.return
}

// -----

tt.func private @g(i32) -> i32
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.call' op has result #0 of type 'i64', but function @g has 'i32'}}
  %0 = tt.call @g(%i) : (i32) -> i64
  tt.return
}

// -----

tt.func private @g(i32) -> i32
tt.func @f(%i: i32) {
  // expected-error @below {{'tt.call' op has 0 result(s), but function @g has 1}}
  tt.call @g(%i) : (i32) -> ()
  tt.return
}

// -----

tt.func @f() {
  // expected-error @below {{'tt.func' op expects parent op 'builtin.module'}}
  tt.func @g() {
    tt.return
  }
  tt.return
}

// -----

// expected-error @below {{'tt.func' op requires attribute 'tt.divisibility' of argument #0 to be a positive integer, but got "x"}}
tt.func @f(%a: i32 {tt.divisibility = "x"}) {
  tt.return
}

// -----

// expected-error @below {{'builtin.module' op requires attribute 'tt.num_stages' to be an integer, but got "x"}}
module attributes {tt.num_stages = "x"} {
}

// -----

// expected-error @below {{'tt.func' op arguments may only have dialect attributes}}
tt.func @f(%a: i32 {foo = 16 : i32}) {
  tt.return
}

// -----

tt.func @f(%a: i32) {
// expected-error @below {{invalid block name in region with named arguments}}
^bb0(%x: i64):
  tt.return
}

// -----

// expected-error @below {{'tt.func' op type of entry block argument #0('i64') must match the type of the corresponding argument in function signature('i32')}}
"tt.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({
^bb0(%x: i64):
  tt.return
}) : () -> ()

// -----

// expected-error @below {{'tt.func' op entry block must have 1 arguments to match function signature}}
"tt.func"() <{sym_name = "f", function_type = (i32) -> ()}> ({
^bb0:
  tt.return
}) : () -> ()

// -----

// expected-error @below {{'tt.func' op attribute 'function_type' failed to satisfy constraint: type attribute of function type}}
"tt.func"() <{sym_name = "f", function_type = i32}> ({
^bb0:
  tt.return
}) : () -> ()

// -----

// expected-error @below {{'tt.func' op requires attribute 'sym_name'}}
"tt.func"() <{function_type = () -> ()}> ({
^bb0:
  tt.return
}) : () -> ()

// -----

// expected-error @below {{custom op 'tt.func' expected SSA identifier}}
tt.func @f(%a: i32, ...) {
  tt.return
}

// -----

// expected-error @below {{'tt.func' op symbol declaration cannot have public visibility}}
tt.func public @f()

// -----

// expected-error @below {{custom op 'tt.func' expected non-empty function body}}
tt.func @f() {
}

// -----

tt.func @f(%a: i1) {
  scf.if %a {
    // expected-error @below {{'tt.return' op expects parent op 'tt.func'}}
    tt.return
  }
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{custom op 'tt.frobnicate' is unknown}}
  tt.frobnicate %a
  tt.return
}

// -----

// expected-error @below {{'tt.func' op expects argument attribute array to have the same number of elements as the number of function arguments, got 2, but expected 1}}
"tt.func"() <{sym_name = "f", function_type = (i32) -> (), arg_attrs = [{}, {}]}> ({
^bb0(%x: i32):
  tt.return
}) : () -> ()

// -----

tt.func @f(%i: i32) {
  // expected-error @below {{'tt.call' op attribute 'arg_attrs' failed to satisfy constraint: Array of dictionary attributes}}
  %0 = tt.call @f(%i) {arg_attrs = [1]} : (i32) -> i32
  tt.return
}

// -----

tt.func @f(%a: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @below {{'tt.return' op operand #0 must have a power of two of elements, but has 3: 'tensor<3xf32>'}}
  tt.return %a : tensor<3xf32>
}

// -----

tt.func @f(%a: tensor<4xf32>, %n: index) {
  // expected-error @below {{'scf.for' op requires attribute 'tt.num_stages' to be an integer, but got "x"}}
  %0 = scf.for %i = %n to %n step %n iter_args(%x = %a) -> tensor<4xf32> {
    scf.yield %x : tensor<4xf32>
  } {tt.num_stages = "x", tt.foo = 1 : i32}
  tt.return
}

// -----

tt.func @f(%a: tensor<4xf32>) {
  // expected-error @below {{'arith.addf' op requires attribute 'tt.contiguity' to be dense integers, but got "x"}}
  %0 = arith.addf %a, %a {tt.contiguity = "x"} : tensor<4xf32>
  tt.return
}

// -----

// expected-error @below {{expected string}}
tt.func @f(%d: !tt.ptr<f32, constant>) {
  tt.return
}

// -----

// expected-error @below {{invalid pointer address space 'shared'}}
tt.func @f(%d: !tt.ptr<f32, "shared">) {
  tt.return
}

// -----

// expected-error @below {{pointer types must point to integer or floating-point types, but got 'index'}}
tt.func @f(%d: !tt.ptr<index>) {
  tt.return
}

// -----

// expected-error @below {{expected static shape}}
tt.func @f(%d: !tt.tensordesc<4x?xf32>) {
  tt.return
}

// -----

// expected-error @below {{expected non-function type}}
tt.func @f(%d: !tt.tensordesc<*xf32>) {
  tt.return
}

// -----

// expected-error @below {{unknown attribute `foo` in dialect `tt`}}
module attributes {a.b = #tt.cache_policy<eviction_policy = evict_first, cache_modifier = ca>, c.d = #tt.foo} {
}

// -----

// expected-error @below {{expected ','}}
module attributes {a.b = #tt.cache_policy<eviction_policy = evict_first>} {
}

// -----

// expected-error @below {{duplicate or unknown parameter of a cache policy: eviction_policy}}
module attributes {a.b = #tt.cache_policy<eviction_policy = evict_first, eviction_policy = evict_first>} {
}

// -----

// expected-error @below {{expected an eviction policy, one of: evict_normal, evict_first, evict_last}}
module attributes {a.b = #tt.cache_policy<eviction_policy = foo, cache_modifier = ca>} {
}

// -----

// expected-error @below {{duplicate or unknown parameter of a cache policy: foo}}
module attributes {a.b = #tt.cache_policy<foo = evict_first, cache_modifier = ca>} {
}

// -----

// expected-error @below {{unknown type `foo` in dialect `tt`}}
tt.func @f(%d: !tt.foo<f32>) {
  tt.return
}

// -----

// expected-error @below {{pointer types must point to integer or floating-point types, but got '!tt.ptr<f32>'}}
tt.func @f(%d: !tt.ptr<!tt.ptr<f32>>) {
  tt.return
}

// -----

// expected-error @below {{pointer types must point to integer or floating-point types, but got '() -> ()'}}
tt.func @f(%d: !tt.ptr<()->()>) {
  tt.return
}

// -----

// expected-error @below {{tensor descriptors must not wrap tensor types, but got 'tensor<4x5xf32>': use !tt.tensordesc<shape x element-type[, layout]>}}
tt.func @f(%d: !tt.tensordesc<2xtensor<4x5xf32>>) {
  tt.return
}

// -----

// gather f64 2
tt.func @f(%d: !tt.tensordesc<1x2xf64>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op supports only elements of up to 32 bits, but got 'f64'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x2xf64>, tensor<8xi32>, i32) -> tensor<8x2xf64>
  tt.return
}

// -----

// gather i64 4
tt.func @f(%d: !tt.tensordesc<1x4xi64>, %x: tensor<8xi32>, %y: i32) {
  // expected-error @below {{'tt.descriptor_gather' op supports only elements of up to 32 bits, but got 'i64'}}
  %0 = tt.descriptor_gather %d[%x, %y] : (!tt.tensordesc<1x4xi64>, tensor<8xi32>, i32) -> tensor<8x4xi64>
  tt.return
}

// -----

// map atomic
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.atomic_rmw' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    %q = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map atomic store
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.atomic_store' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    tt.atomic_store relaxed, gpu, %p, %x : !tt.ptr<f32>
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map print
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.print' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    tt.print "x" {hex = false, isSigned = array<i32>}
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map volatile load
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.load' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    %q = tt.load %p {isVolatile = true} : !tt.ptr<f32>
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map llvm store
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'llvm.store' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    %q = llvm.mlir.zero : !llvm.ptr
    llvm.store %x, %q : f32, !llvm.ptr
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}

// -----

// map asm
tt.func private @g(f32)
tt.func @f(%a: tensor<8xf32>, %p: !tt.ptr<f32>) {
  // expected-error @below {{'tt.map_elementwise' op does not support 'tt.elementwise_inline_asm' in its region: threads that share an element would repeat it}}
  %0 = "tt.map_elementwise"(%a) <{pack = 1 : i32}> ({
  ^bb0(%x: f32):
    %q = tt.elementwise_inline_asm "x" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
    tt.map_elementwise.return %x : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}
