// What MLIR's own passes may do with the operations: merge, hoist and drop
// pure ones, and leave those alone that touch memory.
//
// RUN: %ttopt %s --allow-unregistered-dialect --cse | FileCheck %s --check-prefix CSE
// RUN: %ttopt %s --allow-unregistered-dialect --loop-invariant-code-motion | FileCheck %s --check-prefix LICM
// RUN: %ttopt %s --allow-unregistered-dialect --canonicalize | FileCheck %s --check-prefix DCE

// Of two equal pure operations one is left.
// CSE-LABEL: tt.func @same(
// CSE-NEXT: [[ID:%.*]] = tt.get_program_id
// CSE-NEXT: [[RANGE:%.*]] = tt.make_range
// CSE-NEXT: [[PTR:%.*]] = tt.addptr %{{.*}}, [[RANGE]]
// CSE-NEXT: [[SUM:%.*]] = "tt.reduce"
// CSE: [[EXTERN:%.*]] = tt.extern_elementwise
// CSE-NEXT: [[ASM:%.*]] = tt.elementwise_inline_asm
// CSE-NEXT: "use"([[ID]], [[ID]], [[PTR]], [[PTR]], [[SUM]], [[SUM]], [[EXTERN]], [[EXTERN]], [[ASM]], [[ASM]])
tt.func @same(%x: tensor<8xf32>, %p: tensor<8x!tt.ptr<f32>>) {
  %0 = tt.get_program_id x : i32
  %1 = tt.get_program_id x : i32
  %2 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %3 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %4 = tt.addptr %p, %2 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %5 = tt.addptr %p, %3 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %6 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  %7 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  %8 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<8xf32>) -> tensor<8xf32>
  %9 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<8xf32>) -> tensor<8xf32>
  %10 = tt.elementwise_inline_asm "a" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  %11 = tt.elementwise_inline_asm "a" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  "use"(%0, %1, %4, %5, %6, %7, %8, %9, %10, %11) : (i32, i32, tensor<8x!tt.ptr<f32>>, tensor<8x!tt.ptr<f32>>, f32, f32, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) -> ()
  tt.return
}

// Without uses none is.
// DCE-LABEL: tt.func @dead(
// DCE-NEXT: tt.return
tt.func @dead(%x: tensor<8xf32>, %p: tensor<8x!tt.ptr<f32>>) {
  %0 = tt.get_program_id x : i32
  %1 = tt.get_program_id x : i32
  %2 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %3 = tt.make_range {end = 8 : i32, start = 0 : i32} : tensor<8xi32>
  %4 = tt.addptr %p, %2 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %5 = tt.addptr %p, %3 : tensor<8x!tt.ptr<f32>>, tensor<8xi32>
  %6 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  %7 = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    tt.reduce.return %s : f32
  }) : (tensor<8xf32>) -> f32
  %8 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<8xf32>) -> tensor<8xf32>
  %9 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "f"} : (tensor<8xf32>) -> tensor<8xf32>
  %10 = tt.elementwise_inline_asm "a" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  %11 = tt.elementwise_inline_asm "a" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : tensor<8xf32> -> tensor<8xf32>
  tt.return
}

// Pure operations leave a loop that may not run at all; a load does not, and
// neither does a concatenation, whose order is unspecified.
// LICM-LABEL: tt.func @hoist(
// LICM: tt.splat
// LICM: tt.expand_dims
// LICM: tt.dot
// LICM: tt.extern_elementwise {{.*}}"pure"
// LICM: scf.for
// LICM-NEXT: tt.load
// LICM-NEXT: tt.cat
// LICM-NEXT: tt.extern_elementwise {{.*}}"impure"
// LICM-NEXT: "use"
tt.func @hoist(%n: index, %x: f32, %p: !tt.ptr<f32>, %a: tensor<16x16xf16>, %c: tensor<16x16xf32>, %v: tensor<8xf32>) {
  scf.for %i = %n to %n step %n {
    %0 = tt.splat %x : f32 -> tensor<8xf32>
    %1 = tt.expand_dims %0 {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
    %2 = tt.dot %a, %a, %c : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    %3 = tt.load %p : !tt.ptr<f32>
    %4 = tt.cat %v, %v : tensor<8xf32> -> tensor<16xf32>
    %5 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "pure"} : (f32) -> f32
    %6 = tt.extern_elementwise %x {libname = "", libpath = "", pure = false, symbol = "impure"} : (f32) -> f32
    "use"(%1, %2, %3, %4, %5, %6) : (tensor<1x8xf32>, tensor<16x16xf32>, f32, tensor<16xf32>, f32, f32) -> ()
  }
  tt.return
}

