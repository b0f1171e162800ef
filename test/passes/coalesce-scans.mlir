// RUN: %ttopt %s -split-input-file "--convert-triton-to-tritongpu=target=cuda:90 num-warps=1" "--tritongpu-coalesce=explain=true" 2>&1 | FileCheck %s

// Values that start at an odd place are loaded one by one, but scanned in each of many iterations: with four neighbours in a thread a scan takes
// a third of the shuffles, for which two more loads of lines are little.
// CHECK: choice of vector of this access: 4 neighbours in each thread: {{.*}}scans and gathers beside {{[0-9.]+}}) | 2 neighbours
// CHECK: [[WIDE:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-LABEL: @scanned
// CHECK: tt.load {{.*}} : tensor<128x!tt.ptr<i32>, [[WIDE]]>
tt.func @scanned(%p: !tt.ptr<i32> {tt.divisibility = 16 : i32}, %n: i32) -> tensor<128xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %at = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128xi32>
  %odd = arith.addi %at, %one : tensor<128xi32>
  %ps = tt.splat %p : !tt.ptr<i32> -> tensor<128x!tt.ptr<i32>>
  %pa = tt.addptr %ps, %odd : tensor<128x!tt.ptr<i32>>, tensor<128xi32>
  %x = tt.load %pa : tensor<128x!tt.ptr<i32>>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%row = %x) -> (tensor<128xi32>) : i32 {
    %s = "tt.scan"(%row) <{axis = 0 : i32, reverse = false}> ({
    ^bb0(%l: i32, %m: i32):
      %t = arith.minsi %l, %m : i32
      tt.scan.return %t : i32
    }) : (tensor<128xi32>) -> tensor<128xi32>
    %next = arith.addi %s, %x : tensor<128xi32>
    scf.yield %next : tensor<128xi32>
  }
  tt.return %r : tensor<128xi32>
}

// -----

// Nothing is known of the pointers: neighbours may well be next to each other, and are left to neighbouring lanes.
// CHECK-NOT: choice of vector
// CHECK: [[NARROW:#blocked[0-9]*]] = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
// CHECK-LABEL: @anywhere
// CHECK: tt.load {{.*}} : tensor<128x!tt.ptr<i32>, [[NARROW]]>
tt.func @anywhere(%p: tensor<128x!tt.ptr<i32>>) -> tensor<128xi32> {
  %x = tt.load %p : tensor<128x!tt.ptr<i32>>
  %s = "tt.scan"(%x) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%l: i32, %m: i32):
    %t = arith.minsi %l, %m : i32
    tt.scan.return %t : i32
  }) : (tensor<128xi32>) -> tensor<128xi32>
  tt.return %s : tensor<128xi32>
}
