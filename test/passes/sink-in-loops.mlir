// RUN: %ttc %s --target cuda:90 --num-warps 8 --num-stages 1 --emit ttgir | FileCheck %s

// Three operands of a loop in registers, 160 a thread, two sums of 32 and what the loop carries are more than a thread has: the loads of
// two weights do not wait together.

// CHECK-LABEL: @gated
// CHECK:         scf.for
// CHECK:           tt.load {{.*}}256x128x!tt.ptr
// CHECK:           ttg.local_alloc {{.*}}256x128xbf16
// CHECK:           tt.load {{.*}}256x128x!tt.ptr
// CHECK:           ttng.warp_group_dot
tt.func public @gated(%x: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %u: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %v: !tt.ptr<bf16> {tt.divisibility = 16 : i32}, %out: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}, %k: i32 {tt.divisibility = 16 : i32}) {
  %c0 = arith.constant 0 : i32
  %step = arith.constant 256 : i32
  %zero = arith.constant dense<0.0> : tensor<64x128xf32>
  %r64 = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r128 = tt.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %r256 = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %m = tt.expand_dims %r64 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c = tt.expand_dims %r128 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %kr = tt.expand_dims %r256 {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %kc = tt.expand_dims %r256 {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %k0 = tt.splat %k : i32 -> tensor<64x1xi32>
  %k1 = tt.splat %k : i32 -> tensor<1x128xi32>
  %xr = arith.muli %m, %k0 : tensor<64x1xi32>
  %wc = arith.muli %c, %k1 : tensor<1x128xi32>
  %xrb = tt.broadcast %xr : tensor<64x1xi32> -> tensor<64x256xi32>
  %krb = tt.broadcast %kr : tensor<1x256xi32> -> tensor<64x256xi32>
  %xo = arith.addi %xrb, %krb : tensor<64x256xi32>
  %wcb = tt.broadcast %wc : tensor<1x128xi32> -> tensor<256x128xi32>
  %kcb = tt.broadcast %kc : tensor<256x1xi32> -> tensor<256x128xi32>
  %wo = arith.addi %wcb, %kcb : tensor<256x128xi32>
  %xs = tt.splat %x : !tt.ptr<bf16> -> tensor<64x256x!tt.ptr<bf16>>
  %us = tt.splat %u : !tt.ptr<bf16> -> tensor<256x128x!tt.ptr<bf16>>
  %vs = tt.splat %v : !tt.ptr<bf16> -> tensor<256x128x!tt.ptr<bf16>>
  %px = tt.addptr %xs, %xo : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
  %pu = tt.addptr %us, %wo : tensor<256x128x!tt.ptr<bf16>>, tensor<256x128xi32>
  %pv = tt.addptr %vs, %wo : tensor<256x128x!tt.ptr<bf16>>, tensor<256x128xi32>
  %sx = tt.splat %step : i32 -> tensor<64x256xi32>
  %sw = tt.splat %step : i32 -> tensor<256x128xi32>
  %r:5 = scf.for %i = %c0 to %k step %step iter_args(%a = %zero, %b = %zero, %qx = %px, %qu = %pu, %qv = %pv) -> (tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x256x!tt.ptr<bf16>>, tensor<256x128x!tt.ptr<bf16>>, tensor<256x128x!tt.ptr<bf16>>) : i32 {
    %lx = tt.load %qx : tensor<64x256x!tt.ptr<bf16>>
    %lu = tt.load %qu : tensor<256x128x!tt.ptr<bf16>>
    %lv = tt.load %qv : tensor<256x128x!tt.ptr<bf16>>
    %da = tt.dot %lx, %lu, %a : tensor<64x256xbf16> * tensor<256x128xbf16> -> tensor<64x128xf32>
    %db = tt.dot %lx, %lv, %b : tensor<64x256xbf16> * tensor<256x128xbf16> -> tensor<64x128xf32>
    %nx = tt.addptr %qx, %sx : tensor<64x256x!tt.ptr<bf16>>, tensor<64x256xi32>
    %nu = tt.addptr %qu, %sw : tensor<256x128x!tt.ptr<bf16>>, tensor<256x128xi32>
    %nv = tt.addptr %qv, %sw : tensor<256x128x!tt.ptr<bf16>>, tensor<256x128xi32>
    scf.yield %da, %db, %nx, %nu, %nv : tensor<64x128xf32>, tensor<64x128xf32>, tensor<64x256x!tt.ptr<bf16>>, tensor<256x128x!tt.ptr<bf16>>, tensor<256x128x!tt.ptr<bf16>>
  }
  %sum = arith.mulf %r#0, %r#1 : tensor<64x128xf32>
  %n0 = tt.splat %n : i32 -> tensor<64x1xi32>
  %orow = arith.muli %m, %n0 : tensor<64x1xi32>
  %orb = tt.broadcast %orow : tensor<64x1xi32> -> tensor<64x128xi32>
  %ocb = tt.broadcast %c : tensor<1x128xi32> -> tensor<64x128xi32>
  %oo = arith.addi %orb, %ocb : tensor<64x128xi32>
  %os = tt.splat %out : !tt.ptr<f32> -> tensor<64x128x!tt.ptr<f32>>
  %po = tt.addptr %os, %oo : tensor<64x128x!tt.ptr<f32>>, tensor<64x128xi32>
  tt.store %po, %sum : tensor<64x128x!tt.ptr<f32>>
  tt.return
}
