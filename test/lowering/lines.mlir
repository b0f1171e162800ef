// RUN: %ttopt %s --convert-triton-gpu-to-llvm --mlir-print-debuginfo | FileCheck %s --check-prefix=SCOPE
// RUN: %ttc %s --target cuda:90 --emit ptx | FileCheck %s --check-prefix=PTX

// A function is a scope of the file its location names; its lines go to PTX.
// SCOPE: emissionKind = DebugDirectivesOnly
// SCOPE: #llvm.di_subprogram<{{.*}}name = "k"{{.*}}line = 3
// PTX: .loc [[FILE:[0-9]+]] 7 11
// PTX: st.global
// ptxas does not read quotation marks here.
// PTX: .file [[FILE]] "/code/kernel 'one'.py"
// PTX-NOT: .section
module attributes {"ttg.num-ctas" = 1 : i32, "ttg.num-warps" = 1 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func public @k(%p: !tt.ptr<i32>) {
    %c = arith.constant 1 : i32 loc("/code/kernel \"one\".py":6:11)
    // A name around a place, as the front end writes it.
    tt.store %p, %c : !tt.ptr<i32> loc("stored"("/code/kernel \"one\".py":7:11))
    tt.return loc("/code/kernel \"one\".py":8:1)
  } loc("/code/kernel \"one\".py":3:1)
} loc(unknown)
