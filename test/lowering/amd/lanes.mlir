// RUN: sed 's/TARGET/gfx942/; s/LANES/64/g; s/LAST/64/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,CDNA
// RUN: sed 's/TARGET/gfx950/; s/LANES/64/g; s/LAST/64/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,CDNA4
// RUN: sed 's/TARGET/gfx1100/; s/LANES/32/g; s/LAST/32/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,RDNA

// What lanes exchange goes by DPP where there is a pattern for it, by permlane where the target has it, and through the
// crossbar of the LDS otherwise.

#line = #ttg.blocked<{sizePerThread = [1], threadsPerWarp = [LANES], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.shared = 0 : i32, ttg.target = "hip:TARGET", "ttg.threads-per-warp" = LANES : i32} {

// Lanes at distances 1, 2, 7 and 15 are those that DPP reaches by one pattern each (quad_perm, mirrors).
// CHECK-LABEL: llvm.func internal @sum(
// CDNA-COUNT-4:  llvm.call_intrinsic "llvm.amdgcn.update.dpp"
// CDNA-NOT:      update.dpp
// CDNA:          llvm.call_intrinsic "llvm.amdgcn.ds.swizzle"
// CDNA:          llvm.call_intrinsic "llvm.amdgcn.ds.bpermute"
// CDNA4-COUNT-4: llvm.call_intrinsic "llvm.amdgcn.update.dpp"
// CDNA4-NOT:     llvm.amdgcn.ds.
// CDNA4:         llvm.call_intrinsic "llvm.amdgcn.permlane16.swap"
// CDNA4:         llvm.call_intrinsic "llvm.amdgcn.permlane32.swap"
// CDNA4-NOT:     llvm.amdgcn.ds.
// RDNA-COUNT-4:  llvm.call_intrinsic "llvm.amdgcn.update.dpp"
// RDNA-NOT:      llvm.amdgcn.ds.
// RDNA:          llvm.call_intrinsic "llvm.amdgcn.permlanex16"
// CHECK:         llvm.return
tt.func private @sum(%x: tensor<LASTxf32, #line>) -> f32 {
  %s = "tt.reduce"(%x) <{axis = 0 : i32}> ({
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tt.reduce.return %c : f32
  }) : (tensor<LASTxf32, #line>) -> f32
  tt.return %s : f32
}
}
