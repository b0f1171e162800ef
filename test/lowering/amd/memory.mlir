// RUN: %ttopt %s --convert-triton-gpu-to-llvm --cse | FileCheck %s

// Masked accesses have a basic block of their own, in which the lanes that take part are; others get `other`, or zero.

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:gfx942", "ttg.threads-per-warp" = 64 : i32} {

// CHECK:       #[[TAG:.*]] = #llvm.mmra_tag<"amdgpu-synchronize-as":"local">

// The kernel ABI: calling convention, CPU, and the size of a workgroup.
// CHECK-LABEL: llvm.func amdgpu_kernelcc @copy(
// CHECK-SAME:    passthrough = {{\[}}["target-cpu", "gfx942"], ["amdgpu-flat-work-group-size", "256,256"]
// Lane and wave: the wave is the same for all lanes, and LLVM is told so.
// CHECK:         %[[ID:.*]] = llvm.call_intrinsic "llvm.amdgcn.workitem.id.x"()
// CHECK:         llvm.lshr
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.readfirstlane"
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<4xi32>, !llvm.ptr<1>
tt.func public @copy(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %to: !tt.ptr<f32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %fp = tt.addptr %f, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %t = tt.splat %to : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %tp = tt.addptr %t, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %fp : tensor<1024x!tt.ptr<f32>, #b>
  tt.store %tp, %x : tensor<1024x!tt.ptr<f32>, #b>
  tt.return
}

// CHECK-LABEL: llvm.func internal @masked(
// CHECK:         %[[ZERO:.*]] = llvm.mlir.zero : vector<4xi32>
// CHECK:         llvm.cond_br %{{.*}}, ^[[ACT:bb[0-9]+]], ^[[DONE:bb[0-9]+]](%[[ZERO]] : vector<4xi32>)
// CHECK:       ^[[ACT]]:
// CHECK:         %[[X:.*]] = llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xi32>
// CHECK:         llvm.br ^[[DONE]](%[[X]] : vector<4xi32>)
// CHECK:       ^[[DONE]](%{{.*}}: vector<4xi32>):
tt.func private @masked(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) -> tensor<1024xf32, #b> {
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %fp = tt.addptr %f, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %limit = tt.splat %n : i32 -> tensor<1024xi32, #b>
  %m = arith.cmpi slt, %i, %limit : tensor<1024xi32, #b>
  %x = tt.load %fp, %m : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %x : tensor<1024xf32, #b>
}

// Streaming accesses are the first to leave the caches; `.cv` goes to memory.
// CHECK-LABEL: llvm.func internal @hints(
// CHECK:         llvm.load %{{.*}} {alignment = 16 : i64, nontemporal}
// CHECK:         llvm.load volatile %{{.*}}
tt.func private @hints(%from: !tt.ptr<f32> {tt.divisibility = 16 : i32}) -> (tensor<1024xf32, #b>, tensor<1024xf32, #b>) {
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %f = tt.splat %from : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %p = tt.addptr %f, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = none, eviction_policy = evict_first>} : tensor<1024x!tt.ptr<f32>, #b>
  %y = tt.load %p {cachePolicy = #tt.cache_policy<cache_modifier = cv, eviction_policy = evict_normal>} : tensor<1024x!tt.ptr<f32>, #b>
  tt.return %x, %y : tensor<1024xf32, #b>, tensor<1024xf32, #b>
}

// The number of programs is among the arguments that the runtime adds.
// CHECK-LABEL: llvm.func internal @grid(
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.workgroup.id.y"()
// CHECK:         %[[ARGS:.*]] = llvm.call_intrinsic "llvm.amdgcn.implicitarg.ptr"() : () -> !llvm.ptr<4>
// CHECK:         %[[AT:.*]] = llvm.getelementptr %[[ARGS]]
// CHECK:         llvm.load %[[AT]] {{.*}}: !llvm.ptr<4> -> i32
tt.func private @grid() -> (i32, i32) {
  %id = tt.get_program_id y : i32
  %n = tt.get_num_programs z : i32
  tt.return %id, %n : i32, i32
}

// A barrier for the LDS does not wait for global memory.
// CHECK-LABEL: llvm.func internal @barriers(
// CHECK:         llvm.fence syncscope("workgroup") release {llvm.mmra = #[[TAG]]}
// CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.s.barrier"()
// CHECK-NEXT:    llvm.fence syncscope("workgroup") acquire {llvm.mmra = #[[TAG]]}
// CHECK:         llvm.fence syncscope("workgroup") release{{$}}
// CHECK-NEXT:    llvm.call_intrinsic "llvm.amdgcn.s.barrier"()
// CHECK-NEXT:    llvm.fence syncscope("workgroup") acquire{{$}}
// CHECK-NOT:     s.barrier
tt.func private @barriers() {
  ttg.barrier local
  ttg.barrier local|global_read|global_write
  ttg.barrier local
  tt.return
}
}
