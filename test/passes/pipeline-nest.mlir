// RUN: %ttopt %s --tritongpu-pipeline="num-stages=3 explain=true" 2>&1 | FileCheck %s

// Which tiles' loads may come before the end of the tile before.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [2, 16], warpsPerCTA = [2, 1], order = [1, 0]}>
#mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
#left = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 1}>
#right = #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 1}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 2 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // Stores to what the next tile loads come before.
  // CHECK: remark: does not load for the next tile before this one ends: what it loads ahead for the next tile may be what this tile stores
  // Where the next tile is depends on what this one computes.
  // CHECK: remark: does not load for the next tile before this one ends: where the next tile is depends on what this tile computes
  // Who knows what it counted knows who was there before.
  // CHECK: remark: does not load for the next tile before this one ends: what is around it writes memory, or waits
  // Who does not, acquires nothing.
  // CHECK: remark: loads for the next tile before this one ends
  // CHECK: remark: loads for the next tile before this one ends
  // CHECK-LABEL: @in_place
  // CHECK: scf.for
  // CHECK: ttg.async_copy_global_to_local
  tt.func @in_place(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %out: tensor<64x64xi32, #mma>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %base = arith.muli %tile, %c64 : i32
      %p = tt.addptr %a, %base : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %m = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      %qs = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #mma>
      %q = tt.addptr %qs, %out : tensor<64x64x!tt.ptr<f32>, #mma>, tensor<64x64xi32, #mma>
      tt.store %q, %r : tensor<64x64x!tt.ptr<f32>, #mma>
    } {tt.flatten}
    tt.return
  }

  tt.func @computed_place(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %n: i32) -> i32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    %end = scf.for %tile = %c0 to %n step %c1 iter_args(%base = %c0) -> (i32) : i32 {
      %p = tt.addptr %a, %base : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero, %s = %base) -> (tensor<64x64xf32, #mma>, i32) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %m = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        %t = arith.addi %s, %i : i32
        scf.yield %d, %t : tensor<64x64xf32, #mma>, i32
      }
      %next = arith.addi %r#1, %c1 : i32
      scf.yield %next : i32
    } {tt.flatten}
    tt.return %end : i32
  }

  tt.func @counted(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %out: tensor<64x64x!tt.ptr<f32>, #mma>, %count: !tt.ptr<i32>, %order: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %p = tt.addptr %a, %tile : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %m = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      tt.store %out, %r : tensor<64x64x!tt.ptr<f32>, #mma>
      %old = tt.atomic_rmw add, acq_rel, gpu, %count, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
      tt.store %order, %old : !tt.ptr<i32>
    } {tt.flatten}
    tt.return
  }

  tt.func @summed(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %out: tensor<64x64x!tt.ptr<f32>, #mma>, %count: !tt.ptr<i32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %true = arith.constant true
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %p = tt.addptr %a, %tile : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %m = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      tt.store %out, %r : tensor<64x64x!tt.ptr<f32>, #mma>
      %old = tt.atomic_rmw add, acq_rel, gpu, %count, %c1, %true : (!tt.ptr<i32>, i32, i1) -> i32
    } {tt.flatten}
    tt.return
  }

  // Loads of the next tile are predicated where it does not exist; what divides then divides by a power of two that divides the
  // divisor.
  // CHECK-LABEL: @loaded_place
  // CHECK: %[[FIRST:.*]] = arith.cmpi slt, %{{.*}}, %{{.*}} : i32
  // CHECK: tt.load %{{.*}}, %[[FIRST]] : !tt.ptr<i32>
  // CHECK: arith.select %[[FIRST]], %{{.*}}, %c16_i32{{[_0-9]*}} : i32
  // CHECK: arith.divsi
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: scf.for
  // CHECK: scf.for
  // CHECK: scf.yield
  // CHECK: %[[NEXT:.*]] = arith.cmpi ugt
  // CHECK: tt.load %{{.*}}, %[[NEXT]] : !tt.ptr<i32>
  // CHECK: arith.select %[[NEXT]], %{{.*}}, %c16_i32{{[_0-9]*}} : i32
  // CHECK: arith.divsi
  // CHECK: ttg.async_copy_global_to_local
  // CHECK: tt.store
  tt.func @loaded_place(%a: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %at: tensor<64x64xi32, #a> {tt.divisibility = 16 : i32, tt.contiguity = dense<[1, 64]> : tensor<2xi32>}, %out: tensor<64x64x!tt.ptr<f32>, #mma>, %places: !tt.ptr<i32>, %by: i32 {tt.divisibility = 16 : i32}, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c64 = arith.constant 64 : i32
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #mma>
    scf.for %tile = %c0 to %n step %c1 : i32 {
      %where = tt.addptr %places, %tile : !tt.ptr<i32>, i32
      %place = tt.load %where : !tt.ptr<i32>
      %part = arith.divsi %place, %by : i32
      %base = arith.muli %part, %c64 : i32
      %p = tt.addptr %a, %base : !tt.ptr<f32>, i32
      %ps = tt.splat %p : !tt.ptr<f32> -> tensor<64x64x!tt.ptr<f32>, #a>
      %pa = tt.addptr %ps, %at : tensor<64x64x!tt.ptr<f32>, #a>, tensor<64x64xi32, #a>
      %r = scf.for %i = %c0 to %n step %c1 iter_args(%c = %zero) -> (tensor<64x64xf32, #mma>) : i32 {
        %x = tt.load %pa : tensor<64x64x!tt.ptr<f32>, #a>
        %l = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #left>
        %m = ttg.convert_layout %x : tensor<64x64xf32, #a> -> tensor<64x64xf32, #right>
        %d = tt.dot %l, %m, %c, inputPrecision = tf32 : tensor<64x64xf32, #left> * tensor<64x64xf32, #right> -> tensor<64x64xf32, #mma>
        scf.yield %d : tensor<64x64xf32, #mma>
      }
      tt.store %out, %r : tensor<64x64x!tt.ptr<f32>, #mma>
    } {tt.flatten}
    tt.return
  }
}
