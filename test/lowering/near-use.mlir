// Bytes that a thread loads as words come out of them where they are used: until then they take a fourth of the registers.
// RUN: %ttc %s --target cuda:90 --emit ptx -o - | FileCheck %s
// CHECK:          ld.global.b32
// CHECK:          ld.global.b32
// CHECK-NOT:      {{prmt|and.b32}}
// CHECK-COUNT-16: mul.hi.u32
// CHECK-NEXT:     .loc
// CHECK-NEXT:     and.b32
// CHECK:          add.s32
// CHECK:          prmt.b32
// CHECK:          add.s32
tt.func public @k(%x: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %y: !tt.ptr<i32> {tt.divisibility = 16 : i32}) {
  %i = tt.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %base = tt.splat %x : !tt.ptr<i8> -> tensor<1024x!tt.ptr<i8>>
  %from = tt.addptr %base, %i : tensor<1024x!tt.ptr<i8>>, tensor<1024xi32>
  %bytes = tt.load %from : tensor<1024x!tt.ptr<i8>>
  %wide = arith.extui %bytes : tensor<1024xi8> to tensor<1024xi32>
  %m = arith.constant dense<-766435501> : tensor<1024xi32>
  %n = arith.constant dense<-845247145> : tensor<1024xi32>
  %a = tt.mulhiui %i, %m : tensor<1024xi32>
  %b = arith.xori %a, %i : tensor<1024xi32>
  %c = tt.mulhiui %b, %n : tensor<1024xi32>
  %d = arith.addi %c, %wide : tensor<1024xi32>
  %out = tt.splat %y : !tt.ptr<i32> -> tensor<1024x!tt.ptr<i32>>
  %to = tt.addptr %out, %i : tensor<1024x!tt.ptr<i32>>, tensor<1024xi32>
  tt.store %to, %d : tensor<1024x!tt.ptr<i32>>
  tt.return
}
