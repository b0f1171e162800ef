// RUN: %ttopt %s --convert-triton-to-tritongpu="target=cuda:80 num-warps=2" --tritongpu-accelerate-matmul | FileCheck %s

// The rows of @attention's scores become a left operand, so its two warps divide rows: then no element changes warps. The
// dot that the last one adds to has the same layout, though it is in no chain itself: where the sums meet, they would be
// converted otherwise. So do dots whose results are added up.
// CHECK-DAG: #[[ROWS:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 1], instrShape = [16, 8]}>
// CHECK-DAG: #[[COLUMNS:.*]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 2], instrShape = [16, 8]}>
// CHECK-LABEL: @attention
// CHECK-COUNT-3: tt.dot {{.*}} -> tensor<64x64xf32, #[[ROWS]]>
tt.func @attention(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %h: tensor<64x64xf16>, %v: tensor<64x64xf16>, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %o = tt.dot %q, %h, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %s = tt.dot %q, %k, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %p = arith.truncf %s : tensor<64x64xf32> to tensor<64x64xf16>
  %r = tt.dot %p, %v, %o : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %r : tensor<64x64xf32>
}

// CHECK-LABEL: @added_up
// CHECK-COUNT-3: tt.dot {{.*}} -> tensor<64x64xf32, #[[ROWS]]>
tt.func @added_up(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %h: tensor<64x64xf16>, %v: tensor<64x64xf16>, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %o = tt.dot %q, %h, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %s = tt.dot %q, %k, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %t = arith.addf %o, %s : tensor<64x64xf32>
  %p = arith.truncf %t : tensor<64x64xf32> to tensor<64x64xf16>
  %r = tt.dot %p, %v, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %r : tensor<64x64xf32>
}

// Nothing says that warps should divide rows: they divide columns, and both ways read as much.
// CHECK-LABEL: @apart
// CHECK: tt.dot {{.*}} -> tensor<64x64xf32, #[[COLUMNS]]>
tt.func @apart(%q: tensor<64x64xf16>, %h: tensor<64x64xf16>, %zero: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %o = tt.dot %q, %h, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %o : tensor<64x64xf32>
}
