// The cosine of a double calls a function for large numbers. The polynomial of the first element is computed before the call for the
// second one, not behind all calls, where it is used: its six coefficients would live until then in place of one number.
// REQUIRES: nvptx, libdevice
// RUN: %ttc %s --target cuda:90 --num-warps 4 --emit ptx | FileCheck %s

// CHECK:     .entry turned(
// CHECK:     call.uni {{.*}}__internal_trig_reduction_slowpathd
// CHECK:     __cudart_sin_cos_coeffs
// CHECK-NOT: call.uni
// CHECK:     ld.global.nc{{.*}}.b64 {{.*}}[[LAST:%rd[0-9]+]]{{}?}}, [{{.*}}+32];
// CHECK-NOT: call.uni
// CHECK:     fma.rn.f64 {{.*}}, [[LAST]];
// CHECK:     call.uni {{.*}}__internal_trig_reduction_slowpathd
tt.func public @turned(%p: !tt.ptr<f64> {tt.divisibility = 16 : i32}, %q: !tt.ptr<f64> {tt.divisibility = 16 : i32}) {
  %range = tt.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %ps = tt.splat %p : !tt.ptr<f64> -> tensor<256x!tt.ptr<f64>>
  %at = tt.addptr %ps, %range : tensor<256x!tt.ptr<f64>>, tensor<256xi32>
  %x = tt.load %at : tensor<256x!tt.ptr<f64>>
  %y = math.cos %x : tensor<256xf64>
  %z = arith.mulf %y, %x : tensor<256xf64>
  %qs = tt.splat %q : !tt.ptr<f64> -> tensor<256x!tt.ptr<f64>>
  %to = tt.addptr %qs, %range : tensor<256x!tt.ptr<f64>>, tensor<256xi32>
  tt.store %to, %z : tensor<256x!tt.ptr<f64>>
  tt.return
}
