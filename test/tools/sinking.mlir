// Sines branch for large numbers, to code with an array on the stack. The polynomial of the first element is computed before the
// branch of the second, not behind all branches, where it is used: two numbers would live until then in place of one.
// REQUIRES: nvptx, libdevice
// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s

// CHECK:     .entry turned(
// CHECK:     cvt.rni.{{.*}}s32.f32
// CHECK-NOT: cvt.rni.{{.*}}s32.f32
// CHECK:     0fB94D4153
// CHECK:     cvt.rni.{{.*}}s32.f32
// CHECK-NOT: cvt.rni.{{.*}}s32.f32
// CHECK:     0fB94D4153
tt.func public @turned(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32) {
  %zero = arith.constant 0 : i32
  %none = arith.cmpi sle, %n, %zero : i32
  cf.cond_br %none, ^bb1, ^bb2
^bb1:
  tt.return
^bb2:
  %range = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %at = tt.addptr %ps, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  %x = tt.load %at : tensor<1024x!tt.ptr<f32>>
  %sine = math.sin %x : tensor<1024xf32>
  %cosine = math.cos %x : tensor<1024xf32>
  %y = arith.mulf %sine, %cosine : tensor<1024xf32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>>
  %to = tt.addptr %qs, %range : tensor<1024x!tt.ptr<f32>>, tensor<1024xi32>
  tt.store %to, %y : tensor<1024x!tt.ptr<f32>>
  tt.return
}
