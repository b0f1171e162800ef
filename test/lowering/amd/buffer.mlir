// RUN: sed s/TARGET/gfx942/ %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,CDNA
// RUN: sed 's/TARGET/gfx1100/; s/= 64 : i32/= 32 : i32/; s/\[64\]/[32]/; s/1024x/512x/g; s/end = 1024/end = 512/' %s | %ttopt - --convert-triton-gpu-to-llvm --cse | FileCheck %s --check-prefixes=CHECK,RDNA

// Accesses that a pass has marked are buffer instructions: a descriptor of the base, and for lanes that do nothing an
// offset beyond its end.

#b = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [64], warpsPerCTA = [4], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 4 : i32, ttg.target = "hip:TARGET", "ttg.threads-per-warp" = 64 : i32} {

// CHECK-LABEL: llvm.func internal @access(
// CHECK-SAME:    %[[P:[^:]*]]: !llvm.ptr<1>
// CDNA-DAG:      %[[FLAGS:.*]] = llvm.mlir.constant(159744 : i32)
// RDNA-DAG:      %[[FLAGS:.*]] = llvm.mlir.constant(822243328 : i32)
// CHECK-DAG:     %[[BYTES:.*]] = llvm.mlir.constant(2147483647 : i64)
// CHECK:         %[[RSRC:.*]] = llvm.call_intrinsic "llvm.amdgcn.make.buffer.rsrc"(%[[P]], %{{.*}}, %[[BYTES]], %[[FLAGS]])
// CHECK:         %[[OUTSIDE:.*]] = llvm.mlir.constant(-2147483648 : i32)
// CHECK:         %[[AT:.*]] = llvm.select %[[M:.*]], %{{.*}}, %[[OUTSIDE]]
// CHECK:         %[[X:.*]] = llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.load"(%[[RSRC]], %[[AT]], %{{.*}}, %{{.*}}) : (!llvm.ptr<8>, i32, i32, i32) -> vector<4xi32>
// CHECK:         llvm.select %[[M]], %[[X]], %{{.*}} : i1, vector<4xi32>
// CHECK:         llvm.call_intrinsic "llvm.amdgcn.raw.ptr.buffer.store"({{.*}}) : (vector<4xi32>, !llvm.ptr<8>, i32, i32, i32) -> ()
// CHECK-NOT:     llvm.cond_br
// CHECK:         llvm.return
tt.func private @access(%p: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %n: i32 {tt.divisibility = 16 : i32}) {
  %one = arith.constant dense<1.0> : tensor<1024xf32, #b>
  %i = tt.make_range {end = 1024 : i32, start = 0 : i32} : tensor<1024xi32, #b>
  %limit = tt.splat %n : i32 -> tensor<1024xi32, #b>
  %m = arith.cmpi slt, %i, %limit : tensor<1024xi32, #b>
  %ps = tt.splat %p : !tt.ptr<f32> -> tensor<1024x!tt.ptr<f32>, #b>
  %pointers = tt.addptr %ps, %i : tensor<1024x!tt.ptr<f32>, #b>, tensor<1024xi32, #b>
  %x = tt.load %pointers, %m, %one {ttg.buffer} : tensor<1024x!tt.ptr<f32>, #b>
  tt.store %pointers, %x, %m {ttg.buffer} : tensor<1024x!tt.ptr<f32>, #b>
  tt.return
}
}
