// Clamps to a constant and what is as far below zero, of numbers on all sides of it, infinite ones and zeros; NaN where it is to stay.
// REQUIRES: numpy
// RUN: %python_numpy -c "import numpy as n; x = n.random.default_rng(3).normal(0, 3, 1024).astype('f4'); x[:8] = [0, -0.0, n.inf, -n.inf, 2.5, -2.5, 3e38, -3e38]; z = x.copy(); z[8] = n.nan; n.save('%t.x.npy', x); n.save('%t.z.npy', z); n.save('%t.y.npy', n.stack([n.clip(x, -2.5, 2.5), n.clip(z, -2.5, 2.5)]).ravel())"
// RUN: %ttsim %s --target cuda:90 -q --arg x=%t.x.npy --arg z=%t.z.npy --arg y=f32[2048] --compare y=%t.y.npy
// RUN: %ttsim %s --target cuda:80 -q --arg x=%t.x.npy --arg z=%t.z.npy --arg y=f32[2048] --compare y=%t.y.npy
// RUN: %ttsim %s --target hip:gfx942 -q --arg x=%t.x.npy --arg z=%t.z.npy --arg y=f32[2048] --compare y=%t.y.npy
// RUN: %ttsim %s --target hip:gfx1100 -q --arg x=%t.x.npy --arg z=%t.z.npy --arg y=f32[2048] --compare y=%t.y.npy

tt.func public @k(%x: !tt.ptr<f32>, %z: !tt.ptr<f32>, %y: !tt.ptr<f32>) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %low = arith.constant dense<-2.5> : tensor<1024xf32>
  %high = arith.constant dense<2.5> : tensor<1024xf32>
  %n = arith.constant dense<1024> : tensor<1024xi32>
  %xs = tt.splat %x : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %zs = tt.splat %z : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %ys = tt.splat %y : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %xp = tt.addptr %xs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %zp = tt.addptr %zs, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %yp = tt.addptr %ys, %i : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %more = tt.addptr %yp, %n : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %a = tt.load %xp : tensor<1024x!tt.ptr<f32>>
  %b = tt.load %zp : tensor<1024x!tt.ptr<f32>>
  %c = tt.clampf %a, %low, %high, propagateNan = none : tensor<1024xf32>
  %d = tt.clampf %b, %low, %high, propagateNan = all : tensor<1024xf32>
  tt.store %yp, %c : tensor<1024x!tt.ptr<f32>>
  tt.store %more, %d : tensor<1024x!tt.ptr<f32>>
  tt.return
}
