// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:80 --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,SM80
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:89 --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,SM89
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,SM90
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=hip:gfx942 threads-per-warp=64" --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,GFX942
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=hip:gfx1201" --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,GFX1201
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu="target=hip:gfx1250" --tritongpu-accelerate-matmul | FileCheck %s --check-prefixes=CHECK,GFX1250
// A second time changes nothing.
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-accelerate-matmul > %t.once
// RUN: %ttopt %s -split-input-file --convert-triton-to-tritongpu=target=cuda:90 --tritongpu-accelerate-matmul --tritongpu-accelerate-matmul > %t.twice
// RUN: cmp %t.once %t.twice

// Operands in registers for mma.sync, in shared memory for wgmma. The result
// goes back to the layout that its uses expect.
// SM80: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// SM90-DAG: #mma = #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 16]}>
// SM90-DAG: #[[A:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 64, transposed = false, elementBitWidth = 16}>
// SM90-DAG: #[[B:.+]] = #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = false, elementBitWidth = 16}>
// GFX942: #mma = #ttg.amd_mfma<{version = 3, warpsPerCTA = [2, 2], instrShape = [32, 32, 8], isTransposed = true}>
// GFX1201: #mma = #ttg.amd_wmma<{version = 2, isTranspose = true, ctaLayout = {warp = {{\[\[0, 1\], \[1, 0\]\]}}}}>
// GFX1250: #mma = #ttg.amd_wmma<{version = 3, isTranspose = true, ctaLayout = {warp = {{\[\[0, 1\], \[1, 0\]\]}}}, instrShape = [16, 16, 32]}>
// CHECK-LABEL: @half
// SM80: tt.dot {{.*}} : tensor<64x32xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * tensor<32x64xf16, #ttg.dot_op<{opIdx = 1, parent = #mma, kWidth = 2}>> -> tensor<64x64xf32, #mma>
// SM90: %[[LEFT:.+]] = ttg.local_alloc %arg0 : {{.*}} -> !ttg.memdesc<64x32xf16, #[[A]], #smem>
// SM90: %[[RIGHT:.+]] = ttg.local_alloc %arg1 : {{.*}} -> !ttg.memdesc<32x64xf16, #[[B]], #smem>
// SM90: %[[C:.+]] = ttg.convert_layout %arg2 : tensor<64x64xf32, #blocked{{.*}}> -> tensor<64x64xf32, #mma>
// SM90: %[[D:.+]] = ttng.warp_group_dot %[[LEFT]], %[[RIGHT]], %[[C]]
// SM90: ttg.convert_layout %[[D]]
// GFX942: tt.dot {{.*}} kWidth = 8
// GFX1201: tt.dot {{.*}} kWidth = 8
// GFX1250: tt.dot {{.*}} kWidth = 8
tt.func @half(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Neither 32 rows nor a batch are for warp groups.
// SM90-DAG: #[[SMALL:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [2, 2], instrShape = [16, 8]}>
// SM90-DAG: #[[BATCH:.+]] = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1, 1], instrShape = [1, 16, 8]}>
// CHECK-LABEL: @small
// SM90: tt.dot {{.*}} -> tensor<32x32xf32, #[[SMALL]]>
// SM90: tt.dot {{.*}} -> tensor<8x64x64xf32, #[[BATCH]]>
tt.func @small(%a: tensor<32x32xf16>, %c: tensor<32x32xf32>, %e: tensor<8x64x64xf16>, %f: tensor<8x64x64xf32>) -> (tensor<32x32xf32>, tensor<8x64x64xf32>) {
  %d = tt.dot %a, %a, %c : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
  %g = tt.dot %e, %e, %f : tensor<8x64x64xf16> * tensor<8x64x64xf16> -> tensor<8x64x64xf32>
  tt.return %d, %g : tensor<32x32xf32>, tensor<8x64x64xf32>
}

// -----

// Each warp that reads the right operand converts it: one reads each column, though all then read the left one.
// SM80: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [1, 4], instrShape = [16, 8]}>
// CHECK-LABEL: @converted
// SM80: tt.dot {{.*}} -> tensor<64x128xf32, #mma>
tt.func @converted(%a: tensor<64x64xf16>, %w: tensor<64x128xi8>, %c: tensor<64x128xf32>) -> tensor<64x128xf32> {
  %b = arith.sitofp %w : tensor<64x128xi8> to tensor<64x128xf16>
  %d = tt.dot %a, %b, %c : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
  tt.return %d : tensor<64x128xf32>
}

// -----

// A dot that becomes the left operand of another: warps along its rows,
// so that it stays where it is; wgmma takes it from registers.
// SM80: #mma = #ttg.nvidia_mma<{versionMajor = 2, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 8]}>
// GFX942: #ttg.amd_mfma<{version = 3, warpsPerCTA = [4, 1], instrShape = [16, 16, 16], isTransposed = true}>
// CHECK-LABEL: @chained
// SM90: ttng.warp_group_dot {{.*}} : !ttg.memdesc<64x64xf16
// SM90: ttng.warp_group_dot {{.*}} : tensor<64x64xf16, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 2}>> * !ttg.memdesc<64x64xf16
tt.func @chained(%q: tensor<64x64xf16>, %k: tensor<64x64xf16>, %v: tensor<64x64xf16>) -> tensor<64x64xf32> {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %s = tt.dot %q, %k, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %e = math.exp2 %s : tensor<64x64xf32>
  %p = arith.truncf %e : tensor<64x64xf32> to tensor<64x64xf16>
  %o = tt.dot %p, %v, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %o : tensor<64x64xf32>
}

// -----

// A transposed operand of 16 bits is taken as it lies in memory.
// SM90: #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 16}>
// CHECK-LABEL: @transposed
// SM90: ttg.local_alloc {{.*}} -> !ttg.memdesc<64x64xf16, #shared1, #smem>
tt.func @transposed(%a: tensor<64x64xf16>, %b: tensor<64x64xf16>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %t = tt.trans %b {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
  %d = tt.dot %a, %t, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// f32 as TF32: wgmma wants the right operand along K.
// SM90-DAG: #ttg.nvidia_mma<{versionMajor = 3, versionMinor = 0, warpsPerCTA = [4, 1], instrShape = [16, 64, 8]}>
// SM90-DAG: #ttg.nvmma_shared<{swizzlingByteWidth = 128, transposed = true, elementBitWidth = 32}>
// GFX942: instrShape = [32, 32, 4]
// CHECK-LABEL: @tf32
// SM80: tt.dot {{.*}}, inputPrecision = tf32 : {{.*}} kWidth = 1
// SM90: ttng.warp_group_dot {{.*}} {inputPrecision = 0 : i32}
// GFX942: tt.dot {{.*}} kWidth = 4
// GFX1201: tt.dot {{.*}} -> tensor<64x64xf32, #blocked
tt.func @tf32(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// f32 as it is: only AMD has instructions.
// CHECK-LABEL: @ieee
// SM80: tt.dot {{.*}} -> tensor<64x64xf32, #blocked
// SM90: tt.dot {{.*}} -> tensor<64x64xf32, #blocked
// GFX942: tt.dot {{.*}} -> tensor<64x64xf32, #mma>
tt.func @ieee(%a: tensor<64x32xf32>, %b: tensor<32x64xf32>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  tt.return %d : tensor<64x64xf32>
}

// -----

// Bytes: native where there is an instruction, else as f16, converted after
// they were moved. Precise sums are not for sm_90's warp groups, and its other instructions have no bytes.
// CHECK-LABEL: @fp8
// SM80: ttg.convert_layout %arg0 : tensor<64x64xf8E4M3FN, {{.*}}> -> tensor<64x64xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>>
// SM80: tt.fp_to_fp {{.*}} : tensor<64x64xf8E4M3FN, #ttg.dot_op<{opIdx = 0, parent = #mma, kWidth = 4}>> -> tensor<64x64xf16
// SM80: tt.dot {{.*}} : tensor<64x64xf16, {{.*}}> * tensor<64x64xf16
// SM89: tt.dot {{.*}} : tensor<64x64xf8E4M3FN, {{.*}} kWidth = 4}>> * tensor<64x64xf8E5M2
// SM90: ttng.warp_group_dot {{.*}}maxNumImpreciseAcc = 1073741824 : i32} : !ttg.memdesc<64x64xf8E4M3FN
// SM90: tt.dot {{.*}} : tensor<64x64xf16, {{.*}}> * tensor<64x64xf16
// GFX942: tt.fp_to_fp
// GFX942: tt.dot {{.*}} : tensor<64x64xf16
// GFX1201: tt.dot {{.*}} : tensor<64x64xf8E4M3FN, {{.*}} kWidth = 8}>>
tt.func @fp8(%a: tensor<64x64xf8E4M3FN>, %b: tensor<64x64xf8E5M2>, %c: tensor<64x64xf32>) -> tensor<64x64xf32> {
  %d = tt.dot %a, %b, %c {maxNumImpreciseAcc = 1073741824 : i32} : tensor<64x64xf8E4M3FN> * tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  %e = tt.dot %a, %b, %d : tensor<64x64xf8E4M3FN> * tensor<64x64xf8E5M2> -> tensor<64x64xf32>
  tt.return %e : tensor<64x64xf32>
}

// -----

// CHECK-LABEL: @integers
// SM80: tt.dot {{.*}} : tensor<64x32xi8, {{.*}} kWidth = 4}>>
// SM90: ttng.warp_group_dot {{.*}} : !ttg.memdesc<64x32xi8, #{{.*}}> * !ttg.memdesc<32x64xi8, #{{.*}}> -> tensor<64x64xi32
// GFX942: tt.dot {{.*}} : tensor<64x32xi8, {{.*}} kWidth = 16}>>
tt.func @integers(%a: tensor<64x32xi8>, %b: tensor<32x64xi8>, %c: tensor<64x64xi32>) -> tensor<64x64xi32> {
  %d = tt.dot %a, %b, %c : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  tt.return %d : tensor<64x64xi32>
}

// -----

// SM80: #mma = #ttg.nvidia_mma<{{.*}} instrShape = [8, 8]}>
// GFX942: #ttg.amd_mfma<{{.*}} instrShape = [16, 16, 4], isTransposed = true, elementBitWidth = 64}>
// CHECK-LABEL: @double
// SM90: tt.dot {{.*}} kWidth = 1
tt.func @double(%a: tensor<64x64xf64>, %c: tensor<64x64xf64>) -> tensor<64x64xf64> {
  %d = tt.dot %a, %a, %c : tensor<64x64xf64> * tensor<64x64xf64> -> tensor<64x64xf64>
  tt.return %d : tensor<64x64xf64>
}

// -----

// The instruction sums up in f32 what the result has as f16.
// CHECK-LABEL: @narrow_result
// SM80: %[[C:.+]] = arith.extf {{.*}} : tensor<64x64xf16, #mma> to tensor<64x64xf32, #mma>
// SM80: %[[D:.+]] = tt.dot {{.*}} : tensor<64x64xbf16, {{.*}} -> tensor<64x64xf32, #mma>
// SM80: arith.truncf %[[D]] : tensor<64x64xf32, #mma> to tensor<64x64xf16, #mma>
tt.func @narrow_result(%a: tensor<64x64xbf16>, %c: tensor<64x64xf16>) -> tensor<64x64xf16> {
  %d = tt.dot %a, %a, %c : tensor<64x64xbf16> * tensor<64x64xbf16> -> tensor<64x64xf16>
  tt.return %d : tensor<64x64xf16>
}

// -----

// Without an instruction: one type for all three operands.
// CHECK-LABEL: @within_threads
// CHECK: %[[A:.+]] = arith.extsi {{.*}} : tensor<64x64xi16, #ttg.dot_op<{opIdx = 0, parent = #blocked{{.*}}}>> to tensor<64x64xi32
// CHECK: %[[B:.+]] = arith.extsi {{.*}} #ttg.dot_op<{opIdx = 1
// CHECK: tt.dot %[[A]], %[[B]], %{{.*}} : tensor<64x64xi32
tt.func @within_threads(%a: tensor<64x64xi16>, %c: tensor<64x64xi32>) -> tensor<64x64xi32> {
  %d = tt.dot %a, %a, %c : tensor<64x64xi16> * tensor<64x64xi16> -> tensor<64x64xi32>
  tt.return %d : tensor<64x64xi32>
}
