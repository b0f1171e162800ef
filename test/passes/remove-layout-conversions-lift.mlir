// RUN: %ttopt %s -split-input-file --tritongpu-remove-layout-conversions | FileCheck %s

// Two values that are both wanted in another layout are computed there, from one conversion.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, "ttg.target" = "cuda:90"} {
// CHECK-LABEL: @parts
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[Y:.*]] = ttg.convert_layout %[[X]]
// CHECK-NEXT: arith.truncf %[[Y]]
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @parts(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #b>, %r: tensor<64x64x!tt.ptr<f32>, #b>) {
  %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
  %n = arith.truncf %x : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
  %big = arith.extf %n : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %small = arith.subf %x, %big : tensor<64x64xf32, #a>
  %0 = ttg.convert_layout %big : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  %1 = ttg.convert_layout %small : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %0 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.store %r, %1 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// Not where one of the uses wants the value where it is: then only the other is converted.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#b = #ttg.blocked<{sizePerThread = [4, 1], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [0, 1]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, "ttg.target" = "cuda:90"} {
// CHECK-LABEL: @one_part
// CHECK: %[[SMALL:.*]] = arith.subf
// CHECK: ttg.convert_layout %[[SMALL]]
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @one_part(%p: tensor<64x64x!tt.ptr<f32>, #a>, %q: tensor<64x64x!tt.ptr<f32>, #a>, %r: tensor<64x64x!tt.ptr<f32>, #b>) {
  %x = tt.load %p {isVolatile = true} : tensor<64x64x!tt.ptr<f32>, #a>
  %n = arith.truncf %x : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
  %big = arith.extf %n : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
  %small = arith.subf %x, %big : tensor<64x64xf32, #a>
  %1 = ttg.convert_layout %small : tensor<64x64xf32, #a> -> tensor<64x64xf32, #b>
  tt.store %q, %big : tensor<64x64x!tt.ptr<f32>, #a>
  tt.store %r, %1 : tensor<64x64x!tt.ptr<f32>, #b>
  tt.return
}
}

// -----

// Pairs of 4 bits move as bytes and are unpacked where they are used.
#a = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#a2 = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [4, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#s = #ttg.blocked<{sizePerThread = [8, 8], threadsPerWarp = [8, 4], warpsPerCTA = [1, 4], order = [1, 0]}>
module attributes {"ttg.num-warps" = 4 : i32, "ttg.threads-per-warp" = 32 : i32, "ttg.target" = "cuda:90"} {
// CHECK-LABEL: @unpack
// CHECK: %[[X:.*]] = tt.load
// CHECK-NEXT: %[[Y:.*]] = ttg.convert_layout %[[X]] : tensor<128x128xi8
// CHECK-NEXT: ttg.fp4_to_fp %[[Y]]
// CHECK-NOT: ttg.convert_layout
// CHECK: tt.return
tt.func @unpack(%p: tensor<128x128x!tt.ptr<i8>, #a>, %q: tensor<128x256x!tt.ptr<bf16>, #s>) {
  %x = tt.load %p {isVolatile = true} : tensor<128x128x!tt.ptr<i8>, #a>
  %n = ttg.fp4_to_fp %x {axis = 1 : i32} : tensor<128x128xi8, #a> -> tensor<128x256xbf16, #a2>
  %0 = ttg.convert_layout %n : tensor<128x256xbf16, #a2> -> tensor<128x256xbf16, #s>
  tt.store %q, %0 : tensor<128x256x!tt.ptr<bf16>, #s>
  tt.return
}
}
