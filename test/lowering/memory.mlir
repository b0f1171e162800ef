// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b4 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b8 = #ttg.blocked<{sizePerThread = [8], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
#b16 = #ttg.blocked<{sizePerThread = [16], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Four floats at 16-byte alignment: one load of 128 bits, and no inline
// assembly, so that LLVM may schedule it.
// CHECK-LABEL: llvm.func @copy_f32(
// CHECK-SAME:    %[[IN:[^:]*]]: !llvm.ptr<1> {llvm.align = 16 : i64}, %[[OUT:[^:]*]]: !llvm.ptr<1> {llvm.align = 16 : i64}
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %[[IN]][%[[I:[0-9]*]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK:         %[[V:.*]] = llvm.load %[[FROM]] {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         llvm.extractelement %[[V]][%{{.*}} : i32]
// CHECK:         %[[TO:.*]] = llvm.getelementptr %[[OUT]][%[[I]]]
// CHECK-NOT:     llvm.inline_asm
// CHECK:         llvm.store %{{.*}}, %[[TO]] {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NEXT:    llvm.return
tt.func public @copy_f32(%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %s = tt.splat %in : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b4>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<f32>, #b4>, tensor<512xi32, #b4>
  %x = tt.load %p : tensor<512x!tt.ptr<f32>, #b4>
  %t = tt.splat %out : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b4>
  %q = tt.addptr %t, %r : tensor<512x!tt.ptr<f32>, #b4>, tensor<512xi32, #b4>
  tt.store %q, %x : tensor<512x!tt.ptr<f32>, #b4>
  tt.return
}

// Eight halves whose masks agree, since n is a multiple of 16: one predicated
// access of four words, masked elements from `other`. Outputs are set before
// inputs are read: `=&`.
// CHECK-LABEL: llvm.func @copy_f16_masked(
// CHECK:         %[[MASK:.*]] = llvm.icmp "slt" %[[I:[0-9]*]], %arg2 : i32
// CHECK:         %[[FROM:.*]] = llvm.getelementptr %arg0[%[[I]]] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f16
// CHECK:         llvm.inline_asm has_side_effects "{\0A\09mov.b32 $0, $6;\0A\09mov.b32 $1, $7;\0A\09mov.b32 $2, $8;\0A\09mov.b32 $3, $9;\0A\09@$5 ld.global.v4.b32 { $0, $1, $2, $3 }, [ $4 ];\0A}", "=&r,=&r,=&r,=&r,l,b,r,r,r,r" %[[FROM]], %[[MASK]],
// CHECK:         %[[TO:.*]] = llvm.getelementptr %arg1[%[[I]]]
// CHECK:         llvm.inline_asm has_side_effects "@$5 st.global.v4.b32 [ $0 ], { $1, $2, $3, $4 };", "l,r,r,r,r,b" %[[TO]], {{.*}}, %[[MASK]]
// CHECK-NEXT:    llvm.return
tt.func public @copy_f16_masked(%in: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %zero = arith.constant dense<1.0> : tensor<1024xf16, #b8>
  %r = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b8>
  %ns = tt.splat %n : i32 -> tensor<1024xi32, #b8>
  %m = arith.cmpi slt, %r, %ns : tensor<1024xi32, #b8>
  %s = tt.splat %in : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #b8>
  %p = tt.addptr %s, %r : tensor<1024x!tt.ptr<f16>, #b8>, tensor<1024xi32, #b8>
  %x = tt.load %p, %m, %zero : tensor<1024x!tt.ptr<f16>, #b8>
  %t = tt.splat %out : !tt.ptr<f16> -> tensor<1024x!tt.ptr<f16>, #b8>
  %q = tt.addptr %t, %r : tensor<1024x!tt.ptr<f16>, #b8>, tensor<1024xi32, #b8>
  tt.store %q, %x, %m : tensor<1024x!tt.ptr<f16>, #b8>
  tt.return
}

// 64-bit elements: two to an access, four elements in two accesses; hints go
// into the opcode, and to the L2 as an operand.
// CHECK-LABEL: llvm.func @copy_i64_policy(
// CHECK-COUNT-2: llvm.inline_asm has_side_effects "{\0A\09ld.global.cg.v2.b64 { $0, $1 }, [ $2 ];\0A}", "=l,=l,l"
// CHECK:         llvm.inline_asm "createpolicy.fractional.L2::evict_first.b64 $0, 0f3F800000;", "=l" : () -> i64
// CHECK:         llvm.inline_asm has_side_effects "st.global.L1::evict_first.L2::cache_hint.v2.b64 [ $0 ], { $1, $2 }, $3;", "l,l,l,l"
// CHECK:         llvm.inline_asm has_side_effects "st.global.L1::evict_first.L2::cache_hint.v2.b64 [ $0 ], { $1, $2 }, $3;", "l,l,l,l"
// CHECK-NEXT:    llvm.return
tt.func public @copy_i64_policy(%in: !tt.ptr<i64> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i64> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %s = tt.splat %in : !tt.ptr<i64> -> tensor<512x!tt.ptr<i64>, #b4>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<i64>, #b4>, tensor<512xi32, #b4>
  %x = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>} : tensor<512x!tt.ptr<i64>, #b4>
  %t = tt.splat %out : !tt.ptr<i64> -> tensor<512x!tt.ptr<i64>, #b4>
  %q = tt.addptr %t, %r : tensor<512x!tt.ptr<i64>, #b4>, tensor<512xi32, #b4>
  tt.store %q, %x {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : tensor<512x!tt.ptr<i64>, #b4>
  tt.return
}

// Nothing is known about the pointers: a byte at a time. 128 elements fill one
// of the four warps, and only that one stores.
// CHECK-LABEL: llvm.func @copy_i8_volatile(
// CHECK-COUNT-4: llvm.inline_asm has_side_effects "{\0A\09ld.volatile.global.b8 $0, [ $1 ];\0A}", "=h,l"
// CHECK:         %[[MINE:.*]] = llvm.icmp "eq"
// CHECK-COUNT-4: llvm.inline_asm has_side_effects "@$2 st.global.b8 [ $0 ], $1;", "l,h,b" %{{.*}}, %{{.*}}, %[[MINE]] :
// CHECK-NEXT:    llvm.return
tt.func public @copy_i8_volatile(%in: !tt.ptr<i8>, %out: !tt.ptr<i8>) {
  %r = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32, #b4>
  %s = tt.splat %in : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #b4>
  %p = tt.addptr %s, %r : tensor<128x!tt.ptr<i8>, #b4>, tensor<128xi32, #b4>
  %x = tt.load %p {isVolatile = true} : tensor<128x!tt.ptr<i8>, #b4>
  %t = tt.splat %out : !tt.ptr<i8> -> tensor<128x!tt.ptr<i8>, #b4>
  %q = tt.addptr %t, %r : tensor<128x!tt.ptr<i8>, #b4>, tensor<128xi32, #b4>
  tt.store %q, %x : tensor<128x!tt.ptr<i8>, #b4>
  tt.return
}

// A boolean is a byte in memory, 0 or 1, and true when it is not 0.
// CHECK-LABEL: llvm.func @bools(
// CHECK:         llvm.getelementptr %arg0[{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i8
// CHECK:         llvm.load %{{.*}} {alignment = 4 : i64} : !llvm.ptr<1> -> i32
// CHECK-COUNT-4: llvm.icmp "ne" %{{.*}}, %{{.*}} : i8
// CHECK-COUNT-4: llvm.zext %{{.*}} : i1 to i8
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 4 : i64} : i32, !llvm.ptr<1>
tt.func public @bools(%in: !tt.ptr<i1> {tt.divisibility = 16 : i32}, %out: !tt.ptr<i1> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %s = tt.splat %in : !tt.ptr<i1> -> tensor<512x!tt.ptr<i1>, #b4>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<i1>, #b4>, tensor<512xi32, #b4>
  %x = tt.load %p : tensor<512x!tt.ptr<i1>, #b4>
  %t = tt.splat %out : !tt.ptr<i1> -> tensor<512x!tt.ptr<i1>, #b4>
  %q = tt.addptr %t, %r : tensor<512x!tt.ptr<i1>, #b4>, tensor<512xi32, #b4>
  tt.store %q, %x : tensor<512x!tt.ptr<i1>, #b4>
  tt.return
}

// Without `other` masked elements are zero, from run to run.
// CHECK-LABEL: llvm.func @scalar_masked(
// CHECK:         llvm.inline_asm has_side_effects "{\0A\09mov.b16 $0, 0;\0A\09@$2 ld.global.b16 $0, [ $1 ];\0A}", "=&h,l,b" %arg0, %arg1
// CHECK:         llvm.bitcast %{{.*}} : i16 to bf16
tt.func public @scalar_masked(%in: !tt.ptr<bf16>, %m: i1) {
  %x = tt.load %in, %m : !tt.ptr<bf16>
  tt.store %in, %x, %m : !tt.ptr<bf16>
  tt.return
}

// A mask that changes from element to element splits the access.
// CHECK-LABEL: llvm.func @ragged(
// CHECK-COUNT-4: llvm.inline_asm has_side_effects "{\0A\09mov.b32 $0, 0;\0A\09@$2 ld.global.b32 $0, [ $1 ];\0A}", "=&r,l,b"
// CHECK-COUNT-4: llvm.inline_asm has_side_effects "@$2 st.global.b32 [ $0 ], $1;", "l,r,b"
// CHECK-NEXT:    llvm.return
tt.func public @ragged(%in: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %r = tt.make_range {end = 512 : i32, start = 0 : i32} : tensor<512xi32, #b4>
  %ns = tt.splat %n : i32 -> tensor<512xi32, #b4>
  %m = arith.cmpi slt, %r, %ns : tensor<512xi32, #b4>
  %s = tt.splat %in : !tt.ptr<f32> -> tensor<512x!tt.ptr<f32>, #b4>
  %p = tt.addptr %s, %r : tensor<512x!tt.ptr<f32>, #b4>, tensor<512xi32, #b4>
  %x = tt.load %p, %m : tensor<512x!tt.ptr<f32>, #b4>
  tt.store %p, %x, %m : tensor<512x!tt.ptr<f32>, #b4>
  tt.return
}

// 128 bits are the most, however many bytes a thread has.
// CHECK-LABEL: llvm.func @thirty_two_bytes(
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK-NOT:     llvm.load
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
// CHECK-NEXT:    llvm.return
tt.func public @thirty_two_bytes(%in: !tt.ptr<bf16> {tt.divisibility = 16 : i32}) {
  %r = tt.make_range {end = 2048 : i32, start = 0 : i32} : tensor<2048xi32, #b16>
  %s = tt.splat %in : !tt.ptr<bf16> -> tensor<2048x!tt.ptr<bf16>, #b16>
  %p = tt.addptr %s, %r : tensor<2048x!tt.ptr<bf16>, #b16>, tensor<2048xi32, #b16>
  %x = tt.load %p : tensor<2048x!tt.ptr<bf16>, #b16>
  tt.store %p, %x : tensor<2048x!tt.ptr<bf16>, #b16>
  tt.return
}
}
