// RUN: %ttopt %s --split-input-file --allocate-shared-memory-nv --convert-triton-gpu-to-llvm --verify-diagnostics

// What tensor operations cannot do is an error at the operation.

#swizzled = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [0, 1]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @columns(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %s1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16, #swizzled>
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>
  // expected-error @below {{tensor operations write rows one after the other, without swizzle, but offset 1 is element [1, 0], not [0, 1]}}
  %t = amdg.async_tdm_copy_global_to_local %d into %m : !tt.tensordesc<64x64xf16, #swizzled> -> !ttg.memdesc<64x64xf16, #swizzled, #smem, mutable>
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @nan(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %s1 = arith.constant 1 : i64
  // expected-error @below {{tensor operations fill what is outside of a tensor with zeros, not with NaN}}
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] {padding = 2 : i32} : <f16>, <64x64xf16, #plain>
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @columns(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  // expected-error @below {{the last stride must be the constant 1}}
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s] : <f16>, <64x64xf16, #plain>
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
// expected-error @below {{on hip:gfx1250 a launcher passes no !tt.tensordesc<64x64xf16, #ttg.swizzled_shared}}
tt.func public @passed(%d: !tt.tensordesc<64x64xf16, #plain>) {
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
#smem = #ttg.shared_memory
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx1250", "ttg.threads-per-warp" = 32 : i32} {
tt.func public @hint(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %s1 = arith.constant 1 : i64
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16, #plain>
  %m = ttg.local_alloc : () -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  // expected-error @below {{copies that only some warps issue are not supported}}
  %t = amdg.async_tdm_copy_global_to_local %d into %m {warp_used_hint = 1 : i32} : !tt.tensordesc<64x64xf16, #plain> -> !ttg.memdesc<64x64xf16, #plain, #smem, mutable>
  tt.return
}
}

// -----

#plain = #ttg.swizzled_shared<{vec = 1, perPhase = 1, maxPhase = 1, order = [1, 0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx950", "ttg.threads-per-warp" = 64 : i32} {
tt.func public @other(%p: !tt.ptr<f16>, %n: i32, %s: i64) {
  %s1 = arith.constant 1 : i64
  // expected-error @below {{the target hip:gfx950 has no tensor data mover}}
  %d = tt.make_tensor_descriptor %p, [%n, %n], [%s, %s1] : <f16>, <64x64xf16, #plain>
  tt.return
}
}
