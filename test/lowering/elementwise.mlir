// RUN: %ttopt %s --convert-triton-gpu-to-llvm | FileCheck %s
// RUN: sed s/cuda:90/cuda:80/ %s | %ttopt - --convert-triton-gpu-to-llvm | FileCheck %s

#b = #ttg.blocked<{sizePerThread = [2], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
#b4 = #ttg.blocked<{sizePerThread = [4], threadsPerWarp = [32], warpsPerCTA = [1], order = [0]}>
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {

// Multiplications and additions may be contracted, as Triton's are.
// CHECK-LABEL: llvm.func internal @multiply_add(
// CHECK-SAME:    %[[X0:[^:]*]]: f32, %[[X1:[^:]*]]: f32, %[[Y0:[^:]*]]: f32, %[[Y1:[^:]*]]: f32)
// CHECK:         %[[M0:.*]] = llvm.fmul %[[X0]], %[[Y0]] {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT:    %[[M1:.*]] = llvm.fmul %[[X1]], %[[Y1]] {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT:    llvm.fadd %[[M0]], %[[X0]] {fastmathFlags = #llvm.fastmath<contract>} : f32
// CHECK-NEXT:    llvm.fadd %[[M1]], %[[X1]] {fastmathFlags = #llvm.fastmath<contract>} : f32
tt.func private @multiply_add(%x: tensor<64xf32, #b>, %y: tensor<64xf32, #b>) -> tensor<64xf32, #b> {
  %0 = arith.mulf %x, %y : tensor<64xf32, #b>
  %1 = arith.addf %0, %x : tensor<64xf32, #b>
  tt.return %1 : tensor<64xf32, #b>
}

// What is the same in all registers is computed once.
// CHECK-LABEL: llvm.func internal @splat(
// CHECK-COUNT-1: llvm.fmul
// CHECK-NOT:     llvm.fmul
// CHECK-COUNT-2: llvm.fadd
// CHECK:         llvm.return
tt.func private @splat(%x: f32, %y: tensor<64xf32, #b>) -> tensor<64xf32, #b> {
  %s = tt.splat %x : f32 -> tensor<64xf32, #b>
  %0 = arith.mulf %s, %s : tensor<64xf32, #b>
  %1 = arith.addf %0, %y : tensor<64xf32, #b>
  tt.return %1 : tensor<64xf32, #b>
}

// Comparisons keep their predicates, and a scalar condition serves all registers.
// CHECK-LABEL: llvm.func internal @select(
// CHECK-SAME:    %[[C:[^:]*]]: i1,
// CHECK-COUNT-2: llvm.fcmp "uge" %{{.*}}, %{{.*}} : f32
// CHECK-COUNT-2: llvm.icmp "ule" %{{.*}}, %{{.*}} : i32
// CHECK-COUNT-2: llvm.select %[[C]], %{{.*}}, %{{.*}} : i1, f32
tt.func private @select(%c: i1, %x: tensor<64xf32, #b>, %y: tensor<64xf32, #b>, %i: tensor<64xi32, #b>, %j: tensor<64xi32, #b>) -> (tensor<64xi1, #b>, tensor<64xi1, #b>, tensor<64xf32, #b>) {
  %0 = arith.cmpf uge, %x, %y : tensor<64xf32, #b>
  %1 = arith.cmpi ule, %i, %j : tensor<64xi32, #b>
  %2 = arith.select %c, %x, %y : tensor<64xf32, #b>
  tt.return %0, %1, %2 : tensor<64xi1, #b>, tensor<64xi1, #b>, tensor<64xf32, #b>
}

// Functions: instructions where they are accurate enough, libdevice otherwise;
// halves go through singles.
// CHECK-LABEL: llvm.func internal @functions(
// CHECK:         llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz{{.*}}"
// CHECK:         llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK:         llvm.fdiv
// CHECK:         llvm.call @__nv_sin(%{{.*}}) : (f64) -> f64
// CHECK:         llvm.fpext %{{.*}} : f16 to f32
// CHECK:         llvm.fptrunc %{{.*}} : f32 to f16
tt.func private @functions(%x: f32, %d: f64, %h: f16) -> (f32, f32, f32, f64, f16) {
  %0 = math.exp2 %x : f32
  %1 = arith.divf %x, %0 : f32
  %2 = tt.precise_divf %x, %1 : f32
  %3 = math.sin %d : f64
  %4 = math.sqrt %h : f16
  tt.return %0, %1, %2, %3, %4 : f32, f32, f32, f64, f16
}

// Four bytes to a 32-bit register, and back.
// CHECK-LABEL: llvm.func internal @bytes_in_assembly(
// CHECK-SAME:    %[[A:[^:]*]]: i8, %[[B:[^:]*]]: i8, %[[C:[^:]*]]: i8, %[[D:[^:]*]]: i8)
// CHECK:         %[[V0:.*]] = llvm.insertelement %[[A]], %{{.*}}[%{{.*}} : i32] : vector<4xi8>
// CHECK:         %[[V1:.*]] = llvm.insertelement %[[B]], %[[V0]]
// CHECK:         %[[V2:.*]] = llvm.insertelement %[[C]], %[[V1]]
// CHECK:         %[[V3:.*]] = llvm.insertelement %[[D]], %[[V2]]
// CHECK:         %[[WORD:.*]] = llvm.bitcast %[[V3]] : vector<4xi8> to i32
// CHECK-NEXT:    %[[OUT:.*]] = llvm.inline_asm "not.b32 $0, $1;", "=r,r" %[[WORD]] : (i32) -> i32
// CHECK-NEXT:    llvm.bitcast %[[OUT]] : i32 to vector<4xi8>
// CHECK-COUNT-4: llvm.extractelement
tt.func private @bytes_in_assembly(%x: tensor<128xi8, #b4>) -> tensor<128xi8, #b4> {
  %0 = tt.elementwise_inline_asm "not.b32 $0, $1;" {constraints = "=r,r", packed_element = 4 : i32, pure = true} %x : tensor<128xi8, #b4> -> tensor<128xi8, #b4>
  tt.return %0 : tensor<128xi8, #b4>
}

// Assembly with effects is marked so, and may have two results.
// CHECK-LABEL: llvm.func internal @two_results(
// CHECK-COUNT-2: llvm.inline_asm has_side_effects "mov.b32 $0, $2; mov.b32 $1, $2;", "=r,=r,r" %{{.*}} : (i32) -> !llvm.struct<(i32, i32)>
tt.func private @two_results(%x: tensor<64xi32, #b>) -> (tensor<64xi32, #b>, tensor<64xi32, #b>) {
  %0:2 = tt.elementwise_inline_asm "mov.b32 $0, $2; mov.b32 $1, $2;" {constraints = "=r,=r,r", packed_element = 1 : i32, pure = false} %x : tensor<64xi32, #b> -> tensor<64xi32, #b>, tensor<64xi32, #b>
  tt.return %0#0, %0#1 : tensor<64xi32, #b>, tensor<64xi32, #b>
}

// A scalar function is put in for each register, with its control flow.
// CHECK-LABEL: llvm.func internal @mapped(
// CHECK-SAME:    %[[X0:[^:]*]]: i32, %[[X1:[^:]*]]: i32, %[[Y0:[^:]*]]: i32, %[[Y1:[^:]*]]: i32)
// CHECK-DAG:     llvm.icmp "slt" %[[X0]], %[[Y0]] : i32
// CHECK-DAG:     llvm.cond_br %{{.*}}, ^{{.*}}(%[[X0]] : i32), ^{{.*}}(%[[Y0]] : i32)
// CHECK-DAG:     llvm.icmp "slt" %[[X1]], %[[Y1]] : i32
// CHECK-DAG:     llvm.cond_br %{{.*}}, ^{{.*}}(%[[X1]] : i32), ^{{.*}}(%[[Y1]] : i32)
tt.func private @mapped(%x: tensor<64xi32, #b>, %y: tensor<64xi32, #b>) -> (tensor<64xi32, #b>) {
  %0 = "tt.map_elementwise"(%x, %y) <{pack = 1 : i32}> ({
  ^bb0(%a: i32, %b: i32):
    %c = arith.cmpi slt, %a, %b : i32
    cf.cond_br %c, ^bb1(%a : i32), ^bb1(%b : i32)
  ^bb1(%m: i32):
    tt.map_elementwise.return %m : i32
  }) : (tensor<64xi32, #b>, tensor<64xi32, #b>) -> tensor<64xi32, #b>
  tt.return %0 : tensor<64xi32, #b>
}

// Pairs: both registers of an operand, then both of the next.
// CHECK-LABEL: llvm.func internal @mapped_pairs(
// CHECK-SAME:    %[[X0:[^:]*]]: i32, %[[X1:[^:]*]]: i32, %[[Y0:[^:]*]]: i32, %[[Y1:[^:]*]]: i32)
// CHECK:         llvm.sub %[[X0]], %[[X1]] : i32
// CHECK:         llvm.sub %[[Y0]], %[[Y1]] : i32
tt.func private @mapped_pairs(%x: tensor<64xi32, #b>, %y: tensor<64xi32, #b>) -> (tensor<64xi32, #b>) {
  %0 = "tt.map_elementwise"(%x, %y) <{pack = 2 : i32}> ({
  ^bb0(%a0: i32, %a1: i32, %b0: i32, %b1: i32):
    %d = arith.subi %a0, %a1 : i32
    %e = arith.subi %b0, %b1 : i32
    tt.map_elementwise.return %d, %e : i32, i32
  }) : (tensor<64xi32, #b>, tensor<64xi32, #b>) -> tensor<64xi32, #b>
  tt.return %0 : tensor<64xi32, #b>
}

// Pointers: integers to and fro, and offsets in elements.
// CHECK-LABEL: llvm.func internal @pointers(
// CHECK-COUNT-2: llvm.ptrtoint %{{.*}} : !llvm.ptr<1> to i64
// CHECK-COUNT-2: llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
// CHECK-COUNT-2: llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
// CHECK-COUNT-2: llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
tt.func private @pointers(%p: tensor<64x!tt.ptr<f16>, #b>, %q: tensor<64x!tt.ptr<i1>, #b>) -> (tensor<64x!tt.ptr<f16>, #b>, tensor<64x!tt.ptr<i1>, #b>) {
  %0 = tt.ptr_to_int %p : tensor<64x!tt.ptr<f16>, #b> -> tensor<64xi64, #b>
  %1 = tt.int_to_ptr %0 : tensor<64xi64, #b> -> tensor<64x!tt.ptr<f16>, #b>
  %2 = tt.addptr %1, %0 : tensor<64x!tt.ptr<f16>, #b>, tensor<64xi64, #b>
  %3 = tt.addptr %q, %0 : tensor<64x!tt.ptr<i1>, #b>, tensor<64xi64, #b>
  tt.return %2, %3 : tensor<64x!tt.ptr<f16>, #b>, tensor<64x!tt.ptr<i1>, #b>
}
}
