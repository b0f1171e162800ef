// Names that the target's assembler does not take, or that mean something already, are refused where they stand.
// RUN: %ttopt %s --convert-triton-gpu-to-llvm -split-input-file -verify-diagnostics

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'noyau-é' is no identifier of PTX: letters without accents, digits, '_' and '$', no digit first}}
  tt.func public @"noyau-é"() {
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'kernel.1' is no identifier of PTX}}
  tt.func public @kernel.1() {
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'1st' is no identifier of PTX}}
  tt.func private @"1st"() {
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'global_smem' is a name of the target's or the compiler's own}}
  tt.func public @global_smem() {
    tt.return
  }
}

// -----

module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  // expected-error @below {{'llvm.memcpy' is a name of the target's or the compiler's own}}
  tt.func private @llvm.memcpy() {
    tt.return
  }
}

// -----

// What only this module knows is renamed, as functions of the front end with dots in their names.
module attributes {"ttg.num-warps" = 4 : i32, ttg.target = "cuda:90", "ttg.threads-per-warp" = 32 : i32} {
  tt.func private @"módulo.f__Pfp32"() {
    tt.return
  }
}
