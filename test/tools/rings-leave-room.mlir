// A dot that runs beside the program takes a slot more than one that its iteration waits for. Here three slots of either operand leave
// shared memory for a second CTA of 256 threads, and code that has 128 registers a thread needs no stack: a schedule with these is as good by all
// else that is known, and the kernel is compiled with it (`tools/src/compile/room.rs`).
// RUN: %ttc %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ptx -o - | FileCheck %s --check-prefix=PTX
// PTX: .minnctapersm 2
// RUN: %ttc %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir --explain -o - 2>&1 | FileCheck %s
// CHECK: ring 0: 3 slots
// CHECK: ring 1: 4 slots
// CHECK: remark: rings of fewer slots leave shared memory for 2 CTAs
// CHECK: ring 0: 2 slots
// CHECK: ring 1: 3 slots
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<2x
// CHECK: ttg.local_alloc : () -> !ttg.memdesc<3x
// CHECK-NOT: ttg.could_leave_room

// So is one whose PTX somebody gives.
// RUN: rm -rf %t && %ttc %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ptx --dump %t/made -o %t/made.ptx
// RUN: %ttc %s --target cuda:90 --num-warps 8 --num-stages 3 --emit ptx --override %t/made.ptx --dump %t/again -o /dev/null
// RUN: FileCheck %s --check-prefix=AGAIN --input-file %t/again/attention.ttgir
// AGAIN: ttg.local_alloc : () -> !ttg.memdesc<2x
// AGAIN: ttg.local_alloc : () -> !ttg.memdesc<3x

// Where the code does not leave the registers, the rings keep their slots.
// RUN: %ttc %S/../../bench/kernels/attn_gqa_d96.ttir --target cuda:90 --num-warps 8 --num-stages 3 --emit ttgir --explain -o - 2>&1 | FileCheck %s --check-prefix=FULL
// FULL-NOT: rings of fewer slots
// FULL: ring 1: 4 slots
// FULL-NOT: rings of fewer slots

