// libdevice's functions keep arrays in local memory, whose addresses have 32 bits.
// REQUIRES: libdevice
// RUN: %ttc %s --target cuda:80 -o - | FileCheck %s

// CHECK-LABEL: .entry cosine
// CHECK: .local .align 4 .b8 __local_depot
// CHECK: st.local.b32 [%r{{[0-9]+}}],
tt.func public @cosine(%p: !tt.ptr<f32>) {
  %x = tt.load %p : !tt.ptr<f32>
  %y = math.cos %x : f32
  tt.store %p, %y : !tt.ptr<f32>
  tt.return
}
