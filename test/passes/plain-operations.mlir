// RUN: %ttopt %s --tritonamdgpu-plain-operations --split-input-file | FileCheck %s

// Operations of the dialect amdg become those of tt and ttg that do the same.

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
#s = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// Accesses to a base and offsets are marked: their offsets are known to fit.
// CHECK-LABEL: @accesses(
// CHECK-SAME:    %[[P:[^:]*]]: !tt.ptr<f32>, %[[Q:[^:]*]]: !tt.ptr<i32>, %[[I:[^:]*]]: tensor<1024xi32, #blocked>, %[[M:[^:]*]]: tensor<1024xi1, #blocked>, %[[X:[^:]*]]: tensor<1024xf32, #blocked>, %[[N:[^:]*]]: i32)
// CHECK:         %[[PS:.*]] = tt.splat %[[P]] : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK:         %[[AT:.*]] = tt.addptr %[[PS]], %[[I]]
// CHECK:         %[[Y:.*]] = tt.load %[[AT]], %[[M]], %[[X]] {cachePolicy = {{.*}}, ttg.buffer}
// CHECK:         %[[AT:.*]] = tt.addptr %{{.*}}, %[[I]]
// CHECK:         tt.load %[[AT]] {ttg.buffer}
// CHECK:         %[[AT:.*]] = tt.addptr %{{.*}}, %[[I]]
// CHECK:         tt.store %[[AT]], %[[Y]], %[[M]] {ttg.buffer}
// CHECK-NOT:     amdg.
// CHECK:         tt.return
tt.func @accesses(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %i: tensor<1024xi32, #b>, %m: tensor<1024xi1, #b>, %x: tensor<1024xf32, #b>, %n: i32) -> tensor<1024xf32, #b> {
  %y = amdg.buffer_load %p[%i], %m, %x stride = %n {cachePolicy = #tt.cache_policy<cache_modifier = cg, eviction_policy = evict_normal>, contiguity = 4 : i32} : !tt.ptr<f32> -> tensor<1024xf32, #b>
  %z = amdg.buffer_load %p[%i] : !tt.ptr<f32> -> tensor<1024xf32, #b>
  amdg.buffer_store %y, %p[%i], %m stride = %n : !tt.ptr<f32> -> tensor<1024xf32, #b>
  tt.return %z : tensor<1024xf32, #b>
}

// Loads to shared memory are copies.
// CHECK-LABEL: @to_local(
// CHECK:         %[[AT:.*]] = tt.addptr %{{.*}}, %{{.*}} : tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK:         ttg.async_copy_global_to_local %[[AT]], %{{[^ ]*}} mask %{{[^ ]*}} other %{{[^ ]*}} {contiguity = 4 : i32, ttg.buffer} : tensor<1024x!tt.ptr<f32>, #blocked> -> <1024xf32, #shared, #smem, mutable>
// CHECK-NOT:     amdg.
// CHECK:         tt.return
tt.func @to_local(%p: !tt.ptr<f32>, %i: tensor<1024xi32, #b>, %m: tensor<1024xi1, #b>, %x: tensor<1024xf32, #b>, %to: !ttg.memdesc<1024xf32, #s, #smem, mutable>) -> !ttg.async.token {
  %t = amdg.buffer_load_to_local %p[%i] mask = %m other = %x into %to {contiguity = 4 : i32} : !tt.ptr<f32>[tensor<1024xi32, #b>] tensor<1024xf32, #b> -> <1024xf32, #s, #smem, mutable>
  tt.return %t : !ttg.async.token
}

// Atomic ones have pointers, and what they were asked for.
// CHECK-LABEL: @atomics(
// CHECK:         tt.atomic_rmw fadd, relaxed, gpu, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<1024x!tt.ptr<f32>, #blocked>
// CHECK:         tt.atomic_cas acq_rel, cta, %{{.*}}, %{{.*}}, %{{.*}} : (tensor<1024x!tt.ptr<i32>, #blocked>
// CHECK:         tt.return
tt.func @atomics(%p: !tt.ptr<f32>, %q: !tt.ptr<i32>, %i: tensor<1024xi32, #b>, %m: tensor<1024xi1, #b>, %x: tensor<1024xf32, #b>) -> (tensor<1024xf32, #b>, tensor<1024xi32, #b>) {
  %old = amdg.buffer_atomic_rmw fadd, relaxed, gpu, %x, %p[%i], %m : !tt.ptr<f32> -> tensor<1024xf32, #b>
  %was = amdg.buffer_atomic_cas acq_rel, cta, %i, %i, %q[%i] : !tt.ptr<i32> -> tensor<1024xi32, #b>
  tt.return %old, %was : tensor<1024xf32, #b>, tensor<1024xi32, #b>
}

// A transposition within threads is a conversion.
// CHECK-LABEL: @transpose(
// CHECK:         ttg.convert_layout %{{.*}} : tensor<64x128xf16, #blocked1> -> tensor<64x128xf16, #linear>
// CHECK-NOT:     amdg.
// CHECK:         tt.return
tt.func @transpose(%x: tensor<64x128xf16, #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>>) -> tensor<64x128xf16, #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]], block = []}>> {
  %y = amdg.in_thread_transpose %x : tensor<64x128xf16, #ttg.blocked<{sizePerThread = [4, 8], threadsPerWarp = [4, 16], warpsPerCTA = [4, 1], order = [1, 0]}>> -> tensor<64x128xf16, #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]], block = []}>>
  tt.return %y : tensor<64x128xf16, #ttg.linear<{register = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [4, 0], [8, 0]], warp = [[16, 0], [32, 0]], block = []}>>
}
}

// -----

#mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [32, 32, 8], isTransposed = true}>
#a = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>
#packed = #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// bf16 has the range of scales, f16 has not.
// CHECK-LABEL: @scaled(
// CHECK:         %[[W:.*]] = tt.fp_to_fp %{{.*}} : tensor<128x64xf8E4M3FN, {{.*}} -> tensor<128x64xbf16,
// CHECK:         arith.mulf %[[W]], %{{.*}} : tensor<128x64xbf16,
// CHECK:         %[[W:.*]] = ttg.fp4_to_fp %{{.*}} {axis = 1 : i32}
// CHECK:         %[[X:.*]] = arith.extf %[[W]] : tensor<128x64xf16, {{.*}} to tensor<128x64xf32,
// CHECK:         %[[S:.*]] = arith.extf %{{.*}} : tensor<128x64xbf16, {{.*}} to tensor<128x64xf32,
// CHECK:         %[[Y:.*]] = arith.mulf %[[X]], %[[S]]
// CHECK:         arith.truncf %[[Y]] : tensor<128x64xf32, {{.*}} to tensor<128x64xf16,
// CHECK:         tt.return
tt.func @scaled(%x: tensor<128x64xf8E4M3FN, #a>, %p: tensor<128x32xi8, #packed>, %s: tensor<128x64xbf16, #a>) -> (tensor<128x64xbf16, #a>, tensor<128x64xf16, #a>) {
  %y = amdg.scaled_upcast_fp8 %x scale %s : tensor<128x64xf8E4M3FN, #a>, tensor<128x64xbf16, #a> -> tensor<128x64xbf16, #a>
  %z = amdg.scaled_upcast_fp4 %p scale %s {axis = 1 : i32} : tensor<128x32xi8, #packed>, tensor<128x64xbf16, #a> -> tensor<128x64xf16, #a>
  tt.return %y, %z : tensor<128x64xbf16, #a>, tensor<128x64xf16, #a>
}
}
