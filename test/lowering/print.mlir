// Each element is printed once, in the notation of printf, with its program and its indices.
// RUN: %ttsim %s --grid 1,1,1 --arg 7 --arg -9 --arg 1.5 --arg 1 --quiet 2>&1 | FileCheck %s

// A percent sign of the prefix stands for itself.
// CHECK: {{^}}pid (0, 0, 0) idx () n%d: (operand 0) 7{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx () n%d: (operand 1) 18446744073709551607{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx () n%d: (operand 2) 1.500000{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx () n%d: (operand 3) 1{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx () signed: -9{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx () hex: 0x00000007{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0)alone{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx (0, 0) r: 0{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx (0, 1) r: 1{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx (1, 0) r: 2{{$}}
// CHECK-NEXT: {{^}}pid (0, 0, 0) idx (1, 1) r: 3{{$}}
// CHECK-NOT: {{^}}pid
tt.func public @k(%n: i32, %u: i64, %f: f32, %b: i1) {
  tt.print " n%d: " {hex = false, isSigned = array<i32: 1, 0, 0, 0>} : %n, %u, %f, %b : i32, i64, f32, i1
  tt.print " signed: " {hex = false, isSigned = array<i32: 1>} : %u : i64
  tt.print " hex: " {hex = true, isSigned = array<i32: 1>} : %n : i32
  tt.print "alone" {hex = false, isSigned = array<i32>}
  %r = tt.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %s = tt.reshape %r : tensor<4xi32> -> tensor<2x2xi32>
  tt.print " r: " {hex = false, isSigned = array<i32: 1>} : %s : tensor<2x2xi32>
  tt.return
}
