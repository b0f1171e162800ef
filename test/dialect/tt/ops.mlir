// Every operation of the dialect, in custom and generic form.
//
// RUN: %ttopt %s > %t.once
// RUN: FileCheck %s --input-file %t.once
// RUN: %ttopt %t.once | diff %t.once -
// RUN: %ttopt --mlir-print-op-generic %s | %ttopt | diff %t.once -
// RUN: %ttopt --mlir-print-op-generic %s | FileCheck %s --check-prefix GENERIC
// RUN: %ttopt --mlir-print-debuginfo %s | %ttopt | diff %t.once -

// CHECK-LABEL: tt.func @casts(
tt.func @casts(%i: i64, %p: !tt.ptr<f32>, %ti: tensor<8xi64>, %tp: tensor<8x!tt.ptr<f16>>, %f: tensor<8xf32>, %q: tensor<8xf8E5M2>) {
  // CHECK: tt.int_to_ptr %{{.*}} : i64 -> !tt.ptr<f32>
  %0 = tt.int_to_ptr %i : i64 -> !tt.ptr<f32>
  // CHECK: tt.int_to_ptr %{{.*}} {a.b = 1 : i32} : tensor<8xi64> -> tensor<8x!tt.ptr<f16>>
  %1 = tt.int_to_ptr %ti {a.b = 1 : i32} : tensor<8xi64> -> tensor<8x!tt.ptr<f16>>
  // CHECK: tt.ptr_to_int %{{.*}} : !tt.ptr<f32> -> i64
  %2 = tt.ptr_to_int %p : !tt.ptr<f32> -> i64
  // CHECK: tt.ptr_to_int %{{.*}} : tensor<8x!tt.ptr<f16>> -> tensor<8xi64>
  %3 = tt.ptr_to_int %tp : tensor<8x!tt.ptr<f16>> -> tensor<8xi64>
  // CHECK: tt.bitcast %{{.*}} : tensor<8xf32> -> tensor<8xi32>
  %4 = tt.bitcast %f : tensor<8xf32> -> tensor<8xi32>
  // CHECK: tt.bitcast %{{.*}} : !tt.ptr<f32> -> !tt.ptr<i8>
  %5 = tt.bitcast %p : !tt.ptr<f32> -> !tt.ptr<i8>
  // CHECK: tt.fp_to_fp %{{.*}}, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>
  %6 = tt.fp_to_fp %f, rounding = rtne : tensor<8xf32> -> tensor<8xf8E4M3FN>
  // CHECK: tt.fp_to_fp %{{.*}} {a.c}, rounding = rtz : tensor<8xf32> -> tensor<8xf16>
  %7 = tt.fp_to_fp %f {a.c}, rounding = rtz : tensor<8xf32> -> tensor<8xf16>
  // CHECK: tt.fp_to_fp %{{.*}} : tensor<8xf8E5M2> -> tensor<8xf32>
  %8 = tt.fp_to_fp %q : tensor<8xf8E5M2> -> tensor<8xf32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @arithmetic(
tt.func @arithmetic(%f: f32, %t: tensor<4xf64>, %i: tensor<4xi32>) {
  // CHECK: tt.clampf %{{.*}}, %{{.*}}, %{{.*}}, propagateNan = none : f32
  %0 = tt.clampf %f, %f, %f, propagateNan = none : f32
  // CHECK: tt.clampf %{{.*}}, %{{.*}}, %{{.*}}, propagateNan = all {a.b} : tensor<4xf64>
  %1 = tt.clampf %t, %t, %t, propagateNan = all {a.b} : tensor<4xf64>
  // CHECK: tt.precise_sqrt %{{.*}} : f32
  %2 = tt.precise_sqrt %f : f32
  // CHECK: tt.precise_divf %{{.*}}, %{{.*}} : tensor<4xf64>
  %3 = tt.precise_divf %t, %t : tensor<4xf64>
  // CHECK: tt.approx_divf %{{.*}}, %{{.*}} : f32
  %4 = tt.approx_divf %f, %f : f32
  // CHECK: tt.mulhiui %{{.*}}, %{{.*}} : tensor<4xi32>
  %5 = tt.mulhiui %i, %i : tensor<4xi32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @pointers(
tt.func @pointers(%p: !tt.ptr<f32>, %q: tensor<4x!tt.ptr<f32>>, %i: i32, %o: tensor<4xi64>) {
  // CHECK: tt.addptr %{{.*}}, %{{.*}} : !tt.ptr<f32>, i32
  %0 = tt.addptr %p, %i : !tt.ptr<f32>, i32
  // CHECK: tt.addptr %{{.*}}, %{{.*}} {tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>, tensor<4xi64>
  %1 = tt.addptr %q, %o {tt.contiguity = dense<4> : tensor<1xi32>} : tensor<4x!tt.ptr<f32>>, tensor<4xi64>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @memory(
tt.func @memory(%p: !tt.ptr<f32>, %q: tensor<4x!tt.ptr<f32>>, %m: tensor<4xi1>, %o: tensor<4xf32>, %c: i1, %f: f32) {
  // CHECK: tt.load %{{.*}} : !tt.ptr<f32>
  %0 = tt.load %p : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} : !tt.ptr<f32>
  %1 = tt.load %p, %c, %f : !tt.ptr<f32>
  // CHECK: tt.load %{{.*}}, %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : tensor<4x!tt.ptr<f32>>
  %2 = tt.load %q, %m {cachePolicy = #tt.cache_policy<cache_modifier = ca, eviction_policy = evict_first>} : tensor<4x!tt.ptr<f32>>
  // CHECK: tt.load %{{.*}}, %{{.*}}, %{{.*}} {isVolatile = true} : tensor<4x!tt.ptr<f32>>
  %3 = tt.load %q, %m, %o {isVolatile = true} : tensor<4x!tt.ptr<f32>>
  // CHECK: tt.store %{{.*}}, %{{.*}} : !tt.ptr<f32>
  tt.store %p, %f : !tt.ptr<f32>
  // CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} {ignore_cta} : !tt.ptr<f32>
  tt.store %p, %f, %c {ignore_cta} : !tt.ptr<f32>
  // CHECK: tt.store %{{.*}}, %{{.*}}, %{{.*}} {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_last>} : tensor<4x!tt.ptr<f32>>
  tt.store %q, %o, %m {cachePolicy = #tt.cache_policy<cache_modifier = wt, eviction_policy = evict_last>} : tensor<4x!tt.ptr<f32>>
  // CHECK: tt.grid_dependency_wait
  tt.grid_dependency_wait
  // CHECK: tt.grid_dependency_launch_dependents {a.b}
  tt.grid_dependency_launch_dependents {a.b}
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @atomics(
tt.func @atomics(%p: !tt.ptr<i32>, %q: tensor<4x!tt.ptr<i32>>, %m: tensor<4xi1>, %v: tensor<4xi32>, %i: i32, %c: i1, %t: i64) {
  // CHECK: tt.atomic_load acquire, gpu, %{{.*}} : (!tt.ptr<i32>) -> i32
  %0 = tt.atomic_load acquire, gpu, %p : (!tt.ptr<i32>) -> i32
  // CHECK: tt.atomic_load relaxed, cta, %{{.*}}, %{{.*}} : (tensor<4x!tt.ptr<i32>>, tensor<4xi1>) -> tensor<4xi32>
  %1 = tt.atomic_load relaxed, cta, %q, %m : (tensor<4x!tt.ptr<i32>>, tensor<4xi1>) -> tensor<4xi32>
  // CHECK: tt.atomic_store release, sys, %{{.*}}, %{{.*}} : !tt.ptr<i32>
  tt.atomic_store release, sys, %p, %i : !tt.ptr<i32>
  // CHECK: tt.atomic_store relaxed, gpu, %{{.*}}, %{{.*}}, %{{.*}} : tensor<4x!tt.ptr<i32>>
  tt.atomic_store relaxed, gpu, %q, %v, %m : tensor<4x!tt.ptr<i32>>
  // CHECK: tt.atomic_poll acquire, gpu, %{{.*}}, %{{.*}} : !tt.ptr<i32>, i32 -> i1
  %2 = tt.atomic_poll acquire, gpu, %p, %i : !tt.ptr<i32>, i32 -> i1
  // CHECK: tt.atomic_poll relaxed, gpu, %{{.*}}, %{{.*}} timeout %{{.*}} : tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> tensor<4xi1>
  %3 = tt.atomic_poll relaxed, gpu, %q, %v timeout %t : tensor<4x!tt.ptr<i32>>, tensor<4xi32> -> tensor<4xi1>
  // CHECK: tt.atomic_rmw add, acq_rel, gpu, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32) -> i32
  %4 = tt.atomic_rmw add, acq_rel, gpu, %p, %i : (!tt.ptr<i32>, i32) -> i32
  // CHECK: tt.atomic_rmw umax, relaxed, gpu, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>
  %5 = tt.atomic_rmw umax, relaxed, gpu, %q, %v, %m : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi1>) -> tensor<4xi32>
  // CHECK: tt.atomic_cas acq_rel, sys, %{{.*}}, %{{.*}}, %{{.*}} : (!tt.ptr<i32>, i32, i32) -> i32
  %6 = tt.atomic_cas acq_rel, sys, %p, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  // CHECK: tt.atomic_cas relaxed, cta, %{{.*}}, %{{.*}}, %{{.*}} {a.b} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  %7 = tt.atomic_cas relaxed, cta, %q, %v, %v {a.b} : (tensor<4x!tt.ptr<i32>>, tensor<4xi32>, tensor<4xi32>) -> tensor<4xi32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @shapes(
tt.func @shapes(%s: f32, %t: tensor<4x8xf32>, %o: tensor<1x1xf32>, %u: tensor<4x8x2xf32>, %i: tensor<4x16xi32>, %n: tensor<32xi32>, %m: tensor<32xi1>) {
  // CHECK: tt.splat %{{.*}} : f32 -> tensor<4x8xf32>
  %0 = tt.splat %s : f32 -> tensor<4x8xf32>
  // CHECK: tt.unsplat %{{.*}} : tensor<1x1xf32>
  %1 = tt.unsplat %o : tensor<1x1xf32>
  // CHECK: tt.expand_dims %{{.*}} {axis = 1 : i32} : tensor<4x8xf32> -> tensor<4x1x8xf32>
  %2 = tt.expand_dims %t {axis = 1 : i32} : tensor<4x8xf32> -> tensor<4x1x8xf32>
  // CHECK: tt.reshape %{{.*}} : tensor<4x8xf32> -> tensor<32xf32>
  %3 = tt.reshape %t : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: tt.reshape %{{.*}} allow_reorder : tensor<4x8xf32> -> tensor<32xf32>
  %4 = tt.reshape %t allow_reorder : tensor<4x8xf32> -> tensor<32xf32>
  // CHECK: tt.reshape %{{.*}} allow_reorder efficient_layout {a.b} : tensor<4x8xf32> -> tensor<8x4xf32>
  %5 = tt.reshape %t allow_reorder efficient_layout {a.b} : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: tt.broadcast %{{.*}} : tensor<4x1x8xf32> -> tensor<4x2x8xf32>
  %6 = tt.broadcast %2 : tensor<4x1x8xf32> -> tensor<4x2x8xf32>
  // CHECK: tt.cat %{{.*}}, %{{.*}} : tensor<4x8xf32> -> tensor<8x8xf32>
  %7 = tt.cat %t, %t : tensor<4x8xf32> -> tensor<8x8xf32>
  // CHECK: tt.join %{{.*}}, %{{.*}} : tensor<4x8xf32> -> tensor<4x8x2xf32>
  %8 = tt.join %t, %t : tensor<4x8xf32> -> tensor<4x8x2xf32>
  // CHECK: tt.split %{{.*}} : tensor<4x8x2xf32> -> tensor<4x8xf32>
  %outLHS, %outRHS = tt.split %u : tensor<4x8x2xf32> -> tensor<4x8xf32>
  // CHECK: tt.trans %{{.*}} {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %9 = tt.trans %t {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  // CHECK: tt.make_range {end = 48 : i32, start = 16 : i32} : tensor<32xi32>
  %10 = tt.make_range {end = 48 : i32, start = 16 : i32} : tensor<32xi32>
  // CHECK: tt.histogram %{{.*}} : tensor<32xi32> -> tensor<16xi32>
  %11 = tt.histogram %n : tensor<32xi32> -> tensor<16xi32>
  // CHECK: tt.histogram %{{.*}}, %{{.*}} : tensor<32xi32> -> tensor<16xi32>
  %12 = tt.histogram %n, %m : tensor<32xi32> -> tensor<16xi32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x16xi32>) -> tensor<4x16xf32>
  %13 = tt.gather %t[%i] {axis = 1 : i32} : (tensor<4x8xf32>, tensor<4x16xi32>) -> tensor<4x16xf32>
  // CHECK: tt.gather %{{.*}}[%{{.*}}] {axis = 1 : i32, efficient_layout} : (tensor<4x8xf32>, tensor<4x16xi32>) -> tensor<4x16xf32>
  %14 = tt.gather %t[%i] {axis = 1 : i32, efficient_layout} : (tensor<4x8xf32>, tensor<4x16xi32>) -> tensor<4x16xf32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @dots(
tt.func @dots(%a: tensor<32x64xf16>, %b: tensor<64x32xf16>, %c: tensor<32x32xf32>, %e: tensor<32x64xi8>, %s: tensor<32x2xi8>, %w: tensor<64x32xf8E4M3FN>, %f: tensor<2x32x64xf32>, %g: tensor<2x64x32xf32>, %h: tensor<2x32x32xf32>, %v: tensor<32x64xf8E4M3FN>) {
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
  %0 = tt.dot %a, %b, %c : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = tf32 {maxNumImpreciseAcc = 128 : i32} : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
  %1 = tt.dot %a, %b, %c, inputPrecision = tf32 {maxNumImpreciseAcc = 128 : i32} : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
  // CHECK: tt.dot %{{.*}}, %{{.*}}, %{{.*}}, inputPrecision = bf16x6 : tensor<2x32x64xf32> * tensor<2x64x32xf32> -> tensor<2x32x32xf32>
  %2 = tt.dot %f, %g, %h, inputPrecision = bf16x6 : tensor<2x32x64xf32> * tensor<2x64x32xf32> -> tensor<2x32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}} scale %{{.*}}, %{{.*}} scale %{{.*}}, %{{.*}} lhs = e4m3 rhs = e4m3 {fastMath = true} : tensor<32x64xf8E4M3FN>, tensor<32x2xi8> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<32x32xf32>
  %3 = tt.dot_scaled %v scale %s, %w scale %s, %c lhs = e4m3 rhs = e4m3 {fastMath = true} : tensor<32x64xf8E4M3FN>, tensor<32x2xi8> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}} scale %{{.*}}, %{{.*}} lhs = fp16 rhs = e4m3 {fastMath = false} : tensor<32x64xf16> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<32x32xf32>
  %4 = tt.dot_scaled %a, %w scale %s, %c lhs = fp16 rhs = e4m3 {fastMath = false} : tensor<32x64xf16> * tensor<64x32xf8E4M3FN>, tensor<32x2xi8> -> tensor<32x32xf32>
  // CHECK: tt.dot_scaled %{{.*}}, %{{.*}}, %{{.*}} lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  %5 = tt.dot_scaled %e, %w, %c lhs = e4m3 rhs = e4m3 {fastMath = false} : tensor<32x64xi8> * tensor<64x32xf8E4M3FN> -> tensor<32x32xf32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @programs(
tt.func @programs(%f: f32, %t: tensor<4xi32>, %m: tensor<4xi1>, %c: i1) {
  // CHECK: tt.get_program_id x : i32
  %0 = tt.get_program_id x : i32
  // CHECK: tt.get_program_id y {a.b} : i32
  %1 = tt.get_program_id y {a.b} : i32
  // CHECK: tt.get_num_programs z : i32
  %2 = tt.get_num_programs z : i32
  // CHECK: tt.print "no values" {hex = false, isSigned = array<i32>}
  tt.print "no values" {hex = false, isSigned = array<i32>}
  // CHECK: tt.print "values: " {hex = true, isSigned = array<i32: 0, 1>} : %{{.*}}, %{{.*}} : f32, tensor<4xi32>
  tt.print "values: " {hex = true, isSigned = array<i32: 0, 1>} : %f, %t : f32, tensor<4xi32>
  // CHECK: tt.assert %{{.*}}, "scalar" : i1
  tt.assert %c, "scalar" : i1
  // CHECK: tt.assert %{{.*}}, "a % b ; \22quoted\22\0A" {a.b} : tensor<4xi1>
  tt.assert %m, "a % b ; \22quoted\22\0A" {a.b} : tensor<4xi1>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @regions(
tt.func @regions(%t: tensor<4x8xf32>, %i: tensor<4x8xi32>, %u: tensor<8xf32>) {
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 1 : i32}> ({
  %0 = "tt.reduce"(%t) <{axis = 1 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %x = arith.addf %a, %b : f32
    // CHECK: tt.reduce.return %{{.*}} : f32
    tt.reduce.return %x : f32
  // CHECK: }) : (tensor<4x8xf32>) -> tensor<4xf32>
  }) : (tensor<4x8xf32>) -> tensor<4xf32>
  // CHECK: "tt.reduce"(%{{.*}}) <{axis = 0 : i32}> ({
  %1 = "tt.reduce"(%u) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %x = arith.addf %a, %b : f32
    // CHECK: tt.reduce.return %{{.*}} {a.b} : f32
    tt.reduce.return %x {a.b} : f32
  // CHECK: }) {a.c = 1 : i32} : (tensor<8xf32>) -> f32
  }) {a.c = 1 : i32} : (tensor<8xf32>) -> f32
  // CHECK: "tt.reduce"(%{{.*}}, %{{.*}}) <{axis = 0 : i32}> ({
  %2:2 = "tt.reduce"(%t, %i) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    // CHECK: tt.reduce.return %{{.*}}, %{{.*}} : f32, i32
    tt.reduce.return %a, %d : f32, i32
  // CHECK: }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  // CHECK: "tt.scan"(%{{.*}}, %{{.*}}) <{axis = 0 : i32, reverse = true}> ({
  %3:2 = "tt.scan"(%t, %i) <{axis = 0 : i32, reverse = true}> ({
  ^bb0(%a: f32, %b: i32, %c: f32, %d: i32):
    // CHECK: tt.scan.return %{{.*}}, %{{.*}} : f32, i32
    tt.scan.return %a, %d : f32, i32
  // CHECK: }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  // CHECK: "tt.map_elementwise"(%{{.*}}, %{{.*}}) <{pack = 2 : i32}> ({
  %4:2 = "tt.map_elementwise"(%t, %i) <{pack = 2 : i32}> ({
  ^bb0(%a: f32, %b: f32, %c: i32, %d: i32):
    %p = arith.cmpi slt, %c, %d : i32
    cf.cond_br %p, ^bb1, ^bb2(%b : f32)
  ^bb1:
    cf.br ^bb2(%a : f32)
  ^bb2(%e: f32):
    // CHECK: tt.map_elementwise.return %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : f32, f32, i32, i32
    tt.map_elementwise.return %a, %e, %c, %d : f32, f32, i32, i32
  // CHECK: }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  }) : (tensor<4x8xf32>, tensor<4x8xi32>) -> (tensor<4x8xf32>, tensor<4x8xi32>)
  // CHECK: "tt.map_elementwise"(%{{.*}}) <{pack = 1 : i32}> ({
  %5 = "tt.map_elementwise"(%t) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    // CHECK: tt.map_elementwise.return {a.b} %{{.*}} : f32
    tt.map_elementwise.return {a.b} %a : f32
  // CHECK: }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @elementwise_code(
tt.func @elementwise_code(%t: tensor<8xf32>, %i: tensor<8xi8>, %s: f32) {
  // CHECK: tt.extern_elementwise %{{.*}} {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = tt.extern_elementwise %t {libname = "", libpath = "", pure = true, symbol = "__nv_sinf"} : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: tt.extern_elementwise %{{.*}}, %{{.*}} {libname = "libdevice", libpath = "x", pure = false, symbol = "__nv_powf"} : (f32, f32) -> f32
  %1 = tt.extern_elementwise %s, %s {libname = "libdevice", libpath = "x", pure = false, symbol = "__nv_powf"} : (f32, f32) -> f32
  // CHECK: tt.elementwise_inline_asm "mov.u32 $0, 1;" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  %2 = tt.elementwise_inline_asm "mov.u32 $0, 1;" {constraints = "=r", packed_element = 1 : i32, pure = false} -> i32
  // CHECK: tt.elementwise_inline_asm "{\0A add.u32 $0, $1; \0A}" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %{{.*}} : tensor<8xi8> -> tensor<8xi8>
  %3 = tt.elementwise_inline_asm "{\0A add.u32 $0, $1; \0A}" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %i : tensor<8xi8> -> tensor<8xi8>
  // CHECK: tt.elementwise_inline_asm "a" {constraints = "=r,=r,r,r", packed_element = 1 : i32, pure = true} %{{.*}}, %{{.*}} : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>, tensor<8xi32>
  %4:2 = tt.elementwise_inline_asm "a" {constraints = "=r,=r,r,r", packed_element = 1 : i32, pure = true} %t, %t : tensor<8xf32>, tensor<8xf32> -> tensor<8xf32>, tensor<8xi32>
  // CHECK: tt.return
  tt.return
}
// CHECK-LABEL: tt.func @descriptors(
tt.func @descriptors(%p: !tt.ptr<f32>, %b: !tt.ptr<i8>, %i: i32, %s: i64, %d: !tt.tensordesc<4x8xf32>, %t: tensor<4x8xf32>, %r: !tt.tensordesc<1x16xf32>, %x: tensor<8xi32>) {
  // CHECK: tt.make_tensor_descriptor %{{.*}}, [%{{.*}}, %{{.*}}], [%{{.*}}, %{{.*}}] : <f32>, <4x8xf32>
  %0 = tt.make_tensor_descriptor %p, [%i, %i], [%s, %s] : <f32>, <4x8xf32>
  // CHECK: tt.make_tensor_descriptor %{{.*}}, [%{{.*}}], [%{{.*}}] {padding = 2 : i32} : <i8>, <64xui8>
  %1 = tt.make_tensor_descriptor %b, [%i], [%s] {padding = 2 : i32} : <i8>, <64xui8>
  // CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  %2 = tt.descriptor_load %d[%i, %i] : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  // CHECK: tt.descriptor_load %{{.*}}[%{{.*}}, %{{.*}}] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  %3 = tt.descriptor_load %d[%i, %i] {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : !tt.tensordesc<4x8xf32> -> tensor<4x8xf32>
  // CHECK: tt.descriptor_store %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  tt.descriptor_store %d[%i, %i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  // CHECK: tt.descriptor_reduce add, %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  tt.descriptor_reduce add, %d[%i, %i], %t : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  // CHECK: tt.descriptor_reduce max, %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} {a.b} : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  tt.descriptor_reduce max, %d[%i, %i], %t {a.b} : !tt.tensordesc<4x8xf32>, tensor<4x8xf32>
  // CHECK: tt.descriptor_gather %{{.*}}[%{{.*}}, %{{.*}}] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  %4 = tt.descriptor_gather %r[%x, %i] : (!tt.tensordesc<1x16xf32>, tensor<8xi32>, i32) -> tensor<8x16xf32>
  // CHECK: tt.descriptor_scatter %{{.*}}[%{{.*}}, %{{.*}}], %{{.*}} : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  tt.descriptor_scatter %r[%x, %i], %4 : !tt.tensordesc<1x16xf32>, tensor<8xi32>, i32, tensor<8x16xf32>
  // CHECK: tt.return
  tt.return
}
// CHECK: tt.func private @declaration(i32, !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> (f32, i32 {a.b})
tt.func private @declaration(i32, !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> (f32, i32 {a.b})
// CHECK-LABEL: tt.func public @"calls.with dots"(
// CHECK-SAME: i32 {tt.contiguity = 4 : i32, tt.divisibility = 16 : i32}, %{{.*}}: !tt.ptr<f32, "constant">, %{{.*}}: !tt.ptr<f32>, %{{.*}}: !tt.ptr<i8, "descriptor">) -> (f32, i32) attributes {noinline = true}
tt.func public @"calls.with dots"(%i: i32 {tt.divisibility = 16 : i32, tt.contiguity = 4 : i32}, %p: !tt.ptr<f32, "constant">, %q: !tt.ptr<f32>, %k: !tt.ptr<i8, "descriptor">) -> (f32, i32) attributes {noinline = true} {
  // CHECK: tt.call @declaration(%{{.*}}, %{{.*}}) : (i32, !tt.ptr<f32>) -> (f32, i32)
  %0:2 = tt.call @declaration(%i, %q) : (i32, !tt.ptr<f32>) -> (f32, i32)
  // CHECK: tt.call @nothing() {a.b} : () -> ()
  tt.call @nothing() {a.b} : () -> ()
  // CHECK: tt.return %{{.*}}, %{{.*}} : f32, i32
  tt.return %0#0, %0#1 : f32, i32
}
// CHECK-LABEL: tt.func @nothing(
tt.func @nothing() {
  %c = arith.constant true
  cf.cond_br %c, ^bb1, ^bb2
^bb1:
  // CHECK: tt.return
  tt.return
^bb2:
  // CHECK: tt.return {a.b}
  tt.return {a.b}
}

// GENERIC-DAG: "tt.clampf"(%{{.*}}, %{{.*}}, %{{.*}}) <{propagateNan = 65535 : i32}> {a.b} : (tensor<4xf64>, tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
// GENERIC-DAG: "tt.load"(%{{.*}}, %{{.*}}, %{{.*}}) <{isVolatile = true, operandSegmentSizes = array<i32: 1, 1, 1>}>
// GENERIC-DAG: "tt.store"(%{{.*}}, %{{.*}}, %{{.*}}) <{ignore_cta}> : (!tt.ptr<f32>, f32, i1) -> ()
// GENERIC-DAG: "tt.atomic_rmw"(%{{.*}}, %{{.*}}) <{atomic_rmw_op = 4 : i32, scope = 1 : i32, sem = 4 : i32}>
// GENERIC-DAG: "tt.reshape"(%{{.*}}) <{allow_reorder, efficient_layout}> {a.b}
// GENERIC-DAG: "tt.dot"(%{{.*}}, %{{.*}}, %{{.*}}) <{inputPrecision = 2 : i32, maxNumImpreciseAcc = 0 : i32}>
// GENERIC-DAG: "tt.dot_scaled"(%{{.*}}) <{a_elem_type = 6 : i32, b_elem_type = 0 : i32, fastMath = false, lhs_k_pack = true, operandSegmentSizes = array<i32: 1, 1, 1, 0, 1>, rhs_k_pack = true}>
// GENERIC-DAG: "tt.make_tensor_descriptor"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) <{padding = 1 : i32}>
// GENERIC-DAG: "tt.func"() <{arg_attrs = [{}, {tt.divisibility = 16 : i32}], function_type = (i32, !tt.ptr<f32>) -> (f32, i32), res_attrs = [{}, {a.b}], sym_name = "declaration", sym_visibility = "private"}>
// GENERIC-DAG: "tt.call"(%{{.*}}, %{{.*}}) <{callee = @declaration}>
