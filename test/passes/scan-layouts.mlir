// Scans keep blocked layouts, which is all that Triton's lowering takes: what comes from a dot or from a
// reduction is converted. Elsewhere they follow their operand.
// RUN: %ttopt %s --convert-triton-to-tritongpu="target=cuda:80 num-warps=4" --tritongpu-accelerate-matmul --tritongpu-remove-layout-conversions | FileCheck %s

// CHECK-DAG: [[MMA:#.*]] = #ttg.nvidia_mma
// CHECK-LABEL: @product
// CHECK: [[D:%.*]] = tt.dot {{.*}} -> tensor<64x64xf32, [[MMA]]>
// CHECK: [[C:%.*]] = ttg.convert_layout [[D]] : tensor<64x64xf32, [[MMA]]> -> tensor<64x64xf32, [[B:#blocked.*]]>
// CHECK: "tt.scan"([[C]])
// CHECK: (tensor<64x64xf32, [[B]]>) -> tensor<64x64xf32, [[B]]>
tt.func public @product(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %p: tensor<64x64x!tt.ptr<f32>>) {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tt.dot %a, %b, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %s = "tt.scan"(%d) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.scan.return %z : f32
  }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  tt.store %p, %s : tensor<64x64x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: @sums
// CHECK: tt.reduce.return
// CHECK: -> tensor<64xf32, [[S:#ttg.slice<.*>]]>
// CHECK: [[C:%.*]] = ttg.convert_layout {{.*}} : tensor<64xf32, [[S]]> -> tensor<64xf32, [[B:#blocked.*]]>
// CHECK: "tt.scan"([[C]])
// CHECK: (tensor<64xf32, [[B]]>) -> tensor<64xf32, [[B]]>
tt.func public @sums(%a: tensor<64x64xf32>, %p: tensor<64x!tt.ptr<f32>>) {
  %r = "tt.reduce"(%a) <{axis = 1 : i32}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.reduce.return %z : f32
  }) : (tensor<64x64xf32>) -> tensor<64xf32>
  %s = "tt.scan"(%r) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.scan.return %z : f32
  }) : (tensor<64xf32>) -> tensor<64xf32>
  tt.store %p, %s : tensor<64x!tt.ptr<f32>>
  tt.return
}

// CHECK-LABEL: @follows
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func public @follows(%q: tensor<64x64x!tt.ptr<f32>>, %p: tensor<64x64x!tt.ptr<f32>>) {
  %a = tt.load %q : tensor<64x64x!tt.ptr<f32>>
  %s = "tt.scan"(%a) <{axis = 0 : i32, reverse = false}> ({
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    tt.scan.return %z : f32
  }) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  tt.store %p, %s : tensor<64x64x!tt.ptr<f32>>
  tt.return
}
