// RUN: %ttopt %s --tritongpu-optimize-thread-locality | FileCheck %s

#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [1, 32], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #a}>
#flat = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, ttg.target = "cuda:90"} {
  // Each of 32 threads adds what it has in the loop; they exchange data after it.
  // CHECK-LABEL: @sum
  // CHECK: %[[ZERO:.*]] = arith.constant dense<-0.000000e+00> : tensor<16x32xf32
  // CHECK: %[[L:.*]] = scf.for {{.*}} iter_args(%[[ACC:.*]] = %[[ZERO]])
  // CHECK: tt.reshape {{.*}} -> tensor<16x2x32x4xf32
  // CHECK: "tt.reduce"({{.*}}) <{axis = 3 : i32}>
  // CHECK: %[[P:.*]] = "tt.reduce"({{.*}}) <{axis = 1 : i32}>
  // CHECK: arith.addf %[[ACC]], %[[P]] : tensor<16x32xf32
  // CHECK: scf.yield
  // CHECK: "tt.reduce"(%[[L]]) <{axis = 1 : i32}>
  // CHECK: arith.addf
  // CHECK: tt.return
  tt.func @sum(%p: tensor<16x256x!tt.ptr<f32>, #a>, %init: tensor<16xf32, #row>, %n: i32) -> tensor<16xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<16xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<16x256x!tt.ptr<f32>, #a>
      %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        tt.reduce.return %s : f32
      }) : (tensor<16x256xf32, #a>) -> tensor<16xf32, #row>
      %next = arith.addf %acc, %r : tensor<16xf32, #row>
      scf.yield %next : tensor<16xf32, #row>
    }
    tt.return %l : tensor<16xf32, #row>
  }

  // The loop also looks at the sum: it must be whole.
  // CHECK-LABEL: @watched
  // CHECK-NOT: tt.reshape
  // CHECK: tt.return
  tt.func @watched(%p: tensor<16x256x!tt.ptr<f32>, #a>, %q: tensor<16x!tt.ptr<f32>, #row>, %init: tensor<16xf32, #row>, %n: i32) -> tensor<16xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<16xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<16x256x!tt.ptr<f32>, #a>
      %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        tt.reduce.return %s : f32
      }) : (tensor<16x256xf32, #a>) -> tensor<16xf32, #row>
      %next = arith.addf %acc, %r : tensor<16xf32, #row>
      tt.store %q, %acc : tensor<16x!tt.ptr<f32>, #row>
      scf.yield %next : tensor<16xf32, #row>
    }
    tt.return %l : tensor<16xf32, #row>
  }

  // The maximum of sums is no sum.
  // CHECK-LABEL: @mixed
  // CHECK-NOT: tt.reshape
  // CHECK: tt.return
  tt.func @mixed(%p: tensor<16x256x!tt.ptr<f32>, #a>, %init: tensor<16xf32, #row>, %n: i32) -> tensor<16xf32, #row> {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<16xf32, #row>)  : i32 {
      %x = tt.load %p : tensor<16x256x!tt.ptr<f32>, #a>
      %r = "tt.reduce"(%x) <{axis = 1 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        tt.reduce.return %s : f32
      }) : (tensor<16x256xf32, #a>) -> tensor<16xf32, #row>
      %next = arith.maximumf %acc, %r : tensor<16xf32, #row>
      scf.yield %next : tensor<16xf32, #row>
    }
    tt.return %l : tensor<16xf32, #row>
  }

  // A sum over everything: the loop carries what each thread has.
  // CHECK-LABEL: @scalar
  // CHECK: %[[L:.*]] = scf.for {{.*}} -> (tensor<128xf32
  // CHECK: "tt.reduce"({{.*}}) <{axis = 2 : i32}>
  // CHECK: "tt.reduce"({{.*}}) <{axis = 0 : i32}>
  // CHECK: %[[W:.*]] = "tt.reduce"(%[[L]]) <{axis = 0 : i32}>
  // CHECK: arith.addf %{{.*}}, %[[W]] : f32
  // CHECK: tt.return
  tt.func @scalar(%p: tensor<2048x!tt.ptr<f32>, #flat>, %init: f32, %n: i32) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (f32)  : i32 {
      %x = tt.load %p : tensor<2048x!tt.ptr<f32>, #flat>
      %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        tt.reduce.return %s : f32
      }) : (tensor<2048xf32, #flat>) -> f32
      %next = arith.addf %acc, %r : f32
      scf.yield %next : f32
    }
    tt.return %l : f32
  }

  // Once is no loop.
  // CHECK-LABEL: @once
  // CHECK-NOT: tt.reshape
  // CHECK: tt.return
  tt.func @once(%p: tensor<2048x!tt.ptr<f32>, #flat>, %init: f32) -> f32 {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %c1 step %c1 iter_args(%acc = %init) -> (f32)  : i32 {
      %x = tt.load %p : tensor<2048x!tt.ptr<f32>, #flat>
      %r = "tt.reduce"(%x) <{axis = 0 : i32}> ({
      ^bb0(%u: f32, %v: f32):
        %s = arith.addf %u, %v : f32
        tt.reduce.return %s : f32
      }) : (tensor<2048xf32, #flat>) -> f32
      %next = arith.addf %acc, %r : f32
      scf.yield %next : f32
    }
    tt.return %l : f32
  }
}
