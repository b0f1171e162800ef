// Operands that threads read themselves are read an iteration ahead, where the last part of the last dot multiplies.
// RUN: %ttopt %s -split-input-file --tritongpu-pipeline="num-stages=3 explain=true" 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=EXPLAIN < %t

#blocked = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [8, 4], warpsPerCTA = [4, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
#b = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>
#shared = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [1, 0]}>
#trans = #ttg.swizzled_shared<{vec = 8, perPhase = 2, maxPhase = 4, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "cuda:80", "ttg.threads-per-warp" = 32 : i32} {
  // Attention: what stays in registers throughout the loop is taken apart there, the second dot's left operand where it is computed.
  // What the second dot reads of this iteration is read before the wait for the next one.
  // CHECK-LABEL: @attention
  // CHECK: scf.for {{.*}} iter_args(%[[K0:[^ ]*]] =
  // CHECK: %[[Q0:.*]] = amdg.extract_slice %arg2 [0, 0]
  // CHECK: %[[S0:.*]] = tt.dot %[[Q0]], %[[K0]], %{{.*}} :
  // CHECK: %[[Q1:.*]] = amdg.extract_slice %arg2 [0, 16]
  // CHECK: memdesc_trans
  // CHECK-NEXT: memdesc_subslice {{.*}}[16, 0]
  // CHECK-NEXT: %[[K1:.*]] = ttg.local_load
  // CHECK-NEXT: tt.dot %[[Q1]], %[[K1]], %[[S0]] :
  // CHECK: arith.truncf
  // CHECK: tt.dot
  // CHECK: amdg.extract_slice {{.*}} [0, 16]
  // CHECK: memdesc_subslice {{.*}}[16, 0]
  // CHECK-NEXT: ttg.local_load
  // CHECK-NEXT: ttg.async_wait
  // CHECK: memdesc_subslice {{.*}}[0, 0]
  // CHECK-NEXT: ttg.local_load
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: tt.dot
  // CHECK: scf.yield
  tt.func @attention(%pk: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pv: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %q: tensor<64x32xf16, #a>, %n: i32) -> tensor<64x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x32xf32, #mma>) : i32 {
      %k = tt.load %pk : tensor<32x32x!tt.ptr<f16>, #blocked>
      %ks = ttg.local_alloc %k : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %kt = ttg.memdesc_trans %ks {order = array<i32: 1, 0>} : !ttg.memdesc<32x32xf16, #shared, #smem> -> !ttg.memdesc<32x32xf16, #trans, #smem>
      %kb = ttg.local_load %kt : !ttg.memdesc<32x32xf16, #trans, #smem> -> tensor<32x32xf16, #b>
      %s = tt.dot %q, %kb, %zero : tensor<64x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<64x32xf32, #mma>
      %e = math.exp2 %s : tensor<64x32xf32, #mma>
      %h = arith.truncf %e : tensor<64x32xf32, #mma> to tensor<64x32xf16, #mma>
      %p = ttg.convert_layout %h : tensor<64x32xf16, #mma> -> tensor<64x32xf16, #a>
      %v = tt.load %pv : tensor<32x32x!tt.ptr<f16>, #blocked>
      %vs = ttg.local_alloc %v : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %vb = ttg.local_load %vs : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %p, %vb, %c : tensor<64x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<64x32xf32, #mma>
      scf.yield %d : tensor<64x32xf32, #mma>
    }
    tt.return %r : tensor<64x32xf32, #mma>
  }

  // An operand that is computed in the iteration would have to be computed an iteration ahead.
  // EXPLAIN: reads no operands an iteration ahead: an operand of its first dot is computed in the iteration
  // CHECK-LABEL: @computed
  // CHECK: scf.for
  // CHECK: ttg.async_wait
  // CHECK: ttg.local_load
  // CHECK: tt.dot
  // CHECK-NOT: tt.dot
  // CHECK: tt.func
  tt.func @computed(%pb: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %q: tensor<64x32xf16, #a>, %n: i32) -> tensor<64x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %a = %q) -> (tensor<64x32xf32, #mma>, tensor<64x32xf16, #a>) : i32 {
      %y = tt.load %pb : tensor<32x32x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %yb = ttg.local_load %ys : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %a, %yb, %c : tensor<64x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<64x32xf32, #mma>
      %next = arith.addf %a, %q : tensor<64x32xf16, #a>
      scf.yield %d, %next : tensor<64x32xf32, #mma>, tensor<64x32xf16, #a>
    }
    tt.return %r#0 : tensor<64x32xf32, #mma>
  }

  // Of 16 summands there are no parts: all of an iteration's operands are read in the iteration before.
  // CHECK-LABEL: @whole
  // CHECK: ttg.async_wait {num = 2 : i32}
  // CHECK: scf.for
  // CHECK-NEXT: ttg.async_wait {num = 1 : i32}
  // CHECK: ttg.local_load
  // CHECK: ttg.local_load
  // CHECK: ttg.async_commit_group
  // CHECK-NEXT: tt.dot
  // CHECK-NOT: tt.dot
  // CHECK: tt.func
  tt.func @whole(%pa: tensor<64x16x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pb: tensor<16x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x32xf32, #mma>) : i32 {
      %x = tt.load %pa : tensor<64x16x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<64x16xf16, #blocked>) -> !ttg.memdesc<64x16xf16, #shared, #smem>
      %y = tt.load %pb : tensor<16x32x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<16x32xf16, #blocked>) -> !ttg.memdesc<16x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<64x16xf16, #shared, #smem> -> tensor<64x16xf16, #a>
      %yb = ttg.local_load %ys : !ttg.memdesc<16x32xf16, #shared, #smem> -> tensor<16x32xf16, #b>
      %d = tt.dot %xa, %yb, %c : tensor<64x16xf16, #a> * tensor<16x32xf16, #b> -> tensor<64x32xf32, #mma>
      scf.yield %d : tensor<64x32xf32, #mma>
    }
    tt.return %r : tensor<64x32xf32, #mma>
  }

  // Who says what comes when in an iteration gets that.
  // CHECK-LABEL: @asked
  // CHECK: scf.for
  // CHECK: tt.dot
  // CHECK-NOT: tt.dot
  // CHECK: tt.return
  tt.func @asked(%pa: tensor<64x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %pb: tensor<32x32x!tt.ptr<f16>, #blocked> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 8]> : tensor<2xi32>}, %n: i32) -> tensor<64x32xf32, #mma> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x32xf32, #mma>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x32xf32, #mma>) : i32 {
      %x = tt.load %pa {tt.latency = 2 : i32} : tensor<64x32x!tt.ptr<f16>, #blocked>
      %xs = ttg.local_alloc %x : (tensor<64x32xf16, #blocked>) -> !ttg.memdesc<64x32xf16, #shared, #smem>
      %y = tt.load %pb {tt.latency = 2 : i32} : tensor<32x32x!tt.ptr<f16>, #blocked>
      %ys = ttg.local_alloc %y : (tensor<32x32xf16, #blocked>) -> !ttg.memdesc<32x32xf16, #shared, #smem>
      %xa = ttg.local_load %xs : !ttg.memdesc<64x32xf16, #shared, #smem> -> tensor<64x32xf16, #a>
      %yb = ttg.local_load %ys : !ttg.memdesc<32x32xf16, #shared, #smem> -> tensor<32x32xf16, #b>
      %d = tt.dot %xa, %yb, %c : tensor<64x32xf16, #a> * tensor<32x32xf16, #b> -> tensor<64x32xf32, #mma>
      scf.yield %d : tensor<64x32xf32, #mma>
    }
    tt.return %r : tensor<64x32xf32, #mma>
  }
}
