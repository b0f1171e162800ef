// RUN: sed 's/TARGET/gfx942/; s/LANES/64/g; s/ROWS/8/; s/SIZE/256/g' %s | %ttopt - --tritongpu-remove-layout-conversions | FileCheck %s
// RUN: sed 's/TARGET/gfx1100/; s/LANES/32/g; s/ROWS/4/; s/SIZE/128/g' %s | %ttopt - --tritongpu-remove-layout-conversions | FileCheck %s

// A mask that becomes a branch around an access costs: what few accesses load is exchanged by threads, not loaded by many. A mask
// of a buffer instruction is in its offsets.

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [LANES], warpsPerCTA = [4], order = [0]}>
#tile = #ttg.blocked<{sizePerThread = [1, 8], threadsPerWarp = [ROWS, 8], warpsPerCTA = [4, 1], order = [1, 0]}>
#rows = #ttg.slice<{dim = 1, parent = #tile}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:TARGET", "ttg.threads-per-warp" = LANES : i32} {
tt.func private @use(tensor<SIZExf32, #rows>)

// CHECK-LABEL: @whole
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @whole(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %begin: i32 {tt.divisibility = 16 : i32}, %n: i32) {
  %at = tt.make_range {end = SIZE : i32, start = 0 : i32} : tensor<SIZExi32, #line>
  %begins = tt.splat %begin : i32 -> tensor<SIZExi32, #line>
  %offsets = arith.subi %at, %begins : tensor<SIZExi32, #line>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<SIZEx!tt.ptr<f32>, #line>
  %ptrs = tt.addptr %base, %offsets : tensor<SIZEx!tt.ptr<f32>, #line>, tensor<SIZExi32, #line>
  %x = tt.load %ptrs : tensor<SIZEx!tt.ptr<f32>, #line>
  %y = ttg.convert_layout %x : tensor<SIZExf32, #line> -> tensor<SIZExf32, #rows>
  tt.call @use(%y) : (tensor<SIZExf32, #rows>) -> ()
  tt.return
}

// CHECK-LABEL: @masked(
// CHECK: %[[X:.*]] = tt.load
// CHECK: ttg.convert_layout %[[X]]
// CHECK: tt.return
tt.func @masked(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %begin: i32 {tt.divisibility = 16 : i32}, %n: i32) {
  %at = tt.make_range {end = SIZE : i32, start = 0 : i32} : tensor<SIZExi32, #line>
  %begins = tt.splat %begin : i32 -> tensor<SIZExi32, #line>
  %offsets = arith.subi %at, %begins : tensor<SIZExi32, #line>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<SIZEx!tt.ptr<f32>, #line>
  %ptrs = tt.addptr %base, %offsets : tensor<SIZEx!tt.ptr<f32>, #line>, tensor<SIZExi32, #line>
  %end = tt.splat %n : i32 -> tensor<SIZExi32, #line>
  %mask = arith.cmpi slt, %at, %end : tensor<SIZExi32, #line>
  %x = tt.load %ptrs, %mask : tensor<SIZEx!tt.ptr<f32>, #line>
  %y = ttg.convert_layout %x : tensor<SIZExf32, #line> -> tensor<SIZExf32, #rows>
  tt.call @use(%y) : (tensor<SIZExf32, #rows>) -> ()
  tt.return
}

// CHECK-LABEL: @in_buffer
// CHECK-NOT: convert_layout
// CHECK: tt.return
tt.func @in_buffer(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32, tt.pointer_range = 32 : i32}, %begin: i32 {tt.divisibility = 16 : i32}, %n: i32) {
  %at = tt.make_range {end = SIZE : i32, start = 0 : i32} : tensor<SIZExi32, #line>
  %begins = tt.splat %begin : i32 -> tensor<SIZExi32, #line>
  %offsets = arith.subi %at, %begins : tensor<SIZExi32, #line>
  %base = tt.splat %p : !tt.ptr<f32> -> tensor<SIZEx!tt.ptr<f32>, #line>
  %ptrs = tt.addptr %base, %offsets : tensor<SIZEx!tt.ptr<f32>, #line>, tensor<SIZExi32, #line>
  %end = tt.splat %n : i32 -> tensor<SIZExi32, #line>
  %mask = arith.cmpi slt, %at, %end : tensor<SIZExi32, #line>
  %x = tt.load %ptrs, %mask : tensor<SIZEx!tt.ptr<f32>, #line>
  %y = ttg.convert_layout %x : tensor<SIZExf32, #line> -> tensor<SIZExf32, #rows>
  tt.call @use(%y) : (tensor<SIZExf32, #rows>) -> ()
  tt.return
}
}
