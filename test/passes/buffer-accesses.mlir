// RUN: %ttopt %s --tritonamdgpu-buffer-accesses --cse | FileCheck %s
// RUN: sed s/hip:gfx942/cuda:90/ %s | sed 's/threads-per-warp" = 64/threads-per-warp" = 32/; s/threadsPerWarp = \[64\]/threadsPerWarp = [32]/; s/threadsPerWarp = \[4, 16\]/threadsPerWarp = [2, 16]/' | %ttopt - --tritonamdgpu-buffer-accesses | FileCheck %s --check-prefix=NONE

// Where offsets that differ between threads lie within two gibibytes, pointers are a scalar base and these offsets.
// NONE-NOT: ttg.buffer

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#b2 = #ttg.blocked<{sizePerThread = [1, 4], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>
#row = #ttg.slice<{dim = 1, parent = #b2}>
#column = #ttg.slice<{dim = 0, parent = #b2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: tt.func public @line(
// CHECK-SAME:    %[[P:[^:]*]]: !tt.ptr<f32>
// CHECK:         %[[START:.*]] = arith.muli %{{.*}}, %{{.*}} : i32
// CHECK:         %[[I:.*]] = tt.make_range
// CHECK:         %[[BASE:.*]] = tt.addptr %[[P]], %[[START]] : !tt.ptr<f32>, i32
// CHECK:         %[[BASES:.*]] = tt.splat %[[BASE]]
// CHECK:         %[[POINTERS:.*]] = tt.addptr %[[BASES]], %[[I]]
// CHECK:         tt.load %[[POINTERS]], %{{.*}} {ttg.buffer}
tt.func public @line(%p: !tt.ptr<f32>, %n: i32) -> tensor<1024xf32, #b> {
  %c = arith.constant 1024 : i32
  %id = tt.get_program_id x : i32
  %start = arith.muli %id, %c : i32
  %s = tt.splat %start : i32 -> tensor<1024xi32, #b>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %at = arith.addi %s, %i : tensor<1024xi32, #b>
  %limit = tt.splat %n : i32 -> tensor<1024xi32, #b>
  %m = arith.cmpi slt, %at, %limit : tensor<1024xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %pointers = tt.addptr %ps, %at : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %pointers, %m : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %x : tensor<1024xf32, #b>
}

// Rows of a known stride; their part is broadcast as it was.
// CHECK-LABEL: tt.func public @tile(
// CHECK-DAG:     %[[COLUMNS:.*]] = tt.broadcast %{{.*}} : tensor<1x64xi32
// CHECK-DAG:     %[[ROWS:.*]] = tt.broadcast %{{.*}} : tensor<16x1xi32
// CHECK:         arith.addi %[[ROWS]], %[[COLUMNS]]
// CHECK:         tt.store {{.*}} {ttg.buffer}
tt.func public @tile(%p: !tt.ptr<f16>, %x: tensor<16x64xf16, #b2>) {
  %stride = arith.constant dense<4096> : tensor<16x1xi32, #b2>
  %r = tt.make_range {end = 16 : i32, start = 0 : i32} : tensor<16xi32, #row>
  %rows = tt.expand_dims %r {axis = 1 : i32} : tensor<16xi32, #row> -> tensor<16x1xi32, #b2>
  %down = arith.muli %rows, %stride : tensor<16x1xi32, #b2>
  %c = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32, #column>
  %columns = tt.expand_dims %c {axis = 0 : i32} : tensor<64xi32, #column> -> tensor<1x64xi32, #b2>
  %across = tt.broadcast %columns : tensor<1x64xi32, #b2> -> tensor<16x64xi32, #b2>
  %ps = tt.splat %p : !tt.ptr<f16> -> tensor<16x1x!tt.ptr<f16>, #b2>
  %starts = tt.addptr %ps, %down : tensor<16x1x!tt.ptr<f16>, #b2>, tensor<16x1xi32, #b2>
  %all = tt.broadcast %starts : tensor<16x1x!tt.ptr<f16>, #b2> -> tensor<16x64x!tt.ptr<f16>, #b2>
  %pointers = tt.addptr %all, %across : tensor<16x64x!tt.ptr<f16>, #b2>, tensor<16x64xi32, #b2>
  tt.store %pointers, %x : tensor<16x64x!tt.ptr<f16>, #b2>
  tt.return
}

// What may be negative, too far, unknown, or counted from an address that was loaded stays as it is; so does a volatile
// access, and a product that may wrap around.
// CHECK-LABEL: tt.func public @others(
// CHECK-NOT:     ttg.buffer
// CHECK:         tt.return
tt.func public @others(%p: !tt.ptr<f32>, %pp: !tt.ptr<i64>, %k: tensor<1024xi32, #b>) -> (tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>) {
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %minus = arith.constant dense<-1> : tensor<1024xi32, #b>
  %large = arith.constant dense<525312> : tensor<1024xi32, #b>
  %huge = arith.constant dense<4194304> : tensor<1024xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %before = arith.addi %i, %minus : tensor<1024xi32, #b>
  %a = tt.addptr %ps, %before : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %la = tt.load %a : tensor<1024x!tt.ptr<f32>, #b>
  %far = arith.muli %i, %large : tensor<1024xi32, #b>
  %b = tt.addptr %ps, %far : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %lb = tt.load %b : tensor<1024x!tt.ptr<f32>, #b>
  %wraps = arith.muli %i, %huge : tensor<1024xi32, #b>
  %c = tt.addptr %ps, %wraps : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %lc = tt.load %c : tensor<1024x!tt.ptr<f32>, #b>
  %d = tt.addptr %ps, %k : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %ld = tt.load %d : tensor<1024x!tt.ptr<f32>, #b>
  %w = tt.load %pp : !tt.ptr<i64>
  %q = tt.int_to_ptr %w : i64 -> !tt.ptr<f32>
  %qs = tt.splat %q : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %e = tt.addptr %qs, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %le = tt.load %e : tensor<1024x!tt.ptr<f32>, #b>
  %v = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %lv = tt.load %v {isVolatile = true} : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %la, %lb, %lc, %ld, %le, %lv : tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>, tensor<1024xf32, #b>
}
}
