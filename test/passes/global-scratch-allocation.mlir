// RUN: %ttopt %s --tritongpu-global-scratch-memory-allocation -split-input-file -verify-diagnostics | FileCheck %s

// One after the other, each aligned; a call gets what its callee needs, the module what a kernel needs at most.
// CHECK: module attributes {ttg.global_scratch_memory_alignment = 128 : i32, ttg.global_scratch_memory_size = 512 : i32}
module {
// CHECK-LABEL: @kernel(
// CHECK-SAME: attributes {ttg.global_scratch_memory_size = 448 : i32}
// CHECK: ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 24 : i32, ttg.global_scratch_memory_offset = 0 : i32}
// CHECK: ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32, ttg.global_scratch_memory_offset = 128 : i32}
// CHECK: scf.if
// CHECK:   tt.call @callee() {ttg.global_scratch_memory_offset = 256 : i32}
// CHECK: tt.call @callee() {ttg.global_scratch_memory_offset = 352 : i32}
// CHECK: tt.call @nothing() : () -> ()
tt.func public @kernel(%c: i1) {
  %0 = ttg.global_scratch_alloc {alignment = 16 : i32, nbytes = 24 : i32} : !tt.ptr<i8>
  %1 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  scf.if %c {
    tt.call @callee() : () -> ()
  }
  tt.call @callee() : () -> ()
  tt.call @nothing() : () -> ()
  tt.return
}
// CHECK: @callee() attributes {ttg.global_scratch_memory_size = 96 : i32}
tt.func private @callee() {
  %0 = ttg.global_scratch_alloc {alignment = 32 : i32, nbytes = 96 : i32} : !tt.ptr<i8>
  tt.return
}
// CHECK: @nothing() {
tt.func private @nothing() {
  tt.return
}
}

// -----

// CHECK: module attributes {ttg.global_scratch_memory_alignment = 1 : i32, ttg.global_scratch_memory_size = 0 : i32}
module {
tt.func public @none() {
  tt.return
}
}

// -----

module {
tt.func public @odd() {
  // expected-error @below {{needs a positive number of bytes and an alignment that is a power of two}}
  %0 = ttg.global_scratch_alloc {alignment = 24 : i32, nbytes = 24 : i32} : !tt.ptr<i8>
  tt.return
}
}

// -----

module {
tt.func public @much() {
  %0 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 2147483647 : i32} : !tt.ptr<i8>
  // expected-error @below {{2147483648 bytes of global scratch memory are too many}}
  %1 = ttg.global_scratch_alloc {alignment = 128 : i32, nbytes = 128 : i32} : !tt.ptr<i8>
  tt.return
}
}

// -----

module {
tt.func private @recursive() {
  // expected-error @below {{calls a function that is being called: recursion needs scratch memory without bound}}
  tt.call @recursive() : () -> ()
  tt.return
}
}
