// RUN: %ttopt %s | %ttopt | FileCheck %s

// CHECK: module attributes {t.a = #amdg.amdgcn.set.fp8.clamping}
module attributes {t.a = #amdg.amdgcn.set.fp8.clamping} {}