// Loads are merged when nothing writes between them, volatile ones never.
// CSE-LABEL: tt.func @loads(
// CSE-NEXT: [[A:%.*]] = tt.load
// CSE-NEXT: "use"([[A]], [[A]])
// CSE-NEXT: [[B:%.*]] = tt.load
// CSE-NEXT: tt.store
// CSE-NEXT: [[C:%.*]] = tt.load
// CSE-NEXT: "use"([[B]], [[C]])
// CSE-NEXT: tt.load {{.*}} {isVolatile = true}
// CSE-NEXT: tt.load {{.*}} {isVolatile = true}
// CSE-NEXT: "use"
tt.func @loads(%p: !tt.ptr<f32>, %q: !tt.ptr<f32>, %x: f32) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.load %p : !tt.ptr<f32>
  "use"(%0, %1) : (f32, f32) -> ()
  %2 = tt.load %p : !tt.ptr<f32>
  tt.store %q, %x : !tt.ptr<f32>
  %3 = tt.load %p : !tt.ptr<f32>
  "use"(%2, %3) : (f32, f32) -> ()
  %4 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %5 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  "use"(%4, %5) : (f32, f32) -> ()
  tt.return
}

// Unused loads and concatenations go; what others can see stays.
// DCE-LABEL: tt.func @unused(
// DCE-NEXT: tt.load {{.*}} {isVolatile = true}
// DCE-NEXT: tt.atomic_load
// DCE-NEXT: tt.atomic_poll
// DCE-NEXT: tt.atomic_rmw
// DCE-NEXT: tt.atomic_cas
// DCE-NEXT: tt.extern_elementwise {{.*}}"impure"
// DCE-NEXT: tt.elementwise_inline_asm "impure"
// DCE-NEXT: tt.print
// DCE-NEXT: tt.assert
// DCE-NEXT: tt.grid_dependency_wait
// DCE-NEXT: tt.grid_dependency_launch_dependents
// DCE-NEXT: tt.descriptor_store
// DCE-NEXT: "tt.map_elementwise"
// DCE-NEXT: ^bb0
// DCE-NEXT: tt.call @outside
// DCE-NEXT: tt.map_elementwise.return
// DCE-NEXT: })
// DCE-NEXT: tt.return
tt.func @unused(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %i: i32, %x: f32, %v: tensor<8xf32>, %c: i1, %d: !tt.tensordesc<8xf32>) {
  %0 = tt.load %p : !tt.ptr<f32>
  %1 = tt.load %p {isVolatile = true} : !tt.ptr<f32>
  %2 = tt.atomic_load relaxed, gpu, %p : (!tt.ptr<f32>) -> f32
  %3 = tt.atomic_poll relaxed, gpu, %q, %i : !tt.ptr<i32>, i32 -> i1
  %4 = tt.atomic_rmw fadd, relaxed, gpu, %p, %x : (!tt.ptr<f32>, f32) -> f32
  %5 = tt.atomic_cas relaxed, gpu, %q, %i, %i : (!tt.ptr<i32>, i32, i32) -> i32
  %6 = tt.cat %v, %v : tensor<8xf32> -> tensor<16xf32>
  %7 = tt.extern_elementwise %x {libname = "", libpath = "", pure = false, symbol = "impure"} : (f32) -> f32
  %8 = tt.extern_elementwise %x {libname = "", libpath = "", pure = true, symbol = "pure"} : (f32) -> f32
  %9 = tt.elementwise_inline_asm "impure" {constraints = "=r,r", packed_element = 1 : i32, pure = false} %x : f32 -> f32
  %10 = tt.elementwise_inline_asm "pure" {constraints = "=r,r", packed_element = 1 : i32, pure = true} %x : f32 -> f32
  tt.print "x" {hex = false, isSigned = array<i32: 0>} : %x : f32
  tt.assert %c, "message" : i1
  tt.grid_dependency_wait
  tt.grid_dependency_launch_dependents
  %11 = tt.descriptor_load %d[%i] : !tt.tensordesc<8xf32> -> tensor<8xf32>
  tt.descriptor_store %d[%i], %v : !tt.tensordesc<8xf32>, tensor<8xf32>
  %12 = "tt.map_elementwise"(%v) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.map_elementwise.return %a : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  %13 = "tt.map_elementwise"(%v) <{pack = 1 : i32}> ({
  ^bb0(%a: f32):
    tt.call @outside(%a) : (f32) -> ()
    tt.map_elementwise.return %a : f32
  }) : (tensor<8xf32>) -> tensor<8xf32>
  tt.return
}
tt.func private @outside(f32)
