// Conditions that are collected over several loads, more of them than PTX has predicates for, are kept in integers.

// RUN: %ttc %s --target cuda:90 --num-warps 1 --emit ptx | FileCheck %s
// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s --check-prefix=FEW

// The first two are joined as predicates, each of the next ones by an instruction that gives an integer, and the last integers are stored.
// CHECK-LABEL: .entry k(
// CHECK: and.pred [[FIRST:%p[0-9]+]],
// CHECK: selp.b32 [[INTEGER:%r[0-9]+]], 1, 0,
// CHECK: ld.volatile.global
// CHECK: selp.b32 {{%r[0-9]+}}, [[INTEGER]], 0, {{%p[0-9]+}};
// CHECK: ld.volatile.global
// CHECK: selp.b32 [[LAST:%r[0-9]+]], {{%r[0-9]+}}, 0, {{%p[0-9]+}};
// CHECK: ld.volatile.global
// CHECK: setp.ne.b32 {{%p[0-9]+}}, [[LAST]], 0;
// CHECK: st.global

// Four in each thread are predicates.
// FEW-LABEL: .entry k(
// FEW-NOT: selp.b32 {{%r[0-9]+}}, {{%r[0-9]+}}, 0,
// FEW: st.global
tt.func public @k(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %o: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32>
  %zero = arith.constant dense<0> : tensor<512xi32>
  %b = tt.splat %p : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %q = tt.addptr %b, %r : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %bo = tt.splat %o : !tt.ptr<i32> -> tensor<512x!tt.ptr<i32>>
  %qo = tt.addptr %bo, %r : tensor<512x!tt.ptr<i32>>, tensor<512xi32>
  %a0 = tt.load %q {isVolatile = true} : tensor<512x!tt.ptr<i32>>
  %c0 = arith.cmpi sgt, %a0, %zero : tensor<512xi32>
  %a1 = tt.load %q {isVolatile = true} : tensor<512x!tt.ptr<i32>>
  %c1 = arith.cmpi sgt, %a1, %r : tensor<512xi32>
  %d1 = arith.andi %c0, %c1 : tensor<512xi1>
  %a2 = tt.load %q {isVolatile = true} : tensor<512x!tt.ptr<i32>>
  %c2 = arith.cmpi slt, %a2, %r : tensor<512xi32>
  %d2 = arith.andi %d1, %c2 : tensor<512xi1>
  %a3 = tt.load %q {isVolatile = true} : tensor<512x!tt.ptr<i32>>
  %c3 = arith.cmpi ne, %a3, %r : tensor<512xi32>
  %d3 = arith.andi %d2, %c3 : tensor<512xi1>
  %a4 = tt.load %q {isVolatile = true} : tensor<512x!tt.ptr<i32>>
  %c4 = arith.cmpi ne, %a4, %zero : tensor<512xi32>
  %d4 = arith.andi %d3, %c4 : tensor<512xi1>
  tt.store %qo, %a4, %d4 : tensor<512x!tt.ptr<i32>>
  tt.return
}