module {
  tt.func public @attention(%Q: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %K: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %V: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %O: !tt.ptr<f16> {tt.divisibility = 16 : i32}, %L: !tt.ptr<f32> {tt.divisibility = 16 : i32}, %length: i32 {tt.divisibility = 16 : i32}, %scale: f32) attributes {noinline = false} {
    %l = arith.constant dense<1.000000e+00> : tensor<128xf32>
    %m = arith.constant dense<0xFF800000> : tensor<128xf32>
    %cst = arith.constant dense<64> : tensor<1x128xi32>
    %cst_0 = arith.constant dense<0.000000e+00> : tensor<128x128xf32>
    %c0_i32 = arith.constant 0 : i32
    %acc = arith.constant dense<0.000000e+00> : tensor<128x64xf32>
    %cst_1 = arith.constant 1.44269502 : f32
    %cst_2 = arith.constant dense<64> : tensor<128x1xi32>
    %c64_i64 = arith.constant 64 : i64
    %c128_i32 = arith.constant 128 : i32
    %0 = tt.get_program_id x : i32
    %1 = tt.get_program_id y : i32
    %2 = arith.extsi %1 : i32 to i64
    %3 = arith.extsi %length : i32 to i64
    %4 = arith.muli %2, %3 : i64
    %5 = arith.muli %0, %c128_i32 : i32
    %6 = tt.make_range {end = 128 : i32, start = 0 : i32} : tensor<128xi32>
    %7 = tt.splat %5 : i32 -> tensor<128xi32>
    %8 = arith.addi %7, %6 : tensor<128xi32>
    %9 = tt.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %q = arith.muli %4, %c64_i64 : i64
    %q_3 = tt.addptr %Q, %q : !tt.ptr<f16>, i64
    %q_4 = tt.expand_dims %8 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
    %q_5 = arith.muli %q_4, %cst_2 : tensor<128x1xi32>
    %q_6 = tt.splat %q_3 : !tt.ptr<f16> -> tensor<128x1x!tt.ptr<f16>>
    %q_7 = tt.addptr %q_6, %q_5 : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
    %q_8 = tt.expand_dims %9 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %q_9 = tt.broadcast %q_7 : tensor<128x1x!tt.ptr<f16>> -> tensor<128x64x!tt.ptr<f16>>
    %q_10 = tt.broadcast %q_8 : tensor<1x64xi32> -> tensor<128x64xi32>
    %q_11 = tt.addptr %q_9, %q_10 : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %q_12 = tt.load %q_11 : tensor<128x64x!tt.ptr<f16>>
    %scale_13 = arith.mulf %scale, %cst_1 : f32
    %K_14 = tt.addptr %K, %q : !tt.ptr<f16>, i64
    %V_15 = tt.addptr %V, %q : !tt.ptr<f16>, i64
    %acc_16:3 = scf.for %at = %c0_i32 to %length step %c128_i32 iter_args(%m_17 = %m, %l_18 = %l, %acc_19 = %acc) -> (tensor<128xf32>, tensor<128xf32>, tensor<128x64xf32>)  : i32 {
      %k = tt.splat %at : i32 -> tensor<128xi32>
      %k_20 = arith.addi %k, %6 : tensor<128xi32>
      %k_21 = tt.expand_dims %k_20 {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
      %k_22 = arith.muli %k_21, %cst : tensor<1x128xi32>
      %k_23 = tt.splat %K_14 : !tt.ptr<f16> -> tensor<1x128x!tt.ptr<f16>>
      %k_24 = tt.addptr %k_23, %k_22 : tensor<1x128x!tt.ptr<f16>>, tensor<1x128xi32>
      %k_25 = tt.expand_dims %9 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
      %k_26 = tt.broadcast %k_24 : tensor<1x128x!tt.ptr<f16>> -> tensor<64x128x!tt.ptr<f16>>
      %k_27 = tt.broadcast %k_25 : tensor<64x1xi32> -> tensor<64x128xi32>
      %k_28 = tt.addptr %k_26, %k_27 : tensor<64x128x!tt.ptr<f16>>, tensor<64x128xi32>
      %k_29 = tt.load %k_28 : tensor<64x128x!tt.ptr<f16>>
      %s = tt.dot %q_12, %k_29, %cst_0, inputPrecision = tf32 : tensor<128x64xf16> * tensor<64x128xf16> -> tensor<128x128xf32>
      %top = "tt.reduce"(%s) <{axis = 1 : i32}> ({
      ^bb0(%top_52: f32, %top_53: f32):
        %top_54 = arith.maxnumf %top_52, %top_53 : f32
        tt.reduce.return %top_54 : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %top_30 = tt.splat %scale_13 : f32 -> tensor<128xf32>
      %top_31 = arith.mulf %top, %top_30 : tensor<128xf32>
      %top_32 = arith.maxnumf %m_17, %top_31 : tensor<128xf32>
      %s_33 = tt.splat %scale_13 : f32 -> tensor<128x128xf32>
      %s_34 = arith.mulf %s, %s_33 : tensor<128x128xf32>
      %s_35 = tt.expand_dims %top_32 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %s_36 = tt.broadcast %s_35 : tensor<128x1xf32> -> tensor<128x128xf32>
      %s_37 = arith.subf %s_34, %s_36 : tensor<128x128xf32>
      %p = math.exp2 %s_37 : tensor<128x128xf32>
      %shrink = arith.subf %m_17, %top_32 : tensor<128xf32>
      %shrink_38 = math.exp2 %shrink : tensor<128xf32>
      %sum = "tt.reduce"(%p) <{axis = 1 : i32}> ({
      ^bb0(%sum_52: f32, %sum_53: f32):
        %sum_54 = arith.addf %sum_52, %sum_53 : f32
        tt.reduce.return %sum_54 : f32
      }) : (tensor<128x128xf32>) -> tensor<128xf32>
      %acc_39 = tt.expand_dims %shrink_38 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
      %acc_40 = tt.broadcast %acc_39 : tensor<128x1xf32> -> tensor<128x64xf32>
      %acc_41 = arith.mulf %acc_19, %acc_40 : tensor<128x64xf32>
      %v = tt.expand_dims %k_20 {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
      %v_42 = arith.muli %v, %cst_2 : tensor<128x1xi32>
      %v_43 = tt.splat %V_15 : !tt.ptr<f16> -> tensor<128x1x!tt.ptr<f16>>
      %v_44 = tt.addptr %v_43, %v_42 : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
      %v_45 = tt.broadcast %v_44 : tensor<128x1x!tt.ptr<f16>> -> tensor<128x64x!tt.ptr<f16>>
      %v_46 = tt.addptr %v_45, %q_10 : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
      %v_47 = tt.load %v_46 : tensor<128x64x!tt.ptr<f16>>
      %acc_48 = arith.truncf %p : tensor<128x128xf32> to tensor<128x128xf16>
      %acc_49 = tt.dot %acc_48, %v_47, %acc_41, inputPrecision = tf32 : tensor<128x128xf16> * tensor<128x64xf16> -> tensor<128x64xf32>
      %l_50 = arith.mulf %l_18, %shrink_38 : tensor<128xf32>
      %l_51 = arith.addf %l_50, %sum : tensor<128xf32>
      scf.yield %top_32, %l_51, %acc_49 : tensor<128xf32>, tensor<128xf32>, tensor<128x64xf32>
    }
    %10 = tt.addptr %L, %4 : !tt.ptr<f32>, i64
    %11 = tt.splat %10 : !tt.ptr<f32> -> tensor<128x!tt.ptr<f32>>
    %12 = tt.addptr %11, %8 : tensor<128x!tt.ptr<f32>>, tensor<128xi32>
    %13 = math.log2 %acc_16#1 : tensor<128xf32>
    %14 = arith.addf %acc_16#0, %13 : tensor<128xf32>
    tt.store %12, %14 : tensor<128x!tt.ptr<f32>>
    %15 = tt.addptr %O, %q : !tt.ptr<f16>, i64
    %16 = tt.splat %15 : !tt.ptr<f16> -> tensor<128x1x!tt.ptr<f16>>
    %17 = tt.addptr %16, %q_5 : tensor<128x1x!tt.ptr<f16>>, tensor<128x1xi32>
    %18 = tt.broadcast %17 : tensor<128x1x!tt.ptr<f16>> -> tensor<128x64x!tt.ptr<f16>>
    %19 = tt.addptr %18, %q_10 : tensor<128x64x!tt.ptr<f16>>, tensor<128x64xi32>
    %20 = tt.expand_dims %acc_16#1 {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %21 = tt.broadcast %20 : tensor<128x1xf32> -> tensor<128x64xf32>
    %22 = arith.divf %acc_16#2, %21 : tensor<128x64xf32>
    %23 = arith.truncf %22 : tensor<128x64xf32> to tensor<128x64xf16>
    tt.store %19, %23 : tensor<128x64x!tt.ptr<f16>>
    tt.return
  }
}